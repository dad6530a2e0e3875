"""Reference implementations of the kernels that tile planes, and of `row_ends`, which completes one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.block_kernels import edge_blocks, find_row_edges, find_sources, read_blocks
from reference.elements import WORD_NBYTES, Copied, write_elements
from reference.memory import Flags, Observed, Words, Writes
from reference.pieces import (
    Edge,
    find_extents,
    find_pieces,
    find_places,
    find_tile_numbers,
    invocation_numbers,
)

from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.steps import Dispatch, Share


class Invocations(NamedTuple):
    """The first element of each invocation: arrays of the shape (workgroups, invocations)."""

    invocation: Words
    source_element: Words  # of its plane's first element
    target_element: Words
    column: Words
    row: Words


def find_invocations(block: np.void, share: Share) -> Invocations:
    """The first elements of all invocations, without workgroups beyond the last tile."""
    assert share.tiling is not None
    invocation = invocation_numbers(share).reshape(-1, share.workgroup_size)[: int(block["count"])]
    number = find_tile_numbers(block, invocation[:, 0] // np.uint32(share.workgroup_size))
    local = np.arange(share.workgroup_size, dtype=np.uint32)
    below = np.uint32(share.workgroup_size) >> block["across_shift"]
    each = np.uint32(share.each)
    tile_columns = max(block["ahead_columns"] * each, np.uint32(1) << block["across_shift"])
    tile_rows = max(block["ahead_rows"] * each, below)
    column, row = number.column * tile_columns, number.row * tile_rows
    source_element, target_element = find_places(block, number.plane, int(block["rank"]) - 2)
    return Invocations(
        invocation,
        source_element[:, None] + np.zeros_like(local),
        target_element[:, None] + np.zeros_like(local),
        column[:, None] + (local & ((np.uint32(1) << block["across_shift"]) - np.uint32(1))),
        row[:, None] + (local >> block["across_shift"]),
    )


def copy_units(block: np.void, step: Dispatch, source: Observed, unit_nbytes: int) -> Writes:
    """Whole elements of planes, written in units."""
    first = find_invocations(block, step.share)
    last = int(block["rank"]) - 1
    k = np.arange(step.share.each, dtype=np.uint32)
    column = first.column[..., None] + k * block["ahead_columns"]
    row = first.row[..., None] + k * block["ahead_rows"]
    inside = (column < block["dimensions"]["size"][last]) & (row < block["dimensions"]["size"][last - 1])
    source_elements, target_elements = (
        (
            first[..., None]
            + row * block["dimensions"][stride][last - 1]
            + column * block["dimensions"][stride][last]
        )[inside]
        for first, stride in (
            (first.source_element, "source_stride"),
            (first.target_element, "target_stride"),
        )
    )
    own = np.broadcast_to(first.invocation[..., None], inside.shape)[inside]
    return write_elements(
        source, Copied(source_elements, target_elements, own), step.width_nbytes, unit_nbytes
    )


def word_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/unit_grid.wgsl`."""
    return copy_units(block, step, source, WORD_NBYTES)


def wide_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/unit_grid.wgsl`."""
    return copy_units(block, step, source, WIDEST_NBYTES)


def shifted_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/shifted_grid.wgsl`."""
    first = find_invocations(block, step.share)
    last, width = int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    exists = first.row < block["dimensions"]["size"][last - 1]
    row, column = first.row[exists], first.column[exists]
    source_element = first.source_element[exists] + row * block["dimensions"]["source_stride"][last - 1]
    target_element = first.target_element[exists] + row * block["dimensions"]["target_stride"][last - 1]
    extents = find_extents(target_element * width, block["dimensions"]["size"][last] * width, WIDEST_NBYTES)
    columns = column[:, None] + np.arange(step.share.each, dtype=np.uint32) * block["ahead_columns"]
    inside = columns < (extents.stop_unit - extents.whole_unit)[:, None]
    owner = np.broadcast_to(np.arange(len(row))[:, None], inside.shape)[inside]
    unit = extents.whole_unit[owner] + columns[inside]
    sources = find_sources(step, source_element[owner], target_element[owner], unit)
    own = first.invocation[exists][owner]
    return Writes(WIDEST_NBYTES, unit, read_blocks(step, source, sources, own), own)


def row_ends(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Mirrors `wgsl/row_ends.wgsl`."""
    last, width = int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    pieces = find_pieces(block, step.share, int(block["count"]))
    _, target_element = find_places(block, pieces.row, last)
    extents = find_extents(target_element * width, block["dimensions"]["size"][last] * width, WIDEST_NBYTES)
    owner, edge = find_row_edges(block, step, pieces, extents)
    edges = Edge(edge, pieces.row[owner], owner)
    return Writes(WIDEST_NBYTES, edge, edge_blocks(block, step, (source, target), edges), owner)


class Vectors(NamedTuple):
    """Vectors of tiles: arrays of the shape (tiles, down, across)."""

    number: Words  # from the start of the binding
    exists: Flags  # whether it is in the plane
    invocation: Words  # that moves it


def wide_tiles(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/wide_tiles.wgsl`."""
    side, per_vector = step.share.each, WIDEST_NBYTES // step.width_nbytes  # elements: of a tile, of a vector
    every, first = np.arange(side, dtype=np.uint32), np.arange(0, side, per_vector, dtype=np.uint32)
    vectors = np.arange(side // per_vector, dtype=np.uint32)
    rows_apart = 4 // step.width_nbytes if step.width_nbytes < 4 else step.source.strides[-2]
    down = find_vectors(
        block, step, "source_stride", (first[:, None], every), every * len(vectors) + vectors[:, None]
    )
    along = find_vectors(
        block,
        step,
        "target_stride",
        (every[:, None], first),
        every[:, None] // rows_apart * len(vectors) + vectors,
    )
    tile = np.zeros((*down.exists.shape, WIDEST_NBYTES), np.uint8)
    tile[down.exists] = source.blocks(down.number[down.exists], down.invocation[down.exists])
    rows = (
        tile.view(f"V{step.width_nbytes}").transpose(0, 1, 3, 2).reshape(-1, side, len(vectors), per_vector)
    )
    return Writes(
        WIDEST_NBYTES, along.number[along.exists], rows[along.exists], along.invocation[along.exists]
    )


def find_vectors(
    block: np.void, step: Dispatch, stride: str, inside: tuple[Words, Words], turn: Words
) -> Vectors:
    """The vectors whose first elements are `inside` of each tile, and their invocations, in order."""
    share, last = step.share, int(block["rank"]) - 1
    side, size = np.uint32(share.each), np.uint32(share.workgroup_size)
    group = invocation_numbers(share)[:: share.workgroup_size] // size
    tile = find_tile_numbers(block, np.minimum(group, block["count"] - np.uint32(1)))
    row = (tile.row * side)[:, None, None] + inside[0]  # source elements before it
    column = (tile.column * side)[:, None, None] + inside[1]
    step_ = np.uint32(step.source.strides[-2])
    rows = (block["dimensions"]["size"][last - 1] - np.uint32(1)) * step_ + np.uint32(1)
    exists = (row < rows) & (column < block["dimensions"]["size"][last])
    plane = find_places(block, tile.plane, last - 1)[stride == "target_stride"]
    ahead = row
    if stride == "target_stride":
        exists &= row % step_ == 0
        ahead = row // step_ * block["dimensions"][stride][last - 1]
    element = plane[:, None, None] + ahead + column * block["dimensions"][stride][last]
    invocation = (group * size)[:, None, None] + turn % size
    return Vectors(
        np.asarray(element // np.uint32(WIDEST_NBYTES // step.width_nbytes), np.uint32),
        np.asarray(exists),
        np.broadcast_to(invocation, exists.shape).astype(np.uint32),
    )

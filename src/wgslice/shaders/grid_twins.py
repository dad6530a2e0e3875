"""The twins of the kernels that tile planes, and of `row_ends`, which completes one of them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.launch import Share
from wgslice.plans.steps import Dispatch
from wgslice.shaders.block_twins import edge_blocks, find_row_edges, find_sources, read_blocks
from wgslice.shaders.copy_twins import WORD_NBYTES, Copied, write_elements
from wgslice.shaders.memory import Flags, Observed, Words, Writes
from wgslice.shaders.pieces import (
    Edge,
    find_extents,
    find_pieces,
    find_places,
    find_tile_numbers,
    invocation_numbers,
)

__all__ = ["pair_grid", "row_ends", "shifted_grid", "wide_grid", "wide_tiles", "word_grid"]


class Lanes(NamedTuple):
    """Where each lane of each workgroup begins: arrays of the shape (workgroups, lanes)."""

    invocation: Words
    source_element: Words  # of its plane's first element
    target_element: Words
    column: Words
    row: Words


def find_lanes(block: np.void, share: Share) -> Lanes:
    """The places of all lanes, workgroups beyond the last tile left out."""
    assert share.tiling is not None
    invocation = invocation_numbers(share).reshape(-1, share.workgroup_size)[: int(block["count"])]
    number = find_tile_numbers(block, invocation[:, 0] // np.uint32(share.workgroup_size))
    lane = np.arange(share.workgroup_size, dtype=np.uint32)
    below = np.uint32(share.workgroup_size) >> block["lane_shift"]
    each = np.uint32(share.each)
    tile_columns = max(block["ahead_columns"] * each, np.uint32(1) << block["lane_shift"])
    tile_rows = max(block["ahead_rows"] * each, below)
    column, row = number.column * tile_columns, number.row * tile_rows
    source_element, target_element = find_places(block, number.plane, int(block["rank"]) - 2)
    return Lanes(
        invocation,
        source_element[:, None] + np.zeros_like(lane),
        target_element[:, None] + np.zeros_like(lane),
        column[:, None] + (lane & ((np.uint32(1) << block["lane_shift"]) - np.uint32(1))),
        row[:, None] + (lane >> block["lane_shift"]),
    )


def copy_units(block: np.void, step: Dispatch, source: Observed, unit_nbytes: int) -> Writes:
    """Whole elements of planes, written in units."""
    lanes = find_lanes(block, step.share)
    last = int(block["rank"]) - 1
    k = np.arange(step.share.each, dtype=np.uint32)
    column = lanes.column[..., None] + k * block["ahead_columns"]
    row = lanes.row[..., None] + k * block["ahead_rows"]
    inside = (column < block["sizes"][last]) & (row < block["sizes"][last - 1])
    source_elements, target_elements = (
        (first[..., None] + row * block[strides][last - 1] + column * block[strides][last])[inside]
        for first, strides in (
            (lanes.source_element, "source_strides"),
            (lanes.target_element, "target_strides"),
        )
    )
    own = np.broadcast_to(lanes.invocation[..., None], inside.shape)[inside]
    return write_elements(
        source, Copied(source_elements, target_elements, own), step.width_nbytes, unit_nbytes
    )


def word_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Twin of `wgsl/word_grid.wgsl`."""
    return copy_units(block, step, source, WORD_NBYTES)


def pair_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Twin of `wgsl/pair_grid.wgsl`."""
    return copy_units(block, step, source, WORD_NBYTES)


def wide_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Twin of `wgsl/wide_grid.wgsl`."""
    return copy_units(block, step, source, WIDEST_NBYTES)


def shifted_grid(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Twin of `wgsl/shifted_grid.wgsl`."""
    lanes = find_lanes(block, step.share)
    last, width = int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    exists = lanes.row < block["sizes"][last - 1]
    row, column = lanes.row[exists], lanes.column[exists]
    source_element = lanes.source_element[exists] + row * block["source_strides"][last - 1]
    target_element = lanes.target_element[exists] + row * block["target_strides"][last - 1]
    extents = find_extents(target_element * width, block["sizes"][last] * width, WIDEST_NBYTES)
    columns = column[:, None] + np.arange(step.share.each, dtype=np.uint32) * block["ahead_columns"]
    inside = columns < (extents.stop_unit - extents.whole_unit)[:, None]
    owner = np.broadcast_to(np.arange(len(row))[:, None], inside.shape)[inside]
    unit = extents.whole_unit[owner] + columns[inside]
    sources = find_sources(step, source_element[owner], target_element[owner], unit)
    own = lanes.invocation[exists][owner]
    return Writes(WIDEST_NBYTES, unit, read_blocks(step, source, sources, own), own)


def row_ends(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Twin of `wgsl/row_ends.wgsl`."""
    last, width = int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    pieces = find_pieces(block, step.share, int(block["count"]))
    _, target_element = find_places(block, pieces.row, last)
    extents = find_extents(target_element * width, block["sizes"][last] * width, WIDEST_NBYTES)
    owner, edge = find_row_edges(block, step, pieces, extents)
    edges = Edge(edge, pieces.row[owner], owner)
    return Writes(WIDEST_NBYTES, edge, edge_blocks(block, step, (source, target), edges), owner)


class Vectors(NamedTuple):
    """Vectors of tiles: arrays of the shape (tiles, down, across)."""

    number: Words  # from the start of the binding
    exists: Flags  # whether it lies in the plane
    invocation: Words  # that moves it


def wide_tiles(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Twin of `wgsl/wide_tiles.wgsl`."""
    side, lanes = step.share.each, WIDEST_NBYTES // step.width_nbytes  # elements: of a tile, of a vector
    every, first = np.arange(side, dtype=np.uint32), np.arange(0, side, lanes, dtype=np.uint32)
    vectors = np.arange(side // lanes, dtype=np.uint32)
    rows_apart = 4 // step.width_nbytes if step.width_nbytes < 4 else step.source.strides[-2]
    down = find_vectors(
        block, step, "source_strides", (first[:, None], every), every * len(vectors) + vectors[:, None]
    )
    along = find_vectors(
        block,
        step,
        "target_strides",
        (every[:, None], first),
        every[:, None] // rows_apart * len(vectors) + vectors,
    )
    tile = np.zeros((*down.exists.shape, WIDEST_NBYTES), np.uint8)
    tile[down.exists] = source.blocks(down.number[down.exists], down.invocation[down.exists])
    rows = tile.view(f"V{step.width_nbytes}").transpose(0, 1, 3, 2).reshape(-1, side, len(vectors), lanes)
    return Writes(
        WIDEST_NBYTES, along.number[along.exists], rows[along.exists], along.invocation[along.exists]
    )


def find_vectors(
    block: np.void, step: Dispatch, strides: str, inside: tuple[Words, Words], turn: Words
) -> Vectors:
    """The vectors whose first elements lie `inside` of each tile, and who moves them, lane after lane."""
    share, last = step.share, int(block["rank"]) - 1
    side, size = np.uint32(share.each), np.uint32(share.workgroup_size)
    group = invocation_numbers(share)[:: share.workgroup_size] // size
    tile = find_tile_numbers(block, np.minimum(group, block["count"] - np.uint32(1)))
    row = (tile.row * side)[:, None, None] + inside[0]  # source elements before it
    column = (tile.column * side)[:, None, None] + inside[1]
    step_ = np.uint32(step.source.strides[-2])
    rows = (block["sizes"][last - 1] - np.uint32(1)) * step_ + np.uint32(1)
    exists = (row < rows) & (column < block["sizes"][last])
    plane = find_places(block, tile.plane, last - 1)[strides == "target_strides"]
    ahead = row
    if strides == "target_strides":
        exists &= row % step_ == 0
        ahead = row // step_ * block[strides][last - 1]
    element = plane[:, None, None] + ahead + column * block[strides][last]
    invocation = (group * size)[:, None, None] + turn % size
    return Vectors(
        np.asarray(element // np.uint32(WIDEST_NBYTES // step.width_nbytes), np.uint32),
        np.asarray(exists),
        np.broadcast_to(invocation, exists.shape).astype(np.uint32),
    )

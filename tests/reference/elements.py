"""Reference implementations of `slice1`, rows of elements, the `subword_` kernels, and tiles of elements."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.memory import Array, Observed, Words, Writes
from reference.pieces import (
    Edge,
    divide,
    find_edges,
    find_extents,
    find_pieces,
    find_places,
    invocation_numbers,
    taken,
)

from wgslice.plans.steps import Dispatch

WORD_NBYTES = 4


class Copied(NamedTuple):
    """Elements that are copied, and by which invocations."""

    source_elements: Words
    target_elements: Words
    invocations: Words


def write_elements(source: Observed, copied: Copied, nbytes: int, unit_nbytes: int) -> Writes:
    """Elements of `nbytes` as they are written, unit by unit."""
    units = elements_of(copied.target_elements, nbytes // unit_nbytes)
    values = source.elements(copied.source_elements, nbytes, copied.invocations)
    return Writes(unit_nbytes, units, values, copied.invocations[:, None])


def slice1(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/slice1.wgsl`."""
    invocation = invocation_numbers(step.share)
    own = rest = invocation[invocation < block["count"]]
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(block["rank"])):
        rest, c = np.divmod(rest, block["dimensions"]["size"][d])
        source_elements += c * block["dimensions"]["source_stride"][d]
        target_elements += c * block["dimensions"]["target_stride"][d]
    width = step.width_nbytes
    return write_elements(
        source, Copied(source_elements, target_elements, own), width, min(width, WORD_NBYTES)
    )


def row_dimensions(block: np.void, step: Dispatch) -> tuple[int, np.uint32]:
    """Dimensions before those of a row, and the elements of a row."""
    last = int(block["rank"]) - 1
    before = last - step.share.paired
    return before, np.prod(block["dimensions"]["size"][before : last + 1], dtype=np.uint32)


def ahead(block: np.void, step: Dispatch, stride: str, c: Words) -> Words:
    """The distance of a row's c-th element from its first."""
    last = int(block["rank"]) - 1
    if not step.share.paired:
        return np.asarray(c * block["dimensions"][stride][last], np.uint32)
    run = divide(c, block["dimensions"]["multiplier"][last], block["dimensions"]["shift"][last])
    inside = c - run * block["dimensions"]["size"][last]
    return np.asarray(
        run * block["dimensions"][stride][last - 1] + inside * block["dimensions"][stride][last], np.uint32
    )


def rows(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/rows.wgsl`."""
    return copy_rows(block, step, source, WORD_NBYTES)


def wide_rows(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/wide_rows.wgsl`."""
    return copy_rows(block, step, source, step.width_nbytes)


def copy_rows(block: np.void, step: Dispatch, source: Observed, unit_nbytes: int) -> Writes:
    """Whole elements, row by row, written in units."""
    dimensions, size = row_dimensions(block, step)
    pieces = find_pieces(block, step.share, int(block["count"]))
    source_rows, target_rows = find_places(block, pieces.row, dimensions)
    owner, c = taken(step.share, pieces, np.zeros(1, np.uint32), np.asarray(size)[None])
    source_elements = source_rows[owner] + ahead(block, step, "source_stride", c)
    target_elements = target_rows[owner] + ahead(block, step, "target_stride", c)
    return write_elements(
        source, Copied(source_elements, target_elements, owner), step.width_nbytes, unit_nbytes
    )


def subword_rows(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Mirrors `wgsl/subword_rows.wgsl`."""
    per_word = WORD_NBYTES // step.width_nbytes
    dimensions, size = row_dimensions(block, step)
    pieces = find_pieces(block, step.share, int(block["count"]))
    source_rows, target_rows = find_places(block, pieces.row, dimensions)
    extents = find_extents(target_rows, size, per_word)
    owner, word = taken(step.share, pieces, extents.whole_unit, extents.stop_unit)
    c = elements_of(word, per_word) - target_rows[owner, None]
    read = source_rows[owner, None] + ahead(block, step, "source_stride", c)
    values = source.elements(read, step.width_nbytes, owner[:, None])
    _, before = find_places(block, pieces.row - np.uint32(1), dimensions)
    shared = (pieces.row > 0) & (before + size > extents.first_unit * np.uint32(per_word))
    edge_owner, edge = find_edges(step.share, pieces, extents, per_word, shared)
    edges = edge_words(block, step, (source, target), Edge(edge, pieces.row[edge_owner], edge_owner))
    return Writes(
        WORD_NBYTES,
        np.concatenate([word, edge]),
        np.concatenate([values, edges]),
        np.concatenate([owner, edge_owner]),
    )


def subword_ends(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Mirrors `wgsl/subword_ends.wgsl`."""
    per_word = np.uint32(WORD_NBYTES // step.width_nbytes)
    dimensions, size = row_dimensions(block, step)
    pieces = find_pieces(block, step.share, int(block["count"]))
    _, start = find_places(block, pieces.row, dimensions)
    extents = find_extents(start, size, 4 * int(per_word))
    is_head = pieces.number < 4
    unit = np.where(is_head, extents.first_unit, extents.stop_unit)
    word = np.asarray(unit * np.uint32(4) + pieces.number % np.uint32(4), np.uint32)
    _, before = find_places(block, pieces.row - np.uint32(1), dimensions)
    taken_ = (pieces.row > 0) & (before + size > word * per_word)
    whole = is_head & (extents.first_unit == extents.whole_unit)
    again = ~is_head & (extents.stop_unit < extents.whole_unit)
    inside = (word * per_word < extents.stop) & ((word + np.uint32(1)) * per_word > start)
    mine = inside & ~taken_ & ~whole & ~again
    own = np.flatnonzero(mine).astype(np.uint32)
    edges = Edge(word[mine], pieces.row[mine], own)
    return Writes(WORD_NBYTES, edges.unit, edge_words(block, step, (source, target), edges), own)


def edge_words(block: np.void, step: Dispatch, memories: tuple[Observed, Observed], edges: Edge) -> Array:
    """The words at ends of rows, with what the next rows have in them, and what was in them."""
    source, target = memories
    row, width, invocations = edges.row, step.width_nbytes, edges.invocation[:, None]
    dimensions, size = row_dimensions(block, step)
    own_source, own_target, next_source, next_target = (
        place[:, None]
        for number in (row, row + np.uint32(1))
        for place in find_places(block, number, dimensions)
    )
    element = elements_of(edges.unit, WORD_NBYTES // width)
    inside = (element >= own_target) & (element < own_target + size)
    follows = (row[:, None] + np.uint32(1) < block["count"]) & (element >= next_target)
    c = element - np.where(follows, next_target, own_target)
    read = np.where(follows, next_source, own_source) + ahead(block, step, "source_stride", c)
    words = target.elements(element, width, invocations)
    chosen = inside | follows
    by = np.broadcast_to(invocations, chosen.shape)
    words[chosen] = source.elements(read[chosen], width, by[chosen])
    return words


def elements_of(word: Words, per_word: int) -> Words:
    """The elements of words, or the words of elements, along a new last axis."""
    return np.asarray(word[:, None] * np.uint32(per_word) + np.arange(per_word, dtype=np.uint32), np.uint32)


def subword_steps(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Mirrors `wgsl/subword_steps.wgsl`."""
    share, width = step.share, step.width_nbytes
    invocation = invocation_numbers(share)
    row = divide(invocation, block["pieces_multiplier"], block["pieces_shift"])
    invocation, row = invocation[row < block["count"]], row[row < block["count"]]
    piece = invocation - row * block["pieces"]
    last = int(block["rank"]) - 1
    source_start, target_start = (
        place.astype(np.int64) * width for place in find_places(block, row, last - 1)
    )
    run, count = int(block["dimensions"]["size"][last]) * width, int(block["dimensions"]["size"][last - 1])
    source_step, target_step = (
        int(block["dimensions"][stride].astype(np.int32)[last - 1]) * width
        for stride in ("source_stride", "target_stride")
    )
    stop = target_start + (count - 1) * target_step + run
    words = (stop + 3) // 4 - target_start // 4
    first, ahead_words = (piece * share.each, 1) if share.contiguous else (piece, int(block["pieces"]))
    number = first[:, None] + np.arange(share.each) * ahead_words
    mine = number < words[:, None]
    invocations, of_row = (
        np.broadcast_to(each[:, None], mine.shape)[mine] for each in (invocation, np.arange(len(row)))
    )
    word = (target_start[:, None] // 4 + number)[mine]

    byte = word[:, None] * 4 + np.arange(4)
    rest = byte - target_start[of_row][:, None]
    number = rest // target_step if count > 1 else np.zeros_like(rest)
    within = rest - number * target_step
    inside = (number >= 0) & (number < count) & (within >= 0) & (within < run)
    by = np.broadcast_to(invocations[:, None], byte.shape)
    values = target.elements(byte.astype(np.uint32), 1, by)
    read = source_start[of_row][:, None] + number * source_step + within
    values[inside] = source.elements(read[inside].astype(np.uint32), 1, by[inside])
    return Writes(WORD_NBYTES, word.astype(np.uint32), values, invocations)


def tiles(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/tiles.wgsl`."""
    side = np.uint32(step.share.each)
    last = int(block["rank"]) - 1
    rows, columns = block["dimensions"]["size"][last - 1], block["dimensions"]["size"][last]
    tiles_across, tiles_down = -(-int(columns) // step.share.each), -(-int(rows) // step.share.each)
    group = np.arange(step.share.workgroups[0] * step.share.workgroups[1], dtype=np.uint32)
    number = np.minimum(group, block["count"] - np.uint32(1))
    inside = np.arange(side, dtype=np.uint32)
    row = (number // np.uint32(tiles_across) % np.uint32(tiles_down) * side)[:, None, None] + inside[:, None]
    column = (number % np.uint32(tiles_across) * side)[:, None, None] + inside
    exists = (row < rows) & (column < columns)
    firsts = find_places(block, number // np.uint32(tiles_across) // np.uint32(tiles_down), last - 1)
    source_elements, target_elements = (
        first[:, None, None]
        + row * block["dimensions"][stride][last - 1]
        + column * block["dimensions"][stride][last]
        for first, stride in zip(firsts, ("source_stride", "target_stride"), strict=True)
    )
    # Loaded down the columns, stored along the rows.
    size = np.uint32(step.share.workgroup_size)
    down, along = (
        (group[:, None, None] * size + k % size)[exists]
        for k in (inside * side + inside[:, None], inside[:, None] * side + inside)
    )
    values = source.elements(source_elements[exists], step.width_nbytes, down)
    units = elements_of(target_elements[exists], step.width_nbytes // WORD_NBYTES)
    return Writes(WORD_NBYTES, units, values, along[:, None])


def register_tiles(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/register_tiles.wgsl`."""
    tiles, width, side = int(block["rank"]) - 3, step.width_nbytes, np.arange(4, dtype=np.uint32)
    numbers = invocation_numbers(step.share)
    number = np.minimum(numbers, block["count"] - np.uint32(1))
    source_first, target_first = (
        first[:, None, None]
        + np.arange(step.share.each, dtype=np.uint32)[:, None] * block["dimensions"][stride][tiles]
        for first, stride in zip(
            find_places(block, number, tiles), ("source_stride", "target_stride"), strict=True
        )
    )
    per_word, word = np.uint32(WORD_NBYTES // width), np.arange(width, dtype=np.uint32)
    columns = (source_first + side * block["dimensions"]["source_stride"][tiles + 2]) // per_word
    rows = (target_first + side * block["dimensions"]["target_stride"][tiles + 1]) // per_word
    by = numbers[:, None, None, None]
    read = source.elements(columns[..., None] + word, WORD_NBYTES, by)
    values = read.view(f"V{width}").swapaxes(-1, -2)
    return Writes(WORD_NBYTES, rows[..., None] + word, np.ascontiguousarray(values), by)

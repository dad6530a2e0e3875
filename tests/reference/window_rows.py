"""The reference implementation of `window_rows`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.blocks import gather_step, mask, mask_from, mask_of, merge_edge, turn
from reference.memory import Bytes, Flags, Observed, Words, Writes
from reference.pieces import Pieces, divide, find_edges, find_extents, find_pieces, taken
from reference.window_blocks import RowSources, blocks_of_rows
from reference.window_places import (
    Offsets,
    Tables,
    are_backwards,
    find_offsets,
    find_picks,
    find_window_places,
)

from wgslice.plans.facade import WindowDispatch
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES

NBYTES = np.uint32(WIDEST_NBYTES)


class Rows(NamedTuple):
    """Rows of windows, in bytes."""

    source: Words  # before the lowest one, modulo 2^32
    start: Words  # before the first one in the target
    backwards: Flags  # whether indices go in reverse order
    low: Words  # of the row before those that the input has
    high: Words  # of the row before the end of those
    first: Words  # a byte of the input from which on all of the row's are
    invocation: Words  # that copies of it

    def of(self, owner: Words) -> Rows:
        """Some of them, or one again and again."""
        return Rows._make(values[owner] for values in self)


def find_rows(
    block: np.void, step: WindowDispatch, offsets: Offsets, number: Words, invocation: Words
) -> Rows:
    """Rows by their numbers, of all windows of a dispatch."""
    window = divide(number, block["window_multiplier"], block["window_shift"])
    rest = number - window * block["window_size"]
    picks = find_picks(block, step, window)
    last, filled = int(block["rank"]) - 1, step.windows.fill is not None
    start = block["batch_offset"] + picks.number * block["window_stride"] + rest * block["row_bytes"]
    places = find_window_places(block, offsets, picks, rest, last)
    high = np.where(places.inside | (not filled), block["row_bytes"], np.uint32(0))
    backwards, index_nbytes = are_backwards(picks, last), block["dimensions"]["tensor_stride"][last]
    size, distance = int(block["dimensions"]["size"][last]), step.dimensions[-1].step
    reach = (size - 1) * distance  # from the lowest index to the highest
    lowest = find_offsets(block, offsets, picks, last).astype(np.int64)
    lowest += np.where(backwards, int(block["dimensions"]["last"][last]) - reach, 0)
    extent = int(block["dimensions"]["extent"][last])
    first = places.tensor + np.clip(lowest, 0, extent - 1).astype(np.uint32) * index_nbytes
    first = np.where(places.inside, first, block["tensor_offset"])
    source = places.tensor + lowest.astype(np.uint32) * index_nbytes
    low = np.zeros_like(rest)
    if filled:
        outside = np.stack([-lowest, lowest + reach + 1 - extent])
        outside = (outside + distance - 1) // distance
        before, after = np.clip(outside, 0, size).astype(np.uint32)
        low = np.where(backwards, after, before) * index_nbytes
        high -= np.minimum(high, np.where(backwards, before, after) * index_nbytes)
    return Rows(source, start, backwards, low, high, first, invocation)


def are_bound(step: WindowDispatch, rows: Rows) -> Flags:
    """Whether rows are in the part of the input that is bound."""
    bound: Flags = rows.first < np.uint32(step.segment)
    return bound if step.segment else np.ones_like(bound)


def blocks_of_steps(
    block: np.void, step: WindowDispatch, memory: Observed, rows: RowSources, position: Words
) -> Bytes:
    """The blocks of rows of steps whose first bytes are `position`."""
    distance = step.dimensions[-1].step
    ahead = np.where(rows.backwards, block["row_bytes"] - position - NBYTES, position)
    source = np.asarray(rows.source + ahead * np.uint32(distance), np.uint32)
    value = gather_step(memory, source, distance, step.element_nbytes, rows.invocation)
    return np.where(rows.backwards[:, None], turn(value, step.element_nbytes), value)


def row_blocks(block: np.void, step: WindowDispatch, memory: Observed, rows: Rows, position: Words) -> Bytes:
    """The blocks of rows whose first bytes are `position`, up to 15 before their first."""
    sources = RowSources(rows.source, rows.backwards, rows.invocation)
    if step.dimensions[-1].step == 1:
        value = blocks_of_rows(block, step, memory, sources, position)
    else:
        value = blocks_of_steps(block, step, memory, sources, position)
    if step.windows.fill is None:
        return value
    start = np.clip((rows.low - position).view(np.int32), 0, WIDEST_NBYTES)
    stop = np.clip((rows.high - position).view(np.int32), start, WIDEST_NBYTES)
    inside = mask(start.astype(np.uint32), stop.astype(np.uint32))
    return np.where(inside, value, block["fill"].view(np.uint8))


def window_rows(
    block: np.void, step: WindowDispatch, source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/window_rows.wgsl`."""
    count = int(block["count"] * block["window_size"])
    pieces = find_pieces(block, step.share, count)
    rows = find_rows(block, step, tables.offsets, pieces.row, np.arange(len(pieces.row), dtype=np.uint32))
    bound = are_bound(step, rows)
    pieces, rows = (
        Pieces(pieces.row[bound], pieces.number[bound]),
        rows.of(np.flatnonzero(bound).astype(np.uint32)),
    )
    rows = rows._replace(invocation=np.arange(len(pieces.row), dtype=np.uint32))
    extents = find_extents(rows.start, block["row_bytes"], WIDEST_NBYTES)
    owner, unit = taken(step.share, pieces, extents.whole_unit, extents.stop_unit)
    values = row_blocks(block, step, source, rows.of(owner), unit * NBYTES - rows.start[owner])
    if not step.unaligned:
        return Writes(WIDEST_NBYTES, unit, values, owner)
    whole_words = step.element_nbytes >= WORD_NBYTES
    before = find_rows(block, step, tables.offsets, pieces.row - np.uint32(1), rows.invocation)
    shared = (pieces.row > 0) & (not whole_words) & are_bound(step, before)
    edge_owner, edge = find_edges(step.share, pieces, extents, WIDEST_NBYTES, shared)
    own, number = rows.of(edge_owner), pieces.row[edge_owner] + np.uint32(1)
    ends = find_extents(own.start, block["row_bytes"], WIDEST_NBYTES)
    edges = row_blocks(block, step, source, own, edge * NBYTES - own.start)
    if whole_words:
        per_block = np.arange(WIDEST_NBYTES // WORD_NBYTES, dtype=np.uint32)
        whole, partial = (each[:, None] * np.uint32(per_block.size) + per_block for each in (unit, edge))
        inside = mask_of(ends, edge)[:, ::WORD_NBYTES]
        return Writes(
            WORD_NBYTES,
            np.concatenate([whole.ravel(), partial[inside]]),
            np.concatenate([values.view(np.uint32).ravel(), edges.view(np.uint32)[inside]]),
            np.concatenate(
                [np.repeat(owner, per_block.size), np.broadcast_to(edge_owner[:, None], inside.shape)[inside]]
            ),
        )
    following = find_rows(block, step, tables.offsets, number, edge_owner)
    edges = merge_edge(
        target.blocks(edge, edge_owner),
        edges,
        mask_of(ends, edge),
        row_blocks(block, step, source, following, edge * NBYTES - ends.stop),
        mask_from(ends.stop, edge) & ((number < count) & are_bound(step, following))[:, None],
    )
    return Writes(
        WIDEST_NBYTES,
        np.concatenate([unit, edge]),
        np.concatenate([values, edges]),
        np.concatenate([owner, edge_owner]),
    )

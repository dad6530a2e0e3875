"""Reference implementations of `insert_rows` and `insert_words`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.elements import WORD_NBYTES
from reference.memory import Flags, Observed, Words, Writes
from reference.pieces import Extents, Pieces, divide, find_extents, find_pieces, taken
from reference.window_blocks import RowSources, blocks_of_rows
from reference.window_places import (
    Tables,
    are_backwards,
    are_last,
    find_offsets,
    find_picks,
    find_window_places,
)

from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.windows import WindowDispatch

NBYTES = np.uint32(WIDEST_NBYTES)


class TensorRows(NamedTuple):
    """Rows of windows on their way into a tensor, in bytes."""

    source: Words  # before the lowest one in the batch, modulo 2^32
    start: Words  # before the first one in the tensor, inside of it or not, modulo 2^32
    backwards: Flags  # whether indices go in reverse order
    extents: Extents  # of what the tensor has of them


def find_tensor_rows(block: np.void, step: WindowDispatch, tables: Tables, number: Words) -> TensorRows:
    """Rows by their numbers, of all windows of a dispatch."""
    window = divide(number, block["window_multiplier"], block["window_shift"])
    rest = number - window * block["window_size"]
    picks, last = find_picks(block, step, window), int(block["rank"]) - 1
    places = find_window_places(block, tables.offsets, picks, rest, last)
    begins = find_offsets(block, tables.offsets, picks, last)
    offset, size = begins.astype(np.int64) - block["begins"][last], np.int64(block["sizes"][last])
    before = np.clip(-offset, 0, size)
    stop = np.clip(np.int64(block["extents"][last]) - offset, before, size)
    index_nbytes = block["tensor_strides"][last]
    start = places.tensor + begins.view(np.uint32) * index_nbytes
    low = start + before.astype(np.uint32) * index_nbytes
    reached = (stop - before).astype(np.uint32) * index_nbytes
    claim = places.claim + begins.view(np.uint32) * block["claim_strides"][last]
    written = places.inside & are_last(block, step, tables, claim, picks.number)
    nbytes = np.asarray(np.where(written, reached, 0), np.uint32)
    source = block["batch_offset"] + picks.number * block["window_stride"] + places.batch
    first = np.asarray(np.where(nbytes > 0, low, 0), np.uint32)
    whole = find_extents(first, np.uint32(0), WIDEST_NBYTES)
    extents = whole._replace(stop=first + nbytes, stop_unit=(first + nbytes) // NBYTES)
    return TensorRows(source, start, are_backwards(picks, last), extents)


def units_of(step: WindowDispatch, pieces: Pieces, extents: Extents) -> tuple[Words, Words]:
    """The blocks that pieces take, and for each the invocation that does; clipped rows may have none."""
    share = step.share
    if not step.clipped:
        return taken(share, pieces, extents.whole_unit, extents.stop_unit)
    ahead, apart = (share.each, 1) if share.contiguous else (1, share.pieces)
    k = np.arange(share.each, dtype=np.uint32) * np.uint32(apart)
    unit = (extents.whole_unit + pieces.number * np.uint32(ahead))[:, None] + k
    mine = unit < extents.stop_unit[:, None]
    owner = np.broadcast_to(np.arange(len(unit), dtype=np.uint32)[:, None], unit.shape)
    return owner[mine], unit[mine]


def insert_rows(
    block: np.void, step: WindowDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/insert_rows.wgsl`."""
    pieces = find_pieces(block, step.share, int(block["count"] * block["window_size"]))
    rows = find_tensor_rows(block, step, tables, pieces.row)
    owner, unit = units_of(step, pieces, rows.extents)
    sources = RowSources(rows.source[owner], rows.backwards[owner], owner)
    position = unit * NBYTES - rows.start[owner]
    return Writes(WIDEST_NBYTES, unit, blocks_of_rows(block, step, source, sources, position), owner)


def insert_words(
    block: np.void, step: WindowDispatch, source: Observed, _target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/insert_words.wgsl`; of the words that rows share it lists the bytes of each."""
    pieces = find_pieces(block, step.share, int(block["count"] * block["window_size"]))
    rows = find_tensor_rows(block, step, tables, pieces.row)
    start, stop = rows.extents.start, rows.extents.stop
    first = start // np.uint32(WORD_NBYTES) + pieces.number * np.uint32(step.share.each)
    if step.ends:
        head, whole, behind = pieces.number == 0, rows.extents.whole_unit, rows.extents.stop_unit
        tail = np.maximum(start, np.maximum(whole, behind) * NBYTES)
        start, stop = np.where(head, start, tail), np.where(head, np.minimum(stop, whole * NBYTES), stop)
        first = start // np.uint32(WORD_NBYTES)
    taken_nbytes = np.arange(WORD_NBYTES * step.share.each, dtype=np.uint32)
    byte = np.asarray(first[:, None] * np.uint32(WORD_NBYTES) + taken_nbytes, np.uint32)
    owner = np.broadcast_to(np.arange(len(byte), dtype=np.uint32)[:, None], byte.shape)
    mine = (byte >= start[:, None]) & (byte < stop[:, None])
    byte, owner = byte[mine], owner[mine]
    position = byte - rows.start[owner]
    group = np.uint32(step.channels * step.element_nbytes)
    reversed_ = block["row_bytes"] - position - group + np.uint32(2) * (position % group)
    ahead = np.where(rows.backwards[owner] & step.mirrored, reversed_, position)
    values = source.elements(rows.source[owner] + ahead, 1, owner)
    return Writes(1, byte, values, owner)

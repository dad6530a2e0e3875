"""Reference implementations of `insert_rows`, `insert_words` and `last_writer_rows`."""

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

from wgslice.plans.facade import WindowDispatch
from wgslice.plans.kernels import WIDEST_NBYTES

NBYTES = np.uint32(WIDEST_NBYTES)


class TensorRows(NamedTuple):
    """Rows of windows that are inserted into a tensor, in bytes."""

    window: Words  # windows before their own, of all that there are
    winner: Words  # winners before those of their first indices, modulo 2^32
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
    offset, size = (
        begins.astype(np.int64) - block["dimensions"]["begin"][last],
        np.int64(block["dimensions"]["size"][last]),
    )
    before = np.clip(-offset, 0, size)
    stop = np.clip(np.int64(block["dimensions"]["extent"][last]) - offset, before, size)
    index_nbytes = block["dimensions"]["tensor_stride"][last]
    start = places.tensor + begins.view(np.uint32) * index_nbytes
    low = start + before.astype(np.uint32) * index_nbytes
    reached = (stop - before).astype(np.uint32) * index_nbytes
    winner = places.winner + begins.view(np.uint32) * block["dimensions"]["winner_stride"][last]
    nbytes = np.asarray(np.where(places.inside, reached, 0), np.uint32)
    source = block["batch_offset"] + picks.number * block["window_stride"] + places.batch
    first = np.asarray(np.where(nbytes > 0, low, 0), np.uint32)
    whole = find_extents(first, np.uint32(0), WIDEST_NBYTES)
    extents = whole._replace(stop=first + nbytes, stop_unit=(first + nbytes) // NBYTES)
    return TensorRows(picks.number, winner, source, start, are_backwards(picks, last), extents)


def index_nbytes_of(block: np.void) -> np.uint32:
    """Bytes of an index of a row."""
    return np.uint32(block["dimensions"]["tensor_stride"][int(block["rank"]) - 1])


def winners_rows(step: WindowDispatch) -> bool:
    """Whether rows winner blocks and their ends, since windows overlap in parts of rows."""
    return step.winners is not None and step.winners.in_parts


def own_rows(block: np.void, step: WindowDispatch, tables: Tables, rows: TensorRows, owner: Words) -> Flags:
    """Whether invocations write something of their rows, as far as winners on whole rows say."""
    if winners_rows(step):
        return np.ones(owner.shape, bool)
    return are_last(block, step, tables, rows.winner[owner], rows.window[owner])


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
    kept = own_rows(block, step, tables, rows, owner)
    if winners_rows(step):
        kept = are_last(block, step, tables, block["block_winners"] + unit, rows.window[owner])
    owner, unit = owner[kept], unit[kept]
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
    number, each = pieces.number, step.share.each
    ranges = [(number >= 0, start // np.uint32(WORD_NBYTES) + number * np.uint32(each), start, stop)]
    if step.ends:
        whole, behind, each = rows.extents.whole_unit, rows.extents.stop_unit, WIDEST_NBYTES // WORD_NBYTES
        tail = np.maximum(start, np.maximum(whole, behind) * NBYTES)
        head, tails = number == 0, number + np.uint32(1) == step.share.pieces
        ranges = [
            (head, start // np.uint32(WORD_NBYTES), start, np.minimum(stop, whole * NBYTES)),
            (tails, tail // np.uint32(WORD_NBYTES), tail, stop),
        ]
    written, first, start, stop = (np.concatenate(sides) for sides in zip(*ranges, strict=True))
    taken_nbytes = np.arange(WORD_NBYTES * each, dtype=np.uint32)
    byte = np.asarray(first[:, None] * np.uint32(WORD_NBYTES) + taken_nbytes, np.uint32)
    owners = np.tile(np.arange(len(number), dtype=np.uint32), len(ranges))
    owner = np.broadcast_to(owners[:, None], byte.shape)
    mine = written[:, None] & (byte >= start[:, None]) & (byte < stop[:, None])
    byte, owner = byte[mine], owner[mine]
    kept = own_rows(block, step, tables, rows, owner)
    if winners_rows(step):
        assert tables.winners is not None
        window = rows.window[owner]
        index = (byte - rows.start[owner]) // index_nbytes_of(block)
        of_block = tables.winners[block["block_winners"] + byte // NBYTES]
        kept = are_last(block, step, tables, rows.winner[owner] + index, window)
        kept &= of_block <= block["winner_base"] + window
    byte, owner = byte[kept], owner[kept]
    position = byte - rows.start[owner]
    group = np.uint32(step.channels * step.element_nbytes)
    reversed_ = block["row_bytes"] - position - group + np.uint32(2) * (position % group)
    ahead = np.where(rows.backwards[owner] & step.mirrored, reversed_, position)
    values = source.elements(rows.source[owner] + ahead, 1, owner)
    return Writes(1, byte, values, owner)


def last_writer_rows(
    block: np.void, step: WindowDispatch, _source: Observed, target: Observed, tables: Tables
) -> Writes:
    """Mirrors `wgsl/last_writer_rows.wgsl`."""
    pieces = find_pieces(block, step.share, int(block["count"] * block["window_size"]))
    rows = find_tensor_rows(block, step, tables, pieces.row)
    extents, k = rows.extents, np.arange(step.share.each, dtype=np.uint32)
    touched = (extents.first_unit + pieces.number)[:, None] + k * np.uint32(step.share.pieces)
    owner = np.broadcast_to(np.arange(len(touched), dtype=np.uint32)[:, None], touched.shape)
    taken_ = touched * NBYTES < extents.stop[:, None]
    unit, owner = touched[taken_], owner[taken_]
    whole = (unit >= extents.whole_unit[owner]) & (unit < extents.stop_unit[owner])

    end, by = unit[~whole], owner[~whole]
    byte = end[:, None] * NBYTES + np.arange(WIDEST_NBYTES, dtype=np.uint32)
    inside = (byte >= extents.start[by, None]) & (byte < extents.stop[by, None])
    index = (byte - rows.start[by, None]) // index_nbytes_of(block)
    on_indices = (rows.winner[by, None] + index)[inside]
    by = np.broadcast_to(by[:, None], byte.shape)[inside]

    place = np.concatenate([block["block_winners"] + unit[whole], on_indices])
    owner = np.concatenate([owner[whole], by])
    return greatest_winners(target, place, block["winner_base"] + rows.window[owner], owner)


def greatest_winners(target: Observed, places: Words, winners: Words, invocations: Words) -> Writes:
    """Of all winners on a place the greatest."""
    order = np.lexsort((winners, places))
    last = order[np.diff(places[order], append=places[order][-1:] + np.uint32(1)) != 0]
    place, by = places[last], invocations[last]
    before = target.elements(place, WORD_NBYTES, by).view(np.uint32)
    return Writes(WORD_NBYTES, place, np.maximum(before, winners[last]), by)

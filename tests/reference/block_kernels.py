"""Reference implementations of `shifted_rows` and `pixels`, which copy in blocks of 16 bytes."""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from reference.blocks import (
    block_after,
    block_at,
    gather_step,
    join,
    mask_from,
    mask_of,
    merge_edge,
    turn,
)
from reference.memory import Bytes, Observed, Words, Writes
from reference.pieces import (
    Edge,
    Extents,
    Pieces,
    find_edges,
    find_extents,
    find_pieces,
    find_places,
    taken,
)

from wgslice.plans.facade import Pixels, pixels_of
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.steps import Dispatch


def source_step(step: Dispatch) -> int:
    """Elements from one of a row to the next."""
    return step.source.strides[-1]


def in_order(step: Dispatch, block: Bytes) -> Bytes:
    """Elements in the order in which the row reads them."""
    return block if source_step(step) > 0 else turn(block, step.width_nbytes)


def find_sources(step: Dispatch, source_element: Words, target_element: Words, block: Words) -> Words:
    """The lowest source bytes of blocks of rows."""
    width, distance = np.uint32(step.width_nbytes), np.uint32(abs(source_step(step)))
    ahead = (block * np.uint32(WIDEST_NBYTES) - target_element * width) * distance
    source = source_element * width
    if source_step(step) > 0:
        return source + ahead
    return source - ahead - np.uint32(WIDEST_NBYTES - step.width_nbytes) * distance


def read_blocks(step: Dispatch, memory: Observed, source: Words, invocations: Words) -> Bytes:
    """The blocks of rows whose lowest source bytes are `source`."""
    width, distance = step.width_nbytes, abs(source_step(step))
    if distance == 1:
        return in_order(step, block_at(memory, source, invocations))
    return in_order(step, gather_step(memory, source, distance, width, invocations))


def read_neighbours(step: Dispatch, memory: Observed, source: Words) -> Bytes:
    """The blocks of contiguous pieces of neighbours, (pieces * each, 16): every source block is loaded once.

    Going along the row it is the far one of a target block, and the near one of the next.
    """
    forwards, each = source_step(step) > 0, step.share.each
    offset = source % np.uint32(WIDEST_NBYTES)
    inside = (offset != 0).astype(np.uint32)
    k = np.arange(each, dtype=np.uint32)
    far_block = source // np.uint32(WIDEST_NBYTES) + inside * np.uint32(forwards)
    near_block = source // np.uint32(WIDEST_NBYTES) + inside * np.uint32(not forwards)
    far_blocks = far_block[:, None] + (k if forwards else np.uint32(0) - k)
    own = np.arange(len(source), dtype=np.uint32)
    loaded = np.concatenate([near_block[:, None], far_blocks], axis=1)
    blocks = memory.blocks(loaded, own[:, None])
    near, far = (part.reshape(-1, WIDEST_NBYTES) for part in (blocks[:, :-1], blocks[:, 1:]))
    offset = np.repeat(offset, each)
    low = np.where((offset != 0)[:, None], near, far) if forwards else far
    return in_order(step, join(low, far if forwards else near, offset))


def shifted_rows(block: np.void, step: Dispatch, source: Observed, _target: Observed) -> Writes:
    """Mirrors `wgsl/shifted_rows.wgsl`."""
    share, last, width = step.share, int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    pieces = find_pieces(block, share, int(block["count"]))
    places = find_places(block, pieces.row, last)
    extents = find_extents(places[1] * width, block["dimensions"]["size"][last] * width, WIDEST_NBYTES)
    owner, unit = taken(share, pieces, extents.whole_unit, extents.stop_unit)
    if share.contiguous and abs(source_step(step)) == 1:
        firsts = unit.reshape(-1, share.each)[:, 0]
        values = read_neighbours(step, source, find_sources(step, *places, firsts))
    else:
        sources = find_sources(step, places[0][owner], places[1][owner], unit)
        values = read_blocks(step, source, sources, owner)
    return Writes(WIDEST_NBYTES, unit, values, owner)


def find_row_edges(block: np.void, step: Dispatch, pieces: Pieces, extents: Extents) -> tuple[Words, Words]:
    """The blocks at the ends of rows, the rows before them known."""
    _, before = find_places(block, pieces.row - np.uint32(1), int(block["rank"]) - 1)
    ends = before * np.uint32(step.width_nbytes) + extents.stop - extents.start
    shared = (pieces.row > 0) & (ends > extents.first_unit * np.uint32(WIDEST_NBYTES))
    return find_edges(step.share, pieces, extents, WIDEST_NBYTES, shared)


def edge_blocks(block: np.void, step: Dispatch, memories: tuple[Observed, Observed], edges: Edge) -> Bytes:
    """The blocks at ends of rows, with what the next rows have in them, and what was in them."""
    source, target = memories
    edge, row, own_invocation = edges
    last, width = int(block["rank"]) - 1, np.uint32(step.width_nbytes)
    own, following = find_places(block, row, last), find_places(block, row + np.uint32(1), last)
    extents = find_extents(own[1] * width, block["dimensions"]["size"][last] * width, WIDEST_NBYTES)
    exists = (row + np.uint32(1) < block["count"])[:, None]
    from_next = mask_from(following[1] * width, edge) & exists
    some, next_blocks = from_next.any(1), np.zeros(from_next.shape, np.uint8)
    sources = find_sources(step, *following, edge)
    next_blocks[some] = read_blocks(step, source, sources[some], own_invocation[some])
    return merge_edge(
        target.blocks(edge, own_invocation),
        read_blocks(step, source, find_sources(step, *own, edge), own_invocation),
        mask_of(extents, edge),
        next_blocks,
        from_next,
    )


def pixels(block: np.void, step: Dispatch, source: Observed, target: Observed) -> Writes:
    """Mirrors `wgsl/pixels.wgsl`."""
    row = pixels_of(step.source, step.target, step.width_nbytes)
    width, before = np.uint32(step.width_nbytes), int(block["rank"]) - 2 - (row.repeats > 1)
    pieces = find_pieces(block, step.share, int(block["count"]))
    source_element, target_element = find_places(block, pieces.row, before)
    written = row.target_step * row.repeats  # elements of a pixel
    size = block["dimensions"]["size"][before] * np.uint32(written) - np.uint32(
        row.target_step - row.channels
    )
    extents = find_extents(target_element * width, size * width, WIDEST_NBYTES)
    first_unit, stop_unit = extents.whole_unit, extents.stop_unit
    if row.strided:
        first_unit = extents.first_unit
        stop_unit = (extents.stop + np.uint32(WIDEST_NBYTES - 1)) // np.uint32(WIDEST_NBYTES)
    first_block = first_unit + pieces.number * np.uint32(1 if row.apart else row.group_blocks)
    element = (first_block.astype(np.int64) * WIDEST_NBYTES - extents.start) // step.width_nbytes
    pixel, phase = np.divmod(element, 1 if row.apart else written)  # negative before a strided row
    assert row.unaligned or row.apart or (phase == row.ahead).all()
    ahead = group_places(row, step.width_nbytes)
    lowest = min(int(ahead.pixel.max()) * row.pixel_step, 0) + min((row.channels - 1) * row.channel_step, 0)
    first = source_element + pixel.astype(np.uint32) * block["dimensions"]["source_stride"][before]
    first += np.uint32(lowest % 2**32)
    own, plane = np.arange(len(first), dtype=np.uint32), int(block["dimensions"]["source_stride"][before + 1])
    window = np.concatenate(
        [
            read_part(row, source, (first + np.uint32(part * plane % 2**32)) * width, own)
            for part in range(row.parts)
        ],
        axis=1,
    )
    places = ahead.pixel * row.pixel_step + ahead.channel * row.channel_step - lowest
    group = window.view(f"V{width}").take(places, axis=1)
    taken_ = phase[:, None] + np.arange(row.group_blocks * WIDEST_NBYTES // width)
    values = np.take_along_axis(group, taken_, axis=1).view(np.uint8)
    k = np.arange(row.group_blocks, dtype=np.uint32)
    plane_blocks = block["dimensions"]["target_stride"][before + 1] * width // np.uint32(WIDEST_NBYTES)
    unit = first_block[:, None] + k * (plane_blocks if row.apart else np.uint32(1))
    exists = np.ones(unit.shape, bool) if row.apart else unit < stop_unit[:, None]
    by = np.broadcast_to(own[:, None], unit.shape)
    blocks = values.reshape(len(own), row.group_blocks, WIDEST_NBYTES)
    written_units, writers = np.asarray(unit[exists], np.uint32), by[exists]
    if not row.strided:
        return Writes(WIDEST_NBYTES, written_units, blocks[exists], writers)
    inside = np.repeat(taken_ % row.target_step < row.channels, width, axis=1).reshape(blocks.shape)[exists]
    byte = written_units[:, None].astype(np.int64) * WIDEST_NBYTES + np.arange(WIDEST_NBYTES)
    rows = np.broadcast_to(np.arange(len(own))[:, None], unit.shape)[exists]
    inside &= (byte >= extents.start[rows, None]) & (byte < extents.stop[rows, None])
    kept = target.blocks(written_units, writers)
    return Writes(WIDEST_NBYTES, written_units, np.where(inside, blocks[exists], kept), writers)


class Ahead(NamedTuple):
    """The elements of a group, in their order."""

    pixel: NDArray[np.int64]  # pixels before its own
    channel: NDArray[np.int64]


def group_places(row: Pixels, width_nbytes: int) -> Ahead:
    """The elements of a group, and of the pixel that it ends inside of."""
    per_vector = WIDEST_NBYTES // width_nbytes
    inside = row.unaligned or row.ahead  # of pixels
    element = np.arange(row.group_blocks * per_vector + (row.target_step - 1 if inside else 0))
    if row.apart:
        return Ahead(element % per_vector, element // per_vector)
    channel = np.minimum(element % row.target_step, row.channels - 1)  # any between pixels
    return Ahead(element // (row.target_step * row.repeats), channel)


def read_part(row: Pixels, source: Observed, first: Words, invocations: Words) -> Bytes:
    """The bytes of a part that groups read, from a byte each on."""
    loaded = [block_after(source, first, n, invocations) for n in range(row.part_blocks + 1)]
    offset = first % np.uint32(WIDEST_NBYTES)
    return np.concatenate([join(low, high, offset) for low, high in pairwise(loaded)], axis=1)

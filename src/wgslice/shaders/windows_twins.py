"""The twins of `extract_windows`, `window_rows` and `window_words`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, I32_MIN
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import WIDEST_NBYTES
from wgslice.plans.windows_steps import ElementsDispatch, WindowDispatch, WindowRowsDispatch
from wgslice.shaders.blocks import (
    block_after,
    block_at,
    join,
    mask,
    mask_from,
    mask_of,
    merge_edge,
    turn,
)
from wgslice.shaders.copy_twins import WORD_NBYTES, Copied, elements_of, write_elements
from wgslice.shaders.memory import Bytes, Flags, Observed, Trace, Words, Writes, bound, store
from wgslice.shaders.pieces import divide, find_edges, find_extents, find_pieces, invocation_numbers, taken
from wgslice.shaders.uniforms import window_block, windows_dtype

__all__ = ["run_windows", "trace_windows", "window_twins"]

Offsets = NDArray[np.int32]  # (windows, rank)
NBYTES = np.uint32(WIDEST_NBYTES)


def run_windows(step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]) -> None:
    """One kernel on its two bindings, and the offsets of all windows."""
    writes = trace_windows(step, source, target, offsets).writes
    store(step.kernel, bound(target, step.target_binding), writes)


def trace_windows(step: WindowDispatch, source: Bytes, target: Bytes, offsets: NDArray[np.generic]) -> Trace:
    """Map the invocations of one kernel to what they load and store; nothing is written."""
    block = np.frombuffer(window_block(step), windows_dtype)[0]
    info = np.iinfo(offsets.dtype.name)
    fitting = np.clip(offsets, max(info.min, I32_MIN), min(info.max, I32_MAX)).astype(np.int32)
    read, kept = Observed(bound(source, step.source_binding)), Observed(bound(target, step.target_binding))
    writes = window_twins[step.kernel](block, step, read, kept, fitting)
    return Trace(writes, read.loads, kept.loads)


class Picks(NamedTuple):
    """A window for each of what is copied."""

    number: Words  # windows before it, of all that there are
    flips: Words  # bit d: dimension d goes backwards


def find_picks(block: np.void, step: WindowDispatch, n: Words) -> Picks:
    """The n-th windows of a dispatch; beyond the last one the last, as WebGPU allows."""
    if step.picks is None:
        return Picks(block["first"] + n, np.full_like(n, block["flips"]))
    number = step.picks[np.minimum(n, np.uint32(len(step.picks) - 1))]
    return Picks(number, step.windows.flips[number])


def are_backwards(picks: Picks, d: int) -> Flags:
    """Whether windows go backwards in a dimension."""
    return (picks.flips >> np.uint32(d) & np.uint32(1)).astype(bool)


def find_offsets(block: np.void, offsets: Offsets, picks: Picks, d: int) -> NDArray[np.int32]:
    """Where windows begin in a dimension, or the nearest places from which they read the same."""
    number = np.minimum(picks.number, np.uint32(len(offsets) - 1))
    column = min(d, offsets.shape[1] - 1)  # a dimension without offsets begins at 0, whatever is read
    begins: NDArray[np.int32] = np.clip(offsets[number, column], block["lowests"][d], block["highests"][d])
    return begins


def find_indices(block: np.void, offsets: Offsets, picks: Picks, d: int, c: Words) -> Words:
    """The input's indices that the windows' c-th of a dimension read; outside of it its extent or greater."""
    ahead = block["steps"][d] * (block["firsts"][d] + c)
    begins = find_offsets(block, offsets, picks, d).view(np.uint32)
    reached = np.where(are_backwards(picks, d), block["lasts"][d] - ahead, ahead)
    return np.asarray(begins + reached, np.uint32)


def extract_windows(
    block: np.void, step: ElementsDispatch, source: Observed, _target: Observed, offsets: Offsets
) -> Writes:
    """Twin of `wgsl/extract_windows.wgsl`."""
    invocation = invocation_numbers(step.share)
    own = invocation[invocation < block["count"] * block["window_size"]]
    window, rest = np.divmod(own, block["window_size"])
    picks = find_picks(block, step, window)
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = block["target_offset"] + picks.number * block["target_window"]
    inside = np.ones(len(rest), bool)
    for d in range(block["rank"]):
        c, rest = np.divmod(rest, block["inner"][d])
        index = find_indices(block, offsets, picks, d, c)
        inside &= index < block["extents"][d]
        source_elements += index * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    bound_here = source_elements < block["segment"]
    nbytes = step.element_nbytes
    # What lies outside of the input is read anywhere, and then replaced.
    read = np.where(inside & bound_here, source_elements, np.uint32(0))
    copied = Copied(read, target_elements, own)
    writes = write_elements(source, copied, nbytes, min(nbytes, WORD_NBYTES))
    values = np.where(inside, writes.values, block["fill"].view(f"V{nbytes}")[0])
    kept = bound_here | ~inside
    return Writes(writes.unit_nbytes, writes.units[kept], values[kept], writes.invocations[kept])


class WindowPlaces(NamedTuple):
    """Places in the first dimensions of windows."""

    source: Words  # elements or bytes before them, as the dispatch counts, modulo 2^32
    inside: Flags  # whether the input has them
    rest: Words  # of the indices, in the other dimensions


def find_window_places(
    block: np.void, offsets: Offsets, picks: Picks, index: Words, dimensions: int
) -> WindowPlaces:
    """The places of indices into windows, over their first dimensions."""
    rest = index
    source = np.full_like(rest, block["source_offset"])
    inside = np.ones(rest.shape, bool)
    for d in range(dimensions):
        c = divide(rest, block["multipliers"][d], block["shifts"][d])
        rest = rest - c * block["inner"][d]
        read = find_indices(block, offsets, picks, d, c)
        source += read * block["source_strides"][d]
        inside &= read < block["extents"][d]
    return WindowPlaces(source, inside, rest)


def window_words(
    block: np.void, step: ElementsDispatch, source: Observed, target: Observed, offsets: Offsets
) -> Writes:
    """Twin of `wgsl/window_words.wgsl`."""
    nbytes = step.element_nbytes
    lanes = WORD_NBYTES // nbytes
    start = np.uint32((step.target_offset + step.first * step.target_window) % 2**32)
    each = np.arange(block["each"], dtype=np.uint32)
    words = start // np.uint32(lanes) + invocation_numbers(step.share)[:, None] * block["each"] + each
    numbers, owners = words.ravel(), np.repeat(invocation_numbers(step.share), len(each))
    taken_ = numbers * np.uint32(lanes) < start + block["elements"]
    word, own = numbers[taken_], owners[taken_]

    element = elements_of(word, lanes) - start
    mine = element < block["elements"]
    values = target.elements(elements_of(word, lanes), nbytes, own[:, None])
    window = divide(element[mine], block["window_multiplier"], block["window_shift"])
    picks = find_picks(block, step, window)
    index = element[mine] - window * block["window_size"]
    places = find_window_places(block, offsets, picks, index, int(block["rank"]))
    read = np.where(places.inside, places.source, np.uint32(0))
    by = np.broadcast_to(own[:, None], mine.shape)[mine]
    fill = block["fill"].view(f"V{nbytes}")[0]
    values[mine] = np.where(places.inside, source.elements(read, nbytes, by), fill)
    return Writes(WORD_NBYTES, word, values, own)


class Rows(NamedTuple):
    """Rows of windows, in bytes."""

    source: Words  # before the lowest one, modulo 2^32
    start: Words  # before the first one in the target
    backwards: Flags  # whether indices go in reverse order
    low: Words  # of the row before those that the input has
    high: Words  # of the row before the end of those
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
    start = block["target_offset"] + picks.number * block["target_window"] + rest * block["row_nbytes"]
    places = find_window_places(block, offsets, picks, rest, last)
    high = np.where(places.inside | (not filled), block["row_nbytes"], np.uint32(0))
    backwards, index_nbytes = are_backwards(picks, last), block["source_strides"][last]
    begins = find_offsets(block, offsets, picks, last)
    source = places.source + begins.view(np.uint32) * index_nbytes
    low = np.zeros_like(rest)
    if filled:
        size = np.int64(block["sizes"][last])
        outside = np.stack([-begins.astype(np.int64), begins + size - np.int64(block["extents"][last])])
        before, after = np.clip(outside, 0, size).astype(np.uint32)
        low = np.where(backwards, after, before) * index_nbytes
        high -= np.minimum(high, np.where(backwards, before, after) * index_nbytes)
    return Rows(source, start, backwards, low, high, invocation)


def gather_channels(
    block: np.void, step: WindowRowsDispatch, memory: Observed, rows: Rows, position: Words
) -> Bytes:
    """Blocks of rows that may go backwards: then for each channel the reversed block that is right for it."""
    channels, width = np.uint32(step.channels), np.uint32(step.element_nbytes)
    group = channels * width
    phase = (position + NBYTES * group) // width % channels
    backwards = rows.source + block["row_nbytes"] - position - NBYTES - (group - width)
    first = np.where(rows.backwards, backwards, rows.source + position)
    count = 2 + (step.channels > 1) + (2 * (group - width) > NBYTES)  # blocks that the kernel loads
    loaded = np.stack([block_after(memory, first, n, rows.invocation) for n in range(count)])
    every = np.arange(len(first))
    masks = block["masks"].view(np.uint8)
    value = np.zeros((len(first), WIDEST_NBYTES), np.uint8)
    for channel in range(step.channels):
        offset = first % NBYTES + np.where(rows.backwards, np.uint32(2 * channel) * width, np.uint32(0))
        number = offset // NBYTES
        low, high = (loaded[np.minimum(number + n, count - 1), every] for n in (0, 1))
        joined = join(low, high, offset % NBYTES)
        turned = np.where(rows.backwards[:, None], turn(joined, step.element_nbytes), joined)
        value |= turned & masks[(np.uint32(channel) + channels - phase) % channels]
    return value


def row_blocks(
    block: np.void, step: WindowRowsDispatch, memory: Observed, rows: Rows, position: Words
) -> Bytes:
    """The blocks of rows whose first bytes are `position`, up to 15 before their first."""
    if step.mirrored:
        value = gather_channels(block, step, memory, rows, position)
    else:
        value = block_at(memory, rows.source + position, rows.invocation)
    if step.windows.fill is None:
        return value
    start = np.clip((rows.low - position).view(np.int32), 0, WIDEST_NBYTES)
    stop = np.clip((rows.high - position).view(np.int32), start, WIDEST_NBYTES)
    inside = mask(start.astype(np.uint32), stop.astype(np.uint32))
    return np.where(inside, value, block["fill"].view(np.uint8))


def window_rows(
    block: np.void, step: WindowRowsDispatch, source: Observed, target: Observed, offsets: Offsets
) -> Writes:
    """Twin of `wgsl/window_rows.wgsl`."""
    count = int(block["count"] * block["window_size"])
    pieces = find_pieces(block, step.share, count)
    rows = find_rows(block, step, offsets, pieces.row, np.arange(len(pieces.row), dtype=np.uint32))
    extents = find_extents(rows.start, block["row_nbytes"], WIDEST_NBYTES)
    owner, unit = taken(step.share, pieces, extents.whole_unit, extents.stop_unit)
    values = row_blocks(block, step, source, rows.of(owner), unit * NBYTES - rows.start[owner])
    if step.ragged:
        edge_owner, edge = find_edges(step.share, pieces, extents, WIDEST_NBYTES, pieces.row > 0)
        own, number = rows.of(edge_owner), pieces.row[edge_owner] + np.uint32(1)
        ends = find_extents(own.start, block["row_nbytes"], WIDEST_NBYTES)
        following = find_rows(block, step, offsets, number, edge_owner)
        edges = merge_edge(
            target.blocks(edge, edge_owner),
            row_blocks(block, step, source, own, edge * NBYTES - own.start),
            mask_of(ends, edge),
            row_blocks(block, step, source, following, edge * NBYTES - ends.stop),
            mask_from(ends.stop, edge) & (number < count)[:, None],
        )
        unit, values = np.concatenate([unit, edge]), np.concatenate([values, edges])
        owner = np.concatenate([owner, edge_owner])
    return Writes(WIDEST_NBYTES, unit, values, owner)


Twin = Callable[[np.void, Any, Observed, Observed, Offsets], Writes]  # of its kernel's dispatch

window_twins: dict[Kernel, Twin] = {
    Kernel.EXTRACT_WINDOWS: extract_windows,
    Kernel.WINDOW_ROWS: window_rows,
    Kernel.WINDOW_WORDS: window_words,
}

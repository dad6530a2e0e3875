"""A plan run on NumPy, kernel for kernel: each twin computes what the kernel of its name computes."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import PATTERN_NBYTES
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory, Span
from wgslice.plans.window_steps import WindowDispatch
from wgslice.shaders.uniforms import copy_dtype, uniform_block
from wgslice.shaders.window_twins import run_windows

__all__ = ["run_plan", "twins"]

Bytes = NDArray[np.uint8]
Words = NDArray[np.uint32]


def run_plan(plan: Plan, source: Bytes, target: Bytes, offsets: NDArray[np.generic] | None = None) -> None:
    """Run `plan` from the bytes of one buffer into those of another, in place, both from their bases on.

    Of windows whose offsets the GPU has, `offsets` are these.
    """
    memories = {Memory.INPUT: source, Memory.OUTPUT: target, Memory.ZEROS: np.zeros(PATTERN_NBYTES, np.uint8)}
    memories |= {memory: np.zeros(-(-nbytes // 16) * 16, np.uint8) for memory, nbytes in plan.scratch}
    for step in plan.steps:
        if isinstance(step, Clear):
            target[step.offset_nbytes :][: step.nbytes] = 0
            continue
        read, written = memories[step.reads], memories[step.writes]
        if isinstance(step, BufferCopies):
            for source_place, target_place in zip(step.source.places(), step.target.places(), strict=True):
                written[target_place:][: step.nbytes] = read[source_place:][: step.nbytes]
        elif isinstance(step, WindowDispatch):
            known = step.windows.offsets if offsets is None else offsets
            assert known is not None
            run_windows(step, read, written, known)
        else:
            run_dispatch(step, read, written)


def run_dispatch(step: Dispatch, source: Bytes, target: Bytes) -> None:
    """One kernel on its two bindings."""
    block = np.frombuffer(uniform_block(step), copy_dtype)[0]
    twin = twins[step.kernel]
    twin(block, step, bound(source, step.source_binding), bound(target, step.target_binding))


def bound(buffer: Bytes, binding: Span) -> Words:
    """The words that a kernel sees through a binding; a view."""
    return buffer[binding.offset_nbytes :][: binding.nbytes].view("<u4")


def copy_elements(
    step: Dispatch, source_words: Words, source_elements: Words, target_words: Words, target_elements: Words
) -> None:
    """Element by element, whatever its width."""
    element = f"V{step.width_nbytes}"
    target_words.view(element)[target_elements] = source_words.view(element)[source_elements]


def divide(block: np.void, n: Words, d: int) -> Words:
    """The kernels' division by multiplication and shift."""
    high = (n.astype(np.uint64) * block["multipliers"][d] >> np.uint64(32)).astype(np.uint32)
    quotient: Words = high + n >> block["shifts"][d]
    return quotient


def decode(block: np.void, indices: Words, rank: int) -> tuple[Words, Words]:
    """The source and target elements of row-major indices over the first `rank` dimensions."""
    rest = indices
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(rank)):
        quotient = divide(block, rest, d) if d else np.zeros_like(rest)
        c = rest - quotient * block["sizes"][d]
        rest = quotient
        source_elements += c * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    return source_elements, target_elements


def taken(step: Dispatch) -> Words:
    """What all invocations of a grid take of a whole that is not dealt by rows, in their order."""
    share = step.share
    groups = share.workgroups[0] * share.workgroups[1]
    block, lane, k = np.ogrid[:groups, : share.workgroup_size, : share.each]
    first, apart = (lane * share.each, 1) if share.contiguous else (lane, share.workgroup_size)
    place = block * share.workgroup_size * share.each + first + k * apart
    return np.asarray(place, np.uint32).ravel()


def taken_of_row(step: Dispatch, size: Words) -> Words:
    """What the pieces of a row of so many elements or words take of it, along a new last axis."""
    share = step.share
    piece, k = np.ogrid[: share.pieces, : share.each]
    if share.contiguous:
        place = np.minimum(piece * share.each, size[..., None, None] - share.each) + k
    else:
        place = piece + k * share.pieces + 0 * size[..., None, None]
    return np.asarray(place, np.uint32).reshape(*size.shape, -1)


def slice1(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/slice1.wgsl`."""
    rest = np.arange(block["count"], dtype=np.uint32)
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(block["rank"])):
        rest, c = np.divmod(rest, block["sizes"][d])
        source_elements += c * block["source_strides"][d]
        target_elements += c * block["target_strides"][d]
    copy_elements(step, source_words, source_elements, target_words, target_elements)


def rows(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/rows.wgsl`."""
    size = row_size(block, step)
    row, dimensions = row_dimensions(block, step)
    source_rows, target_rows = decode(block, row, dimensions)
    column = taken_of_row(step, size)
    column = column[column < size]
    copy_elements(
        step,
        source_words,
        np.add.outer(source_rows, ahead(block, step, "source_strides", column)),
        target_words,
        np.add.outer(target_rows, ahead(block, step, "target_strides", column)),
    )


def row_dimensions(block: np.void, step: Dispatch) -> tuple[Words, int]:
    """The indices of all rows, and the number of dimensions they are decoded over."""
    return np.arange(block["count"], dtype=np.uint32), int(block["rank"]) - 1 - step.share.paired


def row_size(block: np.void, step: Dispatch) -> Words:
    """Elements a row."""
    last = int(block["rank"]) - 1
    return np.asarray(np.prod(block["sizes"][last - step.share.paired : last + 1], dtype=np.uint32))


def ahead(block: np.void, step: Dispatch, strides: str, c: Words) -> Words:
    """How far a row's c-th element lies from its first."""
    last = int(block["rank"]) - 1
    if not step.share.paired:
        return np.asarray(c * block[strides][last], np.uint32)
    run = divide(block, c, last)
    inside = c - run * block["sizes"][last]
    return np.asarray(run * block[strides][last - 1] + inside * block[strides][last], np.uint32)


def wide_rows(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/wide_rows.wgsl`."""
    rows(block, step, source_words, target_words)


def shifted_rows(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/shifted_rows.wgsl`."""
    narrow_rows(block, step, source_words, target_words)


def narrow_rows(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/narrow_rows.wgsl`, and with larger units of `wgsl/shifted_rows.wgsl`."""
    lanes = np.uint32(step.kernel.unit_nbytes(step.width_nbytes) // step.width_nbytes)
    size = row_size(block, step)
    row, dimensions = row_dimensions(block, step)
    source_rows, start = decode(block, row, dimensions)
    next_source_rows, next_start = decode(block, row + np.uint32(1), dimensions)
    _, before = decode(block, row - np.uint32(1), dimensions)
    whole_word, stop_word, first_word = (start + lanes - 1) // lanes, (start + size) // lanes, start // lanes
    whole = whole_word[:, None] + taken_of_row(step, stop_word - whole_word)
    taken = (row > 0) & (before + size > first_word * lanes)
    ends = np.stack([np.where(taken, stop_word, first_word), stop_word], axis=1)
    word = np.concatenate([np.where(whole < stop_word[:, None], whole, whole_word[:, None]), ends], axis=1)
    element: Words = np.asarray(word[..., None] * lanes + np.arange(lanes, dtype=np.uint32), np.uint32)
    row, start, next_start, source_rows, next_source_rows = (
        values[:, None, None] for values in (row, start, next_start, source_rows, next_source_rows)
    )
    inside = (element >= start) & (element < start + size)
    follows = (element >= next_start) & (row + 1 < block["count"])
    for chosen, source, target in ((inside, source_rows, start), (follows, next_source_rows, next_start)):
        c = np.asarray(element - target, np.uint32)
        source_elements = np.asarray(source + ahead(block, step, "source_strides", c), np.uint32)
        copy_elements(step, source_words, source_elements[chosen], target_words, element[chosen])


def narrow_runs(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/narrow_runs.wgsl`."""
    lanes = 4 // step.width_nbytes
    word = taken(step)
    word = word[word < block["count"]]
    elements = np.add.outer(
        (block["target_offset"] // lanes + word) * lanes, np.arange(lanes, dtype=np.uint32)
    )
    target_elements = elements[elements >= block["target_offset"]]
    rest = target_elements - block["target_offset"]
    source_elements = np.full_like(rest, block["source_offset"])
    inside = np.ones_like(rest, bool)
    last = int(block["rank"]) - 1
    for d in range(last):
        c = divide(block, rest, d)
        rest = rest - c * block["target_strides"][d]
        inside &= c < block["sizes"][d]
        source_elements += c * block["source_strides"][d]
    inside &= rest < block["sizes"][last]
    source_elements += rest * block["source_strides"][last]
    copy_elements(step, source_words, source_elements[inside], target_words, target_elements[inside])


def tiles(block: np.void, step: Dispatch, source_words: Words, target_words: Words) -> None:
    """Twin of `wgsl/tiles.wgsl`."""
    side = step.share.each
    *outer, rows, columns = block["sizes"][: block["rank"]]
    tiles_across, tiles_down = -(-int(columns) // side), -(-int(rows) // side)
    number = np.arange(block["count"], dtype=np.uint32)
    inside = np.arange(side, dtype=np.uint32)
    row = (number // tiles_across % tiles_down * side)[:, None, None] + inside[:, None]
    column = (number % tiles_across * side)[:, None, None] + inside
    exists = (row < rows) & (column < columns)
    rest = number // tiles_across // tiles_down
    places = []
    for strides, offset in (("source_strides", "source_offset"), ("target_strides", "target_offset")):
        first = np.full_like(rest, block[offset])
        for d, c in enumerate(np.unravel_index(rest, outer) if outer else ()):
            first += np.asarray(c, np.uint32) * block[strides][d]
        last = int(block["rank"]) - 1
        place = first[:, None, None] + row * block[strides][last - 1] + column * block[strides][last]
        places.append(np.asarray(place[exists], np.uint32))
    copy_elements(step, source_words, places[0], target_words, places[1])


twins: dict[Kernel, Callable[[np.void, Dispatch, Words, Words], None]] = {
    Kernel.SLICE1: slice1,
    Kernel.ROWS: rows,
    Kernel.WIDE_ROWS: wide_rows,
    Kernel.SHIFTED_ROWS: shifted_rows,
    Kernel.NARROW_ROWS: narrow_rows,
    Kernel.NARROW_RUNS: narrow_runs,
    Kernel.TILES: tiles,
}

"""The dispatches that copy windows in vectors, words and elements, and their last-writer pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout, whole_words
from wgslice.plans.choose import Step
from wgslice.plans.copy import plan_copy
from wgslice.plans.copy_strategies import MIN_OF_BLOCKS
from wgslice.plans.kernels import LAST_WRITERS, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.problem import largest_binding_nbytes, span_of
from wgslice.plans.profiles import BLOCKS_EACH, CostClass, Profile, windows_class
from wgslice.plans.steps import Memory, Span, launch_row, share_of, words_spanned
from wgslice.plans.window_problem import Band, Row, WindowProblem
from wgslice.plans.windows import Dimension, Numbers, WindowDispatch, layouts_of

BLOCK_WORDS = WIDEST_NBYTES // WORD_NBYTES
# Blocked pieces write some words twice, and writers of the same bits take turns.
STRIPED = Kernel.INSERT_WORDS, Kernel.LAST_WRITER_ROWS
END_PIECES = 2  # of a row: the words of the vector with its head, and of that with its tail
BY_ROWS = Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS, Kernel.LAST_WRITER_ROWS


def class_of(kernel: Kernel, problem: WindowProblem) -> CostClass:
    """Returns the cost class of a kernel; those that insert leave row ends to another dispatch."""
    if kernel not in BY_ROWS:
        return windows_class(kernel, problem.itemsize)
    unaligned = problem.unaligned and kernel is Kernel.WINDOW_ROWS
    return windows_class(
        kernel, problem.row.element_nbytes, unaligned=unaligned, mirrored=problem.row.mirrored
    )


def dispatch(
    problem: WindowProblem,
    kernel: Kernel,
    band: Band,
    numbers: Numbers,
    bindings: tuple[Span, Span],
    reason: str,
    *,
    part: Sequence[range] | None = None,
    pieces: int = 1,
    each: int = 1,
    invocations: int | None = None,
    **others: Any,
) -> WindowDispatch:
    """Returns a dispatch of a part of some windows, between bindings of the tensor and of the batch.

    It has `invocations`, or one for each of the `pieces` of a row or an element.
    """
    windows, tensor, batch, itemsize = problem.windows, problem.tensor, problem.batch, problem.itemsize
    of_tensor, of_batch = bindings
    row = problem.row if kernel in BY_ROWS else None
    part = problem.whole if part is None else part
    unit_nbytes = 1 if row else itemsize  # that offsets and strides are counted in
    window_size = prod(map(len, part[: row.axis] if row else part))
    if invocations is None:
        invocations = len(numbers) * window_size * pieces
    share = share_of(problem.limits, len(numbers), pieces, each, invocations)
    if kernel in STRIPED:
        share = replace(share, contiguous=False)
    begin = batch.select([0, *part]).offset
    in_order = len(numbers) == int(numbers[-1]) - int(numbers[0]) + 1
    if row:
        others |= {"row_nbytes": row.nbytes, "channels": row.channels, "mirrored": row.mirrored}
    if kernel in LAST_WRITERS:
        others["writes"] = Memory.WINNERS
    return WindowDispatch(
        kernel=kernel,
        windows=windows,
        picks=None if in_order and windows.same_flips is not None else numbers,
        first=int(numbers[0]),
        table=problem.context.table,
        dimensions=dimensions_of(problem, kernel, band, part, row),
        element_nbytes=row.element_nbytes if row else itemsize,
        tensor_offset=(tensor.offset * itemsize - of_tensor.offset_nbytes) // unit_nbytes,
        batch_offset=(begin * itemsize - of_batch.offset_nbytes) // unit_nbytes,
        window_stride=batch.strides[0] * itemsize // unit_nbytes,
        window_size=window_size,
        winners=problem.winners(band),
        source_binding=of_batch if problem.inserts else of_tensor,
        target_binding=of_tensor if problem.inserts else of_batch,
        share=share,
        reason=reason,
        **others,
    )


def dimensions_of(
    problem: WindowProblem, kernel: Kernel, band: Band, part: Sequence[range], row: Row | None
) -> tuple[Dimension, ...]:
    """Returns the dimensions of a part of each window, or of its rows, within the indices of a band."""
    windows, itemsize = problem.windows, problem.itemsize
    winner_strides = problem.winning(band.ranges).strides
    found = []
    for axis, size in enumerate(problem.tensor.sizes[: row.axis + 1] if row else problem.tensor.sizes):
        extent = windows.extents[axis]
        # Beyond these offsets nothing changes: a window stays inside, or is wholly outside.
        lowest, highest = (0, size - extent) if windows.fill is None else (-extent, size)
        tensor_stride, batch_stride = problem.tensor.strides[axis], problem.batch.strides[axis + 1]
        if row:
            if axis == row.axis:
                tensor_stride = batch_stride = row.unit
            tensor_stride, batch_stride = tensor_stride * itemsize, batch_stride * itemsize
        # One winner index stands for a whole dimension that every window writes.
        once = kernel is Kernel.LAST_WRITER_WINDOWS and not problem.differ[axis]
        found.append(
            Dimension(
                size=len(part[axis]),
                step=windows.steps[axis],
                last=extent - 1,
                lowest=lowest,
                highest=highest,
                extent=size if once else len(band.ranges[axis]),
                inner=prod(map(len, part[axis + 1 : row.axis] if row else part[axis + 1 :])),
                tensor_stride=tensor_stride,
                batch_stride=batch_stride,
                first=part[axis].start,
                begin=0 if once else band.ranges[axis].start,
                winner_stride=winner_strides[axis],
                wrap=size if windows.indices else 0,
            )
        )
    if kernel is Kernel.WINDOW_WORDS and len(found) == 1:  # which takes two as a row
        found.append(Dimension())
    return tuple(found)


# rows


def launch_blocks(problem: WindowProblem, kernel: Kernel) -> tuple[int, int]:
    """Returns invocations per row and blocks per invocation: those that take the least estimated time.

    In blocked pieces of extracted rows no more than every row has; inserted rows may have fewer.
    """
    row, profile = problem.row, problem.limits.profile
    if not profile.contiguous:
        return launch_row(kernel, row.nbytes, 1, profile)
    work = profile.costs.classes[class_of(kernel, problem)]
    blocks_read = row.channels * problem.windows.steps[row.axis]  # of the source, that make one
    block_s = blocks_read * WIDEST_NBYTES / work.bytes_per_s
    most = row.nbytes // WIDEST_NBYTES
    least = most if problem.inserts else whole_blocks(problem)
    choices = [each for each in BLOCKS_EACH if each <= max(min(least, profile.window_blocks), 1)]
    each = min(choices, key=lambda each: -(-most // each) * (work.invocation_s + each * block_s))
    return -(-most // each), each


def whole_blocks(problem: WindowProblem) -> int:
    """The whole blocks that every row has, wherever it begins."""
    unaligned_nbytes = (WIDEST_NBYTES - 1) * problem.unaligned
    return (problem.row.nbytes - unaligned_nbytes) // WIDEST_NBYTES


def least_seconds(kernel: Kernel, problem: WindowProblem) -> float:
    """Lower bound of the seconds of a kernel; inf if its cost class is unknown."""
    row_nbytes, share = problem.row.nbytes, 1.0
    if kernel is Kernel.WINDOW_ROWS:  # an estimate counts the whole vectors of a row
        share = row_nbytes // WIDEST_NBYTES * WIDEST_NBYTES / row_nbytes
    if kernel is Kernel.INSERT_ROWS:  # the rest is that of row ends
        share = MIN_OF_BLOCKS
    return problem.costs.least_seconds(class_of(kernel, problem), share * problem.nbytes)


def bound_batch(problem: WindowProblem, numbers: Numbers, part: Sequence[range]) -> Layout:
    """Returns the batch from the first to the last of some windows, and a part of each."""
    return problem.batch.select([range(int(numbers[0]), int(numbers[-1]) + 1), *part])


def batch_binding(problem: WindowProblem, numbers: Numbers, part: Sequence[range]) -> Span:
    """Returns the binding of a part of each of some windows in the batch."""
    return span_of(bound_batch(problem, numbers, part), problem.itemsize, problem.limits)


def extracted_blocks(problem: WindowProblem) -> Iterator[WindowDispatch]:
    """Yields dispatches of vectors of rows, for the windows that the output has capacity for."""
    row, part, kernel = problem.row, problem.whole, Kernel.WINDOW_ROWS
    pieces, each = launch_blocks(problem, kernel)
    step = problem.windows.steps[row.axis]
    order = "contiguous" if step == 1 else f"stride {step}"
    order += " or reversed" * row.mirrored
    reason = f"window rows ({order}), in vectors of 16 bytes"
    launch: dict[str, Any] = {"pieces": pieces, "each": each, "unaligned": problem.unaligned}
    for numbers in problem.held(part, problem.numbers[problem.numbers < problem.stop], row.count * pieces):
        target = batch_binding(problem, numbers, part).in_whole(WIDEST_NBYTES)
        for some, source, segment in source_groups(problem, numbers) or ():
            both = source.in_whole(WIDEST_NBYTES), target
            yield dispatch(problem, kernel, problem.bands[0], some, both, reason, segment=segment, **launch)


def source_groups(problem: WindowProblem, numbers: Numbers) -> list[tuple[Numbers, Span, int]] | None:
    """Returns windows by the binding of the source that holds them, or all for each part of the source.

    With a part come the bytes that its rows begin in. None if a binding does not hold a window, or a row.
    """
    limits, windows = problem.limits, problem.windows
    whole = span_of(problem.tensor, problem.itemsize, limits)
    if whole.nbytes <= problem.max_nbytes:
        return [(numbers, whole, 0)]
    if windows.offsets is None or problem.unaligned:  # rows that share blocks are copied in order
        row_nbytes = windows.extents[problem.row.axis] * problem.row.unit * problem.itemsize
        parts = segments_of(problem, row_nbytes)
        if not parts or whole.nbytes > U32_MAX:
            return None
        return [(numbers, part, parts[1].offset_nbytes - parts[0].offset_nbytes) for part in parts]
    tensor, offsets = problem.tensor, windows.offsets[numbers].astype(np.int64)
    most = np.array(tensor.sizes) - 1
    nearest = np.clip(offsets, 0, most) * tensor.strides
    furthest = np.clip(offsets + windows.extents - 1, 0, most) * tensor.strides
    lows = (tensor.offset + np.minimum(nearest, furthest).sum(axis=1)) * problem.itemsize
    highs = (tensor.offset + 1 + np.maximum(nearest, furthest).sum(axis=1)) * problem.itemsize
    if (highs - lows).max() > problem.max_nbytes:
        return None
    order, groups = np.argsort(lows, kind="stable"), []
    while order.size:
        base = int(lows[order[0]]) // limits.binding_alignment_nbytes * limits.binding_alignment_nbytes
        fits = highs[order] <= base + largest_binding_nbytes(limits)
        nbytes = whole_words(int(highs[order[fits]].max()) - base)
        groups.append((np.sort(numbers[order[fits]]), Span(base, nbytes), 0))
        order = order[~fits]
    return groups


def inserted_blocks(problem: WindowProblem) -> Iterator[WindowDispatch]:
    """Yields dispatches of whole vectors of rows, then of row ends, which overwrite parts of earlier vectors.

    Windows that leave a band have dispatches of their own.
    """
    row, part = problem.row, problem.whole
    pieces, each = launch_blocks(problem, Kernel.INSERT_ROWS)
    reason = f"window rows (contiguous{' or reversed' * row.mirrored}), in vectors of 16 bytes"
    of_ends = "heads and tails of unaligned rows, word by word"
    whole: dict[str, Any] = {"pieces": pieces, "each": each}
    end_pieces = 1 if problem.limits.profile.contiguous else END_PIECES
    each_end = BLOCK_WORDS * END_PIECES // end_pieces
    at_ends: dict[str, Any] = {"pieces": end_pieces, "each": each_end, "ends": True}
    for band in problem.bands:
        target = problem.binding(band)
        if problem.in_parts:  # there are winners per vector
            band = band._replace(blocks=-(-target.nbytes // WIDEST_NBYTES))
        yield from winners(problem, band)
        blocks = Span(target.offset_nbytes, target.nbytes // WIDEST_NBYTES * WIDEST_NBYTES)
        _, leaving = problem.reaching(band.numbers, band.ranges)
        with_room = band.numbers < problem.stop
        ends = []
        for leave in (False, True):
            numbers = band.numbers[(leaving == leave) & with_room]
            for some in problem.held(part, numbers, row.count * max(pieces, END_PIECES)):
                source = batch_binding(problem, some, part)
                if blocks.nbytes:  # else no row has a whole block
                    sides = blocks, source.in_whole(WIDEST_NBYTES)
                    whole["clipped"] = leave or problem.contested or each > whole_blocks(problem)
                    yield dispatch(problem, Kernel.INSERT_ROWS, band, some, sides, reason, **whole)
                if problem.unaligned or leave:
                    sides = target, source
                    ends.append(dispatch(problem, Kernel.INSERT_WORDS, band, some, sides, of_ends, **at_ends))
        yield from ends


def inserted_words(problem: WindowProblem) -> Iterator[WindowDispatch]:
    """Yields dispatches of all words of rows."""
    row, kernel, reason = problem.row, Kernel.INSERT_WORDS, "window rows, word by word"
    each = min(row.words_spanned, BLOCK_WORDS) if problem.limits.profile.contiguous else 1
    pieces = -(-row.words_spanned // each)
    for band in problem.bands:
        yield from winners(problem, band)
        for numbers in problem.held(problem.whole, band.numbers, row.count * pieces):
            sides = problem.binding(band), batch_binding(problem, numbers, problem.whole)
            yield dispatch(problem, kernel, band, numbers, sides, reason, pieces=pieces, each=each)


# elements


def elements(kernel: Kernel, problem: WindowProblem) -> Iterator[WindowDispatch]:
    """Yields dispatches of elements, or of words of the output, between parts that bindings hold."""
    in_words = kernel is Kernel.WINDOW_WORDS
    reason = "windows, element by element" + ", packed into words" * in_words
    launch: dict[str, Any] = {}
    for band in problem.bands:
        yield from winners(problem, band)
        bindings = [problem.binding(band)] if problem.inserts else segments_of(problem)
        for part in problem.parts(problem.whole):
            for numbers in problem.held(part, band.numbers, prod(map(len, part))):
                if in_words:
                    row_nbytes = prod(problem.windows.sizes[-2:]) * problem.itemsize
                    each = words_each(row_nbytes, problem.limits.profile)
                    words = words_spanned(bound_batch(problem, numbers, part), problem.itemsize)
                    launch = {"each": each, "invocations": -(-words // each)}
                for binding in bindings:
                    both = binding, batch_binding(problem, numbers, part)
                    launch["segment"] = 0 if problem.inserts else binding.nbytes // problem.itemsize
                    yield dispatch(problem, kernel, band, numbers, both, reason, part=part, **launch)


def segments_of(problem: WindowProblem, row_nbytes: int = 0) -> list[Span]:
    """Returns consecutive bindings of the tensor, with whole rows that begin in each; none of longer rows."""
    if not problem.tensor.size:
        return [Span(0, WORD_NBYTES)]
    alignment = problem.limits.binding_alignment_nbytes
    segment = (problem.max_nbytes - row_nbytes) // alignment * alignment  # after which a binding may begin
    if segment <= 0:
        return []
    whole = span_of(problem.tensor, problem.itemsize, problem.limits)
    stop = whole.offset_nbytes + whole.nbytes
    starts = range(whole.offset_nbytes, stop, segment)
    return [Span(start, min(whole_words(segment + row_nbytes), stop - start)) for start in starts]


def words_each(row_nbytes: int, profile: Profile) -> int:
    """Words per invocation: equal parts of a row, or whole rows, so that neighbours change rows together."""
    max_nbytes = profile.window_words * WORD_NBYTES
    parts_of_row, rows = -(-row_nbytes // max_nbytes), max(max_nbytes // row_nbytes, 1)
    return -(-row_nbytes * rows // (parts_of_row * WORD_NBYTES))


def winners(problem: WindowProblem, band: Band) -> Iterator[WindowDispatch]:
    """Yields the last-writer pass of windows that may overlap: per element, or per vector and row end.

    Winners are once along dimensions that all windows have every index of.
    """
    found = problem.winners(band)
    if found is None:
        return
    span, nothing = found.span, Span(0, WORD_NBYTES)
    if found.in_parts:
        row, kernel = problem.row, Kernel.LAST_WRITER_ROWS
        touched = (row.nbytes + WIDEST_NBYTES - 2) // WIDEST_NBYTES + 1
        pieces = -(-touched // problem.limits.profile.blocks_each)
        each = -(-touched // pieces)
        reason = "last-writer pass: winner index per vector and row end of overlapping windows"
        sides = problem.binding(band), nothing
        for numbers in problem.held(problem.whole, band.numbers, row.count * pieces):
            step = dispatch(problem, kernel, band, numbers, sides, reason, pieces=pieces, each=each)
            yield replace(step, target_binding=span, channels=1, mirrored=False)
        return
    kernel, sizes = Kernel.LAST_WRITER_WINDOWS, zip(problem.windows.sizes, problem.differ, strict=True)
    winning = [range(size) if differs else range(1) for size, differs in sizes]
    reason = "last-writer pass: winner index per element of overlapping windows"
    for part in problem.parts(winning):
        most = max(problem.max_invocations // prod(map(len, part)), 1)
        for start in range(0, len(band.numbers), most):
            numbers = band.numbers[start : start + most]
            yield dispatch(problem, kernel, band, numbers, (span, nothing), reason, part=part)


# windows one by one


def each_window(problem: WindowProblem) -> Iterator[Step]:
    """Yields the steps of a copy of each window, all of them inside the source."""
    boxes = problem.boxes.boxes
    sides = [layouts_of(boxes.sizes, boxes.strides[side], boxes.starts[side]) for side in (0, 1)]
    for source, target in zip(*sides, strict=True):
        yield from plan_copy(source, target, problem.itemsize, problem.context).steps

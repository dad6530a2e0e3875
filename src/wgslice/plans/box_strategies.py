"""The strategies of boxes, and the plan of the fastest."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import NoKernelError
from wgslice.layout import Layout, whole_words
from wgslice.plans.choose import COPY_PER_WINDOW, Reason, Step, Strategy, choose, seconds_of, where
from wgslice.plans.copy import CLEAR_FIRST, clear_of
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.problem import NO_COPY_USAGE, UNPADDED, InContext, PlanContext
from wgslice.plans.profiles import FAILED, UNKNOWN, all_disabled
from wgslice.plans.steps import Span, copies_by_length, share_of
from wgslice.plans.windows import (
    DIMENSION_COLUMNS,
    DROPPED,
    ENDS,
    FIXED_COLUMNS,
    Boxes,
    Integers,
    Numbers,
    Offsets,
    Packing,
    Pieces,
    PlacedWindows,
    SizedDispatch,
    is_contiguous,
    sized_class,
)

BOUNDED = "offsets are in device memory, and elements outside are filled or dropped"


@dataclass(frozen=True, eq=False)
class BoxProblem(InContext):
    """Boxes to copy, in elements from the bases of both sides."""

    boxes: Boxes
    itemsize: int
    context: PlanContext
    sets: Sequence[Numbers] = ()  # numbers of disjoint boxes; a later set overwrites earlier ones
    own_words: bool = False  # whether no two contiguous rows of a set share a word
    promised: bool = False  # whether boxes are disjoint by the caller's promise alone
    offsets: Offsets | None = None  # that the GPU adds to the places of boxes
    covered: Layout | None = None  # the target, if the boxes are all of it
    alone: Callable[[int], Sequence[Step]] | None = None  # the steps of a window by itself, by its number

    @property
    def nbytes(self) -> int:
        """Bytes of all boxes."""
        return self.boxes.count * self.itemsize

    @cached_property
    def rows(self) -> Boxes:
        """The boxes in the fewest dimensions, of which the last one is contiguous in the target."""
        return self.boxes.in_rows()

    @property
    def masks(self) -> list[NDArray[np.bool_]]:
        """Which rows are of each set; all of them, if there are no sets."""
        numbers = self.rows.numbers
        return [np.isin(numbers, each) for each in self.sets] or [np.ones(len(numbers), np.bool_)]

    @cached_property
    def apart(self) -> bool:
        """Whether elements of a row are apart, or reversed, in the source."""
        return not is_contiguous(self.rows.sizes[:, -1], self.rows.strides[0, :, -1])

    @property
    def most_blocks(self) -> int:
        """The most blocks of 16 bytes per invocation: fewer where each is gathered from several."""
        profile = self.limits.profile
        return profile.window_blocks if self.apart else profile.sized_blocks

    @cached_property
    def clear(self) -> tuple[Step, ...]:
        """The clear of a target that the boxes cover, if they are filled with zeros; else none."""
        fill = self.boxes.fill
        if self.covered is None or fill is None or any(fill) or not self.context.copy_to:
            return ()
        return clear_of(self.covered, self.itemsize)

    @cached_property
    def in_words(self) -> bool:
        """Whether all rows, their places and the distances of rows are whole words on both sides."""
        rows = self.rows
        places = rows.sizes[:, -1], rows.starts, rows.strides[:, :, :-1][:, rows.sizes[:, :-1] > 1]
        whole = all((place * self.itemsize % WORD_NBYTES == 0).all() for place in places)
        return whole and not (self.offsets and any(n % WORD_NBYTES for n in self.offsets.strides_nbytes))

    def extents(self, boxes: Boxes) -> tuple[Integers, Integers]:
        """The bytes of each box on both sides; of offsets in device memory, all of the tensor."""
        low, stop = boxes.extents()
        if self.offsets is not None:
            tensor, side = self.offsets.tensor, int(self.offsets.inserts)
            low[side], stop[side] = tensor.lowest, tensor.stop
        return low * self.itemsize, stop * self.itemsize

    @cached_property
    def padded(self) -> Integers:
        """Which boxes end before the last whole vectors of both buffers, of which each has one at least."""
        capacities = self.context.source_capacity_nbytes, self.context.target_capacity_nbytes
        stops = np.maximum(self.extents(self.rows)[1], WIDEST_NBYTES)
        padded: Integers = np.logical_and(*(stops <= np.array(capacities)[:, None]))
        return padded

    @cached_property
    def against_kernel(self) -> Reason | None:
        """The reason against the kernel."""
        ends = {Kernel.SIZED_ENDS} if self.itemsize < WORD_NBYTES else set()
        if self.limits.disabled & {Kernel.SIZED_WINDOWS, *ends}:
            return FAILED
        if ends and ENDS not in self.costs.classes:
            return UNKNOWN
        if self.offsets is not None:
            if self.offsets.windows.fill is not None:
                return BOUNDED
            if np.subtract(*self.extents(self.rows)[::-1]).max() > self.max_nbytes:
                return "the offsets are in device memory, and a side exceeds a storage binding"
        if not self.padded.all() and (self.alone is None or len(self.sets) > 1 or not self.padded.any()):
            return UNPADDED
        return None


# planners


def plan_covering(boxes: Boxes, source: Layout, target: Layout, itemsize: int, context: PlanContext) -> Plan:
    """Returns the plan of boxes that cover the target; starts are counted from the first elements."""
    placed = replace(boxes, starts=boxes.starts + np.array([[source.offset], [target.offset]]))
    return plan_boxes(BoxProblem(placed, itemsize, context, covered=target), source, target)


def plan_boxes(problem: BoxProblem, source: Layout, target: Layout) -> Plan:
    """Returns the plan of boxes by the strategy of the least estimated time."""
    widths, nbytes = (problem.itemsize, problem.itemsize), problem.nbytes
    if not nbytes or not target.size:
        return Plan(0, *widths, source, target, ())
    choice = choose(problem, BOXES)
    if choice is None:
        raise NoKernelError(all_disabled("windows of different sizes", problem.limits))
    costs, shape = problem.costs, (problem.boxes.count,)
    return Plan(nbytes, *widths, source, target, choice.steps, costs=costs, choice=choice, shape=shape)


def placed_boxes(
    windows: PlacedWindows[Any],
    packing: Packing,
    tensor: Layout,
    batch: Layout,
    itemsize: int,
    context: PlanContext,
    *,
    inserts: bool,
) -> BoxProblem:
    """Returns windows, packed in a batch, as boxes; those in device memory from offsets of 0."""
    extents = np.broadcast_to(np.array(windows.extents, np.int64), packing.strides.shape)
    steps, tensor_sizes = np.array(windows.steps, np.int64), np.array(tensor.sizes, np.int64)
    sizes, strides = 1 + (extents - 1) // steps, np.array(tensor.strides, np.int64)
    firsts = windows.backwards.astype(np.int64) * (extents - 1)  # index of the first element, from the offset
    moves = np.where(firsts > 0, -1, 1) * steps  # indices from one element to the next
    if windows.offsets is not None:
        firsts = firsts + windows.offsets
    starts = tensor.offset + firsts @ strides, batch.offset + packing.starts
    both = moves * strides, packing.strides
    order = -1 if inserts else 1
    lows, highs = np.zeros_like(sizes), sizes
    if windows.fill is not None and windows.offsets is not None:
        beyond = (firsts - tensor_sizes) // steps
        lows = np.clip(np.where(moves > 0, -(firsts // steps), beyond + 1), 0, sizes)
        highs = np.clip(np.where(moves > 0, -beyond, firsts // steps + 1), lows, sizes)
    sides = np.stack(starts[::order]), np.stack(both[::order])
    fill = None if windows.fill is DROPPED else windows.fill
    boxes = Boxes(np.arange(windows.count), sizes, *sides, lows, highs, fill)
    boxes = boxes.of((sizes > 0).all(axis=1))
    offsets = None
    if context.table is not None:
        strides_nbytes = tuple(stride * itemsize for stride in tensor.strides)
        offsets = Offsets(context.table, windows, tensor_sizes - extents, strides_nbytes, tensor, inserts)
    return BoxProblem(boxes.clipped() if inserts else boxes, itemsize, context, offsets=offsets)


# the kernels


def kernel_steps(problem: BoxProblem) -> Iterator[Step]:
    """Yields dispatches of the kernels, and the steps of windows that end unpadded buffers."""
    rows = problem.rows
    for mask in problem.masks:
        for part in in_bindings(problem, rows.of(mask & problem.padded)):
            yield from dispatches(problem, *part)
    yield from one_by_one(problem, rows.numbers[~problem.padded])


def one_by_one(problem: BoxProblem, numbers: Integers) -> Iterator[Step]:
    """Yields the steps of windows by themselves, in order; their numbers may be those of several boxes."""
    for number in np.unique(numbers).tolist():
        assert problem.alone is not None
        yield from problem.alone(number)


def in_bindings(problem: BoxProblem, boxes: Boxes) -> Iterator[tuple[Boxes, Span, Span]]:
    """Yields boxes with the bindings of both sides that hold them, halving those that none holds."""
    limits = problem.limits
    alignment = limits.binding_alignment_nbytes
    most_boxes = limits.binding_nbytes // (WORD_NBYTES * (FIXED_COLUMNS + DIMENSION_COLUMNS * boxes.rank))
    while len(boxes.numbers):
        row_nbytes = boxes.sizes[:, -1] * problem.itemsize
        most = problem.most_blocks
        pieces = Pieces.of(boxes, run_rank_of(boxes), row_nbytes, most, aligned=False).counts
        lows, stops = problem.extents(boxes)
        long = (pieces > problem.max_invocations) | (stops - lows > problem.max_nbytes).any(axis=0)
        halves = boxes.of(long).halved() if long.any() else None
        left = np.flatnonzero(~long)
        while left.size:
            bases, chosen = [], left
            for low, stop in zip(lows, stops, strict=True):
                base = int(low[chosen].min()) // alignment * alignment
                chosen = chosen[stop[chosen] <= base + problem.max_nbytes + alignment]
                bases.append(base)
            chosen = chosen[:most_boxes]
            chosen = chosen[np.cumsum(pieces[chosen]) <= problem.max_invocations]
            ends = stops[:, chosen].max(axis=1).tolist()
            of_source, of_target = (
                Span(base, max(whole_words(stop - base), WORD_NBYTES)).in_whole(WIDEST_NBYTES)
                for base, stop in zip(bases, ends, strict=True)
            )
            yield boxes.of(chosen), of_source, of_target
            left = np.setdiff1d(left, chosen, assume_unique=True)
        if halves is None:
            return
        boxes = halves


def run_rank_of(boxes: Boxes) -> int:
    """Returns how many of the last dimensions follow one another without gaps in the target."""
    sizes, strides = boxes.sizes, boxes.strides[1]
    count = 1
    extents = sizes[:, -1]
    while count < boxes.rank:
        axis = boxes.rank - count - 1
        if not ((strides[:, axis] == extents) | (sizes[:, axis] == 1)).all():
            break
        extents = extents * sizes[:, axis]
        count += 1
    return count


def dispatches(problem: BoxProblem, boxes: Boxes, source: Span, target: Span) -> Iterator[SizedDispatch]:
    """Yields the dispatches of some boxes: one, and another for words that runs may share."""
    itemsize, run_rank = problem.itemsize, run_rank_of(boxes)
    begins = [[source.offset_nbytes], [target.offset_nbytes]]
    in_bytes = replace(boxes, starts=boxes.starts * itemsize - begins, strides=boxes.strides * itemsize)
    outer = in_bytes.rank - run_rank
    several = in_bytes.sizes[:, :outer] > 1
    places = [in_bytes.starts[1], in_bytes.strides[1, :, :outer][several]]
    if problem.offsets is not None and problem.offsets.inserts:
        places.append(np.array(problem.offsets.strides_nbytes))
    aligned, whole = (
        not any((place % unit).any() for place in places) for unit in (WIDEST_NBYTES, WORD_NBYTES)
    )
    row_nbytes = boxes.sizes[:, -1] * itemsize
    run_nbytes = boxes.sizes[:, outer:-1].prod(axis=1) * row_nbytes
    whole = whole and not (problem.promised and (run_nbytes % WORD_NBYTES).any())
    in_rows = bool((problem.rows.sizes[:, -1] > 1).any())  # rows of one element share words with those beside
    own_words = whole or (problem.own_words and in_rows)
    most = problem.most_blocks
    bounded = bool((boxes.lows > 0).any() or (boxes.highs < boxes.sizes).any())
    order = "apart or reversed" if problem.apart else "contiguous"
    reason = f"window rows ({order}), in vectors of 16 bytes of the output"
    ends = "first and last words of rows that may share them with others"
    for kernel in (Kernel.SIZED_WINDOWS,) if own_words else (Kernel.SIZED_WINDOWS, Kernel.SIZED_ENDS):
        at_ends = kernel is Kernel.SIZED_ENDS
        pieces = Pieces.of(in_bytes, run_rank, row_nbytes, most, aligned, at_ends)
        yield SizedDispatch(
            kernel=kernel,
            source_binding=source,
            target_binding=target,
            share=share_of(problem.limits, len(row_nbytes), 1, most, pieces.total),
            reason=ends if at_ends else reason,
            boxes=in_bytes if bounded else replace(in_bytes, fill=None),
            pieces=pieces,
            element_nbytes=itemsize,
            apart=problem.apart,
            own_words=own_words,
            in_words=problem.in_words,
            device=problem.offsets,
        )


def least_seconds(problem: BoxProblem) -> float:
    """Lower bound of the seconds of the kernel; inf if its cost class is unknown."""
    kind = sized_class(problem.itemsize, apart=problem.apart, in_words=problem.in_words)
    return problem.costs.least_seconds(kind, problem.nbytes)


# buffer copies


def against_copies(problem: BoxProblem) -> Reason | None:
    """Returns why windows are not buffer copies, or None."""
    rows = problem.rows
    if problem.context.table is not None:
        return "the offsets are in device memory"
    if not problem.context.buffer_copies:
        return NO_COPY_USAGE
    if rows.rank > 1:
        return "rows of a window are not contiguous"
    if problem.apart or (rows.lows > 0).any() or (rows.highs < rows.sizes).any():
        return "elements of a window row are apart or outside"
    return None if problem.in_words else f"windows are unaligned to {WORD_NBYTES} bytes"


def copying_seconds(problem: BoxProblem) -> float:
    """Estimated seconds of a buffer copy of each window."""
    costs = problem.costs
    return len(problem.boxes.numbers) * costs.copy_s + problem.nbytes / costs.copy_bytes_per_s


def buffer_copies(problem: BoxProblem) -> Iterator[Step]:
    """Yields a buffer copy of each window, together those of one length."""
    for mask in problem.masks:
        boxes = problem.rows.of(mask)
        read, written = boxes.starts * problem.itemsize
        nbytes = boxes.sizes[:, 0] * problem.itemsize
        yield from copies_by_length(read, written, nbytes, "windows of contiguous words on both sides")


# a clear, and what is inside


def clear_first(problem: BoxProblem) -> Iterator[Step]:
    """Yields a clear of the target, and the fastest steps of the parts of boxes inside of the source."""
    parts = replace(problem, boxes=problem.boxes.clipped(), covered=None)
    if not parts.nbytes:
        yield from problem.clear
    elif inside := choose(parts, BOXES):
        yield from (*problem.clear, *inside.steps)


BOXES: tuple[Strategy[BoxProblem], ...] = (
    Strategy(COPY_PER_WINDOW, against_copies, copying_seconds, buffer_copies),
    Strategy(Kernel.SIZED_WINDOWS.value, lambda problem: problem.against_kernel, least_seconds, kernel_steps),
    Strategy(
        CLEAR_FIRST,
        where(lambda problem: problem.clear),
        lambda problem: seconds_of(problem.clear, problem.costs),
        clear_first,
    ),
    Strategy(
        "window by window",
        where(lambda problem: problem.alone and problem.against_kernel),
        lambda problem: len(problem.boxes.numbers) * min(problem.costs.copy_s, problem.costs.dispatch_s),
        lambda problem: one_by_one(problem, problem.boxes.numbers),
    ),
)

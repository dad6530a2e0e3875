"""The plan that extracts many windows of one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.choose import OTHER, Reason, Strategy, choose, seconds_of
from wgslice.plans.copy import plan_copy
from wgslice.plans.costs import windows_class
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.problem import Terms, span_of
from wgslice.plans.profiles import FAILED, UNKNOWN, Limits
from wgslice.plans.steps import BufferCopies, Span
from wgslice.plans.window_plans import (
    by_copies,
    extracted_elements,
    goes_by_words,
    least_seconds,
    left_out,
    plan_of_windows,
    window_copies,
)
from wgslice.plans.window_rows import Row, deal_blocks, longest_row
from wgslice.plans.windows import Request, WindowRowsDispatch, Windows

__all__ = [
    "EXTRACTIONS",
    "Extraction",
    "check_tables",
    "extract_windows_planner",
    "plan_extract_windows",
]


class Rows(NamedTuple):
    """The dispatches of `window_rows`, and what they leave out."""

    steps: list[WindowRowsDispatch]
    left: int  # the first window that is left out
    hindrance: str  # why it is


def plan_rows(request: Request) -> Rows:
    """Dispatches of `window_rows`, or none.

    Windows are left out whose last vector of 16 bytes the output's buffer has no room for.
    """
    terms, windows = request.terms, request.windows
    tight = "the buffer ends inside a vector of 16 bytes"
    row = longest_row(request)
    hindrance = row.hindrance() or row.hindrance_of_blocks(request.limits.profile, ragged=is_ragged(row))
    if request.tensor.size == 0:
        hindrance = "the input is empty"
    elif Kernel.WINDOW_ROWS in request.limits.distrusted:
        hindrance = hindrance or FAILED
    elif row.work(Kernel.WINDOW_ROWS, ragged=is_ragged(row)) not in request.limits.profile.costs.works:
        hindrance = hindrance or UNKNOWN
    elif request.tensor.stop * request.itemsize > terms.source_room_nbytes:
        hindrance = hindrance or tight
    if hindrance:
        return Rows([], 0, hindrance)
    window_nbytes = prod(windows.sizes) * request.itemsize
    room_nbytes = terms.target_room_nbytes - request.batch.offset * request.itemsize
    stop = windows.count
    if stop * window_nbytes > room_nbytes:
        stop = int(room_nbytes // window_nbytes)
    steps = []
    for first, last in ranges(request, row, window_nbytes, stop):
        found = rows_between(request, row, first, last)
        if found is None:
            ragged = "rows begin or end inside a vector of 16 bytes, and no binding holds the whole input"
            return Rows([], 0, ragged if is_ragged(row) else "no binding holds what a window reads")
        steps += found
    return Rows(steps, stop if steps else 0, tight if stop < windows.count else "no binding holds a window")


def is_ragged(row: Row) -> bool:
    """Whether some row begins or ends inside a block of the output."""
    offset_nbytes = row.request.batch.offset * row.request.itemsize
    return bool(offset_nbytes % WIDEST_NBYTES or row.nbytes % WIDEST_NBYTES)


def ranges(request: Request, row: Row, window_nbytes: int, stop: int) -> Iterator[tuple[int, int]]:
    """The windows before one, as many at a time as a binding of the target and a grid hold."""
    pieces, _ = deal_blocks(row, Kernel.WINDOW_ROWS, request.limits.profile, ragged=is_ragged(row))
    most = min(request.most_nbytes // window_nbytes, request.most_invocations // (row.count * pieces))
    for first in range(0, stop, most) if most else ():
        yield first, min(first + most, stop)


def rows_between(request: Request, row: Row, first: int, stop: int) -> list[WindowRowsDispatch] | None:
    """Dispatches of `window_rows` for some windows; None where it does not apply."""
    groups = source_groups(request, first, stop)
    if groups is None or (is_ragged(row) and len(groups) > 1):
        return None
    pieces, each = deal_blocks(row, Kernel.WINDOW_ROWS, request.limits.profile, ragged=is_ragged(row))
    taken = request.batch.select([range(first, stop), *map(range, request.windows.sizes)])
    span = span_of(taken, request.itemsize, request.limits).in_whole(WIDEST_NBYTES)
    way = "neighbours, forwards and backwards" if row.mirrored else "neighbours"
    return [
        WindowRowsDispatch(
            **row.fields(picks, binding, span),
            ragged=is_ragged(row),
            source_binding=binding.in_whole(WIDEST_NBYTES),
            target_binding=span,
            share=request.share(len(picks), len(picks) * row.count * pieces, pieces, each),
            reason=f"windows, row by row of {way}, in blocks of 16 bytes",
        )
        for picks, binding in groups
    ]


def source_groups(request: Request, first: int, stop: int) -> list[tuple[NDArray[np.uint32], Span]] | None:
    """Windows that a binding of the source holds, with it; None where one is too large for any."""
    numbers = request.windows.numbers[first:stop]
    whole = span_of(request.tensor, request.itemsize, request.limits)
    if whole.nbytes <= request.most_nbytes:
        return [(numbers, whole)]
    if request.windows.offsets is None:
        return None
    lows, highs = reaches(request, request.windows.offsets[first:stop])
    if (highs - lows).max() > request.most_nbytes:
        return None
    order = np.argsort(lows, kind="stable")
    groups = []
    while order.size:
        base = int(lows[order[0]]) // request.limits.binding_alignment_nbytes
        base *= request.limits.binding_alignment_nbytes
        fits = highs[order] <= base + request.binding_nbytes
        together = order[fits]
        nbytes = -(-(int(highs[together].max()) - base) // 4) * 4
        groups.append((np.sort(numbers[together]), Span(base, nbytes)))
        order = order[~fits]
    return groups


def reaches(request: Request, offsets: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first byte that each window reads, and one past the last."""
    lows = np.full(len(offsets), request.tensor.offset, np.int64)
    highs = lows + 1
    for axis, (size, stride) in enumerate(zip(request.tensor.sizes, request.tensor.strides, strict=True)):
        nearest = np.clip(offsets[:, axis].astype(np.int64), 0, size - 1)
        furthest = np.clip(offsets[:, axis].astype(np.int64) + request.windows.extents[axis] - 1, 0, size - 1)
        ends = nearest * stride, furthest * stride
        lows += np.minimum(*ends)
        highs += np.maximum(*ends)
    return lows * request.itemsize, highs * request.itemsize


PICK_NBYTES = 8  # of a window's number and directions


def extract_windows_planner(windows: Windows) -> Planner:
    """`plan_extract_windows` for some windows."""
    return partial(plan_extract_windows, windows)


def plan_extract_windows(
    windows: Windows, source: Layout, target: Layout, itemsize: int, terms: Terms
) -> Plan:
    """Copy windows of a source, in the way that is estimated to take the least time."""
    nbytes = target.size * itemsize
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    check_tables(windows, terms.limits, "extract")
    return plan_of_windows(Extraction(windows, source, target, itemsize, terms), EXTRACTIONS)


@dataclass(frozen=True, eq=False)
class Extraction(Request):
    """Windows to extract, from one of them on."""

    beginning: int = 0

    @cached_property
    def rows(self) -> Rows:
        """What `window_rows` does, or why it does nothing."""
        return plan_rows(self)

    @cached_property
    def copies(self) -> BufferCopies | str:
        """A buffer copy of each window, or why not."""
        return window_copies(self, self.windows.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of the windows."""
        return (self.windows.count - self.beginning) * prod(self.windows.sizes) * self.itemsize


def against_rows(request: Extraction) -> Reason | None:
    """Why windows are not taken in blocks of rows."""
    return None if request.rows.steps else request.rows.hindrance


def rows_seconds(request: Extraction) -> float:
    """Estimated seconds of the blocks of rows."""
    return seconds_of(request.rows.steps, request.limits.profile.costs)


def by_rows(request: Extraction) -> Sequence[Step]:
    """Blocks of rows of some windows, and what the rest takes; no steps where that has no strategy."""
    steps, left, hindrance = request.rows
    if left == request.windows.count:
        return steps
    rest = choose(replace(request, beginning=left), ELEMENTS)
    return [*steps, *left_out(rest, hindrance)] if rest else []


def against_elements(kernel: Kernel, request: Extraction) -> Reason | None:
    """Why windows are not taken element by element, or word by word."""
    if kernel is Kernel.WINDOW_WORDS and not goes_by_words(request):
        return OTHER
    return FAILED if kernel in request.limits.distrusted else None


def elements_seconds(kernel: Kernel, request: Extraction) -> float:
    """Estimated seconds that a dispatch takes at least for its bytes."""
    return least_seconds(
        windows_class(kernel, request.itemsize), request.nbytes, request.limits.profile.costs
    )


def by_elements(kernel: Kernel, request: Extraction) -> Sequence[Step]:
    """The dispatches of a kernel that takes elements, or words."""
    return list(extracted_elements(kernel, request, request.beginning))


def against_one_by_one(request: Extraction) -> Reason | None:
    """Why windows are not planned one by one."""
    windows = request.windows
    inside = windows.offsets is not None and windows.fill is None
    return None if inside and one_is_too_large(request) else OTHER


def steps_seconds(request: Extraction) -> float:
    """Estimated seconds that a step for each window takes at least."""
    costs = request.limits.profile.costs
    return request.windows.count * min(costs.copy_s, costs.dispatch_s)


def one_by_one(request: Extraction) -> Sequence[Step]:
    """Each window, which lies inside the source, as a copy of its own."""
    return list(copies_of_each(request))


ELEMENTS: tuple[Strategy[Extraction], ...] = tuple(
    Strategy(
        kernel.value,
        partial(against_elements, kernel),
        partial(elements_seconds, kernel),
        partial(by_elements, kernel),
    )
    for kernel in (Kernel.WINDOW_WORDS, Kernel.EXTRACT_WINDOWS)
)
EXTRACTIONS: tuple[Strategy[Extraction], ...] = (
    by_copies(),
    Strategy(Kernel.WINDOW_ROWS.value, against_rows, rows_seconds, by_rows),
    *ELEMENTS,
    Strategy("window by window", against_one_by_one, steps_seconds, one_by_one),
)


def check_tables(windows: Windows, limits: Limits, verb: str) -> None:
    """Refuse windows of which no binding holds what says where they are."""
    table_nbytes = windows.count * max(len(windows.extents) * windows.offset_nbytes, PICK_NBYTES)
    if table_nbytes > limits.binding_nbytes:
        raise ValueError(
            f"{windows.count} windows: what says where they are takes {table_nbytes} bytes, a binding "
            f"at most {limits.binding_nbytes}; {verb} fewer at a time"
        )


def one_is_too_large(request: Request) -> bool:
    """Whether no binding holds a window, as it lies in the source or in the target."""
    extents = map(min, request.windows.extents, request.tensor.sizes)
    box = request.tensor.select([range(extent) for extent in extents])
    one = request.batch.select([0, *map(range, request.windows.sizes)])
    return max((side.stop - side.lowest) * request.itemsize for side in (box, one)) > request.most_nbytes


def copies_of_each(request: Request) -> Iterator[Step]:
    """The steps of a copy of each window."""
    windows, offsets = request.windows, request.windows.offsets
    assert offsets is not None
    for number, (begins, flips) in enumerate(zip(offsets.tolist(), windows.flips.tolist(), strict=True)):
        indices = []
        for axis, begin in enumerate(begins):
            last, step, size = windows.extents[axis] - 1, windows.steps[axis], windows.sizes[axis]
            backwards = flips >> axis & 1
            start, stride = (begin + last, -step) if backwards else (begin, step)
            indices.append(range(start, start + size * stride, stride))
        target = request.batch.select([number, *map(range, windows.sizes)])
        yield from plan_copy(request.tensor.select(indices), target, request.itemsize, request.terms).steps

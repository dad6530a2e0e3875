"""The plan that copies many windows of one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import prod

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.choose import OTHER, Reason, Strategy, choose
from wgslice.plans.copy import plan_copy
from wgslice.plans.costs import windows_work
from wgslice.plans.estimates import seconds_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.profiles import FAILED, Limits
from wgslice.plans.steps import BufferCopies
from wgslice.plans.terms import Terms
from wgslice.plans.window_copies import window_copies
from wgslice.plans.window_rows import Rows, plan_rows
from wgslice.plans.windows_elements import extracted_elements, goes_by_words
from wgslice.plans.windows_plan import by_copies, least_seconds, left_out, plan_of_windows
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Windows

__all__ = ["EXTRACTIONS", "Extraction", "check_tables", "extract_windows_planner", "plan_extract_windows"]

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
    return least_seconds(windows_work(kernel, request.itemsize), request.nbytes, request.limits.profile.costs)


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

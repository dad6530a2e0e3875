"""The plan that copies many windows of one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.estimates import seconds_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.profiles import Limits
from wgslice.plans.terms import Terms
from wgslice.plans.ways import Way, cheapest_way
from wgslice.plans.window_rows import Rows, plan_rows
from wgslice.plans.windows_elements import elements_ways
from wgslice.plans.windows_plan import plan_of_windows
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Windows

__all__ = ["check_tables", "extract_windows_planner", "plan_extract_windows"]

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
    request = Request(windows, source, target, itemsize, terms)
    return plan_of_windows(request, windows.numbers, ways(request))


def ways(request: Request) -> Iterator[Way]:
    """The ways for kernels to copy windows: in blocks of rows, by words, by elements, or one by one."""
    costs = request.limits.profile.costs
    rows = plan_rows(request)
    if rows.steps:
        least_s = seconds_of(rows.steps, costs)
        yield Way(Kernel.WINDOW_ROWS.value, least_s, partial(with_rest, request, rows))
    hindrance = "" if rows.steps and rows.left == request.windows.count else rows.hindrance
    yield from elements_ways(request, 0, hindrance)
    if one_is_too_large(request) and request.windows.offsets is not None and request.windows.fill is None:
        least_s = request.windows.count * min(costs.copy_s, costs.dispatch_s)  # a step each
        yield Way("window by window", least_s, partial(one_by_one, request, request.windows.offsets))


def with_rest(request: Request, rows: Rows) -> Iterator[Step]:
    """Rows of some windows, and the cheapest way to copy those that are left; none without such a way."""
    rest = None
    if rows.left < request.windows.count:
        costs = request.limits.profile.costs
        rest = cheapest_way(elements_ways(request, rows.left, rows.hindrance), costs)
        if rest is None:
            return
    yield from rows.steps
    yield from rest.steps if rest else ()


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


def one_by_one(request: Request, offsets: NDArray[np.int32]) -> Iterator[Step]:
    """Each window, which lies inside the source, as a copy of its own."""
    windows = request.windows
    for number, (begins, flips) in enumerate(zip(offsets.tolist(), windows.flips.tolist(), strict=True)):
        indices = []
        for axis, begin in enumerate(begins):
            last, step, size = windows.extents[axis] - 1, windows.steps[axis], windows.sizes[axis]
            backwards = flips >> axis & 1
            start, stride = (begin + last, -step) if backwards else (begin, step)
            indices.append(range(start, start + size * stride, stride))
        target = request.batch.select([number, *map(range, windows.sizes)])
        yield from plan_copy(request.tensor.select(indices), target, request.itemsize, request.terms).steps

"""What tests, the bench and the self-test reach plans by: copies to plan, their plans, plans by a strategy.

They name the parts of a plan by `kernels`, `profiles`, `steps`, `choose`, `plan` and `proofs`; the problems
behind a plan they reach by this module alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from wgslice.layout import Layout
from wgslice.plans.copy import SliceGradPlanner, plan_anew, plan_copy
from wgslice.plans.copy_strategies import DISPATCHES, LEAVING_ENDS, copy_dispatches
from wgslice.plans.index_problem import Indexing, indexed_copy, masked_copy, masked_values, windows_at
from wgslice.plans.index_strategies import (
    COLUMN_EACH,
    READING,
    WindowCopy,
    copy_at_once,
    index_dispatches,
    masked_copy_at_once,
    masked_values_at_once,
    plan_indexing,
)
from wgslice.plans.indexed import Host, IndexedCopy, IndexedDispatch
from wgslice.plans.overlaps import layers_of, meeting
from wgslice.plans.pixels import MAX_PIXEL_BLOCKS, PIXEL_BLOCKS, Pixels, pixels_of
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import (
    LARGEST_BINDING_NBYTES,
    MAX_INVOCATIONS,
    PlanContext,
    Problem,
    Table,
    rebase,
    span_of,
    split,
)
from wgslice.plans.profiles import Limits
from wgslice.plans.window_problem import WindowProblem
from wgslice.plans.window_strategies import WINDOWS, windows_planner
from wgslice.plans.windows import (
    DIMENSION_COLUMNS,
    DROPPED,
    ENDS,
    FIXED_COLUMNS,
    Packing,
    SizedDispatch,
    SizedWindows,
    WindowDispatch,
    Windows,
    sized_class,
)


class Asked(NamedTuple):
    """A copy to plan."""

    planner: Planner
    source: Layout
    target: Layout
    itemsize: int


def copying(source: Layout, target: Layout, itemsize: int) -> Asked:
    """Copy a layout into another of the same sizes."""
    return Asked(plan_copy, source, target, itemsize)


def gradient(
    source: Layout, target: Layout, itemsize: int, taken: tuple[range, ...], *, zeroed: bool = False
) -> Asked:
    """Copy into indices of a target, and zeros everywhere else, unless it is zero already."""
    return Asked(SliceGradPlanner(taken, zeroed), source, target, itemsize)


def extraction(source: Layout, target: Layout, itemsize: int, windows: Windows | SizedWindows) -> Asked:
    """Copy windows out of a tensor, the source, into a batch."""
    return Asked(windows_planner(windows), source, target, itemsize)


def insertion(
    source: Layout,
    target: Layout,
    itemsize: int,
    windows: Windows | SizedWindows,
    overlap: str = "last",
) -> Asked:
    """Copy a batch of windows, the source, into a tensor."""
    return Asked(windows_planner(windows, target.sizes, overlap), source, target, itemsize)


def indexing(
    source: Layout,
    target: Layout,
    itemsize: int,
    copy: IndexedCopy,
) -> Asked:
    """Gather or scatter at indices."""
    return Asked(partial(plan_indexing, copy), source, target, itemsize)


def plan(asked: Asked, limits: Limits, **known: Any) -> Plan:
    """Plan a copy; `known` has what is known of the buffers, by the names of the plan context's fields."""
    return plan_anew(*asked, PlanContext(limits, **known))


def every(plan: Plan) -> Iterator[tuple[str, Plan]]:
    """Yield each applicable strategy, the chosen one first, and the plan by it."""
    return ((choice.name, replace(plan, steps=choice.steps)) for choice in plan.choices)


def forced(plan: Plan, strategy: str) -> Plan:
    """Return a plan by another one of its strategies; raises KeyError if that is not applicable."""
    return dict(every(plan))[strategy]

"""What tests, the bench and the self-test reach plans by: copies to plan, their plans, plans by a strategy.

They name the parts of a plan by `kernels`, `profiles`, `steps`, `choose`, `plan` and `proofs`; the problems
behind a plan they reach by this module alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from wgslice.layout import Layout
from wgslice.plans.copy import SliceGradPlanner, plan_anew, plan_copy
from wgslice.plans.copy_strategies import DISPATCHES as DISPATCHES
from wgslice.plans.copy_strategies import LEAVING_ENDS as LEAVING_ENDS
from wgslice.plans.copy_strategies import copy_dispatches as copy_dispatches
from wgslice.plans.gather import WindowCopy as WindowCopy
from wgslice.plans.gather import indexed_copy as indexed_copy
from wgslice.plans.gather import known_windows as known_windows
from wgslice.plans.gather import masked_copy as masked_copy
from wgslice.plans.gather import masked_values as masked_values
from wgslice.plans.index_problem import Indexing as Indexing
from wgslice.plans.index_strategies import COLUMN_EACH as COLUMN_EACH
from wgslice.plans.index_strategies import READING as READING
from wgslice.plans.index_strategies import copy_at_once as copy_at_once
from wgslice.plans.index_strategies import index_dispatches as index_dispatches
from wgslice.plans.index_strategies import masked_copy_at_once as masked_copy_at_once
from wgslice.plans.index_strategies import masked_values_at_once as masked_values_at_once
from wgslice.plans.index_strategies import plan_indexing
from wgslice.plans.indexed import Host as Host
from wgslice.plans.indexed import IndexedCopy as IndexedCopy
from wgslice.plans.indexed import IndexedDispatch as IndexedDispatch
from wgslice.plans.overlaps import layers_of as layers_of
from wgslice.plans.overlaps import meeting as meeting
from wgslice.plans.pixels import MAX_PIXEL_BLOCKS as MAX_PIXEL_BLOCKS
from wgslice.plans.pixels import PIXEL_BLOCKS as PIXEL_BLOCKS
from wgslice.plans.pixels import Pixels as Pixels
from wgslice.plans.pixels import pixels_of as pixels_of
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import LARGEST_BINDING_NBYTES as LARGEST_BINDING_NBYTES
from wgslice.plans.problem import MAX_INVOCATIONS as MAX_INVOCATIONS
from wgslice.plans.problem import PlanContext as PlanContext
from wgslice.plans.problem import Problem as Problem
from wgslice.plans.problem import Table as Table
from wgslice.plans.problem import rebase as rebase
from wgslice.plans.problem import span_of as span_of
from wgslice.plans.problem import split as split
from wgslice.plans.profiles import Limits
from wgslice.plans.window_problem import WindowProblem as WindowProblem
from wgslice.plans.window_strategies import WINDOWS as WINDOWS
from wgslice.plans.window_strategies import scratch_of as scratch_of
from wgslice.plans.window_strategies import windows_planner
from wgslice.plans.window_strategies import with_steps as with_steps
from wgslice.plans.windows import DIMENSION_COLUMNS as DIMENSION_COLUMNS
from wgslice.plans.windows import DROPPED as DROPPED
from wgslice.plans.windows import ENDS as ENDS
from wgslice.plans.windows import FIXED_COLUMNS as FIXED_COLUMNS
from wgslice.plans.windows import Packing as Packing
from wgslice.plans.windows import SizedDispatch as SizedDispatch
from wgslice.plans.windows import SizedWindows as SizedWindows
from wgslice.plans.windows import WindowDispatch as WindowDispatch
from wgslice.plans.windows import Windows as Windows
from wgslice.plans.windows import sized_class as sized_class


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
    return ((choice.name, with_steps(plan, choice.steps)) for choice in plan.choices)


def forced(plan: Plan, strategy: str) -> Plan:
    """Return a plan by another one of its strategies; raises KeyError if that is not applicable."""
    return dict(every(plan))[strategy]

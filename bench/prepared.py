"""Cases ready to run: filled buffers, the expected output, and the plan by a given cost model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.cases import Case
from bench.compilers.planned import windows_planner
from bench.rivals.ours import device
from bench.tasks import Crops, Inserts
from wgslice.gpu.protocols import Place
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext, rebase
from wgslice.plans.profiles import Costs

__all__ = ["Prepared", "prepared"]


@dataclass(frozen=True)
class Prepared:
    """A case with its buffers, to run by any strategy."""

    places: Sequence[Place]  # what is read and what is written
    target: wg.Tensor  # what is written, zeros before
    expected: NDArray[Any]
    plan: Callable[[Costs], Plan]


def prepared(case: Case) -> Prepared:
    """Make the buffers of a case."""
    array, work = case.array(), case.work
    x = wg.asarray(array, device=device)
    expected = np.ascontiguousarray(work.of(array))
    target = wg.empty(expected.shape, expected.dtype, device=device)
    if isinstance(work, Crops | Inserts):
        planner, layouts = windows_planner(case), (x.layout, target.layout)
        places = [Place(x.buffer), Place(target.buffer)]
        return Prepared(
            places, target, expected, lambda costs: planner(*layouts, case.itemsize, terms_of(costs))
        )
    view = wg.permute(x, work.axes)[case.key]
    read = rebase(view.layout, view.dtype.itemsize, device.limits)

    def plan(costs: Costs) -> Plan:
        context = terms_of(costs)._replace(source_capacity_nbytes=read.capacity_nbytes(x.buffer.size))
        return plan_copy(read.layout, target.layout, view.dtype.itemsize, context)

    return Prepared([Place(x.buffer, read.base), Place(target.buffer)], target, expected, plan)


def terms_of(costs: Costs) -> PlanContext:
    """Return the device's limits with another cost model."""
    return PlanContext(replace(device.limits, profile=replace(device.limits.profile, costs=costs)))

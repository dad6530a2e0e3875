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
from wgslice.plans.facade import Asked, copying, plan, rebase
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Costs, Limits

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
            places,
            target,
            expected,
            lambda costs: plan(Asked(planner, *layouts, case.itemsize), limits_of(costs)),
        )
    view = wg.permute(x, work.axes)[case.key]
    read = rebase(view.layout, view.dtype.itemsize, device.limits)

    def planned(costs: Costs) -> Plan:
        asked, held = copying(read.layout, target.layout, view.dtype.itemsize), x.buffer.size
        return plan(asked, limits_of(costs), source_capacity_nbytes=read.capacity_nbytes(held))

    return Prepared([Place(x.buffer, read.base), Place(target.buffer)], target, expected, planned)


def limits_of(costs: Costs) -> Limits:
    """Return the device's limits with another cost model."""
    return replace(device.limits, profile=replace(device.limits.profile, costs=costs))

"""How long steps take, by what work costs on their adapter."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import TypeAlias

from wgslice.plans.costs import Costs
from wgslice.plans.steps import BufferCopies, Clear, Dispatch
from wgslice.plans.windows_steps import WindowDispatch

__all__ = ["Step", "seconds_of"]

Step: TypeAlias = Clear | BufferCopies | Dispatch | WindowDispatch


def seconds_of(steps: Iterable[Step], costs: Costs) -> float:
    """Estimated seconds of steps, beside those of the submission that they share."""
    return sum(step_seconds(step, costs) for step in steps)


def step_seconds(step: Step, costs: Costs) -> float:
    """Estimated seconds of one step."""
    if isinstance(step, Clear):
        return costs.copy_s + step.nbytes / costs.clear_bytes_per_s
    if isinstance(step, BufferCopies):
        return step.source.size * (costs.copy_s + step.nbytes / costs.copy_bytes_per_s)
    work = costs.works[step.work]
    invocations = prod(step.share.workgroups) * step.share.workgroup_size
    return costs.dispatch_s + invocations * (work.invocation_s + step.invocation_nbytes / work.bytes_per_s)

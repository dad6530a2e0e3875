"""The plan of many windows, by the way that is estimated to take the least time."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from wgslice.errors import NoKernelError
from wgslice.plans.estimates import Step
from wgslice.plans.insert_bands import Numbers
from wgslice.plans.plan import Plan, in_order
from wgslice.plans.profiles import untrusted
from wgslice.plans.steps import Memory
from wgslice.plans.ways import Way, by_estimate, cheapest_and_others
from wgslice.plans.window_copies import copies_way
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import WindowDispatch

__all__ = ["claims_scratch", "plan_of_windows"]


def plan_of_windows(request: Request, numbers: Numbers, ways: Iterable[Way]) -> Plan:
    """The plan for some windows: by a buffer copy each, if that is possible, or by one of the kernels' ways.

    Buffer copies run in their order, so that of windows that overlap the last one wins.
    """
    costs, copies = request.limits.profile.costs, copies_way(request, numbers)
    found = [*([copies] if copies else []), *ways]
    chosen, others = cheapest_and_others(found, costs)
    if chosen is None:
        raise NoKernelError(untrusted(f"windows of sizes {request.windows.sizes}", request.limits))
    sides = request.tensor, request.batch
    source, target = reversed(sides) if request.inserts else sides
    return Plan(
        request.batch.size * request.itemsize,
        request.itemsize,
        request.itemsize,
        source,
        target,
        in_order(chosen.steps),
        claims_scratch(chosen.steps),
        costs=costs,
        alternatives_of=partial(by_estimate, found, costs),
        others=others,
    )


def claims_scratch(steps: Iterable[Step]) -> tuple[tuple[Memory, int], ...]:
    """The buffer of claims that some steps need, if they do, and its bytes."""
    claims = [step.claims for step in steps if isinstance(step, WindowDispatch) and step.claims]
    return ((Memory.CLAIMS, max(each.span.nbytes for each in claims)),) if claims else ()

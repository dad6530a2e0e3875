"""The plan of many windows, by the strategy of the least estimated time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Protocol, TypeVar

from wgslice.errors import NoKernelError
from wgslice.plans.choose import Choice, Reason, Strategy, choose
from wgslice.plans.costs import Costs
from wgslice.plans.estimates import Step, seconds_of
from wgslice.plans.plan import COPY_PER_WINDOW, Plan, in_order
from wgslice.plans.profiles import Limits, untrusted
from wgslice.plans.steps import BufferCopies, Memory
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import WindowDispatch

__all__ = ["by_copies", "claims_scratch", "least_seconds", "left_out", "plan_of_windows"]


class Copied(Protocol):
    """Windows that may go by a buffer copy each."""

    @property
    def limits(self) -> Limits:
        """The device's."""

    @property
    def copies(self) -> BufferCopies | str:
        """A buffer copy of each window, in their order: the last one stays; or why not."""


R = TypeVar("R", bound=Request)
C = TypeVar("C", bound=Copied)


def by_copies() -> Strategy[C]:
    """The row of a buffer copy of each window."""
    return Strategy(COPY_PER_WINDOW, against_copies, copies_seconds, window_copies_of)


def against_copies(request: Copied) -> Reason | None:
    """Why windows do not go by a buffer copy each."""
    return request.copies if isinstance(request.copies, str) else None


def copies_seconds(request: Copied) -> float:
    """Estimated seconds of a buffer copy of each."""
    return seconds_of(window_copies_of(request), request.limits.profile.costs)


def window_copies_of(request: Copied) -> Sequence[Step]:
    """A buffer copy of each."""
    return [] if isinstance(request.copies, str) else [request.copies]


def least_seconds(work: str, nbytes: float, costs: Costs) -> float:
    """Estimated seconds that a dispatch of a cost class takes at least for its bytes; inf where unknown."""
    known = costs.works.get(work)
    return costs.dispatch_s + nbytes / known.bytes_per_s if known else inf


def left_out(rest: Choice, hindrance: str) -> list[Step]:
    """The steps for windows that another strategy leaves out, and why it does."""
    return [
        replace(step, reason=f"{step.reason}; left out of blocks: {hindrance}")
        for step in rest.steps
        if isinstance(step, WindowDispatch)
    ]


def plan_of_windows(request: R, strategies: Sequence[Strategy[R]]) -> Plan:
    """The plan for some windows by the strategy of the least estimated time."""
    choice = choose(request, strategies)
    if choice is None:
        raise NoKernelError(untrusted(f"windows of sizes {request.windows.sizes}", request.limits))
    sides = request.tensor, request.batch
    source, target = reversed(sides) if request.inserts else sides
    return Plan(
        request.batch.size * request.itemsize,
        request.itemsize,
        request.itemsize,
        source,
        target,
        in_order(choice.steps),
        claims_scratch(choice.steps),
        costs=request.limits.profile.costs,
        choice=choice,
    )


def claims_scratch(steps: Iterable[Step]) -> tuple[tuple[Memory, int], ...]:
    """The buffer of claims that some steps need, if they do, and its bytes."""
    claims = [step.claims for step in steps if isinstance(step, WindowDispatch) and step.claims]
    return ((Memory.CLAIMS, max(each.span.nbytes for each in claims)),) if claims else ()

"""The plan of a slice's gradient: the window receives it, everything else zeros, each byte once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache, partial
from math import inf

from wgslice.layout import Layout, coalesce
from wgslice.plans.choosing import Choice
from wgslice.plans.copy import fills, plan_copy
from wgslice.plans.estimates import seconds_of
from wgslice.plans.plan import Plan, Planner, Step, in_order
from wgslice.plans.profiles import MOST_PLANS
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory
from wgslice.plans.terms import Terms

__all__ = ["plan_slice_grad", "slice_grad_planner"]


@lru_cache(maxsize=MOST_PLANS)
def slice_grad_planner(taken: tuple[range, ...], *, zeroed: bool) -> Planner:
    """`plan_slice_grad` for the target's indices that receive the gradient; equal ones share a planner."""
    return partial(plan_slice_grad, taken, zeroed)


@lru_cache(maxsize=MOST_PLANS)
def plan_slice_grad(
    taken: tuple[range, ...], zeroed: bool, source: Layout, target: Layout, itemsize: int, terms: Terms
) -> Plan:
    """Copy a source into indices of the target, and zeros everywhere else, unless it is zero already."""
    inside = plan_copy(source, target.select(taken), itemsize, terms)
    if zeroed:
        return inside
    steps = in_order((*inside.steps, *zeros(taken, target, itemsize, terms)))
    others = partial(alternatives, inside, taken, target, itemsize, terms)
    return replace(inside, nbytes=target.size * itemsize, steps=steps, alternatives_of=others)


def alternatives(
    inside: Plan, taken: tuple[range, ...], target: Layout, itemsize: int, terms: Terms
) -> list[Choice]:
    """A clear of everything first, where that is possible, and each byte once; the cheaper one first."""
    costs = terms.limits.profile.costs
    ways = {"each byte once": writes_of_zeros(taken, target, itemsize, terms, inf) or ()}
    cleared = clear_of(taken, target, itemsize, terms)
    if cleared:
        ways["a clear first"] = cleared
    choices = [
        Choice(name, steps, seconds_of(steps, costs))
        for name, zeros in ways.items()
        for steps in [in_order((*inside.steps, *zeros))]
    ]
    return sorted(choices, key=lambda choice: choice.seconds)


def zeros(taken: tuple[range, ...], target: Layout, itemsize: int, terms: Terms) -> tuple[Step, ...]:
    """The cheaper way to write the zeros."""
    cleared = clear_of(taken, target, itemsize, terms)
    most_s = seconds_of(cleared, terms.limits.profile.costs) if cleared else inf
    written = writes_of_zeros(taken, target, itemsize, terms, most_s)
    return cleared if written is None else written


def clear_of(taken: tuple[range, ...], target: Layout, itemsize: int, terms: Terms) -> tuple[Step, ...]:
    """The clear of everything, where there is something to clear, and that does it."""
    cleared = cleared_span(target, itemsize)
    outsides = any(True for _ in complement(target, taken))
    return (cleared,) if cleared and outsides and terms.copy_to else ()


def writes_of_zeros(
    taken: tuple[range, ...], target: Layout, itemsize: int, terms: Terms, most_s: float
) -> tuple[Step, ...] | None:
    """What writes zeros wherever nothing else is; None where that takes longer."""
    of_pattern = terms._replace(copy_from=True, source_room_nbytes=inf)
    steps: list[Step] = []
    seconds = 0.0
    for outside in complement(target, taken):
        for pattern, piece in fills(outside, itemsize):
            added = [of_zeros(step) for step in plan_copy(pattern, piece, itemsize, of_pattern).steps]
            steps += added
            seconds += seconds_of(added, terms.limits.profile.costs)
            if seconds > most_s:
                return None
    return tuple(steps)


def of_zeros(step: Step) -> Step:
    """The same copy, of zeros."""
    assert isinstance(step, BufferCopies | Dispatch)  # what copies are made of
    return replace(step, reads=Memory.ZEROS)


def cleared_span(target: Layout, itemsize: int) -> Clear | None:
    """The clear of all of a target, where its elements and nothing else lie in whole words."""
    _, merged = coalesce(target, target)
    start, nbytes = merged.offset * itemsize, merged.size * itemsize
    gapless = merged.rank == 0 or merged.strides == (1,)
    return Clear(start, nbytes) if gapless and start % 4 == nbytes % 4 == 0 else None


def complement(target: Layout, taken: tuple[range, ...]) -> Iterator[Layout]:
    """Everything of a target but the indices that are taken of it, each element in exactly one layout.

    Dimension by dimension: what lies before the indices, behind them, and between two of their steps,
    over all of the dimensions after it, and of those before it what is taken.
    """
    for axis, indices in enumerate(taken):
        (low, high), step = sorted((indices[0], indices[-1])), abs(indices.step)
        after = [range(size) for size in target.sizes[axis + 1 :]]
        for around in (range(low), range(high + 1, target.sizes[axis])):
            if around:
                yield target.select([*taken[:axis], around, *after])
        if step > 1 and len(indices) > 1:
            firsts = target.select([*taken[:axis], range(low, high, step), *after])
            stride = target.strides[axis]
            yield Layout.of((*firsts.sizes, step - 1), (*firsts.strides, stride), firsts.offset + stride)

"""Ways to copy windows, and the cheapest of them by what their steps are estimated to take."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from wgslice.plans.choosing import WORTHWHILE, Choice
from wgslice.plans.costs import Costs
from wgslice.plans.estimates import Estimate, Step, seconds_of

__all__ = ["Way", "by_estimate", "cheapest_and_others", "cheapest_way", "least_seconds"]


class Way(NamedTuple):
    """A way to copy some windows."""

    name: str
    least_s: float  # that it takes, as far as its bytes say
    steps: Callable[[], Iterable[Step]]  # which take a while to make, and may turn out to be none

    def choice(self, costs: Costs) -> Choice | None:
        """Its steps, and what they take; None where there are none."""
        steps = tuple(self.steps())
        return Choice(self.name, steps, seconds_of(steps, costs)) if steps else None


def least_seconds(work: str, nbytes: float, costs: Costs) -> float | None:
    """What a dispatch of a class of work takes at least for so many bytes; None where its cost is unknown."""
    known = costs.works.get(work)
    return costs.dispatch_s + nbytes / known.bytes_per_s if known else None


def cheapest_way(ways: Iterable[Way], costs: Costs) -> Choice | None:
    """The way of the least estimated time; None where there is none."""
    return cheapest_and_others(ways, costs)[0]


def cheapest_and_others(ways: Iterable[Way], costs: Costs) -> tuple[Choice | None, tuple[Estimate, ...]]:
    """The way of the least estimated time, if there is one, and the estimates of the others.

    The steps of a way are planned only if its lower bound is less than a worthwhile share of the best
    estimate; of other ways the lower bound is returned.
    """
    best: Choice | None = None
    others: list[Estimate] = []
    for way in sorted(ways, key=lambda way: way.least_s):
        if best is not None and way.least_s >= WORTHWHILE * best.seconds:
            others.append(Estimate(way.name, way.least_s, is_bound=True))
            continue
        choice = way.choice(costs)
        if choice is None:
            continue
        better, worse = (choice, best) if best is None or choice.seconds < best.seconds else (best, choice)
        best = better
        if worse is not None:
            others.append(Estimate(worse.name, worse.seconds))
    return best, tuple(others)


def by_estimate(ways: Sequence[Way], costs: Costs) -> list[Choice]:
    """Every way: what is chosen, then the others by what they are estimated to take."""
    chosen = cheapest_way(ways, costs)
    found = [choice for way in ways for choice in [way.choice(costs)] if choice]
    others = [choice for choice in found if chosen and choice.name != chosen.name]
    return [chosen, *sorted(others, key=lambda choice: choice.seconds)] if chosen else []

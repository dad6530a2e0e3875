"""What turns of the same timings say together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TypeAlias

__all__ = ["Timed", "typical"]

Timed: TypeAlias = tuple[str, int]  # a class of work, or what all work needs, and which of its copies


def typical(turns: Sequence[Mapping[Timed, float]]) -> dict[Timed, float]:
    """The median over turns of each timing, as if all turns had found the machine equally busy.

    The first turn is whole; the last one may be cut short. How much busier a turn was than others is the
    median of what its timings took more than they typically do: what slows a whole turn moves no figure
    beside another, and what slows a single timing moves none at all while most turns are spared.
    """
    middle = {timed: median(turn[timed] for turn in turns if timed in turn) for timed in turns[0]}
    evened = []
    for turn in turns:
        busier = median(seconds / middle[timed] for timed, seconds in turn.items())
        evened.append({timed: seconds / busier for timed, seconds in turn.items()})
    return {timed: median(turn[timed] for turn in evened if timed in turn) for timed in middle}

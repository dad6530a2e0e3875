"""Trials that share pipelines, since compiling takes most of the time that a self-test takes."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from itertools import combinations

from wgslice.doctor.trials import Trial
from wgslice.shaders.uniforms import override_constants

__all__ = ["constants_of", "with_few_pipelines"]

Constants = tuple[tuple[str, int], ...]


def constants_of(trial: Trial) -> Constants:
    """What the kernel of a trial is compiled with."""
    return tuple(override_constants(trial.step).items())


def with_few_pipelines(trials: Iterable[Trial], most: int) -> list[Trial]:
    """The trials of a kernel that so many of its pipelines take: those in which most pairs of constants meet.

    Faults hide in one constant, or in how two go together, much more often than in three. Each value of each
    constant is tried, even if that takes more pipelines.
    """
    found: defaultdict[Constants, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[constants_of(trial)].append(trial)
    unseen = [{met for constants in found for met in combinations(constants, count)} for count in (1, 2)]
    taken: list[Constants] = []

    def gain(constants: Constants) -> list[int]:
        return [len(missing.intersection(combinations(constants, n))) for n, missing in enumerate(unseen, 1)]

    while unseen[0] or (unseen[1] and len(taken) < most):
        taken.append(max(found, key=gain))
        for count, missing in enumerate(unseen, 1):
            missing.difference_update(combinations(taken[-1], count))
    return [trial for constants in taken for trial in found[constants]]

"""Changes by a measured cost model: strategies and estimated times of typical slices."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import NamedTuple

import numpy as np

from wgslice.layout import Layout
from wgslice.plans.choose import compiling_seconds, seconds_of
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext
from wgslice.plans.profiles import Limits, Profile
from wgslice.plans.steps import Dispatch

ITEMSIZES, EXTENTS, CHANNELS = (1, 2, 4, 8), (64, 512, 2048), 3
KEYS = (np.s_[1:, 1:], np.s_[8:-8, 16:-16], np.s_[::2, :], np.s_[:, ::2], np.s_[::-1, :], np.s_[:, ::-1])


class Verdict(NamedTuple):
    """The effect of replacing one cost model by another on typical slices."""

    slices: int
    changed: int  # of them, planned by another strategy
    speedup: float  # geometric mean over the changed ones, estimated by the new cost model

    def __str__(self) -> str:
        if not self.changed:
            return f"0 of {self.slices} typical slices use another strategy than with the shipped cost model"
        return (
            f"{self.changed} of {self.slices} typical slices now use another strategy; "
            f"those are estimated {self.speedup:.2f}x faster"
        )


def verdict(shipped: Profile, tuned: Profile) -> Verdict:
    """Plan typical slices by both cost models and compare the strategies; runs nothing."""
    from statistics import geometric_mean  # a fiftieth of a first slice's time

    slices, speedups = [*typical_slices()], list[float]()
    for source, itemsize in slices:
        target = Layout.packed(source.sizes)
        before, after = (
            plan_copy(source, target, itemsize, PlanContext(Limits(profile=profile)))
            for profile in (shipped, tuned)
        )
        if before.choice and after.choice and before.choice.name != after.choice.name:
            speedups.append(seconds(before, tuned) / seconds(after, tuned))
    return Verdict(len(slices), len(speedups), geometric_mean(speedups) if speedups else 1.0)


def seconds(plan: Plan, profile: Profile) -> float:
    """Estimate a plan's time with its share of compiling a kernel, as the planner compares strategies."""
    first, costs = plan.steps[0], profile.costs
    compiling_s = compiling_seconds(first.kernel, profile) if isinstance(first, Dispatch) else 0.0
    return costs.submission_s + seconds_of(plan.steps, costs) + compiling_s


def typical_slices() -> Iterator[tuple[Layout, int]]:
    """Yield layouts and bytes per element: crops, steps, flips and transposes of matrices and images."""
    for extent, itemsize in product(EXTENTS, ITEMSIZES):
        matrix = Layout.packed((extent, extent))
        for key in KEYS:
            yield matrix.select([range(extent)[part] for part in key]), itemsize
        yield Layout.of(matrix.sizes, matrix.strides[::-1]), itemsize
        if itemsize == 1:
            image = Layout.packed((extent, extent, CHANNELS))
            rows, channels = range(extent), range(CHANNELS)
            yield image.select([rows[1:], rows[1:], channels]), 1
            yield image.select([rows, rows, channels[::-1]]), 1  # RGB to BGR

"""Changes by a measured cost model: strategies and estimated times of typical slices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

import numpy as np

from wgslice.layout import Layout
from wgslice.plans.choose import compiling_seconds, seconds_of
from wgslice.plans.copy import plan_copy
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext
from wgslice.plans.profiles import Limits, Profile
from wgslice.plans.steps import Dispatch

ITEMSIZES, EXTENTS, CHANNELS = (1, 2, 4, 8, 16), (64, 512, 2048), (3, 4)
KEYS = (
    *(np.s_[1:, 1:], np.s_[8:-8, 16:-16], np.s_[::2, :], np.s_[:, ::2], np.s_[:, ::4]),
    *(np.s_[::-1, :], np.s_[:, ::-1]),
)


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
    count, speedups = 0, list[float]()
    for extent, itemsize in product(EXTENTS, ITEMSIZES):
        for source in typical_slices(extent, itemsize):
            target = Layout.packed(source.sizes)
            before, after = (
                plan_copy(source, target, itemsize, PlanContext(Limits(profile=profile)))
                for profile in (shipped, tuned)
            )
            count += 1
            if before.choice and after.choice and before.choice.name != after.choice.name:
                speedups.append(seconds(before, tuned) / seconds(after, tuned))
    return Verdict(count, len(speedups), geometric_mean(speedups))


def geometric_mean(values: Sequence[float]) -> float:
    """Return the geometric mean of positive values; 1 of none."""
    return float(prod(value ** (1 / len(values)) for value in values))


def seconds(plan: Plan, profile: Profile) -> float:
    """Estimate a plan's time with its share of compiling a kernel, as the planner compares strategies."""
    first, costs = plan.steps[0], profile.costs
    compiling_s = compiling_seconds(first.kernel, profile) if isinstance(first, Dispatch) else 0.0
    return costs.submission_s + seconds_of(plan.steps, costs) + compiling_s


def typical_slices(extent: int, itemsize: int) -> Iterator[Layout]:
    """Yield crops, steps, flips and transposes of a matrix, and of as large images of small elements."""
    matrix = Layout.packed((extent, extent))
    yield from (matrix.select([range(extent)[part] for part in key]) for key in KEYS)
    yield matrix.permuted((1, 0))
    for count in CHANNELS if itemsize < WORD_NBYTES else ():
        rows, columns, channels = range(extent // count), range(extent), range(count)
        pixels, planes = Layout.packed((len(rows), extent, count)), Layout.packed((count, len(rows), extent))
        yield pixels.select([rows[1:], columns[1:], channels])
        yield pixels.select([rows, columns, channels[::-1]])  # RGB to BGR
        yield pixels.permuted((2, 0, 1))
        yield planes.permuted((1, 2, 0))

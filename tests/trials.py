"""Trials of the self-test: all of a kernel's, and self-tests that run some of them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from itertools import chain
from typing import Any

import pytest
from helpers import Bytes
from hypothesis import settings

from wgslice.doctor import selftest
from wgslice.doctor.copies import copy_trials
from wgslice.doctor.indexing import index_trials
from wgslice.doctor.trials import Trial, with_few_pipelines
from wgslice.doctor.windows import window_trials
from wgslice.gpu.pipelines import KernelCall, kernel_call
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits
from wgslice.plans.steps import OnGrid

__all__ = [
    "Trial",
    "by_kernel",
    "no_change",
    "of_the_tier",
    "pipelines",
    "thinned",
    "trials_of",
    "trying",
    "with_few_pipelines",
]

by_kernel, thinned = selftest.by_kernel, selftest.thinned


def no_change(_: Bytes, before: Bytes) -> Bytes:
    """The bytes that a trial must write, which only self-tests use."""
    return before


@cache
def trials_of(limits: Limits) -> dict[Kernel, list[Trial]]:
    """The trials of kernels that copy, and of windows, by kernel."""
    return by_kernel([*copy_trials(limits), *window_trials(limits)], limits)


def of_the_tier(trials: Collection[Trial]) -> Iterable[Trial]:
    """Trials of as many pipelines as the tier has (7, 30, 300): all, or those of most pairs of constants.

    To compile one takes 0.1 to 0.3 s, which is most of the time that trials take.
    """
    most = settings().max_examples // 2
    enough = len({trial.constants for trial in trials}) <= most
    return trials if enough else with_few_pipelines(trials, most)


def few_of_the_tier(trials: Collection[Trial]) -> list[Trial]:
    """Trials of as few pipelines as have every constant; of 12 and 120 in the tiers of more examples."""
    return with_few_pipelines(trials, settings().max_examples // 5)


@contextmanager
def trying(kernels: Collection[Kernel]) -> Iterator[None]:
    """Restrict self-tests to some kernels, and to a part of the trials: compiling takes most time."""

    def some(every: Iterable[Trial], limits: Limits) -> dict[Kernel, list[Trial]]:
        return {kernel: found for kernel, found in by_kernel(every, limits).items() if kernel in kernels}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selftest, "by_kernel", some)
        patch.setattr(selftest, "MAX_PIPELINES_IN_SOFTWARE", 1)
        yield


def pipelines() -> Iterator[KernelCall]:
    """Every pipeline that trials of the self-test have in plans for GPUs and for CPUs."""
    found: dict[Any, KernelCall] = {}
    for limits in (Limits(profile=GPU), Limits(profile=CPU)):
        trials = chain.from_iterable(made(limits) for made in (copy_trials, index_trials, window_trials))
        for step in chain.from_iterable(trial.plan.steps for trial in trials):
            if isinstance(step, OnGrid):
                call = kernel_call(step)
                found.setdefault((call.module, call.constants, call.types), call)
    yield from found.values()

"""Self-tests of some kernels, by as few pipelines as have every constant: compiling takes most time."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager

import pytest

from wgslice.doctor import trials
from wgslice.doctor.selftest import by_kernel
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits

__all__ = ["trying"]


@contextmanager
def trying(kernels: Collection[Kernel]) -> Iterator[None]:
    """Restrict self-tests to some kernels, and to a part of the trials that they run otherwise."""

    def some(every: Iterable[trials.Trial], limits: Limits) -> dict[Kernel, list[trials.Trial]]:
        return {kernel: found for kernel, found in by_kernel(every, limits).items() if kernel in kernels}

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgslice.doctor.selftest.by_kernel", some)
        patch.setattr("wgslice.doctor.selftest.MOST_PIPELINES_IN_SOFTWARE", 1)
        yield

"""wgslice's windows and gradients, by their operators and by others."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.rivals.ours import Clocked, Loop, describe, device
from bench.tasks import Crops, Gradient, Inserts
from wgslice.dialects.basic import numpy_index
from wgslice.plans.facade import gradient, plan
from wgslice.plans.profiles import Profile

__all__ = [
    "Cleared",
    "Extract",
    "ExtractBack",
    "ExtractOnGpu",
    "Insert",
    "SliceGrad",
    "SliceLoop",
    "WrittenOnce",
    "describe",
]


class Extract(Clocked):
    """`extract_windows` with its offsets in an array, and `out` given."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        self.x = wg.asarray(array, device=device)
        self.sizes = crops.sizes(array.shape)[1:]
        self.offsets: Any = crops.offsets(array.shape)
        self.strides = crops.directions(array.ndim)
        self.out = wg.empty((crops.count, *self.sizes), array.dtype, device=device)

    def start(self) -> None:
        """Extract."""
        wg.extract_windows(self.x, self.offsets, self.sizes, self.strides, out=self.out)


class ExtractOnGpu(Extract):
    """`extract_windows` with device-resident offsets."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        super().__init__(array, crops)
        self.offsets = wg.asarray(self.offsets.astype(np.int32), device=device)


class SliceLoop(Loop, Extract):
    """A call of `slice1` for each window."""

    def start(self) -> None:
        """Slice."""
        for number, (offset, stride) in enumerate(zip(self.offsets, self.strides, strict=True)):
            wg.slice1(self.x, offset, self.sizes, stride, out=self.out[number])


class Insert(Clocked):
    """`insert_windows` with its offsets in an array."""

    def __init__(self, array: NDArray[Any], inserts: Inserts) -> None:
        self.batch = wg.asarray(array, device=device)
        self.out = wg.asarray(np.zeros(inserts.shape, array.dtype), device=device)
        self.offsets: Any = inserts.crops.offsets(inserts.shape)
        self.strides = inserts.crops.directions(len(inserts.shape))

    def start(self) -> None:
        """Write."""
        wg.insert_windows(self.out, self.offsets, self.batch, self.strides, overlap="last")


class ExtractBack(Extract):
    """The same windows cut out again, by `extract_windows`."""

    def __init__(self, array: NDArray[Any], inserts: Inserts) -> None:
        super().__init__(inserts.of(array), inserts.crops)
        self.inserts = inserts

    def result(self) -> NDArray[Any]:
        """Return the windows of the last run, inserted again."""
        return self.inserts.of(super().result())


class SliceGrad(Clocked):
    """`slice_grad` with `out` given."""

    profile = device.limits.profile

    def __init__(self, array: NDArray[Any], gradient: Gradient) -> None:
        self.g = wg.asarray(array, device=device)
        self.shape, self.taken = gradient.shape, gradient.taken
        window = numpy_index(gradient.shape, gradient.key).window
        self.window = window.offsets, window.sizes, window.strides
        self.out = wg.asarray(np.ones(gradient.shape, array.dtype), device=device)
        self.limits = replace(device.limits, profile=self.profile)

    def start(self) -> None:
        """Write."""
        device.limits = self.limits
        wg.slice_grad(self.g, *self.window, output_sizes=self.shape, out=self.out)

    def note(self) -> str:
        """The plan in a line."""
        sides = self.g.layout, self.out.layout
        return plan(gradient(*sides, self.g.dtype.itemsize, self.taken), self.limits).summary


def with_costs(**parameters: Any) -> Profile:
    """The device's profile, with other cost parameters."""
    profile = device.limits.profile
    return replace(profile, costs=replace(profile.costs, **parameters))


class Cleared(SliceGrad):
    """The same, cleared and then written."""

    profile = with_costs(copy_s=0, clear_bytes_per_s=inf)


class WrittenOnce(SliceGrad):
    """The same, each byte written once."""

    profile = with_costs(clear_bytes_per_s=1)

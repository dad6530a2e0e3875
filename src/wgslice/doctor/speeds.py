"""How fast a device copies: whole buffers, rows in vectors and from any byte, permuted sources, pixels."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter
from typing import NamedTuple

import numpy as np

from wgslice.gpu.device import Device
from wgslice.operators.explain import explain
from wgslice.tensors.creation import empty
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.transfer import copyto
from wgslice.tensors.views import permute

__all__ = ["Speed", "speeds_of"]

REPEATS = 5


class Copying(NamedTuple):
    """A copy of 16 MiB and a little less: of what, and which part of it."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    part: Callable[[Tensor], Tensor]


COPIES = (
    Copying("buffer copy", (2048, 2048), "float32", lambda x: x),
    Copying("aligned rows", (4096, 1040), "float32", lambda x: x[:, 8:1032]),
    Copying("unaligned rows", (4096, 4113), "uint8", lambda x: x[:, 3:4099]),
    Copying("permuted", (2048, 2048), "float32", lambda x: permute(x, (1, 0))),
    Copying("pixels, RGB to BGR", (2048, 2730, 3), "uint8", lambda x: x[..., ::-1]),
)


class Speed(NamedTuple):
    """How fast one copy is."""

    name: str
    plan: str  # in a line
    nbytes: int  # that are written
    seconds: float  # of the quickest, with the wait

    @property
    def gigabytes_per_s(self) -> float:
        """What is written a second."""
        return self.nbytes / self.seconds / 1e9


def speeds_of(device: Device) -> tuple[Speed, ...]:
    """All of them on a device."""
    return tuple(speed_of(device, copying) for copying in COPIES)


def speed_of(device: Device, copying: Copying) -> Speed:
    """The best of a few, after one that compiles and touches the memory."""
    part = copying.part(empty(copying.shape, copying.dtype, device=device))
    target = empty(part.shape, np.dtype(copying.dtype), device=device)
    seconds = []
    for _ in range(1 + REPEATS):
        device.synchronize()
        start = perf_counter()
        copyto(target, part)
        device.synchronize()
        seconds.append(perf_counter() - start)
    return Speed(copying.name, explain(part).summary, target.nbytes, min(seconds[1:]))

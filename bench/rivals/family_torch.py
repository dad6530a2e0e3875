"""PyTorch's windows, gradients and batches, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from bench.rivals.torch_ import SAME_BITS, Written, describe
from bench.tasks import Crops, Gradient, Inserts, Order

__all__ = ["Assigned", "Indexed", "InsertLoop", "Loop", "Unfolded", "describe"]


class Loop(Written):
    """A slice copied for each window, with `flip` if it is reversed."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        self.array, self.last = torch.from_numpy(array), crops.last
        self.windows = crops.windows(array.shape)
        self.out = torch.empty(crops.sizes(array.shape), dtype=self.array.dtype)

    def run(self) -> None:
        """Cut."""
        array, out, last = self.array, self.out, self.last
        for number, (window, flipped) in enumerate(self.windows):
            out[number] = array[window].flip(last) if flipped else array[window]


class Unfolded(Loop):
    """All windows as a view by `unfold`, indexed by tensors; then some are flipped."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        super().__init__(array, crops)
        self.places = tuple(torch.from_numpy(places) for places in crops.places(array.shape))
        self.flipped = torch.from_numpy(np.flatnonzero(crops.steps() < 0))
        self.channels = array.ndim > len(crops.sides)
        self.view = self.array
        for axis, side in enumerate(crops.sides):
            self.view = self.view.unfold(axis, side, 1)

    def run(self) -> None:
        """Cut."""
        cut = self.view[self.places]
        self.out = cut.movedim(1, -1) if self.channels else cut
        if self.flipped.numel():
            self.out[self.flipped] = self.out[self.flipped].flip(1 + self.last)


class InsertLoop(Written):
    """A window copied into a slice for each of them, with `flip` if it is reversed."""

    def __init__(self, array: NDArray[Any], inserts: Inserts) -> None:
        self.array, self.last = torch.from_numpy(array), inserts.crops.last
        self.windows = inserts.crops.windows(inserts.shape)
        self.out = torch.zeros(inserts.shape, dtype=self.array.dtype)

    def run(self) -> None:
        """Write."""
        array, out, last = self.array, self.out, self.last
        for number, (window, flipped) in enumerate(self.windows):
            out[window] = array[number].flip(last) if flipped else array[number]


class Indexed(Written):
    """A batch indexed by a tensor."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        self.array, self.indices = torch.from_numpy(array), torch.from_numpy(order.indices)

    def run(self) -> None:
        """Take."""
        self.out = self.array[self.indices]


class Assigned(Written):
    """Zeros, then an assignment."""

    def __init__(self, array: NDArray[Any], gradient: Gradient) -> None:
        self.dtype, self.key = array.dtype, gradient.key
        self.g = torch.from_numpy(array.view(SAME_BITS.get(array.dtype.name, array.dtype)))
        self.out = torch.empty(gradient.shape, dtype=self.g.dtype)

    def run(self) -> None:
        """Write."""
        self.out.zero_()
        self.out[self.key] = self.g

    def result(self) -> NDArray[Any]:
        """The output."""
        result: NDArray[Any] = self.out.numpy().view(self.dtype)
        return result

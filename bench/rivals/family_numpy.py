"""NumPy's windows, gradients and batches."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rivals.numpy_ import Written, describe
from bench.tasks import Crops, Gradient, Inserts, Order

__all__ = ["Assigned", "Indexed", "InsertLoop", "Loop", "SlidingWindows", "describe"]


class Loop(Written):
    """A slice assigned for each window."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        self.array, self.backwards = array, crops.backwards
        self.windows = crops.windows(array.shape)
        self.out = np.empty(crops.sizes(array.shape), array.dtype)

    def run(self) -> None:
        """Cut."""
        array, out, backwards = self.array, self.out, self.backwards
        for number, (window, flipped) in enumerate(self.windows):
            out[number] = array[window][backwards] if flipped else array[window]


class SlidingWindows(Loop):
    """All windows as a view, indexed by an array; then some are flipped."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        super().__init__(array, crops)
        self.places = tuple(crops.places(array.shape))
        self.flipped = np.flatnonzero(crops.steps() < 0)
        self.channels = array.ndim > len(crops.sides)
        axes = tuple(range(len(crops.sides)))
        self.view = np.lib.stride_tricks.sliding_window_view(array, crops.sides, axis=axes)

    def run(self) -> None:
        """Cut."""
        cut = self.view[self.places]
        self.out = np.moveaxis(cut, 1, -1) if self.channels else cut
        if self.flipped.size:
            self.out[self.flipped] = self.out[self.flipped][:, *self.backwards]


class InsertLoop(Written):
    """An assignment for each window."""

    def __init__(self, array: NDArray[Any], inserts: Inserts) -> None:
        self.array, self.backwards = array, inserts.crops.backwards
        self.windows = inserts.crops.windows(inserts.shape)
        self.out = np.zeros(inserts.shape, array.dtype)

    def run(self) -> None:
        """Write."""
        array, out, backwards = self.array, self.out, self.backwards
        for number, (window, flipped) in enumerate(self.windows):
            out[window] = array[number][backwards] if flipped else array[number]


class Indexed(Written):
    """A batch indexed by an array."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        self.array, self.indices = array, order.indices

    def run(self) -> None:
        """Take."""
        self.out = self.array[self.indices]


class Assigned(Written):
    """Zeros, then an assignment."""

    def __init__(self, array: NDArray[Any], gradient: Gradient) -> None:
        self.g, self.key = array, gradient.key
        self.out = np.empty(gradient.shape, array.dtype)

    def run(self) -> None:
        """Write."""
        self.out[...] = 0
        self.out[self.key] = self.g

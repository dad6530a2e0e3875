"""NumPy's windows and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rivals.numpy_ import describe
from bench.tasks import Crops, Gradient

__all__ = ["Assigned", "Loop", "SlidingWindows", "describe"]


class Loop:
    """A slice assigned for each window."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        self.array, self.size = array, crops.size
        rows, columns = crops.places(array.shape)
        self.windows = list(zip(rows.tolist(), columns.tolist(), crops.steps().tolist(), strict=True))
        self.out = np.empty((crops.count, crops.size, crops.size, *array.shape[2:]), array.dtype)

    def run(self) -> None:
        """Cut."""
        array, size, out = self.array, self.size, self.out
        for number, (row, column, step) in enumerate(self.windows):
            out[number] = array[row : row + size, column : column + size][:, ::step]

    def result(self) -> NDArray[Any]:
        """The output."""
        return self.out


class SlidingWindows(Loop):
    """All windows as a view, indexed by an array; then the mirrored ones turned."""

    def __init__(self, array: NDArray[Any], crops: Crops) -> None:
        super().__init__(array, crops)
        self.places = crops.places(array.shape)
        self.mirrored = np.flatnonzero(crops.steps() < 0)
        self.view = np.lib.stride_tricks.sliding_window_view(array, (crops.size, crops.size), axis=(0, 1))

    def run(self) -> None:
        """Cut."""
        self.out = (
            np.moveaxis(self.view[self.places], 1, -1) if self.array.ndim > 2 else self.view[self.places]
        )
        if self.mirrored.size:
            self.out[self.mirrored] = self.out[self.mirrored][:, :, ::-1]


class Assigned:
    """Zeros, then an assignment."""

    def __init__(self, array: NDArray[Any], gradient: Gradient) -> None:
        self.g, self.key = array, gradient.key
        self.out = np.empty(gradient.shape, array.dtype)

    def run(self) -> None:
        """Write."""
        self.out[...] = 0
        self.out[self.key] = self.g

    def result(self) -> NDArray[Any]:
        """The output."""
        return self.out

"""NumPy's boxes, one by one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.boxes import Boxes, PutBack
from bench.rivals.numpy_ import Written, describe

__all__ = ["Assigned", "Loop", "describe"]


class Loop(Written):
    """A slice copied for each box."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        self.array, self.windows = array, boxes.windows(array.shape)

    def run(self) -> None:
        """Cut."""
        self.out = [self.array[window].copy() for window in self.windows]

    def result(self) -> NDArray[Any]:
        """The output."""
        return np.concatenate([box.reshape(-1) for box in self.out])


class Assigned(Written):
    """An assignment for each box."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        self.windows, self.listed = task.boxes.windows(task.shape), task.split(array)
        self.out = np.zeros(task.shape, array.dtype)

    def run(self) -> None:
        """Write."""
        for window, box in zip(self.windows, self.listed, strict=True):
            self.out[window] = box

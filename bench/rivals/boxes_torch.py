"""PyTorch's boxes, one by one, and its padded sequences, on the CPU."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.nn.utils.rnn import pad_sequence

from bench.boxes import Boxes, PutBack
from bench.rivals.torch_ import Written, describe

__all__ = ["Assigned", "Loop", "Padded", "describe"]


class Loop(Written):
    """A slice copied for each box."""

    def __init__(self, array: NDArray[Any], boxes: Boxes) -> None:
        self.array, self.windows = torch.from_numpy(array), boxes.windows(array.shape)

    def run(self) -> None:
        """Cut."""
        self.out = [self.array[window].clone() for window in self.windows]

    def result(self) -> NDArray[Any]:
        """The output."""
        return np.concatenate([box.numpy().reshape(-1) for box in self.out])


class Assigned(Written):
    """An assignment for each box."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        self.windows, self.listed = task.boxes.windows(task.shape), task.split(torch.from_numpy(array))
        self.out: Any = torch.from_numpy(np.zeros(task.shape, array.dtype))

    def run(self) -> None:
        """Write."""
        for window, box in zip(self.windows, self.listed, strict=True):
            self.out[window] = box


class Padded(Assigned):
    """`split`, then `pad_sequence`; the longest sequence must fill its part."""

    def __init__(self, array: NDArray[Any], task: PutBack) -> None:
        self.tokens = torch.from_numpy(array).reshape(-1, *task.shape[2:])
        self.lengths = task.boxes.places(task.shape)[1][:, 1].tolist()

    def run(self) -> None:
        """Join."""
        self.out = pad_sequence(torch.split(self.tokens, self.lengths), batch_first=True)

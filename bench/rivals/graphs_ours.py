"""`wgslice.onnx` on graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
import wgslice.onnx
from bench.rivals.onnx_models import parsed_model
from bench.rivals.ours import Clocked, describe, device

__all__ = ["Captured", "InMemory", "OnDevice", "describe"]


class OnDevice(Clocked):
    """From a tensor to a tensor."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        self.prepared = wgslice.onnx.prepare(parsed_model(array, graph), device)
        self.x: Any = wg.asarray(array, device=device)

    def start(self) -> None:
        """Run."""
        (self.out,) = self.prepared.run_on_device([self.x])

    def note(self) -> str:
        """Device memory of the last run."""
        return str(self.prepared.memory)


class Captured(OnDevice):
    """From a tensor to a tensor, by a captured program."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        super().__init__(array, graph)
        self.program = wg.capture(lambda x: self.prepared.run_on_device([x]), x=self.x)

    def start(self) -> None:
        """Run."""
        (self.out,) = self.program(x=self.x)


class InMemory(OnDevice):
    """From an array to an array."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        super().__init__(array, graph)
        self.x = array

    def run(self) -> None:
        """Run, with upload and readback."""
        (self.out,) = self.prepared.run([self.x])

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        return np.asarray(self.out)

"""ONNX Runtime's CPU provider on graphs."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from bench.rivals.onnx_models import parsed_model
from bench.rivals.onnxruntime_cpu import describe, session

__all__ = ["InMemory", "describe"]


class InMemory:
    """From an array to an array."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        self.array = array
        self.session = session(parsed_model(array, graph).SerializeToString())

    def run(self) -> None:
        """Run."""
        (self.y,) = self.session.run(None, {"x": self.array})

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        result: NDArray[Any] = self.y
        return result

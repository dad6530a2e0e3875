"""NumPy on graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rivals.numpy_ import describe

__all__ = ["InMemory", "describe"]


class InMemory:
    """Operator by operator."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        self.array, self.graph = array, graph

    def run(self) -> None:
        """Run."""
        self.y = np.ascontiguousarray(self.graph.of(self.array))

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        return self.y

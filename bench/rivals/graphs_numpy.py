"""NumPy on graphs."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.rivals.numpy_ import Written, describe

__all__ = ["InMemory", "describe"]


class InMemory(Written):
    """Operator by operator."""

    def __init__(self, array: NDArray[Any], graph: Any) -> None:
        self.array, self.graph = array, graph

    def run(self) -> None:
        """Run."""
        self.out = np.ascontiguousarray(self.graph.of(self.array))

"""NumPy on the CPU: into a new array, and into a given one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cases import Cut

__all__ = ["Allocating", "Given", "Written", "describe"]


def describe() -> dict[str, str]:
    """Versions."""
    return {"numpy": np.__version__}


class Written:
    """Work that leaves its output in an array."""

    out: Any

    def result(self) -> NDArray[Any]:
        """The output of the last run."""
        result: NDArray[Any] = self.out
        return result


class Allocating(Written):
    """`ascontiguousarray(x.transpose(axes)[key])`."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.view = cut.of(array)
        self.out = np.ascontiguousarray(self.view)

    def run(self) -> None:
        """Slice."""
        # What ascontiguousarray does; it returns packed views as they are.
        self.out = self.view.copy(order="C")


class Given(Allocating):
    """`copyto(out, x.transpose(axes)[key])`."""

    def run(self) -> None:
        """Slice."""
        np.copyto(self.out, self.view)

"""The contenders, wgslice included: one class each, run in a process of its own.

A contender's constructor gets an array and what to do with it, of slices a `Cut`; it brings the array to
where the work is done and prepares all that can be prepared. `run` does it and waits; `result` reads back.
What a contender cannot do raises from one of them. Two more methods are optional: `gpu_seconds` runs once
more and returns the GPU's own time, and `note` says in a line how. `describe`, of its module, names versions,
adapter and driver.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

__all__ = ["Contender"]


class Contender(Protocol):
    """Work that is ready to run."""

    def __init__(self, array: NDArray[Any], work: Any) -> None: ...

    def run(self) -> None:
        """Do it and wait."""

    def result(self) -> NDArray[Any]:
        """The output of the last run."""

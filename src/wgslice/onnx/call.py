"""A node about to run, and what it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import integers
from wgslice.onnx.values import Nested, Value, as_value
from wgslice.onnx.workspace import Workspace

__all__ = ["Call"]


@dataclass(frozen=True)
class Call:
    """A node about to run."""

    workspace: Workspace
    version: int  # of the operator, the opset that introduced it
    attributes: Mapping[str, Any]
    data: Sequence[Nested[Value]]  # the inputs whose elements it moves
    parameters: Mapping[int, NDArray[Any] | None]  # the others, by their position; None for an absent one
    output_count: int

    @property
    def x(self) -> Value:
        """The first input."""
        return as_value(0, self.data[0])

    def integers(self, name: str, *, position: int, since: int) -> tuple[int, ...] | None:
        """A parameter that is an attribute before version `since`, and from then on an input."""
        if self.version < since:
            given = self.attributes.get(name)
            return None if given is None else integers(name, given)
        array = self.parameters.get(position)
        return None if array is None else integers(name, np.atleast_1d(array))

    def required(self, name: str, *, position: int, since: int) -> tuple[int, ...]:
        """A parameter that must be there."""
        value = self.integers(name, position=position, since=since)
        if value is None:
            raise ValueError(f"{name} is missing")
        return value

    def indices(self, position: int) -> NDArray[np.int64]:
        """A parameter that says indices."""
        given = self.parameters[position]
        if given is None or given.dtype not in (np.int32, np.int64):
            kind = "missing" if given is None else f"of dtype {given.dtype}"
            raise TypeError(f"indices are {kind}: must be int32 or int64")
        return given.astype(np.int64)

"""Which values of a graph the host knows before the GPU runs, by where they come from."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto
from math import prod
from typing import Any

from numpy.typing import NDArray

from wgslice.onnx.rules import RULES
from wgslice.plans.profiles import MOST_HOST_NBYTES

__all__ = ["COMPUTING", "FROM_SHAPES", "HOST_ONLY", "Origin", "fits_host", "origin_of"]

COMPUTING = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"),
        *("LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "ReduceMax", "ReduceMin"),
        *("ReduceProd", "ReduceSum", "Sub", "Where"),
    }
)
FROM_SHAPES = frozenset({"Shape", "Size"})  # read sizes, and no element
HOST_ONLY = COMPUTING | FROM_SHAPES | {"Range"}
MULTIPLYING = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1}  # the input whose numbers multiply elements


class Origin(Enum):
    """Where a value comes from."""

    TENSOR = auto()  # from elements that callers give
    INPUT = auto()  # from integers of rank 0 or 1 that callers give, which may lie on the GPU
    SHAPES = auto()  # from shapes, or from what a node has read as its parameter
    CONSTANT = auto()  # from the graph alone

    @property
    def on_host(self) -> bool:
        """Whether the host knows it whatever callers give."""
        return self in (Origin.SHAPES, Origin.CONSTANT)


def origin_of(operator: str, inputs: Sequence[Origin | None]) -> Origin | None:
    """Where a node's outputs come from; None where it computes with what the host does not know.

    What is given as an input is moved on the GPU, unless it joins a value that comes from shapes.
    """
    if operator in FROM_SHAPES or operator in ("ConstantOfShape", "Range"):
        return Origin.SHAPES
    given = {origin for origin in inputs if origin is not None}
    if Origin.TENSOR in given:
        return None if operator in COMPUTING else Origin.TENSOR
    if given <= {Origin.CONSTANT}:
        return Origin.CONSTANT
    data = () if operator in COMPUTING else RULES[operator].data_of(inputs)
    if operator in COMPUTING or Origin.INPUT not in given or Origin.SHAPES in data:
        return Origin.SHAPES
    return Origin.INPUT


def fits_host(operator: str, inputs: Sequence[NDArray[Any] | None]) -> bool:
    """Whether elements that the host knows are so few, and of such a dtype, that it moves them itself."""
    given = [array for array in inputs if array is not None]
    nbytes = sum(array.nbytes for array in given)
    if operator in MULTIPLYING:
        factors = given[MULTIPLYING[operator]]
        nbytes = given[0].nbytes * prod(max(int(factor), 1) for factor in factors.flat)
    return nbytes <= MOST_HOST_NBYTES and all(array.dtype.isbuiltin == 1 for array in given)

"""Which graphs run here, and which of their values the host knows before the GPU runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from math import prod
from typing import Any, TypeAlias

import onnx
from numpy.typing import NDArray
from onnx import TensorProto

from wgslice.onnx.rules import RULES
from wgslice.plans.profiles import MOST_HOST_NBYTES

__all__ = [
    "COMPUTING",
    "FROM_SHAPES",
    "HOST_ONLY",
    "STANDARD_DOMAINS",
    "Origin",
    "Origins",
    "UnsupportedOperatorError",
    "fits_host",
    "label_of",
    "origin_of",
    "origins_given",
    "trace",
]

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
STANDARD_DOMAINS = ("", "ai.onnx")
MOVING = sorted({*RULES, *HOST_ONLY, "Constant"} - COMPUTING)
KNOWN = {*MOVING, *COMPUTING}
INTEGERS = {
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
}


class UnsupportedOperatorError(NotImplementedError, ValueError):
    """A graph has operators that do more than move elements, or are not known; the message names them."""


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


Origins: TypeAlias = Mapping[str, Origin]  # by names; those that are missing are tensors


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
    data = () if operator in COMPUTING else [inputs[at] for at in RULES[operator].positions(len(inputs))]
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


def origins_given(graph: onnx.GraphProto) -> Origins:
    """Where initializers and inputs come from; an initializer that callers may replace is an input."""
    origins = {tensor.name: Origin.CONSTANT for tensor in graph.initializer}
    for value in graph.input:
        declared = value.type.tensor_type
        few = declared.HasField("shape") and len(declared.shape.dim) <= 1
        origins[value.name] = Origin.INPUT if few and declared.elem_type in INTEGERS else Origin.TENSOR
    return origins


def trace(nodes: Iterable[onnx.NodeProto], given: Origins) -> Origins:
    """Where every value comes from; refuses operators that cannot run here, or not on what they take."""
    origins = dict(given)
    refused: set[str] = set()
    reasons: list[str] = []
    for number, node in enumerate(nodes):
        what = ".".join(filter(None, (node.domain, node.op_type)))
        found: Origin | None = None
        if node.domain in STANDARD_DOMAINS and node.op_type in KNOWN and not reduction(node):
            inputs = [origins.get(name, Origin.TENSOR) if name else None for name in node.input]
            found = Origin.CONSTANT if node.op_type == "Constant" else origin_of(node.op_type, inputs)
            if found is None:
                tensor = node.input[inputs.index(Origin.TENSOR)]
                reasons.append(f"; {label_of(node, number)} takes {tensor!r}, whose elements are on the GPU")
        if found is None:
            refused.add(what + reduction(node))
        origins |= {name: found or Origin.TENSOR for name in node.output if name}
    if refused:
        raise UnsupportedOperatorError(
            f"operator{'s' * (len(refused) > 1)} {', '.join(sorted(refused))}: not supported; those that "
            f"are: {', '.join(MOVING)}; and of shapes, constants, and integer inputs of rank 0 or 1, which "
            f"the host knows: {', '.join(sorted(COMPUTING))}{''.join(reasons[:1])}"
        )
    return origins


def reduction(node: onnx.NodeProto) -> str:
    """What a node computes beside moving elements, as errors say it."""
    for attribute in node.attribute:
        if attribute.name == "reduction" and attribute.s != b"none":
            return f" with reduction = {attribute.s.decode()!r}"
    return ""


def label_of(node: onnx.NodeProto, number: int) -> str:
    """What errors call a node."""
    return f"{node.op_type} node {node.name!r}" if node.name else f"{node.op_type} node {number}"

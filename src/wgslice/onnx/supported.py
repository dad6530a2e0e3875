"""Which graphs run here, and where their values come from; others are refused by their operators' names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

import onnx
from onnx import TensorProto

from wgslice.onnx.known import COMPUTING, HOST_ONLY, Origin, origin_of
from wgslice.onnx.rules import RULES

__all__ = ["STANDARD_DOMAINS", "Origins", "UnsupportedOperatorError", "label_of", "origins_given", "trace"]

Origins: TypeAlias = Mapping[str, Origin]  # by names; those that are missing are tensors

STANDARD_DOMAINS = ("", "ai.onnx")
MOVING = sorted({*RULES, *HOST_ONLY, "Constant"} - COMPUTING)
KNOWN = {*MOVING, *COMPUTING}
INTEGERS = {
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
}


class UnsupportedOperatorError(NotImplementedError, ValueError):
    """A graph has operators that do more than move elements, or are not known; the message names them."""


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

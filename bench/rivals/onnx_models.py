"""ONNX models: of one node, and of a graph in text."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, parser

from bench.rivals.keys import written_out

__all__ = ["identity_model", "parsed_model", "slice_model"]

FIRST = -(2**31)  # as an end, with a negative step: so far that the first element is taken


def slice_model(array: NDArray[Any], key: Any) -> bytes:
    """A Slice that keeps the dimensions which an integer in `key` would drop."""
    bounds = []
    for index, size in zip(written_out(key, array.ndim), array.shape, strict=False):
        taken = range(size)[index] if isinstance(index, slice) else range(index, index + 1)
        end = FIRST if taken.step < 0 and taken.stop < 0 else taken.stop
        bounds.append((taken.start, end, taken.step))
    starts, ends, steps = zip(*bounds, strict=True)
    inputs = {"starts": starts, "ends": ends, "axes": range(len(bounds)), "steps": steps}
    constants = [
        helper.make_tensor(name, TensorProto.INT64, [len(values)], values) for name, values in inputs.items()
    ]
    return model(helper.make_node("Slice", ["x", *inputs], ["y"]), array, constants)


def parsed_model(array: NDArray[Any], graph: Any) -> ModelProto:
    """A graph for an array."""
    kind = {"float32": "float", "float16": "float16"}[array.dtype.name]
    return parser.parse_model(graph.text(kind, array.shape))


def identity_model(array: NDArray[Any]) -> bytes:
    """An Identity."""
    return model(helper.make_node("Identity", ["x"], ["y"]), array, [])


def model(node: Any, array: NDArray[Any], constants: list[Any]) -> bytes:
    """A model of a node from `x` to `y`."""
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
    x = helper.make_tensor_value_info("x", dtype, array.shape)
    y = helper.make_tensor_value_info("y", dtype, [None] * array.ndim)
    graph = helper.make_graph([node], "slice", [x], [y], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    serialized: bytes = made.SerializeToString()
    return serialized

"""ONNX models: of a cut, of an Identity, and of a graph in text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, helper, parser

from bench.cases import Cut
from bench.rivals.keys import written_out

__all__ = ["cut_model", "identity_model", "kept", "parsed_model"]

FIRST = -(2**31)  # as an end, with a negative step: so far that the first element is taken


def kept(cut: Cut) -> Cut:
    """A cut as Slice does it: the dimensions which an integer would drop are kept."""
    indices = written_out(cut.key, len(cut.axes))
    slices = tuple(slice(index, index + 1 or None) if isinstance(index, int) else index for index in indices)
    return Cut(cut.axes, slices)


def cut_model(array: NDArray[Any], cut: Cut) -> bytes:
    """A Transpose and a Slice, of which one that would change nothing is left out if the other is there."""
    slices = kept(cut).key
    x = "permuted" if cut.permuted else "x"
    node, constants = slice_node(x, slices, [array.shape[axis] for axis in cut.axes])
    if not cut.permuted:
        return model([node], array, constants)
    if all(part == slice(None) for part in slices):
        return model([helper.make_node("Transpose", ["x"], ["y"], perm=cut.axes)], array, [])
    return model([helper.make_node("Transpose", ["x"], [x], perm=cut.axes), node], array, constants)


def slice_node(x: str, slices: Sequence[slice], shape: Sequence[int]) -> tuple[Any, list[Any]]:
    """A Slice of `x`, and its constants."""
    bounds = []
    for part, size in zip(slices, shape, strict=False):
        taken = range(size)[part]
        end = FIRST if taken.step < 0 and taken.stop < 0 else taken.stop
        bounds.append((taken.start, end, taken.step))
    starts, ends, steps = zip(*bounds, strict=True)
    inputs = {"starts": starts, "ends": ends, "axes": range(len(bounds)), "steps": steps}
    constants = [
        helper.make_tensor(name, TensorProto.INT64, [len(values)], values) for name, values in inputs.items()
    ]
    return helper.make_node("Slice", [x, *inputs], ["y"]), constants


def parsed_model(array: NDArray[Any], graph: Any) -> ModelProto:
    """A graph for an array."""
    kind = {"float32": "float", "float16": "float16"}[array.dtype.name]
    return parser.parse_model(graph.text(kind, array.shape))


def identity_model(array: NDArray[Any]) -> bytes:
    """An Identity."""
    return model([helper.make_node("Identity", ["x"], ["y"])], array, [])


def model(nodes: Sequence[Any], array: NDArray[Any], constants: Sequence[Any]) -> bytes:
    """A model of nodes from `x` to `y`."""
    dtype = helper.np_dtype_to_tensor_dtype(np.dtype(array.dtype))
    x = helper.make_tensor_value_info("x", dtype, array.shape)
    y = helper.make_tensor_value_info("y", dtype, [None] * array.ndim)
    graph = helper.make_graph(nodes, "cut", [x], [y], constants)
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=9)
    serialized: bytes = made.SerializeToString()
    return serialized

"""One run of a graph: its values by name, and nodes that are recorded or run on the host."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.onnx.call import Call
from wgslice.onnx.graph import Given, Node
from wgslice.onnx.known import FROM_SHAPES, fits_host
from wgslice.onnx.values import Nested, Value, as_value, each
from wgslice.onnx.workspace import Workspace
from wgslice.tensors.tensor import Tensor

__all__ = ["Names", "readable", "run_node"]


class Names:
    """The values of a run, by name; each is uploaded or read back at most once."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.values: dict[str, Nested[Value]] = {}  # on the GPU, held
        self.arrays: dict[str, NDArray[Any] | None] = {}  # on the host; None for an absent input

    def hold(self, name: str, value: Nested[Value]) -> None:
        """A value on the GPU."""
        self.workspace.hold(value)
        self.values[name] = value

    def give(self, name: str, given: Given, *, is_data: bool) -> None:
        """What a caller gives; what is no data stays on the host until the GPU needs it."""
        if is_data or isinstance(given, Tensor):
            self.hold(name, each(partial(on_device, self.workspace))(given))
        if given is None or isinstance(given, np.ndarray):
            self.arrays[name] = given
        elif name not in self.values:
            self.arrays[name] = np.asarray(given)

    def on_gpu(self, name: str) -> Nested[Value]:
        """A value on the GPU; an empty name is nothing."""
        if name and name not in self.values:
            array = self.arrays[name]
            self.hold(name, None if array is None else self.workspace.upload(array))
        return self.values[name] if name else None

    def on_host(self, position: int, name: str) -> NDArray[Any] | None:
        """A node's input on the host; an empty name is nothing."""
        if name and name not in self.arrays:
            self.arrays[name] = self.workspace.read(as_value(position, self.values[name]))
        return self.arrays[name] if name else None

    def outline(self, position: int, name: str) -> NDArray[Any]:
        """An array of the sizes and the dtype of a node's input; nothing is read back for it."""
        known = self.arrays.get(name)
        if known is not None:
            return known
        value = as_value(position, self.values.get(name))
        return np.broadcast_to(np.zeros((), value.dtype), value.shape)

    def forget(self, name: str) -> None:
        """Let go what no later node reads."""
        self.workspace.drop(self.values.pop(name, None))
        self.arrays.pop(name, None)


def on_device(workspace: Workspace, given: NDArray[Any] | Tensor) -> Value:
    """An array, uploaded, or a tensor as it is."""
    return Value.of(given) if isinstance(given, Tensor) else workspace.upload(given)


def run_node(names: Names, node: Node) -> None:
    """Run a node on the host where its elements are known there, or record it; parameters are read for it."""
    found = run_on_host(names, node)
    if found is not None:
        names.arrays |= found
        return
    assert node.rule is not None
    data = [names.on_gpu(name) for name in node.data]
    parameters = {position: names.on_host(position, name) for position, name in node.parameters.items()}
    call = Call(names.workspace, node.version, node.attributes, data, parameters, len(node.outputs))
    for name, value in zip(node.outputs, node.rule.run(call), strict=True):
        if name:
            names.hold(name, value)


def run_on_host(names: Names, node: Node) -> Mapping[str, NDArray[Any]] | None:
    """What a node gives on the host; None where it moves elements on the GPU."""
    if node.operator in FROM_SHAPES:
        return node.reference.run([names.outline(0, node.inputs[0])])
    if not node.on_host or any(name and name not in names.arrays for name in node.data):
        return None
    arrays = [names.on_host(position, name) for position, name in enumerate(node.inputs)]
    if node.rule is not None and not fits_host(node.operator, arrays):
        return None
    return node.reference.run(arrays)


def readable(workspace: Workspace, x: Value) -> Value:
    """A value that is read without another copy."""
    return x if x.is_packed else workspace.packed(x)

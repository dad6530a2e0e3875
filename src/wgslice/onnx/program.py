"""A graph of operators on a device: values that are views and copies, and no readback between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.onnx.call import Call
from wgslice.onnx.graph import Given, Graph, Node
from wgslice.onnx.known import FROM_SHAPES, fits_host
from wgslice.onnx.values import MemoryUse, Nested, Value, as_value, each
from wgslice.onnx.workspace import Workspace
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uploading import asarray

__all__ = ["Program"]


class Names:
    """The values of a run, by name. What is needed elsewhere than it lies is uploaded or read back, once."""

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


class Program:
    """A graph on a device, to run many times; its buffers are kept for the next run.

    A workspace has one run at a time. Threads that run at once have one each, and wait for the GPU, not for
    each other.
    """

    def __init__(self, graph: Graph, device: Device) -> None:
        self.graph = graph
        self.device = device
        self.kept: list[Workspace] = []  # one, unless a run has it
        self.memory: MemoryUse | None = None
        large = {name for name, array in graph.constants.items() if not fits_host("", [array])}
        self.data_names = set(graph.outputs) | {
            name for node in graph.nodes for name in node.data if not node.on_host or name in large
        }
        self.constants = {
            name: Value.of(asarray(array, device=device))
            for name, array in graph.constants.items()
            if name in self.data_names
        }
        last_use = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
        last_use |= {name: number for number, node in enumerate(graph.nodes) for name in node.inputs}
        self.dying: list[list[str]] = [[] for _ in graph.nodes]  # names that no later node reads
        for name, number in last_use.items():
            if name not in graph.outputs:
                self.dying[number].append(name)

    def run(self, inputs: Mapping[str, Given]) -> list[Nested[NDArray[Any]]]:
        """The outputs in memory, read after all work is submitted."""
        with self._running() as workspace:
            names = self._evaluate(workspace, inputs)
            for name in self.graph.outputs:
                if name in names.values:
                    names.hold(name, each(partial(readable, workspace))(names.values[name]))
            read = [
                each(workspace.read)(names.values[name])
                if name in names.values
                else np.array(names.arrays[name])  # the caller's own
                for name in self.graph.outputs
            ]
            self.memory = workspace.end()
            return read

    def run_on_device(self, inputs: Mapping[str, Given]) -> list[Nested[Tensor]]:
        """The outputs as tensors of the caller's, submitted and not waited for."""
        with self._running() as workspace:
            names = self._evaluate(workspace, inputs)
            given = [each(workspace.give_away)(names.on_gpu(name)) for name in self.graph.outputs]
            workspace.submit()
            self.memory = workspace.end()
            return [each(workspace.tensor)(value) for value in given]

    @contextmanager
    def _running(self) -> Iterator[Workspace]:
        """A workspace for one run, after which nothing is left of it but its buffers."""
        try:
            workspace = self.kept.pop()  # a list's pop is one step: threads need no lock
        except IndexError:
            workspace = Workspace(self.device)
        try:
            yield workspace
        finally:
            workspace.begin()
            self.kept[:] = [workspace]

    def _evaluate(self, workspace: Workspace, inputs: Mapping[str, Given]) -> Names:
        """Record every node, or run it on the host; what is left are the outputs."""
        names = Names(workspace)
        names.arrays |= {name: array for name, array in self.graph.constants.items() if name not in inputs}
        for name, value in self.constants.items():
            if name not in inputs:
                names.hold(name, value)
        workspace.label = "inputs"
        for name, given in inputs.items():
            names.give(name, given, is_data=name in self.data_names)
        for node, dying in zip(self.graph.nodes, self.dying, strict=True):
            workspace.label = node.label
            with named(node.label):
                run_node(names, node)
            for name in dying:
                names.forget(name)
        workspace.label = "outputs"
        return names


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

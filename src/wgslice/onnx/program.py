"""A graph of operators on a device: values that are views and copies, and no readback between them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.onnx.call import Call
from wgslice.onnx.graph import Given, Graph, Node
from wgslice.onnx.memory import MemoryUse
from wgslice.onnx.values import Nested, Value, as_value, each
from wgslice.onnx.workspace import Workspace
from wgslice.tensors.creation import asarray
from wgslice.tensors.tensor import Tensor

__all__ = ["Program"]


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
        self.data_names = {name for node in graph.nodes for name in node.data} | set(graph.outputs)
        self.constants = {
            name: Value.of(asarray(array, device))
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
            values = self._evaluate(workspace, inputs)
            packed = [each(partial(readable, workspace))(value) for value in values]
            workspace.hold(packed)
            read = [each(workspace.read)(value) for value in packed]
            self.memory = workspace.end()
            return read

    def run_on_device(self, inputs: Mapping[str, Given]) -> list[Nested[Tensor]]:
        """The outputs as tensors of the caller's, submitted and not waited for."""
        with self._running() as workspace:
            values = self._evaluate(workspace, inputs)
            given = [each(workspace.give_away)(value) for value in values]
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

    def _evaluate(self, workspace: Workspace, inputs: Mapping[str, Given]) -> list[Nested[Value]]:
        """Record every node; the outputs, on the device."""
        parameters: dict[str, NDArray[Any] | None] = {
            name: array for name, array in self.graph.constants.items() if name not in inputs
        }
        values: dict[str, Nested[Value]] = dict(self.constants)
        workspace.label = "inputs"
        for name, given in inputs.items():
            if name in self.data_names:
                values[name] = each(partial(on_device, workspace))(given)
            if isinstance(given, np.ndarray) or name not in values:
                parameters[name] = None if given is None else np.asarray(given)
        for value in values.values():
            workspace.hold(value)
        for node, dying in zip(self.graph.nodes, self.dying, strict=True):
            workspace.label = node.label
            with named(node.label):
                results = run_node(workspace, node, values, parameters)
            for name, value in zip(node.outputs, results, strict=True):
                if name:
                    workspace.hold(value)
                    values[name] = value
            for name in dying:
                workspace.drop(values.pop(name, None))
        workspace.label = "outputs"
        return [values[name] for name in self.graph.outputs]


def run_node(
    workspace: Workspace,
    node: Node,
    values: Mapping[str, Nested[Value]],
    parameters: dict[str, NDArray[Any] | None],
) -> Sequence[Nested[Value]]:
    """What a node gives; a parameter that the graph has computed is read back for it."""
    data = [values[name] if name else None for name in node.data]
    needed = {position: name for position, name in enumerate(node.inputs) if name and position >= len(data)}
    for position, name in needed.items():
        if name not in parameters:
            parameters[name] = workspace.read(as_value(position, values[name]))
    arrays = {position: parameters[name] for position, name in needed.items()}
    call = Call(workspace, node.version, node.attributes, data, arrays, len(node.outputs))
    return node.rule.run(call)


def on_device(workspace: Workspace, given: NDArray[Any] | Tensor) -> Value:
    """An array, uploaded, or a tensor as it is."""
    return Value.of(given) if isinstance(given, Tensor) else workspace.upload(given)


def readable(workspace: Workspace, x: Value) -> Value:
    """A value that is read without another copy."""
    return x if x.is_packed else workspace.packed(x)

"""An ONNX model on a device, ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast

import numpy as np
import onnx.backend.base
from numpy.typing import NDArray

from wgslice.errors import named
from wgslice.gpu.capture import active_capture
from wgslice.gpu.device import Device
from wgslice.onnx.graph import Given, Graph, bind
from wgslice.onnx.known import fits_host
from wgslice.onnx.running import Names, readable, run_node
from wgslice.onnx.values import MemoryUse, Value, each
from wgslice.onnx.workspace import Workspace
from wgslice.tensors.creation import asarray
from wgslice.tensors.tensor import Tensor

__all__ = ["Inputs", "PreparedModel", "check_no_options"]

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | NDArray[Any] | Tensor


class PreparedModel(onnx.backend.base.BackendRep):
    """A model on a device, ready to run many times.

    Get one with `prepare`. It keeps the buffers of its last run for the next one; dropping it frees them.

    Attributes
    ----------
    device : Device
        Where it runs.
    input_names, output_names : tuple of str
        In the model's order; inputs with an initializer are among them.
    memory : MemoryUse or None
        Device memory that the last run took.
    """

    def __init__(self, graph: Graph, device: Device) -> None:
        self.device = device
        self.memory: MemoryUse | None = None
        self._graph = graph
        self._kept: list[Workspace] = []  # one, unless a run has it; threads that run at once have one each
        large = {name for name, array in graph.constants.items() if not fits_host("", [array])}
        self._data_names = set(graph.outputs) | {
            name for node in graph.nodes for name in node.data if not node.on_host or name in large
        }
        self._constants = {
            name: Value.of(asarray(array, device=device))
            for name, array in graph.constants.items()
            if name in self._data_names
        }
        last_use = {name: number for number, node in enumerate(graph.nodes) for name in node.outputs}
        last_use |= {name: number for number, node in enumerate(graph.nodes) for name in node.inputs}
        self._dying: list[list[str]] = [[] for _ in graph.nodes]  # names that no later node reads
        for name, number in last_use.items():
            if name not in graph.outputs:
                self._dying[number].append(name)

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(declared.name for declared in self._graph.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self._graph.outputs

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence or mapping from names
            Of the graph's inputs, those with an initializer left out or not: arrays of the declared dtypes
            and sizes, or tensors on this device; lists of them for sequences, None for an absent optional.
            An array or tensor alone where there is one input.
        **kwargs
            None is accepted.

        Returns
        -------
        tuple of numpy.ndarray
            The graph's outputs in their order; lists for sequences. Waits for the GPU.

        Raises
        ------
        TypeError, ValueError
            An input is missing, unknown, or not as declared; or a node's rule is broken, which the message
            names. Nothing is submitted then, unless the graph computes parameters for its own nodes.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for a tensor, or is gone.
        """
        check_no_options("run", kwargs)
        given = bind(inputs, self._graph, self.device)
        with self._running() as workspace:
            names = self._evaluate(workspace, given)
            for name in self.output_names:
                if name in names.values:
                    names.hold(name, each(partial(readable, workspace))(names.values[name]))
            outputs: Any = tuple(
                each(workspace.read)(names.values[name])
                if name in names.values
                else np.array(names.arrays[name])  # the caller's own
                for name in self.output_names
            )
            self.memory = workspace.end()
        return cast("tuple[NDArray[Any], ...]", outputs)  # a graph that gives a sequence is rare

    def run_on_device(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Run the model, and leave its outputs on the device.

        Parameters
        ----------
        inputs : sequence or mapping from names
            As for `run`.

        Returns
        -------
        tuple of Tensor
            The graph's outputs in their order, each packed and in a buffer of its own. The work is submitted,
            not waited for.

        Raises
        ------
        TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
            As for `run`.
        """
        given = bind(inputs, self._graph, self.device)
        with self._running() as workspace:
            names = self._evaluate(workspace, given)
            values = [each(workspace.give_away)(names.on_gpu(name)) for name in self.output_names]
            workspace.submit()
            self.memory = workspace.end()
            return cast("tuple[Tensor, ...]", tuple(each(workspace.tensor)(value) for value in values))

    @contextmanager
    def _running(self) -> Iterator[Workspace]:
        """A workspace for one run, after which nothing is left of it but its buffers.

        Of a run that is captured nothing is left.
        """
        try:
            kept = self._kept.pop()  # a list's pop is one step: threads need no lock
        except IndexError:
            kept = Workspace(self.device)
        workspace, memory = kept, self.memory
        if active_capture() is not None:
            workspace = kept.duplicate()
        try:
            yield workspace
        finally:
            kept.begin()
            self._kept[:] = [kept]
            if workspace is not kept:
                self.memory = memory

    def _evaluate(self, workspace: Workspace, inputs: Mapping[str, Given]) -> Names:
        """Record every node, or run it on the host; what is left are the outputs."""
        names = Names(workspace)
        names.arrays |= {name: array for name, array in self._graph.constants.items() if name not in inputs}
        for name, value in self._constants.items():
            if name not in inputs:
                names.hold(name, value)
        workspace.label = "inputs"
        for name, given in inputs.items():
            names.give(name, given, is_data=name in self._data_names)
        for node, dying in zip(self._graph.nodes, self._dying, strict=True):
            workspace.label = node.label
            with named(node.label):
                run_node(names, node)
            for name in dying:
                names.forget(name)
        workspace.label = "outputs"
        return names

    def __repr__(self) -> str:
        return f"PreparedModel(inputs={self.input_names}, outputs={self.output_names}, device={self.device})"


def check_no_options(function: str, options: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that nothing here knows."""
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")

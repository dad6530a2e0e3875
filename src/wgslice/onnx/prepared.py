"""An ONNX model on a device, ready to run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, TypeAlias, cast
from weakref import WeakKeyDictionary

import numpy as np
import onnx.backend.base
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.sink import RUNNING, Sink, sink, using
from wgslice.onnx.graph import FROM_SHAPES, Graph, Input, Node, fits_host
from wgslice.onnx.rules import Call
from wgslice.onnx.workspace import MemoryUse, Nested, Workspace, as_tensor
from wgslice.tensors.creation import asarray
from wgslice.tensors.placed import check_no_sequence
from wgslice.tensors.sequences import mapped
from wgslice.tensors.tensor import Tensor

Inputs: TypeAlias = Sequence[Any] | Mapping[str, Any] | NDArray[Any] | Tensor
Given: TypeAlias = "Nested[NDArray[Any] | Tensor]"  # a caller's value of an input


class PreparedModel(onnx.backend.base.BackendRep):
    """A model on a device, ready to run many times.

    Made by `prepare`. It keeps the buffers of its last run for the next one, until it is deleted.

    Attributes
    ----------
    device : Device
        The device that the model runs on.
    input_names, output_names : tuple of str
        In the model's order, including inputs with an initializer.
    memory : MemoryUse or None
        Device memory used by the last run.
    """

    def __init__(self, graph: Graph, device: Device) -> None:
        self.device = device
        self.input_names = tuple(declared.name for declared in graph.inputs)
        self.output_names = graph.outputs
        self._graph = graph
        # Of the last run, by what receives it: a captured call shares no buffers with runs. At most one of
        # each: concurrent runs have their own.
        self._kept: WeakKeyDictionary[Sink, Workspace] = WeakKeyDictionary()
        large = {name for name, array in graph.constants.items() if not fits_host("", [array])}
        self._data_names = set(graph.outputs) | {
            name for node in graph.nodes for name in node.data if not node.on_host or name in large
        }
        self._constants = {
            name: asarray(array, device=device)
            for name, array in graph.constants.items()
            if name in self._data_names
        }
        uses = [(*node.inputs, *node.outputs) for node in graph.nodes]
        last_use = {name: number for number, names in enumerate(uses) for name in names}
        self._last_uses: list[list[str]] = [[] for _ in graph.nodes]  # names that no later node reads
        for name, number in last_use.items():
            if name not in graph.outputs:
                self._last_uses[number].append(name)

    @property
    def memory(self) -> MemoryUse | None:
        """Device memory used by the last run."""
        kept = self._kept.get(RUNNING)
        return kept.memory if kept else None

    def run(self, inputs: Inputs, **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence or mapping from names
            The graph's inputs, with or without those that have an initializer: arrays of the declared dtypes
            and sizes, or tensors on this device; lists of them for sequences, None for an absent optional.
            A single array or tensor if the graph has one input.
        **kwargs
            None is accepted.

        Returns
        -------
        tuple of numpy.ndarray
            The graph's outputs in order; lists for sequences. Waits for the GPU.

        Raises
        ------
        TypeError, ValueError
            An input is missing, unknown, or not as declared; or a node violates a rule of its operator. The
            message names it. Nothing is submitted then, unless the graph computes parameters of its nodes.
        OutOfDeviceMemory, DeviceLostError
            The device has too little memory for a tensor, or is lost.
        """
        check_no_options("run", kwargs)
        with self._running(inputs) as names:
            workspace = names.workspace
            for name in self.output_names:
                if name in names.values:  # packed by copies of the same submission
                    names.hold(name, mapped(names.values[name], packed))
            outputs: Any = tuple(
                mapped(names.values[name], workspace.read)
                if name in names.values
                else np.array(names.arrays[name])  # the caller's own
                for name in self.output_names
            )
        return cast("tuple[NDArray[Any], ...]", outputs)  # sequences as outputs are rare

    def run_on_device(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """Run the model, and leave its outputs on the device.

        Parameters
        ----------
        inputs : sequence or mapping from names
            As for `run`.

        Returns
        -------
        tuple of Tensor
            The graph's outputs in order, each packed and in a buffer of its own. The work is submitted, not
            waited for.

        Raises
        ------
        TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
            As for `run`.
        """
        with self._running(inputs) as names:
            workspace = names.workspace
            values = [mapped(names.on_gpu(name), workspace.export) for name in self.output_names]
            workspace.submit_all()
            return tuple(mapped(value, workspace.tensor) for value in values)

    @contextmanager
    def _running(self, inputs: Inputs) -> Iterator[Names]:
        """Yield the values of one run; its buffers are kept for the next one, unless it is captured."""
        given = bind(inputs, self._graph, self.device)
        constants = self._graph.constants.items()
        receiver = sink()
        # pop is atomic: no lock is needed
        workspace = self._kept.pop(receiver, None) or Workspace(self.device)
        workspace.begin(receiver)
        try:
            names = Names(workspace, {name: array for name, array in constants if name not in given})
            for name, value in self._constants.items():
                if name not in given:
                    names.hold(name, value)
            with using(workspace):
                workspace.label = "inputs"
                for name, one in given.items():
                    names.add_input(name, one, is_data=name in self._data_names)
                for node, expiring in zip(self._graph.nodes, self._last_uses, strict=True):
                    workspace.label = node.label
                    with named(node.label):
                        run_node(names, node)
                    for name in expiring:
                        names.forget(name)
                workspace.label = "outputs"
                yield names
            workspace.end()
        finally:
            workspace.begin()
            self._kept[receiver] = workspace

    def __repr__(self) -> str:
        return f"PreparedModel(inputs={self.input_names}, outputs={self.output_names}, device={self.device})"


def packed(x: Tensor) -> Tensor:
    """The tensor itself if it is packed, else a packed copy."""
    return x if x.is_packed else x.copy()


def check_no_options(function: str, options: Mapping[str, Any]) -> None:
    """Raise TypeError for any keyword argument."""
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


class Names:
    """The values of a run, by name; each is uploaded or read back at most once."""

    def __init__(self, workspace: Workspace, arrays: dict[str, NDArray[Any] | None]) -> None:
        self.workspace = workspace
        self.values: dict[str, Nested[Tensor]] = {}  # on the GPU, held
        self.arrays = arrays  # on the host; None for an absent input

    def hold(self, name: str, value: Nested[Tensor]) -> None:
        """Store a value on the GPU, and keep its memory."""
        self.workspace.hold(value)
        self.values[name] = value

    def add_input(self, name: str, given: Given, *, is_data: bool) -> None:
        """Store a caller's input; parameters stay on the host until the GPU needs them."""
        if is_data or isinstance(given, Tensor):
            self.hold(name, mapped(given, partial(asarray, device=self.workspace.device)))
        if given is None or isinstance(given, np.ndarray):
            self.arrays[name] = given
        elif name not in self.values:
            self.arrays[name] = np.asarray(given)

    def on_gpu(self, name: str) -> Nested[Tensor]:
        """A value on the GPU, uploaded if necessary; None for an empty name."""
        if name and name not in self.values:
            array = self.arrays[name]
            self.hold(name, None if array is None else asarray(array, device=self.workspace.device))
        return self.values[name] if name else None

    def on_host(self, position: int, name: str) -> NDArray[Any] | None:
        """A node's input on the host, read back if necessary; None for an empty name."""
        if name and name not in self.arrays:
            self.arrays[name] = self.workspace.read(as_tensor(position, self.values[name]))
        return self.arrays[name] if name else None

    def placeholder(self, position: int, name: str) -> NDArray[Any]:
        """An array with the sizes and dtype of a node's input; its elements are not read back."""
        known = self.arrays.get(name)
        if known is None:
            value = as_tensor(position, self.values.get(name))
            known = np.broadcast_to(np.zeros((), value.dtype), value.shape)
        return known

    def forget(self, name: str) -> None:
        """Release a value that no later node reads."""
        self.workspace.drop(self.values.pop(name, None))
        self.arrays.pop(name, None)


def run_node(names: Names, node: Node) -> None:
    """Run a node on the host if its inputs are known there; else read back its parameters and record it."""
    arrays = host_inputs(names, node)
    if arrays is not None:
        names.arrays |= node.run_on_host(arrays)
        return
    assert node.rule is not None
    data = [names.on_gpu(name) for name in node.data]
    parameters = {position: names.on_host(position, name) for position, name in node.parameters.items()}
    call = Call(names.workspace.device, node.version, node.attributes, data, parameters, len(node.outputs))
    for name, value in zip(node.outputs, node.rule.run(call), strict=True):
        if name:
            names.hold(name, value)


def host_inputs(names: Names, node: Node) -> list[NDArray[Any] | None] | None:
    """The inputs of a node that runs on the host; None if it moves elements on the GPU."""
    if node.operator in FROM_SHAPES:
        return [names.placeholder(0, node.inputs[0])]
    if not node.on_host or any(name and name not in names.arrays for name in node.data):
        return None
    arrays = [names.on_host(position, name) for position, name in enumerate(node.inputs)]
    return arrays if node.rule is None or fits_host(node.operator, arrays) else None


def bind(inputs: Any, graph: Graph, device: Device) -> dict[str, Given]:
    """Inputs by name, checked against the graph's declarations."""
    found: dict[str, Given] = {}
    free_sizes: dict[str, int] = {}
    with named("inputs"):
        given = by_name(inputs, graph)
        for declared in graph.inputs:
            if declared.name in given:
                with named(repr(declared.name)):
                    value = found[declared.name] = normalized(given[declared.name], declared.dtype)
                    check_input(value, declared, free_sizes, device)
    return found


def by_name(inputs: Any, graph: Graph) -> dict[str, Any]:
    """Map inputs to the graph's names; raise if one is missing or unknown."""
    names = [declared.name for declared in graph.inputs]
    needed = [name for name in names if name not in graph.constants]
    if isinstance(inputs, Mapping):
        given = dict(inputs)
    elif isinstance(inputs, np.ndarray | Tensor) and len(needed) == 1:
        given = {needed[0]: inputs}
    elif isinstance(inputs, list | tuple):
        if len(inputs) not in (len(needed), len(names)):
            raise ValueError(f"{len(inputs)} given: must be {len(needed)}, {', '.join(needed)}")
        given = dict(zip(needed if len(inputs) == len(needed) else names, inputs, strict=True))
    else:
        raise TypeError(
            f"of type {type(inputs).__name__}: must be a list, a tuple, or a dict from the names "
            f"{', '.join(names)}"
        )
    for problem, wrong in (("unknown", given.keys() - names), ("missing", set(needed) - given.keys())):
        if wrong:
            raise ValueError(f"{min(wrong)!r} is {problem}: the graph's inputs are {', '.join(names)}")
    return given


def normalized(value: Any, dtype: DType | None) -> Given:
    """An input as an array, a tensor, a list of them for a sequence (no dtype), or None."""
    if isinstance(value, list) and dtype is None:
        for number, item in enumerate(value):
            if isinstance(item, list):
                raise TypeError(f"item {number} is of type list: must be an array or a Tensor")
        return [normalized(item, dtype) for item in value]
    if value is None or isinstance(value, Tensor):
        return value
    check_no_sequence(value)
    return np.asarray(value, dtype) if isinstance(value, list) else np.asarray(value)


def check_input(value: Given, declared: Input, free_sizes: dict[str, int], device: Device) -> None:
    """Raise if an input is not as declared, or on another device; sizes of one name must be equal."""
    if isinstance(value, list) or value is None:
        if declared.dtype is not None:
            raise TypeError(f"of type {type(value).__name__}: must be an array or a Tensor")
        for item in value or []:
            check_input(item, declared, free_sizes, device)
        return
    if isinstance(value, Tensor) and value.device is not device:
        raise ValueError(f"is on another device than the model, {device}: prepare(model, x.device)")
    if declared.dtype is not None and value.dtype.newbyteorder("=") != declared.dtype:
        raise TypeError(f"has dtype {value.dtype}: must be {declared.dtype}")
    if declared.sizes is None:
        return
    names = ", ".join("any" if size is None else str(size) for size in declared.sizes)
    if len(declared.sizes) != len(value.shape):
        rank = len(declared.sizes)
        raise ValueError(f"has sizes {tuple(value.shape)}: must have rank {rank}, sizes ({names})")
    expected = [
        free_sizes.setdefault(size, own) if isinstance(size, str) else own if size is None else size
        for size, own in zip(declared.sizes, value.shape, strict=True)
    ]
    if list(value.shape) != expected:
        known = "".join(f", where {name} is {size}" for name, size in free_sizes.items() if name in names)
        raise ValueError(f"has sizes {tuple(value.shape)}: must be ({names}){known}")

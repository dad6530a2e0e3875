"""An ONNX graph in plain records, and the inputs that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import helper

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.onnx.rules import Rule
from wgslice.onnx.values import Nested
from wgslice.tensors.placed import check_no_sequence
from wgslice.tensors.tensor import Tensor

__all__ = ["Given", "Graph", "Input", "Node", "Reference", "bind"]


Given: TypeAlias = "Nested[NDArray[Any] | Tensor]"  # what a caller gives for an input


class Input(NamedTuple):
    """What a graph says of an input; None where it says nothing, and a name for a size that is free."""

    name: str
    dtype: DType | None
    sizes: tuple[int | str | None, ...] | None


class Reference:
    """A node, as ONNX's reference implementation runs it."""

    def __init__(self, node: onnx.NodeProto, opset: int) -> None:
        self.node = node
        self.opset = opset

    @cached_property
    def evaluator(self) -> Any:
        """The implementation; made for the first run, since most nodes never need it."""
        from onnx.reference import ReferenceEvaluator  # loads every operator there is

        inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(filter(None, self.node.input))]
        outputs = [onnx.ValueInfoProto(name=name) for name in filter(None, self.node.output)]
        graph = helper.make_graph([self.node], "node", inputs, outputs)
        return ReferenceEvaluator(
            helper.make_model(graph, opset_imports=[helper.make_opsetid("", self.opset)])
        )

    def run(self, inputs: Sequence[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """The outputs by their names; whatever the implementation cannot do is a ValueError."""
        given = {name: array for name, array in zip(self.node.input, inputs, strict=True) if name}
        names = [name for name in self.node.output if name]
        try:
            with np.errstate(divide="raise", over="ignore", invalid="ignore"):  # no size is 1 // 0
                found = self.evaluator.run(names, given)
        except MemoryError:
            raise
        except Exception as error:  # each operator has its own
            sizes = ", ".join("nothing" if array is None else str(array.shape) for array in inputs)
            raise ValueError(f"on the host, with inputs of shapes {sizes}: {error}") from error
        return {name: np.asarray(array) for name, array in zip(names, found, strict=True)}


class Node(NamedTuple):
    """An operator, and the names of what it takes and gives; an empty name is nothing."""

    label: str
    operator: str
    rule: Rule | None  # None where the host runs it
    version: int
    attributes: Mapping[str, Any]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    on_host: bool  # whether what it takes is known there, whatever callers give
    reference: Reference
    data: tuple[str, ...]  # of the inputs those that hold elements to move
    parameters: Mapping[int, str]  # the others that are there, by their positions


@dataclass(frozen=True)
class Graph:
    """Nodes in an order in which they can run."""

    nodes: tuple[Node, ...]
    inputs: tuple[Input, ...]
    constants: Mapping[str, NDArray[Any]]
    outputs: tuple[str, ...]


def bind(inputs: Any, graph: Graph, device: Device) -> dict[str, Given]:
    """Inputs by name, each as the graph declares it."""
    with named("inputs"):
        given = by_name(inputs, graph)
        free_sizes: dict[str, int] = {}
        for declared in graph.inputs:
            if declared.name in given:
                with named(repr(declared.name)):
                    check_input(given[declared.name], declared, free_sizes, device)
        return given


def by_name(inputs: Any, graph: Graph) -> dict[str, Given]:
    """Inputs under the names of the graph's, none missing and none unknown."""
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
    dtypes = {declared.name: declared.dtype for declared in graph.inputs}
    for problem, wrong in (("unknown", given.keys() - dtypes), ("missing", set(needed) - given.keys())):
        if wrong:
            raise ValueError(f"{min(wrong)!r} is {problem}: the graph's inputs are {', '.join(names)}")
    found: dict[str, Given] = {}
    for name, value in given.items():
        with named(repr(name)):
            found[name] = normalized(value, dtypes[name])
    return found


def normalized(value: Any, dtype: DType | None) -> Given:
    """An input as an array, a tensor, a list of such for a sequence, which has no dtype, or None."""
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
    """Refuse an input that is not as declared, or on another device; sizes of one name must be equal."""
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

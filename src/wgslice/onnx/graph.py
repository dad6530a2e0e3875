"""An ONNX graph as plain records, and the analysis of which values are known on the host."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, auto
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, defs, helper, numpy_helper

from wgslice.dtypes import DType
from wgslice.onnx.rules import RULES
from wgslice.plans.profiles import MAX_HOST_NBYTES

COMPUTING = frozenset(
    {
        *("Abs", "Add", "And", "Cast", "Ceil", "Div", "Equal", "Floor", "Greater", "GreaterOrEqual", "Less"),
        *("LessOrEqual", "Max", "Min", "Mod", "Mul", "Neg", "Not", "Or", "ReduceMax", "ReduceMin"),
        *("ReduceProd", "ReduceSum", "Sub", "Where"),
    }
)
FROM_SHAPES = frozenset({"Shape", "Size"})  # read sizes, not elements
HOST_ONLY = COMPUTING | FROM_SHAPES | {"Range"}
# By operator, the input that multiplies the number of elements.
MULTIPLYING = {"ConstantOfShape": 0, "Expand": 1, "Tile": 1}
STANDARD_DOMAINS = ("", "ai.onnx")
MOVING = sorted({*RULES, *HOST_ONLY, "Constant"} - COMPUTING)
KNOWN = {*MOVING, *COMPUTING}
INTEGERS = {
    *(TensorProto.INT8, TensorProto.INT16, TensorProto.INT32, TensorProto.INT64, TensorProto.BOOL),
    *(TensorProto.UINT8, TensorProto.UINT16, TensorProto.UINT32, TensorProto.UINT64),
}


class UnsupportedOperatorError(NotImplementedError, ValueError):
    """A graph has unknown operators, or operators that compute elements; the message names them."""


class Origin(Enum):
    """The origin of a value."""

    TENSOR = auto()  # from elements of inputs
    INPUT = auto()  # from integer inputs of rank 0 or 1, possibly on the GPU
    SHAPES = auto()  # from shapes, or from parameters of a node
    CONSTANT = auto()  # from the graph alone


ON_HOST = {Origin.SHAPES, Origin.CONSTANT}  # origins of values that are always known on the host
Origins: TypeAlias = Mapping[str, Origin]  # by name; missing names are tensors


def origin_of(operator: str, inputs: Sequence[Origin | None]) -> Origin | None:
    """The origin of a node's outputs, or None if it computes with values unknown on the host.

    Inputs are moved on the GPU, unless combined with a value from shapes.
    """
    if operator in FROM_SHAPES or operator in ("ConstantOfShape", "Range"):
        return Origin.SHAPES
    given = {origin for origin in inputs if origin is not None}
    if Origin.TENSOR in given:
        return None if operator in COMPUTING else Origin.TENSOR
    if given <= {Origin.CONSTANT}:
        return Origin.CONSTANT
    if operator in COMPUTING or Origin.INPUT not in given:
        return Origin.SHAPES
    data = [inputs[position] for position in RULES[operator].positions(len(inputs))]
    return Origin.SHAPES if Origin.SHAPES in data else Origin.INPUT


def fits_host(operator: str, inputs: Sequence[NDArray[Any] | None]) -> bool:
    """Whether the host runs a node on known elements: at most MAX_HOST_NBYTES of built-in dtypes."""
    given = [array for array in inputs if array is not None]
    nbytes = sum(array.nbytes for array in given)
    if operator in MULTIPLYING:
        factors = given[MULTIPLYING[operator]]
        nbytes = given[0].nbytes * prod(max(int(factor), 1) for factor in factors.flat)
    return nbytes <= MAX_HOST_NBYTES and all(array.dtype.isbuiltin == 1 for array in given)


def origins_given(graph: onnx.GraphProto) -> Origins:
    """The origins of initializers and inputs; an initializer that callers may replace is an input."""
    origins = {tensor.name: Origin.CONSTANT for tensor in graph.initializer}
    for value in graph.input:
        declared = value.type.tensor_type
        few = declared.HasField("shape") and len(declared.shape.dim) <= 1
        origins[value.name] = Origin.INPUT if few and declared.elem_type in INTEGERS else Origin.TENSOR
    return origins


def trace(nodes: Iterable[onnx.NodeProto], given: Origins) -> Origins:
    """The origin of every value; raises if an operator is not supported, or not for its inputs."""
    origins = dict(given)
    refused: dict[str, str] = {}  # by operator, its first node
    reasons: list[str] = []
    for number, node in enumerate(nodes):
        what = ".".join(filter(None, (node.domain, node.op_type)))
        found: Origin | None = None
        if node.domain in STANDARD_DOMAINS and node.op_type in KNOWN and not reduction(node):
            inputs = [origins.get(name, Origin.TENSOR) if name else None for name in node.input]
            found = Origin.CONSTANT if node.op_type == "Constant" else origin_of(node.op_type, inputs)
            if found is None:
                tensor = node.input[inputs.index(Origin.TENSOR)]
                reasons.append(f"; {label_of(node, number)} reads {tensor!r}, whose elements are on the GPU")
        if found is None:
            place = f"node {number}" + f", {node.name!r}" * bool(node.name)
            refused.setdefault(what + reduction(node), place)
        origins |= {name: found or Origin.TENSOR for name in node.output if name}
    if refused:
        names = [f"{what} ({place})" for what, place in sorted(refused.items())]
        raise UnsupportedOperatorError(
            f"operator{'s' * (len(refused) > 1)} {', '.join(names)}: not supported{''.join(reasons[:1])}; "
            f"run the model with another backend; supported are {', '.join(MOVING)}; and "
            "on shapes, constants, and integer inputs of rank 0 or 1, which are known on the host: "
            f"{', '.join(sorted(COMPUTING))}"
        )
    return origins


def reduction(node: onnx.NodeProto) -> str:
    """The reduction of a node for error messages; empty if it has none."""
    for attribute in node.attribute:
        if attribute.name == "reduction" and attribute.s != b"none":
            return f" with reduction = {attribute.s.decode()!r}"
    return ""


def label_of(node: onnx.NodeProto, number: int) -> str:
    """The label of a node in error messages."""
    return f"{node.op_type} node {node.name!r}" if node.name else f"{node.op_type} node {number}"


class Input(NamedTuple):
    """The declaration of an input: None where unspecified, a name for a symbolic size."""

    name: str
    dtype: DType | None = None
    sizes: tuple[int | str | None, ...] | None = None


class Node:
    """A supported operator, and the names of its inputs and outputs; an empty name is an omitted one."""

    def __init__(self, proto: onnx.NodeProto, opset: int, label: str, origins: Origins) -> None:
        self.proto, self.opset, self.label = proto, opset, label
        self.operator = proto.op_type
        self.rule = RULES.get(proto.op_type)  # None where the host runs it
        self.version = defs.get_schema(proto.op_type, opset, "").since_version
        self.attributes = {
            name: read_tensor(label, value) if isinstance(value, onnx.TensorProto) else value
            for name, value in ((each.name, helper.get_attribute_value(each)) for each in proto.attribute)
        }
        self.inputs, self.outputs = tuple(proto.input), tuple(proto.output)
        self.on_host = all(origins[name] in ON_HOST for name in self.outputs if name)
        data = self.rule.positions(len(self.inputs)) if self.rule else []
        self.data = [self.inputs[position] for position in data]  # inputs with elements to move
        others = enumerate(self.inputs)  # parameters, by their positions
        self.parameters = {at: name for at, name in others if name and at not in data}

    @cached_property
    def evaluator(self) -> Any:
        """ONNX's reference implementation of the node; created lazily, since most nodes never need it."""
        from onnx.reference import ReferenceEvaluator  # loads every operator

        inputs = [onnx.ValueInfoProto(name=name) for name in dict.fromkeys(filter(None, self.inputs))]
        outputs = [onnx.ValueInfoProto(name=name) for name in filter(None, self.outputs)]
        graph = helper.make_graph([self.proto], "node", inputs, outputs)
        return ReferenceEvaluator(graph, opsets={"": self.opset})

    def run_on_host(self, inputs: Sequence[NDArray[Any] | None]) -> dict[str, NDArray[Any]]:
        """Run the reference implementation, and return its outputs by name; its errors become ValueError."""
        given = {name: array for name, array in zip(self.inputs, inputs, strict=True) if name}
        names = [name for name in self.outputs if name]
        try:
            with np.errstate(divide="raise", over="ignore", invalid="ignore"):  # no size is 1 // 0
                found = self.evaluator.run(names, given)
        except MemoryError:
            raise
        except Exception as error:  # operators raise different types
            sizes = ", ".join("omitted" if array is None else str(array.shape) for array in inputs)
            raise ValueError(f"on the host, with inputs of shapes {sizes}: {error}") from error
        return {name: np.asarray(array) for name, array in zip(names, found, strict=True)}


class Graph:
    """The nodes of a graph in topological order, and the values of its constants."""

    def __init__(
        self,
        nodes: Sequence[onnx.NodeProto],
        opset: int,
        inputs: Iterable[Input],
        outputs: Iterable[str],
        constants: dict[str, NDArray[Any]],
        given: Origins,
    ) -> None:
        origins = trace(nodes, given)
        newest = defs.onnx_opset_version()
        if not 1 <= opset <= newest:
            raise ValueError(f"opset {opset}: the installed onnx {onnx.__version__} supports 1 to {newest}")
        self.inputs, self.outputs, self.constants = tuple(inputs), tuple(outputs), constants
        self.nodes: list[Node] = []
        for number, node in enumerate(nodes):
            if node.op_type == "Constant":
                self.constants[node.output[0]] = read_constant(node)
            else:
                self.nodes.append(Node(node, opset, label_of(node, number), origins))


def read_model(model: onnx.ModelProto) -> Graph:
    """The graph of a model that has passed ONNX's checker."""
    if model.graph.sparse_initializer:
        raise ValueError(f"initializer {model.graph.sparse_initializer[0].values.name!r}: must not be sparse")
    opsets = sorted({entry.version for entry in model.opset_import if entry.domain in STANDARD_DOMAINS})
    if len(opsets) != 1:
        raise ValueError(f"opsets {opsets} of the standard operators: must be one")
    return Graph(
        model.graph.node,
        opsets[0],
        inputs=[read_input(value) for value in model.graph.input],
        constants={
            tensor.name: read_tensor(f"initializer {tensor.name!r}", tensor)
            for tensor in model.graph.initializer
        },
        outputs=[value.name for value in model.graph.output],
        given=origins_given(model.graph),
    )


def read_tensor(what: str, tensor: onnx.TensorProto) -> NDArray[Any]:
    """The value of an initializer or a Constant node; `what` names it in errors."""
    dtype_of(what, tensor.data_type)
    return numpy_helper.to_array(tensor)


def dtype_of(what: str, number: int) -> DType:
    """The dtype of an ONNX element type; raises if there is none, or for strings."""
    if number == TensorProto.STRING:
        raise TypeError(f"{what}: holds strings, which a GPU cannot store")
    if number not in helper.get_all_tensor_dtypes():
        raise ValueError(
            f"{what}: has elements of type {number}: the installed onnx {onnx.__version__} has no such type"
        )
    return helper.tensor_dtype_to_np_dtype(number)


def read_constant(node: onnx.NodeProto) -> NDArray[Any]:
    """The value of a Constant node."""
    (attribute,) = node.attribute
    value = helper.get_attribute_value(attribute)
    if attribute.name == "value":
        return read_tensor(f"Constant node {node.name!r}", value)
    dtype = {"value_float": np.float32, "value_int": np.int64}.get(attribute.name.removesuffix("s"))
    if dtype is None:
        raise ValueError(f"Constant node {node.name!r}: {attribute.name} must be a tensor or numbers")
    return np.asarray(value, dtype)


def read_input(value: onnx.ValueInfoProto) -> Input:
    """The declaration of an input, with dtype and sizes only if it is a tensor."""
    if value.type.WhichOneof("value") != "tensor_type":
        return Input(value.name)
    declared = value.type.tensor_type
    sizes = [
        size.dim_value if size.HasField("dim_value") else size.dim_param or None
        for size in declared.shape.dim
    ]
    return Input(
        value.name,
        dtype_of(f"input {value.name!r}", declared.elem_type) if declared.elem_type else None,
        tuple(sizes) if declared.HasField("shape") else None,
    )

"""An ONNX backend for graphs of operators that move elements without arithmetic. Needs the extra `onnx`.

Call `prepare(model)` once, then `run(inputs)` repeatedly. Intermediate values stay on the GPU: most nodes
are views, the others copies, recorded together and submitted once.
"""

from __future__ import annotations

from os import PathLike
from typing import Any, TypeAlias

try:
    import onnx
    import onnx.backend.base
except ModuleNotFoundError as error:
    message = "wgslice.onnx needs the package onnx, the extra `onnx` of wgslice: pip install onnx"
    raise ModuleNotFoundError(message, name=error.name) from None
from google.protobuf.message import DecodeError, Message
from numpy.typing import NDArray

from wgslice.arguments import integer
from wgslice.errors import NoAdapterError, named
from wgslice.gpu.adapter import find_adapter
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.protocols import GPUDevice
from wgslice.onnx.graph import Graph, Input, UnsupportedOperatorError, origins_given, read_model, trace
from wgslice.onnx.prepared import Inputs, PreparedModel, check_no_options

__all__ = [
    "Backend",
    "PreparedModel",
    "UnsupportedOperatorError",
    "is_compatible",
    "prepare",
    "run_model",
    "run_node",
    "supports_device",
]

Model: TypeAlias = onnx.ModelProto | str | PathLike[str] | bytes
DeviceLike: TypeAlias = str | Device | GPUDevice

DEFAULT = "CPU"  # ONNX's default; inputs and outputs are in host memory


class Backend(onnx.backend.base.Backend):
    """wgslice as an ONNX backend.

    It runs Concat, ConstantOfShape, DepthToSpace, Expand, Flatten, Gather, GatherElements, Identity, Pad,
    Reshape, ReverseSequence, ScatterND, Slice, SpaceToDepth, Split, Squeeze, Tile, Transpose, Trilu and
    Unsqueeze of every opset, on tensors of all types but strings, and reads Constant nodes. Shape, Size,
    Range, and arithmetic on values from shapes, constants or inputs declared as integers of rank 0 or 1, run
    on the host.
    """

    @classmethod
    def is_compatible(cls, model: Model, device: DeviceLike = DEFAULT, **kwargs: Any) -> bool:
        """Whether a model is valid, and this backend supports all of its operators.

        Parameters
        ----------
        model : onnx.ModelProto, str, os.PathLike or bytes
            As for `prepare`.
        device : str, Device or wgpu.GPUDevice
            "CPU", a part of an adapter's name or backend, or a device, which is always supported.
        **kwargs
            None is accepted.

        Returns
        -------
        bool
            Whether `prepare` would succeed.

        Raises
        ------
        OSError
            The model's file cannot be read.
        """
        check_no_options("is_compatible", kwargs)
        try:
            read_model(checked(model))
        except (TypeError, ValueError, onnx.checker.ValidationError):  # as prepare raises
            return False
        return cls.supports_device(device)

    @classmethod
    def prepare(cls, model: Model, device: DeviceLike = DEFAULT, **kwargs: Any) -> PreparedModel:
        """Check a model, and upload its initializers.

        Parameters
        ----------
        model : onnx.ModelProto, str, os.PathLike or bytes
            A model, the path of its file, or the bytes of its file. Sizes of its inputs may be symbolic.
        device : str, Device or wgpu.GPUDevice
            "CPU", ONNX's default, means `default_device()` of any kind; otherwise a part of an adapter's name
            or backend, or a device that is shared with your own program.
        **kwargs
            None is accepted.

        Returns
        -------
        PreparedModel

        Raises
        ------
        UnsupportedOperatorError
            The graph has other operators, or arithmetic on tensors. The error is a `NotImplementedError` and
            a `ValueError`, and names the operators.
        onnx.checker.ValidationError, TypeError, ValueError
            The model is invalid, or contains strings or other values that a GPU cannot store.
        OSError
            The model's file cannot be read.
        NoAdapterError
            No adapter matches `device`.
        """
        check_no_options("prepare", kwargs)
        with named("prepare"):
            return PreparedModel(read_model(checked(model)), find_device(device))

    @classmethod
    def run_model(
        cls, model: Model, inputs: Inputs, device: DeviceLike = DEFAULT, **kwargs: Any
    ) -> tuple[NDArray[Any], ...]:
        """Prepare a model, and run it once.

        Parameters
        ----------
        model, inputs, device : onnx.ModelProto and the like, sequence or mapping, str or Device
            As for `prepare` and `PreparedModel.run`.
        **kwargs
            None is accepted.

        Returns
        -------
        tuple of numpy.ndarray
            The graph's outputs.

        Raises
        ------
        UnsupportedOperatorError, onnx.checker.ValidationError, TypeError, ValueError, OSError, NoAdapterError
            As for `prepare` and `PreparedModel.run`.
        """
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Inputs,
        device: DeviceLike = DEFAULT,
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[NDArray[Any], ...]:
        """Run one operator.

        Parameters
        ----------
        node : onnx.NodeProto
            A node, as of `onnx.helper.make_node`.
        inputs : sequence or mapping from names
            The node's inputs, without those that it omits (an empty name).
        device : str, Device or wgpu.GPUDevice
            As for `prepare`.
        outputs_info : sequence, optional
            Dtypes and sizes of the outputs; ignored.
        **kwargs
            `opset_version`, an int: the node's opset, the newest by default.

        Returns
        -------
        tuple of numpy.ndarray

        Raises
        ------
        UnsupportedOperatorError, onnx.checker.ValidationError, TypeError, ValueError
            As for `prepare` and `PreparedModel.run`.
        """
        opset: Any = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        check_no_options("run_node", kwargs)
        with named("run_node"):
            opset = integer("opset_version", opset)
            if not isinstance(node, onnx.NodeProto):
                raise TypeError(f"node is of type {type(node).__name__}: must be an onnx.NodeProto")
            trace([node], {})
            super().run_node(node, inputs, outputs_info=outputs_info, opset_version=opset)
            given = [name for name in node.input if name]
            declared = [Input(name) for name in dict.fromkeys(given)]
            graph = Graph([node], opset, declared, filter(None, node.output), {}, {})
            if isinstance(inputs, list | tuple) and len(inputs) == len(given):
                inputs = dict(zip(given, inputs, strict=True))
            return PreparedModel(graph, find_device(device)).run(inputs)

    @classmethod
    def supports_device(cls, device: DeviceLike) -> bool:
        """Whether a device is available.

        Parameters
        ----------
        device : str, Device or wgpu.GPUDevice
            "CPU", a part of an adapter's name or backend, or a device, which is always supported.

        Returns
        -------
        bool
            Whether `prepare` would find an adapter.
        """
        if not isinstance(device, str):
            return True
        try:
            find_adapter(None if device == DEFAULT else device)
        except NoAdapterError:
            return False
        return True


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device


def checked(model: Model) -> onnx.ModelProto:
    """Load and validate a model; raise if an operator is not supported."""
    read = loaded(model)
    trace(read.graph.node, origins_given(read.graph))
    onnx.checker.check_model(without_weights(read))
    for tensor in read.graph.initializer:
        onnx.checker.check_tensor(tensor)
    return read


def without_weights(model: onnx.ModelProto) -> onnx.ModelProto:
    """A copy for ONNX's checker: without weights, which it would copy, and with a shape for every output."""

    def fields(message: Message) -> dict[str, Any]:
        return {field.name: value for field, value in message.ListFields()}

    hollow = [
        onnx.TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0])
        for tensor in model.graph.initializer
    ]
    copied = onnx.ModelProto(**{**fields(model), "graph": {**fields(model.graph), "initializer": hollow}})
    for value in copied.graph.output:
        declared = value.type.tensor_type
        if value.type.WhichOneof("value") in (None, "tensor_type") and not declared.HasField("shape"):
            declared.elem_type = declared.elem_type or onnx.TensorProto.FLOAT
            declared.shape.SetInParent()
    return copied


def loaded(model: Model) -> onnx.ModelProto:
    """Load a model from a path or bytes, or return it."""
    try:
        if isinstance(model, onnx.ModelProto):
            return model
        if isinstance(model, bytes):
            return onnx.load_model_from_string(model)
        if isinstance(model, str | PathLike):
            return onnx.load(model)
    except DecodeError as error:
        given = f"{len(model)} bytes" if isinstance(model, bytes) else repr(str(model))
        raise ValueError(f"model: {given}: not a valid ONNX model: {error}") from None
    raise TypeError(f"model is of type {type(model).__name__}: must be an onnx.ModelProto, a path or bytes")


def find_device(device: DeviceLike) -> Device:
    """The device of a backend's argument `device`; the same one for equal names."""
    if isinstance(device, str | Device):
        return checked_device(None if device == DEFAULT else device)
    return Device.wrap(device)

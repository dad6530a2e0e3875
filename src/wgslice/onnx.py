"""An ONNX backend for graphs of operators that move elements and compute none. Needs the extra `onnx`.

`prepare(model)` once, then `run(inputs)` as often as wanted. Between the nodes nothing leaves the GPU: most
are views, the others copies, recorded together and submitted once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
import onnx.backend.base
from numpy.typing import NDArray

from wgslice.adapter import choose_adapter
from wgslice.device import Device, adapters, default_device
from wgslice.errors import NoAdapterError, named
from wgslice.onnx_graph import Graph, Input, bind
from wgslice.onnx_program import Program
from wgslice.onnx_reader import UnsupportedOperatorError, check_supported, read_model, read_node, unsupported
from wgslice.tensor import Tensor
from wgslice.workspace import MemoryUse

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

DEFAULT = "CPU"  # ONNX's word for "wherever"; its inputs and outputs are in memory


class PreparedModel(onnx.backend.base.BackendRep):
    """A model on a device, ready to run many times.

    Get one with `prepare`. It keeps the buffers of its last run for the next one; dropping it frees them.

    Attributes
    ----------
    device : Device
        Where it runs.
    memory : MemoryUse or None
        Device memory that the last run took.
    """

    def __init__(self, graph: Graph, device: Device) -> None:
        self.program = Program(graph, device)

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self.program.device

    @property
    def memory(self) -> MemoryUse | None:
        """Device memory that the last run took."""
        return self.program.memory

    def run(self, inputs: Sequence[Any] | Mapping[str, Any], **kwargs: Any) -> tuple[NDArray[Any], ...]:
        """Run the model.

        Parameters
        ----------
        inputs : sequence or mapping from names
            Of the graph's inputs, those with an initializer left out or not: arrays of the declared dtypes
            and sizes, or tensors on this device; lists of them for sequences, None for an absent optional.
        **kwargs
            None is known.

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
        return tuple(self.program.run(bind(inputs, self.program.graph, self.device)))

    def run_on_device(self, inputs: Sequence[Any] | Mapping[str, Any]) -> tuple[Tensor, ...]:
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
        return tuple(self.program.run_on_device(bind(inputs, self.program.graph, self.device)))


class Backend(onnx.backend.base.Backend):
    """wgslice as an ONNX backend.

    It runs Concat, DepthToSpace, Expand, Flatten, Identity, Pad, Reshape, Slice, SpaceToDepth, Split,
    Squeeze, Transpose and Unsqueeze of every opset, on tensors of all types but strings, and takes Constant
    nodes.
    """

    @classmethod
    def is_compatible(cls, model: onnx.ModelProto, device: str = DEFAULT, **kwargs: Any) -> bool:
        """Whether all operators of a model run here.

        Parameters
        ----------
        model : onnx.ModelProto
            What `onnx.load` gives.
        device : str
            As for `prepare`.
        **kwargs
            None is known.
        """
        check_no_options("is_compatible", kwargs)
        return not unsupported(model.graph.node) and cls.supports_device(device)

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str | Device = DEFAULT, **kwargs: Any) -> PreparedModel:
        """Make a model ready to run: check it, and upload its initializers.

        Parameters
        ----------
        model : onnx.ModelProto
            What `onnx.load` gives. Sizes of its inputs may be free.
        device : str or Device
            "CPU", ONNX's default, is `default_device()`; otherwise a part of an adapter's name or backend, or
            a device that is shared with your own program.
        **kwargs
            None is known.

        Returns
        -------
        PreparedModel

        Raises
        ------
        UnsupportedOperatorError
            The graph has other operators; a `NotImplementedError` and a `ValueError` that names them.
        onnx.checker.ValidationError
            The model is none by ONNX's rules.
        NoAdapterError
            No adapter fits `device`.
        """
        check_no_options("prepare", kwargs)
        with named("prepare"):
            check_supported(model.graph.node)
            super().prepare(model)
            return PreparedModel(read_model(model), find_device(device))

    @classmethod
    def run_model(
        cls,
        model: onnx.ModelProto,
        inputs: Sequence[Any] | Mapping[str, Any],
        device: str | Device = DEFAULT,
        **kwargs: Any,
    ) -> tuple[NDArray[Any], ...]:
        """Prepare a model, and run it once.

        Parameters
        ----------
        model : onnx.ModelProto
            As for `prepare`.
        inputs : sequence or mapping from names
            As for `PreparedModel.run`.
        device : str or Device
            As for `prepare`.
        **kwargs
            None is known.

        Returns
        -------
        tuple of numpy.ndarray
        """
        return cls.prepare(model, device, **kwargs).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Sequence[Any] | Mapping[str, Any],
        device: str | Device = DEFAULT,
        outputs_info: Any = None,
        **kwargs: Any,
    ) -> tuple[NDArray[Any], ...]:
        """Run one operator.

        Parameters
        ----------
        node : onnx.NodeProto
            What `onnx.helper.make_node` gives.
        inputs : sequence or mapping from names
            Of the node's inputs, those that it leaves out (an empty name) left out too.
        device : str or Device
            As for `prepare`.
        outputs_info : sequence, optional
            Dtypes and sizes of the outputs; not needed.
        **kwargs
            `opset_version`, an int: of which opset the node is. The newest by default.

        Returns
        -------
        tuple of numpy.ndarray

        Raises
        ------
        UnsupportedOperatorError, onnx.checker.ValidationError, TypeError, ValueError
            As for `prepare` and `PreparedModel.run`.
        """
        opset = kwargs.pop("opset_version", onnx.defs.onnx_opset_version())
        check_no_options("run_node", kwargs)
        with named("run_node"):
            check_supported([node])
            super().run_node(node, inputs, outputs_info=outputs_info, opset_version=opset)
            names = dict.fromkeys(filter(None, node.input))
            declared = tuple(Input(name, None, None) for name in names)
            graph = Graph((read_node(node, opset),), declared, {}, tuple(filter(None, node.output)))
            return PreparedModel(graph, find_device(device)).run(inputs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether there is such a device.

        Parameters
        ----------
        device : str
            "CPU", or a part of an adapter's name or backend.
        """
        try:
            choose_adapter(adapters(), None if device == DEFAULT else device)
        except NoAdapterError:
            return False
        return True


is_compatible = Backend.is_compatible
prepare = Backend.prepare
run_model = Backend.run_model
run_node = Backend.run_node
supports_device = Backend.supports_device


def check_no_options(function: str, options: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that nothing here knows."""
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")


found_devices: dict[str, Device] = {}  # by the name that asked for them


def find_device(device: str | Device) -> Device:
    """The device that a backend's caller names; the same one for the same name."""
    if isinstance(device, Device):
        return device
    if device == DEFAULT:
        return default_device()
    if device not in found_devices or found_devices[device].is_lost():
        found_devices[device] = Device.request(device)
    return found_devices[device]

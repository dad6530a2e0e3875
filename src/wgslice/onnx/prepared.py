"""An ONNX model on a device, ready to run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias, cast

import onnx.backend.base
from numpy.typing import NDArray

from wgslice.gpu.device import Device
from wgslice.onnx.graph import Graph, bind
from wgslice.onnx.program import Program
from wgslice.onnx.values import MemoryUse
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
        self.program = Program(graph, device)

    @property
    def device(self) -> Device:
        """Where it runs."""
        return self.program.device

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the inputs."""
        return tuple(declared.name for declared in self.program.graph.inputs)

    @property
    def output_names(self) -> tuple[str, ...]:
        """Names of the outputs."""
        return self.program.graph.outputs

    @property
    def memory(self) -> MemoryUse | None:
        """Device memory that the last run took."""
        return self.program.memory

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
        outputs = self.program.run(bind(inputs, self.program.graph, self.device))
        return cast("tuple[NDArray[Any], ...]", tuple(outputs))  # a graph that gives a sequence is rare

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
        outputs = self.program.run_on_device(bind(inputs, self.program.graph, self.device))
        return cast("tuple[Tensor, ...]", tuple(outputs))

    def __repr__(self) -> str:
        return f"PreparedModel(inputs={self.input_names}, outputs={self.output_names}, device={self.device})"


def check_no_options(function: str, options: Mapping[str, Any]) -> None:
    """Refuse keyword arguments that nothing here knows."""
    for name in options:
        raise TypeError(f"{function}() got an unexpected keyword argument {name!r}")

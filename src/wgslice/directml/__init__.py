"""DirectML's slices on any GPU: its descriptors, its objects and its order of calls.

C++ code for `IDMLDevice` and related interfaces ports line by line: a `wgpu.GPUDevice` replaces the D3D12
device, a `wgpu.GPUBuffer` a resource, a `wgpu.GPUCommandEncoder` a command list; out pointers become return
values. This module also exports the structures and enumerators of `structs`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import wgslice.directml.structs as structs
from wgslice.arguments import Integers, integer
from wgslice.directml.descriptors import (
    Bindings,
    array_item,
    at,
    bound,
    counted,
    of_kind,
    only,
    read_operator,
    snapshots,
    tensor_desc,
)
from wgslice.directml.structs import *  # noqa: F403 -- exported from here too
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import CommandEncoder, GPUDevice
from wgslice.gpu.recording import Binding, Copy, Recorder, checked_encoder, plan_and_bind
from wgslice.layout import Layout
from wgslice.operators.slice1 import slice1
from wgslice.tensors.tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Declare the enumerators, which `structs` generates, to the type checker."""


class IDMLOperator:
    """A checked operator, not yet compiled."""

    def __init__(self, desc: structs.DML_OPERATOR_DESC) -> None:
        self.descriptor, self.input, self.output = read_operator(desc)


class IDMLDispatchable:
    """A recordable object: a compiled operator or an initializer."""

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """The requirements on its binding table; a temporary resource is never needed."""
        raise NotImplementedError

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        raise NotImplementedError


class IDMLCompiledOperator(IDMLDispatchable):
    """An operator planned for a device.

    Attributes
    ----------
    compiled : CompiledOperator
        The operator of wgslice; its `plan` describes what runs.
    """

    def __init__(self, device: Device, op: IDMLOperator) -> None:
        self.input, self.output = op.input, op.output
        self.compiled = device.compile(op.descriptor)

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors, and a persistent resource if DirectML owns the input."""
        owned = self.input.nbytes if self.input.owned else 0
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2, PersistentResourceSize=owned)

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        owned = self.input.owned
        if owned and any(binding.Type != structs.DML_BINDING_TYPE.NONE for binding in table.inputs):
            raise ValueError(
                "input: is owned by DirectML and bound to the initializer; bind DML_BINDING_TYPE_NONE here"
            )
        with named("persistent resource" if owned else "input"):
            source = bound(table.persistent if owned else only(table.inputs), self.input)
        with named("output"):
            target = bound(only(table.outputs), self.output)
        self.compiled.record(encoder, input=source, output=target)


class IDMLOperatorInitializer(IDMLDispatchable):
    """Copies inputs owned by DirectML to persistent resources; other operators need no initialization."""

    def __init__(self, device: Device, operators: Sequence[IDMLCompiledOperator]) -> None:
        self.device = device
        self.operators = tuple(operators)

    def Reset(
        self, operatorCount: int, operators: IDMLCompiledOperator | Sequence[IDMLCompiledOperator]
    ) -> None:
        """Replace the operators to initialize."""
        with named("Reset"):
            self.operators = tuple(counted("operators", operatorCount, operators, IDMLCompiledOperator))

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors per operator: its inputs, and its persistent resource as an output."""
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2 * len(self.operators))

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        checked, copies = checked_encoder(self.device, encoder), []
        for number, operator in enumerate(self.operators):
            tensor = operator.input
            if tensor.owned:
                with named(f"inputs of operator {number}"):
                    source = bound(array_item(at(table.inputs, number)), tensor)
                with named(f"persistent resource of operator {number}"):
                    target = bound(at(table.outputs, number), tensor)
                read, written = (
                    Binding(buffer, Layout.packed((tensor.nbytes,), start), itemsize=1)
                    for buffer, start in (source, target)
                )
                copies.append(plan_and_bind(self.device, Copy(read, written)))
        recorder = Recorder(self.device, checked)
        for copy in copies:
            recorder.play(copy)
        recorder.end()


class IDMLBindingTable:
    """The buffers that a dispatchable is recorded with; each binding stays until it is replaced."""

    def __init__(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        self.Reset(desc)

    def Reset(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        """Clear all bindings, and prepare the table for another dispatchable.

        Raises
        ------
        TypeError, ValueError
            The descriptor has no dispatchable, or fewer descriptors than that requires.
        """
        with named("IDMLBindingTable"):
            of_kind("desc", desc, structs.DML_BINDING_TABLE_DESC)
            of_kind("Dispatchable", desc.Dispatchable, IDMLDispatchable)
            required = desc.Dispatchable.GetBindingProperties().RequiredDescriptorCount
            if integer("SizeInDescriptors", desc.SizeInDescriptors) < required:
                raise ValueError(f"SizeInDescriptors = {desc.SizeInDescriptors}: must be at least {required}")
        self.dispatchable = desc.Dispatchable
        self.inputs: list[structs.DML_BINDING_DESC] = []
        self.outputs: list[structs.DML_BINDING_DESC] = []
        self.persistent = structs.DML_BINDING_DESC()

    def BindInputs(self, bindingCount: int, bindings: Bindings) -> None:
        """Bind the input, or for an initializer an array of them for each operator."""
        with named("BindInputs"):
            self.inputs = snapshots(bindingCount, bindings)

    def BindOutputs(self, bindingCount: int, bindings: Bindings) -> None:
        """Bind the output, or for an initializer the persistent resource of each operator."""
        with named("BindOutputs"):
            self.outputs = snapshots(bindingCount, bindings)

    def BindTemporaryResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Do nothing: no operator here needs a temporary resource."""

    def BindPersistentResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Bind the persistent resource that the initializer has written."""
        with named("BindPersistentResource"):
            (self.persistent,) = snapshots(1, binding or structs.DML_BINDING_DESC())


class IDMLCommandRecorder:
    """Records dispatchables into command encoders."""

    def RecordDispatch(
        self, commandList: CommandEncoder, dispatchable: IDMLDispatchable, bindings: IDMLBindingTable
    ) -> None:
        """Record a dispatchable with its current bindings.

        Parameters
        ----------
        commandList : wgpu.GPUCommandEncoder
            As of `CompiledOperator.record`.
        dispatchable : IDMLCompiledOperator or IDMLOperatorInitializer
            The dispatchable that the binding table was made or reset for.
        bindings : IDMLBindingTable
            Buffers of the device with usage STORAGE. Bytes of the output outside all elements keep their
            value, which DirectML does not guarantee.

        Raises
        ------
        TypeError, ValueError, DeviceLostError
            As `CompiledOperator.record`, or a binding is missing. Nothing is recorded.
        """
        with named("RecordDispatch"):
            of_kind("bindings", bindings, IDMLBindingTable)
            if bindings.dispatchable is not dispatchable:
                raise ValueError("the binding table is for another dispatchable: Reset it for this one")
            dispatchable._record(commandList, bindings)


def slice(
    input: Tensor,
    input_window_offsets: Integers,
    input_window_sizes: Integers,
    input_window_strides: Integers,
) -> Tensor:
    """`wgslice.slice1` with the signature of PyDirectML's `slice`.

    Parameters
    ----------
    input : Tensor
        As `x` of `slice1`.
    input_window_offsets, input_window_sizes, input_window_strides : sequence of int
        As `offsets`, `sizes` and `strides` of `slice1`.

    Returns
    -------
    Tensor
        As `slice1`, in a new buffer.

    Raises
    ------
    WindowError, TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `slice1`.
    """
    return slice1(input, input_window_offsets, input_window_sizes, input_window_strides)


def DMLCalcBufferTensorSize(
    dataType: structs.DML_TENSOR_DATA_TYPE,
    dimensionCount: int,
    sizes: Sequence[int],
    strides: Sequence[int] | None = None,
) -> int:
    """Minimum `TotalTensorSizeInBytes` of a tensor: the end of its last element, rounded up to 4 bytes.

    Parameters
    ----------
    dataType : DML_TENSOR_DATA_TYPE
        The data type of the elements.
    dimensionCount : int
        The rank, 1 to 8.
    sizes, strides : sequence of int
        In elements; packed without strides.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    TypeError, ValueError
        A number is no integer, out of range, or missing.
    """
    with named("DMLCalcBufferTensorSize"):
        return tensor_desc(dataType, dimensionCount, sizes, strides).nbytes


def DMLCreateDevice(
    device: GPUDevice | Device,
    flags: structs.DML_CREATE_DEVICE_FLAGS = structs.DML_CREATE_DEVICE_FLAGS.NONE,
) -> IDMLDevice:
    """Make a DirectML device on an existing device.

    Parameters
    ----------
    device : wgpu.GPUDevice or Device
        The device of all buffers and encoders.
    flags : DML_CREATE_DEVICE_FLAGS
        All calls are checked, with or without DML_CREATE_DEVICE_FLAG_DEBUG.

    Returns
    -------
    IDMLDevice

    Raises
    ------
    TypeError, DeviceLostError
        `device` is no device, or lost.
    """
    structs.DML_CREATE_DEVICE_FLAGS(flags)  # raises for unknown flags
    return IDMLDevice(device if isinstance(device, Device) else Device.wrap(device))


class IDMLDevice:
    """A device under DirectML's names. Make one with `DMLCreateDevice`.

    Attributes
    ----------
    device : Device
        The device of wgslice.
    """

    def __init__(self, device: Device) -> None:
        self.device = device

    def GetParentDevice(self) -> Any:
        """The device that this was made from."""
        return self.device.wgpu_device

    def CreateOperator(self, desc: structs.DML_OPERATOR_DESC) -> IDMLOperator:
        """Check an operator: DML_OPERATOR_SLICE, DML_OPERATOR_SLICE1 or DML_OPERATOR_SLICE_GRAD.

        Raises
        ------
        TypeError, ValueError, WindowError
            A structure is missing, or violates a rule of its own or of `Slice1`.
        """
        with named("CreateOperator"):
            return IDMLOperator(desc)

    def CompileOperator(
        self, op: IDMLOperator, flags: structs.DML_EXECUTION_FLAGS = structs.DML_EXECUTION_FLAGS.NONE
    ) -> IDMLCompiledOperator:
        """Plan an operator, and create its pipelines.

        Raises
        ------
        ValueError
            DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE is set, since bindings are read when they are recorded; or
            a tensor exceeds the device's largest buffer.
        """
        with named("CompileOperator"):
            of_kind("op", op, IDMLOperator)
            if structs.DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE in structs.DML_EXECUTION_FLAGS(flags):
                raise ValueError(
                    "flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE: RecordDispatch reads the bindings; "
                    "bind before it, and omit the flag"
                )
            return IDMLCompiledOperator(self.device, op)

    def CreateOperatorInitializer(
        self, operatorCount: int, operators: IDMLCompiledOperator | Sequence[IDMLCompiledOperator]
    ) -> IDMLOperatorInitializer:
        """Make an initializer, which records nothing unless DirectML owns an input."""
        with named("CreateOperatorInitializer"):
            compiled = counted("operators", operatorCount, operators, IDMLCompiledOperator)
        return IDMLOperatorInitializer(self.device, compiled)

    def CreateBindingTable(self, desc: structs.DML_BINDING_TABLE_DESC) -> IDMLBindingTable:
        """Make a binding table for a dispatchable; raises as `IDMLBindingTable.Reset`."""
        return IDMLBindingTable(desc)

    def CreateCommandRecorder(self) -> IDMLCommandRecorder:
        """Make a recorder."""
        return IDMLCommandRecorder()


__all__ = ["slice", *(name for name in globals() if name.startswith(("DML", "IDML")))]

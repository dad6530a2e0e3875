"""DirectML's slices on any GPU: its descriptors, its objects and its order of calls.

C++ that uses `IDMLDevice` and its kin ports line by line: a `wgpu.GPUDevice` stands for the D3D12 device, a
`wgpu.GPUBuffer` for a resource, a `wgpu.GPUCommandEncoder` for a command list; what C++ returns through a
pointer is returned. Structures and enumerators, of `structs`, are this module's names too.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
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
from wgslice.directml.structs import *  # noqa: F403 -- this module's names too
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.protocols import CommandEncoder, GPUDevice
from wgslice.gpu.recording import BoundLayout, record
from wgslice.layout import Layout
from wgslice.operators.slice1 import slice1
from wgslice.plans.copy import plan_copy
from wgslice.tensors.tensor import Tensor

if TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        """Stand for the enumerators, which `structs` makes of the enumerations."""


class IDMLOperator:
    """An operator that is checked, and not yet compiled."""

    def __init__(self, desc: structs.DML_OPERATOR_DESC) -> None:
        self.descriptor, self.input, self.output = read_operator(desc)


class IDMLDispatchable:
    """What can be recorded: a compiled operator or an initializer."""

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """What its binding table must hold; no temporary resource is ever needed."""
        raise NotImplementedError

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        raise NotImplementedError


class IDMLCompiledOperator(IDMLDispatchable):
    """An operator planned for a device.

    Attributes
    ----------
    compiled : CompiledOperator
        wgslice's own; its `plan` says what runs.
    """

    def __init__(self, device: Device, op: IDMLOperator) -> None:
        self.input, self.output = op.input, op.output
        self.compiled = device.compile(op.descriptor)

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors, and a persistent resource for an input that is owned by DirectML."""
        owned = self.input.nbytes if self.input.owned else 0
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2, PersistentResourceSize=owned)

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        owned = self.input.owned
        if owned and any(binding.Type != structs.DML_BINDING_TYPE.NONE for binding in table.inputs):
            raise ValueError(
                "input: is owned by DirectML, and bound to the initializer: bind DML_BINDING_TYPE_NONE"
            )
        with named("persistent resource" if owned else "input"):
            source = bound(table.persistent if owned else only(table.inputs), self.input)
        with named("output"):
            target = bound(only(table.outputs), self.output)
        self.compiled.record(encoder, input=source, output=target)


class IDMLOperatorInitializer(IDMLDispatchable):
    """Gives compiled operators the inputs that are owned by DirectML; others need no initialization."""

    def __init__(self, device: Device, operators: Sequence[IDMLCompiledOperator]) -> None:
        self.device = device
        self.operators = tuple(operators)

    def Reset(
        self, operatorCount: int, operators: IDMLCompiledOperator | Sequence[IDMLCompiledOperator]
    ) -> None:
        """Initialize other operators from now on."""
        with named("Reset"):
            self.operators = tuple(counted("operators", operatorCount, operators, IDMLCompiledOperator))

    def GetBindingProperties(self) -> structs.DML_BINDING_PROPERTIES:
        """Two descriptors an operator: its inputs, and its persistent resource, which is an output here."""
        return structs.DML_BINDING_PROPERTIES(RequiredDescriptorCount=2 * len(self.operators))

    def _record(self, encoder: CommandEncoder, table: IDMLBindingTable) -> None:
        copies = []
        for number, operator in enumerate(self.operators):
            tensor = operator.input
            if tensor.owned:
                with named(f"inputs of operator {number}"):
                    source = bound(array_item(at(table.inputs, number)), tensor)
                with named(f"persistent resource of operator {number}"):
                    target = bound(at(table.outputs, number), tensor)
                copies.append(
                    [
                        BoundLayout(buffer, Layout.packed((tensor.nbytes,), start), itemsize=1)
                        for buffer, start in (source, target)
                    ]
                )
        for side in chain.from_iterable(copies):
            check_usable(self.device, side.buffer)
            check_alive(self.device, side.buffer)
        for read, written in copies:
            record(self.device, encoder, plan_copy, read, written)


class IDMLBindingTable:
    """The buffers that a dispatchable is recorded with; each binding holds until another takes its place."""

    def __init__(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        self.Reset(desc)

    def Reset(self, desc: structs.DML_BINDING_TABLE_DESC) -> None:
        """Forget all bindings, and serve another dispatchable.

        Raises
        ------
        TypeError, ValueError
            It has no dispatchable, or fewer descriptors than that requires.
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
            self.inputs = snapshots("bindings", bindingCount, bindings)

    def BindOutputs(self, bindingCount: int, bindings: Bindings) -> None:
        """Bind the output, or for an initializer the persistent resource of each operator."""
        with named("BindOutputs"):
            self.outputs = snapshots("bindings", bindingCount, bindings)

    def BindTemporaryResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Do nothing: no operator here needs a temporary resource."""

    def BindPersistentResource(self, binding: structs.DML_BINDING_DESC | None) -> None:
        """Bind what the initializer has filled."""
        with named("BindPersistentResource"):
            (self.persistent,) = snapshots("binding", 1, binding or structs.DML_BINDING_DESC())


class IDMLCommandRecorder:
    """Records dispatchables into command encoders."""

    def RecordDispatch(
        self, commandList: CommandEncoder, dispatchable: IDMLDispatchable, bindings: IDMLBindingTable
    ) -> None:
        """Record, with what is bound now.

        Parameters
        ----------
        commandList : wgpu.GPUCommandEncoder
            Of the device, with no pass open; you finish and submit it.
        dispatchable : IDMLCompiledOperator or IDMLOperatorInitializer
            What the binding table was made or reset for.
        bindings : IDMLBindingTable
            Buffers of the device with usage STORAGE. Bytes of the output that belong to no element keep their
            value, which DirectML does not promise.

        Raises
        ------
        TypeError, ValueError
            A binding is missing, too small, misaligned, destroyed, mapped, or of another device. Nothing is
            recorded then.
        DeviceLostError
            The device is gone.
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
        Of rank 1 to 8 and any dtype.
    input_window_offsets, input_window_sizes : sequence of int
        The window, in elements, u32, each size at least 1.
    input_window_strides : sequence of int
        Step within it in elements, i32, not 0; a negative one begins at the window's end.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own; submitted and not waited for.

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
    """Least `TotalTensorSizeInBytes` of a tensor: to the end of its last element, rounded up to 4.

    Parameters
    ----------
    dataType : DML_TENSOR_DATA_TYPE
        Of the elements.
    dimensionCount : int
        1 to 8.
    sizes, strides : sequence of int
        In elements; packed where there are no strides.

    Returns
    -------
    int
        Bytes.

    Raises
    ------
    TypeError, ValueError
        A number is none, out of range, or missing.
    """
    with named("DMLCalcBufferTensorSize"):
        return tensor_desc(dataType, dimensionCount, sizes, strides).nbytes


def DMLCreateDevice(
    device: GPUDevice | Device,
    flags: structs.DML_CREATE_DEVICE_FLAGS = structs.DML_CREATE_DEVICE_FLAGS.NONE,
) -> IDMLDevice:
    """Make a DirectML device on a device of yours.

    Parameters
    ----------
    device : wgpu.GPUDevice or Device
        What buffers and encoders belong to.
    flags : DML_CREATE_DEVICE_FLAGS
        Everything is always checked, with DML_CREATE_DEVICE_FLAG_DEBUG and without.

    Returns
    -------
    IDMLDevice

    Raises
    ------
    TypeError, DeviceLostError
        It is no device, or lost.
    """
    structs.DML_CREATE_DEVICE_FLAGS(flags)  # refuses flags that are none
    return IDMLDevice(device if isinstance(device, Device) else Device.wrap(device))


class IDMLDevice:
    """A device under DirectML's names. Make one with `DMLCreateDevice`.

    Attributes
    ----------
    device : Device
        wgslice's own.
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
            A structure is missing, or breaks a rule; what the descriptor says of windows is as in `Slice1`.
        """
        with named("CreateOperator"):
            return IDMLOperator(desc)

    def CompileOperator(
        self, op: IDMLOperator, flags: structs.DML_EXECUTION_FLAGS = structs.DML_EXECUTION_FLAGS.NONE
    ) -> IDMLCompiledOperator:
        """Plan an operator, and make its pipelines.

        Raises
        ------
        ValueError
            DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE is set: what is bound counts when it is recorded. Or the
            device has no buffer for a tensor of that size.
        """
        with named("CompileOperator"):
            of_kind("op", op, IDMLOperator)
            if structs.DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE in structs.DML_EXECUTION_FLAGS(flags):
                raise ValueError(
                    "flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE: bindings count when RecordDispatch is "
                    "called; bind before it, and leave the flag out"
                )
            return IDMLCompiledOperator(self.device, op)

    def CreateOperatorInitializer(
        self, operatorCount: int, operators: IDMLCompiledOperator | Sequence[IDMLCompiledOperator]
    ) -> IDMLOperatorInitializer:
        """Make an initializer; of operators whose inputs are all bound when they run it records nothing."""
        with named("CreateOperatorInitializer"):
            compiled = counted("operators", operatorCount, operators, IDMLCompiledOperator)
        return IDMLOperatorInitializer(self.device, compiled)

    def CreateBindingTable(self, desc: structs.DML_BINDING_TABLE_DESC) -> IDMLBindingTable:
        """Make a binding table for a dispatchable.

        Raises
        ------
        TypeError, ValueError
            As `IDMLBindingTable.Reset`.
        """
        return IDMLBindingTable(desc)

    def CreateCommandRecorder(self) -> IDMLCommandRecorder:
        """Make a recorder."""
        return IDMLCommandRecorder()


__all__ = ["slice", *(name for name in globals() if name.startswith(("DML", "IDML")))]

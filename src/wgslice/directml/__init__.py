"""DirectML's slices on any GPU: its descriptors, its objects and its order of calls.

C++ that uses `IDMLDevice` and its kin ports line by line: a `wgpu.GPUDevice` stands for the D3D12 device, a
`wgpu.GPUBuffer` for a resource, a `wgpu.GPUCommandEncoder` for a command list; what C++ returns through a
pointer is returned. Structures and enumerators, of `structs`, are this module's names too.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import wgslice.directml.structs as structs
from wgslice.directml.descriptors import check_kind, counted, read_operator, tensor_desc
from wgslice.directml.objects import (
    IDMLBindingTable,
    IDMLCommandRecorder,
    IDMLCompiledOperator,
    IDMLDispatchable,
    IDMLOperator,
    IDMLOperatorInitializer,
)
from wgslice.directml.structs import *  # noqa: F403 -- this module's names too
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.operators.slice1 import slice1
from wgslice.tensors.tensor import Tensor

if TYPE_CHECKING:
    from wgslice.gpu.protocols import GPUDevice

    def __getattr__(name: str) -> Any:
        """Stand for the enumerators, which `structs` makes of the enumerations."""


__all__ = [
    "DMLCalcBufferTensorSize",
    "DMLCreateDevice",
    "IDMLBindingTable",
    "IDMLCommandRecorder",
    "IDMLCompiledOperator",
    "IDMLDevice",
    "IDMLDispatchable",
    "IDMLOperator",
    "IDMLOperatorInitializer",
    "slice",
]
__all__ += structs.__all__


def slice(
    input: Tensor,
    input_window_offsets: Iterable[SupportsIndex],
    input_window_sizes: Iterable[SupportsIndex],
    input_window_strides: Iterable[SupportsIndex],
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
            return IDMLOperator(read_operator(desc))

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
            check_kind("op", op, IDMLOperator)
            if structs.DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE in structs.DML_EXECUTION_FLAGS(flags):
                raise ValueError(
                    "flags = DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE: bindings count when RecordDispatch is "
                    "called; bind before it, and leave the flag out"
                )
            return IDMLCompiledOperator(self.device, op.checked)

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

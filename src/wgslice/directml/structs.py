"""DirectML's structures for slices, under its own names.

They are mutable and begin as zeros, as `= {}` makes them in C++; a pointer and its count become a sequence
and its count. Semantics of each: `DirectML.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from wgslice.directml.enums import (
    DML_BINDING_TYPE,
    DML_OPERATOR_TYPE,
    DML_TENSOR_DATA_TYPE,
    DML_TENSOR_FLAGS,
    DML_TENSOR_TYPE,
)

__all__ = [
    "DML_BINDING_DESC",
    "DML_BINDING_PROPERTIES",
    "DML_BINDING_TABLE_DESC",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
    "DML_BUFFER_TENSOR_DESC",
    "DML_OPERATOR_DESC",
    "DML_SLICE1_OPERATOR_DESC",
    "DML_SLICE_GRAD_OPERATOR_DESC",
    "DML_SLICE_OPERATOR_DESC",
    "DML_TENSOR_DESC",
]


@dataclass(slots=True)
class DML_BUFFER_TENSOR_DESC:
    """A tensor in a buffer: sizes and strides in elements, everything else in bytes."""

    DataType: DML_TENSOR_DATA_TYPE = DML_TENSOR_DATA_TYPE.UNKNOWN
    Flags: DML_TENSOR_FLAGS = DML_TENSOR_FLAGS.NONE
    DimensionCount: int = 0  # 1 to 8
    Sizes: Sequence[int] = ()
    Strides: Sequence[int] | None = None  # packed where None
    TotalTensorSizeInBytes: int = 0  # a multiple of 4, what DMLCalcBufferTensorSize says or more
    GuaranteedBaseOffsetAlignment: int = 0  # of bindings, a power of two; 0 guarantees nothing


@dataclass(slots=True)
class DML_TENSOR_DESC:
    """A tensor of a type."""

    Type: DML_TENSOR_TYPE = DML_TENSOR_TYPE.INVALID
    Desc: DML_BUFFER_TENSOR_DESC | None = None


@dataclass(slots=True)
class DML_SLICE_OPERATOR_DESC:
    """Slice: `Sizes` elements from `Offsets` on, `Strides` apart."""

    InputTensor: DML_TENSOR_DESC | None = None
    OutputTensor: DML_TENSOR_DESC | None = None
    DimensionCount: int = 0
    Offsets: Sequence[int] = ()
    Sizes: Sequence[int] = ()
    Strides: Sequence[int] = ()


@dataclass(slots=True)
class DML_SLICE1_OPERATOR_DESC:
    """Slice1: a window of the input, walked with signed strides."""

    InputTensor: DML_TENSOR_DESC | None = None
    OutputTensor: DML_TENSOR_DESC | None = None
    DimensionCount: int = 0
    InputWindowOffsets: Sequence[int] = ()
    InputWindowSizes: Sequence[int] = ()
    InputWindowStrides: Sequence[int] = ()


@dataclass(slots=True)
class DML_SLICE_GRAD_OPERATOR_DESC:
    """SliceGrad: Slice1's gradient, put into the window that it was cut from."""

    InputGradientTensor: DML_TENSOR_DESC | None = None
    OutputGradientTensor: DML_TENSOR_DESC | None = None
    DimensionCount: int = 0
    InputWindowOffsets: Sequence[int] = ()
    InputWindowSizes: Sequence[int] = ()
    InputWindowStrides: Sequence[int] = ()


@dataclass(slots=True)
class DML_OPERATOR_DESC:
    """An operator of a type."""

    Type: DML_OPERATOR_TYPE = DML_OPERATOR_TYPE.INVALID
    Desc: DML_SLICE_OPERATOR_DESC | DML_SLICE1_OPERATOR_DESC | DML_SLICE_GRAD_OPERATOR_DESC | None = None


@dataclass(slots=True)
class DML_BUFFER_BINDING:
    """A part of a buffer, a wgpu.GPUBuffer with usage STORAGE; a Buffer of None binds nothing."""

    Buffer: Any = None
    Offset: int = 0  # bytes
    SizeInBytes: int = 0


@dataclass(slots=True)
class DML_BUFFER_ARRAY_BINDING:
    """The inputs of one operator, for its initializer."""

    BindingCount: int = 0
    Bindings: Sequence[DML_BUFFER_BINDING] = ()


@dataclass(slots=True)
class DML_BINDING_DESC:
    """A binding of a type."""

    Type: DML_BINDING_TYPE = DML_BINDING_TYPE.NONE
    Desc: DML_BUFFER_BINDING | DML_BUFFER_ARRAY_BINDING | None = None


@dataclass(slots=True)
class DML_BINDING_PROPERTIES:
    """What a dispatchable wants of its binding table; resources in bytes."""

    RequiredDescriptorCount: int = 0
    TemporaryResourceSize: int = 0
    PersistentResourceSize: int = 0


@dataclass(slots=True)
class DML_BINDING_TABLE_DESC:
    """A binding table for a dispatchable. Descriptor handles have no meaning here, and may be anything."""

    Dispatchable: Any = None
    CPUDescriptorHandle: Any = field(default=None, repr=False)
    GPUDescriptorHandle: Any = field(default=None, repr=False)
    SizeInDescriptors: int = 0

"""DirectML's structures and enumerations for slices, under its own names and with its own values.

Structures are mutable and begin as zeros, as `= {}` makes them in C++; a pointer and its count become a
sequence and its count. Semantics of each: `DirectML.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import STRICT, IntEnum, IntFlag
from typing import Any

__all__ = [
    "DML_BINDING_DESC",
    "DML_BINDING_PROPERTIES",
    "DML_BINDING_TABLE_DESC",
    "DML_BINDING_TYPE",
    "DML_BINDING_TYPE_BUFFER",
    "DML_BINDING_TYPE_BUFFER_ARRAY",
    "DML_BINDING_TYPE_NONE",
    "DML_BUFFER_ARRAY_BINDING",
    "DML_BUFFER_BINDING",
    "DML_BUFFER_TENSOR_DESC",
    "DML_CREATE_DEVICE_FLAGS",
    "DML_CREATE_DEVICE_FLAG_DEBUG",
    "DML_CREATE_DEVICE_FLAG_NONE",
    "DML_EXECUTION_FLAGS",
    "DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION",
    "DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE",
    "DML_EXECUTION_FLAG_DISABLE_META_COMMANDS",
    "DML_EXECUTION_FLAG_NONE",
    "DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT",
    "DML_OPERATOR_DESC",
    "DML_OPERATOR_INVALID",
    "DML_OPERATOR_SLICE",
    "DML_OPERATOR_SLICE1",
    "DML_OPERATOR_SLICE_GRAD",
    "DML_OPERATOR_TYPE",
    "DML_SLICE1_OPERATOR_DESC",
    "DML_SLICE_GRAD_OPERATOR_DESC",
    "DML_SLICE_OPERATOR_DESC",
    "DML_TENSOR_DATA_TYPE",
    "DML_TENSOR_DATA_TYPE_FLOAT16",
    "DML_TENSOR_DATA_TYPE_FLOAT32",
    "DML_TENSOR_DATA_TYPE_FLOAT64",
    "DML_TENSOR_DATA_TYPE_INT8",
    "DML_TENSOR_DATA_TYPE_INT16",
    "DML_TENSOR_DATA_TYPE_INT32",
    "DML_TENSOR_DATA_TYPE_INT64",
    "DML_TENSOR_DATA_TYPE_UINT8",
    "DML_TENSOR_DATA_TYPE_UINT16",
    "DML_TENSOR_DATA_TYPE_UINT32",
    "DML_TENSOR_DATA_TYPE_UINT64",
    "DML_TENSOR_DATA_TYPE_UNKNOWN",
    "DML_TENSOR_DESC",
    "DML_TENSOR_DIMENSION_COUNT_MAX1",
    "DML_TENSOR_FLAGS",
    "DML_TENSOR_FLAG_NONE",
    "DML_TENSOR_FLAG_OWNED_BY_DML",
    "DML_TENSOR_TYPE",
    "DML_TENSOR_TYPE_BUFFER",
    "DML_TENSOR_TYPE_INVALID",
]


class DML_TENSOR_DATA_TYPE(IntEnum):
    """Of the elements."""

    UNKNOWN = 0
    FLOAT32 = 1
    FLOAT16 = 2
    UINT32 = 3
    UINT16 = 4
    UINT8 = 5
    INT32 = 6
    INT16 = 7
    INT8 = 8
    FLOAT64 = 9
    UINT64 = 10
    INT64 = 11


class DML_TENSOR_TYPE(IntEnum):
    """What `DML_TENSOR_DESC.Desc` is."""

    INVALID = 0
    BUFFER = 1


class DML_TENSOR_FLAGS(IntFlag, boundary=STRICT):
    """An input that is OWNED_BY_DML is given once, to the operator's initializer."""

    NONE = 0
    OWNED_BY_DML = 1


class DML_OPERATOR_TYPE(IntEnum):
    """What `DML_OPERATOR_DESC.Desc` is."""

    INVALID = 0
    SLICE = 60
    SLICE1 = 111
    SLICE_GRAD = 135


class DML_EXECUTION_FLAGS(IntFlag, boundary=STRICT):
    """How a compiled operator runs. Of these DESCRIPTORS_VOLATILE alone would change something here."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class DML_CREATE_DEVICE_FLAGS(IntFlag, boundary=STRICT):
    """How a device checks; this one always does."""

    NONE = 0
    DEBUG = 1


class DML_BINDING_TYPE(IntEnum):
    """What `DML_BINDING_DESC.Desc` is."""

    NONE = 0
    BUFFER = 1
    BUFFER_ARRAY = 2


# C++ knows the enumerators by these names.
DML_TENSOR_DATA_TYPE_UNKNOWN = DML_TENSOR_DATA_TYPE.UNKNOWN
DML_TENSOR_DATA_TYPE_FLOAT32 = DML_TENSOR_DATA_TYPE.FLOAT32
DML_TENSOR_DATA_TYPE_FLOAT16 = DML_TENSOR_DATA_TYPE.FLOAT16
DML_TENSOR_DATA_TYPE_UINT32 = DML_TENSOR_DATA_TYPE.UINT32
DML_TENSOR_DATA_TYPE_UINT16 = DML_TENSOR_DATA_TYPE.UINT16
DML_TENSOR_DATA_TYPE_UINT8 = DML_TENSOR_DATA_TYPE.UINT8
DML_TENSOR_DATA_TYPE_INT32 = DML_TENSOR_DATA_TYPE.INT32
DML_TENSOR_DATA_TYPE_INT16 = DML_TENSOR_DATA_TYPE.INT16
DML_TENSOR_DATA_TYPE_INT8 = DML_TENSOR_DATA_TYPE.INT8
DML_TENSOR_DATA_TYPE_FLOAT64 = DML_TENSOR_DATA_TYPE.FLOAT64
DML_TENSOR_DATA_TYPE_UINT64 = DML_TENSOR_DATA_TYPE.UINT64
DML_TENSOR_DATA_TYPE_INT64 = DML_TENSOR_DATA_TYPE.INT64

DML_TENSOR_TYPE_INVALID = DML_TENSOR_TYPE.INVALID
DML_TENSOR_TYPE_BUFFER = DML_TENSOR_TYPE.BUFFER

DML_TENSOR_FLAG_NONE = DML_TENSOR_FLAGS.NONE
DML_TENSOR_FLAG_OWNED_BY_DML = DML_TENSOR_FLAGS.OWNED_BY_DML

DML_OPERATOR_INVALID = DML_OPERATOR_TYPE.INVALID
DML_OPERATOR_SLICE = DML_OPERATOR_TYPE.SLICE
DML_OPERATOR_SLICE1 = DML_OPERATOR_TYPE.SLICE1
DML_OPERATOR_SLICE_GRAD = DML_OPERATOR_TYPE.SLICE_GRAD

DML_EXECUTION_FLAG_NONE = DML_EXECUTION_FLAGS.NONE
DML_EXECUTION_FLAG_ALLOW_HALF_PRECISION_COMPUTATION = DML_EXECUTION_FLAGS.ALLOW_HALF_PRECISION_COMPUTATION
DML_EXECUTION_FLAG_DISABLE_META_COMMANDS = DML_EXECUTION_FLAGS.DISABLE_META_COMMANDS
DML_EXECUTION_FLAG_DESCRIPTORS_VOLATILE = DML_EXECUTION_FLAGS.DESCRIPTORS_VOLATILE

DML_CREATE_DEVICE_FLAG_NONE = DML_CREATE_DEVICE_FLAGS.NONE
DML_CREATE_DEVICE_FLAG_DEBUG = DML_CREATE_DEVICE_FLAGS.DEBUG

DML_BINDING_TYPE_NONE = DML_BINDING_TYPE.NONE
DML_BINDING_TYPE_BUFFER = DML_BINDING_TYPE.BUFFER
DML_BINDING_TYPE_BUFFER_ARRAY = DML_BINDING_TYPE.BUFFER_ARRAY

DML_TENSOR_DIMENSION_COUNT_MAX1 = 8
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16  # of D3D12; here a binding begins at any element


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

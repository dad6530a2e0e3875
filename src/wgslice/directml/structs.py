"""DirectML's enumerations and structures for slices, under its own names and with its own values.

Structures are mutable and default to zeros, as with `= {}` in C++; a pointer and its count become a
sequence and its count. Values and semantics: `DirectML.h`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import STRICT, IntEnum, IntFlag
from typing import Any

DML_TENSOR_DIMENSION_COUNT_MAX1 = 8
DML_MINIMUM_BUFFER_TENSOR_ALIGNMENT = 16  # of D3D12; here a binding may start at any element


DML_TENSOR_DATA_TYPE = IntEnum(
    "DML_TENSOR_DATA_TYPE",
    "UNKNOWN FLOAT32 FLOAT16 UINT32 UINT16 UINT8 INT32 INT16 INT8 FLOAT64 UINT64 INT64",
    start=0,
)
DML_TENSOR_TYPE = IntEnum("DML_TENSOR_TYPE", "INVALID BUFFER", start=0)
DML_BINDING_TYPE = IntEnum("DML_BINDING_TYPE", "NONE BUFFER BUFFER_ARRAY", start=0)


class DML_TENSOR_FLAGS(IntFlag, boundary=STRICT):
    """Flags of a tensor: an OWNED_BY_DML input is bound once, to the operator's initializer."""

    NONE = 0
    OWNED_BY_DML = 1


class DML_OPERATOR_TYPE(IntEnum):
    """The type of `DML_OPERATOR_DESC.Desc`."""

    INVALID = 0
    SLICE = 60
    SLICE1 = 111
    SLICE_GRAD = 135


class DML_EXECUTION_FLAGS(IntFlag, boundary=STRICT):
    """Execution flags of a compiled operator; all but DESCRIPTORS_VOLATILE have no effect here."""

    NONE = 0
    ALLOW_HALF_PRECISION_COMPUTATION = 1
    DISABLE_META_COMMANDS = 2
    DESCRIPTORS_VOLATILE = 4


class DML_CREATE_DEVICE_FLAGS(IntFlag, boundary=STRICT):
    """Flags of a device; calls are always checked, with or without DEBUG."""

    NONE = 0
    DEBUG = 1


@dataclass(slots=True)
class DML_BUFFER_TENSOR_DESC:
    """A tensor in a buffer: sizes and strides in elements, everything else in bytes."""

    DataType: DML_TENSOR_DATA_TYPE = DML_TENSOR_DATA_TYPE.UNKNOWN
    Flags: DML_TENSOR_FLAGS = DML_TENSOR_FLAGS.NONE
    DimensionCount: int = 0  # 1 to 8
    Sizes: Sequence[int] = ()
    Strides: Sequence[int] | None = None  # packed where None
    TotalTensorSizeInBytes: int = 0  # a multiple of 4, at least DMLCalcBufferTensorSize
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
    """SliceGrad: Slice1's gradient, inserted into the window that was sliced."""

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
    """The requirements of a dispatchable on its binding table; resources in bytes."""

    RequiredDescriptorCount: int = 0
    TemporaryResourceSize: int = 0
    PersistentResourceSize: int = 0


@dataclass(slots=True)
class DML_BINDING_TABLE_DESC:
    """A binding table for a dispatchable; the descriptor handles are ignored."""

    Dispatchable: Any = None
    CPUDescriptorHandle: Any = field(default=None, repr=False)
    GPUDescriptorHandle: Any = field(default=None, repr=False)
    SizeInDescriptors: int = 0


# Prefixes of the enumerators in C++.
PREFIXES: dict[str, type[IntEnum | IntFlag]] = {
    "DML_BINDING_TYPE": DML_BINDING_TYPE,
    "DML_CREATE_DEVICE_FLAG": DML_CREATE_DEVICE_FLAGS,
    "DML_EXECUTION_FLAG": DML_EXECUTION_FLAGS,
    "DML_OPERATOR": DML_OPERATOR_TYPE,
    "DML_TENSOR_DATA_TYPE": DML_TENSOR_DATA_TYPE,
    "DML_TENSOR_FLAG": DML_TENSOR_FLAGS,
    "DML_TENSOR_TYPE": DML_TENSOR_TYPE,
}
for prefix, kind in PREFIXES.items():
    globals().update({f"{prefix}_{name}": value for name, value in kind.__members__.items()})
__all__ = [name for name in globals() if name.startswith("DML_")]

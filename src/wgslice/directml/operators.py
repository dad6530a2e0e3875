"""DirectML's operator descriptors, checked and turned into wgslice's."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

import wgslice.directml.enums as enums
import wgslice.directml.structs as structs
from wgslice.arguments import integer, integers
from wgslice.errors import named
from wgslice.operators.slice1 import Slice, Slice1
from wgslice.operators.slice_grad import SliceGrad
from wgslice.operators.tensor_desc import TensorDesc

__all__ = ["BufferTensor", "CheckedOperator", "read_operator", "tensor_desc"]

DTYPES = {
    enums.DML_TENSOR_DATA_TYPE_FLOAT32: np.float32,
    enums.DML_TENSOR_DATA_TYPE_FLOAT16: np.float16,
    enums.DML_TENSOR_DATA_TYPE_UINT32: np.uint32,
    enums.DML_TENSOR_DATA_TYPE_UINT16: np.uint16,
    enums.DML_TENSOR_DATA_TYPE_UINT8: np.uint8,
    enums.DML_TENSOR_DATA_TYPE_INT32: np.int32,
    enums.DML_TENSOR_DATA_TYPE_INT16: np.int16,
    enums.DML_TENSOR_DATA_TYPE_INT8: np.int8,
    enums.DML_TENSOR_DATA_TYPE_FLOAT64: np.float64,
    enums.DML_TENSOR_DATA_TYPE_UINT64: np.uint64,
    enums.DML_TENSOR_DATA_TYPE_INT64: np.int64,
}


@dataclass(frozen=True)
class BufferTensor:
    """A tensor in a buffer, and what its bindings promise."""

    desc: TensorDesc
    nbytes: int  # least size of a binding
    alignment_nbytes: int  # of a binding's offset
    owned: bool  # given once, to the initializer

    @classmethod
    def of(cls, tensor: structs.DML_TENSOR_DESC | None, dimensions: int) -> BufferTensor:
        """Refuse what breaks a rule of DirectML's buffer tensors."""
        if not isinstance(tensor, structs.DML_TENSOR_DESC):
            raise TypeError(f"of type {type(tensor).__name__}: must be a DML_TENSOR_DESC")
        if tensor.Type != enums.DML_TENSOR_TYPE_BUFFER:
            raise ValueError(f"Type = {tensor.Type!r}: must be DML_TENSOR_TYPE_BUFFER")
        buffer = tensor.Desc
        if not isinstance(buffer, structs.DML_BUFFER_TENSOR_DESC):
            raise TypeError(f"Desc is of type {type(buffer).__name__}: must be a DML_BUFFER_TENSOR_DESC")
        if buffer.DimensionCount != dimensions:
            raise ValueError(f"DimensionCount = {buffer.DimensionCount}: must be the operator's {dimensions}")
        desc = tensor_desc(buffer.DataType, dimensions, buffer.Sizes, buffer.Strides)
        nbytes = integer("TotalTensorSizeInBytes", buffer.TotalTensorSizeInBytes)
        if nbytes < desc.nbytes or nbytes % 4:
            raise ValueError(
                f"TotalTensorSizeInBytes = {nbytes}: must be a multiple of 4, and at least {desc.nbytes} as "
                "DMLCalcBufferTensorSize says"
            )
        alignment = integer("GuaranteedBaseOffsetAlignment", buffer.GuaranteedBaseOffsetAlignment)
        if alignment < 0 or alignment & (alignment - 1):
            raise ValueError(f"GuaranteedBaseOffsetAlignment = {alignment}: must be 0 or a power of two")
        flags = enums.DML_TENSOR_FLAGS(buffer.Flags)
        return cls(desc, nbytes, alignment or 1, enums.DML_TENSOR_FLAGS.OWNED_BY_DML in flags)


def tensor_desc(
    data_type: enums.DML_TENSOR_DATA_TYPE,
    dimensions: int,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
) -> TensorDesc:
    """A tensor in DirectML's words; its arrays have an entry for each dimension."""
    if data_type not in DTYPES:
        names = ", ".join(known.name for known in DTYPES)
        raise ValueError(f"DataType = {data_type!r}: must be DML_TENSOR_DATA_TYPE_ and one of {names}")
    check_counts(dimensions, Sizes=sizes, **({} if strides is None else {"Strides": strides}))
    return TensorDesc(DTYPES[enums.DML_TENSOR_DATA_TYPE(data_type)], sizes, strides)


def check_counts(dimensions: int, **arrays: Sequence[int]) -> None:
    """Refuse arrays that do not have an entry for each dimension."""
    for name, values in arrays.items():
        if len(integers(name, values)) != dimensions:
            raise ValueError(f"{name} has {len(values)} entries: must have DimensionCount, {dimensions}")


@dataclass(frozen=True)
class CheckedOperator:
    """What is computed, and the tensors that are bound for it."""

    descriptor: Slice | Slice1 | SliceGrad
    input: BufferTensor
    output: BufferTensor


STRUCTURES: dict[int, tuple[type[Any], type[Slice | Slice1 | SliceGrad]]] = {
    enums.DML_OPERATOR_SLICE: (structs.DML_SLICE_OPERATOR_DESC, Slice),
    enums.DML_OPERATOR_SLICE1: (structs.DML_SLICE1_OPERATOR_DESC, Slice1),
    enums.DML_OPERATOR_SLICE_GRAD: (structs.DML_SLICE_GRAD_OPERATOR_DESC, SliceGrad),
}


def read_operator(operator: structs.DML_OPERATOR_DESC) -> CheckedOperator:
    """What an operator descriptor says, refused where it breaks a rule."""
    if not isinstance(operator, structs.DML_OPERATOR_DESC):
        raise TypeError(f"desc is of type {type(operator).__name__}: must be a DML_OPERATOR_DESC")
    if operator.Type not in STRUCTURES:
        names = ", ".join(f"DML_OPERATOR_{known.name}" for known in map(enums.DML_OPERATOR_TYPE, STRUCTURES))
        raise ValueError(f"Type = {operator.Type!r}: must be one of {names}")
    structure, descriptor = STRUCTURES[operator.Type]
    desc: Any = operator.Desc
    if type(desc) is not structure:
        raise TypeError(f"Desc is of type {type(desc).__name__}: must be a {structure.__name__}")
    with named(structure.__name__):
        input_name, output_name, _, *window_names = (field.name for field in fields(desc))
        window = {name: getattr(desc, name) for name in window_names}
        check_counts(desc.DimensionCount, **window)
        with named(input_name):
            input = BufferTensor.of(getattr(desc, input_name), desc.DimensionCount)
        with named(output_name):
            output = BufferTensor.of(getattr(desc, output_name), desc.DimensionCount)
            if output.owned:
                raise ValueError("Flags = DML_TENSOR_FLAG_OWNED_BY_DML: must be DML_TENSOR_FLAG_NONE")
        return CheckedOperator(descriptor(input.desc, output.desc, *window.values()), input, output)

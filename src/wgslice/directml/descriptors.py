"""Checks of DirectML's descriptors and bindings, and their conversion to wgslice's."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import fields
from typing import Any, TypeAlias, TypeVar

import numpy as np

import wgslice.directml.structs as structs
from wgslice.arguments import integer, integers
from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.hosts import found_by
from wgslice.gpu.protocols import Buffer
from wgslice.operators.binding import TensorDesc
from wgslice.operators.slice1 import Slice, Slice1, SliceGrad

Some = TypeVar("Some")
Bindings: TypeAlias = "structs.DML_BINDING_DESC | Sequence[structs.DML_BINDING_DESC] | None"  # a C array

DTYPES: dict[structs.DML_TENSOR_DATA_TYPE, DType] = {
    kind: np.dtype(kind.name.lower()) for kind in structs.DML_TENSOR_DATA_TYPE if kind.value
}


def of_kind(name: str, value: object, kind: type[Some]) -> Some:
    """Return a value; raise if it is of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is of type {type(value).__name__}: must be {kind.__name__}")
    return value


class BufferTensor:
    """A tensor in a buffer, checked by DirectML's rules, with the guarantees of its bindings."""

    def __init__(self, tensor: structs.DML_TENSOR_DESC | None, dimensions: int) -> None:
        tensor = of_kind("tensor", tensor, structs.DML_TENSOR_DESC)
        if tensor.Type != structs.DML_TENSOR_TYPE.BUFFER:
            raise ValueError(f"Type = {tensor.Type!r}: must be DML_TENSOR_TYPE_BUFFER")
        buffer = of_kind("Desc", tensor.Desc, structs.DML_BUFFER_TENSOR_DESC)
        if buffer.DimensionCount != dimensions:
            raise ValueError(f"DimensionCount = {buffer.DimensionCount}: must be the operator's {dimensions}")
        self.desc = tensor_desc(buffer.DataType, dimensions, buffer.Sizes, buffer.Strides)
        self.nbytes = integer("TotalTensorSizeInBytes", buffer.TotalTensorSizeInBytes)  # minimum of a binding
        if self.nbytes < self.desc.nbytes or self.nbytes % 4:
            raise ValueError(
                f"TotalTensorSizeInBytes = {self.nbytes}: must be a multiple of 4, and at least "
                f"{self.desc.nbytes} by DMLCalcBufferTensorSize"
            )
        alignment = integer("GuaranteedBaseOffsetAlignment", buffer.GuaranteedBaseOffsetAlignment)
        if alignment < 0 or alignment & (alignment - 1):
            raise ValueError(f"GuaranteedBaseOffsetAlignment = {alignment}: must be 0 or a power of two")
        self.alignment_nbytes = alignment or 1  # of a binding's offset
        flags = structs.DML_TENSOR_FLAGS(buffer.Flags)
        self.owned = structs.DML_TENSOR_FLAGS.OWNED_BY_DML in flags  # bound once, to the initializer


def tensor_desc(
    data_type: structs.DML_TENSOR_DATA_TYPE,
    dimensions: int,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
) -> TensorDesc:
    """Convert DirectML's description of a tensor; raise unless arrays have an entry per dimension."""
    if data_type not in DTYPES:
        names = ", ".join(known.name for known in DTYPES)
        raise ValueError(f"DataType = {data_type!r}: must be DML_TENSOR_DATA_TYPE_ and one of {names}")
    check_counts(dimensions, Sizes=sizes, **({} if strides is None else {"Strides": strides}))
    return TensorDesc(DTYPES[structs.DML_TENSOR_DATA_TYPE(data_type)], sizes, strides)


def check_counts(dimensions: int, **arrays: Sequence[int]) -> None:
    """Raise unless arrays have an entry per dimension."""
    for name, values in arrays.items():
        if len(integers(name, values)) != dimensions:
            raise ValueError(f"{name} has {len(values)} entries: must have DimensionCount, {dimensions}")


STRUCTURES: dict[structs.DML_OPERATOR_TYPE, tuple[type[Any], type[Slice | Slice1 | SliceGrad]]] = {
    structs.DML_OPERATOR_TYPE.SLICE: (structs.DML_SLICE_OPERATOR_DESC, Slice),
    structs.DML_OPERATOR_TYPE.SLICE1: (structs.DML_SLICE1_OPERATOR_DESC, Slice1),
    structs.DML_OPERATOR_TYPE.SLICE_GRAD: (structs.DML_SLICE_GRAD_OPERATOR_DESC, SliceGrad),
}


def read_operator(
    operator: structs.DML_OPERATOR_DESC,
) -> tuple[Slice | Slice1 | SliceGrad, BufferTensor, BufferTensor]:
    """Convert an operator's descriptor to wgslice's, its input and its output; raise if a rule is broken."""
    operator = of_kind("desc", operator, structs.DML_OPERATOR_DESC)
    if operator.Type not in STRUCTURES:
        names = ", ".join(f"DML_OPERATOR_{known.name}" for known in STRUCTURES)
        raise ValueError(f"Type = {operator.Type!r}: must be one of {names}")
    structure, descriptor = STRUCTURES[operator.Type]
    desc = of_kind("Desc", operator.Desc, structure)
    with named(structure.__name__):
        input_name, output_name, _, *window_names = (field.name for field in fields(desc))
        window = {name: getattr(desc, name) for name in window_names}
        check_counts(desc.DimensionCount, **window)
        with named(input_name):
            input = BufferTensor(getattr(desc, input_name), desc.DimensionCount)
        with named(output_name):
            output = BufferTensor(getattr(desc, output_name), desc.DimensionCount)
            if output.owned:
                raise ValueError("Flags = DML_TENSOR_FLAG_OWNED_BY_DML: must be DML_TENSOR_FLAG_NONE")
        return descriptor(input.desc, output.desc, *window.values()), input, output


def counted(name: str, count: int, values: Some | Sequence[Some] | None, kind: type[Some]) -> list[Some]:
    """The values of a C array: a sequence, one value, or None; raise if the count differs."""
    items: Sequence[Any] = values if isinstance(values, list | tuple) else () if values is None else (values,)
    if len(items) != count:
        raise ValueError(f"{len(items)} {name}: the count says {count}")
    return [of_kind(f"{name}[{number}]", item, kind) for number, item in enumerate(items)]


def snapshots(count: int, bindings: Bindings) -> list[structs.DML_BINDING_DESC]:
    """Copy a C array of bindings, whose structures the caller may change afterwards."""
    found = []
    for binding in counted("bindings", count, bindings, structs.DML_BINDING_DESC):
        part = copy(binding.Desc)
        if isinstance(part, structs.DML_BUFFER_ARRAY_BINDING):
            part.Bindings = [copy(item) for item in part.Bindings]
        found.append(structs.DML_BINDING_DESC(binding.Type, part))
    return found


def at(bindings: Sequence[structs.DML_BINDING_DESC], number: int) -> structs.DML_BINDING_DESC:
    """The binding at a position, or one of type NONE."""
    return bindings[number] if number < len(bindings) else structs.DML_BINDING_DESC()


def only(bindings: Sequence[structs.DML_BINDING_DESC]) -> structs.DML_BINDING_DESC:
    """The only binding of an operator's inputs or outputs."""
    if len(bindings) > 1:
        raise ValueError(f"{len(bindings)} are bound: must be 1")
    return at(bindings, 0)


def array_item(binding: structs.DML_BINDING_DESC) -> structs.DML_BINDING_DESC:
    """The only buffer of the array that is bound for an operator's inputs."""
    array, kind = binding.Desc, structs.DML_BUFFER_ARRAY_BINDING
    if binding.Type != structs.DML_BINDING_TYPE.BUFFER_ARRAY or not isinstance(array, kind):
        raise ValueError(f"Type = {binding.Type!r}: must be DML_BINDING_TYPE_BUFFER_ARRAY, with its Desc")
    (item,) = counted("Bindings", array.BindingCount, array.Bindings, structs.DML_BUFFER_BINDING)
    return structs.DML_BINDING_DESC(structs.DML_BINDING_TYPE.BUFFER, item)


def bound(binding: structs.DML_BINDING_DESC, tensor: BufferTensor) -> tuple[Buffer, int]:
    """The buffer and byte offset of a binding; raise if the tensor's descriptor does not allow them."""
    part = binding.Desc
    if binding.Type != structs.DML_BINDING_TYPE.BUFFER or not isinstance(part, structs.DML_BUFFER_BINDING):
        raise ValueError(f"Type = {binding.Type!r}: must be DML_BINDING_TYPE_BUFFER, with its Desc")
    offset, nbytes = integer("Offset", part.Offset), integer("SizeInBytes", part.SizeInBytes)
    _, buffer = found_by("GPUBuffer", part.Buffer, "Buffer is ")
    if nbytes < tensor.nbytes:
        raise ValueError(f"SizeInBytes = {nbytes}: must be at least TotalTensorSizeInBytes, {tensor.nbytes}")
    if offset < 0 or offset % tensor.alignment_nbytes:
        raise ValueError(
            f"Offset = {offset}: must be at least 0 and a multiple of {tensor.alignment_nbytes}, the "
            "GuaranteedBaseOffsetAlignment"
        )
    if offset + nbytes > buffer.size:
        raise ValueError(
            f"Offset + SizeInBytes = {offset + nbytes}: must be at most the buffer's size, {buffer.size}"
        )
    return buffer, offset

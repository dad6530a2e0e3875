"""What is bound for DirectML's dispatchables: C arrays and buffers, checked."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import TYPE_CHECKING, Any, TypeVar, cast

import wgslice.directml.enums as enums
import wgslice.directml.structs as structs
from wgslice.arguments import integer
from wgslice.directml.operators import BufferTensor
from wgslice.gpu.handles import is_buffer

if TYPE_CHECKING:
    from wgslice.gpu.protocols import Buffer

__all__ = ["array_item", "at", "bound", "check_kind", "counted", "only", "snapshot"]

Some = TypeVar("Some")


def counted(name: str, count: int, values: Some | Sequence[Some] | None, kind: type[Some]) -> list[Some]:
    """A C array: a count and as many values, one value, or None for none."""
    many = values is None or isinstance(values, list | tuple)
    items: list[Any] = list(cast("Sequence[Any]", values or ())) if many else [values]
    if len(items) != count:
        raise ValueError(f"{len(items)} {name}: the count says {count}")
    for number, item in enumerate(items):
        check_kind(f"{name}[{number}]", item, kind)
    return items


def check_kind(name: str, value: object, kind: type) -> None:
    """Refuse what is of another type."""
    if not isinstance(value, kind):
        raise TypeError(f"{name} is of type {type(value).__name__}: must be {kind.__name__}")


def snapshot(binding: structs.DML_BINDING_DESC) -> structs.DML_BINDING_DESC:
    """A binding as it is now; its caller may change the structures afterwards."""
    part = copy(binding.Desc)
    if isinstance(part, structs.DML_BUFFER_ARRAY_BINDING):
        part.Bindings = [copy(item) for item in part.Bindings]
    return structs.DML_BINDING_DESC(binding.Type, part)


def at(bindings: Sequence[structs.DML_BINDING_DESC], number: int) -> structs.DML_BINDING_DESC:
    """A binding; one of type NONE where there is none."""
    return bindings[number] if number < len(bindings) else structs.DML_BINDING_DESC()


def only(bindings: Sequence[structs.DML_BINDING_DESC]) -> structs.DML_BINDING_DESC:
    """The one binding of an operator's side."""
    if len(bindings) > 1:
        raise ValueError(f"{len(bindings)} are bound: must be 1")
    return at(bindings, 0)


def array_item(binding: structs.DML_BINDING_DESC) -> structs.DML_BINDING_DESC:
    """The one buffer of an array that is bound for an operator's inputs."""
    array = binding.Desc
    if binding.Type != enums.DML_BINDING_TYPE_BUFFER_ARRAY or not isinstance(
        array, structs.DML_BUFFER_ARRAY_BINDING
    ):
        raise ValueError(f"Type = {binding.Type!r}: must be DML_BINDING_TYPE_BUFFER_ARRAY, with its Desc")
    (item,) = counted("Bindings", array.BindingCount, array.Bindings, structs.DML_BUFFER_BINDING)
    return structs.DML_BINDING_DESC(enums.DML_BINDING_TYPE_BUFFER, item)


def bound(binding: structs.DML_BINDING_DESC, tensor: BufferTensor) -> tuple[Buffer, int]:
    """A buffer and a byte offset, refused where the tensor's descriptor does not allow them."""
    part = binding.Desc
    if binding.Type != enums.DML_BINDING_TYPE_BUFFER or not isinstance(part, structs.DML_BUFFER_BINDING):
        raise ValueError(f"Type = {binding.Type!r}: must be DML_BINDING_TYPE_BUFFER, with its Desc")
    offset, nbytes = integer("Offset", part.Offset), integer("SizeInBytes", part.SizeInBytes)
    if not is_buffer(part.Buffer):
        raise TypeError(f"Buffer is of type {type(part.Buffer).__name__}: must be a wgpu.GPUBuffer")
    if nbytes < tensor.nbytes:
        raise ValueError(f"SizeInBytes = {nbytes}: must be at least TotalTensorSizeInBytes, {tensor.nbytes}")
    if offset < 0 or offset % tensor.alignment_nbytes:
        raise ValueError(
            f"Offset = {offset}: must be at least 0 and a multiple of {tensor.alignment_nbytes}, what "
            "GuaranteedBaseOffsetAlignment says"
        )
    if offset + nbytes > part.Buffer.size:
        raise ValueError(
            f"Offset + SizeInBytes = {offset + nbytes}: must be at most the buffer's size, {part.Buffer.size}"
        )
    return part.Buffer, offset

"""Where described tensors are bound, and how plans differ by what is bound there."""

from __future__ import annotations

from math import inf
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

from wgslice.arguments import checked_offset, whole_words
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_buffer_type, check_fits
from wgslice.gpu.pipelines import Place
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.operators.tensor_desc import TensorDesc
from wgslice.plans.problem import room_of
from wgslice.tensors.placed import check_writeable
from wgslice.tensors.tensor import Tensor

__all__ = ["ALIGNED", "Binding", "Seated", "Socket"]

Binding: TypeAlias = Tensor | Buffer | tuple[Buffer, SupportsIndex]


class Seated(NamedTuple):
    """A described tensor in a buffer, as far as plans differ by it."""

    phase_nbytes: int  # from the last possible binding offset to the element at index 0
    room_nbytes: float  # as `Terms` says
    copyable: bool  # whether the buffer has the usage for copies from an input, or into an output


ALIGNED = Seated(0, inf, True)


class Socket:
    """Where a described tensor is bound."""

    def __init__(self, device: Device, side: str, desc: TensorDesc, used: Layout, copy_usage: int) -> None:
        self.side = side
        self.desc = desc
        self.used = used  # the elements that are read or written, from the one at index 0
        self.itemsize = desc.dtype.itemsize
        self.stop = desc.layout.stop
        self.used_stop_nbytes = used.stop * self.itemsize
        self.copy_usage = copy_usage
        self.alignment_nbytes = device.limits.binding_alignment_nbytes
        if desc.nbytes > device.largest_buffer_nbytes:
            raise ValueError(
                f"{side} sizes {desc.sizes} with strides {desc.strides} need {desc.nbytes} bytes: a buffer "
                f"of {device} has at most {device.largest_buffer_nbytes}"
            )

    def bound(self, binding: Binding) -> tuple[Place, Seated]:
        """A binding, refused where it is not what the descriptor says."""
        with named(self.side):
            if isinstance(binding, Tensor):
                check_described(self.desc, binding, self.side)
                if self.side == "output":
                    check_writeable(binding)
                buffer, start = binding.buffer, binding.layout.offset
            else:
                buffer, start = checked_pair(binding, self.itemsize)
                if whole_words((start + self.stop) * self.itemsize) > buffer.size:
                    check_fits(buffer, self.desc.layout.shifted(start), self.desc.dtype)
        phase_nbytes = start * self.itemsize % self.alignment_nbytes
        base = start * self.itemsize - phase_nbytes
        room_nbytes = room_of(phase_nbytes + self.used_stop_nbytes, buffer.size - base)
        return Place(buffer, base), Seated(phase_nbytes, room_nbytes, buffer.usage & self.copy_usage != 0)

    def layout(self, seated: Seated) -> Layout:
        """The elements that are used, from the base on."""
        return self.used.shifted(seated.phase_nbytes // self.itemsize)


def checked_pair(binding: Buffer | tuple[Buffer, SupportsIndex], itemsize: int) -> tuple[Buffer, int]:
    """A buffer, and the offset in elements at which a tensor begins in it."""
    pair: tuple[Any, SupportsIndex] = (binding, 0)
    if isinstance(binding, tuple) and len(binding) == 2:
        pair = binding
    buffer: Buffer = pair[0]
    check_buffer_type(buffer, "a binding may also be a Tensor, or a tuple of a buffer and a byte offset")
    return buffer, checked_offset(pair[1], itemsize)


def check_described(desc: TensorDesc, tensor: Tensor, side: str) -> None:
    """Refuse a tensor that is not what the operator was compiled for."""
    if tensor.dtype != desc.dtype:
        raise TypeError(f"dtype {tensor.dtype}: compiled for {desc.dtype}")
    if tensor.shape != desc.sizes:
        raise ValueError(f"sizes {tensor.shape}: compiled for {desc.sizes}")
    if tensor.strides != desc.strides:
        copied = side != "output" and desc.layout.is_packed
        remedy = "copy() the tensor" if copied else f"give a tensor of strides {desc.strides}"
        remedy += ", or describe its strides" * (min(tensor.strides) >= 0)
        raise ValueError(f"strides {tensor.strides}: compiled for {desc.strides}; {remedy}")

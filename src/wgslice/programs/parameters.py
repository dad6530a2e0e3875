"""Parameters of programs: what each replay gives."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from wgslice.arguments import checked_offset, integer
from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import TENSOR_USAGES, Device, check_usable, describe_buffer
from wgslice.gpu.protocols import Buffer, Place, Placeholder
from wgslice.gpu.recording import check_fits
from wgslice.gpu.sink import placeholder
from wgslice.layout import Layout
from wgslice.operators.binding import Bindable, TensorDesc, buffer_and_offset
from wgslice.plans.problem import rebase
from wgslice.plans.profiles import Limits
from wgslice.tensors.tensor import Tensor


class Given(NamedTuple):
    """How a binding is in its buffer."""

    layout: Layout | None  # None for a buffer, which has the captured one
    dtype: DType | None
    offset: int  # bytes, of a buffer
    writeable: bool


Slot: TypeAlias = tuple["Parameter", Given, Buffer]  # what a call gives for a parameter


@dataclass(frozen=True, eq=False)
class Parameter:
    """A tensor that each replay gives, and its stand-in while a function is captured."""

    device: Device
    name: str
    tensor: Tensor  # of a placeholder, from the last binding offset before its elements on
    limits: Limits  # whose binding alignment its offset has

    @classmethod
    def like(cls, name: str, x: Tensor) -> Parameter:
        """Make the parameter for tensors of the dtype, layout, alignment and usages of `x`."""
        held = rebase(x.layout, x.itemsize, x.device.limits)
        size = max(min(-(-held.stop_nbytes // 16) * 16, x.memory.size - held.base), 4)  # 4 for no elements
        stand_in: Any = Placeholder(x.device.wgpu_device, size, x.memory.usage & TENSOR_USAGES, size)
        tensor = Tensor(x.device, stand_in, x.dtype, held.layout, x.writeable)
        return cls(x.device, name, tensor, x.device.limits)

    @classmethod
    def described(cls, device: Device, name: str, desc: TensorDesc) -> Parameter:
        """Make the parameter for a described tensor, with capacity for whole vectors of 16 bytes."""
        stand_in = placeholder(device, desc.nbytes)
        return cls(device, name, Tensor(device, stand_in, desc.dtype, desc.layout), device.limits)

    @property
    def buffer(self) -> Buffer:
        """The placeholder."""
        return self.tensor.memory

    def slot(self, binding: Bindable) -> Slot:
        """Return what a tensor, a buffer, or a buffer and its offset gives for it."""
        if isinstance(binding, Tensor):
            return self, Given(binding.layout, binding.dtype, 0, binding.writeable), binding.memory
        with named(self.name):
            buffer, offset = buffer_and_offset(binding)
            return self, Given(None, None, integer("offset", offset), writeable=True), buffer

    def place_of(self, given: Given, buffer: Buffer, *, written: bool) -> Place:
        """Check a binding, and return the place of the placeholder in it."""
        base, misfit = self.base_of(buffer, self.checked_layout(given, buffer, written=written))
        if misfit:
            raise ValueError(misfit)
        return Place(buffer, base)

    def checked_layout(self, given: Given, buffer: Buffer, *, written: bool) -> Layout:
        """Return the layout of a binding in its buffer; raise unless it can be read, and if so `written`."""
        own, layout = self.tensor, given.layout
        if layout is None:
            start = checked_offset(given.offset, own.itemsize)
            layout = own.layout.shifted(start - own.layout.offset)
        elif given.dtype != own.dtype:
            raise TypeError(f"dtype {given.dtype}: captured with {own.dtype}")
        elif (layout.sizes, layout.strides) != (own.shape, own.strides):
            raise ValueError(
                f"shape {layout.sizes} with strides {layout.strides}: captured with {own.shape} and "
                f"{own.strides}; give such a tensor, or capture it again"
            )
        if written and not given.writeable:
            raise ValueError("the tensor is read-only, and the program writes it: give a copy()")
        check_usable(self.device, buffer)
        check_fits(buffer, layout, own.dtype)
        return layout

    def base_of(self, buffer: Buffer, layout: Layout) -> tuple[int, str]:
        """Return where the placeholder begins in a buffer, and why it cannot be bound there, or ""."""
        own = self.tensor
        base = rebase(layout, own.itemsize, self.limits).base
        phase = layout.offset * own.itemsize - base
        if phase != own.offset:
            return base, (
                f"the element at index 0 is {phase} bytes after a multiple of "
                f"{self.limits.binding_alignment_nbytes}: captured with {own.offset}; copy() the "
                "tensor, or capture it again"
            )
        if (layout.size and buffer.size - base < self.buffer.size) or self.buffer.usage & ~buffer.usage:
            return base, (
                f"{describe_buffer(buffer)} has usages {buffer.usage:#x} and {buffer.size - base} bytes from "
                f"byte {base} on: captured with {self.buffer.usage:#x} and {self.buffer.size}"
            )
        return base, ""

    def __str__(self) -> str:
        return f"{self.name}: {self.tensor.dtype} {self.tensor.shape}"


def extent_of(x: Tensor) -> range:
    """Return the bytes of a tensor's buffer from its first to its last element; none without elements."""
    return range(x.layout.lowest * x.itemsize, x.layout.stop * x.itemsize) if x.size else range(0)

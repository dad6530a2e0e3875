"""What has a dtype and a layout, and what lies in a buffer besides: the ground of `Tensor`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.gpu.device import Device
from wgslice.gpu.native import exposed
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout, check_disjoint

__all__ = [
    "Flags",
    "Placed",
    "Shaped",
    "check_destination",
    "check_no_sequence",
    "check_of_numbers",
    "check_tensor",
    "check_writeable",
    "read_only",
    "uploaded",
    "viewed",
]


class Flags(NamedTuple):
    """What NumPy's flags of the same names say of a tensor."""

    writeable: bool = True


WRITEABLE, READ_ONLY = Flags(), Flags(writeable=False)


class Shaped:
    """What a dtype and a layout say together."""

    __slots__ = ()

    dtype: DType
    layout: Layout

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes."""
        return self.layout.sizes

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in elements."""
        return self.layout.strides

    @property
    def offset(self) -> int:
        """Byte offset of the element at index 0."""
        return self.layout.offset * self.dtype.itemsize

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.layout.rank

    @property
    def size(self) -> int:
        """Number of elements."""
        return self.layout.size

    @property
    def itemsize(self) -> int:
        """Bytes of one element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps."""
        return self.size * self.dtype.itemsize

    @property
    def is_packed(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return self.layout.is_packed


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Placed(Shaped):
    """Elements in a buffer: all that a copy needs to know of a tensor."""

    device: Device
    memory: Buffer  # which others may reuse once no tensor refers to it
    dtype: DType
    layout: Layout
    flags: Flags = WRITEABLE

    def __post_init__(self) -> None:
        """Do nothing: Dask meets tensors only, and they do more."""

    @property
    def buffer(self) -> Buffer:
        """The memory, for any use: it stays this tensor's and its views'."""
        return exposed(self.memory)

    @property
    def bound_layout(self) -> BoundLayout:
        """This tensor as a side of a copy."""
        return BoundLayout(self.memory, self.layout, self.dtype.itemsize)


SomePlaced = TypeVar("SomePlaced", bound=Placed)


def uploaded(device: Device, array: NDArray[Any]) -> BoundLayout:
    """An array in a buffer of its own on a device."""
    data = np.ascontiguousarray(array)
    buffer = device.reused_buffer(data.nbytes)
    if data.size:
        upload(device, buffer, data.reshape(-1).view(np.uint8))
    return BoundLayout(buffer, Layout.packed(array.shape), array.itemsize, fresh=True)


def viewed(tensor: SomePlaced, layout: Layout) -> SomePlaced:
    """Another view of a tensor's buffer, read-only if the tensor is."""
    return type(tensor)(tensor.device, tensor.memory, tensor.dtype, layout, tensor.flags)


def read_only(tensor: SomePlaced, layout: Layout) -> SomePlaced:
    """Another view of a tensor's buffer, which refuses to be written."""
    return type(tensor)(tensor.device, tensor.memory, tensor.dtype, layout, READ_ONLY)


def check_writeable(tensor: Placed) -> None:
    """Refuse to write a read-only view, in NumPy's words."""
    if not tensor.flags.writeable:
        raise ValueError("assignment destination is read-only; copy() it first")


def check_destination(tensor: Placed) -> None:
    """Refuse to write a read-only view, or a tensor that places two elements on the same bytes."""
    check_writeable(tensor)
    check_disjoint(tensor.layout)


def check_of_numbers(value: object) -> None:
    """Refuse a tensor, or a nested sequence of tensors, which NumPy would read back without a word."""
    if isinstance(value, Placed):
        raise TypeError("a tensor, where numbers of the host are needed: item() or numpy() reads it back")
    check_no_sequence(value)


def check_no_sequence(value: object) -> None:
    """Refuse a nested sequence of tensors; a tensor itself passes."""
    if isinstance(value, list | tuple):
        if any(isinstance(item, Placed) for item in value):
            raise TypeError("a sequence of tensors: stack puts them together on their device")
        for item in value:
            check_no_sequence(item)


def check_tensor(name: str, value: object) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Placed):
        raise TypeError(
            f"{name} is of type {type(value).__name__}: must be a Tensor; asarray({name}) makes one"
        )

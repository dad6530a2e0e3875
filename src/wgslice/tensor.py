"""Tensors: strided windows on GPU buffers, indexed as NumPy arrays are."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.device import COPY_SRC, Device
from wgslice.dialects import numpy_index
from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.execute import Operand, run_copy
from wgslice.integers import integer
from wgslice.layout import Layout
from wgslice.transfer import download

if TYPE_CHECKING:
    from wgslice.device import Buffer

__all__ = ["Tensor", "allocate", "check_tensor", "checked_offset"]


@dataclass(frozen=True, eq=False, slots=True, weakref_slot=True, repr=False)
class Tensor:
    """A window on a GPU buffer: sizes, signed strides, an offset and a dtype.

    Indexing with integers, slices, `...` and None, as NumPy's basic indexing does it, gives a view of the
    same buffer without any GPU work. Make tensors with `asarray`, `empty`, `zeros`, `from_buffer` or an
    operator.

    Attributes
    ----------
    shape : tuple of int
        Sizes, 0 to 8 of them.
    dtype : numpy.dtype
        In native byte order.
    device : Device
        Where it lives.
    buffer : wgpu.GPUBuffer
        The memory, shared by all views on it.
    layout : Layout
        Sizes, strides and offset in elements; what the attributes below say.
    strides : tuple of int
        Steps in elements, as `from_buffer` takes them; 0 in dimensions of size 1.
    offset : int
        Byte offset of the element at index 0 in its buffer, as `from_buffer` takes it.
    """

    device: Device
    buffer: Buffer
    dtype: DType
    layout: Layout

    __contains__ = None  # without an elementwise ==, `in` would always be False

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
    def nbytes(self) -> int:
        """Bytes of all elements, without gaps."""
        return self.size * self.dtype.itemsize

    @property
    def is_packed(self) -> bool:
        """Whether the elements lie row-major without gaps."""
        return self.layout.is_packed

    @property
    def operand(self) -> Operand:
        """This tensor as a side of a copy."""
        return Operand(self.buffer, self.layout)

    def __getitem__(self, key: Any) -> Tensor:
        """Make a view, by NumPy's basic indexing; errors are NumPy's."""
        layout = self.layout.select(numpy_index(key, self.shape))
        return Tensor(self.device, self.buffer, self.dtype, layout)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[index] for index in range(len(self)))

    def __bool__(self) -> bool:
        if self.size > 1:
            raise ValueError("the truth value of a tensor with more than one element is ambiguous")
        return bool(self.numpy())

    def copy(self) -> Tensor:
        """Copy on the GPU.

        Returns
        -------
        Tensor
            Packed, in a buffer of its own. The work is submitted, not waited for.

        Raises
        ------
        ValueError
            The buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the copy, or is gone.
        """
        with named("copy"):
            return packed_copy(self)

    def numpy(self) -> NDArray[Any]:
        """Read back.

        Returns
        -------
        numpy.ndarray
            Same shape and dtype, C-contiguous, writable, with memory of its own. A view that is not packed
            is copied on the GPU first. Waits for the GPU.

        Raises
        ------
        ValueError
            The buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left to read through, or is gone.
        """
        with named("numpy"):
            readable = self.is_packed and self.buffer.usage & COPY_SRC
            packed = self if readable or not self.size else packed_copy(self)
            array = np.empty(self.shape, self.dtype)
            if array.size:
                download(self.device, packed.buffer, packed.offset, array.reshape(-1).view(np.uint8))
            return array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        packed = "packed" if self.is_packed else f"strides={self.strides}"
        return f"Tensor(shape={self.shape}, dtype={self.dtype}, {packed}, device={self.device.adapter})"


def packed_copy(tensor: Tensor) -> Tensor:
    """A tensor's elements, copied on the GPU into a buffer of their own."""
    copied = allocate(tensor.shape, tensor.dtype, tensor.device)
    run_copy(tensor.device, tensor.dtype.itemsize, tensor.operand, copied.operand)
    return copied


def allocate(sizes: Sequence[int], dtype: DType, device: Device) -> Tensor:
    """Make a packed tensor of zeros in a buffer of its own: WebGPU's new buffers are zero."""
    layout = Layout.packed(sizes)
    return Tensor(device, device.create_buffer(layout.size * dtype.itemsize), dtype, layout)


def check_tensor(name: str, value: object) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is of type {type(value).__name__}: must be a Tensor; asarray({name}) makes one"
        )


def checked_offset(offset: SupportsIndex, itemsize: int) -> int:
    """A byte offset as an offset in elements."""
    nbytes = integer("offset", offset)
    if nbytes < 0 or nbytes % itemsize:
        raise ValueError(
            f"offset = {nbytes} bytes: must be a multiple of the item size, {itemsize}, and at least 0"
        )
    return nbytes // itemsize

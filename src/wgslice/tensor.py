"""Tensors: strided windows on GPU buffers, indexed as NumPy arrays are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike, NDArray

from wgslice.device import COPY_SRC, Device, default_device, describe_buffer, device_of
from wgslice.dialects import numpy_index
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.execute import Operand, run_copy
from wgslice.integers import MAX_RANK, U32_MAX, check_within, integer, integers
from wgslice.layout import Layout

if TYPE_CHECKING:
    from wgslice.device import Buffer

__all__ = ["Tensor", "asarray", "check_fits", "empty", "from_buffer", "reverse", "zeros"]


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
    strides : tuple of int
        Steps in elements, as `from_buffer` takes them; 0 in dimensions of size 1.
    offset : int
        Byte offset of the element at index 0 in its buffer, as `from_buffer` takes it.
    """

    __slots__ = ("buffer", "device", "dtype", "layout")

    def __init__(self, device: Device, buffer: Buffer, dtype: DType, layout: Layout) -> None:
        self.device = device
        self.buffer = buffer
        self.dtype = dtype
        self.layout = layout

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
        """Make a view, by NumPy's basic indexing."""
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

    def copy(self) -> Tensor:
        """Copy on the GPU.

        Returns
        -------
        Tensor
            Packed, in a buffer of its own. The work is submitted, not waited for.
        """
        copied = empty(self.shape, self.dtype, self.device)
        run_copy(self.device, self.dtype.itemsize, self.operand, copied.operand)
        return copied

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
        DeviceLostError
            The device is gone.
        """
        array = np.empty(self.shape, self.dtype)
        if array.size:
            readable = self if self.is_packed and self.buffer.usage & COPY_SRC else self.copy()
            self.device.download(readable.buffer, readable.offset, array.reshape(-1).view(np.uint8))
        return array

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __repr__(self) -> str:
        packed = "packed" if self.is_packed else f"strides={self.strides}"
        return f"Tensor(shape={self.shape}, dtype={self.dtype}, {packed}, device={self.device.adapter})"


def asarray(array: ArrayLike | Tensor, device: Device | None = None) -> Tensor:
    """Upload an array.

    Parameters
    ----------
    array : array_like or Tensor
        Anything `numpy.asarray` takes, in any memory layout and byte order, of rank 0 to 8, also without
        elements. A tensor on the same device is returned as it is.
    device : Device, optional
        `default_device()` by default; a tensor's own for a tensor.

    Returns
    -------
    Tensor
        Packed, in native byte order, in a buffer of its own.

    Raises
    ------
    TypeError
        The dtype is not one of fixed-width elements of 1, 2, 4, 8 or 16 bytes.
    ValueError
        The rank is above 8, or the bytes are more than the device's largest buffer.
    OutOfDeviceMemory
        The device has no memory left.
    """
    if isinstance(array, Tensor):
        if device in (None, array.device):
            return array
        array = array.numpy()
    with named("asarray"):
        values = np.asarray(array)
        native = values.astype(element_dtype(values.dtype), order="C", copy=False)
        tensor = empty_unnamed(native.shape, native.dtype, device)
        if native.size:
            tensor.device.upload(tensor.buffer, np.ascontiguousarray(native).reshape(-1).view(np.uint8))
    return tensor


def empty(
    shape: SupportsIndex | Iterable[SupportsIndex], dtype: DTypeLike, device: Device | None = None
) -> Tensor:
    """Make a tensor to write into.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes, 0 to 8 of them, each at least 0.
    dtype : dtype_like
        Of elements of 1, 2, 4, 8 or 16 bytes.
    device : Device, optional
        `default_device()` by default.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own, with any content.

    Raises
    ------
    TypeError, ValueError
        The shape or dtype is none, or the bytes are more than the device's largest buffer.
    OutOfDeviceMemory
        The device has no memory left.
    """
    with named("empty"):
        return empty_unnamed(shape, dtype, device)


def zeros(
    shape: SupportsIndex | Iterable[SupportsIndex], dtype: DTypeLike, device: Device | None = None
) -> Tensor:
    """Make a tensor of zeros. Otherwise as `empty`."""
    with named("zeros"):
        return empty_unnamed(shape, dtype, device)  # WebGPU's new buffers are zero


def empty_unnamed(
    shape: SupportsIndex | Iterable[SupportsIndex], dtype: DTypeLike, device: Device | None
) -> Tensor:
    """What `empty`, `zeros` and `asarray` share; refusals do not say by whom."""
    sizes, element = checked_shape(shape), element_dtype(dtype)
    device = device or default_device()
    layout = Layout.packed(sizes)
    return Tensor(device, device.create_buffer(layout.size * element.itemsize), element, layout)


def from_buffer(
    gpu_buffer: Buffer,
    shape: SupportsIndex | Iterable[SupportsIndex],
    dtype: DTypeLike,
    *,
    offset: SupportsIndex = 0,
    strides: Iterable[SupportsIndex] | None = None,
) -> Tensor:
    """View a buffer that the caller owns, without a copy.

    Parameters
    ----------
    gpu_buffer : wgpu.GPUBuffer
        With usage STORAGE. Where it also has COPY_SRC and COPY_DST, contiguous copies and `numpy()` are
        faster. Do not destroy it while tensors use it: dropping all references frees it.
    shape : int or sequence of int
        Sizes, 0 to 8 of them.
    dtype : dtype_like
        Of elements of 1, 2, 4, 8 or 16 bytes.
    offset : int
        Bytes from the start of the buffer to the element at index 0, a multiple of the item size.
    strides : sequence of int, optional
        Steps in elements; larger ones than packed are padding, 0 repeats elements, negative ones go
        backwards. Packed row-major by default.

    Returns
    -------
    Tensor
        A view of the buffer, on the buffer's device.

    Raises
    ------
    TypeError
        `gpu_buffer` is no buffer, or the dtype has no fixed width of 1, 2, 4, 8 or 16 bytes.
    ValueError
        The buffer is too small, lacks STORAGE, is mapped or destroyed, or the offset is not aligned.
    """
    with named("from_buffer"):
        device = device_of(gpu_buffer)
        sizes, element = checked_shape(shape), element_dtype(dtype)
        start = checked_offset(offset, element.itemsize)
        if strides is None:
            layout = Layout.packed(sizes, start)
        else:
            steps = integers("strides", strides)
            if len(steps) != len(sizes):
                raise ValueError(f"{len(steps)} strides for {len(sizes)} dimensions: one of each is needed")
            layout = Layout.of(sizes, steps, start)
        device.check_usable(gpu_buffer)
        check_fits(gpu_buffer, layout, element)
        device.check_alive(gpu_buffer)
        return Tensor(device, gpu_buffer, element, layout)


def reverse(x: Tensor, axes: SupportsIndex | Iterable[SupportsIndex] | None = None) -> Tensor:
    """Flip the order of elements, as `numpy.flip` and WebNN's `reverse` do.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    axes : int or sequence of int, optional
        Dimensions to flip, each once; negative ones count from the last. All by default.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`) or named twice.
    """
    with named("reverse"):
        check_tensor("x", x)
        flipped = range(x.ndim) if axes is None else normalized_axes(axes, x.ndim)
        ranges = [
            range(size - 1, -1, -1) if axis in flipped else range(size) for axis, size in enumerate(x.shape)
        ]
        return Tensor(x.device, x.buffer, x.dtype, x.layout.select(ranges))


def check_tensor(name: str, value: object) -> None:
    """Refuse what is no tensor."""
    if not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is of type {type(value).__name__}: must be a Tensor; asarray({name}) makes one"
        )


def check_fits(buffer: Buffer, layout: Layout, dtype: DType) -> None:
    """Refuse a layout that leaves its buffer, whose last word must be whole."""
    if layout.lowest < 0:
        raise ValueError(
            f"the layout reaches {-layout.lowest * dtype.itemsize} bytes before the start of "
            f"{describe_buffer(buffer)}: raise the offset"
        )
    needed = -(-layout.stop * dtype.itemsize // 4) * 4
    if needed > buffer.size:
        raise ValueError(
            f"{describe_buffer(buffer)} is too small: sizes {layout.sizes}, strides {layout.strides} of {dtype} from "
            f"byte offset {layout.offset * dtype.itemsize} need {needed}, in whole words of 4 bytes"
        )


def checked_shape(shape: SupportsIndex | Iterable[SupportsIndex]) -> tuple[int, ...]:
    """Sizes as a user gives them: one integer or several."""
    sizes = integers("shape", shape) if isinstance(shape, Iterable) else (integer("shape", shape),)
    if len(sizes) > MAX_RANK:
        raise ValueError(f"shape {sizes} has rank {len(sizes)}: the rank must be 0 to {MAX_RANK}")
    check_within("shape", sizes, 0, U32_MAX, "a u32")
    return sizes


def checked_offset(offset: SupportsIndex, itemsize: int) -> int:
    """A byte offset as an offset in elements."""
    nbytes = integer("offset", offset)
    if nbytes < 0 or nbytes % itemsize:
        raise ValueError(
            f"offset = {nbytes} bytes: must be a multiple of the item size, {itemsize}, and at least 0"
        )
    return nbytes // itemsize


def normalized_axes(axes: SupportsIndex | Iterable[SupportsIndex], rank: int) -> Sequence[int]:
    """Axes from 0 to rank - 1, each once."""
    named_axes = integers("axes", axes) if isinstance(axes, Iterable) else (integer("axes", axes),)
    for axis in named_axes:
        if not -rank <= axis < rank:
            raise np.exceptions.AxisError(axis, rank)
    normalized = [axis % rank for axis in named_axes]
    if len(set(normalized)) < len(normalized):
        raise ValueError(f"axes = {named_axes}: an axis is repeated")
    return normalized

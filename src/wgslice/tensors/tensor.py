"""Tensors: strided windows on GPU buffers, indexed as NumPy arrays are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NoReturn, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.dialects.advanced_index import AdvancedSelection, is_plain
from wgslice.dialects.numpy_index import basic_index, numpy_shape
from wgslice.dialects.selection import Selection
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import record, run_copy
from wgslice.gpu.transfer import download
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.profiles import MOST_PLANS
from wgslice.rearrange import reshaped, squeezed
from wgslice.tensors.dlpack import CPU_DEVICE, exported
from wgslice.tensors.gathering import gather
from wgslice.tensors.indices import selected
from wgslice.tensors.placed import Placed
from wgslice.tensors.writing import as_assigned, write

__all__ = ["Tensor", "allocate", "viewed"]


@dataclass(frozen=True, init=False, eq=False, slots=True, weakref_slot=True, repr=False)
class Tensor(Placed):
    """A window on a GPU buffer: sizes, signed strides, an offset and a dtype.

    Indexing with integers, slices, `...` and None, as NumPy's basic indexing does it, gives a view of the
    same buffer without any GPU work; assigning to such an index writes into it. Make tensors with `asarray`,
    `empty`, `zeros`, `from_buffer` or an operator.

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
    ndim, size, nbytes : int
        Dimensions, elements, and bytes of all elements without gaps.
    is_packed : bool
        Whether the elements lie row-major without gaps.
    """

    __contains__ = None  # without an elementwise ==, `in` would always be False

    def __getitem__(self, key: Any) -> Tensor:
        """Take a part as NumPy does, with its errors, or by a selection in another notation.

        Integers, slices, `...` and None make a view. Arrays or lists of integers and masks copy, as they do
        in NumPy, into a packed tensor with a buffer of its own, by one submission that is not waited for.
        Tensors of bools are read back. Of tensors of integers nothing is known before the GPU reads them: an
        index outside of its dimension, also a negative one, is taken as the nearest inside.
        """
        if is_plain(key):
            return viewed(self, self.layout.select(basic_index(self.shape, key).items))
        with named("indexing"):
            selection = self._selected(key)
            if isinstance(selection, Selection):
                return viewed(self, self.layout.select(selection.items))
            result = allocate(selection.shape, self.dtype, self.device)
            gather(self, selection, result)
            return result

    def _selected(self, key: Any) -> Selection | AdvancedSelection:
        """What a key selects, in whichever notation."""
        if isinstance(key, Selection):
            key.check(self.shape)
            return key
        return selected(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a tensor, an array or a scalar into a view, broadcast as NumPy does.

        What is no tensor is cast as NumPy does too; a tensor has the same dtype, and if it lies in the same
        buffer, is read before anything is written. The work is submitted, not waited for.
        """
        with named("assignment"):
            write(self[key], value if isinstance(value, Tensor) else as_assigned(value, self.dtype))

    @property
    def T(self) -> Tensor:  # noqa: N802 -- NumPy's name
        """The view with all dimensions in reverse order."""
        return viewed(self, self.layout.permuted(range(self.ndim)[::-1]))

    def reshape(self, *shape: SupportsIndex | Iterable[SupportsIndex]) -> Tensor:
        """View with other sizes; one of them may be -1, which stands for what is left.

        Raises
        ------
        TypeError, ValueError
            The sizes hold another number of elements, the rank is above 8, or the elements lie so that a copy
            is needed: `copy()` makes a tensor that takes any shape.
        """
        with named("reshape"):
            sizes = numpy_shape(shape[0] if len(shape) == 1 else cast("Any", shape), self.size)
            layout = reshaped(self.layout, sizes)
            if layout is None:
                raise ValueError(
                    f"shape {self.shape} with strides {self.strides} cannot be viewed as {sizes}: "
                    "copy() the tensor first"
                )
            return viewed(self, layout)

    def squeeze(self, axis: SupportsIndex | Iterable[SupportsIndex] | None = None) -> Tensor:
        """View without dimensions of size 1: those of `axis`, or all.

        Raises
        ------
        TypeError, ValueError
            An axis is out of range (`numpy.exceptions.AxisError`), named twice, or of another size than 1.
        """
        with named("squeeze"):
            return viewed(self, squeezed(self.layout, axis))

    def view(self, dtype: DTypeLike) -> Tensor:
        """View the same bits as another dtype of the same width, such as bfloat16 as uint16.

        Raises
        ------
        TypeError
            The dtype is not one of elements, or has another width.
        """
        with named("view"):
            element = element_dtype(dtype)
            if element.itemsize != self.dtype.itemsize:
                raise TypeError(
                    f"dtype {element}: must have the width of {self.dtype}, {self.dtype.itemsize} bytes"
                )
            return Tensor(self.device, self.buffer, element, self.layout)

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
            array = np.empty(self.shape, self.dtype)
            if array.size:
                read_into(self, array.reshape(-1).view(np.uint8))
            return array

    def __copy__(self) -> Tensor:
        with named("copy.copy"):
            return packed_copy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        with named("copy.deepcopy"):
            return packed_copy(self)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a Tensor cannot be pickled, since its elements are on a device: pickle x.numpy(), and make a "
            "tensor of that with asarray"
        )

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        array = self.numpy()
        return array if dtype is None else array.astype(dtype, copy=False)

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        with named("__dlpack__"):
            return exported(self.numpy, stream, max_version, dl_device, copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return CPU_DEVICE  # where a copy for others lies

    def __repr__(self) -> str:
        packed = "packed" if self.is_packed else f"strides={self.strides}"
        return f"Tensor(shape={self.shape}, dtype={self.dtype}, {packed}, device={self.device.adapter})"


def viewed(tensor: Tensor, layout: Layout) -> Tensor:
    """Another view of a tensor's buffer."""
    return Tensor(tensor.device, tensor.buffer, tensor.dtype, layout)


def packed_copy(tensor: Tensor) -> Tensor:
    """A tensor's elements, copied on the GPU into a buffer of their own."""
    copied = allocate(tensor.shape, tensor.dtype, tensor.device)
    run_copy(tensor.device, tensor.operand, copied.operand._replace(fresh=True))
    return copied


def read_into(tensor: Tensor, data: NDArray[np.uint8]) -> None:
    """Read back; a view that is not packed is copied on the GPU first, in the same submission."""
    device = tensor.device
    if tensor.is_packed and tensor.buffer.usage & BufferUsage.COPY_SRC:
        check_usable(device, tensor.buffer)
        check_alive(device, tensor.buffer)
        download(device, tensor.buffer, tensor.offset, data)
        return
    copied = allocate(tensor.shape, tensor.dtype, device)
    encoder = device.create_encoder()
    record(device, encoder, plan_copy, tensor.operand, copied.operand._replace(fresh=True))
    download(device, copied.buffer, 0, data, encoder)


# A program makes tensors of the same sizes again and again.
packed_layout = lru_cache(maxsize=MOST_PLANS)(Layout.packed)


def allocate(sizes: Sequence[int], dtype: DType, device: Device) -> Tensor:
    """Make a packed tensor of zeros in a buffer of its own: WebGPU's new buffers are zero."""
    layout = packed_layout(tuple(sizes))
    return Tensor(device, device.create_buffer(layout.size * dtype.itemsize), dtype, layout)

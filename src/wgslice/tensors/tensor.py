"""Tensors: strided windows on GPU buffers, indexed as NumPy arrays are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike

from wgslice.arguments import check_row_major
from wgslice.dialects.advanced_index import AdvancedSelection, is_plain
from wgslice.dialects.numpy_index import basic_index, numpy_shape
from wgslice.dialects.selection import Selection
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import Device
from wgslice.gpu.recording import run_copy
from wgslice.layout import Layout
from wgslice.plans.profiles import MOST_PLANS
from wgslice.rearrange import reshaped
from wgslice.tensors.absent import INSTEAD, refused, remedy_of
from wgslice.tensors.indices import gather, selected
from wgslice.tensors.namespaced import Namespaced
from wgslice.tensors.placed import check_writeable, viewed
from wgslice.tensors.portable import Portable
from wgslice.tensors.rearranging import Rearrangeable
from wgslice.tensors.scattering import scatter
from wgslice.tensors.uncomputed import Uncomputed
from wgslice.tensors.writing import as_assigned, write

__all__ = ["Tensor", "allocate", "packed_copy", "viewed"]


class Tensor(Uncomputed, Portable, Rearrangeable, Namespaced):
    """A window on a GPU buffer: sizes, signed strides, an offset and a dtype.

    Indexing with integers, slices, `...` and None, as NumPy's basic indexing does it, gives a view of the
    same buffer without any GPU work; arrays of indices and masks, its advanced indexing, give a copy.
    Assigning to an index writes into it. Make tensors with `asarray`, `empty`, `zeros`, `from_buffer` or an
    operator.

    Tensors are moved and not computed with: operators such as `==` and `+` between tensors, arrays and
    numbers raise a ComputationRefused that says how to go on. Tensors are hashed and found in lists and as
    keys by their identity.

    A pickled tensor is its elements alone, read back, and becomes a packed tensor on `default_device()` of
    the process that unpickles it; from protocol 5 on, what takes them out of band gets them without a copy.

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
    flags : Flags
        `flags.writeable` is False for views that repeat elements, of `broadcast_to`, `broadcast_arrays` and
        `meshgrid`, and for all views of them: writing raises ValueError, as in NumPy.
    strides : tuple of int
        Steps in elements, as `from_buffer` takes them; 0 in dimensions of size 1.
    offset : int
        Byte offset of the element at index 0 in its buffer, as `from_buffer` takes it.
    ndim, size, itemsize, nbytes : int
        Dimensions, elements, bytes of an element, and bytes of all elements without gaps.
    is_packed : bool
        Whether the elements lie row-major without gaps.
    """

    __slots__ = ("__weakref__",)

    def __getitem__(self, key: Any) -> Tensor:
        """Take a part as NumPy does, with its errors, or by a selection in another notation.

        Integers, slices, `...` and None make a view. Arrays or lists of integers and masks copy, as they do
        in NumPy, into a packed tensor with a buffer of its own, by one submission that is not waited for.
        Tensors of bools are read back. Tensors of integers are not: negative ones count from the end, and an
        index that is out of range reads the nearest element. With WGSLICE_CHECK_INDICES=1 in the environment
        they are read back, and an index out of range is an IndexError.
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
        if is_plain(key):
            return basic_index(self.shape, key)
        if isinstance(key, Selection):
            key.check(self.shape)
            return key
        return selected(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a tensor, an array or a scalar into a part, broadcast as NumPy does.

        What is no tensor is cast as NumPy does too; a tensor has the same dtype, and if it lies in the same
        buffer, is read before anything is written. Of elements for the same place the last one stays. Of
        indices in a tensor negative ones count from the end, and what is for one that is out of range is
        dropped, or refused before anything is written if WGSLICE_CHECK_INDICES=1. The work is submitted, not
        waited for.
        """
        with named("assignment"):
            check_writeable(self)
            selection = self._selected(key)
            given = value if isinstance(value, Tensor) else as_assigned(value, self.dtype)
            if isinstance(selection, Selection):
                write(viewed(self, self.layout.select(selection.items)), given)
            else:
                scatter(self, selection, given)

    def __delitem__(self, key: Any) -> NoReturn:
        raise ValueError(f"cannot delete elements of a tensor: {INSTEAD['delete']}, is a copy of the others")

    def __setattr__(self, name: str, value: Any) -> NoReturn:
        raise AttributeError(
            f"a tensor's attributes cannot be set ({name}): x[...] = value writes elements, x.reshape(shape) "
            "and x.view(dtype) give other tensors of the same elements"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a tensor's attributes cannot be deleted ({name})")

    if not TYPE_CHECKING:  # which would take any name for an attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Called for absent attributes: point to what does the work of an array's."""
            known = f": {remedy_of(name)}" if hasattr(np.ndarray, name) and not name.startswith("_") else ""
            raise AttributeError(f"'Tensor' object has no attribute {name!r}{known}", name=name, obj=self)

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

        Raises
        ------
        ValueError
            The buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the copy, or is gone.
        """
        with named("copy"):
            return packed_copy(self)

    def flatten(self) -> Tensor:
        """Copy on the GPU, in one dimension.

        Returns
        -------
        Tensor
            Packed, in a buffer of its own, the elements in row-major order. The work is submitted, not waited
            for.

        Raises
        ------
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`.
        """
        with named("flatten"):
            return packed_copy(self).reshape(-1)

    def reshape(self, *shape: SupportsIndex | Iterable[SupportsIndex]) -> Tensor:
        """View with other sizes, or copy where the elements lie so that there is no such view.

        Parameters
        ----------
        shape : int, or one sequence of int
            Sizes of as many elements; one may be -1, which stands for what is left.

        Returns
        -------
        Tensor
            A view, or packed in a buffer of its own, by work that is submitted and not waited for;
            `wgslice.reshape` refuses where it would be a copy.

        Raises
        ------
        TypeError
            A size is no integer.
        ValueError, OutOfDeviceMemory, DeviceLostError
            The sizes hold another number of elements, or the rank is above 8; or as `copy`.
        """
        with named("reshape"):
            sizes = numpy_shape(shape[0] if len(shape) == 1 else cast("Any", shape), self.size)
            layout = reshaped(self.layout, sizes)
            return viewed(packed_copy(self), Layout.packed(sizes)) if layout is None else viewed(self, layout)

    def ravel(self) -> Tensor:
        """View in one dimension, or copy where the elements lie so that there is no such view.

        Returns
        -------
        Tensor
            A view, or as `flatten`.

        Raises
        ------
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`.
        """
        layout = reshaped(self.layout, (self.size,))
        if layout is not None:
            return viewed(self, layout)
        with named("ravel"):
            return packed_copy(self).reshape(-1)

    def sum(self) -> Tensor:
        """Sum of a tensor without elements: 0. Dask asks for it to describe chunks of rank 0.

        Returns
        -------
        Tensor
            Of rank 0 and the tensor's own dtype, in a buffer of its own.

        Raises
        ------
        ComputationRefused
            The tensor has elements, which are not computed with.
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`.
        """
        if self.size:
            refused("sum")
        with named("sum"):
            return allocate((), self.dtype, self.device)

    def astype(self, dtype: DTypeLike, copy: bool = True, *, order: str | None = "K") -> Tensor:
        """Copy on the GPU to a dtype that is the tensor's own: nothing is converted.

        Parameters
        ----------
        dtype : dtype_like
            Equal to the tensor's; `view` takes others of the same width, and keeps the bits.
        copy : bool
            False returns the tensor itself.
        order : {"K", "A", "C", "F"}, optional
            As NumPy's; packed tensors are row-major, so "F" is refused where that is another order.

        Returns
        -------
        Tensor
            Packed, in a buffer of its own, or the tensor itself. The work is submitted, not waited for.

        Raises
        ------
        ComputationRefused
            The dtype is another one, so that numbers would have to be converted.
        TypeError
            The dtype is none of elements.
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`; or the order is another one.
        """
        with named("astype"):
            check_row_major(order, self.shape)
            element = element_dtype(dtype)
            if element != self.dtype:
                raise ComputationRefused(
                    f"{self.dtype} to {element}: numbers would have to be computed; x.numpy().astype "
                    "computes them, and x.view gives the same bits another dtype"
                )
            return packed_copy(self) if copy else self

    def __copy__(self) -> Tensor:
        with named("copy.copy"):
            return packed_copy(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Tensor:
        with named("copy.deepcopy"):
            return packed_copy(self)

    def __repr__(self) -> str:
        packed = "packed" if self.is_packed else f"strides={self.strides}"
        return f"Tensor(shape={self.shape}, dtype={self.dtype}, {packed}, device={self.device.adapter})"


def packed_copy(tensor: Tensor) -> Tensor:
    """A tensor's elements, copied on the GPU into a buffer of their own."""
    copied = allocate(tensor.shape, tensor.dtype, tensor.device)
    run_copy(tensor.device, tensor.operand, copied.operand._replace(fresh=True))
    return copied


# A program makes tensors of the same sizes again and again.
packed_layout = lru_cache(maxsize=MOST_PLANS)(Layout.packed)


def allocate(sizes: Sequence[int], dtype: DType, device: Device) -> Tensor:
    """Make a packed tensor of zeros in a buffer of its own: WebGPU's new buffers are zero."""
    layout = packed_layout(tuple(sizes))
    return Tensor(device, device.create_buffer(layout.size * dtype.itemsize), dtype, layout)

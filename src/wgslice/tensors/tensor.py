"""Tensors: strided windows on GPU buffers, indexed as NumPy arrays are."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.arguments import (
    OneOrMore,
    check_row_major,
    checked_shape,
    distinct_axes,
    integer,
    integers,
)
from wgslice.dask import register, token
from wgslice.dialects.basic import Selection, basic_index, is_plain, numpy_shape
from wgslice.dtypes import AnyDType, DType, element_dtype
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.recording import run_copy
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.layout_rules import permuted, reshaped, squeezed
from wgslice.plans.profiles import MAX_PLANS
from wgslice.tensors.assignment import assign
from wgslice.tensors.indexing import gather, selected
from wgslice.tensors.placed import (
    CPU_DEVICE,
    Placed,
    exported,
    read_into,
    upper_modules,
    viewed,
)
from wgslice.tensors.uncomputed import INSTEAD, Uncomputed, refused, remedy_of


class Tensor(Uncomputed, Placed):
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
        Sizes, 0 to 8 of them; `ndim` dimensions, and `size` elements of `itemsize` bytes, together `nbytes`.
    dtype : numpy.dtype
        In native byte order.
    device : Device
        Where it lives.
    buffer : wgpu.GPUBuffer
        The memory, shared by all views on it; once asked for, it is not reused for other tensors when the
        last view is dropped.
    layout : Layout
        Sizes, strides and offset in elements; what the attributes below say.
    flags : Flags
        `flags.writeable` is False for views that repeat elements, of `broadcast_to`, `broadcast_arrays`,
        `meshgrid` and `sliding_window_view`, and for all views of them: writing raises ValueError, as in
        NumPy.
    strides : tuple of int
        Steps in elements, as `from_buffer` takes them; 0 in dimensions of size 1.
    offset : int
        Byte offset of the element at index 0 in its buffer, as `from_buffer` takes it.
    is_packed : bool
        Whether the elements lie row-major without gaps.
    """

    __slots__ = ("__weakref__",)

    def __post_init__(self) -> None:
        if "dask" in sys.modules:
            register(Tensor)

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
            selection = selected(self, key)
            if isinstance(selection, Selection):
                return viewed(self, self.layout.select(selection.items))
            result = allocate(selection.shape, self.dtype, self.device, zeroed=False)
            gather(self, selection, result)
            return result

    def __setitem__(self, key: Any, value: Any) -> None:
        """Write a tensor, an array or a scalar into a part, broadcast as NumPy does.

        What is no tensor is cast as NumPy does too; a tensor has the same dtype, and if it lies in the same
        buffer, is read before anything is written. Of elements for the same place the last one stays. Of
        indices in a tensor negative ones count from the end, and what is for one that is out of range is
        dropped, or refused before anything is written if WGSLICE_CHECK_INDICES=1. A mask in a tensor is read
        back only if the value differs from one true element to the next. The work is submitted, not waited
        for.
        """
        with named("assignment"):
            assign(self, key, value)

    def __delitem__(self, key: Any) -> NoReturn:
        raise ValueError(f"cannot delete elements of a tensor: {INSTEAD['delete']} copies the others")

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
            The elements in row-major order; else, and in its errors, as `copy`.
        """
        with named("flatten"):
            return packed_copy(self).reshape(-1)

    def reshape(self, *shape: OneOrMore) -> Tensor:
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
            A view, or as `flatten`, also in its errors.
        """
        layout = reshaped(self.layout, (self.size,))
        if layout is not None:
            return viewed(self, layout)
        with named("ravel"):
            return packed_copy(self).reshape(-1)

    def sum(self, *arguments: Any, **options: Any) -> Tensor:
        """Sum of a tensor without elements: 0, of rank 0 and its own dtype, for Dask to describe chunks by.

        Raises
        ------
        ComputationRefused
            The tensor has elements, which are not computed with; or one of `numpy.sum`'s arguments is given.
        OutOfDeviceMemory, DeviceLostError
            As `copy`.
        """
        if self.size or arguments or options:
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

    @property
    def T(self) -> Tensor:  # noqa: N802 -- NumPy's name
        """The view with all dimensions in reverse order."""
        return viewed(self, self.layout.permuted(range(self.ndim)[::-1]))

    @property
    def mT(self) -> Tensor:  # noqa: N802 -- NumPy's name
        """The view with the last two dimensions exchanged: each matrix transposed."""
        if self.ndim < 2:
            raise ValueError(f"mT: a tensor of shape {self.shape} has no matrices: it needs two dimensions")
        return self.swapaxes(-2, -1)

    def transpose(self, *axes: OneOrMore | None) -> Tensor:
        """View with the dimensions in the order of `axes`, or in reverse, as `numpy.ndarray.transpose`.

        Raises
        ------
        TypeError, ValueError
            An axis is no integer, out of range (`numpy.exceptions.AxisError`), named twice or missing.
        """
        with named("transpose"):
            order = axes[0] if len(axes) == 1 else axes or None
            return self.T if order is None else viewed(self, permuted(self.layout, cast("Any", order)))

    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Tensor:
        """View with two dimensions exchanged.

        Raises
        ------
        TypeError, ValueError
            An axis is no integer, or out of range (`numpy.exceptions.AxisError`).
        """
        with named("swapaxes"):
            given = integer("axis1", axis1), integer("axis2", axis2)
            (first,), (second,) = (distinct_axes("axis", axis, self.ndim) for axis in given)
            order = list(range(self.ndim))
            order[first], order[second] = second, first
            return viewed(self, self.layout.permuted(order))

    def squeeze(self, axis: OneOrMore | None = None) -> Tensor:
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
            The dtype is not one of elements.
        ValueError
            The dtype has another width.
        """
        with named("view"):
            element = element_dtype(dtype)
            if element.itemsize != self.dtype.itemsize:
                raise ValueError(
                    f"dtype {element}: must have the width of {self.dtype}, {self.dtype.itemsize} bytes"
                )
            return Tensor(self.device, self.memory, element, self.layout, self.flags)

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

    def item(self, *index: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
        """Read one element back, as a number of Python's.

        Parameters
        ----------
        index : int, one for each dimension, or one tuple of them
            Of the element; a single int counts in row-major order, and negative ones count from the end. May
            be left out where there is one element only.

        Returns
        -------
        bool, int, float, complex or another scalar
            What `numpy.ndarray.item` gives. Waits for the GPU.

        Raises
        ------
        TypeError
            An index is no integer.
        IndexError
            An index is out of bounds.
        ValueError
            There are other numbers of indices and dimensions; or none, and not one element.
        OutOfDeviceMemory, DeviceLostError
            As `numpy`.
        """
        with named("item"):
            nested = len(index) == 1 and isinstance(index[0], tuple)
            given = integers("index", index[0] if nested else index)  # type: ignore[arg-type]  # a tuple
            if not given and self.size != 1:
                raise ValueError(f"a tensor of shape {self.shape} has {self.size} elements: it must have 1")
            if len(given) not in (0, 1, self.ndim):
                raise ValueError(f"{len(given)} indices for a tensor of shape {self.shape}")
            if len(given) == 1 and self.ndim != 1:
                (flat,) = given
                if not -self.size <= flat < self.size:
                    raise IndexError(f"index {flat} is out of bounds for size {self.size}")
                given = tuple(map(int, np.unravel_index(flat % self.size, self.shape)))
            part = basic_index(self.shape, given).items if given else [0] * self.ndim
            return viewed(self, self.layout.select(part)).numpy().item()

    def tolist(self) -> Any:
        """Read back, as nested lists of Python's numbers, or one number for a tensor without dimensions.

        Raises
        ------
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `numpy`.
        """
        return self.numpy().tolist()

    def __format__(self, spec: str) -> str:
        """Format as text; a tensor without dimensions is read back, and formatted as NumPy's scalar is."""
        if self.ndim == 0:
            return format(self.numpy()[()], spec)
        if spec:
            raise TypeError(
                f"format {spec!r} of a tensor of shape {self.shape}: must be of one without dimensions; "
                "x.numpy() is an array"
            )
        return str(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            few = "an empty tensor" if self.size == 0 else "a tensor with more than one element"
            raise ValueError(f"the truth value of {few} is ambiguous")
        return bool(self.item())

    def __int__(self) -> int:
        return int(self._number("int"))

    def __float__(self) -> float:
        return float(self._number("float"))

    def __complex__(self) -> complex:
        return complex(self._number("complex"))

    def __index__(self) -> int:
        if self.ndim or self.dtype.kind not in "iu":
            raise TypeError(
                f"index: a tensor of shape {self.shape} and dtype {self.dtype}: only one integer without "
                "dimensions is an index of Python's"
            )
        return operator.index(self.item())

    def _number(self, name: str) -> Any:
        """The only element, for a conversion that errors call by its name."""
        if self.size != 1:
            raise TypeError(
                f"{name}: a tensor of shape {self.shape} has {self.size} elements: only one is a number"
            )
        return self.item()

    def __array__(self, dtype: AnyDType = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        array = self.numpy()
        if wanted.kind == self.dtype.kind or np.can_cast(self.dtype, wanted):
            return array.astype(wanted, copy=False)
        return array  # NumPy casts it, or refuses to, by the rule of the function that asks

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

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """The functions of the standard, `wgslice.array_api`; a ValueError for an unknown version of it."""
        namespace: ModuleType = upper_modules["array_api"]()
        with named("__array_namespace__"):
            if api_version not in (None, *namespace.VERSIONS):
                known = ", ".join(namespace.VERSIONS)
                raise ValueError(f"api_version = {api_version!r}: must be one of {known}")
        return namespace

    def __array_function__(
        self,
        function: Callable[..., Any],
        types: Collection[type],
        arguments: Sequence[Any],
        options: Mapping[str, Any],
    ) -> Any:
        dispatch = upper_modules["numpy_functions"]()
        return dispatch.call_function(self.device, function, types, arguments, options)

    def to_device(self, device: Device | str, /, *, stream: Any = None) -> Tensor:
        """Move to another device, or one of that name, through host memory, which waits; on its own itself.

        Raises
        ------
        TypeError
            `device` is none.
        ValueError
            A stream is named: a device has one queue.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left, or one of both is gone.
        """
        with named("to_device"):
            if stream is not None:
                raise ValueError(f"stream = {stream!r}: must be None, since a device has one queue")
            if device is None:
                raise TypeError("device is None: name one")
            chosen = checked_device(device)
            return self if chosen is self.device else from_host(self.numpy(), chosen)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        with named("pickle"):
            elements = self.numpy().reshape(-1).view(np.uint8)  # of other dtypes NumPy copies some in band
            return unpickled, (elements, self.dtype, self.shape)

    def __sizeof__(self) -> int:
        """Bytes of the object and of its elements, by which Dask's workers limit what they hold."""
        return object.__sizeof__(self) + self.nbytes

    def __dask_tokenize__(self) -> Any:
        """What Dask names a task by that is given this tensor: its elements, which are read back."""
        return type(self).__qualname__, token(self.numpy())

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
    copied = allocate(tensor.shape, tensor.dtype, tensor.device, zeroed=False)
    run_copy(tensor.device, tensor.bound_layout, copied.bound_layout._replace(fresh=True))
    return copied


# A program makes tensors of the same sizes again and again.
packed_layout = lru_cache(maxsize=MAX_PLANS)(Layout.packed)


def allocate(sizes: Sequence[int], dtype: DType, device: Device, *, zeroed: bool = True) -> Tensor:
    """Make a packed tensor in a buffer of its own, of zeros or, for what writes all of it, of any content."""
    layout = packed_layout(tuple(sizes))
    memory = device.reused_buffer(layout.size * dtype.itemsize, zeroed=zeroed)
    return Tensor(device, memory, dtype, layout)


def from_host(array: NDArray[Any], device: Device) -> Tensor:
    """Upload a contiguous array in native byte order."""
    tensor = allocate(checked_shape(array.shape), array.dtype, device, zeroed=False)
    if array.size:
        upload(device, tensor.memory, array.reshape(-1).view(np.uint8))
    return tensor


def unpickled(elements: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """The tensor of a pickle, on the default device of this process."""
    return from_host(elements.view(dtype).reshape(shape), checked_device(None))

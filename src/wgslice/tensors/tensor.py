"""Tensors: strided views of GPU buffers, indexed like NumPy arrays."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike, NDArray

from wgslice.arguments import OneOrMore, checked_shape, distinct_axes, integer, integers, order_letter
from wgslice.dask import register, token
from wgslice.dialects.basic import Selection, basic_index, is_plain, numpy_shape
from wgslice.docstrings import (
    COPY,
    NO_AXIS,
    NO_INDEX,
    NO_INTEGER,
    NO_MEMORY,
    NO_ORDER,
    PARAMETERS,
    WRITTEN,
    documented,
)
from wgslice.dtypes import AnyDType, DType, element_dtype
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.recording import BoundLayout, run_copy
from wgslice.gpu.transfer import ArrayPromise, upload
from wgslice.layout import Layout
from wgslice.layout_rules import (
    has_order,
    in_order,
    is_column_major,
    permuted,
    reinterpreted,
    reshaped,
    squeezed,
    transposed,
)
from wgslice.plans.profiles import MAX_PLANS
from wgslice.tensors.assignment import assign
from wgslice.tensors.indexing import gather, selected
from wgslice.tensors.placed import (
    CPU_DEVICE,
    Placed,
    element,
    exported,
    read_back,
    read_into,
    upper_modules,
    viewed,
    write,
)
from wgslice.tensors.uncomputed import Uncomputed, refused, remedy_of


class Tensor(Uncomputed, Placed):
    """An n-dimensional view of a GPU buffer: dtype, sizes, signed strides and an offset.

    Basic indexing as in NumPy, with integers, slices, `...` and None, returns a view of the same buffer
    without GPU work; advanced indexing, with arrays of indices and masks, returns a copy. Assignment to an
    index writes into the buffer. Make tensors with `asarray`, `empty`, `zeros`, `from_buffer` or an operator.

    Tensors do not compute: operators such as `==` and `+` between tensors, arrays and numbers raise a
    ComputationRefused with a remedy. Tensors are hashed, and found in lists, by identity.

    A pickle contains the elements, read back, and gives a packed tensor on the `default_device()` of the
    unpickling process; protocol 5 transfers the elements out of band without a copy.

    Attributes
    ----------
    shape : tuple of int
        Up to 8 sizes; there are `ndim` dimensions and `size` elements of `itemsize` bytes, in all `nbytes`.
    dtype : numpy.dtype
        Dtype of the elements, in native byte order.
    device : Device
        The device that holds the buffer.
    buffer : wgpu.GPUBuffer
        The memory, shared by all views. Once this attribute has been read, the memory is freed with its last
        reference, not reused for other tensors.
    layout : Layout
        Sizes, strides and offset, in elements.
    flags : Flags
        `c_contiguous`, `f_contiguous`, `owndata`, `writeable`, `forc` and `fnc`, as in NumPy. Views that
        repeat elements, from `broadcast_to`, `broadcast_arrays`, `meshgrid` and `sliding_window_view`, and
        views of these are not writeable: writing raises ValueError.
    base : Tensor or None
        The tensor whose buffer this is a view of, or None.
    strides : tuple of int
        Strides in elements, as for `from_buffer`; 0 in dimensions of size 1.
    offset : int
        Bytes from the start of the buffer to the element at index 0, as for `from_buffer`.
    is_packed : bool
        Whether the elements are row-major and contiguous.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6, dtype=np.int16).reshape(2, 3))
    >>> view = x[:, ::-2]
    >>> view.shape, view.strides, view.offset, view.is_packed
    ((2, 2), (3, -2), 4, False)
    >>> view[0] = 7
    >>> x.numpy()
    array([[7, 1, 7],
           [3, 4, 5]], dtype=int16)
    """

    __slots__ = ("__weakref__",)

    def __post_init__(self) -> None:
        if "dask" in sys.modules:
            register(Tensor)

    def __getitem__(self, key: Any) -> Tensor:
        """Return the selected elements as NumPy does, with its errors; the index may be a `Selection`.

        Integers, slices, `...` and None give a view. Arrays and lists of integers, and masks, give a copy, a
        packed tensor in a new buffer; the work is one submission, not waited for. A tensor of bools is read
        back. A tensor of integers is not: negative indices count from the end, and an index out of range
        reads the nearest element. With WGSLICE_CHECK_INDICES=1 in the environment it is read back, and an
        index out of range raises IndexError.
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
        """Write a tensor, an array or a scalar to the selected elements, broadcast as NumPy does.

        Arrays and scalars are cast as in NumPy; a tensor must have the same dtype, and if it is a view of
        the same buffer, it is read before anything is written. If an element is selected twice, the last
        value is written. In a tensor of indices, negative ones count from the end, and values for indices
        out of range are dropped; with WGSLICE_CHECK_INDICES=1 they raise IndexError before anything is
        written. A mask on the GPU is read back only if the value has an element for each true one. The work
        is submitted, not waited for.
        """
        with named("assignment"):
            assign(self, key, value)

    def __delitem__(self, key: Any) -> NoReturn:
        raise ValueError("cannot delete elements of a tensor: np.delete(x, indices, axis) copies the others")

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "flat":
            self.flat[...] = value
            return
        raise AttributeError(
            f"a tensor's attributes cannot be set ({name}): x[...] = value writes elements, x.reshape(shape) "
            "and x.view(dtype) return other views"
        )

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"a tensor's attributes cannot be deleted ({name})")

    if not TYPE_CHECKING:  # type checkers would accept any attribute

        def __getattr__(self, name: str) -> NoReturn:
            """Raise AttributeError with the remedy if NumPy arrays have the absent attribute."""
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

    def copy(self, order: str | None = "C") -> Tensor:
        """Copy the tensor on the GPU.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}
            "F" makes a column-major copy, and "A" one of a tensor that is column-major: the transpose is
            packed. The others, also "K", make a packed one.

        Returns
        -------
        Tensor
            Contiguous, in a new buffer. The work is submitted, not waited for.

        Raises
        ------
        ValueError
            The order is another one, or the buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the copy, or is lost.
        """
        with named("copy"):
            return ordered_copy(self, order)

    @documented(COPY, NO_ORDER, NO_MEMORY)
    def flatten(self, order: str | None = "C") -> Tensor:
        """Copy the tensor to one dimension, with its elements in any of NumPy's orders."""
        with named("flatten"):
            return packed_copy(viewed(self, in_order(self.layout, order)), packed_layout((self.size,)))

    def reshape(self, *shape: OneOrMore, order: str | None = "C", copy: bool | None = None) -> Tensor:
        """View the tensor with other sizes, or copy it if its strides allow no such view.

        Parameters
        ----------
        shape : int, or one sequence of int
            Sizes with the same number of elements; one may be -1, and is then computed from the others.
        order : {"C", "F", "A"}
            Order of the elements on both sides: row-major; with the first index varying fastest; or this one
            for a column-major tensor only.
        copy : bool, optional
            True always copies, False raises instead of copying. By default copies only if needed.

        Returns
        -------
        Tensor
            A view, or a contiguous copy, whose work is submitted and not waited for.

        Raises
        ------
        TypeError
            A size is not an integer.
        ValueError, OutOfDeviceMemory, DeviceLostError
            The number of elements differs, the rank is above 8, or `copy` is False and a copy is needed; or
            as `copy`.
        """
        with named("reshape"):
            sizes = numpy_shape(shape[0] if len(shape) == 1 else cast("Any", shape), self.size)
            if order_letter(order) == "K":
                raise ValueError("order 'K' is not permitted for reshaping")
            turned = is_column_major(self.layout, order)
            x, wanted = (self.T, sizes[::-1]) if turned else (self, sizes)
            layout = None if copy else reshaped(x.layout, wanted)
            if layout is None and copy is False:
                raise ValueError(
                    f"shape {self.shape} with strides {self.strides} cannot be viewed as {sizes}: "
                    "copy() the tensor first"
                )
            found = packed_copy(x, packed_layout(wanted)) if layout is None else viewed(x, layout)
            return found.T if turned else found

    @documented(("Tensor", "A view, or as `flatten`."), NO_ORDER, NO_MEMORY)
    def ravel(self, order: str | None = "C") -> Tensor:
        """View the tensor in one dimension in any of NumPy's orders, or copy it if there is no such view."""
        with named("ravel"):
            return viewed(self, in_order(self.layout, order)).reshape(-1)

    @documented(
        ("Tensor", "With the dimensions of `indices` in place of `axis`, as `wgslice.take` describes."),
        *(NO_INTEGER, NO_INDEX, NO_AXIS, NO_MEMORY),
        axis=("int, optional", "The dimension; by default all elements in row-major order."),
    )
    def take(
        self,
        indices: Any,
        axis: SupportsIndex | None = None,
        out: Tensor | None = None,
        mode: str = "raise",
    ) -> Tensor:
        """Gather elements at indices along a dimension, or of all in row-major order, as `numpy.take`."""
        taken: Tensor = self._dispatched("take", indices, axis, out, mode)
        return taken

    @documented(
        ("Tensor", "Of the shape that the tensor and `choices` broadcast to, packed."),
        ("ValueError", 'A number names no array in the mode "raise", or shapes do not broadcast.'),
        *(NO_INTEGER, NO_MEMORY),
    )
    def choose(self, choices: Any, out: Tensor | None = None, mode: str = "raise") -> Tensor:
        """Gather at each element from the array that the element's number names, as `numpy.choose`."""
        chosen: Tensor = self._dispatched("choose", choices, out, mode)
        return chosen

    @documented(
        ("Tensor", "Packed, as `wgslice.repeat` describes."),
        *(NO_INTEGER, NO_AXIS, NO_MEMORY),
        repeats=("int or sequence of int", "Copies of each element along `axis`, at least 0."),
        axis=("int, optional", "The dimension that grows; by default the tensor is flattened."),
    )
    def repeat(self, repeats: OneOrMore, axis: SupportsIndex | None = None) -> Tensor:
        """Copy the tensor with each element repeated along a dimension, or flattened, as `numpy.repeat`."""
        repeated: Tensor = self._dispatched("repeat", repeats, axis)
        return repeated

    @documented(
        ("Tensor", "A read-only view of shape `(..., k)`, without the two dimensions."),
        *(NO_INTEGER, NO_AXIS, ("ValueError", "The tensor has fewer than two dimensions.")),
        offset=("int", "The diagonal: 0 is the main one, positive ones are above it."),
        axis1=PARAMETERS["axis"],
        axis2=PARAMETERS["axis"],
    )
    def diagonal(
        self, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1
    ) -> Tensor:
        """View the diagonal of two dimensions as the last one, read-only, as `numpy.diagonal`."""
        found: Tensor = self._dispatched("diagonal", offset, axis1, axis2)
        return found

    @documented(
        WRITTEN,
        ("ValueError", "The tensor is read-only, or its buffer is destroyed or mapped."),
        *(NO_INTEGER, NO_INDEX, NO_MEMORY),
        values=("Tensor or array_like", "Repeated as often as needed; a tensor has this dtype."),
    )
    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write values at indices of all elements in row-major order, as `numpy.put`."""
        self._dispatched("put", indices, values, mode)

    @documented(
        WRITTEN,
        *(("TypeError", "The value cannot be cast."), NO_MEMORY),
        ("ValueError", "The value has dimensions, or the tensor is read-only."),
        value=("scalar or Tensor of rank 0", "Cast as NumPy assigns it; a tensor has this dtype."),
    )
    def fill(self, value: Any) -> None:
        """Write one number, or the element of a tensor of rank 0, to all elements, as NumPy does."""
        with named("fill"):
            if isinstance(value, Tensor | np.ndarray) and value.ndim:
                raise ValueError(
                    f"value has shape {value.shape}: must have rank 0; x[...] = value broadcasts"
                )
            if not isinstance(value, Tensor):
                element = np.empty(1, self.dtype)
                element.fill(value)
                value = element
            write(self, value)

    @property
    def flat(self) -> Any:
        """All elements in row-major order, to be read, written and iterated over, as `numpy.ndarray.flat`."""
        return upper_modules["numpy_functions"]().Flat(self)

    def _dispatched(self, name: str, *arguments: Any) -> Any:
        """Run NumPy's function of a name, which an upper layer implements."""
        with named(name):
            return upper_modules["numpy_functions"]().BY_NAME[name](self, *arguments)

    def sum(self, *arguments: Any, **options: Any) -> Tensor:
        """Return the sum of an empty tensor, 0, which Dask uses to describe chunks; others are refused."""
        if self.size or arguments or options:
            refused("sum")
        with named("sum"):
            return allocate((), self.dtype, self.device)

    def astype(
        self,
        dtype: DTypeLike,
        copy: bool = True,
        *,
        order: str | None = "K",
        casting: str = "unsafe",
    ) -> Tensor:
        """Copy the tensor on the GPU; only its own dtype is allowed, since nothing is converted.

        Parameters
        ----------
        dtype : dtype_like
            The tensor's dtype; `view` reinterprets the bits as another dtype of the same width.
        copy : bool
            False returns the tensor itself if it is contiguous in the order; in "K" always.
        order : {"K", "A", "C", "F"}, optional
            As of `copy`.
        casting : {"unsafe", "same_kind", "safe", "equiv", "no"}, optional
            NumPy's rule for the dtype.

        Returns
        -------
        Tensor
            Contiguous, in a new buffer, or the tensor itself. The work is submitted, not waited for.

        Raises
        ------
        ComputationRefused
            The dtype differs from the tensor's.
        TypeError
            The dtype does not have elements of 1, 2, 4, 8 or 16 bytes, or `casting` excludes it.
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`; or `casting` is another word.
        """
        with named("astype"):
            as_is = not copy and has_order(self.layout, order)
            element = element_dtype(dtype)
            if not np.can_cast(self.dtype, element, cast("Any", casting)):
                raise TypeError(f"cannot cast {self.dtype} to {element} according to the rule {casting!r}")
            if element != self.dtype:
                raise ComputationRefused(
                    f"{self.dtype} to {element}: nothing is converted on the GPU; use x.numpy().astype, or "
                    "x.view for the same bits with another dtype"
                )
            return self if as_is else ordered_copy(self, order)

    @property
    def T(self) -> Tensor:  # noqa: N802 -- NumPy's name
        """A view with all dimensions in reverse order."""
        return viewed(self, transposed(self.layout))

    @property
    def mT(self) -> Tensor:  # noqa: N802 -- NumPy's name
        """A view with the last two dimensions exchanged, so that each matrix is transposed."""
        if self.ndim < 2:
            raise ValueError(
                f"mT: a tensor of shape {self.shape} has no matrices: it must have at least two dimensions"
            )
        return self.swapaxes(-2, -1)

    def transpose(self, *axes: OneOrMore | None) -> Tensor:
        """View the tensor with dimensions in the order of `axes`, by default reversed, as NumPy does.

        Parameters
        ----------
        axes : int, or one sequence of int
            The dimension of the tensor for each dimension of the result; negative ones count from the last.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError, ValueError
            An axis is not an integer, out of range (`numpy.exceptions.AxisError`), named twice or missing.

        Examples
        --------
        >>> import wgslice as wg
        >>> wg.zeros((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        with named("transpose"):
            order = axes[0] if len(axes) == 1 else axes or None
            return self.T if order is None else viewed(self, permuted(self.layout, cast("Any", order)))

    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Tensor:
        """View the tensor with two dimensions exchanged.

        Parameters
        ----------
        axis1, axis2 : int
            The dimensions; negative ones count from the last.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError, ValueError
            An axis is not an integer, or is out of range (`numpy.exceptions.AxisError`).
        """
        with named("swapaxes"):
            given = integer("axis1", axis1), integer("axis2", axis2)
            (first,), (second,) = (distinct_axes("axis", axis, self.ndim) for axis in given)
            order = list(range(self.ndim))
            order[first], order[second] = second, first
            return viewed(self, self.layout.permuted(order))

    @documented(
        ("Tensor", "A view."),
        NO_AXIS,
        ("ValueError", "The size of an axis is not 1."),
        axis=("int or sequence of int, optional", "Dimensions to drop; by default all of size 1."),
    )
    def squeeze(self, axis: OneOrMore | None = None) -> Tensor:
        """View the tensor without the dimensions `axis` of size 1, as `wgslice.squeeze` describes."""
        with named("squeeze"):
            return viewed(self, squeezed(self.layout, axis))

    def view(self, dtype: DTypeLike) -> Tensor:
        """View the same bits as another dtype, as NumPy does.

        Parameters
        ----------
        dtype : dtype_like
            A dtype of the same width, such as uint16 for bfloat16, or of another one: then the last dimension
            is contiguous, and has as many elements as its bytes hold.

        Returns
        -------
        Tensor
            A view; of the same shape, if the widths are equal.

        Raises
        ------
        TypeError
            The dtype does not have elements of 1, 2, 4, 8 or 16 bytes.
        ValueError
            The width of the dtype differs, and the tensor has rank 0 or a last dimension with a stride; or
            the bytes of the last dimension, of the offset or of another stride are no multiple of the width.

        Examples
        --------
        >>> import numpy as np, wgslice as wg
        >>> wg.asarray(np.float32([1, -2])).view(np.uint32).numpy()
        array([1065353216, 3221225472], dtype=uint32)
        >>> wg.asarray(np.uint16([258, 772])).view(np.uint8).shape
        (4,)
        """
        with named("view"):
            element = element_dtype(dtype)
            with named(f"dtype {element}"):
                layout = reinterpreted(self.layout, self.itemsize, element.itemsize)
            return viewed(self, layout, dtype=element)

    def numpy(self) -> NDArray[Any]:
        """Read the tensor back into a new array, which waits for the GPU.

        Returns
        -------
        numpy.ndarray
            A writable C-contiguous copy of the same shape and dtype. The GPU packs a view that is not packed
            first.

        Raises
        ------
        ValueError
            The buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the staging copy, or is lost.
        """
        with named("numpy"):
            array = np.empty(self.shape, self.dtype)
            if array.size:
                read_into(self, array.reshape(-1).view(np.uint8))
            return array

    def numpy_async(self) -> ArrayPromise:
        """Begin to read the tensor back, without waiting for the GPU.

        Returns
        -------
        ArrayPromise
            Promise of what `numpy` would return now, with wgpu's methods: `sync_wait()`, `then(callback)` and
            `await`. Any number may be pending; their staging buffers are reused.

        Raises
        ------
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `numpy`. The promise raises DeviceLostError if the device is lost later.

        Examples
        --------
        >>> import wgslice as wg
        >>> wg.arange(3).numpy_async().sync_wait()
        array([0, 1, 2])
        """
        with named("numpy_async"):
            return read_back(self)

    def item(self, *index: SupportsIndex | tuple[SupportsIndex, ...]) -> Any:
        """Read one element back as a Python number, which waits for the GPU.

        Parameters
        ----------
        index : int, one for each dimension, or one tuple of them
            Index of the element; a single int counts in row-major order, negative ones count from the end.
            Optional for a tensor of one element.

        Returns
        -------
        bool, int, float, complex or another scalar
            As `numpy.ndarray.item`.

        Raises
        ------
        TypeError
            An index is not an integer.
        IndexError
            An index is out of bounds.
        ValueError
            The number of indices differs from that of dimensions, or no index is given and the tensor does
            not have exactly one element.
        OutOfDeviceMemory, DeviceLostError
            As `numpy`.
        """
        with named("item"):
            nested = len(index) == 1 and isinstance(index[0], tuple)
            given = integers("index", index[0] if nested else index)  # type: ignore[arg-type]  # a tuple
            if not given and self.size != 1:
                raise ValueError(
                    f"a tensor of shape {self.shape} has {self.size} elements: it must have 1; index one"
                )
            if len(given) not in (0, 1, self.ndim):
                raise ValueError(
                    f"{len(given)} indices for a tensor of shape {self.shape}: pass 1 or {self.ndim}"
                )
            if len(given) == 1 and self.ndim != 1:
                return element(self, *given).numpy().item()
            part = basic_index(self.shape, given).items if given else [0] * self.ndim
            return viewed(self, self.layout.select(part)).numpy().item()

    @documented(("list, or a number", "Nested by dimension."), ("ValueError, DeviceLostError", "As `numpy`."))
    def tolist(self) -> Any:
        """Read the tensor back as nested lists of Python numbers, or one number if it has rank 0."""
        return self.numpy().tolist()

    def __format__(self, spec: str) -> str:
        """Format the tensor; one of rank 0 is read back and formatted as a NumPy scalar."""
        if self.ndim == 0:
            return format(self.numpy()[()], spec)
        if spec:
            raise TypeError(
                f"format {spec!r} of a tensor of shape {self.shape}: only a tensor of rank 0 has formats; "
                "use x.numpy()"
            )
        return str(self)

    def __bool__(self) -> bool:
        if self.size != 1:
            remedy = "x.numpy().any() or x.numpy().all()" if self.size else "x.size > 0"
            raise ValueError(f"the truth value of a tensor of shape {self.shape} is ambiguous: use {remedy}")
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
                f"index: a tensor of shape {self.shape} and dtype {self.dtype}: only an integer of rank 0 "
                "can be a Python index"
            )
        return operator.index(self.item())

    def _number(self, name: str) -> Any:
        """Return the only element, or raise an error with the name of a conversion."""
        if self.size != 1:
            raise TypeError(
                f"{name}: a tensor of shape {self.shape} has {self.size} elements: it must have 1; index one"
            )
        return self.item()

    def __array__(self, dtype: AnyDType = None, copy: bool | None = None) -> NDArray[Any]:
        if copy is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        wanted = self.dtype if dtype is None else np.dtype(dtype)
        array = self.numpy()
        if wanted.kind == self.dtype.kind or np.can_cast(self.dtype, wanted):
            return array.astype(wanted, copy=False)
        return array  # NumPy casts it or raises, by the rule of the calling function

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
        return CPU_DEVICE  # exported copies are in CPU memory

    def __array_namespace__(self, /, *, api_version: str | None = None) -> ModuleType:
        """Return `wgslice.array_api`; raise ValueError for an unknown version of the standard."""
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
        """Copy the tensor to another device, or one of that name, through host memory, which waits.

        Parameters
        ----------
        device : Device or str
            A device, or part of an adapter's name or backend, such as "vulkan".
        stream : None
            Only None is allowed.

        Returns
        -------
        Tensor
            Packed, in a new buffer; the tensor itself if it is on that device.

        Raises
        ------
        TypeError
            `device` is not a device or name.
        ValueError
            A stream is given: a device has one queue.
        NoAdapterError
            No adapter matches `device`.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left, or one of the two is lost.
        """
        with named("to_device"):
            if stream is not None:
                raise ValueError(f"stream = {stream!r}: must be None, since a device has one queue")
            if device is None:
                raise TypeError("device is None: pass a Device or a name")
            chosen = checked_device(device)
            return self if chosen is self.device else from_host(self.numpy(), chosen)

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        with named("pickle"):
            # as bytes, since NumPy copies some other dtypes in band
            return unpickled, (self.numpy().reshape(-1).view(np.uint8), self.dtype, self.shape)

    def __sizeof__(self) -> int:
        """Return the bytes of the object and its elements, which Dask workers count."""
        return object.__sizeof__(self) + self.nbytes

    def __dask_tokenize__(self) -> Any:
        """Return a token of the elements, read back, by which Dask names tasks."""
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


def packed_copy(tensor: Tensor, layout: Layout | None = None) -> Tensor:
    """Copy a tensor on the GPU, packed, into a new one; `layout` is another one of the new elements."""
    device, packed = tensor.device, packed_layout(tensor.shape)
    memory = device.reused_buffer(tensor.nbytes)
    run_copy(device, tensor.bound_layout, BoundLayout(memory, packed, tensor.itemsize, fresh=True))
    return Tensor(device, memory, tensor.dtype, layout or packed)


def ordered_copy(tensor: Tensor, order: str | None) -> Tensor:
    """Copy a tensor on the GPU into a new one that is column-major if the order says so, else packed."""
    if not is_column_major(tensor.layout, order):
        return packed_copy(tensor)
    return packed_copy(tensor.T, transposed(packed_layout(tensor.shape[::-1])))


# Cached, since programs make many tensors of equal sizes.
packed_layout = lru_cache(maxsize=MAX_PLANS)(Layout.packed)


def allocate(sizes: Sequence[int], dtype: DType, device: Device, *, zeroed: bool = True) -> Tensor:
    """Make a packed tensor in a new buffer, of zeros, or of any content for a caller that writes it all."""
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
    """Make the tensor of a pickle on the default device of this process."""
    return from_host(elements.view(dtype).reshape(shape), checked_device(None))

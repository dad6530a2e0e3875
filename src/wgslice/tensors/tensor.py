"""Tensors: strided views of GPU buffers, indexed like NumPy arrays."""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from threading import current_thread, main_thread
from types import ModuleType
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, copy_choice, integers
from wgslice.dask import register, token
from wgslice.dialects.basic import Selection, basic_index, is_plain
from wgslice.docstrings import (
    documented,
)
from wgslice.dtypes import AnyDType, DType
from wgslice.errors import fitted, named, public
from wgslice.gpu.device import Device, checked_device
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import ArrayPromise
from wgslice.tensors.indexing import assign, gather, selected
from wgslice.tensors.methods import ArrayMethods, packed_copy, packed_layout
from wgslice.tensors.placed import (
    CPU_DEVICE,
    element,
    exported,
    read_back,
    read_into,
    upper_modules,
    viewed,
)
from wgslice.tensors.uncomputed import Uncomputed, refused


class Tensor(Uncomputed, ArrayMethods):
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

    if not TYPE_CHECKING:  # type checkers have the signature of `Placed`
        __init__ = fitted("asarray(array) makes a tensor")(ArrayMethods.__init__)

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

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if not self.shape:
            raise TypeError("iteration over a 0-d tensor")
        return (self[index] for index in range(len(self)))

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            """Refuse absent attributes but `sum` of an empty tensor, by which Dask describes chunks."""
            return self._sum_of_none if name == "sum" and not self.size else super().__getattr__(name)

    def _sum_of_none(self, *arguments: Any, **options: Any) -> Tensor:
        """Return 0, the sum of an empty tensor over all dimensions."""
        if arguments or options:
            refused("sum")
        with named("sum"):
            return allocate((), self.dtype, self.device)

    @public()
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
        array = np.empty(self.shape, self.dtype)
        if array.size:
            read_into(self, array.reshape(-1).view(np.uint8))
        return array

    @public()
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
        return read_back(self)

    @public()
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
    @fitted()
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
        return bool(self.numpy())

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

    def _number(self, name: str) -> NDArray[Any]:
        """Return the only element, which NumPy converts, or raise an error with the name of a conversion."""
        if self.size != 1:
            raise TypeError(
                f"{name}: a tensor of shape {self.shape} has {self.size} elements: it must have 1; index one"
            )
        return self.numpy().reshape(())

    def __bytes__(self) -> bytes:
        """Read the tensor back as the bytes of its elements, row-major, as `numpy.ndarray.tobytes`."""
        return self.numpy().tobytes()

    def __buffer__(self, flags: int, /) -> memoryview:
        """Return a copy of the elements, read back, of which Python 3.12 makes `memoryview` and `bytearray`.

        Whoever asks for memory to write into is refused, since what is written would be lost. The copy is
        writable all the same: NumPy takes it for `np.asarray(x)`.
        """
        dropped_interrupts.clear()
        if flags & WRITABLE:
            raise BufferError(
                "a tensor gives a copy, in which writing is lost: write into an array, and x[...] = array"
            )
        try:
            _ = np.empty(0, self.dtype).data
        except ValueError:
            raise BufferError(
                f"dtype {self.dtype} has no format in Python's buffers: bytes(x) has the elements' bytes"
            ) from None
        try:
            return self.numpy().data
        except KeyboardInterrupt as error:  # which only the main thread gets
            dropped_interrupts.append(error)
            raise

    def __array__(self, dtype: AnyDType = None, copy: bool | None = None) -> NDArray[Any]:
        if copy_choice(copy) is False:
            raise ValueError("a tensor on a GPU cannot become an array without a copy: leave copy=False out")
        if dropped_interrupts and current_thread() is main_thread():
            raise dropped_interrupts.pop()
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

    @public()
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


WRITABLE = 1  # Python's flag of a buffer
# An interrupt of `__buffer__`: NumPy drops it, and asks `__array__` next, which raises it.
dropped_interrupts: list[KeyboardInterrupt] = []


def allocate(sizes: Sequence[int], dtype: DType, device: Device, *, zeroed: bool = True) -> Tensor:
    """Make a packed tensor in a new buffer, of zeros, or of any content for a caller that writes it all."""
    layout = packed_layout(tuple(sizes))
    memory = sink().reused_buffer(device, layout.size * dtype.itemsize, zeroed=zeroed)
    return Tensor(device, memory, dtype, layout)


def from_host(array: NDArray[Any], device: Device) -> Tensor:
    """Upload a contiguous array in native byte order."""
    tensor = allocate(checked_shape(array.shape), array.dtype, device, zeroed=False)
    if array.size:
        sink().upload(device, tensor.memory, array.reshape(-1).view(np.uint8))
    return tensor


def unpickled(elements: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Tensor:
    """Make the tensor of a pickle on the default device of this process."""
    return from_host(elements.view(dtype).reshape(shape), checked_device(None))

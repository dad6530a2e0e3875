"""The base class of `Tensor`, a dtype and a layout in a buffer, and reading, writing and exchange of it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NoReturn, Self, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import named, public
from wgslice.gpu.device import Device, check_usable
from wgslice.gpu.protocols import Buffer, BufferUsage, CommandEncoder, Place, given_out, is_given_out
from wgslice.gpu.recording import Binding, Copy, Recorder, check_given, check_still_alive, run_copy
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import ArrayPromise, begin_download, download
from wgslice.layout import Layout, check_disjoint
from wgslice.layout_rules import broadcast, transposed, without_leading_ones
from wgslice.plans.copy import fills, pattern_size
from wgslice.plans.profiles import MAX_CONSTANT_NBYTES


@dataclass(unsafe_hash=True)  # set once, by `__init__`
class Flags:
    """Flags of a tensor, as attributes and as items by NumPy's names, such as `flags["C_CONTIGUOUS"]`."""

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool

    def __setattr__(self, name: str, value: object) -> None:
        if name in vars(self) or name not in self.__dataclass_fields__:
            self._refuse(name)
        object.__setattr__(self, name, value)

    def __setitem__(self, name: str, value: object) -> NoReturn:
        self._refuse(name)

    def _refuse(self, name: str) -> NoReturn:
        raise AttributeError(
            f"a tensor's flags cannot be set ({name}): wg.broadcast_to(x, x.shape) is a read-only view of x, "
            "and x.copy() can be written"
        )

    def __getitem__(self, name: str) -> bool:
        found = {key: value for flag, value in vars(self).items() for key in (flag.upper(), flag[0].upper())}
        if name not in found:
            raise KeyError(f"unknown flag {name!r}: must be one of {', '.join(found)}")
        return bool(found[name])

    @property
    def forc(self) -> bool:
        """Whether the elements are contiguous, row-major or column-major."""
        return self.c_contiguous or self.f_contiguous

    @property
    def fnc(self) -> bool:
        """Whether the elements are contiguous and column-major, but not row-major."""
        return self.f_contiguous and not self.c_contiguous


READ_ONLY = False  # of `writeable`


@dataclass(frozen=True, eq=False, slots=True, repr=False)
class Placed:
    """A tensor without its indexing and methods: elements in a buffer, with all that copies depend on."""

    device: Device
    memory: Buffer  # reused for other tensors when no tensor refers to it
    dtype: DType
    layout: Layout
    writeable: bool = True
    base: Self | None = None  # whose buffer this is a view of

    def __post_init__(self) -> None:
        """Do nothing; `Tensor` registers itself with Dask here."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        return self.layout.sizes

    @property
    def strides(self) -> tuple[int, ...]:
        """Strides in elements."""
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
        """Number of elements times bytes of one."""
        return self.size * self.dtype.itemsize

    @property
    def is_packed(self) -> bool:
        """Whether the elements are row-major and contiguous."""
        return self.layout.is_packed

    @property
    def buffer(self) -> Any:
        """The wgpu.GPUBuffer, which is not reused for other tensors once it has been read here."""
        with self.device.mapping_lock:
            if not is_given_out(self.memory):
                self.device.flush()  # a mapping does not wait for what the queue holds (wgpu issue 5173)
            return given_out(self.memory)

    @property
    def flags(self) -> Flags:
        """The flags by NumPy's names."""
        contiguous = self.is_packed, transposed(self.layout).is_packed
        return Flags(*contiguous, self.base is None, self.writeable)

    @property
    def bound_layout(self) -> Binding:
        """The tensor as a side of a copy."""
        return Binding(self.memory, self.layout, self.dtype.itemsize)


SomePlaced = TypeVar("SomePlaced", bound=Placed)


def uploaded(device: Device, array: NDArray[Any]) -> Binding:
    """Return an array in a buffer of a device that the next submission reads, and that is never written."""
    if 0 < array.nbytes <= MAX_CONSTANT_NBYTES:
        buffer = sink().constant(device, array)
    else:
        data = np.ascontiguousarray(array)
        buffer = sink().reused_buffer(device, data.nbytes)
        sink().upload(device, buffer, data.reshape(-1).view(np.uint8))
    return Binding(buffer, Layout.packed(array.shape), array.itemsize, fresh=True)


def viewed(
    tensor: SomePlaced, layout: Layout, writeable: bool | None = None, dtype: DType | None = None
) -> SomePlaced:
    """Return a view of a tensor's buffer, by default as writeable as the tensor and of its dtype."""
    base = tensor if tensor.base is None else tensor.base
    allowed = tensor.writeable if writeable is None else writeable
    element = tensor.dtype if dtype is None else dtype
    return type(tensor)(tensor.device, tensor.memory, element, layout, allowed, base)


def element(tensor: SomePlaced, number: int) -> SomePlaced:
    """View one element, counted in row-major order."""
    if not -tensor.size <= number < tensor.size:
        raise IndexError(f"index {number} is out of bounds for size {tensor.size}")
    index = np.unravel_index(number % tensor.size, tensor.shape)
    return viewed(tensor, tensor.layout.select(list(map(int, index))))


def check_writeable(tensor: Placed | NDArray[Any], name: str = "the destination") -> None:
    """Raise ValueError if a tensor or an array, called `name`, is read-only."""
    if not (tensor.writeable if isinstance(tensor, Placed) else tensor.flags.writeable):
        raise ValueError(f"{name} is read-only, as views of broadcast_to are: write to a copy()")


def check_destination(tensor: Placed, dtype: DType, name: str = "the destination") -> None:
    """Raise if a tensor, called `name`, is read-only, of another dtype, or two elements share bytes."""
    check_writeable(tensor, name)
    check_same_dtype(dtype, tensor.dtype)
    check_disjoint(tensor.layout)


def check_of_numbers(value: object) -> None:
    """Raise TypeError for a tensor or a nested sequence of tensors, which NumPy would read back silently."""
    if isinstance(value, Placed):
        raise TypeError("a tensor where host numbers are needed: item() or numpy() reads it back")
    check_no_sequence(value)


def check_no_sequence(value: object) -> None:
    """Raise TypeError for a nested sequence of tensors, but not for a tensor."""
    if has_tensors(value):
        raise TypeError("a sequence of tensors: stack joins them on their device")


def check_no_path(name: str, value: object) -> None:
    """Raise TypeError for bytes and the path of a file, which NumPy would take for text or an object."""
    if isinstance(value, bytes):
        raise TypeError(
            f"{name} is of type bytes: must be an array; np.frombuffer({name}, dtype) makes one of its bytes"
        )
    if isinstance(value, str | os.PathLike):
        raise TypeError(
            f"{name} is a path, {value!r}: must be an array; open it first, as with "
            'np.load(path, mmap_mode="r") or zarr.open_array(path, mode="r")'
        )


def in_memory(array: Any) -> Any:
    """Return what an array of a file reads as a whole, if NumPy would take it for an object; else itself."""
    if hasattr(array, "__array__") or not (hasattr(array, "shape") or hasattr(array, "get_shape")):
        return array
    if hasattr(array, "toarray"):
        raise TypeError(
            f"array is of type {type(array).__name__}: must have all its elements in memory, as "
            "array.toarray() has"
        )
    readable = hasattr(array, "__getitem__") and not hasattr(array, "__len__")
    return array[()] if readable else array


def has_tensors(value: object) -> bool:
    """Return whether a value is a nested sequence of tensors."""
    return isinstance(value, list | tuple) and any(
        isinstance(item, Placed) or has_tensors(item) for item in value
    )


def check_tensor(name: str, value: object, *, written: bool = False) -> None:
    """Raise TypeError unless the value is a tensor, to be read or `written`."""
    if not isinstance(value, Placed):
        remedy = "give NumPy x.numpy() to write x to an array" if written else f"asarray({name}) makes one"
        raise TypeError(f"{name} is of type {type(value).__name__}: must be a Tensor; {remedy}")


def read_into(tensor: Placed, data: NDArray[np.uint8]) -> None:
    """Read a tensor back; the GPU packs a view that is not packed first, in the same submission."""
    source, encoder = packed_bytes(tensor)
    download(tensor.device, source, data, encoder)


def read_back(tensor: Placed) -> ArrayPromise:
    """Begin to read a tensor back as `read_into` does."""
    source, encoder = packed_bytes(tensor) if tensor.size else (Place(tensor.memory), None)
    return begin_download(tensor.device, source, encoder, tensor.shape, tensor.dtype)


def packed_bytes(tensor: Placed) -> tuple[Place, CommandEncoder | None]:
    """Return the place of a tensor's packed elements, and commands that pack them."""
    device = tensor.device
    if tensor.is_packed and tensor.memory.usage & BufferUsage.COPY_SRC:
        check_usable(device, tensor.memory)
        check_still_alive(device, tensor.memory)
        return Place(tensor.memory, tensor.offset), None
    packed = Binding.packed(device, tensor.shape, tensor.itemsize)
    recorder = Recorder(device)
    recorder.copy(Copy(tensor.bound_layout, packed))
    return Place(packed.buffer), recorder.end()


@public()
def copyto(dst: Placed, src: Placed | ArrayLike) -> None:
    """Copy a tensor, an array or a scalar into a tensor or view, as `numpy.copyto` does.

    Parameters
    ----------
    dst : Tensor
        The destination, a tensor or a view without repeated elements. Bytes of its buffer between and around
        its elements keep their value.
    src : Tensor or array_like
        The source, broadcast to `dst.shape`. A tensor must have the dtype and device of `dst`; it may
        overlap `dst`, and is then read before anything is written. An array is cast if NumPy's rule
        `same_kind` allows it.

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    TypeError
        `dst` is not a tensor, `src` is a tensor of another dtype, or an array that cannot be cast.
    ValueError
        `src` does not broadcast to `dst.shape`, `dst` is read-only, two elements of `dst` share bytes, a
        buffer is destroyed or mapped, or the devices differ.
    OverflowError
        `src` is a Python integer outside the range of `dst.dtype`.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for a staging copy of `src`, or is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6))
    >>> wg.copyto(x[::2], x[:3])  # read before anything is written
    >>> x.numpy()
    array([0, 1, 1, 3, 2, 5])
    """
    check_tensor("dst", dst, written=True)
    write(dst, src if isinstance(src, Placed) else as_copied(src, dst.dtype))


def as_assigned(value: Any, dtype: DType) -> NDArray[Any]:
    """Return `value` as NumPy casts it in an assignment to an array of `dtype`."""
    check_of_numbers(value)
    value = in_memory(value)
    array = np.empty(np.shape(value), dtype)
    try:
        array[...] = value
    except (TypeError, ValueError) as error:
        given = np.asarray(value).dtype.type.__name__
        raise type(error)(f"cannot cast {given} to {dtype}: {error}") from error
    return array


def as_copied(value: Any, dtype: DType, casting: str = "same_kind") -> NDArray[Any]:
    """Return `value` as `numpy.copyto` casts it, which by default raises for other kinds of numbers."""
    check_of_numbers(value)
    value = in_memory(value)
    array = np.empty(np.shape(value), dtype)
    np.copyto(array, value, cast("Any", casting))
    return array


def write(target: Placed, value: Placed | NDArray[Any], encoder: CommandEncoder | None = None) -> None:
    """Write a tensor or an array of the same dtype, broadcast as NumPy does, without waiting.

    The commands of `encoder`, which make a tensor's elements, run before.
    """
    check_destination(target, value.dtype)
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    source = broadcast(without_leading_ones(given, target.ndim), target.shape)
    if source is None:
        raise ValueError(
            f"could not broadcast input array from shape {given.sizes} into shape {target.shape}"
        )
    if target.size == 0:
        check_sides(target, value)
    elif isinstance(value, Placed):
        read = value.bound_layout._replace(layout=source)
        run_copy(target.device, Copy(read, target.bound_layout), encoder)
    elif value.size == 1:
        fill(target, value.reshape(1))
    else:
        write_array(target, source, np.ascontiguousarray(value))


def check_sides(target: Placed, value: Placed | NDArray[Any]) -> None:
    """Raise if a buffer of either side cannot be used, for copies that record nothing."""
    check_given(target.device, [("output", target.memory)])
    if isinstance(value, Placed):
        with named("input"):
            check_usable(target.device, value.memory)


def check_input(device: Device, name: str, memory: Buffer) -> None:
    """Raise, with a name, if a buffer cannot be read."""
    with named(name):
        check_usable(device, memory)
        check_still_alive(device, memory)


def write_array(target: Placed, source: Layout, array: NDArray[Any]) -> None:
    """Upload an array directly into a packed target of whole words, otherwise through a new buffer."""
    fits = array.size == target.size and target.is_packed
    whole = target.offset % 4 == 0 and array.nbytes % 4 == 0
    data = array.reshape(-1).view(np.uint8)
    if fits and whole and target.memory.usage & BufferUsage.COPY_DST:
        check_sides(target, array)
        sink().upload(target.device, target.memory, data, target.offset)
        return
    made = uploaded(target.device, array)._replace(layout=source)
    run_copy(target.device, Copy(made, target.bound_layout))


def fill(target: Placed, element: NDArray[Any]) -> None:
    """Write one element to all of a tensor."""
    parts = fills(target.layout, element.itemsize)
    buffer = sink().constant(target.device, element, pattern_size(parts))
    recorder = Recorder(target.device)
    for source, layout in parts:
        repeats = Binding(buffer, source, element.itemsize, fresh=True)
        recorder.copy(Copy(repeats, target.bound_layout._replace(layout=layout)))
    recorder.submit()


CPU_DEVICE = (1, 0)  # DLPack's kDLCPU and the device number
REMEDY = "view() it as integers of the same width, and view the result as the original dtype"

# Loaders of modules of upper layers, registered by these: `array_api` and `numpy_functions`.
upper_modules: dict[str, Callable[[], Any]] = {}


def exported(
    read: Callable[[], NDArray[Any]],
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """Return the DLPack capsule of a new array from `read`; raises BufferError, as the protocol requires."""
    if stream is not None:
        raise BufferError(f"stream = {stream!r}: must be None, since the copy is in CPU memory")
    if dl_device not in (None, CPU_DEVICE):
        raise BufferError(f"dl_device = {dl_device}: must be {CPU_DEVICE}, CPU memory")
    if copy is False:
        raise BufferError("a tensor on a GPU cannot be shared without a copy: leave copy=False out")
    array = read()
    versioned = max_version is not None and np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    options: dict[str, Any] = {"max_version": max_version} if versioned else {}
    try:
        return array.__dlpack__(**options)
    except BufferError as error:
        raise BufferError(f"dtype {array.dtype}: {error} Remedy: {REMEDY}") from error


def imported(x: Any) -> NDArray[Any]:
    """Return another library's array as a NumPy array, copied to CPU memory if needed."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"x is of type {type(x).__name__}: must have __dlpack__ and __dlpack_device__")
    here = tuple(map(int, x.__dlpack_device__())) == CPU_DEVICE
    try:
        return np.from_dlpack(x) if here else np.from_dlpack(x, device="cpu")
    except (BufferError, RuntimeError) as error:
        remedy = f" Remedy: {REMEDY}" if "dtype" in str(error) else ""
        raise BufferError(f"{error}{remedy}") from error

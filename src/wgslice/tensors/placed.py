"""The ground of `Tensor`: a dtype, a layout and a buffer, whose elements are read, written and exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.native import exposed
from wgslice.gpu.protocols import Buffer, BufferUsage
from wgslice.gpu.recording import BoundLayout, record, run_copy
from wgslice.gpu.transfer import download, upload
from wgslice.layout import Layout, check_disjoint
from wgslice.layout_rules import broadcast, without_leading_ones
from wgslice.plans.copy import fills, pattern_size, plan_copy


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


def read_into(tensor: Placed, data: NDArray[np.uint8]) -> None:
    """Read back; a view that is not packed is copied on the GPU first, in the same submission."""
    device = tensor.device
    if tensor.is_packed and tensor.memory.usage & BufferUsage.COPY_SRC:
        check_usable(device, tensor.memory)
        check_alive(device, tensor.memory)
        download(device, tensor.memory, tensor.offset, data)
        return
    packed = BoundLayout.packed(device, tensor.shape, tensor.itemsize)
    encoder = device.create_encoder()
    record(device, encoder, plan_copy, tensor.bound_layout, packed)
    download(device, packed.buffer, 0, data, encoder)


def copyto(dst: Placed, src: Placed | ArrayLike) -> None:
    """Copy a tensor, an array or a scalar into a tensor, window to window, as `numpy.copyto` does.

    Parameters
    ----------
    dst : Tensor
        Where to write: a tensor or any view of one in which no element repeats. Bytes of its buffer between
        and around its elements keep their value.
    src : Tensor or array_like
        What broadcasts to `dst.shape`. A tensor has `dst`'s dtype and device; it may lie in the same buffer,
        and is read before anything is written. An array is cast where NumPy's rule `same_kind` allows it.

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    TypeError
        `dst` is no tensor, `src` a tensor of another dtype, or an array that cannot be cast.
    ValueError
        `src` does not broadcast to `dst.shape`, `dst` is read-only, two elements of `dst` lie on the same
        bytes, a buffer is destroyed or mapped, or the devices differ.
    OverflowError
        `src` is a Python integer that `dst`'s dtype does not hold.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left to read `src` aside, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6))
    >>> wg.copyto(x[::2], x[:3])  # read before anything is written
    >>> x.numpy()
    array([0, 1, 1, 3, 2, 5])
    """
    with named("copyto"):
        check_tensor("dst", dst)
        write(dst, src if isinstance(src, Placed) else as_copied(src, dst.dtype))


def as_assigned(value: Any, dtype: DType) -> NDArray[Any]:
    """What NumPy stores of `value` in an array of `dtype` that it is assigned to."""
    check_of_numbers(value)
    array = np.empty(np.shape(value), dtype)
    array[...] = value
    return array


def as_copied(value: Any, dtype: DType) -> NDArray[Any]:
    """What `numpy.copyto` stores of `value`; it refuses what loses its kind, such as a fraction."""
    check_of_numbers(value)
    array = np.empty(np.shape(value), dtype)
    np.copyto(array, value)
    return array


def write(target: Placed, value: Placed | NDArray[Any]) -> None:
    """Broadcast a tensor or an array of the target's dtype to it, as NumPy assigns; no wait for the GPU."""
    check_destination(target)
    check_same_dtype(value.dtype, target.dtype)
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    source = broadcast(without_leading_ones(given, target.ndim), target.shape)
    if source is None:
        raise ValueError(
            f"could not broadcast input array from shape {given.sizes} into shape {target.shape}"
        )
    if target.size == 0:
        check_sides(target, value)
    elif isinstance(value, Placed):
        run_copy(target.device, value.bound_layout._replace(layout=source), target.bound_layout)
    elif value.size == 1:
        fill(target, value.reshape(1))
    else:
        write_array(target, source, np.ascontiguousarray(value))


def check_sides(target: Placed, value: Placed | NDArray[Any]) -> None:
    """Refuse buffers that cannot be written and read, where no recording does so."""
    with named("output"):
        check_usable(target.device, target.memory)
        check_alive(target.device, target.memory)
    if isinstance(value, Placed):
        with named("input"):
            check_usable(target.device, value.memory)


def write_array(target: Placed, source: Layout, array: NDArray[Any]) -> None:
    """Upload an array: straight into a packed target of whole words, or through a buffer of its own."""
    straight = array.size == target.size and target.is_packed
    whole = target.offset % 4 == 0 and array.nbytes % 4 == 0
    data = array.reshape(-1).view(np.uint8)
    if straight and whole and target.memory.usage & BufferUsage.COPY_DST:
        check_sides(target, array)
        upload(target.device, target.memory, data, target.offset)
        return
    run_copy(target.device, uploaded(target.device, array)._replace(layout=source), target.bound_layout)


def fill(target: Placed, element: NDArray[Any]) -> None:
    """Write one element everywhere."""
    pieces = fills(target.layout, element.itemsize)
    repeated = np.repeat(element, pattern_size(pieces))
    buffer = target.device.create_buffer(repeated.nbytes)
    upload(target.device, buffer, repeated.view(np.uint8))
    for source, piece in pieces:
        repeats = BoundLayout(buffer, source, element.itemsize, fresh=True)
        run_copy(target.device, repeats, target.bound_layout._replace(layout=piece))


CPU_DEVICE = (1, 0)  # DLPack's kDLCPU, and its number
REMEDY = "view() it as integers of the same width, which can be viewed back at the other end"

# What loads modules of upper layers, which name it: `array_api`, and `numpy_functions`.
upper_modules: dict[str, Callable[[], Any]] = {}


def exported(
    read: Callable[[], NDArray[Any]],
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The capsule of an array that `read` makes anew; BufferErrors are what the protocol asks for."""
    if stream is not None:
        raise BufferError(f"stream = {stream!r}: must be None, since the copy lies in CPU memory")
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
    """An array of another library's, copied to CPU memory where it is elsewhere."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"x is of type {type(x).__name__}: must have __dlpack__ and __dlpack_device__")
    here = tuple(map(int, x.__dlpack_device__())) == CPU_DEVICE
    try:
        return np.from_dlpack(x) if here else np.from_dlpack(x, device="cpu")
    except (BufferError, RuntimeError) as error:
        remedy = f" Remedy: {REMEDY}" if "dtype" in str(error) else ""
        raise BufferError(f"{error}{remedy}") from error

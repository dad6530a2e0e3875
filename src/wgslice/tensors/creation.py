"""Creation of tensors: from arrays, other libraries and callers' buffers, filled or empty."""

from __future__ import annotations

from math import ceil, inf
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wgslice.arguments import Integers, OneOrMore, checked_offset, checked_shape, copy_choice, integers
from wgslice.dtypes import AnyDType, DType, element_dtype, native_array, view_dtype
from wgslice.errors import fitted, named, public
from wgslice.gpu.device import AnyDevice, Device, check_usable, checked_device, owning_device
from wgslice.gpu.hosts import found_by
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import check_alive, check_fits
from wgslice.gpu.sink import checked_nbytes
from wgslice.layout import Layout
from wgslice.tensors.methods import packed_copy
from wgslice.tensors.placed import (
    as_copied,
    check_no_path,
    check_no_sequence,
    check_of_numbers,
    check_tensor,
    has_tensors,
    imported,
    in_memory,
    write,
)
from wgslice.tensors.sequences import check_not_converted, joined
from wgslice.tensors.tensor import Tensor, allocate, from_host


@public()
def asarray(
    array: ArrayLike | Tensor, *, dtype: AnyDType = None, device: AnyDevice = None, copy: bool | None = None
) -> Tensor:
    """Upload an array to a device.

    Parameters
    ----------
    array : array_like or Tensor
        Any argument of `numpy.asarray`, in any memory layout and byte order, of rank 0 to 8; may be empty.
        Nested sequences of tensors and arrays are joined on the device, in one submission. Arrays of files
        that NumPy does not read, such as the `section` of an astropy HDU and the `get_slice` of a
        safetensors file, are read as a whole.
    dtype : dtype_like, optional
        Dtype to which NumPy casts the array before the upload; by default the array's, in native byte order.
        For a tensor only its own dtype, since nothing is converted on the GPU.
    device : Device or str, optional
        A device, or part of an adapter's name or backend, ignoring case, such as "vulkan": its device is
        made once and shared. By default the tensor's own device, or `default_device()`.
    copy : bool, optional
        True also copies a tensor that is on the device; False raises if a copy is needed. By default copies
        only if needed.

    Returns
    -------
    Tensor
        Packed, in native byte order, in a new buffer; or the same tensor if it is on the device, unless
        `copy`. A tensor on another device is read back and uploaded.

    Raises
    ------
    ComputationRefused
        The dtype differs from that of the tensor, or of tensors in a sequence.
    TypeError
        The dtype does not have elements of 1, 2, 4, 8 or 16 bytes, or the array is a path, bytes or sparse.
    ValueError
        The rank is above 8, the elements exceed the largest buffer, `copy` is text, or False where a copy is
        needed, or shapes in a sequence differ.
    NoAdapterError
        No adapter matches `device`.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(12).reshape(3, 4))
    >>> x[1:, ::-2].numpy()
    array([[ 7,  5],
           [11,  9]])
    >>> wg.asarray([1, 2, 3], dtype=np.uint8).dtype
    dtype('uint8')
    """
    copy = copy_choice(copy)
    if isinstance(array, Tensor):
        if dtype is not None:
            check_not_converted(array, element_dtype(dtype))
        chosen = array.device if device is None else checked_device(device)
        if chosen is array.device:
            return packed_copy(array) if copy else array
        check_may_copy(copy, f"from {array.device} to {chosen}")
        array = array.numpy()
    check_may_copy(copy, "from this machine's memory to a device")
    if has_tensors(array):
        return joined(array, dtype, device)
    check_no_path("array", array)
    return from_host(native_array(np.asarray(in_memory(array), dtype)), checked_device(device))


def check_may_copy(copy: bool | None, route: str) -> None:
    """Raise ValueError if `copy` is False."""
    if copy is False:
        raise ValueError(f"copy=False: elements have to be copied {route}; leave it out")


@fitted()
def from_dlpack(x: Any, device: AnyDevice = None) -> Tensor:
    """Upload an array of another library, such as PyTorch, through the DLPack protocol.

    Parameters
    ----------
    x : object with ``__dlpack__`` and ``__dlpack_device__``
        In CPU memory; with NumPy 2.1 or newer, its library copies it there from a GPU.
    device : Device or str, optional
        A device, or part of an adapter's name or backend, such as "vulkan"; `default_device()` by default.

    Returns
    -------
    Tensor
        A copy, packed, in a new buffer; of a `Tensor`, as `asarray`.

    Raises
    ------
    TypeError
        `x` does not support DLPack.
    BufferError
        The library does not export `x` (PyTorch if it requires a gradient: `detach()` it), or NumPy lacks
        its dtype (bfloat16): view it as integers of the same width, and the result with `Tensor.view`.
    ValueError, NoAdapterError, OutOfDeviceMemory, DeviceLostError
        As `asarray`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.from_dlpack(np.arange(4.0))[::-1].numpy()  # or a PyTorch tensor
    array([3., 2., 1., 0.])
    """
    if isinstance(x, Tensor):
        return asarray(x, device=device)
    with named("from_dlpack"):
        array = imported(x)
    return asarray(array, device=device)


def default_element(dtype: AnyDType) -> DType:
    """Return an element dtype; float64 for None, as NumPy and the array API standard do."""
    return element_dtype(np.float64 if dtype is None else dtype)


@public()
def empty(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor with arbitrary content, to be written.

    Parameters
    ----------
    shape : int or sequence of int
        Up to 8 sizes, each at least 0.
    dtype : dtype_like, optional
        A dtype with elements of 1, 2, 4, 8 or 16 bytes, in whichever byte order; float64 by default and for
        None, as in NumPy.
    device : Device or str, optional
        A device, or part of an adapter's name or backend, such as "vulkan"; `default_device()` by default.

    Returns
    -------
    Tensor
        Packed, in native byte order, in a new buffer.

    Raises
    ------
    TypeError
        A size is not an integer, or the dtype does not have elements of 1, 2, 4, 8 or 16 bytes.
    ValueError
        A size is negative, the rank is above 8, or the elements exceed the device's largest buffer.
    NoAdapterError
        No adapter matches `device`.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> out = wg.empty((2, 3), np.float16)
    >>> wg.slice1(wg.asarray(np.ones((4, 3), np.float16)), [1, 0], [2, 3], out=out) is out
    True
    """
    chosen = checked_device(device)
    return allocate(checked_shape(shape), default_element(dtype), chosen, zeroed=False)


@public()
def zeros(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros.

    Parameters
    ----------
    shape, dtype, device : int or sequence of int, dtype_like, Device or str
        As for `empty`.

    Returns
    -------
    Tensor
        Packed, in a new buffer.

    Raises
    ------
    TypeError, ValueError, NoAdapterError, OutOfDeviceMemory, DeviceLostError
        As `empty`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.zeros(3, np.uint8).numpy()
    array([0, 0, 0], dtype=uint8)
    """
    return allocate(checked_shape(shape), default_element(dtype), checked_device(device))


@fitted()
def arange(
    start: float,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: AnyDType = None,
    device: AnyDevice = None,
) -> Tensor:
    """Make a tensor of evenly spaced numbers; the semantics are those of `numpy.arange`.

    Parameters
    ----------
    start : int or float
        The first number; without `stop`, the end, and the first number is 0.
    stop : int or float, optional
        The end, which is excluded.
    step : int or float
        Difference of consecutive numbers, not 0; may be negative.
    dtype, device : dtype_like, Device or str, optional
        As for `empty`; by default the dtype that NumPy chooses for the numbers.

    Returns
    -------
    Tensor
        Of rank 1, packed, in a new buffer; computed on the host and uploaded.

    Raises
    ------
    TypeError, ValueError, NoAdapterError, OutOfDeviceMemory, DeviceLostError
        As `empty`, before anything is computed; or an argument is not a number, or `step` is 0.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.arange(6).numpy(), wg.arange(5, 0, -2, dtype="uint8").numpy()
    (array([0, 1, 2, 3, 4, 5]), array([5, 3, 1], dtype=uint8))
    """
    with named("arange"):
        for name, number in {"start": start, "stop": stop, "step": step}.items():
            with named(name):
                check_of_numbers(number)
        if step == 0:
            raise ValueError("step = 0: must not be 0")
        element = None if dtype is None else element_dtype(dtype)
        chosen = checked_device(device)
        numbers: Any = (0, start, step) if stop is None else (start, stop, step)
        if all(np.asarray(number).dtype.kind in "biuf" for number in numbers):
            first, end, each = map(float, numbers)
            check_count(chosen, (end - first) / each, NUMBER_NBYTES if element is None else element.itemsize)
        return from_host(native_array(np.arange(*numbers, dtype=element)), chosen)


NUMBER_NBYTES = 8  # at least, where `numpy.arange` chooses the dtype


def check_count(device: Device, count: float, itemsize: int) -> None:
    """Refuse more numbers than the device's largest buffer has room for, before they are computed."""
    if 0 < count < inf:  # NumPy refuses the others
        checked_nbytes(device, itemsize * checked_shape(ceil(count))[0])


@public()
def from_buffer(
    gpu_buffer: Buffer,
    shape: OneOrMore,
    dtype: DTypeLike,
    *,
    offset: SupportsIndex = 0,
    strides: Integers | None = None,
    device: AnyDevice = None,
) -> Tensor:
    """View a wgpu buffer as a tensor, without a copy.

    Parameters
    ----------
    gpu_buffer : wgpu.GPUBuffer
        A buffer with usage STORAGE. With COPY_SRC and COPY_DST as well, contiguous copies and `numpy()` are
        faster. Do not destroy it while tensors use it: it is freed with its last reference.
    shape : int or sequence of int
        Up to 8 sizes.
    dtype : dtype_like
        A dtype with elements of 1, 2, 4, 8 or 16 bytes, in native byte order.
    offset : int
        Bytes from the start of the buffer to the element at index 0, a multiple of the item size.
    strides : sequence of int, optional
        Strides in elements, one per dimension; 0 repeats elements, negative ones go backwards. By default
        those of a packed tensor.
    device : Device or str, optional
        The buffer's, which wgpu's own buffers tell; of others by default the only one of their host.

    Returns
    -------
    Tensor
        A view of the buffer, on the buffer's device.

    Raises
    ------
    TypeError
        `gpu_buffer` is not a wgpu.GPUBuffer, a size, stride or offset is not an integer, or the dtype does
        not have elements of 1, 2, 4, 8 or 16 bytes, or is not in native byte order.
    ValueError
        The layout exceeds the buffer, in whole words of 4 bytes; the buffer lacks STORAGE, is mapped or
        destroyed; the offset is not a multiple of the item size; or strides and sizes differ in number.
    DeviceLostError
        The buffer's device is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> buffer = wg.asarray(np.arange(8, dtype=np.int16)).buffer  # or your program's
    >>> wg.from_buffer(buffer, (2, 3), np.int16, offset=2, strides=(4, 1)).numpy()
    array([[1, 2, 3],
           [5, 6, 7]], dtype=int16)
    """
    with named("gpu_buffer"):
        remedy = "a tensor's is x.buffer, and offset= is the byte to begin at"
        host, buffer = found_by("GPUBuffer", gpu_buffer, remedy=remedy)
        owner = owning_device(host, buffer, device)
    sizes, element = checked_shape(shape), view_dtype(dtype)
    start = checked_offset(offset, element.itemsize)
    layout = Layout.packed(sizes, start)
    if strides is not None:
        steps = integers("strides", strides)
        if len(steps) != len(sizes):
            raise ValueError(f"{len(steps)} strides for {len(sizes)} dimensions: pass one per dimension")
        layout = Layout.of(sizes, steps, start)
    check_usable(owner, buffer)
    check_fits(buffer, layout, element)
    check_alive(owner, buffer)
    return Tensor(owner, buffer, element, layout)


@public()
def full(
    shape: OneOrMore, fill_value: Tensor | ArrayLike, dtype: AnyDType = None, *, device: AnyDevice = None
) -> Tensor:
    """Make a tensor filled with a value; the semantics are those of `numpy.full`.

    Parameters
    ----------
    shape : int or sequence of int
        As for `empty`.
    fill_value : scalar, array_like or Tensor
        The value, broadcast to the shape; cast as `numpy.full` does, unless it is a tensor.
    dtype, device : dtype_like, Device or str, optional
        As for `empty`; by default those of `fill_value` if it has them.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError, NoAdapterError, OutOfDeviceMemory, DeviceLostError
        As `empty`; or `fill_value` is a tensor of another dtype, or does not broadcast to the shape.
    OverflowError
        `fill_value` is a Python integer outside the range of the dtype.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.full((2, 3), 7, np.uint8).numpy()
    array([[7, 7, 7],
           [7, 7, 7]], dtype=uint8)
    """
    check_no_sequence(fill_value)
    fill_value = in_memory(fill_value)
    given = fill_value if isinstance(fill_value, Tensor) else np.asarray(fill_value)
    element = element_dtype(given.dtype if dtype is None else dtype)
    if not isinstance(given, Tensor):
        given = as_copied(fill_value, element, "unsafe")
    elif device is None:
        device = given.device
    made = empty(shape, element, device=device)
    write(made, given)
    return made


@fitted()
def ones(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones.

    Parameters
    ----------
    shape, dtype, device : int or sequence of int, dtype_like, Device or str
        As for `empty`.

    Returns
    -------
    Tensor
        Packed, in a new buffer. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError, NoAdapterError, OutOfDeviceMemory, DeviceLostError
        As `empty`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.ones(3, np.float32).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    with named("ones"):
        element = default_element(dtype)
    return full(shape, 1, element, device=device)


def like(name: str, x: Tensor, dtype: Any = None, device: Any = None, shape: Any = None) -> dict[str, Any]:
    """Return the arguments that make a tensor like `x`, with given ones replaced."""
    check_tensor(name, x)
    return {
        "shape": checked_shape(x.shape if shape is None else shape),
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }

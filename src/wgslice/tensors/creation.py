"""Tensors made: from arrays and libraries, of one element, of nothing, and on buffers of the caller's."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wgslice.arguments import Integers, OneOrMore, check_row_major, checked_offset, checked_shape, integers
from wgslice.dtypes import AnyDType, DType, element_dtype, native_array
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.gpu.handles import check_alive, check_fits, check_usable, device_of
from wgslice.gpu.protocols import Buffer
from wgslice.layout import Layout
from wgslice.tensors.placed import as_assigned, check_no_sequence, check_tensor, imported, write
from wgslice.tensors.tensor import Tensor, allocate, from_host, packed_copy


def asarray(
    array: ArrayLike | Tensor, *, dtype: AnyDType = None, device: AnyDevice = None, copy: bool | None = None
) -> Tensor:
    """Upload an array.

    Parameters
    ----------
    array : array_like or Tensor
        Anything `numpy.asarray` takes, in any memory layout and byte order, of rank 0 to 8, also without
        elements.
    dtype : dtype_like, optional
        To which NumPy casts the array before it is uploaded; of a tensor its own, since nothing is converted
        on the GPU. The array's by default, in native byte order.
    device : Device or str, optional
        Or a part of an adapter's name or backend, case ignored, such as "vulkan", whose device is made once
        and shared. `default_device()` by default; a tensor's own for a tensor.
    copy : bool, optional
        True copies a tensor on the GPU too, False refuses what is not on the device already. By default only
        what must be is copied.

    Returns
    -------
    Tensor
        Packed, in native byte order, in a buffer of its own; a tensor on the same device as it is, unless
        `copy`. A tensor of another device is read back and uploaded.

    Raises
    ------
    ComputationRefused
        The dtype is not a tensor's own.
    TypeError
        The dtype is not one of fixed-width elements of 1, 2, 4, 8 or 16 bytes, or the array is a sequence
        that holds tensors, which `stack` puts together.
    ValueError
        The rank is above 8, the bytes are more than the device's largest buffer, or a copy is needed where
        `copy` is False.
    NoAdapterError
        No adapter has the name that `device` gives.
    OutOfDeviceMemory
        The device has no memory left.

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
    with named("asarray"):
        if isinstance(array, Tensor):
            if dtype is not None and element_dtype(dtype) != array.dtype:
                raise ComputationRefused(
                    f"dtype {np.dtype(dtype)}: the tensor has {array.dtype}, and nothing is converted on a "
                    "GPU: convert its numpy(), or view() it as another dtype of the same width"
                )
            chosen = array.device if device is None else checked_device(device)
            if chosen is array.device:
                return packed_copy(array) if copy else array
            check_may_copy(copy, f"from {array.device} to {chosen}")
            array = array.numpy()
        check_may_copy(copy, "from this machine's memory to a device")
        check_no_sequence(array)
        return from_host(native_array(np.asarray(array, dtype)), checked_device(device))


def check_may_copy(copy: bool | None, way: str) -> None:
    """Refuse a copy where none is wanted."""
    if copy is False:
        raise ValueError(f"copy=False: elements have to be copied {way}; leave it out")


def from_dlpack(x: Any, device: AnyDevice = None) -> Tensor:
    """Upload an array or tensor of another library, such as PyTorch's, by the DLPack protocol.

    Parameters
    ----------
    x : object with ``__dlpack__`` and ``__dlpack_device__``
        In CPU memory; from elsewhere its library copies it there, where NumPy 2.1 or newer can ask for that.
    device : Device or str, optional
        Or a part of an adapter's name or backend, such as "vulkan"; `default_device()` by default.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own: a copy.

    Raises
    ------
    TypeError
        `x` knows no DLPack.
    BufferError
        Its library does not give it (PyTorch, where it requires a gradient: `detach()` it), or NumPy lacks
        its dtype (bfloat16): view it as integers of the same width first, and the result with `Tensor.view`.
    ValueError, OutOfDeviceMemory
        As `asarray`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.from_dlpack(np.arange(4.0))[::-1].numpy()  # as well: an array of PyTorch's
    array([3., 2., 1., 0.])
    """
    if isinstance(x, Tensor):
        return asarray(x, device=device)
    with named("from_dlpack"):
        array = imported(x)
    return asarray(array, device=device)


def default_element(dtype: AnyDType) -> DType:
    """An element dtype; float64 where none is named, as in NumPy and in the array API."""
    return element_dtype(np.float64 if dtype is None else dtype)


def empty(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor to write into.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes, 0 to 8 of them, each at least 0.
    dtype : dtype_like, optional
        Of elements of 1, 2, 4, 8 or 16 bytes; float64 by default and for None, as in NumPy.
    device : Device or str, optional
        Or a part of an adapter's name or backend, such as "vulkan"; `default_device()` by default.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own, with any content.

    Raises
    ------
    TypeError, ValueError
        The shape or dtype is none, or the bytes are more than the device's largest buffer.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> out = wg.empty((2, 3), np.float16)
    >>> wg.slice1(wg.asarray(np.ones((4, 3), np.float16)), [1, 0], [2, 3], out=out) is out
    True
    """
    with named("empty"):
        chosen = checked_device(device)
        return allocate(checked_shape(shape), default_element(dtype), chosen, zeroed=False)


def zeros(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros.

    Parameters
    ----------
    shape, dtype, device : int or sequence of int, dtype_like, Device or str
        As of `empty`.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory
        As `empty`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.zeros(3, np.uint8).numpy()
    array([0, 0, 0], dtype=uint8)
    """
    with named("zeros"):
        return allocate(checked_shape(shape), default_element(dtype), checked_device(device))


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
        The first number; the end where `stop` is left out, and the first number is then 0.
    stop : int or float, optional
        The end, which is not reached.
    step : int or float
        The distance of neighbours, not 0; a negative one counts down.
    dtype, device : dtype_like, Device or str, optional
        As of `empty`; the dtype that NumPy chooses for the numbers by default.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own: numbers that are computed on the host and uploaded.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory
        As `empty`; or the numbers are none, or `step` is 0.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.arange(6).numpy(), wg.arange(5, 0, -2, dtype="uint8").numpy()
    (array([0, 1, 2, 3, 4, 5]), array([5, 3, 1], dtype=uint8))
    """
    with named("arange"):
        if step == 0:
            raise ValueError("step = 0: must not be 0")
        numbers: Any = start, stop, step
        element = None if dtype is None else element_dtype(dtype)
        array = np.arange(*numbers, dtype=element)
    return asarray(array, device=device)


def from_buffer(
    gpu_buffer: Buffer,
    shape: OneOrMore,
    dtype: DTypeLike,
    *,
    offset: SupportsIndex = 0,
    strides: Integers | None = None,
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
        `gpu_buffer` is no buffer, a number no integer, or the dtype not one of 1, 2, 4, 8 or 16 bytes.
    ValueError
        The layout leaves the buffer, whose last word must be whole, at either end; the buffer lacks STORAGE,
        is mapped or destroyed; the offset is no multiple of the item size; strides and sizes differ in
        number.
    DeviceLostError
        The buffer's device is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> buffer = wg.asarray(np.arange(8, dtype=np.int16)).buffer  # or one of your program's
    >>> wg.from_buffer(buffer, (2, 3), np.int16, offset=2, strides=(4, 1)).numpy()
    array([[1, 2, 3],
           [5, 6, 7]], dtype=int16)
    """
    with named("from_buffer"):
        with named("gpu_buffer"):
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
        check_usable(device, gpu_buffer)
        check_fits(gpu_buffer, layout, element)
        check_alive(device, gpu_buffer)
        return Tensor(device, gpu_buffer, element, layout)


def full(
    shape: OneOrMore, fill_value: Tensor | ArrayLike, dtype: AnyDType = None, *, device: AnyDevice = None
) -> Tensor:
    """Make a tensor of one element everywhere; the semantics are those of `numpy.full`.

    Parameters
    ----------
    shape : int or sequence of int
        As of `empty`.
    fill_value : scalar, array_like or Tensor
        What broadcasts to the shape; cast as NumPy assigns it, unless it is a tensor.
    dtype, device : dtype_like, Device or str, optional
        As of `empty`; those of `fill_value` by default, as far as it has them.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `empty`; the dtype is not that of a tensor, or `fill_value` does not broadcast to the shape.
    OverflowError
        `fill_value` is a Python integer that the dtype does not hold.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.full((2, 3), 7, np.uint8).numpy()
    array([[7, 7, 7],
           [7, 7, 7]], dtype=uint8)
    """
    with named("full"):
        check_no_sequence(fill_value)
        given = fill_value if isinstance(fill_value, Tensor) else np.asarray(fill_value)
        element = element_dtype(given.dtype if dtype is None else dtype)
        if not isinstance(given, Tensor):
            given = as_assigned(fill_value, element)
        elif device is None:
            device = given.device
        made = empty(shape, element, device=device)
        write(made, given)
        return made


def ones(shape: OneOrMore, dtype: AnyDType = np.float64, *, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones.

    Parameters
    ----------
    shape, dtype, device : int or sequence of int, dtype_like, Device or str
        As of `empty`.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory
        As `empty`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.ones(3, np.float32).numpy()
    array([1., 1., 1.], dtype=float32)
    """
    return full(shape, 1, default_element(dtype), device=device)


def like(
    name: str, x: Tensor, dtype: Any = None, device: Any = None, shape: Any = None, order: str | None = None
) -> dict[str, Any]:
    """Sizes, dtype and device of a tensor, but for those that are given: what makes a tensor like it."""
    check_tensor(name, x)
    sizes = checked_shape(x.shape if shape is None else shape)
    check_row_major(order, sizes)
    return {
        "shape": sizes,
        "dtype": x.dtype if dtype is None else dtype,
        "device": x.device if device is None else device,
    }

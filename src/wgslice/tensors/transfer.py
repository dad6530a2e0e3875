"""Elements between tensors and the host: read back, and written from a tensor, an array or one element."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import named
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.protocols import BufferUsage
from wgslice.gpu.recording import BoundLayout, record, run_copy
from wgslice.gpu.transfer import download, upload
from wgslice.layout import Layout
from wgslice.plans.copy import fills, pattern_size, plan_copy
from wgslice.rearrange import broadcast, without_leading_ones
from wgslice.tensors.placed import Placed, check_destination, check_of_numbers, check_tensor, uploaded

__all__ = ["as_assigned", "as_copied", "check_sides", "copyto", "read_into", "write"]


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

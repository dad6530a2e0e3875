"""Tensors from arrays: from this machine's memory, and from other libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wgslice.arguments import checked_shape
from wgslice.dtypes import element_dtype, native_array
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.device import Device
from wgslice.gpu.shared_devices import checked_device
from wgslice.gpu.transfer import upload
from wgslice.tensors.dlpack import imported
from wgslice.tensors.placed import check_of_numbers
from wgslice.tensors.tensor import Tensor, allocate, packed_copy

__all__ = ["asarray", "from_dlpack"]


def asarray(
    array: ArrayLike | Tensor,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
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
            check_same_element(array, dtype)
            chosen = array.device if device is None else checked_device(device)
            if chosen is array.device:
                return packed_copy(array) if copy else array
            check_may_copy(copy, f"from {array.device} to {chosen}")
            array = array.numpy()
        check_may_copy(copy, "from this machine's memory to a device")
        check_of_numbers(array)
        native = native_array(np.asarray(array, dtype))
        tensor = allocate(checked_shape(native.shape), native.dtype, checked_device(device))
        if native.size:
            upload(tensor.device, tensor.buffer, native.reshape(-1).view(np.uint8))
    return tensor


def check_same_element(tensor: Tensor, dtype: DTypeLike | None) -> None:
    """Refuse a dtype that is not a tensor's."""
    if dtype is not None and element_dtype(dtype) != tensor.dtype:
        raise ComputationRefused(
            f"dtype {np.dtype(dtype)}: the tensor has {tensor.dtype}, and nothing is converted on a GPU: "
            "convert its numpy(), or view() it as another dtype of the same width"
        )


def check_may_copy(copy: bool | None, way: str) -> None:
    """Refuse a copy where none is wanted."""
    if copy is False:
        raise ValueError(f"copy=False: elements have to be copied {way}; leave it out")


def from_dlpack(x: Any, device: Device | str | None = None) -> Tensor:
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

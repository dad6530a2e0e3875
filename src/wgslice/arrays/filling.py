"""Tensors of one element everywhere, and tensors that are like others."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wgslice.dtypes import element_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.tensors.creation import default_element, empty, zeros
from wgslice.tensors.placed import check_of_numbers, check_tensor
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.transfer import as_assigned, write

__all__ = ["empty_like", "full", "full_like", "ones", "ones_like", "zeros_like"]


def full(
    shape: SupportsIndex | Iterable[SupportsIndex],
    fill_value: Tensor | ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Make a tensor of one element everywhere; the semantics are those of `numpy.full`.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes, 0 to 8 of them, each at least 0.
    fill_value : scalar, array_like or Tensor
        What broadcasts to the shape; cast as NumPy assigns it, unless it is a tensor.
    dtype : dtype_like, optional
        That of `fill_value` by default.
    device : Device or str, optional
        That of `fill_value`, or else `default_device()`, by default.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    TypeError
        The dtype is none, or not that of a tensor.
    ValueError
        The shape is none, `fill_value` does not broadcast to it, or the bytes are more than the device's
        largest buffer.
    OverflowError
        `fill_value` is a Python integer that the dtype does not hold.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.full((2, 3), 7, np.uint8).numpy()
    array([[7, 7, 7],
           [7, 7, 7]], dtype=uint8)
    """
    with named("full"):
        if isinstance(fill_value, Tensor):
            made = empty(
                shape, fill_value.dtype if dtype is None else dtype, device=device or fill_value.device
            )
            write(made, fill_value)
            return made
        check_of_numbers(fill_value)
        element = element_dtype(np.asarray(fill_value).dtype if dtype is None else dtype)
        elements = as_assigned(fill_value, element)
        made = empty(shape, element, device=device)
        write(made, elements)
        return made


def ones(
    shape: SupportsIndex | Iterable[SupportsIndex],
    dtype: DTypeLike | None = np.float64,
    *,
    device: Device | str | None = None,
) -> Tensor:
    """Make a tensor of ones.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes, 0 to 8 of them, each at least 0.
    dtype : dtype_like, optional
        Of elements of 1, 2, 4, 8 or 16 bytes; float64 by default and for None, as in NumPy.
    device : Device or str, optional
        `default_device()` by default.

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


def empty_like(x: Tensor, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """Make a tensor to write into, like another.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device it has.
    dtype : dtype_like, optional
        Another dtype.
    device : Device or str, optional
        Another device.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own, with any content.

    Raises
    ------
    TypeError, ValueError, OutOfDeviceMemory
        As `empty`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.filling import empty_like
    >>> empty_like(wg.asarray(np.zeros((2, 3), np.int16))[:, ::2]).shape
    (2, 2)
    """
    check_tensor("empty_like: x", x)
    return empty(x.shape, x.dtype if dtype is None else dtype, device=device or x.device)


def zeros_like(x: Tensor, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """Make a tensor of zeros, like another.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device it has.
    dtype : dtype_like, optional
        Another dtype.
    device : Device or str, optional
        Another device.

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
    >>> from wgslice.arrays.filling import zeros_like
    >>> zeros_like(wg.asarray(np.arange(3))).numpy()
    array([0, 0, 0])
    """
    check_tensor("zeros_like: x", x)
    return zeros(x.shape, x.dtype if dtype is None else dtype, device=device or x.device)


def ones_like(x: Tensor, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """Make a tensor of ones, like another.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device it has.
    dtype : dtype_like, optional
        Another dtype.
    device : Device or str, optional
        Another device.

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
    >>> from wgslice.arrays.filling import ones_like
    >>> ones_like(wg.asarray(np.arange(3))).numpy()
    array([1, 1, 1])
    """
    check_tensor("ones_like: x", x)
    return ones(x.shape, x.dtype if dtype is None else dtype, device=device or x.device)


def full_like(
    x: Tensor,
    fill_value: Tensor | ArrayLike,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Make a tensor of one element everywhere, like another; the semantics are those of `numpy.full_like`.

    Parameters
    ----------
    x : Tensor
        Whose shape, dtype and device it has.
    fill_value : scalar, array_like or Tensor
        As for `full`.
    dtype : dtype_like, optional
        Another dtype.
    device : Device or str, optional
        Another device.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError, OverflowError, OutOfDeviceMemory, DeviceLostError
        As `full`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.filling import full_like
    >>> full_like(wg.asarray(np.arange(3)), 7).numpy()
    array([7, 7, 7])
    """
    check_tensor("full_like: x", x)
    return full(x.shape, fill_value, x.dtype if dtype is None else dtype, device=device or x.device)

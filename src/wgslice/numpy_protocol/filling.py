"""Tensors of one element everywhere, and what makes a tensor like another."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from wgslice.arguments import check_row_major, checked_shape
from wgslice.dtypes import element_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.tensors.creation import default_element, empty
from wgslice.tensors.placed import as_assigned, check_no_sequence, check_tensor, write
from wgslice.tensors.tensor import Tensor

__all__ = ["full", "like", "ones"]


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


def ones(
    shape: SupportsIndex | Iterable[SupportsIndex],
    dtype: DTypeLike | None = np.float64,
    *,
    device: Device | str | None = None,
) -> Tensor:
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

"""The standard's functions that make tensors: of arrays and numbers, which are uploaded, and of nothing.

Each may raise OutOfDeviceMemory and DeviceLostError, TypeError for a dtype whose elements no tensor has, and
ValueError for a shape that is none and for more bytes than the device's largest buffer, and NoAdapterError
for a name of a device that no adapter has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.arguments import OneOrMore
from wgslice.array_api.data_type_functions import DEFAULTS, default_dtype
from wgslice.dtypes import AnyDType
from wgslice.errors import named
from wgslice.gpu.device import AnyDevice, checked_device
from wgslice.tensors import creation
from wgslice.tensors.creation import like
from wgslice.tensors.placed import check_of_numbers
from wgslice.tensors.tensor import Tensor

__all__ = [
    "arange",
    "asarray",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "linspace",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]


def asarray(
    obj: Any, /, *, dtype: AnyDType = None, device: AnyDevice = None, copy: bool | None = None
) -> Tensor:
    """Upload numbers, nested sequences of them or an array; a tensor of the device is returned as it is.

    Raises ComputationRefused where `dtype` is not a tensor's own, ValueError where `copy` is False and
    elements would have to go to another device, TypeError for text, objects and sequences of tensors.
    """
    kind = DEFAULTS.get(type(obj)) if dtype is None else dtype
    return creation.asarray(obj, device=device, dtype=kind, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: AnyDType = None,
    device: AnyDevice = None,
) -> Tensor:
    """Upload evenly spaced numbers, of shape `(ceil((stop - start) / step),)`, computed on the host."""
    with named("arange"):
        kind = default_dtype(dtype, start, step, 0 if stop is None else stop)
    return creation.arange(start, stop, step, dtype=kind, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: AnyDType = None,
    device: AnyDevice = None,
    endpoint: bool = True,
) -> Tensor:
    """Upload evenly spaced numbers, of shape `(num,)`, computed on the host."""
    with named("linspace"):
        for end in (start, stop):
            check_of_numbers(end)
        array = np.linspace(start, stop, num, endpoint=endpoint, dtype=default_dtype(dtype, 0.0, start, stop))
    return creation.asarray(array, device=device)


def eye(
    n_rows: int, n_cols: int | None = None, /, *, k: int = 0, dtype: AnyDType = None, device: AnyDevice = None
) -> Tensor:
    """Make a matrix of shape `(n_rows, n_cols)`, square by default: ones on the diagonal `k`, else zeros."""
    columns = n_rows if n_cols is None else n_cols
    matrix = zeros((n_rows, columns), dtype=dtype, device=device)
    row, column = max(-k, 0), max(k, 0)
    count = min(n_rows - row, columns - column)
    if count > 0:
        start = row * columns + column
        matrix.reshape(-1)[start : start + (count - 1) * (columns + 1) + 1 : columns + 1] = 1
    return matrix


def empty(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of a shape to write into, float64 by default."""
    return creation.empty(shape, dtype, device=device)


def zeros(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros of a shape, float64 by default."""
    return creation.zeros(shape, dtype, device=device)


def ones(shape: OneOrMore, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones of a shape, float64 by default."""
    return creation.ones(shape, dtype, device=device)


def full(shape: OneOrMore, fill_value: Any, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of one element everywhere; OverflowError for an integer that its dtype does not hold."""
    kind = DEFAULTS.get(type(fill_value)) if dtype is None else dtype
    return creation.full(shape, fill_value, kind, device=device)


def empty_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor to write into, of the shape, dtype and device of another."""
    return creation.empty(**like("empty_like: x", x, dtype, device))


def zeros_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of zeros, of the shape, dtype and device of another."""
    return creation.zeros(**like("zeros_like: x", x, dtype, device))


def ones_like(x: Tensor, /, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of ones, of the shape, dtype and device of another."""
    return creation.ones(**like("ones_like: x", x, dtype, device))


def full_like(x: Tensor, /, fill_value: Any, *, dtype: AnyDType = None, device: AnyDevice = None) -> Tensor:
    """Make a tensor of one element, of the shape, dtype and device of another."""
    return creation.full(fill_value=fill_value, **like("full_like: x", x, dtype, device))


def from_dlpack(x: Any, /, *, device: AnyDevice = None, copy: bool | None = None) -> Tensor:
    """Upload an array of another library; a tensor of the device is returned as it is, unless `copy` is True.

    Raises BufferError where `copy` is False and elements would have to move, or the library does not give it.
    """
    with named("from_dlpack"):
        if isinstance(x, Tensor) and (device is None or checked_device(device) is x.device):
            return x.copy() if copy else x
        if copy is False:
            raise BufferError("elements cannot go to a device without a copy: leave copy=False out")
    return creation.from_dlpack(x, device)

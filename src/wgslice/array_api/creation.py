"""Tensors made anew: of arrays and numbers of the host, which are uploaded, and of nothing."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal, SupportsIndex

import numpy as np
from numpy.typing import DTypeLike

from wgslice.arrays import broadcasting, filling, triangles
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device, checked_device
from wgslice.tensors import creation
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
    "meshgrid",
    "ones",
    "ones_like",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

Shape = SupportsIndex | Iterable[SupportsIndex]
DEFAULTS = {bool: np.bool_, int: np.int64, float: np.float64, complex: np.complex128}


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    copy: bool | None = None,
) -> Tensor:
    """Upload numbers, nested sequences of them or an array; a tensor of the device as it is.

    A tensor is copied where `copy` is True; a ComputationRefused where `dtype` is not its own, a ValueError
    where `copy` is False and elements would have to go to another device.
    """
    kind = DEFAULTS.get(type(obj)) if dtype is None else dtype
    return creation.asarray(obj, device=device, dtype=kind, copy=copy)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Evenly spaced numbers, computed on the host and uploaded."""
    with named("arange"):
        kind = default_dtype(dtype, start, step, 0 if stop is None else stop)
    return creation.arange(start, stop, step, dtype=kind, device=device)


def linspace(
    start: complex,
    stop: complex,
    /,
    num: int,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
    endpoint: bool = True,
) -> Tensor:
    """So many evenly spaced numbers, computed on the host and uploaded."""
    with named("linspace"):
        array = np.linspace(start, stop, num, endpoint=endpoint, dtype=default_dtype(dtype, 0.0, start, stop))
    return creation.asarray(array, device=device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """Ones on a diagonal of a matrix of zeros: a write into a window."""
    columns = n_rows if n_cols is None else n_cols
    matrix = zeros((n_rows, columns), dtype=dtype, device=device)
    row, column = max(-k, 0), max(k, 0)
    count = min(n_rows - row, columns - column)
    if count > 0:
        start = row * columns + column
        matrix.reshape(-1)[start : start + (count - 1) * (columns + 1) + 1 : columns + 1] = 1
    return matrix


def empty(shape: Shape, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor to write into."""
    return creation.empty(shape, dtype, device=device)


def zeros(shape: Shape, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor of zeros."""
    return creation.zeros(shape, dtype, device=device)


def ones(shape: Shape, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor of ones."""
    return filling.ones(shape, dtype, device=device)


def full(
    shape: Shape, fill_value: Any, *, dtype: DTypeLike | None = None, device: Device | str | None = None
) -> Tensor:
    """A tensor of one element everywhere."""
    kind = DEFAULTS.get(type(fill_value)) if dtype is None else dtype
    return filling.full(shape, fill_value, kind, device=device)


def empty_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor to write into, of another's shape."""
    return filling.empty_like(x, dtype, device)


def zeros_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor of zeros, of another's shape."""
    return filling.zeros_like(x, dtype, device)


def ones_like(x: Tensor, /, *, dtype: DTypeLike | None = None, device: Device | str | None = None) -> Tensor:
    """A tensor of ones, of another's shape."""
    return filling.ones_like(x, dtype, device)


def full_like(
    x: Tensor,
    /,
    fill_value: Any,
    *,
    dtype: DTypeLike | None = None,
    device: Device | str | None = None,
) -> Tensor:
    """A tensor of one element everywhere, of another's shape."""
    return filling.full_like(x, fill_value, dtype, device)


def from_dlpack(x: Any, /, *, device: Device | str | None = None, copy: bool | None = None) -> Tensor:
    """Upload an array or tensor of another library; a tensor of the device as it is, unless `copy` is True.

    A BufferError where `copy` is False and elements would have to go to another device.
    """
    with named("from_dlpack"):
        if isinstance(x, Tensor) and (device is None or checked_device(device) is x.device):
            return x.copy() if copy else x
        if copy is False:
            raise BufferError("elements cannot go to a device without a copy: leave copy=False out")
    return creation.from_dlpack(x, device)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Coordinates repeated over the grid that they span: views, of coordinates of one dtype."""
    with named("meshgrid"):
        dtypes = {array.dtype for array in arrays if isinstance(array, Tensor)}
        if len(dtypes) > 1:
            listed = " and ".join(sorted(map(str, dtypes)))
            raise ValueError(f"arrays have dtypes {listed}: they must have one")
    return broadcasting.meshgrid(*arrays, indexing=indexing)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The lower triangle of matrices, and zeros above it: a packed copy."""
    return triangles.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """The upper triangle of matrices, and zeros below it: a packed copy."""
    return triangles.triu(x, k)


def default_dtype(dtype: DTypeLike | None, *numbers: complex) -> DType:
    """The standard's default for the widest kind of some numbers, where no dtype is named."""
    if dtype is not None:
        return element_dtype(dtype)
    for kind in (complex, float):
        if any(isinstance(number, kind) for number in numbers):
            return np.dtype(DEFAULTS[kind])
    return np.dtype(DEFAULTS[int])

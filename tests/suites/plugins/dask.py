"""Dask's tests, with tensors as the chunks of the arrays that they make; results are read back to compare."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import dask.array as da
import dask.array.utils
import numpy as np

import wgslice as wg

CREATING = ("arange", "from_array", "full", "linspace", "ones", "zeros")
compute, compare = da.Array.compute, dask.array.utils.assert_eq


def on_gpu(array: Any) -> Any:
    """Return an array of the same elements whose chunks are tensors, if they can be."""
    is_plain = isinstance(array, da.Array) and isinstance(array._meta, np.ndarray)
    if not is_plain or array.dtype.kind not in "biufc" or array.ndim > 8:
        return array
    meta = wg.asarray(np.empty((0,) * array.ndim, array.dtype))
    return array.map_blocks(wg.asarray, dtype=array.dtype, meta=meta)


def making(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose arrays have tensors as chunks."""
    return wraps(function)(lambda *arguments, **options: on_gpu(function(*arguments, **options)))


def on_host(value: Any) -> Any:
    """Return a value with tensors read back."""
    if isinstance(value, wg.Tensor):
        return value.numpy()
    if isinstance(value, da.Array) and isinstance(value._meta, wg.Tensor):
        meta = np.empty((0,) * value.ndim, value.dtype)
        return value.map_blocks(np.asarray, dtype=value.dtype, meta=meta)
    return value


def check_meta(value: Any) -> None:
    """Raise if an array promises tensors and computes arrays, or the reverse."""
    if isinstance(value, da.Array):
        result = compute(value)
        if isinstance(result, wg.Tensor) != isinstance(value._meta, wg.Tensor):
            raise AssertionError(f"meta is {type(value._meta)}, the result {type(result)}")


@wraps(compare)
def assert_eq(a: Any, b: Any, *arguments: Any, **options: Any) -> Any:
    """Compare as Dask does, after the kinds of chunks were checked."""
    check_meta(a)
    check_meta(b)
    return compare(on_host(a), on_host(b), *arguments, **options)


@wraps(compute)
def compute_on_host(self: Any, **options: Any) -> Any:
    """Compute and read back, for tests that compare results by ==."""
    return on_host(compute(self, **options))


for name in CREATING:
    setattr(da, name, making(getattr(da, name)))
da.random.random = making(da.random.random)
da.Array.compute = compute_on_host
dask.array.utils.assert_eq = assert_eq

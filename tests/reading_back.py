"""The array API in which `wgslice.array_api` moves elements, and NumPy computes what that refuses.

Suites that are written against the standard compute in order to compare. They are given this namespace, whose
arrays hold a tensor each: the standard's functions that move elements are `wgslice.array_api`'s own,
everything else reads back.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np
from hypothesis import assume

import wgslice.array_api as ours
from wgslice.arguments import MAX_RANK
from wgslice.array_api import REFUSED

__array_api_version__ = ours.__array_api_version__
__array_namespace_info__ = ours.__array_namespace_info__


class Array:
    """A tensor that computes by NumPy."""

    def __init__(self, tensor: Any) -> None:
        self.tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return wrapped(getattr(self.tensor, name))

    def __getitem__(self, key: Any) -> Any:
        return Array(self.tensor[unwrapped(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[unwrapped(key)] = unwrapped(value)

    def to_device(self, device: Any, /, *, stream: Any = None) -> Array:
        return Array(self.tensor.to_device(device, stream=stream))

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.tensor.__array__(dtype, copy)

    def __dlpack__(
        self, *, stream: Any = None, max_version: Any = None, dl_device: Any = None, copy: Any = None
    ) -> Any:
        return self.tensor.__dlpack__(stream=stream, max_version=max_version, dl_device=dl_device, copy=copy)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()  # type: ignore[no-any-return]  # of any tensor

    def __array_namespace__(self, *, api_version: str | None = None) -> Any:
        self.tensor.__array_namespace__(api_version=api_version)
        return sys.modules[__name__]

    def __repr__(self) -> str:
        return f"Array({self.tensor.numpy()!r})"

    __hash__ = None  # type: ignore[assignment]  # as other arrays


def unwrapped(value: Any) -> Any:
    """The arguments of `wgslice.array_api`."""
    if isinstance(value, Array):
        return value.tensor
    if isinstance(value, list | tuple):
        return type(value)(map(unwrapped, value))
    return value


def wrapped(value: Any) -> Any:
    """The arguments of the suite."""
    if hasattr(value, "buffer") and hasattr(value, "layout"):
        return Array(value)
    if isinstance(value, list | tuple) and any(hasattr(each, "layout") for each in value):
        return type(value)(map(wrapped, value))
    return value


def read_back(value: Any) -> Any:
    """The arguments of NumPy."""
    if isinstance(value, Array):
        return value.tensor.numpy()
    if isinstance(value, list | tuple):
        return type(value)(map(read_back, value))
    return value


def uploaded(value: Any) -> Any:
    """The results of NumPy."""
    if isinstance(value, np.ndarray | np.generic):
        return Array(ours.asarray(np.asarray(value)))
    if isinstance(value, list | tuple):
        return tuple(map(uploaded, value))
    return value


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of ours."""

    @wraps(function)
    def move(*arguments: Any, **options: Any) -> Any:
        given = {name: unwrapped(option) for name, option in options.items()}
        return wrapped(function(*map(unwrapped, arguments), **given))

    return move


def computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy's."""

    def compute(*arguments: Any, **options: Any) -> Any:
        given = {name: read_back(option) for name, option in options.items()}
        return uploaded(function(*map(read_back, arguments), **given))

    return compute


def one_dtype(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of several arrays that are promoted by NumPy, since ours refuses to."""

    @wraps(function)
    def promoted(arrays: Any, /, **options: Any) -> Any:
        kind = ours.result_type(*(array.dtype for array in arrays))
        return moving(function)([astype(array, kind, copy=False) for array in arrays], **options)

    return promoted


def asarray(obj: Any, /, *, dtype: Any = None, device: Any = None, copy: bool | None = None) -> Array:
    if isinstance(obj, Array) and dtype not in (None, obj.dtype):
        obj = astype(obj, dtype)
    return Array(ours.asarray(unwrapped(obj), dtype=dtype, device=device, copy=copy))


def astype(x: Array, dtype: Any, /, *, copy: bool = True, device: Any = None) -> Array:
    if x.dtype == dtype:
        return Array(ours.astype(x.tensor, dtype, copy=copy, device=device))
    return Array(ours.asarray(read_back(x).astype(dtype), device=device or x.device))


# A dtype of NumPy's equals None if it is float64's; its types of scalars do not.
for name, dtype in ours.__array_namespace_info__().dtypes().items():
    globals()[name] = dtype.type


def reshape(x: Array, /, shape: Any, *, copy: bool | None = None) -> Any:
    assume(len(shape) <= MAX_RANK)  # which the inspection says, and a suite may not know
    return moving(ours.reshape)(x, shape, copy=copy)


concat = one_dtype(ours.concat)
stack = one_dtype(ours.stack)

for name in ours.__all__:
    function = getattr(ours, name)
    globals().setdefault(name, moving(function) if callable(function) else function)
for name in vars(np).keys() & REFUSED:  # NumPy 2.0 lacks some
    globals()[name] = computing(getattr(np, name))

OPERATORS = (
    *("abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "matmul", "mod"),
    *("mul", "ne", "neg", "or", "pos", "pow", "rshift", "sub", "truediv", "xor"),
)
for name in OPERATORS:
    method = f"__{name}__"
    function = getattr(operator, method)
    setattr(Array, method, computing(function))
    setattr(Array, f"__r{name}__", computing(lambda x, other, function=function: function(other, x)))
for name in ("bool", "int", "float", "complex", "index"):
    method = f"__{name}__"
    setattr(Array, method, lambda x, method=method: getattr(x.tensor, method)())

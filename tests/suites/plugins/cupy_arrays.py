"""CuPy's place: its array is a tensor, its functions are NumPy's, which hand tensors to wgslice.

Operators and a few methods compute with NumPy on what is read back, since tests prepare their data so.
Functions such as `cupy.sum` do not: wgslice refuses them by name.
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Callable, Iterator
from functools import wraps
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

import wgslice as wg
import wgslice.array_api as xp

ADOPTED = "biufc"  # kinds of dtypes that tensors have
# Methods and properties of arrays which compute: by NumPy, on what is read back.
COMPUTED = {
    *("all", "any", "argmax", "argmin", "conj", "conjugate", "cumsum", "dot", "imag", "max", "mean", "min"),
    *("nonzero", "prod", "real", "round", "std", "sum", "var"),
}
OPERATORS = {
    *("abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lshift", "lt", "matmul", "mod"),
    *("mul", "ne", "neg", "or", "pos", "pow", "rshift", "sub", "truediv", "xor"),
}


def apply(function: Callable[[Any], Any], value: Any) -> Any:
    """Return a value with a function applied to it, or to all values inside it."""
    if isinstance(value, slice):
        return slice(*(apply(function, each) for each in (value.start, value.stop, value.step)))
    if type(value) in (list, tuple):
        return type(value)(apply(function, each) for each in value)
    if type(value) is dict:
        return {name: apply(function, each) for name, each in value.items()}
    return function(value)


def unwrap(value: Any) -> Any:
    """Return what wgslice is given."""
    return apply(lambda each: each.tensor if isinstance(each, ndarray) else each, value)


def wrap(value: Any) -> Any:
    """Return what a test is given: arrays are uploaded."""

    def wrapped(each: Any) -> Any:
        if isinstance(each, np.ndarray) and each.dtype.kind in ADOPTED:
            each = upload(each)
        return ndarray(each) if isinstance(each, wg.Tensor) else each

    return apply(wrapped, value)


def upload(array: Any) -> wg.Tensor:
    """Return a tensor of an array, in its memory order."""
    is_reversed = array.flags.f_contiguous and not array.flags.c_contiguous
    return wg.asarray(array.T).T if is_reversed else wg.asarray(array)


def asnumpy(value: Any, *_: Any, **__: Any) -> Any:
    """Return arrays read back."""
    return apply(lambda each: each.get() if isinstance(each, ndarray) else each, value)


def moving(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is given tensors for arrays, and whose tensors become arrays."""

    @wraps(function)
    def move(*arguments: Any, **options: Any) -> Any:
        return wrap(function(*unwrap(arguments), **unwrap(options)))

    return move


def computing(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that is given what is read back, and gives arrays where NumPy gives scalars."""

    @wraps(function)
    def compute(*arguments: Any, **options: Any) -> Any:
        result = function(*asnumpy(arguments), **asnumpy(options))
        return wrap(np.asarray(result) if isinstance(result, np.generic) else result)

    return compute


class flatiter:  # noqa: N801 -- CuPy's name
    """The elements of an array in row-major order, each of which is an array."""

    def __init__(self, flat: Any) -> None:
        self.flat = flat
        self.base = wrap(flat.base)

    def __len__(self) -> int:
        return len(self.flat)

    def __iter__(self) -> flatiter:
        return self

    def __next__(self) -> Any:
        return wrap(next(self.flat))

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.flat[unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.flat[unwrap(key)] = unwrap(value)

    def copy(self) -> Any:
        return wrap(self.flat.copy())

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.flat.__array__(dtype, copy)


# The array of each tensor, by its id, so that a tensor that is returned as it is stays the same array.
wrappers: WeakValueDictionary[int, ndarray] = WeakValueDictionary()


class ndarray:  # noqa: N801 -- CuPy's name
    """A tensor under the name of CuPy's array."""

    __slots__ = ("__weakref__", "tensor")
    __array_priority__ = 100
    __hash__ = None  # type: ignore[assignment]  # as NumPy's

    def __new__(
        cls, shape: Any, dtype: Any = float, memptr: Any = None, strides: Any = None, order: Any = "C"
    ) -> Any:
        if isinstance(shape, wg.Tensor):
            self = wrappers.get(id(shape))
            if self is None:
                self = wrappers[id(shape)] = object.__new__(cls)
                object.__setattr__(self, "tensor", shape)
            return self
        if memptr is not None or strides is not None:
            raise NotImplementedError("buffers have no pointers")
        return empty(shape, dtype, order)

    def __setattr__(self, name: str, value: object) -> None:
        setattr(self.tensor, name, unwrap(value))

    @property
    def strides(self) -> tuple[int, ...]:
        return tuple(stride * self.tensor.itemsize for stride in self.tensor.strides)

    @property
    def flat(self) -> flatiter:
        return flatiter(self.tensor.flat)

    def get(self, *_: Any, **__: Any) -> Any:
        return self.tensor.numpy()

    def astype(
        self, dtype: Any, order: Any = "K", casting: Any = None, subok: Any = None, copy: bool = True
    ) -> Any:
        """Copy a tensor; convert on the host."""
        if np.dtype(dtype) == self.tensor.dtype:
            return wrap(self.tensor.astype(dtype, copy, order=order))
        return wrap(self.get().astype(dtype))

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.tensor[unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self.tensor[unwrap(key)] = unwrap(value)

    def __iter__(self) -> Iterator[Any]:
        return map(wrap, iter(self.tensor))

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in COMPUTED:
            value = getattr(self.get(), name)
            return computing(value) if callable(value) else wrap(value)
        value = getattr(self.tensor, name)
        return moving(value) if callable(value) and not isinstance(value, wg.Tensor) else wrap(value)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.tensor.__array__(dtype, copy)

    def __array_function__(self, function: Any, types: Any, arguments: Any, options: Any) -> Any:
        return moving(function)(*arguments, **options)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **options: Any) -> Any:
        return computing(getattr(ufunc, method))(*inputs, **options)

    def __repr__(self) -> str:
        return repr(self.get())  # in ids of tests, which name no adapter


def forwarded(name: str) -> Callable[..., Any]:
    """Return a method that is the tensor's own."""
    return lambda self, *arguments: moving(getattr(self.tensor, name))(*arguments)


def reflected(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return an operator of NumPy whose right operand is the array."""
    return lambda self, other: computing(function)(other, self)


for name in ("bool", "complex", "copy", "deepcopy", "float", "index", "int", "len"):
    setattr(ndarray, f"__{name}__", forwarded(f"__{name}__"))
for name in OPERATORS:
    function = getattr(operator, f"__{name}__")
    setattr(ndarray, f"__{name}__", computing(function))
    setattr(ndarray, f"__r{name}__", reflected(function))


def array(
    obj: Any,
    dtype: Any = None,
    copy: bool | None = True,
    order: Any = "K",
    subok: bool = False,
    ndmin: int = 0,
    **_: Any,
) -> Any:
    """Make an array of host data by upload, of tensors by wgslice."""
    given = unwrap(obj)
    if isinstance(given, wg.Tensor) or any(isinstance(each, wg.Tensor) for each in leaves(given)):
        made = wg.asarray(given, dtype=dtype, copy=copy or None)
        orders = {"C": made.flags.c_contiguous, "F": made.flags.f_contiguous}
        if order is not None and not orders.get(order.upper(), True):
            made = made.copy(order=order)
        return wrap(made.reshape((1,) * (ndmin - made.ndim) + made.shape) if ndmin > made.ndim else made)
    return wrap(upload(np.array(given, dtype=dtype, ndmin=ndmin, order=order)))


def leaves(value: Any) -> Iterator[Any]:
    """Yield the values in nested lists and tuples."""
    if isinstance(value, list | tuple):
        for each in value:
            yield from leaves(each)
    else:
        yield value


def asarray(obj: Any, dtype: Any = None, order: str | None = "K", **_: Any) -> Any:
    """Return an array itself, or an upload."""
    return array(obj, dtype, copy=False, order=order)


asanyarray = asarray


def ascontiguousarray(obj: Any, dtype: Any = None) -> Any:
    """Return a packed array."""
    given = unwrap(obj)
    is_strided = isinstance(given, wg.Tensor) and not given.is_packed
    return wrap(given.copy()) if is_strided else asarray(obj, dtype, "C")


def made(function: Callable[..., wg.Tensor], shape: Any, *values: Any, dtype: Any, order: str | None) -> Any:
    """Return an array that a creation function of the standard makes, in either memory order."""
    is_reversed = order is not None and order.upper() == "F"
    if order is not None and order not in tuple("CFcf"):
        raise TypeError(f"order = {order!r}")
    sizes = tuple(map(operator.index, shape if isinstance(shape, list | tuple) else [shape]))
    tensor = function(sizes[::-1] if is_reversed else sizes, *values, dtype=dtype and np.dtype(dtype))
    return wrap(tensor.T if is_reversed else tensor)


def empty(shape: Any, dtype: Any = float, order: str | None = "C") -> Any:
    """Make an array of any content."""
    return made(xp.empty, shape, dtype=dtype, order=order)


def zeros(shape: Any, dtype: Any = float, order: str | None = "C") -> Any:
    """Make an array of zeros."""
    return made(xp.zeros, shape, dtype=dtype, order=order)


def ones(shape: Any, dtype: Any = float, order: str | None = "C") -> Any:
    """Make an array of ones."""
    return made(xp.ones, shape, dtype=dtype, order=order)


def full(shape: Any, fill_value: Any, dtype: Any = None, order: str | None = "C") -> Any:
    """Make an array of one value, which is converted on the host."""
    value = np.asarray(asnumpy(fill_value))
    kind = value.dtype if dtype is None else np.dtype(dtype)
    return made(xp.full, shape, value.astype(kind)[()].item(), dtype=kind, order=order)


def repeat(a: Any, repeats: Any, axis: Any = None) -> Any:
    """Repeat by the standard's function, if repeats are a tensor, which NumPy's refuses."""
    function = xp.repeat if isinstance(repeats, ndarray) else np.repeat
    return moving(function)(a, repeats, axis=axis)


def get_array_module(*arrays: Any) -> Any:
    """Return this module for its arrays, and NumPy for others."""
    is_ours = any(isinstance(each, ndarray) for each in arrays)
    return sys.modules["cupy"] if is_ours else np


class Indexed:
    """One of NumPy's objects that make arrays when they are indexed, and ask no type of their parts."""

    def __init__(self, name: str) -> None:
        self.made = getattr(np, name)

    def __getitem__(self, key: Any) -> Any:
        return wrap(self.made[asnumpy(key)])


c_, mgrid, ogrid, r_ = map(Indexed, ("c_", "mgrid", "ogrid", "r_"))


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    value = getattr(np, name)
    return value if isinstance(value, type) or not callable(value) else moving(value)

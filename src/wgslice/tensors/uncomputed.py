"""What tensors do not do: compute. Each operator says so by its name, and what does instead."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any, NoReturn

import numpy as np

__all__ = ["REMEDY", "Uncomputed", "refused"]

REMEDY = (
    "tensors are moved, and nothing is computed on them: x.numpy() or np.asarray(x) is an array to compute "
    "with, and libraries that know DLPack take x as it is, such as torch.from_dlpack(x)"
)
ARRAY_PROTOCOLS = ("__array__", "__array_interface__", "__dlpack__")


def is_computable(value: object) -> bool:
    """Whether people expect to compute with a value: a number, or anything like an array."""
    return isinstance(value, Number | np.generic | list | tuple) or any(
        hasattr(type(value), protocol) for protocol in ARRAY_PROTOCOLS
    )


def refused(operation: str) -> NoReturn:
    """Refuse an operation, and say how to go on."""
    raise TypeError(f"{operation}: {REMEDY}")


def of_two(symbol: str) -> Callable[[Any, object], Any]:
    """An operator between a tensor and another value."""

    def refuse(x: Uncomputed, other: object) -> Any:
        if is_computable(other):
            refused(f"{type(x).__name__} {symbol} {type(other).__name__}")
        return NotImplemented  # let the other's class answer; of `==` Python makes a comparison by identity

    return refuse


def of_two_reflected(symbol: str) -> Callable[[Any, object], Any]:
    """An operator between another value and a tensor."""

    def refuse(x: Uncomputed, other: object) -> Any:
        if is_computable(other):
            refused(f"{type(other).__name__} {symbol} {type(x).__name__}")
        return NotImplemented

    return refuse


def of_one(symbol: str) -> Callable[[Any], NoReturn]:
    """An operator on a tensor alone."""

    def refuse(x: Uncomputed) -> NoReturn:
        refused(symbol.format(type(x).__name__))

    return refuse


class Uncomputed:
    """Refuses comparison and arithmetic with tensors, arrays and numbers; identity makes keys and hashes."""

    __slots__ = ()

    __hash__ = object.__hash__

    __eq__ = of_two("==")
    __ne__ = of_two("!=")
    __lt__, __gt__ = of_two("<"), of_two(">")
    __le__, __ge__ = of_two("<="), of_two(">=")

    __add__, __radd__ = of_two("+"), of_two_reflected("+")
    __sub__, __rsub__ = of_two("-"), of_two_reflected("-")
    __mul__, __rmul__ = of_two("*"), of_two_reflected("*")
    __matmul__, __rmatmul__ = of_two("@"), of_two_reflected("@")
    __truediv__, __rtruediv__ = of_two("/"), of_two_reflected("/")
    __floordiv__, __rfloordiv__ = of_two("//"), of_two_reflected("//")
    __mod__, __rmod__ = of_two("%"), of_two_reflected("%")
    __divmod__, __rdivmod__ = of_two("divmod"), of_two_reflected("divmod")
    __pow__, __rpow__ = of_two("**"), of_two_reflected("**")
    __lshift__, __rlshift__ = of_two("<<"), of_two_reflected("<<")
    __rshift__, __rrshift__ = of_two(">>"), of_two_reflected(">>")
    __and__, __rand__ = of_two("&"), of_two_reflected("&")
    __or__, __ror__ = of_two("|"), of_two_reflected("|")
    __xor__, __rxor__ = of_two("^"), of_two_reflected("^")

    __neg__, __pos__ = of_one("-{}"), of_one("+{}")
    __invert__, __abs__ = of_one("~{}"), of_one("abs({})")

    def __contains__(self, value: object) -> NoReturn:
        refused(f"{type(value).__name__} in {type(self).__name__}")

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **options: Any) -> NoReturn:
        called = "" if method == "__call__" else f".{method}"
        refused(f"numpy.{ufunc.__name__}{called}")

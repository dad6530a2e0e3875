"""Checks of integer arguments, which return plain integers or raise errors with the argument's name."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
from numpy.exceptions import AxisError
from numpy.typing import NDArray

Integers: TypeAlias = Iterable[SupportsIndex]
OneOrMore: TypeAlias = SupportsIndex | Integers

MAX_RANK = 8
U32_MAX = 2**32 - 1
I32_MIN, I32_MAX = -(2**31), 2**31 - 1
I64_MIN, I64_MAX = -(2**63), 2**63 - 1


def integer(name: str, value: SupportsIndex) -> int:
    """Return an integer as an int; raises TypeError for other values (floats are not rounded)."""
    try:
        return operator.index(value)
    except TypeError:
        raise TypeError(f"{name} = {value!r}: must be an integer, not {type(value).__name__}") from None


def integers(name: str, values: Integers) -> tuple[int, ...]:
    """Return an ordered iterable of integers as a tuple of int."""
    if isinstance(values, (tuple, list)):
        try:
            return tuple(map(operator.index, values))
        except TypeError:
            pass  # the check below names it
    if hasattr(values, "__array_namespace__"):
        values = np.asarray(values)  # reads a tensor back once rather than per element
    unordered = isinstance(values, (str, bytes, set, frozenset, dict))
    if unordered or not isinstance(values, Iterable):
        raise TypeError(f"{name} = {values!r}: must be a sequence of integers, not {type(values).__name__}")
    return tuple(integer(f"{name}[{axis}]", item) for axis, item in enumerate(values))


def one_or_more(name: str, value: OneOrMore) -> tuple[int, ...]:
    """Return one integer, or a sequence of them, as a tuple."""
    try:
        return (operator.index(value),)  # type: ignore[arg-type]  # what has no index is a sequence
    except TypeError:
        return integers(name, value) if isinstance(value, Iterable) else (integer(name, value),)


def flat_integers(name: str, value: Any) -> tuple[int, ...]:
    """Return one or more integers; raises ValueError, as NumPy, for text and nested sequences."""
    given = np.asarray(value)
    if given.ndim > 1 or given.dtype.kind in "US":
        raise ValueError(f"{name} = {value!r}: must be one integer or a sequence of them")
    return one_or_more(name, given.tolist())


def order_letter(order: str | None) -> str:
    """Return NumPy's order of elements as C, F, A or K; accepts lower case, and None as C."""
    if order is None:
        return "C"
    if not isinstance(order, str):
        raise TypeError(f"order must be str, not {type(order).__name__}")
    if order.upper() not in ("C", "F", "A", "K"):
        raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")
    return order.upper()


def copy_choice(copy: object) -> bool | None:
    """Return NumPy's argument `copy` as its truth value, or None; refuses text."""
    if isinstance(copy, str):
        raise ValueError("strings are not allowed for 'copy' keyword. Use True/False/None instead.")
    return None if copy is None else bool(copy)


def check_within(
    name: str, values: Sequence[int], lowest: int, highest: int, error: type[ValueError] = ValueError
) -> None:
    """Refuse the first of `values` that is not in `lowest` to `highest`."""
    for axis, value in enumerate(values):
        if not lowest <= value <= highest:
            raise error(f"{name}[{axis}] = {value}: must be an integer from {lowest} to {highest}")


def checked_shape(shape: OneOrMore) -> tuple[int, ...]:
    """Return checked sizes from one integer or several."""
    sizes = one_or_more("shape", shape)
    if len(sizes) > MAX_RANK:
        raise ValueError(f"shape {sizes} has rank {len(sizes)}: the rank must be 0 to {MAX_RANK}")
    check_within("shape", sizes, 0, U32_MAX)
    return sizes


def tensor_sizes(sizes: Integers) -> tuple[int, ...]:
    """Return checked sizes of a converter's input."""
    given = integers("input_sizes", sizes)
    check_within("input_sizes", given, 0, U32_MAX)
    return given


def one_axis(name: str, axis: SupportsIndex, rank: int) -> int:
    """Return an axis as 0 to rank - 1; refuses a sequence."""
    number = integer(name, axis)
    if not -rank <= number < rank:
        raise AxisError(number, rank)
    return number % rank


def distinct_axes(name: str, axes: OneOrMore, rank: int) -> list[int]:
    """Return axes as 0 to rank - 1; refuses repeated ones."""
    given = one_or_more(name, axes)
    normalized = [one_axis(name, axis, rank) for axis in given]
    if len(set(normalized)) < len(normalized):
        raise ValueError(f"{name} = {given}: an axis is repeated")
    return normalized


def checked_offset(offset: SupportsIndex, itemsize: int) -> int:
    """Return a byte offset in elements."""
    nbytes = integer("offset", offset)
    if nbytes < 0 or nbytes % itemsize:
        raise ValueError(
            f"offset = {nbytes} bytes: must be a multiple of the item size, {itemsize}, and at least 0"
        )
    return nbytes // itemsize


def int64_of(array: NDArray[Any]) -> NDArray[np.int64]:
    """Return integers as int64; uint64 values beyond its range become its maximum."""
    fitting = np.minimum(array, np.uint64(I64_MAX)) if array.dtype == np.uint64 else array
    return fitting.astype(np.int64)


MAX_CACHED_VALUES = 2048  # of an array that caches compare by its content


class Made(NamedTuple):
    """Cache key of an argument: the call that makes it again. It equals no tuple of integers."""

    make: Callable[..., Any]
    arguments: tuple[Any, ...]


def key_of(value: Any, most_values: int = MAX_CACHED_VALUES) -> Any:
    """Return the cache key of an argument; NotImplemented for large arrays and other types, such as list."""
    if type(value) is np.ndarray:
        small = value.dtype.kind in "biu" and value.size <= most_values
        return Made(np.ndarray, (value.shape, value.dtype, value.tobytes())) if small else NotImplemented
    if type(value) is slice:
        parts = value.start, value.stop, value.step
        plain = all(part is None or type(part) is int for part in parts)
        return Made(slice, parts) if plain else NotImplemented
    if type(value) is tuple:
        return value if all(type(item) is int for item in value) else NotImplemented
    known = value is None or value is Ellipsis or type(value) in (int, str, bytes)
    return value if known else NotImplemented


def value_of(key: Any) -> Any:
    """Return the argument of a cache key."""
    return key.make(*key.arguments) if isinstance(key, Made) else key

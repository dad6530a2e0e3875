"""What kernels compute, for all invocations at once; operations that may go wrong report where they do.

Numbers are Python's, or arrays of int64 that hold the values of u32 or i32.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from functools import reduce
from typing import Any, TypeAlias

import numpy as np
from checker.findings import Findings
from numpy.typing import NDArray

Value: TypeAlias = Any  # a number, an array over invocations, or a tuple of values
Mask: TypeAlias = NDArray[np.bool_] | None

MOST, I32_MIN = 2**32 - 1, -(2**31)
MAX_ITERATIONS = 2**10  # of a loop; no kernel has as many in what is executed


def both(mask: Mask, condition: Value) -> Mask:
    """Return the invocations of a mask where a condition holds; the same mask if it holds in all of them."""
    if mask is None or condition is True:
        return mask
    if condition is False:
        return None
    left = mask & condition
    count = np.count_nonzero(left)
    if not count:
        return None
    return mask if count == np.count_nonzero(mask) else left


def without(alive: Value, mask: Mask) -> Value:
    """Return the invocations that remain after some return."""
    return alive & ~mask if mask is not None else alive


def merge(mask: Mask, new: Value, old: Value) -> Value:
    """Return the new value where a mask is set, and the old one elsewhere."""
    if old is None or new is old:
        return new
    if isinstance(new, tuple):
        return tuple(merge(mask, one, other) for one, other in zip(new, old, strict=True))
    if not isinstance(new, np.ndarray) and not isinstance(old, np.ndarray) and new == old:
        return new
    return np.where(mask, new, old)  # type: ignore[arg-type]  # of structs that were taken apart


def into(mask: Mask, owner: Mask, new: Value, old: Value) -> Value:
    """Return the new value, merged where a variable has more invocations than the mask."""
    return new if mask is owner else merge(mask, new, old)


def put(whole: Value, index: int, value: Value) -> Value:
    """Return a tuple with one part replaced."""
    return (*whole[:index], value, *whole[index + 1 :])


def swizzle(whole: Value, *numbers: int) -> Value:
    """Return some components of a vector."""
    return tuple(whole[number] for number in numbers)


def each(operation: Callable[..., Value], *arguments: Value) -> Value:
    """Return an operation of each component; scalars are used for all of them."""
    size = next(len(argument) for argument in arguments if isinstance(argument, tuple))
    columns = [argument if isinstance(argument, tuple) else (argument,) * size for argument in arguments]
    return tuple(map(operation, *columns))


def not_(value: Value) -> Value:
    """Return the negation of a condition."""
    return ~value if isinstance(value, np.ndarray) else not value


def land(mask: Mask, one: Value, other: Callable[[Mask], Value]) -> Value:
    """Return whether both conditions hold; the second one is evaluated where the first one does."""
    left = both(mask, one)
    if left is None:
        return False
    return other(left) if left is mask else one & other(left)


def lor(mask: Mask, one: Value, other: Callable[[Mask], Value]) -> Value:
    """Return whether a condition holds; the second one is evaluated where the first one does not."""
    left = both(mask, not_(one))
    if left is None:
        return True
    return other(left) if left is mask else one | other(left)


def select(no: Value, yes: Value, condition: Value) -> Value:
    """Return one of two values, or of their components."""
    if isinstance(no, tuple):
        conditions = condition if isinstance(condition, tuple) else (condition,) * len(no)
        return tuple(map(select, no, yes, conditions))
    if isinstance(condition, np.ndarray):
        return np.where(condition, yes, no)
    return yes if condition else no


def lesser(a: Value, b: Value) -> Value:
    """Return the minimum."""
    return min(a, b) if isinstance(a, int) and isinstance(b, int) else np.minimum(a, b)


def greater(a: Value, b: Value) -> Value:
    """Return the maximum."""
    return max(a, b) if isinstance(a, int) and isinstance(b, int) else np.maximum(a, b)


def clamp(value: Value, low: Value, high: Value) -> Value:
    """Return a value between bounds."""
    return lesser(greater(value, low), high)


def signed(value: Value) -> Value:
    """Return the i32 with the bits of a number modulo 2^32."""
    return ((value - I32_MIN) & MOST) + I32_MIN


class Arithmetic:
    """Operations that report what they should not do."""

    def __init__(self, findings: Findings) -> None:
        self.findings = findings

    def checked(self, lowest: int, result: Value, m: Mask, line: int) -> Value:
        """Return the 32-bit number, from `lowest` on, that a result is on hardware; report a wrap."""
        whole = isinstance(result, np.ndarray)
        least, most = (result.min(), result.max()) if whole else (result, result)
        if least >= lowest and most <= lowest + MOST:
            return result
        self.findings.note(
            "wrap", line, m, (result < lowest) | (result > lowest + MOST), "a wrap", result=result
        )
        return ((result - lowest) & MOST) + lowest

    def refuse(self, kind: str, wrong: Value, m: Mask, line: int, what: str, **values: Value) -> bool:
        """Report a condition where it holds; return whether it does anywhere."""
        if not (wrong.any() if isinstance(wrong, np.ndarray) else wrong):
            return False
        self.findings.note(kind, line, m, wrong, what, **values)
        return True

    def divisor(self, value: Value, m: Mask, line: int) -> Value:
        """Return a divisor, 1 instead of 0; report zeros."""
        zero = value == 0
        return value + zero if self.refuse("division", zero, m, line, "a division by zero") else value

    def shift(self, bits: Value, m: Mask, line: int) -> Value:
        """Return the bits of a shift modulo 32; report 32 and more."""
        self.refuse("shift", bits > 31, m, line, "a shift by 32 bits or more", bits=bits)
        return bits & 31

    def div_u32(self, a: Value, b: Value, m: Mask, line: int) -> Value:
        return a // self.divisor(b, m, line)

    def rem_u32(self, a: Value, b: Value, m: Mask, line: int) -> Value:
        return a % self.divisor(b, m, line)

    def div_i32(self, a: Value, b: Value, m: Mask, line: int) -> Value:
        b = self.divisor(b, m, line)
        return select(1, -1, (a < 0) ^ (b < 0)) * (abs(a) // abs(b))

    def shl_u32(self, a: Value, b: Value, m: Mask, line: int) -> Value:
        return (a << self.shift(b, m, line)) & MOST

    def shr(self, a: Value, b: Value, m: Mask, line: int) -> Value:
        return a >> self.shift(b, m, line)

    def width(self, offset: Value, count: Value, m: Mask, line: int) -> Value:
        """Return a mask of `count` bits; report bits beyond a word."""
        beyond = offset + count > 32
        self.refuse("shift", beyond, m, line, "bits beyond a word", offset=offset, count=count)
        return (1 << lesser(count, 32)) - 1

    def extract(self, value: Value, offset: Value, count: Value, m: Mask, line: int) -> Value:
        return (value >> lesser(offset, 32)) & self.width(offset, count, m, line)

    def extract_signed(self, value: Value, offset: Value, count: Value, m: Mask, line: int) -> Value:
        found = self.extract(value & MOST, offset, count, m, line)
        return found - ((found >> greater(count - 1, 0)) << lesser(count, 32))

    def insert(self, value: Value, bits: Value, offset: Value, count: Value, m: Mask, line: int) -> Value:
        ones = (self.width(offset, count, m, line) << lesser(offset, 32)) & MOST
        return (value & ~ones) | ((bits << lesser(offset, 32)) & ones)

    def pick(self, whole: Value, index: Value, m: Mask, line: int) -> Value:
        """Return a component of a vector, or an element of an array of one invocation."""
        if self.refuse("bounds", index >= len(whole), m, line, "an index beyond an array", index=index):
            index = lesser(index, len(whole) - 1)
        if isinstance(index, int):
            return whole[index]
        if isinstance(whole[0], tuple):
            return tuple(self.pick(column, index, m, line) for column in zip(*whole, strict=True))
        columns = np.stack(np.broadcast_arrays(*whole, index)[:-1])
        return np.take_along_axis(columns, index[None], 0)[0]

    def iteration(self, iterations: int, m: Mask, line: int) -> int:
        """Count the iterations of a loop; stop those that never end."""
        if iterations >= MAX_ITERATIONS:
            self.findings.note("loop", line, m, True, f"a loop of more than {MAX_ITERATIONS:,} iterations")
            raise EndlessLoopError
        return iterations + 1

    def names(self) -> dict[str, Any]:
        """Return the functions by the names that translated modules use."""
        found: dict[str, Any] = dict(PLAIN)
        for sign in ("add", "sub", "mul"):
            exact = getattr(operator, sign)
            for kind, lowest in (("u32", 0), ("i32", I32_MIN)):
                found[f"{sign}_{kind}"] = lambda a, b, m, line, exact=exact, lowest=lowest: self.checked(
                    lowest, exact(a, b), m, line
                )
            found[f"{sign}_u32_wrapping"] = lambda a, b, exact=exact: exact(a, b) & MOST
            found[f"{sign}_i32_wrapping"] = lambda a, b, exact=exact: signed(exact(a, b))
        own = ("div_u32", "rem_u32", "div_i32", "shl_u32", "pick", "iteration")
        found |= {name: getattr(self, name) for name in own}
        found |= {
            "shr_u32": self.shr,
            "extractBits_u32": self.extract,
            "extractBits_i32": self.extract_signed,
        }
        return found | {"insertBits_u32": self.insert}


class EndlessLoopError(Exception):
    """A loop has not ended; its dispatch is given up."""


PLAIN = {
    **{function.__name__: function for function in (both, without, merge, into, put, swizzle, each, not_)},
    **{function.__name__: function for function in (land, lor, select)},
    "min_of": lesser,
    "max_of": greater,
    "clamp_of": clamp,
    "abs_of": abs,
    "any_of": lambda whole: reduce(lambda a, b: a | b, whole),
    "all_of": lambda whole: reduce(lambda a, b: a & b, whole),
    "shl_u32_wrapping": lambda a, b: (a << (b & 31)) & MOST,
    "shr_u32_wrapping": lambda a, b: a >> (b & 31),
    "u32_of_bool": lambda value: value + 0,
    "i32_of_bool": lambda value: value + 0,
    "u32_of_i32": lambda value: value & MOST,
    "i32_of_u32": signed,
    **{name: getattr(operator, name) for name in ("and_", "or_", "xor", "eq", "ne", "lt", "gt", "le", "ge")},
}

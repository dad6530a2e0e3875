"""The standard's functions that are absent, most of them since they compute: each refuses by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from wgslice.tensors.uncomputed import refused

__all__ = ["REFUSED", "refusing"]

# Chapter by chapter: of elements, linear algebra, searching, sets, sorting, statistics, utilities.
# fmt: off
REFUSED = (
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and", "bitwise_invert",
    "bitwise_left_shift", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "ceil", "clip", "conj",
    "copysign", "cos", "cosh", "divide", "equal", "exp", "expm1", "floor", "floor_divide", "greater",
    "greater_equal", "hypot", "imag", "isfinite", "isinf", "isnan", "less", "less_equal", "log", "log10",
    "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "logical_xor", "maximum",
    "minimum", "multiply", "negative", "nextafter", "not_equal", "positive", "pow", "real", "reciprocal",
    "remainder", "round", "sign", "signbit", "sin", "sinh", "sqrt", "square", "subtract", "tan", "tanh",
    "trunc",
    "matmul", "tensordot", "vecdot",
    "argmax", "argmin", "count_nonzero", "nonzero", "searchsorted",
    "isin", "unique_all", "unique_counts", "unique_inverse", "unique_values",
    "argsort", "sort",
    "cumulative_prod", "cumulative_sum", "max", "mean", "min", "prod", "std", "sum", "var",
    "all", "any", "diff",
)
# fmt: on


def refusing(name: str) -> Callable[..., NoReturn]:
    """A function of that name; whatever it is called with, an error says how to go on."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        refused(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refused by a NotImplementedError."
    return refuse

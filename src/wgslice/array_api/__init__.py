"""The Python array API standard, version 2025.12, for everything that moves elements.

Signatures and semantics are the standard's, https://data-apis.org/array-api/2025.12; a tensor leads here by
`x.__array_namespace__()`. What can be a view is one; anything else is packed, in a buffer of its own, and
one submission that is not waited for. Elements are moved and never converted, so that functions of several
tensors need one dtype. What computes raises a ComputationRefused by its name; the extensions `linalg` and
`fft` are absent.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

from wgslice.array_api.creation import (
    arange,
    asarray,
    empty,
    empty_like,
    eye,
    from_dlpack,
    full,
    full_like,
    linspace,
    ones,
    ones_like,
    zeros,
    zeros_like,
)
from wgslice.array_api.data_type_functions import astype, can_cast, finfo, iinfo, isdtype, result_type
from wgslice.array_api.data_type_functions import namespace_info as __array_namespace_info__
from wgslice.array_api.data_types import (
    bool,
    complex64,
    complex128,
    e,
    float32,
    float64,
    inf,
    int8,
    int16,
    int32,
    int64,
    nan,
    newaxis,
    pi,
    uint8,
    uint16,
    uint32,
    uint64,
)
from wgslice.array_api.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    meshgrid,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    take,
    take_along_axis,
    tile,
    tril,
    triu,
    unstack,
    where,
)
from wgslice.array_api.manipulation import lib as lib  # not of the standard: xarray looks for it here
from wgslice.numpy_protocol.moving import pad as pad  # as well
from wgslice.tensors.absent import refused

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"  # each is a part of the next
__array_api_version__ = VERSIONS[-1]


# Functions of the standard that are absent, most of them since they compute, chapter by chapter: of elements,
# linear algebra, searching, sets, sorting, statistics, utilities.
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


def __getattr__(name: str) -> Any:
    if name in REFUSED:
        return refusing(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__"]  # without what it refuses


__all__ = [
    "__array_api_version__",
    "__array_namespace_info__",
    "arange",
    "asarray",
    "astype",
    "bool",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "can_cast",
    "complex64",
    "complex128",
    "concat",
    "e",
    "empty",
    "empty_like",
    "expand_dims",
    "eye",
    "finfo",
    "flip",
    "float32",
    "float64",
    "from_dlpack",
    "full",
    "full_like",
    "iinfo",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "isdtype",
    "linspace",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "nan",
    "newaxis",
    "ones",
    "ones_like",
    "permute_dims",
    "pi",
    "repeat",
    "reshape",
    "result_type",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "unstack",
    "where",
    "zeros",
    "zeros_like",
]

"""The Python array API standard, version 2025.12, for everything that moves elements.

Signatures and semantics are the standard's, https://data-apis.org/array-api/2025.12;
`x.__array_namespace__()` of a tensor returns this module. Results are views if possible; others are packed,
in new buffers, by one submission that is not waited for. Elements are moved and never converted,
so that functions of several tensors need one dtype. Functions that compute raise ComputationRefused; the
extensions `linalg` and `fft` are absent.
"""

from __future__ import annotations

from collections.abc import Callable
from math import e, inf, nan, pi
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np

import wgslice.array_api.creation as creation
import wgslice.array_api.data_type_functions as data_type_functions
import wgslice.array_api.manipulation as manipulation
from wgslice.array_api.creation import *
from wgslice.array_api.data_type_functions import *
from wgslice.array_api.manipulation import *
from wgslice.numpy_protocol.moving import pad as pad  # not of the standard: for xarray, as `lib`
from wgslice.tensors import strided_views
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uncomputed import refused

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"  # each is a part of the next
__array_api_version__ = VERSIONS[-1]
__array_namespace_info__ = data_type_functions.Info

lib = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=strided_views.sliding_window_view))

# Data types, which are NumPy's.
bool = np.dtype(np.bool_)
int8 = np.dtype(np.int8)
int16 = np.dtype(np.int16)
int32 = np.dtype(np.int32)
int64 = np.dtype(np.int64)
uint8 = np.dtype(np.uint8)
uint16 = np.dtype(np.uint16)
uint32 = np.dtype(np.uint32)
uint64 = np.dtype(np.uint64)
float32 = np.dtype(np.float32)
float64 = np.dtype(np.float64)
complex64 = np.dtype(np.complex64)
complex128 = np.dtype(np.complex128)

newaxis = None


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
    """Return a function of that name that raises ComputationRefused with the remedy."""

    def refuse(*_: Any, **__: Any) -> NoReturn:
        refused(name)

    refuse.__name__ = refuse.__qualname__ = name
    refuse.__doc__ = "Refused by a NotImplementedError."
    return refuse


def any(x: Any, /, **options: Any) -> Tensor:
    """Return whether the element of a tensor of at most one is true, read back; refused for others.

    By the truth value of one element, array_api_compat finds out whether a library's arrays are lazy.
    """
    if options or not isinstance(x, Tensor) or x.size > 1:
        refused("any")
    return creation.asarray(x.size == 1 and x.__bool__(), device=x.device)


def __getattr__(name: str) -> Any:
    if name in REFUSED:
        return refusing(name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__all__", "__doc__"]  # without what it refuses


__all__ = ["__array_api_version__", "__array_namespace_info__"]
__all__ += [*data_type_functions.STANDARD, "e", "inf", "nan", "newaxis", "pi"]
__all__ += creation.__all__
__all__ += data_type_functions.__all__
__all__ += manipulation.__all__

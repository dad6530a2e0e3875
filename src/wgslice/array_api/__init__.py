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

import wgslice.array_api.creation as creation
import wgslice.array_api.data_type_functions as data_type_functions
import wgslice.array_api.data_types as data_types
import wgslice.array_api.manipulation as manipulation
from wgslice.array_api.creation import *
from wgslice.array_api.data_type_functions import *
from wgslice.array_api.data_types import *
from wgslice.array_api.manipulation import *
from wgslice.array_api.manipulation import lib as lib  # not of the standard: xarray looks for it here
from wgslice.numpy_protocol.moving import pad as pad  # as well
from wgslice.tensors.uncomputed import refused

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"  # each is a part of the next
__array_api_version__ = VERSIONS[-1]
__array_namespace_info__ = data_type_functions.Info


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


__all__ = ["__array_api_version__", "__array_namespace_info__"]
__all__ += creation.__all__
__all__ += data_type_functions.__all__
__all__ += data_types.__all__
__all__ += manipulation.__all__

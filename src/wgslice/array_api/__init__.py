"""The Python array API standard, version 2025.12, for everything that moves elements.

Signatures and semantics are the standard's, https://data-apis.org/array-api/2025.12; a tensor leads here by
`x.__array_namespace__()`. What can be a view is one; anything else is packed, in a buffer of its own, and
one submission that is not waited for. Elements are moved and never converted, so that functions of several
tensors need one dtype. What computes raises a ComputationRefused by its name; the extensions `linalg` and
`fft` are absent.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

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
    meshgrid,
    ones,
    ones_like,
    tril,
    triu,
    zeros,
    zeros_like,
)
from wgslice.array_api.data_type_functions import astype, can_cast, finfo, iinfo, isdtype, result_type
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
from wgslice.array_api.indexing import take, take_along_axis, where
from wgslice.array_api.info import namespace_info as __array_namespace_info__
from wgslice.array_api.manipulation import (
    broadcast_arrays,
    broadcast_shapes,
    broadcast_to,
    concat,
    expand_dims,
    flip,
    matrix_transpose,
    moveaxis,
    permute_dims,
    repeat,
    reshape,
    roll,
    squeeze,
    stack,
    tile,
    unstack,
)
from wgslice.array_api.refused import REFUSED, refusing
from wgslice.arrays.padding import pad as pad  # not of the standard: xarray looks for it here

VERSIONS = "2021.12", "2022.12", "2023.12", "2024.12", "2025.12"  # each is a part of the next
__array_api_version__ = VERSIONS[-1]


def __getattr__(name: str) -> Any:
    if name == "lib":  # not of the standard: xarray looks there for sliding windows
        return import_module("wgslice.array_api.lib")
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

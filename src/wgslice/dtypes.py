"""NumPy dtypes that elements can have; copies move bits, so only the element width matters."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import DTypeLike, NDArray

type_widths = (1, 2, 4, 8, 16)

DType = np.dtype[np.generic]
AnyDType: TypeAlias = DTypeLike | None


def element_dtype(dtype: DTypeLike) -> DType:
    """Return a dtype in native byte order; raises TypeError if no element can have it."""
    if dtype is None:
        raise TypeError("dtype None: name one")
    if isinstance(dtype, int):
        raise TypeError(
            f"Cannot interpret '{dtype}' as a data type: a shape is one tuple, and x.reshape takes sizes"
        )
    given = np.dtype(dtype)
    if given.hasobject:
        raise TypeError(f"dtype {given}: must be numbers or bools, not Python objects")
    if issubclass(given.type, (np.str_, np.bytes_, np.void)):
        raise TypeError(
            f"dtype {given}: strings and structured dtypes are unsupported: pass x.view(np.uint8)"
        )
    if given.itemsize not in type_widths:
        raise TypeError(f"dtype {given}: an element has 1, 2, 4, 8 or 16 bytes, this one {given.itemsize}")
    return given if given.isnative else given.newbyteorder("=")


def view_dtype(dtype: DTypeLike) -> DType:
    """Return an element dtype for bytes that stay as they are; refuses another byte order than theirs."""
    element = element_dtype(dtype)
    if not np.dtype(dtype).isnative:
        raise TypeError(
            f"dtype {np.dtype(dtype)}: must be in this machine's byte order, in which bytes of a buffer "
            "are read; x.numpy().view(dtype) reads them in the other"
        )
    return element


def native_array(array: NDArray[Any]) -> NDArray[Any]:
    """Return an array for upload, row-major and in native byte order; itself if it is so already."""
    return array.astype(element_dtype(array.dtype), order="C", copy=False)


def check_same_dtype(input: DType, output: DType) -> None:
    """Refuse an output whose dtype differs from the input's."""
    if input != output:
        raise TypeError(
            f"output has dtype {output}, the input {input}: must be equal; "
            "asarray(x.numpy().astype(...)) converts"
        )

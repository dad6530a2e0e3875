"""Which NumPy dtypes an element can have. A copy moves bits, so a dtype is its width."""

from __future__ import annotations

import numpy as np
from numpy.typing import DTypeLike

__all__ = ["DType", "element_dtype"]

type_widths = (1, 2, 4, 8, 16)

DType = np.dtype[np.generic]


def element_dtype(dtype: DTypeLike) -> DType:
    """`dtype` in native byte order, or a TypeError that says why it cannot be an element."""
    given = np.dtype(dtype)
    if given.hasobject:
        raise TypeError(f"dtype {given}: Python objects do not live on a GPU")
    native = given.newbyteorder("=")
    if native.type in (np.str_, np.bytes_, np.void):
        raise TypeError(f"dtype {native}: text and records are no elements; view them as integers")
    if native.itemsize not in type_widths:
        raise TypeError(f"dtype {native}: an element has 1, 2, 4, 8 or 16 bytes, this one {native.itemsize}")
    return native

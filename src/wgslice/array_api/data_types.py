"""The standard's data types, which are NumPy's, and its constants."""

from __future__ import annotations

import numpy as np

from wgslice.dtypes import DType

__all__ = [
    "bool",
    "complex64",
    "complex128",
    "e",
    "float32",
    "float64",
    "inf",
    "int8",
    "int16",
    "int32",
    "int64",
    "nan",
    "newaxis",
    "pi",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
]

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

DTYPES: dict[str, DType] = {name: kind for name, kind in globals().items() if isinstance(kind, np.dtype)}

e = float(np.e)
inf = float(np.inf)
nan = float(np.nan)
newaxis = None
pi = float(np.pi)

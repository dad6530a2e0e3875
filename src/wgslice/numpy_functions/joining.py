"""NumPy's functions that put arrays together; arrays beside tensors are uploaded to the tensors' device."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from wgslice.arrays import concat
from wgslice.numpy_functions.options import check_dtype, check_unused
from wgslice.numpy_functions.viewing import atleast_1d, atleast_2d, atleast_3d
from wgslice.tensors.creation import asarray
from wgslice.tensors.tensor import Tensor

__all__ = ["column_stack", "concatenate", "dstack", "hstack", "stack", "vstack"]


def as_tensors(arrays: Iterable[Any], dtype: Any = None) -> list[Tensor]:
    """Tensors as they are, and what is none on the device of the first tensor; all have its dtype."""
    given = [each if isinstance(each, Tensor) else np.asarray(each) for each in arrays]
    first = next(each for each in given if isinstance(each, Tensor))
    check_dtype("dtype", dtype, first.dtype)
    for number, each in enumerate(given):
        check_dtype(f"the dtype of arrays[{number}]", each.dtype, first.dtype)
    return [each if isinstance(each, Tensor) else asarray(each, device=first.device) for each in given]


def concatenate(
    arrays: Iterable[Any], axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Put arrays one behind the other."""
    check_unused(out=out)
    return concat.concat(as_tensors(arrays, dtype), axis)


def stack(
    arrays: Iterable[Any], axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: str = "same_kind"
) -> Tensor:
    """Put arrays one behind the other along a new dimension."""
    check_unused(out=out)
    return concat.stack(as_tensors(arrays, dtype), axis)


def vstack(tup: Iterable[Any], *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Put arrays, or rows, below each other."""
    return concat.concat([atleast_2d(each) for each in as_tensors(tup, dtype)], 0)


def hstack(tup: Iterable[Any], *, dtype: Any = None, casting: str = "same_kind") -> Tensor:
    """Put arrays beside each other, those of one dimension one behind the other."""
    tensors = [atleast_1d(each) for each in as_tensors(tup, dtype)]
    return concat.concat(tensors, 0 if tensors[0].ndim == 1 else 1)


def dstack(tup: Iterable[Any]) -> Tensor:
    """Put arrays one behind the other along the third dimension."""
    return concat.concat([atleast_3d(each) for each in as_tensors(tup)], 2)


def column_stack(tup: Iterable[Any]) -> Tensor:
    """Put columns beside each other."""
    tensors = as_tensors(tup)
    return concat.concat([each if each.ndim > 1 else atleast_2d(each).T for each in tensors], 1)

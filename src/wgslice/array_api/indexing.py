"""Elements taken by tensors of indices, which stay on the device; negative ones count from the end."""

from __future__ import annotations

from typing import SupportsIndex

from wgslice.arrays import taking
from wgslice.errors import named
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["take", "take_along_axis"]


def take(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Elements by their indices along a dimension, which must be named unless there is but one: a copy."""
    with named("take"):
        check_tensor("x", x)
        check_tensor("indices", indices)
        if axis is None and x.ndim != 1:
            raise ValueError(f"x has {x.ndim} dimensions: name the axis")
    return taking.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex = -1) -> Tensor:
    """An element for each index, along a dimension: a copy."""
    with named("take_along_axis"):
        check_tensor("x", x)
        check_tensor("indices", indices)
    return taking.take_along_axis(x, indices, axis)

"""Elements taken by tensors of indices, which stay on the device, and elements chosen by masks."""

from __future__ import annotations

from typing import SupportsIndex

import numpy as np

from wgslice.array_api.data_type_functions import result_type
from wgslice.arrays import taking
from wgslice.errors import named
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, packed_copy
from wgslice.tensors.views import broadcast_to

__all__ = ["take", "take_along_axis", "where"]


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


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Elements of `x1` where a mask is true, else of `x2`, broadcast together: a copy.

    `x1` and `x2` have one dtype; one of them may be a number. The mask is read back, which waits.
    """
    with named("where"):
        check_tensor("condition", condition)
        if condition.dtype != np.bool_:
            raise TypeError(f"condition has dtype {condition.dtype}: must be bool")
        tensors = [each for each in (x1, x2) if isinstance(each, Tensor)]
        if not tensors:
            raise TypeError("x1 or x2 must be a Tensor")
        result_type(x1, x2)
        if len({each.dtype for each in tensors}) > 1:
            raise TypeError(f"x1 has dtype {tensors[0].dtype}, x2 {tensors[1].dtype}: must be equal")
        shape = np.broadcast_shapes(condition.shape, *(each.shape for each in tensors))
        mask = np.broadcast_to(condition.numpy(), shape)
        if isinstance(x2, Tensor) and (x2.ndim or not isinstance(x1, Tensor)):
            ground, other = x2, x1
        else:
            assert isinstance(x1, Tensor)
            ground, other, mask = x1, x2, ~mask
        result = packed_copy(broadcast_to(ground, shape))
        if isinstance(other, Tensor) and other.ndim:
            result[mask] = broadcast_to(other, shape)[mask]
        else:  # one number, which may be on another device
            result[mask] = other.to_device(ground.device) if isinstance(other, Tensor) else other
        return result

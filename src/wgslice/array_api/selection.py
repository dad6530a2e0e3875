"""The standard's functions that select elements by indices or masks; and a view of windows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import SupportsIndex

import numpy as np

from wgslice.arguments import MAX_RANK, OneOrMore, distinct_axes, one_or_more
from wgslice.array_api.data_type_functions import result_type
from wgslice.array_api.docstrings import COPY, COPYING, NO_AXIS, documented
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.numpy_protocol import taking
from wgslice.tensors import views
from wgslice.tensors.placed import check_tensor, read_only
from wgslice.tensors.tensor import Tensor, packed_copy

__all__ = ["take", "take_along_axis", "where"]


@documented(
    COPY,
    *COPYING,
    ("TypeError", "`indices` are no integers."),
    ("ValueError", "`axis` is left out, and `x` has not one dimension."),
    NO_AXIS,
    indices=("Tensor of integers", "Of any shape, which replaces the dimension in the result."),
    axis=("int, optional", "The dimension; needed unless `x` has but one."),
)
def take(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy elements at indices of any rank along a dimension, which must be named unless `x` has but one.

    Indices are not read back: negative ones count from the end, one out of range reads the nearest element.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.take(xp.asarray([10, 11, 12]), xp.asarray([2, 0])).numpy()
    array([12, 10])
    """
    with named("take"):
        check_tensor("x", x)
        check_tensor("indices", indices)
        if axis is None and x.ndim != 1:
            raise ValueError(f"x has {x.ndim} dimensions: name the axis")
    return taking.take(x, indices, 0 if axis is None else axis)


@documented(
    COPY,
    *COPYING,
    ("IndexError", "`indices` are no integers, or a size differs along another dimension, and is not 1."),
    ("ValueError", "`indices` have another rank than `x`."),
    NO_AXIS,
    indices=("Tensor of integers", "Of the rank of `x`, and of its sizes or 1 along the other dimensions."),
)
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex = -1) -> Tensor:
    """Copy an element for each index, read as by `take`, along a dimension; the other sizes broadcast.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]), axis=1).numpy()
    array([[2],
           [3]])
    """
    with named("take_along_axis"):
        check_tensor("x", x)
        check_tensor("indices", indices)
    return taking.take_along_axis(x, indices, axis)


@documented(
    COPY,
    *COPYING,
    ("TypeError", "The mask is not of bools, dtypes differ, or neither `x1` nor `x2` is a Tensor."),
    ("ValueError", "The shapes do not broadcast together."),
    condition=("Tensor of bool", "The mask."),
    x1=("Tensor or number", "Elements where the mask is true."),
    x2=("Tensor or number", "Elements where the mask is false."),
)
def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Copy elements of `x1` where a mask is true, else of `x2`, broadcast together.

    `x1` and `x2` have one dtype; one of them may be a number. The mask, of bools, is read back, which waits.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).numpy()
    array([1, 0])
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
        result = packed_copy(views.broadcast_to(ground, shape))
        if isinstance(other, Tensor) and other.ndim:
            result[mask] = views.broadcast_to(other, shape)[mask]
        else:  # one number, which may be on another device
            result[mask] = other.to_device(ground.device) if isinstance(other, Tensor) else other
        return result


def sliding_window_view(x: Tensor, window_shape: OneOrMore, axis: OneOrMore | None = None) -> Tensor:
    """View all windows of a tensor along some dimensions, in new dimensions behind the others.

    The semantics are those of `numpy.lib.stride_tricks.sliding_window_view`. Windows overlap in memory, so
    that the view is read-only.
    """
    with named("sliding_window_view"):
        check_tensor("x", x)
        windows = one_or_more("window_shape", window_shape)
        axes = [*range(x.ndim)] if axis is None else distinct_axes("axis", axis, x.ndim)
        if len(windows) != len(axes):
            raise ValueError(f"window_shape has {len(windows)} sizes, for {len(axes)} axes")
        sizes = list(x.shape)
        for place, window in zip(axes, windows, strict=True):
            if not 1 <= window <= sizes[place]:
                raise ValueError(
                    f"window_shape = {windows}: must be 1 to {sizes[place]}, the size, along axis {place}"
                )
            sizes[place] -= window - 1
        if x.ndim + len(axes) > MAX_RANK:
            raise ValueError(f"the result would have rank {x.ndim + len(axes)}: at most {MAX_RANK}")
        steps = [x.strides[place] for place in axes]
        return read_only(x, Layout.of([*sizes, *windows], [*x.strides, *steps], x.layout.offset))


lib = SimpleNamespace(stride_tricks=SimpleNamespace(sliding_window_view=sliding_window_view))  # for xarray

"""The standard's functions that move and select elements: views where there can be one, else packed copies.

A copy is in a buffer of its own, by one submission that is not waited for. Errors are those of NumPy's
functions: TypeError for what is no tensor and for dtypes that differ, since nothing is converted, ValueError
for sizes that do not fit, more than 8 dimensions, and a buffer that is destroyed, mapped or on another
device, `numpy.exceptions.AxisError` (a ValueError) for an axis out of range, OutOfDeviceMemory,
DeviceLostError.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Literal, SupportsIndex

import numpy as np

from wgslice.arguments import MAX_RANK, OneOrMore, distinct_axes, one_or_more
from wgslice.array_api.data_type_functions import result_type
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.numpy_protocol import joining, moving, taking
from wgslice.tensors import views
from wgslice.tensors.placed import check_tensor, read_only
from wgslice.tensors.tensor import Tensor, packed_copy

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "meshgrid",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "take",
    "take_along_axis",
    "tile",
    "tril",
    "triu",
    "unstack",
    "where",
]


# Of the standard's signatures already.
broadcast_arrays = views.broadcast_arrays


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all broadcast to."""
    with named("broadcast_shapes"):
        return np.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: OneOrMore) -> Tensor:
    """View a tensor in a shape that it broadcasts to, read-only."""
    return views.broadcast_to(x, shape)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """View coordinates of rank 1 or 0, of one dtype, in the grid that they span, read-only."""
    with named("meshgrid"):
        dtypes = {array.dtype for array in arrays if isinstance(array, Tensor)}
        if len(dtypes) > 1:
            listed = " and ".join(sorted(map(str, dtypes)))
            raise ValueError(f"arrays have dtypes {listed}: they must have one")
    return views.meshgrid(*arrays, indexing=indexing)


def concat(arrays: Sequence[Tensor], /, *, axis: SupportsIndex | None = 0) -> Tensor:
    """Copy tensors of one dtype one behind the other along a dimension, or flattened with None."""
    return joining.concat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: SupportsIndex = 0) -> Tensor:
    """Copy n tensors of one shape and dtype into one with a new dimension of size n."""
    return joining.stack(arrays, axis)


def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """View each index along a dimension, which the views do not have."""
    return joining.unstack(x, axis)


def expand_dims(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor with further dimensions of size 1, which are `axis` of the result."""
    return views.expand_dims(x, axis)


def squeeze(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor without some dimensions, all of size 1."""
    return views.squeeze(x, axis)


def flip(x: Tensor, /, *, axis: OneOrMore | None = None) -> Tensor:
    """View a tensor with some or all dimensions reversed."""
    return views.flip(x, axis)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """View matrices `(…, m, n)` as `(…, n, m)`."""
    with named("matrix_transpose"):
        check_tensor("x", x)
        return x.mT


def moveaxis(x: Tensor, source: OneOrMore, destination: OneOrMore, /) -> Tensor:
    """View a tensor with dimensions in other places, the others in order."""
    return views.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: OneOrMore) -> Tensor:
    """View a tensor with its dimensions in another order, which names each of them."""
    with named("permute_dims"):
        check_tensor("x", x)
        return views.permute(x, axes=axes)


def reshape(x: Tensor, /, shape: OneOrMore, *, copy: bool | None = None) -> Tensor:
    """View a tensor in another shape, or copy it where there is no such view, unless `copy` is False."""
    with named("reshape"):
        check_tensor("x", x)
    return views.reshape(x, shape) if copy is False else (x.copy() if copy else x).reshape(shape)


def roll(x: Tensor, /, shift: OneOrMore, *, axis: OneOrMore | None = None) -> Tensor:
    """Copy a tensor with its elements shifted around the ends of dimensions, or of all with None."""
    return moving.roll(x, shift, axis)


def repeat(x: Tensor, repeats: SupportsIndex | Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy each element several times; `repeats` of a tensor are read back first, which waits."""
    return moving.repeat(x, repeats.numpy() if isinstance(repeats, Tensor) else repeats, axis)


def tile(x: Tensor, repetitions: OneOrMore, /) -> Tensor:
    """Copy a tensor several times along each dimension, counted from the last one."""
    return moving.tile(x, repetitions)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the lower triangle of matrices `(…, m, n)`, with zeros above the diagonal `k`."""
    return moving.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the upper triangle of matrices `(…, m, n)`, with zeros below the diagonal `k`."""
    return moving.triu(x, k)


def take(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy elements at indices of any rank along a dimension, which must be named unless `x` has but one.

    Indices are not read back: negative ones count from the end, one out of range reads the nearest element.
    """
    with named("take"):
        check_tensor("x", x)
        check_tensor("indices", indices)
        if axis is None and x.ndim != 1:
            raise ValueError(f"x has {x.ndim} dimensions: name the axis")
    return taking.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex = -1) -> Tensor:
    """Copy an element for each index, read as by `take`, along a dimension; the other sizes broadcast."""
    with named("take_along_axis"):
        check_tensor("x", x)
        check_tensor("indices", indices)
    return taking.take_along_axis(x, indices, axis)


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Copy elements of `x1` where a mask is true, else of `x2`, broadcast together.

    `x1` and `x2` have one dtype; one of them may be a number. The mask, of bools, is read back, which waits.
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

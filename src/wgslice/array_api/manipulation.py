"""The standard's functions that move and select elements: views where there can be one, else packed copies.

A copy is in a buffer of its own, by one submission that is not waited for. Errors that are common to all:
TypeError for what is no tensor, ValueError for a buffer that is destroyed, mapped or on another device,
`numpy.exceptions.AxisError` (a ValueError) for an axis out of range, OutOfDeviceMemory, DeviceLostError.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from types import SimpleNamespace
from typing import Literal, SupportsIndex

import numpy as np

from wgslice.arguments import MAX_RANK, distinct_axes, one_or_more
from wgslice.array_api.data_type_functions import result_type
from wgslice.dialects.numpy_index import numpy_shape
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.numpy_protocol import joining, moving, taking, views
from wgslice.rearrange import reshaped
from wgslice.tensors import views as of_tensors
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

Numbers = SupportsIndex | Iterable[SupportsIndex]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """View tensors in the shape that all broadcast to, read-only.

    Raises ValueError where the shapes do not broadcast.
    """
    return views.broadcast_arrays(*arrays)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all broadcast to; raises ValueError where they do not broadcast."""
    with named("broadcast_shapes"):
        return np.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: Numbers) -> Tensor:
    """View a tensor in a shape that it broadcasts to, read-only.

    Raises ValueError where it does not broadcast, or for more than 8 sizes.
    """
    return of_tensors.broadcast_to(x, shape)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """View coordinates of rank 1 or 0 in the grid that they span, read-only, one view for each.

    The grid has the shape `(n0, n1, n2, …)` with "ij", `(n1, n0, n2, …)` with "xy". Raises ValueError for a
    higher rank, dtypes that differ, or more than 8 coordinates.
    """
    with named("meshgrid"):
        dtypes = {array.dtype for array in arrays if isinstance(array, Tensor)}
        if len(dtypes) > 1:
            listed = " and ".join(sorted(map(str, dtypes)))
            raise ValueError(f"arrays have dtypes {listed}: they must have one")
    return views.meshgrid(*arrays, indexing=indexing)


def concat(arrays: Sequence[Tensor], /, *, axis: SupportsIndex | None = 0) -> Tensor:
    """Copy tensors one behind the other along a dimension, or flattened with None, in one submission.

    Raises TypeError for dtypes that differ, since nothing is converted; ValueError for no tensors, and for
    shapes that differ in other dimensions.
    """
    return joining.concat(arrays, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: SupportsIndex = 0) -> Tensor:
    """Copy n tensors of one shape into one with a new dimension of size n, in one submission.

    Raises TypeError for dtypes that differ; ValueError for no tensors, shapes that differ, or rank 9.
    """
    return joining.stack(arrays, axis)


def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """View each index along a dimension, which the views do not have."""
    return views.unstack(x, axis)


def expand_dims(x: Tensor, /, axis: Numbers) -> Tensor:
    """View a tensor with further dimensions of size 1, which are `axis` of the result.

    Raises ValueError for an axis that is repeated, or a result of more than 8 dimensions.
    """
    return views.expand_dims(x, axis)


def squeeze(x: Tensor, /, axis: Numbers) -> Tensor:
    """View a tensor without some dimensions of size 1; raises ValueError for one of another size."""
    return of_tensors.squeeze(x, axis)


def flip(x: Tensor, /, *, axis: Numbers | None = None) -> Tensor:
    """View a tensor with some or all dimensions reversed; raises ValueError for a repeated axis."""
    return views.flip(x, axis)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """View matrices `(…, m, n)` as `(…, n, m)`; raises ValueError for a rank below 2."""
    with named("matrix_transpose"):
        check_tensor("x", x)
        return x.mT


def moveaxis(x: Tensor, source: Numbers, destination: Numbers, /) -> Tensor:
    """View a tensor with dimensions in other places, the others in order.

    Raises ValueError for a repeated axis, and for numbers of sources and destinations that differ.
    """
    return views.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: Numbers) -> Tensor:
    """View a tensor with its dimensions in another order; raises ValueError unless each is named once."""
    with named("permute_dims"):
        check_tensor("x", x)
        return of_tensors.permute(x, axes=axes)


def reshape(x: Tensor, /, shape: Numbers, *, copy: bool | None = None) -> Tensor:
    """View a tensor in another shape of as many elements, or copy it where there is no such view.

    Always a copy where `copy` is True. Raises ValueError for another number of elements, and where `copy` is
    False and there is no view.
    """
    with named("reshape"):
        check_tensor("x", x)
        if copy is not False and (copy or reshaped(x.layout, numpy_shape(shape, x.size)) is None):
            x = x.copy()
    return of_tensors.reshape(x, shape)


def roll(x: Tensor, /, shift: Numbers, *, axis: Numbers | None = None) -> Tensor:
    """Copy a tensor with its elements shifted around the ends of dimensions, or of all with None.

    Raises ValueError for numbers of shifts and axes that differ.
    """
    return moving.roll(x, shift, axis)


def repeat(x: Tensor, repeats: SupportsIndex | Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy each element several times along a dimension, or of the flattened tensor with None.

    `repeats` of a tensor, of rank 0 or 1, are read back first, which waits: the size of the result depends on
    them. Raises ValueError for a negative number, and for neither one nor as many as elements.
    """
    return moving.repeat(x, repeats.numpy() if isinstance(repeats, Tensor) else repeats, axis)


def tile(x: Tensor, repetitions: Numbers, /) -> Tensor:
    """Copy a tensor several times along each dimension, counted from the last one.

    Raises ValueError for a negative number, and for a result of more than 8 dimensions.
    """
    return moving.tile(x, repetitions)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the lower triangle of matrices `(…, m, n)`, with zeros above the diagonal `k`.

    Raises ValueError for rank 0.
    """
    return moving.tril(x, k)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the upper triangle of matrices `(…, m, n)`, with zeros below the diagonal `k`.

    Raises ValueError for rank 0.
    """
    return moving.triu(x, k)


def take(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy elements at indices along a dimension, which must be named unless `x` has but one.

    The shape of `indices`, which may have any rank, replaces the size of `axis`. They are not read back:
    negative ones count from the end, one that is out of range reads the nearest element. Raises TypeError for
    indices that are no integers, ValueError for a missing axis.
    """
    with named("take"):
        check_tensor("x", x)
        check_tensor("indices", indices)
        if axis is None and x.ndim != 1:
            raise ValueError(f"x has {x.ndim} dimensions: name the axis")
    return taking.take(x, indices, 0 if axis is None else axis)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex = -1) -> Tensor:
    """Copy an element for each index along a dimension; the other sizes of both broadcast.

    Indices are read as by `take`. Raises IndexError for indices that are no integers or do not broadcast,
    ValueError for another rank than that of `x`.
    """
    with named("take_along_axis"):
        check_tensor("x", x)
        check_tensor("indices", indices)
    return taking.take_along_axis(x, indices, axis)


def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Copy elements of `x1` where a mask is true, else of `x2`, broadcast together.

    `x1` and `x2` have one dtype; one of them may be a number. The mask is read back, which waits. Raises
    TypeError for a mask that is not of bools, for dtypes that differ and for two numbers, ValueError for
    shapes that do not broadcast.
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
        result = packed_copy(of_tensors.broadcast_to(ground, shape))
        if isinstance(other, Tensor) and other.ndim:
            result[mask] = of_tensors.broadcast_to(other, shape)[mask]
        else:  # one number, which may be on another device
            result[mask] = other.to_device(ground.device) if isinstance(other, Tensor) else other
        return result


def sliding_window_view(x: Tensor, window_shape: Numbers, axis: Numbers | None = None) -> Tensor:
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

"""The standard's functions that move elements or select them: views if possible, else packed copies."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Number
from typing import Literal, SupportsIndex

import numpy as np

from wgslice.arguments import OneOrMore
from wgslice.array_api.data_type_functions import result_type
from wgslice.docstrings import COPYING, NO_AXIS, NO_TENSOR, VIEW, VIEWING, documented, documented_as
from wgslice.errors import fitted, named, public
from wgslice.layout_rules import permuted
from wgslice.numpy_protocol import joining, moving, taking
from wgslice.numpy_protocol.joining import unstack
from wgslice.numpy_protocol.matrices import tril, triu
from wgslice.tensors import views
from wgslice.tensors.creation import full
from wgslice.tensors.indexing import copy_where
from wgslice.tensors.placed import as_assigned, check_tensor, viewed
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.views import broadcast_arrays, expand_dims

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


@documented(
    ("tuple of int", "The common shape."),
    ("ValueError", "The shapes do not broadcast together."),
    shapes=("tuple of int", "Sizes of each tensor."),
)
@public()
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all broadcast to.

    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return np.broadcast_shapes(*shapes)


@documented_as(views.broadcast_to)
@fitted()
def broadcast_to(x: Tensor, /, shape: OneOrMore) -> Tensor:
    """View a tensor in a shape that it broadcasts to, read-only.

    >>> xp.broadcast_to(xp.asarray([1, 2]), (2, 2)).tolist()
    [[1, 2], [1, 2]]
    """
    return views.broadcast_to(x, shape)


@documented(
    ("tuple of Tensor", "Read-only views, one of each coordinate."),
    NO_TENSOR,
    ("ValueError", "A rank is above 1, dtypes differ, `indexing` is neither, or there are more than 8."),
    arrays=("Tensor", "Coordinates of rank 1 or 0, of one dtype."),
    indexing=('{"xy", "ij"}', "Whether the first coordinate varies along the second dimension or the first."),
)
@public()
def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """View coordinates of rank 1 or 0, of one dtype, in the grid that they span, read-only.

    >>> xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4]), indexing="ij")[0].numpy()
    array([[1, 1],
           [2, 2]])
    """
    for number, array in enumerate(arrays):
        check_tensor(f"arrays[{number}]", array)
        if array.ndim > 1:
            raise ValueError(f"arrays[{number}] has rank {array.ndim}: must have rank 1")
    dtypes = sorted({str(array.dtype) for array in arrays})
    if len(dtypes) > 1:
        raise ValueError(f"arrays have dtypes {' and '.join(dtypes)}: they must have one")
    return tuple(views.grid(arrays, indexing))


@documented_as(joining.concat)
@fitted("join arrays as one sequence, concat([x, y])")
def concat(arrays: Sequence[Tensor], /, *, axis: SupportsIndex | None = 0) -> Tensor:
    """Copy tensors of one dtype into one, joined along a dimension, or flattened first with None.

    >>> xp.concat([xp.asarray([1]), xp.asarray([2, 3])]).numpy()
    array([1, 2, 3])
    """
    return joining.concat(arrays, axis)


@documented_as(joining.stack)
@fitted("join arrays as one sequence, stack([x, y])")
def stack(arrays: Sequence[Tensor], /, *, axis: SupportsIndex = 0) -> Tensor:
    """Copy n tensors of one shape and dtype into one with a new dimension of size n.

    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).numpy()
    array([[1, 3],
           [2, 4]])
    """
    return joining.stack(arrays, axis)


@documented(
    *VIEWING,
    ("ValueError", "The size of an axis is not 1."),
    axis=("int or sequence of int", "Dimensions to drop; negative ones count from the last."),
)
@fitted()
def squeeze(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor without some dimensions, all of size 1.

    >>> xp.squeeze(xp.asarray([[1, 2]]), axis=0).shape
    (2,)
    """
    return views.squeeze(x, axis)


@documented(*VIEWING, axis=("int or sequence of int, optional", "The dimensions; all by default."))
@fitted()
def flip(x: Tensor, /, *, axis: OneOrMore | None = None) -> Tensor:
    """View a tensor with some or all dimensions reversed.

    >>> xp.flip(xp.asarray([1, 2, 3])).numpy()
    array([3, 2, 1])
    """
    return views.flip(x, axis)


@documented(
    VIEW,
    NO_TENSOR,
    ("ValueError", "`x` has fewer than 2 dimensions."),
    x=("Tensor", "Of rank 2 to 8 and any dtype."),
)
@public()
def matrix_transpose(x: Tensor, /) -> Tensor:
    """View matrices `(…, m, n)` as `(…, n, m)`.

    >>> xp.matrix_transpose(xp.asarray([[1, 2, 3]])).shape
    (3, 1)
    """
    check_tensor("x", x)
    return x.mT


@documented_as(views.moveaxis)
@fitted()
def moveaxis(x: Tensor, source: OneOrMore, destination: OneOrMore, /) -> Tensor:
    """View a tensor with dimensions in other places, the others in order.

    >>> xp.moveaxis(xp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return views.moveaxis(x, source, destination)


@documented(
    *VIEWING,
    ("ValueError", "A dimension is missing."),
    axes=("sequence of int", "The dimensions of `x` in the order of the result, each once."),
)
@public()
def permute_dims(x: Tensor, /, axes: OneOrMore) -> Tensor:
    """View a tensor with its dimensions in another order.

    >>> xp.permute_dims(xp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    check_tensor("x", x)
    return viewed(x, permuted(x.layout, axes))


@documented(
    ("Tensor", "A view if there is one and `copy` is not true, else packed in a new buffer."),
    *COPYING[1:],
    ("ValueError", "The shape has another number of elements; or `copy` is False and there is no view."),
    shape=("int or sequence of int", "Sizes of the result; one of them may be -1, for what is left."),
)
@fitted()
def reshape(x: Tensor, /, shape: OneOrMore, *, copy: bool | None = None) -> Tensor:
    """View a tensor in another shape, or copy it where there is no such view, unless `copy` is False.

    >>> xp.reshape(xp.asarray([1, 2, 3, 4]), (2, -1)).shape
    (2, 2)
    """
    with named("reshape"):
        check_tensor("x", x)
    return x.reshape(shape, copy=copy)


@documented_as(moving.roll)
@fitted()
def roll(x: Tensor, /, shift: OneOrMore, *, axis: OneOrMore | None = None) -> Tensor:
    """Copy a tensor with its elements shifted cyclically along dimensions, or along all as one.

    >>> xp.roll(xp.asarray([1, 2, 3]), 1).numpy()
    array([3, 1, 2])
    """
    return moving.roll(x, shift, axis)


@documented(
    *COPYING,
    NO_AXIS,
    ("ValueError", "A number is negative, or there are neither one nor as many as elements."),
    repeats=("int, sequence of int or Tensor", "How often, at least 0: each element, or one number for all."),
    axis=("int, optional", "The dimension that grows; all elements in row-major order by default."),
)
@fitted()
def repeat(x: Tensor, repeats: SupportsIndex | Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy each element several times; `repeats` of a tensor are read back first, which waits.

    >>> xp.repeat(xp.asarray([1, 2]), 2).numpy()
    array([1, 1, 2, 2])
    """
    return moving.repeat(x, repeats.numpy() if isinstance(repeats, Tensor) else repeats, axis)


@documented_as(moving.tile)
@fitted()
def tile(x: Tensor, repetitions: OneOrMore, /) -> Tensor:
    """Copy a tensor several times along each dimension, counted from the last one.

    >>> xp.tile(xp.asarray([1, 2]), 2).numpy()
    array([1, 2, 1, 2])
    """
    return moving.tile(x, repetitions)


@documented(
    *COPYING,
    ("TypeError", "`indices` are not integers."),
    ("ValueError", "`axis` is left out, and `x` has not one dimension."),
    NO_AXIS,
    indices=("Tensor of integers", "Of any shape, which replaces the dimension in the result."),
    axis=("int, optional", "The dimension; needed unless `x` has but one."),
)
@fitted()
def take(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy elements at indices of any rank along a dimension, which must be named unless `x` has but one.

    Indices are not read back: negative ones count from the end, one out of range reads the nearest element.

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
    *COPYING,
    ("IndexError", "`indices` are not integers, or a size differs along another dimension, and is not 1."),
    ("ValueError", "`indices` have another rank than `x`."),
    NO_AXIS,
    indices=("Tensor of integers", "Of the rank of `x`, and of its sizes or 1 along the other dimensions."),
)
@fitted()
def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: SupportsIndex = -1) -> Tensor:
    """Copy an element for each index, read as by `take`, along a dimension; the other sizes broadcast.

    >>> xp.take_along_axis(xp.asarray([[1, 2], [3, 4]]), xp.asarray([[1], [0]]), axis=1).numpy()
    array([[2],
           [3]])
    """
    with named("take_along_axis"):
        check_tensor("x", x)
        check_tensor("indices", indices)
    return taking.take_along_axis(x, indices, axis)


@documented(
    *COPYING,
    ("TypeError", "The mask is not of bools, dtypes differ, or neither `x1` nor `x2` is a Tensor."),
    ("ValueError", "The shapes do not broadcast together."),
    condition=("Tensor of bool", "The mask."),
    x1=("Tensor or number", "Elements where the mask is true."),
    x2=("Tensor or number", "Elements where the mask is false."),
)
@public()
def where(condition: Tensor, x1: Tensor | complex, x2: Tensor | complex, /) -> Tensor:
    """Copy elements of `x1` where a mask is true, else of `x2`, broadcast together.

    `x1` and `x2` have one dtype; one of them may be a number.

    >>> xp.where(xp.asarray([True, False]), xp.asarray([1, 2]), 0).numpy()
    array([1, 0])
    """
    check_tensor("condition", condition)
    if condition.dtype != np.bool_:
        raise TypeError(f"condition has dtype {condition.dtype}: must be bool")
    tensors = [each for each in (x1, x2) if isinstance(each, Tensor)]
    if not tensors:
        raise TypeError("x1 or x2 must be a Tensor")
    dtype, device = tensors[0].dtype, max(tensors, key=lambda each: each.ndim > 0).device
    if tensors[-1].dtype != dtype:
        raise TypeError(f"x1 has dtype {dtype}, x2 {tensors[-1].dtype}: must be equal")
    shape = np.broadcast_shapes(condition.shape, *(each.shape for each in tensors))
    for name, each in (("x1", x1), ("x2", x2)):
        is_number = isinstance(each, Number | np.generic)
        if not isinstance(each, Tensor) and not (is_number and result_type(dtype, each) == dtype):
            raise TypeError(f"{name} = {each!r}: must be a Tensor of dtype {dtype}, or a number of its kind")
    chosen, other = (
        each.to_device(device) if isinstance(each, Tensor) and each.ndim == 0 else each for each in (x1, x2)
    )
    result = full(shape, other, dtype, device=device)
    value = chosen if isinstance(chosen, Tensor) else as_assigned(chosen, dtype)
    copy_where(result, value, condition.to_device(device))
    return result

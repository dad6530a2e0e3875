"""The standard's functions that move elements: views where one exists, else packed copies."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, SupportsIndex

import numpy as np

from wgslice.arguments import OneOrMore
from wgslice.array_api.docstrings import (
    COPY,
    COPYING,
    NO_AXIS,
    NO_TENSOR,
    READ_ONLY_VIEW,
    VIEW,
    Entry,
    documented,
)
from wgslice.errors import named
from wgslice.numpy_protocol import joining, moving
from wgslice.tensors import views
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

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
    "tile",
    "tril",
    "triu",
    "unstack",
]

MATRICES: Entry = "Tensor", "Matrices `(…, m, n)` of any dtype; views of any strides."


@documented(
    ("tuple of Tensor", "Read-only views; tensors that have the shape already as they are."),
    NO_TENSOR,
    ("ValueError", "The shapes do not broadcast together, or to more than 8 dimensions."),
    arrays=("Tensor", "Of any ranks and dtypes."),
)
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """View tensors in their common shape, read-only.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> [x.shape for x in xp.broadcast_arrays(xp.zeros((3, 1)), xp.zeros(4))]
    [(3, 4), (3, 4)]
    """
    return views.broadcast_arrays(*arrays)


@documented(
    ("tuple of int", "The common shape."),
    ("ValueError", "The shapes do not broadcast together."),
    shapes=("tuple of int", "Sizes of each tensor."),
)
def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape that all broadcast to.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    with named("broadcast_shapes"):
        return np.broadcast_shapes(*shapes)


@documented(READ_ONLY_VIEW, NO_TENSOR, ("ValueError", "`x` does not broadcast to the shape."))
def broadcast_to(x: Tensor, /, shape: OneOrMore) -> Tensor:
    """View a tensor in a shape that it broadcasts to, read-only.

    Examples
    --------
    >>> import wgslice.array_api as xp
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
def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """View coordinates of rank 1 or 0, of one dtype, in the grid that they span, read-only.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.meshgrid(xp.asarray([1, 2]), xp.asarray([3, 4]), indexing="ij")[0].numpy()
    array([[1, 1],
           [2, 2]])
    """
    with named("meshgrid"):
        dtypes = {array.dtype for array in arrays if isinstance(array, Tensor)}
        if len(dtypes) > 1:
            listed = " and ".join(sorted(map(str, dtypes)))
            raise ValueError(f"arrays have dtypes {listed}: they must have one")
    return views.meshgrid(*arrays, indexing=indexing)


@documented(
    COPY,
    *COPYING,
    ("TypeError", "The dtypes differ: nothing is converted."),
    ("ValueError", "There is no tensor, or sizes differ along another dimension."),
    NO_AXIS,
    axis=("int or None", "The dimension along which tensors are joined; None flattens them first."),
)
def concat(arrays: Sequence[Tensor], /, *, axis: SupportsIndex | None = 0) -> Tensor:
    """Copy tensors of one dtype into one, joined along a dimension, or flattened first with None.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.concat([xp.asarray([1]), xp.asarray([2, 3])]).numpy()
    array([1, 2, 3])
    """
    return joining.concat(arrays, axis)


@documented(
    COPY,
    *COPYING,
    ("TypeError", "The dtypes differ: nothing is converted."),
    ("ValueError", "There is no tensor, or shapes differ."),
    NO_AXIS,
    axis=("int", "The new dimension, as the result counts; a negative one counts from the last."),
)
def stack(arrays: Sequence[Tensor], /, *, axis: SupportsIndex = 0) -> Tensor:
    """Copy n tensors of one shape and dtype into one with a new dimension of size n.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.stack([xp.asarray([1, 2]), xp.asarray([3, 4])], axis=1).numpy()
    array([[1, 3],
           [2, 4]])
    """
    return joining.stack(arrays, axis)


@documented(("tuple of Tensor", "Views, one of each index."), NO_TENSOR, NO_AXIS)
def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """View each index along a dimension, without that dimension.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.unstack(xp.asarray([[1, 2], [3, 4]]))[1].numpy()
    array([3, 4])
    """
    return joining.unstack(x, axis)


@documented(
    VIEW,
    NO_TENSOR,
    NO_AXIS,
    ("ValueError", "The result would have more than 8 dimensions."),
    axis=("int or sequence of int", "Dimensions of the result; negative ones count from its last."),
)
def expand_dims(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor with further dimensions of size 1, which are `axis` of the result.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.expand_dims(xp.asarray([1, 2]), axis=0).shape
    (1, 2)
    """
    return views.expand_dims(x, axis)


@documented(
    VIEW,
    NO_TENSOR,
    NO_AXIS,
    ("ValueError", "One of the dimensions has another size than 1."),
    axis=("int or sequence of int", "The dimensions; negative ones count from the last."),
)
def squeeze(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor without some dimensions, all of size 1.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.squeeze(xp.asarray([[1, 2]]), axis=0).shape
    (2,)
    """
    return views.squeeze(x, axis)


@documented(
    VIEW,
    NO_TENSOR,
    NO_AXIS,
    axis=("int or sequence of int, optional", "The dimensions; all by default."),
)
def flip(x: Tensor, /, *, axis: OneOrMore | None = None) -> Tensor:
    """View a tensor with some or all dimensions reversed.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.flip(xp.asarray([1, 2, 3])).numpy()
    array([3, 2, 1])
    """
    return views.flip(x, axis)


@documented(
    VIEW,
    NO_TENSOR,
    ("ValueError", "`x` has fewer than 2 dimensions."),
    x=("Tensor", "Of rank 2 to 8 and any dtype; views of any strides."),
)
def matrix_transpose(x: Tensor, /) -> Tensor:
    """View matrices `(…, m, n)` as `(…, n, m)`.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.matrix_transpose(xp.asarray([[1, 2, 3]])).shape
    (3, 1)
    """
    with named("matrix_transpose"):
        check_tensor("x", x)
        return x.mT


@documented(
    VIEW,
    NO_TENSOR,
    NO_AXIS,
    ("ValueError", "There are not as many sources as destinations."),
    source=("int or sequence of int", "Dimensions of `x`; negative ones count from the last."),
    destination=("int or sequence of int", "Where each of them is in the result."),
)
def moveaxis(x: Tensor, source: OneOrMore, destination: OneOrMore, /) -> Tensor:
    """View a tensor with dimensions in other places, the others in order.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.moveaxis(xp.zeros((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    return views.moveaxis(x, source, destination)


@documented(
    VIEW,
    NO_TENSOR,
    NO_AXIS,
    ("ValueError", "A dimension is missing."),
    axes=("sequence of int", "The dimensions of `x` in the order of the result, each once."),
)
def permute_dims(x: Tensor, /, axes: OneOrMore) -> Tensor:
    """View a tensor with its dimensions in another order.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.permute_dims(xp.zeros((2, 3, 4)), (2, 0, 1)).shape
    (4, 2, 3)
    """
    with named("permute_dims"):
        check_tensor("x", x)
        return views.permute(x, axes=axes)


@documented(
    ("Tensor", "A view if there is one and `copy` is not true, else packed in a buffer of its own."),
    *COPYING,
    ("ValueError", "The shape has another number of elements; or `copy` is False and there is no view."),
    shape=("int or sequence of int", "Sizes of the result; one of them may be -1, for what is left."),
)
def reshape(x: Tensor, /, shape: OneOrMore, *, copy: bool | None = None) -> Tensor:
    """View a tensor in another shape, or copy it where there is no such view, unless `copy` is False.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.reshape(xp.asarray([1, 2, 3, 4]), (2, -1)).shape
    (2, 2)
    """
    with named("reshape"):
        check_tensor("x", x)
    return views.reshape(x, shape) if copy is False else (x.copy() if copy else x).reshape(shape)


@documented(
    COPY,
    *COPYING,
    NO_AXIS,
    ("ValueError", "There are other numbers of shifts and axes."),
    shift=("int or sequence of int", "Positions towards higher indices; negative ones towards lower ones."),
    axis=("int or sequence of int, optional", "A dimension for each shift; by default all, as one."),
)
def roll(x: Tensor, /, shift: OneOrMore, *, axis: OneOrMore | None = None) -> Tensor:
    """Copy a tensor with its elements shifted cyclically along dimensions, or along all as one.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.roll(xp.asarray([1, 2, 3]), 1).numpy()
    array([3, 1, 2])
    """
    return moving.roll(x, shift, axis)


@documented(
    COPY,
    *COPYING,
    NO_AXIS,
    ("ValueError", "A number is negative, or there are neither one nor as many as elements."),
    repeats=("int, sequence of int or Tensor", "How often, at least 0: each element, or one number for all."),
    axis=("int, optional", "The dimension that grows; all elements in row-major order by default."),
)
def repeat(x: Tensor, repeats: SupportsIndex | Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Copy each element several times; `repeats` of a tensor are read back first, which waits.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.repeat(xp.asarray([1, 2]), 2).numpy()
    array([1, 1, 2, 2])
    """
    return moving.repeat(x, repeats.numpy() if isinstance(repeats, Tensor) else repeats, axis)


@documented(
    COPY,
    *COPYING,
    ("ValueError", "A number is negative."),
    repetitions=("int or sequence of int", "How often along each dimension, at least 0."),
)
def tile(x: Tensor, repetitions: OneOrMore, /) -> Tensor:
    """Copy a tensor several times along each dimension, counted from the last one.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.tile(xp.asarray([1, 2]), 2).numpy()
    array([1, 2, 1, 2])
    """
    return moving.tile(x, repetitions)


@documented(COPY, *COPYING, x=MATRICES)
def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the lower triangle of matrices `(…, m, n)`, with zeros above the diagonal `k`.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.tril(xp.ones((2, 2), dtype=xp.int64)).numpy()
    array([[1, 0],
           [1, 1]])
    """
    return moving.tril(x, k)


@documented(COPY, *COPYING, x=MATRICES)
def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Copy the upper triangle of matrices `(…, m, n)`, with zeros below the diagonal `k`.

    Examples
    --------
    >>> import wgslice.array_api as xp
    >>> xp.triu(xp.ones((2, 2), dtype=xp.int64)).numpy()
    array([[1, 1],
           [0, 1]])
    """
    return moving.triu(x, k)

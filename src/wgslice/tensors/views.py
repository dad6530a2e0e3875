"""Views of a tensor with dimensions moved, added, dropped, flipped, repeated or split."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, cast

import numpy as np
from numpy.exceptions import AxisError

from wgslice.arguments import (
    Integers,
    OneOrMore,
    checked_shape,
    distinct_axes,
    integer,
    one_axis,
    one_or_more,
)
from wgslice.docstrings import NO_TENSOR, VIEWING, documented
from wgslice.errors import fitted, named, public
from wgslice.layout_rules import flipped, permuted, repeated_to, unsqueezed
from wgslice.tensors.placed import READ_ONLY, check_tensor, viewed
from wgslice.tensors.tensor import Tensor


@public()
def reverse(x: Tensor, axes: OneOrMore | None = None, *, axis: OneOrMore | None = None) -> Tensor:
    """Reverse the order of elements along dimensions, as `numpy.flip` and WebNN's `reverse` do.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    axes : int or sequence of int, optional
        Dimensions to reverse, each once; negative ones count from the last. By default all.
    axis : int or sequence of int, optional
        Another name for `axes`.

    Returns
    -------
    Tensor
        A view of the same shape.

    Raises
    ------
    TypeError
        `x` is not a tensor, an axis is not an integer, or both `axes` and `axis` are given.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`) or named twice.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.reverse(wg.asarray([[1, 2], [3, 4]]), axis=1).numpy()
    array([[2, 1],
           [4, 3]])
    """
    check_tensor("x", x)
    if axes is not None and axis is not None:
        raise TypeError(f"axes = {axes} and axis = {axis}: name the dimensions once")
    return viewed(x, flipped(x.layout, axis if axes is None else axes))


@public()
def permute(x: Tensor, *order: OneOrMore, axes: OneOrMore | None = None) -> Tensor:
    """Reorder dimensions; the semantics are those of `numpy.permute_dims`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    order : int, or one sequence of int
        The dimension of `x` for each dimension of the result; each once, negative ones count from the last.
    axes : sequence of int, optional
        Another name for `order`.

    Returns
    -------
    Tensor
        A view of shape `(x.shape[axes[0]], x.shape[axes[1]], ...)`.

    Raises
    ------
    TypeError
        `x` is not a tensor, an axis is not an integer, or both or none of `order` and `axes` are given.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`), named twice or missing.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.zeros((2, 3, 4)))
    >>> wg.permute(x, 2, 0, 1).shape, wg.permute(x, (2, 0, 1)).shape
    ((4, 2, 3), (4, 2, 3))
    """
    check_tensor("x", x)
    if bool(order) == (axes is not None):
        count = "two" if order else "no"
        raise TypeError(f"{count} orders are given: pass one, as in permute(x, axes)")
    named_axes = axes if axes is not None else order[0] if len(order) == 1 else cast("Any", order)
    return viewed(x, permuted(x.layout, named_axes))


@public()
def broadcast_to(x: Tensor, shape: OneOrMore) -> Tensor:
    """Repeat a tensor without a copy; the semantics are those of `numpy.broadcast_to`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    shape : int or sequence of int
        Sizes; aligned at the last dimension, each size of `x` is equal or 1, or the dimension is missing.

    Returns
    -------
    Tensor
        A read-only view of shape `shape`; repeated dimensions have stride 0.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a size is not an integer.
    ValueError
        `x` does not broadcast to `shape`, or its rank is above 8.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.broadcast_to(wg.asarray([1, 2]), (3, 2)).numpy()
    array([[1, 2],
           [1, 2],
           [1, 2]])
    """
    check_tensor("x", x)
    return viewed(x, repeated_to(x.layout, shape), READ_ONLY)


@fitted()
def reshape(x: Tensor, shape: OneOrMore) -> Tensor:
    """View a tensor with other sizes; the semantics are those of `numpy.reshape(..., copy=False)`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    shape : int or sequence of int
        Sizes with the same number of elements; one may be -1, and is then computed from the others.

    Returns
    -------
    Tensor
        A view of the same elements in row-major order.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a size is not an integer.
    ValueError
        The number of elements differs, the rank is above 8, or the strides of `x` require a copy, which
        `x.reshape(shape)` makes.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.reshape(wg.asarray(np.arange(6)), (2, -1)).numpy()
    array([[0, 1, 2],
           [3, 4, 5]])
    """
    with named("reshape"):
        check_tensor("x", x)
    return x.reshape(shape, copy=False)


@fitted()
def squeeze(x: Tensor, axis: OneOrMore | None = None) -> Tensor:
    """Drop dimensions of size 1; the semantics are those of `numpy.squeeze`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    axis : int or sequence of int, optional
        Dimensions to drop, each of size 1; negative ones count from the last. By default all of size 1.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError, ValueError
        As `reverse`; or the size of an axis is not 1.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.squeeze(wg.asarray(np.zeros((1, 3, 1)))).shape
    (3,)
    """
    with named("squeeze"):
        check_tensor("x", x)
    return x.squeeze(axis)


@public()
def moveaxis(x: Tensor, source: OneOrMore, destination: OneOrMore) -> Tensor:
    """Move dimensions to other positions, the others in order; the semantics are those of `numpy.moveaxis`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    source : int or sequence of int
        The dimensions to move, each once; negative ones count from the last.
    destination : int or sequence of int
        Their positions in the result, each once.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError, ValueError
        An axis is not an integer, out of range (`numpy.exceptions.AxisError`) or named twice; or `source`
        and `destination` differ in length.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> images = wg.asarray(np.zeros((8, 32, 48, 3), np.uint8))
    >>> wg.moveaxis(images, -1, 1).shape
    (8, 3, 32, 48)
    """
    check_tensor("x", x)
    moved = distinct_axes("source", source, x.ndim)
    positions = distinct_axes("destination", destination, x.ndim)
    if len(moved) != len(positions):
        raise ValueError(
            f"source has {len(moved)} axes, destination {len(positions)}: must be equal in number"
        )
    order = [axis for axis in range(x.ndim) if axis not in moved]
    for position, axis in sorted(zip(positions, moved, strict=True)):
        order.insert(position, axis)
    return viewed(x, x.layout.permuted(order))


@documented(
    *VIEWING,
    ("ValueError", "The result would have more than 8 dimensions."),
    axis=("int or sequence of int", "Dimensions of the result; negative ones count from its last."),
)
@public()
def expand_dims(x: Tensor, /, axis: OneOrMore) -> Tensor:
    """View a tensor with further dimensions of size 1, which are `axis` of the result.

    >>> xp.expand_dims(xp.asarray([1, 2]), axis=0).shape
    (1, 2)
    """
    check_tensor("x", x)
    return viewed(x, unsqueezed(x.layout, one_or_more("axis", axis)))


@public()
def flip(x: Tensor, axis: OneOrMore | None = None) -> Tensor:
    """Reverse the order of elements; the semantics are those of `numpy.flip`, as those of `reverse`.

    Parameters
    ----------
    x, axis : Tensor, int or sequence of int, optional
        As of `reverse`.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError, ValueError
        As `reverse`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.flip(wg.asarray([[1, 2], [3, 4]]), axis=0).numpy()
    array([[3, 4],
           [1, 2]])
    """
    check_tensor("x", x)
    return viewed(x, flipped(x.layout, axis))


def rot90(x: Tensor, k: SupportsIndex = 1, axes: Integers = (0, 1)) -> Tensor:
    """View a tensor rotated by `k` right angles in the plane of two dimensions, as `numpy.rot90`."""
    with named("rot90"):
        check_tensor("x", x)
        plane = distinct_axes("axes", axes, x.ndim)
        if len(plane) != 2:
            raise ValueError(f"axes = {tuple(plane)}: must be the two dimensions of a plane")
        (rotations,) = one_or_more("k", k)
        turned = x[...]
        for _ in range(rotations % 4):
            turned = flip(turned, plane[1]).swapaxes(*plane)
        return turned


@documented(
    ("tuple of Tensor", "Read-only views; tensors that have the shape already as they are."),
    NO_TENSOR,
    ("ValueError", "The shapes do not broadcast together, or to more than 8 dimensions."),
    arrays=("Tensor", "Of any ranks and dtypes."),
)
@public()
def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """View tensors in their common shape, read-only.

    >>> [x.shape for x in xp.broadcast_arrays(xp.zeros((3, 1)), xp.zeros(4))]
    [(3, 4), (3, 4)]
    """
    for number, array in enumerate(arrays):
        check_tensor(f"arrays[{number}]", array)
    sizes = checked_shape(np.broadcast_shapes(*(array.shape for array in arrays)))
    if all(array.shape == sizes for array in arrays):
        return arrays
    return tuple(viewed(array, repeated_to(array.layout, sizes), READ_ONLY) for array in arrays)


def rollaxis(a: Tensor, axis: SupportsIndex, start: SupportsIndex = 0) -> Tensor:
    """View a tensor with a dimension moved before another one, as `numpy.rollaxis`."""
    with named("rollaxis"):
        check_tensor("a", a)
        moved = one_axis("axis", axis, a.ndim)
        before = integer("start", start)
        if not -a.ndim <= before <= a.ndim:
            raise AxisError(before, a.ndim, "start")
        before += a.ndim * (before < 0)
        order = [each for each in range(a.ndim) if each != moved]
        order.insert(before - (moved < before), moved)
        return viewed(a, a.layout.permuted(order))


def grid(arrays: Sequence[Tensor], indexing: str, *, sparse: bool = False) -> list[Tensor]:
    """View flattened tensors along a dimension of their own each; unless `sparse`, repeated along others."""
    if indexing not in ("xy", "ij"):
        raise ValueError(f"indexing = {indexing!r}: must be 'xy' or 'ij'")
    axes = list(range(len(arrays)))  # the dimension of each array, and the array of each dimension
    if indexing == "xy":
        axes[:2] = axes[:2][::-1]
    sizes = checked_shape([arrays[axis].size for axis in axes])
    columns = [
        x.reshape([size if each == axis else 1 for each, size in enumerate(sizes)])
        for x, axis in zip(arrays, axes, strict=True)
    ]
    return columns if sparse else [viewed(x, repeated_to(x.layout, sizes), READ_ONLY) for x in columns]

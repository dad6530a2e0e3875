"""Dimensions in other places, and new ones: views."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from wgslice.arguments import distinct_axes, one_or_more
from wgslice.errors import named
from wgslice.rearrange import flipped, unsqueezed
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["expand_dims", "flip", "moveaxis", "rot90", "swapaxes"]


def moveaxis(
    x: Tensor,
    source: SupportsIndex | Iterable[SupportsIndex],
    destination: SupportsIndex | Iterable[SupportsIndex],
) -> Tensor:
    """Put dimensions into other places, the rest in order; the semantics are those of `numpy.moveaxis`.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    source : int or sequence of int
        The dimensions to move, each once; negative ones count from the last.
    destination : int or sequence of int
        Where each of them comes to lie, each place once.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`) or named twice, or there are more of one
        argument than of the other.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> images = wg.asarray(np.zeros((8, 32, 48, 3), np.uint8))
    >>> wg.moveaxis(images, -1, 1).shape
    (8, 3, 32, 48)
    """
    with named("moveaxis"):
        check_tensor("x", x)
        taken = distinct_axes("source", source, x.ndim)
        places = distinct_axes("destination", destination, x.ndim)
        if len(taken) != len(places):
            raise ValueError(
                f"source has {len(taken)} axes, destination {len(places)}: each needs a place of its own"
            )
        order = [axis for axis in range(x.ndim) if axis not in taken]
        for place, axis in sorted(zip(places, taken, strict=True)):
            order.insert(place, axis)
        return viewed(x, x.layout.permuted(order))


def swapaxes(x: Tensor, axis1: SupportsIndex, axis2: SupportsIndex) -> Tensor:
    """Let two dimensions change places; the semantics are those of `numpy.swapaxes`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 or more.
    axis1, axis2 : int
        The dimensions; negative ones count from the last.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.axes import swapaxes
    >>> swapaxes(wg.asarray(np.zeros((2, 3, 4))), 0, -1).shape
    (4, 3, 2)
    """
    with named("swapaxes"):
        check_tensor("x", x)
    return x.swapaxes(axis1, axis2)


def expand_dims(x: Tensor, axis: SupportsIndex | Iterable[SupportsIndex]) -> Tensor:
    """Add dimensions of size 1; the semantics are those of `numpy.expand_dims`.

    Parameters
    ----------
    x : Tensor
        Of rank 0 to 7.
    axis : int or sequence of int
        The new dimensions, as the result counts, each once; negative ones count from its last.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`) or named twice, or the result would have more
        than 8 dimensions.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.axes import expand_dims
    >>> expand_dims(wg.asarray(np.zeros((2, 3))), (0, -1)).shape
    (1, 2, 3, 1)
    """
    with named("expand_dims"):
        check_tensor("x", x)
        return viewed(x, unsqueezed(x.layout, one_or_more("axis", axis)))


def flip(x: Tensor, axis: SupportsIndex | Iterable[SupportsIndex] | None = None) -> Tensor:
    """Flip the order of elements; the semantics are those of `numpy.flip`. `reverse` does it as well.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    axis : int or sequence of int, optional
        Dimensions to flip, each once; negative ones count from the last. All by default.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`) or named twice.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.flip(wg.asarray([[1, 2], [3, 4]]), axis=0).numpy()
    array([[3, 4],
           [1, 2]])
    """
    with named("flip"):
        check_tensor("x", x)
        axes = range(x.ndim) if axis is None else distinct_axes("axis", axis, x.ndim)
        return viewed(x, flipped(x.layout, axes))


def rot90(x: Tensor, k: SupportsIndex = 1, axes: Iterable[SupportsIndex] = (0, 1)) -> Tensor:
    """Turn a tensor by 90 degrees in the plane of two dimensions; the semantics are those of `numpy.rot90`.

    Parameters
    ----------
    x : Tensor
        Of rank 2 or more.
    k : int
        How often; a negative number turns the other way.
    axes : two int
        From the first towards the second of these dimensions.

    Returns
    -------
    Tensor
        A view.

    Raises
    ------
    TypeError
        `x` is no tensor, or an axis is no integer.
    ValueError
        An axis is out of range (`numpy.exceptions.AxisError`), or they are not two different ones.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.axes import rot90
    >>> rot90(wg.asarray([[1, 2], [3, 4]])).numpy()
    array([[2, 4],
           [1, 3]])
    """
    with named("rot90"):
        check_tensor("x", x)
        plane = distinct_axes("axes", axes, x.ndim)
        if len(plane) != 2:
            raise ValueError(f"axes = {tuple(plane)}: must be the two dimensions of a plane")
        (turns,) = one_or_more("k", k)
        order = list(range(x.ndim))
        first, second = plane
        order[first], order[second] = second, first
        match turns % 4:
            case 1:
                return viewed(x, flipped(x.layout, [second]).permuted(order))
            case 2:
                return viewed(x, flipped(x.layout, plane))
            case 3:
                return viewed(x, flipped(x.layout.permuted(order), [second]))
        return x

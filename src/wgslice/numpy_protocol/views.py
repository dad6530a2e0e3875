"""NumPy's functions that give views of tensors: dimensions moved, added, flipped, repeated or cut."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Literal, SupportsIndex

import numpy as np

from wgslice.arguments import checked_shape, distinct_axes, one_or_more
from wgslice.errors import named
from wgslice.rearrange import flipped, repeated_to, unsqueezed
from wgslice.tensors.placed import check_no_sequence, check_tensor, read_only
from wgslice.tensors.tensor import Tensor, viewed

__all__ = [
    "broadcast_arrays",
    "expand_dims",
    "flip",
    "meshgrid",
    "moveaxis",
    "rot90",
    "split",
    "swapaxes",
    "unstack",
]


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
    """View with two dimensions exchanged, as `numpy.swapaxes`."""
    with named("swapaxes"):
        check_tensor("x", x)
    return x.swapaxes(axis1, axis2)


def expand_dims(x: Tensor, axis: SupportsIndex | Iterable[SupportsIndex]) -> Tensor:
    """View with further dimensions of size 1, as `numpy.expand_dims`."""
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
    """View turned by `k` right angles in the plane of two dimensions, as `numpy.rot90`."""
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


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Read-only views of one common shape, as `numpy.broadcast_arrays`; tensors of that shape as they are."""
    with named("broadcast_arrays"):
        for number, array in enumerate(arrays):
            check_tensor(f"arrays[{number}]", array)
        sizes = checked_shape(np.broadcast_shapes(*(array.shape for array in arrays)))
        if all(array.shape == sizes for array in arrays):
            return arrays
        return tuple(read_only(array, repeated_to(array.layout, sizes)) for array in arrays)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Read-only views that repeat coordinates over the grid that they span, as `numpy.meshgrid`."""
    with named("meshgrid"):
        if indexing not in ("xy", "ij"):
            raise ValueError(f"indexing = {indexing!r}: must be 'xy' or 'ij'")
        for number, array in enumerate(arrays):
            check_tensor(f"arrays[{number}]", array)
            if array.ndim > 1:
                raise ValueError(f"arrays[{number}] has rank {array.ndim}: must have rank 1")
        places = list(range(len(arrays)))  # the dimension of each coordinate
        if indexing == "xy":
            places[:2] = places[:2][::-1]
        sizes = [0] * len(arrays)
        for array, place in zip(arrays, places, strict=True):
            sizes[place] = array.size
        grid = checked_shape(sizes)
        found = []
        for array, place in zip(arrays, places, strict=True):
            along = array.layout if array.ndim else array.layout.select([None])
            behind = [None] * (len(grid) - 1 - place)
            found.append(read_only(array, repeated_to(along.select([range(array.size), *behind]), grid)))
        return tuple(found)


def unstack(x: Tensor, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """Views of each index along a dimension, as `numpy.unstack`."""
    with named("unstack"):
        check_tensor("x", x)
        (along,) = distinct_axes("axis", axis, x.ndim)
        whole = [range(size) for size in x.shape]
        return tuple(
            viewed(x, x.layout.select([*whole[:along], index, *whole[along + 1 :]])) for index in whole[along]
        )


def split(
    x: Tensor, indices_or_sections: SupportsIndex | Iterable[SupportsIndex], axis: SupportsIndex = 0
) -> list[Tensor]:
    """Take a tensor apart into pieces along a dimension; the semantics are those of `numpy.split`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 or more.
    indices_or_sections : int or sequence of int
        Into how many equal pieces, or at which indices the second and later pieces begin.
    axis : int
        The dimension that is cut; a negative one counts from the last.

    Returns
    -------
    list of Tensor
        Views.

    Raises
    ------
    TypeError
        `x` is no tensor, or a number is no integer.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`), or the dimension does not divide into so many
        equal pieces.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> q, k, v = wg.split(wg.asarray(np.arange(12).reshape(2, 6)), 3, axis=1)
    >>> k.numpy()
    array([[2, 3],
           [8, 9]])
    >>> [part.shape for part in wg.split(q, [1], axis=0)]
    [(1, 2), (1, 2)]
    """
    with named("split"):
        check_tensor("x", x)
        (along,) = distinct_axes("axis", axis, x.ndim)
        size = x.shape[along]
        check_no_sequence(indices_or_sections)
        if np.ndim(indices_or_sections) == 0:  # type: ignore[arg-type]  # of anything
            (sections,) = one_or_more("indices_or_sections", indices_or_sections)
            if sections < 1 or size % sections:
                raise ValueError(
                    f"indices_or_sections = {sections}: size {size} of axis {along} does not divide into so "
                    "many equal pieces; name the indices to cut at"
                )
            bounds = [size // sections * number for number in range(sections + 1)]
        else:
            bounds = [0, *one_or_more("indices_or_sections", indices_or_sections), size]
        whole = [range(each) for each in x.shape]
        return [
            viewed(x, x.layout.select([*whole[:along], whole[along][slice(*cut)], *whole[along + 1 :]]))
            for cut in pairwise(bounds)
        ]

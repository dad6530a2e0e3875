"""Tensors repeated to each other's sizes: views."""

from __future__ import annotations

from typing import Literal

import numpy as np

from wgslice.arguments import checked_shape
from wgslice.errors import named
from wgslice.rearrange import repeated_to
from wgslice.tensors.placed import check_tensor, read_only
from wgslice.tensors.tensor import Tensor

__all__ = ["broadcast_arrays", "meshgrid"]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Repeat tensors to the shape that all broadcast to; the semantics are those of NumPy's function.

    Parameters
    ----------
    arrays : Tensor
        Of any shapes that broadcast, dtypes and devices.

    Returns
    -------
    tuple of Tensor
        The tensors themselves if they have the same shape, else read-only views, in which repeated
        dimensions have stride 0.

    Raises
    ------
    TypeError
        One is no tensor.
    ValueError
        The shapes do not broadcast to each other.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.broadcasting import broadcast_arrays
    >>> row, column = broadcast_arrays(wg.asarray([1, 2, 3]), wg.asarray([[4], [5]]))
    >>> column.numpy()
    array([[4, 4, 4],
           [5, 5, 5]])
    """
    with named("broadcast_arrays"):
        for number, array in enumerate(arrays):
            check_tensor(f"arrays[{number}]", array)
        sizes = checked_shape(np.broadcast_shapes(*(array.shape for array in arrays)))
        if all(array.shape == sizes for array in arrays):
            return arrays
        return tuple(read_only(array, repeated_to(array.layout, sizes)) for array in arrays)


def meshgrid(*arrays: Tensor, indexing: Literal["xy", "ij"] = "xy") -> tuple[Tensor, ...]:
    """Repeat coordinates over the grid that they span; the semantics are those of `numpy.meshgrid`.

    Parameters
    ----------
    arrays : Tensor
        Each of rank 1, or 0 for one coordinate; at most 8.
    indexing : "xy" or "ij"
        Whether the first two change places, so that the first runs along rows, or dimensions come in order.

    Returns
    -------
    tuple of Tensor
        Read-only views, one for each coordinate, in which repeated dimensions have stride 0.

    Raises
    ------
    TypeError
        One is no tensor.
    ValueError
        One has a higher rank, there are more than 8, or `indexing` is something else.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.broadcasting import meshgrid
    >>> x, y = meshgrid(wg.asarray([1, 2, 3]), wg.asarray([4, 5]))
    >>> y.numpy()
    array([[4, 4, 4],
           [5, 5, 5]])
    """
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

"""Elements taken by their indices along a dimension."""

from __future__ import annotations

from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.arrays.assembled import check_readable
from wgslice.errors import named
from wgslice.gpu.recording import run
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import integer_array, windows_of
from wgslice.plans.aside import plan_anew
from wgslice.plans.extract_windows import extract_windows_planner
from wgslice.rearrange import reshaped
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, allocate, packed_copy, viewed

__all__ = ["flattened", "gathered", "take"]


def take(x: Tensor, indices: ArrayLike, axis: SupportsIndex | None = None) -> Tensor:
    """Take elements by their indices along a dimension; the semantics are those of `numpy.take`.

    Parameters
    ----------
    x : Tensor
        Of any rank; views welcome.
    indices : array_like of int
        Of any shape; negative ones count from the last element.
    axis : int, optional
        The dimension; a negative one counts from the last. By default all elements in row-major order.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own, with the dimensions of `indices` in place of `axis`. The work is
        submitted, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or `indices` are no integers.
    IndexError
        An index is out of range.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`), the result would have more than 8 dimensions,
        or the buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.take(wg.asarray(np.arange(12).reshape(3, 4)), [2, 0], axis=1).numpy()
    array([[ 2,  0],
           [ 6,  4],
           [10,  8]])
    """
    with named("take"):
        check_tensor("x", x)
        along = 0 if axis is None else distinct_axes("axis", axis, x.ndim)[0]
        taken = integer_array("indices", indices)
        check_indices(taken, x.size if axis is None else x.shape[along], along)
        check_readable(x.device, x, "x")
        return gathered(flattened(x) if axis is None else x, taken, along)


def check_indices(indices: NDArray[np.int64], size: int, axis: int) -> None:
    """Refuse what is no index of a dimension, as NumPy does."""
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise IndexError(f"index {outside[0]} is out of bounds for axis {axis} with size {size}")


def flattened(x: Tensor) -> Tensor:
    """All elements in row-major order: a view, or a copy where there is none."""
    flat = reshaped(x.layout, [x.size])
    return viewed(packed_copy(x), Layout.packed([x.size])) if flat is None else viewed(x, flat)


def gathered(x: Tensor, indices: NDArray[np.int64], axis: int) -> Tensor:
    """Windows of one element along an axis, and whole along the others, in one dispatch."""
    sizes = checked_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    result = allocate(sizes, x.dtype, x.device)
    if result.size:
        offsets: NDArray[Any] = np.zeros((indices.size, x.ndim), np.int64)
        offsets[:, axis] = indices.reshape(-1) % x.shape[axis]
        extents = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        target = Layout.packed((*x.shape[:axis], indices.size, 1, *x.shape[axis + 1 :]))
        order = [axis, *(number for number in range(target.rank) if number != axis)]
        operand = result.operand._replace(layout=target.permuted(order), fresh=True)
        planner = extract_windows_planner(windows_of(offsets, x.shape, extents, None, None))
        run(x.device, planner, x.operand, operand, planning=plan_anew)
    return result

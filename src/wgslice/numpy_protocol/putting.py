"""Scatters: elements written at indices along a dimension."""

from __future__ import annotations

from typing import Literal, SupportsIndex, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import one_axis
from wgslice.errors import named, public
from wgslice.layout_rules import reshaped
from wgslice.numpy_protocol.taking import along_axis, as_indices
from wgslice.plans.overlaps import kept_overlap
from wgslice.tensors.indexing import assign
from wgslice.tensors.placed import check_tensor, viewed
from wgslice.tensors.tensor import Tensor

Repeated: TypeAlias = Literal["last", "refuse", "disjoint"]


@public()
def put(
    x: Tensor,
    indices: Tensor | ArrayLike,
    values: Tensor | ArrayLike,
    axis: SupportsIndex = 0,
    *,
    overlap: Repeated = "last",
) -> None:
    """Write elements at indices along a dimension: `x[..., indices, ...] = values`.

    Parameters
    ----------
    x : Tensor
        Written in place; of rank 1 at least.
    indices : array_like of int, or Tensor of integers
        Of any shape; negative ones count from the end. A tensor is not read back: values for
        indices out of range are dropped.
    values : Tensor or array_like
        Broadcast to the shape that `take(x, indices, axis)` has. A tensor has `x`'s dtype; an array is cast
        as in ``x[...] = values``.
    axis : int, optional
        The dimension; a negative one counts from the last.
    overlap : {"last", "refuse", "disjoint"}, optional
        Rule for equal indices: "last" lets the last one win. "refuse" raises ValueError, for indices in an
        array. "disjoint" promises that there are none, which saves the last-writer pass for elements of up
        to 4 bytes. If some are equal, either value stays, and no other byte changes.

    Returns
    -------
    None
        The work is submitted, not waited for.

    Raises
    ------
    TypeError
        `x` is not a tensor, `indices` are not integers, or dtypes differ.
    IndexError
        An index of an array is out of range; of a tensor, if the environment has WGSLICE_CHECK_INDICES=1.
    ValueError
        Indices are equal, or in a tensor, and `overlap` is "refuse"; `axis` is out of range
        (`numpy.exceptions.AxisError`), shapes do not broadcast, `x` is read-only, or its buffer is
        destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for indices and values, or is lost.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.zeros((2, 4), np.int32)
    >>> wg.put(x, [3, -4, 3], [1, 2, 5], axis=1)
    >>> x.numpy()
    array([[2, 0, 0, 5],
           [2, 0, 0, 5]], dtype=int32)
    """
    check_tensor("x", x, written=True)
    along = one_axis("axis", axis, x.ndim)
    places = as_indices(indices)
    if overlap not in get_args(Repeated):
        raise ValueError(f"overlap = {overlap!r}: must be 'last', 'refuse' or 'disjoint'")
    if overlap == "refuse":
        check_distinct(places, x.shape[along])
    distinct = kept_overlap(overlap, x.itemsize) != "last"
    assign(x, (*[slice(None)] * along, places), values, disjoint=distinct)


def put_along_axis(
    x: Tensor, indices: Tensor | ArrayLike, values: Tensor | ArrayLike, axis: SupportsIndex | None
) -> None:
    """Write an element for each index along a dimension, as `numpy.put_along_axis`."""
    with named("put_along_axis"):
        check_tensor("x", x, written=True)
        layout = x.layout if axis is not None else reshaped(x.layout, (x.size,))
        if layout is None:
            raise ValueError(f"shape {x.shape} with strides {x.strides} has no flat view: give an axis")
        flat = viewed(x, layout)
        assign(flat, along_axis("put_along_axis", flat.shape, indices, 0 if axis is None else axis), values)


def check_distinct(indices: Tensor | NDArray[np.int64], size: int) -> None:
    """Refuse equal indices, and device-resident ones, which cannot be compared."""
    if isinstance(indices, Tensor):
        raise ValueError(
            'overlap = "refuse": equal indices in a tensor cannot be refused; overlap="last" lets the last '
            'one win, overlap="disjoint" promises that there are none, or give indices in an array'
        )
    found, counts = np.unique(np.where(indices < 0, indices + size, indices), return_counts=True)
    if (counts > 1).any():
        twice = int(found[counts > 1][0])
        raise ValueError(
            f"{int(counts[counts > 1][0])} indices name element {twice}: must be distinct; "
            'overlap="last" lets the last one win'
        )

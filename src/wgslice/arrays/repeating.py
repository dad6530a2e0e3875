"""Tensors, or their elements, several times."""

from __future__ import annotations

from collections.abc import Iterable
from math import prod
from typing import SupportsIndex

import numpy as np

from wgslice.arguments import checked_shape, distinct_axes, flat_integers, one_or_more
from wgslice.arrays.assembled import assembled, check_readable, filled_by
from wgslice.arrays.taking import flattened
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.layout_rules import stages, tiled
from wgslice.rearrange import unsqueezed
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, allocate

__all__ = ["repeat", "tile"]


def tile(x: Tensor, repetitions: SupportsIndex | Iterable[SupportsIndex]) -> Tensor:
    """Put copies of a tensor one behind the other; the semantics are those of `numpy.tile`.

    Parameters
    ----------
    x : Tensor
        Of any rank; views welcome.
    repetitions : int or sequence of int
        How often along each dimension, from the last one on, at least 0; once along those that it does not
        name, and further dimensions where it names more.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or a number is no integer.
    ValueError
        A number is negative, the result would have more than 8 dimensions, or the buffer is destroyed or
        mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.tile(wg.asarray([[1, 2]]), (2, 2)).numpy()
    array([[1, 2, 1, 2],
           [1, 2, 1, 2]])
    """
    with named("tile"):
        check_tensor("x", x)
        counts = one_or_more("repetitions", repetitions)
        if min(counts, default=0) < 0:
            raise ValueError(f"repetitions = {counts}: must not be negative")
        rank = max(x.ndim, len(counts))
        counts = (1,) * (rank - len(counts)) + counts
        layout = unsqueezed(x.layout, range(rank - x.ndim))
        sizes = checked_shape([size * count for size, count in zip(layout.sizes, counts, strict=True)])
        check_readable(x.device, x, "x")
        if 0 in sizes:
            return allocate(sizes, x.dtype, x.device)
        return assembled(x, stages(layout, list(map(tiled, layout.sizes, counts))))


def repeat(
    x: Tensor, repeats: SupportsIndex | Iterable[SupportsIndex], axis: SupportsIndex | None = None
) -> Tensor:
    """Repeat each element, beside itself; the semantics are those of `numpy.repeat`.

    Parameters
    ----------
    x : Tensor
        Of any rank; views welcome.
    repeats : int or sequence of int
        How often, at least 0: each element along `axis`, or one number for all. Bools are 0 and 1.
    axis : int, optional
        The dimension that grows; a negative one counts from the last. By default all elements are taken, in
        row-major order, and the result has one dimension.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for; a view whose elements are
        repeated differently in row-major order, and that cannot be flattened, is copied first.

    Raises
    ------
    TypeError
        `x` is no tensor, or a number is no integer. A tensor is none: the size of the result depends on its
        elements, so read it back.
    ValueError
        A number is negative or text, numbers are nested, there are neither one nor as many as elements along
        `axis`, `axis` is out of range (`numpy.exceptions.AxisError`), or the buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.repeat(wg.asarray([[1, 2], [3, 4]]), 2, axis=1).numpy()
    array([[1, 1, 2, 2],
           [3, 3, 4, 4]])
    """
    with named("repeat"):
        check_tensor("x", x)
        if isinstance(repeats, Tensor):
            raise TypeError(
                "repeats is a Tensor: the size of the result depends on its elements, so read it back first: "
                "repeats.numpy()"
            )
        counts = flat_integers("repeats", repeats)
        if min(counts, default=0) < 0:
            raise ValueError(f"repeats = {counts}: must not be negative")
        if axis is not None and x.ndim == 0:
            x = x[None]  # one element in one dimension, as in NumPy
        along = None if axis is None else distinct_axes("axis", axis, x.ndim)[0]
        size = x.size if along is None else x.shape[along]
        if len(counts) not in (1, size):
            raise ValueError(f"repeats has {len(counts)} numbers: must be one, or {size}, one an element")
        check_readable(x.device, x, "x")
        if len(counts) == 1:
            return evenly(x, counts[0], along)
        indices = np.repeat(np.arange(size), counts)
        return flattened(x)[indices] if along is None else x[(*[slice(None)] * along, indices)]


def evenly(x: Tensor, count: int, axis: int | None) -> Tensor:
    """Each element as often: one copy of a tensor with a repeated dimension behind the one that grows."""
    behind = x.ndim if axis is None else axis + 1
    sizes = (*x.shape[:behind], count, *x.shape[behind:])
    shape = [prod(sizes)] if axis is None else [*x.shape[:axis], x.shape[axis] * count, *x.shape[behind:]]
    layout = x.layout.select([*map(range, x.shape[:behind]), None, *map(range, x.shape[behind:])])
    if count == 0:
        return allocate(checked_shape(shape), x.dtype, x.device)
    source = Layout.of(sizes, [*layout.strides[:behind], 0, *layout.strides[behind + 1 :]], layout.offset)
    return filled_by(checked_shape(shape), x, [(x, source, Layout.packed(sizes))])

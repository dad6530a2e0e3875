"""Tensors put together along a dimension, and taken apart again."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise
from typing import SupportsIndex

import numpy as np

from wgslice.arguments import checked_shape, distinct_axes, one_or_more
from wgslice.arrays.assembled import alike, check_readable, filled_by
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.rearrange import parts, unsqueezed
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["concat", "split", "stack", "unstack"]


def concat(arrays: Iterable[Tensor], axis: SupportsIndex | None = 0) -> Tensor:
    """Put tensors one behind the other; the semantics are those of `numpy.concatenate`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one dtype and on one device, with equal sizes but for that of `axis`; views welcome.
    axis : int or None
        The dimension along which they lie; a negative one counts from the last. With None all elements of
        each tensor, in row-major order.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        One is no tensor, or the dtypes differ: elements are moved, not converted.
    ValueError
        There is none, they have no dimensions, sizes or devices differ, `axis` is out of range
        (`numpy.exceptions.AxisError`), or a buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6).reshape(2, 3))
    >>> wg.concat([x, x[:, ::-2]], axis=1).numpy()
    array([[0, 1, 2, 2, 0],
           [3, 4, 5, 5, 3]])
    """
    with named("concat"):
        given = alike(arrays)
        if axis is None:
            *starts, end = accumulate((x.size for x in given), initial=0)
            flat = [Layout.packed(x.shape, start) for x, start in zip(given, starts, strict=True)]
            return put_together(given, [x.layout for x in given], flat, checked_shape(end))
        first = given[0].shape
        if not first:
            raise ValueError("zero-dimensional arrays cannot be concatenated; stack puts them together")
        (along,) = distinct_axes("axis", axis, len(first))
        others = first[:along] + first[along + 1 :]
        for number, x in enumerate(given):
            if x.ndim != len(first) or x.shape[:along] + x.shape[along + 1 :] != others:
                raise ValueError(
                    f"arrays[{number}] has shape {x.shape}: must be {first} as arrays[0] has, but for axis "
                    f"{along}"
                )
        return joined(given, [x.layout for x in given], along)


def stack(arrays: Iterable[Tensor], axis: SupportsIndex = 0) -> Tensor:
    """Put tensors one behind the other along a new dimension; the semantics are those of `numpy.stack`.

    Parameters
    ----------
    arrays : sequence of Tensor
        At least one, of one shape and dtype and on one device; views welcome.
    axis : int
        The new dimension, as the result counts; a negative one counts from the last.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        One is no tensor, or the dtypes differ: elements are moved, not converted.
    ValueError
        There is none, shapes or devices differ, `axis` is out of range (`numpy.exceptions.AxisError`), the
        result would have more than 8 dimensions, or a buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(3))
    >>> wg.stack([x, x[::-1]], axis=1).numpy()
    array([[0, 2],
           [1, 1],
           [2, 0]])
    """
    with named("stack"):
        given = alike(arrays)
        for number, x in enumerate(given):
            if x.shape != given[0].shape:
                raise ValueError(
                    f"arrays[{number}] has shape {x.shape}: must be {given[0].shape} as arrays[0] has"
                )
        (along,) = distinct_axes("axis", axis, given[0].ndim + 1)
        return joined(given, [unsqueezed(x.layout, [along]) for x in given], along)


def joined(tensors: list[Tensor], layouts: list[Layout], axis: int) -> Tensor:
    """Layouts of tensors one behind the other; their sizes differ along the axis only."""
    counts = [layout.sizes[axis] for layout in layouts]
    sizes = list(layouts[0].sizes)
    sizes[axis] = sum(counts)
    return put_together(tensors, layouts, parts(Layout.packed(checked_shape(sizes)), axis, counts), sizes)


def put_together(
    tensors: list[Tensor], layouts: list[Layout], targets: list[Layout], sizes: Sequence[int]
) -> Tensor:
    """Each tensor's layout in a part of a new tensor; all must be on the first one's device."""
    for number, x in enumerate(tensors):
        check_readable(tensors[0].device, x, f"arrays[{number}]")
    return filled_by(sizes, tensors[0], zip(tensors, layouts, targets, strict=True))


def unstack(x: Tensor, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """Take a tensor apart along a dimension; the semantics are those of `numpy.unstack`.

    Parameters
    ----------
    x : Tensor
        Of rank 1 or more.
    axis : int
        The dimension that the parts do not have; a negative one counts from the last.

    Returns
    -------
    tuple of Tensor
        Views, as many as `x` has elements along `axis`.

    Raises
    ------
    TypeError
        `x` is no tensor, or `axis` no integer.
    ValueError
        `axis` is out of range (`numpy.exceptions.AxisError`).

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> from wgslice.arrays.concat import unstack
    >>> red, green, blue = unstack(wg.asarray(np.arange(12).reshape(2, 2, 3)), axis=-1)
    >>> green.numpy()
    array([[ 1,  4],
           [ 7, 10]])
    """
    with named("unstack"):
        check_tensor("x", x)
        (along,) = distinct_axes("axis", axis, x.ndim)
        before = [range(size) for size in x.shape[:along]]
        behind = [range(size) for size in x.shape[along + 1 :]]
        return tuple(viewed(x, x.layout.select([*before, index, *behind])) for index in range(x.shape[along]))


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
        return [viewed(x, piece(x.layout, along, slice(*cut))) for cut in pairwise(bounds)]


def piece(layout: Layout, axis: int, part: slice) -> Layout:
    """What a slice selects along an axis."""
    taken = [range(size) for size in layout.sizes]
    taken[axis] = taken[axis][part]
    return layout.select(taken)

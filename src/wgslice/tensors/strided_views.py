"""Views of a tensor by strides: diagonals, sliding windows, and any other."""

from __future__ import annotations

from typing import SupportsIndex

from wgslice import layout_rules
from wgslice.arguments import (
    MAX_RANK,
    Integers,
    OneOrMore,
    checked_shape,
    integer,
    integers,
    one_axis,
    one_or_more,
)
from wgslice.errors import named, public
from wgslice.layout import Layout
from wgslice.tensors.placed import READ_ONLY, check_tensor, viewed
from wgslice.tensors.tensor import Tensor


@public()
def as_strided(x: Tensor, shape: OneOrMore, strides: Integers, *, offset: SupportsIndex = 0) -> Tensor:
    """View elements of a tensor by any strides, as `numpy.lib.stride_tricks.as_strided` does.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    shape : int or sequence of int
        Up to 8 sizes.
    strides : sequence of int
        Strides in elements, one per dimension, as `x.strides`; 0 repeats elements, negative ones go
        backwards.
    offset : int, optional
        Bytes from the first element of `x` to that of the view, a multiple of the item size, as for
        `from_buffer`; may be negative.

    Returns
    -------
    Tensor
        A view, read-only if two indices share an element.

    Raises
    ------
    TypeError
        `x` is not a tensor, or a number is not an integer.
    ValueError
        The view would reach an element before the lowest or after the highest of `x`; strides and sizes
        differ in number; the rank is above 8; the offset is not a multiple of the item size; or the strides
        interleave too irregularly to decide whether elements are shared.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> x = wg.asarray(np.arange(6))
    >>> wg.as_strided(x, (3, 2), (1, -1), offset=x.itemsize).numpy()
    array([[1, 0],
           [2, 1],
           [3, 2]])
    """
    check_tensor("x", x)
    sizes, steps = checked_shape(shape), integers("strides", strides)
    if len(steps) != len(sizes):
        raise ValueError(f"{len(steps)} strides for {len(sizes)} dimensions: pass one per dimension")
    start, rest = divmod(integer("offset", offset), x.itemsize)
    if rest:
        raise ValueError(f"offset = {offset} bytes: must be a multiple of the item size, {x.itemsize}")
    layout = Layout.of(sizes, steps, x.layout.offset + start)
    if layout.size and not x.layout.lowest <= layout.lowest < layout.stop <= x.layout.stop:
        (low, high), (lowest, highest) = (
            (each.lowest - x.layout.offset, each.stop - 1 - x.layout.offset) for each in (layout, x.layout)
        )
        raise ValueError(
            f"shape {sizes} with strides {steps} reaches elements {low} to {high} from the first of x: "
            f"must be within those of x, {lowest} to {highest}; from_buffer views a whole buffer"
        )
    return viewed(x, layout, READ_ONLY if layout.overlaps else None)


def diagonal(
    a: Tensor, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1
) -> Tensor:
    """View the diagonal of two dimensions as the last one, read-only, as `numpy.diagonal`."""
    with named("diagonal"):
        check_tensor("a", a)
        if a.ndim < 2:
            raise ValueError(f"a has shape {a.shape}: diag requires an array of at least two dimensions")
        first, second = one_axis("axis1", axis1, a.ndim), one_axis("axis2", axis2, a.ndim)
        if first == second:
            raise ValueError(f"axis1 = {axis1} and axis2 = {axis2}: axis1 and axis2 cannot be the same")
        return viewed(a, layout_rules.diagonal(a.layout, integer("offset", offset), first, second), READ_ONLY)


def sliding_window_view(x: Tensor, window_shape: OneOrMore, axis: OneOrMore | None = None) -> Tensor:
    """View all windows along dimensions, read-only, as `numpy.lib.stride_tricks.sliding_window_view`."""
    with named("sliding_window_view"):
        check_tensor("x", x)
        windows = one_or_more("window_shape", window_shape)
        if axis is None and len(windows) != x.ndim:
            raise ValueError(
                f"Since axis is `None`, must provide window_shape for all dimensions of `x`; got "
                f"{len(windows)} window_shape elements and `x.ndim` is {x.ndim}."
            )
        given = range(x.ndim) if axis is None else one_or_more("axis", axis)
        axes = [one_axis("axis", each, x.ndim) for each in given]  # one may be named twice
        if len(windows) != len(axes):
            raise ValueError(f"window_shape has {len(windows)} sizes, for {len(axes)} axes")
        sizes = list(x.shape)
        for along, window in zip(axes, windows, strict=True):
            if not 0 <= window <= sizes[along]:
                raise ValueError(
                    f"window_shape = {windows}: must be 0 to {sizes[along]}, the size, along axis {along}"
                )
            sizes[along] -= window - 1
        if x.ndim + len(axes) > MAX_RANK:
            raise ValueError(f"the result would have rank {x.ndim + len(axes)}: at most {MAX_RANK}")
        steps = [x.strides[along] for along in axes]
        return viewed(x, Layout.of([*sizes, *windows], [*x.strides, *steps], x.layout.offset), READ_ONLY)

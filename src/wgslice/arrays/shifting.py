"""Elements shifted along dimensions, around their ends."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

from numpy.exceptions import AxisError

from wgslice.arguments import flat_integers, one_or_more
from wgslice.arrays.assembled import assembled, check_readable
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.layout_rules import Stage, rolled, stages
from wgslice.rearrange import reshaped
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["roll"]


def roll(
    x: Tensor,
    shift: SupportsIndex | Iterable[SupportsIndex],
    axis: SupportsIndex | Iterable[SupportsIndex] | None = None,
) -> Tensor:
    """Shift elements; those that leave at one end come in at the other. The semantics are `numpy.roll`'s.

    Parameters
    ----------
    x : Tensor
        Of any rank; views welcome.
    shift : int or sequence of int
        By how many places towards higher indices; negative ones towards lower ones.
    axis : int or sequence of int, optional
        The dimensions, one for each shift; one of either stands for all of the other, and shifts of one
        dimension add up. By default all elements are shifted in row-major order, across dimensions.

    Returns
    -------
    Tensor
        Packed, in a buffer of its own. The work is one submission, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or a number is no integer.
    ValueError
        `shift` is text or nested, an axis is out of range (`numpy.exceptions.AxisError`), there are other
        numbers of shifts and axes, or the buffer is destroyed or mapped.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the result, or is gone.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> wg.roll(wg.asarray(np.arange(6).reshape(2, 3)), 1, axis=1).numpy()
    array([[2, 0, 1],
           [5, 3, 4]])
    """
    with named("roll"):
        check_tensor("x", x)
        shifts = flat_integers("shift", shift)
        if axis is None:
            check_readable(x.device, x, "x")
            found, flat = [], reshaped(x.layout, [x.size])
            if flat is None:
                flat = Layout.packed([x.size])
                found = [Stage(flat.sizes, [(x.layout, Layout.packed(x.shape))])]
            shifted = assembled(x, [*found, *stages(flat, [rolled(x.size, sum(shifts))])])
            return viewed(shifted, Layout.packed(x.shape))
        totals = [0] * x.ndim
        for along, places in paired(one_or_more("axis", axis), shifts):
            if not -x.ndim <= along < x.ndim:
                raise AxisError(along, x.ndim)
            totals[along] += places
        check_readable(x.device, x, "x")
        return assembled(x, stages(x.layout, list(map(rolled, x.shape, totals))))


def paired(axes: tuple[int, ...], shifts: tuple[int, ...]) -> Iterable[tuple[int, int]]:
    """Each axis with its shift; one of either stands for all of the other."""
    if len(axes) == 1:
        axes *= len(shifts)
    if len(shifts) == 1:
        shifts *= len(axes)
    if len(axes) != len(shifts):
        raise ValueError(f"shift has {len(shifts)} numbers, axis {len(axes)}: must be as many, or one")
    return zip(axes, shifts, strict=True)

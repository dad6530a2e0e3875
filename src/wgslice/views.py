"""Other views on a tensor than indexing gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import numpy as np

from wgslice.errors import named
from wgslice.integers import one_or_more
from wgslice.tensor import Tensor, check_tensor

__all__ = ["reverse"]


def reverse(x: Tensor, axes: SupportsIndex | Iterable[SupportsIndex] | None = None) -> Tensor:
    """Flip the order of elements, as `numpy.flip` and WebNN's `reverse` do.

    Parameters
    ----------
    x : Tensor
        Of any rank.
    axes : int or sequence of int, optional
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
    """
    with named("reverse"):
        check_tensor("x", x)
        flipped = range(x.ndim) if axes is None else normalized_axes(axes, x.ndim)
        ranges = [
            range(size - 1, -1, -1) if axis in flipped else range(size) for axis, size in enumerate(x.shape)
        ]
        return Tensor(x.device, x.buffer, x.dtype, x.layout.select(ranges))


def normalized_axes(axes: SupportsIndex | Iterable[SupportsIndex], rank: int) -> Sequence[int]:
    """Axes from 0 to rank - 1, each once."""
    named_axes = one_or_more("axes", axes)
    for axis in named_axes:
        if not -rank <= axis < rank:
            raise np.exceptions.AxisError(axis, rank)
    normalized = [axis % rank for axis in named_axes]
    if len(set(normalized)) < len(normalized):
        raise ValueError(f"axes = {named_axes}: an axis is repeated")
    return normalized

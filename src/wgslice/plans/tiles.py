"""Which two dimensions of a permuted copy are cut into square tiles."""

from __future__ import annotations

from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES

__all__ = ["rows_spanned", "tile_axis", "wide_tile_axis"]

TILE_STEPS = (1, 2, 4)  # between source elements down the columns of tiles


def tile_axis(source: Layout, target: Layout) -> int | None:
    """The dimension of the source's neighbours, or of every second or fourth of them.

    None where it is the target's. The nearest neighbours are taken, of equally near ones the longest.
    """
    if target.rank < 2 or target.strides[-1] != 1:
        return None
    found = [
        (-abs(stride), size, axis)
        for axis, (size, stride) in enumerate(zip(source.sizes, source.strides, strict=True))
        if abs(stride) in TILE_STEPS and min(size, target.sizes[-1]) >= 2
    ]
    axis = max(found)[2] if found else target.rank - 1
    nearer = axis == target.rank - 1 or 0 < abs(source.strides[-1]) <= abs(source.strides[axis])
    return None if nearer else axis


def wide_tile_axis(source: Layout, target: Layout, width_nbytes: int) -> int | None:
    """That dimension, where both sides are whole vectors of 16 bytes beside it."""
    axis = tile_axis(source, target)
    if axis is None:
        return None
    lowest = source.offset + min(0, source.reaches[axis])
    places = lowest, target.offset, target.sizes[-1], *target.strides[:-1]
    apart = [stride for other, stride in enumerate(source.strides) if other != axis]
    return axis if all(place * width_nbytes % WIDEST_NBYTES == 0 for place in (*places, *apart)) else None


def rows_spanned(source: Layout, axis: int) -> int:
    """Elements of the source from the first of a dimension to the last."""
    return abs(source.reaches[axis]) + 1

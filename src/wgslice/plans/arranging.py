"""The dimensions of a copy in the order, number and direction in which a kernel takes them."""

from __future__ import annotations

from wgslice.layout import Layout
from wgslice.plans.grids import GRIDS, grid_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.pixels import as_pixels
from wgslice.plans.profiles import Profile
from wgslice.plans.tiles import tile_axis

__all__ = ["arranged"]


def arranged(
    kernel: Kernel, source: Layout, target: Layout, width_nbytes: int, profile: Profile
) -> tuple[Layout, Layout]:
    """The same copy, index by index in another order."""
    apart = kernel.unit_nbytes(width_nbytes) > width_nbytes and target.strides[-1:] != (1,)
    if (kernel.deals_rows and target.rank == 0) or apart:
        source, target = (layout.select([*map(range, layout.sizes), None]) for layout in (source, target))
    if kernel in (Kernel.PIXELS, Kernel.NARROW_ENDS):
        source, target = as_pixels(source, target)
    if kernel in GRIDS:
        missing = [None] * (2 - target.rank)  # dimensions of a plane
        source, target = (layout.select([*missing, *map(range, layout.sizes)]) for layout in (source, target))
        axis = grid_of(kernel, target, width_nbytes, profile).axis
        source, target = (before_last(layout, axis) for layout in (source, target))
    if kernel in (Kernel.TILES, Kernel.WIDE_TILES):
        found = tile_axis(source, target)
        assert found is not None
        source, target = (before_last(layout, found) for layout in (source, target))
    if kernel is Kernel.WIDE_TILES and source.strides[-2] < 0:  # whose vectors are read forwards
        keys = [range(size) for size in source.sizes]
        keys[-2] = keys[-2][::-1]
        source, target = source.select(keys), target.select(keys)
    return source, target


def before_last(layout: Layout, axis: int) -> Layout:
    """The same places with a dimension moved before the last one."""
    others = [other for other in range(layout.rank - 1) if other != axis]
    return layout.permuted([*others, axis, layout.rank - 1])

"""A copy in wider elements than those of the tensor."""

from __future__ import annotations

from math import gcd

from wgslice.layout import Layout, coalesce
from wgslice.plans.kernels import WIDEST_NBYTES

__all__ = ["widen"]


def widen(source: Layout, target: Layout, itemsize: int) -> tuple[Layout, Layout, int]:
    """The same copy in the widest elements that divide the contiguous runs, all strides and all offsets."""
    if target.rank == 0 or not source.strides[-1] == target.strides[-1] == 1:
        return source, target, itemsize
    factor = gcd(
        WIDEST_NBYTES // itemsize,
        target.sizes[-1],
        source.offset,
        target.offset,
        *source.strides[:-1],
        *target.strides[:-1],
    )
    if factor == 1:
        return source, target, itemsize
    return *coalesce(in_units(source, factor), in_units(target, factor)), itemsize * factor


def in_units(layout: Layout, factor: int) -> Layout:
    """A layout with contiguous innermost runs, counted in elements `factor` times as wide."""
    *outer_sizes, run = layout.sizes
    outer_strides = [stride // factor for stride in layout.strides[:-1]]
    return Layout.of([*outer_sizes, run // factor], [*outer_strides, 1], layout.offset // factor)

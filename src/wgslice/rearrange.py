"""Other views of the elements of a layout, as NumPy makes them; what makes none is refused."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import SupportsIndex

from wgslice.arguments import MAX_RANK, OneOrMore, checked_shape, distinct_axes, integer
from wgslice.layout import Layout

__all__ = [
    "broadcast",
    "flipped",
    "parts",
    "permuted",
    "repeated",
    "repeated_to",
    "reshaped",
    "squeezed",
    "unsqueezed",
    "without_leading_ones",
]


def flipped(layout: Layout, axes: OneOrMore | None = None) -> Layout:
    """`layout` with `axes`, or all, from the last index to the first."""
    chosen = range(layout.rank) if axes is None else distinct_axes("axes", axes, layout.rank)
    return layout.select(
        [range(size - 1, -1, -1) if axis in chosen else range(size) for axis, size in enumerate(layout.sizes)]
    )


def permuted(layout: Layout, axes: OneOrMore) -> Layout:
    """`layout` with its dimensions in the order of `axes`, each of them once."""
    order = distinct_axes("axes", axes, layout.rank)
    if len(order) != layout.rank:
        raise ValueError(f"axes = {tuple(order)}: must name each of the {layout.rank} dimensions once")
    return layout.permuted(order)


def squeezed(layout: Layout, axis: OneOrMore | None = None) -> Layout:
    """`layout` without dimensions of size 1: those of `axis`, or all."""
    if layout.rank == 0 and isinstance(axis, SupportsIndex) and integer("axis", axis) in (0, -1):
        return layout  # as in NumPy
    ones = [number for number, size in enumerate(layout.sizes) if size == 1]
    dropped = ones if axis is None else distinct_axes("axis", axis, layout.rank)
    for number in dropped:
        if number not in ones:
            raise ValueError(f"axis {number} has size {layout.sizes[number]}: must have size 1")
    return layout.select(
        [0 if number in dropped else range(size) for number, size in enumerate(layout.sizes)]
    )


def unsqueezed(layout: Layout, axes: Sequence[int]) -> Layout:
    """`layout` with further dimensions of size 1, which are `axes` of the result."""
    rank = layout.rank + len(axes)
    if rank > MAX_RANK:
        raise ValueError(f"axes = {axes}: the result would have rank {rank}, must be at most {MAX_RANK}")
    added = distinct_axes("axes", axes, rank)
    sizes = iter(layout.sizes)
    return layout.select([None if axis in added else range(next(sizes)) for axis in range(rank)])


def parts(layout: Layout, axis: int, sizes: Sequence[int]) -> list[Layout]:
    """Parts of `layout` with so many elements each, which lie one behind the other along a dimension."""
    before = [range(size) for size in layout.sizes[:axis]]
    behind = [range(size) for size in layout.sizes[axis + 1 :]]
    return [
        layout.select([*before, range(end - size, end), *behind])
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    ]


def repeated_to(layout: Layout, shape: OneOrMore) -> Layout:
    """`layout` repeated to a tensor's `shape`, to which it must broadcast."""
    return repeated(layout, checked_shape(shape))


def repeated(layout: Layout, sizes: tuple[int, ...]) -> Layout:
    """`layout` repeated to sizes, of any number, to which it must broadcast."""
    found = broadcast(layout, sizes)
    if found is None:
        raise ValueError(
            f"shape {layout.sizes} does not broadcast to {sizes}: from the last one on, each of its sizes "
            "must be equal, 1 or missing"
        )
    return found


def broadcast(layout: Layout, sizes: Sequence[int]) -> Layout | None:
    """`layout` repeated to `sizes` as NumPy broadcasts; None where it does not fit."""
    added = len(sizes) - layout.rank
    own = (1,) * added + layout.sizes
    if added < 0 or any(mine not in (1, size) for mine, size in zip(own, sizes, strict=True)):
        return None
    return Layout.of(sizes, (0,) * added + layout.strides, layout.offset)


def without_leading_ones(layout: Layout, most_rank: int) -> Layout:
    """`layout` without leading dimensions of size 1 beyond a rank, which NumPy ignores where it assigns."""
    beyond = max(layout.rank - most_rank, 0)
    if any(size != 1 for size in layout.sizes[:beyond]):
        return layout
    return layout.select([0] * beyond + [range(size) for size in layout.sizes[beyond:]])


def reshaped(layout: Layout, sizes: Sequence[int]) -> Layout | None:
    """`layout` over other sizes, the same elements in row-major order; None where that needs a copy.

    Neighbours that lie as one dimension would, `stride[i] == size[i + 1] * stride[i + 1]`, are joined to
    runs; it is possible if and only if the new sizes divide each of the runs.
    """
    assert prod(sizes) == layout.size
    if layout.size == 0:
        return Layout.of(sizes, (0,) * len(sizes))
    runs: list[list[int]] = []  # size and stride
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        if size > 1 and runs and runs[-1][1] == size * stride:
            runs[-1] = [runs[-1][0] * size, stride]
        elif size > 1:
            runs.append([size, stride])
    strides = []
    left, stride = 1, 0  # of the run at the end that new dimensions have not used up, from the last one on
    for size in reversed(sizes):
        if left == 1 and size > 1:
            left, stride = runs.pop()
        if left % size:
            return None
        strides.append(stride)
        left, stride = left // size, stride * size
    return Layout.of(sizes, strides[::-1], layout.offset)

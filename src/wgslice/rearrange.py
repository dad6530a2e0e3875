"""Other layouts of the same elements: broadcast, reshaped."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from wgslice.layout import Layout

__all__ = ["broadcast", "reshaped", "without_leading_ones"]


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

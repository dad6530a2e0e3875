"""Buffer copies of contiguous rows."""

from __future__ import annotations

from math import prod

from wgslice.layout import Layout
from wgslice.plans.steps import BufferCopies

__all__ = ["are_whole_words", "row_copies", "row_sizes"]


def are_whole_words(source: Layout, target: Layout, width_nbytes: int) -> bool:
    """Whether buffer copies do it: whether rows, or everything, are contiguous words on both sides."""
    if width_nbytes < 4:
        return False
    packed = source.is_packed and target.is_packed
    return packed or source.strides[-1:] == target.strides[-1:] == (1,)


def row_sizes(source: Layout, target: Layout) -> tuple[int, ...]:
    """How many rows a buffer copy each is for, by dimensions; none of them where one copies everything."""
    return () if source.is_packed and target.is_packed else target.sizes[:-1]


def row_copies(source: Layout, target: Layout, width_nbytes: int) -> BufferCopies:
    """A buffer copy of each contiguous row; of everything, where that is one."""
    rows = [range(size) for size in row_sizes(source, target)]
    firsts: list[int | range] = [*rows, *[0] * (target.rank - len(rows))]
    nbytes = prod(target.sizes[len(rows) :]) * width_nbytes
    source_rows, target_rows = source.select(firsts), target.select(firsts)
    return BufferCopies(in_bytes(source_rows, width_nbytes), in_bytes(target_rows, width_nbytes), nbytes)


def in_bytes(layout: Layout, width_nbytes: int) -> Layout:
    """The same places, counted in bytes."""
    strides = [stride * width_nbytes for stride in layout.strides]
    return Layout.of(layout.sizes, strides, layout.offset * width_nbytes)

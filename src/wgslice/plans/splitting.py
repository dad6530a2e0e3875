"""Copies cut into pieces: what bindings and grids hold, and what a buffer has room for."""

from __future__ import annotations

from collections.abc import Iterator
from math import inf

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.profiles import Limits
from wgslice.plans.terms import LARGEST_BINDING_NBYTES, Terms, span_of

__all__ = ["axis_to_halve", "cut_end", "has_room", "split"]


def split(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits
) -> Iterator[tuple[Layout, Layout]]:
    """Halve a copy until bindings hold both sides of every piece, a grid its elements, a kernel its rank."""
    axis = axis_to_halve(source, target, width_nbytes, limits)
    if axis is None:
        yield source, target
        return
    for piece in zip(source.halves(axis), target.halves(axis), strict=True):
        yield from split(*piece, width_nbytes, limits)


def axis_to_halve(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> int | None:
    """The dimension that reaches furthest on a side too long for a binding, or the longest for a grid.

    Where more dimensions are left than a kernel takes, the shortest.
    """
    longer = [size for size in target.sizes if size > 1]
    if len(longer) > MAX_RANK:
        return target.sizes.index(min(longer))
    most_nbytes = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) // WIDEST_NBYTES * WIDEST_NBYTES
    for side in (source, target):
        if side.stop * width_nbytes > most_nbytes < span_of(side, width_nbytes, limits).nbytes:
            reaches = [abs(reach) for reach in side.reaches]
            return reaches.index(max(reaches))
    if -(-target.size // limits.profile.workgroup_size) > limits.workgroups**2:
        return target.sizes.index(max(target.sizes))
    return None


def has_room(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> bool:
    """Whether both buffers have room to bind the last vector of 16 bytes that holds an element."""
    rooms = terms.source_room_nbytes, terms.target_room_nbytes
    if rooms == (inf, inf):
        return True
    return all(
        layout.stop * width_nbytes <= room for layout, room in zip((source, target), rooms, strict=True)
    )


def cut_end(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms
) -> tuple[tuple[Layout, Layout], tuple[Layout, Layout]] | None:
    """What has room for whole vectors on a side that lacks it for all, and the rest; None if that is all.

    The cut takes indices off the dimension of which it takes the smallest share: mostly the last row.
    """
    rooms = terms.source_room_nbytes, terms.target_room_nbytes
    side, room_nbytes = next(
        (layout, int(room))
        for layout, room in zip((source, target), rooms, strict=True)
        if layout.stop * width_nbytes > room
    )
    missing_nbytes = side.stop * width_nbytes - room_nbytes
    choices = []
    for axis, (size, stride) in enumerate(zip(side.sizes, side.strides, strict=True)):
        count = -(-missing_nbytes // (abs(stride) * width_nbytes)) if stride else size
        choices.append((count / size, axis, count))
    share, axis, count = min(choices, default=(1, 0, 0))  # of a scalar all
    if share >= 1:
        return None
    size = side.sizes[axis]
    bulk, end = [[range(size) for size in side.sizes] for _ in range(2)]
    forwards = side.strides[axis] > 0
    bulk[axis] = range(size - count) if forwards else range(count, size)
    end[axis] = range(size - count, size) if forwards else range(count)
    return (source.select(bulk), target.select(bulk)), (source.select(end), target.select(end))

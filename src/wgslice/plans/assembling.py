"""A result that is put together from windows of a tensor: which copies make it, stage by stage."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, product
from math import prod
from typing import NamedTuple

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout, coalesce
from wgslice.plans.profiles import MOST_PIECES
from wgslice.plans.segments import Segment
from wgslice.rearrange import repeated_to

__all__ = ["Stage", "stages"]


class Stage(NamedTuple):
    """A packed result of these sizes, and copies that fill it: the layouts of what is read and written."""

    sizes: tuple[int, ...]
    copies: list[tuple[Layout, Layout]]


def stages(source: Layout, segmented: Sequence[Sequence[Segment]]) -> list[Stage]:
    """The copies of each combination of segments, one list of them a dimension, all at once.

    One dimension after the other where they are too many, each stage reading the result of the one before;
    likewise where some of several pieces come again and again, or copies have more dimensions than a kernel
    takes.
    """
    changed = [
        axis
        for axis, (segments, size) in enumerate(zip(segmented, source.sizes, strict=True))
        if list(segments) != whole(size)
    ]
    if len(changed) < 2 or not is_split(source, segmented):
        return [stage_of(source, segmented)]
    found = []
    for axis in changed:
        alone = [whole(size) for size in source.sizes]
        alone[axis] = list(segmented[axis])
        found.append(stage_of(source, alone))
        source = Layout.packed(found[-1].sizes)
    return found


def is_split(source: Layout, segmented: Sequence[Sequence[Segment]]) -> bool:
    """Whether fewer or simpler copies make the result one dimension after the other."""
    counts = [len(segments) for segments in segmented]
    if prod(counts) > max(MOST_PIECES, *counts):
        return True
    if prod(counts) > 1:
        return any(segment.repeats > 1 for segment in chain(*segmented))
    ((read, written),) = stage_of(source, segmented).copies
    return coalesce(read, written)[0].rank > MAX_RANK


def whole(size: int) -> list[Segment]:
    """A dimension that stays as it is."""
    return [Segment(range(size), range(size))]


def stage_of(source: Layout, segmented: Sequence[Sequence[Segment]]) -> Stage:
    """The copies of each combination of segments."""
    sizes = tuple(sum(len(part.target) * part.repeats for part in segments) for segments in segmented)
    result = Layout.packed(sizes)
    copies = []
    for piece in product(*segmented):
        written = result.select([segment.target for segment in piece])
        read = source.select([segment.indices for segment in piece])
        read = repeated_to(read, written.sizes)
        added = 0
        for axis, (segment, stride) in enumerate(zip(piece, result.strides, strict=True)):
            if segment.repeats > 1:
                read = with_dimension(read, axis + added, segment.repeats, 0)
                written = with_dimension(written, axis + added, segment.repeats, segment.period * stride)
                added += 1
        copies.append((read, written))
    return Stage(sizes, copies)


def with_dimension(layout: Layout, axis: int, size: int, stride: int) -> Layout:
    """A layout with a dimension more, before `axis`."""
    sizes, strides = list(layout.sizes), list(layout.strides)
    sizes.insert(axis, size)
    strides.insert(axis, stride)
    return Layout.of(sizes, strides, layout.offset)

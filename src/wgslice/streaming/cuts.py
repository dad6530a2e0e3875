"""Boxes of bounded size: where the dimensions of a window are cut, and how many blocks are taken at once."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from math import prod
from typing import NamedTuple, TypeAlias

from wgslice.streaming.limits import Shares

__all__ = ["Edges", "Span", "blocks_touched", "counts", "cut", "inside"]

Edges: TypeAlias = Sequence[
    int
]  # positions where something begins, ascending, that of the first one among them


class Span(NamedTuple):
    """Positions of one dimension, and where it may be cut."""

    stop: int  # one past the last position
    ways: Sequence[Edges]  # where to cut, the best way first; the last way is a range: anywhere
    distance: int  # from one position to the next, in elements that count
    joined: bool  # whether neighbours may be taken together

    def extent(self, count: int) -> int:
        """Elements that count, of so many positions in a row."""
        return self.distance * (count - 1) + 1

    def largest(self, edges: Edges) -> int:
        """Elements of the largest part between two edges."""
        if isinstance(edges, range):
            return self.extent(min(edges.step, self.stop - edges[0]))
        return max(self.extent(count) for count in counts(edges, self.stop))

    def grown(self, edges: Edges, most: int) -> Edges:
        """Fewer edges, so that parts have no more than so many elements; parts that have more stay."""
        if not self.joined:
            return edges
        reach = (most - 1) // self.distance + 1  # positions
        if isinstance(edges, range):
            total = len(edges)
            each = max(reach // edges.step, 1)
            each = -(-total // -(-total // each))  # as many parts, of equal sizes
            return edges[::each]
        kept = [edges[0]]
        for edge, following in zip(edges, [*edges[1:], self.stop], strict=True):
            if following - kept[-1] > reach and edge > kept[-1]:
                kept.append(edge)
        return kept


def cut(spans: Sequence[Span], order: Sequence[int], nbytes: int, shares: Shares) -> list[Edges]:
    """Where to cut each dimension, so that boxes have at most `shares.largest_nbytes`, `nbytes` an element.

    Each is cut the best way that there is room for, the outermost dimension of `order` first the next best
    one. Then neighbours are taken together, those of the innermost dimension first, as long as boxes have at
    most `shares.usual_nbytes`.
    """
    cuts = [span.ways[0] for span in spans]
    sizes = [span.largest(edges) for span, edges in zip(spans, cuts, strict=True)]
    for axis, edges in next_best(spans, order):
        if prod(sizes) * nbytes <= shares.largest_nbytes:
            break
        size = spans[axis].largest(edges)
        if size < sizes[axis]:
            cuts[axis], sizes[axis] = edges, size
    for axis in reversed(order):
        room = shares.usual_nbytes // (prod(sizes) * nbytes)
        if room > 1:
            cuts[axis] = spans[axis].grown(cuts[axis], room * sizes[axis])
            sizes[axis] = spans[axis].largest(cuts[axis])
    return cuts


def next_best(spans: Sequence[Span], order: Sequence[int]) -> Iterator[tuple[int, Edges]]:
    """All ways but the best: those of every dimension before a worse one of any, from the outermost in."""
    most = max((len(span.ways) for span in spans), default=0)
    for left in range(most - 1, 0, -1):  # ways that are worse than this one, and itself
        for axis in order:
            ways = spans[axis].ways
            if left < len(ways):
                yield axis, ways[len(ways) - left]


def counts(edges: Edges, stop: int) -> Iterator[int]:
    """How many positions each part has."""
    return (following - edge for edge, following in zip(edges, [*edges[1:], stop], strict=True))


def inside(edges: Edges, start: int, stop: int) -> Edges:
    """The edges of a stretch, which begins at one in any case."""
    return [start, *edges[bisect_right(edges, start) : bisect_left(edges, stop)]]


def blocks_touched(indices: range, starts: Edges, size: int) -> list[int]:
    """Edges of the blocks that begin at `starts`, of a dimension of `size`, which hold the indices."""
    edges, position = [], 0
    while position < len(indices):
        edges.append(position)
        block = bisect_right(starts, indices[position]) - 1
        if indices.step > 0:
            end = starts[block + 1] if block + 1 < len(starts) else size
            position = -((indices.start - end) // indices.step)
        else:
            position = (indices.start - starts[block]) // -indices.step + 1
    return edges

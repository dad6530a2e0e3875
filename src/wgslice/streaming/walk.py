"""How a window is walked: what is read at once, what is written at once, each block of the source once.

A *piece* is a box that is read of the source at once and goes through the GPU at once. A *tile* is what is
written to the target at once, put together of the pieces that land in it. All is integers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import prod
from typing import NamedTuple

from wgslice.dialects.basic import Selection
from wgslice.streaming.cuts import Edges, Span, counts, cut, inside
from wgslice.streaming.limits import Shares

__all__ = ["Dimension", "Piece", "Tile", "Walk"]

Stretch = tuple[int, int]  # positions of a dimension: the first, and one past the last


class Piece(NamedTuple):
    """What is read at once, and where it lands."""

    box: tuple[slice, ...]  # of the source, with positive steps
    sizes: tuple[int, ...]  # of what the box gives
    within: tuple[int | range | None, ...]  # which elements of that are meant, as the target has them
    target: tuple[slice, ...]  # where those land

    @property
    def is_plain(self) -> bool:
        """Whether all that is read is meant, in the order in which it is read."""
        return all(item.step == 1 for item in self.within if isinstance(item, range))


class Tile(NamedTuple):
    """What is written at once."""

    target: tuple[slice, ...]
    pieces: tuple[Piece, ...]


@dataclass(frozen=True)
class Dimension:
    """One dimension of the source under a window.

    A position counts the indices of the window, in its order; an edge is a position at which a block begins.

    Attributes
    ----------
    indices : range
        Of the source, not empty, by their positions.
    blocks : sequence of int, optional
        Edges of the source's blocks that the window touches; None where it can be cut anywhere.
    tiles : sequence of int, optional
        Edges of the target's blocks.
    skips : bool
        Whether what lies between two indices is not read.
    joined : bool
        Whether touched blocks are neighbours, so that several can be read as one box.
    """

    indices: range
    blocks: Edges | None = None
    tiles: Edges | None = None
    skips: bool = False
    joined: bool = True

    @property
    def size(self) -> int:
        """How many positions."""
        return len(self.indices)

    @property
    def apart(self) -> int:
        """The step between indices that are read."""
        return abs(self.indices.step) if self.skips else 1

    @property
    def read_count(self) -> int:
        """How many indices are read."""
        return self.read_span(0, self.size).extent(self.size)

    def read_span(self, start: int, stop: int) -> Span:
        """What can be read at once, measured by the elements that are read."""
        anywhere = range(start, stop)
        ways = [anywhere] if self.blocks is None else [inside(self.blocks, start, stop), anywhere]
        return Span(stop, ways, 1 if self.skips else abs(self.indices.step), self.joined)

    def written_span(self) -> Span:
        """What can be written at once, measured by the elements that are written."""
        anywhere = range(self.size)
        ways: list[Edges] = [anywhere]
        if self.blocks is not None:
            ways = [self.blocks, *ways]
        if self.tiles is not None:
            shared = self.tiles if self.blocks is None else sorted({*self.tiles} & {*self.blocks})
            ways = [shared, *ways]
        return Span(self.size, ways, 1, True)

    def read(self, start: int, stop: int) -> tuple[slice, int, range]:
        """The indices to read for a stretch, how many these are, and which of them are meant."""
        ends = self.indices[start], self.indices[stop - 1]
        step = self.indices.step if stop - start > 1 else 1
        apart = abs(step) if self.skips else 1
        count = (max(ends) - min(ends)) // apart + 1
        stride = step // apart
        meant = range(0, count, stride) if stride > 0 or count == 1 else range(count - 1, -1, stride)
        return slice(min(ends), max(ends) + 1, apart), count, meant


@dataclass(frozen=True)
class Walk:
    """All tiles of a window.

    Attributes
    ----------
    selection : Selection
        The window, which has elements.
    dimensions : tuple of Dimension
        Of the source.
    order : tuple of int
        The dimensions from the outermost to the innermost, as the source lies.
    itemsize : int
        Bytes of an element.
    read_nbytes : int
        What an element takes while it is read: more where each is on a page of its own.
    shares : Shares
        How large pieces and tiles may be.
    """

    selection: Selection
    dimensions: tuple[Dimension, ...]
    order: tuple[int, ...]
    itemsize: int
    read_nbytes: int
    shares: Shares

    @cached_property
    def elements(self) -> int:
        """Of the window."""
        return prod(each.size for each in self.dimensions)

    @cached_property
    def tile_nbytes(self) -> int:
        """Bytes of the largest tile."""
        return prod(self._tile_sizes) * self.itemsize

    @cached_property
    def piece_nbytes(self) -> int:
        """Bytes of the largest piece, or a little more."""
        reads = [
            each.read_span(0, size) for each, size in zip(self.dimensions, self._tile_sizes, strict=True)
        ]
        tile = prod(span.extent(span.stop) for span in reads)
        blocks = prod(span.largest(span.ways[0]) for span in self._read_spans(self._whole))
        usual, largest = (nbytes // self.read_nbytes for nbytes in self.shares)
        return max(min(tile, max(blocks, usual), largest), 1) * self.itemsize

    def tiles(self) -> Iterator[Tile]:
        """Tile after tile, as the source lies."""
        for stretches in self._stretches(self._tile_cuts, self._whole):
            yield Tile(self._target(stretches), tuple(self._pieces(stretches)))

    @property
    def _whole(self) -> list[Stretch]:
        return [(0, each.size) for each in self.dimensions]

    @cached_property
    def _tile_cuts(self) -> list[Edges]:
        """Where tiles begin."""
        if any(each.tiles is not None for each in self.dimensions):
            spans = [each.written_span() for each in self.dimensions]
            return cut(spans, self.order, self.itemsize, self.shares)
        return self._cut_to_read(self._whole)

    @cached_property
    def _tile_sizes(self) -> list[int]:
        """Of the largest tile."""
        parts = zip(self._tile_cuts, self.dimensions, strict=True)
        return [max(counts(edges, each.size)) for edges, each in parts]

    def _pieces(self, tile: Sequence[Stretch]) -> Iterator[Piece]:
        """The pieces of a tile."""
        items = self.selection.items
        for stretches in self._stretches(self._cut_to_read(tile), tile):
            reads = [each.read(*where) for each, where in zip(self.dimensions, stretches, strict=True)]
            meant = (indices for _, _, indices in reads)
            yield Piece(
                tuple(box for box, _, _ in reads),
                tuple(count for _, count, _ in reads),
                tuple(None if item is None else index_or_range(item, next(meant)) for item in items),
                self._target(stretches),
            )

    def _read_spans(self, stretches: Sequence[Stretch]) -> list[Span]:
        return [each.read_span(*where) for each, where in zip(self.dimensions, stretches, strict=True)]

    def _cut_to_read(self, stretches: Sequence[Stretch]) -> list[Edges]:
        return cut(self._read_spans(stretches), self.order, self.read_nbytes, self.shares)

    def _stretches(self, cuts: Sequence[Edges], within: Sequence[Stretch]) -> Iterator[tuple[Stretch, ...]]:
        """The boxes between edges, as stretches of the dimensions."""
        parts = [
            [*zip(edges, [*edges[1:], stop], strict=True)]
            for edges, (_, stop) in zip(cuts, within, strict=True)
        ]
        places = [self.order.index(axis) for axis in range(len(self.order))]
        for stretches in product(*(parts[axis] for axis in self.order)):
            yield tuple(stretches[place] for place in places)

    def _target(self, stretches: Sequence[Stretch]) -> tuple[slice, ...]:
        """Where stretches of the source's dimensions land."""
        kept = iter(stretches)
        found = []
        for item in self.selection.items:
            where = (0, 1) if item is None else next(kept)
            if not isinstance(item, int):
                found.append(slice(*where))
        return tuple(found)


def index_or_range(item: int | range, meant: range) -> int | range:
    """What is meant of a dimension that was read, dropped where the window drops it."""
    return meant[0] if isinstance(item, int) else meant

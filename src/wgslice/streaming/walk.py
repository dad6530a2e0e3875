"""How a window is walked: what is read at once, what is written at once, each block of the source once.

A *piece* is a box that is read of the source at once and goes through the GPU at once. A *tile* is what is
written to the target at once, put together of the pieces that land in it. All is integers.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from itertools import pairwise, product
from math import prod
from typing import NamedTuple, SupportsIndex, TypeAlias

from wgslice.arguments import integer
from wgslice.dialects.basic import Selection

PREFIXES = ("", "K", "M", "G", "T")  # of bytes, by their exponents
MIN_NBYTES = 2**10  # some elements of every width

# What a piece takes of the limit, in its own bytes: what is read, what decodes it, what the queue keeps of an
# upload until it is submitted, and the buffer that it lies in, each with an eighth of what lies in between.
COPIES_READ = 5
# And a tile: its buffer, the staging buffer, and an array for targets that could keep what they are given.
COPIES_WRITTEN = 3
MAX_SLOTS = 3  # one is read, one is copied on the GPU, one is written

# Bytes of a piece, where there is no reason for others. A contiguous window of a warm memory map to another,
# lavapipe of Mesa 22.3 on 2 cores of an AMD EPYC: see `bench/results/README.md`.
PIECE_NBYTES = 2**23


class Shares(NamedTuple):
    """Bytes of a piece that is read and of a tile that is written."""

    usual_nbytes: int  # as far as pieces and tiles are put together
    largest_nbytes: int  # up to which blocks are taken whole


def limit_nbytes(limit: SupportsIndex | str) -> int:
    """Bytes of a limit: a number of them, or text as "256 MiB" and "1.5GB"; an i means powers of 1024."""
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b?)\s*", limit, re.IGNORECASE)
        if found is None or (found[3] and not found[2]):
            raise ValueError(
                f"limit = {limit!r}: must be a number of bytes, or one with a unit, as '256 MiB'"
            )
        base, exponent = 1024 if found[3] else 1000, PREFIXES.index(found[2].upper())
        nbytes = int(Fraction(found[1]) * base**exponent)
    else:
        nbytes = integer("limit", limit)
    if nbytes < MIN_NBYTES:
        raise ValueError(f"limit = {limit!r}: must be at least 1 KiB; 256 MiB is the default")
    return nbytes


def shares(limit: int, largest_buffer_nbytes: int) -> Shares:
    """How large pieces and tiles may be, by a limit in bytes and the device's largest buffer."""
    together = COPIES_READ + COPIES_WRITTEN
    largest = min(limit // together, largest_buffer_nbytes * 8 // 9 // 16 * 16)
    return Shares(max(min(largest // MAX_SLOTS, PIECE_NBYTES), min(largest, 16)), largest)


def block_nbytes(piece_nbytes: int) -> int:
    """What is uploaded of a piece at most: an eighth more where that saves a copy of its own."""
    return piece_nbytes * 9 // 8


def slots(limit: int, piece_nbytes: int, tile_nbytes: int) -> int:
    """How many pieces and tiles of these sizes may be under way at once."""
    each = COPIES_READ * piece_nbytes + COPIES_WRITTEN * tile_nbytes
    return max(1, min(MAX_SLOTS, limit // max(each, 1)))


def described_nbytes(nbytes: int) -> str:
    """Bytes as people say them."""
    exponent = min((nbytes.bit_length() - 1) // 10, len(PREFIXES) - 1)
    return f"{nbytes / 1024**exponent:.1f} {PREFIXES[exponent]}iB" if exponent > 0 else f"{nbytes} bytes"


Edges: TypeAlias = Sequence[int]  # positions where something begins, ascending, the first one among them
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

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes."""
        return tuple(part.stop - part.start for part in self.target)


@dataclass(frozen=True)
class Dimension:
    """One dimension of the source under a window.

    A position counts the indices of the window, in its order; an edge is a position at which a block begins.
    """

    indices: range  # of the source, not empty, by their positions
    blocks: Edges | None = None  # edges of the source's blocks that it touches; None: it is cut anywhere
    tiles: Edges | None = None  # edges of the target's blocks
    skips: bool = False  # whether what lies between two indices is not read
    joined: bool = True  # whether touched blocks are neighbours, so that several can be read as one box

    @property
    def size(self) -> int:
        """How many positions."""
        return len(self.indices)

    @property
    def apart(self) -> int:
        """The step between indices that are read."""
        return abs(self.indices.step) if self.skips else 1

    def read_span(self, start: int, stop: int) -> Span:
        """What can be read at once, measured by the elements that are read."""
        anywhere = range(start, stop)
        ways = [anywhere] if self.blocks is None else [inside(self.blocks, start, stop), anywhere]
        return Span(stop, ways, 1 if self.skips else abs(self.indices.step), self.joined)

    def written_span(self) -> Span:
        """What can be written at once, measured by the elements that are written."""
        ways: list[Edges] = [range(self.size)]
        if self.blocks is not None:
            ways.insert(0, self.blocks)
        if self.tiles is not None:
            shared = self.tiles if self.blocks is None else sorted({*self.tiles} & {*self.blocks})
            ways.insert(0, shared)
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
    """All tiles of a window."""

    selection: Selection  # the window, which has elements
    dimensions: tuple[Dimension, ...]  # of the source
    order: tuple[int, ...]  # the dimensions from the outermost to the innermost, as the source lies
    itemsize: int  # bytes of an element
    read_nbytes: int  # what an element takes while it is read: more where each is on a page of its own
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
        reads = self._read_spans([(0, size) for size in self._tile_sizes])
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
                tuple(
                    None if item is None else next(meant)[0] if isinstance(item, int) else next(meant)
                    for item in items
                ),
                self._target(stretches),
            )

    def _read_spans(self, stretches: Sequence[Stretch]) -> list[Span]:
        return [each.read_span(*where) for each, where in zip(self.dimensions, stretches, strict=True)]

    def _cut_to_read(self, stretches: Sequence[Stretch]) -> list[Edges]:
        return cut(self._read_spans(stretches), self.order, self.read_nbytes, self.shares)

    def _stretches(self, cuts: Sequence[Edges], within: Sequence[Stretch]) -> Iterator[tuple[Stretch, ...]]:
        """The boxes between edges, as stretches of the dimensions."""
        parts = [[*pairwise([*edges, stop])] for edges, (_, stop) in zip(cuts, within, strict=True)]
        places = [self.order.index(axis) for axis in range(len(self.order))]
        for stretches in product(*(parts[axis] for axis in self.order)):
            yield tuple(stretches[place] for place in places)

    def _target(self, stretches: Sequence[Stretch]) -> tuple[slice, ...]:
        """Where stretches of the source's dimensions land."""
        kept, items = iter(stretches), self.selection.items
        landed = [(0, 1) if item is None else next(kept) for item in items]
        return tuple(slice(*at) for at, item in zip(landed, items, strict=True) if not isinstance(item, int))


class Span(NamedTuple):
    """Positions of one dimension, and where it may be cut."""

    stop: int  # one past the last position
    ways: Sequence[Edges]  # where to cut, the best way first; the last way is a range: anywhere
    distance: int  # from one position to the next, in elements that count
    joined: bool  # whether neighbours may be taken together

    def extent(self, count: int) -> int:
        """Elements that count, of `count` positions in a row."""
        return self.distance * (count - 1) + 1

    def largest(self, edges: Edges) -> int:
        """Elements of the largest part between two edges."""
        if isinstance(edges, range):
            return self.extent(min(edges.step, self.stop - edges[0]))
        return max(self.extent(count) for count in counts(edges, self.stop))

    def grown(self, edges: Edges, most: int) -> Edges:
        """Fewer edges, so that parts have at most `most` elements; parts that have more stay."""
        if not self.joined:
            return edges
        reach = (most - 1) // self.distance + 1  # positions
        if isinstance(edges, range):
            total = len(edges)
            each = max(reach // edges.step, 1)
            each = -(-total // -(-total // each))  # as many parts, of equal sizes
            return edges[::each]
        kept = [edges[0]]
        for edge, following in pairwise([*edges, self.stop]):
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
    return (following - edge for edge, following in pairwise([*edges, stop]))


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

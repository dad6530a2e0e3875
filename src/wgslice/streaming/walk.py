"""The walk of a window: its division into reads and writes, so that each source block is read once.

A *piece* is a box that is read from the source and copied on the GPU in one step. A *tile* is a box that is
written to the target in one step, assembled from its pieces. Uses integers only.
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

PREFIXES = ("", "K", "M", "G", "T")  # of bytes, by exponent
MIN_NBYTES = 2**10  # at least 64 elements of any width

# Memory of a piece in multiples of its bytes: the data read, the decoder's, the queue's staging memory until
# submission, and the buffer, each with an eighth more for gaps.
COPIES_READ = 5
# Memory of a tile: its buffer, the staging buffer, and a copy for targets that may keep a reference.
COPIES_WRITTEN = 3
MAX_SLOTS = 3  # one is read, one is copied on the GPU, one is written

# Default bytes of a piece. A contiguous window of a warm memory map to another,
# lavapipe of Mesa 22.3 on 2 cores of an AMD EPYC: see `bench/results/README.md`.
PIECE_NBYTES = 2**23


class Shares(NamedTuple):
    """Size limits of a piece that is read and of a tile that is written."""

    usual_nbytes: int  # up to which blocks are joined
    largest_nbytes: int  # up to which one block is kept whole


def limit_nbytes(limit: SupportsIndex | str) -> int:
    """The bytes of a limit, a number or text such as "256 MiB" or "1.5GB"; an i means powers of 1024."""
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b?)\s*", limit, re.IGNORECASE)
        if found is None or (found[3] and not found[2]):
            raise ValueError(
                f"limit = {limit!r}: must be a number of bytes, or one with a unit, such as '256 MiB'"
            )
        base, exponent = 1024 if found[3] else 1000, PREFIXES.index(found[2].upper())
        nbytes = int(Fraction(found[1]) * base**exponent)
    else:
        nbytes = integer("limit", limit)
    if nbytes < MIN_NBYTES:
        raise ValueError(f"limit = {limit!r}: must be at least 1 KiB; 256 MiB is the default")
    return nbytes


def shares(limit: int, largest_buffer_nbytes: int) -> Shares:
    """The size limits of pieces and tiles for a memory limit and the device's largest buffer, in bytes."""
    together = COPIES_READ + COPIES_WRITTEN
    largest = min(limit // together, largest_buffer_nbytes * 8 // 9 // 16 * 16)
    return Shares(max(min(largest // MAX_SLOTS, PIECE_NBYTES), min(largest, 16)), largest)


def block_nbytes(piece_nbytes: int) -> int:
    """The maximum upload of a piece in bytes: with an eighth of gaps, which saves a host copy."""
    return piece_nbytes * 9 // 8


def slots(limit: int, piece_nbytes: int, tile_nbytes: int) -> int:
    """The number of pieces and tiles of these sizes that may be in flight."""
    each = COPIES_READ * piece_nbytes + COPIES_WRITTEN * tile_nbytes
    return max(1, min(MAX_SLOTS, limit // max(each, 1)))


def described_nbytes(nbytes: int) -> str:
    """Bytes with a binary unit."""
    exponent = min((nbytes.bit_length() - 1) // 10, len(PREFIXES) - 1)
    return f"{nbytes / 1024**exponent:.1f} {PREFIXES[exponent]}iB" if exponent > 0 else f"{nbytes} bytes"


Edges: TypeAlias = Sequence[int]  # ascending positions at which parts begin, including the first
Stretch = tuple[int, int]  # positions of a dimension: first, and one past the last


class Piece(NamedTuple):
    """A box that is read in one step, and its position in the target."""

    box: tuple[slice, ...]  # of the source, with positive steps
    sizes: tuple[int, ...]  # of the box
    within: tuple[int | range | None, ...]  # indices within the box, in the target's dimensions
    target: tuple[slice, ...]  # their box in the target


class Tile(NamedTuple):
    """A box that is written in one step, and its pieces."""

    target: tuple[slice, ...]
    pieces: tuple[Piece, ...]

    @property
    def is_plain(self) -> bool:
        """Whether it is one box, written whole and in the order of the source."""
        items = self.pieces[0].within
        return len(self.pieces) == 1 and all(item.step == 1 for item in items if isinstance(item, range))

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the tile."""
        return tuple(part.stop - part.start for part in self.target)


@dataclass(frozen=True)
class Dimension:
    """One dimension of the source under a window.

    A position counts the window's indices in their order; an edge is a position at which a block begins.
    """

    indices: range  # of the source by position, not empty
    blocks: Edges | None = None  # edges of the touched source blocks; None: cut anywhere
    tiles: Edges | None = None  # edges of the target's blocks
    skips: bool = False  # whether reads use the step, so that gaps are not read
    joined: bool = True  # whether touched blocks are adjacent, so that several form one box

    @property
    def size(self) -> int:
        """The number of positions."""
        return len(self.indices)

    @property
    def read_step(self) -> int:
        """The step of the indices that are read, at least 1."""
        return abs(self.indices.step) if self.skips else 1

    def read_span(self, start: int, stop: int) -> Span:
        """The span of a stretch for reading, measured in elements read."""
        edge_sets: list[Edges] = [range(start, stop)]
        if self.blocks is not None:
            first, last = bisect_right(self.blocks, start), bisect_left(self.blocks, stop)
            edge_sets.insert(0, [start, *self.blocks[first:last]])
        return Span(stop, edge_sets, 1 if self.skips else abs(self.indices.step), self.joined)

    def written_span(self) -> Span:
        """The span of the dimension for writing, measured in elements written."""
        shared = self.tiles
        if shared is not None and self.blocks is not None:
            shared = sorted({*shared} & {*self.blocks})
        edge_sets = [edges for edges in (shared, self.blocks, range(self.size)) if edges is not None]
        return Span(self.size, edge_sets, 1, True)

    def read(self, start: int, stop: int) -> tuple[slice, int, range]:
        """The indices to read for a stretch, their number, and the selected ones within them."""
        ends = self.indices[start], self.indices[stop - 1]
        step = self.indices.step if stop - start > 1 else 1
        read_step = abs(step) if self.skips else 1
        count = (max(ends) - min(ends)) // read_step + 1
        stride = step // read_step
        meant = range(0, count, stride) if stride > 0 or count == 1 else range(count - 1, -1, stride)
        return slice(min(ends), max(ends) + 1, read_step), count, meant


@dataclass(frozen=True)
class Walk:
    """Divides a window into tiles and pieces."""

    selection: Selection  # the window, not empty
    dimensions: tuple[Dimension, ...]  # of the source
    order: tuple[int, ...]  # the dimensions from outermost to innermost in the source's memory
    itemsize: int  # bytes per element
    read_nbytes: int  # memory per element while it is read: more where each is on its own page
    shares: Shares

    @cached_property
    def tile_nbytes(self) -> int:
        """Bytes of the largest tile."""
        return prod(self._tile_sizes) * self.itemsize

    @cached_property
    def piece_nbytes(self) -> int:
        """An upper bound of the bytes of a piece."""
        reads = self._read_spans([(0, size) for size in self._tile_sizes])
        tile = prod(span.extent(span.stop) for span in reads)
        blocks = prod(span.largest(span.edge_sets[0]) for span in self._read_spans(self._whole))
        usual, largest = (nbytes // self.read_nbytes for nbytes in self.shares)
        return max(min(tile, max(blocks, usual), largest), 1) * self.itemsize

    def tiles(self) -> Iterator[Tile]:
        """Yield the tiles in the memory order of the source."""
        for stretches in self._stretches(self._tile_cuts, self._whole):
            yield Tile(self._target(stretches), tuple(self._pieces(stretches)))

    @property
    def _whole(self) -> list[Stretch]:
        return [(0, each.size) for each in self.dimensions]

    @cached_property
    def _tile_cuts(self) -> list[Edges]:
        """The edges of tiles, per dimension."""
        if any(each.tiles is not None for each in self.dimensions):
            spans = [each.written_span() for each in self.dimensions]
            return cut(spans, self.order, self.itemsize, self.shares)
        return self._cut_to_read(self._whole)

    @cached_property
    def _tile_sizes(self) -> list[int]:
        """The largest tile size per dimension."""
        parts = zip(self._tile_cuts, self.dimensions, strict=True)
        return [max(counts(edges, each.size)) for edges, each in parts]

    def _pieces(self, tile: Sequence[Stretch]) -> Iterator[Piece]:
        """Yield the pieces of a tile."""
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
        """Yield the boxes between edges, as stretches of the dimensions."""
        parts = [[*pairwise([*edges, stop])] for edges, (_, stop) in zip(cuts, within, strict=True)]
        places = [self.order.index(axis) for axis in range(len(self.order))]
        for stretches in product(*(parts[axis] for axis in self.order)):
            yield tuple(stretches[place] for place in places)

    def _target(self, stretches: Sequence[Stretch]) -> tuple[slice, ...]:
        """The box of the target for stretches of the source's dimensions."""
        kept, items = iter(stretches), self.selection.items
        spans = [(0, 1) if item is None else next(kept) for item in items]
        return tuple(slice(*at) for at, item in zip(spans, items, strict=True) if not isinstance(item, int))


class Span(NamedTuple):
    """Positions of one dimension, and the edges at which it may be cut."""

    stop: int  # one past the last position
    edge_sets: Sequence[Edges]  # alternatives, best first; the last is a range: anywhere
    distance: int  # elements per position
    joined: bool  # whether adjacent parts may be joined

    def extent(self, count: int) -> int:
        """The elements of `count` consecutive positions."""
        return self.distance * (count - 1) + 1

    def largest(self, edges: Edges) -> int:
        """The elements of the largest part between two edges."""
        if isinstance(edges, range):
            return self.extent(min(edges.step, self.stop - edges[0]))
        return max(self.extent(count) for count in counts(edges, self.stop))

    def grown(self, edges: Edges, most: int) -> Edges:
        """Join parts up to `most` elements; larger parts stay."""
        if not self.joined:
            return edges
        reach = (most - 1) // self.distance + 1  # positions
        if isinstance(edges, range):
            total = len(edges)
            each = max(reach // edges.step, 1)
            each = -(-total // -(-total // each))  # the same number of parts, of equal sizes
            return edges[::each]
        kept = [edges[0]]
        for edge, following in pairwise([*edges, self.stop]):
            if following - kept[-1] > reach and edge > kept[-1]:
                kept.append(edge)
        return kept


def cut(spans: Sequence[Span], order: Sequence[int], nbytes: int, shares: Shares) -> list[Edges]:
    """Cut each dimension so that boxes have at most `shares.largest_nbytes`, at `nbytes` per element.

    Starts with the best of at most three edge sets of each dimension and falls back to the next, outermost
    dimension of `order` first, until boxes fit. Then joins adjacent parts, innermost dimension first, up to
    `shares.usual_nbytes`.
    """
    cuts = [span.edge_sets[0] for span in spans]
    sizes = [span.largest(edges) for span, edges in zip(spans, cuts, strict=True)]
    for left, axis in product((2, 1), order):  # edge sets that are left, this one included
        span = spans[axis]
        if left < len(span.edge_sets) and prod(sizes) * nbytes > shares.largest_nbytes:
            size = span.largest(span.edge_sets[-left])
            if size < sizes[axis]:
                cuts[axis], sizes[axis] = span.edge_sets[-left], size
    for axis in reversed(order):
        factor = shares.usual_nbytes // (prod(sizes) * nbytes)
        if factor > 1:
            cuts[axis] = spans[axis].grown(cuts[axis], factor * sizes[axis])
            sizes[axis] = spans[axis].largest(cuts[axis])
    return cuts


def counts(edges: Edges, stop: int) -> Iterator[int]:
    """Yield the number of positions of each part."""
    return (following - edge for edge, following in pairwise([*edges, stop]))


def blocks_touched(indices: range, starts: Edges, size: int) -> list[int]:
    """The edges, as positions of `indices`, of the blocks with first indices `starts` that contain them."""
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

"""Copies with tables of indices on one side, and their dispatches."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX
from wgslice.layout import Layout, count
from wgslice.plans.kernels import UNITS_NBYTES, WIDEST_NBYTES, WORD_NBYTES
from wgslice.plans.problem import LARGEST_BINDING_NBYTES, Table, in_units, most_invocations
from wgslice.plans.profiles import CostClass, Limits
from wgslice.plans.steps import Memory, OnGrid, Span, prefixed, read_and_written

MAX_TABLES = 4  # that kernels take
SHORT_RUN, MAX_FLATTENED = 16, 8  # elements, and times that each index must then serve
WINNER_NBYTES = 4
INDEX_NBYTES = 4  # of an index that the host knows


class Index(NamedTuple):
    """The indices of one dimension: the strides of a copy in their table, and the elements per increment."""

    strides: tuple[int, ...]  # indices of the table, along each dimension of the copy
    offset: int  # indices of the table before its first
    extent: int  # of the dimension: indices that are in range
    wrap: int  # added to negative indices
    step: int  # elements of the indexed side from one index to the next
    winner_step: int = 0  # winners from one index to the next, where there are some
    part: range | None = None  # the indices that are copied, once they are clamped; None for all in range

    @property
    def copied(self) -> range:
        """The indices that are copied, once they are clamped."""
        return range(self.extent) if self.part is None else self.part


class Winners(NamedTuple):
    """Winner indices: for each place that indices name, the last of them; with the strides of a copy."""

    strides: tuple[int, ...]  # winners along each dimension of the copy, without what tables add
    numbers: tuple[int, ...]  # indices before one of them, along each dimension
    places: int

    @property
    def span(self) -> Span:
        """The binding that holds them."""
        return Span(0, self.places * WINNER_NBYTES)


@dataclass(frozen=True, eq=False)
class Host:
    """The tables on the host, one after the other; -1 for an index that is not written."""

    values: NDArray[np.int32]


@dataclass(frozen=True)
class IndexedCopy:
    """A copy between two layouts of equal sizes, to one of which tables of indices add offsets.

    Dimensions are coalesced over both sides and all tables; the last one is the row of a kernel. Layouts
    count from the offsets of the views on both sides.
    """

    indexed: Layout
    other: Layout
    tables: tuple[Index, ...]
    reads: bool  # whether the indexed side is copied from, not to
    host: Host | None = None  # None where the GPU has the tables, all in one
    signed: bool = False  # whether indices that the GPU has may be negative
    winners: Winners | None = None
    masked: bool = False  # whether the one table is a mask: what is true is written, and moves nothing
    in_turn: bool = False  # whether the source has one element for each true element of a mask

    @property
    def sizes(self) -> tuple[int, ...]:
        """Elements along each dimension."""
        return self.indexed.sizes

    @property
    def source(self) -> Layout:
        """The side that is read."""
        return self.indexed if self.reads else self.other

    @property
    def target(self) -> Layout:
        """The side that is written."""
        return self.other if self.reads else self.indexed

    @property
    def by_rows(self) -> bool:
        """Whether an index is the same for all elements of a row."""
        return all(table.strides[-1] == 0 for table in self.tables)

    @property
    def is_flat(self) -> bool:
        """Whether a mask and the target are packed, and the source is too, or one element."""
        steps = self.tables[0].strides[-1], self.target.strides[-1], self.source.strides[-1]
        return len(self.sizes) == 1 and steps[:2] == (1, 1) and steps[2] in (0, 1)

    @property
    def per_index(self) -> IndexedCopy:
        """The same with the elements from one index to the next as strides along indexed dimensions."""
        strides = [
            stride or next((table.step for table in self.tables if table.step and table.strides[axis]), 0)
            for axis, stride in enumerate(self.indexed.strides)
        ]
        return replace(self, indexed=Layout.of(self.sizes, strides, self.indexed.offset))

    def with_ranges(self, strides: Sequence[int], steps: Iterable[int]) -> Layout:
        """Returns the layout of the copy's dimensions, and of one per table: the indices that are copied."""
        counts = [count(table.copied) for table in self.tables]
        return Layout.of((*self.sizes, *counts), (*strides, *steps))

    @property
    def reached(self) -> Layout:
        """The elements of the indexed side that any indices reach."""
        first = self.indexed.offset + sum(table.copied.start * table.step for table in self.tables)
        return self.with_ranges(self.indexed.strides, [table.step for table in self.tables]).shifted(first)

    @property
    def entries(self) -> list[Layout]:
        """The entries of each table."""
        return [Layout.of(self.sizes, table.strides, table.offset) for table in self.tables]

    def parts(self, width_nbytes: int, index_nbytes: int, limits: Limits) -> Iterator[IndexedCopy]:
        """Splits a copy until bindings hold the sides, indices and winners of each part, a grid its elements.

        Parts are copied in order: of equal indices, those of a later part are later ones.
        """
        most_nbytes = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) - limits.binding_alignment_nbytes
        size, most = prod(self.sizes), most_invocations(limits)
        found = next((each for each in self.bound(width_nbytes, index_nbytes) if each[1] > most_nbytes), None)
        if found is not None:
            side, size, most = *found, most_nbytes
        elif size > most:
            side = Layout.packed(self.sizes)
        reaches = [abs(reach) for reach in side.reaches] if size > most else []
        if not any(reaches):
            yield self
            return
        axis = self.axis_to_split(reaches.index(max(reaches)), width_nbytes)
        whole = [*map(range, self.sizes), *(table.copied for table in self.tables)][axis]
        each = -(-count(whole) // min(-(-size // most), count(whole)))
        for first in range(0, count(whole), each):
            part = self.part(axis, whole[first : first + each]).coalesced()
            yield from part.parts(width_nbytes, index_nbytes, limits)

    def bound(self, width_nbytes: int, index_nbytes: int) -> Iterator[tuple[Layout, int]]:
        """Yields the layouts that are bound, tables first, and the bytes that each needs a binding for."""
        entries = self.entries
        longest = max(entries, key=lambda side: max(side.reaches))
        if self.host is not None:
            yield longest, self.host.values.nbytes
        else:
            first = min(side.offset for side in entries)
            yield longest, (max(side.stop for side in entries) - first) * index_nbytes
        for side in (self.other, self.reached):
            yield side, (side.stop - side.lowest) * width_nbytes
        if self.winners is not None:
            winning = self.with_ranges(self.winners.strides, [table.winner_step for table in self.tables])
            yield winning, self.winners.span.nbytes

    def axis_to_split(self, axis: int, width_nbytes: int) -> int:
        """Returns the dimension to split where one reaches furthest, tables counted behind the others.

        It is the first one of gathers that need a packed target, and of indices that may be equal that of the
        furthest ones.
        """
        if axis >= len(self.sizes):
            return axis
        if self.reads and width_nbytes < WORD_NBYTES:
            return next(axis for axis, size in enumerate(self.sizes) if size > 1)
        numbers = self.winners.numbers if self.winners else ()
        return numbers.index(max(numbers)) if numbers and numbers[axis] else axis

    def part(self, axis: int, some: range) -> IndexedCopy:
        """Returns the copy of some indices of a dimension, or of a table, which are counted behind these."""
        if axis >= len(self.sizes):
            tables = [*self.tables]
            tables[axis - len(self.sizes)] = tables[axis - len(self.sizes)]._replace(part=some)
            copy = replace(self, tables=tuple(tables))
        else:
            items = [*map(range, self.sizes)]
            items[axis] = some
            copy = replace(self, indexed=self.indexed.select(items), other=self.other.select(items))
            copy = copy.of_entries([side.select(items) for side in self.entries])
        if copy.winners is None:
            return copy
        winning = copy.with_ranges(copy.winners.strides, [table.winner_step for table in copy.tables])
        return replace(copy, winners=copy.winners._replace(places=winning.stop))

    def of_entries(self, entries: Sequence[Layout]) -> IndexedCopy:
        """Returns the same copy by other entries of its tables; those on the host are without all others."""
        values: list[NDArray[np.int32]] = []
        tables: list[Index] = []
        for table, side in zip(self.tables, entries, strict=True):
            offset = side.offset
            if self.host is not None:
                offset = sum(each.size for each in values)
                values.append(self.host.values[side.offset : side.stop])
            tables.append(table._replace(strides=side.strides, offset=offset))
        host = Host(np.concatenate(values)) if self.host is not None else None
        return replace(self, tables=tuple(tables), host=host)

    def shifted(self, indexed: int, other: int) -> IndexedCopy:
        """The same copy, both sides shifted by numbers of elements."""
        return replace(self, indexed=self.indexed.shifted(indexed), other=self.other.shifted(other))

    def permuted(self, axes: Sequence[int]) -> IndexedCopy:
        """Returns the same copy without winner indices, its dimensions in another order."""
        tables = [
            table._replace(strides=tuple(table.strides[axis] for axis in axes)) for table in self.tables
        ]
        sides = self.indexed.permuted(axes), self.other.permuted(axes)
        return replace(self, indexed=sides[0], other=sides[1], tables=tuple(tables), winners=None)

    def in_order(self) -> IndexedCopy | None:
        """Returns a scatter in whose rows, copied in order, the last of equal indices wins, or None.

        It is there if indices may be equal along one dimension only, which becomes the last one.
        """
        if self.winners is None:
            return None
        apart = [not number or bool(stride) for stride, number in zip(*self.winners[:2], strict=True)]
        if apart.count(False) != 1:
            return None
        return self.permuted(sorted(range(len(apart)), key=lambda axis: not apart[axis]))

    def owns_words(self, width_nbytes: int, offset: int) -> bool:
        """Whether rows of a scatter share no word; the indexed view begins at an offset, in elements."""
        if width_nbytes >= WORD_NBYTES or prod(self.sizes[:-1]) == 1:
            return True
        (step, extent), *others = ((table.step, table.extent) for table in self.tables)
        lowest = offset + self.indexed.offset + min(0, step * (extent - 1))
        aligned = (place * width_nbytes % WORD_NBYTES == 0 for place in (lowest, *self.indexed.strides))
        return not others and abs(step) == 1 and all(aligned)

    def coalesced(self) -> IndexedCopy:
        """Merges dimensions i, i + 1 if and only if `stride[i] == size[i + 1] * stride[i + 1]` everywhere."""
        winners = self.winners
        columns = [self.indexed.strides, self.other.strides, *(table.strides for table in self.tables)]
        columns += [winners.strides, winners.numbers] if winners else []
        rows: list[list[int]] = []
        for size, *strides in zip(self.sizes, *columns, strict=True):
            if size == 1:
                continue
            if rows and rows[-1][1:] == [size * stride for stride in strides]:
                size *= rows.pop()[0]
            rows.append([size, *strides])
        sizes, indexed, other, *rest = zip(*(rows or [[1] + [0] * len(columns)]), strict=True)
        return replace(
            self,
            indexed=Layout.of(sizes, indexed, self.indexed.offset),
            other=Layout.of(sizes, other, self.other.offset),
            tables=tuple(table._replace(strides=rest.pop(0)) for table in self.tables),
            winners=winners._replace(strides=rest[0], numbers=rest[1]) if winners else None,
        )

    def at_indices(self) -> IndexedCopy:
        """Returns the same indices, each once, without the elements at them."""
        assert self.winners is not None
        items = [
            range(size if number else 1)
            for size, number in zip(self.sizes, self.winners.numbers, strict=True)
        ]
        copy = replace(self, indexed=self.indexed.select(items), other=self.other.select(items))
        return copy.coalesced()

    def stored_first(self) -> tuple[IndexedCopy, Layout]:
        """Returns the copy with the dimensions of its one table first, packed, and the indexed layout."""
        (table,) = self.tables
        order = sorted(range(len(self.sizes)), key=lambda axis: table.strides[axis] == 0)
        sizes = [self.sizes[axis] for axis in order]
        rest = [self.sizes[axis] for axis in order if table.strides[axis] == 0]
        strides = [0] * (len(sizes) - len(rest)) + [*Layout.packed(rest).strides]
        first = table._replace(strides=tuple(table.strides[axis] for axis in order), step=prod(rest))
        sides = Layout.of(sizes, strides), Layout.packed(sizes)
        copy = replace(self, indexed=sides[0], other=sides[1], tables=(first,))
        return copy, Layout.packed((table.extent, *rest))

    def flattened(self) -> IndexedCopy:
        """Makes short runs at each index indices of their own, if few indices serve many: rows are longer."""
        host, short = self.host, self.sizes[-1]
        if host is None or len(self.tables) != 1 or len(self.sizes) < 2 or short > SHORT_RUN:
            return self
        (table,) = self.tables
        merges = self.other.strides[-2] == short * self.other.strides[-1]
        few = MAX_FLATTENED * host.values.size * short <= self.other.size
        if not (self.by_rows and table.strides[-2] and self.indexed.strides[-2] == 0 and merges and few):
            return self
        along = self.indexed.strides[-1]
        step = gcd(table.step, along)
        lowest = min(0, (short - 1) * along // step)
        values = host.values.astype(np.int64)[:, None] * (table.step // step) - lowest
        values = np.where(host.values[:, None] < 0, -1, values + np.arange(short) * (along // step))
        extent = int(values.max()) + 1
        if extent > I32_MAX or table.step // step < 0:
            return self
        strides = *(stride * short for stride in table.strides[:-1]), 1
        return replace(
            self,
            indexed=Layout.of(
                self.sizes, [*self.indexed.strides[:-1], 0], self.indexed.offset + lowest * step
            ),
            tables=(Index(strides, table.offset * short, extent, 0, step),),
            host=Host(values.astype(np.int32).reshape(-1)),
        ).coalesced()

    def widened(self, itemsize: int, offsets: Iterable[int]) -> tuple[IndexedCopy, int]:
        """Returns the copy in the widest elements that divide its runs, strides and offsets, and their bytes.

        `offsets` are those of the views that both sides count from.
        """
        sides = self.indexed, self.other
        if not self.by_rows or any(side.strides[-1] != 1 for side in sides):
            return self, itemsize
        factor = gcd(
            WIDEST_NBYTES // itemsize,
            self.sizes[-1],
            *offsets,
            *(side.offset for side in sides),
            *(stride for side in sides for stride in side.strides[:-1]),
            *(table.step for table in self.tables),
        )
        if factor == 1:
            return self, itemsize
        indexed, other = (in_units(side, factor) for side in sides)
        tables = tuple(table._replace(step=table.step // factor) for table in self.tables)
        return replace(self, indexed=indexed, other=other, tables=tables).coalesced(), itemsize * factor


@dataclass(frozen=True, eq=False, kw_only=True)
class IndexedDispatch(OnGrid):
    """One dispatch of a kernel that gathers or scatters; the copy counts from the start of the bindings."""

    copy: IndexedCopy
    width_nbytes: int  # of an element
    table: Table | None  # the indices, where the GPU has them
    table_binding: Span  # that holds the indices
    work: CostClass
    rows: int = 1  # whose pieces invocations copy in turn: all the first ones, then all the second ones

    @property
    def memories(self) -> set[Memory]:
        """The memories that it binds."""
        return super().memories | ({self.table.memory} if self.table else set())

    @property
    def index_nbytes(self) -> int:
        """Bytes of an index, or of a mask's element."""
        return self.table.itemsize if self.table else INDEX_NBYTES

    @property
    def winners(self) -> Winners | None:
        """The winner indices, if indices may be equal."""
        return self.copy.winners

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation writes at most."""
        return self.share.each * UNITS_NBYTES.get(self.kernel, self.width_nbytes)

    def __str__(self) -> str:
        host, count = self.copy.host, len(self.copy.tables)
        kind = "indices" if count == 1 else f"indices in {count} tables"
        tables = "a mask" if self.copy.masked else kind
        if self.table is not None:
            table_nbytes = self.table.layout.size * self.table.itemsize
            tables = f"{tables} in device memory ({prefixed(table_nbytes)})"
        if host is not None:
            nbytes = prefixed(host.values.nbytes)
            what = "a mask" if self.copy.masked else f"{host.values.size:,} indices"
            tables = f"{what} uploaded with the submission ({nbytes})"
        sides = read_and_written(self.reads, self.writes)
        return f"kernel {self.name} on {self.copy.sizes} by {tables}{sides}, {self.launch}: {self.reason}"

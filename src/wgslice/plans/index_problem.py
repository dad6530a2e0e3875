"""A gather or a scatter to plan: from advanced indexing to tables of indices, or windows at these.

In tables, indices in equal steps are a stride instead, and those that vary together share one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, Indexed, Indices
from wgslice.layout import Layout
from wgslice.layout_rules import reshaped
from wgslice.plans.indexed import INDEX_NBYTES, MAX_TABLES, Host, Index, IndexedCopy, Winners
from wgslice.plans.kernels import GATHERS, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.overlaps import are_last
from wgslice.plans.problem import InContext, PlanContext, Table, counted, span_of
from wgslice.plans.profiles import CACHE_LINE_NBYTES, FAILED
from wgslice.plans.steps import Memory, Span
from wgslice.plans.window_problem import WindowProblem, turned_forward
from wgslice.plans.windows import DROPPED, Windows

BITS_OF_WORD = 32  # elements of a mask in a word of bits
MIN_WINDOW_NBYTES = 64  # contiguous bytes per index from which a copy may run as windows
MASKED = {1: Kernel.MASKED_WORDS, 2: Kernel.MASKED_WORDS, 8: Kernel.MASKED_PAIRS}  # by bytes per element
MAX_LISTED, MAX_SLICES = 16, 4  # indices that may be copied as slices, and slices
SAMPLED = 4096  # indices, the first ones, that must have runs if all have
MIN_TABLE_NBYTES = 8  # of a window's number and directions, which a binding holds as well
MAX_RUN = 4  # elements per index of which a gather takes the first of all runs, then the second


# constructors


class Dimension(NamedTuple):
    """A dimension of a tensor, and the place in it of each window."""

    size: int
    stride: int
    places: Indices

    @property
    def known(self) -> NDArray[np.int64]:
        """The places on the host."""
        assert isinstance(self.places, np.ndarray)
        return self.places


class Group(NamedTuple):
    """Dimensions whose indices vary along some dimensions of theirs: one table."""

    axes: tuple[int, ...]
    dimensions: list[Dimension]


def indexed_copy(
    selection: AdvancedSelection,
    view: Layout,
    other: Layout,
    *,
    reads: bool,
    signed: bool = False,
    disjoint: bool = False,
) -> IndexedCopy | None:
    """Returns the copy between a view that a selection indexes and a layout of the selection's shape.

    None if host indices that are no stride stand beside device-resident ones, which may be negative if
    `signed`. The last of equal places is written, unless all are `disjoint`.
    """
    shape = selection.indices_shape
    rank = len(shape)
    dimensions = [found for each in selection.indexed for found in dimensions_of(view, each)]
    check_counted(max(dimension.size for dimension in dimensions))
    known = [each for each in dimensions if not isinstance(each.places, DeviceIndices)]
    base, steps, groups = split_known(known, rank, reads=reads)
    on_device = [each for each in dimensions if isinstance(each.places, DeviceIndices)]
    if groups and on_device:
        return None
    while len(groups) > MAX_TABLES:
        first, second, *groups = sorted(groups, key=lambda group: prod(shape[axis] for axis in group.axes))
        axes = tuple(sorted({*first.axes, *second.axes}))
        groups.append(Group(axes, [*first.dimensions, *second.dimensions]))
    host, winners = None, None
    tables: list[Index] = []
    if groups:
        tables, values, lowest = folded_tables(groups, shape, unique=not (reads or disjoint))
        base += lowest
        check_counted(max(table.extent for table in tables))
        host = Host(values)
    for each in on_device:
        assert isinstance(each.places, DeviceIndices)
        own, wrap = each.places.shape, 0 if each.places.clipped else each.size
        strides = Layout.packed((1,) * (rank - len(own)) + own).strides
        tables.append(Index(strides, each.places.first, each.size, wrap, each.stride))
    nothing = [0] * len(selection.kept_sizes)
    if on_device and not (reads or disjoint) and prod(shape) > 1:
        moving = [size if step else 1 for size, step in zip(shape, steps, strict=True)]
        places = Layout.packed([*(table.extent for table in tables), *moving])
        winner_steps, along = places.strides[: len(tables)], places.strides[len(tables) :]
        numbers = selection.arranged(Layout.packed(shape).strides, nothing)
        winners = Winners(selection.arranged(along, nothing), numbers, places.size)
        tables = [each._replace(winner_step=step) for each, step in zip(tables, winner_steps, strict=True)]
    moved = selection.arranged(steps, [view.strides[axis] for axis in selection.kept_axes])
    copy = IndexedCopy(
        Layout.of(selection.shape, moved, base),
        Layout.of(selection.shape, other.strides),
        tuple(table._replace(strides=selection.arranged(table.strides, nothing)) for table in tables),
        reads,
        host,
        signed,
        winners,
    ).coalesced()
    if len(copy.sizes) > MAX_RANK:
        raise ValueError(
            f"a part of sizes {copy.sizes} that do not merge: arrays of indices take at most {MAX_RANK} "
            "dimensions of a tensor; copy() it first"
        )
    return copy


def check_counted(size: int) -> None:
    """Refuse dimensions whose indices no i32 counts."""
    if size > I32_MAX:
        raise ValueError(
            f"a dimension of {size} elements: arrays of indices take at most {I32_MAX} of them; index "
            "parts of it"
        )


def masked_copy(mask_sizes: Sequence[int], target: Layout, source: Layout) -> IndexedCopy:
    """Returns the copy between layouts of equal sizes to where a mask, broadcast to these, is true."""
    strides = Layout.packed([*[1] * (target.rank - len(mask_sizes)), *mask_sizes]).strides
    return IndexedCopy(
        Layout.of(target.sizes, target.strides),
        Layout.of(source.sizes, source.strides),
        (Index(strides, 0, 1, 0, 0),),
        reads=False,
        masked=True,
    ).coalesced()


def masked_values(mask: NDArray[np.bool_]) -> IndexedCopy:
    """Returns the copy of as many packed elements as a mask has true ones to where these are."""
    bits = np.packbits(mask, bitorder="little")
    words = np.pad(bits, (0, -bits.size % WORD_NBYTES)).view("<u4")
    halves = words - ((words >> 1) & 0x55555555)
    nibbles = (halves & 0x33333333) + ((halves >> 2) & 0x33333333)
    counts = ((nibbles + (nibbles >> 4)) & 0x0F0F0F0F) * np.uint32(0x01010101) >> 24
    stops = np.cumsum(counts, dtype=np.uint32)
    table = np.stack([words, stops - counts], axis=-1).view(np.int32).reshape(-1)
    row = Layout.packed((mask.size,))
    index = Index((1,), 0, 1, 0, 0)
    return IndexedCopy(row, row, (index,), reads=False, host=Host(table), masked=True, in_turn=True)


def dimensions_of(view: Layout, indexed: Indexed) -> Iterator[Dimension]:
    """Yields the dimensions of a view that an array indexes; those of a mask are one if they coalesce."""
    own = slice(indexed.axes.start, indexed.axes.stop)
    sizes, strides = view.sizes[own], view.strides[own]
    merged = reshaped(Layout.of(sizes, strides), (prod(sizes),))
    if isinstance(indexed.places, np.ndarray) and merged is None:
        yield from map(Dimension, sizes, strides, np.unravel_index(indexed.places, sizes))
    else:
        stride = merged.strides[0] if merged else 0
        yield Dimension(prod(sizes), stride, indexed.places)


def split_known(
    dimensions: Iterable[Dimension], rank: int, *, reads: bool
) -> tuple[int, list[int], list[Group]]:
    """Splits known indices into an offset, a stride per dimension, both in elements, and groups for tables.

    Of what is written, no two tables vary along one dimension, nor one along that of a stride: places are
    equal if and only if they are in each table.
    """
    base, steps = 0, [0] * rank
    groups: list[Group] = []
    steady: list[tuple[Group, int]] = []
    for dimension in dimensions:
        places = dimension.known
        axes = tuple(axis for axis, size in enumerate(places.shape, rank - places.ndim) if size > 1)
        step = step_of(places) if len(axes) <= 1 else None
        group = Group(axes, [dimension])
        if step is None or (axes and not step and not reads):
            groups.append(group)
        else:
            steady.append((group, step))
    in_tables = {axis for group in groups for axis in group.axes}
    for group, step in steady:
        (dimension,) = group.dimensions
        if not reads and in_tables.intersection(group.axes):
            groups.append(group)
            continue
        base += int(dimension.known.flat[0]) * dimension.stride
        for axis in group.axes:
            steps[axis] += step * dimension.stride
    joined: list[Group] = []
    for group in groups:
        meeting = [
            one for one in joined if (one.axes == group.axes if reads else set(one.axes) & set(group.axes))
        ]
        joined = [one for one in joined if one not in meeting]
        axes = tuple(sorted({axis for one in (group, *meeting) for axis in one.axes}))
        joined.append(Group(axes, [each for one in (group, *meeting) for each in one.dimensions]))
    return base, steps, joined


def step_of(places: NDArray[np.int64]) -> int | None:
    """Returns the constant difference of indices along one dimension, or None."""
    flat = places.reshape(-1)
    step = int(flat[1] - flat[0]) if flat.size > 1 else 0
    likely = flat[-1] - flat[0] == step * (flat.size - 1)  # which few others pass
    return step if likely and (np.diff(flat) == step).all() else None


def folded_tables(
    groups: Iterable[Group], shape: Sequence[int], *, unique: bool
) -> tuple[list[Index], NDArray[np.int32], int]:
    """Returns a table per group, their values (-1 for earlier equal ones if `unique`), and an offset."""
    base, offset = 0, 0
    tables: list[Index] = []
    values: list[NDArray[np.int32]] = []
    for axes, dimensions in groups:
        step = gcd(*(dimension.stride for dimension in dimensions)) or 1
        scaled = (
            each.known if each.stride == step else each.known * (each.stride // step) for each in dimensions
        )
        places = reduce(np.add, scaled).reshape(-1)
        lowest = int(places.min())
        if lowest < 0:
            base += lowest * step
            places = places - lowest
        strides = Layout.packed([size if axis in axes else 1 for axis, size in enumerate(shape)]).strides
        tables.append(Index(strides, offset, int(places.max()) + 1, 0, step))
        values.append((np.where(are_last(places), places, -1) if unique else places).astype(np.int32))
        offset += places.size
    return tables, np.concatenate(values), base


# windows


class IndexedWindows(NamedTuple):
    """The windows at indices: of size 1 in the first dimensions of the tensor, which are indexed."""

    windows: Windows
    tensor: Layout
    batch: Layout
    numbers: NDArray[np.uint32]  # of the windows that are written
    tables: list[Layout]  # the entries for each of the first dimensions


def merged(layout: Layout, rank: int) -> Layout | None:
    """Returns the first dimensions of a layout as one, from its first element on, or None."""
    return reshaped(Layout.of(layout.sizes[:rank], layout.strides[:rank]), (prod(layout.sizes[:rank]),))


def windows_at(copy: IndexedCopy, index_nbytes: int = INDEX_NBYTES) -> IndexedWindows | None:
    """Returns the windows that indices, of `index_nbytes` if they are device-resident, select.

    None unless the dimensions of the indices merge on the other side. In equal steps along one of them, the
    windows of host indices have a dimension of their own for these.
    """
    along = [any(table.strides[axis] for table in copy.tables) for axis in range(len(copy.sizes))]
    axes = sorted(range(len(along)), key=lambda axis: not along[axis])  # those of the indices first
    rank = sum(along)
    if copy.host and merged(copy.other.permuted(axes), rank) is None:  # with dimensions between these
        axes, rank = [*range(len(along))], max(axes[:rank]) + 1
    indexed, other, *entries = (side.permuted(axes) for side in (copy.indexed, copy.other, *copy.entries))
    sizes, box, counted = other.sizes[:rank], other.sizes[rank:], merged(other, rank)
    tables = [Layout.of(sizes, side.strides[:rank], side.offset) for side in entries]
    places = [(table.extent, table.step) for table in copy.tables]
    stepped = [axis for axis, stride in enumerate(indexed.strides[:rank]) if stride]
    places += [(sizes[axis], indexed.strides[axis]) for axis in stepped]
    if counted is None or len(places) + len(box) > MAX_RANK or (stepped and copy.host is None):
        return None
    offsets, numbers = None, np.arange(counted.size, dtype=np.uint32)
    if copy.host is not None:
        known: list[NDArray[np.signedinteger]] = [
            as_strided(copy.host.values[side.offset :], sizes, [INDEX_NBYTES * each for each in side.strides])
            for side in tables
        ]
        numbers = numbers[np.min(known, axis=0).reshape(-1) >= 0]
        known += [np.arange(sizes[axis]).reshape([-1] + [1] * (rank - 1 - axis)) for axis in stepped]
        offsets = np.zeros((counted.size, len(places) + len(box)), np.int32)
        for column, each in enumerate(known):
            offsets[:, column] = np.broadcast_to(each, sizes).reshape(-1).clip(0)
    ones, outside = (1,) * len(places), None if copy.reads or copy.host else DROPPED
    boxes = (*ones, *box), (1,) * (len(ones) + len(box)), np.zeros(counted.size, np.uint32)
    kind = index_nbytes, copy.signed or offsets is not None, outside
    windows = Windows(*boxes, offsets, *kind, indices=all(table.wrap for table in copy.tables))
    extents, steps = zip(*places, strict=True)
    tensor = Layout.of((*extents, *box), (*steps, *indexed.strides[rank:]), indexed.offset)
    strides = *counted.strides, *ones, *other.strides[rank:]
    batch = Layout.of((counted.size, *ones, *box), strides, other.offset)
    return IndexedWindows(windows, tensor, batch, numbers, tables)


# problem


class ListSlice(NamedTuple):
    """Indices of a list in equal steps."""

    first: int  # place in the list
    size: int
    start: int  # the index at that place
    step: int  # from one index to the next


class Runs(NamedTuple):
    """Runs of consecutive indices, whose elements are contiguous whole words on both sides."""

    indexed: NDArray[np.int64]  # first byte of each in the view that is indexed
    other: NDArray[np.int64]
    nbytes: NDArray[np.int64]


def slices_of(values: Sequence[int], first: int = 0) -> list[ListSlice]:
    """Returns indices, of which the first is at a place of the list, as slices, each as long as can be."""
    found: list[ListSlice] = []
    while values:
        step = values[1] - values[0] if len(values) > 1 else 1
        size = 1
        while size < len(values) and values[size] - values[size - 1] == step:
            size += 1
        found.append(ListSlice(first, size, values[0], step))
        first, values = first + size, values[size:]
    return found


@dataclass(frozen=True, eq=False)
class Indexing(InContext):
    """A gather or a scatter to plan, in elements of `itemsize` from the bases of both buffers."""

    copy: IndexedCopy
    source: Layout  # of a gather the view that is indexed
    target: Layout  # of a scatter the view that is indexed
    itemsize: int
    context: PlanContext

    @property
    def nbytes(self) -> int:
        """Bytes of all copied elements."""
        return prod(self.copy.sizes) * self.itemsize

    @property
    def sides(self) -> tuple[Layout, Layout]:
        """The view that is indexed, and the other side."""
        return (self.source, self.target) if self.copy.reads else (self.target, self.source)

    @cached_property
    def wide(self) -> tuple[IndexedCopy, int]:
        """The copy in the widest elements, and their bytes."""
        copy, width_nbytes = self.copy.widened(self.itemsize, (self.source.offset, self.target.offset))
        return copy.flattened(), width_nbytes

    def parts(self, copy: IndexedCopy | None = None) -> list[IndexedCopy]:
        """Returns what bindings and grids hold of the copy, or of another one in the widest elements.

        Both sides count from the bases of the buffers.
        """
        wide, width_nbytes = self.wide
        offsets = (side.offset * self.itemsize // width_nbytes for side in self.sides)
        return [*(copy or wide).shifted(*offsets).parts(width_nbytes, self.index_nbytes, self.limits)]

    @property
    def index_nbytes(self) -> int:
        """Bytes of an index, or of a mask's element."""
        return self.context.table.itemsize if self.context.table else INDEX_NBYTES

    def bound_tables(self, copy: IndexedCopy) -> tuple[IndexedCopy, Span]:
        """Returns a copy whose tables count from the start of a binding, and that binding."""
        if copy.host is not None:
            return copy, Span(0, copy.host.values.nbytes)
        spans = [span_of(side, self.index_nbytes, self.limits) for side in copy.entries]
        start = min(span.offset_nbytes for span in spans)
        stop = max(span.offset_nbytes + span.nbytes for span in spans)
        before = start // self.index_nbytes
        entries = [side.shifted(-before) for side in copy.entries]
        return copy.of_entries(entries), Span(start, stop - start)

    @property
    def kernel(self) -> Kernel:
        """The kernel of the copy in the widest elements."""
        copy, width_nbytes = self.wide
        if copy.in_turn:
            return Kernel.MASKED_VALUES
        if copy.masked and copy.is_flat and width_nbytes in MASKED:
            return MASKED[width_nbytes]
        if width_nbytes < WORD_NBYTES:
            return Kernel.GATHER_WORDS if copy.reads else Kernel.SCATTER_SUBWORD
        return GATHERS[width_nbytes] if copy.reads else Kernel.SCATTER

    @cached_property
    def gathered(self) -> IndexedCopy:
        """The copy as `gather` takes it: on CPUs with rows along the indices, if each selects a short run."""
        copy = self.wide[0]
        *axes, last = range(len(copy.sizes))
        if not self.limits.profile.contiguous or not axes or not copy.by_rows:
            return copy
        along = any(table.strides[axes[-1]] for table in copy.tables)
        short = copy.sizes[-1] <= MAX_RUN < copy.sizes[-2]
        return copy.permuted((*axes[:-1], last, axes[-1])) if along and short else copy

    @cached_property
    def goes_down(self) -> bool:
        """Whether a row's elements are in different cache lines, and those of a column in the same ones."""
        copy, width_nbytes = self.wide
        in_line = abs(copy.indexed.strides[-1]) * width_nbytes < CACHE_LINE_NBYTES
        indexing = (table for table in copy.tables if table.strides[-1])
        apart = any(abs(table.step) * width_nbytes >= CACHE_LINE_NBYTES for table in indexing)
        return self.limits.profile.contiguous and len(copy.sizes) > 1 and in_line and apart

    @cached_property
    def in_order(self) -> IndexedCopy | None:
        """The scatter whose rows are copied in order, without winner indices, or None."""
        return self.wide[0].in_order()

    @property
    def run_nbytes(self) -> int:
        """Bytes per index."""
        copy, width_nbytes = self.wide
        return copy.sizes[-1] * width_nbytes if copy.by_rows else width_nbytes

    @property
    def selecting(self) -> str:
        """The subject and verb of reasons."""
        if self.indices_each > 1:
            return "an index per element selects"
        return "each mask element selects" if self.copy.masked else "each index selects"

    @property
    def indices_each(self) -> int:
        """The indices that short rows at one given index are flattened to."""
        given, used = self.copy.host, self.wide[0].host
        return used.values.size // given.values.size if given and used else 1

    @cached_property
    def listed(self) -> list[int]:
        """The indices of a short list along one dimension that select short runs; empty for others."""
        copy = self.copy
        if copy.host is None or copy.masked or len(copy.tables) > 1 or copy.host.values.size > MAX_LISTED:
            return []
        values: list[int] = copy.host.values.tolist()
        along = [size for size, stride in zip(copy.sizes, copy.tables[0].strides, strict=True) if stride]
        alike = not copy.reads and len({*values}) < len(values)
        return values if along == [len(values)] and min(values) >= 0 and not alike else []

    @cached_property
    def slices(self) -> list[ListSlice]:
        """A list of indices as slices; empty if there are too many."""
        found = slices_of(self.listed)
        return found if len(found) <= MAX_SLICES else []

    @cached_property
    def corrections(self) -> list[ListSlice]:
        """Consecutive indices in another order as all of them in order, then slices of the moved ones.

        Empty if both the first index and the last one are moved, or there are too many slices.
        """
        values = self.listed
        lowest = min(values, default=0)
        moved = [place for place, value in enumerate(values) if value != lowest + place]
        if not moved or sorted(values) != [*range(lowest, lowest + len(values))]:
            return []
        first, stop = moved[0], moved[-1] + 1
        found = [ListSlice(0, len(values), lowest, 1), *slices_of(values[first:stop], first)]
        return found if stop - first < len(values) and len(found) <= MAX_SLICES else []

    @cached_property
    def runs(self) -> Runs | None:
        """The runs of a list along the first dimension that has twice as many indices; None for others.

        Its first indices have twice as many too.
        """
        copy = self.copy
        if copy.host is None or copy.masked or copy.winners or len(copy.tables) > 1 or len(copy.sizes) > 2:
            return None
        (table,), count, row = copy.tables, copy.sizes[0], prod(copy.sizes[1:])
        places = *table.strides, *copy.indexed.strides, *copy.other.strides, table.step
        if places != ((1, 0, 0, 1, row, 1, row) if len(copy.sizes) > 1 else (1, 0, 1, 1)):
            return None
        values = copy.host.values[table.offset :][:count]
        for some in (values[:SAMPLED], values):  # 10^6 random indices take 2 ms of the host
            ends = some[1:] - some[:-1] != 1
            if 2 * (1 + np.count_nonzero(ends)) > len(some):
                return None
        firsts = np.flatnonzero(np.concatenate([[True], ends]))
        starts = values[firsts].astype(np.int64)
        if starts.min() < 0:
            return None
        sides = zip((starts, firsts), (copy.indexed, copy.other), self.sides, strict=True)
        indexed, other = (
            (first * row + held.offset + side.offset) * self.itemsize for first, held, side in sides
        )
        found = Runs(indexed, other, np.diff(firsts, append=count) * row * self.itemsize)
        return None if any((each % WORD_NBYTES).any() for each in found) else found

    def sides_of(self, part: ListSlice) -> tuple[Layout, Layout]:
        """The source and the target of a slice."""
        (table,), items = self.copy.tables, [*map(range, self.copy.sizes)]
        axis = next(axis for axis, stride in enumerate(table.strides) if stride)
        items[axis] = range(part.first, part.first + part.size)
        view, elements = self.sides
        other = self.copy.other.select(items).shifted(elements.offset)
        held = self.copy.indexed.select(items).shifted(view.offset + part.start * table.step)
        strides = [*held.strides]
        strides[axis] += part.step * table.step
        indexed = Layout.of(held.sizes, strides, held.offset)
        return (indexed, other) if self.copy.reads else (other, indexed)

    def against_windows(self) -> str:
        """Returns why the same is not copied as windows."""
        if self.copy.masked:
            return "a mask selects elements"
        if self.run_nbytes < MIN_WINDOW_NBYTES:
            return f"{self.selecting} {counted(self.run_nbytes)}; at least {MIN_WINDOW_NBYTES} are needed"
        if self.copy.host is None:
            return "the indices are in device memory"
        return "the same as windows takes several dispatches"

    def against_vectors(self) -> str:
        """Returns why indices do not select vectors of 16 bytes."""
        if self.is_broadcast:
            return "the value is broadcast along rows"
        copy, width_nbytes = self.wide
        apart = abs(copy.indexed.strides[-1]) * width_nbytes
        if copy.by_rows and apart > width_nbytes:
            return f"{self.selecting} elements that are {counted(apart)} apart"
        unaligned = ", unaligned to 16" * (self.run_nbytes >= WIDEST_NBYTES)
        return f"{self.selecting} {counted(self.run_nbytes)}{unaligned}"

    @property
    def is_broadcast(self) -> bool:
        """Whether one element is written to all of a row."""
        copy = self.wide[0]
        return not copy.reads and copy.other.strides[-1] == 0 and copy.sizes[-1] > 1

    @cached_property
    def against_kernels(self) -> str | None:
        """Why no kernel takes the indices, or None."""
        if len(self.copy.tables) > MAX_TABLES:
            return f"the indices are in {len(self.copy.tables)} tables; at most {MAX_TABLES} are supported"
        needed = {self.kernel, Kernel.LAST_WRITER_INDICES} if self.copy.winners else {self.kernel}
        return FAILED if needed & self.limits.disabled else None

    @cached_property
    def windows(self) -> IndexedWindows | None:
        """The windows that the indices select, as `windows_at`, counted from the bases of both buffers."""
        return windows_at(self.copy.shifted(*(side.offset for side in self.sides)), self.index_nbytes)

    @cached_property
    def as_windows(self) -> WindowProblem | None:
        """The same as windows; None if runs are short, or their offsets exceed a binding.

        Offsets of device-resident indices are made first, which pays for long rows of sub-word elements.
        """
        copy, context, limits = self.copy, self.context, self.limits
        in_words = copy.host is None and self.wide[1] >= WORD_NBYTES
        if copy.masked or (not self.against_kernels and (self.run_nbytes < MIN_WINDOW_NBYTES or in_words)):
            return None
        if self.windows is None:
            return None
        windows, tensor, batch, numbers, _ = self.windows
        if windows.count * max(tensor.rank * self.index_nbytes, MIN_TABLE_NBYTES) > limits.binding_nbytes:
            return None
        if context.table is not None:
            offsets = Layout.packed((windows.count, tensor.rank))
            table = Table(offsets, self.index_nbytes, memory=Memory.WINDOW_OFFSETS)
            context = context._replace(table=table)
        contested, inserts = copy.winners is not None and windows.count > 1, not copy.reads
        return turned_forward(
            WindowProblem(windows, tensor, batch, self.itemsize, context, inserts, numbers, contested)
        )

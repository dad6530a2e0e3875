"""The copies that advanced indexing means: by tables of indices, or of windows of size 1 where indexed.

In tables, indices in equal steps are a stride instead, and those that vary together share one table.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, Indexed, Indices
from wgslice.dtypes import DType
from wgslice.layout import Layout, coalesce
from wgslice.layout_rules import reshaped
from wgslice.plans.indexed import INDEX_NBYTES, MAX_TABLES, Host, Index, IndexedCopy, Winners
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.overlaps import are_last
from wgslice.plans.plan import Planner
from wgslice.plans.profiles import Limits
from wgslice.plans.window_strategies import plan_windows
from wgslice.plans.windows import DROPPED, Windows

MIN_TABLE_NBYTES = 8  # of a window's number and directions, which a binding holds as well
BITS_OF_WORD = 32  # elements of a mask in a word of bits
MIN_WINDOW_NBYTES = 64  # contiguous bytes per index from which a copy may run as windows


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

    None if it has too many dimensions or tables for kernels, or one that no i32 counts. Device-resident
    indices may be negative if `signed`. The last of equal places is written, unless all are `disjoint`.
    """
    shape = selection.indices_shape
    rank = len(shape)
    dimensions = [found for each in selection.indexed for found in dimensions_of(view, each)]
    check_counted(max(dimension.size for dimension in dimensions))
    known = [each for each in dimensions if not isinstance(each.places, DeviceIndices)]
    base, steps, groups = split_known(known, rank, reads=reads)
    on_device = [each for each in dimensions if isinstance(each.places, DeviceIndices)]
    if (groups and on_device) or len(on_device) > MAX_TABLES:
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
        tables.append(Index(strides, 0, each.size, wrap, each.stride))
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
    return copy if len(copy.sizes) <= MAX_RANK else None


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


class WindowCopy(NamedTuple):
    """A copy of windows: its planner, and the layouts that are read and written."""

    planner: Planner
    read: Layout
    written: Layout


@dataclass(frozen=True, eq=False)
class IndexedWindows:
    """Windows of a tensor at device-resident indices, `B` of them, and the layout of their elements.

    What no kernel takes tables for: several dtypes or buffers, host indices beside these, many tables, and
    long rows of sub-word elements.
    """

    dimensions: tuple[Dimension, ...]  # the first ones of `tensor`
    shape: tuple[int, ...]  # of the places, broadcast: B of them
    tensor: Layout
    elements: Layout  # (B, 1 for each of `dimensions`, the rest of a window)
    reads: bool  # whether the tensor is copied from, not to
    disjoint: bool = False  # whether all places are promised to be different

    @property
    def count(self) -> int:
        """The number of windows."""
        return self.elements.sizes[0]

    @property
    def rank(self) -> int:
        """The number of dimensions of a window."""
        return self.tensor.rank

    def windows(self, numbers: range, indices: DType) -> Windows:
        """Returns some of the windows; `indices` is the dtype of device-resident ones.

        Negative ones count from the end; one out of range reads the nearest element, and writes none.
        """
        extents = (1,) * len(self.dimensions) + self.tensor.sizes[len(self.dimensions) :]
        boxes = extents, (1,) * self.rank, np.zeros(len(numbers), np.uint32)
        places = [each.places for each in self.dimensions]
        clipped = any(isinstance(each, DeviceIndices) and each.clipped for each in places)
        fill = None if self.reads else DROPPED
        return Windows(*boxes, None, indices.itemsize, indices.kind == "i", fill, indices=not clipped)

    def pieces(self, limits: Limits, offset_nbytes: int) -> Iterator[range]:
        """Yields the numbers of as many windows at a time as a binding holds offsets for."""
        most = limits.binding_nbytes // max(self.rank * offset_nbytes, MIN_TABLE_NBYTES)
        for first in range(0, self.count, most):
            yield range(first, min(first + most, self.count))

    def elements_of(self, numbers: range) -> Layout:
        """Returns the layout of some windows' elements on the other side of the copy."""
        return self.elements.select([numbers, *map(range, self.elements.sizes[1:])])

    def copy_of(self, numbers: range, indices: DType) -> WindowCopy:
        """Returns the copy of some windows; `indices` as for `windows`."""
        windows, elements = self.windows(numbers, indices), self.elements_of(numbers)
        if self.reads:
            return WindowCopy(partial(plan_windows, windows), self.tensor, elements)
        contested = windows.count > 1 and not self.disjoint
        return WindowCopy(
            partial(plan_windows, windows, inserts=True, contested=contested), elements, self.tensor
        )


def indexed_windows(
    selection: AdvancedSelection, tensor: Layout, elements: Layout, *, reads: bool, disjoint: bool = False
) -> IndexedWindows | None:
    """Returns the windows of a tensor that a selection takes, and their places in a layout of its shape.

    None unless the dimensions of the indices coalesce there, as a packed copy's do. `reads` says whether the
    tensor is copied to that layout, and `disjoint` promises that no two windows are at the same place.
    """
    view = tensor.select(selection.items)
    other = elements.permuted(selection.windows_first)
    rank = len(selection.indices_shape)
    count, counted = prod(other.sizes[:rank]), merged(other, rank)
    if counted is None:
        return None
    dimensions = [found for each in selection.indexed for found in dimensions_of(view, each)]
    dimensions = [each for each in dimensions if each.size > 1 or isinstance(each.places, DeviceIndices)]
    kept = Layout.of(selection.kept_sizes, [view.strides[axis] for axis in selection.kept_axes], view.offset)
    rest = Layout.of(other.sizes[rank:], other.strides[rank:], other.offset)
    if reads:
        kept, rest = coalesce(kept, rest)
    else:
        rest, kept = coalesce(rest, kept)
    ones = [1] * len(dimensions)
    sizes = [*(dimension.size for dimension in dimensions), *kept.sizes]
    if len(sizes) > MAX_RANK:
        raise ValueError(
            f"a part of sizes {tuple(sizes)} that do not merge: arrays of indices take at most {MAX_RANK} "
            "dimensions of a tensor; copy() it first"
        )
    check_counted(max(sizes))
    return IndexedWindows(
        tuple(dimensions),
        selection.indices_shape,
        Layout.of(sizes, [*(dimension.stride for dimension in dimensions), *kept.strides], kept.offset),
        Layout.of([count, *ones, *rest.sizes], [*counted.strides, *ones, *rest.strides], rest.offset),
        reads,
        disjoint,
    )


def merged(layout: Layout, rank: int) -> Layout | None:
    """Returns the first dimensions of a layout as one, from its first element on, or None."""
    return reshaped(Layout.of(layout.sizes[:rank], layout.strides[:rank]), (prod(layout.sizes[:rank]),))


def known_windows(copy: IndexedCopy) -> tuple[Windows, Layout, Layout, NDArray[np.uint32]] | None:
    """Returns the windows that indices of the host select, their tensor, their batch, and those written.

    None unless the dimensions of the indices merge on the other side, and an i32 counts the places.
    """
    assert copy.host is not None
    along = [any(table.strides[axis] for table in copy.tables) for axis in range(len(copy.sizes))]
    axes = sorted(range(len(along)), key=lambda axis: not along[axis])  # those of the indices first
    rank = sum(along)
    if merged(copy.other.permuted(axes), rank) is None:  # with dimensions between these
        axes, rank = [*range(len(along))], max(axes[:rank]) + 1
    indexed, other = copy.indexed.permuted(axes), copy.other.permuted(axes)
    count, box = prod(other.sizes[:rank]), other.sizes[rank:]
    counted = merged(other, rank)
    steps = [table.step for table in copy.tables] + [*indexed.strides[:rank]]
    step = gcd(*steps) or 1
    if counted is None or len(box) == MAX_RANK:
        return None
    places, written = np.zeros(other.sizes[:rank], np.int64), np.ones(other.sizes[:rank], np.bool_)
    for table in copy.tables:
        strides = [table.strides[axis] * INDEX_NBYTES for axis in axes[:rank]]
        values = as_strided(copy.host.values[table.offset :], places.shape, strides, writeable=False)
        written &= values >= 0
        places += values.astype(np.int64) * (table.step // step)
    for axis, (size, stride) in enumerate(zip(places.shape, indexed.strides, strict=False)):
        places += (np.arange(size) * (stride // step)).reshape([-1] + [1] * (rank - 1 - axis))
    places = np.where(written, places, places[written].flat[0] if written.any() else 0).reshape(-1)
    lowest = min(int(places.min()), 0)
    extent = int(places.max()) - lowest + 1
    if extent > I32_MAX:
        return None
    offsets = np.zeros((count, 1 + len(box)), np.int32)
    offsets[:, 0] = places - lowest
    boxes = (1, *box), (1,) * (1 + len(box)), np.zeros(count, np.uint32)
    windows = Windows(*boxes, offsets, INDEX_NBYTES, True, None)
    tensor = Layout.of((extent, *box), (step, *indexed.strides[rank:]), indexed.offset + lowest * step)
    batch = Layout.of((count, 1, *box), (*counted.strides, 0, *other.strides[rank:]), other.offset)
    return windows, tensor, batch, windows.numbers[written.reshape(-1)]

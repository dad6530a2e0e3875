"""Arrays of indices as tables: equal steps become a view, indices that vary together one table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, Indexed, Indices
from wgslice.layout import Layout
from wgslice.layout_rules import reshaped
from wgslice.plans.indexed import MAX_TABLES, Host, Index, IndexedCopy, Winners
from wgslice.plans.overlaps import are_last


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
    if any(dimension.size > I32_MAX for dimension in dimensions):
        return None
    known = [each for each in dimensions if not isinstance(each.places, DeviceIndices)]
    base, steps, groups = split_known(known, rank, reads=reads)
    on_device = [each for each in dimensions if isinstance(each.places, DeviceIndices)]
    if (groups and on_device) or max(len(groups), len(on_device)) > MAX_TABLES:
        return None
    host, winners = None, None
    tables: list[Index] = []
    if groups:
        tables, values, lowest = folded_tables(groups, shape, unique=not (reads or disjoint))
        base += lowest
        if any(table.extent > I32_MAX for table in tables):
            return None
        host = Host(values)
    for each in on_device:
        assert isinstance(each.places, DeviceIndices)
        own = each.places.shape
        strides = strides_over(own, range(rank - len(own), rank), rank)
        tables.append(Index(strides, 0, each.size, 0 if each.places.clipped else each.size, each.stride))
    nothing = [0] * len(selection.kept_sizes)
    if on_device and not (reads or disjoint) and prod(shape) > 1:
        axes = [axis for axis, step in enumerate(steps) if step]
        places = Layout.packed([*(table.extent for table in tables), *(shape[axis] for axis in axes)])
        along = dict(zip(axes, places.strides[len(tables) :], strict=True))
        winners = Winners(
            selection.arranged([along.get(axis, 0) for axis in range(rank)], nothing),
            selection.arranged(Layout.packed(shape).strides, nothing),
            places.size,
        )
        tables = [
            table._replace(winner_step=step) for table, step in zip(tables, places.strides, strict=False)
        ]
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


def masked_copy(mask_sizes: Sequence[int], target: Layout, source: Layout) -> IndexedCopy:
    """Returns the copy between layouts of equal sizes to where a mask, broadcast to these, is true."""
    first = target.rank - len(mask_sizes)
    strides = strides_over(mask_sizes, range(first, target.rank), target.rank)
    return IndexedCopy(
        Layout.of(target.sizes, target.strides),
        Layout.of(source.sizes, source.strides),
        (Index(strides, 0, 1, 0, 0),),
        reads=False,
        masked=True,
    ).coalesced()


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
    if flat.size == 1:
        return 0
    step = int(flat[1] - flat[0])
    if flat[-1] - flat[0] != step * (flat.size - 1) or flat[-1] - flat[-2] != step:
        return None
    return step if (np.diff(flat) == step).all() else None


def folded_tables(
    groups: Iterable[Group], shape: Sequence[int], *, unique: bool
) -> tuple[list[Index], NDArray[np.int32], int]:
    """Returns a table for each group, their values, and the elements before their lowest place.

    If `unique`, the last of equal values stays, and the others are -1.
    """
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
        strides = strides_over([shape[axis] for axis in axes], axes, len(shape))
        tables.append(Index(strides, offset, int(places.max()) + 1, 0, step))
        values.append((np.where(are_last(places), places, -1) if unique else places).astype(np.int32))
        offset += places.size
    return tables, np.concatenate(values), base


def strides_over(sizes: Sequence[int], axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """Returns the strides of a packed table of some sizes along `axes` of a rank."""
    strides = [0] * rank
    for axis, stride in zip(axes, Layout.packed(sizes).strides, strict=True):
        strides[axis] = stride
    return tuple(strides)

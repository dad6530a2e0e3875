"""Arrays of indices as tables: what moves in equal steps is a view, what varies together one table."""

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

MAX_SPARSE = 16  # places a window, of which a table says faster than sorting which window is the last


class Dimension(NamedTuple):
    """A dimension that windows begin in, each at a place of its own."""

    size: int
    stride: int
    places: Indices

    @property
    def known(self) -> NDArray[np.int64]:
        """The places, which the host has."""
        assert isinstance(self.places, np.ndarray)
        return self.places


class Steady(NamedTuple):
    """Indices of a dimension that move in equal steps along one dimension of theirs: a view."""

    dimension: Dimension
    axis: int
    step: int


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
    """The copy between a view whose dimensions a selection indexes and a layout of the selection's shape.

    None where kernels do not take it: too many dimensions or tables, or a dimension that no i32 counts.
    `signed` says whether indices that the GPU has may be negative; its tables follow the selection's order.
    Of elements that are written to the same place the last one stays, unless these are `disjoint`.
    """
    shape = selection.indices_shape
    rank = len(shape)
    dimensions = [found for each in selection.indexed for found in dimensions_of(view, each)]
    if any(dimension.size > I32_MAX for dimension in dimensions):
        return None
    known = [each for each in dimensions if not isinstance(each.places, DeviceIndices)]
    base, steady, groups = split_known(known, rank, reads=reads)
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
    steps = [
        sum(each.step * each.dimension.stride for each in steady if each.axis == axis) for axis in range(rank)
    ]
    if on_device and not (reads or disjoint) and prod(shape) > 1:
        tables, winners = with_winners(tables, sorted({each.axis for each in steady}), shape)
    nothing = [0] * len(selection.kept_sizes)
    if winners:
        along, numbers = (selection.arranged(each, nothing) for each in (winners.strides, winners.numbers))
        winners = winners._replace(strides=along, numbers=numbers)
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
    """The copy between layouts of equal sizes to where a mask, which broadcasts to these, is true."""
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
    """The dimensions of a view that an array indexes: one, where those of a mask lie as one would."""
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
) -> tuple[int, list[Steady], list[Group]]:
    """How far indices move, in elements: all alike, in equal steps, and by tables.

    No two tables of what is written vary along one dimension, and none along that of a view, so that places
    are equal if and only if they are in each table.
    """
    base, steady = 0, []
    groups: list[Group] = []
    for dimension in dimensions:
        places = dimension.known
        axes = tuple(axis for axis, size in enumerate(places.shape, rank - places.ndim) if size > 1)
        step = step_of(places) if len(axes) <= 1 else None
        if not axes:
            base += int(places.flat[0]) * dimension.stride
        elif step is not None and (step or reads):
            steady.append(Steady(dimension, axes[0], step))
        else:
            groups.append(Group(axes, [dimension]))
    if not reads:
        axes_of_groups = {axis for group in groups for axis in group.axes}
        groups += [Group((each.axis,), [each.dimension]) for each in steady if each.axis in axes_of_groups]
        steady = [each for each in steady if each.axis not in axes_of_groups]
    joined: list[Group] = []
    for group in groups:
        meeting = [
            one for one in joined if (one.axes == group.axes if reads else set(one.axes) & set(group.axes))
        ]
        joined = [one for one in joined if one not in meeting]
        axes = tuple(sorted({axis for one in (group, *meeting) for axis in one.axes}))
        joined.append(Group(axes, [each for one in (group, *meeting) for each in one.dimensions]))
    base += sum(int(each.dimension.known.flat[0]) * each.dimension.stride for each in steady)
    return base, steady, joined


def step_of(places: NDArray[np.int64]) -> int | None:
    """What equal steps indices along one dimension move in; None where they do not."""
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
    """A table for each group, all of them behind each other, and how far from 0 they begin, in elements.

    Where they are to be `unique`, the last of equal ones stays, and the others are -1.
    """
    base, offset = 0, 0
    tables: list[Index] = []
    values: list[NDArray[np.int32]] = []
    for axes, dimensions in groups:
        step = gcd(*(dimension.stride for dimension in dimensions)) or 1
        factors = [dimension.stride // step for dimension in dimensions]
        scaled = [
            dimension.known if factor == 1 else dimension.known * factor
            for dimension, factor in zip(dimensions, factors, strict=True)
        ]
        places = reduce(np.add, scaled).reshape(-1)
        lowest = int(places.min())
        if lowest < 0:
            base += lowest * step
            places = places - lowest
        strides = strides_over([shape[axis] for axis in axes], axes, len(shape))
        tables.append(Index(strides, offset, int(places.max()) + 1, 0, step))
        values.append((last_of_equal(places) if unique else places).astype(np.int32))
        offset += places.size
    return tables, np.concatenate(values), base


def last_of_equal(places: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of which the last of equal ones stays; the others are -1."""
    if (places[1:] > places[:-1]).all():  # a mask's
        return places
    numbers, size = np.arange(places.size), int(places.max()) + 1
    if size <= MAX_SPARSE * places.size:
        last = np.empty(size, np.int64)
        last[places] = numbers  # NumPy's later one wins
        stays = last[places] == numbers
    else:
        _, backwards = np.unique(places[::-1], return_index=True)
        stays = np.zeros(places.size, np.bool_)
        stays[places.size - 1 - backwards] = True
    return np.where(stays, places, -1)


def with_winners(
    tables: Sequence[Index], axes: Sequence[int], shape: Sequence[int]
) -> tuple[list[Index], Winners]:
    """Returns tables with winner steps over their dimensions and `axes`, along which views move."""
    rank = len(shape)
    places = Layout.packed([*(table.extent for table in tables), *(shape[axis] for axis in axes)])
    steps, strides = places.strides[: len(tables)], [0] * rank
    for axis, stride in zip(axes, places.strides[len(tables) :], strict=True):
        strides[axis] = stride
    winners = Winners(tuple(strides), Layout.packed(shape).strides, places.size)
    return [table._replace(winner_step=step) for table, step in zip(tables, steps, strict=True)], winners


def strides_over(sizes: Sequence[int], axes: Iterable[int], rank: int) -> tuple[int, ...]:
    """The strides of a packed table of some sizes, along `axes` of a rank."""
    strides = [0] * rank
    for axis, stride in zip(axes, Layout.packed(sizes).strides, strict=True):
        strides[axis] = stride
    return tuple(strides)

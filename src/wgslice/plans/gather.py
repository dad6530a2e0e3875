"""The windows that advanced indexing takes of a tensor: of size 1 in the indexed dimensions."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices
from wgslice.dtypes import DType
from wgslice.layout import Layout, coalesce
from wgslice.layout_rules import reshaped
from wgslice.plans.overlaps import Insertion, are_last, keys_of
from wgslice.plans.plan import Planner
from wgslice.plans.profiles import Limits
from wgslice.plans.tables import Dimension, dimensions_of
from wgslice.plans.window_strategies import extract_windows_planner, insert_windows_planner
from wgslice.plans.windows import DROPPED, Windows

MIN_TABLE_NBYTES = 8  # of a window's number and directions, which a binding holds as well


class WindowCopy(NamedTuple):
    """A copy of windows: its planner, and the layouts that are read and written."""

    planner: Planner
    read: Layout
    written: Layout


@dataclass(frozen=True, eq=False)
class IndexedWindows:
    """Windows of a tensor, `B` of them, and the layout of their elements on the other side of the copy."""

    dimensions: tuple[Dimension, ...]  # the first ones of `tensor`
    shape: tuple[int, ...]  # of the places, broadcast: B of them
    tensor: Layout
    elements: Layout  # (B, 1 for each of `dimensions`, the rest of a window)
    reads: bool  # whether the tensor is copied from, not to

    @property
    def count(self) -> int:
        """The number of windows."""
        return self.elements.sizes[0]

    @property
    def rank(self) -> int:
        """The number of dimensions of a window."""
        return self.tensor.rank

    @cached_property
    def offsets(self) -> NDArray[np.int32]:
        """The start of each window, in dimensions that the host knows."""
        offsets = np.zeros((*self.shape, self.rank), np.int32)
        for column, dimension in enumerate(self.dimensions):
            offsets[..., column] = dimension.known
        return offsets.reshape(self.count, self.rank)

    def windows(self, numbers: range, indices: DType | None = None) -> Windows:
        """Returns some of the windows; `indices` is the dtype of device-resident ones.

        Negative ones count from the end; one out of range reads the nearest element, and writes none.
        """
        extents = (1,) * len(self.dimensions) + self.tensor.sizes[len(self.dimensions) :]
        boxes = extents, (1,) * self.rank, np.zeros(len(numbers), np.uint32)
        if indices is None:
            return Windows(*boxes, self.offsets[numbers.start : numbers.stop], 4, True, None)
        places = [each.places for each in self.dimensions]
        clipped = any(isinstance(each, DeviceIndices) and each.clipped for each in places)
        fill = None if self.reads else DROPPED
        return Windows(*boxes, None, indices.itemsize, indices.kind == "i", fill, indices=not clipped)

    def insertion(self, windows: Windows) -> Insertion:
        """Returns the insertion of some windows: of those at the same place, the last one alone."""
        if windows.offsets is None:
            return Insertion(windows, windows.numbers, contested=windows.count > 1)
        lasting = are_last(keys_of(windows.offsets.astype(np.int64).T))
        return Insertion(windows, windows.numbers[lasting], contested=False)

    def pieces(self, limits: Limits, offset_nbytes: int) -> Iterator[range]:
        """Yields the numbers of as many windows at a time as a binding holds offsets for."""
        most = limits.binding_nbytes // max(self.rank * offset_nbytes, MIN_TABLE_NBYTES)
        for first in range(0, self.count, most):
            yield range(first, min(first + most, self.count))

    def elements_of(self, numbers: range) -> Layout:
        """Returns the layout of some windows' elements on the other side of the copy."""
        return self.elements.select([numbers, *map(range, self.elements.sizes[1:])])

    def copy_of(self, numbers: range, indices: DType | None = None) -> WindowCopy:
        """Returns the copy of some windows; `indices` as for `windows`."""
        windows, elements = self.windows(numbers, indices), self.elements_of(numbers)
        if self.reads:
            return WindowCopy(extract_windows_planner(windows), self.tensor, elements)
        return WindowCopy(insert_windows_planner(self.insertion(windows)), elements, self.tensor)

    def copies(self, limits: Limits) -> Iterator[WindowCopy]:
        """Yields the copies of all windows, whose indices are on the host."""
        return map(self.copy_of, self.pieces(limits, self.offsets.itemsize))


def indexed_windows(
    selection: AdvancedSelection, tensor: Layout, elements: Layout, *, reads: bool
) -> IndexedWindows | None:
    """Returns the windows of a tensor that a selection takes, and their places in a layout of its shape.

    None unless the dimensions of the indices coalesce there, as a packed copy's do. `reads` says whether the
    tensor is copied to that layout.
    """
    view = tensor.select(selection.items)
    other = elements.permuted(selection.windows_first)
    rank = len(selection.indices_shape)
    count = prod(other.sizes[:rank])
    counted = reshaped(Layout.of(other.sizes[:rank], other.strides[:rank]), (count,))
    if counted is None:
        return None
    dimensions = [found for each in selection.indexed for found in dimensions_of(view, each)]
    base = 0
    if any(isinstance(dimension.places, DeviceIndices) for dimension in dimensions):
        dimensions = [each for each in dimensions if each.size > 1 or isinstance(each.places, DeviceIndices)]
    else:
        dimensions, base = folded(dimensions)
    kept = Layout.of(
        selection.kept_sizes, [view.strides[axis] for axis in selection.kept_axes], view.offset + base
    )
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
    if max(sizes) > I32_MAX:
        raise ValueError(
            f"a dimension of {max(sizes)} elements: arrays of indices take at most {I32_MAX} of them; index "
            "parts of it"
        )
    return IndexedWindows(
        tuple(dimensions),
        selection.indices_shape,
        Layout.of(sizes, [*(dimension.stride for dimension in dimensions), *kept.strides], kept.offset),
        Layout.of([count, *ones, *rest.sizes], [*counted.strides, *ones, *rest.strides], rest.offset),
        reads,
    )


def folded(dimensions: list[Dimension]) -> tuple[list[Dimension], int]:
    """Returns one dimension instead of several, if an i32 counts it, and its offset in elements.

    Its places are those of the tensor's elements in memory, so that any strides will do.
    """
    step = gcd(*(dimension.stride for dimension in dimensions)) or 1
    reaches = [(dimension.size - 1) * dimension.stride for dimension in dimensions]
    lowest = sum(min(reach, 0) for reach in reaches)
    size = sum(map(abs, reaches)) // step + 1
    if size > I32_MAX:
        return dimensions, 0
    places = np.asarray(-lowest // step)
    for dimension in dimensions:
        places = places + dimension.known * (dimension.stride // step)
    return [Dimension(size, step, places)], lowest

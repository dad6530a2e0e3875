"""The windows that advanced indexing takes of a tensor: boxes of one place along what arrays index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, MAX_RANK
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices
from wgslice.layout import Layout, coalesce
from wgslice.layout_rules import reshaped
from wgslice.plans.overlaps import Insertion, last_of_equal
from wgslice.plans.plan import Planner
from wgslice.plans.profiles import Limits
from wgslice.plans.tables import MAX_SPARSE, Dimension, dimensions_of
from wgslice.plans.window_strategies import extract_windows_planner, insert_windows_planner
from wgslice.plans.windows import DROPPED, Windows

MIN_TABLE_NBYTES = 8  # of a window's number and directions, which a binding holds as well


class WindowCopy(NamedTuple):
    """A copy of windows: what plans it, and the layouts that are read and written."""

    planner: Planner
    read: Layout
    written: Layout


@dataclass(frozen=True, eq=False)
class IndexedWindows:
    """Windows of a tensor, `B` of them, and where their elements lie on the other side of the copy."""

    dimensions: tuple[Dimension, ...]  # the first ones of `tensor`
    shape: tuple[int, ...]  # of the places, broadcast: B of them
    tensor: Layout
    elements: Layout  # (B, 1 for each of `dimensions`, the rest of a window)
    reads: bool  # whether the tensor is copied from, not to

    @property
    def count(self) -> int:
        """How many."""
        return self.elements.sizes[0]

    @property
    def rank(self) -> int:
        """Dimensions of a window."""
        return self.tensor.rank

    def offsets(self) -> NDArray[np.int32]:
        """Where each window begins, of dimensions that the host knows."""
        offsets = np.zeros((*self.shape, self.rank), np.int32)
        for column, dimension in enumerate(self.dimensions):
            offsets[..., column] = dimension.known
        return offsets.reshape(self.count, self.rank)

    def windows(self, numbers: range, offsets: NDArray[np.int32]) -> Windows:
        """Some of these windows, as planners take them."""
        return self._windows(len(numbers), offsets[numbers.start : numbers.stop], 4, True, None)

    def windows_on_gpu(self, numbers: range, offset_nbytes: int, signed: bool) -> Windows:
        """Some of these windows, whose indices the GPU has: negative ones count from the end.

        What is out of range then reads the nearest element, and writes nothing.
        """
        fill = None if self.reads else DROPPED
        clipped = any(
            isinstance(each.places, DeviceIndices) and each.places.clipped for each in self.dimensions
        )
        windows = self._windows(len(numbers), None, offset_nbytes, signed, fill)
        return replace(windows, indices=not clipped)

    def _windows(
        self,
        count: int,
        offsets: NDArray[np.int32] | None,
        offset_nbytes: int,
        signed: bool,
        fill: bytes | None,
    ) -> Windows:
        extents = (1,) * len(self.dimensions) + self.tensor.sizes[len(self.dimensions) :]
        forwards = np.zeros(count, np.uint32)
        return Windows(extents, (1,) * self.rank, forwards, offsets, offset_nbytes, signed, fill)

    def insertion(self, windows: Windows) -> Insertion:
        """What some of these windows write: of those at the same place the last one alone."""
        if windows.offsets is None:
            return Insertion(windows, windows.numbers, contested=windows.count > 1)
        return Insertion(windows, last_of(windows, self.dimensions), contested=False)

    def pieces(self, limits: Limits, offset_nbytes: int) -> Iterator[range]:
        """The numbers of the windows, as many at a time as a binding says places of."""
        most = limits.binding_nbytes // max(self.rank * offset_nbytes, MIN_TABLE_NBYTES)
        for first in range(0, self.count, most):
            yield range(first, min(first + most, self.count))

    def elements_of(self, numbers: range) -> Layout:
        """Where the elements of some windows lie."""
        return self.elements.select([numbers, *map(range, self.elements.sizes[1:])])

    def copy_of(self, numbers: range, windows: Windows) -> WindowCopy:
        """The copy of some of these windows."""
        elements = self.elements_of(numbers)
        if self.reads:
            return WindowCopy(extract_windows_planner(windows), self.tensor, elements)
        return WindowCopy(insert_windows_planner(self.insertion(windows)), elements, self.tensor)

    def copies(self, limits: Limits) -> Iterator[WindowCopy]:
        """The copies of all windows, whose indices the host knows."""
        offsets = self.offsets()
        for numbers in self.pieces(limits, offsets.itemsize):
            yield self.copy_of(numbers, self.windows(numbers, offsets))


def indexed_windows(
    selection: AdvancedSelection, tensor: Layout, elements: Layout, *, reads: bool
) -> IndexedWindows | None:
    """The windows of a tensor that a selection of some elements means, and where these lie in another layout.

    `elements` has the selection's shape. None where the dimensions of its indices do not lie as one would,
    which a packed copy's do. `reads` says which layout is copied to the other.
    """
    view = tensor.select(selection.items)
    other = elements.permuted(selection.windows_first)
    rank = len(selection.indices_shape)
    ways = Layout.of(other.sizes[:rank], other.strides[:rank])
    counted = reshaped(ways, (ways.size,))
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
    check_countable(sizes)
    return IndexedWindows(
        tuple(dimensions),
        selection.indices_shape,
        Layout.of(sizes, [*(dimension.stride for dimension in dimensions), *kept.strides], kept.offset),
        Layout.of([ways.size, *ones, *rest.sizes], [*counted.strides, *ones, *rest.strides], rest.offset),
        reads,
    )


def check_countable(sizes: Sequence[int]) -> None:
    """Refuse dimensions that kernels of windows do not take, after all that can be have been merged."""
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


def folded(dimensions: list[Dimension]) -> tuple[list[Dimension], int]:
    """One dimension instead of several, if an i32 counts it, and how far from theirs it begins, in elements.

    Its places are those that the tensor's elements have in memory, so that it takes any strides.
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


def last_of(windows: Windows, dimensions: Sequence[Dimension]) -> NDArray[np.uint32]:
    """The numbers of windows at known places that no later one is at, in order."""
    assert windows.offsets is not None
    numbers: NDArray[np.uint32] = windows.numbers
    places, size = windows.offsets[:, 0], dimensions[0].size
    if len(dimensions) > 1 or size > MAX_SPARSE * windows.count:
        return last_of_equal(windows.offsets.astype(np.int64), numbers)
    if (places[1:] > places[:-1]).all():  # a mask's
        return numbers
    last = np.empty(size, np.uint32)
    last[places] = numbers  # NumPy's later one wins
    lasting: NDArray[np.uint32] = numbers[last[places] == numbers]
    return lasting

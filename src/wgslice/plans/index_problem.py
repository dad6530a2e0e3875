"""A gather or a scatter to plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.gather import MIN_TABLE_NBYTES, MIN_WINDOW_NBYTES, known_windows
from wgslice.plans.indexed import INDEX_NBYTES, IndexedCopy
from wgslice.plans.kernels import GATHERS, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.problem import InContext, PlanContext, counted, span_of
from wgslice.plans.profiles import CACHE_LINE_NBYTES, MAX_AHEAD_NBYTES, MIN_AHEAD_NBYTES
from wgslice.plans.steps import Span
from wgslice.plans.window_problem import WindowProblem, turned_forward

MASKED = {1: Kernel.MASKED_WORDS, 2: Kernel.MASKED_WORDS, 8: Kernel.MASKED_PAIRS}  # by bytes per element
MAX_LISTED, MAX_SLICES = 16, 4  # indices that may be copied as slices, and slices
SAMPLED = 4096  # indices, the first ones, that must have runs if all have
MAX_RUN = 4  # elements per index of which a gather takes the first of all runs, then the second


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

    @cached_property
    def ahead(self) -> int:
        """The dimensions from a row of `gather` up to the next row in memory, or 0 if that is not read ahead.

        Its elements are then loaded in their order, before they are gathered in another.
        """
        copy, width_nbytes = self.gathered, self.wide[1]
        up = 1 + (copy is not self.wide[0])
        steps = [(abs(table.step) * width_nbytes, table.extent) for table in copy.tables if table.strides[-1]]
        row_nbytes = sum(step * extent for step, extent in steps)
        in_line = all(step < CACHE_LINE_NBYTES for step, _ in steps)
        pays = in_line and MIN_AHEAD_NBYTES <= row_nbytes <= MAX_AHEAD_NBYTES
        return up if self.limits.profile.contiguous and len(copy.sizes) > up and pays else 0

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
    def as_windows(self) -> WindowProblem | None:
        """The same as windows; None if runs are short, or the windows need several tables."""
        if self.copy.host is None or self.copy.masked:
            return None
        if self.run_nbytes < MIN_WINDOW_NBYTES and self.kernel not in self.limits.disabled:
            return None
        found = known_windows(self.copy.shifted(*(side.offset for side in self.sides)))
        if found is None:
            return None
        windows, tensor, batch, numbers = found
        if windows.count * max(tensor.rank * INDEX_NBYTES, MIN_TABLE_NBYTES) > self.limits.binding_nbytes:
            return None
        inserts = not self.copy.reads
        return turned_forward(
            WindowProblem(windows, tensor, batch, self.itemsize, self.context, inserts, numbers)
        )

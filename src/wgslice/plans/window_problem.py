"""A copy of windows to plan: its rows, its bands, and the reasons that reject strategies."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, I32_MIN, U32_MAX
from wgslice.layout import Layout
from wgslice.plans.box_strategies import BoxProblem, placed_boxes
from wgslice.plans.choose import OTHER, Reason
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.overlaps import layers_of
from wgslice.plans.problem import NO_COPY_USAGE, InContext, PlanContext, span_of
from wgslice.plans.profiles import FAILED
from wgslice.plans.steps import BufferCopies, Places, Span
from wgslice.plans.windows import Numbers, Packing, Windows, Winners

ROW_STEPS = 2, 4  # of elements that make a block


@dataclass(frozen=True)
class Row:
    """The last dimensions of windows that are contiguous on both sides, coalesced into one."""

    axis: int  # the first of these dimensions, the others being whole
    unit: int  # elements that an index of it has
    nbytes: int
    count: int  # rows of a window
    element_nbytes: int  # bytes of what keeps its order backwards
    mirrored: bool  # whether some are reversed
    channels: int  # elements an index that keep their order in reversed rows, a block for each; 1 of others

    @property
    def words_spanned(self) -> int:
        """The most words that a row touches, at any alignment."""
        return (self.nbytes + 2) // WORD_NBYTES + 1


class Band(NamedTuple):
    """A part of a tensor that a binding holds, with the windows that reach it."""

    ranges: tuple[range, ...]  # of the tensor's indices
    numbers: Numbers
    base: int = 0  # of winners
    blocks: int = 0  # vectors of the binding with winners, where windows may overlap in parts of rows


@dataclass(frozen=True, eq=False)
class WindowProblem(InContext):
    """Windows to copy between a tensor and a batch, in elements of `itemsize` from the bases of both."""

    windows: Windows
    tensor: Layout
    batch: Layout
    itemsize: int
    context: PlanContext
    inserts: bool  # whether the batch is the input, and the tensor the output
    numbers: Numbers  # of the windows to copy
    contested: bool = False  # whether they may overlap, so that the later one stays

    @property
    def whole(self) -> list[range]:
        """All indices of a window."""
        return list(map(range, self.windows.sizes))

    @cached_property
    def one(self) -> Layout:
        """A window of the batch."""
        return self.batch.select([0, *self.whole])

    @cached_property
    def nbytes(self) -> int:
        """Bytes of the windows of all bands."""
        return sum(len(band.numbers) for band in self.bands) * self.one.size * self.itemsize

    @cached_property
    def bands(self) -> list[Band]:
        """The tensor, split until bindings hold each part and its winners if windows are inserted."""
        windows, sizes = self.windows, self.tensor.sizes
        ranges = list(map(range, sizes))
        if not self.inserts:
            return [Band(tuple(ranges), self.numbers)]
        if windows.offsets is not None:  # only what they reach
            offsets = windows.offsets[self.numbers].astype(np.int64)
            starts = np.maximum(offsets.min(axis=0), 0)
            stops = np.minimum(offsets.max(axis=0) + windows.extents, sizes)
            ranges = list(map(range, starts.tolist(), stops.tolist()))

        def excess(ranges: list[range]) -> Sequence[int] | None:
            part, winning = self.tensor.select(ranges), self.winning(ranges)
            nbytes = (part.stop - part.lowest) * self.itemsize
            if nbytes > self.max_nbytes:
                return part.reaches
            count = winning.size
            if self.in_parts:  # one for each vector of a binding, wherever it begins
                count += (nbytes + self.limits.binding_alignment_nbytes) // WIDEST_NBYTES + 1
            return winning.sizes if count * WORD_NBYTES > self.max_nbytes else None

        found: list[Band] = []
        base = 1  # above the zeros that winners begin as
        for part in halved(ranges, excess):
            touching, _ = self.reaching(self.numbers, part)
            if touching.any():
                found.append(Band(tuple(part), self.numbers[touching], base))
                base += windows.count
        return found

    def binding(self, band: Band) -> Span:
        """The binding that holds a band."""
        return span_of(self.tensor.select(band.ranges), self.itemsize, self.limits)

    @cached_property
    def differ(self) -> tuple[bool, ...]:
        """The dimensions in which winners differ from index to index."""
        return tuple(
            self.contested and not self.windows.takes_all(axis, size)
            for axis, size in enumerate(self.tensor.sizes)
        )

    def winning(self, ranges: Sequence[range]) -> Layout:
        """The winner indices of a part of the tensor: one along dimensions in which they do not differ."""
        return Layout.packed(
            [len(taken) if differs else 1 for taken, differs in zip(ranges, self.differ, strict=True)]
        )

    def winners(self, band: Band) -> Winners | None:
        """The winner indices of a band, if windows may overlap."""
        if not self.contested:
            return None
        winning = self.winning(band.ranges)
        ahead = sum(taken.start * stride for taken, stride in zip(band.ranges, winning.strides, strict=True))
        nbytes = (winning.size + band.blocks) * WORD_NBYTES
        return Winners(Span(0, nbytes), -ahead, band.base, winning.size)

    @property
    def in_parts(self) -> bool:
        """Whether windows may overlap in parts of rows."""
        return self.windows.sizes[self.row.axis] > 1 and self.differ[self.row.axis]

    def reaching(
        self, numbers: Numbers, ranges: Sequence[range]
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Returns which windows may have elements among some indices of the tensor, and which outside."""
        if self.windows.offsets is None:
            return np.ones(len(numbers), np.bool_), np.ones(len(numbers), np.bool_)
        starts = self.windows.offsets[numbers].astype(np.int64)
        ends = starts + self.windows.extents
        first, stop = np.array([(taken.start, taken.stop) for taken in ranges], np.int64).reshape(-1, 2).T
        touching, leaving = (starts < stop) & (ends > first), (starts < first) | (ends > stop)
        return np.all(touching, axis=1), np.any(leaving, axis=1)

    def parts(self, ranges: list[range]) -> Iterator[list[range]]:
        """Halves a window until a binding holds its part of the batch, and a grid its elements."""

        def excess(ranges: list[range]) -> Sequence[int] | None:
            one = self.batch.select([0, *ranges])
            if (one.stop - one.lowest) * self.itemsize > self.max_nbytes:
                return one.reaches
            return one.sizes if one.size > self.max_invocations else None

        return halved(ranges, excess)

    def held(self, part: list[range], numbers: Numbers, invocations: int) -> Iterator[Numbers]:
        """Yields as many windows at a time as fit a binding of the batch and a grid.

        `part` is the part of each window that is bound, and `invocations` the number that a window takes.
        """
        one = self.batch.select([0, *part])
        room_nbytes = self.max_nbytes - (one.stop - one.lowest) * self.itemsize
        further = room_nbytes // max(abs(self.batch.strides[0]) * self.itemsize, 1)
        most = max(self.max_invocations // invocations, 1)
        while len(numbers):
            stop = int(np.searchsorted(numbers, int(numbers[0]) + further, side="right"))
            yield numbers[: min(stop, most)]
            numbers = numbers[min(stop, most) :]

    @cached_property
    def row(self) -> Row:
        """The coalesced row: the last dimensions, as many as windows have every index of."""
        windows, tensor, batch, itemsize = self.windows, self.tensor, self.batch, self.itemsize
        axis, unit = tensor.rank - 1, 1
        while axis > 0 and self._joins(axis, unit):
            unit *= tensor.sizes[axis]
            axis -= 1
        places = tensor.offset, batch.offset, unit, *tensor.strides[:axis], *batch.strides[: axis + 1]
        element_nbytes = gcd(WIDEST_NBYTES, *(place * itemsize for place in places))
        mirrored, nbytes = windows.goes_backwards(axis), windows.sizes[axis] * unit * itemsize
        channels = unit * itemsize // element_nbytes if mirrored else 1
        return Row(axis, unit, nbytes, prod(windows.sizes[:axis]), element_nbytes, mirrored, channels)

    def _joins(self, axis: int, unit: int) -> bool:
        """Whether a dimension and all after it coalesce with the one before."""
        windows, size = self.windows, self.tensor.sizes[axis]
        whole = windows.takes_all(axis, size) and (windows.steps[axis - 1] == 1 or unit * size == 1)
        long = unit * size * self.itemsize > WIDEST_NBYTES and windows.goes_backwards(axis - 1)
        sides = (self.tensor, axis), (self.batch, axis + 1)
        contiguous = all(
            is_contiguous(side, inner, unit) and is_contiguous(side, inner - 1, unit * size)
            for side, inner in sides
        )
        return whole and contiguous and not windows.goes_backwards(axis) and not long

    @cached_property
    def unaligned(self) -> bool:
        """Whether some row that is not clipped begins or ends inside a block of the output."""
        row, windows, tensor = self.row, self.windows, self.tensor
        if not self.inserts:
            return bool(self.batch.offset * self.itemsize % WIDEST_NBYTES or row.nbytes % WIDEST_NBYTES)
        strides = tensor.strides[: row.axis]
        walk = zip(windows.sizes, strides, windows.steps, strict=False)
        places = [stride * step for size, stride, step in walk if size > 1]
        if windows.offsets is None:
            places += [*strides, row.unit, tensor.offset]
        else:
            offsets = windows.offsets[self.numbers, : row.axis + 1].astype(np.int64)
            starts = tensor.offset + offsets @ np.array([*strides, row.unit], np.int64)
            places += np.unique(starts % WIDEST_NBYTES).tolist()
        return any(
            nbytes % WIDEST_NBYTES for nbytes in (row.nbytes, *(place * self.itemsize for place in places))
        )

    @cached_property
    def stop(self) -> int:
        """The first window that ends after the last whole block of the batch's buffer."""
        context, batch, count = self.context, self.batch, self.windows.count
        room_nbytes = context.source_capacity_nbytes if self.inserts else context.target_capacity_nbytes
        missing_nbytes = batch.stop * self.itemsize - room_nbytes
        if missing_nbytes <= 0:
            return count
        if batch.strides[0] <= 0:
            return 0
        return max(count - -(-int(missing_nbytes) // (batch.strides[0] * self.itemsize)), 0)

    @cached_property
    def disjoint(self) -> list[Numbers] | None:
        """Overlapping windows in sets of disjoint ones, in order; None if that is not known."""
        if not self.contested or self.windows.offsets is None:
            return None
        return layers_of(self.windows, self.numbers)

    @property
    def sides(self) -> tuple[str, str]:
        """The names of tensor and batch in reasons."""
        return ("output", "input") if self.inserts else ("input", "output")

    @cached_property
    def against_winners(self) -> Reason | None:
        """The reason against a last-writer pass; raises ValueError if no strategy is applicable."""
        if not self.contested:
            return None
        if len(self.bands) * self.windows.count <= U32_MAX:
            return FAILED if Kernel.LAST_WRITER_WINDOWS in self.limits.disabled else None
        if self.disjoint is not None:
            return "windows cannot be counted in 32 bits"
        raise ValueError(
            f"{self.windows.count} windows that may overlap, in {len(self.bands)} bindings: take fewer at "
            "once"
        )

    @cached_property
    def against_line(self) -> str | None:
        """The reason against copies of rows, by kernels or buffer copies."""
        row, windows, tensor, batch = self.row, self.windows, self.tensor, self.batch
        step, size = windows.steps[row.axis], tensor.sizes[row.axis]
        of_tensor, of_batch = self.sides
        if step != 1 and (self.inserts or step not in ROW_STEPS or self.itemsize == WIDEST_NBYTES):
            return f"elements of a window row are {step} apart"
        if not is_contiguous(tensor, row.axis, row.unit):
            return f"elements of a window row are not contiguous in the {of_tensor}"
        if not self.inserts and not batch.is_packed:
            return f"the windows are not packed in the {of_batch}"
        if windows.sizes[row.axis] > 1 and batch.strides[row.axis + 1] != row.unit:
            return f"elements of a window row are not contiguous in the {of_batch}"
        if windows.extents[row.axis] + size > I32_MAX:
            return f"a dimension of {size} elements exceeds 32-bit signed offsets"
        return None

    @cached_property
    def against_rows(self) -> Reason | None:
        """The reason against kernels of rows."""
        row = self.row
        if self.against_line:
            return self.against_line
        if (self.one.stop - self.one.lowest) * self.itemsize > self.max_nbytes:
            return "a window exceeds a storage binding"
        if row.count * row.words_spanned > self.max_invocations:
            return "a window exceeds the workgroups of one dispatch"
        for axis, size in enumerate(self.tensor.sizes):
            if axis > row.axis and any(len(band.ranges[axis]) < size for band in self.bands):
                return "the output at one index of a row exceeds a storage binding"
        return FAILED if self.inserts and Kernel.INSERT_WORDS in self.limits.disabled else None

    @cached_property
    def copies(self) -> tuple[list[BufferCopies], Reason | None]:
        """A buffer copy of each window, in order, so that the last one stays; or none, and the reason."""
        windows, tensor, batch, itemsize = self.windows, self.tensor, self.batch, self.itemsize
        row, numbers = self.row, self.numbers
        if 0 in tensor.sizes:
            return [], OTHER
        if row.count > 1:
            return [], f"the {row.count:,} rows of a window are not contiguous"
        if row.mirrored:
            return [], "windows are reversed along rows"
        if windows.offsets is None:
            return [], "the offsets are in device memory"
        if not self.context.buffer_copies:
            return [], NO_COPY_USAGE
        if row.nbytes % WORD_NBYTES:
            return [], f"rows are {row.nbytes:,} bytes long, not a multiple of {WORD_NBYTES}"
        if self.against_line or windows.steps[row.axis] != 1:
            return [], self.against_line or "elements of a window row are strided"
        own = slice(row.axis + 1)
        offsets = windows.offsets[numbers, own].astype(np.int64)
        if (offsets < 0).any() or (offsets + windows.extents[own] > tensor.sizes[own]).any():
            return [], f"a window reaches outside the {self.sides[0]}"
        lasts = np.array(windows.extents[own]) - 1
        offsets += windows.backwards[numbers, own] * lasts  # a window begins at its end there
        strides = np.array([*tensor.strides[: row.axis], row.unit], np.int64)
        in_tensor = (tensor.offset + offsets @ strides) * itemsize
        in_batch = (batch.offset + numbers.astype(np.int64) * batch.strides[0]) * itemsize
        if ((in_tensor | in_batch) % WORD_NBYTES).any():
            return [], f"a window begins unaligned to {WORD_NBYTES} bytes"
        source, target = (in_batch, in_tensor) if self.inserts else (in_tensor, in_batch)
        reason = "windows of contiguous words on both sides"
        return [BufferCopies(Places(source), Places(target), row.nbytes, reason=reason)], None

    @cached_property
    def boxes(self) -> BoxProblem:
        """The windows as boxes; inserted ones may not have been compared, and may overlap."""
        apart, *strides = self.batch.strides
        starts = np.arange(self.windows.count) * np.int64(apart)
        packing = Packing(starts, np.tile(np.array(strides, np.int64), (len(starts), 1)), self.batch.size)
        known = self.tensor, self.batch, self.itemsize, self.context
        found = placed_boxes(self.windows, packing, *known, inserts=self.inserts)
        kept = np.isin(found.boxes.numbers, self.numbers)
        return replace(found, boxes=found.boxes.of(kept), promised=self.inserts)


def turned_forward(problem: WindowProblem) -> WindowProblem:
    """Returns the problem with reversed dimensions of both layouts as directions of the windows instead.

    Kernels of rows need layouts that are contiguous forwards. Device-resident offsets keep a reversed tensor.
    """
    windows, tensor, batch = problem.windows, problem.tensor, problem.batch
    of_tensor = [stride < 0 and windows.offsets is not None for stride in tensor.strides]
    of_batch = [stride < 0 for stride in batch.strides[1:]]
    if not any(of_tensor + of_batch):
        return problem
    offsets = windows.offsets
    if offsets is not None:  # windows then begin and end with an element, in both directions
        rest = (np.array(windows.extents, np.int64) - 1) % windows.steps * (np.array(windows.sizes) > 0)
        windows = replace(windows, extents=tuple((windows.extents - rest).tolist()))
        places = np.clip(offsets + windows.backwards * rest, I32_MIN, I32_MAX)
        from_end = np.subtract(tensor.sizes, windows.extents, dtype=np.int64) - places
        offsets = np.clip(np.where(of_tensor, from_end, places), I32_MIN, I32_MAX).astype(np.int32)
    else:
        steps = zip(of_batch, windows.extents, windows.steps, strict=True)
        of_batch = [backwards and (extent - 1) % step == 0 for backwards, extent, step in steps]
    sides = zip(of_tensor, of_batch, strict=True)
    flips = sum(1 << axis for axis, (one, other) in enumerate(sides) if one != other)
    return replace(
        problem,
        windows=replace(windows, flips=windows.flips ^ np.uint32(flips), offsets=offsets),
        tensor=tensor.select(directed(tensor.sizes, of_tensor)),
        batch=batch.select([range(batch.sizes[0]), *directed(batch.sizes[1:], of_batch)]),
    )


def directed(sizes: Sequence[int], backwards: Sequence[bool]) -> list[range]:
    """Returns all indices of each dimension, in descending order of those that are reversed."""
    return [range(size)[:: -1 if back else 1] for size, back in zip(sizes, backwards, strict=True)]


def halved(
    ranges: list[range], excess: Callable[[list[range]], Sequence[int] | None]
) -> Iterator[list[range]]:
    """Halves indices along the dimension of the largest extent while `excess` returns extents."""
    reaches = excess(ranges)
    if reaches is None:
        yield ranges
        return
    distances = [abs(reach) for reach in reaches]
    axis = distances.index(max(distances))
    middle = len(ranges[axis]) // 2
    for half in (ranges[axis][:middle], ranges[axis][middle:]):
        yield from halved([*ranges[:axis], half, *ranges[axis + 1 :]], excess)


def is_contiguous(layout: Layout, axis: int, unit: int) -> bool:
    """Whether indices of `unit` elements are contiguous along a dimension."""
    return layout.strides[axis] == unit or layout.sizes[axis] == 1

"""Windows of different sizes, the boxes on both sides of their copy, and the dispatches of these boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import WindowError
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.overlaps import UNKNOWN_OVERLAP, crossing, in_layers
from wgslice.plans.problem import Table
from wgslice.plans.profiles import CostClass
from wgslice.plans.steps import Memory, OnGrid, prefixed, read_and_written
from wgslice.plans.windows import PlacedWindows, Windows

Integers: TypeAlias = NDArray[np.int64]

FIXED_COLUMNS, DIMENSION_COLUMNS = 19, 7  # of the table, as in `wgsl/shared/sized.wgsl`


class Packing(NamedTuple):
    """Where windows lie in a buffer, in elements."""

    starts: Integers  # (B,)
    strides: Integers  # (B, rank)
    size: int  # of the buffer


@dataclass(frozen=True, eq=False)
class SizedWindows(PlacedWindows[Integers]):
    """Windows of extents of their own, (B, rank), and the places of their elements in a batch.

    Element c of window b is at `starts[b] + dot(c, strides[b])` in the batch.
    """

    packing: Packing

    @cached_property
    def sizes(self) -> Integers:
        """Elements of each window along each dimension."""
        return 1 + (self.extents - 1) // np.array(self.steps, np.int64)

    @cached_property
    def firsts(self) -> Integers:
        """Indices of the tensor at the first element of each window, from its offsets."""
        return self.backwards.astype(np.int64) * (self.extents - 1)

    @cached_property
    def moves(self) -> Integers:
        """Indices of the tensor from one element of each window to the next, along each dimension."""
        return np.where(self.firsts > 0, -1, 1) * np.array(self.steps, np.int64)

    @cached_property
    def layouts(self) -> list[Layout]:
        """The layout of each window in the batch; of calls at the same places, made once."""
        return layouts_of(self.sizes, self.packing.strides, self.packing.starts)

    def as_equal(self) -> tuple[Windows, Layout] | None:
        """Returns the windows and their batch, if windows of equal sizes are at equal distances in it."""
        starts, strides, _ = self.packing
        if not self.count or any((each != each[0]).any() for each in (self.extents, strides)):
            return None
        apart = np.diff(starts)
        if (apart != apart[:1]).any():
            return None
        return self._equal(0, slice(None)), self._batch(0, self.count, int(apart[0]) if len(apart) else 0)

    def one(self, number: int) -> tuple[Windows, Layout, NDArray[np.uint32]]:
        """Returns a window, its batch and its number; of device-resident offsets among all windows."""
        if self.offsets is None:
            equal = self._equal(number, slice(None))
            return equal, self._batch(number, self.count, 0), equal.numbers[number : number + 1]
        equal = self._equal(number, slice(number, number + 1))
        return equal, self._batch(number, 1, 0), equal.numbers

    def _equal(self, number: int, kept: slice) -> Windows:
        """Returns some windows with the extents of one."""
        offsets = None if self.offsets is None else self.offsets[kept]
        extents = tuple(self.extents[number].tolist())
        known = self.offset_nbytes, self.offset_signed, self.fill
        return Windows(extents, self.steps, self.flips[kept], offsets, *known)

    def _batch(self, number: int, count: int, apart: int) -> Layout:
        """Returns a batch of windows with the sizes of one, from its start on."""
        starts, strides, _ = self.packing
        sizes = self.sizes[number].tolist()
        return Layout.of((count, *sizes), (apart, *strides[number].tolist()), int(starts[number]))


def layouts_of(sizes: Integers, strides: Integers, starts: Integers) -> list[Layout]:
    """Returns `Layout.of` of each row, in a third of its time."""
    filled = sizes.min(axis=1, initial=1) > 0
    relevant = np.where((sizes > 1) & filled[:, None], strides, 0)
    columns = map(tuple, sizes.tolist()), map(tuple, relevant.tolist()), (starts * filled).tolist()
    return [Layout(*fields) for fields in zip(*columns, strict=True)]


@dataclass(frozen=True, eq=False)
class Boxes:
    """Boxes to copy between two buffers; elements outside of the bounds of a box read as the fill.

    Element c of a box is at `starts + dot(c, strides)`, in elements, first of the source, then of the target.
    """

    numbers: Integers  # (B,) windows that they are parts of
    sizes: Integers  # (B, rank), none of them 0
    starts: Integers  # (2, B)
    strides: Integers  # (2, B, rank)
    lows: Integers  # (B, rank) first element inside of the source
    highs: Integers  # (B, rank) one past the last
    fill: bytes | None = None

    def of(self, kept: Any) -> Boxes:
        """Some of them."""
        return replace(
            self,
            numbers=self.numbers[kept],
            sizes=self.sizes[kept],
            starts=self.starts[:, kept],
            strides=self.strides[:, kept],
            lows=self.lows[kept],
            highs=self.highs[kept],
        )

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return int(self.sizes.shape[1])

    def starts_at(self, indices: Integers) -> Integers:
        """The places on both sides of some indices of each box, (B, rank)."""
        distances: Integers = (indices * self.strides).sum(axis=2)
        return self.starts + distances

    def extents(self) -> tuple[Integers, Integers]:
        """The lowest element of each box on both sides, and one past the highest; in the source, inside.

        Of boxes without elements in the source, they are the lowest of all boxes.
        """
        read = (self.highs > self.lows).all(axis=1)
        firsts = np.stack([self.lows, 0 * self.lows]) * self.strides
        lasts = np.stack([self.highs, self.sizes]) * self.strides - self.strides
        low = self.starts + np.minimum(firsts, lasts).sum(axis=2)
        stop = self.starts + np.maximum(firsts, lasts).sum(axis=2) + 1
        lowest = low[0, read].min() if read.any() else 0
        low[0], stop[0] = np.where(read, low[0], lowest), np.where(read, stop[0], lowest)
        return low, stop

    def clipped(self) -> Boxes:
        """The parts inside of the bounds; without boxes that have none."""
        kept = self.of((self.highs > self.lows).all(axis=1))
        sizes = kept.highs - kept.lows
        starts = kept.starts_at(kept.lows)
        return replace(kept, sizes=sizes, starts=starts, lows=np.zeros_like(sizes), highs=sizes, fill=None)

    def coalesced(self) -> Boxes:
        """The same copy in the fewest dimensions: forwards in the target, by its strides, and merged."""
        backwards = self.strides[1] < 0
        starts = self.starts_at(np.where(backwards, self.sizes - 1, 0))
        strides = np.where(backwards, -1, 1) * self.strides
        lows = np.where(backwards, self.sizes - self.highs, self.lows)
        highs = np.where(backwards, self.sizes - self.lows, self.highs)
        several = (self.sizes > 1) | (lows > 0) | (highs < self.sizes)
        kept = np.flatnonzero(several.any(axis=0))
        order = kept[np.argsort(-strides[1][:, kept].max(axis=0, initial=0), kind="stable")]
        columns = np.stack([self.sizes, *strides, lows, highs])[:, :, order]
        merged: list[Integers] = []
        for outer in columns.transpose(2, 0, 1)[::-1]:
            if merged:
                size, read, written, low, high = merged[-1]
                whole = (low == 0) & (high == size)
                alone = (outer[0] == 1) | (size == 1)
                joins = whole & (alone | ((outer[1] == read * size) & (outer[2] == written * size)))
                if joins.all():
                    inner = np.where(size == 1, outer[1:3], merged[-1][1:3])
                    merged[-1] = np.stack([outer[0] * size, *inner, outer[3] * size, outer[4] * size])
                    continue
            merged.append(outer)
        sizes, read, written, lows, highs = np.stack(merged[::-1], axis=2) if merged else columns
        return Boxes(self.numbers, sizes, starts, np.stack([read, written]), lows, highs, self.fill)

    def halved(self) -> Boxes:
        """Both halves of each box, along the dimension of the greatest reach on either side."""
        reaches = (self.sizes - 1) * np.abs(self.strides).max(axis=0)
        along = np.arange(self.rank) == np.argmax(reaches, axis=1)[:, None]
        middle = np.where(along, self.sizes // 2, 0)
        begins = np.concatenate([0 * middle, middle])
        sizes = np.concatenate([np.where(along, middle, self.sizes), self.sizes - middle])
        both = self.of(np.tile(np.arange(len(middle)), 2))
        low, high = (np.clip(bound - begins, 0, sizes) for bound in (both.lows, both.highs))
        return replace(both, sizes=sizes, starts=both.starts_at(begins), lows=low, highs=high)


@dataclass(frozen=True, eq=False, kw_only=True)
class SizedDispatch(OnGrid):
    """One dispatch of a kernel of windows of different sizes."""

    boxes: Boxes  # in bytes from the starts of the bindings, their last dimension that of rows
    pieces: Pieces
    element_nbytes: int
    apart: bool  # whether elements of a row are apart, or reversed, in the source
    own_words: bool  # whether no two runs share words; else `sized_ends` writes the shared ones
    in_words: bool  # whether all places are words
    device: Offsets | None = None  # where the GPU has them

    @property
    def memories(self) -> set[Memory]:
        """The memories that it binds."""
        return super().memories | ({self.device.table.memory} if self.device else set())

    @property
    def work(self) -> CostClass:
        """Its cost class."""
        if self.kernel is Kernel.SIZED_ENDS:
            return ENDS
        return sized_class(self.element_nbytes, apart=self.apart, in_words=self.in_words)

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation writes on average."""
        return self.nbytes / self.pieces.total

    @cached_property
    def nbytes(self) -> int:
        """Bytes that it writes, at most."""
        if self.kernel is Kernel.SIZED_ENDS:
            return 2 * WORD_NBYTES * self.pieces.total
        return int(self.boxes.sizes.prod(axis=1).sum()) * self.element_nbytes

    @property
    def columns(self) -> int:
        """Words of the table per window."""
        offsets = 0 if self.device is None else 2 * len(self.device.strides_nbytes)
        return FIXED_COLUMNS + DIMENSION_COLUMNS * (self.boxes.rank - 1) + offsets

    @cached_property
    def table(self) -> NDArray[np.uint32]:
        """The table of the windows and the workgroups, as `wgsl/shared/sized.wgsl` says."""
        boxes, pieces = self.boxes, self.pieces
        outer = boxes.rank - 1
        row = boxes.sizes[:, -1] * self.element_nbytes
        low, high = (bound[:, -1] * self.element_nbytes for bound in (boxes.lows, boxes.highs))
        columns = [
            *(pieces.firsts, pieces.per_unit, *dividers(pieces.per_unit), pieces.each),
            *(pieces.units, *dividers(pieces.units), pieces.unit_rows * row, pieces.run_rows),
            *(row, *dividers(row)),
            *(*boxes.starts, boxes.strides[0, :, -1], boxes.numbers, low, high),
        ]
        inner = np.ones_like(row)
        dimensions = []
        for axis in range(outer - 1, -1, -1):
            bounds = boxes.lows[:, axis], boxes.highs[:, axis]
            dimensions.append([inner, *dividers(inner), *boxes.strides[:, :, axis], *bounds])
            inner = inner * boxes.sizes[:, axis]
        columns += [column for dimension in reversed(dimensions) for column in dimension]
        if self.device is not None:
            for highest, stride in zip(self.device.highest.T, self.device.strides_nbytes, strict=True):
                columns += [highest[boxes.numbers], np.full_like(row, stride)]
        of_windows = (np.stack(columns, axis=1) % 2**32).astype(np.uint32)
        beginning = np.arange(0, pieces.total + self.share.workgroup_size, self.share.workgroup_size)
        of_groups = np.searchsorted(pieces.firsts, beginning, side="right") - 1
        return np.concatenate([of_windows.reshape(-1), of_groups.astype(np.uint32)])

    def __str__(self) -> str:
        sides = read_and_written(self.reads, self.writes)
        rows = self.boxes.sizes[:, -1] * self.element_nbytes
        low, high = int(rows.min()), int(rows.max())
        span = f"{low:,} bytes" if low == high else f"{low:,} to {high:,} bytes"
        nbytes = int((self.boxes.sizes.prod(axis=1) * self.element_nbytes).sum())
        count = int(self.boxes.sizes[:, :-1].prod(axis=1).sum())
        noun = f"window{'s' * (len(rows) != 1)}"
        known = "" if self.device is None else ", offsets in device memory"
        windows = f"{len(rows):,} {noun} of different sizes, {prefixed(nbytes)} in {count:,} rows of {span}"
        table = f"table of {prefixed(self.table.nbytes)} uploaded with the submission"
        return f"kernel {self.name} on {windows}{sides}, {table}{known}, {self.launch}: {self.reason}"


class Offsets(NamedTuple):
    """Device-resident offsets of windows."""

    table: Table
    windows: SizedWindows
    highest: Integers  # (B, columns) greatest offsets, to which they are clamped
    strides_nbytes: tuple[int, ...]  # of the tensor
    inserts: bool  # whether they are of the target


class Pieces(NamedTuple):
    """How boxes are distributed over invocations, box by box: pieces of units of runs."""

    run_rows: Integers  # per run
    unit_rows: Integers  # per unit
    units: Integers  # per run
    per_unit: Integers  # pieces
    each: Integers  # blocks of 16 bytes per piece
    counts: Integers  # pieces of each box

    @property
    def firsts(self) -> Integers:
        """Pieces of all boxes before."""
        return np.cumsum(self.counts) - self.counts

    @property
    def total(self) -> int:
        """Pieces of all boxes."""
        return int(self.counts.sum())

    @classmethod
    def of(
        cls, boxes: Boxes, run_rank: int, row_nbytes: Integers, most: int, aligned: bool, ends: bool = False
    ) -> Pieces:
        """Distributes boxes by units of whole rows, of about `most` blocks if rows are shorter.

        For the ends of runs, a run is one piece. If each piece is one block, a run is one unit.
        """
        split = boxes.rank - run_rank
        runs, run_rows = (part.prod(axis=1) for part in (boxes.sizes[:, :split], boxes.sizes[:, split:-1]))
        nearest = (most * WIDEST_NBYTES + row_nbytes // 2) // row_nbytes
        unit_rows = run_rows if ends or most == 1 else np.clip(nearest, 1, run_rows)
        units = -(-run_rows // unit_rows)
        touched = unit_rows * row_nbytes + (WIDEST_NBYTES - 1 if aligned else 2 * WIDEST_NBYTES - 2)
        blocks = touched // WIDEST_NBYTES
        per_unit = np.ones_like(blocks) if ends else -(-blocks // most)
        return cls(run_rows, unit_rows, units, per_unit, -(-blocks // per_unit), runs * units * per_unit)


def dividers(divisors: Integers) -> tuple[Integers, Integers]:
    """Multipliers and shifts of divisors from 1 on, as `shaders.divider` has them."""
    shifts = np.frexp(divisors - 1)[1].astype(np.int64)  # bits of a number, which is less than 2^53
    multipliers = (2**32 * ((np.int64(1) << shifts) - divisors) // divisors + 1) % 2**32
    return multipliers, shifts


ENDS = CostClass(Kernel.SIZED_ENDS, WORD_NBYTES)


def sized_class(element_nbytes: int, *, apart: bool, in_words: bool) -> CostClass:
    """The cost class of windows of different sizes."""
    if apart:
        return CostClass(Kernel.SIZED_WINDOWS, element_nbytes, ("strided",))
    return CostClass(Kernel.SIZED_WINDOWS, WIDEST_NBYTES, () if in_words else ("unaligned",))


class Inside(NamedTuple):
    """The parts of windows inside of a tensor; without windows that have none."""

    numbers: Integers  # (B,)
    begins: Integers  # (B, rank) first index of the tensor
    stops: Integers  # (B, rank) one past the last
    remainders: Integers  # (B, rank) of offsets by the steps: windows of different ones are disjoint

    @classmethod
    def of(cls, windows: SizedWindows, tensor_sizes: tuple[int, ...]) -> Inside:
        """Returns the parts of windows whose offsets are known."""
        assert windows.offsets is not None
        steps, places = np.array(windows.steps, np.int64), windows.offsets.astype(np.int64)
        begins = np.where(places < 0, places % steps, places)
        stops = np.minimum(places + windows.extents, tensor_sizes)
        kept = ((windows.extents > 0) & (begins < stops)).all(axis=1)
        return cls(np.flatnonzero(kept), begins[kept], stops[kept], (places % steps)[kept])

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        """Batches of pairs that overlap, as positions among these."""
        lows, highs = (self.begins, self.remainders), (self.stops, self.remainders + 1)
        return crossing(np.hstack(lows), np.hstack(highs))

    def in_words(self, tensor: Layout, itemsize: int) -> Inside | None:
        """Returns parts without steps in words along the rows of a tensor, or None where rows share words.

        A row is the last dimensions, from the last one on that is not in every window as a whole. Its
        elements follow one another without gaps, and it begins at a word.
        """
        whole = ((self.begins == 0) & (self.stops == tensor.sizes)).all(axis=0)
        axis = int(np.flatnonzero(~whole).max(initial=0))
        places = tensor.offset, *tensor.strides[:axis]
        in_order = tensor.strides[axis:] == Layout.packed(tensor.sizes[axis:]).strides
        if not in_order or any(place * itemsize % WORD_NBYTES for place in places):
            return None
        nbytes = prod(tensor.sizes[axis + 1 :]) * itemsize
        begins, stops = self.begins.copy(), self.stops.copy()
        begins[:, axis] = begins[:, axis] * nbytes // WORD_NBYTES
        stops[:, axis] = -(-stops[:, axis] * nbytes // WORD_NBYTES)
        return self._replace(begins=begins, stops=stops)


def refuse_overlaps(windows: SizedWindows, tensor_sizes: tuple[int, ...]) -> None:
    """Refuses windows that overlap inside the tensor, and offsets that only the GPU knows."""
    if windows.offsets is None:
        if (windows.extents > 0).all(axis=1).sum() > 1:
            raise WindowError(UNKNOWN_OVERLAP)
        return
    inside = Inside.of(windows, tensor_sizes)
    pair = next(inside.pairs(), None)
    if pair is not None:
        first, second = sorted(int(inside.numbers[indices[0]]) for indices in pair)
        places, extents = windows.offsets, windows.extents
        raise WindowError(
            f"windows {first} and {second} overlap, at offsets {tuple(places[first].tolist())} and "
            f"{tuple(places[second].tolist())}, of extents {tuple(extents[first].tolist())} and "
            f"{tuple(extents[second].tolist())}: move one of them, or let the later window win by "
            'overlap="last"'
        )


def sets_of(
    windows: SizedWindows, tensor: Layout, itemsize: int, overlap: str, most: int
) -> tuple[Sequence[Integers], bool]:
    """Returns the numbers of windows to insert, in sets of disjoint ones, and whether rows own their words.

    A later set overwrites earlier ones. Where rows share words, a set takes two dispatches or more: sets in
    which they do not are worth it up to `most` times as many. A promise of `disjoint` compares nothing.
    """
    numbers = np.flatnonzero((windows.extents > 0).all(axis=1))
    if overlap == "disjoint":
        return [numbers], False
    if windows.offsets is None:
        return list(numbers[:, None]), False
    inside = Inside.of(windows, tensor.sizes)
    found: Sequence[Integers] | None = [inside.numbers]
    if overlap == "last":
        found = in_layers(inside.pairs(), inside.numbers)
    if found is None:
        found = list(inside.numbers[:, None])
    if itemsize < WORD_NBYTES and max(windows.steps) == 1:
        in_words = inside.in_words(tensor, itemsize)
        by_words = None if in_words is None else in_layers(in_words.pairs(), inside.numbers)
        if by_words is not None and len(by_words) <= most * len(found):
            return by_words, True
    return found, False

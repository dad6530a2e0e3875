"""Boxes to copy between two buffers, and the dispatches of these boxes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.problem import Table
from wgslice.plans.profiles import CostClass
from wgslice.plans.steps import Memory, OnGrid, prefixed, read_and_written
from wgslice.plans.windows import Integers, SizedWindows

FIXED_COLUMNS, DIMENSION_COLUMNS = 19, 7  # of the table, as in `wgsl/shared/sized.wgsl`


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
        """Some of them, by a mask or by places."""
        if kept.dtype == np.bool_ and kept.all():
            return self
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
        groups = np.arange(prod(self.share.workgroups) + 1)  # of all rows of the grid, surplus ones too
        beginning = groups * self.share.workgroup_size
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
        if (self.boxes.sizes != self.boxes.sizes[0]).any():
            noun += " of different sizes"
        windows = f"{len(rows):,} {noun}, {prefixed(nbytes)} in {count:,} rows of {span}"
        table = f"table of {prefixed(self.table.nbytes)} uploaded with the submission"
        return f"kernel {self.name} on {windows}{sides}, {table}{known}, {self.launch}: {self.reason}"


class Offsets(NamedTuple):
    """Device-resident offsets of windows."""

    table: Table
    windows: SizedWindows
    tensor: Layout
    itemsize: int
    inserts: bool  # whether they are of the target

    @property
    def highest(self) -> Integers:
        """The greatest offsets, to which they are clamped: (B, columns)."""
        highest: Integers = np.array(self.tensor.sizes, np.int64) - self.windows.extents
        return highest

    @property
    def strides_nbytes(self) -> tuple[int, ...]:
        """The strides of the tensor."""
        return tuple(stride * self.itemsize for stride in self.tensor.strides)


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

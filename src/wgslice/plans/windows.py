"""Windows and boxes to copy, and the dispatches that copy them, without the buffers.

Each window has its own offsets in a *tensor*; a *batch* of the sizes (B, *sizes) holds all of them. They are
extracted from the tensor into the batch, or inserted from the batch into the tensor. Boxes are windows that
each have their own size, between any two buffers.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.kernels import UNITS_NBYTES, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.problem import Table
from wgslice.plans.profiles import CostClass, windows_class
from wgslice.plans.steps import Memory, OnGrid, Span, prefixed, read_and_written

Numbers: TypeAlias = NDArray[np.uint32]  # of windows, in order
Integers: TypeAlias = NDArray[np.int64]

FIXED_COLUMNS, DIMENSION_COLUMNS = 19, 7  # of the table of boxes, as in `wgsl/shared/sized.wgsl`

Extents = TypeVar("Extents")

DROPPED = bytes(WIDEST_NBYTES)  # fill of inserted windows whose elements outside are dropped; never read


@dataclass(frozen=True, eq=False)
class PlacedWindows(Generic[Extents]):
    """Windows of one tensor: boxes, each with its own offsets and directions.

    Without a fill, windows are inside the tensor: kernels clamp device-resident offsets. With one, elements
    outside read as the fill, or are not written (`DROPPED`). A window takes every `steps`-th index of its
    box: forwards from the first one, or backwards from the last one if its bit is set.
    """

    extents: Extents  # of a box, in the tensor's indices
    steps: tuple[int, ...]  # magnitudes
    flips: NDArray[np.uint32]  # (B,): bit d is set where dimension d goes backwards
    offsets: NDArray[np.int32] | None  # (B, rank), or None where the GPU has them
    offset_nbytes: int  # bytes an offset, as the kernels read it
    offset_signed: bool
    fill: bytes | None  # 16 bytes of elements outside of the tensor; None if there are none

    @property
    def count(self) -> int:
        """The number of windows."""
        return len(self.flips)

    @cached_property
    def numbers(self) -> Numbers:
        """The numbers of all windows; plans hold parts of this array."""
        return np.arange(self.count, dtype=np.uint32)

    @property
    def backwards(self) -> NDArray[np.uint32]:
        """1 for each dimension in which a window goes backwards, else 0: (B, rank)."""
        return self.flips[:, None] >> np.arange(len(self.steps), dtype=np.uint32) & np.uint32(1)


@dataclass(frozen=True, eq=False)
class Windows(PlacedWindows[tuple[int, ...]]):
    """Windows of equal extents."""

    indices: bool = False  # whether negative offsets count from the end, as indices do; positions never do

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Elements of a window along each dimension."""
        return tuple(1 + (extent - 1) // step for extent, step in zip(self.extents, self.steps, strict=True))

    @cached_property
    def same_flips(self) -> int | None:
        """The directions of all windows if they are the same."""
        return int(self.flips[0]) if (self.flips == self.flips[0]).all() else None

    def goes_backwards(self, axis: int) -> bool:
        """Whether some window is reversed along a dimension of several elements."""
        return self.sizes[axis] > 1 and bool((self.flips >> np.uint32(axis) & np.uint32(1)).any())

    def takes_all(self, axis: int, tensor_size: int) -> bool:
        """Whether every window has all indices of a dimension."""
        if self.steps[axis] != 1 or self.extents[axis] != tensor_size:
            return False
        return self.fill is None or (self.offsets is not None and not self.offsets[:, axis].any())


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

    @property
    def filled(self) -> Numbers:
        """The numbers of the windows that have elements."""
        return self.numbers[(self.extents > 0).all(axis=1)]

    @cached_property
    def layouts(self) -> list[Layout]:
        """The layout of each window in the batch; of calls at the same places, made once."""
        return layouts_of(self.sizes, self.packing.strides, self.packing.starts)

    def as_equal(self) -> tuple[Windows, Layout] | None:
        """Returns the windows and their batch, if windows of equal sizes are at equal distances in it."""
        starts, strides, _ = self.packing
        apart = np.diff(starts)
        if not self.count or any((each != each[0]).any() for each in (self.extents, strides)):
            return None
        if (apart != apart[:1]).any():
            return None
        return self._like(0, slice(None), int(apart[0]) if len(apart) else 0)

    def one(self, number: int) -> tuple[Windows, Layout, Numbers]:
        """Returns a window, its batch and its number; of device-resident offsets among all windows."""
        on_gpu = self.offsets is None
        windows, batch = self._like(number, slice(None) if on_gpu else slice(number, number + 1), 0)
        return windows, batch, windows.numbers[number if on_gpu else 0 :][:1]

    def _like(self, number: int, kept: slice, apart: int) -> tuple[Windows, Layout]:
        """Returns some windows with the extents of one, and their batch, from its start on."""
        starts, strides, _ = self.packing
        offsets = None if self.offsets is None else self.offsets[kept]
        known = self.offset_nbytes, self.offset_signed, self.fill
        windows = Windows(tuple(self.extents[number].tolist()), self.steps, self.flips[kept], offsets, *known)
        sizes = windows.count, *windows.sizes
        return windows, Layout.of(sizes, (apart, *strides[number].tolist()), int(starts[number]))


def layouts_of(sizes: Integers, strides: Integers, starts: Integers) -> list[Layout]:
    """Returns `Layout.of` of each row, in a third of its time."""
    filled = sizes.min(axis=1, initial=1) > 0
    relevant = np.where((sizes > 1) & filled[:, None], strides, 0)
    columns = map(tuple, sizes.tolist()), map(tuple, relevant.tolist()), (starts * filled).tolist()
    return [Layout(*fields) for fields in zip(*columns, strict=True)]


@dataclass(frozen=True)
class Dimension:
    """One dimension of windows; its fields are those of the kernels' struct `Windows`."""

    size: int = 1  # indices of a window
    step: int = 1  # of the tensor's indices
    last: int = 0  # extent of a window in the tensor's indices, less one
    lowest: int = 0  # least offset
    highest: int = 0  # greatest offset
    extent: int = 1  # indices of the tensor that are in use
    inner: int = 1  # indices of all later dimensions together
    tensor_stride: int = 0  # elements or bytes, as the dispatch says
    batch_stride: int = 0  # elements or bytes; not of rows that are extracted
    first: int = 0  # indices of a window before those, where it is copied in parts
    begin: int = 0  # indices of the tensor before those that are in use
    winner_stride: int = 0  # winners, where windows may overlap
    wrap: int = 0  # added to negative offsets


class Winners(NamedTuple):
    """Winner indices: for each index of a tensor, the last window that writes it."""

    span: Span
    offset: int  # winners before that of the tensor's first index
    base: int  # added to the number of a window in its winner index
    block_winners: int  # winners on indices, which those on blocks follow

    @property
    def in_parts(self) -> bool:
        """Whether there are winners per vector and row end: windows may overlap in parts of rows."""
        return self.span.nbytes > self.block_winners * WORD_NBYTES


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowDispatch(OnGrid):
    """One dispatch of a kernel that copies windows; kernels of rows count in bytes, others in elements."""

    windows: Windows
    picks: Numbers | None  # of the windows, where directions differ or some are left out
    first: int  # number of the first window otherwise
    table: Table | None  # the offsets, where the GPU has them
    dimensions: tuple[Dimension, ...]
    element_nbytes: int  # bytes of what keeps its order when a window goes backwards
    tensor_offset: int  # elements or bytes, as the kernel counts, from the start of the binding
    batch_offset: int  # in the same unit
    window_stride: int  # in the same unit, from one window to the next
    window_size: int  # elements or rows of a window
    winners: Winners | None  # that decide between windows, where these may overlap
    segment: int = 0  # places of the source that are bound: of rows, that they begin at; 0 if all are
    row_nbytes: int = 0  # of kernels that take rows
    channels: int = 1  # elements an index of a row that keep their order in reversed rows
    mirrored: bool = False  # whether some row goes backwards
    unaligned: bool = False  # whether some row begins or ends inside a block
    clipped: bool = False  # whether some row is not written, or not all of it
    ends: bool = False  # whether whole blocks of rows are written already

    @property
    def shape(self) -> tuple[int, ...]:
        """Indices of a window, or of the part of it that is copied."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def memories(self) -> set[Memory]:
        """The memories that it binds."""
        tables = {self.table.memory} if self.table else set()
        return super().memories | tables | ({Memory.WINNERS} if self.winners else set())

    @property
    def work(self) -> CostClass:
        """Its cost class."""
        traits = {"unaligned": self.unaligned, "ends": self.ends, "mirrored": self.mirrored}
        return windows_class(self.kernel, self.element_nbytes, **traits)

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation writes at most, times the blocks that one is made of.

        A row that may be reversed takes a block for each channel; one of step 2 or 4, as many.
        """
        unit_nbytes = UNITS_NBYTES.get(self.kernel, self.element_nbytes)
        blocks = self.channels * self.dimensions[-1].step if unit_nbytes == WIDEST_NBYTES else 1
        return self.share.each * blocks * unit_nbytes

    def __str__(self) -> str:
        offsets, sides = self.windows.offsets, read_and_written(self.reads, self.writes)
        known = "in device memory"
        if self.table is not None:
            known += f" ({prefixed(self.table.layout.size * self.table.itemsize)})"
        if offsets is not None:
            known = f"uploaded with the submission ({prefixed(offsets.nbytes)})"
        rows = f", rows of {self.row_nbytes:,} bytes" * bool(self.row_nbytes)
        noun = f"window{'s' * (self.share.count != 1)}"
        windows = f"{self.share.count:,} {noun} of {self.shape}{rows}{sides}, offsets {known}"
        return f"kernel {self.name} on {windows}, {self.launch}: {self.reason}"


# boxes


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
        sides, bounds = (self.starts[:, kept], self.strides[:, kept]), (self.lows[kept], self.highs[kept])
        return Boxes(self.numbers[kept], self.sizes[kept], *sides, *bounds, self.fill)

    @property
    def rank(self) -> int:
        """The number of dimensions."""
        return int(self.sizes.shape[1])

    @cached_property
    def count(self) -> int:
        """The number of elements of all of them."""
        return int(self.sizes.prod(axis=1).sum())

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

    def in_rows(self) -> Boxes:
        """The same copy in the fewest dimensions, of which the last one is contiguous in the target.

        Dimensions are in the order of the target's strides, go forwards there, and merge where they can.
        """
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
            size, read, written, low, high = merged[-1] if merged else (1, 1, 1, 0, 1)
            single = (outer[3] == 0) & (outer[4] <= 1)  # whose stride may be any: one that merges
            outer[1] = np.where(single, read * size, outer[1])
            if merged:
                whole = (low == 0) & (high == size)
                alone = (outer[0] == 1) | (size == 1)
                joins = whole & (alone | ((outer[1] == read * size) & (outer[2] == written * size)))
                if joins.all():
                    inner = np.where(size == 1, outer[1:3], merged[-1][1:3])
                    merged[-1] = np.stack([outer[0] * size, *inner, outer[3] * size, outer[4] * size])
                    continue
            merged.append(outer)
        if not merged or not is_contiguous(merged[0][0], merged[0][2]):
            merged.insert(0, np.tile([[1], [1], [1], [0], [1]], len(starts[0])))
        sizes, read, written, lows, highs = np.stack(merged[::-1], axis=2)
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
        """Bytes that an invocation writes on average, at most."""
        if self.kernel is Kernel.SIZED_ENDS:
            return 2 * WORD_NBYTES
        return self.boxes.count * self.element_nbytes / self.pieces.total

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
        nbytes = self.boxes.count * self.element_nbytes
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
    windows: PlacedWindows[Any]
    highest: Integers  # (B, columns), the greatest offsets, to which they are clamped
    strides_nbytes: tuple[int, ...]  # of the tensor
    tensor: Layout
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


def is_contiguous(sizes: Integers, strides: Integers) -> bool:
    """Whether elements along a dimension of boxes are contiguous on one side."""
    return bool(((strides == 1) | (sizes == 1)).all())


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

"""Windows to copy, and the dispatches that copy them, without the buffers.

Each window has its own offsets in a *tensor*; a *batch* of the sizes (B, *sizes) holds all of them. They are
extracted from the tensor into the batch, or inserted from the batch into the tensor.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Generic, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, I32_MIN
from wgslice.layout import Layout
from wgslice.plans.kernels import UNITS_NBYTES, WIDEST_NBYTES, WORD_NBYTES
from wgslice.plans.problem import Table
from wgslice.plans.profiles import CostClass, windows_class
from wgslice.plans.steps import Memory, OnGrid, Span, prefixed, read_and_written

Numbers: TypeAlias = NDArray[np.uint32]  # of windows, in order
Integers: TypeAlias = NDArray[np.int64]

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

    def of_own_sizes(self, batch: Layout) -> SizedWindows:
        """The same windows, each with extents of its own, at their places in a batch."""
        shape = self.count, len(self.extents)
        extents, strides = (
            np.broadcast_to(np.array(each, np.int64), shape) for each in (self.extents, batch.strides[1:])
        )
        packing = Packing(np.arange(self.count) * np.int64(batch.strides[0]), strides, batch.size)
        known = self.offsets, self.offset_nbytes, self.offset_signed, self.fill
        return SizedWindows(extents, self.steps, self.flips, *known, packing)

    def trimmed(self) -> Windows:
        """Returns windows of the same elements that begin and end with one, in both directions."""
        assert self.offsets is not None
        steps = np.array(self.steps, np.int64)
        rest = (np.array(self.extents, np.int64) - 1) % steps * (np.array(self.sizes) > 0)
        if not rest.any():
            return self
        offsets = np.clip(self.offsets + self.backwards * rest, I32_MIN, I32_MAX).astype(np.int32)
        return replace(self, extents=tuple((self.extents - rest).tolist()), offsets=offsets)

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

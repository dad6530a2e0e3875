"""Rows of windows, and the bands of a tensor that windows are inserted into at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import gcd, prod
from operator import mul
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX
from wgslice.layout import Layout
from wgslice.plans.costs import CostClass, windows_class
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.launch import deal_row
from wgslice.plans.profiles import BLOCKS_EACH, Profile
from wgslice.plans.steps import Span
from wgslice.plans.windows import Claims, Dimension, Request, Windows

__all__ = ["Band", "Numbers", "Row", "bands", "deal_blocks", "held", "leaving_windows", "longest_row"]


Numbers: TypeAlias = NDArray[np.uint32]  # of windows, in order


@dataclass(frozen=True, eq=False)
class Band:
    """A part of a tensor that a binding holds, and its claims, with the windows that reach it."""

    ranges: tuple[range, ...]  # of the tensor's indices
    numbers: Numbers
    contested: bool  # whether windows may overlap
    differ: tuple[bool, ...]  # dimensions in which claims differ from index to index
    base: int  # of claims

    def before(self, stop: int) -> Band:
        """The same with fewer windows: those whose numbers are smaller."""
        return replace(self, numbers=self.numbers[self.numbers < stop])

    def behind(self, stop: int) -> Band:
        """The other windows."""
        return replace(self, numbers=self.numbers[self.numbers >= stop])

    @property
    def claim_sizes(self) -> tuple[int, ...]:
        """Indices of the claims, 1 along dimensions in which they are the same."""
        return tuple(
            len(taken) if differ else 1 for taken, differ in zip(self.ranges, self.differ, strict=True)
        )

    @property
    def claims_nbytes(self) -> int:
        """Bytes of the claims."""
        return prod(self.claim_sizes) * WORD_NBYTES

    @property
    def claim_strides(self) -> list[int]:
        """Claims from one index to the next, 0 along dimensions in which they are the same."""
        packed = [*accumulate(self.claim_sizes[:0:-1], mul, initial=1)][::-1]
        return [stride if differ else 0 for stride, differ in zip(packed, self.differ, strict=True)]

    @property
    def claims(self) -> Claims | None:
        """Where they lie, if windows may overlap."""
        firsts = (taken.start for taken in self.ranges)
        ahead = sum(start * stride for start, stride in zip(firsts, self.claim_strides, strict=True))
        return Claims(Span(0, self.claims_nbytes), -ahead, self.base) if self.contested else None


def bands(request: Request, numbers: Numbers, *, contested: bool) -> Iterator[Band]:
    """Cut what windows reach of a tensor until bindings hold each part and its claims."""
    windows, sizes = request.windows, request.tensor.sizes
    differ = tuple(contested and not windows.takes_all(axis, size) for axis, size in enumerate(sizes))
    if not numbers.size:
        return
    base = 1  # above the zeros that claims begin as
    for ranges in fitting(request, reached(request, numbers), differ):
        touching = numbers[touching_windows(request, numbers, ranges)]
        if touching.size:
            yield Band(tuple(ranges), touching, contested, differ, base)
            base += windows.count


def reached(request: Request, numbers: Numbers) -> list[range]:
    """The indices of a tensor that hold all that windows have of it."""
    offsets = request.windows.offsets
    if offsets is None:
        return [range(size) for size in request.tensor.sizes]
    lows = offsets[numbers].min(axis=0).tolist()
    highs = offsets[numbers].max(axis=0).tolist()
    extents = request.windows.extents
    return [
        range(max(low, 0), min(high + extent, size))
        for low, high, extent, size in zip(lows, highs, extents, request.tensor.sizes, strict=True)
    ]


def fitting(request: Request, ranges: list[range], differ: Sequence[bool]) -> Iterator[list[range]]:
    """Halve what is in use of a tensor until bindings hold it and its claims."""
    part = request.tensor.select(ranges)
    claims = [len(taken) if differs else 1 for taken, differs in zip(ranges, differ, strict=True)]
    if (part.stop - part.lowest) * request.itemsize > request.most_nbytes:
        reaches = [abs(reach) for reach in part.reaches]
    elif prod(claims) * WORD_NBYTES > request.most_nbytes:
        reaches = claims
    else:
        yield ranges
        return
    axis = reaches.index(max(reaches))
    middle = len(ranges[axis]) // 2
    for half in (ranges[axis][:middle], ranges[axis][middle:]):
        yield from fitting(request, [*ranges[:axis], half, *ranges[axis + 1 :]], differ)


def touching_windows(request: Request, numbers: Numbers, ranges: Sequence[range]) -> NDArray[np.bool_]:
    """Which windows may have an element among some indices of a tensor."""
    touching = np.ones(len(numbers), np.bool_)
    if request.windows.offsets is not None:
        places = request.windows.offsets[numbers].astype(np.int64)
        for axis, taken in enumerate(ranges):
            ends = places[:, axis] + request.windows.extents[axis]
            touching &= (places[:, axis] < taken.stop) & (ends > taken.start)
    return touching


def leaving_windows(request: Request, numbers: Numbers, ranges: Sequence[range]) -> NDArray[np.bool_]:
    """Which windows may leave some indices of a tensor."""
    if request.windows.offsets is None:
        return np.ones(len(numbers), np.bool_)
    leaving = np.zeros(len(numbers), np.bool_)
    places = request.windows.offsets[numbers].astype(np.int64)
    for axis, taken in enumerate(ranges):
        ends = places[:, axis] + request.windows.extents[axis]
        leaving |= (places[:, axis] < taken.start) | (ends > taken.stop)
    return leaving


def held(request: Request, part: list[range], numbers: Numbers, invocations: int) -> Iterator[Numbers]:
    """Windows as many at a time as a binding of the batch holds of a part of each, and a grid.

    `invocations` is how many a window takes.
    """
    one = request.batch.select([0, *part])
    room_nbytes = request.most_nbytes - (one.stop - one.lowest) * request.itemsize
    further = room_nbytes // max(abs(request.batch.strides[0]) * request.itemsize, 1)
    most = max(request.most_invocations // invocations, 1)
    start = 0
    while start < len(numbers):
        stop = int(np.searchsorted(numbers, int(numbers[start]) + further, side="right"))
        stop = min(stop, start + most)
        yield numbers[start:stop]
        start = stop


MOST_CHANNELS = 15  # masks of the uniform block, less the one that is never needed


@dataclass(frozen=True, eq=False)
class Row:
    """A dimension of windows, each index of it `unit` neighbours in the tensor."""

    request: Request
    axis: int
    unit: int  # elements an index
    element_nbytes: int  # bytes of what keeps its order backwards
    mirrored: bool

    @property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.request.windows.sizes[self.axis] * self.unit * self.request.itemsize

    @property
    def count(self) -> int:
        """Rows of a window."""
        return prod(self.request.windows.sizes[: self.axis])

    @property
    def channels(self) -> int:
        """Elements an index that keep their order in mirrored rows, a block for each; 1 of other rows."""
        return self.unit * self.request.itemsize // self.element_nbytes if self.mirrored else 1

    def work(self, kernel: Kernel, *, ragged: bool = False) -> CostClass:
        """The class of work of its blocks."""
        edged = ragged and kernel is Kernel.WINDOW_ROWS  # others leave the ends of rows to another dispatch
        return windows_class(kernel, self.element_nbytes, ragged=edged, mirrored=self.mirrored)

    def hindrance(self) -> str | None:
        """Why windows are not taken row by row; None where they are."""
        request, windows = self.request, self.request.windows
        step, size = windows.steps[self.axis], request.tensor.sizes[self.axis]
        if step != 1:
            return f"steps of {step} inside of rows"
        if not beside(windows, request.tensor, self.axis, self.unit):
            return f"elements of a window's row do not follow each other in the {request.tensor_name}"
        if not request.inserts and not request.batch.is_packed:
            return f"the {request.batch_name} is not packed"
        if windows.sizes[self.axis] > 1 and request.batch.strides[self.axis + 1] != self.unit:
            return f"elements of a window's row do not follow each other in the {request.batch_name}"
        if windows.extents[self.axis] + size > I32_MAX:
            return f"a dimension of {size} is too long to count from outside of it"
        return None

    def hindrance_of_blocks(self, profile: Profile, *, ragged: bool) -> str | None:
        """Why rows are not taken in blocks of 16 bytes; `ragged` says whether some end inside of one."""
        if self.nbytes < WIDEST_NBYTES:
            return f"rows of {self.nbytes} bytes, at least {WIDEST_NBYTES} are needed"
        if ragged and profile.contiguous and self.nbytes < (least := 2 * WIDEST_NBYTES - 1):
            return f"rows of {self.nbytes} bytes, some from inside a vector of 16, which takes {least}"
        if self.channels > MOST_CHANNELS:
            return (
                f"{self.channels} elements that keep their order in a mirrored row, at most {MOST_CHANNELS}"
            )
        return None

    def fields(
        self, picks: NDArray[np.uint32], tensor: Span, batch: Span, band: Band | None = None
    ) -> dict[str, Any]:
        """What a dispatch of some windows says of their rows, between two bindings.

        The band says which indices of the tensor are in use, where these are not all.
        """
        request, windows, itemsize = self.request, self.request.windows, self.request.itemsize
        unit_nbytes = self.unit * itemsize
        inner = windows.sizes[: self.axis]
        strides = [*(stride * itemsize for stride in request.tensor.strides[: self.axis]), unit_nbytes]
        indices = band.ranges if band else [range(size) for size in request.tensor.sizes]
        claim_strides = band.claim_strides if band else [0] * len(indices)
        dimensions = tuple(
            Dimension.of(
                windows,
                axis,
                request.tensor.sizes[axis],
                inner=prod(inner[axis + 1 :]),
                tensor_stride=strides[axis],
                batch_stride=request.batch.strides[axis + 1] * itemsize if axis < self.axis else unit_nbytes,
                begin=indices[axis].start,
                extent=len(indices[axis]),
                claim_stride=claim_strides[axis],
            )
            for axis in range(self.axis + 1)
        )
        ordered = len(picks) == picks[-1] - picks[0] + 1
        return {
            "windows": windows,
            "picks": picks if windows.same_flips is None or not ordered else None,
            "first": int(picks[0]),
            "table": request.terms.table,
            "dimensions": dimensions,
            "element_nbytes": self.element_nbytes,
            "channels": self.channels,
            "tensor_offset": request.tensor.offset * itemsize - tensor.offset_nbytes,
            "batch_offset": request.batch.offset * itemsize - batch.offset_nbytes,
            "window_stride": request.batch.strides[0] * itemsize,
            "window_size": prod(inner),
            "claims": band.claims if band else None,
            "row_nbytes": self.nbytes,
            "mirrored": self.mirrored,
        }


def longest_row(request: Request) -> Row:
    """The most dimensions of the windows, from the last one on, of which the tensor has every index."""
    windows, tensor, batch, itemsize = request.windows, request.tensor, request.batch, request.itemsize
    axis, unit = tensor.rank - 1, 1
    while axis > 0 and joins(windows, tensor, axis, unit, itemsize) and in_line(batch, axis, unit):
        unit *= tensor.sizes[axis]
        axis -= 1
    strides = *tensor.strides[:axis], *batch.strides[: axis + 1]
    places = tensor.offset, batch.offset, unit, *strides
    element_nbytes = gcd(WIDEST_NBYTES, *(place * itemsize for place in places))
    return Row(request, axis, unit, element_nbytes, windows.goes_backwards(axis))


def in_line(batch: Layout, axis: int, unit: int) -> bool:
    """Whether all indices of a dimension of windows lie in a batch one after another, and so on and on."""
    size = batch.sizes[axis + 1]
    beside = size == 1 or batch.strides[axis + 1] == unit
    return beside and (batch.sizes[axis] == 1 or batch.strides[axis] == unit * size)


def deal_blocks(row: Row, kernel: Kernel, profile: Profile, *, ragged: bool) -> tuple[int, int]:
    """Invocations a row of a kernel, and the blocks that each takes; ragged rows begin or end inside of some.

    As many as take the least time; no more than every row has, where an invocation takes neighbours.
    """
    if not profile.contiguous:
        return deal_row(kernel, row.nbytes, 1, profile)
    work = profile.costs.works[row.work(kernel, ragged=ragged)]
    block_s = row.channels * WIDEST_NBYTES / work.bytes_per_s
    most = row.nbytes // WIDEST_NBYTES
    least = most  # whole blocks of a row, wherever it begins
    if ragged:
        least = (row.nbytes - WIDEST_NBYTES + 1) // WIDEST_NBYTES
    choices = [each for each in BLOCKS_EACH if each <= min(least, profile.window_blocks)]
    each = min(choices, key=lambda each: -(-most // each) * (work.invocation_s + each * block_s))
    return -(-most // each), each


def beside(windows: Windows, tensor: Layout, axis: int, unit: int) -> bool:
    """Whether a window's indices along a dimension are neighbours, each of `unit` elements."""
    return windows.steps[axis] == 1 and (tensor.strides[axis] == unit or tensor.sizes[axis] == 1)


def joins(windows: Windows, tensor: Layout, axis: int, unit: int, itemsize: int) -> bool:
    """Whether a dimension with all after it makes an index of that before: every window takes all of it."""
    size = tensor.sizes[axis]
    whole = windows.extents[axis] == size and windows.starts_at_zero(axis, size)
    forwards = not windows.goes_backwards(axis)
    before_nbytes = unit * size * itemsize
    long = before_nbytes > WIDEST_NBYTES and windows.goes_backwards(axis - 1)
    return (
        whole
        and forwards
        and beside(windows, tensor, axis, unit)
        and beside(windows, tensor, axis - 1, unit * size)
        and not long
    )

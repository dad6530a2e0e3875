"""What of a tensor windows are inserted into at a time, and which of them: as much as bindings hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from math import prod
from operator import mul
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.steps import Span
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Claims

__all__ = ["Band", "Numbers", "bands", "held", "leaving_windows"]

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

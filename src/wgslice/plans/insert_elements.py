"""Windows inserted element by element: dispatches that take any of them, in parts where limits demand it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.plans.dealing import Share
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import untrusted
from wgslice.plans.steps import Memory, Span
from wgslice.plans.terms import span_of
from wgslice.plans.windows_elements import parts
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import ElementDimension, InsertDispatch

__all__ = ["Elements", "plan_insert_elements"]

WORD_NBYTES = 4
Numbers = NDArray[np.uint32]


@dataclass(frozen=True, eq=False)
class Elements:
    """The dispatches of windows that are inserted element by element."""

    steps: tuple[InsertDispatch, ...]
    claims_nbytes: int  # 0 where windows are known to be disjoint


@dataclass(frozen=True, eq=False)
class Band:
    """A part of a tensor that a binding holds, and its claims, with the windows that reach it."""

    ranges: tuple[range, ...]  # of the tensor's indices
    numbers: Numbers
    contested: bool  # whether windows may overlap
    differ: tuple[bool, ...]  # dimensions in which claims differ from index to index
    base: int  # of claims

    @property
    def claim_sizes(self) -> tuple[int, ...]:
        """Indices of the claims, 1 along dimensions in which they are the same."""
        return tuple(
            len(taken) if differ else 1 for taken, differ in zip(self.ranges, self.differ, strict=True)
        )

    @property
    def claim_strides(self) -> list[int]:
        """Claims from one index to the next, 0 along dimensions in which they are the same."""
        packed = [*accumulate(self.claim_sizes[:0:-1], mul, initial=1)][::-1]
        return [stride if differ else 0 for stride, differ in zip(packed, self.differ, strict=True)]

    @property
    def claim_offset(self) -> int:
        """Claims before that of the tensor's index 0."""
        firsts = (taken.start for taken in self.ranges)
        return -sum(start * stride for start, stride in zip(firsts, self.claim_strides, strict=True))


def plan_insert_elements(request: Request, numbers: Numbers, *, contested: bool, reason: str) -> Elements:
    """Dispatches of `insert_windows` for some windows; where they may overlap, of `claim_windows` before."""
    if not numbers.size:
        return Elements((), 0)
    kernels = {Kernel.INSERT_WINDOWS, *([Kernel.CLAIM_WINDOWS] if contested else [])}
    if kernels & request.limits.distrusted:
        raise RuntimeError(untrusted(f"windows of sizes {request.windows.sizes}", request.limits))
    found = list(bands(request, numbers, contested=contested))
    if len(found) * request.windows.count > U32_MAX:
        raise ValueError(
            f"{request.windows.count} windows that may overlap, in {len(found)} bindings: take fewer at once"
        )
    steps: list[InsertDispatch] = []
    for band in found:
        if contested:
            steps += claims_of(request, band)
        steps += inserts_of(request, band, reason)
    nbytes = max(prod(band.claim_sizes) * WORD_NBYTES for band in found) if contested else 0
    return Elements(tuple(steps), nbytes)


def bands(request: Request, numbers: Numbers, *, contested: bool) -> Iterator[Band]:
    """Cut what windows reach of a tensor until bindings hold each part and its claims."""
    windows, sizes = request.windows, request.tensor.sizes
    differ = tuple(contested and not windows.takes_all(axis, size) for axis, size in enumerate(sizes))
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


def claims_of(request: Request, band: Band) -> Iterator[InsertDispatch]:
    """Dispatches of `claim_windows`: each window claims its indices, once along dimensions that all have."""
    claimed = [
        range(size) if differs else range(1)
        for size, differs in zip(request.windows.sizes, band.differ, strict=True)
    ]
    binding = Span(0, prod(band.claim_sizes) * WORD_NBYTES)
    for part in parts(request, claimed):
        most = max(request.most_invocations // prod(map(len, part)), 1)
        for start in range(0, len(band.numbers), most):
            yield dispatch_of_elements(
                request,
                Kernel.CLAIM_WINDOWS,
                band,
                part,
                band.numbers[start : start + most],
                (Span(0, WORD_NBYTES), binding),
                "windows that may overlap claim their indices, so that the later one wins",
            )


def inserts_of(request: Request, band: Band, reason: str) -> Iterator[InsertDispatch]:
    """Dispatches of `insert_windows` into a part of a tensor."""
    target = span_of(request.tensor.select(band.ranges), request.itemsize, request.limits)
    for part in parts(request, [range(size) for size in request.windows.sizes]):
        for numbers in held(request, part, band.numbers):
            ends = [int(numbers[0]), int(numbers[-1]) + 1]
            source = span_of(request.batch.select([range(*ends), *part]), request.itemsize, request.limits)
            yield dispatch_of_elements(
                request, Kernel.INSERT_WINDOWS, band, part, numbers, (source, target), reason
            )


def held(request: Request, part: list[range], numbers: Numbers) -> Iterator[Numbers]:
    """Windows as many at a time as a binding of the batch holds of a part of each, and a grid."""
    one = request.batch.select([0, *part])
    room_nbytes = request.most_nbytes - (one.stop - one.lowest) * request.itemsize
    further = room_nbytes // max(abs(request.batch.strides[0]) * request.itemsize, 1)
    most = max(request.most_invocations // one.size, 1)
    start = 0
    while start < len(numbers):
        stop = int(np.searchsorted(numbers, int(numbers[start]) + further, side="right"))
        stop = min(stop, start + most)
        yield numbers[start:stop]
        start = stop


def dispatch_of_elements(
    request: Request,
    kernel: Kernel,
    band: Band,
    part: list[range],
    numbers: Numbers,
    bindings: tuple[Span, Span],
    reason: str,
) -> InsertDispatch:
    """One dispatch: some windows, a part of each, in a part of the tensor."""
    windows, itemsize = request.windows, request.itemsize
    source, target = bindings
    claiming = kernel is Kernel.CLAIM_WINDOWS
    count = len(numbers)
    in_a_row = count == int(numbers[-1]) - int(numbers[0]) + 1
    dimensions = tuple(
        dimension_of(request, band, part, axis, claiming=claiming) for axis in range(request.tensor.rank)
    )
    share: Share = request.share(count, count * prod(map(len, part)), 1, 1)
    begins = sum(taken.start * stride for taken, stride in zip(part, request.batch.strides[1:], strict=True))
    return InsertDispatch(
        kernel=kernel,
        windows=windows,
        picks=None if in_a_row and windows.same_flips is not None else numbers,
        first=int(numbers[0]),
        table=request.terms.table,
        dimensions=dimensions,
        element_nbytes=itemsize,
        tensor_offset=request.tensor.offset - target.offset_nbytes // itemsize,
        batch_offset=request.batch.offset + begins - source.offset_nbytes // itemsize,
        window_stride=request.batch.strides[0],
        window_size=prod(map(len, part)),
        claims=Span(0, prod(band.claim_sizes) * WORD_NBYTES) if band.contested and not claiming else None,
        claim_offset=band.claim_offset,
        claim_base=band.base,
        source_binding=source,
        target_binding=target,
        writes=Memory.CLAIMS if claiming else Memory.OUTPUT,
        share=share,
        reason=reason,
    )


def dimension_of(
    request: Request, band: Band, part: list[range], axis: int, *, claiming: bool
) -> ElementDimension:
    """A dimension of a part of each window, within the indices of the tensor that are in use."""
    size, taken = request.tensor.sizes[axis], band.ranges[axis]
    once = claiming and not band.differ[axis]  # whatever index it is that stands for all
    return ElementDimension.of(
        request.windows,
        axis,
        size,
        size=len(part[axis]),
        first=part[axis].start,
        inner=prod(map(len, part[axis + 1 :])),
        tensor_stride=request.tensor.strides[axis],
        batch_stride=request.batch.strides[axis + 1],
        begin=0 if once else taken.start,
        extent=size if once else len(taken),
        claim_stride=band.claim_strides[axis],
    )

"""The plan that copies many windows of one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from itertools import chain
from math import prod

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.dealing import Share, fold
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.plan import LARGEST_BINDING_NBYTES, Plan, Planner, Step, in_order
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Span
from wgslice.plans.terms import Terms, span_of
from wgslice.plans.window_rows import Row, deal_blocks, find_row
from wgslice.plans.window_steps import (
    ElementDimension,
    ExtractWindowsDispatch,
    WindowRowsDispatch,
    Windows,
)

__all__ = ["extract_windows_planner", "plan_extract_windows"]

MOST_INVOCATIONS = 2**30  # multiplications divide twice as many exactly, and a grid is rounded up
PICK_NBYTES = 8  # of a window's number and directions


def extract_windows_planner(windows: Windows) -> Planner:
    """`plan_extract_windows` for some windows."""
    return partial(plan_extract_windows, windows)


def plan_extract_windows(
    windows: Windows, source: Layout, target: Layout, itemsize: int, terms: Terms
) -> Plan:
    """Copy windows of a source: by rows, by elements, or one by one where a binding holds none."""
    nbytes = target.size * itemsize
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    limits = terms.limits
    table_nbytes = windows.count * max(len(windows.extents) * windows.offset_nbytes, PICK_NBYTES)
    if table_nbytes > limits.binding_nbytes:
        raise ValueError(
            f"{windows.count} windows: what says where they are takes {table_nbytes} bytes, a binding "
            f"at most {limits.binding_nbytes}; extract fewer at a time"
        )
    request = Request(windows, source, target, itemsize, terms)
    rows, left = request.by_rows()
    steps: Iterator[Step]
    if not rows and request.one_is_too_large and windows.offsets is not None and windows.fill is None:
        pairs = request.one_by_one(windows.offsets)
        steps = (step for pair in pairs for step in plan_copy(*pair, itemsize, terms).steps)
    else:
        steps = chain(rows, request.by_elements(left))
    width_nbytes = rows[0].element_nbytes if rows else itemsize
    return Plan(nbytes, itemsize, width_nbytes, source, target, in_order(steps))


@dataclass(frozen=True, eq=False)
class Request:
    """Windows to copy between two layouts in elements of `itemsize`, counted from their bases."""

    windows: Windows
    source: Layout
    target: Layout
    itemsize: int
    terms: Terms

    @property
    def limits(self) -> Limits:
        """The device's."""
        return self.terms.limits

    @property
    def binding_nbytes(self) -> int:
        """The largest binding, in whole blocks."""
        most = min(self.limits.binding_nbytes, LARGEST_BINDING_NBYTES)
        return most // WIDEST_NBYTES * WIDEST_NBYTES

    @property
    def most_nbytes(self) -> int:
        """What the largest binding holds wherever it begins, though a binding's start is aligned."""
        return self.binding_nbytes - self.limits.binding_alignment_nbytes

    @property
    def one_is_too_large(self) -> bool:
        """Whether no binding holds a window, as it lies in the source or in the target."""
        extents = map(min, self.windows.extents, self.source.sizes)
        box = self.source.select([range(extent) for extent in extents])
        one = self.target.select([0, *map(range, self.windows.sizes)])
        return max((side.stop - side.lowest) * self.itemsize for side in (box, one)) > self.most_nbytes

    def one_by_one(self, offsets: NDArray[np.int32]) -> Iterator[tuple[Layout, Layout]]:
        """Each window, which lies inside the source, as a copy of its own."""
        windows = self.windows
        for number, (begins, flips) in enumerate(zip(offsets.tolist(), windows.flips.tolist(), strict=True)):
            indices = []
            for axis, begin in enumerate(begins):
                last, step, size = windows.extents[axis] - 1, windows.steps[axis], windows.sizes[axis]
                backwards = flips >> axis & 1
                start, stride = (begin + last, -step) if backwards else (begin, step)
                indices.append(range(start, start + size * stride, stride))
            yield self.source.select(indices), self.target.select([number, *map(range, windows.sizes)])

    def by_rows(self) -> tuple[list[WindowRowsDispatch], int]:
        """Dispatches of `window_rows`, or none, and the first window that they leave out.

        Windows are left out whose last vector of 16 bytes the output's buffer has no room for.
        """
        terms = self.terms
        row = find_row(self.windows, self.source, self.target, self.itemsize, self.limits.profile)
        if row is None or self.source.stop * self.itemsize > terms.source_room_nbytes:
            return [], 0
        window_nbytes = prod(self.windows.sizes) * self.itemsize
        room_nbytes = terms.target_room_nbytes - self.target.offset * self.itemsize
        stop = self.windows.count
        if stop * window_nbytes > room_nbytes:
            stop = int(room_nbytes // window_nbytes)
        steps = []
        for first, last in self.ranges(row, window_nbytes, stop):
            found = self.rows_between(row, first, last)
            if found is None:
                return [], 0
            steps += found
        return steps, stop if steps else 0

    def ranges(self, row: Row, window_nbytes: int, stop: int) -> Iterator[tuple[int, int]]:
        """The windows before one, as many at a time as a binding of the target and a grid hold."""
        pieces, _ = deal_blocks(row, self.limits.profile)
        most = min(self.most_nbytes // window_nbytes, self.most_invocations // (row.count * pieces))
        for first in range(0, stop, most) if most else ():
            yield first, min(first + most, stop)

    def rows_between(self, row: Row, first: int, stop: int) -> list[WindowRowsDispatch] | None:
        """Dispatches of `window_rows` for some windows; None where it does not apply."""
        groups = self.source_groups(first, stop)
        if groups is None or (row.ragged and len(groups) > 1):
            return None
        pieces, each = deal_blocks(row, self.limits.profile)
        taken = self.target.select([range(first, stop), *map(range, self.windows.sizes)])
        span = span_of(taken, self.itemsize, self.limits).in_whole(WIDEST_NBYTES)
        return [
            row.dispatch(
                picks,
                (binding.in_whole(WIDEST_NBYTES), span),
                self.share(len(picks), len(picks) * row.count * pieces, pieces, each),
                self.terms.table,
            )
            for picks, binding in groups
        ]

    def source_groups(self, first: int, stop: int) -> list[tuple[NDArray[np.uint32], Span]] | None:
        """Windows that a binding of the source holds, with it; None where one is too large for any."""
        numbers = np.arange(first, stop, dtype=np.uint32)
        whole = span_of(self.source, self.itemsize, self.limits)
        if whole.nbytes <= self.most_nbytes:
            return [(numbers, whole)]
        if self.windows.offsets is None:
            return None
        lows, highs = self.reaches(self.windows.offsets[first:stop])
        if (highs - lows).max() > self.most_nbytes:
            return None
        order = np.argsort(lows, kind="stable")
        groups = []
        while order.size:
            base = int(lows[order[0]]) // self.limits.binding_alignment_nbytes
            base *= self.limits.binding_alignment_nbytes
            fits = highs[order] <= base + self.binding_nbytes
            together = order[fits]
            nbytes = -(-(int(highs[together].max()) - base) // 4) * 4
            groups.append((np.sort(numbers[together]), Span(base, nbytes)))
            order = order[~fits]
        return groups

    def reaches(self, offsets: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The first byte that each window reads, and one past the last."""
        lows = np.full(len(offsets), self.source.offset, np.int64)
        highs = lows + 1
        for axis, (size, stride) in enumerate(zip(self.source.sizes, self.source.strides, strict=True)):
            nearest = np.clip(offsets[:, axis].astype(np.int64), 0, size - 1)
            furthest = np.clip(offsets[:, axis] + np.int64(self.windows.extents[axis] - 1), 0, size - 1)
            ends = nearest * stride, furthest * stride
            lows += np.minimum(*ends)
            highs += np.maximum(*ends)
        return lows * self.itemsize, highs * self.itemsize

    @property
    def most_invocations(self) -> int:
        """As many as a grid has, and can be counted."""
        limits = self.limits
        return min(limits.workgroups**2 * limits.profile.workgroup_size, MOST_INVOCATIONS)

    def share(self, count: int, invocations: int, pieces: int, each: int) -> Share:
        """The grid of so many invocations."""
        profile = self.limits.profile
        grid = *fold(-(-invocations // profile.workgroup_size), self.limits), 1
        return Share(count, False, pieces, each, profile.contiguous, profile.workgroup_size, grid)

    def by_elements(self, beginning: int) -> Iterator[ExtractWindowsDispatch]:
        """Dispatches of `extract_windows`, which does everything, for the windows from one on."""
        whole = span_of(self.source, self.itemsize, self.limits) if self.source.size else Span(0, 4)
        segments = [
            Span(start, min(self.segment_nbytes, whole.offset_nbytes + whole.nbytes - start))
            for start in range(whole.offset_nbytes, whole.offset_nbytes + whole.nbytes, self.segment_nbytes)
        ]
        for part in self.parts([range(size) for size in self.windows.sizes]):
            layout = self.target.select([range(self.windows.count), *part])
            elements = prod(layout.sizes[1:])
            one = layout.select([range(1), *(range(size) for size in layout.sizes[1:])])
            room = self.most_nbytes - (one.stop - one.lowest) * self.itemsize
            most = 1 + room // max(abs(layout.strides[0]) * self.itemsize, 1)
            most = max(min(most, self.most_invocations // elements), 1)
            for first in range(beginning, self.windows.count, most):
                count = min(most, self.windows.count - first)
                piece = layout.select(
                    [range(first, first + count), *(range(size) for size in layout.sizes[1:])]
                )
                share = self.share(count, count * elements, 1, 1)
                for segment in segments:
                    yield self.element_dispatch(first, part, piece, segment, share)

    @property
    def segment_nbytes(self) -> int:
        """Bytes of the source that a binding holds, a multiple of what its start must be."""
        alignment = self.limits.binding_alignment_nbytes
        return self.most_nbytes // alignment * alignment

    def parts(self, ranges: list[range]) -> Iterator[list[range]]:
        """Halve a window until a binding holds what it is copied to, and a grid its elements."""
        one = self.target.select([0, *ranges])
        too_long = (one.stop - one.lowest) * self.itemsize > self.most_nbytes
        if not too_long and one.size <= self.most_invocations:
            yield ranges
            return
        reaches = [abs(reach) for reach in one.reaches] if too_long else list(one.sizes)
        axis = reaches.index(max(reaches))
        middle = len(ranges[axis]) // 2
        for half in (ranges[axis][:middle], ranges[axis][middle:]):
            yield from self.parts([*ranges[:axis], half, *ranges[axis + 1 :]])

    def element_dispatch(
        self, first: int, part: list[range], target: Layout, segment: Span, share: Share
    ) -> ExtractWindowsDispatch:
        """One dispatch of `extract_windows`: some windows, a part of each, out of a segment of the source."""
        windows, itemsize = self.windows, self.itemsize
        binding = span_of(target, itemsize, self.limits)
        stride = self.target.strides[0]
        numbers = np.arange(first, first + share.count, dtype=np.uint32)
        dimensions = tuple(
            ElementDimension.of(
                windows,
                axis,
                self.source.sizes[axis],
                size=len(taken),
                first=taken.start,
                inner=prod(map(len, part[axis + 1 :])),
                source_stride=self.source.strides[axis],
                target_stride=target.strides[axis + 1],
            )
            for axis, taken in enumerate(part)
        )
        return ExtractWindowsDispatch(
            windows=windows,
            picks=numbers if windows.same_flips is None else None,
            first=first,
            table=self.terms.table,
            dimensions=dimensions,
            element_nbytes=itemsize,
            source_offset=self.source.offset - segment.offset_nbytes // itemsize,
            target_offset=target.offset - binding.offset_nbytes // itemsize - first * stride,
            target_window=stride,
            segment=segment.nbytes // itemsize,
            window_size=prod(map(len, part)),
            source_binding=segment,
            target_binding=binding,
            share=share,
            reason="windows, element by element",
        )

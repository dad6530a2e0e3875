"""The plan that copies many windows of one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel, Share, fold
from wgslice.plans.plan import LARGEST_BINDING_NBYTES, PlacedPlan, Plan, Planner, Step, place_anew, span_of
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Span
from wgslice.plans.window_rows import deal_blocks, find_row
from wgslice.plans.window_steps import Dimension, WindowDispatch, Windows

__all__ = ["WindowsPlanner"]

MOST_INVOCATIONS = 2**30  # multiplications divide twice as many exactly, and a grid is rounded up
PICK_NBYTES = 8  # of a window's number and directions
MOST_PLACED = 64  # plans of a planner that are kept


@dataclass(frozen=True, eq=False)
class WindowsPlanner(Planner):
    """Copy windows of a source into the rows of a target."""

    windows: Windows
    placed: dict[Any, PlacedPlan] = field(default_factory=dict, repr=False)

    def plan(
        self,
        source: Layout,
        target: Layout,
        limits: Limits,
        *,
        buffer_copy: bool = True,
        whole_vectors: bool = True,
    ) -> Plan:
        """Plan the windows: by rows, by elements, or one by one where each is too large for a binding."""
        nbytes = target.size * self.itemsize
        if target.size > U32_MAX:
            raise ValueError(
                f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}"
            )
        if target.size == 0:
            return Plan(nbytes, self.itemsize, self.itemsize, source, target, ())
        windows = self.windows
        table_nbytes = windows.count * max(len(windows.extents) * windows.offset_nbytes, PICK_NBYTES)
        if table_nbytes > limits.binding_nbytes:
            raise ValueError(
                f"{windows.count} windows: what says where they are takes {table_nbytes} bytes, a binding "
                f"at most {limits.binding_nbytes}; extract fewer at a time"
            )
        request = Request(windows, source, target, self.itemsize, limits)
        rows = request.by_rows() if whole_vectors and source.size else []
        steps: tuple[Step, ...] = tuple(rows)
        if not rows and request.one_is_too_large and windows.offsets is not None and windows.fill is None:
            pairs = request.one_by_one(windows.offsets)
            allowed = {"buffer_copy": buffer_copy, "whole_vectors": whole_vectors}
            plans = [plan_copy(*pair, self.itemsize, limits, **allowed) for pair in pairs]
            steps = tuple(step for plan in plans for step in plan.steps)
        width_nbytes = rows[0].element_nbytes if rows else self.itemsize
        steps = steps or tuple(request.by_elements())
        return Plan(nbytes, self.itemsize, width_nbytes, source, target, steps)

    __eq__ = object.__eq__
    __hash__ = object.__hash__

    def place(
        self,
        source: Layout,
        target: Layout,
        limits: Limits,
        buffer_nbytes: tuple[int, int],
        *,
        buffer_copy: bool,
    ) -> PlacedPlan:
        """Plan for places in buffers, kept here: the windows may be many, and live as long as this."""
        where = source, target, limits, buffer_nbytes
        key = *where, buffer_copy
        found = self.placed.get(key)
        if found is None:
            if len(self.placed) >= MOST_PLACED:
                self.placed.clear()
            found = place_anew(self, *where, buffer_copy=buffer_copy)
            self.placed[key] = found
        return found


@dataclass(frozen=True, eq=False)
class Request:
    """Windows to copy between two layouts in elements of `itemsize`, counted from their bases."""

    windows: Windows
    source: Layout
    target: Layout
    itemsize: int
    limits: Limits

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

    def by_rows(self) -> list[WindowDispatch]:
        """Dispatches of `window_rows`; none where it does not apply."""
        profile = self.limits.profile
        row = find_row(self.windows, self.source, self.target, self.itemsize, profile)
        if row is None:
            return []
        window_nbytes = prod(self.windows.sizes) * self.itemsize
        pieces, each = deal_blocks(row, profile)
        most = min(self.most_nbytes // window_nbytes, self.most_invocations // (row.count * pieces))
        steps = []
        for first in range(0, self.windows.count, most) if most else ():
            stop = min(first + most, self.windows.count)
            groups = self.source_groups(first, stop)
            taken = self.target.select([range(first, stop), *map(range, self.windows.sizes)])
            span = span_of(taken, self.itemsize, self.limits).in_whole(WIDEST_NBYTES)
            if groups is None or (row.ragged and len(groups) > 1):
                return []
            for picks, binding in groups:
                count = len(picks)
                steps.append(
                    row.dispatch(
                        picks,
                        (binding.in_whole(WIDEST_NBYTES), span),
                        self.share(count, count * row.count * pieces, pieces, each),
                    )
                )
        return steps

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

    def by_elements(self) -> Iterator[WindowDispatch]:
        """Dispatches of `extract_windows`, which does everything."""
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
            for first in range(0, self.windows.count, most):
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
    ) -> WindowDispatch:
        """One dispatch of `extract_windows`: some windows, a part of each, out of a segment of the source."""
        windows, itemsize = self.windows, self.itemsize
        binding = span_of(target, itemsize, self.limits)
        stride = self.target.strides[0]
        mixed = windows.same_flips is None
        numbers = np.arange(first, first + share.count, dtype=np.uint32)
        dimensions = tuple(
            Dimension.of(windows, axis, self.source.sizes[axis], taken.start)._replace(
                size=len(taken),
                inner=prod(map(len, part[axis + 1 :])),
                source_stride=self.source.strides[axis],
                target_stride=target.strides[axis + 1],
            )
            for axis, taken in enumerate(part)
        )
        return WindowDispatch(
            kernel=Kernel.EXTRACT_WINDOWS,
            element_nbytes=itemsize,
            channels=1,
            windows=windows,
            dimensions=dimensions,
            picks=numbers if mixed else None,
            first=first,
            source_offset=self.source.offset - segment.offset_nbytes // itemsize,
            target_offset=target.offset - binding.offset_nbytes // itemsize - first * stride,
            target_window=stride,
            segment=segment.nbytes // itemsize,
            window_size=prod(map(len, part)),
            row_nbytes=0,
            mirrored=False,
            ragged=False,
            source_binding=segment,
            target_binding=binding,
            share=share,
            reason="windows, element by element",
        )

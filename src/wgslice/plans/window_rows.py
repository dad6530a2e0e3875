"""Windows row by row: what a row is, when there is one, and the dispatches that copy them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import gcd, prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX
from wgslice.layout import Layout
from wgslice.plans.dealing import Share, deal_row
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.profiles import BLOCKS_EACH, FAILED, PIECE_BLOCKS, Profile
from wgslice.plans.steps import Span
from wgslice.plans.terms import Table, span_of
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Dimension, WindowRowsDispatch, Windows

__all__ = ["Row", "deal_blocks", "longest_row", "plan_rows"]

MOST_CHANNELS = 15  # masks of the uniform block, less the one that is never needed


@dataclass(frozen=True, eq=False)
class Row:
    """What `window_rows` takes as a row: a dimension of windows, each index of it `unit` neighbours."""

    windows: Windows
    tensor: Layout
    batch: Layout
    itemsize: int
    axis: int
    unit: int  # elements an index
    element_nbytes: int  # bytes of what keeps its order backwards
    mirrored: bool

    @property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.windows.sizes[self.axis] * self.unit * self.itemsize

    @property
    def count(self) -> int:
        """Rows of a window."""
        return prod(self.windows.sizes[: self.axis])

    @property
    def ragged(self) -> bool:
        """Whether some row begins or ends inside a block."""
        return bool(self.batch.offset * self.itemsize % WIDEST_NBYTES or self.nbytes % WIDEST_NBYTES)

    def hindrance(self, profile: Profile) -> str | None:
        """Why `window_rows` does not take it; None where it does."""
        step, size = self.windows.steps[self.axis], self.tensor.sizes[self.axis]
        channels = self.unit * self.itemsize // self.element_nbytes
        if step != 1:
            return f"steps of {step} inside of rows"
        if not beside(self.windows, self.tensor, self.axis, self.unit):
            return "elements of a window's row do not follow each other in the input"
        if not self.batch.is_packed:
            return "the output is not packed"
        if self.nbytes < WIDEST_NBYTES:
            return f"rows of {self.nbytes} bytes, at least {WIDEST_NBYTES} are needed"
        if self.ragged and profile.contiguous and self.nbytes < (least := 2 * WIDEST_NBYTES - 1):
            return f"rows of {self.nbytes} bytes, some from inside a vector of 16, which takes {least}"
        if self.windows.extents[self.axis] + size > I32_MAX:
            return f"a dimension of {size} is too long to count from outside of it"
        if self.mirrored and channels > MOST_CHANNELS:
            return f"{channels} elements that keep their order in a mirrored row, at most {MOST_CHANNELS}"
        return None

    def dispatch(
        self, picks: NDArray[np.uint32], bindings: tuple[Span, Span], share: Share, table: Table | None
    ) -> WindowRowsDispatch:
        """A dispatch for some windows between two bindings."""
        windows, tensor, itemsize = self.windows, self.tensor, self.itemsize
        unit_nbytes = self.unit * itemsize
        sizes = windows.sizes[: self.axis]
        strides = [*(stride * itemsize for stride in tensor.strides[: self.axis]), unit_nbytes]
        dimensions = tuple(
            Dimension.of(
                windows, axis, tensor.sizes[axis], inner=prod(sizes[axis + 1 :]), tensor_stride=strides[axis]
            )
            for axis in range(self.axis + 1)
        )
        ordered = len(picks) == picks[-1] - picks[0] + 1
        picked = windows.same_flips is None or not ordered
        way = "neighbours, forwards and backwards" if self.mirrored else "neighbours"
        return WindowRowsDispatch(
            windows=windows,
            picks=picks if picked else None,
            first=int(picks[0]),
            table=table,
            dimensions=dimensions,
            element_nbytes=self.element_nbytes,
            channels=unit_nbytes // self.element_nbytes if self.mirrored else 1,
            tensor_offset=tensor.offset * itemsize - bindings[0].offset_nbytes,
            batch_offset=self.batch.offset * itemsize - bindings[1].offset_nbytes,
            window_stride=prod(windows.sizes) * itemsize,
            window_size=prod(sizes),
            row_nbytes=self.nbytes,
            mirrored=self.mirrored,
            ragged=self.ragged,
            source_binding=bindings[0],
            target_binding=bindings[1],
            share=share,
            reason=f"windows, row by row of {way}, in blocks of 16 bytes",
        )


def longest_row(windows: Windows, tensor: Layout, batch: Layout, itemsize: int) -> Row:
    """The most dimensions of the windows, from the last one on, of which the tensor has every index."""
    axis, unit = tensor.rank - 1, 1
    while axis > 0 and joins(windows, tensor, axis, unit, itemsize):
        unit *= tensor.sizes[axis]
        axis -= 1
    places = tensor.offset, batch.offset, unit, *tensor.strides[:axis]
    element_nbytes = gcd(WIDEST_NBYTES, *(place * itemsize for place in places))
    return Row(windows, tensor, batch, itemsize, axis, unit, element_nbytes, windows.goes_backwards(axis))


def deal_blocks(row: Row, profile: Profile) -> tuple[int, int]:
    """Invocations a row, and the blocks that each takes; ragged rows begin or end inside of some."""
    if not profile.contiguous:
        return deal_row(Kernel.WINDOW_ROWS, row.nbytes, 1, profile)
    most = row.nbytes // WIDEST_NBYTES
    least = most  # whole blocks of a row, wherever it begins
    if row.ragged:
        least = (row.nbytes - WIDEST_NBYTES + 1) // WIDEST_NBYTES
    choices = [each for each in BLOCKS_EACH if each <= min(least, profile.window_blocks)]
    each = min(choices, key=lambda each: -(-most // each) * (each + PIECE_BLOCKS))
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


class Rows(NamedTuple):
    """The dispatches of `window_rows`, and what they leave out."""

    steps: list[WindowRowsDispatch]
    left: int  # the first window that is left out
    hindrance: str  # why it is


def plan_rows(request: Request) -> Rows:
    """Dispatches of `window_rows`, or none.

    Windows are left out whose last vector of 16 bytes the output's buffer has no room for.
    """
    terms, windows = request.terms, request.windows
    tight = "the buffer ends inside a vector of 16 bytes"
    row = longest_row(windows, request.tensor, request.batch, request.itemsize)
    hindrance = row.hindrance(request.limits.profile)
    if request.tensor.size == 0:
        hindrance = "the input is empty"
    elif Kernel.WINDOW_ROWS in request.limits.distrusted:
        hindrance = hindrance or FAILED
    elif request.tensor.stop * request.itemsize > terms.source_room_nbytes:
        hindrance = hindrance or tight
    if hindrance:
        return Rows([], 0, hindrance)
    window_nbytes = prod(windows.sizes) * request.itemsize
    room_nbytes = terms.target_room_nbytes - request.batch.offset * request.itemsize
    stop = windows.count
    if stop * window_nbytes > room_nbytes:
        stop = int(room_nbytes // window_nbytes)
    steps = []
    for first, last in ranges(request, row, window_nbytes, stop):
        found = rows_between(request, row, first, last)
        if found is None:
            ragged = "rows begin or end inside a vector of 16 bytes, and no binding holds the whole input"
            return Rows([], 0, ragged if row.ragged else "no binding holds what a window reads")
        steps += found
    return Rows(steps, stop if steps else 0, tight if stop < windows.count else "no binding holds a window")


def ranges(request: Request, row: Row, window_nbytes: int, stop: int) -> Iterator[tuple[int, int]]:
    """The windows before one, as many at a time as a binding of the target and a grid hold."""
    pieces, _ = deal_blocks(row, request.limits.profile)
    most = min(request.most_nbytes // window_nbytes, request.most_invocations // (row.count * pieces))
    for first in range(0, stop, most) if most else ():
        yield first, min(first + most, stop)


def rows_between(request: Request, row: Row, first: int, stop: int) -> list[WindowRowsDispatch] | None:
    """Dispatches of `window_rows` for some windows; None where it does not apply."""
    groups = source_groups(request, first, stop)
    if groups is None or (row.ragged and len(groups) > 1):
        return None
    pieces, each = deal_blocks(row, request.limits.profile)
    taken = request.batch.select([range(first, stop), *map(range, request.windows.sizes)])
    span = span_of(taken, request.itemsize, request.limits).in_whole(WIDEST_NBYTES)
    return [
        row.dispatch(
            picks,
            (binding.in_whole(WIDEST_NBYTES), span),
            request.share(len(picks), len(picks) * row.count * pieces, pieces, each),
            request.terms.table,
        )
        for picks, binding in groups
    ]


def source_groups(request: Request, first: int, stop: int) -> list[tuple[NDArray[np.uint32], Span]] | None:
    """Windows that a binding of the source holds, with it; None where one is too large for any."""
    numbers = request.windows.numbers[first:stop]
    whole = span_of(request.tensor, request.itemsize, request.limits)
    if whole.nbytes <= request.most_nbytes:
        return [(numbers, whole)]
    if request.windows.offsets is None:
        return None
    lows, highs = reaches(request, request.windows.offsets[first:stop])
    if (highs - lows).max() > request.most_nbytes:
        return None
    order = np.argsort(lows, kind="stable")
    groups = []
    while order.size:
        base = int(lows[order[0]]) // request.limits.binding_alignment_nbytes
        base *= request.limits.binding_alignment_nbytes
        fits = highs[order] <= base + request.binding_nbytes
        together = order[fits]
        nbytes = -(-(int(highs[together].max()) - base) // 4) * 4
        groups.append((np.sort(numbers[together]), Span(base, nbytes)))
        order = order[~fits]
    return groups


def reaches(request: Request, offsets: NDArray[np.int32]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first byte that each window reads, and one past the last."""
    lows = np.full(len(offsets), request.tensor.offset, np.int64)
    highs = lows + 1
    for axis, (size, stride) in enumerate(zip(request.tensor.sizes, request.tensor.strides, strict=True)):
        nearest = np.clip(offsets[:, axis].astype(np.int64), 0, size - 1)
        furthest = np.clip(offsets[:, axis].astype(np.int64) + request.windows.extents[axis] - 1, 0, size - 1)
        ends = nearest * stride, furthest * stride
        lows += np.minimum(*ends)
        highs += np.maximum(*ends)
    return lows * request.itemsize, highs * request.itemsize

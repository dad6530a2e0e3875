"""Windows extracted row by row: the dispatches that copy them."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.profiles import FAILED, UNKNOWN
from wgslice.plans.steps import Span
from wgslice.plans.terms import span_of
from wgslice.plans.window_row import Row, deal_blocks, longest_row
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import WindowRowsDispatch

__all__ = ["Rows", "plan_rows"]


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
    row = longest_row(request)
    hindrance = row.hindrance() or row.hindrance_of_blocks(request.limits.profile, ragged=is_ragged(row))
    if request.tensor.size == 0:
        hindrance = "the input is empty"
    elif Kernel.WINDOW_ROWS in request.limits.distrusted:
        hindrance = hindrance or FAILED
    elif row.work(Kernel.WINDOW_ROWS, ragged=is_ragged(row)) not in request.limits.profile.costs.works:
        hindrance = hindrance or UNKNOWN
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
            return Rows([], 0, ragged if is_ragged(row) else "no binding holds what a window reads")
        steps += found
    return Rows(steps, stop if steps else 0, tight if stop < windows.count else "no binding holds a window")


def is_ragged(row: Row) -> bool:
    """Whether some row begins or ends inside a block of the output."""
    offset_nbytes = row.request.batch.offset * row.request.itemsize
    return bool(offset_nbytes % WIDEST_NBYTES or row.nbytes % WIDEST_NBYTES)


def ranges(request: Request, row: Row, window_nbytes: int, stop: int) -> Iterator[tuple[int, int]]:
    """The windows before one, as many at a time as a binding of the target and a grid hold."""
    pieces, _ = deal_blocks(row, Kernel.WINDOW_ROWS, request.limits.profile, ragged=is_ragged(row))
    most = min(request.most_nbytes // window_nbytes, request.most_invocations // (row.count * pieces))
    for first in range(0, stop, most) if most else ():
        yield first, min(first + most, stop)


def rows_between(request: Request, row: Row, first: int, stop: int) -> list[WindowRowsDispatch] | None:
    """Dispatches of `window_rows` for some windows; None where it does not apply."""
    groups = source_groups(request, first, stop)
    if groups is None or (is_ragged(row) and len(groups) > 1):
        return None
    pieces, each = deal_blocks(row, Kernel.WINDOW_ROWS, request.limits.profile, ragged=is_ragged(row))
    taken = request.batch.select([range(first, stop), *map(range, request.windows.sizes)])
    span = span_of(taken, request.itemsize, request.limits).in_whole(WIDEST_NBYTES)
    way = "neighbours, forwards and backwards" if row.mirrored else "neighbours"
    return [
        WindowRowsDispatch(
            **row.fields(picks, binding, span),
            ragged=is_ragged(row),
            source_binding=binding.in_whole(WIDEST_NBYTES),
            target_binding=span,
            share=request.share(len(picks), len(picks) * row.count * pieces, pieces, each),
            reason=f"windows, row by row of {way}, in blocks of 16 bytes",
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

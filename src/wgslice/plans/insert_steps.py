"""Dispatches that insert windows: blocks and words of rows, elements, and claims where they may overlap."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import NamedTuple, TypeAlias

import numpy as np

from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.launch import Share
from wgslice.plans.problem import span_of
from wgslice.plans.steps import Memory, Span
from wgslice.plans.window_plans import parts
from wgslice.plans.window_rows import Band, Numbers, Row, deal_blocks, held, leaving_windows
from wgslice.plans.windows import Dimension, InsertRowsDispatch, InsertWordsDispatch, Request, WindowDispatch

__all__ = [
    "blocks_of",
    "claims_of",
    "elements_of",
    "hindrance_of_rows",
    "is_ragged",
    "windows_with_room",
    "words_of",
]


BLOCK_WORDS = WIDEST_NBYTES // WORD_NBYTES
END_PIECES = 2  # of a row: the words of the block that it begins in, and of that which it ends in
RowsStep: TypeAlias = InsertRowsDispatch | InsertWordsDispatch


def hindrance_of_rows(row: Row, found: list[Band]) -> str | None:
    """Why windows are not inserted row by row into bands; None where they can be."""
    contested = any(band.contested for band in found)
    hindrance = row.hindrance() or hindrance_of_bindings(row, found)
    if contested and any(band.differ[row.axis] for band in found) and row.request.windows.sizes[row.axis] > 1:
        hindrance = hindrance or "windows may overlap in parts of rows"
    return hindrance


def hindrance_of_bindings(row: Row, found: list[Band]) -> str | None:
    """Why bindings do not hold rows."""
    request = row.request
    window = request.batch.select([0, *map(range, request.windows.sizes)])
    if (window.stop - window.lowest) * request.itemsize > request.most_nbytes:
        return "no binding holds a window"
    if row.count * words_spanned(row) > request.most_invocations:
        return "no grid holds a window"
    merged = list(enumerate(request.tensor.sizes))[row.axis + 1 :]
    if any(len(band.ranges[axis]) < size for band in found for axis, size in merged):
        return "no binding holds what an index of a row has of the output"
    return None


def windows_with_room(request: Request) -> int:
    """How many windows end before the last vector of 16 bytes that the input's buffer has no room for."""
    count, batch = request.windows.count, request.batch
    missing_nbytes = batch.stop * request.itemsize - request.terms.source_room_nbytes
    if missing_nbytes <= 0:
        return count
    if batch.strides[0] <= 0:
        return 0
    return max(count - -(-int(missing_nbytes) // (batch.strides[0] * request.itemsize)), 0)


def is_ragged(row: Row, numbers: Numbers) -> bool:
    """Whether some row begins or ends inside a block of the output, if the tensor has all of it."""
    request, windows = row.request, row.request.windows
    strides = request.tensor.strides[: row.axis]
    sizes, steps = windows.sizes[: row.axis], windows.steps[: row.axis]
    places = [stride * step for size, stride, step in zip(sizes, strides, steps, strict=True) if size > 1]
    if windows.offsets is None:
        places += [*strides, row.unit, request.tensor.offset]
    else:
        offsets = windows.offsets[numbers, : row.axis + 1].astype(np.int64)
        starts = request.tensor.offset + offsets @ np.array([*strides, row.unit], np.int64)
        places += np.unique(starts % WIDEST_NBYTES).tolist()
    return any(
        nbytes % WIDEST_NBYTES for nbytes in (row.nbytes, *(place * request.itemsize for place in places))
    )


class Bound(NamedTuple):
    """Some windows, and what holds them on both sides."""

    numbers: Numbers
    source: Span
    target: Span
    band: Band


def bound(row: Row, band: Band, numbers: Numbers, pieces: int) -> Iterator[Bound]:
    """Windows as many at a time as bindings and a grid hold, each row in so many pieces."""
    request = row.request
    part = [range(size) for size in request.windows.sizes]
    target = span_of(request.tensor.select(band.ranges), request.itemsize, request.limits)
    for some in held(request, part, numbers, row.count * pieces):
        taken = request.batch.select([range(int(some[0]), int(some[-1]) + 1), *part])
        yield Bound(some, span_of(taken, request.itemsize, request.limits), target, band)


def blocks_of(row: Row, ragged: bool, band: Band) -> Iterator[RowsStep]:
    """Whole blocks of rows, then their ends; windows that leave the band apart from those that do not."""
    request = row.request
    pieces, each = deal_blocks(row, Kernel.INSERT_ROWS, request.limits.profile, ragged=ragged)
    orders = "neighbours, forwards and backwards" if row.mirrored else "neighbours"
    leaving = leaving_windows(request, band.numbers, band.ranges)
    for leave in (False, True):
        for some in bound(row, band, band.numbers[leaving == leave], max(pieces, END_PIECES)):
            source = some.source.in_whole(WIDEST_NBYTES)
            target = Span(some.target.offset_nbytes, some.target.nbytes // WIDEST_NBYTES * WIDEST_NBYTES)
            invocations = len(some.numbers) * row.count * pieces
            if target.nbytes:  # else no row has a whole block
                yield InsertRowsDispatch(
                    **row.fields(some.numbers, target, source, band),
                    clipped=leave or band.contested,
                    source_binding=source,
                    target_binding=target,
                    share=request.share(len(some.numbers), invocations, pieces, each),
                    reason=f"windows, row by row of {orders}, in blocks of 16 bytes",
                )
            if ragged or leave:
                yield words(row, some, END_PIECES, BLOCK_WORDS, ends=True)


def words_spanned(row: Row) -> int:
    """The most words that a row touches, wherever it begins."""
    return (row.nbytes + 2) // WORD_NBYTES + 1


def words_of(row: Row, band: Band) -> Iterator[RowsStep]:
    """All words of rows."""
    most = words_spanned(row)
    each = min(most, BLOCK_WORDS) if row.request.limits.profile.contiguous else 1
    pieces = -(-most // each)
    for some in bound(row, band, band.numbers, pieces):
        yield words(row, some, pieces, each, ends=False)


def words(row: Row, some: Bound, pieces: int, each: int, *, ends: bool) -> InsertWordsDispatch:
    """A dispatch of `insert_words`."""
    count = len(some.numbers)
    share = row.request.share(count, count * row.count * pieces, pieces, each)
    what = "where rows begin or end inside a block" if ends else "windows, row by row"
    return InsertWordsDispatch(
        **row.fields(some.numbers, some.target, some.source, some.band),
        ends=ends,
        source_binding=some.source,
        target_binding=some.target,
        share=replace(share, contiguous=False),  # a word that is written twice at once would be lost
        reason=f"{what}, word by word",
    )


def claims_of(request: Request, band: Band) -> Iterator[WindowDispatch]:
    """Dispatches of `claim_windows`: each window claims its indices, once along dimensions that all have."""
    claimed = [
        range(size) if differs else range(1)
        for size, differs in zip(request.windows.sizes, band.differ, strict=True)
    ]
    binding = Span(0, band.claims_nbytes)
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


def elements_of(request: Request, band: Band) -> Iterator[WindowDispatch]:
    """Dispatches of `insert_windows` into a part of a tensor."""
    target = span_of(request.tensor.select(band.ranges), request.itemsize, request.limits)
    for part in parts(request, [range(size) for size in request.windows.sizes]):
        for numbers in held(request, part, band.numbers, prod(map(len, part))):
            ends = [int(numbers[0]), int(numbers[-1]) + 1]
            source = span_of(request.batch.select([range(*ends), *part]), request.itemsize, request.limits)
            yield dispatch_of_elements(
                request,
                Kernel.INSERT_WINDOWS,
                band,
                part,
                numbers,
                (source, target),
                "windows, element by element",
            )


def dispatch_of_elements(
    request: Request,
    kernel: Kernel,
    band: Band,
    part: list[range],
    numbers: Numbers,
    bindings: tuple[Span, Span],
    reason: str,
) -> WindowDispatch:
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
    return WindowDispatch(
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
        claims=band.claims,
        source_binding=source,
        target_binding=target,
        writes=Memory.CLAIMS if claiming else Memory.OUTPUT,
        share=share,
        reason=reason,
    )


def dimension_of(request: Request, band: Band, part: list[range], axis: int, *, claiming: bool) -> Dimension:
    """A dimension of a part of each window, within the indices of the tensor that are in use."""
    size, taken = request.tensor.sizes[axis], band.ranges[axis]
    once = claiming and not band.differ[axis]  # whatever index it is that stands for all
    return Dimension.of(
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

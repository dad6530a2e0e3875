"""What plans of extracted and of inserted windows have in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import inf, prod
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import NoKernelError
from wgslice.layout import Layout
from wgslice.plans.choose import OTHER, Choice, Reason, Step, Strategy, choose, seconds_of
from wgslice.plans.costs import CostClass, Costs
from wgslice.plans.kernels import WORD_NBYTES, Kernel
from wgslice.plans.launch import Share, words_spanned
from wgslice.plans.plan import COPY_PER_WINDOW, Plan, in_order
from wgslice.plans.problem import span_of
from wgslice.plans.profiles import Limits, Profile, untrusted
from wgslice.plans.steps import BufferCopies, Memory, Places, Span
from wgslice.plans.window_rows import longest_row
from wgslice.plans.windows import (
    Dimension,
    ElementsDispatch,
    Request,
    WindowDispatch,
)

__all__ = [
    "by_copies",
    "claims_scratch",
    "extracted_elements",
    "goes_by_words",
    "least_seconds",
    "left_out",
    "parts",
    "plan_of_windows",
    "window_copies",
]


def window_copies(request: Request, numbers: NDArray[np.uint32]) -> BufferCopies | str:
    """A buffer copy of each of some windows, in order; or why some of them is not a row of whole words."""
    windows, tensor, batch, itemsize = request.windows, request.tensor, request.batch, request.itemsize
    row = longest_row(request)
    if windows.offsets is None or 0 in tensor.sizes or row.count > 1 or row.mirrored:
        return OTHER
    if not request.terms.buffer_copies:
        return "a buffer has no usage COPY_SRC or COPY_DST"
    if row.nbytes % WORD_NBYTES:
        return f"rows of {row.nbytes} bytes, not multiples of {WORD_NBYTES}"
    reason = row.hindrance()
    if reason:
        return reason
    own = slice(row.axis + 1)
    offsets = windows.offsets[numbers, own].astype(np.int64)
    if (offsets < 0).any() or (offsets + windows.extents[own] > tensor.sizes[own]).any():
        return f"a window leaves the {request.tensor_name}"
    backwards = windows.flips[numbers, None] >> np.arange(row.axis + 1, dtype=np.uint32) & np.uint32(1)
    offsets += backwards * (np.array(windows.extents[own]) - 1)  # a window begins at its end there
    strides = np.array([*tensor.strides[: row.axis], row.unit], np.int64)
    in_tensor = (tensor.offset + offsets @ strides) * itemsize
    in_batch = (batch.offset + numbers.astype(np.int64) * batch.strides[0]) * itemsize
    if ((in_tensor | in_batch) % WORD_NBYTES).any():
        return f"a window begins inside of {WORD_NBYTES} bytes"
    source, target = (in_batch, in_tensor) if request.inserts else (in_tensor, in_batch)
    reason = "windows of contiguous words on both sides"
    return BufferCopies(Places(source), Places(target), row.nbytes, reason=reason)


class Copied(Protocol):
    """Windows that may go by a buffer copy each."""

    @property
    def limits(self) -> Limits:
        """The device's."""

    @property
    def copies(self) -> BufferCopies | str:
        """A buffer copy of each window, in their order: the last one stays; or why not."""


R = TypeVar("R", bound=Request)
C = TypeVar("C", bound=Copied)


def by_copies() -> Strategy[C]:
    """The row of a buffer copy of each window."""
    return Strategy(COPY_PER_WINDOW, against_copies, copies_seconds, window_copies_of)


def against_copies(request: Copied) -> Reason | None:
    """Why windows do not go by a buffer copy each."""
    return request.copies if isinstance(request.copies, str) else None


def copies_seconds(request: Copied) -> float:
    """Estimated seconds of a buffer copy of each."""
    return seconds_of(window_copies_of(request), request.limits.profile.costs)


def window_copies_of(request: Copied) -> Sequence[Step]:
    """A buffer copy of each."""
    return [] if isinstance(request.copies, str) else [request.copies]


def least_seconds(work: CostClass, nbytes: float, costs: Costs) -> float:
    """Estimated seconds that a dispatch of a cost class takes at least for its bytes; inf where unknown."""
    known = costs.works.get(work)
    return costs.dispatch_s + nbytes / known.bytes_per_s if known else inf


def left_out(rest: Choice, hindrance: str) -> list[Step]:
    """The steps for windows that another strategy leaves out, and why it does."""
    return [
        replace(step, reason=f"{step.reason}; left out of blocks: {hindrance}")
        for step in rest.steps
        if isinstance(step, WindowDispatch)
    ]


def plan_of_windows(request: R, strategies: Sequence[Strategy[R]]) -> Plan:
    """The plan for some windows by the strategy of the least estimated time."""
    choice = choose(request, strategies)
    if choice is None:
        raise NoKernelError(untrusted(f"windows of sizes {request.windows.sizes}", request.limits))
    sides = request.tensor, request.batch
    source, target = reversed(sides) if request.inserts else sides
    return Plan(
        request.batch.size * request.itemsize,
        request.itemsize,
        request.itemsize,
        source,
        target,
        in_order(choice.steps),
        claims_scratch(choice.steps),
        costs=request.limits.profile.costs,
        choice=choice,
    )


def claims_scratch(steps: Iterable[Step]) -> tuple[tuple[Memory, int], ...]:
    """The buffer of claims that some steps need, if they do, and its bytes."""
    claims = [step.claims for step in steps if isinstance(step, WindowDispatch) and step.claims]
    return ((Memory.CLAIMS, max(each.span.nbytes for each in claims)),) if claims else ()


# A dimension more, for windows that have only one: `window_words` takes two as a row.
ONE = Dimension(
    size=1,
    step=1,
    last=0,
    lowest=0,
    highest=0,
    extent=1,
    inner=1,
    tensor_stride=0,
    first=0,
    batch_stride=0,
)


def goes_by_words(request: Request) -> bool:
    """Whether windows of narrow elements lie packed in one binding, and their source in another."""
    narrow = request.itemsize < WORD_NBYTES and request.batch.is_packed
    return narrow and len(segments_of(request)) == 1 and len(whole_parts(request)) == 1


def segments_of(request: Request) -> list[Span]:
    """What bindings hold of the source, one after the other."""
    alignment = request.limits.binding_alignment_nbytes
    segment_nbytes = request.most_nbytes // alignment * alignment  # where a binding may begin again
    whole = span_of(request.tensor, request.itemsize, request.limits) if request.tensor.size else Span(0, 4)
    stop = whole.offset_nbytes + whole.nbytes
    return [
        Span(start, min(segment_nbytes, stop - start))
        for start in range(whole.offset_nbytes, stop, segment_nbytes)
    ]


def whole_parts(request: Request) -> list[list[range]]:
    """The parts of a window, as its indices."""
    return list(parts(request, [range(size) for size in request.windows.sizes]))


def extracted_elements(kernel: Kernel, request: Request, beginning: int) -> Iterator[ElementsDispatch]:
    """Dispatches of a kernel for windows from one on."""
    segments = segments_of(request)
    for part in whole_parts(request):
        layout = request.batch.select([range(request.windows.count), *part])
        elements = prod(layout.sizes[1:])
        one = layout.select([range(1), *(range(size) for size in layout.sizes[1:])])
        room = request.most_nbytes - (one.stop - one.lowest) * request.itemsize
        most = 1 + room // max(abs(layout.strides[0]) * request.itemsize, 1)
        most = max(min(most, request.most_invocations // elements), 1)
        for first in range(beginning, request.windows.count, most):
            count = min(most, request.windows.count - first)
            piece = layout.select([range(first, first + count), *(range(size) for size in layout.sizes[1:])])
            in_words = kernel is Kernel.WINDOW_WORDS
            share = share_words(request, piece) if in_words else request.share(count, piece.size, 1, 1)
            for segment in segments:
                yield elements_dispatch(request, kernel, first, part, piece, segment, share)


def share_words(request: Request, target: Layout) -> Share:
    """Words of the output, dealt to invocations of `window_words`."""
    each = words_each(prod(target.sizes[1:][-2:]) * request.itemsize, request.limits.profile)
    words = words_spanned(target, request.itemsize)
    return request.share(target.sizes[0], -(-words // each), 1, each)


def words_each(row_nbytes: int, profile: Profile) -> int:
    """Words an invocation: equal parts of a row, or whole rows, so that neighbours change rows together."""
    most_nbytes = profile.window_words * WORD_NBYTES
    parts_of_row, rows = -(-row_nbytes // most_nbytes), max(most_nbytes // row_nbytes, 1)
    return -(-row_nbytes * rows // (parts_of_row * WORD_NBYTES))


def parts(request: Request, ranges: list[range]) -> Iterator[list[range]]:
    """Halve a window until a binding holds what it is copied to, and a grid its elements."""
    one = request.batch.select([0, *ranges])
    too_long = (one.stop - one.lowest) * request.itemsize > request.most_nbytes
    if not too_long and one.size <= request.most_invocations:
        yield ranges
        return
    reaches = [abs(reach) for reach in one.reaches] if too_long else list(one.sizes)
    axis = reaches.index(max(reaches))
    middle = len(ranges[axis]) // 2
    for half in (ranges[axis][:middle], ranges[axis][middle:]):
        yield from parts(request, [*ranges[:axis], half, *ranges[axis + 1 :]])


def elements_dispatch(
    request: Request,
    kernel: Kernel,
    first: int,
    part: list[range],
    target: Layout,
    segment: Span,
    share: Share,
) -> ElementsDispatch:
    """One dispatch: some windows, a part of each, out of a segment of the source."""
    windows, itemsize = request.windows, request.itemsize
    binding = span_of(target, itemsize, request.limits)
    stride = request.batch.strides[0]
    numbers = windows.numbers[first : first + share.count]
    dimensions = dimensions_of(request, part, target)
    by_words = kernel is Kernel.WINDOW_WORDS
    how = ", put together word by word" if by_words else ""
    return ElementsDispatch(
        kernel=kernel,
        windows=windows,
        picks=numbers if windows.same_flips is None else None,
        first=first,
        table=request.terms.table,
        dimensions=(*dimensions, ONE) if by_words and len(dimensions) == 1 else dimensions,
        element_nbytes=itemsize,
        tensor_offset=request.tensor.offset - segment.offset_nbytes // itemsize,
        batch_offset=target.offset - binding.offset_nbytes // itemsize - first * stride,
        window_stride=stride,
        segment=segment.nbytes // itemsize,
        window_size=prod(map(len, part)),
        source_binding=segment,
        target_binding=binding,
        share=share,
        reason=f"windows, element by element{how}",
    )


def dimensions_of(request: Request, part: list[range], target: Layout) -> tuple[Dimension, ...]:
    """The dimensions of a part of each window."""
    return tuple(
        Dimension.of(
            request.windows,
            axis,
            request.tensor.sizes[axis],
            size=len(taken),
            first=taken.start,
            inner=prod(map(len, part[axis + 1 :])),
            tensor_stride=request.tensor.strides[axis],
            batch_stride=target.strides[axis + 1],
        )
        for axis, taken in enumerate(part)
    )

"""Windows element by element: the dispatches that copy any of them, in parts where limits demand it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from wgslice.layout import Layout
from wgslice.plans.dealing import Share
from wgslice.plans.steps import Span
from wgslice.plans.terms import span_of
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import ElementDimension, ExtractWindowsDispatch

__all__ = ["plan_elements"]


def plan_elements(request: Request, beginning: int, hindrance: str) -> Iterator[ExtractWindowsDispatch]:
    """Dispatches of `extract_windows`, which does everything, for the windows from one on."""
    alignment = request.limits.binding_alignment_nbytes
    segment_nbytes = request.most_nbytes // alignment * alignment  # where a binding may begin again
    whole = span_of(request.source, request.itemsize, request.limits) if request.source.size else Span(0, 4)
    segments = [
        Span(start, min(segment_nbytes, whole.offset_nbytes + whole.nbytes - start))
        for start in range(whole.offset_nbytes, whole.offset_nbytes + whole.nbytes, segment_nbytes)
    ]
    for part in parts(request, [range(size) for size in request.windows.sizes]):
        layout = request.target.select([range(request.windows.count), *part])
        elements = prod(layout.sizes[1:])
        one = layout.select([range(1), *(range(size) for size in layout.sizes[1:])])
        room = request.most_nbytes - (one.stop - one.lowest) * request.itemsize
        most = 1 + room // max(abs(layout.strides[0]) * request.itemsize, 1)
        most = max(min(most, request.most_invocations // elements), 1)
        for first in range(beginning, request.windows.count, most):
            count = min(most, request.windows.count - first)
            piece = layout.select([range(first, first + count), *(range(size) for size in layout.sizes[1:])])
            share = request.share(count, count * elements, 1, 1)
            for segment in segments:
                yield element_dispatch(request, first, part, piece, segment, share, hindrance)


def parts(request: Request, ranges: list[range]) -> Iterator[list[range]]:
    """Halve a window until a binding holds what it is copied to, and a grid its elements."""
    one = request.target.select([0, *ranges])
    too_long = (one.stop - one.lowest) * request.itemsize > request.most_nbytes
    if not too_long and one.size <= request.most_invocations:
        yield ranges
        return
    reaches = [abs(reach) for reach in one.reaches] if too_long else list(one.sizes)
    axis = reaches.index(max(reaches))
    middle = len(ranges[axis]) // 2
    for half in (ranges[axis][:middle], ranges[axis][middle:]):
        yield from parts(request, [*ranges[:axis], half, *ranges[axis + 1 :]])


def element_dispatch(
    request: Request,
    first: int,
    part: list[range],
    target: Layout,
    segment: Span,
    share: Share,
    hindrance: str,
) -> ExtractWindowsDispatch:
    """One dispatch of `extract_windows`: some windows, a part of each, out of a segment of the source."""
    windows, itemsize = request.windows, request.itemsize
    binding = span_of(target, itemsize, request.limits)
    stride = request.target.strides[0]
    numbers = windows.numbers[first : first + share.count]
    dimensions = tuple(
        ElementDimension.of(
            windows,
            axis,
            request.source.sizes[axis],
            size=len(taken),
            first=taken.start,
            inner=prod(map(len, part[axis + 1 :])),
            source_stride=request.source.strides[axis],
            target_stride=target.strides[axis + 1],
        )
        for axis, taken in enumerate(part)
    )
    return ExtractWindowsDispatch(
        windows=windows,
        picks=numbers if windows.same_flips is None else None,
        first=first,
        table=request.terms.table,
        dimensions=dimensions,
        element_nbytes=itemsize,
        source_offset=request.source.offset - segment.offset_nbytes // itemsize,
        target_offset=target.offset - binding.offset_nbytes // itemsize - first * stride,
        target_window=stride,
        segment=segment.nbytes // itemsize,
        window_size=prod(map(len, part)),
        source_binding=segment,
        target_binding=binding,
        share=share,
        reason="windows, element by element",
        hindrance=hindrance,
    )

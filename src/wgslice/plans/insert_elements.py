"""Windows inserted element by element: dispatches that take any of them, in parts where limits demand it."""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

from wgslice.plans.dealing import Share
from wgslice.plans.insert_bands import Band, Numbers, held
from wgslice.plans.kernels import WORD_NBYTES, Kernel
from wgslice.plans.steps import Memory, Span
from wgslice.plans.terms import span_of
from wgslice.plans.windows_elements import parts
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Dimension, WindowDispatch

__all__ = ["claims_of", "elements_of"]


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

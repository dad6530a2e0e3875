"""A row of windows: the most dimensions of them that are neighbours, and how its blocks are dealt."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX
from wgslice.layout import Layout
from wgslice.plans.costs import windows_work
from wgslice.plans.dealing import deal_row
from wgslice.plans.insert_bands import Band
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.profiles import BLOCKS_EACH, Profile
from wgslice.plans.steps import Span
from wgslice.plans.windows_request import Request
from wgslice.plans.windows_steps import Dimension, Windows

__all__ = ["MOST_CHANNELS", "Row", "deal_blocks", "longest_row"]

MOST_CHANNELS = 15  # masks of the uniform block, less the one that is never needed


@dataclass(frozen=True, eq=False)
class Row:
    """A dimension of windows, each index of it `unit` neighbours in the tensor."""

    request: Request
    axis: int
    unit: int  # elements an index
    element_nbytes: int  # bytes of what keeps its order backwards
    mirrored: bool

    @property
    def nbytes(self) -> int:
        """Bytes of a row."""
        return self.request.windows.sizes[self.axis] * self.unit * self.request.itemsize

    @property
    def count(self) -> int:
        """Rows of a window."""
        return prod(self.request.windows.sizes[: self.axis])

    @property
    def channels(self) -> int:
        """Elements an index that keep their order in mirrored rows, a block for each; 1 of other rows."""
        return self.unit * self.request.itemsize // self.element_nbytes if self.mirrored else 1

    def work(self, kernel: Kernel, *, ragged: bool = False) -> str:
        """The class of work of its blocks."""
        edged = ragged and kernel is Kernel.WINDOW_ROWS  # others leave the ends of rows to another dispatch
        return windows_work(kernel, self.element_nbytes, ragged=edged, mirrored=self.mirrored)

    def hindrance(self) -> str | None:
        """Why windows are not taken row by row; None where they are."""
        request, windows = self.request, self.request.windows
        step, size = windows.steps[self.axis], request.tensor.sizes[self.axis]
        if step != 1:
            return f"steps of {step} inside of rows"
        if not beside(windows, request.tensor, self.axis, self.unit):
            return f"elements of a window's row do not follow each other in the {request.tensor_name}"
        if not request.inserts and not request.batch.is_packed:
            return f"the {request.batch_name} is not packed"
        if windows.sizes[self.axis] > 1 and request.batch.strides[self.axis + 1] != self.unit:
            return f"elements of a window's row do not follow each other in the {request.batch_name}"
        if windows.extents[self.axis] + size > I32_MAX:
            return f"a dimension of {size} is too long to count from outside of it"
        return None

    def hindrance_of_blocks(self, profile: Profile, *, ragged: bool) -> str | None:
        """Why rows are not taken in blocks of 16 bytes; `ragged` says whether some end inside of one."""
        if self.nbytes < WIDEST_NBYTES:
            return f"rows of {self.nbytes} bytes, at least {WIDEST_NBYTES} are needed"
        if ragged and profile.contiguous and self.nbytes < (least := 2 * WIDEST_NBYTES - 1):
            return f"rows of {self.nbytes} bytes, some from inside a vector of 16, which takes {least}"
        if self.channels > MOST_CHANNELS:
            return (
                f"{self.channels} elements that keep their order in a mirrored row, at most {MOST_CHANNELS}"
            )
        return None

    def fields(
        self, picks: NDArray[np.uint32], tensor: Span, batch: Span, band: Band | None = None
    ) -> dict[str, Any]:
        """What a dispatch of some windows says of their rows, between two bindings.

        The band says which indices of the tensor are in use, where these are not all.
        """
        request, windows, itemsize = self.request, self.request.windows, self.request.itemsize
        unit_nbytes = self.unit * itemsize
        inner = windows.sizes[: self.axis]
        strides = [*(stride * itemsize for stride in request.tensor.strides[: self.axis]), unit_nbytes]
        indices = band.ranges if band else [range(size) for size in request.tensor.sizes]
        claim_strides = band.claim_strides if band else [0] * len(indices)
        dimensions = tuple(
            Dimension.of(
                windows,
                axis,
                request.tensor.sizes[axis],
                inner=prod(inner[axis + 1 :]),
                tensor_stride=strides[axis],
                batch_stride=request.batch.strides[axis + 1] * itemsize if axis < self.axis else unit_nbytes,
                begin=indices[axis].start,
                extent=len(indices[axis]),
                claim_stride=claim_strides[axis],
            )
            for axis in range(self.axis + 1)
        )
        ordered = len(picks) == picks[-1] - picks[0] + 1
        return {
            "windows": windows,
            "picks": picks if windows.same_flips is None or not ordered else None,
            "first": int(picks[0]),
            "table": request.terms.table,
            "dimensions": dimensions,
            "element_nbytes": self.element_nbytes,
            "channels": self.channels,
            "tensor_offset": request.tensor.offset * itemsize - tensor.offset_nbytes,
            "batch_offset": request.batch.offset * itemsize - batch.offset_nbytes,
            "window_stride": request.batch.strides[0] * itemsize,
            "window_size": prod(inner),
            "claims": band.claims if band else None,
            "row_nbytes": self.nbytes,
            "mirrored": self.mirrored,
        }


def longest_row(request: Request) -> Row:
    """The most dimensions of the windows, from the last one on, of which the tensor has every index."""
    windows, tensor, batch, itemsize = request.windows, request.tensor, request.batch, request.itemsize
    axis, unit = tensor.rank - 1, 1
    while axis > 0 and joins(windows, tensor, axis, unit, itemsize) and in_line(batch, axis, unit):
        unit *= tensor.sizes[axis]
        axis -= 1
    strides = *tensor.strides[:axis], *batch.strides[: axis + 1]
    places = tensor.offset, batch.offset, unit, *strides
    element_nbytes = gcd(WIDEST_NBYTES, *(place * itemsize for place in places))
    return Row(request, axis, unit, element_nbytes, windows.goes_backwards(axis))


def in_line(batch: Layout, axis: int, unit: int) -> bool:
    """Whether all indices of a dimension of windows lie in a batch one after another, and so on and on."""
    size = batch.sizes[axis + 1]
    beside = size == 1 or batch.strides[axis + 1] == unit
    return beside and (batch.sizes[axis] == 1 or batch.strides[axis] == unit * size)


def deal_blocks(row: Row, kernel: Kernel, profile: Profile, *, ragged: bool) -> tuple[int, int]:
    """Invocations a row of a kernel, and the blocks that each takes; ragged rows begin or end inside of some.

    As many as take the least time; no more than every row has, where an invocation takes neighbours.
    """
    if not profile.contiguous:
        return deal_row(kernel, row.nbytes, 1, profile)
    work = profile.costs.works[row.work(kernel, ragged=ragged)]
    block_s = row.channels * WIDEST_NBYTES / work.bytes_per_s
    most = row.nbytes // WIDEST_NBYTES
    least = most  # whole blocks of a row, wherever it begins
    if ragged:
        least = (row.nbytes - WIDEST_NBYTES + 1) // WIDEST_NBYTES
    choices = [each for each in BLOCKS_EACH if each <= min(least, profile.window_blocks)]
    each = min(choices, key=lambda each: -(-most // each) * (work.invocation_s + each * block_s))
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

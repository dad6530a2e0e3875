"""Windows row by row: what a row is, when there is one, and the dispatch that copies them."""

from __future__ import annotations

from dataclasses import dataclass
from math import gcd, prod

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX
from wgslice.layout import Layout
from wgslice.plans.dealing import Share, deal_row
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.profiles import BLOCKS_EACH, PIECE_BLOCKS, Profile
from wgslice.plans.steps import Span
from wgslice.plans.terms import Table
from wgslice.plans.window_steps import Dimension, WindowRowsDispatch, Windows

__all__ = ["Row", "deal_blocks", "find_row"]

MOST_CHANNELS = 15  # masks of the uniform block, less the one that is never needed


@dataclass(frozen=True, eq=False)
class Row:
    """What `window_rows` takes as a row: a dimension of windows, each index of it `unit` neighbours."""

    windows: Windows
    source: Layout
    target: Layout
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
        return bool(self.target.offset * self.itemsize % WIDEST_NBYTES or self.nbytes % WIDEST_NBYTES)

    def dispatch(
        self, picks: NDArray[np.uint32], bindings: tuple[Span, Span], share: Share, table: Table | None
    ) -> WindowRowsDispatch:
        """A dispatch for some windows between two bindings."""
        windows, source, itemsize = self.windows, self.source, self.itemsize
        unit_nbytes = self.unit * itemsize
        sizes = windows.sizes[: self.axis]
        strides = [*(stride * itemsize for stride in source.strides[: self.axis]), unit_nbytes]
        dimensions = tuple(
            Dimension.of(
                windows, axis, source.sizes[axis], inner=prod(sizes[axis + 1 :]), source_stride=strides[axis]
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
            source_offset=source.offset * itemsize - bindings[0].offset_nbytes,
            target_offset=self.target.offset * itemsize - bindings[1].offset_nbytes,
            target_window=prod(windows.sizes) * itemsize,
            window_size=prod(sizes),
            row_nbytes=self.nbytes,
            mirrored=self.mirrored,
            ragged=self.ragged,
            source_binding=bindings[0],
            target_binding=bindings[1],
            share=share,
            reason=f"windows, row by row of {way}, in blocks of 16 bytes",
        )


def find_row(windows: Windows, source: Layout, target: Layout, itemsize: int, profile: Profile) -> Row | None:
    """The longest row of the windows that lies in one piece in source and target, if it holds a block."""
    axis, unit = source.rank - 1, 1
    while axis > 0 and joins(windows, source, axis, unit, itemsize):
        unit *= source.sizes[axis]
        axis -= 1
    places = source.offset, target.offset, unit, *source.strides[:axis]
    element_nbytes = gcd(WIDEST_NBYTES, *(place * itemsize for place in places))
    mirrored = windows.goes_backwards(axis)
    row = Row(windows, source, target, itemsize, axis, unit, element_nbytes, mirrored)
    in_one_piece = beside(windows, source, axis, unit) and target.is_packed
    long = row.nbytes >= profile.least_shifted_row_nbytes
    countable = windows.extents[axis] + source.sizes[axis] <= I32_MAX
    few_channels = not mirrored or unit * itemsize // element_nbytes <= MOST_CHANNELS
    return row if in_one_piece and long and countable and few_channels else None


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


def beside(windows: Windows, source: Layout, axis: int, unit: int) -> bool:
    """Whether a window's indices along a dimension are neighbours, each of `unit` elements."""
    return windows.steps[axis] == 1 and (source.strides[axis] == unit or source.sizes[axis] == 1)


def joins(windows: Windows, source: Layout, axis: int, unit: int, itemsize: int) -> bool:
    """Whether a dimension with all after it makes an index of that before: every window takes all of it."""
    size = source.sizes[axis]
    whole = windows.extents[axis] == size and windows.starts_at_zero(axis, size)
    forwards = not windows.goes_backwards(axis)
    before_nbytes = unit * size * itemsize
    long = before_nbytes > WIDEST_NBYTES and windows.goes_backwards(axis - 1)
    return (
        whole
        and forwards
        and beside(windows, source, axis, unit)
        and beside(windows, source, axis - 1, unit * size)
        and not long
    )

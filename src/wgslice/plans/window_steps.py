"""Windows of one tensor, and the dispatch that copies many, with all that it needs but the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.kernels import Kernel, Share
from wgslice.plans.steps import Span

__all__ = ["Dimension", "WindowDispatch", "Windows"]


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one tensor: boxes of equal extents, each at offsets and in directions of its own.

    The walk through a box goes by `steps`, in each dimension forwards from its first index, or backwards from
    its last where the window's bit is set.
    """

    extents: tuple[int, ...]  # of a box, in the input's indices
    steps: tuple[int, ...]  # magnitudes
    flips: NDArray[np.uint32]  # (B,): bit d is set where dimension d goes backwards
    offsets: NDArray[np.int32] | None  # (B, rank), or None where the GPU has them
    offset_nbytes: int  # bytes an offset, as the kernels read it
    offset_signed: bool
    fill: bytes | None  # 16 bytes of what lies outside of the input; None where nothing may

    @property
    def count(self) -> int:
        """How many."""
        return len(self.flips)

    @cached_property
    def sizes(self) -> tuple[int, ...]:
        """Elements of a window, dimension by dimension."""
        return tuple(1 + (extent - 1) // step for extent, step in zip(self.extents, self.steps, strict=True))

    @cached_property
    def same_flips(self) -> int | None:
        """The directions of all windows, where they are the same."""
        return int(self.flips[0]) if (self.flips == self.flips[0]).all() else None

    def goes_backwards(self, axis: int) -> bool:
        """Whether some window goes backwards along a dimension in which that matters."""
        return self.sizes[axis] > 1 and bool((self.flips >> np.uint32(axis) & np.uint32(1)).any())

    def starts_at_zero(self, axis: int, input_size: int) -> bool:
        """Whether every window begins at index 0 of a dimension: because it must, or as its offsets say."""
        if self.fill is None:
            return self.extents[axis] == input_size
        return self.offsets is not None and not self.offsets[:, axis].any()

    def clamp(self, axis: int, input_size: int) -> tuple[int, int]:
        """The offsets beyond which nothing changes: a window stays inside, or leaves the input for good."""
        extent = self.extents[axis]
        return (0, input_size - extent) if self.fill is None else (-extent, input_size)


class Dimension(NamedTuple):
    """One dimension of windows, as the kernels' `Windows` struct has it."""

    size: int
    first: int
    step: int
    last: int
    lowest: int
    highest: int
    extent: int
    inner: int
    source_stride: int
    target_stride: int

    @classmethod
    def of(cls, windows: Windows, axis: int, input_size: int, first: int) -> Dimension:
        """A dimension of windows in an input of some size, from an index on; without its strides."""
        return cls(
            windows.sizes[axis],
            first,
            windows.steps[axis],
            windows.extents[axis] - 1,
            *windows.clamp(axis, input_size),
            input_size,
            inner=1,
            source_stride=0,
            target_stride=0,
        )


@dataclass(frozen=True, eq=False)
class WindowDispatch:
    """One dispatch of a kernel that copies windows; its fields are the kernels' parameters."""

    kernel: Kernel
    element_nbytes: int
    channels: int
    windows: Windows
    dimensions: tuple[Dimension, ...]
    picks: NDArray[np.uint32] | None  # numbers of the windows, where directions differ or some are left out
    first: int  # number of the first window otherwise
    source_offset: int
    target_offset: int
    target_window: int
    segment: int
    window_size: int
    row_nbytes: int
    mirrored: bool
    ragged: bool
    source_binding: Span
    target_binding: Span
    share: Share
    reason: str

    def __str__(self) -> str:
        grid = " x ".join(map(str, self.share.workgroups))
        sizes = tuple(dimension.size for dimension in self.dimensions)
        return (
            f"{self.kernel.value} on {self.share.count} windows of {sizes}, grid {grid} of "
            f"{self.share.workgroup_size}, {self.share.each} each: {self.reason}"
        )

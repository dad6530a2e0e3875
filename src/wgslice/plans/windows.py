"""Many windows to copy: what is asked for, and the dispatches that do it, with all but the buffers.

Windows lie in a *tensor*, each at offsets of its own; in a *batch* they lie one after another, of the sizes
(B, *sizes). They are extracted from the one into the other, or inserted from the other into the one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.costs import CostClass, windows_class
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.launch import Share, fold
from wgslice.plans.problem import LARGEST_BINDING_NBYTES, Table, Terms
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Memory, OnGrid, Span, way

__all__ = [
    "DROPPED",
    "Claims",
    "Dimension",
    "ElementsDispatch",
    "InsertRowsDispatch",
    "InsertWordsDispatch",
    "Request",
    "RowsDispatch",
    "WindowDispatch",
    "WindowRowsDispatch",
    "Windows",
]


DROPPED = bytes(WIDEST_NBYTES)  # fill of inserted windows whose elements outside are dropped; never read


@dataclass(frozen=True, eq=False)
class Windows:
    """Windows of one tensor: boxes of equal extents, each at offsets and in directions of its own.

    Without a fill, windows lie inside of the tensor: kernels clamp device-resident offsets. With one, they
    may leave it: elements outside read as the fill, or are not written (`DROPPED`).

    The walk through a box goes by `steps`, in each dimension forwards from its first index, or backwards from
    its last where the window's bit is set.
    """

    extents: tuple[int, ...]  # of a box, in the tensor's indices
    steps: tuple[int, ...]  # magnitudes
    flips: NDArray[np.uint32]  # (B,): bit d is set where dimension d goes backwards
    offsets: NDArray[np.int32] | None  # (B, rank), or None where the GPU has them
    offset_nbytes: int  # bytes an offset, as the kernels read it
    offset_signed: bool
    fill: bytes | None  # 16 bytes of what lies outside of the tensor; None where nothing may
    indices: bool = False  # whether negative offsets count from the end, as indices do; positions never do

    @property
    def count(self) -> int:
        """How many."""
        return len(self.flips)

    @cached_property
    def numbers(self) -> NDArray[np.uint32]:
        """Of all windows; plans hold parts of this array."""
        return np.arange(self.count, dtype=np.uint32)

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

    def starts_at_zero(self, axis: int, tensor_size: int) -> bool:
        """Whether every window begins at index 0 of a dimension: because it must, or as its offsets say."""
        if self.fill is None:
            return self.extents[axis] == tensor_size
        return self.offsets is not None and not self.offsets[:, axis].any()

    def clamp(self, axis: int, tensor_size: int) -> tuple[int, int]:
        """The offsets beyond which nothing changes: a window stays inside, or leaves the tensor for good."""
        extent = self.extents[axis]
        return (0, tensor_size - extent) if self.fill is None else (-extent, tensor_size)

    def takes_all(self, axis: int, tensor_size: int) -> bool:
        """Whether every window has all indices of a dimension."""
        return (
            self.steps[axis] == 1
            and self.extents[axis] == tensor_size
            and self.starts_at_zero(axis, tensor_size)
        )


@dataclass(frozen=True)
class Dimension:
    """One dimension of windows, as the kernels' `Windows` struct has it."""

    size: int  # indices of a window
    step: int  # of the tensor's indices
    last: int  # extent of a window in the tensor's indices, less one
    lowest: int  # least offset
    highest: int  # greatest offset
    extent: int  # indices of the tensor that are in use
    inner: int  # indices of all later dimensions together
    tensor_stride: int  # elements or bytes, as the dispatch says
    batch_stride: int = 0  # likewise; not of rows that are extracted
    first: int = 0  # indices of a window before those, where it is dealt in parts
    begin: int = 0  # indices of the tensor before those that are in use
    claim_stride: int = 0  # claims, where windows may overlap
    wrap: int = 0  # added to negative offsets

    @classmethod
    def of(cls, windows: Windows, axis: int, tensor_size: int, **others: int) -> Self:
        """A dimension of windows in a tensor of some size; others are what the windows do not say."""
        lowest, highest = windows.clamp(axis, tensor_size)
        sizes = {"size": windows.sizes[axis], "last": windows.extents[axis] - 1, "extent": tensor_size}
        begins = {"lowest": lowest, "highest": highest, "wrap": tensor_size if windows.indices else 0}
        return cls(**{**sizes, **begins, "step": windows.steps[axis], **others})


class Claims(NamedTuple):
    """Which window has the last word on each index of a tensor."""

    span: Span
    offset: int  # claims before that of the tensor's first index
    base: int  # a claim is the number of its window, and this
    memory: Memory = Memory.CLAIMS


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowDispatch(OnGrid):
    """One dispatch of a kernel that copies windows; its fields are the kernels' parameters."""

    windows: Windows
    picks: NDArray[np.uint32] | None  # numbers of the windows, where directions differ or some are left out
    first: int  # number of the first window otherwise
    table: Table | None  # the offsets, where the GPU has them
    dimensions: tuple[Dimension, ...]
    element_nbytes: int  # bytes of what keeps its order when a window goes backwards
    tensor_offset: int  # elements or bytes, as the kernel counts, from the start of the binding
    batch_offset: int  # likewise
    window_stride: int  # likewise, from one window to the next
    window_size: int  # elements or rows of a window
    claims: Claims | None = None  # that decide between windows, where these may overlap

    @property
    def shape(self) -> tuple[int, ...]:
        """Indices of a window, or of the part of it that is copied."""
        return tuple(dimension.size for dimension in self.dimensions)

    @property
    def memories(self) -> set[Memory]:
        """What it binds."""
        tables = {table.memory for table in (self.table, self.claims) if table}
        return super().memories | tables

    @property
    def work(self) -> CostClass:
        """Its cost class."""
        return windows_class(self.kernel, self.element_nbytes)

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation writes at most."""
        return self.share.each * self.kernel.unit_nbytes(self.element_nbytes)

    def __str__(self) -> str:
        windows = f"{self.share.count} windows of {self.shape}{way(self.reads, self.writes)}"
        return f"{self.name} on {windows}, {self.grid}: {self.reason}"


@dataclass(frozen=True, eq=False, kw_only=True)
class ElementsDispatch(WindowDispatch):
    """A dispatch of `window_words` or `extract_windows`, which count in elements."""

    segment: int  # elements of the source that are bound; windows read the others in another dispatch


@dataclass(frozen=True, eq=False, kw_only=True)
class RowsDispatch(WindowDispatch):
    """A dispatch that takes windows row by row, and counts in bytes."""

    channels: int  # elements an index of a row, 1 where none is mirrored
    row_nbytes: int
    mirrored: bool  # whether some row goes backwards

    @property
    def work(self) -> CostClass:
        """Its cost class, by whether rows are mirrored."""
        return windows_class(self.kernel, self.element_nbytes, mirrored=self.mirrored)


@dataclass(frozen=True, eq=False, kw_only=True)
class BlocksDispatch(RowsDispatch):
    """A dispatch that takes rows in blocks."""

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation puts together: of what may be mirrored, a block for each channel."""
        return self.share.each * WIDEST_NBYTES * self.channels


@dataclass(frozen=True, eq=False, kw_only=True)
class WindowRowsDispatch(BlocksDispatch):
    """A dispatch of `window_rows`."""

    ragged: bool  # whether some row begins or ends inside a block

    kernel: Kernel = Kernel.WINDOW_ROWS

    @property
    def work(self) -> CostClass:
        """Its cost class, by whether rows are ragged, and mirrored."""
        return windows_class(self.kernel, self.element_nbytes, ragged=self.ragged, mirrored=self.mirrored)


@dataclass(frozen=True, eq=False, kw_only=True)
class InsertRowsDispatch(BlocksDispatch):
    """A dispatch of `insert_rows`."""

    clipped: bool  # whether some row is not written, or not all of it

    kernel: Kernel = Kernel.INSERT_ROWS


@dataclass(frozen=True, eq=False, kw_only=True)
class InsertWordsDispatch(RowsDispatch):
    """A dispatch of `insert_words`."""

    ends: bool  # whether whole blocks of rows are written already

    kernel: Kernel = Kernel.INSERT_WORDS

    @property
    def work(self) -> CostClass:
        """Its cost class, by whether it takes the ends of rows alone, and whether these are mirrored."""
        return windows_class(self.kernel, self.element_nbytes, ends=self.ends, mirrored=self.mirrored)


MOST_INVOCATIONS = 2**30  # multiplications divide twice as many exactly, and a grid is rounded up


@dataclass(frozen=True, eq=False)
class Request:
    """Windows to copy between a tensor and a batch, in elements of `itemsize` from the bases of both."""

    windows: Windows
    tensor: Layout
    batch: Layout
    itemsize: int
    terms: Terms
    inserts: bool = False  # whether the batch is the input, and the tensor the output

    @property
    def tensor_name(self) -> str:
        """What callers call the tensor."""
        return "output" if self.inserts else "input"

    @property
    def batch_name(self) -> str:
        """What callers call the batch."""
        return "input" if self.inserts else "output"

    @property
    def limits(self) -> Limits:
        """The device's."""
        return self.terms.limits

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
    def most_invocations(self) -> int:
        """As many as a grid has, and can be counted."""
        limits = self.limits
        return min(limits.workgroups**2 * limits.profile.workgroup_size, MOST_INVOCATIONS)

    def share(self, count: int, invocations: int, pieces: int, each: int) -> Share:
        """The grid of so many invocations."""
        profile = self.limits.profile
        grid = *fold(-(-invocations // profile.workgroup_size), self.limits), 1
        return Share(count, False, pieces, each, profile.contiguous, profile.workgroup_size, grid)

"""Steps of plans: buffer copies, clears, and dispatches, complete but for the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from functools import cached_property
from math import prod

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.kernels import UNITS_NBYTES, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.launch import REGISTER_TILE, Share, arranged, launch_of
from wgslice.plans.profiles import CostClass, Limits, copy_class, pattern, step_of


class Memory(IntEnum):
    """A memory that a step reads or writes, by its index among the buffers of a recording."""

    INPUT = 0
    OUTPUT = 1
    OFFSETS = 2  # device-resident offsets of windows
    ZEROS = 3  # PATTERN_NBYTES of them
    STAGING = 4  # made for a recording: the staging copy
    PACKED_OFFSETS = 5  # made for a recording: offsets as kernels take them
    WINNERS = 6  # made for a recording, zeroed: winner indices
    TEXTURE = 7  # a region of a texture, given to a recording besides the buffers

    @property
    def phrase(self) -> str:
        """The memory as it is printed."""
        return {
            Memory.ZEROS: "zeros",
            Memory.STAGING: "the staging copy",
            Memory.PACKED_OFFSETS: "the packed offsets",
            Memory.WINNERS: "the winner indices",
        }.get(self, f"the {self.name.lower()}")


@dataclass(frozen=True)
class Span:
    """A range of a buffer in whole words, its start aligned as its use demands."""

    offset_nbytes: int
    nbytes: int

    def in_whole(self, unit_nbytes: int) -> Span:
        """Returns the range extended to a multiple of a unit."""
        return Span(self.offset_nbytes, -(-self.nbytes // unit_nbytes) * unit_nbytes)


@dataclass(frozen=True, eq=False)
class Places:
    """Byte offsets of rows."""

    starts: NDArray[np.int64]

    @property
    def size(self) -> int:
        """The number of offsets."""
        return self.starts.size

    def places(self) -> list[int]:
        """The offsets as a list, in order."""
        found: list[int] = self.starts.tolist()
        return found


@dataclass(frozen=True)
class BufferCopies:
    """One buffer copy of contiguous whole words for each row; layouts are of the rows' first bytes."""

    source: Layout | Places
    target: Layout | Places
    nbytes: int  # a row
    reads: Memory = Memory.INPUT
    writes: Memory = Memory.OUTPUT
    reason: str = "contiguous words on both sides"

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Byte offsets of each row on both sides, of shape `(rows, 2)`."""
        return np.stack([self.source.places(), self.target.places()], axis=-1)

    @property
    def name(self) -> str:
        """The name in a summary."""
        return "buffer copy" if self.source.size == 1 else f"{self.source.size} buffer copies"

    def __str__(self) -> str:
        sides = read_and_written(self.reads, self.writes)
        return f"{self.name} of {prefixed(self.nbytes)}{sides}, without a kernel: {self.reason}"


@dataclass(frozen=True)
class Clear:
    """Zeros written to a range of whole words of a memory, counted from its base."""

    offset_nbytes: int
    nbytes: int
    writes: Memory = Memory.OUTPUT

    name = "clear"

    def __str__(self) -> str:
        return f"clear of {prefixed(self.nbytes)}: later steps overwrite a part"


@dataclass(frozen=True)
class TextureCopy:
    """One copy between a region of a texture and rows of texels in a buffer, counted from its base."""

    size: tuple[int, int, int]  # texels: width, height, and depth or layers
    offset_nbytes: int
    row_nbytes: int  # from one row to the next, a multiple of 256
    image_rows: int  # from one layer to the next
    nbytes: int  # texels, without gaps
    reads: Memory
    writes: Memory

    @property
    def name(self) -> str:
        """The name in a summary."""
        return "buffer-to-texture copy" if self.writes is Memory.TEXTURE else "texture-to-buffer copy"

    def __str__(self) -> str:
        size = " x ".join(map(str, self.size))
        return f"{self.name}, {size} texels: buffer rows are {self.row_nbytes:,} bytes apart"


@dataclass(frozen=True, eq=False, kw_only=True)
class OnGrid:
    """A step that runs a kernel."""

    kernel: Kernel
    source_binding: Span
    target_binding: Span
    share: Share
    reason: str
    reads: Memory = Memory.INPUT
    writes: Memory = Memory.OUTPUT

    @property
    def memories(self) -> set[Memory]:
        """The memories that it binds."""
        return {self.reads, self.writes}

    @property
    def name(self) -> str:
        """The name in a summary."""
        return self.kernel.value

    @property
    def launch(self) -> str:
        """The launch configuration as it is printed."""
        groups, each = " x ".join(map(str, self.share.workgroups)), self.share.each
        unit_nbytes = WIDEST_NBYTES if self.kernel is Kernel.PIXELS else UNITS_NBYTES.get(self.kernel)
        unit = {WORD_NBYTES: "word", WIDEST_NBYTES: "vector"}.get(unit_nbytes or 0, "element")
        unit += "s" * (each != 1) + " of 16 bytes" * (unit_nbytes == WIDEST_NBYTES)
        items = f"{each} {unit} per invocation"
        if self.kernel is Kernel.REGISTER_TILES:
            items = (
                f"{each} tile{'s' * (each != 1)} of {REGISTER_TILE} x {REGISTER_TILE} elements per invocation"
            )
        if self.kernel in (Kernel.TILES, Kernel.WIDE_TILES):
            items = f"a tile of {each} x {each} elements per workgroup"
        return f"{groups} workgroups of {self.share.workgroup_size} invocations, {items}"


@dataclass(frozen=True)
class Dispatch(OnGrid):
    """One dispatch of a kernel. Layouts count elements of `width_nbytes` from the start of their binding."""

    width_nbytes: int
    source: Layout
    target: Layout
    work: CostClass

    @property
    def invocation_nbytes(self) -> float:
        """Bytes that an invocation writes at most."""
        if self.kernel in (Kernel.TILES, Kernel.WIDE_TILES):
            return self.share.each**2 * self.width_nbytes / self.share.workgroup_size
        if self.kernel is Kernel.REGISTER_TILES:
            return self.share.each * REGISTER_TILE**2 * self.width_nbytes
        if self.kernel is Kernel.PIXELS:
            return self.share.each * WIDEST_NBYTES
        return self.share.each * UNITS_NBYTES.get(self.kernel, self.width_nbytes)

    def __str__(self) -> str:
        sides = read_and_written(self.reads, self.writes)
        return f"kernel {self.name} on {self.target.sizes}{sides}, {self.launch}: {self.reason}"


def prefixed(nbytes: int) -> str:
    """Bytes with a decimal prefix, such as 3.28 MB."""
    nbytes = int(float(f"{nbytes:.3g}"))
    exponent = min((len(str(nbytes)) - 1) // 3, 4)
    return f"{nbytes / 1000**exponent:.3g} {('', 'k', 'M', 'G', 'T')[exponent]}B"


def read_and_written(reads: Memory, writes: Memory) -> str:
    """The memories that a printed step names: none for the input and the output."""
    origin = "" if reads is Memory.INPUT else f" from {reads.phrase}"
    return origin if writes is Memory.OUTPUT else f"{origin} to {writes.phrase}"


def dispatch_of(
    kernel: Kernel,
    source: Layout,
    target: Layout,
    width_nbytes: int,
    bindings: tuple[Span, Span],
    limits: Limits,
    reason: str,
    paired: bool = False,
    work: CostClass | None = None,
) -> Dispatch:
    """A dispatch of a kernel, of a known cost class if given; layouts count from their bindings."""
    if work is None:
        work = copy_class(kernel, width_nbytes, paired, pattern(source, width_nbytes), step_of(source))
    source, target = arranged(kernel, source, target, width_nbytes, limits.profile)
    if (
        kernel in (Kernel.WIDE_TILES, Kernel.PIXELS)
        or UNITS_NBYTES.get(kernel, width_nbytes) == WIDEST_NBYTES > width_nbytes
    ):
        bindings = bindings[0].in_whole(WIDEST_NBYTES), bindings[1].in_whole(WIDEST_NBYTES)
    share = launch_of(kernel, source, target, width_nbytes, limits, paired or kernel is Kernel.SUBWORD_ENDS)
    return Dispatch(
        width_nbytes,
        source,
        target,
        work,
        kernel=kernel,
        source_binding=bindings[0],
        target_binding=bindings[1],
        share=share,
        reason=reason,
    )


def row_sizes(source: Layout, target: Layout) -> tuple[int, ...]:
    """Sizes of the dimensions of rows that take one buffer copy each; () if one copies everything."""
    return () if source.is_packed and target.is_packed else target.sizes[:-1]


def row_copies(source: Layout, target: Layout, width_nbytes: int) -> BufferCopies:
    """Returns a buffer copy per contiguous row, or one of everything if both sides are packed."""
    rows = [range(size) for size in row_sizes(source, target)]
    firsts: list[int | range] = [*rows, *[0] * (target.rank - len(rows))]
    nbytes = prod(target.sizes[len(rows) :]) * width_nbytes
    source_rows, target_rows = source.select(firsts), target.select(firsts)
    return BufferCopies(in_bytes(source_rows, width_nbytes), in_bytes(target_rows, width_nbytes), nbytes)


def in_bytes(layout: Layout, width_nbytes: int) -> Layout:
    """The same places, counted in bytes."""
    strides = [stride * width_nbytes for stride in layout.strides]
    return Layout.of(layout.sizes, strides, layout.offset * width_nbytes)

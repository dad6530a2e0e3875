"""Steps of plans: buffer copies, clears, and dispatches with their launch configurations.

They are complete but for the buffers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property, lru_cache
from itertools import product
from math import gcd, prod
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wgslice.layout import Layout
from wgslice.plans.kernels import SPLITTING_ROWS, UNITS_NBYTES, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.pixels import as_pixels, as_steps, pixel_axis, pixels_of
from wgslice.plans.profiles import (
    LINE_NBYTES,
    MAX_PLANS,
    SECTOR_NBYTES,
    TILE_NBYTES,
    WAVE_LANES,
    WIDE_TILE_SIDES,
    CostClass,
    Limits,
    Profile,
    copy_class,
    pattern,
    step_of,
)


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
    PACKED = 8  # made for a recording: the tensor of windows without gaps
    WINDOW_OFFSETS = 9  # made for a recording: offsets of the windows at device-resident indices

    @property
    def phrase(self) -> str:
        """The memory as it is printed."""
        return {
            Memory.ZEROS: "zeros",
            Memory.STAGING: "the staging copy",
            Memory.PACKED_OFFSETS: "the packed offsets",
            Memory.WINNERS: "the winner indices",
            Memory.PACKED: "the packed tensor",
            Memory.WINDOW_OFFSETS: "the offsets of windows",
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

    @cached_property
    def pairs(self) -> list[list[int]]:
        """The offsets of each row as integers."""
        found: list[list[int]] = self.offsets.tolist()
        return found

    @property
    def name(self) -> str:
        """The name in a summary."""
        return "buffer copy" if self.source.size == 1 else f"{self.source.size} buffer copies"

    def __str__(self) -> str:
        sides = read_and_written(self.reads, self.writes)
        return f"{self.name} of {prefixed(self.nbytes)}{sides}, without a kernel: {self.reason}"


def copies_by_length(
    read: NDArray[np.int64], written: NDArray[np.int64], nbytes: NDArray[np.int64], reason: str
) -> Iterator[BufferCopies]:
    """Yields buffer copies between places, in bytes, together those of one length."""
    for length in np.unique(nbytes).tolist():
        alike = nbytes == length
        yield BufferCopies(Places(read[alike]), Places(written[alike]), length, reason=reason)


@dataclass(frozen=True)
class Clear:
    """Zeros written to a range of whole words of a memory, counted from its base."""

    offset_nbytes: int
    nbytes: int
    writes: Memory = Memory.OUTPUT

    name, reads = "clear", None

    def __str__(self) -> str:
        why = "for the next part" if self.writes is Memory.WINNERS else "later steps overwrite a part"
        return f"clear of {prefixed(self.nbytes)}{read_and_written(Memory.INPUT, self.writes)}: {why}"


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
    """A step that runs a kernel: one dispatch."""

    if TYPE_CHECKING:  # fields of some kinds of dispatches, properties of others

        @property
        @abstractmethod
        def work(self) -> CostClass:
            """The cost class."""

        @property
        @abstractmethod
        def invocation_nbytes(self) -> float:
            """Bytes that an invocation writes, at most or on average."""

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
        share, plural = self.share, "s" * (self.share.each != 1)
        unit_nbytes = WIDEST_NBYTES if self.kernel is Kernel.PIXELS else UNITS_NBYTES.get(self.kernel, 0)
        units = {WORD_NBYTES: f"word{plural}", WIDEST_NBYTES: f"vector{plural} of 16 bytes"}
        unit = units.get(unit_nbytes, f"element{plural}")
        if self.kernel is Kernel.REGISTER_TILES:
            unit = f"tile{plural} of {REGISTER_TILE} x {REGISTER_TILE} elements"
        items = f"{share.each} {unit} per invocation"
        if self.kernel in (Kernel.TILES, Kernel.WIDE_TILES):
            items = f"a tile of {share.each} x {share.each} elements per workgroup"
        groups = " x ".join(map(str, share.workgroups))
        return f"{groups} workgroups of {share.workgroup_size} invocations, {items}"


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
    in_units = UNITS_NBYTES.get(kernel, width_nbytes) > width_nbytes and kernel is not Kernel.SUBWORD_STEPS
    if (kernel in SPLITTING_ROWS and target.rank == 0) or (in_units and target.strides[-1:] != (1,)):
        source, target = (side.select([*map(range, side.sizes), None]) for side in (source, target))
    if kernel in TILED:
        source, target, share = launch_tiles(kernel, source, target, width_nbytes, limits)
    else:
        source, target, share = launch_rows(kernel, source, target, width_nbytes, limits, paired)
    in_vectors = UNITS_NBYTES.get(kernel, width_nbytes) == WIDEST_NBYTES > width_nbytes
    if in_vectors or kernel in (Kernel.WIDE_TILES, Kernel.PIXELS):
        bindings = bindings[0].in_whole(WIDEST_NBYTES), bindings[1].in_whole(WIDEST_NBYTES)
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


# launch configurations: how a kernel's work is laid out, and distributed over invocations


def run_nbytes(target: Layout, width_nbytes: int) -> int:
    """Bytes of the elements along the last dimension."""
    return width_nbytes * (target.sizes[-1] if target.rank else 1)


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """Returns the number of words that a target of sub-word elements touches."""
    per_word = 4 // width_nbytes
    return (target.stop - 1) // per_word - target.lowest // per_word + 1


TILE_STEPS = (1, 2, 4)  # between source elements down the columns of tiles


def tile_axis(source: Layout, target: Layout) -> int | None:
    """The dimension of the source's neighbours, or of every second or fourth; None if it is the target's."""
    if target.rank < 2 or target.strides[-1] != 1:
        return None
    found = [
        (-abs(stride), size, axis)
        for axis, (size, stride) in enumerate(zip(source.sizes, source.strides, strict=True))
        if abs(stride) in TILE_STEPS and min(size, target.sizes[-1]) >= 2
    ]
    axis = max(found)[2] if found else target.rank - 1
    nearer = axis == target.rank - 1 or 0 < abs(source.strides[-1]) <= abs(source.strides[axis])
    return None if nearer else axis


REGISTER_TILE = 4  # elements of a side of a tile that is transposed in registers


def register_tiles(source: Layout, target: Layout, axis: int, most: int) -> tuple[Layout, Layout]:
    """The same copy by tiles: its last dimensions are the tiles of an invocation, their rows and columns.

    An invocation's tiles are neighbours in the target, those of consecutive invocations in the source.
    """
    last = target.rank - 1
    source, target = (
        side.divided(last, REGISTER_TILE).divided(axis, REGISTER_TILE) for side in (source, target)
    )
    rows, columns = axis + 1, last + 2
    several = [each for each, size in enumerate(target.sizes) if size > 1 and each not in (rows, columns)]
    *_, nearest = several or [axis]  # the least stride in the target
    each = gcd(target.sizes[nearest], most)
    order = [nearest, *several[:-1], rows, columns]
    source, target = (side.permuted(order).divided(0, each) for side in (source, target))
    outer = sorted([0, *range(2, target.rank - 2)], key=lambda other: -abs(source.strides[other]))
    order = [*outer, 1, target.rank - 2, target.rank - 1]
    return source.permuted(order), target.permuted(order)


UNIT_GRIDS = {Kernel.WORD_GRID: 8, Kernel.WIDE_GRID: 4}
GRIDS = {**UNIT_GRIDS, Kernel.SHIFTED_GRID: 4}  # units per invocation, as in their files
TILED = {*GRIDS, Kernel.TILES, Kernel.WIDE_TILES, Kernel.REGISTER_TILES}


@dataclass(frozen=True)
class Tiling:
    """The order of invocations in a tile; each copies several units at equal distances."""

    lane_shift: int  # 2**lane_shift invocations are neighbours along the columns
    ahead_columns: int  # from a unit of an invocation to its next; one of these is 0
    ahead_rows: int


@lru_cache(maxsize=MAX_PLANS)
def find_grid(
    outer: tuple[int, ...], columns: int, unit_nbytes: int, each: int, workgroup_size: int, *, along: bool
) -> tuple[int, Tiling, int, int, int]:
    """The grid of the fewest workgroups, and then sectors; `along`: an invocation's units are in one row.

    It is the dimension of the planes' rows, -1 where each plane has one; their tiling; and the numbers of
    tiles across a plane, down a plane, and of all planes.
    """
    most = workgroup_size.bit_length() - 1
    enough = max(columns - 1, 0).bit_length()  # invocations for all columns
    line = (LINE_NBYTES // unit_nbytes).bit_length() - 1
    grids = []
    for axis in range(len(outer) - 1, -1, -1) if outer else [-1]:
        rows = outer[axis] if outer else 1
        planes = prod(outer) // rows
        for shift, ahead in product(range(min(most, enough, line), most + 1), (True, *[False] * (not along))):
            right, below = 1 << shift, workgroup_size >> shift
            tiling = Tiling(shift, right, 0) if ahead else Tiling(shift, 0, below)
            width, height = max(right, each * tiling.ahead_columns), max(below, each * tiling.ahead_rows)
            run = right * each if ahead and right <= WAVE_LANES else min(right, WAVE_LANES)
            across, down = -(-max(columns, 1) // width), -(-max(rows, 1) // height)
            count = planes * across * down
            sectors = count * (1 + SECTOR_NBYTES / (max(min(run, columns), 1) * unit_nbytes))
            grids.append((sectors, (axis, tiling, across, down, count)))
    return min(grids, key=lambda grid: grid[0])[1]


# Invocations per row, and units per invocation: two vectors, and the words of two.
END_PIECES = {Kernel.ROW_ENDS: (2, 1), Kernel.SUBWORD_ENDS: (8, 1)}


@dataclass(frozen=True)
class Share:
    """A launch configuration: how a kernel's work is distributed over invocations."""

    count: int  # rows, where rows are distributed; tiles; otherwise all units: elements or words
    paired: bool  # whether a row is the last two dimensions
    pieces: int  # invocations a row, or tiles next to each other in a plane; else 1
    each: int  # units per invocation: elements, words or vectors; a tile's side in elements
    contiguous: bool  # whether these are contiguous (blocked), or those of neighbouring invocations (striped)
    workgroup_size: int  # invocations
    workgroups: tuple[int, int, int]  # the grid
    row_tiles: int = 1  # below each other in a plane, where tiles are distributed
    tiling: Tiling | None = None  # of kernels whose invocations take several units of a tile

    @property
    def invocations(self) -> int:
        """Invocations of the whole grid."""
        return prod(self.workgroups) * self.workgroup_size


def launch_tiles(
    kernel: Kernel, source: Layout, target: Layout, width_nbytes: int, limits: Limits
) -> tuple[Layout, Layout, Share]:
    """Returns a copy whose planes of the last two dimensions are cut into tiles, and their launch."""
    profile, tiling = limits.profile, None
    if kernel in GRIDS:
        keys = [*[None] * (2 - target.rank), *map(range, target.sizes)]  # a plane has two dimensions
        source, target = source.select(keys), target.select(keys)
        unit_nbytes, each = UNITS_NBYTES.get(kernel, width_nbytes), GRIDS[kernel]
        columns, along = run_nbytes(target, width_nbytes) // unit_nbytes, kernel is Kernel.SHIFTED_GRID
        axis, tiling, across, down, count = find_grid(
            target.sizes[:-1], columns, unit_nbytes, each, profile.workgroup_size, along=along
        )
    else:
        found = tile_axis(source, target)
        axis = target.rank - 2 if found is None else found
    if kernel is Kernel.REGISTER_TILES:
        source, target = register_tiles(source, target, axis, profile.run_words // 2)
        *outer, each, _, _ = target.sizes
        return source, target, share_of(limits, prod(outer), 1, each, prod(outer))
    order = [*(other for other in range(target.rank - 1) if other != axis), axis, target.rank - 1]
    source, target = source.permuted(order), target.permuted(order)
    if kernel is Kernel.WIDE_TILES and source.strides[-2] < 0:  # whose vectors are read forwards
        keys = [*map(range, source.sizes[:-2]), range(source.sizes[-2])[::-1], range(source.sizes[-1])]
        source, target = source.select(keys), target.select(keys)
    if kernel not in GRIDS:
        *outer, rows, columns = target.sizes
        each = TILE_NBYTES // width_nbytes
        if kernel is Kernel.WIDE_TILES:
            rows, each = abs(source.reaches[-2]) + 1, WIDE_TILE_SIDES[width_nbytes]
        across, down = -(-columns // each), -(-rows // each)
        count = prod(outer) * across * down
    share = share_of(limits, count, across, each, count * profile.workgroup_size)
    return source, target, replace(share, contiguous=False, row_tiles=down, tiling=tiling)


def launch_rows(
    kernel: Kernel, source: Layout, target: Layout, width_nbytes: int, limits: Limits, paired: bool
) -> tuple[Layout, Layout, Share]:
    """Returns a copy by rows, or by elements, and their launch; `paired` rows are the last two dimensions."""
    profile = limits.profile
    if kernel in (Kernel.PIXELS, Kernel.SUBWORD_ENDS):
        source, target = as_pixels(source, target)
        paired = True
    if kernel is Kernel.PIXELS:
        axis = pixel_axis(source, target)
        outer, size = target.sizes[:axis], prod(target.sizes[axis:])
        row = pixels_of(source, target, width_nbytes)
        each, blocks = row.group_blocks, size * width_nbytes // WIDEST_NBYTES  # whole ones
        if row.strided:  # those that a row touches, wherever it begins
            extent = (target.sizes[-2] - 1) * row.target_step + row.channels
            blocks = (extent * width_nbytes + 2 * WIDEST_NBYTES - 2) // WIDEST_NBYTES
        pieces = -(-blocks // each)
    elif kernel is Kernel.SUBWORD_STEPS:
        source, target = as_steps(source, target, width_nbytes)
        outer, (runs, run) = target.sizes[:-2], target.sizes[-2:]
        extent = ((runs - 1) * target.strides[-2] + run) * width_nbytes
        words = (extent + 2 * WORD_NBYTES - 2) // WORD_NBYTES  # wherever the row begins
        each = min(profile.run_words, 1 << (words.bit_length() - 1))  # a power of two: few pipelines
        pieces = -(-words // each)
    elif kernel in SPLITTING_ROWS:
        outer, row_sizes = target.sizes[: -1 - paired], target.sizes[-1 - paired :]
        pieces, each = END_PIECES.get(kernel) or launch_row(kernel, prod(row_sizes), width_nbytes, profile)
    else:
        return source, target, share_of(limits, target.size, 1, 1, target.size)
    rows = prod(outer)
    return source, target, share_of(limits, rows, pieces, each, rows * pieces, paired=paired)


def share_of(
    limits: Limits, count: int, pieces: int, each: int, invocations: int, *, paired: bool = False
) -> Share:
    """Returns the launch configuration of `invocations` that copy `each` items of a row."""
    profile = limits.profile
    groups = -(-invocations // profile.workgroup_size)
    second = -(-groups // limits.workgroups)  # as small as possible
    grid = -(-groups // second), second, 1
    return Share(count, paired, pieces, each, profile.contiguous, profile.workgroup_size, grid)


def launch_row(kernel: Kernel, size: int, width_nbytes: int, profile: Profile) -> tuple[int, int]:
    """Invocations per row of `size` elements, and units per invocation: the most that every row has."""
    unit_nbytes = UNITS_NBYTES.get(kernel, width_nbytes)
    per_unit = unit_nbytes // width_nbytes
    least, most = (size - per_unit + 1) // per_unit, size // per_unit  # whole units, wherever the row begins
    words_each = profile.subword_words_each if kernel is Kernel.SUBWORD_ROWS else profile.words_each
    choices = [words * 4 // unit_nbytes for words in words_each]
    if unit_nbytes == WIDEST_NBYTES:
        choices = [profile.blocks_each]
    each = max([1, *(units for units in choices if units <= least // profile.least_pieces)])
    return -(-most // each), each

"""Which kernels exist, when each applies, and how each deals its work to invocations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.profiles import Limits, Profile

__all__ = [
    "WIDEST_NBYTES",
    "Kernel",
    "Share",
    "choose_kernel",
    "deal",
    "deal_row",
    "fold",
    "most_groups",
    "tile_axis",
    "words_spanned",
]

WIDEST_NBYTES = 16  # one vec4<u32>
TILE_NBYTES = 128  # of a side; of 16-byte elements a tile is 8 x 8, of 4-byte ones 32 x 32, in 4 KiB
SHIFTED_STEPS = (1, 2, 4)  # between source elements that wide loads bring
LEAST_NARROW_NBYTES = 7  # hold a whole word wherever they begin

# What an invocation costs beside its copying, in words. A crop of 3001 x 3001 float32 on lavapipe, Mesa 25.0
# and 22.3, ms: 4 words each 7.2 and 6.6, 8 words 5.0 and 6.0, 16 words 4.2 and 6.0, 32 words 3.8 and 6.1.
PIECE_WORDS = 3


class Kernel(Enum):
    """A kernel. Its value is the name of its file in `wgsl/`, its entry point, and its NumPy twin."""

    SLICE1 = "slice1"
    ROWS = "rows"
    WIDE_ROWS = "wide_rows"
    SHIFTED_ROWS = "shifted_rows"
    NARROW_ROWS = "narrow_rows"
    NARROW_RUNS = "narrow_runs"
    TILES = "tiles"
    EXTRACT_WINDOWS = "extract_windows"
    WINDOW_ROWS = "window_rows"

    @property
    def deals_rows(self) -> bool:
        """Whether invocations share out each row of the last dimension, or two; one must exist."""
        return self in (Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SHIFTED_ROWS, Kernel.NARROW_ROWS)

    @property
    def takes_windows(self) -> bool:
        """Whether it copies many windows, with a struct and bindings of its own."""
        return self in (Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS)

    def unit_nbytes(self, width_nbytes: int) -> int:
        """Bytes of what invocations deal with; if more than an element, the last target stride must be 1."""
        if self in (Kernel.SHIFTED_ROWS, Kernel.WINDOW_ROWS):
            return WIDEST_NBYTES
        return 4 if self in (Kernel.NARROW_ROWS, Kernel.NARROW_RUNS) else width_nbytes


@dataclass(frozen=True)
class Share:
    """How a kernel deals its work."""

    count: int  # rows, where rows are dealt; tiles; otherwise all units: elements or words
    paired: bool  # whether a row is the last two dimensions
    pieces: int  # invocations a row; 1 where rows are not dealt
    each: int  # units that an invocation takes: elements, words or blocks; a tile's side in elements
    contiguous: bool  # whether these are neighbours, or neighbouring invocations take neighbours
    workgroup_size: int  # invocations
    workgroups: tuple[int, int, int]  # the grid


def choose_kernel(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits, *, whole_vectors: bool
) -> tuple[Kernel, str]:
    """The kernel for a coalesced copy of elements of a width, and the reason.

    `whole_vectors` says whether both buffers have room for bindings of whole vectors.
    """
    profile = limits.profile
    if width_nbytes >= 4 and tile_axis(source, target, profile.least_tile) is not None:
        return Kernel.TILES, "a permuted source, through workgroup memory"
    if width_nbytes == WIDEST_NBYTES:
        return Kernel.WIDE_ROWS, "vectors of 16 bytes, row by row"
    close = target.strides[-1:] == (1,) and abs(source.strides[-1]) in SHIFTED_STEPS
    long = run_nbytes(target, width_nbytes) >= profile.least_shifted_row_nbytes
    if close and long and whole_vectors and target.is_nested:
        return (
            Kernel.SHIFTED_ROWS,
            f"steps of {source.strides[-1]}, in blocks of 16 bytes from any byte, row by row",
        )
    if width_nbytes < 4:
        return choose_narrow_kernel(target, width_nbytes, profile)
    if pairs(Kernel.ROWS, target, width_nbytes, profile):
        return Kernel.ROWS, "whole words in short runs, two dimensions a row"
    return Kernel.ROWS, "whole words, row by row"


def choose_narrow_kernel(target: Layout, width_nbytes: int, profile: Profile) -> tuple[Kernel, str]:
    """The kernel for elements of 1 and 2 bytes, and the reason."""
    if not target.is_nested:
        return Kernel.SLICE1, "narrow elements of interleaved rows, atomics"
    beside = target.strides[-1:] == (1,)
    if beside and run_nbytes(target, width_nbytes) >= profile.least_narrow_row_nbytes:
        return Kernel.NARROW_ROWS, "narrow elements, put together word by word, row by row"
    if pairs(Kernel.NARROW_ROWS, target, width_nbytes, profile):
        return Kernel.NARROW_ROWS, "narrow elements in short runs, two dimensions a row"
    if words_spanned(target, width_nbytes) > target.size:
        return Kernel.SLICE1, "narrow elements, fewer than the words they lie in, atomics"
    if target.rank == MAX_RANK and not beside:
        return Kernel.SLICE1, "narrow elements of rank 8, none beside another, atomics"
    return Kernel.NARROW_RUNS, "narrow elements in short runs, put together word by word"


def run_nbytes(target: Layout, width_nbytes: int) -> int:
    """Bytes of the elements along the last dimension."""
    return width_nbytes * (target.sizes[-1] if target.rank else 1)


def pairs(kernel: Kernel, target: Layout, width_nbytes: int, profile: Profile) -> bool:
    """Whether a kernel takes the last two dimensions as a row, the last one being short."""
    if target.rank < 2:
        return False
    run = target.sizes[-1]
    if kernel is Kernel.ROWS:
        return run * width_nbytes < profile.least_row_nbytes
    if kernel is Kernel.NARROW_ROWS:
        short = run * width_nbytes < profile.least_narrow_row_nbytes
        packed = target.strides[-2:] == (run, 1)
        return short and packed and run * target.sizes[-2] * width_nbytes >= LEAST_NARROW_NBYTES
    return False


def tile_axis(source: Layout, target: Layout, least: float) -> int | None:
    """The dimension of the source's neighbours, where it is another than the target's, and both are long."""
    if target.rank < 2 or target.strides[-1] != 1 or abs(source.strides[-1]) == 1:
        return None
    sizes = [
        (size, axis)
        for axis, (size, stride) in enumerate(zip(source.sizes, source.strides, strict=True))
        if abs(stride) == 1 and min(size, target.sizes[-1]) >= least
    ]
    return max(sizes)[1] if sizes else None


def count_tiles(target: Layout, axis: int, width_nbytes: int) -> int:
    """Tiles of the last dimension and another, over all others."""
    side = TILE_NBYTES // width_nbytes
    across, down = -(-target.sizes[-1] // side), -(-target.sizes[axis] // side)
    return target.size // target.sizes[-1] // target.sizes[axis] * across * down


def most_groups(source: Layout, target: Layout, width_nbytes: int, profile: Profile) -> int:
    """Workgroups that a copy takes, whatever kernel is chosen for it; maybe fewer."""
    axis = tile_axis(source, target, profile.least_tile) if width_nbytes >= 4 else None
    if axis is not None:
        return count_tiles(target, axis, width_nbytes)
    return -(-target.size // profile.workgroup_size)


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1


def deal(kernel: Kernel, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Deal a copy to the invocations of a kernel."""
    profile = limits.profile
    paired = pairs(kernel, target, width_nbytes, profile)
    if kernel.deals_rows:
        *outer, size = target.sizes
        if paired:
            size *= outer.pop()
        count = prod(outer)
        pieces, each = deal_row(kernel, size, width_nbytes, profile)
        invocations = count * pieces
    elif kernel is Kernel.TILES:
        pieces, each = 1, TILE_NBYTES // width_nbytes
        count = count_tiles(target, target.rank - 2, width_nbytes)
        invocations = count * profile.workgroup_size
    else:
        count = words_spanned(target, width_nbytes) if kernel is Kernel.NARROW_RUNS else target.size
        pieces, each = 1, most_each(kernel, width_nbytes, profile)
        invocations = -(-count // each)
    groups = -(-invocations // profile.workgroup_size)
    grid = *fold(groups, limits), 1
    return Share(count, paired, pieces, each, profile.contiguous, profile.workgroup_size, grid)


def deal_row(kernel: Kernel, size: int, width_nbytes: int, profile: Profile) -> tuple[int, int]:
    """Invocations a row of `size` elements, and what each takes: a power of two, for few pipelines."""
    lanes = kernel.unit_nbytes(width_nbytes) // width_nbytes
    least, most = (size - lanes + 1) // lanes, size // lanes  # whole units, wherever the row begins
    each = min(most_each(kernel, width_nbytes, profile), max(least // profile.least_pieces, 1))
    choices = [2**power for power in range(each.bit_length())]
    each = choices[-1]
    if profile.contiguous:
        words = kernel.unit_nbytes(width_nbytes) / 4
        each = min(choices, key=lambda each: -(-most // each) * (each * words + PIECE_WORDS))
    return -(-most // each), each


def most_each(kernel: Kernel, width_nbytes: int, profile: Profile) -> int:
    """Most units that an invocation takes."""
    if kernel is Kernel.SLICE1:
        return 1
    return max(profile.words_each * 4 // kernel.unit_nbytes(width_nbytes), 1)


def fold(groups: int, limits: Limits) -> tuple[int, int]:
    """Two dimensions of a grid for so many workgroups, the second as small as can be."""
    second = -(-groups // limits.workgroups)
    return -(-groups // second), second

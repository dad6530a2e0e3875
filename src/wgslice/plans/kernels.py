"""Which kernels exist, and which one a copy takes; which one windows take, `extract_windows` says."""

from __future__ import annotations

from enum import Enum

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.grids import Grid, find_grid
from wgslice.plans.pixels import are_pixels
from wgslice.plans.profiles import WIDEST_NBYTES, Limits, Profile
from wgslice.plans.rows import run_nbytes

__all__ = [
    "GRIDS",
    "SHIFTED_STEPS",
    "UNIT_GRIDS",
    "Kernel",
    "choose_kernel",
    "grid_of",
    "pairs",
    "rows_spanned",
    "tile_axis",
    "wide_tile_axis",
    "words_spanned",
]

SHIFTED_STEPS = (1, 2, 4)  # between source elements that wide loads bring
TILE_STEPS = (1, 2, 4)  # between source elements down the columns of tiles


class Kernel(Enum):
    """A kernel. Its value is the name of its file in `wgsl/`, its entry point, and its NumPy twin."""

    SLICE1 = "slice1"
    ROWS = "rows"
    WIDE_ROWS = "wide_rows"
    SHIFTED_ROWS = "shifted_rows"
    WORD_GRID = "word_grid"
    PAIR_GRID = "pair_grid"
    WIDE_GRID = "wide_grid"
    SHIFTED_GRID = "shifted_grid"
    ROW_ENDS = "row_ends"
    NARROW_ROWS = "narrow_rows"
    NARROW_ENDS = "narrow_ends"
    NARROW_RUNS = "narrow_runs"
    PIXELS = "pixels"
    TILES = "tiles"
    WIDE_TILES = "wide_tiles"
    EXTRACT_WINDOWS = "extract_windows"
    WINDOW_ROWS = "window_rows"
    WINDOW_WORDS = "window_words"

    @property
    def deals_rows(self) -> bool:
        """Whether invocations share out each row of the last dimension, or two; one must exist."""
        return self in (
            *(Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SHIFTED_ROWS),
            *(Kernel.ROW_ENDS, Kernel.NARROW_ROWS, Kernel.NARROW_ENDS),
        )

    @property
    def takes_windows(self) -> bool:
        """Whether it copies many windows, with a struct and bindings of its own."""
        return self in (Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS)

    def unit_nbytes(self, width_nbytes: int) -> int:
        """Bytes of what invocations deal with; if more than an element, the last target stride must be 1."""
        if self in (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.ROW_ENDS, Kernel.WINDOW_ROWS):
            return WIDEST_NBYTES
        return 4 if self in (Kernel.NARROW_ROWS, Kernel.NARROW_ENDS, Kernel.NARROW_RUNS) else width_nbytes


UNIT_GRIDS = {Kernel.WORD_GRID: 8, Kernel.PAIR_GRID: 8, Kernel.WIDE_GRID: 4}
GRIDS = {**UNIT_GRIDS, Kernel.SHIFTED_GRID: 4}  # with the units that a lane takes, as their files say


def grid_of(kernel: Kernel, target: Layout, width_nbytes: int, profile: Profile) -> Grid:
    """The planes and tiles of a target for a kernel that takes tiles."""
    unit_nbytes = kernel.unit_nbytes(width_nbytes)
    columns = run_nbytes(target, width_nbytes) // unit_nbytes
    along = kernel is Kernel.SHIFTED_GRID
    return find_grid(
        target.sizes[:-1], columns, unit_nbytes, GRIDS[kernel], profile.workgroup_size, along=along
    )


def fits_grid(kernel: Kernel, target: Layout, width_nbytes: int, profile: Profile) -> bool:
    """Whether a GPU takes a kernel on a grid: with no more workgroups than units one a lane would need."""
    if not profile.grids:
        return False
    units = target.size * width_nbytes // kernel.unit_nbytes(width_nbytes)
    groups = grid_of(kernel, target, width_nbytes, profile).count
    return groups <= -(-units // profile.workgroup_size)


def choose_kernel(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits, *, whole_vectors: bool
) -> tuple[Kernel, str]:
    """The kernel for a coalesced copy of elements of a width, and the reason.

    `whole_vectors` says whether both buffers have room for bindings of whole vectors.
    """
    profile = limits.profile
    if tile_axis(source, target, profile.least_tile) is not None:
        if whole_vectors and wide_tile_axis(source, target, width_nbytes, profile.least_tile) is not None:
            return Kernel.WIDE_TILES, "a permuted source, through workgroup memory, in vectors of 16 bytes"
        if width_nbytes >= 4:
            return Kernel.TILES, "a permuted source, through workgroup memory"
    on_grid = unit_grid(target, width_nbytes, profile)
    if width_nbytes == WIDEST_NBYTES:
        way = "in tiles" if on_grid else "row by row"
        return on_grid or Kernel.WIDE_ROWS, f"vectors of 16 bytes, {way}"
    if width_nbytes < 4 and whole_vectors and are_pixels(source, target, width_nbytes, profile):
        return Kernel.PIXELS, "pixels, in groups of whole blocks of 16 bytes"
    if whole_vectors and can_shift(source, target, width_nbytes, profile):
        step = source.strides[-1]
        if not (on_grid and abs(step) > 1):
            return choose_shifted_kernel(step, target, width_nbytes, profile)
    if width_nbytes < 4:
        return choose_narrow_kernel(target, width_nbytes, profile)
    if on_grid:
        return on_grid, "whole words, in tiles"
    paired = pairs(Kernel.ROWS, target, width_nbytes, profile)
    return Kernel.ROWS, "whole words, two dimensions a row" if paired else "whole words, row by row"


def can_shift(source: Layout, target: Layout, width_nbytes: int, profile: Profile) -> bool:
    """Whether rows go in blocks of 16 bytes that begin anywhere."""
    close = target.strides[-1:] == (1,) and abs(source.strides[-1]) in SHIFTED_STEPS
    return close and run_nbytes(target, width_nbytes) >= profile.least_shifted_row_nbytes and target.is_nested


def choose_shifted_kernel(
    step: int, target: Layout, width_nbytes: int, profile: Profile
) -> tuple[Kernel, str]:
    """The kernel for such rows, and the reason."""
    reason = f"steps of {step}, in blocks of 16 bytes from any byte"
    if fits_grid(Kernel.SHIFTED_GRID, target, width_nbytes, profile):
        return Kernel.SHIFTED_GRID, f"{reason}, in tiles"
    return Kernel.SHIFTED_ROWS, f"{reason}, row by row"


def unit_grid(target: Layout, width_nbytes: int, profile: Profile) -> Kernel | None:
    """The kernel that takes elements of a width in tiles of planes, where a GPU does."""
    kernel = {4: Kernel.WORD_GRID, 8: Kernel.PAIR_GRID, 16: Kernel.WIDE_GRID}.get(width_nbytes)
    if kernel is None or target.rank == 0 or not fits_grid(kernel, target, width_nbytes, profile):
        return None
    return kernel


def choose_narrow_kernel(target: Layout, width_nbytes: int, profile: Profile) -> tuple[Kernel, str]:
    """The kernel for elements of 1 and 2 bytes that are no pixels, and the reason."""
    if not target.is_nested:
        return Kernel.SLICE1, "narrow elements of interleaved rows, atomics"
    if pairs(Kernel.NARROW_ROWS, target, width_nbytes, profile):
        return Kernel.NARROW_ROWS, "narrow elements, put together word by word, two dimensions a row"
    beside = target.strides[-1:] == (1,)
    least = profile.least_narrow_row_nbytes
    if target.strides[-2:-1] in ((), target.sizes[-1:]):  # no gaps that rows must not reach into
        least = max(least, profile.least_narrow_pair_nbytes)
    if beside and run_nbytes(target, width_nbytes) >= least:
        return Kernel.NARROW_ROWS, "narrow elements, put together word by word, row by row"
    if words_spanned(target, width_nbytes) > target.size:
        return Kernel.SLICE1, "narrow elements, fewer than the words they lie in, atomics"
    if target.rank == MAX_RANK and not beside:
        return Kernel.SLICE1, "narrow elements of rank 8, none beside another, atomics"
    return Kernel.NARROW_RUNS, "narrow elements in short runs, put together word by word"


def pairs(kernel: Kernel, target: Layout, width_nbytes: int, profile: Profile) -> bool:
    """Whether a kernel takes the last two dimensions as a row, the last one being short for a profile."""
    if target.rank < 2:
        return False
    if kernel is Kernel.NARROW_ENDS:
        return True
    run = target.sizes[-1]
    if kernel is Kernel.ROWS:
        return run * width_nbytes < profile.pair_below_nbytes
    if kernel is Kernel.NARROW_ROWS:
        short = run * width_nbytes < max(profile.pair_below_nbytes, profile.least_narrow_row_nbytes)
        packed = target.strides[-2:] == (run, 1)
        return short and packed and run * target.sizes[-2] * width_nbytes >= profile.least_narrow_pair_nbytes
    return False


def tile_axis(source: Layout, target: Layout, least: float) -> int | None:
    """The dimension of the source's neighbours, or of every second or fourth of them, where both are long.

    None where it is the target's. The nearest neighbours are taken, of equally near ones the longest.
    """
    if target.rank < 2 or target.strides[-1] != 1:
        return None
    found = [
        (-abs(stride), size, axis)
        for axis, (size, stride) in enumerate(zip(source.sizes, source.strides, strict=True))
        if abs(stride) in TILE_STEPS and min(size, target.sizes[-1]) >= least
    ]
    axis = max(found)[2] if found else target.rank - 1
    nearer = axis == target.rank - 1 or 0 < abs(source.strides[-1]) <= abs(source.strides[axis])
    return None if nearer else axis


def wide_tile_axis(source: Layout, target: Layout, width_nbytes: int, least: float) -> int | None:
    """That dimension, where both sides are whole vectors of 16 bytes beside it."""
    axis = tile_axis(source, target, least)
    if axis is None:
        return None
    lowest = source.offset + min(0, source.reaches[axis])
    places = lowest, target.offset, target.sizes[-1], *target.strides[:-1]
    apart = [stride for other, stride in enumerate(source.strides) if other != axis]
    return axis if all(place * width_nbytes % WIDEST_NBYTES == 0 for place in (*places, *apart)) else None


def rows_spanned(source: Layout, axis: int) -> int:
    """Elements of the source from the first of a dimension to the last."""
    return abs(source.reaches[axis]) + 1


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1

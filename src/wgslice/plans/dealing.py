"""How a kernel deals its work to invocations."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from wgslice.layout import Layout
from wgslice.plans.grids import GRIDS, Tiling, grid_of
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.pixels import pixels_of
from wgslice.plans.profiles import TILE_NBYTES, WIDE_TILE_SIDES, Limits, Profile
from wgslice.plans.rows import words_spanned
from wgslice.plans.tiles import rows_spanned

__all__ = ["Share", "deal", "deal_row", "fold"]

END_PIECES = {Kernel.ROW_ENDS: 2, Kernel.NARROW_ENDS: 8}  # of a row: two blocks, and the words of two


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
    tiling: Tiling | None = None  # of planes, for kernels that take tiles of them


def count_tiles(target: Layout, axis: int, rows: int, side: int) -> tuple[int, int, int]:
    """Tiles of the last dimension and so many rows of another, over all others; along and down these two."""
    across, down = -(-target.sizes[-1] // side), -(-rows // side)
    return target.size // target.sizes[-1] // target.sizes[axis] * across * down, across, down


def deal(
    kernel: Kernel, source: Layout, target: Layout, width_nbytes: int, limits: Limits, paired: bool
) -> Share:
    """Deal a copy to the invocations of a kernel; `paired` says whether a row is the last two dimensions."""
    profile = limits.profile
    if kernel in GRIDS:
        return deal_tiles(kernel, target, width_nbytes, limits)
    if kernel is Kernel.WIDE_TILES:
        return deal_wide_tiles(source, target, width_nbytes, limits)
    if kernel is Kernel.PIXELS:
        return deal_pixels(source, target, width_nbytes, limits)
    if kernel.deals_rows:
        *outer, size = target.sizes
        if paired:
            size *= outer.pop()
        count = prod(outer)
        if kernel in END_PIECES:
            pieces, each = END_PIECES[kernel], 1
        else:
            pieces, each = deal_row(kernel, size, width_nbytes, profile)
        invocations = count * pieces
    elif kernel is Kernel.TILES:
        pieces, each = 1, TILE_NBYTES // width_nbytes
        count, _, _ = count_tiles(target, target.rank - 2, target.sizes[-2], each)
        invocations = count * profile.workgroup_size
    else:
        count = words_spanned(target, width_nbytes) if kernel is Kernel.NARROW_RUNS else target.size
        pieces, each = 1, profile.run_words if kernel is Kernel.NARROW_RUNS else 1
        invocations = -(-count // each)
    groups = -(-invocations // profile.workgroup_size)
    grid = *fold(groups, limits), 1
    return Share(count, paired, pieces, each, profile.contiguous, profile.workgroup_size, grid)


def deal_tiles(kernel: Kernel, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Tiles of the planes of the last two dimensions, one a workgroup."""
    grid = grid_of(kernel, target, width_nbytes, limits.profile)
    assert grid.axis == target.rank - 2
    tiling, size = grid.tiling, limits.profile.workgroup_size
    workgroups = *fold(grid.count, limits), 1
    return Share(grid.count, False, tiling.column_tiles, GRIDS[kernel], False, size, workgroups, tiling)


def deal_wide_tiles(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Square tiles of the last two dimensions, one a workgroup."""
    side, size = WIDE_TILE_SIDES[width_nbytes], limits.profile.workgroup_size
    count, across, down = count_tiles(target, target.rank - 2, rows_spanned(source, -2), side)
    tiling = Tiling(0, 0, 0, across, down)
    return Share(count, False, across, side, False, size, (*fold(count, limits), 1), tiling)


def deal_pixels(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Groups of pixels of the last two dimensions, one an invocation."""
    *outer, count, channels = target.sizes
    profile = limits.profile
    blocks = count * channels * width_nbytes // WIDEST_NBYTES
    each = pixels_of(source, target, width_nbytes).group_blocks
    pieces = -(-blocks // each)
    rows = prod(outer)
    grid = *fold(-(-rows * pieces // profile.workgroup_size), limits), 1
    return Share(rows, True, pieces, each, profile.contiguous, profile.workgroup_size, grid)


def deal_row(kernel: Kernel, size: int, width_nbytes: int, profile: Profile) -> tuple[int, int]:
    """Invocations a row of `size` elements, and the units that each takes: the most that every row has."""
    unit_nbytes = kernel.unit_nbytes(width_nbytes)
    lanes = unit_nbytes // width_nbytes
    least, most = (size - lanes + 1) // lanes, size // lanes  # whole units, wherever the row begins
    words_each = profile.narrow_words_each if kernel is Kernel.NARROW_ROWS else profile.words_each
    choices = [words * 4 // unit_nbytes for words in words_each]
    if unit_nbytes == WIDEST_NBYTES:
        choices = [profile.blocks_each]
    each = max([1, *(units for units in choices if units <= least // profile.least_pieces)])
    return -(-most // each), each


def fold(groups: int, limits: Limits) -> tuple[int, int]:
    """Two dimensions of a grid for so many workgroups, the second as small as can be."""
    second = -(-groups // limits.workgroups)
    return -(-groups // second), second

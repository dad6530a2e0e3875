"""How a plane of rows and columns is cut into tiles, one a workgroup, for GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import prod

from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import LINE_NBYTES, MOST_PLANS, SECTOR_NBYTES, WAVE_LANES, Profile
from wgslice.plans.rows import run_nbytes

__all__ = ["GRIDS", "UNIT_GRIDS", "Grid", "Tiling", "find_grid", "grid_of"]

UNIT_GRIDS = {Kernel.WORD_GRID: 8, Kernel.PAIR_GRID: 8, Kernel.WIDE_GRID: 4}
GRIDS = {**UNIT_GRIDS, Kernel.SHIFTED_GRID: 4}  # with the units that a lane takes, as their files say


@dataclass(frozen=True)
class Tiling:
    """The tiles of a plane. A lane takes several units, each some columns or rows ahead of the one before."""

    lane_shift: int  # 2**lane_shift lanes lie beside each other along the columns
    ahead_columns: int  # from one of a lane's units to its next; one of these is 0
    ahead_rows: int
    column_tiles: int  # beside each other in a plane
    row_tiles: int  # below each other

    @property
    def lanes(self) -> int:
        """Beside each other along the columns."""
        return 1 << self.lane_shift

    @property
    def count(self) -> int:
        """Tiles of a plane."""
        return self.column_tiles * self.row_tiles


@dataclass(frozen=True)
class Grid:
    """Planes of the last dimension and another, and their tiles."""

    axis: int  # the dimension whose indices are the planes' rows; -1 where each plane has one
    tiling: Tiling
    count: int  # tiles of all planes


def grid_of(kernel: Kernel, target: Layout, width_nbytes: int, profile: Profile) -> Grid:
    """The planes and tiles of a target for a kernel that takes tiles."""
    unit_nbytes = kernel.unit_nbytes(width_nbytes)
    columns = run_nbytes(target, width_nbytes) // unit_nbytes
    along = kernel is Kernel.SHIFTED_GRID
    return find_grid(
        target.sizes[:-1], columns, unit_nbytes, GRIDS[kernel], profile.workgroup_size, along=along
    )


@lru_cache(maxsize=MOST_PLANS)
def find_grid(
    outer: tuple[int, ...], columns: int, unit_nbytes: int, each: int, workgroup_size: int, *, along: bool
) -> Grid:
    """The grid that takes the fewest workgroups, and whose waves touch the fewest sectors beside their own.

    Lanes beside each other touch half a cache line where they can. `along` says that a lane's units must lie
    along the columns. The later of equally good dimensions is taken, since it is the nearest in memory.
    """
    grids = []
    for axis in range(len(outer) - 1, -1, -1) if outer else [-1]:
        rows = outer[axis] if outer else 1
        planes = prod(outer) // rows
        for run, tiling in tilings(columns, rows, unit_nbytes, each, workgroup_size, along=along):
            count = planes * tiling.count
            grids.append((count * (1 + SECTOR_NBYTES / (run * unit_nbytes)), Grid(axis, tiling, count)))
    return min(grids, key=lambda grid: grid[0])[1]


def tilings(
    columns: int, rows: int, unit_nbytes: int, each: int, workgroup_size: int, *, along: bool
) -> Iterator[tuple[int, Tiling]]:
    """Tiles of a plane, each with the units beside each other that a wave takes at once of a row."""
    most = workgroup_size.bit_length() - 1
    enough = max(columns - 1, 0).bit_length()  # lanes for all columns
    for shift in range(min(most, enough, (LINE_NBYTES // unit_nbytes).bit_length() - 1), most + 1):
        lanes, below = 1 << shift, workgroup_size >> shift
        for ahead_columns, ahead_rows in ((lanes, 0), *([] if along else [(0, below)])):
            width, height = max(lanes, each * ahead_columns), max(below, each * ahead_rows)
            run = lanes * each if ahead_columns and lanes <= WAVE_LANES else min(lanes, WAVE_LANES)
            tiling = Tiling(shift, ahead_columns, ahead_rows, tiles(columns, width), tiles(rows, height))
            yield max(min(run, columns), 1), tiling


def tiles(size: int, side: int) -> int:
    """Tiles that cover a dimension, one at least."""
    return max(-(-size // side), 1)

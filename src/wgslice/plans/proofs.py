"""Which checks of WebGPU a dispatch can do without: a proof that its kernel stays inside of its bindings.

WebGPU implementations clamp each index and count the iterations of each loop. The loops of all kernels end:
`tests/checker` executes them. Here the bytes that a kernel may access are computed from a step's layouts,
launch configuration and tables alone, as its file in `wgsl/` accesses them, and compared with the bindings,
without the code that chose these. A dispatch without a proof keeps its bounds checks. There is none of loads
that the files mark as `beyond the binding` unless they are inside after all, and none of kernels of windows,
which compute places from device-resident offsets.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from math import prod
from typing import NamedTuple

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.indexed import MAX_TABLES, Index, IndexedDispatch
from wgslice.plans.kernels import GATHERS, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.problem import LARGEST_BINDING_NBYTES, MAX_INVOCATIONS
from wgslice.plans.steps import END_PIECES, GRIDS, REGISTER_TILE, TILE_STEPS, Dispatch, OnGrid, Span


class Checks(IntEnum):
    """The checks that a module is compiled with, the fewest first."""

    NONE = 0  # every access is proven
    BOUNDS = 1  # of accesses, but no counters of loops
    ALL = 2


class Range(NamedTuple):
    """A range of bytes from the start of a binding; negative where it begins before that."""

    start: int
    stop: int

    def is_in(self, binding: Span, unit_nbytes: int) -> bool:
        """Whether the units that the range touches are whole in a binding."""
        stop = -(-self.stop // unit_nbytes) * unit_nbytes
        return self.start >= 0 and stop <= binding.nbytes <= LARGEST_BINDING_NBYTES


class Rule(NamedTuple):
    """What a kernel accesses: units, and on the source's side more than its elements."""

    unit_nbytes: int | None  # of the arrays that the kernel declares; None for elements
    holds: Callable[[Dispatch], bool]  # whether all invocations stay inside of the layouts, or return
    reads: Callable[[Dispatch], Range] | None = None  # None: the elements of the source


def needed_checks(step: OnGrid) -> Checks:
    """Returns the checks that a dispatch needs."""
    share = step.share
    if not (1 <= share.invocations < 2 * MAX_INVOCATIONS and share.each >= 1 and share.pieces >= 1):
        return Checks.BOUNDS
    proven = isinstance(step, Dispatch) and is_copy_inside(step)
    proven = proven or (isinstance(step, IndexedDispatch) and is_indexed_inside(step))
    return Checks.NONE if proven else Checks.BOUNDS


def in_bytes(layout: Layout, width_nbytes: int) -> Range:
    """Returns the bytes from the lowest element of a layout to the highest."""
    return Range(layout.lowest * width_nbytes, layout.stop * width_nbytes)


# copies between two layouts


def is_copy_inside(step: Dispatch) -> bool:
    """Whether every access of a copy between two layouts is inside of the bindings."""
    rule, source, target, width = RULES.get(step.kernel), step.source, step.target, step.width_nbytes
    if rule is None or source.sizes != target.sizes or not (target.size and target.rank <= MAX_RANK):
        return False
    unit_nbytes = rule.unit_nbytes or width
    reads = in_bytes(source, width) if rule.reads is None else rule.reads(step)
    return (
        reads.is_in(step.source_binding, unit_nbytes)
        and in_bytes(target, width).is_in(step.target_binding, unit_nbytes)
        and rule.holds(step)
    )


def copies_rows(step: Dispatch) -> bool:
    """Whether rows are the last dimension, or the last two, and contiguous pieces are not longer than a row.

    Kernels of words and of vectors write whole ones in pieces: as many as a row has wherever it begins. Those
    of ends write two ends a row, and elements for all of a word that it shares with the row before.
    """
    share, width, kernel = step.share, step.width_nbytes, step.kernel
    inner = 1 + share.paired
    if step.target.rank < inner:
        return False
    size = prod(step.target.sizes[-inner:])
    per_unit = max((RULES[kernel].unit_nbytes or width) // width, 1)
    whole_units = (size - per_unit + 1) // per_unit
    whole = share.each <= whole_units if share.contiguous else whole_units >= 1
    if kernel in END_PIECES:
        whole = size * width >= WORD_NBYTES and (share.pieces, share.each) == END_PIECES[kernel]
    packed = kernel in (Kernel.ROWS, Kernel.WIDE_ROWS) or step.target.strides[-1] == 1
    return share.count == prod(step.target.sizes[:-inner]) and whole and packed


def copies_runs(step: Dispatch) -> bool:
    """Whether rows are the last two dimensions: contiguous runs on both sides, at a positive step."""
    sizes, sides = step.target.sizes, (step.source, step.target)
    if len(sizes) < 2 or step.share.count != prod(sizes[:-2]) or step.target.strides[-2] < 0:
        return False
    return sizes[-1] == 1 or all(side.strides[-1] == 1 for side in sides)


def copies_tiles(step: Dispatch) -> bool:
    """Whether the tiles are those of the planes of the last two dimensions."""
    source, target, share = step.source, step.target, step.share
    if target.rank < 2:
        return False
    *outer, rows, columns = target.sizes
    if step.kernel is Kernel.WIDE_TILES:
        if source.strides[-2] not in TILE_STEPS or target.strides[-1] != 1:
            return False
        rows = (rows - 1) * source.strides[-2] + 1
    across, down = -(-columns // share.each), -(-rows // share.each)
    tiles = share.count, share.pieces, share.row_tiles
    return tiles == (prod(outer) * across * down, across, down)


def copies_register_tiles(step: Dispatch) -> bool:
    """Whether the last two dimensions are tiles of whole words, the one before an invocation's."""
    source, target, share = step.source, step.target, step.share
    if target.sizes[-2:] != (REGISTER_TILE, REGISTER_TILE) or target.rank < 3:
        return False
    if source.strides[-2] != 1 or target.strides[-1] != 1:
        return False
    places = source.offset, target.offset, source.strides[-1], target.strides[-2]
    apart = *places, *source.strides[:-2], *target.strides[:-2]
    whole = all(place % REGISTER_TILE == 0 for place in apart)
    return whole and share.each == target.sizes[-3] and share.count == prod(target.sizes[:-3])


def copies_grid(step: Dispatch) -> bool:
    """Whether tiles of invocations with several units are those of all planes."""
    padded, share = padded_plane(step), step.share
    *outer, rows, columns = step.target.sizes
    held = rows <= padded[0] and columns <= padded[1]
    return held and share.count == prod(outer) * share.pieces * share.row_tiles


def padded_plane(step: Dispatch) -> tuple[int, int]:
    """Returns rows and columns of a plane's tiles: invocations load also those outside of the plane."""
    tiling, share, units = step.share.tiling, step.share, GRIDS[step.kernel]
    assert tiling is not None
    columns = max(1 << tiling.lane_shift, units * tiling.ahead_columns)
    rows = max(share.workgroup_size >> tiling.lane_shift, units * tiling.ahead_rows)
    return rows * share.row_tiles, columns * share.pieces


def reads_of_grid(step: Dispatch) -> Range:
    """Returns what the tiles of all planes load."""
    plane, source = padded_plane(step), step.source
    return in_bytes(Layout.of([*source.sizes[:-2], *plane], source.strides, source.offset), step.width_nbytes)


def reads_of_blocks(step: Dispatch) -> Range:
    """Returns the vectors of the blocks that a row has, whole ones, or for ends those that it touches.

    A block of the target takes its elements from places at a distance of 1, 2 or 4 elements. At 1 the vectors
    that it touches are loaded, else always as many as it may touch.
    """
    width, elements = step.width_nbytes, in_bytes(step.source, step.width_nbytes)
    distance = abs(step.source.strides[-1])
    block_nbytes = (WIDEST_NBYTES - width) * distance + width  # in the source
    beyond_nbytes = block_nbytes - width if step.kernel is Kernel.ROW_ENDS else 0  # around an element
    start, stop = elements.start - beyond_nbytes, elements.stop + beyond_nbytes
    if distance == 1:
        return Range(start, stop)
    last = (stop - block_nbytes) // WIDEST_NBYTES + distance
    return Range(start if distance in TILE_STEPS else -1, (last + 1) * WIDEST_NBYTES)


def reads_of_steps(step: Dispatch) -> Range:
    """Returns what words of the target load: four bytes that reach into a run of several elements."""
    start, stop = in_bytes(step.source, step.width_nbytes)
    beyond = 0 if step.target.sizes[-1:] == (1,) else WORD_NBYTES - 1
    return Range(start - beyond, stop + beyond)


RULES = {
    Kernel.SLICE1: Rule(WORD_NBYTES, lambda step: step.share.count == step.target.size),
    Kernel.ROWS: Rule(None, copies_rows),
    Kernel.WIDE_ROWS: Rule(None, copies_rows),
    Kernel.SHIFTED_ROWS: Rule(WIDEST_NBYTES, copies_rows, reads_of_blocks),
    Kernel.ROW_ENDS: Rule(WIDEST_NBYTES, copies_rows, reads_of_blocks),
    Kernel.SUBWORD_ROWS: Rule(WORD_NBYTES, copies_rows),
    Kernel.SUBWORD_ENDS: Rule(WORD_NBYTES, copies_rows),
    Kernel.SUBWORD_STEPS: Rule(WORD_NBYTES, copies_runs, reads_of_steps),
    Kernel.REGISTER_TILES: Rule(WORD_NBYTES, copies_register_tiles),
    Kernel.TILES: Rule(WORD_NBYTES, copies_tiles),
    Kernel.WIDE_TILES: Rule(WIDEST_NBYTES, copies_tiles),
    Kernel.WORD_GRID: Rule(None, copies_grid, reads_of_grid),
    Kernel.WIDE_GRID: Rule(None, copies_grid, reads_of_grid),
}


# copies with indices


def is_indexed_inside(step: IndexedDispatch) -> bool:
    """Whether every access of a gather, or of a scatter to distinct indices, is inside of the bindings.

    Kernels clamp indices to their range. Surplus invocations and those behind the end of a row read indices
    beyond the table, unless pieces are contiguous.
    """
    copy, share = step.copy, step.share
    if step.winners is not None or copy.masked or len(copy.tables) > MAX_TABLES or not prod(copy.sizes):
        return False
    if share.count != prod(copy.sizes[:-1]) or len(copy.sizes) > MAX_RANK:
        return False
    in_pieces = share.contiguous and share.each <= copy.sizes[-1]
    if step.kernel is Kernel.GATHER_WORDS:
        holds, unit_nbytes = copy.target.is_packed, WORD_NBYTES
    elif step.kernel in GATHERS.values() or step.kernel is Kernel.SCATTER:
        holds, unit_nbytes = in_pieces, step.width_nbytes
    else:
        return False
    reached = with_tables(copy.indexed, copy.tables)
    read, written = (reached, copy.other) if copy.reads else (copy.other, reached)
    return (
        holds
        and copy.reads is (step.kernel is not Kernel.SCATTER)
        and in_bytes(read, step.width_nbytes).is_in(step.source_binding, unit_nbytes)
        and in_bytes(written, step.width_nbytes).is_in(step.target_binding, unit_nbytes)
        and are_indices_inside(step)
    )


def with_tables(indexed: Layout, tables: tuple[Index, ...]) -> Layout:
    """Returns a layout with a dimension for the range of each table."""
    sizes = *indexed.sizes, *(len(table.copied) for table in tables)
    first = indexed.offset + sum(table.copied.start * table.step for table in tables)
    return Layout.of(sizes, [*indexed.strides, *(table.step for table in tables)], first)


def are_indices_inside(step: IndexedDispatch) -> bool:
    """Whether the entries of all tables are in the index array, and indices are clamped to their range."""
    host, binding, index_nbytes = step.copy.host, step.table_binding, step.index_nbytes
    known = step.table is not None or (host is not None and binding.nbytes <= host.values.nbytes)
    return known and all(
        in_bytes(Layout.of(step.copy.sizes, table.strides, table.offset), index_nbytes).is_in(
            binding, max(index_nbytes, WORD_NBYTES)
        )
        and 0 <= table.copied.start < table.copied.stop <= table.extent
        and table.wrap in (0, table.extent)
        for table in step.copy.tables
    )

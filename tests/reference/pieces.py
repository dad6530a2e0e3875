"""The mapping from invocations to rows, pieces and ends of rows, as the kernels' shared files have it.

These mirror `common`, `copy` and `pieces` of `wgsl/shared/`. Everything is an array over invocations, or
over what they write. Numbers are uint32 and wrap around.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from reference.memory import Flags, Words

from wgslice.plans.steps import Share


class Pieces(NamedTuple):
    """Which piece of which row each invocation copies."""

    row: Words
    number: Words  # pieces of its row before it


class TileNumbers(NamedTuple):
    """Which tiles of which planes numbers name."""

    column: Words  # tiles before them along the columns
    row: Words  # tiles before them down the rows
    plane: Words  # planes before their own


class Edge(NamedTuple):
    """Units at ends of rows."""

    unit: Words
    row: Words
    invocation: Words  # that puts them together


class Extents(NamedTuple):
    """Rows in the target, in places: elements or bytes."""

    start: Words  # places
    stop: Words  # places
    first_unit: Words  # that holds the first place
    whole_unit: Words  # the first that is all the row's
    stop_unit: Words  # one past the last


def invocation_numbers(share: Share) -> Words:
    """All invocations of a grid, those with nothing to do included."""
    across, down, _ = share.workgroups
    return np.arange(across * down * share.workgroup_size, dtype=np.uint32)


def divide(n: Words, multiplier: np.uint32, shift: np.uint32) -> Words:
    """The kernels' division by multiplication and shift."""
    high = (n.astype(np.uint64) * multiplier >> np.uint64(32)).astype(np.uint32)
    quotient: Words = high + n >> shift
    return quotient


def find_pieces(block: np.void, share: Share, rows: int) -> Pieces:
    """The pieces of all invocations that have one; contiguous ones repeat the last where none is left."""
    invocation = invocation_numbers(share)
    row = divide(invocation, block["pieces_multiplier"], block["pieces_shift"])
    if share.contiguous:
        row = np.minimum(row, np.uint32(rows - 1))
    else:
        busy = row < rows
        invocation, row = invocation[busy], row[busy]
    last = np.uint32(share.pieces - 1)
    return Pieces(row, np.minimum(invocation - row * block["pieces"], last))


def find_tile_numbers(block: np.void, number: Words) -> TileNumbers:
    """The tiles of numbers; they go along the columns first, then down the rows, then from plane to plane."""
    rows = divide(number, block["pieces_multiplier"], block["pieces_shift"])
    planes = divide(rows, block["row_tiles_multiplier"], block["row_tiles_shift"])
    return TileNumbers(number - rows * block["pieces"], rows - planes * block["row_tiles"], planes)


def taken(share: Share, pieces: Pieces, start: Words, stop: Words) -> tuple[Words, Words]:
    """The units that pieces take of their rows' `start` to `stop`, and for each the invocation that does."""
    k = np.arange(share.each, dtype=np.uint32)
    if share.contiguous:
        each = np.uint32(share.each)
        first = start + np.minimum(pieces.number * each, stop - start - each)
        unit = first[:, None] + k
        mine = np.ones(unit.shape, bool)
    else:
        unit = (start + pieces.number)[:, None] + k * np.uint32(share.pieces)
        mine = unit < np.broadcast_to(stop, pieces.number.shape)[:, None]
    owner = np.broadcast_to(np.arange(len(unit), dtype=np.uint32)[:, None], unit.shape)
    return owner[mine], unit[mine]


def find_places(block: np.void, index: Words, dimensions: int) -> tuple[Words, Words]:
    """The source and target elements of row-major indices over the first dimensions."""
    rest = index
    source_elements = np.full_like(rest, block["source_offset"])
    target_elements = np.full_like(rest, block["target_offset"])
    for d in reversed(range(dimensions)):
        c = rest
        if d:
            rest = divide(rest, block["dimensions"]["multiplier"][d], block["dimensions"]["shift"][d])
            c = c - rest * block["dimensions"]["size"][d]
        source_elements += c * block["dimensions"]["source_stride"][d]
        target_elements += c * block["dimensions"]["target_stride"][d]
    return source_elements, target_elements


def find_extents(start: Words, size: np.uint32, places_per_unit: int) -> Extents:
    """First and last places of rows of `size` places, and their units."""
    per_unit = np.uint32(places_per_unit)
    stop = start + size
    whole_unit = (start + np.uint32(places_per_unit - 1)) // per_unit
    return Extents(start, stop, start // per_unit, whole_unit, stop // per_unit)


def find_edges(
    share: Share, pieces: Pieces, extents: Extents, places_per_unit: int, shared: Flags
) -> tuple[Words, Words]:
    """The units at the ends of rows, and for each the invocation that puts it together.

    The first piece of a row has its head, unless that is `shared` with the row before, which has it then.
    """
    head = (pieces.number == 0) & (extents.first_unit < extents.whole_unit) & ~shared
    tail = (pieces.number + np.uint32(1) == share.pieces) & (
        extents.stop_unit * np.uint32(places_per_unit) < extents.stop
    )
    owner = np.concatenate([np.flatnonzero(head), np.flatnonzero(tail)]).astype(np.uint32)
    return owner, np.concatenate([extents.first_unit[head], extents.stop_unit[tail]])

"""How much memory streaming takes: a limit as users write it, and how it is shared out."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import NamedTuple, SupportsIndex

from wgslice.arguments import integer

__all__ = ["LEAST_NBYTES", "Shares", "block_nbytes", "described_nbytes", "limit_nbytes", "shares", "slots"]

UNITS = {"": 1, "K": 1, "M": 2, "G": 3, "T": 4}  # the exponents of those that have one
LEAST_NBYTES = 2**10  # some elements of every width

# What a piece takes of the limit, in its own bytes: what is read, what decodes it, what the queue keeps of an
# upload until it is submitted, and the buffer that it lies in, each with an eighth of what lies in between.
COPIES_READ = 5
# And a tile: its buffer, the staging buffer, and an array for targets that could keep what they are given.
COPIES_WRITTEN = 3
MOST_SLOTS = 3  # one is read, one is copied on the GPU, one is written

# Bytes of a piece, where there is no reason for others. A contiguous window of a warm memory map to another,
# lavapipe of Mesa 22.3 on 2 cores of an AMD EPYC: see `docs/streaming.md`.
PIECE_NBYTES = 2**23


class Shares(NamedTuple):
    """Bytes of a piece that is read and of a tile that is written."""

    usual_nbytes: int  # as far as pieces and tiles are put together
    largest_nbytes: int  # up to which blocks are taken whole


def limit_nbytes(limit: SupportsIndex | str) -> int:
    """Bytes of a limit such as "256 MiB", "1.5GB" or a number of bytes."""
    nbytes = parsed(limit) if isinstance(limit, str) else integer("limit", limit)
    if nbytes < LEAST_NBYTES:
        raise ValueError(f"limit = {limit!r}: must be at least 1 KiB; 256 MiB is the default")
    return nbytes


def parsed(limit: str) -> int:
    """Bytes of a number with a unit: decimal ones, and with an i those of 1024."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(?:([kmgt]?)(i?)b?)\s*", limit, re.IGNORECASE)
    if found is None or (found[3] and not found[2]):
        raise ValueError(f"limit = {limit!r}: must be a number of bytes, or one with a unit, as '256 MiB'")
    number, prefix, binary = found.groups()
    base = 1024 if binary else 1000
    return int(Fraction(number) * (base ** UNITS[prefix.upper()] if prefix else 1))


def shares(limit: int, largest_buffer_nbytes: int) -> Shares:
    """How large pieces and tiles may be, by a limit in bytes and the device's largest buffer."""
    together = COPIES_READ + COPIES_WRITTEN
    largest = min(limit // together, largest_buffer_nbytes * 8 // 9 // 16 * 16)
    return Shares(max(min(largest // MOST_SLOTS, PIECE_NBYTES), min(largest, 16)), largest)


def block_nbytes(piece_nbytes: int) -> int:
    """What is uploaded of a piece at most: an eighth more where that saves a copy of its own."""
    return piece_nbytes * 9 // 8


def slots(limit: int, piece_nbytes: int, tile_nbytes: int) -> int:
    """How many pieces and tiles of these sizes may be under way at once."""
    each = COPIES_READ * piece_nbytes + COPIES_WRITTEN * tile_nbytes
    return max(1, min(MOST_SLOTS, limit // max(each, 1)))


def described_nbytes(nbytes: int) -> str:
    """Bytes as people say them."""
    for exponent, unit in reversed([*enumerate(("bytes", "KiB", "MiB", "GiB", "TiB"))]):
        if exponent and nbytes >= 1024**exponent:
            return f"{nbytes / 1024**exponent:.1f} {unit}"
    return f"{nbytes} bytes"

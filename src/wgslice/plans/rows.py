"""Rows of a target: how long they are, and whether they are whole blocks of 16 bytes."""

from __future__ import annotations

from math import prod

from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES

__all__ = ["is_ragged", "run_nbytes", "words_spanned"]


def run_nbytes(target: Layout, width_nbytes: int) -> int:
    """Bytes of the elements along the last dimension."""
    return width_nbytes * (target.sizes[-1] if target.rank else 1)


def is_ragged(target: Layout, width_nbytes: int, dimensions: int = 1) -> bool:
    """Whether some row, of so many of the last dimensions, begins or ends inside a block."""
    places = target.offset, prod(target.sizes[-dimensions:]), *target.strides[:-dimensions]
    return any(place * width_nbytes % WIDEST_NBYTES for place in places)


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1

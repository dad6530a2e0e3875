"""Which kernels exist, when each applies, and how each deals its work to invocations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from wgslice.integers import MAX_RANK
from wgslice.layout import Layout
from wgslice.profiles import Limits, Profile

__all__ = ["WIDEST_NBYTES", "Kernel", "Share", "choose_kernel", "deal", "words_spanned"]

WIDEST_NBYTES = 16  # one vec4<u32>


class Kernel(Enum):
    """A kernel. Its value is the name of its file in `wgsl/`, its entry point, and its NumPy twin."""

    SLICE1 = "slice1"
    ROWS = "rows"
    WIDE_ROWS = "wide_rows"
    NARROW_ROWS = "narrow_rows"
    RUNS = "runs"
    NARROW_RUNS = "narrow_runs"

    @property
    def deals_rows(self) -> bool:
        """Whether invocations share out each row of the last dimension, which must exist."""
        return self in (Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.NARROW_ROWS)

    @property
    def deals_words(self) -> bool:
        """Whether invocations take words of the target, several elements each, the last stride being 1."""
        return self in (Kernel.NARROW_ROWS, Kernel.NARROW_RUNS)


@dataclass(frozen=True)
class Share:
    """How a kernel deals its work."""

    count: int  # rows, where rows are dealt; otherwise all elements or words
    pieces: int  # invocations a row; 1 where rows are not dealt
    each: int  # most elements or words that an invocation takes
    contiguous: bool  # whether these are neighbours, or neighbouring invocations take neighbours
    workgroup_size: int  # invocations
    workgroups: tuple[int, int, int]  # the grid


def choose_kernel(target: Layout, width_nbytes: int, limits: Limits) -> tuple[Kernel, str]:
    """The kernel for a coalesced copy of elements of a width, and the reason."""
    run = target.sizes[-1] if target.rank else 1
    if width_nbytes >= 4:
        if run * width_nbytes < limits.profile.least_row_nbytes:
            return Kernel.RUNS, "whole words in short runs, dealt evenly"
        if width_nbytes == WIDEST_NBYTES:
            return Kernel.WIDE_ROWS, "vectors of 16 bytes, row by row"
        return Kernel.ROWS, "whole words, row by row"
    if not target.is_nested:
        return Kernel.SLICE1, "narrow elements of interleaved rows, atomics"
    contiguous = target.rank > 0 and target.strides[-1] == 1
    if contiguous and run * width_nbytes >= max(limits.profile.least_narrow_row_nbytes, 4):
        return Kernel.NARROW_ROWS, "narrow elements, put together word by word, row by row"
    if words_spanned(target, width_nbytes) > target.size:
        return Kernel.SLICE1, "narrow elements, fewer than the words they lie in, atomics"
    if target.rank == MAX_RANK and not contiguous:
        return Kernel.SLICE1, "narrow elements of rank 8, none beside another, atomics"
    return Kernel.NARROW_RUNS, "narrow elements in short runs, put together word by word"


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1


def deal(kernel: Kernel, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Deal a copy to the invocations of a kernel."""
    profile = limits.profile
    if kernel.deals_rows:
        count = prod(target.sizes[:-1])
        pieces, each = deal_row(kernel, target.sizes[-1] if target.rank else 1, width_nbytes, profile)
        invocations = count * pieces
    else:
        count = words_spanned(target, width_nbytes) if kernel.deals_words else target.size
        pieces, each = 1, most_each(kernel, width_nbytes, profile)
        invocations = -(-count // each)
    groups = -(-invocations // profile.workgroup_size)
    grid = *fold(groups, limits), 1
    return Share(count, pieces, each, profile.contiguous, profile.workgroup_size, grid)


def deal_row(kernel: Kernel, size: int, width_nbytes: int, profile: Profile) -> tuple[int, int]:
    """Invocations a row of `size` elements, and what each takes at most: as even as can be."""
    if kernel.deals_words:
        lanes = 4 // width_nbytes
        size = (size + lanes - 2) // lanes + 1  # words, wherever the row begins
    each = min(most_each(kernel, width_nbytes, profile), max(size // profile.least_pieces, 1))
    pieces = -(-size // each)
    return pieces, -(-size // pieces)


def most_each(kernel: Kernel, width_nbytes: int, profile: Profile) -> int:
    """Most elements or words that an invocation takes."""
    if kernel is Kernel.SLICE1:
        return 1
    if kernel.deals_words:
        return profile.words_each
    return max(profile.words_each * 4 // width_nbytes, 1)


def fold(groups: int, limits: Limits) -> tuple[int, int]:
    """Two dimensions of a grid for so many workgroups, the second as small as can be."""
    second = -(-groups // limits.workgroups)
    return -(-groups // second), second

"""Which kernels a copy may take, each with what makes it fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.costs import STEPS
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.pixels import are_pixels, as_pixels, pixels_of
from wgslice.plans.rows import is_ragged, run_nbytes
from wgslice.plans.tiles import tile_axis, wide_tile_axis

__all__ = ["LEAST_SHIFTED_NBYTES", "SHIFTED_STEPS", "Candidate", "candidates", "ends_of"]

SHIFTED_STEPS = tuple(STEPS)  # between source elements that wide loads bring
LEAST_SHIFTED_NBYTES = 31  # a row that holds a block of 16 bytes wherever it begins
LEAST_NARROW_NBYTES = 7  # and a word
GRID_OF_WIDTH = {4: Kernel.WORD_GRID, 8: Kernel.PAIR_GRID, 16: Kernel.WIDE_GRID}


class Candidate(NamedTuple):
    """A kernel for a copy, and why it fits."""

    kernel: Kernel
    reason: str
    paired: bool = False  # whether it takes the last two dimensions as a row


def candidates(
    source: Layout, target: Layout, width_nbytes: int, *, whole_vectors: bool
) -> Iterator[Candidate]:
    """What can do a coalesced copy of elements of a width; `slice1` does every one.

    `whole_vectors` says whether both buffers have room for bindings of whole vectors.
    """
    if tile_axis(source, target) is not None:
        if whole_vectors and wide_tile_axis(source, target, width_nbytes) is not None:
            reason = "a permuted source, through workgroup memory, in vectors of 16 bytes"
            yield Candidate(Kernel.WIDE_TILES, reason)
        if width_nbytes >= 4:
            yield Candidate(Kernel.TILES, "a permuted source, through workgroup memory")
    if whole_vectors and width_nbytes < WIDEST_NBYTES:
        yield from candidates_in_blocks(source, target, width_nbytes)
    if width_nbytes >= 4:
        yield from candidates_by_words(target, width_nbytes)
    else:
        yield from narrow_candidates(target, width_nbytes)
    yield Candidate(Kernel.SLICE1, "one element an invocation" + ", by atomics" * (width_nbytes < 4))


def candidates_in_blocks(source: Layout, target: Layout, width_nbytes: int) -> Iterator[Candidate]:
    """Kernels that put blocks of 16 bytes together of narrower elements."""
    if width_nbytes < 4 and are_pixels(source, target, width_nbytes):
        yield Candidate(Kernel.PIXELS, "pixels, in groups of whole blocks of 16 bytes")
    close = target.strides[-1:] == (1,) and abs(source.strides[-1]) in SHIFTED_STEPS
    if close and run_nbytes(target, width_nbytes) >= LEAST_SHIFTED_NBYTES and target.is_nested:
        reason = f"steps of {source.strides[-1]}, in blocks of 16 bytes from any byte"
        yield Candidate(Kernel.SHIFTED_GRID, f"{reason}, in tiles")
        yield Candidate(Kernel.SHIFTED_ROWS, f"{reason}, row by row")


def candidates_by_words(target: Layout, width_nbytes: int) -> Iterator[Candidate]:
    """Kernels that move elements of whole words."""
    units = "vectors of 16 bytes" if width_nbytes == WIDEST_NBYTES else "whole words"
    if target.rank:
        yield Candidate(GRID_OF_WIDTH[width_nbytes], f"{units}, in tiles")
    if width_nbytes == WIDEST_NBYTES:
        yield Candidate(Kernel.WIDE_ROWS, f"{units}, row by row")
        return
    yield Candidate(Kernel.ROWS, f"{units}, row by row")
    if target.rank >= 2:
        yield Candidate(Kernel.ROWS, f"{units}, two dimensions a row", paired=True)


def narrow_candidates(target: Layout, width_nbytes: int) -> Iterator[Candidate]:
    """Kernels that put words together of elements of 1 and 2 bytes."""
    if not target.is_nested:
        return
    beside = target.strides[-1:] == (1,)
    run = run_nbytes(target, width_nbytes)
    put_together = "narrow elements, put together word by word"
    packed = target.rank >= 2 and target.strides[-2:] == (target.sizes[-1], 1)
    if packed and run * target.sizes[-2] >= LEAST_NARROW_NBYTES:
        yield Candidate(Kernel.NARROW_ROWS, f"{put_together}, two dimensions a row", paired=True)
    if beside and run >= LEAST_NARROW_NBYTES:
        yield Candidate(Kernel.NARROW_ROWS, f"{put_together}, row by row")
    if target.rank < MAX_RANK or beside:
        yield Candidate(Kernel.NARROW_RUNS, "narrow elements in short runs, put together word by word")


def ends_of(kernel: Kernel, source: Layout, target: Layout, width_nbytes: int) -> Kernel | None:
    """The kernel for the blocks that rows begin and end inside of, where another leaves them out."""
    if kernel in (Kernel.SHIFTED_GRID, Kernel.SHIFTED_ROWS) and is_ragged(target, width_nbytes):
        return Kernel.ROW_ENDS
    if kernel is Kernel.PIXELS and pixels_of(*as_pixels(source, target), width_nbytes).ragged:
        return Kernel.NARROW_ENDS
    return None

"""The uniform block: one dispatch's parameters as the kernels' `Copy` struct lays them out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wgslice.integers import MAX_RANK
from wgslice.kernels import WIDEST_NBYTES, Kernel
from wgslice.layout import Layout
from wgslice.steps import Dispatch

__all__ = ["copy_dtype", "divider", "override_constants", "uniform_block"]

copy_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # elements
        ("source_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("target_strides", "<u4", MAX_RANK),  # elements
        ("multipliers", "<u4", MAX_RANK),  # of each dimension's divisor
        ("shifts", "<u4", MAX_RANK),  # bits
        ("source_offset", "<u4"),  # elements, from the start of the binding
        ("target_offset", "<u4"),  # elements, from the start of the binding
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # elements, rows, words or tiles, as the kernel says
        ("pieces", "<u4"),  # invocations a row, for kernels that deal rows
        ("pieces_multiplier", "<u4"),  # of the divisor `pieces`
        ("pieces_shift", "<u4"),  # bits
        ("unused", "<u4"),  # fills the last 16 bytes
    ]
)


def uniform_block(step: Dispatch) -> bytes:
    """The bytes that the kernel of `step` reads as its uniform block."""
    block = np.zeros((), copy_dtype)
    rank = step.target.rank
    block["sizes"][:rank] = step.target.sizes
    block["source_strides"][:rank] = wrapped_strides(step.source)
    block["target_strides"][:rank] = wrapped_strides(step.target)
    dividers = [divider(divisor) for divisor in divisors(step)]
    block["multipliers"][:rank] = [multiplier for multiplier, _ in dividers]
    block["shifts"][:rank] = [shift for _, shift in dividers]
    block["source_offset"] = step.source.offset
    block["target_offset"] = step.target.offset
    block["rank"] = rank
    block["count"] = step.share.count
    block["pieces"] = step.share.pieces
    block["pieces_multiplier"], block["pieces_shift"] = divider(step.share.pieces)
    return block.tobytes()


def override_constants(step: Dispatch) -> dict[str, int]:
    """The constants that the kernel of `step` is compiled with."""
    constants = {"workgroup_size": step.share.workgroup_size}
    if step.kernel is not Kernel.WIDE_ROWS:
        constants["element_nbytes"] = step.width_nbytes
    if step.kernel is not Kernel.SLICE1:
        constants["each"] = step.share.each
    if step.kernel not in (Kernel.SLICE1, Kernel.TILES):
        constants["contiguous"] = int(step.share.contiguous)
    if step.kernel in (Kernel.ROWS, Kernel.NARROW_ROWS):
        constants["paired"] = int(step.share.paired)
    if step.kernel is Kernel.SHIFTED_ROWS:
        places = step.target.sizes[-1], step.target.offset, *step.target.strides[:-1]
        constants["source_step"] = step.source.strides[-1]
        constants["ragged"] = int(any(place * step.width_nbytes % WIDEST_NBYTES for place in places))
    return constants


def wrapped_strides(layout: Layout) -> list[int]:
    """Strides modulo 2^32: sums of their multiples are right wherever the address itself fits 32 bits."""
    return [stride % 2**32 for stride in layout.strides]


def divisors(step: Dispatch) -> Sequence[int]:
    """What the kernel divides by in each dimension: places in the target, or indices."""
    return step.target.strides if step.kernel is Kernel.NARROW_RUNS else step.target.sizes


def divider(divisor: int) -> tuple[int, int]:
    """Multiplier and shift with `n // divisor == (n * multiplier // 2**32 + n) >> shift` for n < 2**31.

    T. Granlund and P. L. Montgomery, Division by Invariant Integers using Multiplication, 1994. A divisor of
    0, the stride of a dimension of size 1, is never divided by.
    """
    if divisor == 0:
        return 0, 0
    shift = (divisor - 1).bit_length()
    return (2**32 * (2**shift - divisor) // divisor + 1) % 2**32, shift

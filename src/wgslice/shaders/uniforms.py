"""The uniform block: one dispatch's parameters as the kernels' structs lay them out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.launch import pixels_of
from wgslice.plans.steps import Dispatch
from wgslice.shaders.modules import constants_of

__all__ = [
    "copy_dtype",
    "divider",
    "override_constants",
    "uniform_block",
]

copy_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # elements
        ("source_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("target_strides", "<u4", MAX_RANK),  # elements
        ("source_offset", "<u4"),  # elements, from the start of the binding
        ("target_offset", "<u4"),  # elements, from the start of the binding
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # elements, rows, words or tiles, as the kernel says
        ("multipliers", "<u4", MAX_RANK),  # of each dimension's divisor
        ("shifts", "<u4", MAX_RANK),  # bits
        ("pieces", "<u4"),  # invocations a row, or tiles beside each other in a plane
        ("pieces_multiplier", "<u4"),  # of the divisor `pieces`
        ("pieces_shift", "<u4"),  # bits
        ("row_tiles", "<u4"),  # tiles below each other in a plane
        ("row_tiles_multiplier", "<u4"),  # of the divisor `row_tiles`
        ("row_tiles_shift", "<u4"),  # bits
        ("across_shift", "<u4"),  # 2**across_shift invocations lie along a tile's columns
        ("ahead_columns", "<u4"),  # columns from one unit of an invocation to its next
        ("ahead_rows", "<u4"),  # rows from one unit of an invocation to its next
        ("element_bytes", "<u4"),  # bytes an element
        ("paired", "<u4"),  # 1 where a row is two dimensions
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
    block["element_bytes"] = step.width_nbytes
    block["paired"] = step.share.paired
    block["count"] = step.share.count
    block["pieces"] = step.share.pieces
    block["pieces_multiplier"], block["pieces_shift"] = divider(step.share.pieces)
    block["row_tiles"] = step.share.row_tiles
    block["row_tiles_multiplier"], block["row_tiles_shift"] = divider(step.share.row_tiles)
    if step.share.tiling is not None:
        tiling = step.share.tiling
        block["across_shift"] = tiling.lane_shift
        block["ahead_columns"], block["ahead_rows"] = tiling.ahead_columns, tiling.ahead_rows
    return block.tobytes()


# Few things are constants: each value makes another pipeline, which takes 70 to 120 ms to compile (lavapipe),
# and uniforms cost GPUs nothing. They cost CPUs where they decide how often a loop runs, since accesses in
# loops that are not unrolled are masked, and whether bytes are shifted inside of words or rows turned: on two
# cores of an AMD EPYC rows of words take 5 to 9 % longer by Mesa 22.3, second columns 2.5 times as long by
# SwiftShader, which executes both sides of what a uniform decides.
def override_constants(step: Dispatch) -> dict[str, int]:
    """The constants that the kernel of `step` is compiled with."""
    kernel, share = step.kernel, step.share
    on_cpu = kernel is Kernel.SHIFTED_ROWS and share.contiguous
    step_of_row = step.source.strides[-1] if step.source.rank else 0
    values = {
        "workgroup_size": share.workgroup_size,
        "element_bytes": step.width_nbytes,
        "each": share.each,
        "side": share.each,
        "row_step": step.source.strides[-2] if kernel is Kernel.WIDE_TILES else 1,
        "contiguous": int(share.contiguous),
        "whole_words": int(on_cpu and step.width_nbytes >= 4),
        "way": (1 if step_of_row > 0 else -1) if on_cpu else 0,
        "distance": abs(step_of_row),
    }
    if kernel is Kernel.PIXELS:
        pixels = pixels_of(step.source, step.target, step.width_nbytes)
        values |= {name: int(value) for name, value in vars(pixels).items()}
    return {name: values[name] for name in constants_of(kernel)}


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

"""The uniform block: one dispatch's parameters as the kernels' `Copy` struct lays them out."""

from __future__ import annotations

import numpy as np

from wgslice.integers import MAX_RANK
from wgslice.layout import Layout
from wgslice.plan import Dispatch

__all__ = ["copy_dtype", "uniform_block"]

copy_dtype = np.dtype(
    [
        ("sizes", "<u4", MAX_RANK),  # elements
        ("source_strides", "<u4", MAX_RANK),  # elements, modulo 2^32
        ("target_strides", "<u4", MAX_RANK),  # elements
        ("source_offset", "<u4"),  # elements, from the start of the binding
        ("target_offset", "<u4"),  # elements, from the start of the binding
        ("rank", "<u4"),  # dimensions in use
        ("count", "<u4"),  # invocations with work
    ]
)


def uniform_block(step: Dispatch) -> bytes:
    """The bytes that the kernel of `step` reads as its uniform block."""
    block = np.zeros((), copy_dtype)
    rank = step.target.rank
    block["sizes"][:rank] = step.target.sizes
    block["source_strides"][:rank] = wrapped_strides(step.source)
    block["target_strides"][:rank] = wrapped_strides(step.target)
    block["source_offset"] = step.source.offset
    block["target_offset"] = step.target.offset
    block["rank"] = rank
    block["count"] = step.count
    return block.tobytes()


def wrapped_strides(layout: Layout) -> list[int]:
    """Strides modulo 2^32: sums of their multiples are right wherever the address itself fits 32 bits."""
    return [stride % 2**32 for stride in layout.strides]

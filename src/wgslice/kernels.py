"""Which kernels exist, and when each applies."""

from __future__ import annotations

from enum import Enum

from wgslice.layout import Layout

__all__ = ["WORKGROUP_SIZE", "Kernel", "choose_kernel", "words_spanned"]

WORKGROUP_SIZE = 64  # invocations; the least that fills a wave of every GPU, and within every adapter's limit


class Kernel(Enum):
    """A kernel. Its value is the name of its file in `wgsl/`, its entry point, and its NumPy twin."""

    SLICE1 = "slice1"
    ASSEMBLE = "assemble"


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1


def choose_kernel(target: Layout, width_nbytes: int) -> tuple[Kernel, int, str]:
    """For a coalesced target: the kernel, how many invocations have work, and the reason for both."""
    if width_nbytes >= 4:
        return Kernel.SLICE1, target.size, "whole words, one invocation an element"
    if not target.is_nested:
        return Kernel.SLICE1, target.size, "narrow elements of interleaved rows, atomics"
    words = words_spanned(target, width_nbytes)
    if words > target.size:
        return Kernel.SLICE1, target.size, "narrow elements, fewer than the words they lie in, atomics"
    return Kernel.ASSEMBLE, words, "narrow elements, one invocation a word of the target"

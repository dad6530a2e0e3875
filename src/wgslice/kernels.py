"""Which kernels exist, when each applies, and how each deals its work to invocations."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import prod

from wgslice.integers import MAX_RANK
from wgslice.layout import Layout
from wgslice.profiles import Limits

__all__ = ["Kernel", "Share", "choose_kernel", "deal", "words_spanned"]


class Kernel(Enum):
    """A kernel. Its value is the name of its file in `wgsl/`, its entry point, and its NumPy twin."""

    SLICE1 = "slice1"
    ROWS = "rows"
    RUNS = "runs"
    ASSEMBLE = "assemble"


@dataclass(frozen=True)
class Share:
    """How a kernel deals its work."""

    count: int  # all of it: elements, for `rows` rows, for `assemble` words
    each: int  # what an invocation takes: elements, for `assemble` words
    step: int  # from one of these to the next
    workgroup_size: int  # invocations
    workgroups: tuple[int, int, int]  # the grid


def choose_kernel(target: Layout, width_nbytes: int, limits: Limits) -> tuple[Kernel, str]:
    """The kernel for a coalesced copy of elements of a width, and the reason."""
    if width_nbytes >= 4:
        if fills_rows(target, width_nbytes, limits):
            return Kernel.ROWS, "whole words in long rows, the grid is the shape"
        return Kernel.RUNS, "whole words in short runs, dealt evenly"
    if not target.is_nested:
        return Kernel.SLICE1, "narrow elements of interleaved rows, atomics"
    if words_spanned(target, width_nbytes) > target.size:
        return Kernel.SLICE1, "narrow elements, fewer than the words they lie in, atomics"
    if target.rank == MAX_RANK and target.strides[-1] != 1:
        return Kernel.SLICE1, "narrow elements of rank 8, none beside another, atomics"
    return Kernel.ASSEMBLE, "narrow elements, put together word by word"


def words_spanned(target: Layout, width_nbytes: int) -> int:
    """How many words lie between the first and the last byte of a target of narrow elements."""
    lanes = 4 // width_nbytes
    return (target.stop - 1) // lanes - target.lowest // lanes + 1


def fills_rows(target: Layout, width_nbytes: int, limits: Limits) -> bool:
    """Whether a grid of one row of workgroups a row of elements exists, and has little to waste."""
    if target.rank == 0:
        return False
    block = elements_each(width_nbytes, limits) * limits.profile.workgroup_size
    blocks = -(-target.sizes[-1] // block)
    filled = target.sizes[-1] / (blocks * block)
    rows = prod(target.sizes[:-1])
    return filled >= limits.profile.least_filled and blocks <= limits.workgroups >= fold(rows, limits)[1]


def elements_each(width_nbytes: int, limits: Limits) -> int:
    """Elements of whole words that an invocation takes."""
    return max(limits.profile.words_each * 4 // width_nbytes, 1)


def deal(kernel: Kernel, target: Layout, width_nbytes: int, limits: Limits) -> Share:
    """Deal a copy to the invocations of a kernel."""
    profile = limits.profile
    if kernel is Kernel.SLICE1:
        count, each, step = target.size, 1, 1
    elif kernel is Kernel.ASSEMBLE:
        count, each, step = words_spanned(target, width_nbytes), profile.words_each, profile.step
    else:
        count, each, step = target.size, elements_each(width_nbytes, limits), profile.step
    block = each * profile.workgroup_size
    if kernel is Kernel.ROWS:
        rows = prod(target.sizes[:-1])
        workgroups = -(-target.sizes[-1] // block), *fold(rows, limits)
        return Share(rows, each, step, profile.workgroup_size, workgroups)
    return Share(count, each, step, profile.workgroup_size, (*fold(-(-count // block), limits), 1))


def fold(groups: int, limits: Limits) -> tuple[int, int]:
    """Two dimensions of a grid for so many workgroups, the second as small as can be."""
    second = -(-groups // limits.workgroups)
    return -(-groups // second), second

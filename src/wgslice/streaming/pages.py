"""Pages of memory maps: brought in before they are needed, and left once they are done with.

What a process has touched of a memory map counts as its memory until it says that it is done with it, or
until the system takes it away.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["PAGE_NBYTES", "release", "touch"]

PAGE_NBYTES = 4096  # of most systems; where it is more, some pages are touched more than once


def touch(block: NDArray[Any]) -> None:
    """Have the pages of contiguous memory brought in, here rather than where they are needed next."""
    if mapped(block) is not None:
        block.reshape(-1).view(np.uint8)[::PAGE_NBYTES].max(initial=0)


def release(block: NDArray[Any]) -> None:
    """Leave the pages of a part of a memory map; they stay in the file, and come back where they are read."""
    memory = mapped(block)
    if memory is None or not block.size or not hasattr(memory, "madvise"):
        return
    start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    place = block.__array_interface__["data"][0] - start
    reaches = [(size - 1) * stride for size, stride in zip(block.shape, block.strides, strict=True)]
    low = (place + sum(reach for reach in reaches if reach < 0)) // mmap.PAGESIZE * mmap.PAGESIZE
    high = place + sum(reach for reach in reaches if reach > 0) + block.itemsize
    memory.madvise(mmap.MADV_DONTNEED, low, high - low)


def mapped(array: Any) -> mmap.mmap | None:
    """The memory map that an array is a part of, whose pages are those of its file."""
    shared = False
    while isinstance(array, np.ndarray):
        shared = shared or (isinstance(array, np.memmap) and array.mode in ("r", "r+", "w+"))
        array = array.base
    # of a map that keeps changes to itself, what is left is lost
    return array if shared and isinstance(array, mmap.mmap) else None

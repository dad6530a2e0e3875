"""Pages of memory maps: those that are needed are brought in, and left once they are done with.

What a process has touched of a memory map counts as its memory until it says that it is done with it, or
until the system takes it away. Left to itself, the system also reads what lies around a page.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
from numpy.typing import NDArray

PAGE_NBYTES = 4096  # of most systems; where it is more, some pages are read for nothing
MOST_RUNS = 2**14  # of a part that are asked for beforehand: 20 ms on 2 cores of an AMD EPYC


def fetch(part: NDArray[Any], *, wait: bool = True) -> None:
    """Have the pages of a part of a memory map brought in, and no others; at once, unless nobody waits.

    Threads that touch new pages at the same time hold each other up.
    """
    memory = mapped(part)
    if memory is None or not part.size:
        return
    first, offsets, nbytes = runs(part)
    start = place_in(memory, part) + first
    if offsets.size == 1 and wait:  # by a look at each page, here rather than where they are needed next
        np.frombuffer(memory, np.uint8, nbytes, start)[::PAGE_NBYTES].max()
    elif hasattr(memory, "madvise"):
        if offsets.size > 1:
            memory.madvise(mmap.MADV_RANDOM)  # each page is read by itself, unless it is asked for
        if offsets.size <= MOST_RUNS:
            for offset in (start + offsets).tolist():
                page = offset // mmap.PAGESIZE * mmap.PAGESIZE
                memory.madvise(mmap.MADV_WILLNEED, page, offset + nbytes - page)


def release(part: NDArray[Any]) -> None:
    """Leave the pages of a part of a memory map; they stay in the file, and come back where they are read."""
    memory = mapped(part)
    if memory is None or not part.size or not hasattr(memory, "madvise"):
        return
    first, offsets, nbytes = runs(part)
    start = place_in(memory, part) + first
    whole = start // mmap.PAGESIZE * mmap.PAGESIZE
    memory.madvise(mmap.MADV_DONTNEED, whole, start + int(offsets[-1]) + nbytes - whole)


def as_before(array: Any) -> None:
    """Let the system read around the pages of a memory map again."""
    memory = mapped(array)
    if memory is not None and hasattr(memory, "madvise"):
        memory.madvise(mmap.MADV_NORMAL)


def runs(part: NDArray[Any]) -> tuple[int, NDArray[np.int64], int]:
    """Runs of bytes that lie a page apart at least: where the first begins, each from there, and bytes."""
    dimensions = sorted((abs(stride), size) for size, stride in zip(part.shape, part.strides, strict=True))
    first = sum((size - 1) * min(stride, 0) for size, stride in zip(part.shape, part.strides, strict=True))
    nbytes, offsets = part.itemsize, np.zeros(1, np.int64)
    for stride, size in dimensions:
        if offsets.size == 1 and stride - nbytes < PAGE_NBYTES:
            nbytes += (size - 1) * stride
        else:
            offsets = (np.arange(size) * stride + offsets[:, None]).T.reshape(-1)
    return first, offsets, nbytes


def place_in(memory: mmap.mmap, part: NDArray[Any]) -> int:
    """Where the element at index 0 lies in a memory map."""
    start: int = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    place: int = part.__array_interface__["data"][0] - start
    return place


def mapped(array: Any) -> mmap.mmap | None:
    """The memory map that an array is a part of, whose pages are those of its file."""
    whole = mapping(array)
    # of a map that keeps changes to itself, what is left is lost
    if whole is None or whole.mode not in ("r", "r+", "w+"):
        return None
    assert isinstance(whole.base, mmap.mmap)
    return whole.base


def mapping(array: Any) -> np.memmap[Any, Any] | None:
    """The array of a whole memory map that an array is a part of; None for other arrays."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = array.base
    return None

"""Whether two arrays share memory, a file or a store, whichever handles they were opened by."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.streaming.pages import mapping, place_in, runs

__all__ = ["share_storage"]


class FileRange(NamedTuple):
    """Bytes of a file."""

    path: str | os.PathLike[str]
    start: int
    stop: int


def share_storage(one: Any, other: Any) -> bool:
    """Return whether bytes of one array lie in the other, between the first and the last byte of each."""
    if one is other:
        return True
    if not (isinstance(one, np.ndarray) and isinstance(other, np.ndarray)):
        location = zarr_location(one)
        return location is not None and location == zarr_location(other)
    if np.may_share_memory(one, other):
        return True
    first, second = file_range(one), file_range(other)
    if first is None or second is None or first.start >= second.stop or second.start >= first.stop:
        return False
    return same_file(first.path, second.path)


def file_range(array: NDArray[Any]) -> FileRange | None:
    """The bytes of a file that a part of a memory map spans; None for other arrays."""
    whole = mapping(array)
    if whole is None or whole.filename is None or not array.size:
        return None
    memory = whole.base
    assert isinstance(memory, mmap.mmap)
    first, offsets, nbytes = runs(array)
    mapped_from = whole.offset - whole.offset % mmap.ALLOCATIONGRANULARITY  # where NumPy lets the map begin
    start = mapped_from + place_in(memory, array) + first
    return FileRange(whole.filename, start, start + int(offsets[-1]) + nbytes)


def same_file(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    """Return whether two paths name one file; of a file that was removed its maps remain."""
    with suppress(OSError):
        return Path(one).samefile(other)
    return os.path.realpath(one) == os.path.realpath(other)


def zarr_location(array: Any) -> tuple[Any, str] | None:
    """The file system and the path of a Zarr array, equal for all of its handles; None for other arrays."""
    path = getattr(array, "store_path", None)
    if path is None:
        return None
    store = path.store
    while hasattr(store, "_store"):  # wrappers, such as one that logs
        store = store._store
    place = getattr(store, "root", None) or getattr(store, "path", None)  # of folders; archives and others
    if isinstance(place, os.PathLike):
        place = os.path.realpath(place)
    # The text of a store without a place, in memory, names the dictionary that it keeps its chunks in.
    return getattr(store, "fs", None), f"{place or store}/{path.path}".rstrip("/")

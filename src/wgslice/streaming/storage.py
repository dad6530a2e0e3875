"""Whether two arrays share memory, a buffer, a file or a store, whichever handles they were opened by."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from wgslice.streaming.pages import mapping, place_in, runs
from wgslice.tensors.tensor import Tensor

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
    if not (isinstance(one, np.ndarray | Tensor) and isinstance(other, np.ndarray | Tensor)):
        location = stored_at(one)
        return location is not None and location == stored_at(other)
    if np.may_share_memory(one, other):
        return True
    first, second = file_range(one), file_range(other)
    if first is None or second is None or first.start >= second.stop or second.start >= first.stop:
        return False
    return same_file(first.path, second.path)


def file_range(array: Any) -> FileRange | None:
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


def stored_at(array: Any) -> object:
    """Where an array of Zarr or HDF5 is stored, equal for all of its handles; None for other arrays."""
    if hasattr(getattr(array, "file", None), "filename"):
        return array.id  # HDF5's own, equal through links and files that are opened twice
    return zarr_location(array)


def zarr_location(array: Any) -> tuple[Any, str] | None:
    """The file system and the path of a Zarr array, equal for all of its handles; None for other arrays."""
    path = getattr(array, "store_path", None)
    if path is None:
        return None
    store = path.store
    while hasattr(store, "_store"):  # wrappers, such as one that logs
        store = store._store
    root = getattr(store, "root", None) or getattr(store, "path", None)  # of folders; archives and others
    # The text of a store without a root, in memory, names the dictionary that it keeps its chunks in.
    place = f"{root or store}/{path.path}".rstrip("/")
    file_system = getattr(store, "fs", None)
    if isinstance(root, os.PathLike) or is_local(file_system):
        return None, os.path.realpath(place)
    return file_system, place


def is_local(file_system: Any) -> bool:
    """Return whether a file system of fsspec is that of this machine."""
    protocol = getattr(file_system, "protocol", ())
    return "file" in ([protocol] if isinstance(protocol, str) else protocol)

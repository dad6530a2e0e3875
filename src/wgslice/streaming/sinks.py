"""Targets of a stream: array-likes that accept blocks and share no storage with the source."""

from __future__ import annotations

import mmap
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType, element_dtype
from wgslice.streaming.sources import Source, block_starts, mapping, release, runs_in
from wgslice.streaming.walk import Edges
from wgslice.tensors.placed import check_destination
from wgslice.tensors.tensor import Tensor

# In copies of more than 4 MiB, 8 MiB of a file's new pages took three times as long and 25 times as many page
# faults (glibc's `memcpy` for large copies, Linux 6.18, 2 cores of an AMD EPYC).
STRIP_NBYTES = 2**20


def tile_starts(out: Any) -> tuple[Edges, ...] | None:
    """The first index of each block of a target per dimension; blocks are its shards, if any, or chunks."""
    return block_starts(tuple(out.shape), getattr(out, "shards", None) or getattr(out, "chunks", None))


def write_tile(out: Any, target: tuple[slice, ...], tile: NDArray[Any]) -> None:
    """Write a tile, whose memory is invalid afterwards, to a box of an array-like."""
    if isinstance(out, np.ndarray):
        where: tuple[Any, ...] = (*target, ...)  # a view, also without dimensions
        part = out[where]
        copy_in_strips(part, tile)
        release(part)
    else:
        out[target] = tile.copy()  # the array may keep a reference


def copy_in_strips(part: NDArray[Any], tile: NDArray[Any]) -> None:
    """Copy in strips of at most STRIP_NBYTES."""
    if tile.nbytes <= STRIP_NBYTES:
        np.copyto(part, tile)
        return
    axis = next(axis for axis, size in enumerate(tile.shape) if size > 1)
    for halves in zip(np.array_split(part, 2, axis), np.array_split(tile, 2, axis), strict=True):
        copy_in_strips(*halves)


def check_target(out: Any, shape: tuple[int, ...], dtype: DType, source: Source) -> None:
    """Raise if `out` cannot receive the result or overlaps the source."""
    if not all(hasattr(out, name) for name in ("shape", "dtype", "__setitem__")):
        raise TypeError(
            f"out is of type {type(out).__name__}: must have shape and dtype and accept blocks by "
            "out[slices] = block, as arrays of NumPy, Zarr and HDF5 do, or be a Tensor"
        )
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}, the result {shape}: they must be equal")
    if element_dtype(out.dtype) != dtype:
        raise TypeError(
            f"out has dtype {out.dtype}, the result {dtype}: they must be equal; dtype= casts blocks"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out cannot be written: a memory map is opened for writing by the mode 'r+'")
    if share_storage(out, source.array):
        raise ValueError(
            "out overlaps the source in memory, or in its file or store: elements would be overwritten "
            "before they are read; pass an out that does not"
        )
    if isinstance(out, Tensor):
        check_destination(out, dtype, "out")


def share_storage(one: Any, other: Any) -> bool:
    """Whether two arrays share storage: their byte ranges overlap, or their stores are the same."""
    if one is other:
        return True
    if not (isinstance(one, np.ndarray | Tensor) and isinstance(other, np.ndarray | Tensor)):
        location = stored_at(one)
        return location is not None and location == stored_at(other)
    if np.may_share_memory(one, other):
        return True
    first, second = file_range(one), file_range(other)
    if first is None or second is None:
        return False
    (path, start, stop), (other_path, other_start, other_stop) = first, second
    if start >= other_stop or other_start >= stop:
        return False
    with suppress(OSError):  # a deleted file can still be mapped
        return Path(path).samefile(other_path)
    return os.path.realpath(path) == os.path.realpath(other_path)


def file_range(array: Any) -> tuple[str | os.PathLike[str], int, int] | None:
    """The file of a part of a memory map, its first byte in that file and one past its last."""
    whole = mapping(array)
    if whole is None or whole.filename is None or not array.size:
        return None
    assert isinstance(whole.base, mmap.mmap)
    starts, nbytes = runs_in(whole.base, array)
    mapped_from = whole.offset - whole.offset % mmap.ALLOCATIONGRANULARITY  # NumPy aligns maps so
    return whole.filename, mapped_from + int(starts[0]), mapped_from + int(starts[-1]) + nbytes


def stored_at(array: Any) -> object:
    """A key of the storage of a Zarr or HDF5 array, equal for all of its handles; None for other arrays."""
    if hasattr(getattr(array, "file", None), "filename"):
        return array.id  # equal through links and for files that are opened twice
    path = getattr(array, "store_path", None)
    if path is None:
        return None
    store = path.store
    while hasattr(store, "_store"):  # wrappers, such as one that logs
        store = store._store
    root = getattr(store, "root", None) or getattr(store, "path", None)  # folders; archives and others
    # The string of an in-memory store, which has no root, identifies its dictionary.
    place = f"{root or store}/{path.path}".rstrip("/")
    file_system = getattr(store, "fs", None)  # of fsspec
    protocol = getattr(file_system, "protocol", ())
    is_local = "file" in ([protocol] if isinstance(protocol, str) else protocol)
    if isinstance(root, os.PathLike) or is_local:
        return None, os.path.realpath(place)
    return file_system, place

"""What is streamed into: any array-like that takes blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType, native_dtype
from wgslice.streaming.pages import release
from wgslice.streaming.sources import Source, block_starts
from wgslice.streaming.storage import share_storage
from wgslice.streaming.walk import Edges
from wgslice.tensors.placed import check_destination
from wgslice.tensors.tensor import Tensor

__all__ = ["STRIP_NBYTES", "Sink", "check_target", "copy_in_strips"]

STRIP_NBYTES = 2**20


@dataclass(frozen=True)
class Sink:
    """An array-like to write tiles into, by one thread."""

    array: Any

    @property
    def starts(self) -> tuple[Edges, ...] | None:
        """Where its blocks begin, where it has such: of shards where chunks lie together in one."""
        chunks = getattr(self.array, "shards", None) or getattr(self.array, "chunks", None)
        return block_starts(tuple(self.array.shape), chunks)

    def write(self, target: tuple[slice, ...], tile: NDArray[Any]) -> None:
        """Write a tile, whose memory is gone afterwards."""
        if isinstance(self.array, np.ndarray):
            where: tuple[Any, ...] = (*target, ...)  # a view, also without dimensions
            part = self.array[where]
            copy_in_strips(part, tile)
            release(part)
        else:
            self.array[target] = tile.copy()  # it may be kept


def copy_in_strips(part: NDArray[Any], tile: NDArray[Any]) -> None:
    """Copy, little by little.

    By more than 4 MiB at once, 8 MiB of a file's new pages took three times as long and 25 times as many page
    faults (glibc's `memcpy` for large copies, Linux 6.18, 2 cores of an AMD EPYC).
    """
    rows = max(STRIP_NBYTES * len(tile) // max(tile.nbytes, 1), 1) if tile.ndim else 1
    if tile.nbytes <= STRIP_NBYTES:
        np.copyto(part, tile)
    elif rows == 1 and tile.ndim > 1:
        for of_part, of_tile in zip(part, tile, strict=True):
            copy_in_strips(of_part, of_tile)
    else:
        for start in range(0, len(tile), rows):
            np.copyto(part[start : start + rows], tile[start : start + rows])


def check_target(out: Any, shape: tuple[int, ...], dtype: DType, source: Source) -> None:
    """Refuse what cannot take a result, or is what it is read from."""
    if not all(hasattr(out, name) for name in ("shape", "dtype", "__setitem__")):
        raise TypeError(
            f"out is of type {type(out).__name__}: must have shape and dtype and take blocks by "
            "out[slices] = block, as arrays of NumPy, Zarr and HDF5 do, or be a Tensor"
        )
    if tuple(out.shape) != shape:
        raise ValueError(f"out has shape {tuple(out.shape)}, the result {shape}: they must be equal")
    if native_dtype(np.dtype(out.dtype)) != dtype:
        raise TypeError(
            f"out has dtype {out.dtype}, the source {dtype}: a slice moves bits, so they must be equal"
        )
    if isinstance(out, np.ndarray) and not out.flags.writeable:
        raise ValueError("out cannot be written: a memory map is opened for writing by the mode 'r+'")
    if share_storage(out, source.array):
        raise ValueError(
            "out overlaps the source in memory, or in its file or store: elements would be overwritten "
            "before they are read; give an out of its own"
        )
    if isinstance(out, Tensor):
        check_destination(out)

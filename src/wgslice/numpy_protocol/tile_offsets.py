"""Where tiles begin that cover a tensor: what windows of a large image are cut from, and put back into."""

from __future__ import annotations

from collections.abc import Iterable
from typing import SupportsIndex

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I32_MAX, checked_shape, one_or_more
from wgslice.errors import named

__all__ = ["tile_offsets"]


def tile_offsets(
    shape: SupportsIndex | Iterable[SupportsIndex],
    tile: SupportsIndex | Iterable[SupportsIndex],
    overlap: SupportsIndex | Iterable[SupportsIndex] = 0,
) -> NDArray[np.int64]:
    """Tell where tiles begin that cover a tensor: the offsets of `extract_windows` and `insert_windows`.

    Parameters
    ----------
    shape : int or sequence of int
        Sizes of the tensor, 0 to 8 of them.
    tile : int or sequence of int
        Sizes of a tile, at least 1: of each dimension, or one for all.
    overlap : int or sequence of int, optional
        Elements that a tile has in common with the next, at least 0 and less than its size, likewise.

    Returns
    -------
    numpy.ndarray
        int64, (tiles, rank): the first element of each tile, row-major. The last one along a dimension
        sticks out where the sizes do not go into each other, which `extract_windows` takes with `fill`, and
        `insert_windows` with `outside="drop"`. None sticks out by as much as would make it superfluous; of a
        tensor without elements there are none.

    Raises
    ------
    TypeError, ValueError
        What is given is no integers, not of the tensor's rank, or breaks one of these rules.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.tile_offsets((4, 7), tile=(4, 3)).tolist()
    [[0, 0], [0, 3], [0, 6]]
    >>> wg.tile_offsets(7, tile=3, overlap=1).tolist()
    [[0], [2], [4]]
    """
    with named("tile_offsets"):
        sizes = checked_shape(shape)
        tiles, shared = each("tile", tile, len(sizes)), each("overlap", overlap, len(sizes))
        for axis, (size, common) in enumerate(zip(tiles, shared, strict=True)):
            if not 1 <= size <= I32_MAX:
                raise ValueError(f"tile[{axis}] = {size}: must be an i32 of at least 1")
            if not 0 <= common < size:
                raise ValueError(
                    f"overlap[{axis}] = {common}: must be 0 to {size - 1}, less than tile[{axis}]"
                )
    starts = []
    for size, length, common in zip(sizes, tiles, shared, strict=True):
        step = length - common
        count = -(-max(size - common, 1) // step) if size else 0
        starts.append(np.arange(count, dtype=np.int64) * step)
    grid = np.meshgrid(*starts, indexing="ij")
    return np.stack([axis.ravel() for axis in grid], axis=1) if grid else np.zeros((1, 0), np.int64)


def each(name: str, value: SupportsIndex | Iterable[SupportsIndex], rank: int) -> tuple[int, ...]:
    """One integer for each dimension."""
    values = one_or_more(name, value)
    if isinstance(value, Iterable):
        if len(values) != rank:
            raise ValueError(f"{name} {values}: must be one integer, or {rank}, one for each dimension")
        return values
    return values * rank

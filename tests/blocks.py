"""Array-likes in blocks that remember what was read and written."""

from __future__ import annotations

import threading
from itertools import pairwise, product
from typing import Any

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices
from numpy.typing import NDArray

__all__ = ["Blocks", "chunked", "numbered", "streams", "whole"]


class Blocks:
    """An array with chunks, of equal sizes or not, that reads and writes parts as Zarr's do."""

    def __init__(self, array: NDArray[Any], chunks: tuple[Any, ...] | None) -> None:
        self.array = array
        self.shape, self.dtype, self.chunks = array.shape, array.dtype, chunks
        self.read: list[tuple[slice, ...]] = []
        self.written: list[tuple[slice, ...]] = []
        self.threads: set[int] = set()

    def __getitem__(self, key: tuple[slice, ...]) -> NDArray[Any]:
        assert all(part.step > 0 for part in key)
        self.read.append(key)
        part: NDArray[Any] = self.array[whole(key)].copy()
        return part

    def __setitem__(self, key: tuple[slice, ...], value: NDArray[Any]) -> None:
        self.written.append(key)
        self.threads.add(threading.get_ident())
        self.array[whole(key)] = value

    def touched(self, key: tuple[slice, ...]) -> list[tuple[int, ...]]:
        """The blocks that a box has elements of."""
        assert self.chunks is not None
        return [*product(*map(self._of_dimension, key, self.shape, self.chunks))]

    def _of_dimension(self, part: slice, size: int, chunks: Any) -> list[int]:
        ends = np.cumsum(chunks) if isinstance(chunks, tuple) else np.arange(chunks, size + chunks, chunks)
        found: list[int] = np.unique(np.searchsorted(ends, np.arange(size)[part], side="right")).tolist()
        return found

    def block_nbytes(self) -> int:
        """Of the largest block."""
        assert self.chunks is not None
        sizes = [max(each) if isinstance(each, tuple) else each for each in self.chunks]
        return int(np.prod(sizes, dtype=int)) * self.dtype.itemsize


def whole(key: tuple[slice, ...]) -> tuple[Any, ...]:
    """A key that gives an array also where there is no dimension left."""
    return (*key, ...)


def numbered(shape: tuple[int, ...], dtype: Any = np.uint32) -> NDArray[Any]:
    """Elements that all differ."""
    return np.arange(1, 1 + int(np.prod(shape, dtype=int)), dtype=dtype).reshape(shape)


@st.composite
def chunked(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[Any, ...] | None:
    """Chunks of a shape: equal, as Zarr has them, of any sizes, as Dask has them, or none."""
    kind = draw(st.sampled_from(["none", "equal", "any"]))
    if kind == "none" or not shape:
        return None
    if kind == "equal":
        return tuple(draw(st.integers(1, size + 1)) for size in shape)
    found = []
    for size in shape:
        edges = draw(st.sets(st.integers(1, max(size - 1, 1)), max_size=3))
        edges_of_all = sorted({0, size, *(edge for edge in edges if edge < size)})
        found.append(tuple(b - a for a, b in pairwise(edges_of_all)))
    return tuple(found)


@st.composite
def streams(draw: st.DrawFn) -> tuple[Blocks, Any, Blocks]:
    """A source, a basic index of it, and a target full of zeros, each in blocks or not."""
    shape = draw(array_shapes(min_dims=1, max_dims=3, max_side=17))
    key = draw(basic_indices(shape, min_dims=0, max_dims=5, allow_newaxis=True, allow_ellipsis=True))
    source = numbered(shape)
    result = source[key].shape
    target = np.zeros(result, source.dtype)
    return Blocks(source, draw(chunked(shape))), key, Blocks(target, draw(chunked(result)))

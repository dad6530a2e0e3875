"""Sources of a stream: the blocks of an array-like, how they are read, and the pages of memory maps.

Touched pages of a memory map count as memory of the process until they are released or evicted. By default
the system also reads pages around a touched one.
"""

from __future__ import annotations

import mmap
from collections.abc import Sequence
from itertools import accumulate
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wgslice.dialects.basic import Selection
from wgslice.dtypes import AnyDType, DType, element_dtype, native_array
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.streaming.walk import Dimension, Edges, Piece, Shares, Walk, block_nbytes, blocks_touched, counts
from wgslice.tensors.placed import check_no_path, check_no_sequence
from wgslice.tensors.tensor import Tensor

PAGE_NBYTES = 4096  # of most systems; with larger pages, some are read in vain
MAX_RUNS = 2**14  # of a part that are prefetched: 20 ms on 2 cores of an AMD EPYC


class Block(NamedTuple):
    """The bytes of a box, and the layout of its elements in them."""

    data: NDArray[np.uint8]
    layout: Layout
    part: NDArray[Any] | None = None  # the box itself, unless the bytes are a copy

    @classmethod
    def in_place(cls, part: NDArray[Any]) -> Block | None:
        """The memory that a box spans, gaps included, or None if the gaps are too large."""
        first, offsets, nbytes = runs(part)
        aligned = all(stride % part.itemsize == 0 for stride in part.strides)
        if offsets.size > 1 or nbytes > block_nbytes(part.nbytes) or not (aligned and part.dtype.isnative):
            return None
        lowest = part[tuple(slice(-1, None) if stride < 0 else slice(1) for stride in part.strides)]
        data: NDArray[np.uint8] = as_strided(
            lowest.reshape(-1)[:1].view(np.uint8), (nbytes,), (1,), writeable=False
        )
        steps = [stride // part.itemsize for stride in part.strides]
        return cls(data, Layout.of(part.shape, steps, -first // part.itemsize), part)

    @classmethod
    def copied(cls, part: NDArray[Any], order: Sequence[int]) -> Block:
        """A copy, row-major in the dimensions of `order` and in native byte order."""
        ordered = native_array(part.transpose(order)).reshape(-1)
        packed = Layout.packed([part.shape[axis] for axis in order])
        layout = packed.permuted([order.index(axis) for axis in range(len(order))])
        return cls(ordered.view(np.uint8), layout)


class Source:
    """An array-like to read boxes of; converted to an array unless it has shape, dtype and indexing.

    Some array-likes scale what they read, so that their own dtype is that of the file, not of their elements.
    """

    def __init__(self, array: Any, dtype: AnyDType = None) -> None:
        if not all(hasattr(array, name) for name in ("shape", "dtype", "__getitem__")):
            check_no_sequence(array)
            check_no_path("source", array)
            array = np.asarray(array)
        if array.shape is None:
            raise ValueError(
                "the source has shape None, as empty datasets of HDF5: it has no elements to slice"
            )
        self.array = array
        self.shape = tuple(map(int, array.shape))
        # For each dimension the first index of each block; None without blocks.
        self.starts = block_starts(self.shape, getattr(array, "chunks", None))
        self.read_dtype = element_dtype(self._first_dtype())
        self.casts = dtype is not None  # what is read, to another dtype
        self.dtype = self.read_dtype if dtype is None else element_dtype(dtype)
        if self.starts is None:
            self._check_dtype(self.read_dtype)
        # Absolute strides in bytes, in the file or memory of the source.
        if isinstance(array, np.ndarray):
            self.strides = [abs(stride) for stride in array.strides]
        else:
            self.strides = [stride * self.read_dtype.itemsize for stride in Layout.packed(self.shape).strides]
        # The dimensions in descending order of their strides.
        self.order = sorted(range(len(self.shape)), key=lambda axis: -self.strides[axis])

    def _first_dtype(self) -> DType:
        """The dtype of one element that is read; arrays in blocks are trusted, to read no block twice."""
        if self.starts is not None or isinstance(self.array, np.ndarray | Tensor):
            return cast("DType", np.dtype(self.array.dtype))
        first: NDArray[Any] = np.asarray(self.array[tuple(slice(0, min(size, 1), 1) for size in self.shape)])
        return first.dtype

    def _check_dtype(self, dtype: DType) -> None:
        """Raise unless elements of a dtype that was read are those of the result, or are cast to them."""
        if self.casts and not np.can_cast(dtype, self.dtype, "same_kind"):
            raise TypeError(
                f"dtype = {self.dtype}: NumPy's rule 'same_kind' does not cast to it the source's {dtype}"
            )
        if not self.casts and element_dtype(dtype) != self.dtype:
            raise TypeError(
                f"the source returned dtype {dtype}: must be {self.dtype}, as it named or returned first; "
                f"dtype={dtype.name!r} accepts both"
            )

    def read(self, piece: Piece) -> Block:
        """Read a box for upload."""
        part = self._part(piece)
        fetch(part)
        part = self._cast(part)
        block = Block.in_place(part)
        if block is None:
            block = Block.copied(part, self.order)
            release(part)
        return block

    def read_plain(self, piece: Piece) -> NDArray[Any]:
        """Read a box that is written without a GPU."""
        part = self._part(piece)
        fetch(part, wait=False)
        return self._cast(part)

    def _part(self, piece: Piece) -> NDArray[Any]:
        """Index the source by a box, and check the result: a view for arrays in memory."""
        given = self.array[piece.box]
        with named("stream"):
            if np.ma.is_masked(given):
                raise ValueError(
                    f"the source returned masked elements for the key {piece.box}: a result has no mask; "
                    "variable.set_auto_mask(False) makes netCDF4 return what is stored, and "
                    "array.filled(value) replaces masked elements"
                )
            part = np.asarray(given)
            if part.shape != piece.sizes:
                raise ValueError(
                    f"the source returned shape {part.shape} for the key {piece.box}: must be "
                    f"{piece.sizes}, as its own shape is {self.shape}"
                )
            self._check_dtype(part.dtype)
        return part

    def _cast(self, part: NDArray[Any]) -> NDArray[Any]:
        """Cast a part to the dtype of the result; byte order stays for copies to convert."""
        if element_dtype(part.dtype) == self.dtype:
            return part
        converted = part.astype(self.dtype)
        release(part)
        return converted

    def walk(self, selection: Selection, tiles: Sequence[Edges] | None, shares: Shares) -> Walk:
        """The walk of a window, not empty, into a target with block edges `tiles`."""
        of_result = iter(tiles or ())
        dimensions: list[Dimension] = []
        for item in selection.items:
            edges = None if isinstance(item, int) else next(of_result, None)
            if item is not None:
                dimensions.append(self._dimension(len(dimensions), item, edges))
        read_nbytes = self._read_nbytes(dimensions)
        return Walk(selection, tuple(dimensions), tuple(self.order), self.dtype.itemsize, read_nbytes, shares)

    def _read_nbytes(self, dimensions: Sequence[Dimension]) -> int:
        """Bytes of memory per element while it is read: for memory maps, its share of the touched pages."""
        run_nbytes, elements = self.read_dtype.itemsize, 1
        for axis in reversed(self.order):
            _, count, _ = dimensions[axis].read(0, dimensions[axis].size)
            distance = dimensions[axis].read_step * self.strides[axis]
            if count > 1 and distance - run_nbytes >= PAGE_NBYTES:
                run_nbytes = max(run_nbytes, PAGE_NBYTES)
                break
            run_nbytes += (count - 1) * distance
            elements *= count
        whole_nbytes = max(self.dtype.itemsize, self.read_dtype.itemsize)
        return max(whole_nbytes, run_nbytes // elements if mapped(self.array) is not None else 0)

    def _dimension(self, axis: int, item: int | range, tiles: Edges | None) -> Dimension:
        """One dimension of the source under a window."""
        indices = range(item, item + 1) if isinstance(item, int) else item
        if self.starts is None:
            skips = abs(indices.step) * self.strides[axis] > PAGE_NBYTES
            return Dimension(indices, None, tiles, skips)
        starts = self.starts[axis]
        smallest = min(counts(starts, self.shape[axis]))
        blocks = blocks_touched(indices, starts, self.shape[axis])
        return Dimension(indices, blocks, tiles, joined=abs(indices.step) <= smallest)


def block_starts(shape: tuple[int, ...], chunks: Any) -> tuple[Edges, ...] | None:
    """The block edges of each dimension from `chunks`, which has one size or all sizes per dimension."""
    if not isinstance(chunks, tuple | list) or len(chunks) != len(shape):
        return None
    found: list[Edges] = []
    for size, given in zip(shape, chunks, strict=True):
        if isinstance(given, int | np.integer):
            found.append(range(0, size, max(int(given), 1)))
        elif isinstance(given, tuple | list):
            found.append([0, *accumulate(map(int, given[:-1]))])
        else:
            return None
    return tuple(found)


def fetch(part: NDArray[Any], *, wait: bool = True) -> None:
    """Read in the pages of a part of a memory map, and no others; synchronously if `wait`."""
    memory = mapped(part)
    if memory is None or not part.size:
        return
    starts, nbytes = runs_in(memory, part)
    if starts.size == 1 and wait:  # in this thread: concurrent page faults are slow
        np.frombuffer(memory, np.uint8, nbytes, starts[0])[::PAGE_NBYTES].max()
    elif hasattr(memory, "madvise"):
        if starts.size > 1:
            memory.madvise(mmap.MADV_RANDOM)  # no readahead: only requested pages
        if starts.size <= MAX_RUNS:
            for start in starts.tolist():
                page = start // mmap.PAGESIZE * mmap.PAGESIZE
                memory.madvise(mmap.MADV_WILLNEED, page, start + nbytes - page)


def release(part: NDArray[Any]) -> None:
    """Release the pages of a part of a memory map, which are read from the file again when touched."""
    memory = mapped(part)
    if memory is None or not part.size or not hasattr(memory, "madvise"):
        return
    starts, nbytes = runs_in(memory, part)
    page = int(starts[0]) // mmap.PAGESIZE * mmap.PAGESIZE
    memory.madvise(mmap.MADV_DONTNEED, page, int(starts[-1]) + nbytes - page)


def restore_readahead(array: Any) -> None:
    """Restore the system's default readahead for a memory map."""
    memory = mapped(array)
    if memory is not None and hasattr(memory, "madvise"):
        memory.madvise(mmap.MADV_NORMAL)


def runs(part: NDArray[Any]) -> tuple[int, NDArray[np.int64], int]:
    """Runs of bytes at least a page apart: the first's offset, the offsets from there, and bytes per run."""
    dimensions = sorted((abs(stride), size) for size, stride in zip(part.shape, part.strides, strict=True))
    first = sum((size - 1) * min(stride, 0) for size, stride in zip(part.shape, part.strides, strict=True))
    nbytes, offsets = part.itemsize, np.zeros(1, np.int64)
    for stride, size in dimensions:
        if offsets.size == 1 and stride - nbytes < PAGE_NBYTES:
            nbytes += (size - 1) * stride
        else:
            offsets = (np.arange(size) * stride + offsets[:, None]).T.reshape(-1)
    return first, offsets, nbytes


def runs_in(memory: mmap.mmap, part: NDArray[Any]) -> tuple[NDArray[np.int64], int]:
    """Runs of a part of a memory map, as of `runs`: their byte offsets in the map, and bytes per run."""
    first, offsets, nbytes = runs(part)
    start: int = np.frombuffer(memory, np.uint8).ctypes.data
    return offsets + (part.ctypes.data - start + first), nbytes


def mapped(array: Any) -> mmap.mmap | None:
    """The shared memory map that an array is a part of, or None."""
    whole = mapping(array)
    # Released pages of a private (copy-on-write) map would lose their changes.
    if whole is None or whole.mode not in ("r", "r+", "w+"):
        return None
    assert isinstance(whole.base, mmap.mmap)
    return whole.base


def mapping(array: Any) -> np.memmap[Any, Any] | None:
    """The array of the whole memory map that an array is a part of, or None."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and isinstance(array.base, mmap.mmap):
            return array
        array = array.base
    return None

"""`stream`: slices of arrays that exceed GPU or host memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future
from math import prod
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_RANK
from wgslice.dialects.basic import Selection, basic_index
from wgslice.dtypes import AnyDType
from wgslice.errors import fitted, named
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.protocols import Buffer, Place
from wgslice.gpu.recording import Binding, Copy, run_copy
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import Readback
from wgslice.layout import Layout
from wgslice.streaming.sinks import check_target, tile_starts, write_tile
from wgslice.streaming.sources import Block, Source, release, restore_readahead
from wgslice.streaming.walk import (
    Piece,
    Tile,
    Walk,
    block_nbytes,
    described_nbytes,
    limit_nbytes,
    shares,
    slots,
)
from wgslice.tensors.placed import viewed
from wgslice.tensors.tensor import Tensor
from wgslice.threads import BackgroundExecutor

TileBuffer: TypeAlias = tuple[Buffer, Readback]  # where a tile is assembled, and its readback


class Ring:
    """Moves the pieces of a window with three threads: one reads, one submits, one writes."""

    def __init__(self, device: Device, source: Source, out: Any, walk: Walk, slots: int) -> None:
        self.device = device
        self.source = source
        self.out = out
        self.walk = walk
        self.slots = slots
        self.stopped = Event()
        self.inputs = deque(
            sink().create_buffer(device, block_nbytes(walk.piece_nbytes)) for _ in range(slots)
        )
        self.tile_buffers: deque[TileBuffer] = deque(
            (sink().create_buffer(device, walk.tile_nbytes), Readback(device, walk.tile_nbytes))
            for _ in range(0 if isinstance(out, Tensor) else slots)
        )
        self.writes: deque[tuple[Future[int], int]] = deque()  # with `sent` at that time
        self.sent = self.done = 0  # pieces submitted to the GPU, and completed
        self.written = 0  # elements
        self.last: tuple[slice, ...] = ()  # the box of the target that was written last

    def run(self, report: Callable[[int], None]) -> None:
        """Move all pieces; `report` receives the number of elements of each tile that has been written."""
        reading = BackgroundExecutor(1, "wgslice-read")
        writing = BackgroundExecutor(1, "wgslice-write")
        try:
            for tile, piece, read in self._pieces(reading):
                block = self.take(read)
                if isinstance(self.out, Tensor):
                    region = [range(part.start, part.stop) for part in piece.target]
                    target = viewed(self.out, self.out.layout.select(region)).bound_layout
                    self.copy(self.upload(block, piece), target)
                    report(self._note(piece.target, target.layout.size))
                elif tile.is_plain:
                    self.writes.append((writing.submit(self.write_through, tile, block), self.sent))
                elif self._copy_to_tile(block, tile, piece):
                    write = writing.submit(self.write, tile, self.tile_buffers.popleft())
                    self.writes.append((write, self.sent))
                while self.writes and (len(self.writes) == self.slots or self.writes[0][0].done()):
                    self._finish(report)
                if self.stopped.is_set():
                    return
            while self.writes:
                self._finish(report)
            if isinstance(self.out, Tensor):
                self.device.synchronize()
        finally:
            reading.shutdown(cancel_futures=True)
            writing.shutdown(cancel_futures=True)

    def _pieces(self, reading: Executor) -> Iterator[tuple[Tile, Piece, Future[Any]]]:
        """Yield tiles, their pieces and the reads of these in order; up to `slots` pieces are read ahead."""
        ahead: deque[tuple[Tile, Piece, Future[Any]]] = deque()
        for tile in self.walk.tiles():
            is_plain = tile.is_plain and not isinstance(self.out, Tensor)  # needs no GPU
            read = self.source.read_plain if is_plain else self.source.read
            for piece in tile.pieces:
                ahead.append((tile, piece, reading.submit(read, piece)))
                if len(ahead) == self.slots:
                    yield ahead.popleft()
        yield from ahead

    def _copy_to_tile(self, block: Block, tile: Tile, piece: Piece) -> bool:
        """Copy a piece into its tile; return whether the tile is complete and its readback has begun."""
        (buffer, readback), itemsize = self.tile_buffers[0], self.source.dtype.itemsize
        within = [
            range(part.start - whole.start, part.stop - whole.start)
            for part, whole in zip(piece.target, tile.target, strict=True)
        ]
        layout = Layout.packed(tile.shape).select(within)
        self.copy(self.upload(block, piece), Binding(buffer, layout, itemsize, fresh=True))
        is_whole = piece is tile.pieces[-1]
        if is_whole:
            self.read_back(readback, buffer, prod(tile.shape) * itemsize)
        return is_whole

    def take(self, read: Future[Any]) -> Any:
        """Wait for the read of a piece; return its block, or the array of one that needs no GPU."""
        block = read.result()
        if self.sent - self.done > self.slots:  # bounds the staging memory of the queue
            self.device.synchronize()
            self.done = self.sent
        self.sent += 1
        return block

    def upload(self, block: Block, piece: Piece) -> Binding:
        """Upload a piece; its binding has the dimensions of the target."""
        buffer = self.inputs[0]
        self.inputs.rotate(-1)
        sink().upload(self.device, buffer, block.data)
        if block.part is not None:
            release(block.part)
        layout = block.layout.select(piece.within)
        return Binding(buffer, layout, self.source.dtype.itemsize, fresh=True)

    def copy(self, source: Binding, target: Binding) -> None:
        """Copy a piece on the GPU."""
        run_copy(self.device, Copy(source, target))

    def read_back(self, readback: Readback, buffer: Buffer, nbytes: int) -> None:
        """Begin the readback of a tile."""
        readback.begin(Place(buffer), nbytes)

    def _finish(self, report: Callable[[int], None]) -> None:
        """Wait for the oldest write."""
        written, sent = self.writes.popleft()
        report(written.result())
        self.done = max(self.done, sent)

    def write(self, tile: Tile, tile_buffer: TileBuffer) -> int:
        """Wait for the readback of a tile, and write it; return its elements."""
        with tile_buffer[1].read() as data:
            write_tile(self.out, tile.target, data.view(self.source.dtype).reshape(tile.shape))
        self.tile_buffers.append(tile_buffer)
        return self._note(tile.target, prod(tile.shape))

    def write_through(self, tile: Tile, part: NDArray[Any]) -> int:
        """Write a tile as it was read; return its elements."""
        write_tile(self.out, tile.target, part.reshape(tile.shape))
        release(part)
        return self._note(tile.target, part.size)

    def _note(self, target: tuple[slice, ...], elements: int) -> int:
        """Note that a box of the target has been written; return its elements."""
        self.last = target
        self.written += elements
        return elements


POLL_SECONDS = 0.1  # between checks for an interrupt, which waits block on Windows


@fitted()
def stream(
    source: Any,
    key: Any,
    out: Any = None,
    *,
    limit: SupportsIndex | str = "256 MiB",
    progress: Callable[[float, str], None] | None = None,
    dtype: AnyDType = None,
    device: AnyDevice = None,
) -> Any:
    """Slice an array that exceeds GPU or host memory, block by block into another.

    Each block of the source that the window touches, such as a chunk of Zarr, is read once; of sources
    without blocks, such as memory maps, the pages that the window touches. Reading, upload, copies on the
    GPU, readback and writing overlap.

    Parameters
    ----------
    source : array_like
        Any array with `shape`, `dtype` and NumPy's basic indexing by slices: a memory map, an array of Zarr,
        HDF5 or Dask, a variable of netCDF4, the `dataobj` of a NIfTI image in nibabel, or any other.
    key : int, slice, Ellipsis, None, a tuple of them, or Selection
        NumPy's basic index.
    out : array_like or Tensor, optional
        The target, of the result's shape and dtype: anything that accepts blocks by
        ``out[slices] = block``, such as a memory map or an array of Zarr, or a tensor. A new array in this
        machine's memory by default.
    limit : int or str
        Maximum bytes for blocks in flight, in host and device memory together, such as ``"256 MiB"`` or
        ``2**28``. The source, the target and the device itself are not counted.
    progress : callable, optional
        Called after each block with the fraction done, 0 to 1, and a text such as "1.0 MiB of 4.0 MiB".
    dtype : dtype_like, optional
        Dtype of the result, to which NumPy casts each block by its rule ``"same_kind"``. By default that of
        the elements which the source returns: where it scales them, as nibabel and netCDF4 do, that is not
        `source.dtype`. A source without chunks is asked for one element first.
    device : Device or str, optional
        A device, or a part of an adapter's name or backend. By default the device of `out` where that is a
        tensor, else `default_device()`.

    Returns
    -------
    array_like or Tensor
        `out`, or the new array, in native byte order; completely written.

    Raises
    ------
    IndexError, TypeError
        NumPy's, of the key; arrays of indices and masks are refused.
    ValueError, TypeError
        The limit is invalid or below 1 KiB, the rank is above 8, the dtype is not of 1, 2, 4, 8 or 16 bytes,
        `out` differs in shape or dtype, cannot be written, or overlaps the source in memory, in its file or
        in its store, or its device is not `device`, or elements are not cast to `dtype`. `out` is unchanged
        then.
    ValueError
        The source has no shape, or a block has masked elements.
    OutOfDeviceMemory, DeviceLostError
        The device has too little memory left, or is lost.

    Notes
    -----
    An exception of the source, of `out` or of the device, or Ctrl-C, ends the stream; `out` keeps the blocks
    written so far. A note of the exception says how many bytes these have, and which block was the last:
    blocks are written in the order of the source's memory.
    One thread reads the source and another one writes `out`, neither of them the caller's.

    A block of more than an eighth of the limit is read in parts, and so more than once. Each block of the
    target, such as a chunk of Zarr, is written once where the limit allows that besides reading once.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> volume = np.arange(4 * 5 * 6).reshape(4, 5, 6)  # as well: np.load("volume.npy", mmap_mode="r")
    >>> wg.stream(volume, np.s_[1, ::-2, 2:4], limit="1 MiB")
    array([[56, 57],
           [44, 45],
           [32, 33]])
    """
    with named("stream"):
        opened = Source(source, dtype)
        if len(opened.shape) > MAX_RANK:
            raise ValueError(f"the source has rank {len(opened.shape)}: the rank must be 0 to {MAX_RANK}")
    try:
        selection = key if isinstance(key, Selection) else basic_index(opened.shape, key)
        selection.check(opened.shape)
    except (IndexError, TypeError, ValueError) as error:
        raise type(error)(f"stream: key: {error}") from None
    with named("stream"):
        nbytes = limit_nbytes(limit)
        if out is None:
            out = np.empty(selection.shape, opened.dtype)
        else:
            check_target(out, selection.shape, opened.dtype, opened)
        chosen = out.device if isinstance(out, Tensor) else checked_device(device)
        if isinstance(out, Tensor) and device is not None and checked_device(device) is not chosen:
            raise ValueError(f"out is on {chosen}, not on {device}: omit device=")
        if 0 in selection.shape:
            return out
        sink().check_runs("blocks go through threads of their own")
    tiles = None if isinstance(out, Tensor) else tile_starts(out)
    walk = opened.walk(selection, tiles, shares(nbytes, chosen.largest_buffer_nbytes))
    with named("stream"):
        ring = Ring(chosen, opened, out, walk, slots(nbytes, walk.piece_nbytes, walk.tile_nbytes))
    total = prod(selection.shape) * opened.dtype.itemsize
    try:
        run(ring, total, progress)
    except BaseException as error:
        last = ", ".join(f"{part.start}:{part.stop}" for part in ring.last)
        error.add_note(
            f"stream: {ring.written * opened.dtype.itemsize} of {total} bytes have been written"
            + f", the last of them to out[{last}]" * bool(ring.written)
        )
        raise
    finally:
        restore_readahead(source)
    return out


def run(ring: Ring, nbytes: int, progress: Callable[[float, str], None] | None) -> None:
    """Run a ring in a thread and report its progress, until it is done or this thread is interrupted."""
    reports: SimpleQueue[int | None] = SimpleQueue()  # elements written; None at the end
    done = 0
    with BackgroundExecutor(1, "wgslice-stream") as moving:
        moved = moving.submit(ring.run, reports.put)
        moved.add_done_callback(lambda _: reports.put(None))
        try:
            while True:
                try:
                    elements = reports.get(timeout=POLL_SECONDS)
                except Empty:
                    continue
                if elements is None:
                    break
                done += elements * ring.source.dtype.itemsize
                if progress is not None:
                    progress(done / nbytes, f"{described_nbytes(done)} of {described_nbytes(nbytes)}")
        finally:
            ring.stopped.set()
        moved.result()

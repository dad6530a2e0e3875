"""`stream`: slices of what is larger than a GPU, or than memory."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from queue import Empty, SimpleQueue
from threading import Event
from typing import Any, NamedTuple, SupportsIndex

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.dialects.basic import Selection, basic_index
from wgslice.errors import named
from wgslice.gpu.capture import refuse_in_capture
from wgslice.gpu.device import AnyDevice, Device, checked_device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, run_copy
from wgslice.gpu.transfer import Readback, upload
from wgslice.layout import Layout
from wgslice.streaming.sinks import Sink, check_target
from wgslice.streaming.sources import Block, Source, as_before, release
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


class Turn(NamedTuple):
    """A piece on its way around."""

    tile: Tile
    piece: Piece
    is_plain: bool  # whether it is a tile of a target in memory as it is read, so that no GPU is needed


class Place(NamedTuple):
    """Where a tile is put together, and read from."""

    buffer: Buffer
    readback: Readback


class Ring:
    """Moves the pieces of a window by three threads: one reads, one submits, one writes.

    So no part of the target is ever written by two, and none of them gets an interrupt, which is for the main
    thread: inside of wgpu it would be lost.
    """

    def __init__(self, device: Device, source: Source, out: Sink | Tensor, walk: Walk, slots: int) -> None:
        self.device = device
        self.source = source
        self.out = out
        self.walk = walk
        self.slots = slots
        self.stopped = Event()
        self.inputs = deque(device.create_buffer(block_nbytes(walk.piece_nbytes)) for _ in range(slots))
        places = 0 if isinstance(out, Tensor) else slots
        self.places = deque(
            Place(device.create_buffer(walk.tile_nbytes), Readback(device, walk.tile_nbytes))
            for _ in range(places)
        )
        self.reads: deque[Future[Block]] = deque()
        self.writes: deque[tuple[Future[int], int]] = deque()  # each with `sent` at that time
        self.sent = self.done = 0  # pieces that the GPU was given, and of these those that it is done with

    def run(self, tell: Callable[[int], None]) -> None:
        """Move everything; `tell` is given the elements that have arrived, tile by tile."""
        reading = ThreadPoolExecutor(1, "wgslice-read")
        writing = ThreadPoolExecutor(1, "wgslice-write")
        try:
            for turn in self._turns(reading):
                block = self.take()
                if isinstance(self.out, Tensor):
                    batcher = [range(part.start, part.stop) for part in turn.piece.target]
                    target = viewed(self.out, self.out.layout.select(batcher)).bound_layout
                    self.copy(self.upload(block, turn), target)
                    tell(target.layout.size)
                elif turn.is_plain:
                    write = writing.submit(self.write_through, turn.tile, block, self.out)
                    self.writes.append((write, self.sent))
                elif self._land(block, turn):
                    write = writing.submit(self.write, turn.tile, self.places.popleft(), self.out)
                    self.writes.append((write, self.sent))
                while self.writes and (len(self.writes) == self.slots or self.writes[0][0].done()):
                    self._finish(tell)
                if self.stopped.is_set():
                    return
            while self.writes:
                self._finish(tell)
            if isinstance(self.out, Tensor):
                self.device.synchronize()
        finally:
            reading.shutdown(cancel_futures=True)
            writing.shutdown(cancel_futures=True)

    def _turns(self, reading: ThreadPoolExecutor) -> Iterator[Turn]:
        """Pieces in their order, of which up to `slots` are being read ahead."""
        ahead: deque[Turn] = deque()
        for tile in self.walk.tiles():
            is_plain = len(tile.pieces) == 1 and tile.pieces[0].is_plain and isinstance(self.out, Sink)
            read = self.source.read_plain if is_plain else self.source.read
            for piece in tile.pieces:
                self.reads.append(reading.submit(read, piece))
                ahead.append(Turn(tile, piece, is_plain))
                if len(ahead) == self.slots:
                    yield ahead.popleft()
        while ahead:
            yield ahead.popleft()

    def _land(self, block: Block, turn: Turn) -> bool:
        """Copy a piece into its tile; whether that is whole now, and its readback has begun."""
        place, nbytes = self.places[0], prod(turn.tile.shape) * self.source.dtype.itemsize
        target = BoundLayout(place.buffer, part_of(turn), self.source.dtype.itemsize, fresh=True)
        self.copy(self.upload(block, turn), target)
        is_whole = turn.piece is turn.tile.pieces[-1]
        if is_whole:
            self.read_back(place, nbytes)
        return is_whole

    def take(self) -> Block:
        """The next piece, once it is read."""
        block = self.reads.popleft().result()
        if self.sent - self.done > self.slots:  # or the queue would keep more and more of what was uploaded
            self.device.synchronize()
            self.done = self.sent
        self.sent += 1
        return block

    def upload(self, block: Block, turn: Turn) -> BoundLayout:
        """A piece in a buffer, as the target has it."""
        buffer = self.inputs[0]
        self.inputs.rotate(-1)
        upload(self.device, buffer, block.data)
        if block.part is not None:
            release(block.part)
        layout = block.layout.select(turn.piece.within)
        return BoundLayout(buffer, layout, self.source.dtype.itemsize, fresh=True)

    def copy(self, source: BoundLayout, target: BoundLayout) -> None:
        """Copy a piece on the GPU."""
        run_copy(self.device, source, target)

    def read_back(self, place: Place, nbytes: int) -> None:
        """Begin to read a tile."""
        place.readback.begin(place.buffer, nbytes)

    def _finish(self, tell: Callable[[int], None]) -> None:
        """Wait for the oldest write."""
        written, sent = self.writes.popleft()
        tell(written.result())
        self.done = max(self.done, sent)

    def write(self, tile: Tile, place: Place, sink: Sink) -> int:
        """Write a tile once it is there."""
        with place.readback.read() as data:
            sink.write(tile.target, data.view(self.source.dtype).reshape(tile.shape))
        self.places.append(place)
        return prod(tile.shape)

    def write_through(self, tile: Tile, block: Block, sink: Sink) -> int:
        """Write a tile as it was read."""
        assert block.part is not None
        sink.write(tile.target, block.part.reshape(tile.shape))
        release(block.part)
        return prod(tile.shape)


def part_of(turn: Turn) -> Layout:
    """Where a piece lies in its tile."""
    within = [
        range(part.start - whole.start, part.stop - whole.start)
        for part, whole in zip(turn.piece.target, turn.tile.target, strict=True)
    ]
    return Layout.packed(turn.tile.shape).select(within)


LOOK_SECONDS = 0.1  # from one look for an interrupt to the next, where a wait keeps it off: on Windows


def stream(
    source: Any,
    key: Any,
    out: Any = None,
    *,
    limit: SupportsIndex | str = "256 MiB",
    progress: Callable[[float, str], None] | None = None,
    device: AnyDevice = None,
) -> Any:
    """Slice an array that is larger than the GPU, or than memory, block by block into another.

    The blocks that the source really has and the window touches, such as Zarr's chunks, are read once each;
    of sources without blocks, such as memory maps, the pages that the window touches. Reading, upload, copies
    on the GPU, readback and writing overlap.

    Parameters
    ----------
    source : array_like
        What has `shape`, `dtype` and NumPy's basic indexing by slices: a memory map, an array of Zarr, HDF5
        or Dask, or any other array.
    key : int, slice, Ellipsis, None, a tuple of them, or Selection
        NumPy's basic index.
    out : array_like or Tensor, optional
        What to write into, of the result's shape and the source's dtype: anything that takes blocks by
        ``out[slices] = block``, such as a memory map or an array of Zarr, or a tensor. A new array in this
        machine's memory by default.
    limit : int or str
        Most bytes to take for all that is on its way, here and on the device together, such as ``"256 MiB"``
        or ``2**28``. Source and target themselves, and the device, are not counted.
    progress : callable, optional
        Called now and then with how much is done, from 0 to 1, and with how much that is in words.
    device : Device or str, optional
        Or a part of an adapter's name or backend. By default that of `out` where it is a tensor, or else
        `default_device()`.

    Returns
    -------
    array_like or Tensor
        `out`, or the new array, in native byte order. All has been written.

    Raises
    ------
    IndexError, TypeError
        NumPy's, of the key; arrays of indices and masks are refused.
    ValueError, TypeError
        The limit is none or below 1 KiB, the rank is above 8, the dtype is not one of 1, 2, 4, 8 or 16 bytes,
        `out` differs in shape or dtype, cannot be written, or overlaps the source in memory, in its file or
        in its store, or its device is not `device`. Nothing has been written then.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left, or is gone.

    Notes
    -----
    What the source or `out` raise ends it, and so does Ctrl-C: what has been written of `out` by then stays
    so. One thread reads the source and another one writes `out`, none of them the caller's.

    A block that takes more than an eighth of the limit is read in parts, and so more than once. The target's
    blocks, such as Zarr's chunks, are written once each where memory allows that beside reading once.

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
        opened = Source(source)
        if len(opened.shape) > MAX_RANK:
            raise ValueError(f"the source has rank {len(opened.shape)}: the rank must be 0 to {MAX_RANK}")
    selection = selected(opened.shape, key)
    with named("stream"):
        nbytes = limit_nbytes(limit)
        if out is None:
            out = np.empty(selection.shape, opened.dtype)
        else:
            check_target(out, selection.shape, opened.dtype, opened)
        chosen = device_for(out, device)
        if 0 in selection.shape:
            return out
        refuse_in_capture("blocks go through threads of their own")
    target = out if isinstance(out, Tensor) else Sink(out)
    tiles = target.starts if isinstance(target, Sink) else None
    walk = opened.walk(selection, tiles, shares(nbytes, chosen.largest_buffer_nbytes))
    ring = Ring(chosen, opened, target, walk, slots(nbytes, walk.piece_nbytes, walk.tile_nbytes))
    try:
        run(ring, walk.elements * opened.dtype.itemsize, progress)
    finally:
        as_before(source)
    return out


def run(ring: Ring, nbytes: int, progress: Callable[[float, str], None] | None) -> None:
    """Let a ring run elsewhere, and tell what it tells, until it is done or an interrupt arrives here."""
    told: SimpleQueue[int | None] = SimpleQueue()  # elements that have arrived; None at the end
    done = 0
    with ThreadPoolExecutor(1, "wgslice-stream") as moving:
        moved = moving.submit(ring.run, told.put)
        moved.add_done_callback(lambda _: told.put(None))
        try:
            while True:
                try:
                    elements = told.get(timeout=LOOK_SECONDS)
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


def selected(shape: tuple[int, ...], key: Any) -> Selection:
    """What a key selects; sizes may be any here, since no tensor has them."""
    try:
        if isinstance(key, Selection):
            key.check(shape)
            return key
        return basic_index(shape, key)
    except (IndexError, TypeError, ValueError) as error:
        raise type(error)(f"stream: key: {error}") from None


def device_for(out: Any, device: AnyDevice) -> Device:
    """The device to go through, which for a tensor is its own."""
    if not isinstance(out, Tensor):
        return checked_device(device)
    if device is not None and checked_device(device) is not out.device:
        raise ValueError(f"out is on {out.device}, not on {device}: leave device= out")
    return out.device

"""A ring of buffers that pieces go around: one is read, one copied on the GPU, one written, all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from threading import Event
from typing import NamedTuple

from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, run_copy
from wgslice.gpu.transfer import Readback, upload
from wgslice.layout import Layout
from wgslice.streaming.limits import block_nbytes
from wgslice.streaming.pages import release
from wgslice.streaming.sinks import Sink
from wgslice.streaming.sources import Block, Source
from wgslice.streaming.walk import Piece, Tile, Walk
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["Ring"]


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
                    target = placed_in(self.out, turn)
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
        """Pieces in their order, each being read; so many ahead as there are slots, that one included."""
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


def placed_in(out: Tensor, turn: Turn) -> BoundLayout:
    """Where a piece lies in a tensor."""
    layout = out.layout.select([range(part.start, part.stop) for part in turn.piece.target])
    return viewed(out, layout).bound_layout


def part_of(turn: Turn) -> Layout:
    """Where a piece lies in its tile."""
    within = [
        range(part.start - whole.start, part.stop - whole.start)
        for part, whole in zip(turn.piece.target, turn.tile.target, strict=True)
    ]
    return Layout.packed(turn.tile.shape).select(within)

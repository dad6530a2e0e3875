"""A ring of buffers that pieces go around: one is read, one copied on the GPU, one written, all at once."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from math import prod
from threading import Event
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.readback import Readback
from wgslice.gpu.recording import Operand, record, run_copy
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.streaming.pages import release
from wgslice.streaming.sinks import Sink
from wgslice.streaming.sources import Source
from wgslice.streaming.walk import Piece, Tile, Walk
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["Ring"]


class Turn(NamedTuple):
    """A piece on its way around."""

    tile: Tile
    piece: Piece
    ends: bool  # whether it is the last one of its tile


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
        self.inputs = deque(device.create_buffer(walk.piece_nbytes) for _ in range(slots))
        places = 0 if isinstance(out, Tensor) else slots
        self.places = deque(
            Place(device.create_buffer(walk.tile_nbytes), Readback(device, walk.tile_nbytes))
            for _ in range(places)
        )
        self.reads: deque[Future[NDArray[Any]]] = deque()
        self.writes: deque[tuple[Future[int], int]] = deque()  # each with `sent` at that time
        self.sent = self.done = 0  # pieces that the GPU was given, and of these those that it is done with

    def run(self, tell: Callable[[int], None]) -> None:
        """Move everything; `tell` is given the elements that have arrived, tile by tile."""
        reading = ThreadPoolExecutor(1, "wgslice-read")
        writing = ThreadPoolExecutor(1, "wgslice-write")
        try:
            for turn in self._turns(reading):
                source = self._upload(turn)
                if isinstance(self.out, Tensor):
                    self._move(source, turn, self.out)
                    tell(elements(turn.piece.target))
                elif self._land(source, turn):
                    write = writing.submit(self._write, turn.tile, self.places.popleft(), self.out)
                    self.writes.append((write, self.sent))
                while self.writes and (not self.places or self.writes[0][0].done()):
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
            for number, piece in enumerate(tile.pieces, 1):
                self.reads.append(reading.submit(self.source.read, piece))
                ahead.append(Turn(tile, piece, number == len(tile.pieces)))
                if len(ahead) == self.slots:
                    yield ahead.popleft()
        while ahead:
            yield ahead.popleft()

    def _upload(self, turn: Turn) -> Operand:
        """A piece in a buffer, as the target has it."""
        block = self.reads.popleft().result()
        if self.sent - self.done > self.slots:  # or the queue would keep more and more of what was uploaded
            self.device.synchronize()
            self.done = self.sent
        buffer = self.inputs[0]
        self.inputs.rotate(-1)
        upload(self.device, buffer, block.reshape(-1).view(np.uint8))
        release(block)
        self.sent += 1
        return Operand(buffer, self.source.layout(turn.piece).select(turn.piece.within), block.itemsize, True)

    def _move(self, source: Operand, turn: Turn, out: Tensor) -> None:
        """Copy a piece into a tensor."""
        layout = out.layout.select([range(part.start, part.stop) for part in turn.piece.target])
        run_copy(self.device, source, viewed(out, layout).operand)

    def _land(self, source: Operand, turn: Turn) -> bool:
        """Copy a piece into its tile; whether that is whole now, and its readback has begun."""
        place = self.places[0]
        encoder = self.device.create_encoder()
        nbytes = elements(turn.tile.target) * source.itemsize
        if len(turn.tile.pieces) == 1 and source.layout.is_packed:
            start = source.layout.offset * source.itemsize
            place.readback.begin(encoder, source.buffer, start, nbytes)
            return True
        target = Operand(place.buffer, part_of(turn), source.itemsize, fresh=True)
        record(self.device, encoder, plan_copy, source, target)
        if turn.ends:
            place.readback.begin(encoder, place.buffer, 0, nbytes)
        else:
            self.device.submit(encoder)
        return turn.ends

    def _finish(self, tell: Callable[[int], None]) -> None:
        """Wait for the oldest write."""
        written, sent = self.writes.popleft()
        tell(written.result())
        self.done = max(self.done, sent)

    def _write(self, tile: Tile, place: Place, sink: Sink) -> int:
        """Write a tile once it is there."""
        with place.readback.read() as data:
            sink.write(tile.target, data.view(self.source.dtype).reshape(sizes_of(tile.target)))
        self.places.append(place)
        return elements(tile.target)


def part_of(turn: Turn) -> Layout:
    """Where a piece lies in its tile."""
    within = [
        range(part.start - whole.start, part.stop - whole.start)
        for part, whole in zip(turn.piece.target, turn.tile.target, strict=True)
    ]
    return Layout.packed(sizes_of(turn.tile.target)).select(within)


def sizes_of(target: tuple[slice, ...]) -> tuple[int, ...]:
    """Sizes of a part of the target."""
    return tuple(part.stop - part.start for part in target)


def elements(target: tuple[slice, ...]) -> int:
    """Elements of a part of the target."""
    return prod(sizes_of(target))

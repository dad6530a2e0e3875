"""Transfers of bytes between host memory and buffers."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.capture import Upload, active, refuse_in_capture
from wgslice.gpu.device import Device
from wgslice.gpu.native import begin_mapping, translated_errors, wait_for_mapping
from wgslice.gpu.protocols import Buffer, BufferUsage, CommandEncoder, MapPromise
from wgslice.layout import whole_words
from wgslice.plans.profiles import MAX_STAGING, STAGING_NBYTES, UPLOAD_CHUNK_NBYTES


def upload(device: Device, buffer: Buffer, data: NDArray[np.uint8], offset_nbytes: int = 0) -> None:
    """Write contiguous bytes at a word offset into a buffer with capacity for them in whole words."""
    capture = active.capture
    if capture is not None:
        capture.steps.append(Upload(data.size))
        return
    queue = device.queue
    whole = data.size // 4 * 4
    with translated_errors:
        for start in range(0, whole, UPLOAD_CHUNK_NBYTES):
            chunk = data[start : min(start + UPLOAD_CHUNK_NBYTES, whole)]
            queue.write_buffer(buffer, offset_nbytes + start, chunk)
            queue.submit([])  # frees the queue's copy of the chunk
        if whole < data.size:
            last_word = np.pad(data[whole:], (0, whole + 4 - data.size))
            queue.write_buffer(buffer, offset_nbytes + whole, last_word)


def download(
    device: Device,
    buffer: Buffer,
    offset_nbytes: int,
    into: NDArray[np.uint8],
    encoder: CommandEncoder | None = None,
) -> None:
    """Wait for the GPU, then fill contiguous `into` from a buffer that has usage COPY_SRC.

    The commands of `encoder` run first, in the submission of the first chunk's copy. The GPU copies the next
    chunk while the host reads one, and not earlier, since a mapping waits for all submitted work.
    """
    if active.capture is not None:
        refuse_in_capture(f"{into.size} bytes are read back")
    start, stop = offset_nbytes // 4 * 4, whole_words(offset_nbytes + into.size)
    with translated_errors:
        staging = copy_chunk(device, buffer, start, stop, encoder or device.create_encoder())
        for position in range(start, stop, STAGING_NBYTES):
            nbytes = min(STAGING_NBYTES, stop - position)
            wait_for_mapping(begin_mapping(staging, nbytes, device.is_lost), device.is_lost)
            following, next_staging = position + STAGING_NBYTES, staging
            if following < stop:
                next_staging = copy_chunk(device, buffer, following, stop, device.create_encoder())
            mapped = np.frombuffer(staging.read_mapped(0, nbytes, copy=False), np.uint8)
            first = max(position - offset_nbytes, 0)
            chunk = into[first : position + nbytes - offset_nbytes]
            chunk[...] = mapped[max(offset_nbytes - position, 0) :][: chunk.size]
            del mapped  # dangles once the buffer is unmapped
            staging.unmap()
            keep_staging(device, staging)
            staging = next_staging


def copy_chunk(device: Device, buffer: Buffer, position: int, stop: int, encoder: CommandEncoder) -> Buffer:
    """Submit the copy of a chunk into a staging buffer, and return that."""
    staging = take_staging(device)
    encoder.copy_buffer_to_buffer(buffer, position, staging, 0, min(STAGING_NBYTES, stop - position))
    device.submit(encoder)
    return staging


def take_staging(device: Device) -> Buffer:
    """Return an unmapped staging buffer of STAGING_NBYTES, reused if possible."""
    try:
        return device.staging.pop()  # pop is atomic, so that threads need no lock
    except IndexError:
        return device.new_buffer(STAGING_NBYTES, BufferUsage.MAP_READ | BufferUsage.COPY_DST)


def keep_staging(device: Device, buffer: Buffer) -> None:
    """Keep an unmapped staging buffer for reuse, up to MAX_STAGING of them."""
    if len(device.staging) < MAX_STAGING:
        device.staging.append(buffer)


class Readback:
    """A staging buffer of a chosen size, for one readback at a time."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.nbytes = 0
        self.mapping: MapPromise | None = None
        usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
        with translated_errors:
            self.staging: Buffer = device.new_buffer(whole_words(nbytes), usage)

    def begin(self, buffer: Buffer, nbytes: int) -> None:
        """Submit a copy of a buffer's first bytes; another thread may call `read`."""
        encoder = self.device.create_encoder()
        with translated_errors:
            encoder.copy_buffer_to_buffer(buffer, 0, self.staging, 0, whole_words(nbytes))
            self.device.submit(encoder)
            self.mapping = begin_mapping(self.staging, whole_words(nbytes), self.device.is_lost)
        self.nbytes = nbytes

    @contextmanager
    def read(self) -> Iterator[NDArray[np.uint8]]:
        """Wait for the copy and yield its bytes, which are unmapped when the block ends."""
        assert self.mapping is not None
        wait_for_mapping(self.mapping, self.device.is_lost)
        try:
            mapped = self.staging.read_mapped(0, whole_words(self.nbytes), copy=False)
            yield np.frombuffer(mapped, np.uint8)[: self.nbytes]
        finally:
            self.staging.unmap()

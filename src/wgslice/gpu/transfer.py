"""Bytes between NumPy arrays and buffers."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import whole_words
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.gpu.translation import translated_errors
from wgslice.gpu.waiting import wait_mapped
from wgslice.plans.profiles import STAGING_NBYTES, UPLOAD_CHUNK_NBYTES

__all__ = ["download", "upload"]


def upload(device: Device, buffer: Buffer, data: NDArray[np.uint8], offset_nbytes: int = 0) -> None:
    """Write contiguous bytes into a buffer that has room for them in whole words, from a whole word on."""
    queue = device.queue
    whole = data.size // 4 * 4
    with translated_errors:
        for start in range(0, whole, UPLOAD_CHUNK_NBYTES):
            chunk = data[start : min(start + UPLOAD_CHUNK_NBYTES, whole)]
            queue.write_buffer(buffer, offset_nbytes + start, chunk)
            queue.submit([])  # until then the queue keeps its own copy of what was written
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

    What an encoder has recorded runs before, in the same submission as the first chunk's copy. While one
    chunk is read, the next is copied on the GPU. It is not begun earlier, since a mapping waits for all
    that has been submitted.
    """
    start, stop = offset_nbytes // 4 * 4, whole_words(offset_nbytes + into.size)
    with translated_errors:
        staging = copy_chunk(device, buffer, start, stop, encoder or device.create_encoder())
        for position in range(start, stop, STAGING_NBYTES):
            nbytes = min(STAGING_NBYTES, stop - position)
            wait_mapped(staging, nbytes, device.is_lost)
            following, next_staging = position + STAGING_NBYTES, staging
            if following < stop:
                next_staging = copy_chunk(device, buffer, following, stop, device.create_encoder())
            mapped = np.frombuffer(staging.read_mapped(0, nbytes, copy=False), np.uint8)
            first = max(position - offset_nbytes, 0)
            chunk = into[first : position + nbytes - offset_nbytes]
            chunk[...] = mapped[max(offset_nbytes - position, 0) :][: chunk.size]
            del mapped  # it dangles once the buffer is unmapped
            staging.unmap()
            device.staging.give_back(staging)
            staging = next_staging


def copy_chunk(device: Device, buffer: Buffer, position: int, stop: int, encoder: CommandEncoder) -> Buffer:
    """Submit the copy of a chunk of a buffer into a staging buffer."""
    staging = device.staging.take()
    encoder.copy_buffer_to_buffer(buffer, position, staging, 0, min(STAGING_NBYTES, stop - position))
    device.submit(encoder)
    return staging

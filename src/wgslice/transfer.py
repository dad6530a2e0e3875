"""Bytes between NumPy arrays and buffers."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wgslice.buffers import check_alive, check_usable
from wgslice.device import Device, translated_errors
from wgslice.integers import whole_words
from wgslice.staging import MOST_STAGING, STAGING_NBYTES

if TYPE_CHECKING:
    from wgslice.device import Buffer

__all__ = ["download", "upload"]

# What a transfer takes of memory beside its source and its target. An upload of 64 MiB on lavapipe took, in
# multiples of a warm memcpy, 1.0 in chunks of 2 MiB, 0.9 of 4, 0.8 of 8, 2.7 of 16 (fresh memory each time).
UPLOAD_CHUNK_NBYTES = 2**22


def upload(device: Device, buffer: Buffer, data: NDArray[np.uint8]) -> None:
    """Write contiguous bytes to the start of a buffer that has room for them in whole words."""
    queue = device.wgpu_device.queue
    whole = data.size // 4 * 4
    with translated_errors():
        for start in range(0, whole, UPLOAD_CHUNK_NBYTES):
            queue.write_buffer(buffer, start, data[start : min(start + UPLOAD_CHUNK_NBYTES, whole)])
            queue.submit([])  # until then the queue keeps its own copy of what was written
        if whole < data.size:
            queue.write_buffer(buffer, whole, np.pad(data[whole:], (0, whole + 4 - data.size)))


def download(device: Device, buffer: Buffer, offset_nbytes: int, into: NDArray[np.uint8]) -> None:
    """Wait for the GPU, then fill contiguous `into` from a buffer that has usage COPY_SRC.

    One chunk is copied on the GPU while another is read.
    """
    start = offset_nbytes // 4 * 4
    check_usable(device, buffer)
    check_alive(device, buffer)
    pending: deque[tuple[Buffer, int, int]] = deque()
    with translated_errors():
        for position in range(start, whole_words(offset_nbytes + into.size), STAGING_NBYTES):
            nbytes = min(STAGING_NBYTES, whole_words(offset_nbytes + into.size) - position)
            if len(pending) == MOST_STAGING:
                read_staging(device, *pending.popleft(), offset_nbytes, into)
            staging = device.staging.take()
            encoder = device.wgpu_device.create_command_encoder()
            encoder.copy_buffer_to_buffer(buffer, position, staging, 0, nbytes)
            device.wgpu_device.queue.submit([encoder.finish()])
            pending.append((staging, position, nbytes))
        while pending:
            read_staging(device, *pending.popleft(), offset_nbytes, into)


def read_staging(
    device: Device, staging: Buffer, position: int, nbytes: int, offset_nbytes: int, into: NDArray[np.uint8]
) -> None:
    """Move what was copied from `position` on to where it belongs, and give the staging buffer back."""
    staging.map_sync("READ", 0, nbytes)
    mapped = np.frombuffer(staging.read_mapped(0, nbytes, copy=False), np.uint8)
    skipped = max(offset_nbytes - position, 0)
    first = max(position - offset_nbytes, 0)
    stop = min(position + nbytes - offset_nbytes, into.size)
    into[first:stop] = mapped[skipped:][: stop - first]
    del mapped  # it dangles once the buffer is unmapped
    staging.unmap()
    device.staging.give_back(staging)

"""Bytes between NumPy arrays and buffers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wgslice.device import Device, translated_errors
from wgslice.integers import whole_words

if TYPE_CHECKING:
    from wgslice.device import Buffer

__all__ = ["download", "upload"]


def upload(device: Device, buffer: Buffer, data: NDArray[np.uint8]) -> None:
    """Write contiguous bytes to the start of a buffer that has room for them in whole words."""
    queue = device.wgpu_device.queue
    whole = data.size // 4 * 4
    with translated_errors():
        if whole:
            queue.write_buffer(buffer, 0, data[:whole])
        if whole < data.size:
            queue.write_buffer(buffer, whole, np.pad(data[whole:], (0, whole + 4 - data.size)))
        queue.submit([])  # until then the queue keeps a second copy of the data


def download(device: Device, buffer: Buffer, offset_nbytes: int, into: NDArray[np.uint8]) -> None:
    """Wait for the GPU, then fill contiguous `into` from a buffer that has usage COPY_SRC."""
    start = offset_nbytes // 4 * 4
    nbytes = whole_words(offset_nbytes + into.size - start)
    device.check_usable(buffer)
    device.check_alive(buffer)
    staging = device.create_staging(nbytes)
    encoder = device.wgpu_device.create_command_encoder()
    with translated_errors():
        encoder.copy_buffer_to_buffer(buffer, start, staging, 0, nbytes)
        device.wgpu_device.queue.submit([encoder.finish()])
        staging.map_sync("READ")
    mapped = np.frombuffer(staging.read_mapped(copy=False), np.uint8)
    into[:] = mapped[offset_nbytes - start :][: into.size]
    del mapped  # it dangles once the buffer is unmapped
    staging.unmap()

"""Stretches of buffers that are read where they are mapped, without a copy of the host's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import whole_words
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, CommandEncoder, MapPromise
from wgslice.gpu.translation import translated_errors
from wgslice.gpu.usages import BufferUsage
from wgslice.gpu.waiting import begin_mapping, wait_for_mapping

__all__ = ["Readback"]


class Readback:
    """A staging buffer of a size of one's own, for one stretch of bytes at a time."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.skipped = self.nbytes = 0
        self.mapping: MapPromise | None = None
        size = whole_words(nbytes) + 4  # a stretch may begin inside of a word
        usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
        with translated_errors:
            self.staging: Buffer = device.wgpu_device.create_buffer(size=size, usage=usage)

    def begin(self, encoder: CommandEncoder, buffer: Buffer, offset_nbytes: int, nbytes: int) -> None:
        """Submit what an encoder has recorded and a copy of a stretch; another thread may read it."""
        start, stop = offset_nbytes // 4 * 4, whole_words(offset_nbytes + nbytes)
        self.skipped, self.nbytes = offset_nbytes - start, nbytes
        with translated_errors:
            encoder.copy_buffer_to_buffer(buffer, start, self.staging, 0, stop - start)
            self.device.submit(encoder)
            self.mapping = begin_mapping(self.staging, stop - start, self.device.is_lost)

    @contextmanager
    def read(self) -> Iterator[NDArray[np.uint8]]:
        """Wait for the stretch that was begun; its bytes are gone at the end."""
        assert self.mapping is not None
        wait_for_mapping(self.mapping, self.device.is_lost)
        try:
            whole = whole_words(self.skipped + self.nbytes)
            mapped = np.frombuffer(self.staging.read_mapped(0, whole, copy=False), np.uint8)
            yield mapped[self.skipped :][: self.nbytes]
        finally:
            self.staging.unmap()

"""Bytes of the GPU that are read where they are mapped, without a copy of the host's."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import whole_words
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, MapPromise
from wgslice.gpu.translation import translated_errors
from wgslice.gpu.usages import BufferUsage
from wgslice.gpu.waiting import begin_mapping, wait_for_mapping

__all__ = ["Readback"]


class Readback:
    """A staging buffer of a size of one's own, for the bytes of one thing at a time."""

    def __init__(self, device: Device, nbytes: int) -> None:
        self.device = device
        self.nbytes = 0
        self.mapping: MapPromise | None = None
        usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
        with translated_errors:
            self.staging: Buffer = device.wgpu_device.create_buffer(size=whole_words(nbytes), usage=usage)

    def begin(self, buffer: Buffer, nbytes: int) -> None:
        """Submit a copy of a buffer's first bytes; another thread may read it."""
        encoder = self.device.create_encoder()
        with translated_errors:
            encoder.copy_buffer_to_buffer(buffer, 0, self.staging, 0, whole_words(nbytes))
            self.device.submit(encoder)
            self.mapping = begin_mapping(self.staging, whole_words(nbytes), self.device.is_lost)
        self.nbytes = nbytes

    @contextmanager
    def read(self) -> Iterator[NDArray[np.uint8]]:
        """Wait for what was begun; the bytes are gone at the end."""
        assert self.mapping is not None
        wait_for_mapping(self.mapping, self.device.is_lost)
        try:
            mapped = self.staging.read_mapped(0, whole_words(self.nbytes), copy=False)
            yield np.frombuffer(mapped, np.uint8)[: self.nbytes]
        finally:
            self.staging.unmap()

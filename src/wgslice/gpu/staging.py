"""Buffers that readback goes through, kept and used again."""

from __future__ import annotations

from wgslice.gpu.protocols import Buffer, GPUDevice
from wgslice.gpu.usages import BufferUsage
from wgslice.plans.profiles import MOST_STAGING, STAGING_NBYTES

__all__ = ["Staging"]


class Staging:
    """Buffers of STAGING_NBYTES to copy to and then map for reading."""

    def __init__(self, wgpu_device: GPUDevice) -> None:
        self.wgpu_device = wgpu_device
        self.kept: list[Buffer] = []

    def take(self) -> Buffer:
        """Take an unmapped buffer, one used before if there is one."""
        try:
            return self.kept.pop()  # a list's pop is one step: threads need no lock
        except IndexError:
            usage = BufferUsage.MAP_READ | BufferUsage.COPY_DST
            return self.wgpu_device.create_buffer(size=STAGING_NBYTES, usage=usage)

    def give_back(self, buffer: Buffer) -> None:
        """Keep an unmapped buffer for the next to take, unless there are enough."""
        if len(self.kept) < MOST_STAGING:
            self.kept.append(buffer)

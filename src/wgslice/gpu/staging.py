"""Buffers that readback goes through, kept and used again."""

from __future__ import annotations

from typing import Any

__all__ = ["MOST_STAGING", "STAGING_NBYTES", "Staging"]

# 64 MiB read back on lavapipe took, in multiples of a warm memcpy, 2.7 through 2 buffers of 2 MiB, 2.0 of
# 4 MiB, 1.8 of 8 and 1.8 of 16; a new array's page faults are 0.5 of that.
STAGING_NBYTES = 2**23
MOST_STAGING = 2

# Values of the WebGPU specification, which wgpu.BufferUsage repeats.
MAP_READ, COPY_DST = 0x1, 0x8


class Staging:
    """Buffers of STAGING_NBYTES to copy to and then map for reading.

    It works on a wgpu.GPUDevice, whose objects are Any here: `device` alone imports wgpu.
    """

    def __init__(self, wgpu_device: Any) -> None:
        self.wgpu_device = wgpu_device
        self.kept: list[Any] = []

    def take(self) -> Any:
        """Take an unmapped buffer, one used before if there is one."""
        try:
            return self.kept.pop()  # a list's pop is one step: threads need no lock
        except IndexError:
            return self.wgpu_device.create_buffer(size=STAGING_NBYTES, usage=MAP_READ | COPY_DST)

    def give_back(self, buffer: Any) -> None:
        """Keep an unmapped buffer for the next to take, unless there are enough."""
        if len(self.kept) < MOST_STAGING:
            self.kept.append(buffer)

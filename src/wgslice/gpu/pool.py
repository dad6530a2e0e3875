"""Reuse of the buffers of released tensors: fresh memory costs page faults and a clear.

64 MiB reversed on lavapipe (Mesa 22.3, two cores of an AMD EPYC) take 45 ms into a buffer that was written
before and 75 to 90 ms into a new one, 256 MiB 200 and 340.
"""

from __future__ import annotations

import os
from threading import Lock

from wgslice.gpu.native import leased
from wgslice.gpu.protocols import Buffer

MIN_REUSED_NBYTES = 2**20  # wgpu allocates smaller buffers from memory that it holds, as fast as reuse
VARIABLE = "WGSLICE_REUSED_MIB"
MAX_REUSED_MIB = 512


class BufferPool:
    """Unused buffers of limited total size; the least recently returned one is freed first."""

    def __init__(self, max_nbytes: int) -> None:
        self.max_nbytes = max_nbytes
        self.nbytes = 0
        self.buffers: list[Buffer] = []  # least recently returned first
        # Referenced here, a buffer is no part of a reference cycle that its tensor is in: the garbage
        # collector would free its memory before it is given back.
        self.in_use: set[Buffer] = set()
        self.lock = Lock()

    def lease(self, buffer: Buffer) -> Buffer:
        """Return a second handle of a buffer, which gives it back when it is dropped."""
        self.in_use.add(buffer)
        return leased(buffer, self.give)

    def give(self, buffer: Buffer, exposed: bool) -> None:
        """Keep an unreferenced buffer for reuse; free it if it was exposed, or another call holds the lock.

        Called when the last reference is dropped, which the garbage collector may do in any thread and
        during these methods, so that waiting for the lock could deadlock.
        """
        self.in_use.discard(buffer)
        if exposed or buffer.size > self.max_nbytes or not self.lock.acquire(blocking=False):
            return
        try:
            self.buffers.append(buffer)
            self.nbytes += buffer.size
            while self.nbytes > self.max_nbytes:
                self.nbytes -= self.buffers.pop(0).size
        finally:
            self.lock.release()

    def take(self, size: int) -> Buffer | None:
        """Remove and return the most recently returned buffer of exactly `size` bytes, if any."""
        with self.lock:
            for position in reversed(range(len(self.buffers))):
                if self.buffers[position].size == size:
                    self.nbytes -= size
                    return self.buffers.pop(position)
        return None

    def clear(self) -> bool:
        """Free all buffers; return whether there was one."""
        with self.lock:
            freed, self.buffers, self.nbytes = self.buffers, [], 0
        return bool(freed)


def max_reused_nbytes() -> int:
    """Return how many bytes a device keeps for reuse, from the environment variable WGSLICE_REUSED_MIB."""
    given = os.environ.get(VARIABLE, str(MAX_REUSED_MIB))
    if not given.isdecimal():
        raise ValueError(f"{VARIABLE} = {given!r}: must be a number of MiB; 0 keeps no buffer for reuse")
    return int(given) << 20

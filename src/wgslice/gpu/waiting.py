"""Waits for the GPU that an interrupt ends, and the loss of the device."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from wgslice.errors import DeviceLostError
from wgslice.gpu.protocols import Buffer, GPUDevice
from wgslice.gpu.translation import LOST

__all__ = ["wait_done", "wait_mapped"]

# From one look at the device to the next: one that was destroyed answers no mapping any more. On Windows an
# interrupt arrives between two looks, elsewhere at once.
LOOK_SECONDS = 0.1

# Threads for waits inside of wgpu, where no interrupt arrives. wgpu also calls back from there for the
# mappings of other threads, and an interrupt that arrives inside of such a call is lost with the mapping.
waiters = ThreadPoolExecutor(thread_name_prefix="wgslice-wait")


def wait_done(wgpu_device: GPUDevice, is_lost: Callable[[], bool]) -> None:
    """Wait until all that is submitted is done."""
    done = threading.Event()
    # wgpu-py 0.32 has no public wait but mapping a buffer, which takes 0.1 ms more
    waiting = waiters.submit(wgpu_device._poll_wait)
    waiting.add_done_callback(lambda _: done.set())
    if not outlived(done.wait, is_lost):
        raise DeviceLostError(LOST)
    waiting.result()


def wait_mapped(staging: Buffer, nbytes: int, is_lost: Callable[[], bool]) -> None:
    """Wait until the CPU can read the first bytes of a staging buffer.

    An interrupt leaves the buffer pending: drop it then, and it frees itself once it is mapped.
    """
    try:
        # READ would submit once more, as if nothing had been
        mapping = staging.map_async("READ_NOSYNC", 0, nbytes)
        if outlived(mapping._thread_event.wait, is_lost):
            mapping.sync_wait()
            return
    except (AttributeError, RuntimeError):
        # wgpu-py's, of a destroyed device, which has no poll thread any more, or of a mapping that has failed
        if not is_lost():
            raise
    raise DeviceLostError(LOST)


def outlived(finished: Callable[[float], bool], is_lost: Callable[[], bool]) -> bool:
    """Wait until something has finished, or the device is lost before; whether it has finished."""
    while not finished(LOOK_SECONDS):
        if is_lost():
            return False
    return True

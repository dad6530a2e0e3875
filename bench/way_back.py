"""The first result of a process, and transfers by size, beside bare wgpu-py and the native calls of wgpu."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from functools import partial
from typing import Any
from unittest.mock import patch

import numpy as np
import wgpu
from wgpu.backends.wgpu_native import ffi, lib

import wgslice as wg
from bench.processes import start
from bench.rivals.ours import device

__all__ = ["BY_SIZE", "SIZES", "STARTS", "start_times", "transfers"]

PROCESSES = 5
SIZES = {2**12: "4 KiB", 2**20: "1 MiB", 2**26: "64 MiB"}
BUFFER = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST

# What is compared with what, by the labels of results.
STARTS = (
    ("process start to the first slice read back", "process start to the first readback, bare wgpu-py"),
    ("import wgslice", "import numpy"),
)
BY_SIZE = (
    *((f"numpy() of {size}", f"native readback of {size}") for size in SIZES.values()),
    *((f"numpy() of {size}", f"wgpu-py readback of {size}") for size in SIZES.values()),
    ("numpy() of 64 MiB", "array.copy() of 64 MiB"),
    *((f"numpy() of {size}, staging", f"native readback of {size}") for size in SIZES.values()),
    ("asarray of 4 KiB", "wgpu-py upload of 4 KiB"),
    ("asarray of 64 MiB", "array.copy() of 64 MiB"),
)

# Programs that print a line when their result is in memory.
PROGRAMS = {
    "process start to the first slice read back": """
import numpy as np, wgslice as wg
x = wg.asarray(np.arange(24, dtype=np.float32).reshape(4, 6))
assert wg.slice1(x, (0, 1), (4, 4), (1, 2)).numpy()[3, 1] == 21
print("[]", flush=True)
""",
    "process start to the first readback, bare wgpu-py": """
import os, numpy as np, wgpu
found = wgpu.gpu.enumerate_adapters_sync()
device = found[int(os.environ["ADAPTER"])].request_device_sync()
x = np.arange(24, dtype=np.float32)
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
buffer = device.create_buffer(size=x.nbytes, usage=usage)
device.queue.write_buffer(buffer, 0, x)
assert np.frombuffer(device.queue.read_buffer(buffer), np.float32)[21] == 21
print("[]", flush=True)
""",
    "import wgslice": "import wgslice\nprint('[]', flush=True)",
    "import numpy": "import numpy\nprint('[]', flush=True)",
}


def start_times() -> dict[str, float]:
    """Return the seconds from the start of a process to its result: the best of processes in turn."""
    chosen = {"WGSLICE_ADAPTER": str(device.adapter), "ADAPTER": str(wg.adapters().index(device.adapter))}
    best = dict.fromkeys(PROGRAMS, float("inf"))
    with tempfile.TemporaryDirectory() as kept, patch.dict(os.environ, chosen):
        for _ in range(PROCESSES):
            for label, code in PROGRAMS.items():
                best[label] = min(best[label], start(kept, code).seconds)
    return best


def transfers(nbytes: int) -> dict[str, Callable[[], Any]]:
    """Actions that read back or upload some bytes, by label."""
    size = SIZES[nbytes]
    array = np.random.default_rng(1).integers(0, 256, nbytes, np.uint8)
    own, given = (wg.asarray(array, device=device) for _ in range(2))
    bare = BareReadback(given.buffer)  # the user's from here on, which no readback maps
    return {
        f"numpy() of {size}": own.numpy,
        f"numpy() of {size}, staging": given.numpy,
        f"native readback of {size}": bare.native,
        f"wgpu-py readback of {size}": bare.wgpu_py,
        f"asarray of {size}": partial(wg.asarray, array, device=device),
        f"wgpu-py upload of {size}": partial(upload, array),
        f"array.copy() of {size}": array.copy,
    }


def upload(array: Any) -> Any:
    """Write an array into a new buffer, by wgpu-py."""
    buffer = device.wgpu_device.create_buffer(size=array.nbytes, usage=BUFFER)
    device.queue.write_buffer(buffer, 0, array)
    device.queue.submit([])
    return buffer


class BareReadback:
    """The calls that a readback through a staging buffer cannot avoid, and what waits for them."""

    def __init__(self, source: Any) -> None:
        self.source = source
        self.nbytes: int = source.size
        self.staging = device.wgpu_device.create_buffer(size=self.nbytes, usage=STAGING)
        self.is_mapped = False
        self.kept = ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", self.mapped)

    def mapped(self, *_: Any) -> None:
        """Note that the bytes can be read."""
        self.is_mapped = True

    def native(self) -> Any:
        """Read by wgpu-native's functions, with one callback and polls that do not wait."""
        own = device.wgpu_device
        staging, queue = self.staging._internal, own.queue._internal
        encoder = lib.wgpuDeviceCreateCommandEncoder(own._internal, ffi.NULL)
        lib.wgpuCommandEncoderCopyBufferToBuffer(encoder, self.source._internal, 0, staging, 0, self.nbytes)
        commands = lib.wgpuCommandEncoderFinish(encoder, ffi.NULL)
        lib.wgpuCommandEncoderRelease(encoder)
        lib.wgpuQueueSubmit(queue, 1, [commands])
        lib.wgpuCommandBufferRelease(commands)
        self.is_mapped = False
        called = ffi.NULL, lib.WGPUCallbackMode_AllowProcessEvents, self.kept, ffi.NULL, ffi.NULL
        lib.wgpuBufferMapAsync(staging, lib.WGPUMapMode_Read, 0, self.nbytes, called)
        while not self.is_mapped:
            lib.wgpuDevicePoll(own._internal, False, ffi.NULL)
            os.sched_yield()
        start = lib.wgpuBufferGetMappedRange(staging, 0, self.nbytes)
        array = np.frombuffer(ffi.buffer(start, self.nbytes), np.uint8).copy()
        lib.wgpuBufferUnmap(staging)
        return array

    def wgpu_py(self) -> Any:
        """Read by wgpu-py's methods, without its extra submission."""
        encoder = device.wgpu_device.create_command_encoder()
        encoder.copy_buffer_to_buffer(self.source, 0, self.staging, 0, self.nbytes)
        device.queue.submit([encoder.finish()])
        self.staging.map_async("READ_NOSYNC").sync_wait()
        array = np.frombuffer(self.staging.read_mapped(copy=False), np.uint8).copy()
        self.staging.unmap()
        return array

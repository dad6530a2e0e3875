"""All that is used of wgpu's private interface; a test names the version that has it.

Calls of wgpu-native whose result wgpu-py drops, or that it makes several times slower, and private names of
wgpu-py for which it has no public ones.
"""

from __future__ import annotations

from functools import cache
from threading import Event
from typing import Any, NamedTuple

from wgslice.gpu.protocols import Buffer, CommandEncoder, GPUDevice, MapPromise

__all__ = ["check_valid", "mapping_event", "native_version", "owner_of", "poll_wait", "queue_is_empty"]


class Native(NamedTuple):
    """wgpu-native's library, and arguments that never change."""

    plain: Any
    checked: Any  # raises wgpu's errors
    null: Any
    no_bindings: Any  # the description of a bind group layout without bindings


@cache
def native() -> Native:
    """Load the library once, when a device exists; `import wgslice` does not import wgpu."""
    from wgpu.backends.wgpu_native import ffi, lib
    from wgpu.backends.wgpu_native._api import libf

    return Native(lib, libf, ffi.NULL, ffi.new("WGPUBindGroupLayoutDescriptor *"))


def queue_is_empty(wgpu_device: GPUDevice) -> bool:
    """Whether all submitted work is done; does not wait."""
    library, _, null, _ = native()
    # a Rust bool in the lowest byte of C's 32 bits; the other bytes are undefined
    return bool(library.wgpuDevicePoll(pointer(wgpu_device), False, null) & 0xFF)


def check_valid(wgpu_device: GPUDevice) -> None:
    """Raise wgpu's error if the device is lost; only then does it refuse a layout without bindings."""
    library, checked, _, no_bindings = native()
    layout = checked.wgpuDeviceCreateBindGroupLayout(pointer(wgpu_device), no_bindings)
    library.wgpuBindGroupLayoutRelease(layout)


def native_version() -> str:
    """The version of wgpu-native, the library underneath wgpu."""
    from wgpu.backends import wgpu_native

    return str(wgpu_native.__version__)


def pointer(wgpu_device: Any) -> Any:
    """wgpu-native's pointer to a device."""
    return wgpu_device._internal


def poll_wait(wgpu_device: Any) -> None:
    """Wait until all that is submitted is done; the public wait, mapping a buffer, takes 0.1 ms more."""
    wgpu_device._poll_wait()


def mapping_event(mapping: MapPromise) -> Event:
    """What is set once a mapping is done, or has failed."""
    promise: Any = mapping
    event: Event = promise._thread_event
    return event


def owner_of(handle: Buffer | CommandEncoder) -> GPUDevice:
    """The wgpu device of a buffer or encoder."""
    owned: Any = handle
    owner: GPUDevice = owned._device
    return owner

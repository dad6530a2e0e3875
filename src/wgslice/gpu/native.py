"""Calls of wgpu-native whose result wgpu-py drops, or that it makes several times slower."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from wgslice.gpu.protocols import GPUDevice

__all__ = ["check_valid", "queue_is_empty"]


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
    return bool(library.wgpuDevicePoll(wgpu_device._internal, False, null) & 0xFF)


def check_valid(wgpu_device: GPUDevice) -> None:
    """Raise wgpu's error if the device is lost; only then does it refuse a layout without bindings."""
    library, checked, _, no_bindings = native()
    layout = checked.wgpuDeviceCreateBindGroupLayout(wgpu_device._internal, no_bindings)
    library.wgpuBindGroupLayoutRelease(layout)

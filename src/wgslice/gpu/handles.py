"""Checks of callers' wgpu handles: an invalid one in a submission aborts the process."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Any

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import WRAPPED, Device, check_usable, describe_buffer
from wgslice.gpu.host import is_buffer, is_encoder, owner_of
from wgslice.gpu.protocols import Buffer, Texture
from wgslice.gpu.sink import sink
from wgslice.layout import Layout, whole_words

WATCHED = "_wgslice_watched"  # the attribute of a wgpu.GPUBuffer that `is_watched` reads


def owning_device(handle: Buffer | Texture) -> Device:
    """Return the device of a buffer or texture, which may be lost."""
    owner = owner_of(handle)
    return getattr(owner, WRAPPED, None) or Device.wrap(owner)


def check_buffer_type(buffer: Buffer, remedy: str) -> None:
    """Raise TypeError unless the value is a buffer."""
    if not is_buffer(buffer):
        raise TypeError(f"of type {type(buffer).__name__}: must be a wgpu.GPUBuffer; {remedy}")


def check_encoder(device: Device, encoder: Any, *, or_pass: bool = False) -> None:
    """Raise unless the value is a command encoder of the device, or a compute pass if that is accepted."""
    if not is_encoder(encoder, or_pass=or_pass):
        kinds = "a wgpu.GPUCommandEncoder" + " or an open wgpu.GPUComputePassEncoder" * or_pass
        raise TypeError(f"encoder is of type {type(encoder).__name__}: must be {kinds}")
    if owner_of(encoder) is not device.wgpu_device:
        raise ValueError(f"the command encoder is not on {device}: create it on that device")


def check_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed or its device is lost; calls that do not run check nothing."""
    sink().check_alive(device, buffer)


def check_still_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed; checks it once, then watches its `destroy`."""
    if not is_watched(buffer) and sink().check_alive(device, buffer):
        watch(buffer)


def check_bound(device: Device, buffers: Iterable[tuple[str, Buffer]]) -> None:
    """Raise, with a buffer's name, if one that a bind group has was destroyed or is mapped."""
    for name, buffer in buffers:
        if not is_watched(buffer) or buffer.map_state != "unmapped":
            with named(name):
                check_usable(device, buffer)
                check_still_alive(device, buffer)


def is_watched(buffer: Buffer) -> bool:
    """Whether a buffer has been found alive, and has not been destroyed since."""
    return getattr(buffer, WATCHED, False)


def watch(buffer: Any) -> None:
    """Mark a buffer as watched until it is destroyed."""
    reference = weakref.ref(buffer)
    previous = vars(buffer).get("destroy")  # replaced by another package, or by this function

    def destroy() -> None:
        known = reference()
        if known is None:
            return
        setattr(known, WATCHED, False)
        if previous is None:
            type(known).destroy(known)
        else:
            previous()

    setattr(buffer, WATCHED, True)
    buffer.destroy = destroy  # of this object alone


def check_fits(buffer: Buffer, layout: Layout, dtype: DType) -> None:
    """Raise ValueError if a layout exceeds its buffer, in whole words of 4 bytes."""
    if layout.lowest < 0:
        raise ValueError(
            f"the layout reaches {-layout.lowest * dtype.itemsize} bytes before the start of "
            f"{describe_buffer(buffer)}: raise the offset"
        )
    needed = whole_words(layout.stop * dtype.itemsize)
    if needed > buffer.size:
        raise ValueError(
            f"{describe_buffer(buffer)} is too small: {dtype} of sizes {layout.sizes}, "
            f"strides {layout.strides} from byte offset {layout.offset * dtype.itemsize} need {needed}, "
            "in whole words of 4 bytes"
        )

"""Checks of callers' wgpu handles: an invalid one in a submission aborts the process."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import WRAPPED, Device, check_usable, describe_buffer
from wgslice.gpu.host import as_buffer, as_encoder, owner_of, type_name
from wgslice.gpu.protocols import Buffer, Texture
from wgslice.gpu.sink import sink
from wgslice.layout import Layout, whole_words

WATCHED = "_wgslice_watched"  # the attribute of a wgpu.GPUBuffer that `is_watched` reads


def owning_device(handle: Buffer | Texture) -> Device:
    """Return the device of a buffer or texture, which may be lost."""
    owner = owner_of(handle)
    return getattr(owner, WRAPPED, None) or Device.wrap(owner)


def checked_buffer(value: Any, remedy: str) -> Buffer:
    """Return the buffer that a value is; raise TypeError if it is none."""
    buffer = as_buffer(value)
    if buffer is None:
        raise TypeError(f"of type {type_name(value)}: must be a wgpu.GPUBuffer; {remedy}")
    return buffer


def checked_encoder(device: Device, value: Any, *, or_pass: bool = False) -> Any:
    """Return the command encoder of the device, or the compute pass if that is accepted, that a value is."""
    encoder = as_encoder(value, or_pass=or_pass)
    if encoder is None:
        kinds = "a wgpu.GPUCommandEncoder" + " or an open wgpu.GPUComputePassEncoder" * or_pass
        raise TypeError(f"encoder is of type {type_name(value)}: must be {kinds}")
    if owner_of(encoder) is not device.wgpu_device:
        raise ValueError(f"the command encoder is not on {device}: create it on that device")
    return encoder


def check_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed or its device is lost; calls that do not run check nothing."""
    sink().check_alive(device, buffer)


def check_still_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed; checks it once, then watches its `destroy`."""
    if not is_watched(buffer) and sink().check_alive(device, buffer):
        watch(buffer)


def check_given(
    device: Device,
    buffers: Iterable[tuple[str, Buffer]],
    check: Callable[[Device, Buffer], None] = check_alive,
) -> None:
    """Raise, with a buffer's name, if one cannot be used, or `check` finds that it is destroyed."""
    for name, buffer in buffers:
        with named(name):
            check_usable(device, buffer)
            check(device, buffer)


def check_bound(device: Device, buffers: Iterable[tuple[str, Buffer]]) -> None:
    """Raise, with a buffer's name, if one that a bind group has was destroyed or is mapped."""
    changed = [each for each in buffers if not is_watched(each[1]) or each[1].map_state != "unmapped"]
    check_given(device, changed, check_still_alive)


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

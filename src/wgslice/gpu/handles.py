"""Callers' handles, checked: a mistake in one that reaches a submission aborts the process."""

from __future__ import annotations

import weakref
from collections.abc import MutableSet
from typing import Any

from wgslice.dtypes import DType
from wgslice.gpu.capture import active
from wgslice.gpu.device import WRAPPED, Device
from wgslice.gpu.native import Placeholder, check_process, owner_of, translated_errors
from wgslice.gpu.protocols import Buffer, BufferUsage, CommandEncoder
from wgslice.layout import Layout, whole_words


def describe_buffer(buffer: Buffer) -> str:
    """A buffer as errors call it."""
    label = f" {buffer.label!r}" if buffer.label else ""
    return f"the buffer{label} of {buffer.size} bytes"


def device_of(buffer: Buffer) -> Device:
    """The device that a caller's buffer belongs to."""
    check_buffer_type(buffer, "that of a tensor is x.buffer, and offset= says where to begin")
    owner = owner_of(buffer)
    wrapped: Device | None = getattr(owner, WRAPPED, None)  # without a look at whether it is lost
    return Device.wrap(owner) if wrapped is None else wrapped


def check_buffer_type(buffer: Buffer, remedy: str) -> None:
    """Refuse what is no buffer."""
    if not is_buffer(buffer):
        raise TypeError(f"of type {type(buffer).__name__}: must be a wgpu.GPUBuffer; {remedy}")


def check_encoder(device: Device, encoder: CommandEncoder) -> None:
    """Refuse what is no command encoder of the device."""
    import wgpu

    if not isinstance(encoder, wgpu.GPUCommandEncoder):
        raise TypeError(f"encoder is of type {type(encoder).__name__}: must be a wgpu.GPUCommandEncoder")
    if owner_of(encoder) is not device.wgpu_device:
        raise ValueError(f"the command encoder is not of {device}: create it on that device")


def check_usable(device: Device, buffer: Buffer) -> None:
    """Refuse a buffer of another device, without STORAGE usage, smaller than any binding, or mapped."""
    check_process()
    if owner_of(buffer) is not device.wgpu_device:
        raise ValueError(f"{describe_buffer(buffer)} is not on {device}: move the data to that device first")
    if not buffer.usage & BufferUsage.STORAGE:
        raise ValueError(f"{describe_buffer(buffer)} lacks usage STORAGE: create it with that usage")
    if buffer.size < 4:
        raise ValueError(f"{describe_buffer(buffer)} is too small: no binding is smaller than 4 bytes")
    if buffer.map_state != "unmapped":
        raise ValueError(f"{describe_buffer(buffer)} is {buffer.map_state}: unmap it first")


def check_alive(device: Device, buffer: Buffer) -> None:
    """Refuse a buffer that has been destroyed, or whose device is lost.

    wgpu looks at the buffers of a copy no earlier than in `queue.submit`, where a mistake aborts the
    process. Making a bind group looks too, and raises. What a captured call uses is not looked at.
    """
    if active.capture is not None:
        return
    with translated_errors:
        device.pipelines.probe(buffer)


def check_still_alive(device: Device, buffer: Buffer) -> None:
    """Refuse a buffer that has been destroyed; one that was found alive before tells of that itself."""
    if buffer not in device.alive and active.capture is None:
        check_alive(device, buffer)
        watch(buffer, device.alive)


def watch(buffer: Buffer, alive: MutableSet[Buffer]) -> None:
    """Count a buffer among those that are alive until it is destroyed."""
    alive.add(buffer)
    reference = weakref.ref(buffer)
    kind: Any = type(buffer)
    callers = vars(buffer).get("destroy")  # somebody else's, or this function's

    def destroy() -> None:
        known = reference()
        if known is None:
            return
        alive.discard(known)
        if callers is None:
            kind.destroy(known)
        else:
            callers()

    buffer.destroy = destroy  # of this object alone


def check_fits(buffer: Buffer, layout: Layout, dtype: DType) -> None:
    """Refuse a layout that leaves its buffer, whose last word must be whole."""
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


def is_buffer(value: object) -> bool:
    """Whether a caller's handle is a buffer."""
    import wgpu

    return isinstance(value, (wgpu.GPUBuffer, Placeholder))

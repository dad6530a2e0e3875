"""Checks of callers' wgpu handles: an invalid one in a submission aborts the process."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.adapter import devices_in_use
from wgslice.gpu.device import (
    WRAPPED,
    AnyDevice,
    Device,
    check_usable,
    checked_device,
    describe_buffer,
    is_elsewhere,
)
from wgslice.gpu.hosts import found_by
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.sink import sink
from wgslice.gpu.stand_ins import given_out, is_given_out
from wgslice.layout import Layout, whole_words


def owning_device(host: WebGPU, handle: Any, device: AnyDevice = None) -> Device:
    """Return the device of a buffer or texture, which may be lost: a given one, or the host's only one."""
    if device is not None:
        return checked_device(device)
    owner = host.owner_of(handle)
    if owner is None:
        candidates = [each for each in devices_in_use if host.as_device(each) is not None]
        if len(candidates) != 1:
            raise ValueError(
                f"{host.type_name(handle)} does not tell its device, and {len(candidates)} are in use: give "
                "device=, a Device, which Device.wrap makes of your program's"
            )
        owner = candidates[0]
    return getattr(owner, WRAPPED, None) or Device.wrap(owner)


def checked_buffer(value: Any, remedy: str) -> tuple[WebGPU, Buffer]:
    """Return the host of a buffer, and what stands for it; raise TypeError if the value is none."""
    host, buffer = found_by("buffer", value)
    if buffer is None:
        raise TypeError(f"of type {host.type_name(value)}: must be a wgpu.GPUBuffer; {remedy}")
    return host, buffer


def checked_encoder(device: Device, value: Any, *, or_pass: bool = False) -> Any:
    """Return the command encoder of the device, or the compute pass if that is accepted, that a value is."""
    encoder = device.host.as_encoder(value, or_pass=or_pass)
    if encoder is None:
        kinds = "a wgpu.GPUCommandEncoder" + " or an open wgpu.GPUComputePassEncoder" * or_pass
        raise TypeError(f"encoder is of type {device.host.type_name(value)}: must be {kinds}")
    if is_elsewhere(device, encoder):
        raise ValueError(f"the command encoder is not on {device}: create it on that device")
    return encoder


def check_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed or its device is lost; calls that do not run check nothing."""
    if sink().runs:
        with device.calls:
            device.pipelines.probe(buffer)


def check_still_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed, as only the user can to whom it was given."""
    if is_given_out(buffer) and not device.host.is_known_alive(buffer) and sink().runs:
        check_alive(device, buffer)
        device.host.watch(buffer)


def keep_for_caller(device: Device, buffers: Iterable[Buffer]) -> None:
    """Reuse buffers for no other tensors: commands use them that the caller submits at any time."""
    if sink().runs:
        with device.mapping_lock:
            for buffer in buffers:
                given_out(buffer)


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
    is_known_alive = device.host.is_known_alive
    changed = [
        each
        for each in buffers
        if is_given_out(each[1]) and not (is_known_alive(each[1]) and each[1].map_state == "unmapped")
    ]
    check_given(device, changed, check_still_alive)


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

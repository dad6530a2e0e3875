"""The host of WebGPU in a browser: `navigator.gpu`, reached from Python through Pyodide.

`navigator` has the handles, and says when errors are raised and memory is freed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from typing import Any, cast

import numpy as np

from wgslice.errors import LOST, DeviceLostError, TranslatedErrors
from wgslice.gpu import protocols
from wgslice.gpu.navigator import (
    GPUAdapter,
    GPUBuffer,
    GPUCommandEncoder,
    GPUComputePassEncoder,
    GPUDevice,
    GPUError,
    GPUTexture,
    LeasedBuffer,
    Pending,
    Promise,
    can_wait,
    interface_of,
    js,
    known_devices,
    only_device,
    waited,
)
from wgslice.gpu.placeholder import Placeholder
from wgslice.gpu.protocols import (
    BindGroup,
    BoundRange,
    Buffer,
    BytesCopy,
    CommandEncoder,
    Region,
    Texture,
)

BACKENDS = {"WebGPU": 0}  # of adapters: the browser does not tell its own
CANVASES = ("HTMLCanvasElement", "OffscreenCanvas", "GPUCanvasContext")
REFUSED = "the browser refused a command; the device stays usable; `wgslice doctor` tests the driver"


@cache
def lease_class() -> Callable[[Buffer, Callable[[Buffer, Buffer], None]], Buffer]:
    """Return the class of leased buffers."""
    return cast("Callable[[Buffer, Callable[[Buffer, Buffer], None]], Buffer]", LeasedBuffer)


# values of callers


def as_device(value: Any) -> protocols.GPUDevice | None:
    """Return the device that a value is, also one of JavaScript's, or None."""
    if isinstance(value, GPUDevice):
        return cast("protocols.GPUDevice", value)
    if interface_of(value) != "GPUDevice":
        return None
    for known in known_devices:
        if known.js.js_id == value.js_id:
            return cast("protocols.GPUDevice", known)
    return cast("protocols.GPUDevice", GPUDevice(value, GPUAdapter(js().adapterOf(value))))


def as_buffer(value: Any) -> Buffer | None:
    """Return the buffer that a value is, also one of JavaScript's or a placeholder, or None."""
    if isinstance(value, (GPUBuffer, Placeholder)):
        return cast("Buffer", value)
    if interface_of(value) != "GPUBuffer":
        return None
    device = only_device("GPUBuffer")
    return cast("Buffer", GPUBuffer(device, value, value.size, value.usage, value.label, owned=False))


def as_texture(value: Any) -> Texture | None:
    """Return the texture that a value is, also one of JavaScript's, or None."""
    if isinstance(value, GPUTexture):
        return cast("Texture", value)
    interface = interface_of(value)
    if interface in CANVASES:
        raise TypeError(
            f"texture is of type {interface}: must be a GPUTexture; the WebGPU context of a canvas has one, "
            "context.getCurrentTexture()"
        )
    if interface != "GPUTexture":
        return None
    return cast("Texture", GPUTexture(only_device("GPUTexture"), value))


def as_encoder(value: Any, *, or_pass: bool = False) -> CommandEncoder | None:
    """Return the command encoder that a value is, or the compute pass if that is accepted, or None."""
    if isinstance(value, (GPUCommandEncoder, *[GPUComputePassEncoder] * or_pass)):
        return cast("CommandEncoder", value)
    interface = interface_of(value)
    if interface == "GPUCommandEncoder":
        return cast("CommandEncoder", GPUCommandEncoder(only_device(interface), value))
    if interface == "GPUComputePassEncoder" and or_pass:
        return cast("CommandEncoder", GPUComputePassEncoder(only_device(interface), value, []))
    return None


def type_name(value: object) -> str:
    """Return the name of a value's type for errors, of JavaScript's values that of their interface."""
    return interface_of(value) or type(value).__name__


def owner_of(handle: Any) -> protocols.GPUDevice:
    """Return the device of a buffer, encoder or texture."""
    owner: protocols.GPUDevice = handle.device
    return owner


# adapters and devices


def found_handles(backend: str) -> list[Any]:  # noqa: ARG001 -- there is one
    """Return the adapter of the browser, or none; wait for it."""
    return adapters_of(waited(js().requestAdapter))


async def found_handles_async(backend: str) -> list[Any]:  # noqa: ARG001 -- there is one
    """Return the adapter of the browser, or none."""
    return adapters_of(await js().requestAdapter())


def adapters_of(handle: Any) -> list[Any]:
    """Return a list of an adapter, or none."""
    return [] if handle is None else [GPUAdapter(handle)]


def request_device(adapter: Any, features: Collection[str] = ()) -> protocols.GPUDevice:
    """Make a device with all limits of its adapter; wait for it."""
    return cast("protocols.GPUDevice", adapter.request_device_sync(required_features=features))


async def request_device_async(adapter: Any, features: Collection[str] = ()) -> protocols.GPUDevice:
    """Make a device with all limits of its adapter."""
    return cast(
        "protocols.GPUDevice", GPUDevice(await js().requestDevice(adapter.js, *sorted(features)), adapter)
    )


def check_process() -> None:
    """Check nothing: there are no child processes in a browser."""


def host_versions() -> dict[str, str]:
    """Return the versions of what implements WebGPU."""
    from js import navigator

    return {"browser": str(navigator.userAgent)}


# commands


def make_bind_group(wgpu_device: Any, layout: Any, ranges: Sequence[BoundRange]) -> BindGroup:
    """Make a bind group of buffers."""
    return cast("BindGroup", wgpu_device.bind(layout, ranges))


def copy_rows(
    encoder: Any,
    sides: tuple[tuple[Any, int], tuple[Any, int]],
    offsets: Iterable[tuple[int, int]],
    nbytes: int,
    checked: bool,  # noqa: ARG001
) -> None:
    """Record a copy of `nbytes` per pair of offsets, counted from those of both buffers."""
    (read, read_base), (written, written_base) = sides
    pairs = np.array(list(offsets), np.float64)
    js().copyRows(encoder.js, read.js, read_base, written.js, written_base, nbytes, pairs.reshape(-1).data)
    encoder.used += read, written


def copy_texels(
    encoder: Any, region: Region, buffer: Any, rows: Sequence[int], size: Sequence[int], *, writes: bool
) -> None:
    """Record a copy of one aspect; `rows` are offset, bytes a row, rows a layer."""
    texture: Any = region.texture
    where = *region.origin, region.mip_level, region.aspect
    js().copyTexels(encoder.js, texture.js, *where, buffer.js, *rows, *size, writes)
    encoder.used += texture, buffer


def timestamp_period_ns(wgpu_device: Any) -> float:  # noqa: ARG001 -- of any queue
    """Return the nanoseconds of a tick of timestamps, which a browser converts."""
    return 1.0


# errors


def check_valid(wgpu_device: Any) -> None:
    """Raise an error if the device is lost."""
    wgpu_device.check()


def check_texture_valid(texture: Any) -> None:
    """Raise an error if the device of a texture is lost; one that is destroyed raises at the next wait."""
    texture.device.check()


def refusals() -> type[Exception]:
    """Return the class of the browser's errors."""
    return GPUError


translated_errors = TranslatedErrors(refusals, "buffer has been destroyed", REFUSED)


@contextmanager
def refused_as_value(wgpu_device: Any) -> Iterator[None]:
    """Raise ValueError for what the browser refuses in the block, where the values come from a file.

    Where a call cannot wait, the next one that waits raises instead.
    """
    if not can_wait():
        yield
        return
    js().push(wgpu_device.js)
    try:
        yield
    finally:
        found = waited(js().pop, wgpu_device.js)
    if found is not None:
        raise ValueError(f"the browser refuses it: {' '.join(found[1].split())}")


# waits


def wait_done(wgpu_device: Any, is_lost: Callable[[], bool]) -> None:
    """Wait until all submitted work is done; raise what the browser has reported meanwhile."""
    waited(js().done, wgpu_device.queue.js)
    if is_lost():
        raise DeviceLostError(LOST)
    with translated_errors:
        wgpu_device.status.check()


def check_mappings_on_destroy(wgpu_device: Any, mapped: Collection[Buffer]) -> None:
    """Do nothing: arrays are copies of mapped memory here."""


def check_loss(is_lost: Callable[[], bool]) -> None:
    """Raise DeviceLostError if the device is lost, which the browser may be about to report."""
    if can_wait():
        waited(js().turn)
    if is_lost():
        raise DeviceLostError(LOST)


def submit(wgpu_device: Any, encoder: Any, copy: BytesCopy | None = None) -> None:
    """Submit the commands of an encoder, if there is one, then a copy."""
    encoder = encoder or wgpu_device.create_command_encoder()
    if copy is not None:
        encoder.copy_buffer_to_buffer(copy.source, copy.offset_nbytes, copy.target, 0, copy.nbytes)
    wgpu_device.queue.submit([encoder.finish()])


def begin_mapping(buffer: Any, nbytes: int, found: Pending) -> None:
    """Begin to map the first bytes of a buffer after all submitted work."""
    found.begun = js().map(buffer.js, 0, nbytes)
    if found.promise is not None:
        found.promise.pending = found


def begin_work(wgpu_device: Any) -> Pending:
    """Begin to wait for the end of all work that has been submitted."""
    found = Pending(wgpu_device)
    found.begun = partial(js().done, wgpu_device.queue.js)
    return found


def set_map_state(buffer: Any, state: str) -> None:
    """Do nothing: the browser knows."""


def mapped_bytes(buffer: Any, nbytes: int) -> memoryview:
    """Return a read-only copy of the first bytes of a buffer that has been mapped."""
    copied: memoryview = buffer.read_mapped(0, nbytes)
    return copied.toreadonly()


def end_mapping(buffer: Any) -> None:
    """Unmap a buffer, or cancel its mapping."""
    buffer.unmap()


def end_mapping_of_tensor(buffer: Any) -> None:
    """Unmap a buffer that is used again, or cancel its mapping."""
    buffer.unmap()


def new_promise(title: str) -> Any:  # noqa: ARG001 -- a task has it
    """Make a promise of a mapping that begins next."""
    return Promise()


def check_loop(promise: Any) -> None:
    """Check nothing: the browser's event loop is never closed."""


def follow_running_loop(promise: Any) -> None:
    """Do nothing: there is one event loop."""

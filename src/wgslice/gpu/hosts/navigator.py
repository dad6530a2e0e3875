"""wgpu-py's API on the WebGPU of a browser, as far as this package uses it: handles of JavaScript's objects.

The browser reports its errors some time after the call that caused them: the next call that waits raises
them, apart from those that the handles find themselves. Where WebAssembly can be suspended (JSPI), calls
wait; elsewhere they raise, and `await` remains.

A buffer's memory is freed when its handle is dropped, since JavaScript would collect it much later. So
whatever uses a buffer holds its handle: bind groups, and encoders until their commands are submitted.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
from functools import cache
from itertools import chain
from types import SimpleNamespace
from typing import Any, NoReturn
from weakref import WeakSet

import numpy as np

from wgslice.packaged import packaged_text

CANNOT_WAIT = (
    "this call has to wait for the GPU, and this browser cannot suspend Python here: make the device by "
    "`await wg.Device.request_async()` and read tensors by `await x.numpy_async()`"
)
READ = (
    "`wg.from_buffer(buffer, shape, dtype).numpy()` and `wg.from_texture(texture).numpy()` read, and "
    "`numpy_async()` where calls cannot wait"
)
SOFTWARE = ("swiftshader", "llvmpipe", "lavapipe", "microsoft basic render driver")

# Smaller buffers come from memory that the browser holds; to wait for its answer costs some 100 us.
MIN_AWAITED_NBYTES = 2**20


class GPUError(Exception):
    """An error of the browser's WebGPU."""


class GPUValidationError(GPUError):
    """A command or descriptor breaks a rule of WebGPU."""


class GPUOutOfMemoryError(GPUError, MemoryError):
    """There is no memory left for a buffer."""


class GPUInternalError(GPUError):
    """The browser or its driver cannot do what WebGPU allows."""


KINDS = {
    "validation": GPUValidationError,
    "out-of-memory": GPUOutOfMemoryError,
    "internal": GPUInternalError,
}


@cache
def js() -> Any:
    """Return the functions of navigator.js on first use, as attributes that Python looks up."""
    from pyodide.code import run_js

    functions = run_js(packaged_text("wgslice.gpu.hosts", "navigator.js"))
    return SimpleNamespace(**functions.to_py(depth=1))


def waited(begin: Callable[..., Any], *arguments: Any) -> Any:
    """Return what the promise of a function resolves to; raise RuntimeError where calls cannot wait."""
    from pyodide.ffi import run_sync

    if not can_wait():
        raise RuntimeError(CANNOT_WAIT)
    return run_sync(begin(*arguments))


def can_wait() -> bool:
    """Whether a call can wait for a promise."""
    from pyodide.ffi import can_run_sync

    return bool(can_run_sync())


# handles


class Status:
    """What the browser has reported of a device."""

    def __init__(self) -> None:
        self.lost = False
        self.errors: list[GPUError] = []  # in order, not yet raised

    def add(self, kind: str, text: str) -> None:
        """Keep an error for the next call that waits."""
        self.errors.append(KINDS[kind](text))

    def lose(self, reason: str) -> None:  # noqa: ARG002
        """Note that the device is lost."""
        self.lost = True

    def check(self) -> None:
        """Raise the first error that no call has raised; the others follow from it."""
        if self.errors:
            first, self.errors[:] = self.errors[0], []
            raise first


class Handle:
    """A handle, which names what has the members that it lacks."""

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # a mark that may be absent
            raise AttributeError(name)
        kind = next(each.__name__ for each in type(self).__mro__ if each.__name__.startswith("GPU"))
        remedy = READ if name.startswith(("read_", "map_")) else f"JavaScript's {kind} is its attribute `js`"
        raise AttributeError(f"the browser's {kind} has no {name!r}: {remedy}", name=name, obj=self)


class GPUAdapter(Handle):
    """An adapter of the browser."""

    def __init__(self, handle: Any) -> None:
        self.js = handle
        self.features = {str(each) for each in handle.features}
        vendor, architecture, device, description, fallback = js().describe(handle)
        name = device if device and not device.startswith("0x") else ""
        name = name or description or f"{vendor} {architecture}".strip()
        software = fallback or any(each in f"{name} {architecture}".lower() for each in SOFTWARE)
        self.info = {
            "device": name,
            "description": description if description != name else "",
            "adapter_type": "CPU" if software else "Unknown",
            "backend_type": "WebGPU",
        }

    @property
    def limits(self) -> dict[str, int]:
        """The limits of the adapter, all of which its devices get."""
        return limits_of(self.js)

    def request_device_sync(
        self,
        *,
        required_features: Iterable[str] = (),
        required_limits: Mapping[str, int] | None = None,  # noqa: ARG002 -- all of the adapter's
    ) -> GPUDevice:
        """Make a device with all limits of the adapter; wait for it."""
        return GPUDevice(waited(js().requestDevice, self.js, *sorted(required_features)), self)

    async def request_device_async(
        self,
        *,
        required_features: Iterable[str] = (),
        required_limits: Mapping[str, int] | None = None,  # noqa: ARG002 -- all of the adapter's
    ) -> GPUDevice:
        """Make a device with all limits of the adapter."""
        return GPUDevice(await js().requestDevice(self.js, *sorted(required_features)), self)


class GPU:
    """The entry point."""

    def enumerate_adapters_sync(self) -> list[GPUAdapter]:
        """Return the adapter of the browser, or none; wait for it."""
        handle = waited(js().requestAdapter)
        return [] if handle is None else [GPUAdapter(handle)]

    async def enumerate_adapters_async(self) -> list[GPUAdapter]:
        """Return the adapter of the browser, or none."""
        handle = await js().requestAdapter()
        return [] if handle is None else [GPUAdapter(handle)]


gpu = GPU()


class GPUDevice(Handle):
    """A device of the browser, with wgpu-py's names for what this package uses."""

    def __init__(self, handle: Any, adapter: GPUAdapter) -> None:
        from pyodide.ffi import create_proxy

        self.js = handle
        self.adapter = adapter
        self.features = {str(each) for each in handle.features}
        self.limits = limits_of(handle)
        self.queue = GPUQueue(self)
        self.status = Status()
        # both are called as long as JavaScript has the device
        js().watch(handle, create_proxy(self.status.add), create_proxy(self.status.lose))
        known_devices.add(self)

    def check(self) -> None:
        """Raise if the device is lost."""
        if self.status.lost:
            raise GPUError("the device is lost")

    def destroy(self) -> None:
        """Lose the device."""
        self.status.lost = True
        self.js.destroy()

    def create_buffer(self, *, size: int, usage: int, label: str = "") -> GPUBuffer:
        """Make a zeroed buffer; a large one is waited for, if a call can wait, so that it raises here."""
        self.check()
        if size > self.limits["max-buffer-size"]:
            raise GPUValidationError(f"size {size} is above the limit of the device")
        if size < MIN_AWAITED_NBYTES or not can_wait():
            return GPUBuffer(self, js().createBuffer(self.js, size, usage), size, usage, label)
        made = waited(js().allocate, self.js, size, usage)
        if made is None:
            raise GPUOutOfMemoryError("Not enough memory left")
        return GPUBuffer(self, made, size, usage, label)

    def create_buffer_with_data(self, *, data: Any, usage: int, label: str = "") -> GPUBuffer:
        """Make a buffer with bytes."""
        self.check()
        view = memoryview(data)
        made = js().createBufferWithData(self.js, view, usage)
        return GPUBuffer(self, made, -(-view.nbytes // 4) * 4, usage, label)

    def create_texture(
        self,
        *,
        label: str = "",
        size: Sequence[int],
        mip_level_count: int = 1,
        sample_count: int = 1,
        dimension: str = "2d",
        format: str,
        usage: int,
    ) -> GPUTexture:
        """Make a texture of zeros."""
        self.check()
        described = label, size, mip_level_count, sample_count, dimension, format, usage
        return GPUTexture(self, js().createTexture(self.js, *described), owned=True)

    def create_bind_group_layout(self, *, entries: Sequence[Mapping[str, Any]]) -> Any:
        """Make the layout of a bind group of buffers, of one visibility."""
        self.check()
        pairs = chain.from_iterable((entry["binding"], entry["buffer"]["type"]) for entry in entries)
        return js().createBindGroupLayout(self.js, entries[0]["visibility"] if entries else 0, *pairs)

    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[Any]) -> Any:
        """Make the layout of a pipeline."""
        return js().createPipelineLayout(self.js, *bind_group_layouts)

    def create_shader_module(self, *, label: str = "", code: str) -> Any:
        """Begin to compile WGSL."""
        self.check()
        return js().createShaderModule(self.js, label, code)

    def create_compute_pipeline(self, *, layout: Any, compute: Mapping[str, Any]) -> Any:
        """Begin to compile a pipeline."""
        self.check()
        constants = chain.from_iterable(compute.get("constants", {}).items())
        return js().createComputePipeline(
            self.js, layout, compute["module"], compute["entry_point"], *constants
        )

    def create_bind_group(self, *, layout: Any, entries: Sequence[Mapping[str, Any]]) -> GPUBindGroup:
        """Make a bind group of buffers."""
        self.check()
        flat: list[Any] = []
        for entry in entries:
            bound = entry["resource"]
            flat += entry["binding"], bound["buffer"].js, bound["offset"], bound["size"]
        buffers = [entry["resource"]["buffer"] for entry in entries]
        return GPUBindGroup(js().createBindGroup(self.js, layout, *flat), buffers)

    def push_error_scope(self, filter: str) -> None:
        """Begin to catch errors of a kind."""
        js().push(self.js, filter)

    def pop_error_scope_sync(self) -> GPUError | None:
        """Return the first error since the last `push_error_scope`, if there is one; wait for it."""
        found = waited(js().pop, self.js)
        return None if found is None else KINDS[found[0]](found[1])

    def create_command_encoder(self) -> GPUCommandEncoder:
        """Make a command encoder."""
        self.check()
        return GPUCommandEncoder(self, js().createCommandEncoder(self.js))


known_devices: WeakSet[GPUDevice] = WeakSet()


def limits_of(handle: Any) -> dict[str, int]:
    """Return limits by their names as wgpu-py writes them, such as max-buffer-size."""
    found = js().limits(handle)
    return {re.sub("[A-Z]", lambda each: f"-{each[0].lower()}", name): int(value) for name, value in found}


class GPUQueue(Handle):
    """The queue of a device."""

    def __init__(self, device: GPUDevice) -> None:
        self.device = device
        self.js = device.js.queue

    def submit(self, command_buffers: Sequence[Any]) -> None:
        """Submit commands; what they use may be dropped afterwards."""
        if command_buffers:
            js().submit(self.js, *[each.js for each in command_buffers])

    def on_submitted_work_done_async(self) -> GPUPromise:
        """Return a promise of the end of all submitted work."""
        return GPUPromise(self.device, js().done(self.js))

    def write_buffer(self, buffer: GPUBuffer, buffer_offset: int, data: Any) -> None:
        """Write bytes before any later submission."""
        js().writeBuffer(self.js, buffer.js, buffer_offset, memoryview(data))


class GPUBuffer(Handle):
    """A buffer, whose memory is freed when the last reference to it is dropped."""

    def __init__(
        self,
        device: GPUDevice | None,
        handle: Any,
        size: int,
        usage: int,
        label: str = "",
        owned: bool = True,
    ) -> None:
        self.device = device  # None of a buffer that JavaScript has made, which does not tell it
        self._js = handle
        self._owned = owned
        self.size = size
        self.usage = usage
        self.label = label
        self.destroyed = False

    @property
    def js(self) -> Any:
        """The GPUBuffer of JavaScript."""
        if self.destroyed:
            raise GPUValidationError("the buffer has been destroyed")
        return self._js

    @property
    def map_state(self) -> str:
        """Whether the buffer is "unmapped", "pending" or "mapped"."""
        return str(self._js.mapState)

    def map_async(self, mode: int, offset: int, size: int) -> GPUPromise:
        """Begin to map bytes."""
        return GPUPromise(self.device, js().map(self.js, mode, offset, size))

    def read_mapped(
        self,
        offset: int,
        size: int,
        *,
        copy: bool = True,  # noqa: ARG002 -- it always does
    ) -> memoryview:
        """Return a copy of mapped bytes: Python cannot refer to memory of JavaScript."""
        into = np.empty(size, np.uint8)
        js().readMapped(self.js, offset, size, into.data)
        return into.data

    def unmap(self) -> None:
        """End the mapping."""
        self._js.unmap()

    def destroy(self) -> None:
        """Free the memory once submitted commands have run."""
        self.destroyed = True
        self._js.destroy()

    def __del__(self) -> None:
        if self._owned:
            self._js.destroy()


class GPUTexture(Handle):
    """A texture. Memory of one that Python has made is freed when the last reference to it is dropped."""

    def __init__(self, device: GPUDevice | None, handle: Any, owned: bool = False) -> None:
        self.device = device
        self.js = handle
        self._owned = owned
        described = list(js().describeTexture(handle))
        self.size = tuple(described[:3])
        self.dimension, self.format, self.mip_level_count, self.sample_count, self.usage, self.label = (
            described[3:]
        )

    def create_view(self) -> Any:
        """Make a view of all of it."""
        return self.js.createView()

    def destroy(self) -> None:
        """Free the memory once submitted commands have run."""
        self.js.destroy()

    def __del__(self) -> None:
        if self._owned:
            self.js.destroy()


class GPUBindGroup(Handle):
    """A bind group, which holds its buffers."""

    def __init__(self, handle: Any, buffers: Sequence[Any]) -> None:
        self.js = handle
        self.buffers = buffers


class GPUCommandBuffer(Handle):
    """Finished commands, which hold what they use."""

    def __init__(self, handle: Any, used: list[Any]) -> None:
        self.js = handle
        self.used = used


class GPUCommandEncoder(Handle):
    """An encoder of commands, which holds what they use."""

    def __init__(self, device: GPUDevice | None, handle: Any) -> None:
        self.device = device
        self._js = handle
        self._ended = False
        self.used: list[Any] = []

    @property
    def js(self) -> Any:
        """The encoder of JavaScript."""
        if self._ended:
            raise GPUValidationError("the command encoder has ended")
        return self._js

    def begin_compute_pass(self) -> GPUComputePassEncoder:
        """Begin a pass."""
        return GPUComputePassEncoder(self.device, js().beginComputePass(self.js), self.used)

    def copy_buffer_to_buffer(
        self,
        source: GPUBuffer,
        source_offset: int,
        destination: GPUBuffer,
        destination_offset: int,
        size: int,
    ) -> None:
        """Record a copy."""
        js().copyBuffer(self.js, source.js, source_offset, destination.js, destination_offset, size)
        self.used += source, destination

    def copy_buffer_to_texture(self, source: Any, destination: Any, copy_size: Sequence[int]) -> None:
        """Record a copy."""
        self._copy_texels(destination, source, copy_size, writes=True)

    def copy_texture_to_buffer(self, source: Any, destination: Any, copy_size: Sequence[int]) -> None:
        """Record a copy."""
        self._copy_texels(source, destination, copy_size, writes=False)

    def _copy_texels(self, texels: Any, rows: Any, size: Sequence[int], *, writes: bool) -> None:
        texture, buffer = texels["texture"], rows["buffer"]
        where = *texels["origin"], texels["mip_level"], texels["aspect"]
        layout = rows["offset"], rows["bytes_per_row"], rows["rows_per_image"]
        js().copyTexels(self.js, texture.js, *where, buffer.js, *layout, *size, writes)
        self.used += texture, buffer

    def clear_buffer(self, buffer: GPUBuffer, offset: int, size: int) -> None:
        """Record a clear."""
        js().clearBuffer(self.js, buffer.js, offset, size)
        self.used.append(buffer)

    def finish(self) -> GPUCommandBuffer:
        """End the encoder."""
        finished = js().finish(self.js)
        self._ended = True
        return GPUCommandBuffer(finished, self.used)


class GPUComputePassEncoder(Handle):
    """A pass of dispatches."""

    def __init__(self, device: GPUDevice | None, handle: Any, used: list[Any]) -> None:
        self.device = device
        self.js = handle
        self.used = used

    def set_pipeline(self, pipeline: Any) -> None:
        """Choose the pipeline of later dispatches."""
        js().setPipeline(self.js, pipeline)

    def set_bind_group(self, index: int, bind_group: GPUBindGroup) -> None:
        """Choose the buffers of later dispatches."""
        js().setBindGroup(self.js, index, bind_group.js)
        self.used.append(bind_group)

    def dispatch_workgroups(self, x: int, y: int = 1, z: int = 1) -> None:
        """Record a dispatch."""
        js().dispatch(self.js, x, y, z)

    def end(self) -> None:
        """End the pass."""
        js().endPass(self.js)


CANVASES = ("HTMLCanvasElement", "OffscreenCanvas", "GPUCanvasContext")


def type_name(value: object) -> str:
    """Return the name of a value's type, of JavaScript's values that of their interface."""
    return interface_of(value) or type(value).__name__


def interface_of(value: object) -> str:
    """Return the name of the interface of a value of JavaScript's, such as GPUBuffer."""
    from pyodide.ffi import JsProxy

    return str(js().interfaceOf(value)) if isinstance(value, JsProxy) else ""


def wrapped(value: Any) -> Any:
    """Return a handle of a value of JavaScript's that has one, or the value itself."""
    interface = interface_of(value)
    if interface in CANVASES:
        raise TypeError(
            f"texture is of type {interface}: must be a GPUTexture; the WebGPU context of a canvas has one, "
            "context.getCurrentTexture()"
        )
    if interface == "GPUDevice":
        same = (known for known in known_devices if known.js.js_id == value.js_id)
        return next(same, None) or GPUDevice(value, GPUAdapter(js().adapterOf(value)))
    if interface == "GPUBuffer":
        return GPUBuffer(None, value, value.size, value.usage, value.label, owned=False)
    if interface == "GPUTexture":
        return GPUTexture(None, value)
    if interface == "GPUCommandEncoder":
        return GPUCommandEncoder(None, value)
    return GPUComputePassEncoder(None, value, []) if interface == "GPUComputePassEncoder" else value


def versions() -> dict[str, str]:
    """Return the versions of what implements WebGPU."""
    from js import navigator

    return {"browser": str(navigator.userAgent)}


class GPUPromise(Awaitable[None]):
    """A promise of the end of a mapping, or of submitted work."""

    def __init__(self, device: GPUDevice | None, begun: Callable[[], Any]) -> None:
        self._status = device.status if device is not None else Status()
        self._begun = begun  # returns JavaScript's promise
        self._failure: str | None = None  # the reason why it has failed, empty if it has not

    def sync_wait(self) -> None:
        """Wait until it is done; raise what the browser has reported meanwhile."""
        from pyodide.ffi import JsException

        if self._failure is None:
            try:
                waited(self._begun)
                self._failure = ""
            except JsException as error:
                waited(js().turn)  # the loss of the device is reported after this
                self._failure = str(error)
        if self._failure:
            raise RuntimeError(self._failure)
        self._status.check()

    def __await__(self) -> Generator[Any, None, None]:
        from pyodide.ffi import JsException

        if self._failure is None:
            try:
                yield from self._begun().__await__()
                self._failure = ""
            except JsException as error:
                yield from js().turn().__await__()
                self._failure = str(error)
        if self._failure:
            raise RuntimeError(self._failure)

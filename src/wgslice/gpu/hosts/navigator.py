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
from json import dumps
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


class Status:
    """What the browser has reported of a device."""

    def __init__(self) -> None:
        self.lost = False
        self.errors: list[GPUError] = []  # in order, not yet raised

    def add(self, kind: str, text: str) -> None:
        """Keep an error for the next call that waits."""
        self.errors.append(KINDS[kind](text))

    def lose(self, *_: str) -> None:
        """Note that the device is lost."""
        self.lost = True

    def check(self) -> None:
        """Raise the first error that no call has raised; the others follow from it."""
        if self.errors:
            first, self.errors[:] = self.errors[0], []
            raise first


class Handle:
    """A handle of a value of JavaScript's, which names what has the members that it lacks."""

    def __init__(self, js: Any, device: GPUDevice | None = None, used: Any = None) -> None:
        self._js = js
        self.device = device  # None of what JavaScript has made, which does not tell it
        self.used = used  # a list of what lives as long as this; a pass has that of its encoder
        self.ended = ""  # why it cannot be used any longer

    @property
    def js(self) -> Any:
        """The value of JavaScript's."""
        if self.ended:
            raise GPUValidationError(self.ended)
        return self._js

    def __getattr__(self, name: str) -> NoReturn:
        if name.startswith("_"):  # a mark that may be absent
            raise AttributeError(name)
        kind = type(self).__name__
        remedy = READ if name.startswith(("read_", "map_")) else f"JavaScript's {kind} is its attribute `js`"
        raise AttributeError(f"the browser's {kind} has no {name!r}: {remedy}", name=name, obj=self)


class GPUAdapter(Handle):
    """An adapter of the browser, whose devices get all of its limits."""

    def __init__(self, handle: Any) -> None:
        super().__init__(handle)
        self.features = {str(each) for each in handle.features}
        self.info = {**js().describe(handle).to_py(), "backend_type": "WebGPU"}

    @property
    def limits(self) -> dict[str, int]:
        return limits_of(self.js)

    def request_device_sync(self, *, required_features: Iterable[str] = (), **_: Any) -> GPUDevice:
        return GPUDevice(waited(js().requestDevice, self.js, *sorted(required_features)), self)

    async def request_device_async(self, *, required_features: Iterable[str] = (), **_: Any) -> GPUDevice:
        return GPUDevice(await js().requestDevice(self.js, *sorted(required_features)), self)


class GPU:
    """The entry point: it finds the adapter of the browser, or none."""

    def enumerate_adapters_sync(self) -> list[GPUAdapter]:
        handle = waited(js().requestAdapter)
        return [] if handle is None else [GPUAdapter(handle)]

    async def enumerate_adapters_async(self) -> list[GPUAdapter]:
        handle = await js().requestAdapter()
        return [] if handle is None else [GPUAdapter(handle)]


gpu = GPU()


class GPUDevice(Handle):
    """A device of the browser."""

    def __init__(self, handle: Any, adapter: GPUAdapter) -> None:
        from pyodide.ffi import create_proxy

        super().__init__(handle)
        self.adapter = adapter
        self.features = {str(each) for each in handle.features}
        self.limits = limits_of(handle)
        self.queue = GPUQueue(handle.queue, self)
        self.status = Status()
        # both are called as long as JavaScript has the device
        js().watch(handle, create_proxy(self.status.add), create_proxy(self.status.lose))
        known_devices.add(self)

    def check(self) -> None:
        """Raise if the device is lost."""
        if self.status.lost:
            raise GPUError("the device is lost")

    def destroy(self) -> None:
        self.status.lost = True
        self.js.destroy()

    def create_buffer(self, *, size: int, usage: int, label: str = "") -> GPUBuffer:
        """Make a zeroed buffer; a large one is waited for, if a call can wait, so that it raises here."""
        self.check()
        if size > self.limits["max-buffer-size"]:
            raise GPUValidationError(f"size {size} is above the limit of the device")
        if size < MIN_AWAITED_NBYTES or not can_wait():
            return GPUBuffer(js().createBuffer(self.js, size, usage), self, label)
        made = waited(js().allocate, self.js, size, usage)
        if made is None:
            raise GPUOutOfMemoryError("Not enough memory left")
        return GPUBuffer(made, self, label)

    def create_buffer_with_data(self, *, data: Any, usage: int, label: str = "") -> GPUBuffer:
        self.check()
        return GPUBuffer(js().createBufferWithData(self.js, memoryview(data), usage), self, label)

    def create_texture(self, **descriptor: Any) -> GPUTexture:
        self.check()
        named = {re.sub("_(.)", lambda each: each[1].upper(), name): descriptor[name] for name in descriptor}
        return GPUTexture(js().createTexture(self.js, dumps(named)), self)

    def create_bind_group_layout(self, *, entries: Sequence[Mapping[str, Any]]) -> Any:
        self.check()
        return js().createBindGroupLayout(self.js, dumps(entries))

    def create_pipeline_layout(self, *, bind_group_layouts: Sequence[Any]) -> Any:
        return js().createPipelineLayout(self.js, *bind_group_layouts)

    def create_shader_module(self, *, label: str = "", code: str) -> Any:
        self.check()
        return js().createShaderModule(self.js, label, code)

    def create_compute_pipeline(self, *, layout: Any, compute: Mapping[str, Any]) -> Any:
        self.check()
        module, entry_point, constants = compute["module"], compute["entry_point"], compute.get("constants")
        return js().createComputePipeline(self.js, layout, module, entry_point, dumps(constants or {}))

    def create_bind_group(self, *, layout: Any, entries: Sequence[Mapping[str, Any]]) -> Handle:
        """Make a bind group of buffers."""
        self.check()
        flat: list[Any] = []
        for entry in entries:
            bound = entry["resource"]
            flat += entry["binding"], bound["buffer"].js, bound["offset"], bound["size"]
        buffers = [entry["resource"]["buffer"] for entry in entries]
        return Handle(js().createBindGroup(self.js, layout, *flat), self, buffers)

    def push_error_scope(self, filter: str) -> None:
        js().push(self.js, filter)

    def pop_error_scope_sync(self) -> GPUError | None:
        found = waited(js().pop, self.js)
        return None if found is None else KINDS[found[0]](found[1])

    def create_command_encoder(self) -> GPUCommandEncoder:
        self.check()
        return GPUCommandEncoder(js().createCommandEncoder(self.js), self, [])


known_devices: WeakSet[GPUDevice] = WeakSet()


def limits_of(handle: Any) -> dict[str, int]:
    """Return limits by their names as wgpu-py writes them, such as max-buffer-size."""
    return dict(js().limits(handle).to_py())


class GPUQueue(Handle):
    """The queue of a device. What submitted commands use may be dropped."""

    def submit(self, command_buffers: Sequence[Any]) -> None:
        if command_buffers:
            js().submit(self.js, *[each.js for each in command_buffers])

    def on_submitted_work_done_async(self) -> GPUPromise:
        return GPUPromise(js().done(self.js), self.device)

    def write_buffer(self, buffer: GPUBuffer, buffer_offset: int, data: Any) -> None:
        js().writeBuffer(self.js, buffer.js, buffer_offset, memoryview(data))


class Resource(Handle):
    """A buffer or texture. Memory that Python has made is freed when the last reference to it is dropped."""

    def destroy(self) -> None:
        self.ended = f"the {type(self).__name__} has been destroyed"
        self._js.destroy()

    def __del__(self) -> None:
        if self.device is not None:
            self._js.destroy()


class GPUBuffer(Resource):
    """A buffer."""

    def __init__(self, handle: Any, device: GPUDevice | None = None, label: str | None = None) -> None:
        super().__init__(handle, device)
        self.size, self.usage = handle.size, handle.usage
        self.label = handle.label if label is None else label

    @property
    def map_state(self) -> str:
        return str(self._js.mapState)

    def map_async(self, mode: int, offset: int, size: int) -> GPUPromise:
        return GPUPromise(js().map(self.js, mode, offset, size), self.device)

    def read_mapped(self, offset: int, size: int, **_: Any) -> memoryview:
        """Return a copy of mapped bytes: Python cannot refer to memory of JavaScript."""
        into = np.empty(size, np.uint8)
        js().readMapped(self.js, offset, size, into.data)
        return into.data

    def unmap(self) -> None:
        self._js.unmap()


class GPUTexture(Resource):
    """A texture."""

    size: tuple[int, ...]
    dimension: str
    format: str
    mip_level_count: int
    sample_count: int
    usage: int
    label: str

    def __init__(self, handle: Any, device: GPUDevice | None = None) -> None:
        super().__init__(handle, device)
        vars(self).update(js().describeTexture(handle).to_py())
        self.size = tuple(self.size)

    def create_view(self) -> Any:
        return self.js.createView()


class GPUCommandEncoder(Handle):
    """An encoder of commands."""

    def begin_compute_pass(self) -> GPUComputePassEncoder:
        return GPUComputePassEncoder(js().beginComputePass(self.js), self.device, self.used)

    def copy_buffer_to_buffer(
        self, source: GPUBuffer, source_offset: int, target: GPUBuffer, target_offset: int, size: int
    ) -> None:
        js().copyBuffer(self.js, source.js, source_offset, target.js, target_offset, size)
        self.used += source, target

    def copy_buffer_to_texture(self, source: Any, destination: Any, copy_size: Sequence[int]) -> None:
        self._copy_texels(destination, source, copy_size, writes=True)

    def copy_texture_to_buffer(self, source: Any, destination: Any, copy_size: Sequence[int]) -> None:
        self._copy_texels(source, destination, copy_size, writes=False)

    def _copy_texels(self, texels: Any, rows: Any, size: Sequence[int], *, writes: bool) -> None:
        texture, buffer = texels["texture"], rows["buffer"]
        where = *texels["origin"], texels["mip_level"], texels["aspect"]
        layout = rows["offset"], rows["bytes_per_row"], rows["rows_per_image"]
        js().copyTexels(self.js, texture.js, *where, buffer.js, *layout, *size, writes)
        self.used += texture, buffer

    def clear_buffer(self, buffer: GPUBuffer, offset: int, size: int) -> None:
        js().clearBuffer(self.js, buffer.js, offset, size)
        self.used.append(buffer)

    def finish(self) -> Handle:
        finished = js().finish(self.js)
        self.ended = "the command encoder has ended"
        return Handle(finished, self.device, self.used)


class GPUComputePassEncoder(Handle):
    """A pass of dispatches."""

    def set_pipeline(self, pipeline: Any) -> None:
        js().setPipeline(self.js, pipeline)

    def set_bind_group(self, index: int, bind_group: Handle) -> None:
        js().setBindGroup(self.js, index, bind_group.js)
        self.used.append(bind_group)

    def dispatch_workgroups(self, x: int, y: int = 1, z: int = 1) -> None:
        js().dispatch(self.js, x, y, z)

    def end(self) -> None:
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
    if interface in ("GPUCommandEncoder", "GPUComputePassEncoder"):
        return globals()[interface](value, used=[])
    return {"GPUBuffer": GPUBuffer, "GPUTexture": GPUTexture}.get(interface, lambda same: same)(value)


def versions() -> dict[str, str]:
    """Return the versions of what implements WebGPU."""
    from js import navigator

    return {"browser": str(navigator.userAgent)}


class GPUPromise(Awaitable[None]):
    """A promise of the end of a mapping, or of submitted work."""

    def __init__(self, reason: Any, device: GPUDevice | None) -> None:
        self._reason = reason  # JavaScript's promise of why it has failed, empty if it has not
        self._status = device.status if device is not None else Status()
        self._failure: str | None = None

    def sync_wait(self) -> None:
        """Wait until it is done; raise what the browser has reported meanwhile."""
        if self._failure is None:
            self._failure = waited(lambda: self._reason)
        self._check()
        self._status.check()

    def __await__(self) -> Generator[Any, None, None]:
        if self._failure is None:
            self._failure = yield from self._reason.__await__()
        self._check()

    def _check(self) -> None:
        if self._failure:
            raise RuntimeError(self._failure)

"""Faster calls of the versions of wgpu that are known exactly, each beside the public call that it replaces.

They use wgpu-native's functions and private names of wgpu-py. Numbers in parentheses are microseconds, here
and by the public call, on SwiftShader with wgpu 0.32.0.

wgpu-py lets cffi parse its header when it loads its library, which takes about half of a first slice's time;
cffi also parses each type that is named for the first time. `declarations_0_32`, which cffi makes of the same
declarations, loads in 10 ms. `Declaring` lets wgpu-py use it, only if nothing has loaded its library yet, and
only in place of the very text that it was made from.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Callable, Collection, Generator, Sequence
from contextlib import suppress
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from threading import current_thread, main_thread
from time import perf_counter, sleep
from types import ModuleType, SimpleNamespace
from typing import Any, cast
from weakref import ref

from wgslice.errors import LOST, DeviceLostError
from wgslice.gpu.hosts.webgpu import BACKENDS, IsLost, Pending, WebGPU
from wgslice.gpu.protocols import Buffer, BufferRange, BytesCopy, Place, Region, StandIn, TexelRows, handle_of
from wgslice.plans.proofs import Checks
from wgslice.plans.steps import BufferCopies

VERSIONS = ("0.32.0",)  # of wgpu-py
# Bits of wgpu-native's WGPUInstanceBackend, which cffi cannot read.
BACKEND_BITS = dict(zip(BACKENDS, (1, 4, 8, 2), strict=True))
MAX_ADAPTERS = 1024  # of one backend, beyond any machine's: a first call that counts starts each driver twice
SUCCESS = 1  # of a mapping


class WgpuNative(WebGPU):
    """wgpu with wgpu-native, by faster calls where there are."""

    accelerations = "with faster calls of this version"
    omits_checks = True
    maps_in_place = True
    best_handle = None  # `found_handles` of one backend is as fast

    def __init__(self, name: str, api: Any) -> None:
        sys.meta_path.insert(0, Declaring)
        try:
            from wgpu.backends import wgpu_native
            from wgpu.backends.wgpu_native import GPUBindGroup, ffi, lib
            from wgpu.backends.wgpu_native._api import libf
        finally:
            sys.meta_path.remove(Declaring)

        super().__init__(name, api)
        self.copies_single_aspects = True
        self._wgpu_native = wgpu_native
        self.library = lib
        self.checked = libf  # the library, raising wgpu's errors
        self.ffi = ffi
        self._bind_group = GPUBindGroup
        self._no_bindings = ffi.new("WGPUBindGroupLayoutDescriptor *")

    def versions(self) -> dict[str, str]:
        """Return the versions of wgpu, and of wgpu-native, the library that it wraps."""
        return {**super().versions(), "wgpu-native": str(self._wgpu_native.__version__)}

    def found_handles(self, backend: str) -> list[Any]:
        """Return the adapters of a backend; other backends' drivers are not asked, which takes 1.4 s."""
        from wgpu.backends.wgpu_native._helpers import get_wgpu_instance

        found = self.ffi.new("WGPUAdapter[]", MAX_ADAPTERS)
        bits = {"backends": BACKEND_BITS[backend]}
        options = self.ffi.new("WGPUInstanceEnumerateAdapterOptions *", bits)
        count = self.checked.wgpuInstanceEnumerateAdapters(get_wgpu_instance(), options, found)
        return [self._wgpu_native.gpu._create_adapter(handle) for handle in found[0:count]]

    def _wanted(self, adapter: Any, features: Collection[str]) -> dict[str, Any]:  # noqa: ARG002 -- all limits
        """Ask for no limits, which wgpu takes as all, with those that wgpu-native alone has."""
        return {"required_features": [*features]}

    def owner_of(self, handle: Any) -> Any:
        """Return the wgpu device of a buffer, encoder or texture."""
        return handle.wgpu_device if isinstance(handle, StandIn) else handle._device

    def queue_is_empty(self, wgpu_device: Any) -> bool:
        """Whether all submitted work is done, without waiting; ends mappings that are done (1.7, none)."""
        # a Rust bool in the lowest byte of C's 32 bits; the other bytes are undefined
        done = self.library.wgpuDevicePoll(wgpu_device._internal, False, self.ffi.NULL)
        if interrupts and current_thread() is main_thread():
            raise interrupts.pop()
        return bool(done & 0xFF)

    def submit(self, wgpu_device: Any, encoder: Any, copy: BytesCopy | None = None) -> None:
        """Submit the commands of an encoder, if there is one, then a copy (13, 30)."""
        library, checked, null = self.library, self.checked, self.ffi.NULL
        if encoder is None:
            recording = library.wgpuDeviceCreateCommandEncoder(wgpu_device._internal, null)
        else:
            recording = encoder._internal
        try:
            if copy is not None:
                source, offset_nbytes, target, nbytes = cast("tuple[Any, int, Any, int]", copy)
                read, written = handle_of(source)._internal, handle_of(target)._internal
                places = read, offset_nbytes, written, 0
                library.wgpuCommandEncoderCopyBufferToBuffer(recording, *places, nbytes)
            commands = checked.wgpuCommandEncoderFinish(recording, null)
        finally:
            if encoder is None:
                library.wgpuCommandEncoderRelease(recording)
        try:
            checked.wgpuQueueSubmit(wgpu_device.queue._internal, 1, [commands])
        finally:
            library.wgpuCommandBufferRelease(commands)

    def check_valid(self, wgpu_device: Any) -> None:
        """Raise wgpu's error if the device is lost (3.4, 7.4)."""
        layout = self.checked.wgpuDeviceCreateBindGroupLayout(wgpu_device._internal, self._no_bindings)
        self.library.wgpuBindGroupLayoutRelease(layout)

    def create_module(self, wgpu_device: Any, label: str, code: str, checks: Checks) -> object:
        """Make a module of WGSL with some run-time checks; by the public call it has all of them."""
        if checks is Checks.ALL:
            return super().create_module(wgpu_device, label, code, checks)
        library, ffi = self.library, self.ffi
        texts = [text.encode() for text in (label, code)]
        kept = [ffi.from_buffer(text) for text in texts]  # as long as the descriptions refer to them
        name, written = ([text, len(text)] for text in kept)
        chain = {"sType": library.WGPUSType_ShaderSourceWGSL}
        source = ffi.new("WGPUShaderSourceWGSL *", {"chain": chain, "code": written})
        description = {"nextInChain": ffi.addressof(source, "chain"), "label": name}
        handle = self.checked.wgpuDeviceCreateShaderModuleTrusted(
            wgpu_device._internal,
            ffi.new("WGPUShaderModuleDescriptor *", description),
            library.WGPUShaderRuntimeChecks_BoundsChecks if checks is Checks.BOUNDS else 0,
        )
        return self._wgpu_native.GPUShaderModule(label, handle, wgpu_device)

    def make_bind_group(self, wgpu_device: Any, layout: Any, ranges: Sequence[BufferRange]) -> Any:
        """Make a bind group of buffers (8.8, 26)."""
        null = self.ffi.NULL
        entries = [
            (null, number, handle_of(buffer)._internal, offset_nbytes, nbytes, null, null)
            for number, buffer, offset_nbytes, nbytes in ranges
        ]
        kept = self.ffi.new("WGPUBindGroupEntry[]", entries)  # as long as the description refers to it
        description = {"layout": layout._internal, "entryCount": len(entries), "entries": kept}
        handle = self.checked.wgpuDeviceCreateBindGroup(
            wgpu_device._internal, self.ffi.new("WGPUBindGroupDescriptor *", description)
        )
        return self._bind_group("", handle, wgpu_device)

    def is_known_alive(self, buffer: Buffer) -> bool:
        """Whether a buffer has been watched, and not been destroyed since (0.3, 26 for a check)."""
        return isinstance(vars(handle_of(buffer)).get("destroy"), Watch)

    def watch(self, buffer: Buffer) -> None:
        """Note when a buffer that was found alive is destroyed."""
        handle = handle_of(buffer)
        handle.destroy = Watch(handle)  # of this object alone

    def copy_rows(self, encoder: Any, sides: Sequence[Place], copies: BufferCopies, checked: bool) -> None:
        """Record a copy for each row (100 of them 86, 194).

        A check that the encoder has not ended costs as much as a copy.
        """
        unchecked = self.library.wgpuCommandEncoderCopyBufferToBuffer
        copy = self.checked.wgpuCommandEncoderCopyBufferToBuffer if checked else unchecked
        (read, read_base), (written, written_base) = sides
        nbytes, recording = copies.nbytes, encoder._internal
        source, target = handle_of(read)._internal, handle_of(written)._internal
        for read_offset, written_offset in copies.pairs:
            copy(recording, source, read_base + read_offset, target, written_base + written_offset, nbytes)
            copy = unchecked

    def copy_texels(
        self, encoder: Any, region: Region, rows: TexelRows, size: Sequence[int], *, writes: bool
    ) -> None:
        """Record a copy of one aspect, which wgpu-py ignores."""
        ffi, texture = self.ffi, cast("Any", region.texture)
        name = region.aspect.title().replace("-", "")  # such as DepthOnly
        aspect = getattr(self.library, f"WGPUTextureAspect_{name}")
        texels = [texture._internal, region.mip_level, region.origin, aspect]
        in_texture = ffi.new("WGPUTexelCopyTextureInfo *", texels)
        of_buffer = {"buffer": handle_of(rows.buffer)._internal, "layout": rows[1:]}
        in_buffer = ffi.new("WGPUTexelCopyBufferInfo *", of_buffer)
        extent, recording = ffi.new("WGPUExtent3D *", size), encoder._internal
        if writes:
            self.checked.wgpuCommandEncoderCopyBufferToTexture(recording, in_buffer, in_texture, extent)
        else:
            self.checked.wgpuCommandEncoderCopyTextureToBuffer(recording, in_texture, in_buffer, extent)

    def timestamp_period_ns(self, wgpu_device: Any) -> float | None:
        """Return the nanoseconds of a tick of the queue's clock."""
        return float(self.library.wgpuQueueGetTimestampPeriod(wgpu_device.queue._internal))

    def check_loss(self, is_lost: IsLost) -> None:
        """Raise DeviceLostError if the device is lost, or about to be destroyed by another thread."""
        for seconds in (0, LOSS_CHECK_SECONDS):
            sleep(seconds)
            super().check_loss(is_lost)

    def wait_done(self, wgpu_device: Any, is_lost: IsLost) -> None:
        """Wait until all submitted work is done, by polls (34, 359), which interrupts reach."""
        if not finishes_before_loss(partial(self.queue_is_empty, wgpu_device), is_lost):
            raise DeviceLostError(LOST)

    def begin_mapping(self, wgpu_device: Any, buffer: Any, nbytes: int, is_lost: IsLost) -> Polled:
        """Begin to map the first bytes of a buffer; with the wait and the end (11, 174)."""
        handle = handle_of(buffer)
        key, library, null = handle._internal, self.library, self.ffi.NULL
        mode, told = library.WGPUCallbackMode_AllowProcessEvents, callback(self.ffi)
        found = pending[key] = Polled(self, wgpu_device, is_lost, key)
        try:
            called = null, mode, told, key, null
            self.checked.wgpuBufferMapAsync(key, library.WGPUMapMode_Read, 0, nbytes, called)
        except BaseException:
            pending.pop(key, None)
            raise
        return found

    def mapped_bytes(self, buffer: Any, nbytes: int) -> memoryview:
        """Return a read-only view of the first bytes of a buffer that has been mapped."""
        start = self.checked.wgpuBufferGetMappedRange(handle_of(buffer)._internal, 0, nbytes)
        return memoryview(self.ffi.buffer(start, nbytes)).toreadonly()

    def end_mapping(self, buffer: Any, *, checked: bool = True) -> None:
        """Unmap a buffer, or cancel its mapping; nothing raises unless `checked`."""
        library = self.checked if checked else self.library
        library.wgpuBufferUnmap(handle_of(buffer)._internal)

    def guard_mappings(self, wgpu_device: Any, mapped: Collection[Buffer]) -> None:
        """Let `destroy` of a device refuse while arrays are on `mapped` buffers, whose memory it would free.

        By public calls there are no arrays on mapped memory.
        """
        if "destroy" in vars(wgpu_device):
            return
        destroy = wgpu_device.destroy

        def destroy_unless_mapped() -> None:
            if mapped:
                raise BufferError(
                    f"destroy: arrays are on {len(mapped)} mapped buffer(s) of the device: drop the results "
                    "of map_texture and their views first; array.copy() keeps the elements"
                )
            destroy()

        wgpu_device.destroy = destroy_unless_mapped


class Watch:
    """Replaces `destroy` of one buffer until it is called."""

    def __init__(self, handle: Any) -> None:
        self.handle = ref(handle)
        self.previous = vars(handle).get("destroy")  # of another package

    def __call__(self) -> None:
        """Destroy the buffer, by what `destroy` was before."""
        handle = self.handle()
        if handle is not None:
            del handle.destroy
            if self.previous is not None:
                handle.destroy = self.previous
            handle.destroy()


# Interval between checks for the loss of the device. On Windows an interrupt arrives between two checks, on
# other systems at once.
LOSS_CHECK_SECONDS = 0.1

# Polls yield the core to software adapters for this time, then sleep for a fraction of the time waited. On
# Linux `sleep(0)` costs 50 us: a 4 x 16 slice with the wait takes 1.03 times as long as with wgpu's wait, 1.4
# times with `sleep(0)` or without a pause (lavapipe, 2 busy cores of an AMD EPYC). wgpu's own waits sleep
# whole milliseconds on Metal (issues 7712, 8119), where one may not end (9531).
YIELDING_SECONDS = 200e-6
MAX_SLEEP_SECONDS = 1e-3
pause = getattr(os, "sched_yield", partial(sleep, 0))  # Windows lacks sched_yield


def is_done_within(is_done: Callable[[], bool], seconds: float) -> bool:
    """Whether a poll says within `seconds` that something is done."""
    begin = perf_counter()
    while not is_done():
        waited = perf_counter() - begin
        if waited > seconds:
            return False
        if waited < YIELDING_SECONDS:
            pause()
        else:
            sleep(min(waited / 16, MAX_SLEEP_SECONDS))
    return True


def finishes_before_loss(is_done: Callable[[], bool], is_lost: IsLost) -> bool:
    """Wait until a poll says that something is done, or the device is lost; return whether it is done."""
    while not is_done_within(is_done, LOSS_CHECK_SECONDS):
        if is_lost():
            return False
    return True


# Mappings that are not done, by the pointers of their buffers, which wgpu hands back.
pending: dict[Any, Polled] = {}
interrupts: list[BaseException] = []  # of callbacks, in the main thread


class Polled(Pending):
    """A mapping whose end wgpu tells by a callback, during a poll or a submission of any thread."""

    host: WgpuNative

    def __init__(self, host: WgpuNative, wgpu_device: Any, is_lost: IsLost, key: Any) -> None:
        super().__init__(host, wgpu_device, None, is_lost)
        self.key = key
        self.is_done = False
        self.is_missed = False  # whether an interrupt may have kept the callback from telling the end

    def finish(self, failure: str) -> None:
        """Note that it is done, or why it has failed."""
        self.failure = failure
        self.is_done = True
        pending.pop(self.key, None)

    def is_over(self) -> bool:
        """Poll, and return whether it is done or has failed."""
        if not self.is_done and self.host.queue_is_empty(self.wgpu_device) and self.is_missed:
            self.finish("")  # memory that is not mapped raises when it is read
        return self.is_done

    def wait(self) -> None:
        """Wait until it is done."""
        if not finishes_before_loss(self.is_over, self.is_lost):
            pending.pop(self.key, None)
            raise DeviceLostError(LOST)
        if self.failure:
            self.host.check_loss(self.is_lost)
            raise self.failed(self.failure)

    def __await__(self) -> Generator[Any, None, None]:
        return self._polled().__await__()

    async def _polled(self) -> None:
        """Poll until it is done, in the event loop of the task, whichever it is."""
        from wgpu._async import async_sleep

        begin = perf_counter()
        is_done_within(self.is_over, YIELDING_SECONDS)  # as most are, in less time than a sleep takes
        while not self.is_over() and not self.is_lost():
            await async_sleep(min((perf_counter() - begin) / 16, MAX_SLEEP_SECONDS))


@cache
def callback(ffi: Any) -> Any:
    """Make the callback of all mappings, which is kept; wgpu-py makes one for each."""

    def finish(status: int, message: Any, key: Any, _: Any) -> None:
        found = pending.get(key)
        if found is not None:
            text = "" if status == SUCCESS else ffi.string(message.data, message.length).decode()
            found.finish(text and f"{text} ({status})")

    kind = "void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)"
    return ffi.callback(kind, finish, onerror=keep_interrupt)


def keep_interrupt(_: object, error: BaseException, __: object) -> None:
    """Let the main thread's next poll raise the interrupt of a callback, which has not told an end."""
    interrupts.append(error)
    for found in [*pending.values()]:
        found.is_missed = True


PARSING = "wgpu.backends.wgpu_native._ffi"  # wgpu-py's module that declares and loads wgpu-native
python_import = builtins.__import__


class Declaring(SourceFileLoader):
    """Finds and runs one module of wgpu-py, except that `cffi.FFI` in it is Declared."""

    @classmethod
    def find_spec(cls, name: str, path: Sequence[str] | None, *_: object) -> ModuleSpec | None:
        """Return what Python finds of that module, with this loader, or None for all others."""
        spec = PathFinder.find_spec(name, path) if name == PARSING else None
        if spec is None or type(spec.loader) is not SourceFileLoader:
            return None
        spec.loader = cls(name, spec.loader.path)
        return spec

    def exec_module(self, module: ModuleType) -> None:
        """Run the module, and leave in it the plain objects that it would have otherwise."""
        own = vars(module)
        own["__loader__"] = own["__spec__"].loader = SourceFileLoader(self.name, self.path)
        own["__builtins__"] = {**vars(builtins), "__import__": import_declared}
        code: Any = self.get_code(self.name)
        exec(code, own)
        own["__builtins__"] = vars(builtins)
        own["ffi"] = own["ffi"].ffi


def import_declared(name: str, *arguments: Any, **options: Any) -> Any:
    """Import as Python does, but for `cffi`, which is a namespace with Declared."""
    module = python_import(name, *arguments, **options)
    if name != "cffi":
        return module
    return SimpleNamespace(**{**vars(module), "FFI": partial(Declared, module.FFI)})


class Declared:
    """Stands in for a `cffi.FFI` until its declarations are known."""

    def __init__(self, parsing: Callable[[], Any]) -> None:
        self.parsing = parsing  # cffi.FFI
        self.ffi: Any = None

    def cdef(self, source: str) -> None:
        """Take the declarations of this package if they were made from this text; else let cffi parse it."""
        with suppress(Exception):  # such as a cffi that reads no modules of this format
            from hashlib import sha256

            from wgslice.gpu.hosts import declarations_0_32 as declarations

            if sha256(source.encode()).hexdigest() == declarations.SHA256:
                self.ffi = declarations.ffi
        if self.ffi is None:
            self.ffi = self.parsing()
            self.ffi.cdef(source)

    def set_source(self, *_: Any) -> None:
        """Do nothing: wgpu-py states how a module would be made of its declarations, and makes none."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.ffi, name)

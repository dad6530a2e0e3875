"""Uses of wgpu's private interface, and waits for the GPU, which depend on it.

The module calls wgpu-native where wgpu-py drops the result or is several times slower, uses private names
of wgpu-py that have no public counterpart, and translates its errors by their texts. A test pins the wgpu
version that has these. A forked child must not use them. An interrupt or the loss of the device ends waits.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cache, partial
from itertools import count
from threading import current_thread, main_thread
from time import perf_counter, sleep
from typing import Any, NamedTuple, cast

from wgslice.errors import LOST, DeviceLostError, TranslatedErrors
from wgslice.gpu.cffi_types import parse_types
from wgslice.gpu.placeholder import Placeholder
from wgslice.gpu.protocols import BindGroup, BoundRange, Buffer, BytesCopy, GPUDevice, Region, Texture

REFUSED = "wgpu or the driver refused a command; the device stays usable; `wgslice doctor` tests the driver"

gpu_process_ids: list[int] = []  # id of the first process that used the GPU


class Native(NamedTuple):
    """The library, and what calls of it need."""

    library: Any
    checked: Any  # the library, raising wgpu's errors
    ffi: Any
    bind_group: Any  # wgpu-py's class
    no_bindings: Any  # the description of a layout without bindings


@cache
def native() -> Native:
    """Return the library on first use: wgpu is not imported before."""
    from wgpu.backends.wgpu_native import GPUBindGroup, ffi, lib
    from wgpu.backends.wgpu_native._api import libf

    parse_types(ffi)
    return Native(lib, libf, ffi, GPUBindGroup, ffi.new("WGPUBindGroupLayoutDescriptor *"))


# Bits of wgpu-native's WGPUInstanceBackend, which cffi cannot read, in the order of its adapters.
BACKENDS = {"Vulkan": 1, "Metal": 4, "D3D12": 8, "OpenGL": 2}
MAX_ADAPTERS = 1024  # of one backend, beyond any machine's: a first call that counts starts each driver twice


def found_handles(backend: str) -> list[Any]:
    """Return the wgpu.GPUAdapter of each adapter of a backend; other backends' drivers are not asked."""
    from wgpu.backends.wgpu_native import gpu
    from wgpu.backends.wgpu_native._helpers import get_wgpu_instance

    _, checked, ffi, *_ = native()
    found = ffi.new("WGPUAdapter[]", MAX_ADAPTERS)
    options = ffi.new("WGPUInstanceEnumerateAdapterOptions *", {"backends": BACKENDS[backend]})
    count = checked.wgpuInstanceEnumerateAdapters(get_wgpu_instance(), options, found)
    return [gpu._create_adapter(handle) for handle in found[0:count]]


def request_device(adapter: Any, features: Collection[str] = ()) -> GPUDevice:
    """Make a device with all limits of its adapter, and some of its features."""
    made: GPUDevice = adapter.request_device_sync(required_features=[*features])
    return made


async def request_device_async(adapter: Any, features: Collection[str] = ()) -> GPUDevice:
    """Make a device as `request_device`, without a wait."""
    return request_device(adapter, features)


async def found_handles_async(backend: str) -> list[Any]:
    """Return what `found_handles` returns, without a wait."""
    return found_handles(backend)


def as_device(value: Any) -> GPUDevice | None:
    """Return a value that is a device of this host, or None."""
    import wgpu

    return value if isinstance(value, wgpu.GPUDevice) else None


def as_buffer(value: Any) -> Buffer | None:
    """Return a value that is a buffer, or a placeholder for one, or None."""
    import wgpu

    return cast("Buffer", value) if isinstance(value, (wgpu.GPUBuffer, Placeholder)) else None


def as_texture(value: Any) -> Texture | None:
    """Return a value that is a texture, or None."""
    import wgpu

    return value if isinstance(value, wgpu.GPUTexture) else None


def as_encoder(value: Any, *, or_pass: bool = False) -> Any:
    """Return a value that is a command encoder, or a compute pass if that is accepted, or None."""
    import wgpu

    accepted = (wgpu.GPUCommandEncoder, *[wgpu.GPUComputePassEncoder] * or_pass)
    return value if isinstance(value, accepted) else None


def queue_is_empty(wgpu_device: Any) -> bool:
    """Whether all submitted work is done, without waiting; ends mappings that are done."""
    wgpu_native = native()
    # a Rust bool in the lowest byte of C's 32 bits; the other bytes are undefined
    done = wgpu_native.library.wgpuDevicePoll(wgpu_device._internal, False, wgpu_native.ffi.NULL)
    if interrupts and current_thread() is main_thread():
        raise interrupts.pop()
    return bool(done & 0xFF)


def submit(wgpu_device: Any, encoder: Any, copy: BytesCopy | None = None) -> None:
    """Submit the commands of an encoder, if there is one, then a copy; wgpu-py takes three times as long.

    The end of the encoder raises the errors of its commands.
    """
    library, checked, ffi, *_ = native()
    if encoder is None:
        recording = library.wgpuDeviceCreateCommandEncoder(wgpu_device._internal, ffi.NULL)
    else:
        recording = encoder._internal
    try:
        if copy is not None:
            source, offset_nbytes, target, nbytes = cast("tuple[Any, int, Any, int]", copy)
            places = source._internal, offset_nbytes, target._internal, 0
            library.wgpuCommandEncoderCopyBufferToBuffer(recording, *places, nbytes)
        commands = checked.wgpuCommandEncoderFinish(recording, ffi.NULL)
    finally:
        if encoder is None:
            library.wgpuCommandEncoderRelease(recording)
    try:
        checked.wgpuQueueSubmit(wgpu_device.queue._internal, 1, [commands])
    finally:
        library.wgpuCommandBufferRelease(commands)


def check_valid(wgpu_device: Any) -> None:
    """Raise wgpu's error if the device is lost: only then it rejects a layout without bindings."""
    library, checked, _, _, no_bindings = native()
    layout = checked.wgpuDeviceCreateBindGroupLayout(wgpu_device._internal, no_bindings)
    library.wgpuBindGroupLayoutRelease(layout)


def check_texture_valid(texture: Any) -> None:
    """Raise wgpu's error if a texture has been destroyed or its device is lost: it has no views then."""
    library, checked, ffi, _, _ = native()
    library.wgpuTextureViewRelease(checked.wgpuTextureCreateView(texture._internal, ffi.NULL))


def make_bind_group(wgpu_device: Any, layout: Any, ranges: Sequence[BoundRange]) -> BindGroup:
    """Make a bind group of buffers; wgpu-py takes about five times as long for it."""
    _, checked, ffi, bind_group, _ = native()
    null = ffi.NULL
    entries = [
        (null, number, buffer._internal, offset_nbytes, nbytes, null, null)
        for number, buffer, offset_nbytes, nbytes in ranges
    ]
    kept = ffi.new("WGPUBindGroupEntry[]", entries)  # as long as the description refers to it
    description = {"layout": layout._internal, "entryCount": len(entries), "entries": kept}
    handle = checked.wgpuDeviceCreateBindGroup(
        wgpu_device._internal, ffi.new("WGPUBindGroupDescriptor *", description)
    )
    made: BindGroup = bind_group("", handle, wgpu_device)
    return made


def timestamp_period_ns(wgpu_device: Any) -> float:
    """Return the nanoseconds of a tick of the queue's clock, which wgpu-py does not say."""
    period: float = native().library.wgpuQueueGetTimestampPeriod(wgpu_device.queue._internal)
    return period


def can_wait() -> bool:
    """Whether calls can wait for the GPU: always."""
    return True


def check_process() -> None:
    """Raise RuntimeError in a forked child, where drivers hang because their threads are in the parent."""
    if not gpu_process_ids:
        gpu_process_ids.append(os.getpid())
    elif gpu_process_ids[0] != os.getpid():
        raise RuntimeError(
            "a GPU cannot be used in a forked child of a process that has used one: start the child with "
            "multiprocessing.set_start_method('spawn') or 'forkserver'; Dask's options for that are "
            "multiprocessing.context and distributed.worker.multiprocessing-method"
        )


def host_versions() -> dict[str, str]:
    """Return the versions of wgpu, and of wgpu-native, the library that it wraps."""
    import wgpu
    from wgpu.backends import wgpu_native

    return {"wgpu": str(wgpu.__version__), "wgpu-native": str(wgpu_native.__version__)}


def type_name(value: object) -> str:
    """Return the name of a value's type for errors."""
    return type(value).__name__


def owner_of(handle: Any) -> GPUDevice:
    """Return the wgpu device of a buffer, encoder or texture."""
    owner: GPUDevice = handle._device
    return owner


def copy_rows(
    encoder: Any,
    sides: tuple[tuple[Any, int], tuple[Any, int]],
    offsets: Iterable[tuple[int, int]],
    nbytes: int,
    checked: bool,
) -> None:
    """Record a copy of `nbytes` per pair of offsets, counted from those of both buffers.

    If `checked`, the first raises if the encoder has ended; all other errors are raised when the encoder is
    finished. A check costs as much as a copy, and wgpu-py takes about three times as long for one.
    """
    unchecked, raising, *_ = native()
    (read, read_base), (written, written_base) = sides
    copy = (raising if checked else unchecked).wgpuCommandEncoderCopyBufferToBuffer
    recording, source, target = encoder._internal, read._internal, written._internal
    for read_offset, written_offset in offsets:
        copy(recording, source, read_base + read_offset, target, written_base + written_offset, nbytes)
        copy = unchecked.wgpuCommandEncoderCopyBufferToBuffer


def copy_texels(
    encoder: Any, region: Region, buffer: Any, rows: Sequence[int], size: Sequence[int], *, writes: bool
) -> None:
    """Record a copy of one aspect, which wgpu-py ignores; `rows` are offset, bytes a row, rows a layer."""
    library, checked, ffi, _, _ = native()
    texture: Any = region.texture
    name = region.aspect.title().replace("-", "")  # such as DepthOnly
    aspect = getattr(library, f"WGPUTextureAspect_{name}")
    in_texture = ffi.new(
        "WGPUTexelCopyTextureInfo *", [texture._internal, region.mip_level, region.origin, aspect]
    )
    in_buffer = ffi.new("WGPUTexelCopyBufferInfo *", {"buffer": buffer._internal, "layout": rows})
    extent = ffi.new("WGPUExtent3D *", size)
    if writes:
        checked.wgpuCommandEncoderCopyBufferToTexture(encoder._internal, in_buffer, in_texture, extent)
    else:
        checked.wgpuCommandEncoderCopyTextureToBuffer(encoder._internal, in_texture, in_buffer, extent)


@cache
def lease_class() -> Callable[[Buffer, Callable[[Buffer, Buffer], None]], Buffer]:
    """Make the class of leased buffers on first use, since its base class is wgpu's."""
    from wgpu.backends.wgpu_native import GPUBuffer

    class LeasedBuffer(GPUBuffer):  # type: ignore[misc]  # of Any
        """A second handle of a buffer, which returns the first one to the pool when it is dropped."""

        def __init__(self, buffer: Buffer, give_back: Callable[[Buffer, Buffer], None]) -> None:
            self.__dict__.update(buffer.__dict__)
            self._leased = buffer
            self._give_back = give_back

        def __del__(self) -> None:  # wgpu's method would free the memory, which the first handle owns
            self._give_back(self._leased, self)

    return LeasedBuffer


def refusals() -> type[Exception]:
    """Return the class of wgpu's errors, such as for an invalid shader."""
    from wgpu import GPUError

    return cast("type[Exception]", GPUError)


# without state, so that all threads share it
translated_errors = TranslatedErrors(refusals, "has been destroyed", REFUSED)


@contextmanager
def refused_as_value(wgpu_device: GPUDevice) -> Iterator[None]:  # noqa: ARG001 -- another host asks it
    """Raise ValueError for what wgpu refuses in the block, where the values come from a file."""
    try:
        with translated_errors:
            yield
    except refusals() as error:
        *_, reason = str(error).partition("Caused by:")
        raise ValueError(f"wgpu refuses it: {' '.join(reason.split())}") from None


# Interval between checks for the loss of the device. On Windows an interrupt arrives between two checks, on
# other systems at once.
LOSS_CHECK_SECONDS = 0.1

# Polls yield the core to software adapters for this time, then sleep for a fraction of the time waited. On
# Linux `sleep(0)` costs 50 us: a 4 x 16 slice with the wait takes 1.03 times as long as with wgpu's wait, 1.4
# times with `sleep(0)` or without a pause (lavapipe, 2 busy cores of an AMD EPYC). wgpu's own waits sleep
# whole milliseconds on Metal (issues 7712, 8119), where one may not end (9531).
YIELDING_SECONDS = 200e-6
MAX_SLEEP_SECONDS = 1e-3
DESTROY_SECONDS = 1.0  # that `destroy` waits for the GPU at most; wgpu-py's own waits as long for its thread
pause = getattr(os, "sched_yield", partial(sleep, 0))  # Windows lacks sched_yield


def wait_done(wgpu_device: GPUDevice, is_lost: Callable[[], bool]) -> None:
    """Wait until all submitted work is done, by polls: interrupts do not reach a wait inside wgpu."""
    if not finishes_before_loss(partial(is_done_within, partial(queue_is_empty, wgpu_device)), is_lost):
        raise DeviceLostError(LOST)


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


def finishes_before_loss(finished: Callable[[float], bool], is_lost: Callable[[], bool]) -> bool:
    """Wait until `finished` or the device is lost; return whether it has finished."""
    while not finished(LOSS_CHECK_SECONDS):
        if is_lost():
            return False
    return True


def check_mappings_on_destroy(wgpu_device: Any, mapped: Collection[Buffer]) -> None:
    """Make `destroy` of a device refuse while arrays are on `mapped` buffers, whose memory it would free.

    It also ends pending mappings.
    """
    if "destroy" in vars(wgpu_device):
        return
    destroy = wgpu_device.destroy

    def destroy_and_poll() -> None:
        if mapped:
            raise BufferError(
                f"destroy: arrays are on {len(mapped)} mapped buffer(s) of the device: drop the results of "
                "map_texture and their views first; array.copy() keeps the elements"
            )
        destroy()
        is_done_within(partial(queue_is_empty, wgpu_device), DESTROY_SECONDS)

    wgpu_device.destroy = destroy_and_poll


class Pending:
    """A mapping of a buffer, or submitted work, whose end wgpu tells by a callback; any thread may wait."""

    is_polled = True  # its promise is settled by polls alone

    def __init__(self, wgpu_device: GPUDevice, promise: Any = None) -> None:
        self.wgpu_device = wgpu_device
        self.promise = promise  # a wgpu.GPUPromise that is settled too
        self.failure = ""  # wgpu's reason, if it has failed
        self.is_done = False

    def finish(self, failure: str) -> None:
        """Note that it is done, or why it has failed."""
        if self.is_done:
            return
        if self.promise is not None and failure:
            self.promise._wgpu_set_error(RuntimeError(failure))
        elif self.promise is not None:
            self.promise._wgpu_set_input(None)
        self.failure = failure
        self.is_done = True

    def is_over(self) -> bool:
        """Poll, and return whether it is done or has failed."""
        if not self.is_done:
            queue_is_empty(self.wgpu_device)
        return self.is_done

    def is_done_soon(self) -> bool:
        """Poll for about as long as it takes to start a thread that polls; return whether it is done."""
        return is_done_within(self.is_over, YIELDING_SECONDS)

    def wait(self, is_lost: Callable[[], bool]) -> None:
        """Wait until it is done."""
        if not finishes_before_loss(partial(is_done_within, self.is_over), is_lost):
            raise DeviceLostError(LOST)
        if self.failure:
            check_loss(is_lost)
            raise not_done(self.failure)


def not_done(reason: str) -> RuntimeError:
    """Return an error that no frame refers to, with which buffers would live until garbage is collected."""
    error = RuntimeError(f"wgpu did not map a buffer or end the work: {reason}")
    error.add_note(REFUSED)
    return error


def check_loss(is_lost: Callable[[], bool]) -> None:
    """Raise DeviceLostError if the device is lost, or about to be destroyed by another thread."""
    for seconds in (0, LOSS_CHECK_SECONDS):
        sleep(seconds)
        if is_lost():
            raise DeviceLostError(LOST)


SUCCESS = 1  # of a mapping and of work
pending: dict[Any, Pending] = {}  # what is not done, by the pointer that wgpu hands back
numbers = count(1)  # such pointers of work; a mapping's is that of its buffer
interrupts: list[BaseException] = []  # of callbacks, in the main thread


@cache
def callback(status: str) -> Any:
    """Make the callback of all mappings, or of all work, which is kept; wgpu-py makes one for each."""
    kind = f"void({status}, WGPUStringView, void *, void *)"
    return native().ffi.callback(kind, finish_pending, onerror=finish_interrupted)


def finish_pending(status: int, message: Any, key: Any, _: Any) -> None:
    """Finish a mapping or work: wgpu calls this in a thread that polls or submits."""
    found = pending.get(key)
    if found is not None:
        text = "" if status == SUCCESS else native().ffi.string(message.data, message.length).decode()
        found.finish(text and f"{text} ({status})")
        pending.pop(key, None)


def finish_interrupted(_: object, error: BaseException, traceback: Any) -> None:
    """Finish that whose callback was interrupted; the main thread's next poll raises the interrupt."""
    interrupts.append(error)
    given = traceback.tb_frame.f_locals
    finish_pending(given["status"], given["message"], given["key"], None)


def begin_mapping(buffer: Any, nbytes: int, found: Pending) -> None:
    """Begin to map the first bytes of a buffer after all submitted work."""
    library, checked, ffi, *_ = native()
    key = buffer._internal
    kept = callback("WGPUMapAsyncStatus")
    called = ffi.NULL, library.WGPUCallbackMode_AllowProcessEvents, kept, key, ffi.NULL
    pending[key] = found
    try:
        checked.wgpuBufferMapAsync(key, library.WGPUMapMode_Read, 0, nbytes, called)
    except BaseException:
        pending.pop(key, None)
        raise


def begin_work(wgpu_device: Any) -> Pending:
    """Begin to wait for the end of all work that has been submitted."""
    library, checked, ffi, *_ = native()
    key, found = ffi.cast("void *", next(numbers)), Pending(wgpu_device)
    kept = callback("WGPUQueueWorkDoneStatus")
    called = ffi.NULL, library.WGPUCallbackMode_AllowProcessEvents, kept, key, ffi.NULL
    pending[key] = found
    try:
        checked.wgpuQueueOnSubmittedWorkDone(wgpu_device.queue._internal, called)
    except BaseException:
        pending.pop(key, None)
        raise
    return found


def set_map_state(buffer: Any, state: str) -> None:
    """Set what wgpu-py says of a buffer that was mapped or unmapped here."""
    buffer._map_state = state


def mapped_bytes(buffer: Any, nbytes: int) -> memoryview:
    """Return a read-only view of the first bytes of a buffer that has been mapped."""
    _, checked, ffi, *_ = native()
    start = checked.wgpuBufferGetMappedRange(buffer._internal, 0, nbytes)
    return memoryview(ffi.buffer(start, nbytes)).toreadonly()


def end_mapping(buffer: Any) -> None:
    """Unmap a buffer, or cancel its mapping."""
    with translated_errors:
        native().checked.wgpuBufferUnmap(buffer._internal)


def end_mapping_of_tensor(buffer: Any) -> None:
    """Unmap a buffer that is used again, or cancel its mapping; nothing raises."""
    native().library.wgpuBufferUnmap(buffer._internal)


def new_promise(title: str) -> Any:
    """Make a wgpu.GPUPromise, for the event loop that is running, if any."""
    from wgpu.backends.wgpu_native import GPUPromise

    promise = GPUPromise(title, None)
    if promise._call_soon_threadsafe is not None:
        promise._call_soon_threadsafe = LoopCalls(promise._call_soon_threadsafe)
    return promise


class LoopCalls:
    """Calls functions of a promise in the event loop that it was made in, until the loop is closed."""

    def __init__(self, call_soon: Callable[..., Any]) -> None:
        self.call_soon = call_soon

    def __call__(self, function: Callable[..., Any], *arguments: Any) -> None:
        """Call a function soon; drop the call if the loop is closed."""
        with suppress(RuntimeError):  # which the callback of a mapping would print
            self.call_soon(function, *arguments)


def check_loop(promise: Any) -> None:
    """Raise RuntimeError if the event loop that a promise was made in is closed."""
    if promise._call_soon_threadsafe is not None:
        promise._call_soon_threadsafe.call_soon(int)


def follow_running_loop(promise: Any) -> None:
    """Let a promise wake tasks of the running event loop if the one that it was made in is closed."""
    try:
        check_loop(promise)
    except RuntimeError:
        from wgpu._async import detect_current_call_soon_threadsafe

        call_soon = detect_current_call_soon_threadsafe()
        promise._call_soon_threadsafe = call_soon and LoopCalls(call_soon)  # None: wgpu polls

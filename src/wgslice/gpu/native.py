"""All that is used of wgpu's private interface, and waits for the GPU, which go by it.

Calls of wgpu-native whose result wgpu-py drops, or that it makes several times slower, private names of
wgpu-py for which it has no public ones, and its errors as Python's own, told apart by their texts. A test
names the version that has them. No forked child may use them. Waits end with an interrupt, and with the
loss of the device.
"""

from __future__ import annotations

import atexit
import os
import threading
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache, partial
from queue import SimpleQueue
from time import perf_counter, sleep
from typing import Any, NamedTuple, NoReturn, cast

from wgslice.errors import DeviceLostError, OutOfDeviceMemory
from wgslice.gpu.protocols import Buffer, CommandEncoder, GPUDevice, MapPromise, Texture

LOST = "the device is lost: request a new one and upload again"


gpu_process_ids: list[int] = []  # the process that uses the GPU, once one does


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
    return bool(library.wgpuDevicePoll(pointer(wgpu_device), False, null) & 0xFF)


def check_valid(wgpu_device: GPUDevice) -> None:
    """Raise wgpu's error if the device is lost; only then does it refuse a layout without bindings."""
    library, checked, _, no_bindings = native()
    layout = checked.wgpuDeviceCreateBindGroupLayout(pointer(wgpu_device), no_bindings)
    library.wgpuBindGroupLayoutRelease(layout)


def check_process() -> None:
    """Refuse GPU work in a forked child, where drivers hang: their threads stayed in the parent."""
    if not gpu_process_ids:
        gpu_process_ids.append(os.getpid())
    elif gpu_process_ids[0] != os.getpid():
        raise RuntimeError(
            "a GPU cannot be used in a forked child of a process that has used one: start the child with "
            "multiprocessing.set_start_method('spawn') or 'forkserver'; in Dask's configuration these are "
            "multiprocessing.context and distributed.worker.multiprocessing-method"
        )


def native_version() -> str:
    """The version of wgpu-native, the library underneath wgpu."""
    from wgpu.backends import wgpu_native

    return str(wgpu_native.__version__)


def pointer(wgpu_device: Any) -> Any:
    """wgpu-native's pointer to a device."""
    return wgpu_device._internal


def owner_of(handle: Buffer | CommandEncoder | Texture) -> GPUDevice:
    """The wgpu device of a buffer, encoder or texture."""
    owned: Any = handle
    owner: GPUDevice = owned._device
    return owner


class Region(NamedTuple):
    """Where a copy begins in a texture."""

    texture: Texture
    origin: tuple[int, int, int]  # x, y, and z or the first layer, in texels
    mip_level: int
    aspect: str  # as WebGPU names it


class Rows(NamedTuple):
    """Rows of texels in a buffer."""

    buffer: Buffer
    offset_nbytes: int
    row_nbytes: int  # from one row to the next
    image_rows: int  # from one layer to the next


def copy_texels(
    encoder: CommandEncoder, region: Region, rows: Rows, size: tuple[int, int, int], *, writes: bool
) -> None:
    """Record a copy between rows and a texture, of one aspect, which wgpu-py's own methods ignore."""
    from wgpu.backends.wgpu_native import ffi

    library, checked, _, _ = native()
    aspects = {
        "all": library.WGPUTextureAspect_All,
        "depth-only": library.WGPUTextureAspect_DepthOnly,
        "stencil-only": library.WGPUTextureAspect_StencilOnly,
    }
    handles: Any = encoder, region.texture, rows.buffer
    commands, texture, buffer = (handle._internal for handle in handles)
    in_texture = ffi.new("WGPUTexelCopyTextureInfo *")
    in_texture.texture, in_texture.mipLevel, in_texture.aspect = (
        texture,
        region.mip_level,
        aspects[region.aspect],
    )
    in_texture.origin.x, in_texture.origin.y, in_texture.origin.z = region.origin
    in_buffer = ffi.new("WGPUTexelCopyBufferInfo *")
    in_buffer.buffer = buffer
    in_buffer.layout.offset, in_buffer.layout.bytesPerRow, in_buffer.layout.rowsPerImage = rows[1:]
    extent = ffi.new("WGPUExtent3D *", size)
    if writes:
        checked.wgpuCommandEncoderCopyBufferToTexture(commands, in_buffer, in_texture, extent)
    else:
        checked.wgpuCommandEncoderCopyTextureToBuffer(commands, in_texture, in_buffer, extent)


class Placeholder:
    """Stands for a wgpu.GPUBuffer in a call that is captured, and has no memory."""

    map_state = "unmapped"
    label = ""

    def __init__(self, wgpu_device: GPUDevice, size: int, usage: int) -> None:
        self._device = wgpu_device
        self.size = size
        self.usage = usage

    @property
    def _internal(self) -> NoReturn:
        """What wgpu asks a buffer for before it uses it."""
        raise ValueError("the tensor is of a call that was explained, not run: it has no elements")


@cache
def lease_class() -> Callable[[Buffer, Callable[[Buffer], None]], Buffer]:
    """Make the class of leases, of wgpu's own for buffers; only then is wgpu imported."""
    from wgpu.backends.wgpu_native import GPUBuffer

    class LeasedBuffer(GPUBuffer):  # type: ignore[misc]  # of Any
        """A second handle of a buffer: when it is dropped, the first one is handed back."""

        def __init__(self, buffer: Buffer, give_back: Callable[[Buffer], None]) -> None:
            self.__dict__.update(buffer.__dict__)
            self._leased = buffer
            self._give_back = give_back

        def __del__(self) -> None:  # wgpu's would free the memory, which is the first handle's
            if not is_exposed(self):
                self._give_back(self._leased)

    return LeasedBuffer


def leased(buffer: Buffer, give_back: Callable[[Buffer], None]) -> Buffer:
    """Another handle of a buffer, which hands the buffer back when nothing refers to it, unless `exposed`."""
    return lease_class()(buffer, give_back)


def hidden(buffer: Buffer) -> Buffer:
    """Return a buffer that only this package refers to, until it is `exposed`."""
    held = cast("Any", buffer)
    held._exposed = False
    return buffer


def exposed(buffer: Buffer) -> Buffer:
    """Return a buffer that somebody else may use from now on in ways unknown, and may destroy."""
    if not is_exposed(buffer):
        held = cast("Any", buffer)
        held._exposed = True
    return buffer


def is_exposed(buffer: Buffer) -> bool:
    """Whether somebody else may refer to a buffer."""
    return getattr(buffer, "_exposed", True)


class TranslatedErrors:
    """Raise wgpu's errors in other words, as far as their texts tell them apart."""

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if error is None:
            return
        import wgpu

        if not isinstance(error, wgpu.GPUError):
            return
        text = str(error)
        if "Not enough memory left" in text:
            raise OutOfDeviceMemory(
                "the device has no memory left for this buffer: drop tensors that are no longer needed"
            ) from error
        if "device is lost" in text.lower():
            raise DeviceLostError(LOST) from error
        if "has been destroyed" in text:
            raise ValueError("the buffer has been destroyed: its memory is gone") from error


translated_errors = TranslatedErrors()  # holds nothing, so that one serves all threads


def refusals() -> type[Exception]:
    """What wgpu raises where it refuses something, such as a shader."""
    import wgpu

    error: type[Exception] = wgpu.GPUError
    return error


# From one look at the device to the next: one that was destroyed answers no mapping any more. On Windows an
# interrupt arrives between two looks, elsewhere at once.
LOOK_SECONDS = 0.1

# How long the caller polls before a thread waits: a few times what handing the wait to a thread takes.
# Between two polls it yields its core, which a software adapter may need; on Linux `sleep(0)` takes 50 us for
# that. A 4 x 16 slice with the wait takes 1.03 times as long as by wgpu's own wait, 1.4 times with `sleep(0)`
# or without a pause, 1.25 to 1.8 times with a thread alone (lavapipe, 2 busy cores of an AMD EPYC).
# A poll calls back for mappings of other threads, as wgpu's submission does too: an interrupt of the main
# thread that arrives inside of such a call is lost, and that mapping with it.
POLL_SECONDS = 200e-6
pause = getattr(os, "sched_yield", partial(sleep, 0))  # Windows lacks it

# Threads for waits inside of wgpu, where no interrupt arrives, nor in what wgpu calls back from there. An
# empty wait takes 17 us by such a thread, and 41 by a `ThreadPoolExecutor` (2 cores of an AMD EPYC).
idle: deque[Waiter] = deque()


class Waiter:
    """A thread that waits for others, one wait after the other; it is idle in between."""

    def __init__(self) -> None:
        self.wanted: SimpleQueue[Wait | None] = SimpleQueue()
        self.thread = threading.Thread(target=self.run, name="wgslice-wait", daemon=True)
        self.thread.start()
        atexit.register(self.end)

    def run(self) -> None:
        """Wait for what is wanted until nothing is any more."""
        while (wait := self.wanted.get()) is not None:
            try:
                wait.poll()
            except BaseException as error:
                wait.error = error
            idle.append(self)
            wait.running.release()

    def end(self) -> None:
        """End after what an interrupt may have left under way, since wgpu cannot be left inside of it."""
        self.wanted.put(None)
        self.thread.join()


class Wait:
    """One wait: its lock is free once it is over."""

    def __init__(self, poll: Callable[[], object]) -> None:
        self.poll = poll
        self.error: BaseException | None = None
        self.running = threading.Lock()
        self.running.acquire()

    def is_over(self, seconds: float) -> bool:
        """Whether it is over within some seconds."""
        return self.running.acquire(timeout=seconds)


def wait_done(wgpu_device: GPUDevice, is_lost: Callable[[], bool]) -> None:
    """Wait until all submitted work is done: first by polls without a thread, which end most waits."""
    if is_soon_done(wgpu_device):
        return
    handle: Any = wgpu_device
    wait = Wait(handle._poll_wait)  # the public wait, mapping a buffer, takes 0.1 ms more
    try:
        waiter = idle.pop()
    except IndexError:
        waiter = Waiter()
    waiter.wanted.put(wait)
    if not outlived(wait.is_over, is_lost):
        raise DeviceLostError(LOST)
    if wait.error is not None:
        raise wait.error


def is_soon_done(wgpu_device: GPUDevice) -> bool:
    """Whether all submitted work is done within POLL_SECONDS."""
    end = perf_counter() + POLL_SECONDS
    while not queue_is_empty(wgpu_device):
        if perf_counter() > end:
            return False
        pause()
    return True


def begin_mapping(staging: Buffer, nbytes: int, is_lost: Callable[[], bool]) -> MapPromise:
    """Ask for the first bytes of a staging buffer, once all is done that has been submitted.

    An interrupt leaves the buffer pending: drop it then, and it frees itself once it is mapped.
    """
    with telling_of_loss(is_lost):
        # READ would submit once more, as if nothing had been
        return staging.map_async("READ_NOSYNC", 0, nbytes)


def wait_for_mapping(mapping: MapPromise, is_lost: Callable[[], bool]) -> None:
    """Wait until the CPU can read what was asked for."""
    promise: Any = mapping
    with telling_of_loss(is_lost):
        if not outlived(promise._thread_event.wait, is_lost):  # set once it is done, or has failed
            raise DeviceLostError(LOST)
        mapping.sync_wait()


@contextmanager
def telling_of_loss(is_lost: Callable[[], bool]) -> Iterator[None]:
    """What wgpu-py raises of a destroyed device, which has no poll thread any more, or of its mappings."""
    try:
        yield
    except (AttributeError, RuntimeError):
        for seconds in (0, LOOK_SECONDS):  # another thread may be about to destroy it
            sleep(seconds)
            if is_lost():
                raise DeviceLostError(LOST) from None
        raise


def outlived(finished: Callable[[float], bool], is_lost: Callable[[], bool]) -> bool:
    """Wait until something has finished, or the device is lost before; whether it has finished."""
    while not finished(LOOK_SECONDS):
        if is_lost():
            return False
    return True

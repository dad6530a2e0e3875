"""All that is used of wgpu's private interface; a test names the version that has it.

Calls of wgpu-native whose result wgpu-py drops, or that it makes several times slower, private names of
wgpu-py for which it has no public ones, and its errors as Python's own, told apart by their texts.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from threading import Event
from typing import Any, NamedTuple, NoReturn, cast

from wgslice.errors import DeviceLostError, OutOfDeviceMemory
from wgslice.gpu.protocols import Buffer, CommandEncoder, GPUDevice, MapPromise

__all__ = [
    "LOST",
    "Placeholder",
    "check_valid",
    "exposed",
    "hidden",
    "is_exposed",
    "leased",
    "mapping_event",
    "native_version",
    "owner_of",
    "poll_wait",
    "queue_is_empty",
    "refusals",
    "translated_errors",
]

LOST = "the device is lost: request a new one and upload again"


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


def native_version() -> str:
    """The version of wgpu-native, the library underneath wgpu."""
    from wgpu.backends import wgpu_native

    return str(wgpu_native.__version__)


def pointer(wgpu_device: Any) -> Any:
    """wgpu-native's pointer to a device."""
    return wgpu_device._internal


def poll_wait(wgpu_device: Any) -> None:
    """Wait until all that is submitted is done; the public wait, mapping a buffer, takes 0.1 ms more."""
    wgpu_device._poll_wait()


def mapping_event(mapping: MapPromise) -> Event:
    """What is set once a mapping is done, or has failed."""
    promise: Any = mapping
    event: Event = promise._thread_event
    return event


def owner_of(handle: Buffer | CommandEncoder) -> GPUDevice:
    """The wgpu device of a buffer or encoder."""
    owned: Any = handle
    owner: GPUDevice = owned._device
    return owner


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

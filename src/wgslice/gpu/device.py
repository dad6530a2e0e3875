"""A GPU device: its adapter, its limits, its buffers and their checks. The only module that imports wgpu."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol, TypeAlias, TypeVar

from wgslice.errors import DeviceLostError, NoAdapterError, OutOfDeviceMemory
from wgslice.gpu.adapter import Adapter, choose_adapter, describe_adapter
from wgslice.gpu.pipelines import Pipelines
from wgslice.gpu.staging import Staging
from wgslice.plans.profiles import CPU, GPU, Limits
from wgslice.plans.steps import PATTERN_NBYTES

if TYPE_CHECKING:
    import wgpu

    Buffer: TypeAlias = wgpu.GPUBuffer
    CommandEncoder: TypeAlias = wgpu.GPUCommandEncoder
    GPUDevice: TypeAlias = wgpu.GPUDevice

__all__ = ["Device", "adapters", "default_device"]

# Values of the WebGPU specification, which wgpu.BufferUsage repeats.
COPY_SRC, COPY_DST, STORAGE = 0x4, 0x8, 0x80

LEAST_BINDING_NBYTES = 1024  # holds any element from any aligned offset; WebGPU promises 128 MiB

LOST = "the device is lost: request a new one and upload again"
WRAPPED = "_wgslice_device"  # the attribute of a wgpu.GPUDevice that holds its Device

Compiled_co = TypeVar("Compiled_co", covariant=True)


class Descriptor(Protocol[Compiled_co]):
    """What `Device.compile` takes."""

    def compile(self, device: Device) -> Compiled_co:
        """The operator, ready to run on `device`."""


def adapters() -> list[Adapter]:
    """List the adapters of this machine.

    Returns
    -------
    list of Adapter
        In wgpu's order; empty where there is none.

    Raises
    ------
    RuntimeError
        This is a forked child of a process that has used a GPU.
    """
    import wgpu

    check_process()
    with process_lock:
        if not found_adapters:
            found_adapters.extend(map(describe_adapter, wgpu.gpu.enumerate_adapters_sync()))
        return list(found_adapters)


# Enumerated once: OpenGL adapters of two enumerations share one context under two locks, and their devices,
# used in two threads, abort the process (wgpu-native 29, "BadAccess").
found_adapters: list[Adapter] = []
process_lock = threading.RLock()
gpu_process_ids: list[int] = []  # the process that uses the GPU, once one does


def check_process() -> None:
    """Refuse GPU work in a forked child, where drivers hang: their threads stayed in the parent."""
    if not gpu_process_ids:
        gpu_process_ids.append(os.getpid())
    elif gpu_process_ids[0] != os.getpid():
        raise RuntimeError(
            "a GPU cannot be used in a forked child of a process that has used one: start the child with "
            "multiprocessing.set_start_method('spawn')"
        )


class Device:
    """A GPU, or a software one: where tensors live and operators run.

    Get one with `Device.request`, `Device.wrap` or `default_device`. All tensors of one operation must be
    on the same device.

    Attributes
    ----------
    wgpu_device : wgpu.GPUDevice
        The device underneath.
    adapter : Adapter
        What it runs on.
    limits : Limits
        What plans are made for.
    """

    def __init__(self, wgpu_device: wgpu.GPUDevice) -> None:
        self.wgpu_device = wgpu_device
        self.adapter = describe_adapter(wgpu_device.adapter)
        limits = wgpu_device.limits
        self.largest_buffer_nbytes: int = limits["max-buffer-size"]
        self.limits = Limits(
            binding_nbytes=limits["max-storage-buffer-binding-size"],
            binding_alignment_nbytes=max(limits["min-storage-buffer-offset-alignment"], 16),
            workgroups=limits["max-compute-workgroups-per-dimension"],
            profile=CPU if self.adapter.software else GPU,
        )
        if self.limits.workgroups == 0 or self.limits.binding_nbytes < LEAST_BINDING_NBYTES:
            raise NoAdapterError(
                f"{self.adapter} allows {self.limits.workgroups} workgroups and bindings of "
                f"{self.limits.binding_nbytes} bytes: at least 1 and {LEAST_BINDING_NBYTES} are needed"
            )
        self.staging = Staging(wgpu_device)
        with translated_errors():
            self.pipelines = Pipelines(wgpu_device)
            self.zeros: Buffer = self._buffer(PATTERN_NBYTES, STORAGE | COPY_SRC)

    @classmethod
    def request(cls, adapter: Adapter | str | None = None) -> Device:
        """Make a new device with all limits of its adapter.

        Parameters
        ----------
        adapter : Adapter or str, optional
            One of `adapters()`, or a part of its name or backend, case ignored. The best by default: a
            discrete GPU before an integrated one before software.

        Raises
        ------
        NoAdapterError
            No adapter fits; the message says what this machine has, or what to install.
        TypeError
            `adapter` is neither a string nor one of `adapters()`.
        """
        if adapter is None or isinstance(adapter, str):
            adapter = choose_adapter(adapters(), adapter)
        if getattr(adapter, "handle", None) is None:
            raise TypeError(f"Device.request: adapter = {adapter!r}: must be a name or one of adapters()")
        check_process()
        with translated_errors():
            wgpu_device = adapter.handle.request_device_sync()
        return cls.wrap(wgpu_device)

    @classmethod
    def wrap(cls, wgpu_device: wgpu.GPUDevice) -> Device:
        """Share a device that exists: that of pygfx, or of your own program.

        Parameters
        ----------
        wgpu_device : wgpu.GPUDevice
            For example `wgpu.utils.get_default_device()`.

        Returns
        -------
        Device
            The same one for the same `wgpu_device`, as long as that lives.

        Raises
        ------
        TypeError
            It is no wgpu.GPUDevice.
        DeviceLostError
            It is lost.
        """
        import wgpu

        if not isinstance(wgpu_device, wgpu.GPUDevice):
            raise TypeError(f"Device.wrap takes a wgpu.GPUDevice, not {type(wgpu_device).__name__}")
        check_process()
        with process_lock:
            device: Device | None = getattr(wgpu_device, WRAPPED, None)
            if device is None:
                device = cls(wgpu_device)
                setattr(wgpu_device, WRAPPED, device)  # so that both live equally long
            return device

    def compile(self, descriptor: Descriptor[Compiled_co]) -> Compiled_co:
        """Plan an operator once, to run or record it many times.

        Parameters
        ----------
        descriptor : Slice1, Slice, SliceGrad or ExtractWindows
            What to compute.

        Returns
        -------
        CompiledOperator
        """
        if not hasattr(type(descriptor), "compile"):
            raise TypeError(
                f"Device.compile takes a descriptor such as Slice1, not {type(descriptor).__name__}"
            )
        return descriptor.compile(self)

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done.

        Raises
        ------
        DeviceLostError
            The device is gone.
        """
        if self.is_lost():
            raise DeviceLostError(LOST)
        # wgpu-py 0.32 has no public wait but mapping a buffer, which takes 0.1 ms more than this
        self.wgpu_device._poll_wait()

    def create_buffer(self, nbytes: int) -> Buffer:
        """Make a zeroed buffer for tensors, of at least `nbytes`: whole vectors of 16 bytes, and not none."""
        return self._buffer(max(-(-nbytes // 16) * 16, 16), STORAGE | COPY_SRC | COPY_DST)

    def is_lost(self) -> bool:
        """Whether the device is gone, as far as wgpu knows."""
        try:
            with translated_errors():
                self._buffer(4, COPY_DST)
        except DeviceLostError:
            return True
        return False

    def _buffer(self, nbytes: int, usage: int) -> Buffer:
        check_process()
        if nbytes > self.largest_buffer_nbytes:
            raise ValueError(
                f"a buffer of {nbytes} bytes: {self} allows at most {self.largest_buffer_nbytes}; "
                "use smaller tensors"
            )
        with translated_errors():
            return self.wgpu_device.create_buffer(size=nbytes, usage=usage)

    def __repr__(self) -> str:
        return f"Device({self.adapter})"


def default_device() -> Device:
    """Get the device that is used where none is given; made once, then shared, until it is lost.

    The environment variable WGSLICE_ADAPTER, a part of an adapter's name or backend, picks it; otherwise it
    is the best of this machine.

    Raises
    ------
    NoAdapterError
        This machine has no adapter, or none that fits WGSLICE_ADAPTER.
    """
    with process_lock:
        if not default_devices or default_devices[0].is_lost():
            default_devices[:] = [Device.request(os.environ.get("WGSLICE_ADAPTER"))]
        return default_devices[0]


default_devices: list[Device] = []  # the one, once it is made


def is_buffer(value: object) -> bool:
    """Whether a caller's handle is a buffer."""
    import wgpu

    return isinstance(value, wgpu.GPUBuffer)


def is_encoder(value: object) -> bool:
    """Whether a caller's handle is a command encoder."""
    import wgpu

    return isinstance(value, wgpu.GPUCommandEncoder)


def owner_of(handle: Buffer | CommandEncoder) -> wgpu.GPUDevice:
    """The wgpu device of a buffer or encoder; wgpu-py has no public name for it."""
    owner: wgpu.GPUDevice = handle._device
    return owner


@contextmanager
def translated_errors() -> Iterator[None]:
    """wgpu's validation errors as Python's own, as far as their texts tell them apart."""
    import wgpu

    try:
        yield
    except wgpu.GPUError as error:
        text = str(error)
        if "Not enough memory left" in text:
            raise OutOfDeviceMemory(
                "the device has no memory left for this buffer: drop tensors that are no longer needed"
            ) from error
        if "device is lost" in text.lower():
            raise DeviceLostError(LOST) from error
        if "has been destroyed" in text:
            raise ValueError("the buffer has been destroyed: its memory is gone") from error
        raise

"""GPU devices: adapter, limits and buffers of one, and those that a process shares."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar, cast
from weakref import WeakSet

from wgslice.errors import DeviceLostError, OutOfDeviceMemory
from wgslice.gpu.adapter import (
    Adapter,
    adapters,
    check_limits,
    choose_adapter,
    describe_adapter,
    devices_in_use,
    install_advice,
    process_lock,
    redirected,
)
from wgslice.gpu.capture import Submission, active, capturing
from wgslice.gpu.native import (
    LOST,
    Placeholder,
    check_process,
    check_valid,
    hidden,
    leased,
    translated_errors,
    wait_done,
)
from wgslice.gpu.pipelines import Pipelines
from wgslice.gpu.pool import MIN_REUSED_NBYTES, BufferPool, max_reused_nbytes
from wgslice.gpu.protocols import Buffer, BufferUsage, CommandEncoder, GPUDevice, Queue
from wgslice.plans.profiles import CPU, GPU, PATTERN_NBYTES, Limits, Profile, shipped_for

TENSOR_USAGES = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST

WRAPPED = "_wgslice_device"  # the attribute of a wgpu.GPUDevice that holds its Device

Compiled_co = TypeVar("Compiled_co", covariant=True)


class Compilable(Protocol[Compiled_co]):
    """What `Device.compile` takes."""

    def compile(self, device: Device) -> Compiled_co:
        """The operator, ready to run on `device`."""


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

    def __init__(self, wgpu_device: GPUDevice) -> None:
        self.wgpu_device: Any = wgpu_device  # Any to callers, since wgpu ships no types
        self.queue: Queue = wgpu_device.queue
        self.adapter = describe_adapter(wgpu_device.adapter)
        limits = wgpu_device.limits
        check_limits(self.adapter, limits)
        self.largest_buffer_nbytes: int = limits["max-buffer-size"]
        self.limits = Limits(
            binding_nbytes=limits["max-storage-buffer-binding-size"],
            binding_alignment_nbytes=max(limits["min-storage-buffer-offset-alignment"], 16),
            workgroups=limits["max-compute-workgroups-per-dimension"],
            profile=shipped_profile(self.adapter),
        )
        self.limits_lock = Lock()
        self.staging: list[Buffer] = []  # unmapped buffers that readback goes through, kept to be used again
        self.pool = BufferPool(max_reused_nbytes())
        self.alive: WeakSet[Buffer] = WeakSet()  # buffers that have been looked at, and not destroyed since
        with translated_errors:
            self.pipelines = Pipelines(wgpu_device)
        with capturing(None):  # a device that a captured call makes is measured as any other
            for calibrate in calibrations:
                calibrate(self)

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
            query, adapter = adapter, choose_adapter(adapters(), adapter)
            if adapter.backend == "OpenGL" and "gl" not in (query or "").lower():
                warnings.warn(
                    f"no Vulkan driver fits, so {adapter} is used: {redirected()}"
                    f"{install_advice()}; adapter='OpenGL' or WGSLICE_ADAPTER=OpenGL says that it is wanted",
                    RuntimeWarning,
                    stacklevel=2,
                )
        handle = getattr(adapter, "handle", None)
        if handle is None:
            raise TypeError(f"Device.request: adapter = {adapter!r}: must be a name or one of adapters()")
        check_process()
        with translated_errors:
            wgpu_device = handle.request_device_sync()
        return cls.wrap(wgpu_device)

    @classmethod
    def wrap(cls, wgpu_device: GPUDevice) -> Device:
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
        NoAdapterError
            Its limits are too small for the kernels; the message names the limit.
        """
        import wgpu

        if not isinstance(wgpu_device, wgpu.GPUDevice):
            raise TypeError(f"Device.wrap takes a wgpu.GPUDevice, not {type(wgpu_device).__name__}")
        check_process()
        with process_lock:
            device: Device | None = getattr(wgpu_device, WRAPPED, None)
            if device is None:
                devices_in_use.add(wgpu_device)
                device = cls(wgpu_device)
                setattr(wgpu_device, WRAPPED, device)  # so that both live equally long
                return device
        device.check_not_lost()
        return device

    def compile(self, descriptor: Compilable[Compiled_co]) -> Compiled_co:
        """Plan an operator once, to run or record it many times.

        Parameters
        ----------
        descriptor : Slice1, Slice, SliceGrad, ExtractWindows, InsertWindows, FromTexture or ToTexture
            What to compute.

        Returns
        -------
        CompiledOperator or CompiledTextureCopy

        Raises
        ------
        TypeError
            `descriptor` is none.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for what the operator needs, or is gone.
        """
        if not hasattr(type(descriptor), "compile"):
            raise TypeError(
                f"Device.compile takes a descriptor such as Slice1, not {type(descriptor).__name__}"
            )
        self.check_not_lost()
        return descriptor.compile(self)

    def synchronize(self) -> None:
        """Wait until all work submitted so far is done.

        Raises
        ------
        DeviceLostError
            The device is gone.
        """
        self.check_not_lost()
        wait_done(self.wgpu_device, self.is_lost)

    def update_limits(self, update: Callable[[Limits], Limits]) -> None:
        """Replace the limits by a function of the current ones, while no other thread writes them."""
        with self.limits_lock:
            self.limits = update(self.limits)

    def create_buffer(self, nbytes: int) -> Buffer:
        """Make a zeroed buffer for tensors, of at least `nbytes`; a placeholder in a captured call."""
        check_process()
        size = buffer_nbytes(nbytes)
        if size > self.largest_buffer_nbytes:
            raise ValueError(
                f"a buffer of {size} bytes: {self} allows at most {self.largest_buffer_nbytes}; "
                "use smaller tensors"
            )
        if active.capture is not None:
            return self.placeholder(nbytes)
        return self.new_buffer(size, TENSOR_USAGES)

    def new_buffer(self, size: int, usage: int) -> Buffer:
        """Make a zeroed buffer of any usage; without memory for it buffers kept for reuse are freed first."""
        while True:
            try:
                with translated_errors:
                    buffer: Buffer = self.wgpu_device.create_buffer(size=size, usage=usage)
                return buffer
            except OutOfDeviceMemory:
                if not self.pool.clear():
                    raise
                self.synchronize()  # until then submitted work holds them

    def reused_buffer(self, nbytes: int, *, zeroed: bool = False) -> Buffer:
        """Make a buffer for a tensor, of any content unless `zeroed`, with zeros behind the `nbytes`.

        Its memory is that of a released one where there is one of this size, and is reused in turn when the
        last reference is dropped, unless it has been `exposed`. So what is recorded in it must be submitted
        by then: the queue orders submissions and uploads before those of the next tensor.
        """
        size = buffer_nbytes(nbytes)
        if not MIN_REUSED_NBYTES <= size <= self.pool.max_nbytes or active.capture is not None:
            return hidden(self.create_buffer(nbytes))
        self.check_not_lost()
        buffer = self.pool.take(size)
        if buffer is None:
            buffer = self.create_buffer(nbytes)
        elif zeroed:
            encoder = self.create_encoder()
            encoder.clear_buffer(buffer, 0, size)
            self.submit(encoder)
        elif nbytes < size:
            self.queue.write_buffer(buffer, size - 16, bytes(16))
        return hidden(leased(buffer, self.pool.give))

    def placeholder(self, nbytes: int) -> Buffer:
        """Stand for a buffer that `create_buffer` makes, without memory, and so of any size."""
        return cast("Buffer", Placeholder(self.wgpu_device, buffer_nbytes(nbytes), TENSOR_USAGES))

    def create_encoder(self) -> CommandEncoder:
        """Begin to record."""
        if active.capture is not None:
            return cast("CommandEncoder", Submission())
        encoder: CommandEncoder = self.wgpu_device.create_command_encoder()
        return encoder

    def submit(self, encoder: CommandEncoder) -> None:
        """Let the GPU begin with what an encoder has recorded."""
        capture = active.capture
        if capture is not None:
            capture.submit(encoder)
            return
        with translated_errors:
            self.queue.submit([encoder.finish()])

    @cached_property
    def zeros(self) -> Buffer:
        """PATTERN_NBYTES that nobody writes."""
        return self.create_buffer(PATTERN_NBYTES)

    def check_not_lost(self) -> None:
        """Refuse to go on where the device is gone."""
        if self.is_lost():
            raise DeviceLostError(LOST)

    def is_lost(self) -> bool:
        """Whether the device is gone, as far as wgpu knows."""
        check_process()
        try:
            with translated_errors:
                check_valid(self.wgpu_device)
        except DeviceLostError:
            return True
        return False

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled, since it stays in its process: name its adapter, such as "
            "device='vulkan', or leave it out for the default device of the process that unpickles"
        )

    def __repr__(self) -> str:
        return f"Device({self.adapter})"


def buffer_nbytes(nbytes: int) -> int:
    """Bytes of a buffer for tensors: whole vectors of 16 bytes, and not none."""
    return max(-(-nbytes // 16) * 16, 16)


AnyDevice: TypeAlias = Device | str | None  # what `checked_device` takes

default_devices: list[Device] = []  # the one, once it is made
shared_devices: list[Device] = []  # one an adapter at most


def default_device() -> Device:
    """Get the device that is used where none is given; made once, then shared, until it is lost.

    The environment variable WGSLICE_ADAPTER, a part of an adapter's name or backend, picks it; otherwise it
    is the best of this machine. Of several that fit `#1` behind that part is the second: `nvidia#1`.

    Returns
    -------
    Device
        The same one for every call, until it is lost.

    Raises
    ------
    NoAdapterError
        This machine has no adapter, or none that fits WGSLICE_ADAPTER.
    """
    with process_lock:
        if not default_devices or default_devices[0].is_lost():
            default_devices[:] = [named_device(os.environ.get("WGSLICE_ADAPTER"))]
        return default_devices[0]


def named_device(name: str | None) -> Device:
    """The shared device of the best adapter that has a name, made where there is none or it is lost."""
    with process_lock:
        adapter = choose_adapter(adapters(), name)
        for device in (*default_devices, *shared_devices):
            if is_on(device, adapter) and not device.is_lost():
                return device
        made = Device.request(name)
        shared_devices[:] = [*(device for device in shared_devices if not is_on(device, adapter)), made]
        return made


def is_on(device: Device, adapter: Adapter) -> bool:
    """Whether a device is one of an adapter: of two equal GPUs of this very one."""
    return device.adapter.handle is adapter.handle


def checked_device(device: AnyDevice) -> Device:
    """The device that is given, or the shared one of a name, or the default one for None."""
    if device is None:
        return default_device()
    if isinstance(device, str):
        return named_device(device)
    if not isinstance(device, Device):
        raise TypeError(
            f"device is of type {type(device).__name__}: must be a Device, which Device.request and "
            "Device.wrap make, or a part of an adapter's name or backend"
        )
    return device


# Called with each new device, to set its cost model; the package registers the one that knows the machine.
calibrations: list[Callable[[Device], None]] = []


def shipped_profile(adapter: Adapter) -> Profile:
    """Return the profile of the adapter's kind with the shipped cost model that is nearest to it."""
    kind, software = (CPU, True) if adapter.software else (GPU, False)
    costs = shipped_for(adapter.name, adapter.backend, adapter.driver, software=software)
    return replace(kind, costs=costs)

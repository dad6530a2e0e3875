"""GPU devices: adapter, limits and buffers of each, and the devices that a process shares."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import replace
from functools import cached_property
from threading import Lock, RLock, local
from typing import Any, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.errors import LOST, DeviceLostError, NoAdapterError, OutOfDeviceMemory, fitted, named
from wgslice.gpu.adapter import (
    Adapter,
    check_limits,
    check_process,
    describe_adapter,
    devices_in_use,
    find_adapter,
    install_advice,
    process_lock,
)
from wgslice.gpu.hosts import default_host, found_by, host_named
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.gpu.pipelines import MIN_REUSED_NBYTES, BufferPool, Pipelines, fewest_checks, max_reused_nbytes
from wgslice.gpu.protocols import Buffer, BufferUsage, BytesCopy, CommandEncoder, GPUDevice, Lease, handle_of
from wgslice.plans.profiles import (
    CPU,
    GPU,
    MAX_QUEUED_NBYTES,
    MAX_STAGING_NBYTES,
    MIN_QUEUED_NBYTES,
    PATTERN_NBYTES,
    STAGING_NBYTES,
    Limits,
    Profile,
    shipped_for,
)
from wgslice.plans.proofs import Checks

TENSOR_USAGES = BufferUsage.STORAGE | BufferUsage.COPY_SRC | BufferUsage.COPY_DST
MAPPABLE = "mappable-primary-buffers"  # wgpu's feature: buffers of tensors may be mapped
TIMESTAMPS = "timestamp-query"

WRAPPED = "_wgslice_device"  # the attribute of a wgpu.GPUDevice that holds its Device
MAKING = "Device.request(name) makes a device"  # of errors

Compiled_co = TypeVar("Compiled_co", covariant=True)


timings = local()  # `current` is the `timed` block of a thread


class Compilable(Protocol[Compiled_co]):
    """An operator descriptor that `Device.compile` accepts."""

    def compile(self, device: Device) -> Compiled_co:
        """Return the operator, ready to run on `device`."""


class Device:
    """A GPU, or a software implementation of one, that holds tensors and runs operators.

    Make one with `request`, `wrap` or `default_device`. Tensors of one operation must share a device.

    Attributes
    ----------
    wgpu_device : wgpu.GPUDevice
        The wrapped device.
    adapter : Adapter
        The adapter that it runs on.
    limits : Limits
        Limits and cost model that plans are made for.

    Examples
    --------
    >>> import wgslice as wg
    >>> device = wg.default_device()
    >>> wg.zeros(3, device=device).device is device
    True
    """

    @fitted(MAKING)
    def __init__(self, wgpu_device: GPUDevice) -> None:
        self.host, wgpu_device = found_by("GPUDevice", wgpu_device, "Device: wgpu_device is ", MAKING)
        self.wgpu_device: Any = wgpu_device  # Any to callers, since wgpu ships no types
        self.queue: Any = wgpu_device.queue
        # Around every call of the host: raises its errors, and lets one thread in where it has to.
        self.calls: AbstractContextManager[None] = self.host.errors
        if not self.host.is_safe(wgpu_device):
            self.calls = OneByOne(self.host)
        self.adapter = describe_adapter(self.host, wgpu_device.adapter)
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
        self.queued_nbytes = 0  # written and not yet submitted, as `write` counts them
        self.staging = BufferPool(MAX_STAGING_NBYTES)  # unmapped, for readback
        self.pool = BufferPool(max_reused_nbytes())
        # Where the GPU's memory is the host's. Of CPU adapters, only Vulkan's have been tried.
        software = self.adapter.software and self.adapter.backend == "Vulkan"
        self.maps_tensors = software and self.host.maps_in_place and MAPPABLE in wgpu_device.features
        self.tensor_usages = TENSOR_USAGES | (BufferUsage.MAP_READ if self.maps_tensors else 0)
        # Held while a tensor's buffer is mapped, and by what submits or hands the buffer out: wgpu aborts the
        # process when commands on a mapped buffer are submitted.
        self.mapping_lock: AbstractContextManager[Any] = RLock() if self.maps_tensors else nullcontext()
        self.pipelines = self.new_pipelines()
        for calibrate in calibrations:
            calibrate(self)

    @classmethod
    def request(cls, adapter: Adapter | str | None = None, *, timestamps: bool = False) -> Device:
        """Make a new device with all limits of its adapter.

        Parameters
        ----------
        adapter : Adapter or str, optional
            One of `adapters()`, or part of its name or backend, ignoring case. By default the best one:
            discrete GPUs before integrated ones before software.
        timestamps : bool
            Whether `timed` measures by the GPU's clock, with WebGPU's feature "timestamp-query".

        Returns
        -------
        Device

        Raises
        ------
        NoAdapterError
            No adapter matches; the message lists those of this machine, or what to install. Or the adapter
            has no timestamps.
        TypeError
            `adapter` is neither a string nor one of `adapters()`.

        Warns
        -----
        RuntimeWarning
            OpenGL is used although it was not asked for, since no native driver was found.
        """
        chosen = chosen_adapter("Device.request", adapter)
        check_process()
        host = host_named(chosen.host)
        features = features_for(host, chosen)
        if timestamps:
            if TIMESTAMPS not in chosen.handle.features:
                raise NoAdapterError(f"Device.request: {chosen} has no timestamps: leave timestamps=True out")
            features.add(TIMESTAMPS)
        with named("Device.request"), host.errors:
            made = host.request_device(chosen.handle, features)
        return cls._on(chosen, made)

    @classmethod
    async def request_async(cls, adapter: Adapter | str | None = None) -> Device:
        """Make a device where calls cannot wait: in a browser that cannot suspend WebAssembly.

        Parameters
        ----------
        adapter : Adapter or str, optional
            As for `request`. By default the result is the device of `default_device`, which is made if it
            is absent or lost: calls without `device` work from then on.

        Returns
        -------
        Device

        Raises
        ------
        NoAdapterError, TypeError
            As `request`.

        Examples
        --------
        >>> import asyncio, wgslice as wg
        >>> asyncio.run(wg.Device.request_async()) is wg.default_device()
        True
        """
        await default_host().enumerate_async()
        if adapter is None and default_devices and not default_devices[0].is_lost():
            return default_devices[0]
        named_one = os.environ.get("WGSLICE_ADAPTER") if adapter is None else adapter
        chosen = chosen_adapter("Device.request_async", named_one)
        host = host_named(chosen.host)
        with named("Device.request_async"), host.errors:
            made = await host.request_device(chosen.handle, features_for(host, chosen), waits=False)
        device = cls._on(chosen, made)
        if adapter is None:
            default_devices[:] = [device]
        return device

    @classmethod
    def _on(cls, adapter: Adapter, wgpu_device: GPUDevice) -> Device:
        """Wrap a device of an adapter: Dawn makes devices of other handles than those that it listed."""
        device = cls.wrap(wgpu_device)
        device.adapter = adapter
        return device

    @classmethod
    def wrap(cls, wgpu_device: GPUDevice) -> Device:
        """Use an existing device, such as that of pygfx or of your program.

        Parameters
        ----------
        wgpu_device : wgpu.GPUDevice
            For example `wgpu.utils.get_default_device()`.

        Returns
        -------
        Device
            The same object for the same `wgpu_device`, as long as that exists.

        Raises
        ------
        TypeError
            `wgpu_device` is not a wgpu.GPUDevice.
        DeviceLostError
            The device is lost.
        NoAdapterError
            A limit of the device is too low for the kernels; the message names it.
        """
        host, wgpu_device = found_by("GPUDevice", wgpu_device, "Device.wrap: wgpu_device is ", MAKING)
        check_process()
        with named("Device.wrap"), host.errors, process_lock:
            device: Device | None = getattr(wgpu_device, WRAPPED, None)
            if device is None:
                devices_in_use.add(wgpu_device)
                device = cls(wgpu_device)
                setattr(wgpu_device, WRAPPED, device)  # both are released together
            else:
                device.check_not_lost()
            return device

    def compile(self, descriptor: Compilable[Compiled_co]) -> Compiled_co:
        """Plan an operator once, to run or record it repeatedly.

        Parameters
        ----------
        descriptor : Slice1, Slice, SliceGrad, ExtractWindows, InsertWindows, FromTexture or ToTexture
            The operator and its arguments.

        Returns
        -------
        CompiledOperator or CompiledTextureCopy

        Raises
        ------
        TypeError
            `descriptor` is not such a descriptor.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the operator's buffers, or is lost.
        """
        if not hasattr(type(descriptor), "compile"):
            name = type(descriptor).__name__
            raise TypeError(f"Device.compile: descriptor is of type {name}: must be one such as Slice1")
        with named("compile"):
            self.check_not_lost()
        return descriptor.compile(self)

    def synchronize(self) -> None:
        """Wait until the GPU has finished all work submitted so far.

        Raises
        ------
        DeviceLostError
            The device is lost.
        """
        with named("synchronize"):
            self.check_not_lost()
            self.flush()
            with self.calls:
                self.host.wait_done(self.wgpu_device, self.is_lost)

    def update_limits(self, update: Callable[[Limits], Limits]) -> None:
        """Replace the limits by a function of the current ones, under a lock."""
        with self.limits_lock:
            self.limits = update(self.limits)

    def new_pipelines(self) -> Pipelines:
        """Make caches of pipelines without any; GPUs have all checks until a self-test without has passed."""
        checks = fewest_checks(self.adapter) if self.adapter.software else Checks.ALL
        return Pipelines(self.host, self.wgpu_device, self.calls, checks)

    def new_buffer(self, size: int, usage: int) -> Buffer:
        """Make a zeroed buffer of any usage; if memory is short, free the pool's buffers and retry."""
        while True:
            try:
                with self.calls:
                    made: Buffer = self.wgpu_device.create_buffer(size=size, usage=usage)
                    return made
            except OutOfDeviceMemory:
                if not (self.pool.shrink() or self.staging.shrink(STAGING_NBYTES)):  # one reads back
                    raise
                self.synchronize()  # submitted work keeps them until it is done

    def pooled_buffer(self, nbytes: int, size: int, *, zeroed: bool) -> Buffer:
        """Make a buffer of `size` bytes that the pool reuses, as `Sink.reused_buffer` says."""
        if not MIN_REUSED_NBYTES <= size <= self.pool.max_nbytes:
            return Lease(self.wgpu_device, self.new_buffer(size, self.tensor_usages))
        self.check_not_lost()
        buffer = self.pool.take(size)
        with self.calls:
            if buffer is None:
                buffer = self.new_buffer(size, self.tensor_usages)
            elif zeroed:
                encoder = self.new_encoder()
                encoder.clear_buffer(handle_of(buffer), 0, size)
                self.submit(encoder)
            elif nbytes < size:
                self.write(buffer, size - 16, np.zeros(16, np.uint8))
        self.pool.in_use.add(buffer)
        return Lease(self.wgpu_device, buffer, self.pool.give)

    def new_encoder(self) -> CommandEncoder:
        """Make a command encoder."""
        with self.calls:
            return self.wgpu_device.create_command_encoder()

    def write(self, buffer: Buffer, offset_nbytes: int, data: NDArray[np.uint8]) -> None:
        """Write whole words at a word offset before any later submission.

        The queue holds a copy of them until then: few and small ones share the submission of what follows,
        since a submission takes longer than a write of some KiB.
        """
        with self.calls, self.mapping_lock:
            self.queue.write_buffer(handle_of(buffer), offset_nbytes, data)
            self.queued_nbytes += max(data.size, MIN_QUEUED_NBYTES)
            if self.queued_nbytes >= MAX_QUEUED_NBYTES:
                self.flush()

    def flush(self) -> None:
        """Submit what the queue holds."""
        if self.queued_nbytes:
            self.submit(None)

    def submit(self, encoder: CommandEncoder | None, copy: BytesCopy | None = None) -> None:
        """Submit the commands that an encoder has recorded, if there is one, and a copy."""
        timed = getattr(timings, "current", None)
        if timed is not None:
            timed.begin(self)
        with self.calls, self.mapping_lock:
            self.queued_nbytes = 0
            self.host.submit(self.wgpu_device, encoder, copy)

    @cached_property
    def zeros(self) -> Buffer:
        """A buffer of PATTERN_NBYTES zeros that is never written."""
        return self.new_buffer(PATTERN_NBYTES, TENSOR_USAGES)

    def check_not_lost(self) -> None:
        """Raise DeviceLostError if the device is lost."""
        if self.is_lost():
            raise DeviceLostError(LOST)

    def is_lost(self) -> bool:
        """Whether wgpu reports the device as lost."""
        check_process()
        with suppress(DeviceLostError), self.calls:
            self.host.check_valid(self.wgpu_device)
            return False
        return True

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self!r} cannot be pickled, since it belongs to its process: name its adapter, such as "
            "device='vulkan', or leave it out for the default device of the unpickling process"
        )

    def __repr__(self) -> str:
        return f"Device({self.adapter})"


class OneByOne:
    """Context manager of calls of a host whose devices serve one thread at a time."""

    def __init__(self, host: WebGPU) -> None:
        self.errors = host.errors
        self.lock = RLock()

    def __enter__(self) -> None:
        self.lock.acquire()

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        self.lock.release()
        self.errors.__exit__(kind, error, traceback)


def buffer_nbytes(nbytes: int) -> int:
    """Return the bytes of a buffer for tensors: whole vectors of 16 bytes, at least one."""
    return max(-(-nbytes // 16) * 16, 16)


def describe_buffer(buffer: Buffer) -> str:
    """Return the description of a buffer for error messages."""
    label = f" {buffer.label!r}" if buffer.label else ""
    return f"the buffer{label} of {buffer.size} bytes"


def check_usable(device: Device, buffer: Buffer) -> None:
    """Raise ValueError for a buffer of another device, without STORAGE usage, below 4 bytes, or mapped."""
    check_process()
    if is_elsewhere(device, buffer):
        raise ValueError(
            f"{describe_buffer(buffer)} is not on {device} but on another Device object: "
            "use one device for both, or copy the tensor with asarray(x, device=...)"
        )
    if not buffer.usage & BufferUsage.STORAGE:
        raise ValueError(f"{describe_buffer(buffer)} lacks usage STORAGE: create it with that usage")
    if buffer.size < 4:
        raise ValueError(f"{describe_buffer(buffer)} is too small: a binding has at least 4 bytes")
    if buffer.map_state != "unmapped":
        raise ValueError(f"{describe_buffer(buffer)} is {buffer.map_state}: unmap it first")


def is_elsewhere(device: Device, handle: Any) -> bool:
    """Whether a handle is known to be of another wgpu device."""
    owner = device.host.owner_of(handle)
    return not device.host.has(handle) if owner is None else owner is not device.wgpu_device


def chosen_adapter(name: str, adapter: Any) -> Adapter:
    """Return an adapter, or that for a part of its name or None; `name` begins errors."""
    if adapter is None or isinstance(adapter, str):
        query, adapter = adapter, find_adapter(adapter)
        if adapter.backend == "OpenGL" and "gl" not in (query or "").lower():
            warnings.warn(
                f"no Vulkan driver fits, so {adapter} is used: {install_advice()}; "
                "adapter='OpenGL' or WGSLICE_ADAPTER=OpenGL silences this warning",
                RuntimeWarning,
                stacklevel=3,
            )
    if not isinstance(adapter, Adapter) or adapter.handle is None:
        raise TypeError(f"{name}: adapter = {adapter!r}: must be a name or one of adapters()")
    return adapter


def features_for(host: WebGPU, adapter: Adapter) -> set[str]:
    """Return the features that a device on an adapter gets."""
    return {MAPPABLE} & adapter.handle.features if adapter.software and host.maps_in_place else set()


AnyDevice: TypeAlias = Device | str | None  # arguments of `checked_device`

default_devices: list[Device] = []  # at most one
shared_devices: list[Device] = []  # at most one per adapter


@fitted("other functions take device=name, and Device.request(name) makes one")
def default_device() -> Device:
    """Return the device that is used by default: made once, then shared until it is lost.

    The environment variable WGSLICE_ADAPTER, part of an adapter's name or backend, chooses it; otherwise it
    is the best of this machine. A number counts matches from 0: `nvidia#1` is the second.

    Returns
    -------
    Device
        The same one for every call, until it is lost.

    Raises
    ------
    NoAdapterError
        This machine has no adapter, or none that matches WGSLICE_ADAPTER.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.default_device() is wg.default_device()
    True
    """
    with process_lock:
        if not default_devices or default_devices[0].is_lost():
            default_devices[:] = [named_device(os.environ.get("WGSLICE_ADAPTER"))]
        return default_devices[0]


def named_device(name: str | None) -> Device:
    """Return the shared device of the best adapter that matches a name; make it if absent or lost."""
    with process_lock:
        adapter = find_adapter(name)
        for device in (*default_devices, *shared_devices):
            if device.adapter.handle is adapter.handle and not device.is_lost():  # not that of an equal GPU
                return device
        made = Device.request(name)
        others = (device for device in shared_devices if device.adapter.handle is not adapter.handle)
        shared_devices[:] = [*others, made]
        return made


def checked_device(device: AnyDevice) -> Device:
    """Return a given device, the shared one of a name, or for None the default one."""
    if device is None:
        return default_device()
    if isinstance(device, str):
        return named_device(device)
    if not isinstance(device, Device):
        raise TypeError(
            f"device is of type {type(device).__name__}: must be a Device, which Device.request and "
            "Device.wrap make, or part of an adapter's name or backend"
        )
    return device


def owning_device(host: WebGPU, handle: Any, device: AnyDevice = None) -> Device:
    """Return the device of a buffer or texture, which may be lost: a given one, or the host's only one."""
    if device is not None:
        return checked_device(device)
    owner = host.owner_of(handle)
    if owner is None:
        candidates = [each for each in devices_in_use if host.handle_in(each, "GPUDevice") is not None]
        if len(candidates) != 1:
            raise ValueError(
                f"{host.type_name(handle)} does not tell its device, and {len(candidates)} are in use: give "
                "device=, a Device, which Device.wrap makes of your program's"
            )
        owner = candidates[0]
    return getattr(owner, WRAPPED, None) or Device.wrap(owner)


# Called with each new device to set its cost model; the package registers the tuning cache.
calibrations: list[Callable[[Device], None]] = []


def shipped_profile(adapter: Adapter) -> Profile:
    """Return the profile of the adapter's kind with the most similar shipped cost model."""
    kind, software = (CPU, True) if adapter.software else (GPU, False)
    costs = shipped_for(adapter.name, adapter.backend, adapter.driver, software=software)
    return replace(kind, costs=costs)

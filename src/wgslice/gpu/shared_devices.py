"""Devices that a process shares: the default one, and those that are asked for by a name."""

from __future__ import annotations

import os

from wgslice.gpu.adapter import Adapter, choose_adapter
from wgslice.gpu.device import Device
from wgslice.gpu.process import adapters, process_lock

__all__ = ["checked_device", "default_device", "named_device"]

default_devices: list[Device] = []  # the one, once it is made
shared_devices: list[Device] = []  # one an adapter at most


def default_device() -> Device:
    """Get the device that is used where none is given; made once, then shared, until it is lost.

    The environment variable WGSLICE_ADAPTER, a part of an adapter's name or backend, picks it; otherwise it
    is the best of this machine. Of several that fit `#1` behind that part is the second: `nvidia#1`.

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


def checked_device(device: Device | str | None) -> Device:
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

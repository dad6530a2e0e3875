"""`tune`: measure the constants of a device, keep them, and plan by them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from wgslice.calibration.calibrate import calibrated_profile, recorded
from wgslice.calibration.constants import CONSTANTS, constants_of
from wgslice.calibration.measure import measure_constants
from wgslice.calibration.store import NoFolderError, Record, keep, say
from wgslice.errors import named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, checked_device, shipped_profile
from wgslice.plans.costs import Costs

__all__ = ["Tuning", "described", "tune"]


@dataclass(frozen=True, repr=False)
class Tuning:
    """The constants that `tune` measured, to print.

    Attributes
    ----------
    device : Device
        What was measured.
    record : Record
        `constants` by their names, which end in their units; when they were measured, and on what.
    path : pathlib.Path or None
        The file that keeps the record; None where none could be written.
    """

    device: Device
    record: Record
    path: Path | None

    @property
    def costs(self) -> Costs:
        """The cost model of the device: the shipped one, scaled to the constants."""
        return calibrated_profile(self.device.adapter, self.record).costs

    @property
    def seconds(self) -> float:
        """How long it took to measure."""
        return self.record.seconds

    def as_json(self) -> dict[str, Any]:
        """Return what `json.dumps` takes: the file's content, and where that is."""
        path = self.path and str(self.path)
        return {"path": path, "origin": self.costs.origin, **self.record.as_json()}

    def __str__(self) -> str:
        return described(self.device.adapter, self.record, self.path)

    def __repr__(self) -> str:
        return f"Tuning({self.device}, {len(self.record.constants)} constants, {self.seconds:.1f} s)"


def tune(
    device: Device | str | None = None, *, progress: Callable[[float, str], None] | None = None
) -> Tuning:
    """Measure five constants of a device, and scale its cost model, by which plans choose, to them.

    Until then plans go by the cost model that is shipped with wgslice, measured on other machines. The
    constants are kept in a file of the user's cache folder, by adapter, driver and processor: devices that
    are made later load it, in this process and others. `wgslice tune --forget` removes it.

    Parameters
    ----------
    device : Device or str, optional
        What to measure; the default device if there is none given. Nothing else should run on it, or on this
        machine, meanwhile. Its plans are made by the new cost model from then on; operators that are compiled
        keep theirs, and other devices that exist do too.
    progress : callable, optional
        Called now and then with the share that is done, from 0 to 1, and with what is measured next.

    Returns
    -------
    Tuning
        To print; `record.constants` are the constants and `path` the file. Where none can be written, for
        want of the package platformdirs (the extra `tune`), a home, a permission or room, a line on stderr
        says why, and the constants hold for `device` alone.

    Raises
    ------
    TypeError
        `device` is no Device.
    NoAdapterError
        A default device is needed, and this machine has none.
    DeviceLostError
        The device is gone.
    OutOfDeviceMemory
        The device has no memory for the buffers that it is measured with.
    """
    with named("tune"):
        device = checked_device(device)
    report = progress or (lambda _, __: None)
    record = recorded(device.adapter, lambda: measure_constants(device, report))
    profile = calibrated_profile(device.adapter, record)
    device.update_limits(lambda limits: replace(limits, profile=profile))
    return Tuning(device, record, kept_path(record))


def kept_path(record: Record) -> Path | None:
    """Keep a record; returns None where that is impossible, and prints why on stderr."""
    try:
        return keep(record)
    except (NoFolderError, OSError) as error:
        say(f"the constants that were measured are not kept: {error}")
        return None


def described(adapter: Adapter, record: Record, path: Path | None) -> str:
    """Return a record as a table: the machine, the file, and each constant beside the shipped one."""
    machine, shipped = record.machine, constants_of(shipped_profile(adapter))
    lines = [
        f"adapter    {machine.adapter} via {machine.backend}",
        f"driver     {machine.driver}",
        f"processor  {machine.processor}, {machine.cores} cores",
        f"measured   {record.date:%Y-%m-%d}, in {record.seconds:.1f} s",
        f"kept in    {path or 'no file'}",
        f"plans by   {calibrated_profile(adapter, record).costs.origin}",
        "",
        f"{'':<24} {'measured':>10} {'shipped':>10}",
    ]
    for name, value in record.constants.items():
        label, factor, unit = CONSTANTS[name]
        lines.append(f"{label:<24} {value * factor:>10.3g} {shipped[name] * factor:>10.3g} {unit}")
    return "\n".join(lines)

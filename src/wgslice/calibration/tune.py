"""`tune`, and the cost model that a new device gets: tuned, compared with its machine, or shipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from wgslice.calibration.measure import (
    CONSTANTS,
    compare_constants,
    constants_of,
    measure_constants,
    with_constants,
)
from wgslice.calibration.store import VARIABLE, Machine, Record, find, keep, say
from wgslice.errors import OutOfDeviceMemory, named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, checked_device, shipped_profile
from wgslice.plans.profiles import Costs, Profile

compared: dict[Machine, Record] = {}  # comparisons of this process, kept in a file or not


def calibrate(device: Device) -> None:
    """Set the cost model of a new device; compares two constants once per machine on a software adapter.

    With WGSLICE_PROFILE set nothing is measured: the shipped cost model is used, or the named file.
    """
    record = kept_record(device.adapter)
    if record is None and is_compared(device.adapter):
        with suppress(OutOfDeviceMemory):
            record = recorded(device.adapter, lambda: compare_constants(device))
        if record is not None and record.constants:
            compared[record.machine] = record
            with suppress(OSError):
                keep(record)
    if record is not None and record.constants:
        plan_by(device, record)


def is_compared(adapter: Adapter) -> bool:
    """Whether constants of an adapter are compared with the shipped ones, unless `tune` measured them."""
    return adapter.software and not os.environ.get(VARIABLE)


def kept_record(adapter: Adapter) -> Record | None:
    """Return what was measured of an adapter on this machine: all constants, or else a comparison."""
    machine = Machine.of(adapter)
    found = find(machine)
    if found is None and is_compared(adapter):
        found = find(machine, compared=True) or compared.get(machine)
    return found


def recorded(adapter: Adapter, measure: Callable[[], Mapping[str, float]]) -> Record:
    """Measure constants, and note when and on what."""
    date, begun = datetime.now(UTC).replace(microsecond=0), perf_counter()
    constants = dict(measure())
    return Record(Machine.of(adapter), constants, date, round(perf_counter() - begun, 3))


def calibrated_profile(adapter: Adapter, record: Record | None) -> Profile:
    """Return the profile that devices of an adapter get by a record."""
    profile = shipped_profile(adapter)
    return with_constants(profile, record.constants, f"{record.date:%Y-%m-%d}") if record else profile


def plan_by(device: Device, record: Record) -> None:
    """Let a device's plans be made by a record."""
    profile = calibrated_profile(device.adapter, record)
    device.update_limits(lambda limits: replace(limits, profile=profile))


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

    @property
    def path(self) -> Path | None:
        """The file that keeps the record."""
        return self.record.path

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
        return {"path": self.path and str(self.path), "origin": self.costs.origin, **self.record.as_json()}

    def __str__(self) -> str:
        return described(self.device.adapter, self.record)

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
    plan_by(device, record)
    try:
        record = replace(record, path=keep(record))
    except OSError as error:
        say(f"the constants that were measured are not kept: {error}")
    return Tuning(device, record)


def described(adapter: Adapter, record: Record) -> str:
    """Return a record as a table: the machine, the file, and each constant beside the shipped one."""
    machine, shipped = record.machine, constants_of(shipped_profile(adapter))
    lines = [
        f"adapter    {machine.adapter} via {machine.backend}",
        f"driver     {machine.driver}",
        f"processor  {machine.processor}, {machine.cores} cores",
        f"measured   {record.date:%Y-%m-%d}, in {record.seconds:.1f} s",
        f"kept in    {record.path or 'no file'}",
        f"plans by   {calibrated_profile(adapter, record).costs.origin}",
        "",
        f"{'':<24} {'measured':>10} {'shipped':>10}",
    ]
    for name, value in record.constants.items():
        label, factor, unit = CONSTANTS[name]
        lines.append(f"{label:<24} {value * factor:>10.3g} {shipped[name] * factor:>10.3g} {unit}")
    return "\n".join(lines)

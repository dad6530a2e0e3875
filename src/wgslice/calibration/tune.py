"""`tune`, and the cost model of a new device: tuned, corrected by a comparison, or shipped."""

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
from wgslice.calibration.unchecked import has_passed
from wgslice.calibration.verdict import verdict
from wgslice.errors import OutOfDeviceMemory, fitted, named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, checked_device, shipped_profile
from wgslice.gpu.hosts import host_named
from wgslice.gpu.pipelines import fewest_checks
from wgslice.gpu.sink import RUNNING, using
from wgslice.plans.profiles import Costs, Profile

CANNOT_TUNE = (
    "tune: copies that are timed have to be waited for, and this browser cannot suspend Python here; plans "
    "use the shipped cost model"
)

compared: dict[Machine, Record] = {}  # comparisons of this process


def calibrate(device: Device) -> None:
    """Set the cost model of a new device; compares constants once per machine on a software adapter.

    A GPU whose kernels have passed the self-test without run-time checks goes without them.
    """
    fewest = fewest_checks(device.adapter)
    if fewest < device.pipelines.checks and has_passed(device.adapter):
        device.pipelines.checks = fewest
    record = kept_record(device.adapter)
    if record is None and is_compared(device.adapter):
        # a device made by an explained or captured call is measured as any other
        with suppress(OutOfDeviceMemory), using(RUNNING):
            record = recorded(device.adapter, lambda: compare_constants(device))
        if record is not None and record.constants:
            compared[record.machine] = record
            with suppress(OSError):
                keep(record)
    if record is not None and record.constants:
        plan_by(device, record)


def is_compared(adapter: Adapter) -> bool:
    """Whether an adapter's constants are compared with the shipped ones when `tune` has not measured them."""
    return adapter.software and host_named(adapter.host).can_wait() and not os.environ.get(VARIABLE)


def kept_record(adapter: Adapter) -> Record | None:
    """Return the measurements of an adapter on this machine: all constants, or else a comparison."""
    machine = Machine.of(adapter)
    found = find(machine)
    if found is None and is_compared(adapter):
        found = find(machine, compared=True) or compared.get(machine)
    return found


def recorded(adapter: Adapter, measure: Callable[[], Mapping[str, float]]) -> Record:
    """Measure constants, and record the date, the duration and the machine."""
    date, begun = datetime.now(UTC).replace(microsecond=0), perf_counter()
    constants = dict(measure())
    return Record(Machine.of(adapter), constants, date, round(perf_counter() - begun, 3))


def calibrated_profile(adapter: Adapter, record: Record | None) -> Profile:
    """Return an adapter's shipped profile, scaled to a record if there is one."""
    profile = shipped_profile(adapter)
    return with_constants(profile, record.constants, f"{record.date:%Y-%m-%d}") if record else profile


def plan_by(device: Device, record: Record) -> None:
    """Set a device's profile to the one scaled to a record."""
    profile = calibrated_profile(device.adapter, record)
    device.update_limits(lambda limits: replace(limits, profile=profile))


@dataclass(frozen=True, repr=False)
class Tuning:
    """The cost parameters that `tune` measured. Printed: their file, and the effect on typical slices.

    Attributes
    ----------
    device : Device
        The measured device.
    record : Record
        `constants` by name, whose suffix is the unit; with the date, the duration and the machine.
    path : pathlib.Path or None
        The file that stores the record; None if none could be written.
    costs : Costs
        The device's cost model: the shipped one, scaled to the constants.
    seconds : float
        Duration of the measurement.
    """

    device: Device
    record: Record

    @property
    def path(self) -> Path | None:
        """The file that stores the record, or None."""
        return self.record.path

    @property
    def costs(self) -> Costs:
        """The device's cost model: the shipped one, scaled to the constants."""
        return calibrated_profile(self.device.adapter, self.record).costs

    @property
    def seconds(self) -> float:
        """Duration of the measurement in seconds."""
        return self.record.seconds

    def as_json(self) -> dict[str, Any]:
        """Return the stored record and its path, as `json.dumps` accepts them."""
        return {"path": self.path and str(self.path), "origin": self.costs.origin, **self.record.as_json()}

    def __str__(self) -> str:
        return summary(self.device.adapter, self.record)

    def __repr__(self) -> str:
        return f"Tuning({self.device}, {len(self.record.constants)} constants, {self.seconds:.1f} s)"


@fitted()
def tune(
    device: Device | str | None = None, *, progress: Callable[[float, str], None] | None = None
) -> Tuning:
    """Measure five cost parameters of a device, and scale its cost model to them.

    Plans choose strategies by the cost model; the one shipped with wgslice was measured on other machines.
    The result is stored in the user's cache folder, by adapter, driver and processor, and loaded by devices
    that are made later, in this process and others. `wgslice tune --forget` removes it.

    Parameters
    ----------
    device : Device or str, optional
        The device to measure; the default device if omitted. Nothing else should run on the machine
        meanwhile. Its later plans use the new cost model; compiled operators and other existing devices
        keep theirs.
    progress : callable, optional
        Called with the fraction done, from 0 to 1, and the name of the next measurement.

    Returns
    -------
    Tuning
        `record.constants` are the cost parameters and `path` the file; printed, it ends in the effect on
        typical slices. If no file can be written (no package platformdirs, which is the extra `tune`, no
        home, no permission, a full disk), a line on stderr gives the reason and only `device` is tuned.

    Raises
    ------
    TypeError
        `device` is no Device.
    NoAdapterError
        `device` is omitted or a name, and no adapter fits.
    DeviceLostError
        The device is lost.
    OutOfDeviceMemory
        The device has no memory for the buffers of the measurement.
    RuntimeError
        Calls cannot wait, in a browser that cannot suspend WebAssembly.
    """
    with named("tune"):
        device = checked_device(device)
    if not device.host.can_wait():
        raise RuntimeError(CANNOT_TUNE)
    report = progress or (lambda _, __: None)
    record = recorded(device.adapter, lambda: measure_constants(device, report))
    plan_by(device, record)
    try:
        record = replace(record, path=keep(record))
    except OSError as error:
        say(f"the measured cost parameters are not stored: {error}")
    return Tuning(device, record)


def summary(adapter: Adapter, record: Record, *, table: bool = False) -> str:
    """Describe a record in lines, the last of which is its effect on plans of typical slices."""
    machine, profile = record.machine, calibrated_profile(adapter, record)
    lines = [
        f"adapter     {machine.adapter} via {machine.backend}",
        f"driver      {machine.driver}",
        f"processor   {machine.processor}, {machine.cores} cores",
        f"measured    {record.date:%Y-%m-%d}, in {record.seconds:.1f} s",
        f"stored in   {record.path or 'no file'}",
        f"cost model  {profile.costs.origin}",
        *(["", cost_table(adapter, record)] if table else []),
        "",
        str(verdict(shipped_profile(adapter), profile)),
    ]
    return "\n".join(lines)


def cost_table(adapter: Adapter, record: Record | None) -> str:
    """Format each cost parameter as measured and as shipped, with its unit and its meaning."""
    measured = record.constants if record else {}
    lines = [f"{'cost parameter':<22} {'measured':>9} {'shipped':>9} {'unit':<4}  meaning"]
    for name, shipped in constants_of(shipped_profile(adapter)).items():
        label, factor, unit, meaning = CONSTANTS[name]
        value = f"{measured[name] * factor:.3g}" if name in measured else "-"
        lines.append(f"{label:<22} {value:>9} {shipped * factor:>9.3g} {unit:<4}  {meaning}")
    return "\n".join(lines)

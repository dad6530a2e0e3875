"""`tune`, and the cost model of a new device: tuned, or shipped."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from wgslice.calibration.measure import (
    CONSTANTS,
    Report,
    constants_of,
    measure_constants,
    measure_factors,
    with_constants,
)
from wgslice.calibration.store import Machine, Record, find, keep, say
from wgslice.calibration.unchecked import has_passed
from wgslice.calibration.verdict import verdict
from wgslice.errors import fitted, named
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, checked_device, shipped_profile
from wgslice.gpu.pipelines import fewest_checks
from wgslice.plans.profiles import Costs, Profile

CANNOT_TUNE = (
    "tune: copies that are timed have to be waited for, and this browser cannot suspend Python here; plans "
    "use the shipped cost model"
)

CONSTANTS_SHARE = 0.1  # of the duration of a tuning; the rest is for cost classes


def calibrate(device: Device) -> None:
    """Set the cost model of a new device to the one that `tune` kept; measures nothing.

    A GPU whose kernels have passed the self-test without run-time checks goes without them.
    """
    fewest = fewest_checks(device.adapter)
    if fewest < device.pipelines.checks and has_passed(device.adapter):
        device.pipelines.checks = fewest
    record = find(Machine.of(device.adapter))
    if record is not None:
        plan_by(device, record)


def measured(device: Device, report: Report) -> Record:
    """Measure constants and cost classes, and record the date, the duration and the machine."""
    date, begun, share = datetime.now(UTC).replace(microsecond=0), perf_counter(), CONSTANTS_SHARE
    constants = measure_constants(device, lambda done, what: report(share * done, what))
    factors = measure_factors(device, constants, lambda done, what: report(share + (1 - share) * done, what))
    seconds = round(perf_counter() - begun, 3)
    return Record(Machine.of(device.adapter), constants, date, seconds, factors=factors)


def calibrated_profile(adapter: Adapter, record: Record | None) -> Profile:
    """Return an adapter's shipped profile, scaled to a record if there is one."""
    profile = shipped_profile(adapter)
    if record is None:
        return profile
    return with_constants(profile, record.constants, f"{record.date:%Y-%m-%d}", record.factors)


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
        `constants` by name, whose suffix is the unit, and `factors` of cost classes; with the date, the
        duration and the machine.
    path : pathlib.Path or None
        The file that stores the record; None if none could be written.
    costs : Costs
        The device's cost model: the shipped one, scaled to the record.
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
        """The device's cost model: the shipped one, scaled to the record."""
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
    """Measure cost parameters and kernels of a device, and scale its cost model to them.

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
        `record.constants` are the cost parameters, `record.factors` the measured seconds of cost classes over
        the shipped ones, and `path` is the file; printed, it ends in the effect on typical slices. If no file
        can be written (no package platformdirs, which is the extra `tune`, no home, no permission, a full
        disk), a line on stderr gives the reason and only `device` is tuned.

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
    NoKernelError
        The self-test has disabled every kernel for one of the typical slices.
    RuntimeError
        Calls cannot wait, in a browser that cannot suspend WebAssembly.
    """
    with named("tune"):
        device = checked_device(device)
    if not device.host.can_wait():
        raise RuntimeError(CANNOT_TUNE)
    record = measured(device, progress or (lambda *_: None))
    plan_by(device, record)
    try:
        record = replace(record, path=keep(record))
    except OSError as error:
        say(f"the measured cost parameters are not stored: {error}")
    return Tuning(device, record)


def summary(adapter: Adapter, record: Record, *, table: bool = False) -> str:
    """Describe a record in lines, the last of which is its effect on plans of typical slices."""
    machine, profile, factors = record.machine, calibrated_profile(adapter, record), record.factors.values()
    extent = f", at {min(factors):.2f} to {max(factors):.2f} times the shipped seconds" if factors else ""
    lines = [
        f"adapter     {machine.adapter} via {machine.backend}",
        f"driver      {machine.driver}",
        f"processor   {machine.processor}, {machine.cores} cores",
        f"measured    {record.date:%Y-%m-%d}, in {record.seconds:.1f} s",
        f"kernels     {len(factors)} cost classes measured{extent}",
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

"""Give a new device the cost model of its machine: tuned, compared with the shipped one, or shipped."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

from wgslice.calibration.constants import with_constants
from wgslice.calibration.measure import compare_constants
from wgslice.calibration.store import VARIABLE, Machine, NoFolderError, Record, find, find_compared, keep
from wgslice.errors import OutOfDeviceMemory
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, shipped_profile
from wgslice.plans.profiles import Profile

__all__ = ["calibrate", "calibrated_profile", "kept_record", "recorded"]

compared: dict[Machine, Record] = {}  # comparisons of this process, kept in a file or not


def calibrate(device: Device) -> None:
    """Set the cost model of a new device; compares two constants once per machine on a software adapter.

    With WGSLICE_PROFILE set nothing is measured: the shipped cost model is used, or the named file.
    """
    found = kept_record(device.adapter)
    record = found[0] if found else new_comparison(device)
    if record is not None:
        profile = calibrated_profile(device.adapter, record)
        device.update_limits(lambda limits: replace(limits, profile=profile))


def new_comparison(device: Device) -> Record | None:
    """Compare two constants, and keep them; None where none are compared, or where it says nothing."""
    if not is_compared(device.adapter):
        return None
    try:
        record = recorded(device.adapter, lambda: compare_constants(device))
    except OutOfDeviceMemory:
        return None
    if not record.constants:
        return None
    compared[record.machine] = record
    with suppress(NoFolderError, OSError):
        keep(record)
    return record


def kept_record(adapter: Adapter) -> tuple[Record, Path | None] | None:
    """Return what was measured of an adapter on this machine: all constants, or else a comparison."""
    machine = Machine.of(adapter)
    found = find(machine)
    if found is None and is_compared(adapter):
        found = find_compared(machine)
        if found is None and machine in compared:
            return compared[machine], None
    return found


def is_compared(adapter: Adapter) -> bool:
    """Return whether constants of an adapter are compared with the shipped ones."""
    return adapter.software and not os.environ.get(VARIABLE)


def recorded(adapter: Adapter, measure: Callable[[], Mapping[str, float]]) -> Record:
    """Measure constants, and note when and on what."""
    date, begun = datetime.now(UTC).replace(microsecond=0), perf_counter()
    constants = dict(measure())
    return Record(Machine.of(adapter), constants, date, round(perf_counter() - begun, 3))


def calibrated_profile(adapter: Adapter, record: Record | None) -> Profile:
    """Return the profile that devices of an adapter get by a record."""
    profile = shipped_profile(adapter)
    return with_constants(profile, record.constants, f"{record.date:%Y-%m-%d}") if record else profile

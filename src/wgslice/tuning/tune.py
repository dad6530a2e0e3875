"""`tune`: measure a device, keep what was found, and plan by it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

from wgslice.errors import named
from wgslice.gpu.device import Device, checked_device
from wgslice.kept_costs.record import Record, origin_of
from wgslice.kept_costs.store import NoFolderError, keep, say
from wgslice.kept_costs.subject import Subject
from wgslice.plans.costs import Costs
from wgslice.tuning.measure import measure_costs
from wgslice.tuning.table import described

__all__ = ["Tuning", "tune"]


@dataclass(frozen=True, repr=False)
class Tuning:
    """What `tune` measured, to print.

    Attributes
    ----------
    device : Device
        What was measured.
    record : Record
        The costs, when they were measured, and with what processor.
    path : pathlib.Path or None
        The file that keeps the record; None where none could be written.
    """

    device: Device
    record: Record
    path: Path | None

    @property
    def costs(self) -> Costs:
        """What work costs on the device."""
        return self.record.costs

    @property
    def seconds(self) -> float:
        """How long it took to measure."""
        return self.record.seconds

    def as_json(self) -> dict[str, Any]:
        """What `json.dumps` takes: the file's content, and where that is."""
        path = self.path and str(self.path)
        return {"path": path, "origin": self.costs.origin, **self.record.as_json()}

    def __str__(self) -> str:
        return described(self.record, self.path)

    def __repr__(self) -> str:
        works = len(self.costs.works)
        return f"Tuning({self.device}, {works} classes of work, {self.seconds:.1f} s)"


def tune(
    device: Device | str | None = None, *, progress: Callable[[float, str], None] | None = None
) -> Tuning:
    """Measure what work costs on a device, and let plans choose by that.

    Until then plans go by figures that are shipped with wgslice, measured on other machines. What is
    measured is kept in a file of the user's cache folder, by adapter, driver and processor: devices that are
    made later load it, in this process and others. `wgslice tune --forget` removes it.

    Parameters
    ----------
    device : Device or str, optional
        What to measure; the default device if there is none given. Nothing else should run on it, or on this
        machine, meanwhile. Its plans are made by the new costs from then on; operators that are compiled keep
        theirs, and other devices that exist do too.
    progress : callable, optional
        Called now and then with how much is done, from 0 to 1, and with what is measured next.

    Returns
    -------
    Tuning
        To print; `costs` are the figures and `path` the file. Where none can be written, for want of the
        package platformdirs (the extra `tune`), a home, a permission or room, a line on stderr says why, and
        the costs hold for `device` alone.

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
    date, begun = datetime.now(UTC).replace(microsecond=0), perf_counter()
    costs = replace(measure_costs(device, progress or without_words), origin=origin_of(date))
    seconds = round(perf_counter() - begun, 1)
    adapter = device.adapter
    record = Record(Subject.here(adapter.name, adapter.backend, adapter.driver), costs, date, seconds)
    device.update_limits(lambda limits: replace(limits, profile=replace(limits.profile, costs=costs)))
    return Tuning(device, record, kept_path(record))


def without_words(_: float, __: str) -> None:
    """Show no progress."""


def kept_path(record: Record) -> Path | None:
    """Where a record is kept; None where it cannot be, which is said on stderr."""
    try:
        return keep(record)
    except (NoFolderError, OSError) as error:
        say(f"the figures that were measured are not kept: {error}")
        return None

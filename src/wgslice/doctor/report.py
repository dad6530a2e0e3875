"""The report of `wgslice doctor`: as text for an issue, and as JSON for programs."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from wgslice.doctor.machine import system, versions
from wgslice.doctor.quirks import Quirk, quirks_of
from wgslice.doctor.selftest import SelfTest, selftest
from wgslice.doctor.speeds import Speed, speeds_of
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, default_device

__all__ = ["Report", "examine"]

# What decides which slices are split, and which devices are refused.
LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "min-storage-buffer-offset-alignment",
    "max-compute-workgroups-per-dimension",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-storage-size",
    "max-storage-buffers-per-shader-stage",
)

TESTED_SHARE = 0.95  # of the time of a report; the rest is for speeds


@dataclass(frozen=True)
class Report:
    """All that is known of a device."""

    versions: dict[str, str]
    system: dict[str, str | int]
    adapter: Adapter
    limits: dict[str, int]
    features: list[str]
    profile: str  # of the plans
    costs: str  # where the figures are from that plans go by
    notes: list[str]  # what was warned of
    tested: SelfTest
    quirks: tuple[Quirk, ...]
    speeds: tuple[Speed, ...]

    def as_json(self) -> dict[str, Any]:
        """What `json.dumps` takes; the keys stay the same from machine to machine."""
        adapter = {name: getattr(self.adapter, name) for name in ("name", "backend", "kind", "driver")}
        return {
            "passed": self.tested.passed,
            "versions": self.versions,
            "system": self.system,
            "adapter": adapter,
            "limits": self.limits,
            "features": self.features,
            "profile": self.profile,
            "costs": self.costs,
            "notes": self.notes,
            "seconds": self.tested.seconds,
            "kernels": [{**asdict(test), "passed": test.passed} for test in self.tested.kernels],
            "quirks": [{"what": quirk.what, "source": quirk.source} for quirk in self.quirks],
            "speeds": [
                {**speed._asdict(), "gigabytes_per_s": speed.gigabytes_per_s} for speed in self.speeds
            ],
        }

    def __str__(self) -> str:
        facts = {
            "versions": ", ".join(f"{name} {number}" for name, number in self.versions.items()),
            "system": self.system["platform"],
            "processor": f"{self.system['processor']}, {self.system['cores']} cores",
            "adapter": self.adapter,
            "driver": self.adapter.driver,
            "kind": self.adapter.kind,
            "limits": ", ".join(f"{name} {number}" for name, number in self.limits.items()),
            "features": ", ".join(self.features) or "none",
            "plans": f"profile {self.profile}, {self.costs}",
        }
        lines = [f"{name:<10} {fact}" for name, fact in facts.items()]
        lines += [f"{'note':<10} {note}" for note in self.notes]
        lines += ["", str(self.tested)]
        if not self.tested.passed:
            lines.append(
                "plans on this device do without the wrong ones after a self-test; report them, please"
            )
        lines += ["", "known of this driver:" if self.quirks else "nothing is known against this driver"]
        lines += [f"  {quirk.what} ({quirk.source})" for quirk in self.quirks]
        lines += ["", "speeds, with the wait, the best of a few:"]
        lines += [
            f"  {speed.name:<20} {speed.gigabytes_per_s:6.2f} GB/s  {speed.plan}" for speed in self.speeds
        ]
        return "\n".join(lines)


def examine(adapter: str | None = None, progress: Callable[[float, str], None] | None = None) -> Report:
    """Test a device of an adapter, and time it; `progress` gets the share that is done, and of what."""
    report = progress or (lambda _, __: None)
    report(0, "device")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        device = default_device() if adapter is None else Device.request(adapter)
    tested = selftest(device, progress=lambda done, kernel: report(done * TESTED_SHARE, kernel))
    given = device.wgpu_device
    return Report(
        versions=versions(),
        system=system(),
        adapter=device.adapter,
        limits={name: given.limits[name] for name in LIMITS},
        features=sorted(given.adapter.features),
        profile=device.limits.profile.name,
        costs=device.limits.profile.costs.origin,
        notes=[str(warning.message) for warning in caught],
        tested=tested,
        quirks=quirks_of(device.adapter),
        speeds=speeds_of(device),
    )

"""The report of `wgslice doctor`: as text for an issue, and as JSON for programs."""

from __future__ import annotations

import json
import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from timeit import repeat
from typing import Any, NamedTuple

import numpy as np

from wgslice.calibration.measure import CONSTANTS, constants_of, measure_constants
from wgslice.calibration.store import processor
from wgslice.doctor.drivers import DriverCheck, check_driver
from wgslice.doctor.selftest import SelfTest, selftest
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, default_device
from wgslice.operators.explain import explain
from wgslice.packaged import packaged_text
from wgslice.plans.proofs import Checks
from wgslice.tensors.creation import empty
from wgslice.tensors.placed import copyto
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.views import permute
from wgslice.version import VERSION


class Quirk(NamedTuple):
    """A known issue of adapters whose backend, name and driver contain these words, ignoring case."""

    backend: str
    adapter: str
    driver: str
    what: str
    source: str
    kernels: list[str]  # that use the faulty feature
    check: str  # name of the kernel that shows the fault; empty if there is none


QUIRKS = [Quirk(**row) for row in json.loads(packaged_text("wgslice.doctor", "quirks.json"))]


SOURCES = {quirk.check: quirk.source for quirk in QUIRKS}  # of the kernels that show faults


def quirks_of(adapter: Adapter) -> list[Quirk]:
    """Return the known issues of an adapter."""
    names = adapter.backend, adapter.name, adapter.driver
    return [
        quirk
        for quirk in QUIRKS
        if all(word.lower() in name.lower() for word, name in zip(quirk[:3], names, strict=True))
    ]


# Limits by which slices are split and devices are refused.
LIMITS = (
    *("max-buffer-size", "max-storage-buffer-binding-size", "min-storage-buffer-offset-alignment"),
    *("max-compute-workgroups-per-dimension", "max-compute-invocations-per-workgroup"),
    *("max-compute-workgroup-storage-size", "max-storage-buffers-per-shader-stage"),
)

TESTED_SHARE = 0.9  # of the duration of a report; the rest is for checks and speeds

# Copies of at most 16 MiB by name: shape, dtype and view of the input.
COPIES: dict[str, tuple[tuple[int, ...], str, Callable[[Tensor], Tensor]]] = {
    "buffer copy": ((2048, 2048), "float32", lambda x: x),
    "aligned rows": ((4096, 1040), "float32", lambda x: x[:, 8:1032]),
    "unaligned rows": ((4096, 4113), "uint8", lambda x: x[:, 3:4099]),
    "permuted": ((2048, 2048), "float32", lambda x: permute(x, (1, 0))),
    "pixels, RGB to BGR": ((2048, 2730, 3), "uint8", lambda x: x[..., ::-1]),
}
REPEATS = 5
MEASURED = ("copy_bytes_per_s", "shader_bytes_per_s")  # of the cost model, in ROUNDS
ROUNDS, FACTOR = 5, 1.5  # ratios within FACTOR may be noise of a busy machine


class Speed(NamedTuple):
    """The bandwidth of one copy."""

    name: str
    plan: str  # its summary
    nbytes: int  # written
    seconds: float  # of the fastest run, including the wait
    gigabytes_per_s: float  # written


@dataclass(frozen=True)
class Report:
    """Test results and bandwidths of a device, with all versions and limits that they depend on."""

    device: Device
    notes: list[str]  # warnings raised when the device was made
    tested: SelfTest
    checks: tuple[DriverCheck, ...]
    speeds: tuple[Speed, ...]
    cost_ratios: dict[str, float]  # measured bandwidths over those of the cost model

    @property
    def is_calibrated(self) -> bool:
        """Whether the cost model has bandwidths that are near those of this machine."""
        return all(1 / FACTOR <= ratio <= FACTOR for ratio in self.cost_ratios.values())

    def as_json(self) -> dict[str, Any]:
        """Return the report as `json.dumps` accepts it; the keys are the same on every machine."""
        adapter, profile = self.tested.adapter, self.device.limits.profile
        wgpu_device = self.device.wgpu_device
        return {
            "passed": self.tested.passed,
            "versions": {
                "wgslice": VERSION,
                **self.device.host.versions(),
                "numpy": version("numpy"),
                "python": platform.python_version(),
            },
            "system": {
                "platform": platform.platform(),
                "processor": processor(),
                "cores": os.cpu_count() or 1,
            },
            "adapter": {
                name: getattr(adapter, name) for name in ("name", "backend", "kind", "driver", "host")
            },
            "accelerations": self.device.host.accelerations,
            "limits": {name: wgpu_device.limits[name] for name in LIMITS},
            "features": sorted(wgpu_device.adapter.features),
            "profile": profile.name,
            "costs": profile.costs.origin,
            "cost_ratios": self.cost_ratios,
            "notes": self.notes,
            "omits_checks": self.device.pipelines.checks is not Checks.ALL,
            "seconds": self.tested.seconds,
            "kernels": [{**asdict(test), "passed": test.passed} for test in self.tested.kernels],
            "quirks": [
                {name: getattr(quirk, name) for name in ("what", "source", "kernels", "check")}
                for quirk in quirks_of(adapter)
            ],
            "checks": [{**check._asdict(), "passed": check.passed} for check in self.checks],
            "speeds": [speed._asdict() for speed in self.speeds],
        }

    def __str__(self) -> str:
        found, adapter = self.as_json(), self.tested.adapter
        system, quirks = found["system"], quirks_of(adapter)
        ratios = [f"{CONSTANTS[name][0]} {ratio:.2f}" for name, ratio in self.cost_ratios.items()]
        advice = "" if self.is_calibrated else f"; more than {FACTOR} times off: run `wgslice tune`"
        facts = {
            "versions": ", ".join(f"{name} {number}" for name, number in found["versions"].items()),
            "system": system["platform"],
            "processor": f"{system['processor']}, {system['cores']} cores",
            "adapter": adapter,
            "driver": adapter.driver,
            "kind": adapter.kind,
            "host": f"{adapter.host}: {found['accelerations']}",
            "limits": ", ".join(f"{name} {number}" for name, number in found["limits"].items()),
            "features": ", ".join(found["features"]) or "none",
            "cost model": f"{found['costs']}; launch profile {found['profile']}",
            "measured": f"{', '.join(ratios)} of the cost model's{advice}",
            "checks": "omitted where accesses are proven"
            if found["omits_checks"]
            else "all, in every kernel",
        }
        lines = [f"{name:<11} {fact}" for name, fact in facts.items()]
        lines += [f"{'warning':<11} {note}" for note in self.notes]
        lines += ["", str(self.tested)]
        if not self.tested.passed:
            lines.append(
                "`wgslice.selftest` disables failed kernels on a device; please report them in an issue"
            )
        lines += ["", f"known driver issues:{'' if quirks else ' none'}"]
        outcomes = {test.kernel: "correct" if test.passed else "WRONG" for test in self.tested.kernels}
        for quirk in quirks:
            tested = ", ".join(f"{name}: {outcomes.get(name, 'not tested')}" for name in quirk.kernels)
            depending = f"; kernels that depend on it, here: {tested}" if tested else ""
            lines.append(f"  {quirk.what}{depending} ({quirk.source})")
        lines += ["", "kernels that show known faults of other drivers too, on this adapter:"]
        lines += [f"  {check} ({SOURCES[check.name]})" for check in self.checks]
        lines += ["", f"bandwidth, bytes written per second including the wait, best of {REPEATS} runs:"]
        lines += [
            f"  {speed.name:<20} {speed.gigabytes_per_s:6.2f} GB/s  {speed.plan}" for speed in self.speeds
        ]
        return "\n".join(lines)


def examine(adapter: str | None = None, progress: Callable[[float, str], None] | None = None) -> Report:
    """Test, check and time a device of an adapter; calls `progress` with the fraction done and a label."""
    report = progress or (lambda _, __: None)
    report(0, "device")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        device = default_device() if adapter is None else Device.request(adapter)
    tested = selftest(device, progress=lambda done, kernel: report(done * TESTED_SHARE, kernel))
    checks = tuple(check_driver(device))
    speeds = tuple(speed_of(device, name) for name in COPIES)
    notes = [str(warning.message) for warning in caught]
    return Report(device, notes, tested, checks, speeds, cost_ratios(device))


def cost_ratios(device: Device) -> dict[str, float]:
    """Return bandwidths of a buffer copy and of a kernel, as measured, over those of the cost model."""
    measured, known = measure_constants(device, lambda *_: None, ROUNDS), constants_of(device.limits.profile)
    return {name: measured[name] / known[name] for name in MEASURED}


def speed_of(device: Device, name: str) -> Speed:
    """Time a copy REPEATS times, after a first one that compiles its kernel and touches its memory."""
    shape, dtype, part_of = COPIES[name]
    part = part_of(empty(shape, dtype, device=device))
    target = empty(part.shape, np.dtype(dtype), device=device)

    def copy_and_wait() -> None:
        copyto(target, part)
        device.synchronize()

    seconds = min(repeat(copy_and_wait, device.synchronize, number=1, repeat=1 + REPEATS)[1:])
    return Speed(name, explain(part).summary, target.nbytes, seconds, target.nbytes / seconds / 1e9)

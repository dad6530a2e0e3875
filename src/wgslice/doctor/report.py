"""The report of `wgslice doctor`: as text for an issue, and as JSON for programs."""

from __future__ import annotations

import os
import platform
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib.metadata import version
from timeit import repeat
from typing import Any, NamedTuple

import numpy as np

from wgslice.calibration.store import processor
from wgslice.doctor.selftest import SelfTest, selftest
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.device import Device, default_device
from wgslice.gpu.native import native_version
from wgslice.operators.explain import explain
from wgslice.plans.kernels import Kernel
from wgslice.tensors.creation import empty
from wgslice.tensors.placed import copyto
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.views import permute
from wgslice.version import VERSION

MEASURED = "measured by wgslice"
MESA = "llvmpipe of Mesa 22.3 and 25.0"
WGPU = "https://github.com/gfx-rs/wgpu"
TILES = Kernel.TILES, Kernel.WIDE_TILES  # with workgroup memory and a barrier


class Quirk(NamedTuple):
    """A known issue of adapters whose backend, name and driver contain these words."""

    words: tuple[str, str, str]  # case ignored
    what: str
    source: str
    kernels: tuple[
        Kernel, ...
    ] = ()  # that depend on the faulty feature; the self-test shows whether they work


QUIRKS = (
    Quirk(
        ("Vulkan", "llvmpipe", "Mesa 22."),
        "the compiler emits one scalar access per invocation, so that kernels take several times as long as "
        "with Mesa 25 or newer; long buffer copies do not",
        f"{MEASURED}: Mesa 22.3.6 and 25.0.7, 2 cores of an AMD EPYC",
    ),
    Quirk(
        ("Vulkan", "llvmpipe", "Mesa 22."),
        "Dawn, the WebGPU of Chromium and of the npm package webgpu, refuses this adapter; wgpu accepts it",
        f"{MEASURED}: Mesa 22.3 and npm's webgpu",
    ),
    Quirk(
        ("Vulkan", "llvmpipe", "Mesa 26."),
        "on Windows an LLVM error during shader compilation aborted the process in wgpu's own tests",
        f"{WGPU}/pull/9903",
    ),
    Quirk(
        ("Vulkan", "SwiftShader", ""),
        "allocates memory when a buffer is created, not at the first write, and refuses a buffer of its "
        "stated maximum size",
        f"{MEASURED}: SwiftShader of Debian's chromium",
    ),
    Quirk(
        ("OpenGL", "", ""),
        "adapters that a program enumerates in addition to wgslice share a context under two locks: using "
        "their devices in two threads aborts the process",
        f"{MEASURED}: wgpu-native 29.0.1.1; also {WGPU}/issues/5349",
    ),
    Quirk(
        ("OpenGL", "", ""),
        "a submission blocks until the GPU is done, so that host and GPU do not overlap",
        f"{MEASURED}: {MESA}",
    ),
    Quirk(
        ("OpenGL", "llvmpipe", ""),
        "remainders of negative integers and divisions by zero differ from WGSL: kernels of wgslice use "
        "neither, other shaders may",
        f"{MEASURED}: {MESA}",
    ),
    Quirk(("OpenGL", "Adreno", ""), "some devices lose the upper 16 bits of a u32", f"{WGPU}/issues/5318"),
    Quirk(
        ("Metal", "", ""),
        "workgroup barriers are reported to be compiled wrongly, so that invocations read stale values",
        f"{WGPU}/issues/4500; also {WGPU}/issues/3181",
        TILES,
    ),
    Quirk(
        ("D3D12", "Microsoft Basic Render", ""),
        "workgroup barriers are reported not to synchronize",
        f"{WGPU}/issues/7904",
        TILES,
    ),
    Quirk(
        ("Vulkan", "", "AMD proprietary"),
        "zeroing of workgroup memory is reported to run after the first writes of a kernel (RX 5700 XT)",
        f"{WGPU}/issues/4591",
        TILES,
    ),
    Quirk(
        ("Vulkan", "Mali", ""),
        "atomics in workgroup memory are reported to lose updates: kernels of wgslice use atomics in storage "
        "buffers only, other shaders may not",
        f"{WGPU}/issues/8643",
    ),
)


def quirks_of(adapter: Adapter) -> tuple[Quirk, ...]:
    """Return the known issues of an adapter."""
    names = adapter.backend, adapter.name, adapter.driver
    return tuple(
        quirk
        for quirk in QUIRKS
        if all(word.lower() in name.lower() for word, name in zip(quirk.words, names, strict=True))
    )


# Limits by which slices are split and devices are refused.
LIMITS = (
    *("max-buffer-size", "max-storage-buffer-binding-size", "min-storage-buffer-offset-alignment"),
    *("max-compute-workgroups-per-dimension", "max-compute-invocations-per-workgroup"),
    *("max-compute-workgroup-storage-size", "max-storage-buffers-per-shader-stage"),
)

TESTED_SHARE = 0.95  # of the duration of a report; the rest is for speeds

# Copies of at most 16 MiB by name: shape, dtype and view of the input.
COPIES: dict[str, tuple[tuple[int, ...], str, Callable[[Tensor], Tensor]]] = {
    "buffer copy": ((2048, 2048), "float32", lambda x: x),
    "aligned rows": ((4096, 1040), "float32", lambda x: x[:, 8:1032]),
    "unaligned rows": ((4096, 4113), "uint8", lambda x: x[:, 3:4099]),
    "permuted": ((2048, 2048), "float32", lambda x: permute(x, (1, 0))),
    "pixels, RGB to BGR": ((2048, 2730, 3), "uint8", lambda x: x[..., ::-1]),
}
REPEATS = 5


class Speed(NamedTuple):
    """The bandwidth of one copy."""

    name: str
    plan: str  # its summary
    nbytes: int  # written
    seconds: float  # of the fastest run, including the wait

    @property
    def gigabytes_per_s(self) -> float:
        """Bytes written per second, in GB."""
        return self.nbytes / self.seconds / 1e9


@dataclass(frozen=True)
class Report:
    """Test results and bandwidths of a device, with all versions and limits that they depend on."""

    device: Device
    notes: list[str]  # warnings raised when the device was made
    tested: SelfTest
    speeds: tuple[Speed, ...]

    def as_json(self) -> dict[str, Any]:
        """Return the report as `json.dumps` accepts it; the keys are the same on every machine."""
        adapter, profile = self.tested.adapter, self.device.limits.profile
        wgpu_device = self.device.wgpu_device
        return {
            "passed": self.tested.passed,
            "versions": {
                "wgslice": VERSION,
                "wgpu": version("wgpu"),
                "wgpu-native": native_version(),
                "numpy": version("numpy"),
                "python": platform.python_version(),
            },
            "system": {
                "platform": platform.platform(),
                "processor": processor(),
                "cores": os.cpu_count() or 1,
            },
            "adapter": {name: getattr(adapter, name) for name in ("name", "backend", "kind", "driver")},
            "limits": {name: wgpu_device.limits[name] for name in LIMITS},
            "features": sorted(wgpu_device.adapter.features),
            "profile": profile.name,
            "costs": profile.costs.origin,
            "notes": self.notes,
            "seconds": self.tested.seconds,
            "kernels": [{**asdict(test), "passed": test.passed} for test in self.tested.kernels],
            "quirks": [
                {
                    "what": quirk.what,
                    "source": quirk.source,
                    "kernels": [each.value for each in quirk.kernels],
                }
                for quirk in quirks_of(adapter)
            ],
            "speeds": [
                {**speed._asdict(), "gigabytes_per_s": speed.gigabytes_per_s} for speed in self.speeds
            ],
        }

    def __str__(self) -> str:
        found, adapter = self.as_json(), self.tested.adapter
        system, quirks = found["system"], quirks_of(adapter)
        facts = {
            "versions": ", ".join(f"{name} {number}" for name, number in found["versions"].items()),
            "system": system["platform"],
            "processor": f"{system['processor']}, {system['cores']} cores",
            "adapter": adapter,
            "driver": adapter.driver,
            "kind": adapter.kind,
            "limits": ", ".join(f"{name} {number}" for name, number in found["limits"].items()),
            "features": ", ".join(found["features"]) or "none",
            "cost model": f"{found['costs']}; launch profile {found['profile']}",
        }
        lines = [f"{name:<11} {fact}" for name, fact in facts.items()]
        lines += [f"{'warning':<11} {note}" for note in self.notes]
        lines += ["", str(self.tested)]
        if not self.tested.passed:
            lines.append(
                "`wgslice.selftest` disables failed kernels on a device; please report them in an issue"
            )
        lines += ["", f"known driver issues:{'' if quirks else ' none'}"]
        tests = {test.kernel: "correct" if test.passed else "WRONG" for test in self.tested.kernels}
        for quirk in quirks:
            found_here = [f"{each.value}: {tests.get(each.value, 'not tested')}" for each in quirk.kernels]
            tested = f"; kernels that depend on it, here: {', '.join(found_here)}" if found_here else ""
            lines.append(f"  {quirk.what}{tested} ({quirk.source})")
        lines += ["", f"bandwidth, bytes written per second including the wait, best of {REPEATS} runs:"]
        lines += [
            f"  {speed.name:<20} {speed.gigabytes_per_s:6.2f} GB/s  {speed.plan}" for speed in self.speeds
        ]
        return "\n".join(lines)


def examine(adapter: str | None = None, progress: Callable[[float, str], None] | None = None) -> Report:
    """Test and time a device of an adapter; calls `progress` with the fraction done and a label."""
    report = progress or (lambda _, __: None)
    report(0, "device")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", RuntimeWarning)
        device = default_device() if adapter is None else Device.request(adapter)
    tested = selftest(device, progress=lambda done, kernel: report(done * TESTED_SHARE, kernel))
    speeds = tuple(speed_of(device, name) for name in COPIES)
    return Report(device, [str(warning.message) for warning in caught], tested, speeds)


def speed_of(device: Device, name: str) -> Speed:
    """Time a copy REPEATS times, after a first one that compiles its kernel and touches its memory."""
    shape, dtype, part_of = COPIES[name]
    part = part_of(empty(shape, dtype, device=device))
    target = empty(part.shape, np.dtype(dtype), device=device)

    def copy_and_wait() -> None:
        copyto(target, part)
        device.synchronize()

    seconds = repeat(copy_and_wait, device.synchronize, number=1, repeat=1 + REPEATS)
    return Speed(name, explain(part).summary, target.nbytes, min(seconds[1:]))

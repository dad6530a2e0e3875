"""GPU drivers that compile on a machine without their GPU, and how each is started."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.contest import ROOT

__all__ = ["SHIMS", "Driver", "available", "compile_folder"]

# Names the folder with Mesa's drm-shims, and with manifests of drivers that Debian does not package.
SHIMS = "WGSLICE_SHIMS"
ICDS = Path("/usr/share/vulkan/icd.d")


@dataclass(frozen=True)
class Driver:
    """A compiler: the variable that names its device, and a shim of the kernel driver for all but AMD's."""

    name: str
    manifest: str  # of the Vulkan driver: a pattern, since Debian 12 puts the machine into the name
    variable: str
    value: str
    shim: str = ""

    def environment(self) -> dict[str, str] | None:
        """The environment of its process; None if something is missing."""
        folder = Path(os.environ.get(SHIMS, ""))
        manifest = next((path for place in (ICDS, folder) for path in place.glob(self.manifest)), None)
        if manifest is None or (self.shim and not (folder / self.shim).is_file()):
            return None
        found = {
            **os.environ,
            self.variable: self.value,
            "VK_DRIVER_FILES": str(manifest),
            "VK_ICD_FILENAMES": str(manifest),
            "MESA_SHADER_CACHE_DISABLE": "1",
            "NVK_I_WANT_A_BROKEN_VULKAN_DRIVER": "1",
            "PAN_I_WANT_A_BROKEN_VULKAN_DRIVER": "1",
            "BIFROST_MESA_DEBUG": "shaderdb",
        }
        return {**found, "LD_PRELOAD": str(folder / self.shim)} if self.shim else found


RADV = "radeon_icd.*json"
DRIVERS = [
    Driver("AMD NAVI21", RADV, "RADV_FORCE_FAMILY", "NAVI21"),
    Driver("AMD VEGA10", RADV, "RADV_FORCE_FAMILY", "VEGA10"),
    Driver("AMD NAVI31", RADV, "RADV_FORCE_FAMILY", "NAVI31"),
    Driver("Intel DG2", "intel_icd.*json", "INTEL_STUB_GPU_PLATFORM", "dg2", "libintel_noop_drm_shim.so"),
    Driver("NVIDIA Ampere", "nouveau_icd.json", "NOUVEAU_CHIPSET", "170", "libnouveau_noop_drm_shim.so"),
    Driver("Adreno 740", "freedreno_icd.json", "FD_GPU_ID", "740", "libfreedreno_noop_drm_shim.so"),
    Driver("Mali G610", "panfrost_icd.json", "PAN_GPU_ID", "a867", "libpanfrost_noop_drm_shim.so"),
]


def available() -> list[Driver]:
    """Return the compilers that can be started here."""
    return [driver for driver in DRIVERS if driver.environment() is not None]


def compile_folder(driver: Driver, folder: Path) -> Mapping[str, Any]:
    """Compile a folder; return the device and the statistics of each module, or the reason for none."""
    done = subprocess.run(
        [sys.executable, "-m", "bench.compilers.worker", str(folder)],
        cwd=ROOT,
        env=driver.environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return {"failure": (done.stderr.strip().splitlines() or ["it ended without a word"])[-1]}
    answer: Mapping[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer

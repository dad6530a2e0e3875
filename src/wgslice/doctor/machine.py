"""What a report says of the machine: versions, system, processor."""

from __future__ import annotations

import os
import platform
from importlib.metadata import version

from wgslice.calibration.store import processor
from wgslice.gpu.native import native_version
from wgslice.version import VERSION

__all__ = ["system", "versions"]


def versions() -> dict[str, str]:
    """Of what takes part."""
    return {
        "wgslice": VERSION,
        "wgpu": version("wgpu"),
        "wgpu-native": native_version(),
        "numpy": version("numpy"),
        "python": platform.python_version(),
    }


def system() -> dict[str, str | int]:
    """What it runs on."""
    return {"platform": platform.platform(), "processor": processor(), "cores": os.cpu_count() or 1}

"""tinygrad's WebGPU backend, which is Dawn; captured once and replayed, without BEAM search."""

from __future__ import annotations

import importlib.util
import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cases import Cut

__all__ = ["Replayed", "describe"]

package = importlib.util.find_spec("pydawn")
if package is None or package.origin is None:
    raise ImportError("dawn-python is not installed")
library = Path(package.origin).parent / "lib" / f"libwebgpu_dawn_{platform.machine()}.so"
os.environ.setdefault("WEBGPU_PATH", str(library))  # read when tinygrad is imported, as are the others
os.environ.setdefault("WEBGPU_BACKEND", "WGPUBackendType_Vulkan")
os.environ["DEV"] = "WEBGPU"
os.environ["CACHELEVEL"] = "0"  # no files in the home folder

from tinygrad import Device, Tensor, TinyJit  # noqa: E402 -- reads the variables above
from tinygrad.runtime.autogen import webgpu  # noqa: E402 -- after the settings above
from tinygrad.runtime.ops_webgpu import from_wgpu_str  # noqa: E402 -- after the settings above

CAPTURES = 3  # runs until a captured function is replayed


def describe() -> dict[str, str]:
    """Versions, adapter and driver."""
    information = webgpu.WGPUAdapterInfo()
    webgpu.wgpuDeviceGetAdapterInfo(Device["WEBGPU"].device_res, information)
    return {
        "tinygrad": version("tinygrad"),
        "dawn-python": version("dawn-python"),
        "adapter": from_wgpu_str(information.device),
        "driver": from_wgpu_str(information.description),
    }


class Replayed:
    """`x.permute(axes)[key].contiguous()` under TinyJit."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.device = Device["WEBGPU"]
        self.x = Tensor(np.ascontiguousarray(array), device="WEBGPU").realize()
        self.slice = TinyJit(lambda x: x.permute(cut.axes)[cut.key].contiguous().realize())
        for _ in range(CAPTURES):
            self.run()

    def run(self) -> None:
        """Slice, wait."""
        self.y = self.slice(self.x)
        self.device.synchronize()

    def result(self) -> NDArray[Any]:
        """The output."""
        result: NDArray[Any] = self.y.numpy()
        return result

"""CuPy, on CUDA."""

from __future__ import annotations

from typing import Any

import cupy
from numpy.typing import NDArray

from bench.cases import Cut

__all__ = ["Given", "describe"]


def describe() -> dict[str, str]:
    """Versions and device."""
    properties = cupy.cuda.runtime.getDeviceProperties(0)
    driver = cupy.cuda.runtime.driverGetVersion()
    return {"cupy": cupy.__version__, "device": properties["name"].decode(), "driver": str(driver)}


class Given:
    """`copyto(out, x.transpose(axes)[key])`."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.view = cupy.asarray(array).transpose(cut.axes)[cut.key]
        self.out = cupy.empty(self.view.shape, self.view.dtype)

    def run(self) -> None:
        """Slice, wait."""
        cupy.copyto(self.out, self.view)
        cupy.cuda.get_current_stream().synchronize()

    def gpu_seconds(self) -> float:
        """One more run between two events."""
        before, after = cupy.cuda.Event(), cupy.cuda.Event()
        before.record()
        cupy.copyto(self.out, self.view)
        after.record()
        after.synchronize()
        milliseconds: float = cupy.cuda.get_elapsed_time(before, after)
        return milliseconds / 1e3

    def result(self) -> NDArray[Any]:
        """The output."""
        result: NDArray[Any] = self.out.get()
        return result

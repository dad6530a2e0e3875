"""How others take tensors: DLPack through CPU memory, and modules of upper layers that protocols lead to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CPU_DEVICE", "exported", "imported", "register", "upper_module"]

CPU_DEVICE = (1, 0)  # DLPack's kDLCPU, and its number
REMEDY = "view() it as integers of the same width, which can be viewed back at the other end"


upper_modules: dict[str, Callable[[], Any]] = {}


def register(**modules: Callable[[], Any]) -> None:
    """Name what loads modules of upper layers: `array_api`, and `numpy_functions`."""
    upper_modules.update(modules)


def upper_module(name: str) -> Any:
    """Load a module that an upper layer has registered."""
    return upper_modules[name]()


def exported(
    read: Callable[[], NDArray[Any]],
    stream: Any,
    max_version: tuple[int, int] | None,
    dl_device: tuple[int, int] | None,
    copy: bool | None,
) -> Any:
    """The capsule of an array that `read` makes anew; BufferErrors are what the protocol asks for."""
    if stream is not None:
        raise BufferError(f"stream = {stream!r}: must be None, since the copy lies in CPU memory")
    if dl_device not in (None, CPU_DEVICE):
        raise BufferError(f"dl_device = {dl_device}: must be {CPU_DEVICE}, CPU memory")
    if copy is False:
        raise BufferError("a tensor on a GPU cannot be shared without a copy: leave copy=False out")
    array = read()
    versioned = max_version is not None and np.lib.NumpyVersion(np.__version__) >= "2.1.0"
    options: dict[str, Any] = {"max_version": max_version} if versioned else {}
    try:
        return array.__dlpack__(**options)
    except BufferError as error:
        raise BufferError(f"dtype {array.dtype}: {error} Remedy: {REMEDY}") from error


def imported(x: Any) -> NDArray[Any]:
    """An array of another library's, copied to CPU memory where it is elsewhere."""
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise TypeError(f"x is of type {type(x).__name__}: must have __dlpack__ and __dlpack_device__")
    here = tuple(map(int, x.__dlpack_device__())) == CPU_DEVICE
    try:
        return np.from_dlpack(x) if here else np.from_dlpack(x, device="cpu")
    except (BufferError, RuntimeError) as error:
        remedy = f" Remedy: {REMEDY}" if "dtype" in str(error) else ""
        raise BufferError(f"{error}{remedy}") from error

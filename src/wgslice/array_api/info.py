"""What the standard's inspection says."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.arguments import MAX_RANK
from wgslice.array_api.creation import DEFAULTS
from wgslice.array_api.data_type_functions import isdtype
from wgslice.array_api.data_types import DTYPES
from wgslice.dtypes import DType
from wgslice.gpu.device import Device, checked_device, default_device

__all__ = ["Info", "namespace_info"]


class Info:
    """What `__array_namespace_info__` gives."""

    def capabilities(self) -> dict[str, Any]:
        """Masks select, `repeat` takes a tensor of counts, and a tensor has so many dimensions at most."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": MAX_RANK}

    def default_device(self) -> Device:
        """The device that is used where none is named."""
        return default_device()

    def devices(self) -> tuple[Device, ...]:
        """The default device; `Device.request` makes others of `adapters()`."""
        return (default_device(),)

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, DType]:
        """The types of numbers that are given without one, the same on each device."""
        checked(device)
        return {
            "real floating": np.dtype(DEFAULTS[float]),
            "complex floating": np.dtype(DEFAULTS[complex]),
            "integral": np.dtype(DEFAULTS[int]),
            "indexing": np.dtype(DEFAULTS[int]),
        }

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """The standard's types, of some kinds or all, the same on each device."""
        checked(device)
        return {name: dtype for name, dtype in DTYPES.items() if kind is None or isdtype(dtype, kind)}


def checked(device: Device | str | None) -> None:
    """Refuse what is no device."""
    if device is not None:
        checked_device(device)


def namespace_info() -> Info:
    """What this namespace can do."""
    return Info()

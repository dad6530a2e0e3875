"""NumPy's functions that make an array `like=` a tensor: they upload to the device of that."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.arguments import check_row_major
from wgslice.gpu.device import Device
from wgslice.tensors import creation
from wgslice.tensors.tensor import Tensor

__all__ = ["array", "asanyarray", "asarray", "ascontiguousarray"]


def asarray(
    like: Device,
    a: Any,
    dtype: Any = None,
    order: str | None = "K",
    *,
    device: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """Upload what is no tensor; a tensor of the device as it is."""
    check_row_major(order, np.shape(a) if order in ("F", "f") else ())
    return creation.asarray(a, device=like if device is None else device, dtype=dtype, copy=copy)


asanyarray = asarray


def array(
    like: Device,
    object: Any,
    dtype: Any = None,
    *,
    copy: bool | None = True,
    order: str | None = "K",
    subok: bool = False,
    ndmin: int = 0,
) -> Tensor:
    """Upload, or copy a tensor; with further dimensions in front where there are fewer than `ndmin`."""
    wanted = copy if isinstance(object, Tensor) or not copy else None  # an upload is a copy
    made = asarray(like, object, dtype, order, copy=wanted)
    return made[(None,) * (ndmin - made.ndim)]


def ascontiguousarray(like: Device, a: Any, dtype: Any = None) -> Tensor:
    """Upload, or copy a tensor that is not packed; of at least one dimension."""
    made = asarray(like, a, dtype)
    packed = made if made.is_packed else made.copy()
    return packed[(None,) * (1 - made.ndim)]

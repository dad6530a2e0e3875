"""Parameters of NumPy's functions that leave little choice on tensors."""

from __future__ import annotations

from typing import Any

import numpy as np

from wgslice.dtypes import DType
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["check_dtype", "check_rank", "check_unused"]


def check_unused(**options: Any) -> None:
    """Refuse the first option that is given, that is not None."""
    for name, value in options.items():
        if value is not None:
            raise TypeError(f"{name} is of type {type(value).__name__}: must be left out for tensors")


def check_dtype(name: str, dtype: Any, tensors: DType) -> None:
    """Refuse a dtype that is not the tensors' own, unless it is None."""
    if dtype is not None and np.dtype(dtype) != tensors:
        raise TypeError(
            f"{name} is {np.dtype(dtype)}: must be {tensors} as the tensors have, since nothing is converted "
            "on a GPU; convert arrays before"
        )


def check_rank(name: str, x: Tensor, least: int) -> None:
    """Refuse what is no tensor, or one of too few dimensions."""
    check_tensor(name, x)
    if x.ndim < least:
        raise ValueError(f"{name} has shape {x.shape}: must have at least {least} dimensions")

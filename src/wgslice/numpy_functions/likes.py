"""NumPy's functions that make a tensor like another one."""

from __future__ import annotations

from typing import Any

from wgslice.arguments import check_row_major, checked_shape
from wgslice.arrays import filling
from wgslice.tensors.creation import empty, zeros
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["empty_like", "full_like", "ones_like", "zeros_like"]


def empty_like(
    prototype: Tensor,
    /,
    dtype: Any = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """A tensor with any content; packed, whatever the other's strides."""
    return empty(**described(prototype, dtype, order, shape, device))


def zeros_like(
    a: Tensor,
    dtype: Any = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """A tensor of zeros."""
    return zeros(**described(a, dtype, order, shape, device))


def ones_like(
    a: Tensor,
    dtype: Any = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """A tensor of ones."""
    return filling.ones(**described(a, dtype, order, shape, device))


def full_like(
    a: Tensor,
    fill_value: Any,
    dtype: Any = None,
    order: str | None = "K",
    subok: bool = True,
    shape: Any = None,
    *,
    device: Any = None,
) -> Tensor:
    """A tensor of one element everywhere."""
    return filling.full(fill_value=fill_value, **described(a, dtype, order, shape, device))


def described(a: Tensor, dtype: Any, order: str | None, shape: Any, device: Any) -> dict[str, Any]:
    """Sizes, dtype and device of what is like a tensor but for what is named."""
    check_tensor("a", a)
    sizes = checked_shape(a.shape if shape is None else shape)
    check_row_major(order, sizes)
    return {
        "shape": sizes,
        "dtype": a.dtype if dtype is None else dtype,
        "device": a.device if device is None else device,
    }

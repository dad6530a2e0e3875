"""NumPy's functions that only look at a tensor."""

from __future__ import annotations

from math import prod
from typing import Any

from wgslice.arguments import distinct_axes
from wgslice.tensors.tensor import Tensor

__all__ = ["may_share_memory", "ndim", "shape", "size"]


def shape(a: Tensor) -> tuple[int, ...]:
    """Sizes."""
    return a.shape


def ndim(a: Tensor) -> int:
    """Number of dimensions."""
    return a.ndim


def size(a: Tensor, axis: Any = None) -> int:
    """Number of elements, of all dimensions or some."""
    return a.size if axis is None else prod(a.shape[each] for each in distinct_axes("axis", axis, a.ndim))


def may_share_memory(a: Any, b: Any, /, max_work: Any = None) -> bool:
    """Whether both are tensors in one buffer whose bounds overlap."""
    if not (isinstance(a, Tensor) and isinstance(b, Tensor)) or a.buffer is not b.buffer:
        return False
    (low_a, stop_a), (low_b, stop_b) = (
        (x.layout.lowest * x.dtype.itemsize, x.layout.stop * x.dtype.itemsize) for x in (a, b)
    )
    return low_a < stop_b and low_b < stop_a and a.size > 0 and b.size > 0

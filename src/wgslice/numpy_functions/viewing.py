"""NumPy's functions that give views of tensors, or copies where their shapes need one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wgslice.arguments import order_letter
from wgslice.arrays import axes, broadcasting
from wgslice.dialects.numpy_index import numpy_shape
from wgslice.numpy_functions.options import check_rank
from wgslice.rearrange import reshaped
from wgslice.tensors import views
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, packed_copy, viewed

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_to",
    "fliplr",
    "flipud",
    "matrix_transpose",
    "ravel",
    "reshape",
    "transpose",
]


def transpose(a: Tensor, axes: Any = None) -> Tensor:
    """Put dimensions into another order, or in reverse."""
    check_tensor("a", a)
    return a.transpose(axes)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Exchange the last two dimensions."""
    check_tensor("x", x)
    return x.mT


def flipud(m: Tensor) -> Tensor:
    """Reverse the first dimension."""
    check_rank("m", m, 1)
    return axes.flip(m, 0)


def fliplr(m: Tensor) -> Tensor:
    """Reverse the second dimension."""
    check_rank("m", m, 2)
    return axes.flip(m, 1)


def reshape(
    a: Tensor,
    /,
    shape: Any = None,
    order: str | None = "C",
    *,
    newshape: Any = None,
    copy: bool | None = None,
) -> Tensor:
    """Give a tensor other sizes: a view where there is one, unless `copy`."""
    check_tensor("a", a)
    sizes = numpy_shape(newshape if shape is None else shape, a.size)
    if order_letter(order) == "K":
        raise ValueError("order 'K' is not permitted for reshaping")
    if is_column_major(a, order):
        return reshape(a.T, sizes[::-1], copy=copy).T
    layout = reshaped(a.layout, sizes)
    if layout is not None and not copy:
        return viewed(a, layout)
    if copy is False:
        raise ValueError(f"copy=False: with strides {a.strides} there is no view of sizes {sizes}")
    return packed_copy(a).reshape(sizes)


def ravel(a: Tensor, order: str | None = "C") -> Tensor:
    """All elements in one dimension: a view where there is one."""
    check_tensor("a", a)
    if order_letter(order) == "K":  # the largest steps first
        return a.transpose(sorted(range(a.ndim), key=lambda axis: -abs(a.strides[axis]))).ravel()
    return a.T.ravel() if is_column_major(a, order) else a.ravel()


def is_column_major(a: Tensor, order: str | None) -> bool:
    """Whether an order other than K has the first index change fastest."""
    letter = order_letter(order)
    return letter == "F" or (letter == "A" and a.T.is_packed and not a.is_packed)


def broadcast_to(array: Tensor, shape: Any, subok: bool = False) -> Tensor:
    """Repeat a tensor to a shape."""
    return views.broadcast_to(array, shape)


def broadcast_arrays(*args: Tensor, subok: bool = False) -> tuple[Tensor, ...]:
    """Repeat tensors to the shape that they have together."""
    return broadcasting.broadcast_arrays(*args)


def atleast_1d(*arys: Any) -> Any:
    """Tensors of at least one dimension."""
    return each_of(arys, lambda x: x[(None,) * (1 - x.ndim)], np.atleast_1d)


def atleast_2d(*arys: Any) -> Any:
    """Tensors of at least two dimensions: a row of what has one."""
    return each_of(arys, lambda x: x[(None,) * (2 - x.ndim)], np.atleast_2d)


def atleast_3d(*arys: Any) -> Any:
    """Tensors of at least three dimensions: a row of what has one, a plane of what has two."""
    keys = {0: (None, None, None), 1: (None, ..., None), 2: (..., None)}
    return each_of(arys, lambda x: x[keys.get(x.ndim, ())], np.atleast_3d)


def each_of(arrays: tuple[Any, ...], view: Callable[[Tensor], Tensor], of_others: Callable[..., Any]) -> Any:
    """A view of each tensor, and what NumPy makes of others; alone where there is one."""
    found = tuple(view(each) if isinstance(each, Tensor) else of_others(each) for each in arrays)
    return found[0] if len(found) == 1 else found

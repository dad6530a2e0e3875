"""Not of the standard: `lib.stride_tricks`, NumPy's name, by which xarray finds sliding windows."""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import SupportsIndex

from wgslice.arguments import MAX_RANK, distinct_axes, one_or_more
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor, viewed

__all__ = ["stride_tricks"]

Numbers = SupportsIndex | Iterable[SupportsIndex]


def sliding_window_view(x: Tensor, window_shape: Numbers, axis: Numbers | None = None) -> Tensor:
    """View all windows of a tensor along some dimensions, in new dimensions behind the others.

    The semantics are those of `numpy.lib.stride_tricks.sliding_window_view`. Windows overlap in memory.
    """
    with named("sliding_window_view"):
        check_tensor("x", x)
        windows = one_or_more("window_shape", window_shape)
        axes = [*range(x.ndim)] if axis is None else distinct_axes("axis", axis, x.ndim)
        if len(windows) != len(axes):
            raise ValueError(f"window_shape has {len(windows)} sizes, for {len(axes)} axes")
        sizes = list(x.shape)
        for place, window in zip(axes, windows, strict=True):
            if not 1 <= window <= sizes[place]:
                raise ValueError(
                    f"window_shape = {windows}: must be 1 to {sizes[place]}, the size, along axis {place}"
                )
            sizes[place] -= window - 1
        if x.ndim + len(axes) > MAX_RANK:
            raise ValueError(f"the result would have rank {x.ndim + len(axes)}: at most {MAX_RANK}")
        steps = [x.strides[place] for place in axes]
        return viewed(x, Layout.of([*sizes, *windows], [*x.strides, *steps], x.layout.offset))


stride_tricks = SimpleNamespace(sliding_window_view=sliding_window_view)

"""Tensors in other shapes, orders and sizes: views where that can be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import SupportsIndex

import numpy as np

from wgslice.arrays import axes as dimensions
from wgslice.arrays import broadcasting, repeating, shifting
from wgslice.arrays import concat as joining
from wgslice.dialects.numpy_index import numpy_shape
from wgslice.errors import named
from wgslice.rearrange import reshaped
from wgslice.tensors import views
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = [
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "concat",
    "expand_dims",
    "flip",
    "matrix_transpose",
    "moveaxis",
    "permute_dims",
    "repeat",
    "reshape",
    "roll",
    "squeeze",
    "stack",
    "tile",
    "unstack",
]

Axes = SupportsIndex | Iterable[SupportsIndex]


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """Tensors repeated to the shape that all broadcast to: views."""
    return broadcasting.broadcast_arrays(*arrays)


def broadcast_shapes(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that all broadcast to; sizes must be known."""
    with named("broadcast_shapes"):
        return np.broadcast_shapes(*shapes)


def broadcast_to(x: Tensor, /, shape: Axes) -> Tensor:
    """A tensor repeated to a shape: a view."""
    return views.broadcast_to(x, shape)


def concat(arrays: Sequence[Tensor], /, *, axis: SupportsIndex | None = 0) -> Tensor:
    """Tensors of one dtype one behind the other, in one submission; other dtypes are a TypeError."""
    return joining.concat(arrays, axis)


def expand_dims(x: Tensor, /, axis: Axes) -> Tensor:
    """A tensor with further dimensions of size 1: a view."""
    return dimensions.expand_dims(x, axis)


def flip(x: Tensor, /, *, axis: Axes | None = None) -> Tensor:
    """A tensor with some or all dimensions backwards: a view."""
    return dimensions.flip(x, axis)


def matrix_transpose(x: Tensor, /) -> Tensor:
    """Matrices with rows and columns exchanged: a view."""
    with named("matrix_transpose"):
        check_tensor("x", x)
        return x.mT


def moveaxis(x: Tensor, source: Axes, destination: Axes, /) -> Tensor:
    """A tensor with dimensions in other places: a view."""
    return dimensions.moveaxis(x, source, destination)


def permute_dims(x: Tensor, /, axes: Axes) -> Tensor:
    """A tensor with its dimensions in another order: a view."""
    with named("permute_dims"):
        check_tensor("x", x)
        return views.permute(x, axes=axes)


def repeat(x: Tensor, repeats: SupportsIndex | Tensor, /, *, axis: SupportsIndex | None = None) -> Tensor:
    """Each element several times, in one submission.

    `repeats` of a tensor, of one dimension at most, are read back first, since the size of the result depends
    on them: that waits.
    """
    if isinstance(repeats, Tensor):
        return repeating.repeat(x, repeats.numpy(), axis)
    return repeating.repeat(x, repeats, axis)


def reshape(x: Tensor, /, shape: Axes, *, copy: bool | None = None) -> Tensor:
    """A tensor with other sizes: a view where its elements lie so that one can be, else a packed copy.

    Always a copy where `copy` is True; a ValueError where `copy` is False and there is no view.
    """
    with named("reshape"):
        check_tensor("x", x)
        if copy is not False and (copy or reshaped(x.layout, numpy_shape(shape, x.size)) is None):
            x = x.copy()
    return views.reshape(x, shape)


def roll(x: Tensor, /, shift: Axes, *, axis: Axes | None = None) -> Tensor:
    """A tensor with its elements shifted around the ends, in one submission."""
    return shifting.roll(x, shift, axis)


def squeeze(x: Tensor, /, axis: Axes) -> Tensor:
    """A tensor without dimensions of size 1: a view."""
    return views.squeeze(x, axis)


def stack(arrays: Sequence[Tensor], /, *, axis: SupportsIndex = 0) -> Tensor:
    """Tensors of one dtype along a new dimension, in one submission; other dtypes are a TypeError."""
    return joining.stack(arrays, axis)


def tile(x: Tensor, repetitions: Axes, /) -> Tensor:
    """Copies of a tensor one behind the other, in one submission."""
    return repeating.tile(x, repetitions)


def unstack(x: Tensor, /, *, axis: SupportsIndex = 0) -> tuple[Tensor, ...]:
    """The parts of a tensor along a dimension: views."""
    return joining.unstack(x, axis)

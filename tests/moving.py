"""Tensors and NumPy's arrays of the same elements, as the functions that move elements are given them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from math import prod
from typing import Any, NamedTuple

import numpy as np
from helpers import check_same
from hypothesis import strategies as st
from numpy.typing import NDArray
from running import noted

import wgslice as wg

GATHERED = "wgslice.numpy_protocol.moving.MAX_GATHERED"  # elements, few of which one gather takes
DTYPES = ["bool", "uint8", "int16", "float16", "float32", "int64", "complex64", "complex128"]


class Pair(NamedTuple):
    """Equal elements on both sides."""

    tensor: wg.Tensor
    array: NDArray[Any]


def numbered(shape: tuple[int, ...], dtype: str, first: int = 1) -> NDArray[Any]:
    """Distinct elements, as far as the dtype has them; none of them zero, but for bool."""
    numbers = np.arange(first, first + prod(shape)) % (
        2 if dtype == "bool" else 251 if dtype == "uint8" else 2**11
    )
    return (numbers + (dtype != "bool")).astype(dtype).reshape(shape)


def shapes(least: int = 0, most: int = 4, smallest: int = 0) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes, not many elements of them."""
    sizes = st.integers(smallest, 5)
    return st.lists(sizes, min_size=least, max_size=most).map(tuple)


@st.composite
def pairs(
    draw: st.DrawFn,
    device: wg.Device,
    shape: tuple[int, ...] | st.SearchStrategy[tuple[int, ...]] | None = None,
    dtype: str | None = None,
    first: int = 1,
) -> Pair:
    """Any view of these sizes: of more elements in memory, backwards, or in another order of dimensions."""
    sizes = draw(shapes() if shape is None else st.just(shape) if isinstance(shape, tuple) else shape)
    kind = draw(st.sampled_from(DTYPES)) if dtype is None else dtype
    order = draw(st.permutations(range(len(sizes))))
    keys, held = [], []
    for axis in order:
        step, before = draw(st.sampled_from([1, 1, 1, 2, -1, -2])), draw(st.sampled_from([0, 0, 1]))
        size = sizes[axis]
        held.append(size * abs(step) + before)
        keys.append(
            slice(before, None, step) if step > 0 else slice(None, before - 1 if before else None, step)
        )
    base = numbered(tuple(held), kind, first)
    back = [order.index(axis) for axis in range(len(sizes))]
    kept = tuple(slice(sizes[axis]) for axis in order)
    array = base[tuple(keys)][kept].transpose(back)
    tensor = wg.permute(wg.asarray(base, device=device)[tuple(keys)][kept], axes=back)
    assert tensor.shape == array.shape == sizes
    return Pair(tensor, array)


def axis_of(rank: int) -> st.SearchStrategy[int]:
    """A dimension, counted from either end."""
    return st.integers(-rank, rank - 1)


def shares(view: wg.Tensor, tensor: wg.Tensor) -> bool:
    """Whether one is a view of the other's buffer."""
    return view.buffer is tensor.buffer


@contextmanager
def submissions(device: wg.Device) -> Iterator[list[int]]:
    """Collects what is submitted meanwhile; uploads submit nothing but memory."""
    with noted(wg.Device, "submit") as found:
        yield found


def check_moved(device: wg.Device, function: Callable[[], wg.Tensor], expected: Any) -> wg.Tensor:
    """NumPy's elements, packed in a buffer of their own, by at most one submission."""
    with submissions(device) as counted:
        result = function()
    assert len(counted) <= 1
    assert result.is_packed
    check_same(result.numpy(), np.asarray(expected))
    return result

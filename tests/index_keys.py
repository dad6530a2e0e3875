"""Keys of NumPy's indexing for tests, and what it does with them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any, NamedTuple

import numpy as np
from helpers import (
    COPY_DST,
    COPY_SRC,
    STORAGE,
    Bytes,
    check_bytes,
    make_buffer,
    random_bytes,
    read_buffer,
    whole_words,
)
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

import wgslice as wg
from wgslice.layout import Layout

__all__ = ["INTEGERS", "Placed", "any_keys", "outcome", "placed"]

INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def outcome(call: Callable[[], Any]) -> Any:
    """The result of a call, or the type and message of its exception."""
    try:
        return call()
    except (IndexError, ValueError, TypeError) as error:
        return f"{type(error).__name__}: {error}".strip()


class Placed(NamedTuple):
    """The same bits in NumPy's memory and in a buffer, and an array and a tensor on them."""

    content: Bytes
    buffer: Any
    array: Any
    tensor: wg.Tensor

    def check(self) -> None:
        """Whatever NumPy did to its memory has been done to the buffer."""
        check_bytes(read_buffer(self.buffer), self.content)


def placed(
    device: wg.Device, layout: Layout, dtype: str, usage: int = STORAGE | COPY_SRC | COPY_DST
) -> Placed:
    """An array and a tensor of a layout, with some bytes behind them."""
    width = np.dtype(dtype).itemsize
    content = random_bytes(whole_words(layout.stop * width) + 16)
    if dtype == "bool":
        content &= 1
    strides = [stride * width for stride in layout.strides]
    array: Any = np.ndarray(layout.sizes, dtype, content.data, layout.offset * width, strides)
    buffer = make_buffer(device, content, usage)
    x = wg.from_buffer(buffer, layout.sizes, dtype, offset=layout.offset * width, strides=layout.strides)
    return Placed(content, buffer, array, x)


@st.composite
def index_arrays(draw: st.DrawFn, size: int, shape: tuple[int, ...]) -> Any:
    """Indices along a dimension, negative ones and repeated ones among them, as an array or as a list."""
    dtype = draw(st.sampled_from(INTEGERS))
    if size == 0 or draw(st.integers(0, 15)) == 0:
        return draw(st.sampled_from([np.zeros((*shape[:-1], 0), dtype), []]))
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    indices = draw(arrays(dtype, shape, elements=st.integers(max(-size, least), min(size - 1, most))))
    return indices.tolist() if shape and draw(st.integers(0, 3)) == 0 else indices


@st.composite
def masks(draw: st.DrawFn, sizes: tuple[int, ...], counts: list[int]) -> NDArray[np.bool_]:
    """A mask of some dimensions, often with as many elements as goes with other arrays."""
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    size = prod(sizes)
    count = min(draw(st.sampled_from([*counts, size // 2])), size)
    return random.permutation(np.arange(size) < count).reshape(sizes)


@st.composite
def any_keys(draw: st.DrawFn, sizes: tuple[int, ...]) -> tuple[Any, ...]:
    """An index of all kinds of items, which is right unless its arrays do not broadcast."""
    rank = len(sizes)
    together = draw(array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=4))
    if draw(st.integers(0, 9)) == 0:
        together = (*together, 0)
    shapes = [together, together, (1,) * len(together), together[-1:], ()]
    skipped = draw(st.integers(0, rank))  # dimensions that an Ellipsis or nothing stands for, from here on
    resumed = draw(st.integers(skipped, rank))
    key: list[Any] = []
    axis = 0
    while axis < rank:
        if axis == skipped and not any(item is Ellipsis for item in key):
            key.append(Ellipsis)
            axis = resumed
            continue
        kinds = ["array"] * 4 + ["slice"] * 2 + ["integer", "mask", "none", "truth"]
        kind = draw(st.sampled_from(kinds))
        taken = 1
        if kind == "array":
            key.append(draw(index_arrays(sizes[axis], draw(st.sampled_from(shapes)))))
        elif kind == "slice" or (kind == "integer" and sizes[axis] == 0):
            key.append(draw(st.slices(sizes[axis])))
        elif kind == "integer":
            key.append(draw(st.integers(-sizes[axis], sizes[axis] - 1)))
        elif kind == "mask":
            stop = skipped if axis < skipped else rank
            taken = draw(st.integers(1, min(stop - axis, 3)))
            key.append(draw(masks(sizes[axis : axis + taken], [1, together[-1]])))
        else:
            key.append(None if kind == "none" else draw(st.booleans()))
            taken = 0
        axis += taken
    if axis == skipped and draw(st.booleans()):
        key.append(Ellipsis)
    return tuple(key)

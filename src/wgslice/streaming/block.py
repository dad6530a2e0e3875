"""A box that has been read, as bytes to upload and how its elements lie in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from wgslice.dtypes import native_array
from wgslice.layout import Layout
from wgslice.streaming.limits import block_nbytes
from wgslice.streaming.pages import runs

__all__ = ["Block"]


class Block(NamedTuple):
    """Bytes, and the layout of a box's elements in them."""

    data: NDArray[np.uint8]
    layout: Layout
    part: NDArray[Any] | None = None  # the box itself, where the bytes are no copy of it

    @classmethod
    def where_it_lies(cls, part: NDArray[Any]) -> Block | None:
        """The memory that a box lies in, with what lies between its elements; None where that is too much."""
        first, offsets, nbytes = runs(part)
        aligned = all(stride % part.itemsize == 0 for stride in part.strides)
        if offsets.size > 1 or nbytes > block_nbytes(part.nbytes) or not (aligned and part.dtype.isnative):
            return None
        lowest = part[tuple(slice(-1, None) if stride < 0 else slice(1) for stride in part.strides)]
        data: NDArray[np.uint8] = as_strided(
            lowest.reshape(-1)[:1].view(np.uint8), (nbytes,), (1,), writeable=False
        )
        steps = [stride // part.itemsize for stride in part.strides]
        return cls(data, Layout.of(part.shape, steps, -first // part.itemsize), part)

    @classmethod
    def as_it_is(cls, part: NDArray[Any]) -> Block:
        """A box that is not uploaded."""
        return cls(np.empty(0, np.uint8), Layout.packed(part.shape), part)

    @classmethod
    def copied(cls, part: NDArray[Any], order: Sequence[int]) -> Block:
        """A copy, row-major in the dimensions of `order` and in native byte order."""
        ordered = native_array(part.transpose(order)).reshape(-1)
        packed = Layout.packed([part.shape[axis] for axis in order])
        layout = packed.permuted([order.index(axis) for axis in range(len(order))])
        return cls(ordered.view(np.uint8), layout)

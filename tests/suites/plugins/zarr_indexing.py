"""zarr-indexing's own tests, with tensors where they wrap an array, and gathers done on the GPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from zarr_indexing import lazy_array, reader

import wgslice as wg

wrap = lazy_array.LazyArray.__init__


def wrap_uploaded(self: Any, array: Any) -> None:
    """Wrap a tensor of an array, if it can be one."""
    is_plain = type(array) is np.ndarray and array.dtype.kind in "biufc" and array.ndim <= 8
    wrap(self, wg.asarray(array) if is_plain else array)


def gathering(decompose: Callable[[Any], Any]) -> Callable[..., None]:
    """Return a reader's method that does what is left after the slab on the GPU."""

    def read_into(self: Any, source: Any, context: Any, out: Any, /) -> None:
        key, residual = decompose(context.transform)
        block = source[key]
        if isinstance(block, wg.Tensor):
            out[...] = reader._lower(block, residual).numpy()
        else:
            out[...] = reader._lower(np.asanyarray(block), residual)

    return read_into


lazy_array.LazyArray.__init__ = wrap_uploaded
reader.BasicReader.read_into = gathering(reader._decompose_basic)
reader.UnitStepReader.read_into = gathering(reader._decompose_unit_step)

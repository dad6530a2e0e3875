"""Tensors as chunks of Dask's arrays: what Dask looks up by the type of a chunk.

Nearly all that Dask does with chunks goes by protocols that tensors have: NumPy's, `__sizeof__` and
`__dask_tokenize__`. Two registrations remain. They wait until a tensor is made, or meets an array of another
library, in a program that has imported `dask.array`, so that neither package imports the other.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

__all__ = ["register", "token"]

registered: set[type] = set()


def register(kind: type) -> bool:
    """Register a type of tensors once `dask.array` is imported, or as much as its version knows; whether."""
    if kind in registered:
        return False
    dask = sys.modules.get("dask")
    if dask is None or "array" not in vars(dask):  # a package has a module once all of that is imported
        return False
    with suppress(Exception):
        from dask.array.chunk_types import register_chunk_type

        register_chunk_type(kind)  # beside a Dask array a tensor becomes a chunk
    with suppress(Exception):
        from dask.array.dispatch import to_numpy_dispatch

        to_numpy_dispatch.register(kind, elements)  # for `to_backend("numpy")`
    registered.add(kind)
    return True


def elements(tensor: Any, **_: Any) -> NDArray[Any]:
    """Read a tensor back, for `to_backend("numpy")`."""
    array: NDArray[Any] = tensor.numpy()
    return array


def token(array: NDArray[Any]) -> Any:
    """What Dask names a task by that is given an array."""
    from dask.base import normalize_token

    return normalize_token(array)

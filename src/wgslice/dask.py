"""Tensors as chunks of Dask arrays: Dask's registrations by the type of a chunk.

Dask uses chunks mostly through protocols of tensors: NumPy's, `__sizeof__` and `__dask_tokenize__`. Two
registrations remain. They run when a tensor is made, or meets an array of another library, in a program that
has imported `dask.array`, so that neither package imports the other.
"""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import Any

from numpy.typing import NDArray

__all__ = ["register", "token"]

registered: set[type] = set()


def register(kind: type) -> bool:
    """Register a tensor type if `dask.array` is imported; return whether this call did so."""
    if kind in registered:
        return False
    dask = sys.modules.get("dask")
    if dask is None or "array" not in vars(dask):  # set once the import is complete
        return False
    with suppress(Exception):
        from dask.array.chunk_types import register_chunk_type

        register_chunk_type(kind)  # Dask then wraps tensors in mixed operations
    with suppress(Exception):
        from dask.array.dispatch import to_numpy_dispatch

        to_numpy_dispatch.register(kind, elements)  # for `to_backend("numpy")`
    registered.add(kind)
    return True


def elements(tensor: Any, **_: Any) -> Any:
    """Read a tensor back, for `to_backend("numpy")`."""
    return tensor.numpy()


def token(array: NDArray[Any]) -> Any:
    """Dask's token of an array, for names of tasks."""
    from dask.base import normalize_token

    return normalize_token(array)

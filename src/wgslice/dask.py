"""Tensors as chunks of Dask's arrays, made known to Dask once a program imports it.

Nearly all that Dask does with chunks it does by NumPy's protocols, which tensors have. What it looks up by
the type of a chunk beside that is registered here.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.awaited import once_imported
from wgslice.tensors.tensor import Tensor

__all__ = ["register_when_imported"]


def register_when_imported() -> None:
    """Let Dask know tensors, in each of its modules as soon as that is imported."""
    once_imported("dask.sizeof", register_size)
    once_imported("dask.array.chunk_types", register_chunk)
    once_imported("dask.array.dispatch", register_functions)


def register_size() -> None:
    """How many bytes a result takes, by which workers limit what they hold."""
    from dask.sizeof import sizeof

    sizeof.register(Tensor, nbytes_of)


def register_chunk() -> None:
    """That a tensor beside a Dask array is to become one of its chunks."""
    from dask.array.chunk_types import register_chunk_type

    register_chunk_type(Tensor)


def register_functions() -> None:
    """What joins chunks, takes of them, makes them and brings them back."""
    from dask.array import dispatch

    dispatch.concatenate_lookup.register(Tensor, np.concatenate)
    dispatch.take_lookup.register(Tensor, np.take)
    dispatch.to_numpy_dispatch.register(Tensor, read)


def nbytes_of(tensor: Tensor) -> int:
    """Bytes of a tensor's elements."""
    return tensor.nbytes


def read(tensor: Tensor, **_: Any) -> NDArray[Any]:
    """A tensor's elements."""
    return tensor.numpy()

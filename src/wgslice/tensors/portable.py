"""Tensors that leave their process: pickled through host memory, and named by their content."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.tensors.reading import Readable

__all__ = ["Portable", "unpickled"]


class Portable(Readable):
    """Goes through pickle as bytes, which travel out of band from protocol 5 on."""

    __slots__ = ()

    def __reduce__(self) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        with named("pickle"):
            elements = self.numpy().reshape(-1).view(np.uint8)  # of other dtypes NumPy copies some in band
            return unpickled, (elements, self.dtype, self.shape)

    def __sizeof__(self) -> int:
        """Bytes of the object and of its elements, by which Dask's workers limit what they hold."""
        return object.__sizeof__(self) + self.nbytes

    def __dask_tokenize__(self) -> Any:
        """What Dask names a task by that is given this tensor: its elements, which are read back."""
        tokens = import_module("dask.base")
        return type(self).__qualname__, tokens.normalize_token(self.numpy())


def unpickled(elements: NDArray[np.uint8], dtype: DType, shape: tuple[int, ...]) -> Any:
    """The tensor of a pickle, on the default device of this process."""
    return import_module("wgslice.tensors.uploading").asarray(elements.view(dtype).reshape(shape))

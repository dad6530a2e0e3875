"""NumPy's protocol for its functions: which of them runs on a tensor, and that others do not."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from wgslice.dask import register
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.numpy_functions import describing, joining, likes, moving, splitting, uploading, viewing
from wgslice.numpy_functions.renamed import RENAMED
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uncomputed import INSTEAD, refused, remedy_of

__all__ = ["FUNCTIONS", "LIKE", "call_function", "pointer"]

OWN = (describing, joining, likes, moving, splitting, viewing)
BY_NAME = {**RENAMED, **{name: getattr(module, name) for module in OWN for name in module.__all__}}

# By NumPy's function; not every release of NumPy has all of them.
FUNCTIONS: Mapping[Callable[..., Any], Callable[..., Any]] = {
    getattr(np, name): function for name, function in BY_NAME.items() if hasattr(np, name)
}

# By those of its functions that a tensor is named to as `like=`, and that get its device.
LIKE: Mapping[Callable[..., Any], Callable[..., Any]] = {
    getattr(np, name): getattr(uploading, name) for name in uploading.__all__
}


def pointer(name: str) -> str | None:
    """What does the work of a name of NumPy's; None for other names."""
    if name.startswith("_") or not (name in vars(np) or name in INSTEAD):
        return None
    found: Any = vars(np).get(name)
    if name not in INSTEAD and found in FUNCTIONS:
        return f"np.{name} takes tensors"
    computes = isinstance(found, np.ufunc) or hasattr(found, "_implementation")
    return remedy_of(name) if name in INSTEAD or computes else f"NumPy has np.{name}"


def call_function(
    device: Device,
    function: Callable[..., Any],
    types: Collection[type],
    arguments: Sequence[Any],
    options: Mapping[str, Any],
) -> Any:
    """What `Tensor.__array_function__` gives: NumPy calls it for any of its functions that gets a tensor."""
    if not all(issubclass(each, Tensor | np.ndarray) for each in types):
        # Another library's array is asked next, or again where it is Dask's and did not know tensors yet.
        return function(*arguments, **options) if register(Tensor) else NotImplemented
    name = f"{function.__module__}.{function.__name__}"
    if function in LIKE:
        with named(name):
            return LIKE[function](device, *arguments, **options)
    if function not in FUNCTIONS:
        refused(name)
    with named(name):
        return FUNCTIONS[function](*arguments, **options)

"""einops' tests, with wgslice's backend as the only one; what they rearrange by NumPy is uploaded instead."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

import einops.einops
import einops.packing
import einops.tests
import numpy as np

import wgslice as wg
from suites.recording import count_calls
from wgslice.einops import Backend

MOVING = {"add_axes", "add_axis", "concat", "stack_on_zeroth_dimension", "tile"}


def backends(symbolic: bool = False, layers: bool = False) -> list[Any]:
    """Return the backends to test: tensors have neither symbols nor layers."""
    return [] if symbolic or layers else [Backend()]


def uploaded(value: Any) -> Any:
    """Return tensors for arrays, also in a list."""
    if isinstance(value, list):
        return [uploaded(each) for each in value]
    is_plain = isinstance(value, np.ndarray) and value.dtype.kind in "biufc" and value.ndim <= 8
    return wg.asarray(value) if is_plain else value


def on_host(value: Any) -> Any:
    """Return arrays for tensors, also in a list or tuple."""
    if isinstance(value, list | tuple):
        return type(value)(map(on_host, value))
    return value.numpy() if isinstance(value, wg.Tensor) else value


def on_gpu(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that moves arrays on the GPU, and gives arrays for arrays."""

    @wraps(function)
    def moved(tensor: Any, *arguments: Any, **options: Any) -> Any:
        computes = function.__name__ == "reduce" and options.get("reduction") not in ("rearrange", "repeat")
        first = tensor[0] if isinstance(tensor, list) and tensor else tensor
        if computes or not isinstance(first, np.ndarray):
            return function(tensor, *arguments, **options)
        return on_host(function(uploaded(tensor), *arguments, **options))

    return moved


count_calls(Backend, "Backend", MOVING)
einops.tests.collect_test_backends = backends
einops.tests.is_backend_tested = lambda backend: backend == "numpy"
einops.einops.reduce = on_gpu(einops.einops.reduce)  # which `rearrange` and `repeat` call
for name in ("pack", "unpack"):
    moved = on_gpu(getattr(einops, name))
    setattr(einops, name, moved)
    setattr(einops.packing, name, moved)

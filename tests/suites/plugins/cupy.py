"""CuPy's tests, with a stub of tensors in CuPy's place: only `cupy.testing` is CuPy's own.

The checkout's folder `cupy` is named by SUITE_CHECKOUT.
"""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from numpy.lib import _index_tricks_impl as index_tricks
from numpy.lib import stride_tricks

import wgslice as wg
from suites.plugins import cupy_arrays
from suites.plugins.cupy_arrays import moving

os.environ["CUPY_TEST_GPU_LIMIT"] = "1"


class Absent(ModuleType):
    """A module of CUDA: any name of it that is not known raises AttributeError."""


def module(name: str, **names: Any) -> ModuleType:
    """Register a module, in its parent too."""
    made = Absent(name)
    vars(made).update(names, __path__=[])
    sys.modules[name] = made
    parent, _, last = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], last, made)
    return made


class Random(ModuleType):
    """`cupy.random`: random data is made by NumPy and uploaded."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return moving(getattr(np.random, name))


def as_strided(x: Any, shape: Any, strides: Any) -> Any:
    """View an array by strides in bytes, which are elements for tensors."""
    view = vars(wg)["as_strided"](x.tensor, shape, [stride // x.tensor.itemsize for stride in strides])
    return cupy_arrays.wrap(view)


def register() -> None:
    """Put the stub in the place of CuPy and of its neighbours."""
    sys.modules["cupy"] = cupy_arrays
    vars(cupy_arrays).update(
        __path__=[str(Path(os.environ["SUITE_CHECKOUT"]) / "cupy")], __version__="14.0.0"
    )
    module("cupy.exceptions", **{name: getattr(np.exceptions, name) for name in np.exceptions.__all__})
    module(
        "cupy._util",
        ENABLE_SLICE_COPY=True,
        PerformanceWarning=RuntimeWarning,
        experimental=lambda name: None,
    )
    module("cupy._core")
    module("cupy._core.internal", prod=np.prod)
    module("cupy._indexing")
    names = ("AxisConcatenator", "CClass", "RClass", "nd_grid")
    module("cupy._indexing.generate", **{name: getattr(index_tricks, name) for name in names})
    module("cupy.lib")
    module(
        "cupy.lib.stride_tricks",
        as_strided=as_strided,
        sliding_window_view=moving(stride_tricks.sliding_window_view),
    )
    sys.modules["cupy.random"] = vars(cupy_arrays)["random"] = random = Random("cupy.random")
    vars(random).update(__path__=[], reset_states=lambda: None)
    module("cupy.random._generator", _random_states={})
    for prefix in ("cupy.cuda", "cupy_backends", "cupy_backends.cuda", "cupy_backends.cuda.api"):
        module(prefix)
    module("cupy_backends.cuda.stream")
    for prefix in ("cupy.cuda", "cupy_backends.cuda.api"):
        module(f"{prefix}.runtime", is_hip=False)
        module(f"{prefix}.driver", get_build_version=lambda: 0)
    module("cupyx")
    module("cupyx.scipy")
    module("cupyx.scipy.sparse", issparse=lambda x: False)
    import_module("cupy.testing")  # CuPy's own, by the path above


def pytest_configure(config: pytest.Config) -> None:
    """Know the suite's marks, and let warnings pass."""
    for mark in ("slow", "multi_gpu", "thread_unsafe", "cudnn"):
        config.addinivalue_line("markers", mark)
    warnings.simplefilter("ignore")


register()

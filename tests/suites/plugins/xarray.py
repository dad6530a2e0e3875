"""xarray's tests of wrapped arrays: tensors are the only kind that they are given."""

from __future__ import annotations

import sys
from types import ModuleType

from xarray.tests import test_duck_array_wrapping

import wgslice as wg
from wgslice import array_api

NAMESPACE = {"attrs": {"array": "Tensor", "constructor": "asarray"}, "xfails": {}}

test_duck_array_wrapping.NAMESPACE_ARRAYS.clear()
test_duck_array_wrapping.NAMESPACE_ARRAYS["wgslice"] = NAMESPACE


class Strict(ModuleType):
    """wgslice's namespace of the standard in the place of the strict one, which the suite imports."""

    Array = wg.Tensor

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(array_api, name)


for name in ("array_api_strict", "array_api_strict._array_object"):
    sys.modules[name] = Strict(name)

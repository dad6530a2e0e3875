"""Zarr's tests, which read into tensors: ZARR_NDBUFFER=wgslice.zarr.NDBuffer in the environment.

With SUITE_CHUNKWISE=1 every read of more than 16 bytes is done chunk by chunk, into one tensor.
"""

from __future__ import annotations

import os
import sys
from functools import wraps
from importlib.metadata import version
from types import ModuleType
from typing import Any

from hypothesis import reject

# Made when Zarr is built, which its checkout is not.
sys.modules["zarr._version"] = ModuleType("zarr._version")
vars(sys.modules["zarr._version"])["version"] = version("zarr")

from suites.recording import count_calls  # noqa: E402 -- imports Zarr
from wgslice import zarr as ndbuffer  # noqa: E402 -- imports Zarr

count_calls(ndbuffer, "wgslice.zarr", {"asarray"})  # results of reads
if os.environ.get("SUITE_CHUNKWISE"):
    ndbuffer.WHOLE_NBYTES, ndbuffer.GATHERED_NBYTES = 16, 2**12

# Zarr reads shards inside of shards with the buffers of its configuration, and their indices with its own,
# which it then refuses, unless both are the same.
WITH_SHARDS_IN_SHARDS = {"test_oindex", "test_vindex"}


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Leave out examples that Zarr refuses."""
    for item in items:
        if item.originalname in WITH_SHARDS_IN_SHARDS and hasattr(item.obj, "hypothesis"):
            given = item.obj.hypothesis
            given.inner_test = without_shards_in_shards(given.inner_test)


def without_shards_in_shards(test: Any) -> Any:
    """Return a test that rejects examples which Zarr refuses."""

    @wraps(test)
    async def tried(*arguments: Any, **options: Any) -> None:
        try:
            await test(*arguments, **options)
        except ValueError as error:
            if "prototypes are not supported within shards" in str(error):
                reject()
            raise

    return tried

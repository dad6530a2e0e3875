"""A plugin for Zarr's own tests, which says how many tensors they have read: `pytest -p zarr_suite`.

The environment chooses the buffer, ZARR_NDBUFFER=wgslice.zarr.NDBuffer. Tests that cannot pass are expected
to fail, and the run fails where one of them passes.
"""

from __future__ import annotations

from functools import wraps
from typing import Any

import pytest
from hypothesis import reject
from zarr.registry import register_ndbuffer

import wgslice as wg
from wgslice import zarr as ndbuffer

# By the test's name, without parameters.
EXCEPTIONS = {
    "test_numpy_int_indexing": "compares numbers with tensors of rank 0, which refuse it",
}

# Of 3.4: Zarr reads shards inside of shards with the buffers of its configuration, and their indices with its
# own, which it then refuses, unless both are the same.
WITH_SHARDS_IN_SHARDS = {"test_oindex", "test_vindex"}

read: list[str] = []  # how tensors came about


class Counted(ndbuffer.NDBuffer):
    """Counts the tensors that are read: a suite that reads none would prove nothing."""

    def as_ndarray_like(self) -> Any:
        result = super().as_ndarray_like()
        if isinstance(result, wg.Tensor):
            read.append("uploaded" if self._batcher is None else "landed")
        return result


def pytest_addoption(parser: pytest.Parser) -> None:
    """A small number, since no array of Zarr's tests is larger than a default."""
    parser.addoption("--whole", type=int, help="bytes beyond which chunks land in a tensor one by one")


def pytest_configure(config: pytest.Config) -> None:
    """Have them read by what counts."""
    if (whole := config.getoption("--whole")) is not None:
        ndbuffer.WHOLE_NBYTES, ndbuffer.GATHERED_NBYTES = whole, 2**12
    register_ndbuffer(Counted, ndbuffer.NAME)


def pytest_collection_modifyitems(items: list[Any]) -> None:
    """Expect the exceptions to fail, and leave out what Zarr refuses."""
    for item in items:
        if reason := EXCEPTIONS.get(item.originalname):
            item.add_marker(pytest.mark.xfail(strict=True, raises=TypeError, reason=reason))
        if item.originalname in WITH_SHARDS_IN_SHARDS:
            given = item.obj.hypothesis
            given.inner_test = without_shards_in_shards(given.inner_test)


def without_shards_in_shards(test: Any) -> Any:
    """Examples that Zarr refuses are none."""

    @wraps(test)
    async def tried(*arguments: Any, **options: Any) -> None:
        try:
            await test(*arguments, **options)
        except ValueError as error:
            if "prototypes are not supported within shards" in str(error):
                reject()
            raise

    return tried


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was read."""
    kinds = [f"{read.count(kind)} tensors {kind}" for kind in ("uploaded", "landed")]
    terminalreporter.write_line(", ".join(kinds))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail where the environment has chosen another buffer."""
    if not read:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED

"""The project's tests in a browser tab: what they lack, and how pytest runs. Imported by the tab's Python.

Modules and tests that import a package of ABSENT are skipped. The tests that `left_out.toml` names for other
reasons run all the same, as expected failures, unless they would end the tab or never return.

The runner outside gets a message as each test begins and ends, so that it knows which one ended the tab.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Generator
from importlib.abc import MetaPathFinder
from types import ModuleType
from typing import Any, cast

import pytest
from expected import row_of, rows_of

MESSAGE = "in the tab: "  # begins a line that is a message

NO_WHEEL = "has no wheel for Pyodide on PyPI"
ABSENT = {
    "PIL": NO_WHEEL,
    "cffi": "is not the browser's",
    "dask": "starts threads",
    "distributed": "starts processes",
    "google": NO_WHEEL,
    "imagecodecs": NO_WHEEL,
    "jsonschema": NO_WHEEL,  # its rpds
    "matplotlib": NO_WHEEL,
    "numcodecs": NO_WHEEL,
    "onnx": NO_WHEEL,
    "rich": "is for terminals",
    "ruamel": "reads workflows",
    "torch": NO_WHEEL,
    "wgpu.backends": "is not the browser's",
    "wgpu._async": "is not the browser's",
    "zarr": NO_WHEEL,  # its numcodecs
}


class AbsentFinder(MetaPathFinder):
    """Skips the module or the test that imports an absent package."""

    def find_spec(self, name: str, path: object, target: object = None) -> None:
        for package, reason in ABSENT.items():
            if name == package or name.startswith(f"{package}."):
                pytest.skip(f"{package} {reason}", allow_module_level=True)


def stand_in_for_ml_dtypes() -> ModuleType:
    """Make a module with names of ml_dtypes, none of a dtype: tests of them fail, as the table says."""
    module = ModuleType("ml_dtypes")
    for name in ("bfloat16", "float8_e4m3fn", "float8_e5m2", "int4", "uint4"):
        setattr(module, name, type(name, (), {}))
    return module


def stand_in_for_wgpu() -> ModuleType:
    """Make a module with the names of wgpu that tests use, of the browser's handles."""
    from wgslice.gpu import protocols
    from wgslice.gpu.hosts import navigator

    module: Any = ModuleType("wgpu")
    for source in (navigator, protocols):
        for name, value in vars(source).items():
            if name.startswith(("GPU", "BufferUsage", "TextureUsage")) and not hasattr(module, name):
                setattr(module, name, value)
    module.__path__ = []
    return cast("ModuleType", module)


def send(**message: object) -> None:
    """Send a message to the runner, past what captures the output."""
    from js import console

    console.log(MESSAGE + json.dumps(message))


class Chosen:
    """A plugin of pytest that leaves tests out by the table, and reports to the runner."""

    def __init__(self, done: Collection[str], first_of_each_file: bool) -> None:
        self.rows = rows_of("browser")
        self.done = set(done)
        self.first_of_each_file = first_of_each_file

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "xdist_group: of pytest-xdist, which needs processes")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept, files = [], set()
        for item in items:
            row = row_of(item.nodeid, self.rows)
            is_first = row is None and item.path not in files
            if is_first:
                files.add(item.path)
            if (is_first or not self.first_of_each_file) and item.nodeid not in self.done:
                kept.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        send(begun=nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" or not report.passed:
            expected = report.skipped and hasattr(report, "wasxfail")
            error = call.excinfo.exconly() if report.failed and call.excinfo is not None else ""
            send(ended=item.nodeid, outcome="expected failures" if expected else report.outcome, error=error)
        return report


def main(arguments: list[str], *, done: Collection[str], first_of_each_file: bool) -> None:
    """Run pytest without the tests that are done, and send its status."""
    sys.meta_path.insert(0, AbsentFinder())
    sys.modules |= {"wgpu": stand_in_for_wgpu(), "ml_dtypes": stand_in_for_ml_dtypes()}
    options = ["-p", "no:cacheprovider", "-o", "faulthandler_timeout=0"]
    chosen = Chosen(done, first_of_each_file)
    send(status=int(pytest.main([*options, *arguments], plugins=[chosen])))

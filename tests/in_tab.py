"""The project's tests in a browser tab: what they lack, and how pytest runs. Imported by the tab's Python.

Modules and tests that import a package of ABSENT are skipped. The tests that `left_out.toml` names for other
reasons run all the same, as expected failures, unless they would end the tab or never return.
"""

from __future__ import annotations

import sys
import tomllib
from collections import Counter
from collections.abc import Generator, Sequence
from fnmatch import fnmatchcase
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple, cast

import pytest

TABLE = Path(__file__).with_name("left_out.toml")

NO_WHEEL = "has no wheel for Pyodide on PyPI"
ABSENT = {
    "PIL": NO_WHEEL,
    "dask": "starts threads",
    "distributed": "starts processes",
    "google": NO_WHEEL,
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
    from wgslice.gpu import navigator, protocols

    module: Any = ModuleType("wgpu")
    for source in (navigator, protocols):
        for name, value in vars(source).items():
            if name.startswith(("GPU", "BufferUsage", "TextureUsage")) and not hasattr(module, name):
                setattr(module, name, value)
    module.__path__ = []
    return cast("ModuleType", module)


class Entry(NamedTuple):
    """A row of the table."""

    tests: str  # a pattern of node ids
    reason: str
    runs: bool = True  # as an expected failure; otherwise not at all


def entries() -> list[Entry]:
    """Return the rows of the table."""
    return [Entry(**row) for row in tomllib.loads(TABLE.read_text("utf-8"))["left_out"]]


class Chosen:
    """A plugin of pytest that leaves tests out by the table, and finds rows that are not needed."""

    def __init__(self, rows: Sequence[Entry], first_of_each_file: bool) -> None:
        self.rows = rows
        self.first_of_each_file = first_of_each_file
        self.failed: dict[Entry, bool] = {}
        self.counts: Counter[str] = Counter()

    def pytest_configure(self, config: pytest.Config) -> None:
        config.addinivalue_line("markers", "xdist_group: of pytest-xdist, which needs processes")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        kept, files = [], set()
        for item in items:
            row = self.row_of(item)
            if row is not None:
                self.failed.setdefault(row, not row.runs)
                item.add_marker(pytest.mark.xfail(reason=row.reason, run=row.runs, strict=False))
            if row is None and item.path not in files:
                files.add(item.path)
                kept.append(item)
            elif not self.first_of_each_file:
                kept.append(item)
        config.hook.pytest_deselected(items=[item for item in items if item not in set(kept)])
        items[:] = kept

    def row_of(self, item: pytest.Item) -> Entry | None:
        """Return the row that names a test."""
        return next((row for row in self.rows if fnmatchcase(item.nodeid, row.tests)), None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        row = self.row_of(item)
        if row is not None and call.excinfo is not None:
            self.failed[row] = True
        elif report.failed and call.excinfo is not None:  # at once, should a later test end the tab
            lines = f"{item.nodeid}: {call.excinfo.exconly()}".splitlines()
            item.config.get_terminal_writer().line(f"\nfailed: {lines[0]}")
        if report.when == "call" or not report.passed:
            expected = (
                "expected failures" if report.skipped and hasattr(report, "wasxfail") else report.outcome
            )
            self.counts[expected] += 1
        return report

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        for row in self.needless():
            terminalreporter.write_line(f"left_out.toml: {row.tests!r} is needless: no such test fails")

    def needless(self) -> list[Entry]:
        """Return the rows that match no test, or only tests that pass."""
        return (
            [] if self.first_of_each_file else [row for row in self.rows if not self.failed.get(row, False)]
        )


def main(arguments: list[str], *, first_of_each_file: bool, whole: bool) -> dict[str, Any]:
    """Run pytest; return its status, or 1 if `whole` and rows of the table are not needed, and counts."""
    sys.meta_path.insert(0, AbsentFinder())
    sys.modules |= {"wgpu": stand_in_for_wgpu(), "ml_dtypes": stand_in_for_ml_dtypes()}
    chosen = Chosen(entries(), first_of_each_file)
    options = ["-p", "no:cacheprovider", "-o", "faulthandler_timeout=0"]
    status = int(pytest.main([*options, *arguments], plugins=[chosen]))
    return {"status": status or int(whole and bool(chosen.needless())), "tests": dict(chosen.counts)}

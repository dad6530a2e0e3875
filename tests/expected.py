"""Tests that are expected to fail on a host, by `left_out.toml`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Collection
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NamedTuple

TABLE = Path(__file__).with_name("left_out.toml")


class Row(NamedTuple):
    """A row of the table."""

    tests: str | list[str]  # patterns of node ids
    reason: str
    hosts: Collection[str] = ("browser",)  # of "browser", "dawn" and "public"
    runs: bool = True  # as an expected failure; otherwise not at all

    def names(self, test: str) -> bool:
        """Whether the row names a test."""
        patterns = [self.tests] if isinstance(self.tests, str) else self.tests
        return any(fnmatchcase(test, pattern) for pattern in patterns)


def host_in_test() -> str:
    """Return the host that tests run on, where the environment says that it is not wgpu as usual."""
    return os.environ.get("WGSLICE_TEST_HOST") or os.environ.get("WGSLICE_HOST", "")


def rows_of(host: str) -> list[Row]:
    """Return the rows of a host."""
    found: list[dict[str, Any]] = tomllib.loads(TABLE.read_text("utf-8"))["left_out"]
    rows = [Row(**row) for row in found]
    return [row for row in rows if host in row.hosts]


def row_of(test: str, rows: Collection[Row]) -> Row | None:
    """Return the row that names a test."""
    return next((row for row in rows if row.names(test)), None)

"""Cliffs: every row gives NumPy's bits, and what is printed, kept and drawn is what was measured."""

from __future__ import annotations

import importlib
import io
import json
from argparse import Namespace
from math import inf
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from helpers import on_one_adapter
from rich.console import Console

import wgslice as wg
from bench import cliffs_page, results_page
from bench.provenance import STALE, provenance
from bench.results_page import BLOCKS

pytestmark = pytest.mark.slow

TINY = {"tiny": True, "rounds": 2, "turn": 0.0, "budget": inf, "limits": False}


@pytest.fixture
def cliffs(named: wg.Device) -> ModuleType:
    return importlib.import_module("bench.cliffs")  # asks for its device when it is imported


@on_one_adapter
def test_every_row_has_numpys_bits_and_times(cliffs: ModuleType, tmp_path: Path) -> None:
    console = Console(record=True, width=200, file=io.StringIO())
    cliffs.run_cliffs(console, Namespace(**TINY, only="uint8", json=tmp_path / "some.json"))
    content = json.loads((tmp_path / "some.json").read_text("utf-8"))
    assert "times the ceiling" in console.export_text()
    expressions = [row["expression"] for row in content["cliffs"]]
    assert 60 < len({*expressions}) == len(expressions) <= 80
    assert {*content["equivalents"], *content["equivalents"].values()} <= {*expressions}
    assert [row for row in content["cliffs"] if "failure" in row] == []
    assert all(row["best_s"] > 0 < row["numpy_s"] for row in content["cliffs"])
    assert {row["ceiling_s"] for row in content["cliffs"]} == {content["ceilings_s"]["call"]}


@on_one_adapter
def test_a_wrong_row_fails_the_run(cliffs: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cliffs.IN_NUMPY, "insert_windows", lambda *_, **__: None)
    with pytest.raises(SystemExit, match=r"wrong result: int64 wg.insert_windows\(z, grid, w\); "):
        cliffs.run_cliffs(
            Console(quiet=True), Namespace(**TINY, only="int64 wg.insert_windows(z, grid,", json=None)
        )


@on_one_adapter
def test_a_ceiling_is_a_dispatch_and_a_share(cliffs: ModuleType) -> None:
    (ceilings := cliffs.Ceilings()).take_turn(0.0)
    assert all(0 < seconds < inf for seconds in ceilings.best_s.values())
    ceilings.best_s = {"copy": 8.0, "gather": 16.0, "gather of 8 bytes": 12.0, "dispatch": 1.0}
    rows = [
        cliffs.Row("uint8", "x", *row) for row in (("copy", 2**23), ("permute", 2**24), ("gather", 2**21))
    ]
    rows.append(cliffs.Row("int64", "x", "gather", 2**22))
    for row in rows:
        ceilings.compare(row)
    assert [(row.ceiling_s, row.limit) for row in rows] == [(5.0, 6.0), (9.0, 8.0), (9.0, 4.0), (25.0, 4.0)]


def test_what_is_kept_is_on_the_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results_page, "RESULTS", tmp_path)
    each = {"dtype": "uint8", "ceiling": "gather", "ceiling_s": 0.5, "numpy_s": 1.0, "limit": 4.0}
    rows = [
        {**each, "expression": name, "best_s": best_s} for name, best_s in (("x[p]", 1.0), ("x[pt]", 3.0))
    ]
    content: dict[str, Any] = {
        "contenders": {"wgslice": {"adapter": "llvmpipe via Vulkan", "driver": "Mesa 22.3", "kind": "CPU"}},
        "machine": {"processor": "AMD EPYC", "cores": 2},
        "ceilings_s": {"copy": 0.5},
        "equivalents": {"x[pt]": "x[p]"},
        "cliffs": [{**row, "name": f"uint8 {row['expression']}"} for row in rows],
    }
    (tmp_path / "mesa-cliffs.json").write_text(json.dumps({**provenance(content), **content}), "utf-8")
    text = BLOCKS["cliffs"]()
    assert "| uint8 | `x[pt]` | 3000.00 | gather | 6.0 | 4 | 3.0 |\n| uint8 | `x[p]` |" in text
    assert "| `x[pt]` | `x[p]` | 3.00 | nan | nan | nan |" in text
    assert "geometric mean 3.46 times the ceiling; 2 limits exceeded" in text
    assert STALE not in text
    monkeypatch.setattr("bench.provenance.kernel_module", lambda kernel: f"// {kernel}")
    assert STALE in BLOCKS["cliffs"]()
    cliffs_page.draw_cliffs(content, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000

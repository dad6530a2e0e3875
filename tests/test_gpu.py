"""`python3 run gpu`: its JSON, picture and line, and what `--pack` puts into a folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterable
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import ROOT, load_bootstrap
from jsonschema import Draft202012Validator

from bench import gpu, gpu_times
from bench.atlas import SCHEMA
from bench.cases import COPIES, PERMUTES, Case
from bench.entries import ALLOCATING, OURS, entries

pytestmark = pytest.mark.slow

COPY = Case("tiny copy", "float32", (64,), ...)
PERMUTE = Case("tiny permute", "uint8", (8, 6), ..., (1, 0))
SLICE = Case("tiny slice", "uint16", (7, 9), np.s_[::-2, 1:])


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *options: str) -> tuple[int, dict[str, Any]]:
    """The status and the JSON of a run that writes into a folder, beside its picture."""
    monkeypatch.setattr(
        sys, "argv", ["run gpu", "--into", str(folder), "--turn", "0", "--rounds", "1", *options]
    )
    status = gpu.main()
    (kept,) = folder.glob("gpu-*.json")
    (shared,) = (folder / "gpus").glob("run-gpu-*.json")
    Draft202012Validator(SCHEMA).validate(json.loads(shared.read_text("utf-8")))
    assert kept.with_suffix(".png").stat().st_size > 10_000
    return status, json.loads(kept.read_text("utf-8"))


def first_of(every: Callable[..., Iterable[Any]], count: int, *given: int) -> list[Any]:
    """The first items of what a function yields."""
    return [*islice(every(*given), count)]


def test_copies_and_permutes_have_every_size_and_width() -> None:
    assert [case.nbytes >> 20 for case in COPIES] == [1, 2, 4, 8, 16, 32, 64, 128, 256]
    assert {case.itemsize for case in PERMUTES} == {1, 2, 4, 8, 16}
    assert all(60 << 20 <= case.nbytes <= 64 << 20 and case.work.permuted for case in PERMUTES)


@pytest.mark.usefixtures("measured")
@pytest.mark.parametrize(("failing", "status"), [("", 0), ("def test_wrong(): assert False", 1)])
def test_a_run_keeps_each_part_and_fails_with_a_test(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    failing: str,
    status: int,
) -> None:
    core = tmp_path / "test_core.py"
    core.write_text(f"def test_right(): pass\n{failing}\n")
    parts = {name: part for name, part in gpu.PARTS.items() if name != "doctor"}  # which takes 20 s
    tiny = {"COPIES": [COPY], "PERMUTES": [PERMUTE], "CASES": [SLICE], "TESTS": [str(core)], "PARTS": parts}
    for name, value in tiny.items():
        monkeypatch.setattr(gpu, name, value)
    monkeypatch.setattr(gpu, "IN_PARALLEL", ("-n0", f"--rootdir={tmp_path}"))
    contenders = [entry for entry in entries([]) if entry.name in (OURS, ALLOCATING)]
    monkeypatch.setattr(gpu, "entries", lambda _: contenders)
    for name, count in (("races", 2), ("speeds", 3), ("choices", 1)):
        monkeypatch.setattr(gpu_times, name, partial(first_of, getattr(gpu_times, name), count))
    monkeypatch.setattr(gpu_times, "SIDES", {"small": 128, "large": 256})
    found_status, kept = run(monkeypatch, tmp_path)
    assert (found_status, kept["failures"]) == (status, [])
    assert [each["group"] for each in kept["speeds"]] == ["buffer copy", "kernel copy", "slices"]
    assert len(kept["races"]) == 2
    assert len(kept["choices"]) == 1
    assert kept["tests"]["passed"] == 1
    assert len(kept["tests"]["failed_tests"]) == status
    assert "typical slices" in kept["tune"]["verdict"]
    assert kept["seconds"].keys() == parts.keys()
    for section, case in (("copies", COPY), ("permutes", PERMUTE), ("slices", SLICE)):
        assert [each["name"] for each in kept[section]] == [case.name]
    assert kept["copies"][0]["ways_s"].keys() >= {"buffer copy", "slice1"}
    assert kept["slices"][0]["outcomes"].keys() == {OURS, ALLOCATING}
    line = capsys.readouterr().out.splitlines()[-1]
    for part in (
        kept["contenders"][OURS]["adapter"],
        "1 passed",
        "typical slices",
        "by buffer copy",
        "1 permutes",
    ):
        assert part in line


def test_a_run_without_time_keeps_what_it_ran_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    status, kept = run(monkeypatch, tmp_path, "--budget", "0")
    assert status == 0
    assert kept["contenders"].keys() == {OURS}
    assert kept.keys().isdisjoint({"copies", "permutes", "slices", "tests", "tune", "doctor"})


def test_a_part_that_fails_is_kept_and_fails_the_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def part(_: gpu.Run) -> dict[str, Any]:
        raise ValueError("wrong: 3 bytes differ")

    monkeypatch.setattr(gpu, "PARTS", {"copies": (part, 1.0)})
    status, kept = run(monkeypatch, tmp_path)
    assert status == 1
    assert kept["failures"] == [{"name": "copies", "failure": "ValueError: wrong: 3 bytes differ"}]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="packs files that Git lists")
def test_a_pack_has_the_project_and_commands_for_its_wheels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(ROOT)
    bootstrap, commands = load_bootstrap(), list[list[str]]()
    monkeypatch.setattr(bootstrap, "call", lambda words, _: commands.append([*map(str, words)]))
    monkeypatch.setattr(bootstrap, "unpack_loader", lambda _: True)
    folder = tmp_path / "packed"
    assert bootstrap.pack_gpu(folder, "3.12") == 0
    packed = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    assert packed >= {"run", "pyproject.toml", "commit.txt", "bench/gpu.py", "wgsl/slice1.wgsl", *gpu.TESTS}
    assert not [name for name in packed if name.startswith(("bench/results/", "docs", "src", "tests/suites"))]
    build, download = commands
    assert build[2:4] == ["pip", "wheel"]
    assert build[-1] == str(ROOT)
    assert {"--python-version", "3.12", str(folder / ".wheels")} <= {*download}
    names = {word.partition(">")[0] for word in download if ">=" in word}
    assert names == {
        "wgpu",
        "numpy",
        "pytest",
        "pytest-xdist",
        "hypothesis",
        "ml_dtypes",
        "matplotlib",
        "rich",
    }
    with pytest.raises(SystemExit, match="exists: remove it first"):
        bootstrap.pack_gpu(folder, None)
    done = subprocess.run(
        [sys.executable, "-c", "from bench.provenance import commit; print(commit())"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == (folder / "commit.txt").read_text("utf-8")

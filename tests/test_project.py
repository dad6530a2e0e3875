"""The project's own files: README, packages, changelog."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import readme_programs
from helpers import LARGE_PACKAGES
from PIL import Image

import wgslice as wg
from wgslice.cli import main

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.DOTALL | re.MULTILINE)


def test_the_readmes_python_runs(device: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One program from top to bottom."""
    monkeypatch.chdir(tmp_path)
    for module in ("tensors.creation", "onnx"):
        monkeypatch.setattr(f"wgslice.{module}.default_device", lambda: device)
    names: dict[str, Any] = {}
    assert sum(readme_programs.run(block, names) for block in blocks("python")) >= 20
    assert str(names["operator"].plan) + "\n" in blocks("text")


PROGRAMS = blocks("py")  # each a program of its own, in turns one before the change and one after it


def marked(programs: list[str]) -> list[Any]:
    """Programs as parameters, each marked with the large packages that it imports."""
    found = []
    for program in programs:
        imported = set(re.findall(r"^(?:import|from) (\w+)", program, re.MULTILINE))
        marks = [getattr(pytest.mark, name) for name in LARGE_PACKAGES if name in imported]
        found.append(pytest.param(program, marks=marks, id=str(PROGRAMS.index(program))))
    return found


def run_program(program: str, tmp_path: Path, **variables: str) -> None:
    done = subprocess.run(
        [sys.executable, readme_programs.__file__],
        input=program,
        env={**os.environ, **variables},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("program", marked(PROGRAMS[::2]))
def test_the_readmes_programs_run_before_the_change(tmp_path: Path, program: str) -> None:
    """None of them knows our adapters."""
    assert "wgslice" not in program
    run_program(program, tmp_path)


@pytest.mark.parametrize("program", marked(PROGRAMS[1::2]))
def test_the_readmes_programs_run(device: wg.Device, tmp_path: Path, program: str) -> None:
    assert "wgslice" in program
    run_program(program, tmp_path, WGSLICE_ADAPTER=device.adapter.backend)


def test_what_the_readme_changes_is_all_that_changes() -> None:
    """A program before, the lines to change, the program after."""
    pages = re.findall(
        r"^```py\n(.*?)^```.*?^```diff\n(.*?)^```.*?^```py\n(.*?)^```", README, re.DOTALL | re.MULTILINE
    )
    assert len(pages) == len(PROGRAMS) // 2 >= 3
    for before, diff, after in pages:
        changed = before
        for removed, added in re.findall(r"((?:^-.*\n)*)((?:^\+.*\n)*)", diff, re.MULTILINE):
            old, new = (re.sub(r"^[-+]", "", lines, flags=re.MULTILINE) for lines in (removed, added))
            assert old in changed
            changed = changed.replace(old, new, 1) if old else changed
        assert changed == after


def test_the_readmes_figures_are_those_of_the_results() -> None:
    rows = re.findall(r"^\| \[.*?\]\((bench/results/.*?\.json)\) \| (.*) \|$", README, re.MULTILINE)
    assert len(rows) == 3
    for path, cells in rows:
        summary = json.loads((ROOT / path).read_text("utf-8"))["summary"]
        over_numpy, _, over_copy, over_baseline, *_ = cells.split(" | ")
        for shown, label in (
            (over_numpy, "wgslice over NumPy, 1 MiB and more"),
            (over_copy, "wgslice over the buffer copy, 1 MiB and more"),
            (over_baseline, "slice1.wgsl over wgslice, 1 MiB and more"),
        ):
            (value,) = (value for name, value in summary.items() if name.startswith(f"{label}, geometric"))
            assert float(shown) == round(value, len(shown.partition(".")[2])), label


def test_the_readmes_figures_of_windows_are_those_of_the_results() -> None:
    (path,) = re.findall(r"\((bench/results/\S*-family\.json)\)", README)
    windows = json.loads((ROOT / path).read_text("utf-8"))["windows"]
    rows = re.findall(r"^\| (\S.* crops of .*?) \| (.*) \|$", README, re.MULTILINE)
    assert [name for name, _ in rows] == [window["name"] for window in windows]
    for window, (_, cells) in zip(windows, rows, strict=True):
        first, *others = (float(cell) for cell in cells.split(" | "))
        assert first == round(window["outcomes"]["extract_windows"]["best_s"] * 1e3, 1)
        over = list(window["over_the_first"].values())[2:]  # after those of extract_windows itself
        assert others == [round(value, 1) for value in over]


def test_the_readmes_figures_of_graphs_are_those_of_the_results() -> None:
    (path,) = re.findall(r"\((bench/results/\S*-graphs\.json)\)", README)
    graphs = json.loads((ROOT / path).read_text("utf-8"))["graphs"]
    rows = re.findall(r"^\| (20 operators, .*?|focus, .*?) \| (.*) \|$", README, re.MULTILINE)
    assert [name for name, _ in rows] == [graph["name"] for graph in graphs]
    for graph, (_, cells) in zip(graphs, rows, strict=True):
        first, *others = (float(cell) for cell in cells.split(" | "))
        ours = graph["outcomes"]["wgslice.onnx, tensors"]
        assert first == round(ours["best_s"] * 1e3, 1)
        assert others[:3] == [round(value, 1) for value in list(graph["over_the_first"].values())[1:]]
        nbytes = [int(digits.replace(",", "")) for digits in re.findall(r"([\d,]+) bytes", ours["plan"])]
        assert others[3:] == [round(value / 2**20, 1) for value in nbytes]


def test_the_readmes_commands_run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    photo = np.arange(300 * 401 * 3, dtype=np.uint32).astype(np.uint8).reshape(300, 401, 3)
    Image.fromarray(photo).save("photo.png")
    np.save("volume.npy", np.zeros((64, 64, 64), np.uint16))
    lines = [line for block in blocks("console") for line in block.splitlines() if line.startswith("$ ")]
    commands = [shlex.split(line[2:], comments=True) for line in lines]
    own = [command[1:] for command in commands if command[0] == "wgslice"]
    assert len(own) >= 3
    for command in own:
        assert main(command) == 0
    verbs = {command[2] for command in commands if command[:2] == ["python3", "run"]}
    assert verbs == {"demo", "test", "lint", "bench"}


def test_the_changelog_has_this_version() -> None:
    assert f"## {wg.__version__}" in (ROOT / "CHANGELOG.md").read_text("utf-8")


def test_wheel_and_sdist_carry_kernels_and_types(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "out")
    shutil.copytree(ROOT, copy, ignore=ignored)
    for part in ("wheel", "sdist"):
        build = f"import setuptools.build_meta, sys; setuptools.build_meta.build_{part}(sys.argv[1])"
        subprocess.run(
            [sys.executable, "-c", build, str(tmp_path)], cwd=copy, check=True, capture_output=True
        )
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        packed = set(archive.namelist())
    (sdist,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(sdist) as source:
        shipped = {name.partition("/")[2] for name in source.getnames()}
    kernels = [path.relative_to(ROOT).as_posix() for path in (ROOT / "wgsl").rglob("*.wgsl")]
    assert len(kernels) > 15
    assert {f"wgslice/{kernel}" for kernel in kernels} <= packed
    assert set(kernels) <= shipped
    for room in (ROOT / "src").rglob("*.py"):
        assert str(room.relative_to(ROOT / "src")) in packed
        assert str(room.relative_to(ROOT)) in shipped
    assert {"wgslice/py.typed", "wgslice/wgsl/__init__.py"} <= packed

"""The project's own files: README, packages, bootstrap, changelog."""

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
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import readme_programs
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


@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
def test_the_readmes_programs_run(device: wg.Device, tmp_path: Path, program: str) -> None:
    done = subprocess.run(
        [sys.executable, readme_programs.__file__],
        input=program,
        env={**os.environ, "WGSLICE_ADAPTER": device.adapter.backend},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


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
    for kernel in (ROOT / "wgsl").glob("*.wgsl"):
        assert f"wgslice/wgsl/{kernel.name}" in packed
        assert f"wgsl/{kernel.name}" in shipped
    for room in (ROOT / "src").rglob("*.py"):
        assert str(room.relative_to(ROOT / "src")) in packed
        assert str(room.relative_to(ROOT)) in shipped
    assert {"wgslice/py.typed", "wgslice/wgsl/__init__.py"} <= packed


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bootstrap as a module, with its folders elsewhere."""
    loader = SourceFileLoader("run_script", str(ROOT / "run"))
    spec = spec_from_loader("run_script", loader)
    assert spec is not None
    module = module_from_spec(spec)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader.exec_module(module)
    monkeypatch.setattr(module, "UNPACKED", tmp_path / ".adapter")
    return module


def test_the_bootstrap_names_its_verbs() -> None:
    shown = subprocess.run(
        [sys.executable, ROOT / "run", "--help"], capture_output=True, text=True, check=True
    )
    assert all(verb in shown.stdout for verb in ("demo", "test", "lint", "bench"))
    helped = subprocess.run(
        [sys.executable, ROOT / "run", "bench", "--help"], capture_output=True, text=True, check=False
    )
    assert "--rivals" in helped.stdout, helped.stderr
    for arguments in ([], ["polish"], ["demo", "--fast"]):
        done = subprocess.run([sys.executable, ROOT / "run", *arguments], capture_output=True, check=False)
        assert done.returncode == 2


def test_an_unpacked_driver_is_found(run_script: Any, tmp_path: Path) -> None:
    assert run_script.with_unpacked({"HOME": "/home/me"}) == {"HOME": "/home/me"}
    libraries = tmp_path / ".adapter/usr/lib/x86_64-linux-gnu"
    manifests = tmp_path / ".adapter/usr/share/vulkan/icd.d"
    libraries.mkdir(parents=True)
    assert "VK_DRIVER_FILES" not in run_script.with_unpacked({}), "would hide the system's drivers"
    manifests.mkdir(parents=True)
    (libraries / "libvulkan_lvp.so").touch()
    manifest = manifests / "lvp_icd.json"
    manifest.write_text(json.dumps({"ICD": {"library_path": "/usr/lib/x86_64-linux-gnu/libvulkan_lvp.so"}}))
    run_script.point_to_unpacked(manifest)
    assert json.loads(manifest.read_text())["ICD"]["library_path"] == str(libraries / "libvulkan_lvp.so")
    environment = run_script.with_unpacked({"LD_LIBRARY_PATH": "/mine", "HOME": "/home/me"})
    assert environment["LD_LIBRARY_PATH"] == os.pathsep.join([str(libraries), "/mine"])
    assert environment["VK_DRIVER_FILES"] == str(manifest)
    assert environment["HOME"] == "/home/me"
    assert run_script.with_unpacked({"VK_DRIVER_FILES": "/my.json"})["VK_DRIVER_FILES"] == "/my.json"


class Machine:
    """A machine to run on: its adapters, and what apt would add."""

    def __init__(
        self, run_script: Any, monkeypatch: pytest.MonkeyPatch, found: list[tuple[str, str]]
    ) -> None:
        self.found = found
        self.installed: list[list[str]] = []
        self.debian = True
        monkeypatch.setattr(run_script, "list_adapters", lambda _: self.found)
        monkeypatch.setattr(run_script, "has_apt", lambda: self.debian)
        monkeypatch.setattr(run_script, "apt_install", self.install)
        monkeypatch.setattr(run_script, "call", lambda *_: 1)

    def install(self, packages: list[str]) -> bool:
        self.installed.append(packages)
        self.found = [("llvmpipe", "Vulkan"), ("llvmpipe", "OpenGL")]
        return True


def test_a_test_run_names_its_adapters(run_script: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(run_script, monkeypatch, [("llvmpipe", "OpenGL")])
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "Vulkan; OpenGL"
    assert machine.installed == [["mesa-vulkan-drivers"]]
    machine.debian, machine.found = False, [("M3", "Metal"), ("WARP", "D3D12")]
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "M3 via Metal; WARP via D3D12"
    machine.found = []
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "any"


def test_the_demo_takes_any_adapter_and_installs_one_where_there_is_none(
    run_script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(run_script, monkeypatch, [("Iris", "OpenGL")])
    run_script.find_adapters(["Vulkan"], any_will_do=True)
    assert machine.installed == []
    machine.found = []
    run_script.find_adapters(["Vulkan"], any_will_do=True)
    assert machine.installed == [["mesa-vulkan-drivers"]]
    machine.found, machine.debian = [], False
    with pytest.raises(SystemExit, match="1"):
        run_script.find_adapters(["Vulkan"], any_will_do=True)

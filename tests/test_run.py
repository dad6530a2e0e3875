"""The bootstrap script `run`: its verbs, what it installs, the adapters it finds, what it hands to pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from helpers import LARGE_PACKAGES, load_bootstrap

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bootstrap as a module, with its folders elsewhere."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = load_bootstrap()
    monkeypatch.setattr(module, "UNPACKED", tmp_path / ".adapter")
    return module


@pytest.fixture
def commands(run_script: Any, monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """What the bootstrap would install, and the commands that it would run, which all succeed."""
    done: list[list[str]] = []

    def call(words: list[Any], _: Any) -> int:
        done.append([str(word) for word in words[2:]])  # behind `python -m`
        return 0

    monkeypatch.setattr(run_script, "install", lambda extra: done.append(["install", extra]))
    monkeypatch.setattr(run_script, "find_adapters", lambda *_, **__: {"WGSLICE_TEST_ADAPTERS": "any"})
    monkeypatch.setattr(run_script, "choose_test_adapters", lambda: {"WGSLICE_TEST_ADAPTERS": "any"})
    monkeypatch.setattr(run_script, "call", call)
    return done


def run(run_script: Any, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr(sys, "argv", ["run", *arguments])
    status: int = run_script.main()
    return status


def test_the_bootstrap_names_its_verbs() -> None:
    shown = subprocess.run(
        [sys.executable, ROOT / "run", "--help"], capture_output=True, text=True, check=True
    )
    assert all(verb in shown.stdout for verb in ("demo", "test", "lint", "docs", "wheel", "mutants", "bench"))
    for arguments in ([], ["polish"], ["demo", "--fast"]):
        done = subprocess.run([sys.executable, ROOT / "run", *arguments], capture_output=True, check=False)
        assert done.returncode == 2


def test_the_benchmark_says_its_own_options(
    run_script: Any, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(run_script, monkeypatch, "bench", "--help") == 0
    assert commands == [["install", "bench"], ["bench", "--help"]]
    helped = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "--rivals" in helped.stdout, helped.stderr


def test_mutants_get_the_arguments_of_the_default_tier(
    run_script: Any, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(run_script, monkeypatch, "mutants", "widening", "--check") == 0
    assert commands == [["install", "test"], [f"--tier=-m '{UNMARKED}'", "widening", "--check"]]
    helped = subprocess.run(
        [sys.executable, "tests/mutate.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--tier" in helped.stdout


def test_the_wheel_that_is_tested_is_the_one_that_was_built(
    run_script: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """pip leaves an older wheel of the same version where it is: its environment begins anew."""
    dist, wheel, built = tmp_path / "dist", tmp_path / ".wheel", tmp_path / "dist" / "wgslice-1.whl"
    for folder in (dist, wheel):
        folder.mkdir()
    (wheel / "of the wheel before").touch()
    (dist / "of the build before").touch()
    monkeypatch.setattr(run_script, "DIST", dist)
    monkeypatch.setattr(run_script, "WHEEL", wheel)
    monkeypatch.setattr(run_script, "install", lambda _: None)
    monkeypatch.setattr(run_script, "find_adapters", lambda *_, **__: {})

    def build(command: list[str], **_: Any) -> Any:
        assert command[1:3] == ["-m", "build"]
        dist.mkdir()
        built.write_bytes(b"wheel")
        return subprocess.CompletedProcess(command, 0, "")

    def install_into(venv: Path, *arguments: Any) -> bool:
        assert not venv.exists()
        assert f"{built}[test]" in arguments[2]
        return True

    monkeypatch.setattr(run_script.subprocess, "run", build)
    monkeypatch.setattr(run_script, "install_into", install_into)
    monkeypatch.setattr(run_script, "call", lambda command, _: 0 if "pytest" in command else 1)
    assert run_script.wheel([]) == 0
    assert list(dist.iterdir()) == [built]


CHECKS = [["ruff", "check", "--quiet"], ["ruff", "format", "--check", "--quiet"], ["mypy"]]
UNMARKED = "not onnxruntime and not pygfx and not torch"


@pytest.mark.parametrize(
    ("arguments", "extra", "handed"),
    [
        (["test"], "test", ["-m", UNMARKED]),
        (["test", "-k", "window", "-n", "0"], "test", ["-m", UNMARKED, "-k", "window", "-n", "0"]),
        (["test", "-x", "-m", "a or b"], "test", ["-m", f"(a or b) and {UNMARKED}", "-x"]),
        (["test", "--all"], "test-all", []),
        (["test", "-k", "window", "--all", "-m", "torch"], "test-all", ["-k", "window", "-m", "torch"]),
    ],
)
def test_what_a_test_run_installs_and_leaves_out(
    run_script: Any,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    extra: str,
    handed: list[str],
) -> None:
    """Every test runs with `--all`; without it those that are marked with a large package do not."""
    monkeypatch.delenv("WGSLICE_TEST_ADAPTERS", raising=False)
    assert run(run_script, monkeypatch, *arguments) == 0
    assert commands == [["install", extra], *CHECKS, ["pytest", *run_script.IN_PARALLEL, *handed]]


def test_what_fails_ends_a_test_run(
    run_script: Any, commands: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_script, "call", lambda words, *_: 3 if "mypy" in words else 0)
    monkeypatch.setattr(run_script, "run_pytest", lambda _: 0)
    for arguments in (["lint"], ["test"], ["test", "--all"]):
        assert run(run_script, monkeypatch, *arguments) == 3


def test_markers_are_the_packages_that_all_adds(run_script: Any) -> None:
    """A marker for each requirement of the extra, and nothing else is left out."""
    everything = PYPROJECT["project"]["optional-dependencies"]["test-all"]
    markers = [line.partition(":")[0] for line in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]]
    assert [requirement.partition("==")[0] for requirement in everything] == ["wgslice[test]", *markers]
    assert " and ".join(f"not {marker}" for marker in markers) == UNMARKED
    assert markers == LARGE_PACKAGES == run_script.MARKERS


def test_ci_runs_every_test() -> None:
    assert (ROOT / ".ci/run").read_text("utf-8").endswith("\nexec python3 run test --all\n")


def test_compiled_kernels_stay_in_the_project_unless_the_caller_says_where(
    run_script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MESA_SHADER_CACHE_DIR", raising=False)
    assert run_script.quiet_environment()["MESA_SHADER_CACHE_DIR"] == str(ROOT / ".shaders")
    assert "/.shaders/" in (ROOT / ".gitignore").read_text("utf-8").splitlines()
    monkeypatch.setenv("MESA_SHADER_CACHE_DIR", "/mine")
    assert run_script.quiet_environment()["MESA_SHADER_CACHE_DIR"] == "/mine"


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

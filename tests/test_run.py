"""The bootstrap script `run`: its verbs, what it installs, the adapters it finds, what it hands to pytest."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from helpers import LARGE_PACKAGES, load_bootstrap
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


Run: TypeAlias = Callable[..., int]
Replace: TypeAlias = Callable[..., None]


class Linter:
    """A linter that ends with a status."""

    def __init__(self, words: list[Any], status: int) -> None:
        self.words, self.returncode = words, status

    def communicate(self) -> tuple[str, None]:
        return f"what {self.words[2]} prints\n", None


@pytest.fixture
def run_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The bootstrap as a module, with its folders in a temporary one."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    module = load_bootstrap()
    monkeypatch.setattr(module, "UNPACKED", tmp_path / ".adapter")
    return module


@pytest.fixture
def replace(run_script: Any, monkeypatch: pytest.MonkeyPatch) -> Replace:
    """Replaces names of the bootstrap until the test ends."""

    def replacing(**parts: Any) -> None:
        for name, part in parts.items():
            monkeypatch.setattr(run_script, name, part)

    return replacing


@pytest.fixture
def commands(replace: Replace) -> list[list[str]]:
    """The packages that the bootstrap would install, and the commands it would run, which all succeed."""
    done: list[list[str]] = []

    def call(words: list[Any], _: Any) -> int:
        done.append([str(word) for word in words[2:]])  # behind `python -m`
        return 0

    def install(extra: str, *, newest: bool = False) -> None:
        done.append(["install", "newest " * newest + extra])

    def start(words: list[Any]) -> Linter:
        return Linter(words, call(words, None))

    replace(install=install, start=start, call=call)
    replace(find_adapters=lambda *_, **__: {"WGSLICE_TEST_ADAPTERS": "any"})
    replace(choose_test_adapters=lambda **_: {"WGSLICE_TEST_ADAPTERS": "any"})
    return done


@pytest.fixture
def run(run_script: Any, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs the bootstrap with arguments, and gives its status."""

    def main(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["run", *arguments])
        status: int = run_script.main()
        return status

    return main


def test_the_bootstrap_names_its_verbs() -> None:
    shown = subprocess.run(
        [sys.executable, ROOT / "run", "--help"], capture_output=True, text=True, check=True
    )
    verbs = (
        *("demo", "test", "suites", "lint", "docs", "wheel", "bench", "gpu", "mutants", "check", "fuzz"),
        *("differential", "matrix", "browser", "soak", "lock"),
    )
    assert all(verb in shown.stdout for verb in verbs)
    for arguments in ([], ["polish"], ["demo", "--fast"]):
        done = subprocess.run([sys.executable, ROOT / "run", *arguments], capture_output=True, check=False)
        assert done.returncode == 2


def test_the_benchmark_prints_its_own_options(commands: list[list[str]], run: Run) -> None:
    assert run("bench", "--help") == 0
    assert commands == [["install", "bench"], ["bench", "--help"]]
    helped = subprocess.run(
        [sys.executable, "-m", "bench", "--help"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert "--rivals" in helped.stdout, helped.stderr


@pytest.mark.parametrize(("options", "served"), [([], True), (["--no-serve"], False)])
def test_docs_are_built_and_served_by_default(
    commands: list[list[str]],
    run: Run,
    replace: Replace,
    tmp_path: Path,
    options: list[str],
    served: bool,
) -> None:
    replace(ROOT=tmp_path, SITE=tmp_path / "site")
    (tmp_path / "site").mkdir()
    assert run("docs", *options) == 0
    installed, built, saved, packed, package, *server = commands
    assert installed == ["install", "docs"]
    assert built[0] == "sphinx"
    assert "--fail-on-warning" in built
    assert saved == [str(tmp_path / "site" / "_static" / "programs")]
    assert packed == ["bench.gpu_programs", str(tmp_path / "site" / "_static" / "gpu" / "programs")]
    assert package == [str(tmp_path / "site" / "_static" / "python")]
    assert not (tmp_path / "site").exists(), "pages of the build before"
    assert [command[0] for command in server] == ["http.server"] * served


def test_gpu_installs_packed_wheels_without_an_index(
    commands: list[list[str]], run: Run, replace: Replace, tmp_path: Path
) -> None:
    replace(PACKED=tmp_path / "wheels")
    measured = ["bench.gpu", "--budget", "9"]
    assert run("gpu", "--budget", "9") == 0
    assert commands == [["install", "gpu"], measured]
    (tmp_path / "wheels").mkdir()
    environments: list[dict[str, str]] = []

    def call(_: list[Any], environment: dict[str, str]) -> int:
        environments.append(environment)
        return 0

    def install_into(venv: Path, stamp: str, content: str, arguments: list[str], what: str) -> bool:
        commands.append(arguments)
        return True

    replace(
        call=call,
        install_into=install_into,
        list_adapters=lambda _: [],
        with_unpacked=lambda environment: environment | {"UNPACKED": "yes"},
    )
    assert run("gpu") == 0
    assert commands[2:] == [["--no-index", "--find-links", str(tmp_path / "wheels"), "wgslice[gpu]"]]
    assert (environments[0]["UNPACKED"], environments[0]["WGSLICE_PROFILE"]) == ("yes", "shipped")


def test_scripts_get_their_arguments(
    run_script: Any, commands: list[list[str]], run: Run, replace: Replace
) -> None:
    replace(install_from_npm=commands.append)
    for verb, script in (
        ("mutants", "mutate.py"),
        ("check", "check.py"),
        ("fuzz", "fuzz.py"),
        ("differential", "differential.py"),
        ("soak", "soak.py"),
        ("browser", "browser_tests.py"),
    ):
        assert run(verb, "widening", "--check") == 0
        npm = [[run_script.PYODIDE, run_script.PYSCRIPT]] * (verb == "browser")
        assert commands[-2 - len(npm) :] == [["install", "test"], *npm, ["widening", "--check"]]
        assert (ROOT / "tests" / script).is_file()
        assert run_script.SCRIPTS[verb][0] == script
    helped = subprocess.run(
        [sys.executable, "tests/mutate.py", "--help"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert "--check" in helped.stdout


def test_the_wheel_that_is_tested_is_the_one_that_was_built(
    run_script: Any, monkeypatch: pytest.MonkeyPatch, replace: Replace, tmp_path: Path
) -> None:
    """pip leaves an older wheel of the same version where it is: its environment begins anew."""
    dist, wheel, built = tmp_path / "dist", tmp_path / ".wheel", tmp_path / "dist" / "wgslice-1.whl"
    for folder in (dist, wheel):
        folder.mkdir()
    (wheel / "of the wheel before").touch()
    (dist / "of the build before").touch()
    replace(DIST=dist, WHEEL=wheel, install=lambda _: None, find_adapters=lambda *_, **__: {})

    def build(command: list[str], **_: Any) -> Any:
        assert command[1:3] == ["-m", "build"]
        dist.mkdir()
        built.write_bytes(b"wheel")
        return subprocess.CompletedProcess(command, 0, "")

    def install_into(venv: Path, *arguments: Any) -> bool:
        assert not venv.exists()
        assert str(built) in arguments[2], arguments
        return True

    monkeypatch.setattr(run_script.subprocess, "run", build)
    replace(
        install_into=install_into,
        packages_of=lambda _: tmp_path,
        call=lambda command, _: 0 if "pytest" in command else 1,
    )
    assert run_script.wheel([]) == 0
    assert list(dist.iterdir()) == [built]


CHECKS = [["ruff", "check", "--quiet"], ["ruff", "format", "--check", "--quiet"], ["mypy"]]


@pytest.mark.parametrize(
    ("arguments", "extra", "handed"),
    [
        (["test"], "test", ["--tier=default"]),
        (["test", "-k", "window", "-n", "0"], "test", ["--tier=default", "-k", "window", "-n", "0"]),
        (["test", "--all"], "test-all", ["--tier=all"]),
        (
            ["test", "-k", "window", "--all", "-m", "torch"],
            "test-all",
            ["--tier=all", "-k", "window", "-m", "torch"],
        ),
        (["test", "--deep"], "test-all", ["--tier=deep"]),
        (["test", "--newest"], "newest test", ["--tier=default"]),
    ],
)
def test_run_test_installs_and_passes_on(
    run_script: Any,
    commands: list[list[str]],
    monkeypatch: pytest.MonkeyPatch,
    run: Run,
    replace: Replace,
    arguments: list[str],
    extra: str,
    handed: list[str],
) -> None:
    monkeypatch.delenv("WGSLICE_TEST_ADAPTERS", raising=False)
    npm: list[list[str]] = []
    replace(install_from_npm=npm.append)
    assert run(*arguments) == 0
    assert commands == [["install", extra], *CHECKS, ["pytest", *run_script.IN_PARALLEL, *handed]]
    assert npm == [[run_script.DAWN]] * (extra == "test-all")


def test_packages_of_npm_are_installed_once(
    run_script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed: list[list[Any]] = []

    def call(words: list[Any], _: Any) -> int:
        installed.append(words[5:])
        return 0

    monkeypatch.setattr(run_script, "ROOT", tmp_path)
    monkeypatch.setattr(run_script, "NPM", tmp_path / ".npm")
    monkeypatch.setattr(run_script.shutil, "which", lambda _: "npm")
    monkeypatch.setattr(run_script, "call", call)
    for package in ("pyodide", "@pyscript/core"):
        run_script.install_from_npm([f"{package}@1.0"])
        (tmp_path / ".npm" / "node_modules" / package).mkdir(parents=True)
        run_script.install_from_npm([f"{package}@1.0"])
    assert installed == [["pyodide@1.0"], ["@pyscript/core@1.0"]]


@pytest.mark.parametrize(("mypy", "tests", "status"), [(3, 0, 3), (0, 2, 2), (3, 2, 2), (0, 0, 0)])
def test_tests_run_and_are_reported_where_types_fail(
    commands: list[list[str]],
    run: Run,
    replace: Replace,
    capsys: pytest.CaptureFixture[str],
    mypy: int,
    tests: int,
    status: int,
) -> None:
    replace(start=lambda words: Linter(words, mypy if "mypy" in words else 0), call=lambda *_: tests)
    assert run("test") == status
    words = {False: "passed", True: "failed"}
    assert capsys.readouterr().out.splitlines()[1:] == [
        "run: ruff check --quiet passed",
        "run: ruff format --check --quiet passed",
        *["what mypy prints"] * bool(mypy),
        f"run: mypy {words[bool(mypy)]}",
        f"run: tests {words[bool(tests)]}",
    ]
    assert run("lint") == mypy


def test_newest_packages_leave_no_stamp_of_the_lock_file(
    run_script: Any, replace: Replace, tmp_path: Path
) -> None:
    replace(VENV=tmp_path)
    installed: list[list[str]] = []

    def install_into(venv: Path, stamp: str, content: str, arguments: list[str], what: str) -> bool:
        installed.append(arguments)
        (venv / stamp).write_text(content)
        return True

    replace(install_into=install_into)
    run_script.install("test-all")
    run_script.install("test")  # covered
    assert len(installed) == 1
    for _ in range(2):
        run_script.install("test", newest=True)
        assert "--upgrade" in installed[-1]
        assert not (tmp_path / "installed-test-all").exists()
    run_script.install("test")
    assert len(installed) == 4
    assert "--constraint" in installed[-1]


def test_each_large_package_has_its_marker() -> None:
    everything = PYPROJECT["project"]["optional-dependencies"]["test-all"]
    markers = [line.partition(":")[0] for line in PYPROJECT["tool"]["pytest"]["ini_options"]["markers"]]
    assert everything[0] == "wgslice[demo,docs,test]"
    assert set(LARGE_PACKAGES) <= {Requirement(requirement).name for requirement in everything}
    assert markers == ["every_adapter", "deep", "first_adapter", "slow", *LARGE_PACKAGES]


TIERS = {
    "default": {"each[Vulkan]", "both[Vulkan]", "both[OpenGL]"},
    "all": {
        f"{name}[{adapter}]" for name in ("each", "both", "slow", "torch") for adapter in ("Vulkan", "OpenGL")
    },
}


@pytest.mark.slow
@pytest.mark.parametrize("tier", TIERS)
def test_tiers_select_tests_and_adapters(tmp_path: Path, tier: str) -> None:
    tests = ["import pytest", "def test_each(device): pass"]
    for name, mark in (("both", "every_adapter"), ("slow", "slow"), ("torch", "torch")):
        tests += [f"@pytest.mark.{mark}", f"def test_{name}(device): pass"]
    (tmp_path / "test_tiers.py").write_text("\n".join(tests))
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tests"), "WGSLICE_TEST_ADAPTERS": "Vulkan; OpenGL"}
    options = ["-p", "conftest", f"--tier={tier}", "--collect-only", "-q", f"--rootdir={tmp_path}"]
    command = [sys.executable, "-m", "pytest", "-c", str(ROOT / "pyproject.toml"), *options, str(tmp_path)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    collected = [line.partition("::test_")[2] for line in done.stdout.splitlines() if "::test_" in line]
    assert set(collected) == TIERS[tier], done.stdout + done.stderr


def test_lock_file_pins_each_requirement() -> None:
    """Every requirement of pyproject.toml is in the lock file, in a version that it admits."""
    project = PYPROJECT["project"]
    extras = project["optional-dependencies"].values()
    wanted = [Requirement(text) for texts in (project["dependencies"], *extras) for text in texts]
    lines = (ROOT / ".ci/lock.txt").read_text("utf-8").splitlines()
    pins = [Requirement(line) for line in lines if not line.startswith("#")]
    assert not [line for line in lines if "://" in line]
    for requirement in wanted:
        versions = [str(pin.specifier) for pin in pins if canonical(pin) == canonical(requirement)]
        assert versions or requirement.name == "wgslice", requirement
        for version in versions:
            assert requirement.specifier.contains(version.removeprefix("==")), (requirement, version)


def canonical(requirement: Requirement) -> str:
    return canonicalize_name(requirement.name)


def test_ci_runs_every_test() -> None:
    assert (ROOT / ".ci/run").read_text("utf-8").endswith("\nexec python3 run test --all\n")


def test_the_shader_cache_is_in_the_project_by_default(
    run_script: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MESA_SHADER_CACHE_DIR", raising=False)
    assert run_script.quiet_environment()["MESA_SHADER_CACHE_DIR"] == str(ROOT / ".shaders")
    assert "/.shaders" in (ROOT / ".gitignore").read_text("utf-8").splitlines()  # without a slash: links too
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

    def __init__(self, replace: Replace, found: list[tuple[str, str]]) -> None:
        self.found = found
        self.installed: list[list[str]] = []
        self.debian = True
        replace(
            list_adapters=lambda _: self.found,
            has_apt=lambda: self.debian,
            apt_install=self.install,
            call=lambda *_: 1,
        )

    def install(self, packages: list[str]) -> bool:
        self.installed.append(packages)
        self.found = [("llvmpipe", "Vulkan"), ("llvmpipe", "OpenGL")]
        return True


def test_a_test_run_names_its_adapters(run_script: Any, replace: Replace) -> None:
    machine = Machine(replace, [("llvmpipe", "OpenGL")])
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "Vulkan; OpenGL"
    assert machine.installed == [["mesa-vulkan-drivers"]]
    machine.debian, machine.found = False, [("M3", "Metal"), ("WARP", "D3D12")]
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "M3 via Metal; WARP via D3D12"
    machine.found = []
    assert run_script.choose_test_adapters()["WGSLICE_TEST_ADAPTERS"] == "any"


def test_the_demo_installs_an_adapter_where_there_is_none(run_script: Any, replace: Replace) -> None:
    machine = Machine(replace, [("Iris", "OpenGL")])
    run_script.find_adapters(["Vulkan"], any_will_do=True)
    assert machine.installed == []
    machine.found = []
    run_script.find_adapters(["Vulkan"], any_will_do=True)
    assert machine.installed == [["mesa-vulkan-drivers"]]
    machine.found, machine.debian = [], False
    with pytest.raises(SystemExit, match="1"):
        run_script.find_adapters(["Vulkan"], any_will_do=True)

"""GitHub's workflows and action, and CITATION.cff: their syntax, and what their Linux steps run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from helpers import run_python
from pages import PAGES, blocks
from ruamel.yaml import YAML

import wgslice as wg

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
ADAPTER = "software-adapter"  # the action
ACTION = ROOT / ".github" / "actions" / ADAPTER / "action.yml"
JOBS: dict[str, Any] = {
    name: job for path in WORKFLOWS for name, job in YAML(typ="safe").load(path)["jobs"].items()
}


def steps(name: str) -> list[str]:
    """The commands of a job."""
    return [step["run"] for step in JOBS[name]["steps"] if "run" in step]


def run_step(
    command: str, variables: Mapping[str, str], cwd: Path = ROOT
) -> subprocess.CompletedProcess[str]:
    """Run a step by bash that ends at the first failure, as GitHub does."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    return subprocess.run(
        ["bash", "-eo", "pipefail", "-c", command],
        cwd=cwd,
        env={**environment, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_three_systems_and_the_packages_are_tested() -> None:
    systems = {job["runs-on"].partition("-")[0] for job in JOBS.values() if "runs-on" in job}
    assert systems == {"ubuntu", "macos", "windows"}
    assert steps("macos") == ["python3 run test"]
    assert steps("windows") == ["python run test"]
    for name, backend in (("macos", "Metal"), ("windows", "D3D12")):
        assert JOBS[name]["steps"][-1]["env"] == {"WGSLICE_TEST_ADAPTERS": backend}


def test_linux_is_tested_with_every_supported_python() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    strategy = JOBS["linux"]["strategy"]
    assert needed == f">={strategy['matrix']['python'][0]}"
    assert strategy == {"fail-fast": False, "matrix": {"python": ["3.11", "3.12", "3.13", "3.14"]}}
    (setup,) = [step for step in JOBS["linux"]["steps"] if "python-version" in step.get("with", {})]
    assert setup["with"]["python-version"] == "${{ matrix.python }}"


WEEKLY = {
    "newest": ["python3 run test --all --newest", "python3 run test --newest --host dawn"],
    "suites": ["python3 run suites"],
    "matrix": ['sudo env "PATH=$PATH" python3 run matrix --arm64'],  # root makes the Debian roots
}


@pytest.mark.parametrize(("name", "commands"), WEEKLY.items())
def test_weekly_jobs_run_their_commands(name: str, commands: list[str]) -> None:
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / f"{name}.yml")
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", workflow["on"]["schedule"][0]["cron"])
    assert list(workflow["jobs"]) == [name]
    assert steps(name) == commands


def test_jobs_that_need_an_adapter_use_the_action() -> None:
    used = {
        name: step.get("with", {}).get("opengl", "false")
        for name, job in JOBS.items()
        for step in job.get("steps", ())
        if ADAPTER in step.get("uses", "")
    }
    both, vulkan = ("linux", "newest"), ("hosts", "macos", "windows", "packages", "suites")
    assert used == {**dict.fromkeys(both, "true"), **dict.fromkeys(vulkan, "false")}


INSTALLED = {"false": ["mesa-vulkan-drivers"], "true": ["mesa-vulkan-drivers", "libegl1", "libgl1-mesa-dri"]}


@pytest.mark.parametrize(
    ("system", "opengl", "backend", "software"),
    [
        ("Linux", "false", "Vulkan", "true"),
        ("Linux", "true", "Vulkan", "true"),
        ("Windows", "false", "D3D12", "true"),
        ("macOS", "false", "Metal", "false"),
    ],
)
def test_action_installs_packages_and_names_the_backend(
    tmp_path: Path, system: str, opengl: str, backend: str, software: str
) -> None:
    """With an apt-get that prints its arguments; the driver that it would install is this machine's."""
    for name, line in {"apt-get": 'echo "$@"', "sudo": '"$@"'}.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{line}\n")
        (tmp_path / name).chmod(0o755)
    (tmp_path / "System32").mkdir()
    (tmp_path / "System32" / "d3d10warp.dll").touch()
    (step,) = YAML(typ="safe").load(ACTION)["runs"]["steps"]
    path, output = os.pathsep.join([str(tmp_path), os.environ["PATH"]]), tmp_path / "output"
    variables = {"RUNNER_OS": system, "OPENGL": opengl, "SYSTEMROOT": str(tmp_path), "PATH": path}
    done = run_step(step["run"], variables | {"GITHUB_OUTPUT": str(output)})
    if system == "Linux":
        assert re.findall(r"\b(?:lib|mesa)\S+", done.stdout.splitlines()[1]) == INSTALLED[opengl]
    if system != "Linux" or any(Path("/usr/share/vulkan/icd.d").glob("lvp_icd*.json")):
        assert done.returncode == 0, done.stderr
        assert output.read_text() == f"backend={backend}\nsoftware={software}\n"
    else:  # as where apt has installed another driver
        assert done.returncode == 2


def test_the_text_of_a_release_is_its_section_of_the_changelog(tmp_path: Path) -> None:
    """With a gh that prints its arguments."""
    (tmp_path / "gh").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "CHANGELOG.md").write_text(
        "# Changelog\n\n## 0.30.0 - a\n\n- x\n\n## 0.3.0 - b\n\n- y\n\n## 0.2.0 - c\n"
    )
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")
    step = workflow["jobs"]["notes"]["steps"][-1]
    path = os.pathsep.join([str(tmp_path), os.environ["PATH"]])
    done = run_step(step["run"], {"PATH": path, "GITHUB_REF_NAME": "v0.3.0"}, tmp_path)
    assert done.stdout.startswith("release create v0.3.0 --verify-tag"), done.stderr
    assert (tmp_path / "notes.md").read_text() == "\n- y\n\n"
    assert run_step(step["run"], {"PATH": path, "GITHUB_REF_NAME": "v0.1.0"}, tmp_path).returncode


def test_a_release_publishes_what_all_tests_built() -> None:
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / "release.yml")
    assert workflow["on"] == {"push": {"tags": ["v[0-9]+.[0-9]+.[0-9]+"]}}
    assert workflow["permissions"] == {"contents": "read"}
    tests, pypi = workflow["jobs"]["tests"], workflow["jobs"]["pypi"]
    assert tests == {"uses": "$/.github/workflows/tests.yml"}
    assert pypi["needs"] == "tests"
    assert pypi["permissions"] == {"id-token": "write"}
    (uploaded,) = [step["with"] for step in JOBS["packages"]["steps"] if "upload" in step.get("uses", "")]
    (downloaded,) = [step["with"] for step in pypi["steps"] if "download" in step.get("uses", "")]
    assert downloaded == {"name": uploaded["name"], "path": uploaded["path"]}
    assert pypi["steps"][-1]["with"] == {"attestations": True}


@pytest.mark.parametrize(("tag", "status"), [("v1.2.3", 0), ("v1.2.4", 2)])
def test_a_release_needs_packages_of_its_tag(tmp_path: Path, tag: str, status: int) -> None:
    (tmp_path / "dist").mkdir()
    for name in ("wgslice-1.2.3.tar.gz", "wgslice-1.2.3-py3-none-any.whl"):
        (tmp_path / "dist" / name).touch()
    (command,) = steps("pypi")
    assert run_step(command, {"GITHUB_REF_NAME": tag}, tmp_path).returncode == status


def lint(*command: str) -> subprocess.CompletedProcess[str]:
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# Each with its files, a mistake that it finds in the first one, and what it calls it.
SCHEMA = ["check-jsonschema", "--builtin-schema"]
ZIZMOR = ["zizmor", "--offline", "--no-progress"]
CREDENTIALS = ("persist-credentials: false", "fetch-depth: 1")
LINTERS = {
    "workflows' schema": (
        [*SCHEMA, "vendor.github-workflows"],
        WORKFLOWS,
        ("runs-on:", "runs-where:"),
        "'runs-on' is a required property",
    ),
    "workflows' holes": (ZIZMOR, [*WORKFLOWS, ACTION], CREDENTIALS, "credential persistence"),
    "action's schema": (
        [*SCHEMA, "vendor.github-actions"],
        [ACTION],
        ("using:", "used:"),
        "is not valid under any of the given schemas",
    ),
    "citation's schema": (
        [*SCHEMA, "vendor.citation-file-format"],
        [ROOT / "CITATION.cff"],
        ("title:", "named:"),
        "'title' is a required property",
    ),
}


@pytest.mark.parametrize("name", LINTERS)
def test_github_files_and_citation_are_linted(name: str, tmp_path: Path) -> None:
    linter, files, mistake, found = LINTERS[name]
    done = lint(*linter, *map(str, files))
    assert done.returncode == 0, done.stdout + done.stderr
    broken = tmp_path / files[0].name
    broken.write_text(files[0].read_text("utf-8").replace(*mistake))
    refused = lint(*linter, str(broken))
    assert refused.returncode != 0
    assert found in refused.stdout + refused.stderr


# What the pages show: by a key that only one of them has, how it is linted, and with what mistake it is not.
SHOWN = {
    "runs-on": ("vendor.github-workflows", ("runs-on:", "runs-where:")),
    "image": ("vendor.gitlab-ci", ("image:", "picture:")),
}


def shown(key: str) -> str:
    """The one that a page shows."""
    every = [block.text for page in PAGES for block in blocks(page, "yaml")]
    assert len(every) == len(SHOWN)
    (found,) = [text for text in every if f"{key}:" in text]
    return found


@pytest.mark.parametrize("key", SHOWN)
def test_the_workflows_that_the_pages_show_are_some(key: str, tmp_path: Path) -> None:
    schema, mistake = SHOWN[key]
    path = tmp_path / "shown.yml"
    path.write_text(shown(key))
    assert lint("check-jsonschema", "--builtin-schema", schema, str(path)).returncode == 0
    path.write_text(shown(key).replace(*mistake))
    assert lint("check-jsonschema", "--builtin-schema", schema, str(path)).returncode != 0


def test_the_workflow_that_the_pages_show_has_no_holes(tmp_path: Path) -> None:
    """Pinned by tags, which people can read; our own by hashes."""
    path, policy = tmp_path / "shown.yml", tmp_path / "zizmor.yml"
    policy.write_text("rules: {unpinned-uses: {config: {policies: {'*': ref-pin}}}}")
    for text, status in ((shown("runs-on"), 0), (shown("runs-on").replace(*CREDENTIALS), 1)):
        path.write_text(text)
        done = lint(*ZIZMOR, "--config", str(policy), str(path))
        found = "credential persistence" in done.stdout
        assert (done.returncode != 0, found) == (status, status), done.stdout + done.stderr


@pytest.mark.parametrize("key", SHOWN)
def test_the_check_that_the_pages_show_fails_without_the_adapter(device: wg.Device, key: str) -> None:
    (check,) = re.findall(r"- (?:run: )?(python -c .*default_device.*)", shown(key))
    command = [sys.executable, *shlex.split(check)[1:]]

    def run(adapter: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "WGSLICE_ADAPTER": adapter}
        return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)

    there, missing = run(device.adapter.backend), run("Vulcan")
    assert (there.returncode, there.stdout) == (0, f"{device}\n"), there.stderr
    assert missing.returncode == 1
    assert "NoAdapterError: no adapter has 'Vulcan' (from WGSLICE_ADAPTER)" in missing.stderr


def test_mesa_caches_kernels_in_the_documented_folder(device: wg.Device, tmp_path: Path) -> None:
    if "Mesa" not in device.adapter.driver:
        pytest.skip("not a driver of Mesa's")
    kept = tmp_path / "kept"
    code = "import wgslice as wg; print(wg.asarray([1, 2, 3])[::-1].numpy())"
    done = run_python(code, WGSLICE_ADAPTER=str(device.adapter), MESA_SHADER_CACHE_DIR=str(kept))
    assert done.stdout == "[3 2 1]\n", done.stderr
    files = [path for path in kept.rglob("*") if path.is_file() and path.name != "index"]
    assert max(path.stat().st_size for path in files) > 1000, "the driver's empty files have 20 bytes"
    assert all("MESA_SHADER_CACHE_DIR: $" in shown(key) for key in SHOWN)


def test_ci_runs_the_linux_job() -> None:
    """The job of the packages runs the commands of the test below."""
    of_ci = (ROOT / ".ci" / "run").read_text("utf-8").splitlines()[-1].removeprefix("exec ")
    assert steps("linux") == [of_ci]
    assert steps("packages") == ["python3 run wheel"]
    assert steps("site") == ["python3 run docs --no-serve"]  # as the tests of the API reference build it


@pytest.mark.deep  # the workflow runs them: a wheel, and an environment for it
def test_the_linux_steps_of_packages_run() -> None:
    for command in steps("packages"):
        done = run_step(command, {})
        assert done.returncode == 0, done.stdout + done.stderr
    assert {path.suffix for path in (ROOT / "dist").iterdir()} == {".whl", ".gz"}

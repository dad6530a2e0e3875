"""GitHub's workflows: their syntax, and what their Linux steps run."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pages import PAGES, blocks
from ruamel.yaml import YAML

import wgslice as wg

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
JOBS: dict[str, Any] = {
    name: job for path in WORKFLOWS for name, job in YAML(typ="safe").load(path)["jobs"].items()
}


def steps(name: str) -> list[str]:
    """The commands of a job."""
    return [step["run"] for step in JOBS[name]["steps"] if "run" in step]


def test_three_systems_and_the_packages_are_tested() -> None:
    assert {job["runs-on"].partition("-")[0] for job in JOBS.values()} == {"ubuntu", "macos", "windows"}
    assert steps("macos") == ["python3 run test"]
    assert steps("windows") == ["python run test"]
    tested = {name: job["steps"][-1].get("env", {}) for name, job in JOBS.items()}
    assert tested["macos"] == {"WGSLICE_TEST_ADAPTERS": "Metal"}
    assert tested["windows"] == {"WGSLICE_TEST_ADAPTERS": "D3D12"}


def test_linux_is_tested_with_every_supported_python() -> None:
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["requires-python"]
    strategy = JOBS["linux"]["strategy"]
    assert needed == f">={strategy['matrix']['python'][0]}"
    assert strategy == {"fail-fast": False, "matrix": {"python": ["3.11", "3.12", "3.13", "3.14"]}}
    (setup,) = [step for step in JOBS["linux"]["steps"] if "python-version" in step.get("with", {})]
    assert setup["with"]["python-version"] == "${{ matrix.python }}"


WEEKLY = {"newest": "test --newest", "suites": "suites", "matrix": "matrix"}


@pytest.mark.parametrize(("name", "command"), WEEKLY.items())
def test_weekly_jobs_run_their_commands(name: str, command: str) -> None:
    workflow = YAML(typ="safe").load(ROOT / ".github" / "workflows" / f"{name}.yml")
    assert re.fullmatch(r"\d+ \d+ \* \* [0-6]", workflow["on"]["schedule"][0]["cron"])
    assert list(workflow["jobs"]) == [name]
    assert steps(name) == [f"python3 run {command}"]


def lint(*command: str) -> subprocess.CompletedProcess[str]:
    programs = str(Path(sys.executable).parent)
    environment = {**os.environ, "PATH": os.pathsep.join([programs, os.environ["PATH"]])}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


# Each with a mistake that it finds, and what it calls it.
LINTERS = {
    "check-jsonschema": (
        ["--builtin-schema", "vendor.github-workflows"],
        ("runs-on:", "runs-where:"),
        "'runs-on' is a required property",
    ),
    "zizmor": (
        ["--offline", "--no-progress"],
        ("persist-credentials: false", "fetch-depth: 1"),
        "credential persistence",
    ),
}


@pytest.mark.parametrize("name", LINTERS)
def test_workflows_are_linted(name: str, tmp_path: Path) -> None:
    options, mistake, found = LINTERS[name]
    linter = [name, *options]
    done = lint(*linter, *map(str, WORKFLOWS))
    assert done.returncode == 0, done.stdout + done.stderr
    text = WORKFLOWS[0].read_text("utf-8")
    broken = tmp_path / "broken.yml"
    broken.write_text(text.replace(*mistake))
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
    options, mistake, found = LINTERS["zizmor"]
    for text, status in ((shown("runs-on"), 0), (shown("runs-on").replace(*mistake), 1)):
        path.write_text(text)
        done = lint("zizmor", *options, "--config", str(policy), str(path))
        assert (done.returncode != 0, found in done.stdout) == (status, status), done.stdout + done.stderr


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
    environment = {**os.environ, "WGSLICE_ADAPTER": str(device.adapter), "MESA_SHADER_CACHE_DIR": str(kept)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
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
    """By bash that ends at the first failure, as GitHub runs them."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    for command in steps("packages"):
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", command],
            cwd=ROOT,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
    assert {path.suffix for path in (ROOT / "dist").iterdir()} == {".whl", ".gz"}

"""The project's own files: packages, changelog, workflows."""

from __future__ import annotations

import json
import re
import shutil
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from helpers import run_python

import wgslice as wg
from wgsl import link

ROOT = Path(__file__).parents[1]


def test_every_file_has_this_version() -> None:
    version = wg.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == version
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert version in headings[:2], "below Unreleased, if there is any"
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    shown = (ROOT / "docs" / "installing.md").read_text("utf-8")
    assert {*re.findall(r"wgslice(?:==|-)(\d[\d.]*\d)", shown)} == {version}


def build(part: str, project: Path) -> Path:
    """Build a wheel or a source distribution where neither wgpu nor NumPy can be imported."""
    code = (
        "import sys; sys.modules.update(wgpu=None, numpy=None); import setuptools.build_meta as backend; "
        f"print(backend.build_{part}(sys.argv[1]))"
    )
    folder = project.parent / f"{project.name}-{part}"
    done = run_python(code, str(folder), cwd=project)
    assert done.returncode == 0, done.stderr
    return folder / done.stdout.splitlines()[-1]


@pytest.mark.slow
def test_wheel_and_sdist_carry_kernels_and_types(tmp_path: Path) -> None:
    copy = tmp_path / "project"
    ignored = shutil.ignore_patterns(".*", "build", "dist", "*.egg-info", "__pycache__", "out")
    shutil.copytree(ROOT, copy, ignore=ignored)
    built = build("sdist", copy)
    with tarfile.open(built) as source:
        shipped = {name.partition("/")[2] for name in source.getnames()}
        source.extractall(tmp_path, filter="data")
    kernels = {path.name for path in (ROOT / "wgsl").glob("*.wgsl")}
    assert len(kernels) > 15
    assert {f"wgsl/{kernel}" for kernel in kernels} <= shipped
    wheels = build("wheel", copy), build("wheel", tmp_path / built.name.removesuffix(".tar.gz"))
    modules = {f"wgslice/wgsl/{name}.wgsl": text.encode() for name, text in link.modules().items()}
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            packed = set(archive.namelist())
            found = {name: archive.read(name) for name in packed if re.match("wgslice/wgsl/.*[.]wgsl", name)}
            known = json.loads(archive.read("wgslice/wgsl/modules.json"))
        assert found == modules
        assert known["structs"] == link.structs()
        assert known["modules"] == {name: link.about(name) for name in link.modules()}
        assert {"wgslice/wgsl/__init__.py"} == {
            name for name in packed if name.startswith("wgslice/wgsl/") and name.endswith(".py")
        }
        for module in (ROOT / "src").rglob("*.py"):
            assert str(module.relative_to(ROOT / "src")) in packed
            assert str(module.relative_to(ROOT)) in shipped
        assert "wgslice/py.typed" in packed
        assert {f"wgslice/programs/program.{end}" for end in ("d.mts", "mjs", "schema.json")} <= packed

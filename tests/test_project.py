"""The project's own files: packages, changelog, workflows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import wgslice as wg

ROOT = Path(__file__).parents[1]


def test_every_file_has_this_version() -> None:
    version = wg.__version__
    assert tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"] == version
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text("utf-8"), re.MULTILINE)
    assert version in headings[:2], "below Unreleased, if there is any"
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text("utf-8")
    shown = (ROOT / "docs" / "installing.md").read_text("utf-8")
    assert {*re.findall(r"wgslice(?:==|-)(\d[\d.]*\d)", shown)} == {version}


@pytest.mark.slow
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
    kernels = {path.name for path in (ROOT / "wgsl" / "modules").glob("*.wgsl")}
    assert len(kernels) > 15
    assert {f"wgslice/wgsl/{kernel}" for kernel in kernels} <= packed
    assert {f"wgsl/modules/{kernel}" for kernel in kernels} <= shipped
    for module in (ROOT / "src").rglob("*.py"):
        assert str(module.relative_to(ROOT / "src")) in packed
        assert str(module.relative_to(ROOT)) in shipped
    assert {"wgslice/py.typed", "wgslice/wgsl/__init__.py"} <= packed
    assert {f"wgslice/programs/program.{end}" for end in ("d.mts", "mjs", "schema.json")} <= packed

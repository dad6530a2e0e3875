"""The site that `python3 run docs` builds without a warning: its API reference has every public name."""

from __future__ import annotations

import re
import subprocess
import sys
from enum import Enum
from importlib import import_module
from pathlib import Path

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.pygfx,  # a module that has a page imports it
    pytest.mark.xdist_group("site"),  # one process builds it
]

ROOT = Path(__file__).parents[1]
MODULES = ["wgslice", *(f"wgslice.{name}" for name in ("array_api", "dialects", "onnx", "pygfx", "zarr"))]
CONSTANTS = {
    *("__array_api_version__", "bool", "complex64", "complex128", "float32", "float64", "newaxis", "pi", "e"),
    *("inf", "nan", *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64))),
}  # of the array API, which are NumPy's


@pytest.fixture(scope="module")
def site() -> Path:
    """The folder of the site, built as the workflow builds it."""
    command = [sys.executable, "run", "docs", "--no-serve"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return ROOT / "out" / "docs"


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_has_a_page(site: Path, name: str) -> None:
    public = set(import_module(name).__all__) - {"dialects"}
    public -= CONSTANTS if name == "wgslice.array_api" else set()
    pages = site / "reference" / "generated"
    assert len(public) > 2
    assert [each for each in public if not (pages / f"{name}.{each}.html").exists()] == []


def test_directml_names_are_on_one_page(site: Path) -> None:
    anchors = set(
        re.findall(r'id="wgslice\.directml\.(?:\w+\.)?(\w+)"', read(site, "reference/integrations"))
    )
    directml = import_module("wgslice.directml")
    values = {name: getattr(directml, name) for name in directml.__all__}
    documented = {value.name if isinstance(value, Enum) else name for name, value in values.items()}
    assert documented <= anchors  # enumerators stand with their enumerations, without prefix


def test_class_pages_have_public_members_only(site: Path) -> None:
    anchors = set(re.findall(r'id="wgslice\.([\w.]*)"', read(site, "reference/generated/wgslice.Tensor")))
    called = {"__getitem__", "__setitem__", "numpy", "copy", "reshape", "squeeze", "view", "T"}
    called |= {"mT", "transpose", "item", "astype", "shape", "to_device"}
    assert {f"Tensor.{name}" for name in called} <= anchors
    assert not {"Tensor.__init__", "Tensor.__reduce__", "Tensor.bound_layout"} & anchors


def test_function_pages_have_their_docstrings(site: Path) -> None:
    text = read(site, "reference/generated/wgslice.slice1")
    assert "Copy a strided window out of a tensor" in text
    assert "Parameters" in text


def read(site: Path, page: str) -> str:
    return (site / f"{page}.html").read_text("utf-8")

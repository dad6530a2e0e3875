"""The API reference that `python3 run docs` builds: every public name is in it, and nothing is warned of."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from helpers import load_bootstrap

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[1]
MODULES = [
    "wgslice",
    *("wgslice.array_api", "wgslice.dialects", "wgslice.onnx", "wgslice.directml", "wgslice.zarr"),
]


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages, built of the modules that need no large package."""
    run_script = load_bootstrap()
    assert {*MODULES, "wgslice.pygfx"} - {"wgslice.dialects"} == set(run_script.DOCUMENTED)
    documented = [name for name in run_script.DOCUMENTED if name != "wgslice.pygfx"]
    folder = tmp_path_factory.mktemp("reference")
    command = [sys.executable, "-m", "pdoc", *run_script.PDOC_OPTIONS, "--output-directory", str(folder)]
    done = subprocess.run([*command, *documented], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    return folder


@pytest.mark.parametrize("name", MODULES)
def test_every_public_name_is_in_the_reference(reference: Path, name: str) -> None:
    page = (reference / f"{name.replace('.', '/')}.html").read_text("utf-8")
    anchors = set(re.findall(r'<section id="([^"]*)"', page))
    linked = set(re.findall(r'href="wgslice/(\w+)\.html"', page))
    public = set(import_module(name).__all__)
    assert len(public) > 2
    assert public <= anchors | linked


def test_the_first_page_links_the_others(reference: Path) -> None:
    page = (reference / "wgslice.html").read_text("utf-8")
    linked = re.findall(r'href="wgslice/(\w+)\.html"', page)
    assert sorted(linked) == sorted(name.partition(".")[2] for name in MODULES[1:])


def test_the_reference_shows_what_people_call(reference: Path) -> None:
    anchors = set(re.findall(r'id="([\w.]*)"', (reference / "wgslice.html").read_text("utf-8")))
    called = {"__getitem__", "__setitem__", "numpy", "copy", "reshape", "squeeze", "view", "T"}
    called |= {"mT", "transpose", "item", "astype", "shape", "to_device"}
    assert {f"Tensor.{name}" for name in called} <= anchors
    assert {"CompiledOperator.__call__", "CompiledOperator.record", "Slice1.__init__"} <= anchors
    assert not {"Tensor.__init__", "Device.__init__", "CompiledOperator.__init__"} & anchors
    hidden = {"Device.staging", "Device.zeros", "Tensor.__reduce__", "SliceGrad.planned", "Plan.unbound"}
    assert not hidden & anchors


def test_the_reference_shows_docstrings_and_links_types(reference: Path) -> None:
    page = (reference / "wgslice.html").read_text("utf-8")
    section = page.partition('<section id="slice1"')[2].partition("</section>")[0]
    assert "A negative one begins at the end of the window" in section
    assert 'href="#Tensor"' in section
    assert "Parameters" in section

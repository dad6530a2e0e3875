"""`program.mjs` in Node.js: what it stores, reads and refuses, and the program of its page."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Mapping
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import on_one_adapter
from matrix import NODE, swiftshader
from pages import ROOT, blocks

import wgslice as wg

DAWN = ROOT / ".npm" / "node_modules" / "webgpu"
RUNNER = files("wgslice.programs") / "program.mjs"
RESULT = {"left": 0, "both": {"tuple": [1, {"dict": {"inner": 2}}]}}

pytestmark = pytest.mark.skipif(NODE is None, reason="Node.js is missing: install Node.js 20 or newer")


def run_node(script: Path, *arguments: str, environment: Mapping[str, str] = os.environ) -> str:
    command = [str(NODE), str(script), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def found(device: wg.Device, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What the runner stored, read and refused, of a program with a strided input and nested outputs."""
    folder = tmp_path_factory.mktemp("saved")
    x = wg.zeros((2, 6), np.int16, device=device)[:, ::2]
    y = wg.zeros(3, np.uint8, device=device)
    program = wg.capture(lambda x, y: {"left": x[::-1], "both": (y, {"inner": x[:, 1]})}, x=x, y=y)
    program.save(folder / "views")
    (folder / "program.mjs").write_bytes(RUNNER.read_bytes())
    script = ROOT / "tests" / "runner.mjs"
    return json.loads(run_node(script, str(folder / "program.mjs"), str(folder / "views")))


def test_arrays_are_stored_by_the_strides_of_the_input(found: Any) -> None:
    assert found["stored"][:12] == [1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0]


def test_outputs_are_read_by_index_key_and_path(found: Any) -> None:
    left, x, y, inner = [4, 5, 6, 1, 2, 3], [1, 2, 3, 4, 5, 6], [7, 8, 9], [2, 5]
    assert found["read"] == [left, inner, x, y, left, left, y, inner]


def test_unknown_outputs_are_refused_with_what_there_is(found: Any) -> None:
    result = json.dumps({"dict": RESULT}, separators=(",", ":"))
    known = f"the result is {result}, of 3 outputs; the inputs are x, y"
    names = ["3", "-1", "right", "toString", "both", "both,2", "both,length", "left,0"]
    assert found["refused"][:8] == [f"{name}: {known}" for name in names]


def test_arrays_of_other_byte_lengths_are_refused(found: Any) -> None:
    needed = "the input needs an array of 12 bytes, int16 [2,3]"
    lengths = "10", "14", "undefined"
    assert found["refused"][8:] == [f"x: the array has {each} bytes; {needed}" for each in lengths]


@pytest.mark.slow
@on_one_adapter
@pytest.mark.skipif(not DAWN.exists(), reason="Dawn is missing: `python3 run matrix` installs it")
@pytest.mark.skipif(
    swiftshader() is None, reason="Chromium's SwiftShader is missing: apt-get install chromium"
)
def test_the_pages_program_runs_in_node(device: wg.Device, tmp_path: Path) -> None:
    output = wg.zeros((480, 640, 4), np.uint8, device=device)

    def flip(input: wg.Tensor, output: wg.Tensor) -> None:
        output[...] = input[:, ::-1]

    wg.capture(flip, input=output, output=output.copy()).save(tmp_path / "flip")
    (tmp_path / "program.mjs").write_bytes(RUNNER.read_bytes())
    (tmp_path / "node_modules").symlink_to(DAWN.parent)
    page = blocks(ROOT / "docs" / "saved-programs.md", "js")
    (program,) = [block.text for block in page if "node:fs" in block.text]
    (tmp_path / "main.mjs").write_text(program, "utf-8")
    shown = program.partition("console.log")[2].partition("// ")[2].partition("\n")[0]
    assert run_node(tmp_path / "main.mjs", environment=swiftshader() or {}) == f"{shown}\n"

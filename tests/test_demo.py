"""The demo: equal to NumPy on each adapter, and a sheet of six pictures."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import on_one_adapter
from PIL import Image

import wgslice as wg
from wgslice import demo

pytestmark = pytest.mark.slow


def test_the_demo_shows_five_slices_equal_to_numpy(
    device: wg.Device,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wg, "default_device", lambda: device)
    assert demo.main() == 0
    printed = capsys.readouterr().out
    assert str(device.adapter) in printed
    assert printed.count("equal to NumPy, bit for bit") == printed.count("  plan    coalesced (") == 5
    sheet = Path(printed.splitlines()[-1].removeprefix("contact sheet: "))
    with Image.open(sheet) as image:
        assert image.width > 500
        assert len(np.unique(np.asarray(image.convert("L")))) > 100


@on_one_adapter
def test_nothing_is_on_stderr_in_a_bare_container(device: wg.Device, tmp_path: Path) -> None:
    """No XDG_RUNTIME_DIR, and no home that can be written to."""
    dropped = ("XDG_", "MPL", "HOME", "PYTEST")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(dropped)}
    environment |= {"HOME": "/nonexistent", "WGSLICE_ADAPTER": str(device.adapter)}
    np.save(tmp_path / "x.npy", np.arange(10))
    for arguments in (
        ["wgslice.demo"],
        ["wgslice.cli", "adapters"],
        ["wgslice.cli", "slice", "x.npy", "::-2", "-o", "y.npy"],
        ["wgslice.cli", "kernel", "rows"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", *arguments],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, ""), arguments
        assert done.stdout or "slice" in arguments
    assert np.load(tmp_path / "y.npy").tolist() == [9, 7, 5, 3, 1]


def test_the_photograph_has_an_odd_width() -> None:
    photo = demo.load_photo()
    assert photo.dtype == np.uint8
    assert photo.shape[1] % 2 == 1
    assert photo.shape[2] == 3


def test_a_wrong_result_is_status_1(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(wg, "default_device", lambda: device)
    monkeypatch.setattr(wg.Tensor, "numpy", lambda tensor: np.zeros(tensor.shape, tensor.dtype))
    assert demo.main() == 1
    assert capsys.readouterr().out.count("WRONG: differs from NumPy") == 5

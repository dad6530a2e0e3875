"""The demo: equal to NumPy on each adapter, and a sheet of six pictures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import wgslice as wg
from wgslice import demo


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
    assert printed.count("equal to NumPy, bit for bit") == printed.count("  plan    merged (") == 5
    sheet = Path(printed.splitlines()[-1].removeprefix("contact sheet: "))
    with Image.open(sheet) as image:
        assert image.width > 500
        assert len(np.unique(np.asarray(image.convert("L")))) > 100


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

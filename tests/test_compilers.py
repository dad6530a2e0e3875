"""What GPU compilers are asked: whole modules of what slices run, and the figures kept of the answers."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from bench.cases import CASES, Case
from bench.compilers import drivers, report
from bench.compilers.chart import draw_compilers
from bench.compilers.variants import PERMUTES, Variant, folded, planned, variants
from bench.contest import ROOT
from wgslice.layout import Layout
from wgslice.plans.steps import Dispatch

KEPT = json.loads((ROOT / "bench" / "results" / "compilers.json").read_text("utf-8"))
BOTH: list[Case] = [*CASES, *PERMUTES]


def test_a_slices_layout_is_numpys() -> None:
    """As an array that has only so many elements would have it."""
    for case in (
        Case("mirrored", "uint16", (7, 9), np.s_[::-2, 1:]),
        Case("one channel", "uint8", (5, 4, 3), np.s_[..., 1]),
        PERMUTES[-1],
    ):
        small = min(case.shape) < 10
        layout = case.view_layout()
        array = np.arange(np.prod(case.shape if small else (1,))).reshape(case.shape if small else 1)
        if small:
            assert layout.places() == array[case.key].ravel().tolist()
        else:
            assert layout == Layout.of((2048, 4096), (2, 4096))


def test_modules_have_constants_for_overrides() -> None:
    text = "override a: u32; // one\noverride b: bool;\noverride c: u32 = a * 2u;\nfn f() {}"
    assert folded(text, {"a": 3, "b": 1}) == (
        "const a: u32 = 3; // one\nconst b: bool = true;\nconst c: u32 = a * 2u;\nfn f() {}"
    )
    for variant in variants(BOTH):
        assert "override" not in re.sub(r"//.*", "", variant.text)
        assert f"fn {variant.kernel}(" in variant.text


def test_equal_modules_are_compiled_once() -> None:
    found = list(variants(BOTH))
    assert (
        len({(variant.text, round(variant.per_block(1), 2)) for variant in found}) == len(found) < len(BOTH)
    )
    compiled = {name for variant in found for name in variant.slices}
    dispatched = {
        case.name for case in BOTH if any(isinstance(step, Dispatch) for step in planned(case).steps)
    }
    assert compiled == dispatched


def test_a_figure_is_for_16_useful_bytes() -> None:
    variant = Variant(("one",), "rows", "", invocations=64, useful_nbytes=4096)
    assert variant.per_block(100) == 25
    said = {"Instructions": 100, "Inverse Throughput": 8, "VGPRs": 24, "Spilled VGPRs": 0, "Hash": 7}
    assert report.figures(variant, said) == {
        "instructions": 25,
        "inverse throughput": 2,
        "registers": 24,
        "spills": 0,
    }
    assert report.cost({"instructions": 25, "cycles": 30.4, "spills": 2}) == "30 (2 spills)"
    assert report.cost({}) == "-"


def test_drivers_that_are_not_there_are_left_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(drivers, "ICDS", tmp_path)
    monkeypatch.setenv(drivers.SHIMS, str(tmp_path))
    assert drivers.available() == []
    (tmp_path / "radeon_icd.x86_64.json").touch()
    (tmp_path / "intel_hasvk_icd.json").touch()
    (tmp_path / "libintel_noop_drm_shim.so").touch()
    (tmp_path / "nouveau_icd.json").touch()
    assert {driver.name.split()[0] for driver in drivers.available()} == {"AMD"}
    (tmp_path / "libnouveau_noop_drm_shim.so").touch()
    (nvidia,) = (driver for driver in drivers.available() if driver.name.startswith("NVIDIA"))
    (tmp_path / "intel_icd.json").touch()
    assert {driver.name.split()[0] for driver in drivers.available()} == {"AMD", "Intel", "NVIDIA"}
    environment = nvidia.environment() or {}
    assert environment["LD_PRELOAD"] == str(tmp_path / "libnouveau_noop_drm_shim.so")
    assert environment["NOUVEAU_CHIPSET"] == "170"


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[Any] = [None, "/usr/bin/node"]
    monkeypatch.setattr("shutil.which", lambda _: found[0])
    monkeypatch.setattr(report, "NAGA", tmp_path)
    for message in ("needs node", "naga is not installed"):
        console = Console(record=True, width=200)
        report.run_compilers(console)
        assert message in console.export_text()
        found.pop(0)


def test_what_is_kept_is_of_todays_plans() -> None:
    """Whoever changes what runs on a GPU asks the compilers again."""
    kept: dict[str, list[str]] = {}
    for variant in KEPT["variants"]:
        for name in variant["slices"]:
            kept.setdefault(name, []).append(variant["kernel"])
    for case in BOTH:
        kernels = [step.kernel.value for step in planned(case).steps if isinstance(step, Dispatch)]
        assert sorted(kept.get(case.name, [])) == sorted(kernels), case.name
    assert any("NAVI21" in device for device in KEPT["devices"].values())


def test_what_is_kept_is_drawn(tmp_path: Path) -> None:
    draw_compilers(KEPT, tmp_path / "deep" / "chart.png")
    with Image.open(tmp_path / "deep" / "chart.png") as image:
        assert image.width > 500
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


def test_no_kernel_spills_registers() -> None:
    for variant in KEPT["variants"]:
        for name, said in variant["compilers"].items():
            assert said.get("spills", 0) == 0, (name, variant["slices"])

"""GPU compilers: the modules that they compile, of kernels that slices run, and the statistics kept."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

from bench.cases import Case
from bench.compilers import drivers, report
from bench.compilers.chart import draw_compilers
from bench.compilers.costs import once
from bench.compilers.listing import listing_statistics, panvk_statistics
from bench.compilers.planned import ASKED, planned, source_layout
from bench.compilers.variants import Variant, folded, variants
from bench.contest import ROOT
from wgslice.plans.steps import OnGrid

pytestmark = pytest.mark.slow

KEPT = {
    path.stem: json.loads(path.read_text("utf-8"))
    for path in (ROOT / "bench" / "results").glob("compilers-*.json")
}


def test_a_slices_layout_is_numpys() -> None:
    for case in (
        Case("mirrored", "uint16", (7, 9), np.s_[::-2, 1:]),
        Case("one channel", "uint8", (5, 4, 3), np.s_[..., 1]),
        Case("permuted", "int8", (3, 4, 5), np.s_[::2, :, 1:], (2, 0, 1)),
    ):
        array = np.arange(np.prod(case.shape)).reshape(case.shape)
        assert source_layout(case).places() == case.work.of(array).ravel().tolist()


def test_modules_have_constants_for_overrides() -> None:
    text = "override a: u32; // one\noverride b: bool;\noverride c: u32 = a * 2u;\nfn f() {}"
    assert folded(text, {"a": 3, "b": 1}) == (
        "const a: u32 = 3; // one\nconst b: bool = true;\nconst c: u32 = a * 2u;\nfn f() {}"
    )
    for variant in variants(ASKED):
        assert "override" not in re.sub(r"//.*", "", variant.text)
        assert f"fn {variant.entry_point}(" in variant.text


def test_equal_modules_are_compiled_once() -> None:
    found = list(variants(ASKED))
    assert (
        len({(variant.text, round(variant.per_block(1), 2)) for variant in found}) == len(found) < len(ASKED)
    )
    compiled = {name for variant in found for name in variant.slices}
    dispatched = {
        case.name for case in ASKED if any(isinstance(step, OnGrid) for step in planned(case).steps)
    }
    assert compiled == dispatched
    assert {"gather_words", "gather", "pair_gather", "wide_gather"} < {variant.kernel for variant in found}


def test_a_figure_is_for_16_useful_bytes() -> None:
    variant = Variant(("one",), "rows", "rows", "", invocations=64, useful_nbytes=4096)
    assert variant.per_block(100) == 25
    said = {"Instructions": 100, "Inverse Throughput": 8, "VGPRs": 24, "Spilled VGPRs": 0, "Hash": 7}
    assert report.selected(variant, said) == {
        "instructions": 25,
        "inverse throughput": 2,
        "registers": 24,
        "spills": 0,
    }
    assert report.cost({"instructions": 25, "cycles": 30.4, "spills": 2}) == "30 (2 spills)"
    assert report.cost({}) == "-"


def test_memory_beyond_registers_is_no_spill() -> None:
    """NVIDIA's driver says how large it is, and an array may be in it."""
    variant = Variant(("one",), "pixels", "pixels", "", invocations=1, useful_nbytes=16)
    said = {"Instruction count": 877, "Delays": 3366, "Number of GPRs": 26, "SLM Size": 256}
    assert report.selected(variant, said) == {
        "instructions": 877,
        "cycles": 3366,
        "registers": 26,
        "scratch bytes": 256,
    }


@pytest.mark.parametrize(
    ("lines", "memory"),
    [
        (
            "s_buffer_load_dwordx4 s[4:7], s[0:3], null\n\tv_add_u32 v0, v0, v1\n\tds_write_b128 v0, v[2:5]",
            2,
        ),
        ("ugm MsgDesc: ( load, a32, d32, V4, dst_len = 8\nslm MsgDesc: ( fence, a32, threadgroup", 1),
        ("@p0 st.local.strong.cta.b128 [rZ+0x10] r0..4\nr1 = ldc.b32 c[0x0][0x0]\nr2 = mov r1", 2),
        ("isam.v.base0 (u32)r0.x\nldc.u.offset0.4.imm.base0 r48.w\nstc.u32 c[0]\n(ss)stl.u32 l[r0.x]", 3),
        ("LD_BUFFER.i128.slot0 @r0\nLEA_BUFFER.slot1 @r4\nSTORE.i128 @r0\nIADD.u32 r0", 2),
    ],
    ids=["AMD", "Intel", "NVIDIA", "Adreno", "Mali"],
)
def test_loads_and_stores_of_an_assembly_are_counted(lines: str, memory: int) -> None:
    assert listing_statistics(lines) == {"Memory Instructions": memory}


def test_the_delays_of_nvidias_listing_are_added() -> None:
    listing = "r0 = mov ur0 // delay=9\nr1 = ld.global.a64.constant.b32 [r6..8] // delay=5 wr:0"
    assert listing_statistics(listing) == {"Memory Instructions": 1, "Delays": 14}


def test_panvks_figures_are_read_off_its_line() -> None:
    said = (
        "SHADER-DB: MESA_SHADER_COMPUTE shader: 816 inst, 307.500000 cycles, 0.000000 fma, 307.500000 ls,"
        " 416 quadwords, 2 threads, 1 loops, 3:4 spills:fills"
    )
    assert panvk_statistics(["another", said]) == {
        "Instruction Count": 816,
        "Cycle Count": 307.5,
        "Threads": 2,
        "Spill Count": 3,
    }
    assert panvk_statistics(["another"]) == {}


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


def test_missing_requirements_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found: list[Any] = [None, "/usr/bin/node"]
    monkeypatch.setattr("shutil.which", lambda _: found[0])
    monkeypatch.setattr(report, "NPM", tmp_path)
    for message in ("needs node", "naga is not installed"):
        console = Console(record=True, width=200)
        report.run_compilers(console, Namespace())
        assert message in console.export_text()
        found.pop(0)


@pytest.mark.parametrize("stem", KEPT)
def test_what_is_kept_is_of_todays_plans(stem: str) -> None:
    """Whoever changes what runs on a GPU asks the compilers again."""
    kept: dict[str, list[str]] = {}
    for variant in KEPT[stem]["variants"]:
        for name in variant["slices"]:
            kept.setdefault(name, []).append(variant["kernel"])
    for case in ASKED:
        kernels = {step.kernel.value for step in planned(case).steps if isinstance(step, OnGrid)}
        assert set(kept.get(case.name, [])) == kernels, case.name
    assert any("NAVI21" in device for device in KEPT[stem]["devices"].values())
    assert report.stem_of(KEPT[stem]) == stem


def test_all_compilers_have_been_asked() -> None:
    assert len(KEPT) >= 2
    names = {driver.name for driver in drivers.DRIVERS}
    assert any(names == set(kept["variants"][0]["compilers"]) for kept in KEPT.values())


@pytest.mark.parametrize("stem", KEPT)
def test_what_is_kept_is_drawn(tmp_path: Path, stem: str) -> None:
    draw_compilers(KEPT[stem], tmp_path / "deep" / "chart.png")
    with Image.open(tmp_path / "deep" / "chart.png") as image:
        assert image.width > 500
        assert len(np.unique(np.asarray(image.convert("L")))) > 50


@pytest.mark.parametrize("stem", KEPT)
def test_no_kernel_spills_registers(stem: str) -> None:
    for variant in KEPT[stem]["variants"]:
        for name, said in variant["compilers"].items():
            assert said.get("spills", 0) == 0, (name, variant["slices"])


def test_loops_of_one_iteration_are_counted_once() -> None:
    text = (
        "fn f() { while (element < stop) { if (a) { b(); } element = row_stop; } } fn g() { loop { h(); } }"
    )
    assert once(text) == text.replace("row_stop; }", "row_stop; break;\n}")
    assert "break" not in once("fn f() { for (var k = 0u; k < 4u; k++) { h(); } }")

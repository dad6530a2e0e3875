"""The report of `wgslice doctor`: as text, as JSON, its exit status, and what is known of drivers."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from helpers import MEASURED, on_one_adapter
from trials import trying

import wgslice as wg
from wgslice.cli import main
from wgslice.doctor.report import QUIRKS, TESTED_SHARE, Report, cost_ratios, examine, quirks_of
from wgslice.doctor.selftest import KernelTest
from wgslice.plans.kernels import Kernel

KEYS = {
    "": [
        *("passed", "versions", "system", "adapter", "accelerations", "limits", "features", "profile"),
        *(
            "costs",
            "cost_ratios",
            "notes",
            "omits_checks",
            "seconds",
            "kernels",
            "quirks",
            "checks",
            "speeds",
        ),
    ],
    "versions": ["wgslice", "wgpu", "wgpu-native", "numpy", "python"],
    "system": ["platform", "processor", "cores"],
    "adapter": ["name", "backend", "kind", "driver", "host"],
    "limits": [
        "max-buffer-size",
        "max-storage-buffer-binding-size",
        "min-storage-buffer-offset-alignment",
        "max-compute-workgroups-per-dimension",
        "max-compute-invocations-per-workgroup",
        "max-compute-workgroup-storage-size",
        "max-storage-buffers-per-shader-stage",
    ],
    "cost_ratios": ["copy_bytes_per_s", "shader_bytes_per_s"],
    "kernels": ["kernel", "trials", "wrong", "failure", "passed"],
    "quirks": ["what", "source", "kernels", "check"],
    "checks": ["name", "failure", "passed"],
    "speeds": ["name", "plan", "nbytes", "seconds", "gigabytes_per_s"],
}


pytestmark = pytest.mark.xdist_group("doctor")  # one process, so that each adapter has one report


@pytest.fixture(scope="session")
def report(device: wg.Device) -> Report:
    shown: list[tuple[float, str]] = []
    with trying({Kernel.SLICE1, Kernel.EXTRACT_WINDOWS}):
        found = examine(str(device.adapter), lambda *what: shown.append(what))
    (begun, first), *tested = shown
    assert (begun, first) == (0, "device")
    assert sorted(kernel for _, kernel in tested) == sorted(test.kernel for test in found.tested.kernels)
    assert [done for done, _ in tested] == sorted(done for done, _ in tested)
    assert tested[-1][0] == TESTED_SHARE
    return found


def failing(report: Report) -> Report:
    """The report, had one kernel been wrong."""
    *kernels, last = report.tested.kernels
    wrong = replace(last, wrong=3, failure="(7, 31) elements: byte 5 is 0x00 instead of 0x17")
    return replace(report, tested=replace(report.tested, kernels=(*kernels, wrong)))


def test_every_line_of_a_report_is_right(report: Report) -> None:
    shown, count = str(report), len(report.tested.kernels)
    for fact in (
        f"wgslice {wg.__version__}, wgpu 0.",
        f"adapter     {report.tested.adapter}\n",
        f"driver      {report.tested.adapter.driver}\n",
        "max-storage-buffer-binding-size ",
        f"{count} of {count} kernels are correct on {report.tested.adapter}",
    ):
        assert fact in shown
    for test in report.tested.kernels:
        assert f"  {test.kernel}: correct in {test.trials} trials\n" in shown
    for quirk in quirks_of(report.tested.adapter):
        assert f"  {quirk.what}" in shown
        assert f" ({quirk.source})\n" in shown
    assert "WRONG" not in shown
    assert "\x1b" not in shown


def test_speeds_are_of_plans_of_their_names(report: Report) -> None:
    plans = {speed.name: speed.plan for speed in report.speeds}
    assert list(plans) == ["buffer copy", "aligned rows", "unaligned rows", "permuted", "pixels, RGB to BGR"]
    assert plans["buffer copy"] == "coalesced (1048576,) x 16 B, buffer copy"
    assert plans["aligned rows"].startswith("coalesced (4096, 256) x 16 B, ")
    assert plans["unaligned rows"].startswith("coalesced (4096, 4096) x 1 B, ")
    assert plans["permuted"].startswith("coalesced (2048, 2048) x 4 B, ")
    assert plans["pixels, RGB to BGR"].startswith("coalesced (5591040, 3) x 1 B, ")
    for speed in report.speeds:
        assert 2**24 - 2**13 < speed.nbytes <= 2**24
        assert speed.gigabytes_per_s == pytest.approx(speed.nbytes / speed.seconds / 1e9)
        assert f"{speed.gigabytes_per_s:.2f} GB/s  {speed.plan}" in str(report)


@pytest.mark.parametrize(
    ("copy", "shader", "is_advised"),
    [(1.0, 1.0, False), (1.49, 0.67, False), (1.51, 1.0, True), (1.0, 0.66, True), (0.2, 6.0, True)],
)
def test_a_cost_model_that_is_far_off_is_to_be_tuned(
    report: Report, copy: float, shader: float, is_advised: bool
) -> None:
    found = replace(report, cost_ratios={"copy_bytes_per_s": copy, "shader_bytes_per_s": shader})
    (line,) = (line for line in str(found).splitlines() if line.startswith("measured "))
    facts = f"buffer copy bandwidth {copy:.2f}, shader bandwidth {shader:.2f} of the cost model's"
    advice = "; more than 1.5 times off: run `wgslice tune`" * is_advised
    assert line == f"measured    {facts}{advice}"
    assert found.as_json()["cost_ratios"] == found.cost_ratios


@on_one_adapter
def test_measured_bandwidths_are_divided_by_those_of_the_model(
    device: wg.Device, kept: Path, measured: list[wg.Device], monkeypatch: pytest.MonkeyPatch
) -> None:
    faster = {"copy_bytes_per_s": 4.0, "shader_bytes_per_s": 0.5}
    monkeypatch.setattr(
        "wgslice.doctor.report.measure_constants",
        lambda *_: {name: value * faster.get(name, 9.0) for name, value in MEASURED.items()},
    )
    made = wg.Device.request(device.adapter)
    shipped_bytes_per_s = made.limits.profile.costs.copy_bytes_per_s
    expected = 4.0 * MEASURED["copy_bytes_per_s"] / shipped_bytes_per_s
    assert cost_ratios(made)["copy_bytes_per_s"] == pytest.approx(expected)
    wg.tune(made)
    assert cost_ratios(made) == pytest.approx(faster)


@pytest.mark.parametrize("of", [lambda report: report, failing], ids=["right", "wrong"])
def test_the_keys_of_the_json_are_these(report: Report, of: type) -> None:
    shown = json.loads(json.dumps(of(report).as_json()))
    assert list(shown) == KEYS[""]
    for name, keys in KEYS.items():
        value = shown[name] if name else shown
        for entry in value if isinstance(value, list) else [value]:
            assert list(entry) == keys, name
    assert shown["passed"] == all(kernel["passed"] for kernel in shown["kernels"])
    assert shown["passed"] == (of is not failing)
    assert len(shown["speeds"]) == 5


def test_a_wrong_kernel_is_status_1_and_named(
    report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("wgslice.cli.examine", lambda adapter, progress: failing(report))
    name = report.tested.kernels[-1].kernel
    assert main(["doctor"]) == 1
    shown = capsys.readouterr()
    assert (
        f"  {name}: WRONG in 3 of {report.tested.kernels[-1].trials} trials; (7, 31) elements: " in shown.out
    )
    assert (
        f"{len(report.tested.kernels) - 1} of {len(report.tested.kernels)} kernels are correct" in shown.out
    )
    assert "disables failed kernels" in shown.out
    assert shown.err == ""
    assert main(["doctor", "--json"]) == 1
    assert json.loads(capsys.readouterr().out)["passed"] is False


def test_an_adapter_that_is_missing_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--adapter", "voodoo"]) == 1
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("wgslice: error: no adapter has 'voodoo' in its name or backend")
    assert len(shown.err.splitlines()) == 1


def test_progress_without_a_terminal_is_a_line_per_tenth(
    report: Report, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def examining(_: str | None, progress: Callable[[float, str], None]) -> Report:
        for done, what in ((0, "device"), (0.03, "rows"), (0.1, "tiles"), (0.19, "pixels"), (0.42, "gather")):
            progress(done, what)
        return report

    monkeypatch.setattr("wgslice.cli.examine", examining)
    assert main(["doctor", "--json"]) == 0
    shown = capsys.readouterr()
    assert shown.err == " 10% tiles\n 42% gather\n"
    assert json.loads(shown.out)["passed"]


@pytest.mark.slow
@on_one_adapter
def test_the_command_prints_progress_alone_on_stderr(device: wg.Device) -> None:
    command = [sys.executable, "-m", "wgslice.cli", "doctor", "--json", "--adapter", str(device.adapter)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert re.fullmatch(r"(?: *\d+% \w+\n)+", done.stderr)
    shown = json.loads(done.stdout)
    assert shown["passed"]
    assert shown["adapter"]["name"] == device.adapter.name
    assert len(shown["kernels"]) == len(Kernel)
    assert shown["notes"] == []


LAVAPIPE = wg.Adapter("llvmpipe (LLVM 15.0.6, 256 bits)", "Vulkan", "CPU", "Mesa 22.3.6 (LLVM 15.0.6)")
KNOWN = {
    LAVAPIPE: ["take several times as long", "Dawn"],
    replace(LAVAPIPE, driver="Mesa 25.0.7-2+deb13u1 (LLVM 19.1.7)"): [],
    replace(LAVAPIPE, driver="Mesa 26.1.3 (LLVM 22.1.0)"): ["LLVM error"],
    replace(LAVAPIPE, backend="OpenGL", driver="4.5 (Core Profile) Mesa 22.3.6"): [
        *("two locks", "blocks until the GPU is done", "remainders"),
    ],
    wg.Adapter("SwiftShader Device (Subzero)", "Vulkan", "CPU", "SwiftShader driver"): ["allocates memory"],
    wg.Adapter("Apple M2", "Metal", "IntegratedGPU", ""): ["stale values", "left out", "deadlock"],
    wg.Adapter("AMD Radeon Pro W5700X", "Metal", "DiscreteGPU", ""): ["stale values", "loops"],
    wg.Adapter("Microsoft Basic Render Driver", "D3D12", "CPU", ""): ["barriers"],
    wg.Adapter("AMD Radeon RX 5700 XT", "Vulkan", "DiscreteGPU", "AMD proprietary driver 25.5.1"): [
        "zeroing"
    ],
    wg.Adapter("AMD Radeon RX 5700 XT (RADV NAVI10)", "Vulkan", "DiscreteGPU", "radv Mesa 25.0.7"): [],
    wg.Adapter("Mali-G715", "Vulkan", "IntegratedGPU", "v1.r44p1"): ["atomics"],
    wg.Adapter("NVIDIA GeForce RTX 4090", "Vulkan", "DiscreteGPU", "580.65.06"): [],
}


@pytest.mark.parametrize("adapter", KNOWN, ids=str)
def test_quirks_are_those_of_the_driver(adapter: wg.Adapter) -> None:
    found = [quirk.what for quirk in quirks_of(adapter)]
    assert len(found) == len(KNOWN[adapter])
    for what, words in zip(found, KNOWN[adapter], strict=True):
        assert words in what


def test_a_fault_is_printed_with_the_kernels_that_depend_on_it(report: Report) -> None:
    tests = [KernelTest("tiles", 4, 0, ""), KernelTest("wide_tiles", 4, 1, "byte 5 is 0x00")]
    adapter = wg.Adapter("Microsoft Basic Render Driver", "D3D12", "CPU", "")
    shown = replace(report, tested=replace(report.tested, adapter=adapter, kernels=tuple(tests)))
    (line,) = [line for line in str(shown).splitlines() if "barriers" in line]
    assert "synchronize; kernels that depend on it, here: tiles: correct, wide_tiles: WRONG (https" in line
    (quirk,) = shown.as_json()["quirks"]
    assert quirk["kernels"] == ["tiles", "wide_tiles"]


def test_every_check_is_that_of_a_quirk(report: Report) -> None:
    assert {quirk.check for quirk in QUIRKS} == {"", *(check.name for check in report.checks)}
    for quirk in QUIRKS:
        assert not quirk.check or f"  {quirk.check}: correct ({quirk.source})\n" in str(report)


def test_every_quirk_has_a_source() -> None:
    for quirk in QUIRKS:
        assert "https://" in quirk.source or quirk.source.startswith("measured by wgslice: "), quirk.what
        assert {*quirk.kernels} <= {kernel.value for kernel in Kernel}

"""`tune` and `wgslice tune`: a machine is measured, planned by, kept, shown and forgotten."""

from __future__ import annotations

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FACTORS, MEASURED, on_one_adapter

import wgslice as wg
from wgslice.calibration.measure import CONSTANTS, measure_constants
from wgslice.cli import main
from wgslice.doctor.selftest import KernelTest


def test_a_tuned_device_plans_by_its_constants(
    device: wg.Device, kept: Path, measured: list[wg.Device]
) -> None:
    made = wg.Device.request(device.adapter)
    cheap_copies = replace(made.limits.profile.costs, copy_s=1e-12, copy_bytes_per_s=1e15)
    made.limits = replace(made.limits, profile=replace(made.limits.profile, costs=cheap_copies))
    x = wg.asarray(np.arange(64 * 4096, dtype=np.float32).reshape(64, 4096), device=made)
    view = x[1:, 4:-4]
    descriptor = wg.Slice1(
        input=wg.TensorDesc("float32", x.shape),
        output=wg.TensorDesc("float32", view.shape),
        offsets=(1, 4),
        sizes=view.shape,
    )
    compiled = made.compile(descriptor)
    assert "buffer copies" in str(wg.explain(view))
    tuning = wg.tune(made)
    assert measured == [made]
    assert "buffer copies" not in wg.explain(view).summary
    assert "buffer copies" in str(compiled.plan)
    assert "buffer copies" not in made.compile(descriptor).plan.summary
    np.testing.assert_array_equal(view.numpy(), np.arange(64 * 4096).reshape(64, 4096)[1:, 4:-4])
    assert tuning.path is not None
    assert tuning.path.parent == kept
    later = wg.Device.request(device.adapter).limits.profile.costs
    assert later.copy_s == tuning.costs.copy_s == MEASURED["copy_s"]
    assert later.origin == tuning.costs.origin == made.limits.profile.costs.origin


@on_one_adapter
def test_a_tuning_prints_its_file_and_ends_in_a_verdict(
    device: wg.Device, kept: Path, measured: list[wg.Device]
) -> None:
    shown: list[tuple[float, str]] = []
    made = wg.Device.request(device.adapter)
    tuning = wg.tune(made, progress=lambda done, what: shown.append((done, what)))
    parts = [(0, "large dispatch"), (0.05, "one copy"), (0.1, ""), (0.55, "kernel rows"), (1, "")]
    assert [what for _, what in shown] == [what for _, what in parts]
    assert [done for done, _ in shown] == pytest.approx([done for done, _ in parts])
    assert tuning.device is made
    assert (tuning.record.constants, tuning.record.factors) == (MEASURED, FACTORS)
    assert 0 <= tuning.seconds < 60
    lines = str(tuning).splitlines()
    assert f"stored in   {tuning.path}" in lines
    assert f"cost model  {tuning.costs.origin}" in lines
    assert "kernels     2 cost classes measured, at 0.25 to 4.00 times the shipped seconds" in lines
    assert re.fullmatch(r"[1-9]\d of 168 typical slices now use another strategy; .*x faster", lines[-1])
    assert repr(tuning).startswith(f"Tuning({made}, 5 constants, ")
    with pytest.raises(TypeError, match="tune: device is of type int: must be a Device"):
        wg.tune(7)  # type: ignore[arg-type]  # which is what is refused
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'voodoo' in its name or backend"):
        wg.tune("voodoo")


@pytest.mark.every_adapter
def test_measured_constants_are_possible(device: wg.Device) -> None:
    shares = list[float]()
    found = measure_constants(device, lambda share, _: shares.append(share))
    assert found.keys() == CONSTANTS.keys()
    for name, value in found.items():
        assert (1e6 < value < 1e14) if name.endswith("bytes_per_s") else (1e-9 <= value < 1e-1)
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0, 1)


@pytest.mark.parametrize("missing", ["the folder", "the library"])
@on_one_adapter
def test_what_cannot_be_kept_holds_for_the_device(
    device: wg.Device,
    kept: Path,
    measured: list[wg.Device],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    missing: str,
) -> None:
    if missing == "the library":
        monkeypatch.setitem(sys.modules, "platformdirs", None)
    else:
        kept.parent.mkdir(parents=True)
        kept.write_text("a file in the folder's place")
    made = wg.Device.request(device.adapter)
    tuning = wg.tune(made)
    assert tuning.path is None
    assert made.limits.profile.costs.copy_s == MEASURED["copy_s"]
    assert "stored in   no file" in str(tuning)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wgslice: the measured cost parameters are not stored: ")
    assert ("pip install platformdirs" in line) == (missing == "the library")
    assert "scaled to" not in wg.Device.request(device.adapter).limits.profile.costs.origin


@pytest.fixture
def tuned(device: wg.Device, kept: Path, measured: list[wg.Device]) -> list[str]:
    """Words of a command line that name the adapter."""
    return ["--adapter", str(device.adapter)]


def test_the_command_measures_keeps_shows_and_forgets(
    tuned: list[str], kept: Path, measured: list[wg.Device], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["tune", "--show", *tuned]) == 0
    assert "`wgslice tune` measures it" in capsys.readouterr().out
    assert measured == []
    assert main(["tune", *tuned]) == 0
    printed = capsys.readouterr()
    (path,) = kept.glob("*.json")
    assert f"stored in   {path}" in printed.out
    assert printed.err == ""  # no bar where the output is no terminal
    assert main(["tune", "--show", *tuned]) == 0
    assert capsys.readouterr().out == printed.out
    assert len(measured) == 1
    assert main(["tune", "--forget", *tuned]) == 0
    assert f"removed: {path}\n" in capsys.readouterr().out
    assert main(["tune", "--forget"]) == 0
    assert capsys.readouterr().out == "nothing was stored\n"
    assert main(["tune", "--show", *tuned]) == 0
    assert "`wgslice tune` measures it" in capsys.readouterr().out


@on_one_adapter
def test_the_table_has_each_parameter_with_its_unit(
    tuned: list[str], kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    row = re.compile(r"^(\w[\w ]+\w) {2,}(\S+) +[\d.]+ (us|GB/s) +\w.*$", re.MULTILINE)

    def rows() -> dict[str, list[str]]:
        return {label: cells for label, *cells in row.findall(capsys.readouterr().out)}

    assert main(["tune", "--show", "--table", *tuned]) == 0
    assert {measured for measured, _ in rows().values()} == {"-"}
    assert main(["tune", "--table", *tuned]) == 0
    assert rows() == {
        "time per submission": ["100", "us"],
        "time per dispatch": ["200", "us"],
        "time per buffer copy": ["1e+06", "us"],
        "buffer copy bandwidth": ["1e+06", "GB/s"],
        "shader bandwidth": ["3", "GB/s"],
    }


@on_one_adapter
def test_programs_read_json(
    device: wg.Device,
    tuned: list[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Which is a file for WGSLICE_PROFILE, too."""
    assert main(["tune", "--show", "--json", *tuned]) == 0
    shipped = json.loads(capsys.readouterr().out)
    assert set(shipped) == {"path", "origin", "constants"}
    assert shipped["path"] is None
    assert main(["tune", "--json", *tuned]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["constants"] == MEASURED
    assert main(["tune", "--show", "--json", *tuned]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(text)
    assert main(["tune", "--forget", "--json"]) == 0
    assert json.loads(text)["path"] in json.loads(capsys.readouterr().out)["forgotten"]
    (tmp_path / "named.json").write_text(text)
    monkeypatch.setenv("WGSLICE_PROFILE", str(tmp_path / "named.json"))
    assert wg.Device.request(device.adapter).limits.profile.costs.copy_s == 1.0


@on_one_adapter
def test_a_named_file_is_preferred_to_the_tuning_cache(
    device: wg.Device, tuned: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WGSLICE_PROFILE", "shipped")
    assert main(["tune", *tuned]) == 0
    line = "wgslice: WGSLICE_PROFILE=shipped is set, so new devices do not load this measurement\n"
    assert capsys.readouterr().err == line
    assert main(["tune", "--show", *tuned]) == 0
    assert "scaled to" not in capsys.readouterr().out
    monkeypatch.delenv("WGSLICE_PROFILE")
    assert main(["tune", "--show", *tuned]) == 0
    assert "scaled to what `wgslice tune` measured" in capsys.readouterr().out


@on_one_adapter
def test_the_command_names_what_to_install(
    device: wg.Device,
    tuned: list[str],
    measured: list[wg.Device],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with monkeypatch.context() as without:
        without.setitem(sys.modules, "platformdirs", None)
        for command in (["tune"], ["tune", "--forget"]):
            assert main(command) == 1
            assert "of the extra `tune` of wgslice: pip install platformdirs\n" in capsys.readouterr().err
        assert main(["tune", "--show", *tuned]) == 0
    assert measured == []
    capsys.readouterr()
    monkeypatch.setitem(sys.modules, "rich.console", None)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["tune", "--json", *tuned]) == 0  # without rich
    printed = capsys.readouterr()
    assert "55% kernel rows" in printed.err
    json.loads(printed.out)


@on_one_adapter
def test_what_is_measured_and_not_kept_is_printed_all_the_same(
    device: wg.Device, tuned: list[str], kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept.parent.mkdir(parents=True)
    kept.write_text("a file in the folder's place")
    assert main(["tune", "--json", *tuned]) == 1
    printed = capsys.readouterr()
    assert json.loads(printed.out)["path"] is None
    assert len(printed.err.splitlines()) == 1


@on_one_adapter
def test_a_bar_moves_on_a_terminal(
    device: wg.Device, tuned: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    assert main(["tune", "--json", *tuned]) == 0
    printed = capsys.readouterr()
    assert "100%" in printed.err
    json.loads(printed.out)


def test_one_thing_is_asked_for_at_a_time(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(["tune", "--show", "--forget"])
    assert exit.value.code == 2
    assert "not allowed with argument --show" in capsys.readouterr().err


@on_one_adapter
@pytest.mark.parametrize("slow", ["selftest", "tune"])
def test_a_slow_measurement_keeps_what_a_quick_one_wrote(
    device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch, slow: str
) -> None:
    """The quick one runs while the slow one measures."""
    fresh, measuring = wg.Device.request(device.adapter), list[str]()
    writers = {"selftest": wg.selftest, "tune": wg.tune}

    def measured_as(name: str, result: Any) -> Any:
        measuring.append(name)
        if measuring == [slow]:
            (quick,) = writers.keys() - {slow}
            writers[quick](fresh)
        return result

    failed = [KernelTest("slice1", 2, 1, "a wrong byte"), KernelTest("rows", 2, 0, "")]
    monkeypatch.setattr("wgslice.doctor.selftest.run", lambda *_: measured_as("selftest", failed))
    monkeypatch.setattr("wgslice.calibration.tune.measure_constants", lambda *_: MEASURED)
    monkeypatch.setattr("wgslice.calibration.tune.measure_factors", lambda *_: measured_as("tune", FACTORS))
    writers[slow](fresh)
    assert len(measuring) == 2
    assert [kernel.value for kernel in fresh.limits.disabled] == ["slice1"]
    assert fresh.limits.profile.costs.copy_s == MEASURED["copy_s"]


@on_one_adapter
def test_limits_are_read_and_written_under_one_lock(device: wg.Device) -> None:
    made = wg.Device.request(device.adapter)
    held: list[bool] = []

    def update(limits: Any) -> Any:
        held.append(made.limits_lock.locked())
        return replace(limits, workgroups=17)

    made.update_limits(update)
    assert held == [True]
    assert made.limits.workgroups == 17

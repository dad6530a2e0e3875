"""`tune` and `wgslice tune`: what is measured is planned by, kept, shown and forgotten."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path

import numpy as np
import pytest
from helpers import on_one_adapter
from records import MEASURED, costs_from

import wgslice as wg
from wgslice.cli import main
from wgslice.kept_costs.record import figures_of
from wgslice.plans.costs import shipped
from wgslice.tuning.measure import measure_costs, time_all
from wgslice.tuning.table import table


def test_a_tuned_device_plans_by_its_figures(
    device: wg.Device, kept: Path, measured: list[wg.Device]
) -> None:
    made = wg.Device.request(device.adapter)
    made.limits = dataclasses.replace(
        made.limits, profile=dataclasses.replace(made.limits.profile, costs=costs_from(copy_s=1e-12))
    )
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
    assert "buffer copies" not in str(wg.explain(view))
    assert "buffer copies" in str(compiled.plan)
    assert "buffer copies" not in str(made.compile(descriptor).plan)
    np.testing.assert_array_equal(view.numpy(), np.arange(64 * 4096).reshape(64, 4096)[1:, 4:-4])
    assert tuning.path is not None
    assert tuning.path.parent == kept
    assert figures_of(wg.Device.request(device.adapter).limits.profile.costs) == figures_of(MEASURED)


@on_one_adapter
def test_a_tuning_says_what_was_measured(device: wg.Device, kept: Path, measured: list[wg.Device]) -> None:
    shown: list[tuple[float, str]] = []
    made = wg.Device.request(device.adapter)
    tuning = wg.tune(made, progress=lambda done, what: shown.append((done, what)))
    assert shown == [(0, "buffer copies"), (0.5, "rows 4 beside"), (1, "")]
    assert tuning.device is made
    assert figures_of(tuning.costs) == figures_of(MEASURED)
    assert 0 <= tuning.seconds < 60
    text = str(tuning)
    for part in (device.adapter.name, device.adapter.driver, str(tuning.path), "1e+06 us", "1e+06 GB/s"):
        assert part in text
    assert table(MEASURED) in text
    assert repr(tuning).startswith(f"Tuning({made}, {len(MEASURED.works)} classes of work, ")
    with pytest.raises(TypeError, match="tune: device is of type int: must be a Device"):
        wg.tune(7)  # type: ignore[arg-type]  # which is what is refused
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'voodoo' in its name or backend"):
        wg.tune("voodoo")


def test_the_table_has_every_figure_with_its_unit() -> None:
    lines = table(costs_from(submission_s=0.000123456, clear_bytes_per_s=3.456e12)).splitlines()
    assert lines[0].split() == ["to", "submit", "and", "wait", "123", "us"]
    assert lines[4].split()[-2:] == ["3460", "GB/s"]
    assert lines[8].split()[-5:] == ["GB/s", "written", "ns", "an", "invocation"]
    works = costs_from().works
    assert len(lines) == 9 + len(works)
    for line, (name, work) in zip(lines[9:], works.items(), strict=True):
        *words, rate, each = line.split()
        assert " ".join(words) == name
        assert float(rate) * 1e9 == pytest.approx(work.bytes_per_s, rel=5e-3)
        assert float(each) / 1e9 == pytest.approx(work.invocation_s, rel=5e-3)


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
    made = wg.Device.request(device.adapter)
    if missing == "the library":
        monkeypatch.setitem(sys.modules, "platformdirs", None)
    else:
        kept.parent.mkdir(parents=True)
        kept.write_text("a file in the folder's place")
    tuning = wg.tune(made)
    assert tuning.path is None
    assert figures_of(made.limits.profile.costs) == figures_of(MEASURED)
    assert "kept in    no file" in str(tuning)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wgslice: the figures that were measured are not kept: ")
    assert ("pip install platformdirs" in line) == (missing == "the library")
    assert "tuned here" not in wg.Device.request(device.adapter).limits.profile.costs.origin


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
    assert f"kept in    {path}" in printed.out
    assert table(MEASURED) in printed.out
    assert printed.err == ""  # no bar where nobody sees it move
    assert main(["tune", "--show", *tuned]) == 0
    assert capsys.readouterr().out == printed.out
    assert len(measured) == 1
    assert main(["tune", "--forget", *tuned]) == 0
    assert capsys.readouterr().out == f"forgotten: {path}\n"
    assert main(["tune", "--forget"]) == 0
    assert capsys.readouterr().out == "nothing was kept\n"
    assert main(["tune", "--show", *tuned]) == 0
    assert "`wgslice tune` measures it" in capsys.readouterr().out


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
    assert set(shipped) == {"path", "origin", "costs"}
    assert shipped["path"] is None
    assert main(["tune", "--json", *tuned]) == 0
    text = capsys.readouterr().out
    assert json.loads(text)["costs"] == figures_of(MEASURED)
    assert main(["tune", "--show", "--json", *tuned]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(text)
    assert main(["tune", "--forget", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"forgotten": [json.loads(text)["path"]]}
    (tmp_path / "named.json").write_text(text)
    monkeypatch.setenv("WGSLICE_PROFILE", str(tmp_path / "named.json"))
    assert figures_of(wg.Device.request(device.adapter).limits.profile.costs) == figures_of(MEASURED)


@on_one_adapter
def test_a_file_that_is_named_goes_before_what_is_kept(
    device: wg.Device, tuned: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WGSLICE_PROFILE", "shipped")
    assert main(["tune", *tuned]) == 0
    line = "wgslice: WGSLICE_PROFILE=shipped is set, so devices do not look at what was kept\n"
    assert capsys.readouterr().err == line
    assert main(["tune", "--show", *tuned]) == 0
    assert "tuned here" not in capsys.readouterr().out
    monkeypatch.delenv("WGSLICE_PROFILE")
    assert main(["tune", "--show", *tuned]) == 0
    assert "tuned here" in capsys.readouterr().out


@on_one_adapter
def test_the_command_says_what_to_install(
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
    assert "50% rows 4 beside" in printed.err
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


def test_a_driver_that_compiles_for_long_leaves_no_figure_out(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first turn is cut; what it leaves out is as fast as it is known to be, on a machine like this."""
    monkeypatch.setattr("wgslice.tuning.measure.MOST_S", 0.4)
    known, shares = shipped("lavapipe-25-0"), list[float]()
    timed = time_all(device, known, lambda share, _: shares.append(share))
    assert 0 < len(timed.works) < len(known.works)
    assert shares == sorted(shares)
    assert shares[-1] == 1
    found = measure_costs(device, lambda _, __: None)
    assert found.works.keys() == known.works.keys()
    assert found.is_tuned
    assert all(work.bytes_per_s > 0 <= work.invocation_s for work in found.works.values())

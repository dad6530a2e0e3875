"""Records of what work costs: written, read back, found by devices, and refused when something is wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import on_one_adapter
from records import costs_from, record_of

import wgslice as wg
from wgslice.gpu.adapter import Adapter
from wgslice.kept_costs import processor
from wgslice.kept_costs.record import RecordError, fallbacks, figures_of, read_record
from wgslice.kept_costs.store import NoFolderError, find, folder, forget, keep
from wgslice.plans.costs import Costs

FALLBACK = min(fallbacks())
ADAPTER = Adapter("Voodoo (tm) 5", "Vulkan", "CPU", "Mesa 99")


def text_of(content: Any) -> bytes:
    return json.dumps(content).encode()


def find_it() -> Costs | None:
    """What a device on the adapter would find."""
    kept = find(ADAPTER.name, ADAPTER.backend, ADAPTER.driver)
    return kept and kept.record.costs


def test_a_record_comes_back_as_it_was() -> None:
    record = record_of(ADAPTER)
    back = read_record(text_of(record.as_json()))
    assert figures_of(back.costs) == figures_of(record.costs)
    assert len(set(map(str, back.costs.works.values()))) == len(record.costs.works) > 50
    assert replace(back, costs=record.costs) == record
    assert back.costs.origin == "figures tuned here on 2026-02-03"


def test_every_figure_has_its_unit_in_its_name() -> None:
    content = record_of(ADAPTER).as_json()
    costs = content["costs"]
    works = costs.pop("works")
    names = [*costs, *(name for work in works.values() for name in work), "measured_in_s"]
    assert all(name.endswith("_s") for name in names)
    assert set(content) == {"format", "wgslice", "date", "measured_in_s", "adapter", "processor", "costs"}


def changed(path: str, value: Any = None) -> bytes:
    """A record's text with one field set, or without it."""
    content = record_of(ADAPTER).as_json()
    *outer, last = path.split("/")
    inner: Any = content
    for name in outer:
        inner = inner[name]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return text_of(content)


DEFECTS = {
    "empty": (b"", "it is empty"),
    "blank": (b" \n", "it is empty"),
    "binary": (b"\xff\xfe\x00\xd8", "it is no JSON: "),
    "prose": (b"hello", "it is no JSON: "),
    "a list": (b"[1, 2]", "it holds no JSON object"),
    "brackets": (b"[" * 200_000, "it is no JSON of this kind: too many brackets"),
    "nothing in it": (b"{}", "it lacks format"),
    "another format": (
        changed("format", "wgslice costs 2"),
        "it is from another version: its format is 'wgslice costs 2', not 'wgslice costs 1'",
    ),
    "another wgslice": (
        changed("wgslice", "9.9"),
        "it is from another version: its wgslice is '9.9', not '0.",
    ),
    "no date": (changed("date"), "it lacks date"),
    "a bad date": (changed("date", "yesterday"), "date = 'yesterday' is no date"),
    "a date in numbers": (changed("date", 2026), "date = 2026.0 is no string"),
    "no adapter": (changed("adapter"), "it lacks adapter"),
    "no driver": (changed("adapter/driver"), "it lacks adapter.driver"),
    "an adapter's number": (changed("adapter", 3), "adapter = 3.0 is no object"),
    "cores in words": (changed("processor/cores", "two"), "processor.cores = 'two' is no number"),
    "cores beyond counting": (changed("processor/cores", 10**400), "processor.cores = inf is no such number"),
    "seconds that are true": (changed("measured_in_s", True), "measured_in_s = True is no number"),
    "no costs": (changed("costs"), "it lacks costs"),
    "no dispatch": (changed("costs/dispatch_s"), "it lacks costs.dispatch_s"),
    "negative": (changed("costs/copy_s", -1.0), "costs.copy_s = -1.0 is no such number"),
    "NaN": (changed("costs/submission_s", float("nan")), "costs.submission_s = nan is no such number"),
    "infinite": (
        changed("costs/clear_bytes_per_s", float("inf")),
        "costs.clear_bytes_per_s = inf is no rate",
    ),
    "no speed": (changed("costs/copy_bytes_per_s", 0), "costs.copy_bytes_per_s = 0.0 is no rate"),
    "no works": (changed("costs/works"), "it lacks costs.works"),
    "a list of works": (changed("costs/works", [1]), "costs.works = [1.0] is no object"),
    "unknown work": (
        changed("costs/works/rows 3 beside", {}),
        "costs.works has 'rows 3 beside', which no kernel does",
    ),
    "work of no kernel": (changed("costs/works/", {}), "costs.works has '', which no kernel does"),
    "work without speed": (
        changed("costs/works/rows 4 far/bytes_per_s"),
        "it lacks costs.works.rows 4 far.bytes_per_s",
    ),
    "negative work": (
        changed("costs/works/tiles 8/invocation_s", -1e-9),
        "costs.works.tiles 8.invocation_s = -1e-09 is no such number",
    ),
    "no fallback": (
        changed(f"costs/works/{FALLBACK}"),
        f"costs.works lacks '{FALLBACK}': claim_windows takes what no other kernel does",
    ),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_damaged_file_is_told_of_once_and_not_used(
    kept: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, reason = DEFECTS[name]
    path = keep(record_of(ADAPTER))
    assert find_it() is not None
    path.write_bytes(text)
    assert find_it() is None
    assert find_it() is None
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"wgslice: {path} is ignored, shipped figures are used: {reason}")
    assert line.endswith("; `wgslice tune` measures anew, `wgslice tune --forget` removes the file")


def test_no_part_of_a_file_is_taken_for_all() -> None:
    text = text_of(record_of(ADAPTER).as_json())
    for stop in [*range(0, len(text), 331), len(text) - 1]:
        with pytest.raises(RecordError):
            read_record(text[:stop])


def test_costs_of_kernels_that_were_not_measured_may_be_missing(kept: Path) -> None:
    keep(record_of(ADAPTER)).write_bytes(changed("costs/works/tiles 8"))
    found = find_it()
    assert found is not None
    assert "tiles 8" not in found.works


@pytest.mark.parametrize(
    ("field", "other"),
    [("name", "GeForce"), ("backend", "OpenGL"), ("driver", "Mesa 98"), ("model", "Z80"), ("cores", 4000)],
)
def test_a_record_of_something_else_is_refused(
    kept: Path, capsys: pytest.CaptureFixture[str], field: str, other: str | int
) -> None:
    path = keep(record_of(ADAPTER))
    path.write_bytes(
        changed({"model": "processor/name", "cores": "processor/cores"}.get(field, f"adapter/{field}"), other)
    )
    assert find_it() is None
    words = {"name": "adapter", "model": "processor"}
    assert (
        f"it was measured with {words.get(field, field)} {other!r}, and this is " in capsys.readouterr().err
    )


def test_each_adapter_driver_and_processor_has_a_file_of_its_own(kept: Path) -> None:
    record = record_of(ADAPTER)
    subjects = [
        record.subject,
        replace(record.subject, adapter="GeForce"),
        replace(record.subject, backend="OpenGL"),
        replace(record.subject, driver="Mesa 98"),
        replace(record.subject, processor="Z80"),
        replace(record.subject, cores=4000),
    ]
    paths = {keep(replace(record, subject=subject)) for subject in subjects}
    assert len(paths) == len(subjects) == len(list(kept.iterdir()))
    assert {path.parent for path in paths} == {kept}
    long = replace(record.subject, adapter="a/b\\c:*?\n" * 100)
    assert keep(replace(record, subject=long)).parent == kept


def test_a_record_is_replaced_whole(kept: Path) -> None:
    keep(record_of(ADAPTER))
    newer = costs_from(5000)
    keep(record_of(ADAPTER, newer))
    found = find_it()
    assert found is not None
    assert figures_of(found) == figures_of(newer)
    assert len(list(kept.iterdir())) == 1


def test_a_file_that_cannot_be_read_is_told_of(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kept / record_of(ADAPTER).subject.file_name
    path.mkdir(parents=True)
    assert find_it() is None
    assert f"{path} is ignored, shipped figures are used: it cannot be read: " in capsys.readouterr().err


def test_where_there_is_no_place_nothing_is_said(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither without the library, nor a home, nor with a folder that is none."""
    assert find_it() is None
    kept.parent.parent.mkdir(exist_ok=True)
    kept.parent.write_text("no folder")
    assert find_it() is None

    def homeless(*_: Any, **__: Any) -> Path:
        raise RuntimeError("could not determine the home directory")

    with monkeypatch.context() as patched:
        patched.setattr("platformdirs.user_cache_path", homeless)
        assert find_it() is None
        with pytest.raises(NoFolderError, match="no cache folder to keep figures in: could not determine"):
            folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert find_it() is None
    with pytest.raises(NoFolderError, match="pip install platformdirs"):
        folder()
    assert capsys.readouterr().err == ""


def test_the_environment_names_a_file_or_none(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    keep(record_of(ADAPTER, costs_from(1)))
    named = tmp_path / "named.json"
    named.write_bytes(text_of(record_of(ADAPTER, costs_from(5000)).as_json()))
    for value, start in ((str(named), 5000), ("", 1)):
        monkeypatch.setenv("WGSLICE_PROFILE", value)
        found = find_it()
        assert found is not None
        assert figures_of(found) == figures_of(costs_from(start))
    monkeypatch.setenv("WGSLICE_PROFILE", "shipped")
    assert find_it() is None
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("WGSLICE_PROFILE", "none such")
    assert find_it() is None
    assert capsys.readouterr().err == (
        "wgslice: none such is ignored, shipped figures are used: "
        "it cannot be read: No such file or directory; correct or unset WGSLICE_PROFILE\n"
    )
    named.write_bytes(changed("adapter/name", "GeForce"))
    monkeypatch.setenv("WGSLICE_PROFILE", str(named))
    assert find_it() is None
    assert (
        "it was measured with adapter 'GeForce', and this is 'Voodoo (tm) 5'; correct or"
        in capsys.readouterr().err
    )


def test_what_is_forgotten_is_gone(kept: Path) -> None:
    record = record_of(ADAPTER)
    other = replace(record, subject=replace(record.subject, driver="Mesa 98"))
    paths = [keep(record), keep(other)]
    (kept / "notes.txt").write_text("not ours")
    assert forget(other.subject) == paths[1:]
    assert find_it() is not None
    assert forget() == paths[:1]
    assert find_it() is None
    assert forget() == []
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]


def test_devices_plan_by_what_was_measured(device: wg.Device, kept: Path) -> None:
    """Rows by buffer copies where those cost nothing, by a kernel where they cost a second each."""
    x = np.arange(64 * 4096, dtype=np.float32).reshape(64, 4096)
    for copy_s, by_copies in ((1e-12, True), (1.0, False)):
        keep(record_of(device.adapter, costs_from(copy_s=copy_s, copy_bytes_per_s=1e15)))
        made = wg.Device.request(device.adapter)
        assert made.limits.profile.costs.copy_s == copy_s
        view = wg.asarray(x, device=made)[1:, 4:-4]
        assert ("buffer copies" in str(wg.explain(view))) == by_copies
        np.testing.assert_array_equal(view.numpy(), x[1:, 4:-4])


SLICED = """
import numpy as np, wgslice as wg
for _ in range(2):
    device = wg.Device.request({name!r})
    print(device.limits.profile.costs.origin)
    x = np.arange(600).reshape(20, 30)
    np.testing.assert_array_equal(wg.asarray(x, device=device)[1:, ::-2].numpy(), x[1:, ::-2])
"""


def sliced(device: wg.Device, **variables: str) -> subprocess.CompletedProcess[str]:
    """Slices on two devices of a new process, whose results are looked at."""
    code = SLICED.format(name=str(device.adapter))
    environment = {**os.environ, **variables}
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )


@pytest.mark.slow
def test_another_process_loads_what_is_kept(device: wg.Device, kept: Path) -> None:
    keep(record_of(device.adapter))
    done = sliced(device)
    assert done.stdout.splitlines() == ["figures tuned here on 2026-02-03"] * 2
    assert done.stderr == ""
    assert "tuned here" not in sliced(device, WGSLICE_PROFILE="shipped").stdout


@pytest.mark.slow
@on_one_adapter
def test_a_slice_works_beside_a_damaged_file(device: wg.Device, kept: Path) -> None:
    path = keep(record_of(device.adapter))
    path.write_bytes(path.read_bytes()[:-100])
    done = sliced(device)
    assert "tuned here" not in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"wgslice: {path} is ignored")


def test_processors_are_named_as_their_systems_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "cpuinfo"
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    for text, name in (
        ("processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: B\n", "AMD EPYC"),
        (
            "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xd0d\n",
            "aarch64, implementer 0x41, part 0xd0c",
        ),
        ("isa : rv64\n", ""),
    ):
        information.write_text(text)
        assert processor.name_in(information) == name
    assert processor.processor()

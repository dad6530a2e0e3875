"""The cost model of a machine: measured on request only, kept in files, and planned by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import FACTORS, MEASURED, in_threads

import wgslice as wg
from wgslice.calibration import tune
from wgslice.calibration.measure import (
    CONSTANTS,
    best_seconds,
    buffer_copies,
    constants_of,
    with_constants,
)
from wgslice.calibration.store import (
    Machine,
    Record,
    find,
    folder,
    forget,
    keep,
    name_in,
    processor,
    read_record,
    write_json,
)
from wgslice.plans.profiles import CPU, GPU, Profile

ADAPTER = wg.Adapter("Voodoo (tm) 5", "Vulkan", "CPU", "Mesa 99")
MACHINE = Machine.of(ADAPTER)
DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
RECORD = Record(MACHINE, MEASURED, DATE, 12.34, factors=FACTORS)
X = np.arange(600 * 1000, dtype=np.uint32).reshape(600, 1000)  # 2.4 MB
ROWS = np.s_[1:, 1:]  # by a buffer copy per row, or by a kernel


def record_of(device: wg.Device, constants: dict[str, float] = MEASURED) -> Record:
    return Record(Machine.of(device.adapter), constants, DATE, 12.34)


def by_buffer_copies(device: wg.Device) -> bool:
    """Whether rows are buffer copies; the explained plan is compiled, and copies right."""
    view = wg.asarray(X, device=device)[ROWS]
    plan = wg.explain(view)
    described = wg.TensorDesc("uint32", X.shape), wg.TensorDesc("uint32", view.shape)
    assert device.compile(wg.Slice(*described, (1, 1), view.shape)).plan.summary == plan.summary
    np.testing.assert_array_equal(view.numpy(), X[ROWS])
    assert wg.explain(view).steps is plan.steps
    return "buffer copies" in plan.summary


# the cost model, scaled


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_all_constants_replace_those_of_the_cost_model(profile: Profile) -> None:
    scaled = with_constants(profile, MEASURED, "2026-02-03")
    assert constants_of(scaled) == pytest.approx(MEASURED)
    shipped = profile.costs.origin.removesuffix(", uncalibrated")
    assert scaled.costs.origin == f"{shipped}, scaled to what `wgslice tune` measured on 2026-02-03"
    bandwidth = MEASURED["copy_bytes_per_s"] / profile.costs.copy_bytes_per_s
    assert scaled.costs.clear_bytes_per_s == pytest.approx(profile.costs.clear_bytes_per_s * bandwidth)


def test_every_constant_has_its_unit_in_its_name() -> None:
    assert all(name.endswith("_s") for name in CONSTANTS)


# devices


def test_making_a_device_times_and_submits_nothing(
    device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a new device is measured")

    monkeypatch.setattr("wgslice.calibration.measure.seconds", refuse)
    monkeypatch.setattr(wg.Device, "submit", refuse)
    made = wg.Device.request(device.adapter)
    assert made.limits.profile == tune.calibrated_profile(device.adapter, None)
    assert not kept.exists()


@pytest.mark.parametrize("key", [ROWS, np.s_[:, ::-2], np.s_[:5, :7], np.s_[2:]], ids=str)
def test_the_explained_steps_are_the_objects_that_run(
    device: wg.Device, kept: Path, recorded: list[wg.Plan], key: Any
) -> None:
    """On a new device in the default configuration, from its first copy on, and on another one like it."""
    made, other = (wg.Device.request(device.adapter) for _ in range(2))
    x = wg.asarray(X, device=made)
    explained = wg.explain(x[key])
    recorded.clear()
    for _ in range(2):
        x[key].copy()
    assert [plan.steps for plan in recorded] == [explained.steps] * 2
    assert str(wg.explain(wg.asarray(X, device=other)[key])) == str(explained)


@pytest.mark.parametrize(
    ("factors", "copied"),
    [
        ({"copy_s": 1e-4, "shader_bytes_per_s": 0.2}, True),
        ({"copy_s": 1e4, "shader_bytes_per_s": 1.0}, False),
        ({"copy_s": 1.0, "shader_bytes_per_s": 1e-4}, True),
        ({"copy_s": 1e4, "shader_bytes_per_s": 1e4}, False),
    ],
)
def test_a_new_device_plans_by_what_is_kept(
    device: wg.Device, kept: Path, factors: dict[str, float], copied: bool
) -> None:
    known = constants_of(tune.calibrated_profile(device.adapter, None))
    keep(record_of(device, {name: value * factors.get(name, 1.0) for name, value in known.items()}))
    made = wg.Device.request(device.adapter)
    assert by_buffer_copies(made) == copied
    plan = str(wg.explain(wg.asarray(X, device=made)[ROWS]))
    assert "scaled to what `wgslice tune` measured on 2026-02-03" in plan


def test_a_coarse_clock_times_as_many_submissions_as_it_takes(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of 30 us each, by a clock that ticks every 100 us and takes 1 us to read."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now // 1e-4 * 1e-4

    def submit(_: object) -> None:
        nonlocal now
        now += 30e-6

    monkeypatch.setattr("wgslice.calibration.measure.perf_counter", clock)
    monkeypatch.setattr("wgslice.calibration.measure.Recorder.submit", submit)
    (found,) = best_seconds(device, [[buffer_copies(256, 1)]], 256, 1, lambda *_: None)
    assert found == pytest.approx(31e-6, rel=0.02)


SLICED = """
import numpy as np, wgslice as wg
for _ in range(2):
    device = wg.Device.request({name!r})
    print(device.limits.profile.costs.origin)
    x = np.arange(600).reshape(20, 30)
    np.testing.assert_array_equal(wg.asarray(x, device=device)[1:, ::-2].numpy(), x[1:, ::-2])
"""


def sliced(device: wg.Device, **variables: str) -> subprocess.CompletedProcess[str]:
    """Slices on two devices of a new process, which checks their elements."""
    code = SLICED.format(name=str(device.adapter))
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=True)


@pytest.mark.slow
def test_another_process_loads_what_is_kept(device: wg.Device, kept: Path) -> None:
    path = keep(record_of(device))
    done = sliced(device)
    assert [line[-10:] for line in done.stdout.splitlines()] == ["2026-02-03"] * 2
    assert done.stderr == ""
    assert "2026-02-03" not in sliced(device, WGSLICE_PROFILE="shipped").stdout
    path.write_bytes(path.read_bytes()[:-100])
    done = sliced(device)
    assert "2026-02-03" not in done.stdout
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"wgslice: {path} is ignored")


# files


def text_of(content: Any) -> bytes:
    return json.dumps(content).encode()


def found(path: Path) -> Record | None:
    """The record of MACHINE in a file."""
    record = find(MACHINE)
    assert record is None or record.path == path
    return record


def changed(path: str, value: Any = None) -> bytes:
    """A record's text with one field set, or without it."""
    content = json.loads(json.dumps(RECORD.as_json()))
    *outer, last = path.split("/")
    inner: Any = content
    for name in outer:
        inner = inner[name]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return text_of(content)


ILL_FORMED = "a field is missing or of another type: "
DEFECTS = {
    "empty": (b"", "Expecting value: "),
    "binary": (b"\xff\xfe\x00\xd8", ""),
    "prose": (b"hello", "Expecting value: "),
    "a list": (b"[1, 2]", ILL_FORMED),
    "brackets": (b"[" * 200_000, ILL_FORMED),
    "nothing in it": (b"{}", "its format is None, not 'wgslice constants 2'"),
    "an old format": (
        changed("format", "wgslice constants 1"),
        "its format is 'wgslice constants 1', not 'wgslice constants 2'",
    ),
    "another wgslice": (changed("wgslice", "9.9"), "its wgslice is '9.9', not"),
    "no date": (changed("date"), ILL_FORMED),
    "a bad date": (changed("date", "yesterday"), "Invalid isoformat string: 'yesterday'"),
    "a date in numbers": (changed("date", 2026), ILL_FORMED),
    "no machine": (changed("machine"), "its adapter is None, not 'Voodoo (tm) 5'"),
    "no driver": (changed("machine/driver"), "its driver is None, not "),
    "a machine's number": (changed("machine", 3), ILL_FORMED),
    "cores in words": (changed("machine/cores", "two"), "its cores is 'two', not "),
    "no constants": (changed("constants"), ILL_FORMED),
    "a list of constants": (changed("constants", [1]), ILL_FORMED),
    "a constant in words": (changed("constants/copy_s", "fast"), "could not convert string to float: 'fast'"),
    "a constant beyond counting": (changed("constants/copy_s", 10**400), ILL_FORMED),
    "one constant less": (changed("constants/copy_s"), "its constants are submission_s, dispatch_s, "),
    "one constant more": (changed("constants/luck", 1.0), "its constants are submission_s, dispatch_s, "),
    "negative": (changed("constants/copy_s", -1.0), "copy_s = -1.0 is not positive and finite"),
    "zero": (changed("constants/dispatch_s", 0), "dispatch_s = 0.0 is not positive and finite"),
    "NaN": (changed("constants/copy_s", float("nan")), "copy_s = nan is not positive"),
    "infinite": (changed("constants/copy_s", float("inf")), "copy_s = inf is not positive"),
    "no factors": (changed("factors"), ILL_FORMED),
    "a list of factors": (changed("factors", [1]), ILL_FORMED),
    "a factor of zero": (changed("factors/slice1 4", 0), "slice1 4 = 0.0 is not positive and finite"),
    "a factor of no kernel": (changed("factors/luck 4", 2.0), "'luck' is not a valid Kernel"),
    "a factor of no width": (changed("factors/slice1 wide", 2.0), "invalid literal for int()"),
    "another adapter": (changed("machine/adapter", "GeForce"), "its adapter is 'GeForce', not 'Voodoo"),
    "another backend": (changed("machine/backend", "OpenGL"), "its backend is 'OpenGL', not 'Vulkan'"),
    "another driver": (changed("machine/driver", "Mesa 98"), "its driver is 'Mesa 98', not 'Mesa 99'"),
    "another processor": (changed("machine/processor", "Z80"), "its processor is 'Z80', not "),
    "more cores": (changed("machine/cores", 4000), "its cores is 4000, not "),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_bad_file_is_reported_once_and_not_used(
    kept: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, reason = DEFECTS[name]
    path = keep(RECORD)
    assert found(path) == RECORD
    path.write_bytes(text)
    assert find(MACHINE) is None
    assert find(MACHINE) is None
    (line,) = capsys.readouterr().err.splitlines()
    said = f"wgslice: {path} is ignored, the shipped cost model is used: "
    assert line.startswith(f"{said}it is no record of this machine and version: {reason}")
    assert line.endswith("; `wgslice tune` measures again, `wgslice tune --forget` removes the file")


def test_a_part_of_a_file_is_not_read_as_the_whole() -> None:
    text = text_of(RECORD.as_json())
    assert read_record(text, MACHINE) == RECORD
    for stop in range(len(text)):
        with pytest.raises(ValueError, match=r"\(char \d+\)"):
            read_record(text[:stop], MACHINE)


def test_each_machine_has_a_file(kept: Path) -> None:
    fields = {"adapter": "GeForce", "backend": "OpenGL", "driver": "Mesa 98", "processor": "Z80"}
    machines = [MACHINE, replace(MACHINE, cores=4000)]
    machines += [replace(MACHINE, **{name: value}) for name, value in fields.items()]  # type: ignore[arg-type]  # no cores
    paths = {keep(replace(RECORD, machine=machine)) for machine in machines}
    assert len(paths) == len(machines) == len(list(kept.iterdir()))
    assert {path.parent for path in paths} == {kept}
    long = replace(MACHINE, adapter="a/b\\c:*?\n" * 100)
    assert keep(replace(RECORD, machine=long)).parent == kept


def test_a_killed_writer_leaves_the_file_before(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended between writing and renaming; the next one writes as if nothing had been."""
    path = keep(RECORD)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(replace(RECORD, seconds=1))
    assert found(path) == RECORD
    newer = replace(RECORD, seconds=2)
    assert keep(newer) == path
    assert found(path) == newer
    assert forget() == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there: nothing tells what is left")
def test_the_next_writer_removes_what_a_killed_one_left(kept: Path) -> None:
    """Of a process that writes still nothing is removed."""
    writer = """
import sys
from pathlib import Path
from wgslice.whole_files import written_whole
with written_whole(Path(sys.argv[1])) as part:
    part.write_text("half a rec")
    print("writing", flush=True)
    sys.stdin.readline()
"""
    path = keep(RECORD)
    command = [sys.executable, "-c", writer, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "writing\n"
        keep(RECORD)
        assert len(list(kept.iterdir())) == 2
        running.kill()
    assert found(path) == RECORD
    newer = replace(RECORD, seconds=2)
    assert keep(newer) == path
    assert found(path) == newer
    assert list(kept.iterdir()) == [path]


def test_concurrent_writers_leave_one_whole_record(kept: Path) -> None:
    records = [replace(RECORD, seconds=float(number)) for number in range(8)]
    seen: list[Record | None] = []
    path = MACHINE.path()

    def write(number: int) -> None:
        for _ in range(20):
            keep(records[number])
            seen.append(found(path))

    in_threads(write, len(records))
    assert all(record in records for record in seen)
    assert len(seen) == 160
    assert list(kept.iterdir()) == [path]


def test_an_unreadable_file_is_reported(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = MACHINE.path()
    path.mkdir(parents=True)
    assert find(MACHINE) is None
    ignored = f"{path} is ignored, the shipped cost model is used: it cannot be read: "
    assert ignored in capsys.readouterr().err


def test_a_missing_cache_folder_is_silent(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the library, a home, or with a file in the folder's place."""

    def homeless(*_: Any, **__: Any) -> Path:
        raise RuntimeError("could not determine the home directory")

    kept.parent.parent.mkdir(exist_ok=True)
    kept.parent.write_text("no folder")
    assert find(MACHINE) is None
    with monkeypatch.context() as patched:
        patched.setattr("platformdirs.user_cache_path", homeless)
        assert find(MACHINE) is None
        with pytest.raises(OSError, match="no cache folder to keep constants in: could not determine"):
            folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert find(MACHINE) is None
    with pytest.raises(OSError, match="pip install platformdirs"):
        folder()
    assert capsys.readouterr().err == ""


def test_the_environment_names_a_file_or_none(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = keep(RECORD), replace(RECORD, seconds=1)
    named = tmp_path / "named.json"
    named.write_bytes(text_of(other.as_json()))
    for value, file, expected in ((str(named), named, other), ("", path, RECORD), ("shipped", path, None)):
        monkeypatch.setenv("WGSLICE_PROFILE", value)
        assert found(file) == expected
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("WGSLICE_PROFILE", "none such")
    assert find(MACHINE) is None
    assert capsys.readouterr().err == (
        "wgslice: none such is ignored, the shipped cost model is used: "
        "it cannot be read: No such file or directory; correct or unset WGSLICE_PROFILE\n"
    )


def test_forgotten_records_are_gone(kept: Path) -> None:
    other = replace(RECORD, machine=replace(MACHINE, driver="Mesa 98"))
    paths = [keep(RECORD), keep(other), write_json(MACHINE.path("-unchecked"), {})]
    (kept / "notes.txt").write_text("not ours")
    assert forget(other.machine) == paths[1:2]
    assert find(MACHINE) is not None
    assert forget() == sorted([paths[0], paths[2]])
    assert find(MACHINE) is None
    assert forget() == []
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]


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
        assert name_in(information) == name
    assert processor()

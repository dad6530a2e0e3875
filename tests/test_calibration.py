"""Constants of a machine: compared when a device is made, tuned on request, kept in files, and planned by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import pytest
from helpers import MEASURED, in_threads
from planning import buffer_copies_of, costing, only_dispatch

import wgslice as wg
from wgslice.calibration import tune
from wgslice.calibration.measure import (
    COMPARED,
    COMPARED_NBYTES,
    CONSTANTS,
    MANY_COPIES,
    ROW_NBYTES,
    compare_constants,
    constants_of,
    measure_constants,
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
)
from wgslice.plans.profiles import CPU, GPU, Profile

ADAPTER = wg.Adapter("Voodoo (tm) 5", "Vulkan", "CPU", "Mesa 99")
MACHINE = Machine.of(ADAPTER)
DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
RECORD = Record(MACHINE, MEASURED, DATE, 12.34)
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
    factor = MEASURED["shader_bytes_per_s"] / constants_of(profile)["shader_bytes_per_s"]
    for name, work in scaled.costs.classes.items():
        assert work.bytes_per_s == pytest.approx(profile.costs.classes[name].bytes_per_s * factor)
        assert work.invocation_s == pytest.approx(profile.costs.classes[name].invocation_s / factor)


def test_every_constant_has_its_unit_in_its_name() -> None:
    assert all(name.endswith("_s") for name in CONSTANTS)
    assert set(COMPARED) < set(CONSTANTS)


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize(
    ("factor", "taken"), [(2.99, False), (3.01, True), (1 / 2.99, False), (1 / 3.01, True)]
)
def test_a_compared_constant_counts_beyond_a_factor_of_three(name: str, factor: float, taken: bool) -> None:
    known = constants_of(CPU)
    measured = {each: known[each] * (factor if each == name else 1.5) for each in COMPARED}
    found = with_constants(CPU, measured, "2026-02-03")
    assert (found is not CPU) == taken
    expected = known | ({name: measured[name]} if taken else {})
    assert constants_of(found) == pytest.approx(expected)
    shipped = CPU.costs.origin.removesuffix(", uncalibrated")
    said = f"{shipped}, on this machine {CONSTANTS[name][0]} x {factor:.2g}"
    assert found.costs.origin == (said if taken else CPU.costs.origin)


def test_a_model_of_shaders_five_times_slower_is_brought_back() -> None:
    works = CPU.costs.classes.items()
    slower = {str(name): (5 * work.invocation_s, work.bytes_per_s / 5) for name, work in works}
    distorted = costing(CPU, slower, dispatch_s=CPU.costs.dispatch_s)
    known = constants_of(CPU)
    found = with_constants(distorted, {name: known[name] for name in COMPARED}, "2026-02-03")
    for name, work in found.costs.classes.items():
        assert work.bytes_per_s == pytest.approx(CPU.costs.classes[name].bytes_per_s)
        assert work.invocation_s == pytest.approx(CPU.costs.classes[name].invocation_s)


# devices


@pytest.fixture
def comparing(device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch) -> Comparing:
    if not device.adapter.software:
        pytest.skip("GPUs are not measured unless that is asked for")
    return Comparing(device, monkeypatch)


class Comparing:
    """Comparisons that find what a test says, as factors of the shipped constants."""

    def __init__(self, device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
        self.adapter = device.adapter
        self.count = 0
        self.factors = dict.fromkeys(COMPARED, 1.0)
        with monkeypatch.context() as patch:
            patch.setenv("WGSLICE_PROFILE", "shipped")
            self.shipped = constants_of(self.device().limits.profile)
        monkeypatch.setattr("wgslice.calibration.tune.compare_constants", self.compare)

    def compare(self, _: wg.Device) -> dict[str, float]:
        self.count += 1
        return {name: self.shipped[name] * factor for name, factor in self.factors.items()}

    def device(self) -> wg.Device:
        return wg.Device.request(self.adapter)


@pytest.mark.parametrize("key", [ROWS, np.s_[:, ::-2], np.s_[:5, :7], np.s_[2:]], ids=str)
def test_the_explained_steps_are_the_objects_that_run(
    device: wg.Device, kept: Path, recorded: list[wg.Plan], key: Any
) -> None:
    """On a new device in the default configuration, from its first copy on, and on another one like it."""
    adapter = device.adapter
    devices = (
        wg.Device.request(adapter) for _ in range(50)
    )  # a comparison on a busy machine may say nothing
    made = next(each for each in devices if not adapter.software or tune.kept_record(adapter))
    other = wg.Device.request(adapter)
    x = wg.asarray(X, device=made)
    explained = wg.explain(x[key])
    recorded.clear()
    for _ in range(2):
        x[key].copy()
    assert [plan.steps for plan in recorded] == [explained.steps] * 2
    assert str(wg.explain(wg.asarray(X, device=other)[key])) == str(explained)


@pytest.mark.every_adapter
def test_a_comparison_finds_possible_constants(device: wg.Device) -> None:
    found = next(filter(None, (compare_constants(device) for _ in range(50))))  # a busy machine gives none
    assert found.keys() == set(COMPARED)
    assert 1e-9 < found["copy_s"] < 1e-2
    assert 1e6 < found["shader_bytes_per_s"] < 1e13


@pytest.mark.parametrize("vanishing", ["buffer copies", "dispatches"])
def test_a_comparison_without_difference_finds_no_factor(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, vanishing: str
) -> None:
    def seconds(_: wg.Device, plan: wg.Plan, *__: object) -> float:
        copies = sum(step.source.size for step in buffer_copies_of(plan))
        if (vanishing == "buffer copies") == bool(copies):
            return 1e-3
        return 1e-6 * (copies or max(only_dispatch(plan).share.workgroups))

    monkeypatch.setattr("wgslice.calibration.measure.seconds", seconds)
    assert compare_constants(device) == {}


def test_a_coarse_clock_finds_no_copy_that_takes_no_time(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wgslice.calibration.measure.perf_counter", lambda: perf_counter() // 1e-4 * 1e-4)
    monkeypatch.setattr("wgslice.calibration.measure.TUNED_ROUNDS", 3)
    assert measure_constants(device, lambda *_: None)["copy_s"] > 1e-9
    assert compare_constants(device) == {}


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize(
    ("found", "taken"),
    [
        ([1.5], 1.5),  # which is not beyond the factor, and not measured again
        ([0.1, 0.9], 0.9),
        ([0.1, 0.2], 0.2),
        ([9.0, 5.0], 5.0),
        ([0.1, 9.0], 1.0),
    ],
    ids=str,
)
def test_a_constant_differs_if_two_measurements_agree(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, name: str, found: list[float], taken: float
) -> None:
    known, left = constants_of(device.limits.profile), list(found)

    def measure(*_: object, **__: object) -> dict[str, float]:
        """Seconds from which the known constants follow, but for the one that differs."""
        constants = known | {name: known[name] * left.pop(0)}
        copies_s = (MANY_COPIES - 1) * constants["copy_s"]
        dispatch_s = (COMPARED_NBYTES - ROW_NBYTES) / constants["shader_bytes_per_s"]
        short_s = {"one copy": 1e-3, "small dispatch": 1e-3, "large copy": 1.0}
        return {**short_s, "many copies": 1e-3 + copies_s, "large dispatch": 1e-3 + dispatch_s}

    monkeypatch.setattr("wgslice.calibration.measure.measure", measure)
    monkeypatch.setattr("wgslice.calibration.measure.tick_s", lambda: 1e-7)  # a browser's makes no comparison
    expected = {each: known[each] * (taken if each == name else 1) for each in COMPARED}
    assert compare_constants(device) == pytest.approx(expected)
    assert not left


@pytest.mark.parametrize(
    ("factors", "copied"),
    [
        ({"copy_s": 1e-4, "shader_bytes_per_s": 0.2}, True),
        ({"copy_s": 1e4, "shader_bytes_per_s": 1.0}, False),
        ({"copy_s": 1.0, "shader_bytes_per_s": 1e-4}, True),
        ({"copy_s": 1e4, "shader_bytes_per_s": 1e4}, False),
    ],
)
def test_plans_choose_by_what_a_comparison_found(
    comparing: Comparing, factors: dict[str, float], copied: bool
) -> None:
    comparing.factors = factors
    device = comparing.device()
    assert by_buffer_copies(device) == copied
    plan = str(wg.explain(wg.asarray(X, device=device)[ROWS]))
    labels = [CONSTANTS[name][0] for name, factor in factors.items() if factor != 1.0]
    assert ", on this machine " in plan
    assert all(f"{label} x " in plan for label in labels)


@pytest.mark.parametrize("limit", [{"binding_nbytes": 2**19}, {"workgroups": 4}], ids=str)
def test_small_limits_leave_the_shipped_cost_model(
    device: wg.Device, comparing: Comparing, kept: Path, monkeypatch: pytest.MonkeyPatch, limit: Any
) -> None:
    monkeypatch.setattr("wgslice.calibration.tune.compare_constants", compare_constants)
    limits = replace(device.limits, **limit)
    monkeypatch.setattr(device, "limits", limits)
    tune.calibrate(device)
    assert device.limits is limits
    assert tune.compared == {}
    assert not list(kept.glob("*.json"))


def test_a_machine_is_compared_once(comparing: Comparing, kept: Path) -> None:
    comparing.factors["shader_bytes_per_s"] = 0.1
    plans = {str(wg.explain(wg.asarray(X, device=comparing.device())[ROWS])) for _ in range(3)}
    assert comparing.count == 1
    assert len(plans) == 1
    tune.compared.clear()  # as in another process
    assert str(wg.explain(wg.asarray(X, device=comparing.device())[ROWS])) in plans
    assert comparing.count == 1
    (path,) = kept.iterdir()
    assert path.name.endswith("-compared.json")


def test_without_a_cache_folder_a_process_compares_once(
    comparing: Comparing, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert comparing.device().limits.profile == comparing.device().limits.profile
    assert comparing.count == 1
    assert capsys.readouterr().err == ""


def test_a_bad_file_of_a_comparison_is_replaced(
    comparing: Comparing, kept: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    comparing.device()
    (path,) = kept.iterdir()
    right = path.read_bytes()
    for text in (right[:-30], b"", right.replace(b'"wgslice": "', b'"wgslice": "9.')):
        path.write_bytes(text)
        tune.compared.clear()
        comparing.device()
        assert json.loads(path.read_bytes())["constants"] == json.loads(right)["constants"]
    assert comparing.count == 4
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("value", ["shipped", "a file"])
def test_a_variable_switches_comparisons_off(
    comparing: Comparing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, value: str
) -> None:
    named = tmp_path / "named.json"
    named.write_text(json.dumps(Record(Machine.of(comparing.adapter), MEASURED, DATE, 1).as_json()))
    monkeypatch.setenv("WGSLICE_PROFILE", value if value == "shipped" else str(named))
    costs = comparing.device().limits.profile.costs
    assert comparing.count == 0
    assert costs.copy_s == (1.0 if value == "a file" else comparing.shipped["copy_s"])


def test_a_gpu_is_not_compared(
    comparing: Comparing, device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "adapter", replace(device.adapter, kind="DiscreteGPU"))
    tune.calibrate(device)
    assert comparing.count == 0


def test_the_tuning_cache_is_preferred_to_a_comparison(comparing: Comparing, device: wg.Device) -> None:
    keep(record_of(device))
    assert comparing.device().limits.profile.costs.copy_s == 1.0
    assert comparing.count == 0


def test_threads_that_make_devices_compare_once(comparing: Comparing) -> None:
    made: list[wg.Device] = []
    in_threads(lambda _: made.append(comparing.device()))
    assert len({device.limits.profile.costs.origin for device in made}) == 1
    assert comparing.count == 1


SLICED = """
import numpy as np, wgslice as wg
for _ in range(2):
    device = wg.Device.request({name!r})
    print(device.limits.profile.costs.origin)
    x = np.arange(600).reshape(20, 30)
    np.testing.assert_array_equal(wg.asarray(x, device=device)[1:, ::-2].numpy(), x[1:, ::-2])
"""


def sliced(device: wg.Device, **variables: str) -> subprocess.CompletedProcess[str]:
    """Slices on two devices of a new process, whose results are compared."""
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
    "nothing in it": (b"{}", "its format is None, not 'wgslice constants 1'"),
    "an old format": (
        changed("format", "wgslice costs 1"),
        "its format is 'wgslice costs 1', not 'wgslice constants 1'",
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
    "negative": (changed("constants/copy_s", -1.0), "constants.copy_s = -1.0 is not positive and finite"),
    "zero": (changed("constants/dispatch_s", 0), "constants.dispatch_s = 0.0 is not positive and finite"),
    "NaN": (changed("constants/copy_s", float("nan")), "constants.copy_s = nan is not positive"),
    "infinite": (changed("constants/copy_s", float("inf")), "constants.copy_s = inf is not positive"),
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


def test_each_machine_and_kind_of_record_has_a_file(kept: Path) -> None:
    fields = {"adapter": "GeForce", "backend": "OpenGL", "driver": "Mesa 98", "processor": "Z80"}
    machines = [MACHINE, replace(MACHINE, cores=4000)]
    machines += [replace(MACHINE, **{name: value}) for name, value in fields.items()]  # type: ignore[arg-type]  # no cores
    compared = {name: MEASURED[name] for name in COMPARED}
    paths = {
        keep(Record(machine, constants, DATE, 1))
        for machine in machines
        for constants in (MEASURED, compared)
    }
    assert len(paths) == 2 * len(machines) == len(list(kept.iterdir()))
    assert {path.parent for path in paths} == {kept}
    assert find(MACHINE, compared=True) == Record(MACHINE, compared, DATE, 1)
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
    path = kept / MACHINE.file_name(compared=False)

    def write(number: int) -> None:
        for _ in range(20):
            keep(records[number])
            seen.append(found(path))

    in_threads(write, len(records))
    assert all(record in records for record in seen)
    assert len(seen) == 160
    assert list(kept.iterdir()) == [path]


def test_an_unreadable_file_is_reported(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kept / MACHINE.file_name(compared=False)
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
    assert find(MACHINE) is find(MACHINE, compared=True) is None
    with monkeypatch.context() as patched:
        patched.setattr("platformdirs.user_cache_path", homeless)
        assert find(MACHINE) is find(MACHINE, compared=True) is None
        with pytest.raises(OSError, match="no cache folder to keep constants in: could not determine"):
            folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert find(MACHINE) is find(MACHINE, compared=True) is None
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
    compared = replace(RECORD, constants=dict.fromkeys(COMPARED, 1.0))
    paths = [keep(RECORD), keep(compared), keep(other)]
    (kept / "notes.txt").write_text("not ours")
    assert forget(other.machine) == paths[2:]
    assert find(MACHINE) is not None
    assert forget() == sorted(paths[:2])
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

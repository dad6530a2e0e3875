"""Constants of a machine: compared when a device is made, tuned on request, kept in files, and planned by."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import MEASURED
from planning import buffer_copies_of, costing, only_dispatch
from running import recorded_plans

import wgslice as wg
from wgslice.calibration import tune
from wgslice.calibration.measure import (
    COMPARED,
    CONSTANTS,
    compare_constants,
    constants_of,
    with_constants,
)
from wgslice.calibration.store import Machine, Record, keep
from wgslice.plans.profiles import CPU, GPU, Profile

DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
X = np.arange(600 * 1000, dtype=np.uint32).reshape(600, 1000)  # 2.4 MB
ROWS = np.s_[1:, 1:]  # by a buffer copy per row, or by a kernel


def record_of(device: wg.Device, constants: dict[str, float] = MEASURED) -> Record:
    return Record(Machine.of(device.adapter), constants, DATE, 12.34)


def by_buffer_copies(device: wg.Device) -> bool:
    """Whether rows go by buffer copies; what is explained is compiled, and copied right."""
    view = wg.asarray(X, device=device)[ROWS]
    plan = wg.explain(view)
    described = wg.TensorDesc("uint32", X.shape), wg.TensorDesc("uint32", view.shape)
    assert device.compile(wg.Slice(*described, (1, 1), view.shape)).plan.summary == plan.summary
    np.testing.assert_array_equal(view.numpy(), X[ROWS])
    assert wg.explain(view) is plan
    return "buffer copies" in plan.summary


# the cost model, scaled


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_all_constants_replace_those_of_the_cost_model(profile: Profile) -> None:
    scaled = with_constants(profile, MEASURED, "2026-02-03")
    assert constants_of(scaled) == pytest.approx(MEASURED)
    assert scaled.costs.origin == (
        f"{profile.costs.origin}, scaled to what `wgslice tune` measured on 2026-02-03"
    )
    factor = MEASURED["shader_bytes_per_s"] / constants_of(profile)["shader_bytes_per_s"]
    for name, work in scaled.costs.works.items():
        assert work.bytes_per_s == pytest.approx(profile.costs.works[name].bytes_per_s * factor)
        assert work.invocation_s == pytest.approx(profile.costs.works[name].invocation_s / factor)


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
    said = f"{CPU.costs.origin}, on this machine {CONSTANTS[name][0]} x {factor:.2g}"
    assert found.costs.origin == (said if taken else CPU.costs.origin)


def test_a_model_of_shaders_five_times_slower_is_brought_back() -> None:
    works = CPU.costs.works.items()
    slower = {str(name): (5 * work.invocation_s, work.bytes_per_s / 5) for name, work in works}
    distorted = costing(CPU, slower, dispatch_s=CPU.costs.dispatch_s)
    known = constants_of(CPU)
    found = with_constants(distorted, {name: known[name] for name in COMPARED}, "2026-02-03")
    for name, work in found.costs.works.items():
        assert work.bytes_per_s == pytest.approx(CPU.costs.works[name].bytes_per_s)
        assert work.invocation_s == pytest.approx(CPU.costs.works[name].invocation_s)


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
def test_the_explained_plan_is_the_object_that_runs(
    device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch, key: Any
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
    with monkeypatch.context() as patched:
        recorded = recorded_plans(patched)
        for _ in range(2):
            x[key].copy()
    assert recorded == [explained, explained]
    assert str(wg.explain(wg.asarray(X, device=other)[key])) == str(explained)


@pytest.mark.every_adapter
def test_a_comparison_finds_possible_constants(device: wg.Device) -> None:
    found = next(filter(None, (compare_constants(device) for _ in range(50))))  # a busy machine gives none
    assert found.keys() == set(COMPARED)
    assert 1e-9 < found["copy_s"] < 1e-2
    assert 1e6 < found["shader_bytes_per_s"] < 1e13


@pytest.mark.parametrize("vanishing", ["buffer copies", "dispatches"])
def test_a_comparison_says_nothing_where_a_difference_vanishes(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, vanishing: str
) -> None:
    def seconds(_: wg.Device, plan: wg.Plan, __: object) -> float:
        copies = sum(step.source.size for step in buffer_copies_of(plan))
        if (vanishing == "buffer copies") == bool(copies):
            return 1e-3
        return 1e-6 * (copies or max(only_dispatch(plan).share.workgroups))

    monkeypatch.setattr("wgslice.calibration.measure.seconds", seconds)
    assert compare_constants(device) == {}


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


def test_what_tune_keeps_goes_before_a_comparison(comparing: Comparing, device: wg.Device) -> None:
    keep(record_of(device))
    assert comparing.device().limits.profile.costs.copy_s == 1.0
    assert comparing.count == 0


def test_threads_that_make_devices_compare_once(comparing: Comparing) -> None:
    made: list[wg.Device] = []
    threads = [threading.Thread(target=lambda: made.append(comparing.device())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
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

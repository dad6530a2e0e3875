"""The benchmark itself: that it verifies, survives its contenders, and computes what it prints."""

from __future__ import annotations

import importlib
import io
import json
import re
import subprocess
import sys
from argparse import Namespace
from contextlib import nullcontext
from dataclasses import replace
from itertools import chain
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from helpers import on_one_adapter
from numpy.typing import NDArray
from onnx.reference import ReferenceEvaluator
from rich.console import Console

import wgslice as wg
from bench.boxes import BOXES, PADDINGS, PUT_BACK, Boxes, Sequences, put_back
from bench.cases import CASES, Case, Cut
from bench.chart import draw
from bench.compilers.planned import LIMITS
from bench.contest import ROOT, Entry, Outcome, Process, run_case
from bench.entries import ALLOCATING, COPY, GIVEN, OURS, entries, entry_of
from bench.family import CONTESTS, family_json, run_family, speed_ups
from bench.graphs import GRAPHS, Focus, Rounds
from bench.provenance import is_stale, provenance
from bench.report import geometric_mean, machine_of, results_json, stem_of, summary, table, write_json
from bench.rivals.onnx_models import cut_model, kept
from bench.schedule import FIXED_NBYTES, Schedule, contest, outcome_line, say_what_is_left, scheduled
from bench.tasks import BATCHES, GRADIENTS, INSERTIONS, WINDOWS, Crops, Order, Task, gradient, insertion
from bench.worker import Worker

pytestmark = pytest.mark.slow

PYTHON = Path(sys.executable)
ARGUMENTS = Namespace(rounds=2, budget=inf)
TINY = Case("tiny", "uint16", (7, 9), np.s_[::-2, 1:])
TINY_PERMUTE = Case("tiny permute", "float32", (5, 7, 3), np.s_[1:, ::2], (2, 0, 1))
TINY_OTHER = Case("other", "uint16", (7, 9), np.s_[::-2, 1:])


def test_cases_are_distinct_and_span_what_they_should() -> None:
    assert len({case.name for case in CASES}) == len(CASES)
    sizes = [case.nbytes for case in CASES]
    assert min(sizes) < 2**10
    assert max(sizes) == 2**30
    for case in (case for case in CASES if case.input_nbytes < 2**22):
        array = case.array()
        assert array.shape == case.shape
        assert case.work.of(array).nbytes == case.nbytes


@pytest.mark.first_adapter
@pytest.mark.parametrize("case", [TINY, TINY_PERMUTE], ids=["slice", "permute"])
def test_a_slice_is_verified_and_timed_on_every_contender(named: wg.Device, case: Case) -> None:
    processes = [Process(entry) for entry in entries([])]
    try:
        outcomes = run_case(case, processes, rounds=2, turn=0.0)
    finally:
        for process in processes:
            process.stop()
    assert list(outcomes) == [OURS, "slice1.wgsl", COPY, ALLOCATING, "NumPy, array given"]
    for outcome in outcomes.values():
        assert outcome.failure == ""
        assert len(outcome.times) == 2
    for name in (OURS, "slice1.wgsl", COPY):
        assert_clocked(outcomes[name], named)
    assert outcomes[OURS].note.startswith("coalesced")
    assert processes[0].description["adapter"] == str(named.adapter)


def test_what_a_rivals_process_loads_needs_no_wgslice() -> None:
    """Its environment has NumPy and the rival."""
    modules = "worker", "cases", "tasks", "graphs", "boxes"
    rivals = "rivals.keys", "rivals.numpy_", "rivals.family_numpy", "rivals.boxes_numpy"
    imports = ", ".join(f"bench.{name}" for name in (*modules, *rivals))
    code = f"import sys; sys.modules['wgslice'] = sys.modules['wgpu'] = None; import {imports}"
    subprocess.run([PYTHON, "-c", code], cwd=ROOT, check=True)


def assert_clocked(outcome: Outcome, device: wg.Device) -> None:
    """Each turn's own time of the GPU, where the adapter has timestamps; more than nothing."""
    assert len(outcome.gpu_times) == (2 if "timestamp-query" in device.adapter.handle.features else 0)
    assert all(0 < seconds < 60 for seconds in outcome.gpu_times)


class Wrong:
    """A contender whose last element is not what it should be."""

    def __init__(self, array: NDArray[Any], cut: Cut) -> None:
        self.out = np.array(cut.of(array))

    def run(self) -> None:
        self.out.reshape(-1).view(np.uint8)[-1] ^= 1

    def result(self) -> NDArray[Any]:
        return self.out


def test_a_wrong_answer_is_not_timed(tmp_path: Path) -> None:
    np.save(tmp_path / "x.npy", TINY.array())
    worker = Worker(None, Wrong)
    with pytest.raises(ValueError, match=f"wrong: 1 of {TINY.nbytes} bytes differ"):
        worker.load(str(tmp_path / "x.npy"), TINY.work)


@pytest.mark.parametrize(
    "cut",
    [
        Cut((0, 1, 2), np.s_[..., ::-2]),
        Cut((0, 1, 2), np.s_[1, :, -1]),
        Cut((2, 0, 1), ...),
        Cut((1, 2, 0), np.s_[::-1, 2]),
        Cut((0, 1, 2), ...),
    ],
    ids=["slice", "integers", "transpose", "both", "neither"],
)
def test_an_onnx_model_cuts_as_numpy_does(cut: Cut) -> None:
    array = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    model = onnx.load_model_from_string(cut_model(array, cut))
    (result,) = map(np.asarray, ReferenceEvaluator(model).run(None, {"x": array}))
    expected = cut.of(array)
    assert np.array_equal(result.reshape(expected.shape), expected)
    assert result.shape == kept(cut).of(array).shape
    names = [node.op_type for node in model.graph.node]
    assert names == ["Transpose"] * cut.permuted + ["Slice"] * (cut.key is not ... or not cut.permuted)


def test_contenders_that_fail_or_die_leave_the_others_running() -> None:
    processes = [
        Process(Entry("absent", "bench.rivals.no_such_module", "Contender", PYTHON)),
        Process(Entry("dying", "unused", "Contender", Path("/bin/false"))),
        Process(Entry(ALLOCATING, "bench.rivals.numpy_", "Allocating", PYTHON)),
    ]
    outcomes = run_case(TINY, processes, rounds=1, turn=0.0)
    for process in processes:
        process.stop()
    assert outcomes["absent"].failure.startswith("ModuleNotFoundError")
    assert outcomes["dying"].failure == "its process has died"
    assert outcomes[ALLOCATING].times


def test_what_is_printed_and_kept(tmp_path: Path) -> None:
    first, second = (case for case in CASES if case.name in ("f32 vertical flip", "f32 horizontal flip"))
    (permute,) = (case for case in CASES if case.name == "u8 transpose")
    scale = [case for case in CASES if not case.rivals]
    results = {
        first: {
            OURS: Outcome([0.2, 0.1], [0.09, 0.07]),
            ALLOCATING: Outcome([0.4, 0.5]),
            "rival": Outcome([0.9]),
        },
        second: {OURS: Outcome([0.4]), ALLOCATING: Outcome([0.4]), "rival": Outcome(failure="cannot")},
        permute: {OURS: Outcome([0.3]), ALLOCATING: Outcome([0.1]), "rival": Outcome([0.6])},
        **{case: {OURS: Outcome([case.nbytes / 1e9 * 3]), ALLOCATING: Outcome([1.0])} for case in scale[:1]},
        **{case: {OURS: Outcome([case.nbytes / 1e9]), ALLOCATING: Outcome([1.0])} for case in scale[1:-1]},
        scale[-1]: {OURS: Outcome(failure="too large"), ALLOCATING: Outcome([1.0])},
    }
    names = [OURS, ALLOCATING, "rival"]
    ratios = summary(results, names)
    assert geometric_mean([1, 4]) == pytest.approx(2)
    assert ratios["speed-up over NumPy, 1 MiB and more, geometric mean of 2"] == pytest.approx(2)
    assert ratios["speed-up over NumPy, 4 MiB and more, worst"] == pytest.approx(1)
    assert ratios["speed-up over rival, 1 MiB and more, geometric mean of 1"] == pytest.approx(9)
    assert ratios["speed-up over NumPy, permutes, geometric mean of 1"] == pytest.approx(1 / 3)
    assert ratios["speed-up over rival, permutes, geometric mean of 1"] == pytest.approx(2)
    assert ratios["time per byte from 1 to 256 MiB, worst over best"] == pytest.approx(3)
    shown = table(results, names)
    assert shown.row_count == len(results)
    assert list(shown.columns[-1].cells)[:2] == ["70", "-"]
    assert [next(iter(column.cells)) for column in shown.columns[3:5]] == ["4.00", "0.44"]
    kept = results_json(results, [], {"record": 1.0}, {"once_s": {}, "calls": []}, ARGUMENTS)
    assert [each["axes"] for each in kept["slices"][:3]] == [(), (), (1, 0)]
    described = {"adapter": "llvmpipe via Vulkan", "driver": "Mesa 22.3", "kind": "CPU"}
    kept["contenders"] = dict.fromkeys(names, described)
    draw(kept, tmp_path / "chart.png")
    assert (tmp_path / "chart.png").stat().st_size > 1000
    write_json(kept, tmp_path / "deep" / "results.json")
    read = json.loads((tmp_path / "deep" / "results.json").read_text())
    assert read["slices"][0]["outcomes"][OURS]["best_s"] in (0.1, 0.4)
    assert {outcome.get("failure") for outcome in read["slices"][1]["outcomes"].values()} <= {None, "cannot"}
    assert read["commit"] is None or re.fullmatch(r"[0-9a-f]{40}( dirty)?", read["commit"])
    assert not is_stale(read)


@pytest.mark.parametrize(
    "changed", ["kernel", "plan", "costs", "unknown case", "no fingerprints"], ids=lambda name: name
)
def test_figures_are_stale_when_plan_or_kernel_changes(changed: str, monkeypatch: pytest.MonkeyPatch) -> None:
    described = {"adapter": "llvmpipe via Vulkan", "driver": "Mesa 22.3", "kind": "CPU"}
    content: dict[str, Any] = {
        "contenders": {OURS: described},
        "slices": [{"name": "f32 vertical flip"}, {"name": "crops of 5 x 5 RGB"}],
        "batches": [{"name": BATCHES[0].name}],
        "streams": {"a window": {}},
    }
    content |= provenance(content)
    assert not is_stale(content)
    if changed == "kernel":
        monkeypatch.setattr("bench.provenance.kernel_module", lambda kernel: f"// {kernel}")
    elif changed == "plan":
        monkeypatch.setattr("bench.provenance.LIMITS", replace(LIMITS, workgroups=1000))
    elif changed == "costs":
        content["contenders"] = {OURS: {**described, "driver": "Mesa 25.0"}}
    elif changed == "unknown case":
        content["slices"][0]["name"] = "f32 vertical"
    else:
        del content["fingerprints"]
    assert is_stale(content)


class Clock:
    """A clock that a test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    found = Clock()
    monkeypatch.setattr("bench.schedule.perf_counter", found)
    monkeypatch.setattr("bench.contest.perf_counter", found)
    return found


def test_a_pipe_gets_a_line_for_each_slice(monkeypatch: pytest.MonkeyPatch) -> None:
    outcomes = {OURS: Outcome([0.002, 0.001]), ALLOCATING: Outcome([0.004]), GIVEN: Outcome([0.003])}
    monkeypatch.setattr("bench.schedule.run_case", lambda *_: outcomes)
    for terminal in (False, True):
        console = Console(record=True, width=200, force_terminal=terminal, file=io.StringIO())
        with scheduled(console, [TINY, TINY_OTHER], inf) as schedule:
            found = contest(schedule, [TINY, TINY_OTHER], [], 1, 0.0)
        assert found == {TINY: outcomes, TINY_OTHER: outcomes}
        lines = ["1 of 2: tiny: 1 ms, NumPy 4 ms", "2 of 2: other: 1 ms, NumPy 4 ms"]
        assert all((line in console.export_text(clear=False)) != terminal for line in lines)
    assert outcome_line({OURS: Outcome(failure="too large")}) == "too large"


def test_what_is_left_of_a_budget_is_shared_out_by_weight(clock: Clock) -> None:
    schedule = Schedule(Console(quiet=True), 4, seconds=100, weight=10)
    begun = []
    for weight, lasted in ((1, 10), (3, 60), (2, 26), (4, 5)):
        assert not schedule.spent
        begun.append(schedule.begin("", weight) - clock.now)
        clock.now += lasted
        schedule.finish("")
    assert begun == [10, 30, 10, 4]
    assert schedule.spent
    assert Schedule(Console(quiet=True), 1).begin("") == inf
    small, large = (Case("", "uint8", (nbytes,), ...) for nbytes in (0, 3 * FIXED_NBYTES))
    schedule = scheduled(Console(quiet=True), [small, large], 100)
    assert schedule.weight == 5 * FIXED_NBYTES


def test_no_case_is_begun_when_the_budget_is_spent(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    def run_case(*_: Any) -> dict[str, Outcome]:
        clock.now += 40
        return {OURS: Outcome([1.0])}

    monkeypatch.setattr("bench.schedule.run_case", run_case)
    cases = [TINY, TINY_OTHER, TINY_PERMUTE]
    console = Console(record=True, width=200)
    results = contest(scheduled(console, cases, 60), cases, [], 5, 0.0)
    assert list(results) == [TINY, TINY_OTHER]
    say_what_is_left(console, cases, results, 60)
    assert "not run, since 60 s were over: tiny permute\n" in console.export_text()
    say_what_is_left(console, cases[:2], results, 60)
    assert console.export_text() == ""


@pytest.mark.parametrize(("until", "rounds"), [(0, 1), (19, 1), (20, 2), (35, 3), (1000, 5)])
def test_a_case_has_as_many_rounds_as_fit_in_and_at_least_one(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, until: float, rounds: int
) -> None:
    def measure(outcome: Outcome, *_: Any) -> None:
        clock.now += 10
        outcome.times.append(10.0)

    monkeypatch.setattr("bench.contest.load", lambda *_: None)
    monkeypatch.setattr("bench.contest.measure", measure)
    processes = [Process(Entry(OURS, "unused", "Contender", PYTHON))]
    monkeypatch.setattr(processes[0], "ask", lambda *_: None)
    outcomes = run_case(TINY, processes, 5, 0.0, until)
    assert len(outcomes[OURS].times) == rounds


@pytest.mark.parametrize(("end", "whole"), [(5, False), (25, False), (35, True)])
def test_a_case_without_a_whole_round_is_given_up(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, end: float, whole: bool
) -> None:
    def take_ten_seconds(*_: Any) -> None:
        clock.now += 10

    monkeypatch.setattr("bench.contest.load", take_ten_seconds)
    monkeypatch.setattr("bench.contest.measure", take_ten_seconds)
    processes = [Process(Entry(name, "unused", "Contender", PYTHON)) for name in ("first", "second")]
    for process in processes:
        monkeypatch.setattr(process, "ask", lambda *_: None)
    with nullcontext() if whole else pytest.raises(TimeoutError):
        assert list(run_case(TINY, processes, 5, 0.0, 0.0, end)) == ["first", "second"]


def test_small_cases_come_first_and_none_is_out_of_place(monkeypatch: pytest.MonkeyPatch) -> None:
    begun: list[Case] = []

    def run_case(case: Case, *_: Any) -> dict[str, Outcome]:
        begun.append(case)
        if case is TINY:
            raise TimeoutError
        return {OURS: Outcome([1.0])}

    monkeypatch.setattr("bench.schedule.run_case", run_case)
    small = [Case(f"small {size}", "uint8", (size,), ...) for size in (4, 2, 3)]
    cases = [TINY, TINY_OTHER, *small]
    found = contest(scheduled(Console(quiet=True), cases, inf), cases, [], 1, 0.0)
    assert [case.shape for case in begun] == [(2,), (3,), (4,), TINY.shape]
    assert list(found) == small


def test_a_run_that_is_cut_short_is_not_kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    asked = {"family": False, "boxes": False, "graphs": True}
    chosen = Namespace(cases="", rivals=[], rounds=1, turn=0.0, budget=0.0, **asked)
    monkeypatch.setattr("bench.family.RESULTS", tmp_path)
    console = Console(record=True, width=200)
    run_family(console, chosen)
    text = console.export_text()
    assert f"not run, since 0 s were over: {GRAPHS[0].name}; " in text
    assert "not kept" in text
    assert not list(tmp_path.iterdir())


def test_results_name_driver_processor_and_cores() -> None:
    kept: dict[str, Any] = {
        "machine": {"processor": "Intel(R) Xeon(R) Gold 6 CPU", "cores": 4},
        "contenders": {OURS: {"driver": "Mesa 25.0 (LLVM 19)", "adapter": "llvmpipe"}},
    }
    assert machine_of(kept) == "Intel Xeon Gold 6 CPU, 4 cores"
    assert stem_of(kept) == "mesa-25-0-llvm-19-on-intel-xeon-gold-6-cpu-4-cores"
    found = sorted((ROOT / "bench" / "results").glob("*cores*.json"))
    assert found
    for path in found:
        assert re.fullmatch(
            stem_of(json.loads(path.read_text("utf-8")))
            + "(-boxes|-cliffs|-family|-graphs|-regret|-stream)?",
            path.stem,
        )


@on_one_adapter
def test_streams_are_timed_against_numpy(
    named: wg.Device, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stream = importlib.import_module("bench.stream")  # asks for its device when it is imported
    source = stream.make_source(tmp_path / "source.npy", (12, 16, 16))
    for window in stream.STREAMS[2:]:
        found = stream.measure_stream(source, window.key, tmp_path / "target.npy", 1)
        assert found["nbytes"] == source[window.key].nbytes
        assert min(found["best_s"].values()) > 0
        assert sum(found["shares"].values()) == pytest.approx(1)
        assert min(found["shares"].values()) > 0
    monkeypatch.setattr(stream.np, "copyto", lambda target, _: target.fill(1))
    with pytest.raises(AssertionError, match="makes something else"):
        stream.measure_stream(source, ..., tmp_path / "target.npy", 0)


@on_one_adapter
def test_costs_are_measured_from_the_first_import_on(
    named: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = importlib.import_module("bench.costs")  # asks for its device when it is imported
    monkeypatch.setattr(costs, "PROCESSES", 1)
    monkeypatch.setattr(costs, "ROWS", [1, 64])
    console = Console(record=True, width=200, force_terminal=False, file=io.StringIO())
    measured = costs.measure_costs(console)
    assert "1 of 4: a new process: " in console.export_text(clear=False)
    assert "3 of 4: a crop of 1 KiB\n" in console.export_text()
    assert list(measured["once_s"]) == [*costs.NAMES, "first operator, kernel kept by the driver"]
    assert all(seconds > 0 for seconds in measured["once_s"].values())
    for suffix in ("", costs.KEPT):
        names = *costs.FROM_START, costs.BEYOND
        ours, bare, beyond = (measured["start_s"][name + suffix] for name in names)
        assert ours > 0 < bare
        assert beyond == ours - bare
    assert measured["start_s"][costs.FROM_START[0]] > sum(measured["once_s"][name] for name in costs.NAMES)
    assert [call["nbytes"] for call in measured["calls"]] == [1024, 65536]
    assert all(call["wgslice_s"] > 0 < call["numpy_s"] for call in measured["calls"])
    clocked = "timestamp-query" in named.adapter.handle.features
    assert all(call.get("gpu_s", 0) > 0 if clocked else "gpu_s" not in call for call in measured["calls"])
    costs.show_costs(console, measured)
    shown = console.export_text()
    assert "a crop of 64 KiB: " in shown
    assert f"{costs.BEYOND}: " in shown


def test_a_call_pays_where_it_copies_for_longer_than_it_costs() -> None:
    pays_from = importlib.import_module("bench.costs").pays_from

    def found(*times: tuple[float, float]) -> tuple[int | None, int | None]:
        pairs = enumerate(times)
        calls = [{"nbytes": 4**n, "wgslice_s": ours, "numpy_s": theirs} for n, (ours, theirs) in pairs]
        result: tuple[int | None, int | None] = pays_from({"calls": calls})
        return result

    assert found((5, 1), (9, 2), (10, 11), (30, 40)) == (16, 16)
    assert found((5, 1), (9, 2)) == (None, None)
    assert found((5, 6), (1, 0.2), (1, 2), (3, 4)) == (64, 16)  # a spike, and a size that NumPy lost once


TINY_WINDOWS = Task("tiny windows", "uint8", (40, 50, 3), Crops(30, (16, 16), mirrored=True))
TINY_VOLUMES = Task("tiny volumes", "float16", (9, 10, 11), Crops(30, (3, 4, 5), mirrored=True))
TINY_PATCHES = Task("tiny patches", "float32", (20, 30), Crops(30, (7, 7)))
TINY_INSERTION = insertion("tiny insertion", "uint8", (48, 64, 3), Crops(12, (16, 16), True, gridded=True))
TINY_OVERLAPS = insertion("tiny overlaps", "float32", (20, 30), Crops(30, (7, 7), mirrored=True))
TINY_BOXES = Task("tiny boxes", "uint8", (40, 50, 3), Boxes(20, 1, 9))
TINY_PLANE = Task("tiny plane", "float32", (40, 50), Boxes(20, 1, 9))
TINY_SEQUENCES = Task("tiny sequences", "float16", (30, 12, 8), Sequences(30, 1, 12))
TINY_BATCH = Task("tiny batch", "uint8", (7, 5, 3), Order(7))
TINY_GRADIENT = gradient("tiny gradient", "uint16", (9, 11), np.s_[1::2, 2:9])
TINY_ROUNDS = Task("tiny rounds", "float32", (1, 3, 8, 8), Rounds(4))
TINY_FOCUS = Task("tiny focus", "float16", (2, 3, 6, 4), Focus())


def test_tasks_are_distinct_and_count_their_bytes() -> None:
    families = WINDOWS, INSERTIONS, GRADIENTS, BATCHES, GRAPHS, BOXES, PUT_BACK, PADDINGS
    tasks: list[Case] = [*chain(*families)]
    assert len({task.name for task in tasks}) == len(tasks)
    for task in (
        TINY_WINDOWS,
        TINY_VOLUMES,
        TINY_PATCHES,
        TINY_INSERTION,
        TINY_OVERLAPS,
        TINY_GRADIENT,
        TINY_BATCH,
        TINY_BOXES,
        TINY_SEQUENCES,
        put_back(TINY_BOXES),
        TINY_ROUNDS,
        TINY_FOCUS,
    ):
        result = task.key.of(task.array())
        assert (result.nbytes, result.dtype) == (task.nbytes, np.dtype(task.dtype))
    mirrored = TINY_WINDOWS.key.of(TINY_WINDOWS.array())
    plain = Crops(30, (16, 16)).of(TINY_WINDOWS.array())
    turned = (mirrored == plain[:, :, ::-1]).all(axis=(1, 2, 3))
    assert 0 < turned.sum() < 30
    assert ((mirrored == plain).all(axis=(1, 2, 3)) | turned).all()


def test_patches_on_a_grid_are_adjacent() -> None:
    image = np.arange(6 * 11 * 3).reshape(6, 11, 3)
    patches = Crops(4, (3, 5), gridded=True).of(image)
    rows = [np.concatenate(patches[first : first + 2], axis=1) for first in (0, 2)]
    assert (np.concatenate(rows) == image[:, :10]).all()


@on_one_adapter  # slices are timed on each
@pytest.mark.parametrize(
    ("kind", "tasks"),
    [
        ("windows", [TINY_WINDOWS, TINY_VOLUMES, TINY_PATCHES]),
        ("insertions", [TINY_INSERTION, TINY_OVERLAPS]),
        ("gradients", [TINY_GRADIENT]),
        ("batches", [TINY_BATCH]),
        ("boxes", [TINY_BOXES, TINY_PLANE, TINY_SEQUENCES]),
        ("put_back", [put_back(TINY_BOXES), put_back(TINY_PLANE)]),
        ("paddings", [put_back(TINY_SEQUENCES)]),
        ("graphs", [TINY_ROUNDS, TINY_FOCUS]),
    ],
    ids=["windows", "insertions", "gradients", "batches", "boxes", "put_back", "paddings", "graphs"],
)
def test_the_family_is_verified_and_timed(named: wg.Device, kind: str, tasks: list[Case]) -> None:
    contenders = [place for place in CONTESTS[kind][1] if not place[1]]
    processes = [Process(entry_of(*place)) for place in contenders]
    try:
        results = {task: run_case(task, processes, rounds=2, turn=0.0) for task in tasks}
        kept = family_json(kind, results, processes, ARGUMENTS)
    finally:
        for process in processes:
            process.stop()
    for outcomes, shown in zip(results.values(), kept[kind], strict=True):
        for outcome in outcomes.values():
            assert outcome.failure == ""
            assert len(outcome.times) == 2
        assert_clocked(outcomes[contenders[0][0]], named)
        over = speed_ups(outcomes)
        assert list(over) == [name for name, *_ in contenders]
        assert next(iter(over.values())) == 1.0
        assert shown["speed_up_over"] == over
    assert kept["contenders"][contenders[0][0]]["adapter"] == str(named.adapter)

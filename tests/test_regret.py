"""Regret and shipped cost models: which strategies the bench runs, and what it keeps of them."""

from __future__ import annotations

import importlib
from dataclasses import replace
from math import inf
from types import ModuleType

import numpy as np
import pytest
from helpers import on_one_adapter

import wgslice as wg
from bench import without
from bench.cases import Case
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Costs, shipped

pytestmark = pytest.mark.slow

COST_MODELS = {"shipped": shipped("lavapipe-25-0")}
TINY = Case("tiny", "uint16", (70, 90), np.s_[::-2, 1:])


@pytest.fixture
def regret(named: wg.Device) -> ModuleType:
    return importlib.import_module("bench.regret")  # asks for its device when it is imported


@on_one_adapter
def test_every_strategy_of_a_case_is_checked_and_timed(regret: ModuleType) -> None:
    found = regret.measure_case(TINY, 1, COST_MODELS, None)
    names = [strategy.name for strategy in found.strategies]
    assert len(set(names)) == len(names) > 2
    assert "slice1" in names
    assert all(0 < strategy.best_s < 60 for strategy in found.strategies)
    assert found.value("shipped") == found.strategy("shipped").best_s / min(
        strategy.best_s for strategy in found.strategies
    )


@on_one_adapter
def test_a_strategy_that_is_wrong_is_refused(regret: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    run = regret.run

    def nothing(plan: wg.Plan, places: object) -> float:
        return 1.0 if plan.steps[0].name == "slice1" else float(run(plan, places))

    monkeypatch.setattr(regret, "run", nothing)
    with pytest.raises(ValueError, match=r"^tiny by \w+( of pairs)?: wrong"):
        regret.measure_case(TINY, 1, COST_MODELS, None)


@on_one_adapter
def test_costs_are_judged_by_times_that_are_kept(regret: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    names = [strategy.name for strategy in regret.measure_case(TINY, 1, COST_MODELS, None).strategies]
    monkeypatch.delattr(regret, "run")  # nothing runs
    times = {name: 1.0 + number for number, name in enumerate(names)}
    found = regret.measure_case(TINY, 0, COST_MODELS, times)
    assert found.best.name == names[0]
    assert found.value("shipped") == times[found.chosen["shipped"][0]]
    with pytest.raises(KeyError, match=names[-1]):
        regret.measure_case(TINY, 0, COST_MODELS, {name: times[name] for name in names[:-1]})


def test_shipped_costs_are_medians_and_the_longest_compilation() -> None:
    figures = importlib.import_module("bench.figures")
    known = COST_MODELS["shipped"]

    def slower(factor: float) -> Costs:
        classes = {
            name: replace(work, bytes_per_s=work.bytes_per_s / factor) for name, work in known.classes.items()
        }
        return replace(known, copy_s=known.copy_s * factor, pipeline_s=0.001 * factor, classes=classes)

    runs = [slower(factor) for factor in (3, 1, 50)]
    found = figures.middle_of(known, runs)
    assert found["copy_s"] == pytest.approx(known.copy_s * 3, rel=5e-3)
    assert found["pipeline_s"] == known.pipeline_s > 0.05
    assert figures.middle_of(replace(known, pipeline_s=0.01), runs)["pipeline_s"] == 0.05
    rates = {name: work["bytes_per_s"] for name, work in found["classes"].items()}
    assert rates == pytest.approx(
        {str(kind): work.bytes_per_s / 3 for kind, work in known.classes.items()}, rel=5e-3
    )


def test_cost_classes_that_are_added_count_with_the_others() -> None:
    """Measured on a machine that is twice as slow, of which one class of work says otherwise."""
    figures = importlib.import_module("bench.figures")
    kept = {name: {"invocation_s": 1e-9, "bytes_per_s": 4e9} for name in ("rows 4", "tiles 4", "slice1 4")}
    slower = {"invocation_s": 2e-9, "bytes_per_s": 2e9}
    measured = {"rows 4": slower, "tiles 4": {"invocation_s": 9e-9, "bytes_per_s": 1e9}, "slice1 4": slower}
    window = {"invocation_s": 6e-9, "bytes_per_s": 1e9}
    found = figures.relative_to_others("^window", kept, {**measured, "window_rows 16": window})
    assert found == {
        "window_rows 16": {"invocation_s": pytest.approx(3e-9), "bytes_per_s": pytest.approx(2e9)}
    }


def test_every_kernel_has_a_row_of_what_is_slower_without_it() -> None:
    kept = without.read()["kernels"]
    assert set(kept) == {kernel.value for kernel in Kernel}, "run `python3 run bench --without KERNEL`"
    for name, row in kept.items():
        assert row.items() >= without.about(Kernel(name)).items(), f"{name}: its file or its modules changed"
        assert row["GPUs, estimated"]["cases"] > 80
    assert kept["wide_tiles"]["GPUs, estimated"]["slower"]["u8 transpose"] > 2


def test_a_case_is_slower_by_its_best_other_strategy() -> None:
    kernels = {"rows": {Kernel.ROWS}, "slice1": {Kernel.SLICE1}, "bulk and end": {Kernel.ROWS, Kernel.SLICE1}}
    times = {"rows": 1.0, "bulk and end": 1.5, "slice1": 3.0, "buffer copy": 4.0}
    assert without.slowdown(Kernel.ROWS, kernels, times) == 3
    assert without.slowdown(Kernel.SLICE1, kernels, times) == 1
    assert without.slowdown(Kernel.ROWS, kernels, {"rows": 1.0}) == inf


@pytest.mark.parametrize(
    ("worst", "mean", "stays"), [(1.16, 1.0, True), (1.15, 1.03, False), (1.0, 1.04, True)]
)
def test_a_kernel_stays_for_one_case_or_for_the_mean(worst: float, mean: float, stays: bool) -> None:
    row = {"lines": 40, "modules": 1, "an adapter": {"mean": mean, "slower": {"a case": worst}}}
    assert without.stays("rows", row) == stays
    assert without.stays("slice1", row), "no other kernel takes every copy"

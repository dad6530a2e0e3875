"""Cost classes: probes of each, shipped files that have them all, and timings for such files."""

from __future__ import annotations

from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from planning import USUAL
from reference.plans import run_plan

import wgslice as wg
from bench.cost_classes import Timed, time_all, typical
from bench.probes import probes
from bench.window_probes import WindowProbe, window_probes
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits, Profile, shipped

COST_MODELS = ("lavapipe-22-3", "lavapipe-25-0", "llvmpipe-opengl", "swiftshader", "gpus")


@pytest.mark.parametrize("name", COST_MODELS)
def test_shipped_costs_have_every_cost_class(name: str) -> None:
    assert {probe.work for probe in probes()} <= shipped(name).classes.keys()


def steps_of(probe: WindowProbe, limits: Limits) -> list[Any]:
    """Its dispatches, for 200 KB."""
    steps = [step for step in probe.steps(200_000, limits) if hasattr(step, "windows")]
    assert steps
    return steps


def test_each_cost_class_has_one_probe() -> None:
    works = [probe.work for probe in probes()]
    assert len(set(works)) == len(works)


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
@pytest.mark.parametrize("probe", list(window_probes()), ids=lambda probe: str(probe.work))
def test_a_probe_is_of_its_class_and_copies_its_bytes(probe: WindowProbe, profile: Profile) -> None:
    """Its windows by reference implementations, against the bytes of the tensor or of the batch."""
    limits = replace(USUAL, profile=profile)
    for step in steps_of(probe, limits):
        assert step.work == probe.work
        copied_nbytes = len(step.windows.flips) * prod(step.windows.sizes) * probe.width_nbytes
        assert 100_000 < copied_nbytes < 300_000
        nowhere = Layout.packed((0,))
        plan = wg.Plan(0, 1, 1, nowhere, nowhere, (step,))
        if probe.kernel in (Kernel.LAST_WRITER_WINDOWS, Kernel.LAST_WRITER_ROWS):
            continue
        rng = np.random.default_rng(1)
        source = rng.integers(0, 256, step.source_binding.nbytes, np.uint8)
        target = np.zeros(step.target_binding.nbytes, np.uint8)
        run_plan(plan, source, target, step.windows.offsets)
        share = np.count_nonzero(target) / copied_nbytes
        assert share > (0.2 if probe.ends else 0.5)


def test_probes_of_inserted_windows_are_disjoint() -> None:
    for probe in window_probes():
        for step in steps_of(probe, replace(USUAL, profile=CPU)):
            offsets = step.windows.offsets
            assert offsets is not None
            assert len(np.unique(offsets[:, 0])) == len(offsets)
            assert (np.diff(np.sort(offsets[:, 0])) >= step.windows.sizes[0]).all()


# timing


QUIET: dict[Timed, float] = {("rows", 0): 1.0, ("rows", 1): 2.0, ("tiles", 0): 4.0, ("clear", 0): 8.0}


def slower(factor: float) -> dict[Timed, float]:
    """A round in which everything takes `factor` times as long."""
    return {timed: seconds * factor for timed, seconds in QUIET.items()}


def test_a_busier_round_changes_no_relative_time() -> None:
    found = typical([slower(3), QUIET, slower(1.5), slower(10), slower(2)])
    for timed, seconds in QUIET.items():
        assert found[timed] / found["rows", 0] == pytest.approx(seconds)


def test_a_timing_disturbed_in_one_round_is_ignored() -> None:
    assert typical([{**QUIET, ("tiles", 0): 400.0}, QUIET, QUIET]) == pytest.approx(QUIET)


def test_what_is_slower_in_every_round_is_slower() -> None:
    round_ = {**QUIET, ("tiles", 0): 12.0}
    assert typical([round_, slower(2) | {("tiles", 0): 24.0}, round_]) == pytest.approx(round_)


def test_an_incomplete_last_round_reports_its_measurements() -> None:
    found = typical([QUIET, {("rows", 0): 1.0, ("rows", 1): 2.0}])
    assert found == pytest.approx(QUIET)
    found = typical([QUIET, {("rows", 0): 3.0, ("rows", 1): 6.0}])
    assert found["rows", 1] / found["rows", 0] == pytest.approx(2)


def test_time_that_runs_out_leaves_classes_out(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cost_classes.MAX_S", 0.4)
    known = shipped("lavapipe-25-0")
    timed = time_all(device, known)
    assert 0 < len(timed.classes) < len(known.classes)
    assert timed.classes.keys() < known.classes.keys()
    assert all(work.bytes_per_s > 0 <= work.invocation_s for work in timed.classes.values())

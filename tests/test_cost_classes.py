"""Timing of each cost class for the shipped files: medians, of turns that are taken as equally busy."""

from __future__ import annotations

import pytest

import wgslice as wg
from bench.cost_classes import Timed, time_all, typical
from wgslice.plans.profiles import shipped

QUIET: dict[Timed, float] = {("rows", 0): 1.0, ("rows", 1): 2.0, ("tiles", 0): 4.0, ("clear", 0): 8.0}


def slower(factor: float) -> dict[Timed, float]:
    """A turn in which everything takes so many times as long."""
    return {timed: seconds * factor for timed, seconds in QUIET.items()}


def test_turns_that_are_busier_as_a_whole_change_no_figure_beside_another() -> None:
    found = typical([slower(3), QUIET, slower(1.5), slower(10), slower(2)])
    for timed, seconds in QUIET.items():
        assert found[timed] / found["rows", 0] == pytest.approx(seconds)


def test_a_timing_that_is_spoilt_in_one_turn_counts_for_nothing() -> None:
    assert typical([{**QUIET, ("tiles", 0): 400.0}, QUIET, QUIET]) == pytest.approx(QUIET)


def test_what_is_slower_in_every_turn_is_slower() -> None:
    turn = {**QUIET, ("tiles", 0): 12.0}
    assert typical([turn, slower(2) | {("tiles", 0): 24.0}, turn]) == pytest.approx(turn)


def test_a_last_turn_that_was_cut_short_says_what_it_has() -> None:
    found = typical([QUIET, {("rows", 0): 1.0, ("rows", 1): 2.0}])
    assert found == pytest.approx(QUIET)
    found = typical([QUIET, {("rows", 0): 3.0, ("rows", 1): 6.0}])
    assert found["rows", 1] / found["rows", 0] == pytest.approx(2)


def test_time_that_runs_out_leaves_classes_out(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.cost_classes.MOST_S", 0.4)
    known = shipped("lavapipe-25-0")
    timed = time_all(device, known)
    assert 0 < len(timed.works) < len(known.works)
    assert timed.works.keys() < known.works.keys()
    assert all(work.bytes_per_s > 0 <= work.invocation_s for work in timed.works.values())

"""What decides between buffer copies of rows and shaders is looked at where it matters, and only there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from helpers import on_one_adapter
from records import costs_from

import wgslice as wg
from wgslice.doctor.selftest import KernelTest
from wgslice.gpu import first_look
from wgslice.plans.costs import Figure
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits

selftest, tune = (import_module(f"wgslice.{name}") for name in ("doctor.selftest", "tuning.tune"))

X = np.arange(600 * 1000, dtype=np.uint32).reshape(600, 1000)  # 2.4 MB


@pytest.fixture
def looking(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> wg.Device:
    """A device of its own on the adapter, without word that shipped figures are wanted."""
    monkeypatch.delenv("WGSLICE_PROFILE")
    monkeypatch.setattr("wgslice.gpu.limits.find", lambda *_: None)
    fresh = wg.Device.request(device.adapter)
    if not fresh.adapter.software:
        pytest.skip("GPUs are not looked at")
    return fresh


def test_a_look_finds_figures_that_are_possible(looking: wg.Device) -> None:
    assert 1e-8 < first_look.copy_seconds(looking) < 1e-2
    assert 1e6 < first_look.plain_bytes_per_s(looking) < 1e13


@pytest.mark.parametrize(
    ("copy_s", "bytes_per_s", "copied"), [(1e-9, 1e6, True), (1e-2, 1e12, False), (1e-2, 1e3, True)]
)
def test_what_a_look_finds_decides(
    looking: wg.Device, monkeypatch: pytest.MonkeyPatch, copy_s: float, bytes_per_s: float, copied: bool
) -> None:
    monkeypatch.setattr(first_look, "copy_seconds", lambda _: copy_s)
    monkeypatch.setattr(first_look, "plain_bytes_per_s", lambda _: bytes_per_s)
    x = wg.asarray(X, device=looking)
    x[:2, ::-2].numpy()  # a shader has run before
    for left in ({Figure.SHADER}, set()):  # a copy is held up for one figure at the most
        assert np.array_equal(x[1:, 1:].numpy(), X[1:, 1:])
        assert looking.untried == left
    costs = looking.limits.profile.costs
    assert costs.copy_s == copy_s
    assert costs.plain_bytes_per_s == bytes_per_s
    plan = str(wg.explain(x[1:, 1:]))
    assert ("599 buffer copies of" in plan) == copied
    assert "adjusted by a look at this machine" in plan
    assert np.array_equal(x[1:, 1:].numpy(), X[1:, 1:])


@pytest.mark.parametrize(("copy_s", "copied"), [(1e-9, True), (1e-2, False)])
def test_a_batch_in_another_order_is_worth_a_look(
    looking: wg.Device, monkeypatch: pytest.MonkeyPatch, copy_s: float, copied: bool
) -> None:
    monkeypatch.setattr(first_look, "copy_seconds", lambda _: copy_s)
    x, order = wg.asarray(X, device=looking), np.random.default_rng(1).permutation(len(X))
    assert np.array_equal(x[order].numpy(), X[order])
    assert Figure.COPY not in looking.untried
    sides = wg.TensorDesc("uint32", X.shape), wg.TensorDesc("uint32", (600, 1, 1000))
    offsets = np.stack([order, 0 * order], 1)
    plan = looking.compile(wg.ExtractWindows(*sides, offsets, (1, 1000))).plan
    assert (plan.summary.endswith("600 buffer copies")) == copied


def test_shaders_are_looked_at_once_one_has_run(looking: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The first of a process takes a driver a quarter of a second: a copy that needs none does not wait."""
    monkeypatch.setattr(first_look, "copy_seconds", lambda _: 1e-12)
    x = wg.asarray(X, device=looking)
    x[1:, 1:].numpy()
    assert looking.untried == {Figure.SHADER}
    x[:2, ::-2].numpy()
    x[1:, 1:].numpy()
    assert not looking.untried


def test_nobody_looks_for_small_copies_flips_or_where_figures_are_said(
    looking: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_: wg.Device) -> float:
        raise AssertionError

    monkeypatch.setattr(first_look, "copy_seconds", fail)
    monkeypatch.setattr(first_look, "plain_bytes_per_s", fail)
    x = wg.asarray(X, device=looking)
    for view, expected in ((x[1:200, 1:], X[1:200, 1:]), (x[:, ::-1], X[:, ::-1]), (x[1:], X[1:])):
        assert np.array_equal(view.numpy(), expected)
    assert looking.untried
    monkeypatch.setenv("WGSLICE_PROFILE", "shipped")
    assert np.array_equal(x[1:, 1:].numpy(), X[1:, 1:])
    assert not looking.untried
    assert "adjusted" not in str(wg.explain(x[1:, 1:]))


def test_a_compiled_operator_is_planned_after_the_look(
    looking: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(first_look, "copy_seconds", lambda _: 1e-12)
    described = wg.TensorDesc("uint32", X.shape), wg.TensorDesc("uint32", (599, 999))
    operator = looking.compile(wg.Slice(*described, (1, 1), (599, 999)))
    assert "adjusted by a look at this machine" in str(operator.plan)
    assert np.array_equal(operator(wg.asarray(X, device=looking)).numpy(), X[1:, 1:])


@on_one_adapter
@pytest.mark.parametrize(("slow", "quick"), [*permutations(("look", "selftest", "tune"), 2)])
def test_a_slow_measurement_keeps_what_a_quick_one_wrote(
    looking: wg.Device, monkeypatch: pytest.MonkeyPatch, slow: str, quick: str
) -> None:
    """The quick one runs while the slow one measures."""
    measuring: list[str] = []

    def measured(name: str, result: Any) -> Any:
        measuring.append(name)
        if measuring == [slow]:
            writers[quick]()
        return result

    failed = [KernelTest("slice1", 2, 1, "a wrong byte"), KernelTest("rows", 2, 0, "")]
    monkeypatch.setattr(first_look, "copy_seconds", lambda _: measured("look", 0.5))
    monkeypatch.setattr(selftest, "run", lambda *_: measured("selftest", failed))
    monkeypatch.setattr(tune, "measure_costs", lambda *_: measured("tune", costs_from(copy_s=0.25)))
    monkeypatch.setattr(tune, "keep", lambda _: None)
    x = wg.asarray(X, device=looking)
    writers: dict[str, Callable[[], object]] = {
        "look": x[1:, 1:].copy,
        "selftest": lambda: wg.selftest(looking),
        "tune": lambda: wg.tune(looking),
    }
    writers[slow]()
    assert measuring == [slow, quick]
    limits = looking.limits
    assert limits.distrusted == ({Kernel.SLICE1} if "selftest" in (slow, quick) else set())
    assert limits.profile.costs.copy_s == (0.25 if "tune" in (slow, quick) else 0.5)


@on_one_adapter
def test_limits_are_read_and_written_under_one_lock(device: wg.Device) -> None:
    made = wg.Device.request(device.adapter)
    held: list[bool] = []

    def update(limits: Limits) -> Limits:
        held.append(made.limits_lock.locked())
        return replace(limits, workgroups=17)

    made.update_limits(update)
    assert held == [True]
    assert made.limits.workgroups == 17

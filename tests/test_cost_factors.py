"""Factors of cost classes: every kernel that copies a typical slice is timed beside its estimate."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest
from helpers import MEASURED, on_one_adapter

import wgslice as wg
from wgslice.calibration import tune
from wgslice.calibration.measure import (
    CONSTANTS,
    class_of,
    constants_of,
    measure_factors,
    probes_of,
    with_constants,
)
from wgslice.layout import Layout
from wgslice.plans.facade import copying, plan
from wgslice.plans.profiles import CPU, GPU, CostClass, Limits, Profile

# the cost model, scaled


def factors_of(scaled: Profile, profile: Profile) -> dict[CostClass, float]:
    """The seconds of each cost class over those of another profile."""
    factors = {}
    for kind, work in scaled.costs.classes.items():
        before = profile.costs.classes[kind]
        factors[kind] = before.bytes_per_s / work.bytes_per_s
        assert work.invocation_s == pytest.approx(before.invocation_s * factors[kind])
    return factors


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_the_shader_bandwidth_scales_what_was_not_measured(profile: Profile) -> None:
    scaled = with_constants(profile, MEASURED, "2026-02-03")
    factor = constants_of(profile)["shader_bytes_per_s"] / MEASURED["shader_bytes_per_s"]
    assert factors_of(scaled, profile) == pytest.approx(dict.fromkeys(profile.costs.classes, factor))


def test_cost_classes_without_a_factor_take_their_kernels_or_all() -> None:
    known = constants_of(CPU)
    measured = known | {"shader_bytes_per_s": known["shader_bytes_per_s"] / 5}
    given = {"rows 4 contiguous": 3.0, "rows 8 contiguous": 2.0, "rows 8 short-stride": 4.5, "tiles 4": 0.5}
    factors = {CostClass.parsed(text): factor for text, factor in given.items()}
    scaled = with_constants(CPU, measured, "2026-02-03", factors)
    assert constants_of(scaled) == pytest.approx(measured)
    expected = {
        **{kind: {"rows": 3.0, "tiles": 0.5}.get(kind.kernel.value, 5.0) for kind in CPU.costs.classes},
        **factors,
        CostClass.parsed("rows 4 contiguous"): 5.0,  # by which the bandwidth is defined
    }
    assert factors_of(scaled, CPU) == pytest.approx(expected)


# measurements


def timed_by(hidden: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let timings take what another cost model estimates."""

    def seconds(_: wg.Device, plan: wg.Plan, *__: object) -> float:
        return replace(plan, costs=hidden.costs).seconds or 0.0

    monkeypatch.setattr("wgslice.calibration.measure.seconds", seconds)


@pytest.fixture(params=[CPU, GPU], ids=lambda profile: profile.name)
def shipping(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """A profile that is the shipped one of every adapter."""
    profile: Profile = request.param
    for module in ("tune", "measure"):
        monkeypatch.setattr(f"wgslice.calibration.{module}.shipped_profile", lambda _: profile)
    return profile


@on_one_adapter
def test_mistaken_costs_of_cost_classes_are_found(
    device: wg.Device, shipping: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    known, mistaken = constants_of(shipping), {"shifted_rows 1 every-second": 3.4, "wide_tiles 4": 0.4}
    mistaken |= {"rows 4 short-stride": 5.0, "pixels 1": 2.0}
    truth = {kind: mistaken.get(str(kind), 1.5) for kind in shipping.costs.classes}
    truth[CostClass.parsed("rows 4 contiguous")] = 1.0  # by which the bandwidth is defined
    timed_by(with_constants(shipping, known, "", truth), monkeypatch)
    made = wg.Device.request(device.adapter)
    made.limits = replace(made.limits, profile=shipping)
    record = tune.measured(made, lambda *_: None)
    assert record.constants == pytest.approx(known, rel=0.02)
    for kind, factor in record.factors.items():
        # slices with dispatches of several classes have some of the others
        assert factor == pytest.approx(truth[kind], rel=0.1), kind
    assert {str(kind) for kind in record.factors} > mistaken.keys()
    profile = tune.calibrated_profile(device.adapter, record)
    source, target = Layout.of((512, 512), (1024, 2)), Layout.packed((512, 512))
    before, after = (
        plan(copying(source, target, 1), Limits(profile=each)).summary for each in (shipping, profile)
    )
    assert ("shifted" in before, "shifted_rows" in after) == (True, False)


@on_one_adapter
def test_timings_that_are_mostly_overhead_give_no_factor(
    device: wg.Device, shipping: Profile, monkeypatch: pytest.MonkeyPatch
) -> None:
    fast = dict.fromkeys(shipping.costs.classes, 1e-3)
    constants = constants_of(shipping)
    timed_by(with_constants(shipping, constants | {"shader_bytes_per_s": 1e15}, "", fast), monkeypatch)
    found = measure_factors(device, constants | {"dispatch_s": 0.1, "submission_s": 0.1}, lambda *_: None)
    assert found == {}


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_cost_classes_of_typical_slices_are_measured(profile: Profile) -> None:
    found = {class_of(probe, profile.costs) for probe in probes_of(2**20, Limits(profile=profile))}
    names = {str(kind) for kind in found}
    for width, pattern in product((4, 8), ("contiguous", "short-stride", "paired contiguous")):
        assert f"rows {width} {pattern}" in names
    for width, kernel in product((1, 2), ("subword_rows", "shifted_rows", "shifted_grid")):
        assert any(name.startswith(f"{kernel} {width} ") for name in names)
    for width, kernel in product((1, 2), ("pixels", "register_tiles", "subword_steps")):
        assert f"{kernel} {width}" in names
    for width in (1, 2, 4, 8, 16):
        assert {f"slice1 {width}", f"wide_tiles {width}"} < names
    assert found < profile.costs.classes.keys()


@pytest.mark.every_adapter
def test_measured_factors_are_possible(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgslice.calibration.measure.ITEMSIZES", (4,))
    monkeypatch.setattr("wgslice.calibration.measure.CLASS_ROUNDS", 1)
    shown: list[tuple[float, str]] = []
    constants = dict.fromkeys(CONSTANTS, 1e-9)
    found = measure_factors(device, constants, lambda *what: shown.append(what))
    assert {"rows 4 short-stride", "slice1 4"} < {str(kind) for kind in found}
    assert all(1e-4 < factor < 1e4 for factor in found.values())
    assert shown == sorted(shown, key=lambda each: each[0])
    assert (shown[0][0], shown[-1]) == (0, (1, ""))
    assert {"rows", "slice1", "wide_tiles"} < {what for _, what in shown}

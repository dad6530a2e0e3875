"""The verdict of `tune`: how many typical slices change their strategy, and the estimated speed-up."""

from __future__ import annotations

import pytest

from wgslice.calibration.measure import constants_of, with_constants
from wgslice.calibration.verdict import verdict
from wgslice.plans.choose import WORTHWHILE
from wgslice.plans.profiles import CPU, GPU, Profile


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_a_verdict_counts_slices_of_another_strategy(profile: Profile) -> None:
    """Free buffer copies are taken wherever they apply; equal cost models change nothing."""
    same = verdict(profile, profile)
    assert (same.changed, same.speedup) == (0, 1.0)
    assert str(same) == "0 of 168 typical slices use another strategy than with the shipped cost model"
    free = with_constants(profile, constants_of(profile) | {"copy_s": 1e-12, "copy_bytes_per_s": 1e15}, "")
    copied = verdict(profile, free)
    assert 0 < copied.changed < copied.slices == same.slices
    assert copied.speedup > 1.2
    back = verdict(free, profile)
    assert back.changed == copied.changed
    assert back.speedup > 1


@pytest.mark.parametrize("factor", [0.2, 0.5, 2.0, 5.0])
@pytest.mark.parametrize("name", constants_of(CPU))
@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
def test_changed_strategies_are_not_estimated_slower(profile: Profile, name: str, factor: float) -> None:
    """Beyond the share that planning does not search for."""
    known = constants_of(profile)
    found = verdict(profile, with_constants(profile, known | {name: known[name] * factor}, ""))
    assert found.speedup >= WORTHWHILE

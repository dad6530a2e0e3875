"""Measured costs differ from known ones where noise does not explain it, and by how fast the machine is."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from wgslice.plans.costs import Costs, Work
from wgslice.plans.shipped import shipped
from wgslice.tuning.settling import NOISE, settled

KNOWN = shipped("lavapipe-25-0")
FIGURES = [field.name for field in fields(Costs) if field.type == "float"]


def slower(costs: Costs, factor: float) -> Costs:
    """What a machine would measure that is as much slower in everything."""
    works = {
        name: Work(work.invocation_s * factor, work.bytes_per_s / factor)
        for name, work in costs.works.items()
    }
    fixed = {
        name: getattr(costs, name) / factor if name.endswith("bytes_per_s") else getattr(costs, name) * factor
        for name in FIGURES
    }
    return replace(costs, works=works, **fixed)


@pytest.mark.parametrize("factor", [0.2, 1.0, 3.0])
def test_a_machine_that_is_slower_in_everything_chooses_alike(factor: float) -> None:
    found = settled(slower(KNOWN, factor), KNOWN)
    for name, work in slower(KNOWN, factor).works.items():
        assert found.works[name].bytes_per_s == pytest.approx(work.bytes_per_s)
        assert found.works[name].invocation_s == pytest.approx(work.invocation_s)
    assert found.copy_s == pytest.approx(KNOWN.copy_s * factor)


@pytest.mark.parametrize(("share", "is_kept"), [(0.98, False), (1.02, True)])
def test_what_noise_explains_is_as_it_is_known(share: float, is_kept: bool) -> None:
    """At both sides of what noise makes of one class of work, and of one other figure."""
    factor = NOISE * share
    name = "rows 4 near"
    other = Work(KNOWN.works[name].invocation_s * factor, KNOWN.works[name].bytes_per_s / factor)
    measured = replace(KNOWN, works={**KNOWN.works, name: other}, copy_s=KNOWN.copy_s / factor)
    found = settled(measured, KNOWN)
    assert (found.works[name] == other) == is_kept
    assert (found.copy_s == KNOWN.copy_s / factor) == is_kept
    assert found.works["rows 4 far"].bytes_per_s == pytest.approx(KNOWN.works["rows 4 far"].bytes_per_s)

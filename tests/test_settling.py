"""Measured costs differ from known ones where noise does not explain it, and by how fast the machine is."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from wgslice.plans.costs import Costs, Work, shipped
from wgslice.tuning.settling import CERTAIN, NOISE, settled

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


@pytest.mark.parametrize(
    ("factor", "is_known", "is_measured"),
    [
        (NOISE * 0.98, True, False),
        (NOISE * 1.02, False, False),
        (CERTAIN * 0.98, False, False),
        (CERTAIN * 1.02, False, True),
    ],
)
@pytest.mark.parametrize("slower", [True, False])
def test_what_noise_explains_is_as_it_is_known(
    factor: float, is_known: bool, is_measured: bool, slower: bool
) -> None:
    """At both sides of what noise makes of one class of work and of one other figure, and of certainty."""
    name, factor = "rows 4 near", factor if slower else 1 / factor
    known = KNOWN.works[name]
    other = Work(known.invocation_s * factor, known.bytes_per_s / factor)
    measured = replace(KNOWN, works={**KNOWN.works, name: other}, copy_s=KNOWN.copy_s / factor)
    found = settled(measured, KNOWN)
    for figure, expected, given in (
        (found.works[name].bytes_per_s, known.bytes_per_s, other.bytes_per_s),
        (found.works[name].invocation_s, known.invocation_s, other.invocation_s),
        (found.copy_s, KNOWN.copy_s, KNOWN.copy_s / factor),
    ):
        assert (figure == pytest.approx(expected)) == is_known
        assert (figure == pytest.approx(given)) == is_measured
        assert min(expected, given) * 0.999 <= figure <= max(expected, given) * 1.001
    assert found.works["rows 4 far"].bytes_per_s == pytest.approx(KNOWN.works["rows 4 far"].bytes_per_s)


def test_no_small_difference_makes_a_large_one() -> None:
    """Measurements that differ by a hundredth give figures that differ by less than three, everywhere."""
    name = "tiles 4"
    known = KNOWN.works[name]
    before = known.bytes_per_s
    for step in range(1, 200):
        works = {**KNOWN.works, name: Work(known.invocation_s, known.bytes_per_s / 1.01**step)}
        found = settled(replace(KNOWN, works=works), KNOWN).works[name].bytes_per_s
        assert before / 1.01**3 <= found <= before
        before = found


@pytest.mark.parametrize("factor", [1.2, NOISE * 1.2, CERTAIN * 1.2])
@pytest.mark.parametrize("slower", [True, False])
def test_what_slows_rows_and_pairs_of_rows_leaves_their_order(factor: float, slower: bool) -> None:
    """They differ by a fifth more than is known, which is no reason to choose otherwise."""
    names = "rows 4 far", "rows 4 paired far"
    works = dict(KNOWN.works)
    for name, more in zip(names, (1.0, 1.2), strict=True):
        by = factor * more if slower else 1 / (factor * more)
        works[name] = Work(works[name].invocation_s * by, works[name].bytes_per_s / by)
    found = settled(replace(KNOWN, works=works), KNOWN).works
    rate, paired = (found[name].bytes_per_s / KNOWN.works[name].bytes_per_s for name in names)
    assert rate == pytest.approx(paired)
    assert (rate == pytest.approx(1.0)) == (factor < NOISE)
    if factor > CERTAIN:
        assert rate == pytest.approx(1 / factor if slower else factor)


def test_what_was_not_measured_is_as_known_on_a_machine_as_fast() -> None:
    measured = slower(KNOWN, 2.5)
    works = {name: work for name, work in measured.works.items() if "window" not in name}
    found = settled(replace(measured, works=works), KNOWN)
    assert found.works.keys() == KNOWN.works.keys()
    for name, work in measured.works.items():
        assert found.works[name].bytes_per_s == pytest.approx(work.bytes_per_s)
        assert found.works[name].invocation_s == pytest.approx(work.invocation_s)

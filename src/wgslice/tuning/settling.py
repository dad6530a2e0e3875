"""What a measurement changes of figures that are known, and what may be noise."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from math import log
from statistics import median
from typing import Any

from wgslice.plans.costs import Costs, Work

__all__ = ["CERTAIN", "NOISE", "seconds", "settled"]

# Two measurements of one machine, minutes apart, differ by up to NOISE in single figures where others use it
# too (2 cores of an AMD EPYC): no reason to choose otherwise. What differs by CERTAIN is as it was measured;
# between the two a figure moves steadily from one to the other: no small difference makes a large one.
NOISE, CERTAIN = 1.7, 3.5
TYPICAL_NBYTES = 64  # of an invocation


def settled(measured: Costs, known: Costs) -> Costs:
    """Measured costs; what may be noise or is missing is as it is known, but for how fast the machine is."""
    slower = {name: seconds(work) / seconds(known.works[name]) for name, work in measured.works.items()}
    common = median(slower.values())
    works = {
        name: Work(work.invocation_s * common, work.bytes_per_s / common)
        for name, work in known.works.items()
        if name not in measured.works
    }
    for name, work in measured.works.items():
        alike = shared([slower[other] / common for other in slower if family(other) == family(name)])
        factor = common * alike ** certainty(alike, 1.0)
        expected = Work(known.works[name].invocation_s * factor, known.works[name].bytes_per_s / factor)
        share = certainty(slower[name] / common, alike)
        invocation_s = share * work.invocation_s + (1 - share) * expected.invocation_s
        works[name] = Work(invocation_s, between(work.bytes_per_s, expected.bytes_per_s, share))
    fixed: dict[str, Any] = {}
    for field in fields(Costs):
        if field.type == "float":
            figure, expected_figure = getattr(measured, field.name), getattr(known, field.name)
            expected_figure *= 1 / common if field.name.endswith("bytes_per_s") else common
            fixed[field.name] = between(figure, expected_figure, certainty(figure, expected_figure))
    return replace(measured, works=works, **fixed)


def family(name: str) -> str:
    """What classes of work have in common that differ in nothing but how many dimensions are a row."""
    return name.replace(" paired", "")


def shared(factors: Sequence[float]) -> float:
    """How much slower all of several classes of work are, which says nothing of which of them to choose."""
    least, most = min(factors), max(factors)
    if len(factors) == 1 or least <= 1 <= most:
        return 1.0
    return least if least > 1 else most


def seconds(work: Work) -> float:
    """What a typical invocation takes."""
    return work.invocation_s + TYPICAL_NBYTES / work.bytes_per_s


def certainty(figure: float, expected: float) -> float:
    """How far a figure counts that was measured: 0 where noise explains it, 1 where nothing else does."""
    differs = abs(log(figure / expected))
    return min(max((differs - log(NOISE)) / (log(CERTAIN) - log(NOISE)), 0.0), 1.0)


def between(figure: float, expected: float, share: float) -> float:
    """A figure that lies the share of the way from what was expected to what was measured."""
    return float(figure**share * expected ** (1 - share))

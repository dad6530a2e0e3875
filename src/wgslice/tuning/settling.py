"""What a measurement changes of figures that are known, and what may be noise."""

from __future__ import annotations

from dataclasses import fields, replace
from statistics import median

from wgslice.plans.costs import Costs, Work

__all__ = ["NOISE", "settled"]

# Two measurements of one machine, minutes apart, may differ by this factor in single figures where others
# use it too (2 cores of an AMD EPYC): no reason to choose otherwise. Those of another machine may be wrong by
# three and more.
NOISE = 2.0
TYPICAL_NBYTES = 64  # of an invocation


def settled(measured: Costs, known: Costs) -> Costs:
    """Measured costs; what may be noise is as it is known, but for how fast all of the machine is."""
    common = median(seconds(work) / seconds(known.works[name]) for name, work in measured.works.items())
    works = {}
    for name, work in measured.works.items():
        expected = Work(known.works[name].invocation_s * common, known.works[name].bytes_per_s / common)
        works[name] = expected if is_noise(seconds(work), seconds(expected)) else work
    fixed = {}
    for field in fields(Costs):
        if field.type == "float":
            expected_figure = getattr(known, field.name)
            if field.name.endswith("bytes_per_s"):
                expected_figure /= common
            else:
                expected_figure *= common
            figure = getattr(measured, field.name)
            fixed[field.name] = expected_figure if is_noise(figure, expected_figure) else figure
    return replace(measured, works=works, **fixed)


def seconds(work: Work) -> float:
    """What a typical invocation takes."""
    return work.invocation_s + TYPICAL_NBYTES / work.bytes_per_s


def is_noise(figure: float, expected: float) -> bool:
    """Whether a figure differs from what is expected no more than noise makes it."""
    return expected / NOISE <= figure <= expected * NOISE

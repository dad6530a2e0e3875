"""Regret: how much longer a plan takes than the best way that its candidates offer, by running them all."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

import wgslice as wg
from bench.cases import CASES, Case
from bench.report import MEBIBYTE, geometric_mean
from bench.rivals.ours import device
from wgslice.gpu.pipelines import Place
from wgslice.gpu.recording import Recorder
from wgslice.plans.plan import Plan, in_order
from wgslice.plans.terms import seat

__all__ = ["Regret", "Way", "measure_regret", "show_regret"]

MOST_NBYTES = 2**26  # of an output, so that a run takes minutes and not an hour
TRUE_FOR = 3.0  # ways that take so many times as long as the best are timed no more


@dataclass
class Way:
    """A candidate, run."""

    name: str
    plan: Plan
    estimate_s: float
    best_s: float = inf


@dataclass(frozen=True)
class Regret:
    """A case, and all ways to do it."""

    case: Case
    ways: Sequence[Way]  # the chosen one first

    @property
    def value(self) -> float:
        """Time of the chosen way over the best one's."""
        return self.ways[0].best_s / min(way.best_s for way in self.ways)


def regretted(pattern: str) -> list[Case]:
    """The cases of 1 MiB and more whose names match."""
    return [
        case for case in CASES if MEBIBYTE <= case.nbytes <= MOST_NBYTES and re.search(pattern, case.name)
    ]


def measure_regret(console: Console, pattern: str, rounds: int) -> list[Regret]:
    """Run every candidate of each case, in turns; the best time of each counts."""
    cases = regretted(pattern)
    return [measure_case(case, rounds) for case in track(cases, "regret", console=console, transient=True)]


def measure_case(case: Case, rounds: int) -> Regret:
    """One case: each way is checked against NumPy once, then timed."""
    array = case.array()
    x = wg.asarray(array, device)
    view = wg.permute(x, case.work.axes)[case.key]
    expected = np.ascontiguousarray(case.work.of(array))
    target = wg.empty(expected.shape, expected.dtype, device)
    plan = wg.explain(view)
    base = seat(view.layout, view.dtype.itemsize, x.buffer.size, device.limits).base
    places = [Place(x.buffer, base), Place(target.buffer)]
    ways = [
        Way(choice.name, replace(plan, steps=in_order(choice.steps)), choice.seconds)
        for choice in plan.alternatives_of()
    ]
    for way in ways:
        run(way.plan, places)
        if not np.array_equal(target.numpy().view(np.uint8), expected.view(np.uint8)):
            raise ValueError(f"{case.name} by {way.name}: wrong")
    for _ in range(rounds):
        best = min(way.best_s for way in ways)
        for way in ways:
            if way.best_s <= TRUE_FOR * best or way is ways[0]:
                run(way.plan, places)
                way.best_s = min(way.best_s, run(way.plan, places))
    return Regret(case, ways)


def run(plan: Plan, places: Sequence[Place]) -> float:
    """Record, submit and wait; seconds."""
    commands = device.pipelines.prepare(plan)
    start = perf_counter()
    encoder = device.create_encoder()
    recorder = Recorder(device, encoder)
    recorder.add(plan, commands, places)
    recorder.end()
    device.submit(encoder)
    device.synchronize()
    return perf_counter() - start


def show_regret(console: Console, found: Sequence[Regret]) -> None:
    """A line a case, and the figures asked of all."""
    table = Table("slice", "chosen", "ms", "estimate", "best", "ms", "estimate", "regret")
    for regret in sorted(found, key=lambda one: -one.value):
        chosen, best = regret.ways[0], min(regret.ways, key=lambda way: way.best_s)
        table.add_row(
            regret.case.name,
            *(text for way in (chosen, best) for text in described(way)),
            f"{regret.value:.2f}",
        )
    console.print(table)
    values = [one.value for one in found]
    console.print(f"regret: geometric mean {geometric_mean(values):.2f}, worst {max(values):.2f}")


def described(way: Way) -> Iterator[str]:
    """Name, milliseconds, estimated milliseconds."""
    yield way.name
    yield f"{way.best_s * 1e3:.2f}"
    yield f"{way.estimate_s * 1e3:.2f}"

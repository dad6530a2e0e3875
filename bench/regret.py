"""Regret: how much longer a plan takes than the best way that its candidates offer, by running them all."""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.cases import CASES, Case
from bench.prepared import Prepared, prepared
from bench.report import MEBIBYTE, RESULTS, about, geometric_mean, stem_of, write_json
from bench.rivals.ours import describe, device
from bench.schedule import Schedule
from bench.tasks import MANY_WINDOWS, Task
from wgslice.calibration.measure import measure_constants
from wgslice.calibration.tune import calibrated_profile, recorded
from wgslice.gpu.device import shipped_profile
from wgslice.gpu.pipelines import Place
from wgslice.gpu.recording import Recorder
from wgslice.plans.choose import Choice
from wgslice.plans.plan import Plan, in_order
from wgslice.plans.profiles import Costs
from wgslice.plans.window_strategies import winners_scratch
from wgslice.plans.windows import WindowDispatch

__all__ = ["Regret", "Way", "run_regret"]

MAX_NBYTES = 2**26  # of an output, so that a run takes minutes and not an hour
KINDS = "slices", "permutes", "windows"
HOPELESS = 5.0  # strategies estimated to take this many times the best are run once


@dataclass
class Way:
    """A candidate, run."""

    name: str
    plan: Plan
    estimate_s: float  # by either figures, the lower one
    best_s: float = inf


@dataclass(frozen=True)
class Regret:
    """A case, all ways to do it, and which one each set of figures chooses, with its estimate."""

    case: Case
    ways: Sequence[Way]
    chosen: Mapping[str, tuple[str, float]]

    @property
    def best(self) -> Way:
        """The quickest way."""
        return min(self.ways, key=lambda way: way.best_s)

    def way(self, figures: str) -> Way:
        """The way that some figures choose."""
        return next(way for way in self.ways if way.name == self.chosen[figures][0])

    def value(self, figures: str) -> float:
        """Time of the way that some figures choose over the best one's."""
        return self.way(figures).best_s / self.best.best_s


def run_regret(console: Console, arguments: Namespace) -> None:
    """`python3 run bench --regret`: with the figures that are shipped, and with those of this adapter.

    With `--rounds 0` nothing is timed again: figures that have changed are judged by the times that are kept.
    """
    cases = [
        case
        for case in [*CASES, *MANY_WINDOWS]
        if MEBIBYTE <= case.nbytes <= MAX_NBYTES and re.search(arguments.cases, case.name)
    ]
    cases.sort(key=lambda case: KINDS.index(kind_of(case)))  # a budget leaves out the last ones
    found = []
    with Schedule(console, 1 + len(cases), arguments.budget) as schedule:
        schedule.begin("figures of this adapter")
        adapter = device.adapter
        tuned = recorded(adapter, lambda: measure_constants(device, lambda _, __: None))
        figures = {
            "shipped": shipped_profile(adapter).costs,
            "tuned": calibrated_profile(adapter, tuned).costs,
        }
        schedule.finish("figures of this adapter")
        before = kept_before(arguments) if arguments.rounds == 0 else {"slices": []}
        times = {case["name"]: case["ways_s"] for case in before["slices"]}
        for case in cases:
            if schedule.spent:
                break
            schedule.begin(case.name)
            found.append(measure_case(case, arguments.rounds, figures, times.get(case.name)))
            schedule.finish(case.name)
    for name in figures:
        console.print(table(found, name))
    show_means(console, found, list(figures))
    slices = [case for case in cases if kind_of(case) == "slices"]
    if arguments.cases or len(found) < len(slices):
        console.print("not kept: only a run of all slices is")
        return
    from bench.regret_chart import draw_regret  # imported here: it loads matplotlib

    kept = {**about([], arguments), "contenders": {"wgslice": describe()}, **kept_of(found, list(figures))}
    if arguments.rounds == 0:  # the times are of the code that they were measured of
        kept |= {name: before.get(name) for name in ("commit", "fingerprints")}
    stem = f"{stem_of(kept)}-regret"
    write_json(kept, RESULTS / f"{stem}.json")
    draw_regret(kept, RESULTS / f"{stem}.png")
    console.print(f"kept in bench/results/{stem}.json and .png")


def kept_before(arguments: Namespace) -> dict[str, Any]:
    """What the last run on this adapter has kept."""
    now = {**about([], arguments), "contenders": {"wgslice": describe()}}
    kept: dict[str, Any] = json.loads((RESULTS / f"{stem_of(now)}-regret.json").read_text("utf-8"))
    return kept


def measure_case(
    case: Case, rounds: int, figures: Mapping[str, Costs], times: Mapping[str, float] | None
) -> Regret:
    """One case: each way is checked against NumPy once, then timed in turns; the best time counts.

    Where the times are known, nothing runs.
    """
    asked = prepared(case)
    plans = {name: asked.plan(costs) for name, costs in figures.items()}
    ways: dict[str, Way] = {}
    for plan in plans.values():
        for choice in plan.choices:
            run_by = Way(choice.name, plan_by(plan, choice), choice.seconds)
            way = ways.setdefault(choice.name, run_by)
            way.estimate_s = min(way.estimate_s, choice.seconds)
    chosen = {name: (plan.choices[0].name, plan.seconds or 0.0) for name, plan in plans.items()}
    if times is None:
        time_ways(case.name, list(ways.values()), asked, rounds)
    else:
        for way in ways.values():
            way.best_s = times[way.name]
    return Regret(case, list(ways.values()), chosen)


def plan_by(plan: Plan, choice: Choice) -> Plan:
    """A plan that goes another way."""
    if isinstance(choice.steps[0], WindowDispatch):  # whose order is part of them
        return replace(plan, steps=choice.steps, scratch=winners_scratch(choice.steps))
    return replace(plan, steps=in_order(choice.steps))


def time_ways(name: str, ways: Sequence[Way], asked: Prepared, rounds: int) -> None:
    """Check each way against NumPy, then time them in turns."""
    for way in ways:
        asked.target[...] = 0  # nothing of what the way before it wrote
        way.best_s = run(way.plan, asked.places)
        if asked.target.numpy().tobytes() != asked.expected.tobytes():
            raise ValueError(f"{name} by {way.name}: wrong")
    least_s = min(way.estimate_s for way in ways)
    for _ in range(rounds):
        for way in ways:
            if way.estimate_s <= HOPELESS * least_s:
                run(way.plan, asked.places)
                way.best_s = min(way.best_s, run(way.plan, asked.places))


def run(plan: Plan, places: Sequence[Place]) -> float:
    """Record, submit and wait; seconds."""
    device.pipelines.prepare(plan)
    start = perf_counter()
    encoder = device.create_encoder()
    recorder = Recorder(device, encoder)
    recorder.add(plan, places)
    recorder.end()
    device.submit(encoder)
    device.synchronize()
    return perf_counter() - start


def table(found: Sequence[Regret], figures: str) -> Table:
    """A line a case, the worst first."""
    columns = "slice", "chosen", "ms", "estimated", "best", "ms", "regret"
    shown = Table(*columns, title=f"regret with {figures} figures")
    for one in sorted(found, key=lambda one: -one.value(figures)):
        shown.add_row(*cells(one, figures))
    return shown


def cells(one: Regret, figures: str) -> Iterator[str]:
    """What a line of the table says."""
    way, (_, estimate_s) = one.way(figures), one.chosen[figures]
    yield from (one.case.name, way.name, milliseconds(way.best_s), milliseconds(estimate_s))
    yield from (one.best.name, milliseconds(one.best.best_s), f"{one.value(figures):.2f}")


def milliseconds(seconds: float) -> str:
    """As a table has them."""
    return f"{seconds * 1e3:.2f}"


def show_means(console: Console, found: Sequence[Regret], figures: Sequence[str]) -> None:
    """The figures asked of all slices, of all permutes, and of all windows."""
    for kind, some in kinds(found).items():
        for name in figures:
            values = [one.value(name) for one in some]
            mean, worst = geometric_mean(values), max(values)
            line = f"{kind}, {name} figures: geometric mean {mean:.2f}, worst {worst:.2f}"
            console.print(line, highlight=False)


def kinds(found: Sequence[Regret]) -> dict[str, list[Regret]]:
    """Slices, permutes and windows, if there are any."""
    some = {kind: [one for one in found if kind_of(one.case) == kind] for kind in KINDS}
    return {kind: of_kind for kind, of_kind in some.items() if of_kind}


def kind_of(case: Case) -> str:
    """What a case is."""
    if isinstance(case, Task):
        return "windows"
    return "permutes" if case.work.permuted else "slices"


def kept_of(found: Sequence[Regret], figures: Sequence[str]) -> dict[str, Any]:
    """What is kept of a run."""
    means = {
        kind: {
            name: {"geometric_mean": geometric_mean(values), "worst": max(values)}
            for name in figures
            for values in [[one.value(name) for one in some]]
        }
        for kind, some in kinds(found).items()
    }
    slices = [
        {
            "name": one.case.name,
            "nbytes": one.case.nbytes,
            "ways_s": {way.name: way.best_s for way in one.ways},
            **{name: {"chosen": one.chosen[name][0], "estimate_s": one.chosen[name][1]} for name in figures},
        }
        for one in found
    ]
    return {"regret": means, "slices": slices}

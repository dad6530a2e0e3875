"""Regret: the slowdown of the planned strategy over the best one, measured by running every strategy."""

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
from bench.report import MEBIBYTE, RESULTS, about, geometric_mean, keep, stem_of
from bench.rivals.ours import describe, device
from bench.schedule import Schedule
from bench.tasks import MANY_WINDOWS, Task
from wgslice.calibration.tune import calibrated_profile, measured
from wgslice.gpu.device import shipped_profile
from wgslice.gpu.protocols import Place
from wgslice.gpu.recording import Recorder
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Costs

__all__ = ["Regret", "Timed", "run_regret"]

MAX_NBYTES = 2**26  # of an output, so that a run takes minutes and not an hour
KINDS = "slices", "permutes", "windows"
HOPELESS = 5.0  # strategies estimated to take this many times the best are run once


@dataclass
class Timed:
    """An applicable strategy, with its estimated and measured time."""

    name: str
    plan: Plan
    estimate_s: float  # by either cost model, the lower estimate
    best_s: float = inf


@dataclass(frozen=True)
class Regret:
    """A case, its strategies, and the name and estimated seconds of the one that each cost model chooses."""

    case: Case
    strategies: Sequence[Timed]
    chosen: Mapping[str, tuple[str, float]]

    @property
    def best(self) -> Timed:
        """The fastest strategy."""
        return min(self.strategies, key=lambda strategy: strategy.best_s)

    def strategy(self, model: str) -> Timed:
        """Return the strategy that a cost model chooses."""
        return next(strategy for strategy in self.strategies if strategy.name == self.chosen[model][0])

    def value(self, model: str) -> float:
        """Return the time of the strategy that a cost model chooses over that of the best."""
        return self.strategy(model).best_s / self.best.best_s


def run_regret(console: Console, arguments: Namespace) -> None:
    """`python3 run bench --regret`: with the shipped cost model, and with one measured on this adapter.

    With `--rounds 0` the cost models are compared by the times that were kept, and nothing is timed.
    """
    cases = timed_cases(arguments.cases)
    cases.sort(key=lambda case: KINDS.index(kind_of(case)))  # a budget leaves out the last ones
    found = []
    with Schedule(console, 1 + len(cases), arguments.budget) as schedule:
        schedule.begin("cost model of this adapter")
        adapter = device.adapter
        tuned = measured(device, lambda _, __: None)
        models = {
            "shipped": shipped_profile(adapter).costs,
            "tuned": calibrated_profile(adapter, tuned).costs,
        }
        schedule.finish("cost model of this adapter")
        before = kept_before(arguments) if arguments.rounds == 0 else {"slices": []}
        times = {case["name"]: case["ways_s"] for case in before["slices"]}
        for case in cases:
            if schedule.spent:
                break
            schedule.begin(case.name)
            found.append(measure_case(case, arguments.rounds, models, times.get(case.name)))
            schedule.finish(case.name)
    for name in models:
        console.print(table(found, name))
    show_means(console, found, list(models))
    slices = [case for case in cases if kind_of(case) == "slices"]
    if arguments.cases or len(found) < len(slices):
        console.print("not kept: only runs of all slices are kept")
        return
    from bench.regret_chart import draw_regret  # imported here: it loads matplotlib

    kept = {**about([], arguments), "contenders": {"wgslice": describe()}, **kept_of(found, list(models))}
    if arguments.rounds == 0:  # those of the code that was timed
        kept |= {name: before.get(name) for name in ("commit", "fingerprints")}
    keep(console, kept, RESULTS / f"{stem_of(kept)}-regret.json", draw_regret)


def timed_cases(pattern: str) -> list[Case]:
    """Return the cases whose names match, and whose outputs are neither too small to time nor too large."""
    return [
        case
        for case in [*CASES, *MANY_WINDOWS]
        if MEBIBYTE <= case.nbytes <= MAX_NBYTES and re.search(pattern, case.name)
    ]


def kept_before(arguments: Namespace) -> dict[str, Any]:
    """Read the results of the last run on this adapter."""
    now = {**about([], arguments), "contenders": {"wgslice": describe()}}
    kept: dict[str, Any] = json.loads((RESULTS / f"{stem_of(now)}-regret.json").read_text("utf-8"))
    return kept


def measure_case(
    case: Case, rounds: int, models: Mapping[str, Costs], times: Mapping[str, float] | None
) -> Regret:
    """Check each strategy of a case against NumPy, then time them in rounds, or use given times."""
    asked = prepared(case)
    plans = {name: asked.plan(costs) for name, costs in models.items()}
    strategies: dict[str, Timed] = {}
    for plan in plans.values():
        for choice in plan.choices:
            run_by = Timed(choice.name, replace(plan, steps=choice.steps), choice.seconds)
            strategy = strategies.setdefault(choice.name, run_by)
            strategy.estimate_s = min(strategy.estimate_s, choice.seconds)
    chosen = {name: (plan.choices[0].name, plan.seconds or 0.0) for name, plan in plans.items()}
    if times is None:
        time_strategies(case.name, list(strategies.values()), asked, rounds)
    else:
        for strategy in strategies.values():
            strategy.best_s = times[strategy.name]
    return Regret(case, list(strategies.values()), chosen)


def time_strategies(name: str, strategies: Sequence[Timed], asked: Prepared, rounds: int) -> None:
    """Check each strategy against NumPy, then time them in rounds."""
    for strategy in strategies:
        asked.target[...] = 0  # no result of the strategy before
        strategy.best_s = run(strategy.plan, asked.places)
        if asked.target.numpy().tobytes() != asked.expected.tobytes():
            raise ValueError(f"{name} by {strategy.name}: wrong")
    least_s = min(strategy.estimate_s for strategy in strategies)
    for _ in range(rounds):
        for strategy in strategies:
            if strategy.estimate_s <= HOPELESS * least_s:
                run(strategy.plan, asked.places)
                strategy.best_s = min(strategy.best_s, run(strategy.plan, asked.places))


def run(plan: Plan, places: Sequence[Place]) -> float:
    """Record a plan, submit it and wait; return the seconds."""
    device.pipelines.prepare(plan)
    start = perf_counter()
    encoder = device.new_encoder()
    recorder = Recorder(device, encoder)
    recorder.add(plan, places)
    recorder.end()
    device.submit(encoder)
    device.synchronize()
    return perf_counter() - start


def table(found: Sequence[Regret], model: str) -> Table:
    """Return a table with a line per case, the largest regret first."""
    columns = "slice", "chosen", "ms", "estimated", "best", "ms", "regret"
    shown = Table(*columns, title=f"regret with the {model} cost model")
    for one in sorted(found, key=lambda one: -one.value(model)):
        shown.add_row(*cells(one, model))
    return shown


def cells(one: Regret, model: str) -> Iterator[str]:
    """Yield the cells of a line of the table."""
    strategy, (_, estimate_s) = one.strategy(model), one.chosen[model]
    yield from (one.case.name, strategy.name, milliseconds(strategy.best_s), milliseconds(estimate_s))
    yield from (one.best.name, milliseconds(one.best.best_s), f"{one.value(model):.2f}")


def milliseconds(seconds: float) -> str:
    """Format seconds as milliseconds."""
    return f"{seconds * 1e3:.2f}"


def show_means(console: Console, found: Sequence[Regret], models: Sequence[str]) -> None:
    """Print mean and worst regret of slices, permutes and windows, for each cost model."""
    for kind, some in kinds(found).items():
        for name in models:
            values = [one.value(name) for one in some]
            mean, worst = geometric_mean(values), max(values)
            line = f"{kind}, {name} cost model: geometric mean {mean:.2f}, worst {worst:.2f}"
            console.print(line, highlight=False)


def kinds(found: Sequence[Regret]) -> dict[str, list[Regret]]:
    """Group results into slices, permutes and windows, without empty groups."""
    some = {kind: [one for one in found if kind_of(one.case) == kind] for kind in KINDS}
    return {kind: of_kind for kind, of_kind in some.items() if of_kind}


def kind_of(case: Case) -> str:
    """Return whether a case is of slices, permutes or windows."""
    if isinstance(case, Task):
        return "windows"
    return "permutes" if case.work.permuted else "slices"


def kept_of(found: Sequence[Regret], models: Sequence[str]) -> dict[str, Any]:
    """Return the results of a run as JSON."""
    means = {
        kind: {
            name: {"geometric_mean": geometric_mean(values), "worst": max(values)}
            for name in models
            for values in [[one.value(name) for one in some]]
        }
        for kind, some in kinds(found).items()
    }
    slices = [
        {
            "name": one.case.name,
            "nbytes": one.case.nbytes,
            "ways_s": {strategy.name: strategy.best_s for strategy in one.strategies},
            **{name: {"chosen": one.chosen[name][0], "estimate_s": one.chosen[name][1]} for name in models},
        }
        for one in found
    ]
    return {"regret": means, "slices": slices}

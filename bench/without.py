"""What each kernel is worth: the cases that become slower without it, and by how much.

`python3 run bench --without KERNEL` times every strategy of the cases that the kernel is applicable to, on
this adapter, and keeps the kernel's row; with `--rounds 0` from the times that `--regret` has kept of all
adapters. For GPUs a row has estimates of their shipped cost model, which is fitted to GPU compilers. A case
is slower by its fastest strategy without the kernel over the fastest one of all.
"""

from __future__ import annotations

import json
import re
from argparse import Namespace
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import inf
from typing import Any

from rich.console import Console

from bench.cases import CASES, Case
from bench.compilers.planned import ASKED, LIMITS, planned
from bench.contest import ROOT
from bench.provenance import commit, limits_of
from bench.report import RESULTS, geometric_mean, machine_of, write_json
from bench.tasks import MANY_WINDOWS
from wgsl import link
from wgslice.errors import NoKernelError
from wgslice.plans.facade import every
from wgslice.plans.kernels import LAST_WRITERS, OF_INDICES, Kernel
from wgslice.plans.plan import Plan

__all__ = ["LEDGER", "ledger", "run_without"]

LEDGER = RESULTS / "kernels.json"
MAX_SINGLE, MAX_MEAN = 1.15, 1.03  # times that a kernel must save in a case, or in the mean of all, to stay
SHOWN = 3  # cases of a row on the page

# Kernels without which something cannot be copied at all.
ALONE = {
    *(Kernel.SLICE1, Kernel.EXTRACT_WINDOWS, Kernel.INSERT_WINDOWS, Kernel.SIZED_WINDOWS, Kernel.SIZED_ENDS),
    *(Kernel.ROW_ENDS, Kernel.SUBWORD_ENDS, *OF_INDICES, *LAST_WRITERS),
}

Times = Mapping[str, float]  # seconds by the names of strategies


def run_without(console: Console, arguments: Namespace) -> None:
    """`python3 run bench --without KERNEL`: measure the kernel's row, and keep it."""
    kernel = Kernel(arguments.without)
    kept = read()
    row = kept["kernels"].setdefault(kernel.value, {})
    row |= about(kernel)
    if arguments.rounds == 0:
        for path in sorted(RESULTS.glob("*-regret.json")):
            content = json.loads(path.read_text("utf-8"))
            row[path.name.removesuffix("-regret.json")] = of_kept_times(kernel, content)
    else:
        row |= measured(console, kernel, arguments)
    row["GPUs, estimated"] = {**summary(estimated(kernel)), "machine": "the shipped cost model of GPUs"}
    write_json(kept, LEDGER)
    for name, part in row.items():
        if isinstance(part, dict):
            console.print(f"{kernel.value}, {name}: {text_of(part)}", highlight=False)


def read() -> dict[str, Any]:
    """Read the rows of all kernels that there are."""
    kept: dict[str, Any] = json.loads(LEDGER.read_text("utf-8")) if LEDGER.exists() else {"kernels": {}}
    names = {kernel.value for kernel in Kernel}
    return {"kernels": {name: row for name, row in kept["kernels"].items() if name in names}}


def about(kernel: Kernel) -> dict[str, int]:
    """Return the lines of a kernel's own file, and its modules."""
    file, *_ = link.VARIANTS.get(kernel.value, (kernel.value,))
    lines = len((ROOT / "wgsl" / f"{file}.wgsl").read_text("utf-8").splitlines())
    modules = [name for name in link.modules() if name.removesuffix(link.WIDE_INDICES) == kernel.value]
    return {"lines": lines, "modules": len(modules)}


def kernels_of(plan: Plan) -> dict[str, set[Kernel]]:
    """Return the kernels of each applicable strategy."""
    return {name: {step.kernel for step in one.steps if hasattr(step, "kernel")} for name, one in every(plan)}


def slowdown(kernel: Kernel, kernels: Mapping[str, set[Kernel]], times: Times) -> float:
    """Return the least time without a kernel over the least one; inf where no other strategy applies."""
    others = [seconds for name, seconds in times.items() if kernel not in kernels.get(name, ())]
    return min(others, default=inf) / min(times.values())


def of_kept_times(kernel: Kernel, content: Mapping[str, Any]) -> dict[str, Any]:
    """Return a part of a row from the times of all strategies that a run on one adapter has kept."""
    cases = {case.name: case for case in [*CASES, *MANY_WINDOWS]}
    limits = limits_of(content)
    found = (
        (cases[one["name"]], kernels_of(planned(cases[one["name"]], limits)), one["ways_s"])
        for one in content["slices"]
        if one["name"] in cases
    )
    return {**summary(slowdowns(kernel, found)), "machine": machine_of(content), "commit": content["commit"]}


def estimated(kernel: Kernel) -> dict[str, float]:
    """Return how much slower each case is estimated to be on a GPU without a kernel."""
    without = replace(LIMITS, disabled=frozenset([kernel]))
    ratios = {}
    for case in ASKED:
        try:
            ratios[case.name] = (planned(case, without).seconds or inf) / (planned(case).seconds or inf)
        except NoKernelError:  # no strategy is left
            ratios[case.name] = inf
    return ratios


def measured(console: Console, kernel: Kernel, arguments: Namespace) -> dict[str, Any]:
    """Time the strategies of all cases that a kernel is applicable to, on this adapter."""
    from bench import regret, report  # these make the adapter's device
    from bench.prepared import prepared
    from bench.rivals.ours import describe, device

    costs = {"shipped": device.limits.profile.costs}
    found = []
    for case in regret.timed_cases(arguments.cases):
        kernels = kernels_of(prepared(case).plan(costs["shipped"]))
        times: Times = {"another kernel": 1.0}
        if any(kernel in each for each in kernels.values()):
            timed = regret.measure_case(case, arguments.rounds, costs, None)
            times = {strategy.name: strategy.best_s for strategy in timed.strategies}
            console.print(f"{case.name}: {slowdown(kernel, kernels, times):.2f}", highlight=False)
        found.append((case, kernels, times))
    now = {**report.about([], arguments), "contenders": {"wgslice": describe()}}
    part = {**summary(slowdowns(kernel, found)), "machine": machine_of(now), "commit": commit()}
    return {report.stem_of(now): part} if not arguments.cases else {}


def slowdowns(
    kernel: Kernel, cases: Iterable[tuple[Case, Mapping[str, set[Kernel]], Times]]
) -> dict[str, float]:
    """Return how much slower each case is without a kernel."""
    return {case.name: slowdown(kernel, kernels, times) for case, kernels, times in cases}


def summary(ratios: Mapping[str, float]) -> dict[str, Any]:
    """Return the cases that are slower without a kernel, the slowest first, and the mean of all."""
    slower = sorted(((ratio, name) for name, ratio in ratios.items() if ratio > 1.005), reverse=True)
    finite = [ratio for ratio in ratios.values() if ratio < inf]
    return {
        "cases": len(ratios),
        "mean": round(geometric_mean(finite), 4),
        "slower": {name: round(ratio, 2) if ratio < inf else None for ratio, name in slower},
    }


def text_of(part: Mapping[str, Any]) -> str:
    """Return a part of a row as text: the mean, and the cases that lose most."""
    named = [f"{name} {ratio or 'no other kernel'}" for name, ratio in part["slower"].items()]
    more = f"; {len(named) - SHOWN} more" if len(named) > SHOWN else ""
    return f"{part['mean']:.3f}" + (f" ({'; '.join(named[:SHOWN])}{more})" if named else "")


def stays(kernel: str, row: Mapping[str, Any]) -> bool:
    """Return whether some case, or a mean, becomes slower without a kernel than is worth its lines."""
    if Kernel(kernel) in ALONE:
        return True
    parts = [part for part in row.values() if isinstance(part, dict)]
    worst = [inf if ratio is None else ratio for part in parts for ratio in part["slower"].values()]
    return max(worst, default=1.0) > MAX_SINGLE or max(part["mean"] for part in parts) > MAX_MEAN


def ledger() -> str:
    """Return the table of all kernels for a page."""
    kept = read()["kernels"]
    parts = {name: part for row in kept.values() for name, part in row.items() if isinstance(part, dict)}
    adapters = sorted(parts)
    commits = {name: part.get("commit", "")[:7] for name, part in parts.items()}  # of what was timed
    headings = [f"{short(name)}, {commits[name]}".removesuffix(", ") for name in adapters]
    lines = [f"| kernel | lines | modules | {' | '.join(headings)} | stays |"]
    lines.append(f"|---|---|---|{'---|' * len(adapters)}---|")
    for name, row in sorted(kept.items()):
        cells = [text_of(row[adapter]) if adapter in row else "-" for adapter in adapters]
        first = [f"`{name}`", str(row["lines"]), str(row["modules"])]
        lines.append(f"| {' | '.join([*first, *cells, 'yes' if stays(name, row) else 'no'])} |")
    return "\n".join(lines)


def short(adapter: str) -> str:
    """Return the heading of an adapter's column."""
    found = re.match(r"mesa-(\d+)-(\d+)|(swiftshader)", adapter)
    if not found:
        return adapter
    return "SwiftShader" if found[3] else f"lavapipe of Mesa {found[1]}.{found[2]}"

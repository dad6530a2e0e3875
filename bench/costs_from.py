"""Fits a cost model from results of the page "Test your GPU" or of `python3 run gpu`.

`python -m bench.costs_from FILE... --output NAME.json` fits the shipped cost model of GPUs to files of one
family of adapters, prints the slowdown over best by both, and writes the fitted one for
`src/wgslice/plans/cost_models`.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from functools import cache
from math import exp, log
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple, TypeAlias

from bench.gpu_programs import LIMITS, choices
from bench.provenance import every_kernel
from bench.report import geometric_mean
from wgslice.plans.choose import Step, compiling_seconds, seconds_of
from wgslice.plans.profiles import GPU, ClassCost, CostClass, Costs, shipped
from wgslice.plans.steps import Dispatch, OnGrid
from wgslice.whole_files import written_whole

__all__ = ["Sample", "fitted", "main", "samples", "slowdown"]

FIXED = "submission_s", "dispatch_s", "copy_s", "copy_bytes_per_s"  # measured by themselves
ROUNDS = 100  # of the fit
LEAST_SHARE = 0.05  # of a measured time that its kernels take, whatever the fixed costs are
Content: TypeAlias = Mapping[str, Any]
Steps: TypeAlias = tuple[Step, ...]


class Sample(NamedTuple):
    """A copy that was timed by several strategies."""

    name: str
    steps: Mapping[str, Steps]  # by strategy
    seconds: Mapping[str, float]

    def chosen(self, costs: Costs) -> str:
        """Return the strategy of the least estimate, as the planner compares them."""
        return min(self.steps, key=lambda name: estimate_s(self.steps[name], costs))

    def slowdown(self, costs: Costs) -> float:
        """Return the time of the chosen strategy over that of the best."""
        return self.seconds[self.chosen(costs)] / min(self.seconds.values())


@cache
def steps_of(side: int) -> dict[str, dict[str, Steps]]:
    """Return the steps of each copy of a size, by strategy."""
    return {
        each.case: {name: job.trial.plan.steps for name, job in each.ways.items()} for each in choices(side)
    }


def samples(contents: Sequence[Content]) -> Iterator[Sample]:
    """Yield the copies of files; raises ValueError for a file that says nothing of today's plans."""
    for content in contents:
        name = content["adapter"]["name"]
        if content["fingerprint"] != every_kernel(LIMITS):
            raise ValueError(f"{name}: other kernels or plans than today's were timed: time them again")
        if not content["timings_valid"] or not content["constants"]:
            raise ValueError(f"{name}: its times are invalid, or some are missing: time them again")
        known = steps_of(content["side"])
        for each in content["choices"]:
            yield Sample(each["name"], known[each["name"]], each["ways_s"])


def estimate_s(steps: Steps, costs: Costs) -> float:
    """Return the estimate by which the planner compares strategies."""
    first = steps[0]
    compiling_s = compiling_seconds(first.kernel, GPU) if isinstance(first, Dispatch) else 0.0
    return seconds_of(steps, costs) + compiling_s


def fitted(contents: Sequence[Content]) -> Costs:
    """Fit the shipped cost model of GPUs: fixed costs are medians, cost classes are scaled to the times.

    Classes that no file has are scaled by the mean factor of those that one has.
    """
    known, found = shipped("gpus"), [*samples(contents)]
    measured = {name: median(content["constants"][name] for content in contents) for name in FIXED}
    faster = measured["copy_bytes_per_s"] / known.copy_bytes_per_s
    start = replace(known, **measured, clear_bytes_per_s=known.clear_bytes_per_s * faster)
    factors: dict[CostClass, float] = {}
    for _ in range(ROUNDS):
        costs = scaled(start, factors)
        ratios: defaultdict[CostClass, list[tuple[float, float]]] = defaultdict(list)
        for sample in found:
            best = min(sample.seconds.values())
            for name, seconds in sample.seconds.items():
                parts = kernel_seconds(sample.steps[name], costs)
                if not parts:
                    continue
                in_kernels = sum(parts.values())
                others = seconds_of(sample.steps[name], costs) - in_kernels
                ratio = max(seconds - others, LEAST_SHARE * seconds) / in_kernels
                for kind, part in parts.items():  # what is nearly best matters most
                    ratios[kind].append((part / in_kernels * best / seconds, log(ratio)))
        for kind, each in ratios.items():
            change = sum(weight * value for weight, value in each) / sum(weight for weight, _ in each)
            factors[kind] = factors.get(kind, 1.0) * exp(change)
    return scaled(start, factors)


def scaled(costs: Costs, factors: Mapping[CostClass, float]) -> Costs:
    """Return a cost model whose classes take some times as long; the others take the mean of these."""
    mean = geometric_mean([*factors.values()]) if factors else 1.0
    classes = {
        kind: ClassCost(work.invocation_s * factor, work.bytes_per_s / factor)
        for kind, work in costs.classes.items()
        for factor in [factors.get(kind, mean)]
    }
    return replace(costs, classes=classes)


def kernel_seconds(steps: Steps, costs: Costs) -> dict[CostClass, float]:
    """Return the estimated seconds of the invocations of steps, by cost class."""
    found: defaultdict[CostClass, float] = defaultdict(float)
    for step in steps:
        if isinstance(step, OnGrid):
            work = costs.classes[step.work]
            invocations = step.share.invocations
            found[step.work] += invocations * (work.invocation_s + step.invocation_nbytes / work.bytes_per_s)
    return found


def slowdown(found: Sequence[Sample], costs: Costs) -> str:
    """Describe the slowdown over best by a cost model."""
    values = {sample.name: sample.slowdown(costs) for sample in found}
    worst = max(values, key=values.__getitem__)
    mean = geometric_mean([*values.values()])
    return f"geometric mean {mean:.3f}, worst {values[worst]:.2f} ({worst})"


def written(costs: Costs, contents: Sequence[Content], path: Path) -> None:
    """Write a cost model as the package has them."""
    adapters = sorted({content["adapter"]["name"] for content in contents})
    dates = sorted({content["date"][:10] for content in contents})
    fixed = {
        field.name: rounded(getattr(costs, field.name)) for field in fields(Costs) if field.type == "float"
    }
    classes = {
        str(kind): {"invocation_s": rounded(work.invocation_s), "bytes_per_s": rounded(work.bytes_per_s)}
        for kind, work in costs.classes.items()
    }
    content = {
        "about": ", ".join(adapters),
        "date": dates[-1],
        "measured": f"fitted by `python -m bench.costs_from` to {len(contents)} files of {', '.join(dates)}",
        "costs": {**fixed, "classes": classes},
    }
    with written_whole(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n", "utf-8")


def rounded(value: float) -> float:
    """Round to three digits."""
    return float(f"{value:.3g}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Fit, print the slowdown before and after, and write."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.costs_from", description=__doc__.partition("\n")[0]
    )
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="results of one family of adapters"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="NAME.json", help="write the cost model there")
    options = parser.parse_args(arguments)
    contents = [json.loads(path.read_text("utf-8")) for path in options.files]
    costs, found = fitted(contents), [*samples(contents)]
    print(f"slowdown over best of {len(found)} copies, shipped: {slowdown(found, shipped('gpus'))}")
    print(f"slowdown over best of {len(found)} copies, fitted:  {slowdown(found, costs)}")
    if options.output:
        written(costs, contents, options.output)
        print(f"written: {options.output}")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())

"""Execute every kernel by a checker that knows no order of invocations, at any size.

`python3 run check` executes trials, random copies and tensors of some GiB until the seconds are over or
something is found. `--keep` writes what was executed to `bench/results/checked.json` and to its page.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import count, islice
from pathlib import Path
from random import Random
from time import monotonic
from typing import Any

import hypothesis
import pytest
from checker.findings import Finding
from checker.memory import Tally
from checker.mutants import found_by, mutants
from checker.sizes import check_large, check_moved, large_copies, large_indexing, large_windows
from checker.trials import Tallies, all_trials, check_drawn, check_trial, spread
from hypothesis import HealthCheck, Phase, given, settings
from strategies import Case, cases

import wgslice as wg
from bench.report import write_json
from wgslice.doctor.trials import run_trials
from wgslice.gpu.native import refusals
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "checked.json"
PAGE = ROOT / "docs" / "checked-kernels.md"
TRIALS, DRAWN, LARGE, MOVED = 20, 10, 100, 10  # of a kernel, and of each kind, in a round
BEGIN, END = "<!-- checked: {} -->\n", "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if something is found, or a mutant is not."""
    options = parse(arguments)
    if options.mutants:
        return check_mutants(options.adapter)
    tallies, begun, adapters = Tallies(Tally), monotonic(), 0
    device = wg.Device.request(options.adapter) if options.adapter else None
    kernels = [Kernel(name) for name in options.kernel] or [*all_trials()]
    plans = 0
    for number in count(options.seed):
        for found in round_of(number, kernels, tallies):
            plans += 1
            if found:
                print("\n".join(map(str, found)))
                return 1
            if monotonic() - begun > options.seconds:
                break
        if device is not None:
            trials = [trial for kernel in kernels for trial in spread(all_trials()[kernel], 1, number)]
            wrong = [text for text in run_trials(device, trials) if text]
            adapters += len(trials)
            if wrong:
                print(f"check: {device.adapter} differs from the checker: {wrong[0]}")
                return 1
        seconds = monotonic() - begun
        if seconds > options.seconds:
            break
        accesses = sum(each.accesses for each in tallies.values())
        print(f"check: {plans:,} plans, {accesses:,} accesses, {seconds:.0f} s", flush=True)
    content = {
        "plans": plans,
        "adapter_trials": adapters,
        "seconds": round(seconds),
        "seed": options.seed,
        "kernels": {kernel.value: vars(tallies[kernel.value]) for kernel in kernels},
    }
    print(table(content))
    if options.keep:
        keep({**kept(), **content})
    return 0


def round_of(number: int, kernels: Sequence[Kernel], tallies: Tallies) -> Iterator[list[Finding]]:
    """Yield what is found of each plan of a round."""
    for kernel in kernels:
        for trial in spread(all_trials()[kernel], TRIALS, number):
            yield check_trial(trial, tallies)
    names = {kernel.value for kernel in kernels}
    for _, plan in islice(large_copies(Random(number)), LARGE):
        if names & {step.name for step in plan.steps}:
            yield check_large(plan, tallies)
    for _, plan, moved in (
        *islice(large_windows(Random(number)), MOVED),
        *islice(large_indexing(Random(number)), MOVED),
    ):
        if names & {step.name for step in plan.steps}:
            yield check_moved(plan, moved, tallies)
    if len(names) == len(all_trials()):
        drawn: list[list[Finding]] = []

        @hypothesis.seed(number)
        @settings(
            max_examples=DRAWN,
            database=None,
            deadline=None,
            phases=[Phase.generate],
            suppress_health_check=[*HealthCheck],
        )
        @given(cases())
        def draw(case: Case) -> None:
            drawn.append(check_drawn(case, tallies))

        draw()
        yield from drawn


def check_mutants(adapter: str | None) -> int:
    """Execute all mutants; keep what finds each, and whether the self-test's trials on an adapter do."""
    device = wg.Device.request(adapter) if adapter else None
    found: dict[str, dict[str, Any]] = {}
    for mutant in mutants():
        text = found_by(mutant)
        found[mutant.name] = {"found": text.partition(":")[0], "adapter": None}
        if device is not None and not mutant.unsafe:
            found[mutant.name]["adapter"] = on_adapter(device, mutant.kernels, mutant.changed)
        print(
            f"{mutant.name}: {found[mutant.name]} {text.partition(':')[2].partition(chr(10))[0]}", flush=True
        )
    keep({**kept(), "mutants": found})
    return int(not all(each["found"] for each in found.values()))


def on_adapter(device: wg.Device, kernels: Sequence[str], change: Callable[[str], str]) -> bool:
    """Return whether trials on an adapter find a change of modules."""
    fresh = wg.Device.request(device.adapter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wgslice.gpu.pipelines.kernel_module", lambda kernel: change(kernel_module(kernel)))
        trials = [trial for name in kernels for trial in spread(all_trials()[Kernel(name)], 40)]
        try:
            return any(run_trials(fresh, trials))
        except refusals():
            return True


def table(content: Mapping[str, Any]) -> str:
    """Return what was executed of each kernel, as a table of a page."""
    rows = [
        f"| `{name}` | {each['dispatches']:,} | {each['invocations']:,} | {each['accesses']:,} |"
        for name, each in sorted(content["kernels"].items())
    ]
    total = [
        sum(each[column] for each in content["kernels"].values())
        for column in ("dispatches", "invocations", "accesses")
    ]
    rows.append(f"| all | {total[0]:,} | {total[1]:,} | {total[2]:,} |")
    return "\n".join(["| kernel | dispatches | invocations | accesses |", "|---|---|---|---|", *rows])


def mutant_table(content: Mapping[str, Any]) -> str:
    """Return what found each mutant, as a table of a page."""
    adapter = {True: "found", False: "missed", None: "not run"}
    rows = [
        f"| {name} | {each['found']} | {adapter[each['adapter']]} |"
        for name, each in content["mutants"].items()
    ]
    return "\n".join(
        ["| wrong line | the checker's finding | trials on an adapter |", "|---|---|---|", *rows]
    )


def page(content: Mapping[str, Any], text: str) -> str:
    """Return the page with the tables of some results."""
    for name, block in (("kernels", table(content)), ("mutants", mutant_table(content))):
        begin = BEGIN.format(name)
        head, _, rest = text.partition(begin)
        text = f"{head}{begin}\n{block}\n\n{END}{rest.partition(END)[2]}"
    return text


def kept() -> dict[str, Any]:
    """Return the kept results, without their provenance."""
    content = json.loads(RESULTS.read_text("utf-8")) if RESULTS.exists() else {"kernels": {}, "mutants": {}}
    return {name: value for name, value in content.items() if name not in ("commit", "fingerprints")}


def keep(content: Mapping[str, Any]) -> None:
    """Write results and the page."""
    write_json(
        {name: value for name, value in content.items() if name not in ("commit", "fingerprints")}, RESULTS
    )
    PAGE.write_text(page(content, PAGE.read_text("utf-8")), "utf-8")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(prog="run check", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--seconds", type=float, default=60.0, help="how long; 60 by default")
    names = [kernel.value for kernel in Kernel]
    parser.add_argument("--kernel", nargs="+", choices=names, default=[], metavar="NAME", help="only these")
    parser.add_argument("--seed", type=int, default=1, help="of the first round")
    parser.add_argument("--adapter", help="also run trials on this adapter, a part of a name or backend")
    parser.add_argument("--mutants", action="store_true", help="execute wrong lines of kernels instead")
    parser.add_argument("--keep", action="store_true", help="keep the results and the page's tables")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

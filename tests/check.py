"""Execute every kernel by a checker that knows no order of invocations, at any size.

`python3 run check` executes trials, random copies and tensors of some GiB until the seconds are over or
something is found. `--keep` writes what was executed to `bench/results/checked.json` and to its page.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
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
from running import MODULE_OF, by_step
from strategies import Case, cases

import wgslice as wg
from bench.report import write_json
from wgslice.doctor.trials import Trial, run_trials
from wgslice.gpu.native import refusals
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "checked.json"
PAGE = ROOT / "docs" / "checked-kernels.md"
TRIALS, DRAWN, LARGE, MOVED = 20, 10, 300, 10  # of a kernel, and of each kind, in a round
FURTHER = (
    8  # trials of a kernel with a wrong line on an adapter, besides the one in which the checker finds it
)
LAYERED = [
    f"tests/test_{name}.py" for name in ("kernels", "index_kernels", "extract_windows", "insert_windows")
]
VALIDATED = "SYNCHRONIZATION_VALIDATION", "GPU_ASSISTED"
BEGIN, END = "<!-- checked: {} -->\n", "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if something is found, or a mutant is not."""
    options = parse(arguments)
    if options.layers is not None:
        return check_layers(options.layers or LAYERED)
    return check_mutants(options.adapter) if options.mutants else check_kernels(options)


def check_kernels(options: argparse.Namespace) -> int:
    """Execute rounds of plans until the seconds are over; return 1 if something is found."""
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
        "seeds": [options.seed],
        "texts": texts(),
        "kernels": {kernel.value: vars(tallies[kernel.value]) for kernel in kernels},
    }
    print(table(content))
    if options.keep:
        keep(added(kept(), content))
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
        first = found_by(mutant)
        row: dict[str, Any] = {"found": first.finding.kind if first else "", "adapter": None}
        if device is not None and first and first.trial and not mutant.unsafe:
            trials = [first.trial, *spread(all_trials()[first.trial.kernel], FURTHER)]
            row["adapter"] = on_adapter(device, trials, mutant.changed)
        found[mutant.name] = row
        print(f"{mutant.name}: {row}; {first and first.finding}".partition("\n")[0], flush=True)
    keep({**kept(), "mutants": found})
    return int(not all(row["found"] for row in found.values()))


def on_adapter(device: wg.Device, trials: Sequence[Trial], change: Callable[[str], str]) -> bool:
    """Return whether trials on an adapter find a change of modules."""
    fresh = wg.Device.request(device.adapter)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(MODULE_OF, by_step(lambda kernel: change(kernel_module(kernel))))
        try:
            return any(run_trials(fresh, trials))
        except refusals():
            return True


def check_layers(tests: Sequence[str]) -> int:
    """Run tests under Khronos' validation layers; return 1 if there are messages, and print them."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "messages.txt"
        enables = ",".join(f"VK_VALIDATION_FEATURE_ENABLE_{name}_EXT" for name in VALIDATED)
        settings_text = "".join(
            f"khronos_validation.{name} = {value}\n"
            for name, value in {
                "debug_action": "VK_DBG_LAYER_ACTION_LOG_MSG",
                "report_flags": "error,warn,info",
                "log_filename": log,
                "enables": enables,
            }.items()
        )
        (Path(folder) / "vk_layer_settings.txt").write_text(settings_text, "utf-8")
        own = {"VK_LAYER_SETTINGS_PATH": folder, "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"}
        command = [sys.executable, "-m", "pytest", "-q", "-n0", *tests]
        environment = {**os.environ, **own, "WGSLICE_TEST_ADAPTERS": "Vulkan"}
        status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
        text = log.read_text("utf-8", "replace") if log.exists() else ""
    if "Current Enables" not in text:
        print("check: the layers are not there; on Debian: apt-get install vulkan-validationlayers")
        return 1
    kinds = Counter(re.findall(r"^(\S+)\((?:ERROR|WARN)", text, re.MULTILINE))
    print(
        "\n".join(f"check: {name}, {number} times" for name, number in kinds.items()) or "check: no messages"
    )
    return int(bool(kinds) or status != 0)


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


def added(before: Mapping[str, Any], content: Mapping[str, Any]) -> dict[str, Any]:
    """Return results that a run adds to, or replaces if the kernels have changed."""
    if before.get("texts") != content["texts"]:
        return {**before, **content}
    sums = {name: before[name] + content[name] for name in ("plans", "adapter_trials", "seconds", "seeds")}
    own = dict(before["kernels"])
    for kernel, counts in content["kernels"].items():
        own[kernel] = {name: count + own.get(kernel, {}).get(name, 0) for name, count in counts.items()}
    return {**before, **content, **sums, "kernels": own}


def texts() -> str:
    """Return a hash of all kernels' modules."""
    return blake2b("".join(map(kernel_module, Kernel)).encode(), digest_size=8).hexdigest()


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
    help_text = "run tests under Khronos' validation layers, with synchronization and GPU-assisted validation"
    parser.add_argument("--layers", nargs="*", metavar="TEST", help=help_text)
    parser.add_argument("--keep", action="store_true", help="keep the results and the page's tables")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

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
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from hashlib import blake2b
from itertools import count, islice
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from time import monotonic
from typing import Any

import hypothesis
import pytest
from checker.drawn import drawn
from checker.findings import Finding
from checker.memory import Tally
from checker.mutants import found_by, mutants
from checker.sizes import (
    check_large,
    check_moved,
    large_copies,
    large_gathers,
    large_indexing,
    large_masks,
    large_sized,
    large_values,
    large_windows,
)
from checker.trials import Run, Tallies, all_trials, check_trial, spread
from hypothesis import HealthCheck, Phase, given, settings
from running import MODULE_OF, by_step, run_side_by_side, side_by_side

import wgslice as wg
from bench.report import write_json
from wgslice.doctor.trials import Trial, difference, run_trials
from wgslice.plans.choose import Step
from wgslice.plans.kernels import Kernel
from wgslice.plans.steps import OnGrid
from wgslice.shaders import kernel_module

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "bench" / "results" / "checked.json"
PAGE = ROOT / "docs" / "checked-kernels.md"
TRIALS, DRAWN, LARGE, MOVED = 5, 25, 60, 4  # of a kernel, and of each kind, in a round
COMPARED_NBYTES = 2**24  # of targets, from which plans run on the adapter
FURTHER = 8  # trials of a wrong line on an adapter, besides the one in which the checker finds it
MESSAGE = re.compile(r"(?:Error|Warning): \[ (\S+) \].*?MessageID = \w+[ |\n]*(.*)")  # of any version
HANDLE = re.compile(r"0x[0-9a-f]+")
# What the layers say of themselves; loads beyond the source's binding, which robustBufferAccess defines; and
# views that wgpu makes of textures which its callers only copy (its issue 10200).
KNOWN_MESSAGES = re.compile(
    "VALIDATION-SETTINGS|WARNING-GPU-Assisted-Validation"
    "|VUID-vkCmdDispatch-storageBuffers-06936: .*binding = 1,|VUID-VkImageViewCreateInfo-image-04441"
)
END_OF_MESSAGES = b"\0"
LARGEST = "elements"  # of a tally, which is no sum
COLUMNS = "dispatches", "invocations", "accesses", LARGEST
VALIDATED = "SYNCHRONIZATION_VALIDATION", "GPU_ASSISTED"
BEGIN, END = "<!-- checked: {} -->\n", "<!-- end -->"


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if something is found, or a mutant is not."""
    options = parse(arguments)
    if options.layers is not None:
        return check_layers(options.layers or ["tests"], options)
    return check_mutants(options.adapter) if options.mutants else check_kernels(options)


def check_kernels(options: argparse.Namespace) -> int:
    """Execute rounds of plans until the seconds are over; return 1 if something is found."""
    tallies, begun = Tallies(Tally), monotonic()
    comparison = Comparison(device_of(options.adapter))
    kernels = [Kernel(name) for name in options.kernel] or [*all_trials()]
    plans, over = 0, False
    for number in count(options.seed):
        for found in round_of(number, kernels, tallies, comparison.runs, first=number == options.seed):
            plans, over = plans + 1, monotonic() - begun > options.seconds
            wrong = [*map(str, found)] or comparison.differing(0 if over else COMPARED_NBYTES)
            if wrong:
                print("\n".join(wrong), f"check: `run check --seed {number}` repeats it", sep="\n")
                return 1
            if over:
                break
        if over:
            break
        accesses = sum(each.accesses for each in tallies.values())
        print(f"check: {plans:,} plans, {accesses:,} accesses, {monotonic() - begun:.0f} s", flush=True)
    content = {
        "plans": plans,
        "adapter_trials": comparison.count,
        "seconds": round(monotonic() - begun),
        "seeds": [options.seed],
        "texts": texts(),
        "kernels": {kernel.value: vars(tallies[kernel.value]) for kernel in kernels},
    }
    print(table(content))
    print(f"check: {plans:,} plans; {comparison}")
    if options.keep:
        keep(added(kept(), content))
    return 0


def device_of(name: str | None) -> wg.Device | None:
    """Return a device of the named adapter, or of the best one, or None if the machine has none."""
    try:
        return wg.Device.request(name)
    except wg.NoAdapterError:
        if name is not None:
            raise
        return None


class Comparison:
    """Runs plans on an adapter after the checker has executed them, and compares all bytes of the targets."""

    def __init__(self, device: wg.Device | None) -> None:
        self.device = device
        self.runs: list[Run] | None = None if device is None else []  # not compared yet
        self.count = 0

    def differing(self, most_nbytes: int) -> list[str]:
        """Run the plans if their bytes are more; describe the ones whose bytes are not the checker's."""
        if self.device is None or not self.runs or sum(run.after.size for run in self.runs) < most_nbytes:
            return []
        runs, self.runs[:] = [run for run in self.runs if held_by(self.device, run.plan)], []
        self.count += len(runs)
        found = run_side_by_side(self.device, [(run.plan, *run.sides) for run in runs])
        expected, begins = side_by_side(self.device, [run.after for run in runs])
        return [
            f"{self.device.adapter} differs from the checker: {wrong}\n    {run.plan}"
            for run, begin in zip(runs, begins, strict=True)
            for part in [slice(begin, begin + run.after.size)]
            if (wrong := difference(found[part], expected[part], "bytes", "#04x"))
        ]

    def __str__(self) -> str:
        if self.device is None:
            return "no adapter was found, so none was compared with the checker"
        return f"{self.count:,} of them ran on {self.device.adapter} as well, which wrote the same bytes"


def held_by(device: wg.Device, plan: wg.Plan) -> bool:
    """Return whether the limits of a device admit a plan."""
    limits = device.limits
    return all(
        binding.offset_nbytes % limits.binding_alignment_nbytes == 0
        and binding.nbytes <= limits.binding_nbytes
        and max(step.share.workgroups) <= limits.workgroups
        for step in plan.steps
        if isinstance(step, OnGrid)
        for binding in (step.source_binding, step.target_binding)
    )


def round_of(
    number: int, kernels: Sequence[Kernel], tallies: Tallies, runs: list[Run] | None, *, first: bool
) -> Iterator[list[Finding]]:
    """Yield what is found of each plan of a round."""
    for kernel in kernels:
        for trial in spread(all_trials()[kernel], TRIALS, number):
            yield check_trial(trial, tallies, runs=runs)
    names = {kernel.value for kernel in kernels}
    if len(names) == len(all_trials()):
        yield from drawn_plans(number, tallies, runs)
    for steps, check in large_plans(Random(number), first=first):
        if names & {step.name for step in steps}:
            yield check(tallies)


def large_plans(draw: Random, *, first: bool) -> Iterator[tuple[Sequence[Step], Callable[[Tallies], Any]]]:
    """Yield steps of plans of some GiB and their checks; the first round has one that takes a GiB to make."""
    for plans, most in (
        (large_copies, LARGE),
        (large_masks, MOVED),
        (large_gathers, MOVED),
        (large_values, int(first)),
    ):
        for large in islice(plans(draw), most):
            yield large.plan.steps, partial(check_large, large)
    for moves in (large_windows, large_sized, large_indexing):
        for _, plan, moved in islice(moves(draw), MOVED):
            yield plan.steps, partial(check_moved, plan, moved)


def drawn_plans(number: int, tallies: Tallies, runs: list[Run] | None) -> list[list[Finding]]:
    """Return what is found of each plan of random layouts; if something is, of the smallest such plan."""
    found: list[list[Finding]] = []

    @hypothesis.seed(number)
    @settings(
        max_examples=DRAWN,
        database=None,
        deadline=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        suppress_health_check=[*HealthCheck],
    )
    @given(drawn)
    def draw(trials: list[Trial]) -> None:
        for trial in trials:
            found.append(check_trial(trial, tallies, runs=runs))
            assert not found[-1]

    try:
        draw()
    except AssertionError:
        return found[-1:]
    return found


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
        except fresh.host.refusals:
            return True


def check_layers(tests: Sequence[str], options: argparse.Namespace) -> int:
    """Run tests, or the fuzz, under Khronos' validation layers; print messages, and return 1 for any."""
    with TemporaryDirectory() as folder:
        log = Path(folder) / "messages"
        os.mkfifo(log)  # tests start processes: each of them would empty a file
        pipe = os.open(log, os.O_RDWR)
        content = {
            "debug_action": "VK_DBG_LAYER_ACTION_LOG_MSG",
            "report_flags": "error,warn,info",
            "log_filename": log,
            "enables": ",".join(f"VK_VALIDATION_FEATURE_ENABLE_{name}_EXT" for name in VALIDATED),
        }
        lines = "".join(f"khronos_validation.{name} = {value}\n" for name, value in content.items())
        (Path(folder) / "vk_layer_settings.txt").write_text(lines, "utf-8")
        own = {"VK_LAYER_SETTINGS_PATH": folder, "VK_INSTANCE_LAYERS": "VK_LAYER_KHRONOS_validation"}
        environment = {**os.environ, **own, "WGSLICE_TEST_ADAPTERS": "Vulkan"}
        command = [sys.executable, "-m", "pytest", "-q", "-n0", *tests]
        if tests == ["fuzz"]:
            minutes, seed = f"--minutes={options.seconds / 60}", f"--seed={options.seed}"
            adapter = f"--adapter={options.adapter or 'Vulkan'}"
            command = [sys.executable, "tests/fuzz.py", minutes, seed, adapter]
        with ThreadPoolExecutor(1) as reader:
            reading = reader.submit(messages_of, pipe)
            status = subprocess.run(command, cwd=ROOT, env=environment, check=False).returncode
            os.write(pipe, END_OF_MESSAGES)
            text = reading.result()
        os.close(pipe)
    if "Current Enables" not in text:
        print("check: the layers are not there; on Debian: apt-get install vulkan-validationlayers")
        return 1
    messages = Counter(f"{kind}: {HANDLE.sub('0x…', message)}" for kind, message in MESSAGE.findall(text))
    unknown = [message for message in messages if not KNOWN_MESSAGES.match(message)]
    print(f"check: {messages.total()} messages, of which {len(unknown)} are not known")
    print(*(f"{message}, {messages[message]} times" for message in unknown), sep="\n")
    return int(bool(unknown) or status != 0)


def messages_of(pipe: int) -> str:
    """Return what is written to a pipe until its end is marked."""
    text = b""
    while not text.endswith(END_OF_MESSAGES):
        text += os.read(pipe, 2**16)
    return text.decode("utf-8", "replace")


def table(content: Mapping[str, Any]) -> str:
    """Return what was executed of each kernel, as a table of a page."""
    rows = [
        "| " + " | ".join([f"`{name}`", *(f"{each[column]:,}" for column in COLUMNS)]) + " |"
        for name, each in sorted(content["kernels"].items())
    ]
    columns = {name: [each[name] for each in content["kernels"].values()] for name in COLUMNS}
    totals = (max(each) if name == LARGEST else sum(each) for name, each in columns.items())
    rows.append("| " + " | ".join(["all", *(f"{total:,}" for total in totals)]) + " |")
    head = "| kernel | dispatches | invocations | accesses | elements of the largest tensor |"
    return "\n".join([head, "|---|---|---|---|---|", *rows])


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
        former = {name: own.get(kernel, {}).get(name, 0) for name in counts}
        own[kernel] = {name: count + former[name] for name, count in counts.items()}
        own[kernel][LARGEST] = max(counts[LARGEST], former[LARGEST])
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
    parser.add_argument("--adapter", help="part of a name or backend; the best one by default, if any")
    parser.add_argument("--mutants", action="store_true", help="execute wrong lines of kernels instead")
    help_text = (
        "run tests, or `fuzz`, under Khronos' layers, with synchronization and GPU-assisted validation"
    )
    parser.add_argument("--layers", nargs="*", metavar="TEST", help=help_text)
    parser.add_argument("--keep", action="store_true", help="keep the results and the page's tables")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

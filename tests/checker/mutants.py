"""Wrong lines of kernels, and what finds them."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from random import Random
from typing import NamedTuple

from checker.findings import Finding
from checker.memory import Tally
from checker.sizes import check_large, large_copies
from checker.trials import Tallies, all_trials, check_trial, spread

from wgslice.doctor.trials import Trial
from wgslice.plans.kernels import Kernel

LIST = Path(__file__).with_name("mutants.toml")
FOLDER = Path(__file__).parents[2] / "wgsl"
MAX_LARGE = 400  # plans of tensors of some GiB, of all kernels


class Mutant(NamedTuple):
    """One wrong line of a kernel."""

    name: str
    kernels: list[str]  # that have it
    file: str
    old: str  # in one place of the file
    new: str
    large: bool = False  # whether it shows on tensors of some GiB only
    unsafe: bool = False  # whether it hangs adapters, or compilers refuse it

    def changed(self, module: str) -> str:
        """Return a module with the wrong line, if it has the right one."""
        return module.replace(self.old, self.new)

    def fits(self) -> bool:
        """Return whether the file has the line in one place."""
        return (FOLDER / self.file).read_text("utf-8").count(self.old) == 1


def mutants() -> list[Mutant]:
    """Return all wrong lines."""
    return [Mutant(**each) for each in tomllib.loads(LIST.read_text("utf-8"))["mutant"]]


class Found(NamedTuple):
    """What finds a mutant."""

    finding: Finding
    trial: Trial | None  # None of tensors of some GiB


def found_by(mutant: Mutant) -> Found | None:
    """Return the first finding of a mutant, of some trials and then of all."""
    return next(chain(findings_of(mutant, 60), findings_of(mutant, 10**6)), None)


def findings_of(mutant: Mutant, count: int) -> Iterator[Found]:
    """Yield what is found of a mutant by `count` trials per kernel."""
    tallies = Tallies(Tally)
    if mutant.large:
        for large in islice(large_copies(Random(1)), MAX_LARGE):
            if {step.name for step in large.plan.steps} & {*mutant.kernels}:
                yield from (Found(found, None) for found in check_large(large, tallies, mutant.changed))
        return
    for kernel in mutant.kernels:
        for trial in spread(all_trials()[Kernel(kernel)], count):
            yield from (Found(found, trial) for found in check_trial(trial, tallies, mutant.changed))

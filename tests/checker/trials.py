"""Check trials: a plan on bytes of its own, and what NumPy makes of them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from itertools import chain, product
from typing import NamedTuple

import numpy as np
from checker.execute import words_of
from checker.findings import Finding
from checker.memory import Memory, Tally
from checker.plans import bytes_of, run_plan
from helpers import GUARD, Bytes, copied, whole_words
from planning import USUAL, planned_by_kernel
from test_kernels import CONDITIONS, PROFILES, conditions

from wgslice.doctor.copies import copy_trials
from wgslice.doctor.indexing import MaskCase, index_trials
from wgslice.doctor.selftest import by_kernel
from wgslice.doctor.trials import NONE, Elements, Moves, Trial, difference, elements_of, trial_of
from wgslice.doctor.windows import window_trials
from wgslice.layout import Layout
from wgslice.plans.facade import Table, indexing, masked_copy, masked_values, plan
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Memory as Kind
from wgslice.plans.steps import OnGrid

Tallies = defaultdict[str, Tally]
LAUNCHES = [*PROFILES]  # launch configurations that the trials of the self-test are made for


class Run(NamedTuple):
    """A plan that was executed: its source, target before and table, and its target after."""

    plan: Plan
    sides: tuple[Bytes, Bytes, Bytes]
    after: Bytes


def check_trial(
    trial: Trial,
    tallies: Tallies,
    changed: Callable[[str], str] = str,
    runs: list[Run] | None = None,
) -> list[Finding]:
    """Execute a trial with its modules' text changed; return what is found, and add the run to others."""
    generator = np.random.default_rng(trial.target_nbytes)
    source, before = (
        generator.integers(0, 256, whole_words(nbytes), np.uint8)
        for nbytes in (trial.source_nbytes, trial.target_nbytes)
    )
    given = source[: trial.source_nbytes]

    def expected(target: Bytes) -> Bytes:
        found = target.copy()
        found[: trial.target_nbytes] = trial.expected(given, target[: trial.target_nbytes].copy())
        return found

    # Bytes to write differ before, so that each one that is not written is found.
    wanted = expected(before)
    written = wanted == expected(~before)
    before = np.where(written, ~wanted, before)
    memories = {int(Kind.INPUT): Memory(words_of(source)), int(Kind.OUTPUT): Memory(words_of(before))}
    table = np.zeros(4, np.uint8)
    if trial.table is not None:
        table = np.append(
            trial.table, np.full(-trial.table.size % 4, 255, np.uint8)
        )  # true elements of a mask
    memories[int(Kind.OFFSETS)] = Memory(words_of(table))
    target = memories[int(Kind.OUTPUT)]
    found = run_plan(trial.plan, memories, tallies, changed)
    if runs is not None:
        runs.append(Run(trial.plan, (source, before, table), bytes_of(target)))
    wrong = difference(bytes_of(target), wanted, "bytes", "#04x")
    output, width, inside = trial.plan.target, trial.plan.width_nbytes, np.flatnonzero(written)
    start = min(output.lowest * width, int(inside.min(initial=2**31)))
    stop = max(output.stop * width, int(inside.max(initial=0)) + 1)
    for unit, (low, high) in target.written.items():
        first, last = start // (4 * unit) * unit, (stop - 1) // (4 * unit) * unit + unit - 1
        if low < first or high > last:
            wrong = wrong or f"words {low} to {high} are written, the output's are {first} to {last}"
    found += [Finding("bytes", trial.plan.summary, 0, "", wrong)] if wrong else []
    return [replace(each, case=trial.case) for each in found]


def copying(plan: Plan, source: Layout, target: Layout, width: int, case: str) -> Trial:
    """Return the trial of a copy."""
    read, written = (whole_words(layout.stop * width) + GUARD for layout in (source, target))
    return Trial(
        plan, case, read, written, lambda given, before: copied(given, source, before, target, width)
    )


def condition_trials() -> Iterator[Trial]:
    """Yield a trial of each case at the edges of the conditions of the kernels that copy."""
    for kernel in CONDITIONS:
        for number, (width, source, target, paired) in enumerate(conditions(kernel)):
            nbytes = [
                (whole_words(layout.stop * width) + GUARD) // WIDEST_NBYTES * WIDEST_NBYTES
                for layout in (source, target)
            ]
            plan = planned_by_kernel(
                kernel,
                source,
                target,
                width,
                PROFILES[number % len(PROFILES)],
                (nbytes[0], nbytes[1]),
                paired=paired,
                completed=True,
            )
            yield copying(plan, source, target, width, f"{kernel.value} at the edges, {source} to {target}")


@dataclass(frozen=True)
class LineOfMask(MaskCase):
    """Elements of a line where a mask is true, of any number: pieces that are not full."""

    count: int = 1

    def trial(self, limits: Limits) -> Trial:
        """Return the trial of the kernel that is planned."""
        generator = np.random.default_rng(self.count)
        mask = generator.choice([0, 1, 128, 255], self.count)
        written = Layout.packed((self.count,), self.skip)
        read = Layout.of((self.count,), (0 if self.repeated else 1,), self.skip + 1)
        if self.in_turn:
            read = Layout.packed((int(np.count_nonzero(mask)),), self.skip + 1)
            copy, table = masked_values(mask != 0), None
        else:
            copy, table = masked_copy(mask.shape, written, read), mask.astype(np.uint8)

        def moved() -> tuple[Elements, Elements]:
            places = elements_of(written)
            return (places[mask != 0] if self.in_turn else np.where(mask, places, NONE)), elements_of(read)

        held = None if table is None else Table(Layout.packed(table.shape), 1)
        chosen = plan(indexing(read, written, self.width, copy), limits, table=held)
        return trial_of(chosen, self, (read, written), Moves(self.width, moved), table)


def mask_trials(limits: Limits) -> Iterator[Trial]:
    """Yield trials of masks on lines of any number of elements."""
    numbers = product(
        (1, 2, 4, 8, 16), (1, 7, 9, 31, 33, 63, 66, 129, 1001), (0, 1, 3), ("one", "packed", "in turn")
    )
    for width, count, skip, kind in numbers:
        if kind == "in turn" and (width >= WORD_NBYTES or skip or count == 1):
            continue  # other kernels' then
        yield LineOfMask(width, 1, skip, False, kind == "one", in_turn=kind == "in turn", count=count).trial(
            limits
        )


def profile_trials() -> Iterator[Trial]:
    """Yield the trials of the self-test, for each launch configuration."""
    for profile in LAUNCHES:
        limits = replace(USUAL, profile=profile)
        for trials_of in (
            copy_trials,
            window_trials,
            *([index_trials, mask_trials] if profile.words_each else []),
        ):
            yield from trials_of(limits)


@cache
def all_trials() -> dict[Kernel, list[Trial]]:
    """Return the trials of each kernel."""
    found = by_kernel(
        chain(profile_trials(), (each for each in condition_trials() if has_kernel(each))), USUAL
    )
    return {kernel: found[kernel] for kernel in Kernel if kernel in found}


def has_kernel(trial: Trial) -> bool:
    """Return whether the first step of a trial is a dispatch."""
    return isinstance(trial.plan.steps[0], OnGrid)


def spread(trials: list[Trial], count: int, start: int = 0) -> list[Trial]:
    """Return some trials, evenly spread, different ones for each start."""
    step = max(len(trials) // count, 1)
    return trials[start % step :: step][:count] if count < len(trials) else trials

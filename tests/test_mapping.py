"""The mapping from invocations to what they write: an adapter's equals the reference implementation's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from changed_modules import numbered_module
from helpers import GUARD, Bytes, default_tier, random_bytes, whole_words
from planning import favouring, only_dispatch, planned_by_kernel
from reference.memory import Writes
from reference.plans import trace
from running import Compile, run_side_by_side, side_by_side
from test_extract_windows import CONDITIONS as WINDOW_CONDITIONS
from test_extract_windows import conditions as window_conditions
from test_extract_windows import offset_table
from test_kernels import CONDITIONS, conditions
from trials import Trial, few_of_the_tier, no_change

import wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Profile

PROFILES = pytest.mark.parametrize("profile", default_tier([CPU, GPU], ["cpu", "gpu"], 1))


def writers(writes: Writes) -> dict[int, set[int]]:
    """For each unit the invocations that write it."""
    found: dict[int, set[int]] = {}
    pairs = zip(writes.units.ravel().tolist(), writes.stores.invocations.ravel().tolist(), strict=True)
    for unit, invocation in pairs:
        found.setdefault(unit, set()).add(invocation)
    return found


def check_writers(step: object, writes: Writes, before: Bytes, after: Bytes) -> None:
    """Each word of a unit holds the number of an invocation that writes it, and all else what it held.

    Of two that write one unit, as repeated pieces do, each may leave some words: their bytes are the same.
    """
    words = writes.unit_nbytes // 4
    units = after.view("<u4").reshape(-1, words)
    unchanged = np.ones(len(units), bool)
    for unit, invocations in writers(writes).items():
        unchanged[unit] = False
        numbers = set(units[unit].tolist())
        assert numbers <= invocations, f"{step}: {unit}: {numbers}, not {invocations}"
    assert np.array_equal(units[unchanged], before.view("<u4").reshape(-1, words)[unchanged])


def check_mapping(
    device: wg.Device, trials: list[Trial], written: Callable[[Trial, Bytes, Bytes], Writes]
) -> None:
    """Run trials of few pipelines, which have every constant: each is compiled for these tests alone."""
    taken = few_of_the_tier(trials)
    sides = [
        (random_bytes(trial.source_nbytes, number), random_bytes(trial.target_nbytes, number + 1000))
        for number, trial in enumerate(taken)
    ]
    tables = [() if trial.table is None else (trial.table,) for trial in taken]
    after = run_side_by_side(
        device, [(trial.plan, *both, *table) for trial, both, table in zip(taken, sides, tables, strict=True)]
    )
    _, places = side_by_side(device, [target for _, target in sides])
    seen = 0
    for trial, (source, target), place in zip(taken, sides, places, strict=True):
        writes = written(trial, source, target)
        check_writers(trial.step, writes, target, after[place:][: target.size])
        seen += writes.units.size
    assert seen >= 20


@pytest.mark.first_adapter
@PROFILES
@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
def test_invocations_write_what_the_reference_writes(
    device: wg.Device, compile_modules: Compile, kernel: Kernel, profile: Profile
) -> None:
    compile_modules(numbered_module)
    limits = replace(device.limits, profile=profile)
    forced = []
    for width, source_layout, target_layout, paired in conditions(kernel):
        if kernel is Kernel.SLICE1 and width < 4:
            continue  # bits of words, which hold no number
        sides = source_layout, target_layout
        source_nbytes, target_nbytes = ((whole_words(side.stop * width) + GUARD) // 16 * 16 for side in sides)
        bound = source_nbytes, target_nbytes
        plan = planned_by_kernel(kernel, *sides, width, limits, bound, paired=paired)
        forced.append(Trial(plan, "", source_nbytes + 4, target_nbytes, no_change))

    def written(trial: Trial, source: Bytes, target: Bytes) -> Writes:
        return trace(only_dispatch(trial.plan), source, target).writes

    check_mapping(device, forced, written)


@PROFILES
@pytest.mark.parametrize("kernel", WINDOW_CONDITIONS, ids=lambda kernel: kernel.value)
def test_invocations_of_windows_write_what_the_reference_writes(
    device: wg.Device, compile_modules: Compile, kernel: Kernel, profile: Profile
) -> None:
    compile_modules(numbered_module)
    limits = replace(device.limits, profile=favouring(profile, kernel))
    cases = {}
    for case in islice(window_conditions(kernel, profile), 0, None, 5):
        if kernel is Kernel.EXTRACT_WINDOWS and case.width < 4:
            continue  # bits of words, which hold no number
        source_nbytes, target_nbytes = (side.size for side in case.buffers())
        table = offset_table(case.offsets)
        cases[Trial(case.plan(limits), "", source_nbytes, target_nbytes, no_change, table)] = case

    def written(trial: Trial, source: Bytes, target: Bytes) -> Writes:
        step = only_dispatch(trial.plan)
        assert step.target_binding.offset_nbytes == 0
        return trace(step, source, target, cases[trial].offsets).writes

    check_mapping(device, list(cases), written)

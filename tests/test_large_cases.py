"""Windows of up to 200,000 elements: rows in several pieces of several elements, and folded grids."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from helpers import (
    check_bytes,
)
from hypothesis import event, find, given
from hypothesis import strategies as st
from planning import HEADS_AND_TAILS, USUAL, dispatches_of, planned_copy, ranking
from reference.plans import run_plan
from strategies import MAX_OF_LARGE, Case, large_cases

import wgslice as wg
from wgslice.plans.kernels import SPLITTING_ROWS, Kernel
from wgslice.plans.profiles import CPU, GPU, Limits
from wgslice.plans.steps import GRIDS, UNIT_GRIDS

PIECES = "several pieces of several elements"
FOLDED = "such pieces on a folded grid"
ROW_KERNELS = [kernel for kernel in Kernel if kernel in SPLITTING_ROWS and kernel not in HEADS_AND_TAILS]
BY_ROWS = Kernel.SHIFTED_ROWS, Kernel.WIDE_ROWS, Kernel.ROWS, Kernel.SUBWORD_ROWS
ON_GRIDS = Kernel.SHIFTED_GRID, *UNIT_GRIDS, Kernel.SUBWORD_ROWS
# In the last three, workgroups are so small that grids fold. One of these GPUs launches rows and no tiles;
# its invocations take 4 vectors.
PROFILES = [
    ranking(CPU, *BY_ROWS, copies=True),
    ranking(GPU, *ON_GRIDS),
    ranking(replace(CPU, name="cpu, small", workgroup_size=1), *BY_ROWS),
    ranking(
        replace(
            GPU,
            name="gpu, rows, small",
            workgroup_size=1,
            words_each=(16,),
            subword_words_each=(16,),
            blocks_each=4,
        ),
        *BY_ROWS,
    ),
    ranking(replace(GPU, name="gpu, small", workgroup_size=2), *ON_GRIDS),
]

workgroups = st.sampled_from([60, 260, 65535])  # of a dimension of the grid


def traits(plan: wg.Plan) -> set[tuple[Kernel, str]]:
    """The large counts of each dispatch: its kernel, and its launch configuration."""
    shares = [(step.kernel, step.share) for step in dispatches_of(plan)]
    split = [(kernel, share) for kernel, share in shares if min(share.pieces, share.each) > 1]
    folded = [kernel for kernel, share in split if share.workgroups[1] > 1]
    return {(kernel, PIECES) for kernel, _ in split} | {(kernel, FOLDED) for kernel in folded}


def plan_of(case: Case, limits: Limits) -> wg.Plan:
    return planned_copy(limits, case.source, case.output, case.width, copy_to=case.copyable)


@pytest.mark.first_adapter
@pytest.mark.slow
@given(case=large_cases(), workgroups=workgroups)
def test_large_slices_recorded_on_the_callers_buffers(device: wg.Device, case: Case, workgroups: int) -> None:
    """Every byte of the output, as each kind of adapter launches them, on grids of few workgroups."""
    expected = case.expected(*case.buffers())
    for profile in PROFILES:
        limits = replace(device.limits, profile=profile, workgroups=workgroups)
        for kernel, trait in sorted(traits(plan_of(case, limits)), key=str):
            event(f"{kernel.value} on {profile.name}: {trait}")
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(device, "limits", limits)
            check_bytes(case.recorded(device, case.descriptor), expected)


@given(case=large_cases(), workgroups=workgroups)
def test_reference_implementations_equal_numpy(case: Case, workgroups: int) -> None:
    source, target = case.buffers()
    expected = case.expected(source, target)
    for profile in PROFILES:
        result = target.copy()
        run_plan(plan_of(case, replace(USUAL, workgroups=workgroups, profile=profile)), source, result)
        check_bytes(result, expected)


@pytest.mark.slow
def test_what_is_drawn_is_large() -> None:
    """Each kernel of rows, as either kind of adapter launches it, in pieces and on folded grids."""
    drawn: Counter[tuple[str, Kernel, str]] = Counter()
    sizes = []

    wanted = [
        *((CPU.name, kernel, PIECES) for kernel in ROW_KERNELS),
        *(
            (profile.name, kernel, trait)
            for profile in PROFILES[2:4]
            for kernel in ROW_KERNELS
            for trait in (PIECES, FOLDED)
        ),
        *((PROFILES[4].name, on_grid, trait) for on_grid in GRIDS for trait in (PIECES, FOLDED)),
        (GPU.name, Kernel.WORD_GRID, PIECES),
        (GPU.name, Kernel.SUBWORD_ROWS, PIECES),
    ]

    def all_are_drawn(drawn_case: tuple[Case, int]) -> bool:
        case, most_workgroups = drawn_case
        sizes.append(case.output.size)
        for profile in PROFILES:
            limits = replace(USUAL, workgroups=most_workgroups, profile=profile)
            drawn.update((profile.name, *trait) for trait in traits(plan_of(case, limits)))
        return all(drawn[trait] >= 3 for trait in wanted)

    find(st.tuples(large_cases(), workgroups), all_are_drawn)  # raises where 2,000 examples do not
    assert 1000 < max(sizes) <= MAX_OF_LARGE

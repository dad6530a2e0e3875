"""The reference implementations refuse two writers of one unit, and cover invocations that repeat work."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np
import pytest
from helpers import GUARD, Bytes, check_bytes, copied, random_bytes, whole_words
from planning import USUAL, only_dispatch, planned_by_kernel
from reference import pieces
from reference.memory import TwoWritersError, Writes, bound, store
from reference.plans import run_plan, trace
from test_extract_windows import CONDITIONS as WINDOW_CONDITIONS
from test_extract_windows import conditions as window_conditions
from test_extract_windows import photographs
from test_kernels import CONDITIONS, conditions

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Profile

BY_ONE = np.zeros(1, np.uint32)


def forced(
    kernel: Kernel,
    width: int,
    source: Layout,
    target: Layout,
    profile: Profile = CPU,
    *,
    paired: bool = False,
) -> tuple[wg.Plan, Bytes, Bytes]:
    """A plan with one dispatch of a kernel, and a source and a poisoned target for it."""
    nbytes = [whole_words(layout.stop * width) + GUARD for layout in (source, target)]
    bound = nbytes[0] // 16 * 16, nbytes[1] // 16 * 16
    plan = planned_by_kernel(kernel, source, target, width, profile, bound, paired=paired)
    return plan, random_bytes(nbytes[0], 1), random_bytes(nbytes[1], 2)


def writes_of(plan: wg.Plan, source: Bytes, target: Bytes) -> Writes:
    """The writes of the only dispatch of a plan."""
    return trace(only_dispatch(plan), source, target).writes


@pytest.mark.parametrize("unit_nbytes", [1, 2, 4, 16])
def test_two_different_writes_of_one_unit_are_refused(unit_nbytes: int) -> None:
    values = random_bytes(4 * unit_nbytes).reshape(4, unit_nbytes)
    units = np.array([3, 1, 3, 0], np.uint32)
    target = np.zeros(64, np.uint8)
    same = values.copy()
    same[2] = same[0]
    store(Kernel.ROWS, target, Writes(unit_nbytes, units, same, BY_ONE))
    expected = np.zeros_like(target).reshape(-1, unit_nbytes)
    expected[[3, 1, 0]] = same[[0, 1, 3]]
    check_bytes(target, expected.ravel())
    different = same.copy()
    different[2, -1] ^= 1  # by one bit
    with pytest.raises(
        TwoWritersError,
        match=rf"^rows: two invocations write to unit 3 of {unit_nbytes} bytes, "
        rf"one {different[0].tobytes().hex()}, another {different[2].tobytes().hex()}$",
    ):
        store(Kernel.ROWS, target, Writes(unit_nbytes, units, different, BY_ONE))


def test_a_write_outside_of_the_binding_is_refused() -> None:
    with pytest.raises(IndexError, match="index 4 is out of bounds"):
        store(
            Kernel.ROWS,
            np.zeros(16, np.uint8),
            Writes(4, np.array([4], np.uint32), np.zeros(1, "<u4"), BY_ONE),
        )


@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
def test_implementation_leaves_the_target_unchanged(kernel: Kernel) -> None:
    for width, source_layout, target_layout, paired in islice(conditions(kernel), 0, None, 7):
        plan, source, target = forced(kernel, width, source_layout, target_layout, paired=paired)
        before = target.copy()
        writes = writes_of(plan, source, target)
        check_bytes(target, before)
        assert writes.unit_nbytes in (1, 2, 4, 16)
        assert np.asarray(writes.values).nbytes == writes.units.size * writes.unit_nbytes


REPEATING = {  # on a CPU: pieces that overlap, and rows that fill no workgroup
    Kernel.ROWS: (4, Layout.of((3, 37), (50, 1), 2)),
    Kernel.WIDE_ROWS: (16, Layout.of((3, 37), (50, 1), 2)),
    Kernel.SHIFTED_ROWS: (1, Layout.packed((3, 992), 16)),
    Kernel.SUBWORD_ROWS: (1, Layout.packed((3, 131), 3)),
}


@pytest.mark.parametrize("kernel", REPEATING, ids=lambda kernel: kernel.value)
def test_the_check_covers_invocations_that_repeat_work(kernel: Kernel) -> None:
    """Several invocations write a unit: were one of them wrong, it would be refused."""
    width, layout = REPEATING[kernel]
    plan, source, target = forced(kernel, width, layout, layout)
    writes = writes_of(plan, source, target)
    units, counts = np.unique(writes.units, return_counts=True)
    repeated = units[counts > 1]
    assert len(repeated) >= 2
    result = target.copy()
    memory = bound(result, only_dispatch(plan).target_binding)
    store(kernel, memory, writes)
    check_bytes(result, copied(source, layout, target, layout, width))
    nbytes = np.ascontiguousarray(writes.values).reshape(-1).view(np.uint8)
    values = nbytes.reshape(writes.units.size, writes.unit_nbytes)
    for unit in (repeated[0], repeated[-1]):
        wrong = values.copy()
        wrong[np.flatnonzero(writes.units.ravel() == unit)[0], 0] ^= 1
        with pytest.raises(TwoWritersError, match=rf"{kernel.value}: .* unit {unit} of"):
            store(kernel, memory, writes._replace(values=wrong))


def test_workgroups_beyond_the_last_tile_repeat_it() -> None:
    source, target = Layout.of((9, 9), (1, 9)), Layout.packed((9, 9))
    plan, *buffers = forced(Kernel.TILES, 4, source, target, GPU)
    step = only_dispatch(plan)
    more = replace(step, share=replace(step.share, workgroups=(3, 2, 1)))
    writes = writes_of(replace(plan, steps=(more,)), *buffers)
    assert writes.units.size == 6 * 81
    result = buffers[1].copy()
    run_plan(replace(plan, steps=(more,)), buffers[0], result)
    check_bytes(result, copied(buffers[0], source, buffers[1], target, 4))


SHARING = {  # rows that share words or blocks
    Kernel.SUBWORD_ROWS: (1, Layout.packed((7, 2, 19), 3)),
    Kernel.ROW_ENDS: (1, Layout.packed((7, 15), 3)),
}


def own_both(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every row takes the unit that it shares with the row before, which has it too."""

    def find_edges(share: Any, pieces_: Any, extents: Any, places_per_unit: int, shared: Any) -> Any:
        return pieces.find_edges(share, pieces_, extents, places_per_unit, np.zeros_like(shared))

    for module in ("elements", "block_kernels", "window_rows"):
        monkeypatch.setattr(f"reference.{module}.find_edges", find_edges)


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kernel", SHARING, ids=lambda kernel: kernel.value)
def test_two_owners_of_the_unit_between_rows_are_refused(
    monkeypatch: pytest.MonkeyPatch, kernel: Kernel, profile: Profile
) -> None:
    width, layout = SHARING[kernel]
    plan, source, target = forced(kernel, width, layout, layout, profile)
    result = target.copy()
    run_plan(plan, source, result)
    check_bytes(result, copied(source, layout, target, layout, width))
    own_both(monkeypatch)
    with pytest.raises(TwoWritersError, match=rf"^{kernel.value}: two invocations write to unit \d+ of"):
        run_plan(plan, source, target.copy())


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
def test_two_owners_of_the_block_between_windows_are_refused(
    monkeypatch: pytest.MonkeyPatch, profile: Profile
) -> None:
    case = photographs(1, 3, 23)
    plan = case.plan(replace(USUAL, profile=profile))
    source, target = case.buffers()
    own_both(monkeypatch)
    with pytest.raises(TwoWritersError, match=r"^window_rows: two invocations write to unit \d+ of 16 bytes"):
        run_plan(plan, source, target, case.offsets)


def test_a_wrong_stride_that_makes_rows_meet_is_refused() -> None:
    """Whatever the kernel: elements that two invocations write must be the same."""
    source, target = Layout.packed((5, 40)), Layout.of((5, 40), (39, 1))
    for kernel, width in ((Kernel.SLICE1, 1), (Kernel.SLICE1, 4), (Kernel.ROWS, 4), (Kernel.WIDE_ROWS, 16)):
        plan, *buffers = forced(kernel, width, source, target)
        with pytest.raises(TwoWritersError, match=f"^{kernel.value}: two invocations write to unit 39 of"):
            run_plan(plan, *buffers)


@pytest.mark.parametrize("kernel", WINDOW_CONDITIONS, ids=lambda kernel: kernel.value)
@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
def test_window_kernels_at_the_edges_of_their_conditions(kernel: Kernel, profile: Profile) -> None:
    for case in window_conditions(kernel, profile):
        plan = case.plan(replace(USUAL, profile=profile))
        source, target = case.buffers()
        result = target.copy()
        run_plan(plan, source, result, case.offsets)
        check_bytes(result, case.expected(source, target))

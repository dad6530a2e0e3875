"""Choices of windows: estimates, both sides of where they change a choice, and probes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib import import_module
from math import inf, prod
from typing import Any

import numpy as np
import pytest
from forcing import random_costs
from helpers import check_same, on_one_adapter
from planning import costing, favouring, names_of, only_dispatch, planned_windows
from running import Limit, recording

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, Profile

COUNT, ROWS = 1000, 10
IN_BLOCKS, BY_WORDS = ["insert_rows", "insert_words"], ["insert_words"]
OFFSETS = [[number * ROWS, 0] for number in range(COUNT)]  # of windows below each other


def windows_of(
    sizes: Sequence[int], shape: Sequence[int], width: int = 1, **others: Any
) -> wg.ExtractWindows:
    """Windows below each other."""
    offsets = [[*offset, 0][: len(sizes)] for offset in OFFSETS]
    sides = wg.TensorDesc(f"u{width}", shape), wg.TensorDesc(f"u{width}", (COUNT, *sizes))
    return wg.ExtractWindows(*sides, others.pop("offsets", offsets), sizes, **others)


def extracted(profile: Profile, row: int, *, width: int = 1) -> wg.Plan:
    """The plan of windows of rows of `row` elements."""
    return planned_windows(profile, windows_of((ROWS, row), (COUNT * ROWS, row + 1), width))


def inserted(profile: Profile, row: int, *, width: int = 1, source_capacity_nbytes: float = inf) -> wg.Plan:
    """The plan of windows of rows of `row` elements that are inserted where they were extracted."""
    dtype = f"u{width}"
    sides = wg.TensorDesc(dtype, (COUNT, ROWS, row)), wg.TensorDesc(dtype, (COUNT * ROWS, row + 1))
    asked = wg.InsertWindows(*sides, OFFSETS, overlap="last")
    return planned_windows(profile, asked, source_capacity_nbytes=source_capacity_nbytes)


def steps_seconds(plan: wg.Plan, profile: Profile) -> float:
    """The estimate without the submission."""
    return (plan.seconds or 0) - profile.costs.submission_s


# estimates


def test_estimates_of_windows_count_commands_and_workgroups() -> None:
    profile = costing(
        favouring(CPU, Kernel.EXTRACT_WINDOWS), {"extract_windows 4": (2e-9, 1e9)}, dispatch_s=5e-6
    )
    plan = extracted(profile, 7, width=4)
    assert names_of(plan) == ["extract_windows"]
    groups = -(-COUNT * ROWS * 7 // 64)
    expected_s = 5e-6 + groups * 64 * (2e-9 + 4 / 1e9)
    assert steps_seconds(plan, profile) == pytest.approx(expected_s)


@pytest.mark.parametrize(("channels", "mirrored"), [(1, False), (1, True), (3, False), (3, True)])
def test_a_reversed_block_costs_one_block_per_channel(channels: int, mirrored: bool) -> None:
    kinds = {
        "window_rows 16 unaligned": (1e-7, 1e9),
        "window_rows 16 unaligned reversed": (2e-7, 3e9),
    }
    profile = costing(favouring(CPU, Kernel.WINDOW_ROWS), kinds)
    sizes, steps = (ROWS, 301, channels), (1, -1 if mirrored else 1, 1)
    plan = planned_windows(profile, windows_of(sizes, (COUNT * ROWS, 399, channels), strides=steps))
    share = only_dispatch(plan).share
    invocation_s, bytes_per_s = (2e-7, 3e9 / channels) if mirrored else (1e-7, 1e9)
    expected_s = prod(share.workgroups) * 64 * (invocation_s + share.each * 16 / bytes_per_s)
    assert steps_seconds(plan, profile) == pytest.approx(expected_s)


def test_printed_window_plans_have_estimates_of_strategies() -> None:
    plan = extracted(CPU, 64)
    first, second, *others = plan.choices
    assert [choice.name for choice in (first, second, *others)] == [
        *("window_rows", "window_words", "extract_windows")
    ]
    assert "\n  considered  window_words " in str(plan)
    assert f"  estimate    {(plan.seconds or 0) * 1e6:.3g} us (cost model: {CPU.costs.origin};" in str(plan)
    assert plan.rejected == ()


@pytest.mark.parametrize(("count", "rows_apart"), [(50, 1), (10**5, 3)], ids=["overlapping", "many"])
@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])
def test_printed_plans_of_windows_list_what_was_estimated(
    on_gpu: bool, count: int, rows_apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of extracted windows and of inserted ones, also where offsets are packed or copied first."""
    calls: list[str] = []

    def noting(strategy: Any) -> Any:
        def asked(function: Any, problem: Any) -> Any:
            calls.append(strategy.name)
            return function(problem)

        return strategy._replace(
            **{name: partial(asked, getattr(strategy, name)) for name in strategy._fields[1:]}
        )

    planner = "wgslice.plans.window_strategies"
    monkeypatch.setattr(f"{planner}.WINDOWS", [noting(row) for row in import_module(planner).WINDOWS])
    offsets = np.stack([np.arange(count) * rows_apart, np.arange(count) % 200], 1)
    image = wg.TensorDesc("u1", (count * rows_apart + 2, 300))
    batch = wg.TensorDesc("u1", (count, 3, 64))
    given: Any = wg.TensorDesc("i4", (count, 2)) if on_gpu else offsets
    for layout in (Layout.packed((count, 2)), Layout.of((count, 2), (4, 2))):
        for shared in (False, True):
            for asked in (
                wg.ExtractWindows(image, batch, given, (3, 64)),
                wg.InsertWindows(batch, image, given, overlap="last"),
            ):
                bound = layout if on_gpu else None
                plan = planned_windows(CPU, asked, offsets=bound, shared=shared)
                assert set(calls) > {each.name for each in plan.others}
                calls.clear()
                assert on_gpu or plan.others
                assert ("considered  none: only " in str(plan)) != bool(plan.others)


# both sides of where costs change a choice


@pytest.mark.parametrize(
    ("row", "width", "kernel"),
    # rows of 12 and 16 blocks, an invocation each: 1 us and 16 ns a block, words 5 ns a byte, elements 20 ns
    [(192, 1, "window_words"), (256, 1, "window_rows"), (12, 4, "extract_windows"), (16, 4, "window_rows")],
)
def test_rows_long_enough_to_pay_are_copied_in_blocks(row: int, width: int, kernel: str) -> None:
    works = {"window_rows 16": (1e-6, 1e9), "window_words 1": (0.0, 2e8)}
    works |= {"extract_windows 4": (0.0, 5e7), "extract_windows 1": (0.0, 1e7)}
    profile = costing(CPU, works)
    assert names_of(extracted(profile, row, width=width)) == [kernel]
    dearer = costing(profile, {"window_rows 16": (1e-5, 1e9)})
    assert names_of(extracted(dearer, row, width=width)) != ["window_rows"]


@pytest.mark.parametrize(("invocation_s", "each"), [(0.0, 1), (1e-6, 12)])
def test_costly_invocations_copy_more_blocks(invocation_s: float, each: int) -> None:
    """Of 12 blocks of 16 ns."""
    works = {"window_rows 16": (invocation_s, 1e9), "insert_rows 16": (invocation_s, 1e9)}
    profile = costing(favouring(CPU, Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS), works)
    share = only_dispatch(extracted(profile, 192)).share
    assert (share.pieces, share.each) == (12 // each, each)


@pytest.mark.parametrize(("ends_rate", "kernels"), [(1e9, IN_BLOCKS), (1e8, BY_WORDS)])
def test_rows_are_copied_by_words_where_ends_cost_more(ends_rate: float, kernels: list[str]) -> None:
    """Rows of 99 bytes: 6 blocks and two ends of 16 bytes, or 28 words."""
    works = {
        "insert_rows 16": (0.0, 1e9),
        "insert_words 4": (0.0, 5e8),
        "insert_words 4 ends": (0.0, ends_rate),
    }
    assert names_of(inserted(costing(CPU, works), 99)) == kernels


@pytest.mark.parametrize(("dispatch_s", "kernels"), [(0.0, IN_BLOCKS), (1.0, BY_WORDS)])
def test_a_dispatch_of_ends_is_one_more(dispatch_s: float, kernels: list[str]) -> None:
    assert names_of(inserted(costing(CPU, {}, dispatch_s=dispatch_s), 99)) == kernels


def test_rows_of_wide_elements_may_be_inserted_by_words() -> None:
    for words, kernel in ((4e8, "insert_words"), (1e8, "insert_windows")):
        works = {"insert_words 4": (0.0, words), "insert_windows 4": (0.0, 2e8)}
        assert names_of(inserted(costing(CPU, works), 3, width=4)) == [kernel]


def test_a_cost_class_of_unknown_cost_is_not_chosen() -> None:
    profile = costing(CPU, {"window_rows 16": None, "insert_rows 16": None}, dispatch_s=CPU.costs.dispatch_s)
    plan = extracted(profile, 64)
    assert names_of(plan) == ["window_words"]
    assert "window_rows: the cost model lacks its cost class" in plan.rejected
    plan = inserted(profile, 64)
    assert names_of(plan) == ["insert_words"]
    assert "insert_rows: the cost model lacks its cost class" in plan.rejected


def test_windows_left_out_of_blocks_take_the_cheapest_kernel() -> None:
    for rate, kernel in ((1e9, "insert_words"), (1e6, "insert_windows")):
        profile = costing(CPU, {"insert_words 4": (0.0, rate)})
        plan = inserted(profile, 1000, source_capacity_nbytes=COUNT * ROWS * 1000 - 16)
        assert names_of(plan) == ["insert_rows", "insert_words", kernel]
        rest = str(plan.steps[-1])
        assert rest.startswith(f"kernel {kernel} on 1 window ")
        assert "an unpadded buffer ends inside" in rest


def test_what_packs_offsets_counts_in_every_estimate() -> None:
    asked = windows_of((ROWS, 64), (COUNT * ROWS, 65), offsets=wg.TensorDesc("i4", (COUNT, 2)))
    packed, spread = (
        planned_windows(CPU, asked, offsets=Layout.of((COUNT, 2), strides)) for strides in ((2, 1), (4, 2))
    )
    packing_s = (spread.seconds or 0) - (packed.seconds or 0)
    assert packing_s > 0
    assert str(spread.steps[0]).endswith("kernels bind packed offsets")
    for before, after in zip(packed.choices, spread.choices, strict=True):
        assert after.seconds == pytest.approx(before.seconds + packing_s)
        assert len(after.steps) == len(before.steps) + 1


# a buffer copy of each window


def whole_images(
    shape: tuple[int, ...] = (9, 8, 12),
    *,
    itemsize: int = 4,
    skip: int = 0,
    mirrored: bool = False,
    copy_from: bool = True,
    copy_to: bool = True,
) -> wg.Plan:
    """The plan of images of a batch in another order."""
    dtype, (count, *rest) = f"u{itemsize}", shape
    offsets = np.zeros((30, len(shape)), np.int32)
    offsets[:, 0] = np.random.default_rng(1).integers(0, count, 30)
    sides = wg.TensorDesc(dtype, shape), wg.TensorDesc(dtype, (30, 1, *rest))
    strides = [1, -1 if mirrored else 1, *[1] * (len(rest) - 1)]
    asked = wg.ExtractWindows(*sides, offsets, (1, *rest), strides)
    source = Layout.packed(shape, skip)
    return planned_windows(COPYING, asked, source=source, copy_from=copy_from, copy_to=copy_to)


COPYING = replace(CPU, costs=replace(CPU.costs, copy_s=0.0, copy_bytes_per_s=1e30))


def test_whole_images_may_be_a_buffer_copy_each() -> None:
    plan = whole_images()
    (step,) = plan.steps
    assert (
        str(step) == "30 buffer copies of 384 B, without a kernel: windows of contiguous words on both sides"
    )
    assert plan.rejected == ()
    assert "considered  window_rows " in str(plan)
    assert plan.seconds == COPYING.costs.submission_s
    for otherwise in (
        whole_images((9, 8, 9), itemsize=1),  # 72 bytes, from any number of them on
        whole_images(mirrored=True),
        whole_images(skip=1, itemsize=2),  # half a word further along
        whole_images(copy_from=False),
        whole_images(copy_to=False),
    ):
        copied = otherwise.nbytes == 30 * 72  # of which every image begins with a word
        assert ("buffer copies" in otherwise.summary) == copied
    assert names_of(extracted(COPYING, 64)) == ["window_rows"]  # rows that are apart


@pytest.mark.parametrize(("copy_s", "copies"), [(1e-9, True), (1e-3, False)])
def test_buffer_copies_are_chosen_where_they_cost_less(copy_s: float, copies: bool) -> None:
    profile = replace(CPU, costs=replace(CPU.costs, copy_s=copy_s))
    offsets = [[number, 0] for number in range(COUNT)]
    sides = wg.TensorDesc("u4", (COUNT, 1, 256)), wg.TensorDesc("u4", (COUNT, 256))
    plan = planned_windows(profile, wg.InsertWindows(*sides, offsets))
    assert plan.summary.endswith("1000 buffer copies") == copies


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_images_by_buffer_copies_are_numpys(device: wg.Device, limit: Limit, dtype: str) -> None:
    """Read, written, outside in part, and written twice, of which the last one stays."""
    costs = replace(device.limits.profile.costs, copy_s=0.0, copy_bytes_per_s=1e30)
    limit(profile=replace(device.limits.profile, costs=costs))
    rng = np.random.default_rng(3)
    batch = rng.integers(0, 256, (7, 4, 16), np.uint8).astype(dtype)
    x, order = wg.asarray(batch, device=device), rng.permutation(7)
    assert np.array_equal(x[order].numpy(), batch[order])
    assert np.array_equal(x[1:, 2][order[order < 6]].numpy(), batch[1:, 2][order[order < 6]])
    y = wg.zeros(batch.shape, dtype, device=device)
    y[order] = x
    expected = np.zeros_like(batch)
    expected[order] = batch
    assert np.array_equal(y.numpy(), expected)
    found = wg.extract_windows(x, [[-1, 0, 0], [5, 0, 0]], (2, 4, 16), fill=1).numpy()
    assert np.array_equal(found[0], np.stack([np.ones((4, 16), dtype), batch[0]]))
    assert np.array_equal(found[1], batch[5:7])
    line = wg.zeros(64, dtype, device=device)
    read, written = (wg.TensorDesc(dtype, sizes) for sizes in ((3, 32), (64,)))
    operator = device.compile(wg.InsertWindows(read, written, [[0], [16], [4]], overlap="last"))
    assert operator.plan.summary.endswith("3 buffer copies")
    windows = rng.integers(0, 256, (3, 32), np.uint8).astype(dtype)
    operator(wg.asarray(windows, device=device), out=line)
    expected = np.zeros(64, dtype)
    for offset, window in zip((0, 16, 4), windows, strict=True):
        expected[offset : offset + 32] = window
    assert np.array_equal(line.numpy(), expected)


def test_one_element_of_a_reversed_window_is_its_last(device: wg.Device, limit: Limit) -> None:
    """Windows of one row, larger than their elements reach over, by a buffer copy each."""
    costs = replace(device.limits.profile.costs, copy_s=0.0, copy_bytes_per_s=1e30)
    limit(profile=replace(device.limits.profile, costs=costs))
    array = np.arange(60, dtype=np.int32).reshape(2, 5, 6)
    sides = wg.TensorDesc("int32", array.shape), wg.TensorDesc("int32", (2, 1, 1, 4))
    steps = [[-2, -3, 1], [2, -3, 1]]
    operator = device.compile(wg.ExtractWindows(*sides, [[0, 1, 2]] * 2, (2, 3, 4), steps))
    assert operator.plan.summary.endswith("2 buffer copies")
    found = operator(wg.asarray(array, device=device))
    check_same(found.numpy(), array[::-1, 3, None, None, 2:])


def test_an_adapter_chooses_by_its_costs(device: wg.Device, limit: Limit) -> None:
    """The same windows by every kernel that can, each printed, and right."""
    image = np.random.default_rng(2).integers(0, 256, (40, 100), np.uint8)
    x, known = wg.asarray(image, device=device), device.limits.profile
    for kernel in (Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS, Kernel.EXTRACT_WINDOWS):
        limit(profile=favouring(known, kernel))
        sides = wg.TensorDesc("uint8", (40, 100)), wg.TensorDesc("uint8", (2, 5, 64))
        operator = device.compile(wg.ExtractWindows(*sides, [[1, 2], [30, 36]], (5, 64)))
        assert f"step 1      kernel {kernel.value} on 2 windows" in str(operator.plan)
        assert np.array_equal(operator(x).numpy(), [image[1:6, 2:66], image[30:35, 36:100]])


def test_nothing_to_insert_has_no_steps() -> None:
    sides = wg.TensorDesc("u4", (1, 3, 4)), wg.TensorDesc("u4", (9, 9))
    plan = planned_windows(CPU, wg.InsertWindows(*sides, [[50, 50]], outside="drop"))
    assert plan.steps == ()
    assert plan.seconds is None


@on_one_adapter
def test_a_window_of_a_packed_copy_has_its_memory(device: wg.Device, limit: Limit) -> None:
    """Where windows go one by one, by strategies of their own, which copy the tensor before."""
    array = np.arange(5 * 4 * 4 * 8, dtype=np.float16).reshape(5, 4, 4, 8)
    x = wg.permute(wg.asarray(array, device=device)[..., ::4], (3, 2, 1, 0))
    offsets = wg.asarray(np.array([[0, 0, 0, 0], [1, 1, 0, 2]], np.int32), device=device)
    limit(binding_nbytes=1280, workgroups=2, profile=random_costs(3, 7))
    with recording() as plans:
        found = wg.extract_windows(x, offsets, [[1, 2, 4, 5], [1, 1, 2, 3]])
    assert any("to the packed tensor" in str(plan) for plan in plans)
    expected = array[..., ::4].transpose(3, 2, 1, 0)
    check_same(found[0].numpy(), expected[:1, :2].copy())
    check_same(found[1].numpy(), expected[1:2, 1:2, :2, 2:5].copy())

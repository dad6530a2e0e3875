"""What windows take by what it costs: estimates, both sides of where they change a choice, and probes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any

import numpy as np
import pytest
from costing import favouring
from helpers import check_same
from reference.plans import run_plan

import wgslice as wg
from bench.probes import probes
from bench.window_probes import WindowProbe, window_probes
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import inserted_windows
from wgslice.plans.choose import seconds_of
from wgslice.plans.costs import CostClass, Work, shipped
from wgslice.plans.kernels import Kernel
from wgslice.plans.overlaps import Insertion, insertion_of
from wgslice.plans.plan import Plan
from wgslice.plans.problem import Table, Terms
from wgslice.plans.profiles import CPU, GPU, Limits, Profile
from wgslice.plans.staging import plan_anew
from wgslice.plans.window_plans import (
    extract_windows_planner,
    insert_windows_planner,
)
from wgslice.plans.windows import WindowDispatch, Windows

COUNT, ROWS = 1000, 10
IN_BLOCKS, BY_WORDS = ["insert_rows", "insert_words"], ["insert_words"]
FIGURES = ("lavapipe-22-3", "lavapipe-25-0", "llvmpipe-opengl", "swiftshader", "gpus")


def costing(profile: Profile, works: Mapping[str, Work], dispatch_s: float = 0.0) -> Profile:
    """A profile with some costs of its own."""
    costs = profile.costs
    priced = {CostClass.parsed(name): work for name, work in works.items()}
    assert priced.keys() <= costs.works.keys()
    return replace(profile, costs=replace(costs, works={**costs.works, **priced}, dispatch_s=dispatch_s))


def windows_of(sizes: Sequence[int], *, mirrored: bool = False, on_gpu: bool = False) -> Windows:
    """Windows below each other."""
    offsets = np.zeros((COUNT, len(sizes)), np.int32)
    offsets[:, 0] = np.arange(COUNT) * sizes[0]
    flips = np.full(COUNT, 2 * mirrored, np.uint32)
    return Windows(tuple(sizes), (1,) * len(sizes), flips, None if on_gpu else offsets, 4, True, None)


def extracted(profile: Profile, row: int, *, width: int = 1, skip: int = 0, mirrored: bool = False) -> Plan:
    """The plan of windows of rows of so many elements."""
    limits = Limits(2**30, 32, 2**16, profile)
    source, target = Layout.packed((COUNT * ROWS, row + 1)), Layout.packed((COUNT, ROWS, row), skip)
    return extract_windows_planner(windows_of((ROWS, row), mirrored=mirrored))(
        source, target, width, Terms(limits)
    )


def inserted(profile: Profile, row: int, *, width: int = 1, source_room: float = np.inf) -> Plan:
    """The plan of windows of rows of so many elements that are put where they were."""
    limits = Limits(2**30, 32, 2**16, profile)
    offsets = [[number * ROWS, 0] for number in range(COUNT)]
    shape = COUNT * ROWS, row + 1
    insertion = insertion_of(inserted_windows(offsets, (COUNT, ROWS, row), shape, None), shape, "last")
    batch, tensor = Layout.packed((COUNT, ROWS, row)), Layout.packed(shape)
    return insert_windows_planner(insertion)(
        batch, tensor, width, Terms(limits, source_room_nbytes=source_room)
    )


def kernels_of(plan: Plan) -> list[str]:
    return [step.name for step in plan.steps]


# estimates


def test_a_dispatch_of_windows_takes_a_command_and_whole_workgroups() -> None:
    profile = costing(favouring(CPU, Kernel.EXTRACT_WINDOWS), {"extract_windows 4": Work(2e-9, 1e9)}, 5e-6)
    plan = extracted(profile, 7, width=4)
    assert kernels_of(plan) == ["extract_windows"]
    groups = -(-COUNT * ROWS * 7 // 64)
    expected_s = 5e-6 + groups * 64 * (2e-9 + 4 / 1e9)
    assert seconds_of(plan.steps, profile.costs) == pytest.approx(expected_s)
    assert plan.seconds == pytest.approx(profile.costs.submission_s + expected_s)


@pytest.mark.parametrize(("channels", "mirrored"), [(1, False), (1, True), (3, False), (3, True)])
def test_a_mirrored_block_costs_as_many_blocks_as_there_are_channels(channels: int, mirrored: bool) -> None:
    kinds = {
        "window_rows 16 ragged": Work(1e-7, 1e9),
        "window_rows 16 ragged mirrored": Work(2e-7, 3e9),
    }
    profile = costing(favouring(CPU, Kernel.WINDOW_ROWS), kinds)
    sizes = ROWS, 301, channels
    source, target = Layout.packed((COUNT * ROWS, 399, channels)), Layout.packed((COUNT, *sizes))
    limits = Limits(2**30, 32, 2**16, profile)
    plan = extract_windows_planner(windows_of(sizes, mirrored=mirrored))(source, target, 1, Terms(limits))
    (step,) = plan.steps
    assert isinstance(step, WindowDispatch)
    assert str(step.work) == "window_rows 16 ragged" + " mirrored" * mirrored
    work = Work(2e-7, 3e9 / channels) if mirrored else Work(1e-7, 1e9)
    invocations = prod(step.share.workgroups) * 64
    expected_s = invocations * (work.invocation_s + step.share.each * 16 / work.bytes_per_s)
    assert seconds_of(plan.steps, profile.costs) == pytest.approx(expected_s)


def test_a_printed_plan_says_what_windows_take_and_what_the_next_way_would() -> None:
    plan = extracted(CPU, 64)
    first, second, *others = plan.choices
    assert [choice.name for choice in (first, second, *others)] == [
        *("window_rows", "window_words", "extract_windows")
    ]
    line = str(plan).splitlines()[-1]
    assert line.startswith("  considered: window_words ")
    assert f"  estimated time {(plan.seconds or 0) * 1e6:.3g} us: {CPU.costs.origin}" in str(plan)
    assert plan.rejected == ()


def counted(strategies: Sequence[Strategy[Any]], calls: list[str]) -> list[Strategy[Any]]:
    """The same strategies, which note by their names that they are asked."""

    def asked(name: str, function: Callable[[Any], Any], problem: Any) -> Any:
        calls.append(name)
        return function(problem)

    return [
        Strategy(name, *(partial(asked, name, each) for each in functions)) for name, *functions in strategies
    ]


@pytest.mark.parametrize(("count", "rows_apart"), [(50, 1), (10**6, 3)], ids=["overlapping", "a million"])
@pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])
def test_printing_a_plan_of_windows_asks_no_strategy(
    on_gpu: bool, count: int, rows_apart: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of extracted windows and of inserted ones, also where offsets are packed or copied first."""
    calls: list[str] = []
    for name, strategies in (("extract.EXTRACTIONS", EXTRACTIONS), ("insert.INSERTIONS", INSERTIONS)):
        monkeypatch.setattr(f"wgslice.plans.{name}", counted(strategies, calls))
    offsets = np.stack([np.arange(count) * rows_apart, np.arange(count) % 200], 1)
    image = wg.TensorDesc("u1", (count * rows_apart + 2, 300))
    batch = wg.TensorDesc("u1", (count, 3, 64))
    given: Any = wg.TensorDesc("i4", (count, 2)) if on_gpu else offsets
    windows = wg.ExtractWindows(image, batch, given, (3, 64)).windows
    insertion = wg.InsertWindows(batch, image, given, overlap="last").insertion
    limits = Limits(2**30, 32, 2**16, CPU)
    for table in (Layout.packed((count, 2)), Layout.of((count, 2), (4, 2))):
        for shared in (False, True):
            for planner, sides in (
                (extract_windows_planner(windows), (image, batch)),
                (insert_windows_planner(insertion), (batch, image)),
            ):
                terms = Terms(limits, shared=shared, table=Table(table, 4) if on_gpu else None)
                plan = plan_anew(planner, sides[0].layout, sides[1].layout, 1, terms)
                assert set(calls) > {each.name for each in plan.others}
                calls.clear()
                assert on_gpu or plan.others
                with monkeypatch.context() as patched:
                    patched.setattr("wgslice.plans.choose.bounded", lambda *_: pytest.fail("planned again"))
                    assert ("considered: " in str(plan)) == bool(plan.others)
                assert calls == []


@pytest.mark.parametrize("name", FIGURES)
def test_shipped_figures_know_all_work_on_windows(name: str) -> None:
    assert {probe.work for probe in probes()} <= shipped(name).works.keys()


# both sides of where costs change a choice


@pytest.mark.parametrize(
    ("row", "width", "kernel"),
    # rows of 12 and 16 blocks, an invocation each: 1 us and 16 ns a block, words 5 ns a byte, elements 20 ns
    [(192, 1, "window_words"), (256, 1, "window_rows"), (12, 4, "extract_windows"), (16, 4, "window_rows")],
)
def test_blocks_are_taken_of_rows_that_are_long_enough_to_pay(row: int, width: int, kernel: str) -> None:
    works = {"window_rows 16": Work(1e-6, 1e9), "window_words 1": Work(0.0, 2e8)}
    works |= {"extract_windows 4": Work(0.0, 5e7), "extract_windows 1": Work(0.0, 1e7)}
    profile = costing(CPU, works)
    assert kernels_of(extracted(profile, row, width=width)) == [kernel]
    dearer = costing(profile, {"window_rows 16": Work(1e-5, 1e9)})
    assert kernels_of(extracted(dearer, row, width=width)) != ["window_rows"]


@pytest.mark.parametrize(("invocation_s", "each"), [(0.0, 1), (1e-6, 12)])
def test_an_invocation_takes_more_blocks_where_it_costs_more(invocation_s: float, each: int) -> None:
    """Of 12 blocks of 16 ns."""
    works = {"window_rows 16": Work(invocation_s, 1e9), "insert_rows 16": Work(invocation_s, 1e9)}
    profile = costing(favouring(CPU, Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS), works)
    (step,) = extracted(profile, 192).steps
    assert isinstance(step, WindowDispatch)
    assert (step.share.pieces, step.share.each) == (12 // each, each)


@pytest.mark.parametrize(("ends_rate", "kernels"), [(1e9, IN_BLOCKS), (1e8, BY_WORDS)])
def test_rows_go_by_words_where_their_ends_cost_more(ends_rate: float, kernels: list[str]) -> None:
    """Rows of 99 bytes: 6 blocks and two ends of 16 bytes, or 28 words."""
    works = {
        "insert_rows 16": Work(0.0, 1e9),
        "insert_words 4": Work(0.0, 5e8),
        "insert_words 4 ends": Work(0.0, ends_rate),
    }
    assert kernels_of(inserted(costing(CPU, works), 99)) == kernels


@pytest.mark.parametrize(("dispatch_s", "kernels"), [(0.0, IN_BLOCKS), (1.0, BY_WORDS)])
def test_a_dispatch_of_ends_is_one_more(dispatch_s: float, kernels: list[str]) -> None:
    assert kernels_of(inserted(costing(CPU, {}, dispatch_s), 99)) == kernels


def test_rows_of_wide_elements_may_go_by_words() -> None:
    for words, kernel in ((4e8, "insert_words"), (1e8, "insert_windows")):
        works = {"insert_words 4": Work(0.0, words), "insert_windows 4": Work(0.0, 2e8)}
        assert kernels_of(inserted(costing(CPU, works), 3, width=4)) == [kernel]


def test_work_of_which_nothing_is_known_is_not_taken() -> None:
    unknown = {"window_rows 16", "insert_rows 16"}
    works = {name: work for name, work in CPU.costs.works.items() if str(name) not in unknown}
    profile = replace(CPU, costs=replace(CPU.costs, works=works))
    plan = extracted(profile, 64)
    assert kernels_of(plan) == ["window_words"]
    assert "window_rows: nothing is known of what it costs" in plan.rejected
    plan = inserted(profile, 64)
    assert kernels_of(plan) == ["insert_words"]
    assert "insert_rows: nothing is known of what it costs" in plan.rejected


def test_what_a_tight_buffer_leaves_out_goes_the_cheaper_way() -> None:
    for rate, kernel in ((1e9, "insert_words"), (1e6, "insert_windows")):
        profile = costing(CPU, {"insert_words 4": Work(0.0, rate)})
        plan = inserted(profile, 1000, source_room=COUNT * ROWS * 1000 - 16)
        assert kernels_of(plan) == ["insert_rows", "insert_words", kernel]
        rest = plan.steps[-1]
        assert isinstance(rest, WindowDispatch)
        assert rest.share.count == 1
        assert "left out of blocks: a buffer ends inside" in rest.reason


def test_what_packs_offsets_counts_in_every_estimate() -> None:
    limits = Limits(2**30, 32, 2**16, CPU)
    source, target = Layout.packed((COUNT * ROWS, 65)), Layout.packed((COUNT, ROWS, 64))
    plans = []
    for strides in ((2, 1), (4, 2)):
        terms = Terms(limits, table=Table(Layout.of((COUNT, 2), strides), 4))
        planner = extract_windows_planner(windows_of((ROWS, 64), on_gpu=True))
        plans.append(plan_anew(planner, source, target, 1, terms))
    packed, spread = plans
    packing_s = seconds_of(spread.steps[:1], CPU.costs)
    assert packing_s > 0
    assert spread.seconds == pytest.approx((packed.seconds or 0) + packing_s)
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
) -> Plan:
    """The plan of images of a batch in another order."""
    offsets = np.zeros((30, len(shape)), np.int32)
    offsets[:, 0] = np.random.default_rng(1).integers(0, shape[0], 30)
    flips = np.full(30, 2 * mirrored, np.uint32)
    windows = Windows((1, *shape[1:]), (1,) * len(shape), flips, offsets, 4, True, None)
    source, target = Layout.packed(shape, skip), Layout.packed((30, 1, *shape[1:]))
    limits = Limits(2**30, 32, 2**16, COPYING)
    return extract_windows_planner(windows)(source, target, itemsize, Terms(limits, copy_from, copy_to))


COPYING = replace(CPU, costs=replace(CPU.costs, copy_s=0.0, copy_bytes_per_s=1e30))


def test_whole_images_may_go_by_a_buffer_copy_each() -> None:
    plan = whole_images()
    (step,) = plan.steps
    assert str(step) == "30 buffer copies of 384 bytes: windows of contiguous words on both sides"
    assert plan.rejected == ()
    assert "considered: window_rows " in str(plan)
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
    assert kernels_of(extracted(COPYING, 64)) == ["window_rows"]  # rows that lie apart


@pytest.mark.parametrize(("copy_s", "copies"), [(1e-9, True), (1e-3, False)])
def test_buffer_copies_are_taken_where_they_cost_less(copy_s: float, copies: bool) -> None:
    profile = replace(CPU, costs=replace(CPU.costs, copy_s=copy_s))
    offsets = [[number, 0] for number in range(COUNT)]
    windows = inserted_windows(offsets, (COUNT, 1, 256), (COUNT, 256), None)
    insertion = insertion_of(windows, (COUNT, 256), "last")
    limits = Limits(2**30, 32, 2**16, profile)
    batch, tensor = Layout.packed((COUNT, 1, 256)), Layout.packed((COUNT, 256))
    plan = insert_windows_planner(insertion)(batch, tensor, 4, Terms(limits))
    assert (kernels_of(plan) == ["1000 buffer copies"]) == copies


@pytest.mark.parametrize("dtype", ["uint8", "float32", "complex128"])
def test_images_by_buffer_copies_are_numpys(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """Read, written, outside in part, and written twice, of which the last one stays."""
    costs = replace(device.limits.profile.costs, copy_s=0.0, copy_bytes_per_s=1e30)
    limits = replace(device.limits, profile=replace(device.limits.profile, costs=costs))
    monkeypatch.setattr(device, "limits", limits)
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


def test_one_element_of_a_mirrored_window_is_its_last(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Windows of one row, larger than their elements reach over, by a buffer copy each."""
    costs = replace(device.limits.profile.costs, copy_s=0.0, copy_bytes_per_s=1e30)
    limits = replace(device.limits, profile=replace(device.limits.profile, costs=costs))
    monkeypatch.setattr(device, "limits", limits)
    array = np.arange(60, dtype=np.int32).reshape(2, 5, 6)
    sides = wg.TensorDesc("int32", array.shape), wg.TensorDesc("int32", (2, 1, 1, 4))
    steps = [[-2, -3, 1], [2, -3, 1]]
    operator = device.compile(wg.ExtractWindows(*sides, [[0, 1, 2]] * 2, (2, 3, 4), steps))
    assert operator.plan.summary.endswith("2 buffer copies")
    found = operator(wg.asarray(array, device=device))
    check_same(found.numpy(), array[::-1, 3, None, None, 2:])


# probes


def steps_of(probe: WindowProbe, limits: Limits) -> list[WindowDispatch]:
    """Its dispatches, for 200 KB."""
    steps = [step for step in probe.steps(200_000, limits) if isinstance(step, WindowDispatch)]
    assert steps
    return steps


def test_each_class_of_work_has_one_probe() -> None:
    works = [probe.work for probe in probes()]
    assert len(set(works)) == len(works)


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
@pytest.mark.parametrize("probe", list(window_probes()), ids=lambda probe: str(probe.work))
def test_a_probe_is_of_its_work_and_copies_what_it_says(probe: WindowProbe, profile: Profile) -> None:
    """Its windows by reference implementations, against the bytes of the tensor or of the batch."""
    limits = Limits(2**30, 32, 2**16, profile)
    for step in steps_of(probe, limits):
        assert step.work == probe.work
        copied_nbytes = len(step.windows.flips) * prod(step.windows.sizes) * probe.width_nbytes
        assert 100_000 < copied_nbytes < 300_000
        nowhere = Layout.packed((0,))
        plan = Plan(0, 1, 1, nowhere, nowhere, (step,))
        if probe.kernel is Kernel.CLAIM_WINDOWS:
            continue
        rng = np.random.default_rng(1)
        source = rng.integers(0, 256, step.source_binding.nbytes, np.uint8)
        target = np.zeros(step.target_binding.nbytes, np.uint8)
        run_plan(plan, source, target, step.windows.offsets)
        share = np.count_nonzero(target) / copied_nbytes
        assert share > (0.2 if probe.ends else 0.5)


def test_probes_of_inserted_windows_are_disjoint() -> None:
    for probe in window_probes():
        for step in steps_of(probe, Limits(2**30, 32, 2**16, CPU)):
            offsets = step.windows.offsets
            assert offsets is not None
            assert len(np.unique(offsets[:, 0])) == len(offsets)
            assert (np.diff(np.sort(offsets[:, 0])) >= step.windows.sizes[0]).all()


def test_an_adapter_chooses_by_its_costs(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """The same windows by every kernel that can, each printed, and right."""
    image = np.random.default_rng(2).integers(0, 256, (40, 100), np.uint8)
    x, known = wg.asarray(image, device=device), device.limits
    for kernel in (Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS, Kernel.EXTRACT_WINDOWS):
        limits = replace(known, profile=favouring(known.profile, kernel))
        monkeypatch.setattr(device, "limits", limits)
        sides = wg.TensorDesc("uint8", (40, 100)), wg.TensorDesc("uint8", (2, 5, 64))
        operator = device.compile(wg.ExtractWindows(*sides, [[1, 2], [30, 36]], (5, 64)))
        assert f"step 1: {kernel.value} on 2 windows" in str(operator.plan)
        assert np.array_equal(operator(x).numpy(), [image[1:6, 2:66], image[30:35, 36:100]])


def test_nothing_to_insert_has_no_steps() -> None:
    windows = inserted_windows([[50, 50]], (1, 3, 4), (9, 9), None, "drop")
    insertion = insertion_of(windows, (9, 9), "last")
    assert isinstance(insertion, Insertion)
    limits = Limits(2**30, 32, 2**16, CPU)
    plan = insert_windows_planner(insertion)(
        Layout.packed((1, 3, 4)), Layout.packed((9, 9)), 4, Terms(limits)
    )
    assert plan.steps == ()
    assert plan.seconds is None

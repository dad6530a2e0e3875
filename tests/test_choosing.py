"""Choices of plans: the estimates, and both sides of where two of them cross."""

from __future__ import annotations

from dataclasses import replace
from math import inf
from typing import Any

import pytest
from helpers import GUARD, check_bytes, copied, elements_of, random_bytes, whole_words
from hypothesis import assume, given
from hypothesis import strategies as st
from planning import (
    HEADS_AND_TAILS,
    USUAL,
    Price,
    buffer_copies_of,
    check_choices,
    costing,
    dispatches_of,
    kernels_of,
    only_dispatch,
    planned_copy,
    planned_gradient,
    preferring,
    priced,
)
from reference.plans import run_plan
from strategies import Case, cases

from wgslice.layout import Layout
from wgslice.plans.facade import every
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits, Profile, pattern

FREE = 1e30  # bytes a second
NEVER = (1.0, 1.0)  # so that it is never chosen


def pricing(profile: Profile, *prices: tuple[Kernel, Price], **fixed: float) -> Profile:
    """A profile with these prices of kernels, whatever their rows are; others are never chosen."""
    known = dict(prices)
    return priced(profile, lambda kernel, _: known.get(kernel, NEVER), **{"dispatch_s": 5e-6, **fixed})


# the estimates


def test_a_clear_costs_a_command_and_its_bytes() -> None:
    """And the copy of what is taken, which is a buffer copy here."""
    profile = pricing(CPU, copy_s=2e-6, copy_bytes_per_s=8e9, clear_bytes_per_s=16e9)
    taken = Layout.packed((8,))
    made = planned_gradient(profile, taken, Layout.packed((1024,)), (range(8),))
    assert made.seconds == pytest.approx(2 * 2e-6 + 4096 / 16e9 + 32 / 8e9)


def test_buffer_copies_take_a_command_and_its_bytes_each() -> None:
    profile = pricing(CPU, copy_s=2e-6, copy_bytes_per_s=8e9)
    made = planned_copy(profile, Layout.of((5, 8), (10, 1)))
    assert made.summary.endswith("5 buffer copies")
    assert made.seconds == pytest.approx(5 * (2e-6 + 32 / 8e9))


def test_a_dispatch_costs_a_command_and_whole_workgroups() -> None:
    """65 pieces of 16 words, in two workgroups of 64."""
    profile = pricing(CPU, (Kernel.ROWS, (1e-9, 2e9)))
    made = planned_copy(profile, Layout.of((1025,), (3,)))
    assert made.seconds == pytest.approx(5e-6 + 128 * (1e-9 + 64 / 2e9))


def test_a_dispatch_of_ends_is_one_more() -> None:
    """143 bytes are a piece of 8 blocks, of which each invocation may write all, and two ends of a block."""
    profile = pricing(CPU, (Kernel.SHIFTED_ROWS, (1e-9, 2e9)), (Kernel.ROW_ENDS, (3e-9, 1e9)))
    made = planned_copy(profile, Layout.of((143,), (1,), 3), Layout.packed((143,), 1), 1)
    assert kernels_of(made) == [Kernel.SHIFTED_ROWS, Kernel.ROW_ENDS]
    both_s = 2 * 5e-6 + 64 * (1e-9 + 128 / 2e9) + 64 * (3e-9 + 16 / 1e9)
    assert made.seconds == pytest.approx(both_s)


@pytest.mark.parametrize(
    ("kernel", "source", "width", "invocations", "nbytes"),
    [
        (Kernel.TILES, Layout.of((33, 40), (1, 33), 1), 4, 4 * 64, 4096 / 64),  # 2 x 2 tiles of 32 x 32
        (Kernel.WIDE_TILES, Layout.of((33, 40), (1, 36)), 4, 4 * 64, 4096 / 64),
        (Kernel.PIXELS, Layout.of((64, 3), (3, -1), 2), 1, 64, 48),
        (Kernel.WORD_GRID, Layout.of((9, 64), (300, 3)), 4, 2 * 64, 32),  # as two tiles of 32 x 16 words
        (Kernel.SLICE1, Layout.of((65,), (3,)), 2, 2 * 64, 2),
    ],
)
def test_what_an_invocation_writes(
    kernel: Kernel, source: Layout, width: int, invocations: int, nbytes: float
) -> None:
    for price in ((1e-9, FREE), (0.0, 1e9)):
        profile = pricing(CPU, (kernel, price), *((end, price) for end in HEADS_AND_TAILS))
        made = planned_copy(profile, source, width=width)
        assert kernels_of(made) == [kernel]
        expected_s = 5e-6 + invocations * (price[0] + nbytes / price[1])
        assert made.seconds == pytest.approx(expected_s)


@pytest.mark.parametrize(
    ("sizes", "strides", "width", "expected"),
    [
        ((), (), 4, "contiguous"),
        ((9, 9), (1, 0), 4, "contiguous"),
        ((9, 9), (9, -1), 1, "contiguous"),
        # within a cache line of 64 bytes
        ((9, 9), (999, -15), 4, "short-stride"),
        ((9, 9), (999, 16), 4, "long-stride"),
        ((9,), (63,), 1, "short-stride"),
        ((9,), (64,), 1, "long-stride"),
        # or in one that 256 lines ago was read
        ((9, 256), (15, 999), 4, "short-stride"),
        ((9, 257), (15, 999), 4, "long-stride"),
        ((9, 16, 16), (1, 999, 9999), 4, "short-stride"),
        ((9, 16, 17), (1, 999, 9999), 4, "long-stride"),
        ((9, 16, 17), (1000, 1, 9999), 4, "short-stride"),
    ],
)
def test_strides_of_source_rows_are_classified(
    sizes: tuple[int, ...], strides: tuple[int, ...], width: int, expected: str
) -> None:
    source = Layout.of(sizes, strides, 20_000)
    assert pattern(source, width) == expected


def test_each_class_of_work_has_its_own_cost() -> None:
    """A source with rows of a long stride takes tiles, one with rows of a short stride does not."""
    profile = pricing(CPU, (Kernel.ROWS, (0.0, 1e9)), (Kernel.TILES, (0.0, 1e9)))
    profile = costing(profile, {"rows 4 long-stride": NEVER, "rows 4 paired long-stride": NEVER})
    for columns, kernel in ((256, Kernel.ROWS), (257, Kernel.TILES)):
        assert kernels_of(planned_copy(profile, Layout.of((99, columns), (1, 99), 1))) == [kernel]


def test_a_kernel_whose_cost_is_unknown_is_not_chosen() -> None:
    profile = preferring(CPU, Kernel.ROWS)
    source = Layout.of((99,), (3,))
    assert kernels_of(planned_copy(profile, source)) == [Kernel.ROWS]
    unknown = costing(profile, {"rows 4 short-stride": None})
    assert kernels_of(planned_copy(unknown, source))[0] is not Kernel.ROWS


# where two estimates cross


@pytest.mark.parametrize(
    ("rows", "run", "copied"),
    [
        # a row of 64 bytes as a buffer copy 1.016 us, 13 and 14 of them as a dispatch 14.1 us
        *((13, 16, True), (14, 16, False), (1, 16, True)),
        # 20 rows, buffer copies 20 us and 1 us for 4 KB, a dispatch 10 us and 1 us for 1 KB
        *((20, 128, False), (20, 256, True)),
    ],
)
def test_few_rows_and_long_rows_are_buffer_copies(rows: int, run: int, copied: bool) -> None:
    fixed = {"dispatch_s": 10e-6, "copy_s": 1e-6, "copy_bytes_per_s": 4e9}
    profile = pricing(CPU, (Kernel.ROWS, (0.0, 1e9)), **fixed)
    layout = Layout.of((rows, run), (-1001, 1), 1001 * (rows - 1) + 5)
    made = planned_copy(profile, layout)
    assert len(made.steps) == 1
    steps = buffer_copies_of(made)
    assert bool(steps) is copied
    for step in steps:
        assert (step.source.size, step.nbytes) == (rows, 4 * run)
        assert step.source.places() == [4 * place for place in elements_of(layout).reshape(rows, run)[:, 0]]
        assert step.target.places() == [4 * run * row for row in range(rows)]


@pytest.mark.parametrize(("run", "paired"), [(3, True), (48, False)])
def test_short_rows_are_copied_in_pairs(run: int, paired: bool) -> None:
    """Each invocation of which takes four times as long here, but 16 words and not one."""

    def price(kernel: Kernel, pairs: bool) -> Price:
        return (4e-8 if pairs else 1e-8, FREE) if kernel is Kernel.ROWS else NEVER

    profile = priced(CPU, price, dispatch_s=5e-6)
    step = only_dispatch(planned_copy(profile, Layout.of((100, run), (999, 3))))
    assert (step.share.paired, step.share.count) == (paired, 1 if paired else 100)
    assert step.reason == f"whole words, {'two dimensions per row' if paired else 'row by row'}"


@pytest.mark.parametrize(("size", "kernel"), [(3, Kernel.ROWS), (9, Kernel.TILES)])
def test_tiles_are_for_more_than_a_few_elements(size: int, kernel: Kernel) -> None:
    """Ten times as fast here, a tile is 4096 bytes, however few of them are needed."""
    profile = pricing(CPU, (Kernel.ROWS, (0.0, 1e8)), (Kernel.TILES, (0.0, 1e9)))
    assert kernels_of(planned_copy(profile, Layout.of((size, size), (1, size), 1))) == [kernel]


@pytest.mark.parametrize(("size", "kernel"), [(8, Kernel.WORD_GRID), (7, Kernel.ROWS)])
def test_planes_with_most_invocations_idle_are_copied_by_rows(size: int, kernel: Kernel) -> None:
    """An invocation on a grid copies up to 8 elements; if it copies less than one, rows are as good."""
    each = (1e-9, FREE)
    profile = pricing(GPU, (Kernel.WORD_GRID, each), (Kernel.ROWS, each))
    assert kernels_of(planned_copy(profile, Layout.of((size,) * 4, (90_000, 9_000, 900, 90)))) == [kernel]


@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(
    ("width", "rows", "cut"), [(4, 113, True), (4, 101, False), (1, 700, True), (1, 530, False)]
)
def test_an_unpadded_buffer_is_split_where_that_is_faster(
    width: int, rows: int, cut: bool, side: str
) -> None:
    """Two dispatches more here, 10 us; by words 15 KB take 15 us, in blocks a quarter of that."""
    words, blocks = (0.0, 1e9), (0.0, 4e9)
    of_bulk = [Kernel.SHIFTED_ROWS, Kernel.ROW_ENDS]
    of_words = Kernel.ROWS if width == 4 else Kernel.SUBWORD_ROWS
    slim = replace(CPU, words_each=(), subword_words_each=(), blocks_each=1)
    profile = pricing(slim, *((kernel, blocks) for kernel in of_bulk), (of_words, words))
    source, target = Layout.of((rows, 33), (38, 1), 2), Layout.packed((rows, 33))
    capacity: dict[str, Any] = {
        f"{side}_capacity_nbytes": {"source": source, "target": target}[side].stop * width // 16 * 16
    }
    made = planned_copy(profile, source, target, width, **capacity)
    if not cut:
        assert kernels_of(made) == [of_words]
        return
    assert kernels_of(planned_copy(profile, source, target, width)) == of_bulk
    bulk, _, end = dispatches_of(made)
    assert kernels_of(made) == [*of_bulk, of_words]
    assert bulk.target.sizes == (rows - 1, 33)
    assert bulk.target_binding.nbytes <= capacity.get("target_capacity_nbytes", 2**31)
    assert bulk.source_binding.nbytes <= capacity.get("source_capacity_nbytes", 2**31)
    assert end.reason.endswith("the end of an unpadded buffer")


def test_the_end_of_an_unpadded_buffer_may_be_a_buffer_copy() -> None:
    words, blocks = (0.0, 1e9), (0.0, 4e9)
    known = (Kernel.SHIFTED_ROWS, blocks), (Kernel.ROW_ENDS, blocks), (Kernel.ROWS, words)
    source = Layout.of((300, 65), (70, 1), 2)
    room_nbytes = source.stop * 4 // 16 * 16
    for copy_s, copies in ((1e-6, 1), (1e-5, 0)):
        profile = pricing(CPU, *known, copy_s=copy_s, copy_bytes_per_s=1e9)
        made = planned_copy(profile, source, source_capacity_nbytes=room_nbytes)
        assert len(buffer_copies_of(made)) == copies
        assert str(made.steps[-1]).endswith("the end of an unpadded buffer")


@pytest.mark.parametrize("side", ["source", "target"])
def test_pixels_in_an_unpadded_buffer_stay_pixels(side: str) -> None:
    """But for the last ones, or the last row."""
    for sizes, rows in (((306_600, 3), (306_597, 3)), ((700, 438, 3), (699, 438, 3))):
        source = Layout.of(sizes, (*([1317] if len(sizes) == 3 else []), 3, -1), 2)
        target = Layout.packed(sizes)
        whole = {"source": source, "target": target}[side]
        capacity: dict[str, Any] = {f"{side}_capacity_nbytes": whole.stop // 16 * 16}
        assert whole.stop % 16
        made = planned_copy(preferring(GPU, Kernel.PIXELS), source, target, 1, **capacity)
        bulk, _, end = dispatches_of(made)
        assert kernels_of(made)[:2] == [Kernel.PIXELS, Kernel.SUBWORD_ENDS]
        assert bulk.target.sizes == rows
        assert bulk.target_binding.nbytes <= capacity.get("target_capacity_nbytes", 2**31)
        assert bulk.source_binding.nbytes <= capacity.get("source_capacity_nbytes", 2**31)
        assert end.reason.endswith("the end of an unpadded buffer")


@pytest.mark.parametrize(("columns", "kept"), [(16, True), (72, False)])
def test_wide_tiles_in_an_unpadded_buffer_need_an_end_of_rows(columns: int, kept: bool) -> None:
    """Two of 66 rows, or the last of 72 columns, without which the rest are no whole vectors."""
    source = Layout.of((66, columns), (1, 76))
    profile = preferring(GPU, Kernel.WIDE_TILES)
    assert kernels_of(planned_copy(profile, source)) == [Kernel.WIDE_TILES]
    made = planned_copy(profile, source, source_capacity_nbytes=source.stop * 4 // 16 * 16)
    assert source.stop % 4
    assert (kernels_of(made)[0] is Kernel.WIDE_TILES) is kept
    assert kernels_of(made)[-1] is not Kernel.WIDE_TILES


def test_the_end_of_an_unpadded_buffer_is_as_small_as_possible() -> None:
    """A row where there are many, columns where all rows read the buffer's end, the first ones backwards."""
    profile = preferring(CPU, Kernel.SHIFTED_ROWS)
    for source, bulk in (
        (Layout.of((300, 71), (71, 1), 1), (300 * 71 - 1,)),
        (Layout.of((300, 70), (71, 1), 2), (299, 70)),
        (Layout.of((300, 71), (0, 1)), (300, 68)),
        (Layout.of((300, 70), (-71, 1), 299 * 71), (299, 70)),
        (Layout.of((70, 300), (1, 90)), None),
        (Layout.of((20_003,), (1,)), (20_000,)),
        (Layout.of((20_003,), (-1,), 20_002), (20_000,)),
    ):
        made = planned_copy(profile, source, copy_to=False, source_capacity_nbytes=source.stop * 4 // 16 * 16)
        steps = dispatches_of(made)
        assert len(steps) == len(made.steps)
        if bulk is not None:
            assert steps[0].kernel is Kernel.SHIFTED_ROWS
            assert steps[0].target.sizes == bulk
        whole = [step for step in steps if step.kernel is not Kernel.ROW_ENDS]  # which completes another
        assert len(whole) == (1 if bulk is None else 2)
        assert sum(step.target.size for step in whole) == source.size


@pytest.mark.parametrize(("workgroups", "kernel"), [(10, Kernel.WIDE_TILES), (9, Kernel.ROWS)])
def test_a_kernel_beyond_a_small_grid_is_not_chosen(workgroups: int, kernel: Kernel) -> None:
    """100 tiles, of 8 elements each."""
    profile = pricing(GPU, (Kernel.WIDE_TILES, (0.0, FREE)), (Kernel.ROWS, (1e-6, 1e6)))
    source = Layout.of((100, 2, 4), (1000, 1, 4))
    step = only_dispatch(planned_copy(replace(USUAL, workgroups=workgroups, profile=profile), source))
    assert step.kernel is kernel
    assert max(step.share.workgroups) <= workgroups


# disabled kernels


UNALIGNED = Layout.of((9, 101), (110, 1), 1)  # rows of 101 bytes
PIXELS = Layout.of((9, 33, 3), (200, -3, 1), 96)
ENABLED = [
    # a kernel, and a copy of which it is the cheapest one where it is enabled
    (Kernel.SHIFTED_ROWS, UNALIGNED, 1),
    (Kernel.SHIFTED_GRID, UNALIGNED, 1),
    (Kernel.SUBWORD_ROWS, UNALIGNED, 1),
    (Kernel.PIXELS, PIXELS, 1),
    (Kernel.ROWS, UNALIGNED, 4),
    (Kernel.WORD_GRID, UNALIGNED, 4),
    (Kernel.WIDE_GRID, UNALIGNED, 16),
    (Kernel.WIDE_ROWS, UNALIGNED, 16),
    (Kernel.TILES, Layout.of((9, 101), (1, 11)), 4),
    (Kernel.WIDE_TILES, Layout.of((9, 104), (1, 12)), 4),
    (Kernel.SLICE1, UNALIGNED, 4),
]


@pytest.mark.parametrize(
    ("kernel", "source", "width"), ENABLED, ids=lambda value: getattr(value, "value", "")
)
def test_a_disabled_kernel_is_not_chosen(kernel: Kernel, source: Layout, width: int) -> None:
    """Nor one that leaves heads and tails of rows to a disabled kernel."""
    limits = replace(USUAL, profile=preferring(GPU, kernel))
    chosen = kernels_of(planned_copy(limits, source, width=width))
    assert chosen[0] is kernel
    for disabled in chosen:
        made = planned_copy(replace(limits, disabled=frozenset({disabled})), source, width=width)
        assert not {kernel, disabled} & set(kernels_of(made))
        assert kernel.value not in {each.name.removesuffix(" of pairs") for each in made.choices}


def test_disabled_heads_and_tails_leave_rows_of_whole_blocks() -> None:
    profile = preferring(CPU, Kernel.SHIFTED_ROWS)
    limits = replace(USUAL, profile=profile, disabled=frozenset(HEADS_AND_TAILS))
    for columns, shifted in ((96, True), (97, False)):
        source = Layout.of((9, columns), (110, 1), 1)
        found = kernels_of(planned_copy(limits, source, width=1))
        assert (found == [Kernel.SHIFTED_ROWS]) is shifted


@pytest.mark.parametrize(
    ("profile", "width", "step", "loaded"),
    [
        (CPU, 4, 1, True),
        (CPU, 4, -1, True),
        (CPU, 4, 2, False),
        (CPU, 4, -2, False),
        (CPU, 8, 4, False),
        (CPU, 2, 2, True),
        (GPU, 4, 2, True),
    ],
)
def test_vectors_of_unused_words_are_not_loaded_by_a_cpu(
    profile: Profile, width: int, step: int, loaded: bool
) -> None:
    kernels = Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID
    source = Layout.of((99, 160), (1601, step), 1 + 159 * max(-step, 0))
    for kernel in kernels:
        limits = replace(USUAL, profile=preferring(profile, kernel))
        made = planned_copy(limits, source, width=width)
        assert (kernels_of(made)[0] is kernel) is loaded
        rejected = [each.text for each in made.choices[0].rejected if each.name == kernel.value]
        words = f"vectors of the input hold {abs(step)} times the words of a row"
        assert rejected == ([] if loaded else [words])


@given(cases(), st.sets(st.sampled_from([kernel for kernel in Kernel if kernel is not Kernel.SLICE1])))
def test_whatever_is_disabled_other_kernels_copy(case: Case, disabled: set[Kernel]) -> None:
    profile = preferring(GPU, *sorted(disabled, key=str))
    limits = replace(USUAL, profile=profile, disabled=frozenset(disabled))
    made = planned_copy(limits, case.source, case.output, case.width)
    assert made.steps
    assert not disabled & set(kernels_of(made))


# every strategy


COSTS = [
    CPU,
    GPU,
    preferring(CPU),
    preferring(GPU, copies=True),
    preferring(CPU, Kernel.ROWS, Kernel.WIDE_ROWS),
]


def test_the_bound_of_an_unpadded_copy_holds_with_a_buffer_copy() -> None:
    source, target = Layout.packed((4,)), Layout.packed((4,), 1)
    made = planned_copy(CPU, source, target, 8, source_capacity_nbytes=32, target_capacity_nbytes=32)
    assert "bulk and end" in {each.name for each in made.others}
    check_choices(made)


@given(cases(), st.sampled_from(COSTS), st.sampled_from([32, 256, 2**27]), st.booleans())
def test_every_applicable_strategy_is_right_and_the_first_chosen(
    case: Case, profile: Profile, binding_nbytes: int, unpadded: bool
) -> None:
    """Also where bindings are small, and where buffers end inside a vector."""
    sides = case.source, case.output
    limits = replace(USUAL, profile=profile)
    if binding_nbytes < 2**27:
        assume(case.output.size <= 200)  # few parts
        limits = Limits(4 * binding_nbytes, binding_nbytes, workgroups=2, profile=profile)
    capacities = [layout.stop * case.width // 16 * 16 if unpadded else inf for layout in sides]
    assume(0 not in capacities)  # a vector at least
    made = planned_copy(
        limits, *sides, case.width, source_capacity_nbytes=capacities[0], target_capacity_nbytes=capacities[1]
    )
    check_choices(made)
    source = random_bytes(whole_words(case.source.stop * case.width) + GUARD, case.seed)
    before = random_bytes(whole_words(case.output.stop * case.width) + GUARD, case.seed + 1)
    expected = copied(source, case.source, before, case.output, case.width)
    for _, plan in every(made):
        result = before.copy()
        run_plan(plan, source, result)
        check_bytes(result, expected)


@given(cases(), st.sampled_from(COSTS))
def test_every_applicable_strategy_copies_after_a_staging_copy(case: Case, profile: Profile) -> None:
    """Within one buffer, where source and target may overlap."""
    sides = case.source, case.output
    made = planned_copy(profile, *sides, case.width, shared=True)
    check_choices(made)
    before = random_bytes(whole_words(max(each.stop for each in sides) * case.width) + GUARD, case.seed)
    expected = copied(before, case.source, before, case.output, case.width)
    for _, plan in every(made):
        result = before.copy()
        run_plan(plan, result, result)
        check_bytes(result, expected)

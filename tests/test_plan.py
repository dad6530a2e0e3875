"""Plans: what is chosen at both sides of each boundary, what they print, and that they need no GPU."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from helpers import WIDTHS
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases

from wgslice.kernels import Kernel, words_spanned
from wgslice.layout import Layout
from wgslice.plan import BufferCopy, Dispatch, Plan, plan_copy, rebase
from wgslice.profiles import CPU, GPU, Limits

LIMITS = Limits(binding_nbytes=2**27, binding_alignment_nbytes=32, workgroups=65535, profile=CPU)
ROOMY = replace(LIMITS, binding_nbytes=2**31)
SMALL = Limits(binding_nbytes=96, binding_alignment_nbytes=32, workgroups=2, profile=CPU)


def plan(source: Layout, target: Layout | None = None, itemsize: int = 4, limits: Limits = LIMITS) -> Plan:
    return plan_copy(source, target or Layout.packed(source.sizes), itemsize, limits)


def only_dispatch(made: Plan) -> Dispatch:
    (step,) = made.steps
    assert isinstance(step, Dispatch)
    return step


@pytest.mark.parametrize(
    ("itemsize", "run", "offset", "width"),
    [
        (1, 16, 16, 16),
        (1, 24, 16, 8),
        (1, 16, 4, 4),
        (1, 16, 2, 2),
        (1, 16, 3, 1),
        (1, 15, 16, 1),
        (2, 6, 2, 4),
        (4, 4, 4, 16),
        (4, 4, 3, 4),
        (8, 2, 2, 16),
        (8, 3, 2, 8),
        (16, 5, 3, 16),
    ],
)
def test_rows_move_in_the_widest_elements_that_divide_them(
    itemsize: int, run: int, offset: int, width: int
) -> None:
    row = 64 // itemsize
    source = Layout.of((3, run), (row, 1), offset)
    assert plan(source, itemsize=itemsize).width_nbytes == width


def test_widening_needs_contiguous_runs_on_both_sides() -> None:
    assert plan(Layout.of((4, 4), (8, 2))).width_nbytes == 4
    assert plan(Layout.of((4, 4), (8, 1)), Layout.of((4, 4), (8, 2))).width_nbytes == 4
    assert plan(Layout.of((4, 4), (8, 1)), Layout.of((4, 4), (6, 1))).width_nbytes == 8
    assert plan(Layout.of((4, 4), (-8, 1), 24)).width_nbytes == 16


def test_widened_pixels_merge_again() -> None:
    mirrored = plan(Layout.of((480, 640, 4), (2560, -4, 1), 639 * 4), itemsize=1)
    assert (mirrored.width_nbytes, mirrored.target.sizes) == (4, (480, 640))


@pytest.mark.parametrize(
    ("itemsize", "size", "offset", "copied"),
    [(4, 3, 7, True), (1, 8, 4, True), (1, 8, 2, False), (1, 7, 4, False), (2, 6, 2, True), (2, 6, 1, False)],
)
def test_contiguous_whole_words_are_a_buffer_copy(
    itemsize: int, size: int, offset: int, copied: bool
) -> None:
    (step,) = plan(Layout.packed((size,), offset), itemsize=itemsize).steps
    assert isinstance(step, BufferCopy) is copied
    (step,) = plan(Layout.packed((size,)), Layout.packed((size,), offset), itemsize).steps
    assert isinstance(step, BufferCopy) is copied


@pytest.mark.parametrize(("run", "copied"), [(2**15, True), (2**15 - 4, False)])
def test_long_rows_are_buffer_copies_on_a_cpu(run: int, copied: bool) -> None:
    """From 128 KiB a row on; never on a GPU, where one dispatch is faster than many copies."""
    rows = Layout.of((3, 2, run), (10 * run, -4 * run, 1), 4 * run + 8)
    made = plan(rows)
    assert all(isinstance(step, BufferCopy) is copied for step in made.steps)
    assert len(made.steps) == (6 if copied else 1)
    assert isinstance(plan(rows, limits=replace(LIMITS, profile=GPU)).steps[0], Dispatch)


def test_a_buffer_copy_needs_the_usages_for_it() -> None:
    layout = Layout.packed((64,))
    (step,) = plan_copy(layout, layout, 4, LIMITS, buffer_copy=False).steps
    assert isinstance(step, Dispatch)


@pytest.mark.parametrize(
    ("itemsize", "source", "target", "kernel"),
    [
        # a row that fills seven tenths of its workgroups of 2048 elements, or less
        (4, Layout.of((1434,), (2,)), None, Kernel.ROWS),
        (4, Layout.of((1433,), (2,)), None, Kernel.RUNS),
        (8, Layout.of((9, 717), (1600, 2)), None, Kernel.ROWS),
        (8, Layout.of((9, 716), (1600, 2)), None, Kernel.RUNS),
        (4, Layout.of((2048 + 820,), (2,)), None, Kernel.ROWS),
        (4, Layout.of((2048 + 819,), (2,)), None, Kernel.RUNS),
        # elements of a word and more, or less
        (4, Layout.of((5,), (2,)), None, Kernel.RUNS),
        (2, Layout.of((5,), (2,)), None, Kernel.ASSEMBLE),
        # as many words as elements, or more
        (1, Layout.packed((8,)), Layout.of((8,), (4,)), Kernel.ASSEMBLE),
        (1, Layout.packed((8,)), Layout.of((8,), (5,)), Kernel.SLICE1),
        (2, Layout.packed((8,)), Layout.of((8,), (2,)), Kernel.ASSEMBLE),
        (2, Layout.packed((8,)), Layout.of((8,), (3,)), Kernel.SLICE1),
        # rows beside each other, or interleaved
        (1, Layout.of((2, 3), (9, 2)), Layout.of((2, 3), (5, 2)), Kernel.ASSEMBLE),
        (1, Layout.of((2, 3), (9, 2)), Layout.of((2, 3), (3, 2)), Kernel.SLICE1),
        # a dimension to spare for runs of one element, or none
        (
            1,
            Layout.of((2,) * 7, (1,) * 7),
            Layout.of((2,) * 7, [2**k for k in range(7, 0, -1)]),
            Kernel.ASSEMBLE,
        ),
        (
            1,
            Layout.of((2,) * 8, (1,) * 8),
            Layout.of((2,) * 8, [2**k for k in range(8, 0, -1)]),
            Kernel.SLICE1,
        ),
    ],
)
def test_the_kernel_at_both_sides_of_each_condition(
    itemsize: int, source: Layout, target: Layout | None, kernel: Kernel
) -> None:
    assert only_dispatch(plan(source, target, itemsize)).kernel is kernel


@pytest.mark.parametrize(
    ("offset", "sizes", "width", "words"),
    [(0, (4,), 1, 1), (1, (4,), 1, 2), (3, (1,), 1, 1), (3, (2,), 1, 2), (1, (2,), 2, 2), (0, (2,), 2, 1)],
)
def test_words_spanned(offset: int, sizes: tuple[int, ...], width: int, words: int) -> None:
    assert words_spanned(Layout.packed(sizes, offset), width) == words


@pytest.mark.parametrize(
    ("rows", "run", "kernel", "grid"),
    [
        (1, 2048, Kernel.ROWS, (1, 1, 1)),
        (1, 4096, Kernel.ROWS, (2, 1, 1)),
        (7, 2000, Kernel.ROWS, (1, 7, 1)),
        (65535, 1440, Kernel.ROWS, (1, 65535, 1)),
        (65536, 1440, Kernel.ROWS, (1, 32768, 2)),
        (2048, 2, Kernel.RUNS, (2, 1, 1)),
        (2049, 2, Kernel.RUNS, (3, 1, 1)),
    ],
)
def test_grids(rows: int, run: int, kernel: Kernel, grid: tuple[int, int, int]) -> None:
    step = only_dispatch(plan(Layout.of((rows, run), (2 * run + 2, 2)), limits=ROOMY))
    assert (step.kernel, step.share.workgroups) == (kernel, grid)


def test_more_workgroups_than_a_dimension_holds_take_a_second() -> None:
    few = replace(ROOMY, workgroups=16)
    for rows, grid in [(8, (1, 8, 1)), (9, (1, 9, 1)), (11, (1, 11, 1))]:
        step = only_dispatch(plan(Layout.of((rows, 1440), (4000, 2)), limits=few))
        assert (step.kernel, step.share.workgroups) == (Kernel.ROWS, grid)
    slim = replace(few, profile=replace(CPU, words_each=1, workgroup_size=1, least_filled=2))
    for elements, grid in [(16, (16, 1, 1)), (17, (9, 2, 1)), (256, (16, 16, 1))]:
        step = only_dispatch(plan(Layout.of((elements,), (2,)), limits=slim))
        assert (step.kernel, step.share.workgroups) == (Kernel.RUNS, grid)


def test_a_gpu_deals_neighbours_to_neighbours() -> None:
    source = Layout.of((3, 2000), (4002, 2))
    gpu = only_dispatch(plan(source, limits=replace(LIMITS, profile=GPU))).share
    cpu = only_dispatch(plan(source)).share
    assert (gpu.each, gpu.step, gpu.workgroups) == (4, 64, (8, 3, 1))
    assert (cpu.each, cpu.step, cpu.workgroups) == (32, 1, (1, 3, 1))


@pytest.mark.parametrize(("elements", "pieces"), [(12, 1), (13, 2), (24, 2), (25, 3)])
def test_a_side_larger_than_a_binding_is_split(elements: int, pieces: int) -> None:
    wide = Layout.of((elements,), (2,))
    assert len(plan(wide, limits=SMALL).steps) == pieces
    assert len(plan(Layout.packed((elements,)), wide, limits=SMALL).steps) == pieces


@given(cases())
def test_every_step_stays_inside_its_bindings_and_the_limits(case: Case) -> None:
    sides = [rebase(layout, case.width, SMALL)[1] for layout in (case.source, case.output)]
    made = plan_copy(sides[0], sides[1], case.width, SMALL, buffer_copy=False)
    for step in made.steps:
        assert isinstance(step, Dispatch)
        for layout, binding in ((step.source, step.source_binding), (step.target, step.target_binding)):
            assert layout.lowest >= 0
            assert layout.stop * step.width_nbytes <= binding.nbytes <= SMALL.binding_nbytes
            assert binding.offset_nbytes % SMALL.binding_alignment_nbytes == 0
            assert binding.nbytes % 4 == 0
    sizes = [step.target.size for step in made.steps if isinstance(step, Dispatch)]
    assert sum(sizes) * made.width_nbytes == made.nbytes == case.output.size * case.width


@given(st.integers(0, 500), st.sampled_from(WIDTHS))
def test_rebasing_splits_off_an_aligned_base_and_keeps_the_rest_small(offset: int, itemsize: int) -> None:
    layout = Layout.of((4, 5), (-5, 1), offset + 15)
    base, rest = rebase(layout, itemsize, LIMITS)
    assert base % LIMITS.binding_alignment_nbytes == 0
    assert 0 <= rest.lowest * itemsize < LIMITS.binding_alignment_nbytes
    assert base + rest.offset * itemsize == layout.offset * itemsize


def test_equal_slices_at_other_places_share_a_plan() -> None:
    first, second = (rebase(Layout.of((8, 3), (16, 2), offset), 4, LIMITS)[1] for offset in (8, 8 + 5 * 16))
    assert plan(first) is plan(second)


def test_a_copy_has_fewer_than_two_to_the_32_elements() -> None:
    most = Layout.of((2**32 - 1,), (0,))
    assert plan_copy(most, Layout.packed(most.sizes), 1, LIMITS).nbytes == 2**32 - 1
    one_more = Layout.of((2**16, 2**16), (0, 0))
    with pytest.raises(
        ValueError, match=r"4294967296 elements of sizes \(65536, 65536\).* at most 4294967295"
    ):
        plan_copy(one_more, Layout.packed(one_more.sizes), 1, LIMITS)


@given(st.integers(1, 2**35), st.sampled_from(WIDTHS), st.integers(1, 3), st.integers(1, 3))
def test_no_count_of_a_step_wraps_around_32_bits(
    elements: int, itemsize: int, source_stride: int, target_stride: int
) -> None:
    """However large the limits: words, elements and invocations that a step can reach stay below 2^32."""
    boundless = Limits(binding_nbytes=2**60, binding_alignment_nbytes=32, workgroups=65535)
    source = Layout.of((min(elements, 2**32 - 1),), (source_stride,))
    target = Layout.of(source.sizes, (target_stride,))
    for step in plan_copy(source, target, itemsize, boundless, buffer_copy=False).steps:
        assert isinstance(step, Dispatch)
        x, y, z = step.share.workgroups
        each = 1 if step.kernel is Kernel.ROWS else step.share.each  # the grid is the shape there
        assert x * y * z * step.share.workgroup_size * each < 2**32
        assert max(step.source.stop, step.target.stop) * step.width_nbytes <= 2**31


@pytest.mark.parametrize(("elements", "pieces"), [(256, 1), (257, 2), (512, 2), (514, 4)])
def test_more_elements_than_a_grid_are_split(elements: int, pieces: int) -> None:
    narrow = replace(LIMITS, workgroups=2)  # 2 x 2 x 64 invocations
    repeated = Layout.of((elements,), (0,))
    assert len(plan(repeated, limits=narrow).steps) == pieces


def test_nothing_to_copy_is_no_step() -> None:
    assert plan(Layout.packed((3, 0))).steps == ()


def test_a_plan_says_what_runs_and_why() -> None:
    crop = plan(Layout.of((10, 8), (100, 1), 205))
    assert str(crop).splitlines() == [
        "copy of 320 bytes, items of 4, moved 4 at a time",
        "  merged sizes (10, 8)",
        "  source strides (100, 1) from 205",
        "  target strides (8, 1) from 0",
        "  step 1: runs on (10, 8), grid 1 x 1 x 1 of 64, 32 each: whole words in short runs, dealt evenly",
    ]
    assert crop.summary == "merged (10, 8) x 4 bytes, runs"
    assert plan(Layout.packed((8,))).summary == "merged (2,) x 16 bytes, buffer copy"
    pieces = plan(Layout.of((1000,), (2,)), limits=SMALL)
    assert pieces.summary == f"merged (1000,) x 4 bytes, runs in {len(pieces.steps)} steps"
    assert str(pieces).splitlines()[-1] == f"  and {len(pieces.steps) - 8} more steps like these"


def test_planning_does_not_import_wgpu() -> None:
    code = """
import sys, numpy as np, wgslice as wg
from wgslice.plan import plan_copy
from wgslice.profiles import Limits
descriptor = wg.Slice1(wg.TensorDesc("u1", (9, 9)), wg.TensorDesc("u1", (3, 3)), (0, 0), (9, 9), (3, -3))
print(plan_copy(descriptor.input.layout, descriptor.input.layout, 1, Limits(2**27, 256, 65535)).summary)
assert "wgpu" not in sys.modules, "wgpu was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "merged (81,) x 1 bytes, assemble\n"


def test_a_real_slice_ends_at_few_dimensions() -> None:
    volume = np.empty((2, 12, 4096, 128), np.float16)
    cache = Layout.packed(volume.shape).select([range(2), range(12), range(100, 612), range(128)])
    made = plan(cache, itemsize=2)
    assert (made.target.sizes, made.width_nbytes) == ((24, 8192), 16)

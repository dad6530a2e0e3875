"""Plans: element widths, launch configurations, splits, printed text, and that no GPU is needed."""

from __future__ import annotations

import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import WIDTHS, elements_of, run_python
from hypothesis import example, given
from hypothesis import strategies as st
from planning import (
    HEADS_AND_TAILS,
    USUAL,
    buffer_copies_of,
    constants_of,
    dispatches_of,
    only_dispatch,
    planned_by_kernel,
    planned_copy,
    preferring,
)
from strategies import Case, cases

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import OF_INDICES, OF_WINDOWS, SPLITTING_ROWS, UNITS_NBYTES, Kernel
from wgslice.plans.profiles import CPU, GPU, WIDE_TILE_SIDES, Limits, Profile
from wgslice.plans.steps import GRIDS, UNIT_GRIDS, Share, Tiling, launch_row

BY_ROWS = Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SUBWORD_ROWS
GRIDDED = preferring(GPU, *UNIT_GRIDS)
COPYING = preferring(CPU, *BY_ROWS, copies=True)
LIMITS = replace(USUAL, profile=preferring(CPU, *BY_ROWS))
SMALL = replace(LIMITS, binding_nbytes=96, workgroups=2)


def plan(source: Layout, target: Layout | None = None, itemsize: int = 4, limits: Limits = LIMITS) -> wg.Plan:
    return planned_copy(limits, source, target, itemsize)


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


@st.composite
def sides_of_rows(draw: st.DrawFn) -> tuple[Layout, Layout]:
    """Both sides of a copy of contiguous rows, of which a number of elements divides most of what counts."""
    unit, few = draw(st.sampled_from([1, 2, 4, 8])), st.integers(0, 3)
    rows, run = draw(st.integers(2, 3)), unit * draw(st.integers(1, 4)) + draw(st.sampled_from([0, 0, 0, 1]))
    sides = []
    for _ in range(2):
        stride = run + unit * draw(few) + draw(st.sampled_from([0, 0, 0, 1]))
        offset = unit * draw(few) + draw(st.sampled_from([0, 0, 0, 1]))
        sides.append(Layout.of((rows, run), (stride, 1), offset))
    source, target = sides
    flipped = source.select([range(rows - 1, -1, -1), range(run)])
    return draw(st.sampled_from([source, flipped])), target


@given(sides_of_rows(), st.sampled_from(WIDTHS))
@example((Layout.of((3, 8), (12, 1), 4), Layout.of((3, 8), (8, 1), 8)), 1)
@example((Layout.of((2, 8), (-16, 1), 24), Layout.of((2, 8), (10, 1), 2)), 2)
def test_a_widened_copy_moves_the_same_bytes(sides: tuple[Layout, Layout], itemsize: int) -> None:
    def pairs(source: Layout, target: Layout, width: int) -> list[tuple[int, int]]:
        """Each byte of the source, and its place in the target."""
        both = (
            (elements_of(side)[:, None] * width + np.arange(width)).ravel().tolist()
            for side in (source, target)
        )
        return sorted(zip(*both, strict=True))

    made = plan(*sides, itemsize)
    assert pairs(made.source, made.target, made.width_nbytes) == pairs(*sides, itemsize)


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
    packed, shifted = Layout.packed((size,)), Layout.packed((size,), offset)
    for sides in ((shifted, packed), (packed, shifted)):
        made = planned_copy(COPYING, *sides, itemsize)
        assert len(made.steps) == 1
        assert bool(buffer_copies_of(made)) is copied


def test_a_buffer_copy_needs_the_usages_for_it() -> None:
    layout = Layout.packed((64,))
    only_dispatch(planned_copy(COPYING, layout, layout, copy_from=False))
    only_dispatch(planned_copy(COPYING, layout, layout, copy_to=False))


@pytest.mark.parametrize(
    ("sizes", "width", "tiling", "tiles"),
    [
        # words: invocations along columns of 4 bytes, 8 ahead of each other; along rows where columns are few
        ((1, 512), 4, Tiling(6, 64, 0), (1, 1, 1)),
        ((1, 513), 4, Tiling(6, 64, 0), (2, 1, 2)),
        ((8, 64), 4, Tiling(6, 0, 1), (1, 1, 1)),
        ((9, 64), 4, Tiling(5, 0, 2), (2, 1, 2)),
        ((128, 3), 4, Tiling(2, 0, 16), (1, 1, 1)),
        ((129, 3), 4, Tiling(2, 0, 16), (1, 2, 2)),
        # at least as many adjacent invocations as make 64 bytes
        ((128, 40), 4, Tiling(4, 0, 4), (3, 4, 12)),
        # vectors, 4 of them
        ((1, 256), 16, Tiling(6, 64, 0), (1, 1, 1)),
        # of equally many, subgroups of 32 take the longest runs
        ((4, 64), 16, Tiling(4, 16, 0), (1, 1, 1)),
        ((2, 512), 16, Tiling(5, 32, 0), (4, 1, 4)),
        ((32, 8), 16, Tiling(3, 0, 8), (1, 1, 1)),
        ((64, 3), 16, Tiling(2, 0, 16), (1, 1, 1)),
        ((33, 8), 16, Tiling(3, 0, 8), (1, 2, 2)),
    ],
)
def test_planes_are_cut_into_tiles(
    sizes: tuple[int, ...], width: int, tiling: Tiling, tiles: tuple[int, int, int]
) -> None:
    """Across, down, and all."""
    source = Layout.of(sizes, (3 * sizes[1] + 7, 3))
    share = only_dispatch(plan(source, itemsize=width, limits=replace(USUAL, profile=GRIDDED))).share
    assert (share.tiling, (share.pieces, share.row_tiles, share.count)) == (tiling, tiles)


def test_each_invocation_of_a_wide_tile_has_equal_work() -> None:
    """Vectors to load, and cells to store: `wide_tiles` counts its turns without a rest."""
    for width, side in WIDE_TILE_SIDES.items():
        cells = side * side * width // 16 // max(4 // width, 1)
        assert cells >= GPU.workgroup_size
        assert cells % GPU.workgroup_size == 0


def test_the_longest_dimension_has_the_rows_of_planes() -> None:
    """And the later of two that are equally good."""
    limits = replace(USUAL, profile=GRIDDED)
    for sizes, rows in (((90, 2, 2), 90), ((2, 70, 3), 70), ((40, 40, 3), 40)):
        source = Layout.of(sizes, (1000, 100, 7))
        step = only_dispatch(plan(source, limits=limits))
        assert step.kernel is Kernel.WORD_GRID
        assert step.target.sizes[-2:] == (rows, sizes[-1])
        assert step.source.strides[-2] == (1000 if rows == 90 else 100)


def share_of(kernel: Kernel, source: Layout, width: int, limits: Limits = LIMITS, *, paired: bool) -> Share:
    """The launch configuration of a kernel that copies into packed memory."""
    made = planned_by_kernel(
        kernel, source, Layout.packed(source.sizes), width, limits, (2**30, 2**30), paired=paired
    )
    share: Share = only_dispatch(made).share
    return share


@pytest.mark.parametrize(
    ("kernel", "rows", "run", "width", "pieces", "each", "groups"),
    [
        # 16 words an invocation, or 4, or 1
        (Kernel.ROWS, 1, 1024, 4, 64, 16, 1),
        (Kernel.ROWS, 1, 1025, 4, 65, 16, 2),
        (Kernel.ROWS, 7, 33, 4, 3, 16, 1),
        (Kernel.ROWS, 1, 7, 4, 2, 4, 1),
        (Kernel.ROWS, 1, 3, 4, 3, 1, 1),
        (Kernel.ROWS, 5, 50, 8, 7, 8, 1),
        (Kernel.WIDE_ROWS, 5, 50, 16, 7, 8, 1),
        (Kernel.WIDE_ROWS, 5, 8, 16, 1, 8, 1),
        (Kernel.WIDE_ROWS, 5, 7, 16, 7, 1, 1),
        # sub-word rows: no more than the whole words they have wherever they begin
        (Kernel.SUBWORD_ROWS, 1, 131, 1, 1, 32, 1),
        (Kernel.SUBWORD_ROWS, 1, 132, 1, 2, 32, 1),
        (Kernel.SUBWORD_ROWS, 1, 66, 2, 2, 32, 1),
        # blocks of 16 bytes, 8 of them
        (Kernel.SHIFTED_ROWS, 3, 143, 1, 1, 8, 1),
        (Kernel.SHIFTED_ROWS, 3, 142, 1, 8, 1, 1),
    ],
)
def test_rows_are_dealt_to_pieces(
    kernel: Kernel, rows: int, run: int, width: int, pieces: int, each: int, groups: int
) -> None:
    share = share_of(kernel, Layout.of((rows, run), (3 * run + 3, 1)), width, paired=False)
    assert (share.count, share.pieces, share.each) == (rows, pieces, each)
    assert share.workgroups == (groups, 1, 1)


@pytest.mark.parametrize(("kernel", "run", "width"), [(Kernel.ROWS, 3, 8), (Kernel.SUBWORD_ROWS, 12, 2)])
def test_two_dimensions_are_dealt_as_a_row(kernel: Kernel, run: int, width: int) -> None:
    """Which has as many invocations as one that is as long."""
    pairs = share_of(kernel, Layout.of((5, 99, run), (999 * run, 4 * run, 3)), width, paired=True)
    rows = share_of(kernel, Layout.of((5, 99 * run), (999 * run, 3)), width, paired=False)
    assert (pairs.paired, rows.paired) == (True, False)
    assert (pairs.count, pairs.pieces, pairs.each) == (rows.count, rows.pieces, rows.each)
    alone = share_of(kernel, Layout.of((5, 99, run), (999 * run, 4 * run, 3)), width, paired=False)
    assert alone.count == 5 * 99


SLIM = replace(CPU, words_each=(), subword_words_each=(), blocks_each=1)  # one unit an invocation


def test_more_workgroups_than_a_dimension_holds_take_a_second() -> None:
    slim = preferring(replace(SLIM, workgroup_size=1), Kernel.ROWS)
    limits = replace(LIMITS, workgroups=16, profile=slim)
    for elements, grid in [(16, (16, 1, 1)), (17, (9, 2, 1)), (256, (16, 16, 1))]:
        assert only_dispatch(plan(Layout.of((elements,), (3,)), limits=limits)).share.workgroups == grid


def test_a_gpu_deals_neighbours_to_neighbours() -> None:
    source = Layout.of((3, 2000), (6003, 3))
    gpu = share_of(Kernel.ROWS, source, 4, replace(USUAL, profile=GPU), paired=False)
    cpu = share_of(Kernel.ROWS, source, 4, paired=False)
    assert (gpu.contiguous, gpu.pieces, gpu.each) == (False, 500, 4)
    assert (cpu.contiguous, cpu.pieces, cpu.each) == (True, 125, 16)


@given(
    st.integers(8, 5000),
    st.sampled_from([Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SUBWORD_ROWS, Kernel.SHIFTED_ROWS]),
)
def test_pieces_cover_every_row_and_fit_in_it(size: int, kernel: Kernel) -> None:
    """Wherever a row begins: what the kernels rely on without looking."""
    for width in {Kernel.ROWS: (4, 8), Kernel.WIDE_ROWS: (16,), Kernel.SUBWORD_ROWS: (1, 2)}.get(
        kernel, (1, 2, 4, 8)
    ):
        per_unit = UNITS_NBYTES.get(kernel, width) // width
        if size < 2 * per_unit - 1:
            continue
        for profile in (CPU, SLIM, GPU):
            pieces, each = launch_row(kernel, size, width, profile)
            for start in range(per_unit):
                units = (start + size) // per_unit - -(-start // per_unit)  # whole ones
                assert pieces * each >= units
                assert units >= (each if profile.contiguous else 1)


@pytest.mark.parametrize(
    ("run", "pieces", "each"),
    [(63, 63, 1), (127, 127, 1), (128, 32, 4), (129, 33, 4), (999, 250, 4)],
)
def test_short_rows_on_a_gpu_are_split_to_32_invocations_first(run: int, pieces: int, each: int) -> None:
    limits = replace(USUAL, profile=GPU)
    share = share_of(Kernel.ROWS, Layout.of((3, run), (4000, 3)), 4, limits, paired=False)
    assert (share.pieces, share.each) == (pieces, each)


@pytest.mark.parametrize(("elements", "pieces"), [(12, 1), (13, 2), (24, 2), (25, 3)])
def test_a_side_larger_than_a_binding_is_split(elements: int, pieces: int) -> None:
    wide = Layout.of((elements,), (2,))
    assert len(plan(wide, limits=SMALL).steps) == pieces
    assert len(plan(Layout.packed((elements,)), wide, limits=SMALL).steps) == pieces


@given(cases(), st.sampled_from([CPU, GPU, replace(GPU, workgroup_size=8)]))
def test_every_step_stays_inside_its_bindings_and_the_limits(case: Case, profile: Profile) -> None:
    """Whatever kernel costs least."""
    for kernel in Kernel:
        if kernel in HEADS_AND_TAILS or kernel in OF_WINDOWS | OF_INDICES:
            continue
        limits = replace(SMALL, profile=preferring(profile, kernel))
        made = planned_copy(limits, case.source, case.output, case.width, copy_to=False)
        parts = dispatches_of(made)
        assert len(parts) == len(made.steps)
        stops: dict[Any, int] = defaultdict(int)  # bytes that the steps of a binding reach
        for step in parts:
            assert max(step.share.workgroups) <= SMALL.workgroups
            for layout, binding in ((step.source, step.source_binding), (step.target, step.target_binding)):
                assert layout.lowest >= 0
                assert layout.stop * step.width_nbytes <= binding.nbytes <= SMALL.binding_nbytes
                stops[binding] = max(stops[binding], layout.stop * step.width_nbytes)
        for binding, stop in stops.items():
            assert binding.nbytes - stop < 16
            assert binding.offset_nbytes % SMALL.binding_alignment_nbytes == 0
            assert binding.nbytes % 4 == 0
        sizes = [step.target.size for step in parts if step.kernel not in HEADS_AND_TAILS]
        assert sum(sizes) * made.width_nbytes == made.nbytes == case.output.size * case.width


def test_equal_slices_at_other_places_share_a_plan(device: wg.Device) -> None:
    x = wg.zeros((64, 256), np.uint32, device=device)
    assert wg.explain(x[1:9, 3:90:2]).steps is wg.explain(x[21:29, 3:90:2]).steps
    assert wg.explain(x[1:9, 3:90:2]).steps is not wg.explain(x[1:9, 4:91:2]).steps


def test_a_copy_has_fewer_than_two_to_the_32_elements() -> None:
    most = Layout.of((2**32 - 1,), (0,))
    assert plan(most, itemsize=1).nbytes == 2**32 - 1
    one_more = Layout.of((2**16, 2**16), (0, 0))
    with pytest.raises(
        ValueError, match=r"4294967296 elements of sizes \(65536, 65536\).* at most 4294967295"
    ):
        plan(one_more, itemsize=1)


@given(st.integers(1, 2**35), st.sampled_from(WIDTHS), st.integers(1, 3), st.integers(1, 3))
def test_no_count_of_a_step_wraps_around_32_bits(
    elements: int, itemsize: int, source_stride: int, target_stride: int
) -> None:
    """However large the limits: words, elements and invocations that a step can reach stay below 2^32."""
    source = Layout.of((min(elements, 2**32 - 1),), (source_stride,))
    target = Layout.of(source.sizes, (target_stride,))
    for profile in (preferring(CPU, *BY_ROWS), preferring(GPU, *BY_ROWS), preferring(GPU, *GRIDS), CPU, GPU):
        boundless = replace(USUAL, binding_nbytes=2**60, profile=profile)
        made = planned_copy(boundless, source, target, itemsize, copy_to=False)
        assert len(dispatches_of(made)) == len(made.steps) > 0
        for step in dispatches_of(made):
            x, y, _ = step.share.workgroups
            if step.kernel in SPLITTING_ROWS:
                assert x * y * step.share.workgroup_size < 2**31  # what the kernels divide
                assert step.share.pieces * step.share.each < 2**32
            else:
                assert x * y * step.share.workgroup_size * step.share.each < 2**32
            assert max(step.source.stop, step.target.stop) * step.width_nbytes <= 2**31


@pytest.mark.parametrize(("elements", "pieces"), [(256, 1), (257, 2), (512, 2), (514, 4)])
def test_more_elements_than_a_grid_are_split(elements: int, pieces: int) -> None:
    small = replace(LIMITS, workgroups=2)  # 2 x 2 x 64 invocations
    repeated = Layout.of((elements,), (0,))
    assert len(plan(repeated, limits=small).steps) == pieces


def test_nothing_to_copy_is_no_step() -> None:
    assert plan(Layout.packed((3, 0))).steps == ()


def test_a_plan_prints_its_steps_and_reasons() -> None:
    pairing = replace(LIMITS, profile=preferring(CPU, *BY_ROWS, paired=True))
    crop = plan(Layout.of((20, 8), (100, 1), 205), limits=pairing)
    assert str(crop).splitlines() == [
        "copy: 640 B, 4-byte items, shape (20, 8)",
        "  coalesced   sizes (20, 8)  input strides (100, 1)  output strides (8, 1)  "
        "element width 4 B (the unit of sizes and strides)",
        "  offset      the input begins 820 bytes after the start of its binding",
        "  strategy    rows of pairs",
        "  step 1      kernel rows on (20, 8), 1 x 1 x 1 workgroups of 64 invocations, 16 elements per "
        "invocation: whole words, two dimensions per row",
        "  estimate    0.001 us (cost model: a test)",
        "  considered  shifted_grid at least 320 us; shifted_rows at least 320 us; word_grid at least 640 us"
        "; buffer copy per row at least 20 s",
        "  rejected    wide_grid: unaligned to 16 bytes: the input begins 4 bytes past a multiple",
        "  faster if   no known change is estimated to be 5 % faster",
    ]
    assert crop.summary == "coalesced (20, 8) x 4 B, rows"
    copying = replace(USUAL, profile=COPYING)
    assert plan(Layout.packed((8,)), limits=copying).summary == "coalesced (2,) x 16 B, buffer copy"
    few = plan(Layout.of((5, 8), (10, 1)), limits=copying)
    assert few.summary == "coalesced (5, 4) x 8 B, 5 buffer copies"
    assert (
        "\n  step 1      5 buffer copies of 32 B, without a kernel: contiguous words on both sides\n"
        in str(few)
    )
    pieces = plan(Layout.of((1000,), (2,)), limits=replace(SMALL, profile=GRIDDED))
    assert pieces.summary == f"coalesced (1000,) x 4 B, word_grid in {len(pieces.steps)} steps"
    assert f"\n  ...         {len(pieces.steps) - 8} more steps\n" in str(pieces)


def test_planning_does_not_import_wgpu() -> None:
    code = """
import sys, numpy as np, wgslice as wg
from planning import USUAL, planned_copy
descriptor = wg.Slice1(wg.TensorDesc("u1", (9, 9)), wg.TensorDesc("u1", (3, 3)), (0, 0), (9, 9), (3, -3))
layout = descriptor.input.layout
plan = planned_copy(USUAL, layout, layout, 1)
print(plan.summary.split(" B")[0], len(plan.others) > 0)
assert "wgpu" not in sys.modules, "wgpu was imported"
"""
    done = run_python(code, PYTHONPATH=os.pathsep.join(sys.path))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "coalesced (81,) x 1 True\n"


def test_a_real_slice_ends_at_few_dimensions() -> None:
    volume = np.empty((2, 12, 4096, 128), np.float16)
    cache = Layout.packed(volume.shape).select([range(2), range(12), range(100, 612), range(128)])
    made = plan(cache, itemsize=2)
    assert (made.target.sizes, made.width_nbytes) == ((24, 8192), 16)


MAX_SIZES = {1: 100_000, 2: 300, 3: 60, 4: 20, 5: 12}  # of tensors of a rank


def random_slices(seed: int) -> Iterator[tuple[Layout, int]]:
    """200 of tensors of 1 to 5 dimensions and 5 dtypes, in steps of -2 to 3, with their items' bytes."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        rank = int(rng.integers(1, 6))
        sizes = rng.integers(2, MAX_SIZES[rank], rank).tolist()
        key = []
        for size in sizes:
            start = int(rng.integers(size))
            taken = range(start, int(rng.integers(start, size)) + 1)
            key.append(taken[:: int(rng.choice([-2, -1, 1, 2, 3]))])
        dtype = np.dtype(str(rng.choice(["uint8", "int16", "float16", "float32", "int64"])))
        yield Layout.packed(sizes).select(key), dtype.itemsize


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
def test_a_new_slice_rarely_compiles(profile: Profile) -> None:
    """A pipeline is a kernel with its constants."""
    for seed in range(3):
        pipelines = set()
        for source, itemsize in random_slices(seed):
            for step in dispatches_of(planned_copy(profile, source, width=itemsize)):
                pipelines.add((step.kernel, *constants_of(step).items()))
        assert 10 <= len(pipelines) <= 20

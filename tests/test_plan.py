"""Plans: what is chosen at both sides of each boundary, what they print, and that they need no GPU."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import WIDTHS, elements_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import Case, cases

from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.dealing import deal_row
from wgslice.plans.grids import Tiling
from wgslice.plans.kernels import Kernel, tile_axis, words_spanned
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import CPU, GPU, WIDE_TILE_SIDES, Limits, Profile
from wgslice.plans.steps import BufferCopies, Dispatch
from wgslice.plans.terms import Terms, rebase
from wgslice.shaders.uniforms import override_constants

LIMITS = Limits(binding_nbytes=2**27, binding_alignment_nbytes=32, workgroups=65535, profile=CPU)
ROOMY = replace(LIMITS, binding_nbytes=2**31)
SMALL = Limits(binding_nbytes=96, binding_alignment_nbytes=32, workgroups=2, profile=CPU)


def plan(source: Layout, target: Layout | None = None, itemsize: int = 4, limits: Limits = LIMITS) -> Plan:
    return plan_copy(source, target or Layout.packed(source.sizes), itemsize, Terms(limits))


def only_dispatch(made: Plan) -> Dispatch:
    (step,) = made.steps
    assert isinstance(step, Dispatch)
    return step


def kernels_of(made: Plan) -> list[Kernel]:
    return [step.kernel for step in made.steps if isinstance(step, Dispatch)]


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
    assert isinstance(step, BufferCopies) is copied
    (step,) = plan(Layout.packed((size,)), Layout.packed((size,), offset), itemsize).steps
    assert isinstance(step, BufferCopies) is copied


@pytest.mark.parametrize(
    ("rows", "run", "copied"),
    [(20, 2**13, True), (20, 2**13 - 4, False), (16, 12, True), (17, 12, False), (2, 12, True)],
)
def test_long_rows_and_few_rows_are_buffer_copies_on_a_cpu(rows: int, run: int, copied: bool) -> None:
    """From 32 KiB a row on, and up to 16 rows; never on a GPU, where one dispatch is faster."""
    layout = Layout.of((rows // 2, 2, run), (10 * run, -4 * run, 1), 4 * run + 8)
    if rows % 2:
        layout = Layout.of((rows, run), (10 * run, 1), 8)
    (step,) = plan(layout).steps
    assert isinstance(step, BufferCopies) is copied
    if isinstance(step, BufferCopies):
        assert (step.source.size, step.nbytes) == (rows, 4 * run)
        assert step.source.places() == [4 * place for place in elements_of(layout).reshape(rows, run)[:, 0]]
        assert step.target.places() == [4 * run * row for row in range(rows)]
    assert isinstance(plan(layout, limits=replace(LIMITS, profile=GPU)).steps[0], Dispatch)


def test_a_buffer_copy_needs_the_usages_for_it() -> None:
    layout = Layout.packed((64,))
    for terms in (Terms(LIMITS, copy_from=False), Terms(LIMITS, copy_to=False)):
        (step,) = plan_copy(layout, layout, 4, terms).steps
        assert isinstance(step, Dispatch)


@pytest.mark.parametrize(
    ("itemsize", "source", "target", "kernel"),
    [
        (16, Layout.of((99, 2), (18, 2)), None, Kernel.WIDE_ROWS),
        # elements of 4, 8 or 16 bytes
        (8, Layout.of((9, 500), (1600, 3)), None, Kernel.ROWS),
        (4, Layout.of((99, 8), (12, 1)), None, Kernel.WIDE_ROWS),
        (4, Layout.of((99, 10), (12, 1)), None, Kernel.ROWS),
        # neighbours in rows of 143 bytes, or less; of any width; forwards or backwards; nested
        (4, Layout.of((99, 36), (41, 1)), None, Kernel.SHIFTED_ROWS),
        (4, Layout.of((99, 35), (41, 1)), None, Kernel.ROWS),
        (4, Layout.of((99, 36), (41, -1), 40), None, Kernel.SHIFTED_ROWS),
        (4, Layout.of((99, 36), (90, 2)), None, Kernel.SHIFTED_ROWS),
        (4, Layout.of((99, 17), (90, 3)), None, Kernel.ROWS),
        (4, Layout.of((99, 36), (150, 4)), None, Kernel.SHIFTED_ROWS),
        (4, Layout.of((99, 17), (90, 5)), None, Kernel.ROWS),
        (1, Layout.of((99, 143), (400, -2), 300), None, Kernel.SHIFTED_ROWS),
        (1, Layout.of((99, 65), (400, -3), 200), None, Kernel.NARROW_ROWS),
        (2, Layout.of((99, 73), (400, -4), 400), None, Kernel.SHIFTED_ROWS),
        (4, Layout.of((99, 17), (20, 1)), Layout.of((99, 17), (34, 2)), Kernel.ROWS),
        (4, Layout.of((17, 17), (20, 1)), Layout.of((17, 17), (9, 1)), Kernel.ROWS),
        (8, Layout.of((99, 18), (23, 1)), None, Kernel.SHIFTED_ROWS),
        (8, Layout.of((99, 17), (23, 1)), None, Kernel.ROWS),
        (1, Layout.of((99, 143), (150, -1), 149), None, Kernel.SHIFTED_ROWS),
        (1, Layout.of((99, 142), (150, -1), 149), None, Kernel.NARROW_ROWS),
        (2, Layout.of((99, 73), (90, 1)), None, Kernel.SHIFTED_ROWS),
        (2, Layout.of((99, 71), (90, 1)), None, Kernel.NARROW_ROWS),
        # narrow rows of 19 bytes between gaps, otherwise of 131, or pairs of them; of neighbours, or apart
        (1, Layout.of((9, 9, 19), (999, 40, 2)), Layout.of((9, 9, 19), (190, 20, 1)), Kernel.NARROW_ROWS),
        (1, Layout.of((9, 9, 18), (999, 40, 2)), Layout.of((9, 9, 18), (190, 20, 1)), Kernel.NARROW_RUNS),
        (1, Layout.of((9, 9, 18), (999, 40, 2)), None, Kernel.NARROW_ROWS),
        (1, Layout.of((9, 43, 3), (9999, 40, 2)), None, Kernel.NARROW_RUNS),
        (1, Layout.of((9, 44, 3), (9999, 40, 2)), None, Kernel.NARROW_ROWS),
        (2, Layout.of((99, 10), (40, 2)), Layout.of((99, 10), (11, 1)), Kernel.NARROW_ROWS),
        (2, Layout.of((99, 9), (40, 2)), Layout.of((99, 9), (11, 1)), Kernel.NARROW_RUNS),
        (2, Layout.of((99, 9), (40, 2)), None, Kernel.NARROW_ROWS),
        (1, Layout.of((131,), (3,)), None, Kernel.NARROW_ROWS),
        (1, Layout.of((130,), (3,)), None, Kernel.NARROW_RUNS),
        (1, Layout.of((131,), (3,)), Layout.of((131,), (2,)), Kernel.NARROW_RUNS),
        # as many words as elements, or more; rows may lie as far apart as they will
        (1, Layout.packed((8,)), Layout.of((8,), (4,)), Kernel.NARROW_RUNS),
        (1, Layout.packed((8,)), Layout.of((8,), (5,)), Kernel.SLICE1),
        (2, Layout.packed((8,)), Layout.of((8,), (2,)), Kernel.NARROW_RUNS),
        (2, Layout.packed((8,)), Layout.of((8,), (3,)), Kernel.SLICE1),
        (1, Layout.packed((3, 19)), Layout.of((3, 19), (999, 1)), Kernel.NARROW_ROWS),
        # rows beside each other, or interleaved
        (1, Layout.of((2, 3), (9, 2)), Layout.of((2, 3), (5, 2)), Kernel.NARROW_RUNS),
        (1, Layout.of((2, 3), (9, 2)), Layout.of((2, 3), (3, 2)), Kernel.SLICE1),
        # a dimension to spare for runs of one element, or none
        (
            1,
            Layout.of((2,) * 7, (1,) * 7),
            Layout.of((2,) * 7, [2**k for k in range(7, 0, -1)]),
            Kernel.NARROW_RUNS,
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
    first, *ends = kernels_of(plan(source, target, itemsize))
    assert first is kernel
    assert set(ends) <= ({Kernel.ROW_ENDS} if kernel is Kernel.SHIFTED_ROWS else set())


@pytest.mark.parametrize(
    ("offset", "sizes", "width", "words"),
    [(0, (4,), 1, 1), (1, (4,), 1, 2), (3, (1,), 1, 1), (3, (2,), 1, 2), (1, (2,), 2, 2), (0, (2,), 2, 1)],
)
def test_words_spanned(offset: int, sizes: tuple[int, ...], width: int, words: int) -> None:
    assert words_spanned(Layout.packed(sizes, offset), width) == words


@pytest.mark.parametrize(
    ("width", "run", "paired"),
    [(4, 1000, False), (4, 2, False), (8, 3, False), (1, 16, False), (1, 15, True), (2, 7, True)],
)
def test_a_cpu_takes_two_dimensions_as_a_row_and_a_gpu_where_bytes_are_in_short_ones(
    width: int, run: int, paired: bool
) -> None:
    rows = Layout.of((5, 99, run), (999 * run, 4 * run, 3))
    for profile, expected in ((CPU, True), (replace(GPU, grids=False), paired)):
        share = only_dispatch(plan(rows, itemsize=width, limits=replace(LIMITS, profile=profile))).share
        assert (share.paired, share.count) == (expected, 5 if expected else 5 * 99)
    assert not only_dispatch(plan(Layout.of((7,), (2,)))).share.paired


@pytest.mark.parametrize(
    ("sizes", "strides", "width", "kernel"),
    [
        ((8, 8), (1, 9), 4, Kernel.TILES),
        ((7, 8), (1, 9), 4, Kernel.WORD_GRID),
        ((8, 7), (1, 9), 4, Kernel.WORD_GRID),
        ((8, 8), (2, 17), 4, Kernel.TILES),
        ((8, 8), (3, 17), 4, Kernel.WORD_GRID),
        ((8, 8), (4, 3), 4, Kernel.WORD_GRID),
        ((8, 9), (-1, 9), 16, Kernel.WIDE_TILES),
        ((3, 8, 4, 9), (1, 1000, 3, 12), 8, Kernel.PAIR_GRID),
        ((9, 8, 4, 9), (1, 1000, 9, 36), 8, Kernel.TILES),
        ((8, 9), (1, 9), 2, Kernel.NARROW_ROWS),
    ],
)
def test_a_permuted_source_goes_through_tiles_on_a_gpu(
    sizes: tuple[int, ...], strides: tuple[int, ...], width: int, kernel: Kernel
) -> None:
    source = Layout.of(sizes, strides, 100)
    step = only_dispatch(plan(source, itemsize=width, limits=replace(LIMITS, profile=GPU)))
    assert step.kernel is kernel
    if kernel is Kernel.TILES:
        assert abs(step.source.strides[-2]) in (1, 2)
        assert step.target.strides[-1] == 1
    assert only_dispatch(plan(source, itemsize=width)).kernel is not Kernel.TILES


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("side", ["source", "target"])
@pytest.mark.parametrize(("width", "rows", "run"), [(4, 253, 65), (4, 251, 65), (1, 435, 151), (1, 433, 151)])
def test_a_tight_buffer_keeps_its_kernel(
    width: int, rows: int, run: int, side: str, profile: Profile
) -> None:
    """From 64 KiB on the end is a step of its own; below, where a dispatch costs more, all goes by words."""
    source, target = Layout.of((rows, run), (run + 5, 1), 2), Layout.packed((rows, run))
    limits = replace(LIMITS, profile=profile)
    room: dict[str, Any] = {
        f"{side}_room_nbytes": {"source": source, "target": target}[side].stop * width // 16 * 16
    }
    roomy = plan_copy(source, target, width, Terms(limits))
    of_bulk = [Kernel.SHIFTED_GRID if profile.grids else Kernel.SHIFTED_ROWS, Kernel.ROW_ENDS]
    assert kernels_of(roomy) == of_bulk
    made = plan_copy(source, target, width, Terms(limits, **room))
    if rows * run * width < 2**16:
        of_words = Kernel.WORD_GRID if profile.grids else Kernel.ROWS
        assert only_dispatch(made).kernel is (of_words if width == 4 else Kernel.NARROW_ROWS)
        return
    *dispatches, end = made.steps
    bulk = dispatches[0]
    assert isinstance(bulk, Dispatch)
    assert isinstance(end, BufferCopies | Dispatch)
    assert kernels_of(made)[: len(dispatches)] == of_bulk
    assert bulk.target.sizes == (rows - 1, run)
    assert bulk.target_binding.nbytes <= room.get("target_room_nbytes", 2**31)
    assert bulk.source_binding.nbytes <= room.get("source_room_nbytes", 2**31)
    assert isinstance(end, BufferCopies) == (width == 4)  # a row of whole words, or of bytes
    assert end.reason.endswith("the end, whose buffer ends inside a vector of 16 bytes")


@pytest.mark.parametrize("side", ["source", "target"])
def test_pixels_in_a_tight_buffer_stay_pixels(side: str) -> None:
    """From 64 KiB on: but for the last ones, or the last row."""
    limits = replace(LIMITS, profile=GPU)
    for sizes, rows in (((306_600, 3), (306_597, 3)), ((700, 438, 3), (699, 438, 3))):
        source = Layout.of(sizes, (*([1317] if len(sizes) == 3 else []), 3, -1), 2)
        target = Layout.packed(sizes)
        whole = {"source": source, "target": target}[side]
        room: dict[str, Any] = {f"{side}_room_nbytes": whole.stop // 16 * 16}
        assert whole.stop % 16
        made = plan_copy(source, target, 1, Terms(limits, **room))
        bulk, _, end = made.steps
        assert isinstance(bulk, Dispatch)
        assert isinstance(end, Dispatch)
        assert kernels_of(made)[:2] == RAGGED
        assert bulk.target.sizes == rows
        assert bulk.target_binding.nbytes <= room.get("target_room_nbytes", 2**31)
        assert bulk.source_binding.nbytes <= room.get("source_room_nbytes", 2**31)
        assert end.reason.endswith("the end, whose buffer ends inside a vector of 16 bytes")


def test_what_a_tight_buffer_cuts_off_is_as_little_as_can_be() -> None:
    """A row where there are many, columns where all rows read the buffer's end, the first ones backwards."""
    for source, bulk in (
        (Layout.of((300, 71), (71, 1), 1), (300 * 71 - 1,)),
        (Layout.of((300, 70), (71, 1), 2), (299, 70)),
        (Layout.of((300, 71), (0, 1)), (300, 68)),
        (Layout.of((300, 70), (-71, 1), 299 * 71), (299, 70)),
        (Layout.of((70, 300), (1, 90)), None),
        (Layout.of((20_003,), (1,)), (20_000,)),
        (Layout.of((20_003,), (-1,), 20_002), (20_000,)),
    ):
        terms = Terms(LIMITS, copy_to=False, source_room_nbytes=source.stop * 4 // 16 * 16)
        made = plan_copy(source, Layout.packed(source.sizes), 4, terms)
        steps = [step for step in made.steps if isinstance(step, Dispatch)]
        assert len(steps) == len(made.steps)
        if bulk is not None:
            assert steps[0].kernel is Kernel.SHIFTED_ROWS
            assert steps[0].target.sizes == bulk
        whole = [step for step in steps if step.kernel is not Kernel.ROW_ENDS]  # which completes another
        assert len(whole) == (1 if bulk is None else 2)
        assert sum(step.target.size for step in whole) == source.size


def test_a_gpu_gives_every_row_to_invocations_of_its_own() -> None:
    """Where it deals rows and no tiles."""
    limits = replace(LIMITS, profile=replace(GPU, grids=False))
    for layout, width, kernel in (
        (Layout.of((99, 3), (18, 2)), 4, Kernel.ROWS),
        (Layout.of((99, 2), (18, 2)), 16, Kernel.WIDE_ROWS),
    ):
        step = only_dispatch(plan(layout, itemsize=width, limits=limits))
        assert step.kernel is kernel
        assert not step.share.paired


@pytest.mark.parametrize(
    ("sizes", "width", "tiling", "count"),
    [
        # words: lanes along columns of 4 bytes, 8 ahead of each other; along rows where columns are few
        ((1, 512), 4, Tiling(6, 64, 0, 1, 1), 1),
        ((1, 513), 4, Tiling(6, 64, 0, 2, 1), 2),
        ((8, 64), 4, Tiling(6, 0, 1, 1, 1), 1),
        ((9, 64), 4, Tiling(5, 0, 2, 2, 1), 2),
        ((128, 3), 4, Tiling(2, 0, 16, 1, 1), 1),
        ((129, 3), 4, Tiling(2, 0, 16, 1, 2), 2),
        # no fewer lanes beside each other than make 64 bytes
        ((128, 40), 4, Tiling(4, 0, 4, 3, 4), 12),
        # vectors, 4 of them
        ((1, 256), 16, Tiling(6, 64, 0, 1, 1), 1),
        # of equally many, waves of 32 lanes take the longest runs
        ((4, 64), 16, Tiling(4, 16, 0, 1, 1), 1),
        ((2, 512), 16, Tiling(5, 32, 0, 4, 1), 4),
        ((32, 8), 16, Tiling(3, 0, 8, 1, 1), 1),
        ((64, 3), 16, Tiling(2, 0, 16, 1, 1), 1),
        ((33, 8), 16, Tiling(3, 0, 8, 1, 2), 2),
    ],
)
def test_planes_are_cut_into_tiles(sizes: tuple[int, ...], width: int, tiling: Tiling, count: int) -> None:
    source = Layout.of(sizes, (3 * sizes[1] + 7, 3))
    share = only_dispatch(plan(source, itemsize=width, limits=replace(LIMITS, profile=GPU))).share
    assert (share.tiling, share.count) == (tiling, count)


PIXEL_ROWS = Layout.of((9, 32, 3), (128, -3, 1), 93)  # mirrored RGB, rows of 96 bytes
WHOLE, RAGGED = [Kernel.PIXELS], [Kernel.PIXELS, Kernel.NARROW_ENDS]


@pytest.mark.parametrize(
    ("source", "target", "width", "kernels"),
    [
        (PIXEL_ROWS, Layout.packed((9, 32, 3)), 1, WHOLE),
        (PIXEL_ROWS, Layout.packed((9, 32, 3), 1), 1, RAGGED),  # begins inside a block
        (PIXEL_ROWS, Layout.packed((9, 32, 3), 8), 2, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (112, 3, 1)), 1, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (104, 3, 1)), 1, RAGGED),  # every second row does
        (PIXEL_ROWS, Layout.of((9, 32, 3), (128, 4, 1)), 1, None),  # padded pixels
        (Layout.of((9, 31, 3), (128, -3, 1), 93), Layout.of((9, 31, 3), (96, 3, 1)), 1, RAGGED),
        (Layout.of((9, 22, 3), (128, -3, 1), 93), Layout.packed((9, 22, 3)), 1, RAGGED),  # 66 bytes
        (Layout.of((9, 21, 3), (128, -3, 1), 93), Layout.packed((9, 21, 3)), 1, None),  # 63 bytes
        (Layout.of((9, 22, 3), (-3, 128, 1), 93), Layout.of((9, 22, 3), (64, 3, 1)), 1, None),  # rows meet
        (
            Layout.of((2, 3, 22, 3), (1000, 300, -3, 1), 63),
            Layout.of((2, 3, 22, 3), (300, 200, 3, 1)),  # rows in no order
            1,
            None,
        ),
        (
            Layout.of((2,) * 7 + (64,), (*(400 * 4**k for k in range(7)), 3)),
            Layout.packed((2,) * 7 + (64,)),  # no room for a dimension of channels
            1,
            None,
        ),
        (Layout.of((64, 3), (4, 1)), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((64, 3), (5, 1)), Layout.packed((64, 3)), 1, None),
        (Layout.of((64, 3), (4, -1), 2), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((64, 2), (4, 3)), Layout.packed((64, 2)), 1, WHOLE),
        (Layout.of((64, 4), (4, -1), 3), Layout.packed((64, 4)), 1, WHOLE),
        (Layout.of((64, 5), (-5, 1), 315), Layout.packed((64, 5)), 1, None),
        (Layout.of((64,), (3,)), Layout.packed((64,)), 1, WHOLE),
        (Layout.of((65,), (3,)), Layout.packed((65,)), 1, RAGGED),
        (Layout.of((64,), (-3,), 189), Layout.packed((64,)), 2, WHOLE),
        (Layout.of((64,), (5,)), Layout.packed((64,)), 1, None),
        (Layout.of((64,), (0,)), Layout.packed((64,)), 1, None),
        # channels in planes of the source, and pixels' channels into planes of the target
        (Layout.of((64, 3), (1, 64)), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((65, 3), (1, 65)), Layout.packed((65, 3)), 1, RAGGED),
        (Layout.of((64, 3), (5, 64)), Layout.packed((64, 3)), 1, None),
        # no more than 12 blocks of all planes
        (Layout.of((64, 3), (4, 256)), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((65, 3), (4, 260)), Layout.packed((65, 3)), 1, None),
        (Layout.of((65, 3), (3, 200)), Layout.packed((65, 3)), 1, RAGGED),
        (Layout.of((64, 4), (4, 256)), Layout.packed((64, 4)), 1, None),
        (Layout.of((64, 4), (3, 256)), Layout.packed((64, 4)), 1, WHOLE),
        (Layout.of((3, 64), (1, 3)), Layout.packed((3, 64)), 1, WHOLE),
        (Layout.of((3, 65), (1, 3)), Layout.packed((3, 65)), 1, None),
        (Layout.of((3, 48), (1, 3)), Layout.packed((3, 48)), 1, None),
        (Layout.of((3, 65), (1, 3)), Layout.of((3, 65), (80, 1)), 1, None),  # planes end inside a block
        (Layout.of((2, 3, 64), (200, 1, 3)), Layout.of((2, 3, 64), (200, 64, 1)), 1, None),  # or begin there
        (Layout.of((4, 64), (1, 3)), Layout.packed((4, 64)), 2, WHOLE),  # pixels that overlap
        (Layout.of((3, 64), (-1, 4), 2), Layout.of((3, 64), (80, 1)), 1, WHOLE),
        (Layout.of((3, 64), (-1, 4), 2), Layout.of((3, 64), (81, 1)), 1, None),
    ],
)
def test_pixels_go_in_whole_blocks_on_a_gpu(
    source: Layout, target: Layout, width: int, kernels: list[Kernel] | None
) -> None:
    limits = replace(LIMITS, profile=GPU)
    made = plan_copy(source, target, width, Terms(limits))
    found = kernels_of(made)
    assert found == kernels if kernels else Kernel.PIXELS not in found
    for step in made.steps:
        if isinstance(step, Dispatch) and step.kernel is Kernel.PIXELS:
            assert step.source_binding.nbytes % 16 == step.target_binding.nbytes % 16 == 0
    assert Kernel.PIXELS not in kernels_of(plan_copy(source, target, width, Terms(LIMITS)))
    if kernels:
        room = source.stop * width // 16 * 16
        tight = plan_copy(source, target, width, Terms(limits, source_room_nbytes=room))
        assert (Kernel.PIXELS in kernels_of(tight)) == (source.stop * width == room)


@pytest.mark.parametrize(
    ("source", "target", "width", "kernel"),
    [
        (Layout.of((64, 64), (1, 64)), Layout.packed((64, 64)), 1, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (1, 72)), Layout.packed((64, 64)), 1, Kernel.NARROW_ROWS),
        (Layout.of((64, 64), (1, 80)), Layout.packed((64, 64)), 1, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (1, 80), 8), Layout.packed((64, 64)), 1, Kernel.NARROW_ROWS),
        (Layout.of((64, 64), (1, 80), 16), Layout.packed((64, 64), 1), 1, Kernel.NARROW_ROWS),
        (Layout.of((64, 72), (1, 80)), Layout.packed((64, 72)), 1, Kernel.NARROW_ROWS),
        (Layout.of((64, 64), (1, 80)), Layout.of((64, 64), (72, 1)), 1, Kernel.NARROW_ROWS),
        (Layout.of((8, 64), (1, 16)), Layout.packed((8, 64)), 2, Kernel.WIDE_TILES),
        (Layout.of((7, 64), (1, 16)), Layout.packed((7, 64)), 2, Kernel.NARROW_ROWS),
        # neighbours backwards, and every second and fourth of them
        (Layout.of((64, 64), (-1, 80), 63), Layout.packed((64, 64)), 4, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (-1, 80), 64), Layout.packed((64, 64)), 4, Kernel.TILES),
        (Layout.of((64, 64), (2, 160)), Layout.packed((64, 64)), 4, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (2, 160)), Layout.packed((64, 64)), 1, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (-2, 160), 126), Layout.packed((64, 64)), 4, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (4, 256)), Layout.packed((64, 64)), 2, Kernel.WIDE_TILES),
        (Layout.of((64, 64), (3, 192)), Layout.packed((64, 64)), 4, Kernel.WORD_GRID),
        (Layout.of((64, 64), (1, 78)), Layout.packed((64, 64)), 4, Kernel.TILES),
        (Layout.of((64, 64), (1, 76)), Layout.packed((64, 64)), 4, Kernel.WIDE_TILES),
        (Layout.of((64, 63), (1, 65)), Layout.packed((64, 63)), 16, Kernel.WIDE_TILES),
    ],
)
def test_permuted_vectors_go_through_tiles_on_a_gpu(
    source: Layout, target: Layout, width: int, kernel: Kernel
) -> None:
    limits = replace(LIMITS, profile=GPU)
    assert kernels_of(plan_copy(source, target, width, Terms(limits))) == [kernel]
    assert Kernel.WIDE_TILES not in kernels_of(plan_copy(source, target, width, Terms(LIMITS)))
    if kernel is Kernel.WIDE_TILES and width < 16:
        short = source.stop * width // 16 * 16
        tight = plan_copy(source, target, width, Terms(limits, source_room_nbytes=short))
        assert (Kernel.WIDE_TILES in kernels_of(tight)) == (source.stop * width == short)


@pytest.mark.parametrize(
    ("sizes", "strides", "axis"),
    [((16, 16, 64), (4, 1, 400), 1), ((16, 16, 64), (1, -2, 400), 0), ((16, 32, 64), (1, -1, 400), 1)],
)
def test_tiles_have_the_nearest_dimension_and_then_the_longest(
    sizes: tuple[int, ...], strides: tuple[int, ...], axis: int
) -> None:
    assert tile_axis(Layout.of(sizes, strides, 100), Layout.packed(sizes), 8) == axis


@pytest.mark.parametrize(
    ("source", "width", "kernel"),
    [
        (Layout.of((64, 64), (4, 256)), 4, Kernel.WIDE_TILES),  # tiles of the rows that lie between, too
        (Layout.of((64, 256), (1, 72)), 1, Kernel.NARROW_ROWS),  # as permuted, but by no tiles
    ],
)
def test_a_permuted_source_is_split_for_a_small_grid(source: Layout, width: int, kernel: Kernel) -> None:
    limits = replace(LIMITS, workgroups=2, profile=GPU)
    steps = plan_copy(source, Layout.packed(source.sizes), width, Terms(limits)).steps
    assert len(steps) > 1
    for step in steps:
        assert isinstance(step, Dispatch)
        assert step.kernel is kernel
        assert max(step.share.workgroups) <= limits.workgroups


def test_a_tile_of_vectors_has_work_for_each_invocation_equally_often() -> None:
    """Vectors to load, and cells to store: `wide_tiles` counts its turns without a rest."""
    for width, side in WIDE_TILE_SIDES.items():
        cells = side * side * width // 16 // max(4 // width, 1)
        assert cells >= GPU.workgroup_size
        assert cells % GPU.workgroup_size == 0


def test_the_longest_dimension_has_the_rows_of_planes() -> None:
    """And the later of two that are equally good."""
    limits = replace(LIMITS, profile=GPU)
    for sizes, rows in (((90, 2, 2), 90), ((2, 70, 3), 70), ((40, 40, 3), 40)):
        source = Layout.of(sizes, (1000, 100, 7))
        step = only_dispatch(plan(source, limits=limits))
        assert step.kernel is Kernel.WORD_GRID
        assert step.target.sizes[-2:] == (rows, sizes[-1])
        assert step.source.strides[-2] == (1000 if rows == 90 else 100)


@pytest.mark.parametrize(("last", "on_grid"), [(8, True), (7, False)])
def test_planes_that_leave_most_lanes_idle_are_dealt_row_by_row(last: int, on_grid: bool) -> None:
    """A lane on a grid takes up to 8 elements; with less than one in 8 of them used, rows are as good."""
    source = Layout.of((last,) * 4, (90_000, 9_000, 900, 90))
    kernel = only_dispatch(plan(source, limits=replace(LIMITS, profile=GPU))).kernel
    assert kernel is (Kernel.WORD_GRID if on_grid else Kernel.ROWS)


@pytest.mark.parametrize(
    ("rows", "run", "width", "pieces", "each", "groups"),
    [
        # 16 words an invocation, or 4, or 1
        (1, 1024, 4, 64, 16, 1),
        (1, 1025, 4, 65, 16, 2),
        (7, 33, 4, 15, 16, 1),
        (1, 7, 4, 2, 4, 1),
        (1, 3, 4, 3, 1, 1),
        (5, 50, 8, 32, 8, 1),
        (5, 50, 16, 7, 8, 1),
        (5, 8, 16, 1, 8, 1),
        (5, 7, 16, 7, 1, 1),
        # narrow rows: no more than the whole words they have wherever they begin
        (1, 131, 1, 1, 32, 1),
        (1, 132, 1, 2, 32, 1),
        (1, 66, 2, 2, 32, 1),
    ],
)
def test_rows_are_dealt_to_pieces(
    rows: int, run: int, width: int, pieces: int, each: int, groups: int
) -> None:
    share = only_dispatch(plan(Layout.of((rows, run), (3 * run + 3, 3)), itemsize=width)).share
    assert (share.count, share.pieces, share.each) == (1 if share.paired else rows, pieces, each)
    assert share.workgroups == (groups, 1, 1)


SLIM = replace(CPU, words_each=(), narrow_words_each=(), blocks_each=1)  # one unit an invocation


def test_more_workgroups_than_a_dimension_holds_take_a_second() -> None:
    slim = replace(ROOMY, workgroups=16, profile=replace(SLIM, workgroup_size=1))
    for elements, grid in [(16, (16, 1, 1)), (17, (9, 2, 1)), (256, (16, 16, 1))]:
        for profile in (slim.profile, replace(slim.profile, pair_below_nbytes=0)):
            step = only_dispatch(plan(Layout.of((elements,), (3,)), limits=replace(slim, profile=profile)))
            assert step.share.workgroups == grid


def test_a_gpu_deals_neighbours_to_neighbours() -> None:
    source = Layout.of((3, 2000), (6003, 3))
    gpu = only_dispatch(plan(source, limits=replace(LIMITS, profile=replace(GPU, grids=False)))).share
    cpu = only_dispatch(plan(source)).share
    assert (gpu.contiguous, gpu.pieces, gpu.each) == (False, 500, 4)
    assert (cpu.contiguous, cpu.pieces, cpu.each) == (True, 375, 16)


@given(
    st.integers(8, 5000),
    st.sampled_from([Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.NARROW_ROWS, Kernel.SHIFTED_ROWS]),
)
def test_pieces_cover_every_row_and_fit_in_it(size: int, kernel: Kernel) -> None:
    """Wherever a row begins: what the kernels rely on without looking."""
    for width in {Kernel.ROWS: (4, 8), Kernel.WIDE_ROWS: (16,), Kernel.NARROW_ROWS: (1, 2)}.get(
        kernel, (1, 2, 4, 8)
    ):
        lanes = kernel.unit_nbytes(width) // width
        if size < 2 * lanes - 1:
            continue
        for profile in (CPU, SLIM, GPU):
            pieces, each = deal_row(kernel, size, width, profile)
            for start in range(lanes):
                units = (start + size) // lanes - -(-start // lanes)  # whole ones
                assert pieces * each >= units
                assert units >= (each if profile.contiguous else 1)


@pytest.mark.parametrize(
    ("run", "pieces", "each"),
    [(63, 63, 1), (127, 127, 1), (128, 32, 4), (129, 33, 4), (999, 250, 4)],
)
def test_a_gpus_short_rows_go_to_32_neighbours_before_any_takes_more(
    run: int, pieces: int, each: int
) -> None:
    limits = replace(LIMITS, profile=replace(GPU, grids=False))
    share = only_dispatch(plan(Layout.of((3, run), (4000, 3)), limits=limits)).share
    assert (share.pieces, share.each) == (pieces, each)


@pytest.mark.parametrize(("elements", "pieces"), [(12, 1), (13, 2), (24, 2), (25, 3)])
def test_a_side_larger_than_a_binding_is_split(elements: int, pieces: int) -> None:
    wide = Layout.of((elements,), (2,))
    assert len(plan(wide, limits=SMALL).steps) == pieces
    assert len(plan(Layout.packed((elements,)), wide, limits=SMALL).steps) == pieces


@given(cases())
def test_every_step_stays_inside_its_bindings_and_the_limits(case: Case) -> None:
    sides = [rebase(layout, case.width, SMALL)[1] for layout in (case.source, case.output)]
    for profile in (GPU, replace(GPU, workgroup_size=8, least_tile=2), CPU):
        limits = replace(SMALL, profile=profile)
        made = plan_copy(sides[0], sides[1], case.width, Terms(limits, copy_to=False))
        for step in made.steps:
            assert isinstance(step, Dispatch)
            assert max(step.share.workgroups) <= SMALL.workgroups
            for layout, binding in ((step.source, step.source_binding), (step.target, step.target_binding)):
                assert layout.lowest >= 0
                assert layout.stop * step.width_nbytes <= binding.nbytes <= SMALL.binding_nbytes
                assert binding.nbytes - layout.stop * step.width_nbytes < 16
                assert binding.offset_nbytes % SMALL.binding_alignment_nbytes == 0
                assert binding.nbytes % 4 == 0
        whole = [step for step in made.steps if step.name != Kernel.ROW_ENDS.value]  # which completes another
        sizes = [step.target.size for step in whole if isinstance(step, Dispatch)]
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
    assert plan_copy(most, Layout.packed(most.sizes), 1, Terms(LIMITS)).nbytes == 2**32 - 1
    one_more = Layout.of((2**16, 2**16), (0, 0))
    with pytest.raises(
        ValueError, match=r"4294967296 elements of sizes \(65536, 65536\).* at most 4294967295"
    ):
        plan_copy(one_more, Layout.packed(one_more.sizes), 1, Terms(LIMITS))


@given(st.integers(1, 2**35), st.sampled_from(WIDTHS), st.integers(1, 3), st.integers(1, 3))
def test_no_count_of_a_step_wraps_around_32_bits(
    elements: int, itemsize: int, source_stride: int, target_stride: int
) -> None:
    """However large the limits: words, elements and invocations that a step can reach stay below 2^32."""
    boundless = Limits(binding_nbytes=2**60, binding_alignment_nbytes=32, workgroups=65535)
    source = Layout.of((min(elements, 2**32 - 1),), (source_stride,))
    target = Layout.of(source.sizes, (target_stride,))
    for step in plan_copy(source, target, itemsize, Terms(boundless, copy_to=False)).steps:
        assert isinstance(step, Dispatch)
        x, y, _ = step.share.workgroups
        if step.kernel.deals_rows:
            assert x * y * step.share.workgroup_size < 2**31  # what the kernels divide
            assert step.share.pieces * step.share.each < 2**32
        else:
            assert x * y * step.share.workgroup_size * step.share.each < 2**32
        assert max(step.source.stop, step.target.stop) * step.width_nbytes <= 2**31


@pytest.mark.parametrize(("elements", "pieces"), [(256, 1), (257, 2), (512, 2), (514, 4)])
def test_more_elements_than_a_grid_are_split(elements: int, pieces: int) -> None:
    narrow = replace(LIMITS, workgroups=2)  # 2 x 2 x 64 invocations
    repeated = Layout.of((elements,), (0,))
    assert len(plan(repeated, limits=narrow).steps) == pieces


def test_nothing_to_copy_is_no_step() -> None:
    assert plan(Layout.packed((3, 0))).steps == ()


def test_a_plan_says_what_runs_and_why() -> None:
    crop = plan(Layout.of((20, 8), (100, 1), 205))
    assert str(crop).splitlines() == [
        "copy of 640 bytes, items of 4, planned in elements of 4",
        "  merged sizes (20, 8)",
        "  source strides (100, 1) from 205",
        "  target strides (8, 1) from 0",
        "  step 1: rows on (20, 8), grid 1 x 1 x 1 of 64, 16 each: whole words, two dimensions a row",
        "  in the way of a buffer copy: it would take 20, one for each row of 32 bytes",
        "  in the way of wide_rows: not multiples of 16 bytes: their beginning in the input, 4 bytes past "
        "one",
        "  in the way of shifted_rows: rows of 32 bytes, at least 143 are needed",
    ]
    assert crop.summary == "merged (20, 8) x 4 bytes, rows"
    assert plan(Layout.packed((8,))).summary == "merged (2,) x 16 bytes, a buffer copy"
    few = plan(Layout.of((5, 8), (10, 1)))
    assert few.summary == "merged (5, 4) x 8 bytes, 5 buffer copies"
    assert str(few).splitlines()[-1] == (
        "  step 1: 5 buffer copies of 32 bytes: contiguous words on both sides"
    )
    pieces = plan(Layout.of((1000,), (2,)), limits=replace(SMALL, profile=GPU))
    assert pieces.summary == f"merged (1000,) x 4 bytes, word_grid in {len(pieces.steps)} steps"
    assert str(pieces).splitlines()[12] == f"  and {len(pieces.steps) - 8} more steps"


def test_planning_does_not_import_wgpu() -> None:
    code = """
import sys, numpy as np, wgslice as wg
from wgslice.plans.copy import plan_copy
from wgslice.plans.profiles import Limits
from wgslice.plans.terms import Terms
descriptor = wg.Slice1(wg.TensorDesc("u1", (9, 9)), wg.TensorDesc("u1", (3, 3)), (0, 0), (9, 9), (3, -3))
layout, terms = descriptor.input.layout, Terms(Limits(2**27, 256, 65535))
print(plan_copy(layout, layout, 1, terms).summary)
assert "wgpu" not in sys.modules, "wgpu was imported"
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "merged (81,) x 1 bytes, shifted_grid, row_ends in 2 steps\n"


def test_a_real_slice_ends_at_few_dimensions() -> None:
    volume = np.empty((2, 12, 4096, 128), np.float16)
    cache = Layout.packed(volume.shape).select([range(2), range(12), range(100, 612), range(128)])
    made = plan(cache, itemsize=2)
    assert (made.target.sizes, made.width_nbytes) == ((24, 8192), 16)


MOST_SIZES = {1: 100_000, 2: 300, 3: 60, 4: 20, 5: 12}  # of tensors of a rank


def random_slices(seed: int) -> Iterator[tuple[Layout, int]]:
    """200 of tensors of 1 to 5 dimensions and 5 dtypes, in steps of -2 to 3, with their items' bytes."""
    rng = np.random.default_rng(seed)
    for _ in range(200):
        rank = int(rng.integers(1, 6))
        sizes = rng.integers(2, MOST_SIZES[rank], rank).tolist()
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
            for step in plan(source, itemsize=itemsize, limits=replace(LIMITS, profile=profile)).steps:
                if isinstance(step, Dispatch):
                    pipelines.add((step.kernel, *override_constants(step).items()))
        assert 10 <= len(pipelines) <= 20

"""Which kernels can take a copy, at both sides of each condition; which one does, costs say."""

from __future__ import annotations

from dataclasses import replace
from math import inf

import pytest
from helpers import check_bytes, copied, random_bytes
from planning import dispatches_of, only_dispatch, planned_copy, preferring
from reference.plans import run_plan

from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU
from wgslice.plans.steps import Dispatch

KNOWN = preferring(GPU)  # whose costs know every kernel
PARTS = {"bulk and end", "split by binding size"}


def applicable(source: Layout, target: Layout | None, width: int, *, whole_vectors: bool = True) -> set[str]:
    """The names of all kernels that apply."""
    room_nbytes = inf if whole_vectors else 0
    made = planned_copy(KNOWN, source, target, width, copy_from=False, target_capacity_nbytes=room_nbytes)
    assert made.width_nbytes == width
    names = [choice.name for choice in made.choices]
    assert len(set(names)) == len(names)
    return {*names} - PARTS


WIDE = {"wide_grid", "wide_rows", "slice1"}
WORDS = {"word_grid", "rows", "slice1"}
PAIRED = {*WORDS, "rows of pairs"}
TWOS = {"rows", "rows of pairs", "slice1"}  # of words
SUBWORD = {"subword_rows", "slice1"}
STEPPED = {"subword_steps", "slice1"}
PAIRS = {"subword_rows of pairs", "slice1"}
SHIFTED = {"shifted_grid", "shifted_rows"}
INTERLEAVED = Layout.of((17, 17), (9, 1))


@pytest.mark.parametrize(
    ("width", "source", "target", "expected"),
    [
        # elements of 16, 8 and 4 bytes, of 0, 1 and 2 dimensions
        (16, Layout.of((), ()), None, {"wide_rows", "slice1"}),
        (16, Layout.of((99,), (2,)), None, WIDE),
        (16, Layout.of((99, 2), (18, 1)), None, WIDE),
        (8, Layout.of((), ()), None, {"rows", "slice1"}),
        (8, Layout.of((99,), (3,)), None, TWOS - {"rows of pairs"}),
        (8, Layout.of((9, 500), (1600, 3)), None, TWOS),
        (4, Layout.of((), ()), None, {"rows", "slice1"}),
        (4, Layout.of((99,), (3,)), None, WORDS),
        (4, Layout.of((9, 500), (1600, 3)), None, PAIRED),
        # close neighbours in rows of 31 bytes, or less; of any width; forwards or backwards; nested
        (1, Layout.of((99, 31), (41, 1)), None, {*SUBWORD, "subword_rows of pairs", *SHIFTED}),
        (1, Layout.of((99, 30), (41, 1)), None, {*SUBWORD, "subword_rows of pairs"}),
        (2, Layout.of((99, 16), (41, -1), 40), None, {*SUBWORD, "subword_rows of pairs", *SHIFTED}),
        (2, Layout.of((99, 15), (41, -1), 40), None, {*SUBWORD, "subword_rows of pairs"}),
        (4, Layout.of((99, 8), (41, 2)), None, PAIRED | SHIFTED),
        (4, Layout.of((99, 7), (41, 2)), None, PAIRED),
        (8, Layout.of((99, 4), (41, -2), 40), None, TWOS | SHIFTED),
        (8, Layout.of((99, 3), (41, -2), 40), None, TWOS),
        (4, Layout.of((99, 8), (90, 3)), None, PAIRED),
        (4, Layout.of((99, 8), (90, 4)), None, PAIRED | SHIFTED),
        (4, Layout.of((99, 8), (90, -4), 40), None, PAIRED | SHIFTED),
        (4, Layout.of((99, 8), (90, 5)), None, PAIRED),
        (4, Layout.of((99, 8), (90, 0)), None, PAIRED),
        (4, Layout.of((99, 17), (20, 1)), Layout.of((99, 17), (34, 2)), PAIRED),
        (4, Layout.of((17, 17), (20, 1)), INTERLEAVED, PAIRED),
        # sub-word rows of 7 bytes, or two dimensions of as many, that follow each other
        (1, Layout.of((9, 9, 7), (999, 40, 5)), Layout.of((9, 9, 7), (190, 20, 1)), SUBWORD),
        (1, Layout.of((9, 9, 6), (999, 40, 5)), Layout.of((9, 9, 6), (190, 20, 1)), {"slice1"}),
        (1, Layout.of((9, 9, 7), (999, 40, 5)), None, SUBWORD | PAIRS),
        (1, Layout.of((9, 9, 6), (999, 40, 5)), None, PAIRS),
        (1, Layout.of((9, 4, 2), (999, 40, 5)), None, PAIRS | STEPPED),
        (1, Layout.of((9, 3, 2), (999, 40, 5)), None, STEPPED),
        (2, Layout.of((99, 4), (40, 5)), Layout.of((99, 4), (11, 1)), SUBWORD),
        (2, Layout.of((99, 3), (40, 5)), Layout.of((99, 3), (11, 1)), {"slice1"}),
        (2, Layout.of((9, 2, 2), (99, 40, 5)), None, PAIRS | STEPPED),
        (1, Layout.of((7,), (5,)), None, SUBWORD),
        (1, Layout.of((6,), (5,)), None, {"slice1"}),
        # a step in the target, where every second row at least shares no word, and short runs of neighbours
        (1, Layout.of((131,), (5,)), Layout.of((131,), (2,)), STEPPED),
        (1, Layout.of((9, 131), (999, 5)), Layout.of((9, 131), (262, 2)), STEPPED),
        (1, Layout.of((3, 3, 5), (99, 20, 3)), Layout.of((3, 3, 5), (30, 10, 2)), {"slice1"}),
        (1, Layout.of((3, 2, 5), (99, 20, 3)), Layout.of((3, 2, 5), (20, 10, 2)), STEPPED),
        # channels apart from each other in the source, four at most; few runs within a short step
        (1, Layout.of((99, 4), (40, 5)), Layout.of((99, 4), (5, 1)), STEPPED),
        (1, Layout.of((99, 5), (40, 5)), Layout.of((99, 5), (6, 1)), {"slice1"}),
        (1, Layout.of((2, 3), (9, 5)), Layout.of((2, 3), (5, 2)), STEPPED),
        (2, Layout.of((99, 3), (40, 1)), Layout.of((99, 3), (11, 1)), STEPPED),
        (1, Layout.of((99, 16), (40, 1)), Layout.of((99, 16), (31, 1)), {"subword_rows", *STEPPED}),
        (1, Layout.of((99, 17), (40, 1)), Layout.of((99, 17), (31, 1)), SUBWORD),
        # rows that are adjacent, or interleaved
        (1, Layout.of((2, 3), (9, 5)), Layout.of((2, 3), (3, 2)), {"slice1"}),
        (1, Layout.of((17, 17), (20, 1)), INTERLEAVED, {"slice1"}),
        # a dimension to spare for runs of one element, or none, or no need of it
        (1, Layout.of((2,) * 7, (1,) * 7), Layout.of((2,) * 7, [2**k for k in range(7, 0, -1)]), {"slice1"}),
        (1, Layout.of((2,) * 8, (1,) * 8), Layout.of((2,) * 8, [2**k for k in range(8, 0, -1)]), {"slice1"}),
        (1, Layout.of((2,) * 8, (5,) * 8), Layout.of((2,) * 8, [3**k for k in range(7, -1, -1)]), {"slice1"}),
    ],
)
def test_the_candidates_at_both_sides_of_each_condition(
    width: int, source: Layout, target: Layout | None, expected: set[str]
) -> None:
    assert applicable(source, target, width) == expected
    assert applicable(source, target, width, whole_vectors=False) == expected - SHIFTED


@pytest.mark.parametrize(
    ("width", "source", "target", "stripped"),
    [
        # more rows than a cache has lines, multiples of 256 bytes apart; then one condition each
        (4, Layout.of((64, 260), (1, 64)), None, True),
        (4, Layout.of((64, 260), (1, -64), 64 * 259), None, True),
        (4, Layout.of((64, 256), (1, 64)), None, False),
        (4, Layout.of((64, 260), (1, 96)), None, False),
        (4, Layout.of((64, 260), (1, 128)), None, True),
        (4, Layout.of((3, 260), (1_000_000, 64)), None, False),
        (4, Layout.of((64, 20, 20), (1, 64 * 20, 64)), None, True),
        (8, Layout.of((32, 257), (1, 32)), None, True),
        (16, Layout.of((16, 257), (1, 16)), None, True),
        # sub-word ones whose rows are whole words
        (2, Layout.of((128, 258), (1, 128)), None, True),
        (2, Layout.of((128, 257), (1, 128)), None, False),
        (2, Layout.of((128, 258), (1, 128)), Layout.of((128, 258), (259, 1)), False),
        (2, Layout.of((128, 258), (1, 128)), Layout.of((128, 258), (258, 1), 1), False),
        (2, Layout.of((128, 258), (1, 128)), Layout.of((128, 258), (260, 1), 2), True),
        (1, Layout.of((256, 260), (1, 256)), None, True),
        (1, Layout.of((256, 258), (1, 256)), None, False),
    ],
)
def test_rows_are_cut_into_strips_where_cache_lines_compete(
    width: int, source: Layout, target: Layout | None, stripped: bool
) -> None:
    names = {choice.name for choice in planned_copy(preferring(CPU), source, target, width).choices}
    assert any(name.endswith(" in strips") for name in names) is stripped
    if width in (4, 8):  # by lines read, whatever both are estimated to take
        assert ("rows" in names, "rows of pairs" in names) == (not stripped, not stripped)
    assert not any(name.endswith(" in strips") for name in applicable(source, target, width))  # on a GPU


@pytest.mark.parametrize(
    ("width", "source", "rows"),
    [
        # less in a run and its repeats than an invocation copies: 256 runs for each repeat, or all
        (4, Layout.of((512, 2, 3), (3, 0, 1)), (2, 2, 256, 3)),
        (4, Layout.of((300, 2, 3), (-3, 0, 1), 897), (1, 2, 300, 3)),
        (4, Layout.of((512, 5, 3), (4, 0, 1)), (2, 5, 256, 3)),
        (4, Layout.of((512, 6, 3), (4, 0, 1)), None),
        (8, Layout.of((512, 2, 3), (3, 0, 1)), (2, 2, 256, 3)),
        (8, Layout.of((512, 3, 3), (3, 0, 1)), None),
        (4, Layout.of((512, 2, 3), (3, 1, 1)), None),
        # one dimension more
        (4, Layout.of((3, 300, 2, 3), (2000, 3, 0, 1)), (3, 1, 2, 300, 3)),
        (4, Layout.of((2,) * 6 + (3,), (99, 48, 23, 11, 5, 0, 1)), (2, 2, 2, 2, 1, 2, 2, 3)),
        (4, Layout.of((2,) * 7 + (3,), (199, 99, 48, 23, 11, 5, 0, 1)), None),
    ],
)
def test_short_repeated_runs_are_copied_repeat_by_repeat(
    width: int, source: Layout, rows: tuple[int, ...] | None
) -> None:
    target, name = Layout.packed(source.sizes), "rows of pairs in strips"
    plan = planned_copy(preferring(CPU), source, target, width)
    found = [choice for choice in plan.choices if choice.name == name]
    assert name not in applicable(source, target, width)  # on a GPU
    assert len(found) == (rows is not None)
    for choice in found:
        (step,) = choice.steps
        assert isinstance(step, Dispatch)
        assert step.target.sizes == rows
        before, after = (random_bytes(side.stop * width, 1) for side in (source, target))
        expected = copied(before, source, after, target, width)
        run_plan(replace(plan, steps=choice.steps), before, after)
        check_bytes(after, expected)


PIXEL_ROWS = Layout.of((9, 32, 3), (128, -3, 1), 93)  # mirrored RGB, rows of 96 bytes
WHOLE, UNALIGNED = [Kernel.PIXELS], [Kernel.PIXELS, Kernel.SUBWORD_ENDS]


@pytest.mark.parametrize(
    ("source", "target", "width", "kernels"),
    [
        (PIXEL_ROWS, Layout.packed((9, 32, 3)), 1, WHOLE),
        (PIXEL_ROWS, Layout.packed((9, 32, 3), 1), 1, UNALIGNED),  # begins inside a block
        (PIXEL_ROWS, Layout.packed((9, 32, 3), 8), 2, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (112, 3, 1)), 1, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (104, 3, 1)), 1, UNALIGNED),  # every second row does
        # strided pixels, in rows that share no block, or every second of which share none
        (PIXEL_ROWS, Layout.of((9, 32, 3), (144, 4, 1), 1), 1, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (128, 4, 1)), 1, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (128, 4, 1), 1), 1, WHOLE),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (128, 4, 1), 2), 1, WHOLE * 2),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (129, 4, 1)), 1, WHOLE * 2),
        (PIXEL_ROWS, Layout.of((9, 32, 3), (160, 5, 1)), 1, None),
        (
            Layout.of((2, 9, 32, 3), (2000, 128, -3, 1), 93),
            Layout.of((2, 9, 32, 3), (1160, 129, 4, 1)),
            1,
            None,
        ),
        (Layout.of((16, 3), (3, 1)), Layout.of((16, 3), (4, 1)), 1, WHOLE),  # 64 bytes
        (Layout.of((15, 3), (3, 1)), Layout.of((15, 3), (4, 1)), 1, None),
        (Layout.of((64,), (4,)), Layout.of((64,), (2,)), 1, WHOLE),
        (Layout.of((64,), (5,)), Layout.of((64,), (2,)), 1, None),
        (Layout.of((64,), (0,)), Layout.of((64,), (4,), 3), 2, WHOLE),
        (Layout.of((64,), (0,)), Layout.of((64,), (5,)), 2, None),
        (Layout.of((3, 64), (0, 0)), Layout.of((3, 64), (208, 3)), 1, WHOLE),  # no repeated pixels
        (Layout.of((64, 3), (1, 100)), Layout.of((64, 3), (4, 1)), 1, WHOLE),
        (Layout.of((9, 31, 3), (128, -3, 1), 93), Layout.of((9, 31, 3), (96, 3, 1)), 1, UNALIGNED),
        (Layout.of((9, 22, 3), (128, -3, 1), 93), Layout.packed((9, 22, 3)), 1, UNALIGNED),  # 66 bytes
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
            Layout.packed((2,) * 7 + (64,)),  # rank 8 leaves no dimension for channels
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
        (Layout.of((65,), (3,)), Layout.packed((65,)), 1, UNALIGNED),
        (Layout.of((64,), (-3,), 189), Layout.packed((64,)), 2, WHOLE),
        (Layout.of((64,), (5,)), Layout.packed((64,)), 1, None),
        (Layout.of((64,), (0,)), Layout.packed((64,)), 1, None),
        # channels in planes of the source, and pixels' channels into planes of the target
        (Layout.of((64, 3), (1, 64)), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((65, 3), (1, 65)), Layout.packed((65, 3)), 1, UNALIGNED),
        (Layout.of((64, 3), (5, 64)), Layout.packed((64, 3)), 1, None),
        # no more than 12 blocks of all planes
        (Layout.of((64, 3), (4, 256)), Layout.packed((64, 3)), 1, WHOLE),
        (Layout.of((65, 3), (4, 260)), Layout.packed((65, 3)), 1, None),
        (Layout.of((65, 3), (3, 200)), Layout.packed((65, 3)), 1, UNALIGNED),
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
        (Layout.of((32, 2, 3), (3, 0, 1)), Layout.packed((32, 2, 3)), 1, WHOLE),  # each pixel twice
        (Layout.of((32, 2, 3), (3, 0, 1)), Layout.packed((32, 2, 3), 1), 1, None),  # begins inside a block
        (Layout.of((31, 2, 3), (3, 0, 1)), Layout.packed((31, 2, 3)), 1, None),  # ends inside one
        (Layout.of((32, 3, 3), (3, 0, 1)), Layout.packed((32, 3, 3)), 1, None),  # 9 bytes do not divide 48
        (Layout.of((32, 2, 3), (3, 0, 1)), Layout.of((32, 2, 3), (8, 3, 1)), 1, None),
        (Layout.of((32, 2, 3), (5, 0, 1)), Layout.packed((32, 2, 3)), 1, None),
        (Layout.of((32, 2, 3), (1, 0, 400)), Layout.packed((32, 2, 3)), 1, None),  # of planes
    ],
)
def test_pixels_are_copied_in_whole_blocks(
    source: Layout, target: Layout, width: int, kernels: list[Kernel] | None
) -> None:
    assert ("pixels" in applicable(source, target, width)) == bool(kernels)
    assert "pixels" not in applicable(source, target, width, whole_vectors=False)
    if kernels:
        dispatches = dispatches_of(planned_copy(preferring(GPU, Kernel.PIXELS), source, target, width))
        assert [step.kernel for step in dispatches] == kernels
        assert dispatches[0].source_binding.nbytes % 16 == dispatches[0].target_binding.nbytes % 16 == 0


TILES, WIDE_TILES = {"tiles"}, {"tiles", "wide_tiles"}
SUBWORD_TILES: set[str] = {"wide_tiles"}  # of elements of 1 and 2 bytes


@pytest.mark.parametrize(
    ("source", "target", "width", "expected"),
    [
        # whole vectors on both sides: rows of the source, its beginning, rows of the target, its beginning
        (Layout.of((64, 64), (1, 64)), None, 1, SUBWORD_TILES),
        (Layout.of((64, 64), (1, 72)), None, 1, set()),
        (Layout.of((64, 64), (1, 80)), None, 1, SUBWORD_TILES),
        (Layout.of((64, 64), (1, 80), 8), None, 1, set()),
        (Layout.of((64, 64), (1, 80), 16), Layout.packed((64, 64), 1), 1, set()),
        (Layout.of((64, 72), (1, 80)), None, 1, set()),
        (Layout.of((64, 64), (1, 80)), Layout.of((64, 64), (72, 1)), 1, set()),
        (Layout.of((64, 64), (1, 78)), None, 4, TILES),
        (Layout.of((64, 64), (1, 76)), None, 4, WIDE_TILES),
        (Layout.of((64, 63), (1, 65)), None, 16, WIDE_TILES),
        # of dimensions as short as can be
        (Layout.of((2, 64), (1, 16)), None, 2, SUBWORD_TILES),
        (Layout.of((2, 2), (1, 9)), None, 4, TILES),
        (Layout.of((2, 9), (1, 9)), None, 16, WIDE_TILES),
        # neighbours backwards, and every second and fourth of them
        (Layout.of((64, 64), (-1, 80), 63), None, 4, WIDE_TILES),
        (Layout.of((64, 64), (-1, 80), 64), None, 4, TILES),
        (Layout.of((64, 64), (2, 160)), None, 4, WIDE_TILES),
        (Layout.of((64, 64), (2, 160)), None, 1, SUBWORD_TILES),
        (Layout.of((64, 64), (-2, 160), 126), None, 4, WIDE_TILES),
        (Layout.of((64, 64), (4, 256)), None, 2, SUBWORD_TILES),
        (Layout.of((64, 64), (3, 192)), None, 4, set()),
        (Layout.of((64, 64), (5, 320)), None, 4, set()),
        (Layout.of((8, 8), (2, 17), 100), None, 4, TILES),
        # no nearer along rows, and rows of neighbours in the target
        (Layout.of((8, 8), (4, 3), 100), None, 4, set()),
        (Layout.of((8, 8), (4, 5), 100), None, 4, TILES),
        (Layout.of((8, 8), (4, 0), 100), None, 4, WIDE_TILES),
        (Layout.of((8, 8), (1, 9)), Layout.of((8, 8), (16, 2)), 4, set()),
        (Layout.of((9, 8, 4, 9), (1, 1000, 9, 36), 100), None, 8, TILES),
    ],
)
def test_permuted_sources_are_copied_by_tiles(
    source: Layout, target: Layout | None, width: int, expected: set[str]
) -> None:
    assert applicable(source, target, width) & WIDE_TILES == expected
    assert applicable(source, target, width, whole_vectors=False) & WIDE_TILES == expected - {"wide_tiles"}


@pytest.mark.parametrize(
    ("source", "target", "width", "applies"),
    [
        # words of four elements on both sides: their beginnings, sizes, and all strides but those along words
        (Layout.of((8, 12), (1, 8)), Layout.packed((8, 12)), 1, True),
        (Layout.of((8, 12), (1, 8)), Layout.packed((8, 12)), 2, True),
        (Layout.of((8, 12), (1, 8)), Layout.packed((8, 12)), 4, False),
        (Layout.of((8, 12), (1, 8), 4), Layout.packed((8, 12), 12), 1, True),
        (Layout.of((8, 12), (1, 8), 2), Layout.packed((8, 12)), 1, False),
        (Layout.of((8, 12), (1, 8)), Layout.packed((8, 12), 2), 1, False),
        (Layout.of((6, 12), (1, 8)), Layout.packed((6, 12)), 1, False),
        (Layout.of((8, 10), (1, 8)), Layout.of((8, 10), (12, 1)), 1, False),
        (Layout.of((8, 12), (1, 10)), Layout.packed((8, 12)), 1, False),
        (Layout.of((8, 12), (1, 8)), Layout.of((8, 12), (14, 1)), 1, False),
        (Layout.of((8, 12), (1, -8), 88), Layout.packed((8, 12)), 1, True),
        (Layout.of((8, 12), (-1, 8), 7), Layout.packed((8, 12)), 1, False),
        (Layout.of((8, 12), (2, 16)), Layout.packed((8, 12)), 1, False),
        # rows in the target at most a cache line apart
        (Layout.of((8, 64), (1, 8)), Layout.packed((8, 64)), 1, True),
        (Layout.of((8, 64), (1, 8)), Layout.of((8, 64), (68, 1)), 1, False),
        (Layout.of((8, 32), (1, 8)), Layout.packed((8, 32)), 2, True),
        (Layout.of((8, 36), (1, 8)), Layout.packed((8, 36)), 2, False),
        # tiles add three dimensions
        (Layout.of((3, 3, 3, 4, 4), (16, 100, 400, 1, 4)), Layout.packed((3, 3, 3, 4, 4)), 1, True),
        (
            Layout.of((3, 3, 3, 3, 4, 4), (16, 100, 400, 1600, 1, 4)),
            Layout.packed((3,) * 4 + (4, 4)),
            1,
            False,
        ),
    ],
)
def test_permuted_words_are_copied_by_register_tiles(
    source: Layout, target: Layout, width: int, applies: bool
) -> None:
    assert ("register_tiles" in applicable(source, target, width)) == applies


def test_register_tiles_of_an_invocation_are_neighbours_in_the_target() -> None:
    """And those of consecutive invocations in the source: up to 16 tiles on CPUs, and 2 on GPUs."""
    source = Layout.of((40, 24, 4, 4), (4, 640, 1, 160))
    for profile, each in ((CPU, 8), (GPU, 2)):
        step = only_dispatch(planned_copy(preferring(profile, Kernel.REGISTER_TILES), source, width=1))
        assert step.kernel is Kernel.REGISTER_TILES
        assert step.share.each == each
        assert step.target.strides[-3:] == (16, 4, 1)
        assert step.source.strides[-4:] == (4, 640, 1, 160)


def test_tiles_have_the_sources_neighbours_before_last() -> None:
    """And the target's last."""
    source = Layout.of((9, 8, 4, 9), (2, 1000, 9, 36), 100)
    for kernel, width in ((Kernel.TILES, 8), (Kernel.WIDE_TILES, 16)):
        step = only_dispatch(planned_copy(preferring(GPU, kernel), source, width=width))
        assert step.kernel is kernel
        assert step.source.strides[-2:] == (2, 36)
        assert step.target.strides[-1] == 1


@pytest.mark.parametrize(
    ("sizes", "strides", "axis"),
    [((16, 16, 64), (4, 1, 400), 1), ((16, 16, 64), (1, -2, 400), 0), ((16, 32, 64), (1, -1, 400), 1)],
)
def test_tiles_have_the_nearest_dimension_and_then_the_longest(
    sizes: tuple[int, ...], strides: tuple[int, ...], axis: int
) -> None:
    source = Layout.of(sizes, strides, 100)
    step = only_dispatch(planned_copy(preferring(GPU, Kernel.TILES), source))
    assert abs(step.source.strides[-2]) == abs(strides[axis])
    assert step.source.sizes[-2] == sizes[axis]


def test_channels_apart_in_the_output_are_no_pixels() -> None:
    """Two rows of every second element, 32 elements apart: two channels, were they adjacent."""
    source, target = Layout.of((2, 16), (1, 2)), Layout.of((2, 16), (32, 2))
    kernels = applicable(source, target, 2)
    assert "pixels" not in kernels
    assert "slice1" in kernels

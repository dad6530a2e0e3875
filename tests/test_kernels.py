"""Each kernel by name, against NumPy and its reference implementation, on every byte of both buffers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest
from changed_modules import clamped_module
from helpers import (
    GUARD,
    WIDTHS,
    Bytes,
    check_bytes,
    copied,
    default_tier,
    on_one_adapter,
    random_bytes,
    whole_words,
)
from hypothesis import find, given
from planning import USUAL, dispatches_of, only_dispatch, planned_by_kernel, planned_copy, preferring
from reference.plans import run_plan
from running import Compile, Limit, counted, run_on_gpu, run_side_by_side, side_by_side
from strategies import Case, cases
from trials import Trial, no_change, of_the_tier

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Limits, Profile
from wgslice.plans.steps import UNIT_GRIDS

MIN_SUBWORD_NBYTES = 7  # of a row of sub-word elements, so that it holds a word wherever it begins


# Launch configurations; the tests decide what they prefer.
PROFILES = [
    CPU,
    GPU,
    replace(CPU, words_each=(), subword_words_each=(), blocks_each=1, run_words=1),
    replace(GPU, workgroup_size=8, words_each=(3,), subword_words_each=(3,), run_words=3, least_pieces=2),
]
PROFILE_IDS = ["cpu", "gpu", "cpu, one word", "gpu, small"]

# What costs next to nothing: together, kernels of which no copy may take two.
PREFERRED: list[tuple[list[Kernel], bool | None, bool]] = [  # kernels, whether paired, buffer copies
    ([Kernel.SLICE1], None, False),
    ([Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SUBWORD_ROWS], False, False),
    ([Kernel.ROWS, Kernel.SUBWORD_ROWS], True, False),
    ([Kernel.SHIFTED_ROWS], None, False),
    ([Kernel.SHIFTED_GRID], None, False),
    ([*UNIT_GRIDS], None, False),
    ([Kernel.SUBWORD_STEPS], None, False),
    ([Kernel.PIXELS, Kernel.TILES], None, False),
    ([Kernel.WIDE_TILES], None, False),
    ([Kernel.REGISTER_TILES], None, False),
    ([], None, True),
]


def small_limits(alignment: int, profile: Profile) -> Limits:
    """Limits so small that small tensors cross them."""
    return Limits(
        binding_nbytes=4 * alignment, binding_alignment_nbytes=alignment, workgroups=2, profile=profile
    )


def plans(case: Case, limits: Limits) -> list[wg.Plan]:
    """The plans where each kernel in turn costs least, by each launch configuration, once each.

    For these limits, and where one of them costs least, for small ones.
    """
    found: dict[Any, wg.Plan] = {}
    for number, (kernels, paired, copies) in enumerate(PREFERRED, case.seed):
        profile = preferring(PROFILES[number % len(PROFILES)], *kernels, paired=paired, copies=copies)
        small = small_limits(limits.binding_alignment_nbytes, profile)
        for chosen in (replace(limits, profile=profile), *([] if number % len(PREFERRED) else [small])):
            plan = planned_copy(chosen, case.source, case.output, case.width)
            found.setdefault(plan.steps, plan)
    return list(found.values())


@given(cases())
def test_reference_implementations_equal_numpy(case: Case) -> None:
    source, target = case.buffers()
    expected = case.expected(source, target)
    for plan in plans(case, USUAL):
        result = target.copy()
        run_plan(plan, source, result)
        check_bytes(result, expected)


@pytest.mark.slow
def test_each_strategy_to_copy_is_drawn() -> None:
    """The property tests run each kernel, by one dimension and by two, and buffer copies of rows."""
    drawn: Counter[str] = Counter()
    strategies = [*(kernel.value for kernel in CONDITIONS), *("rows of pairs", "subword_rows of pairs")]
    strategies += ["buffer copies", "buffer copy"]

    def all_are_drawn(case: Case) -> bool:
        steps = [step for plan in plans(case, USUAL) for step in plan.steps]
        drawn.update({strategy_of(step) for step in steps})
        return all(drawn[name] >= 3 for name in strategies)

    find(cases(), all_are_drawn)  # raises where 2,000 examples do not


def strategy_of(step: Any) -> str:
    """The kernel, and whether it takes two dimensions as a row; or buffer copies."""
    name: str = step.name.lstrip("0123456789 ")
    return (
        name
        if "cop" in name
        else name + " of pairs" * (step.share.paired and step.kernel in (Kernel.ROWS, Kernel.SUBWORD_ROWS))
    )


@pytest.mark.every_adapter
@given(case=cases())
def test_kernels_equal_numpy(device: wg.Device, case: Case) -> None:
    source, target = case.buffers()
    runs = [(plan, source, target) for plan in plans(case, device.limits)]
    expected = [case.expected(source, target)] * len(runs)
    check_bytes(run_side_by_side(device, runs), side_by_side(device, expected)[0])


def around(*numbers: int) -> list[int]:
    """These numbers and their neighbours, from 1 on."""
    return sorted({max(number + d, 1) for number in numbers for d in (-1, 0, 1)})


def sides(
    width: int,
    sizes: tuple[int, ...],
    strides: tuple[int, ...],
    offset: int = 0,
    *,
    to: tuple[int, ...] | None = None,
    at: int = 0,
) -> tuple[int, Layout, Layout]:
    """The width and layouts of a copy `to` some strides, or to a packed target, from its element `at`."""
    target = Layout.packed(sizes, at) if to is None else Layout.of(sizes, to, at)
    return width, Layout.of(sizes, strides, offset), target


CONDITIONS = {
    # for each kernel: widths, and layouts at the edges of what it is chosen for
    Kernel.SLICE1: [
        *(sides(width, (5, 7), (-8, 1), 40, to=(9, 1), at=3) for width in WIDTHS),
        *(sides(width, (2, 3), (9, 2), to=(3, 2), at=1) for width in WIDTHS),
        (1, Layout.packed((9,)), Layout.of((9,), (5,), 2)),
        (2, Layout.packed((9,)), Layout.of((9,), (3,), 1)),
        sides(4, (), (), at=3),
        sides(16, (2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36),
    ],
    Kernel.ROWS: [
        *(sides(4, (n,), (2,), 1, at=3) for n in around(1, 4, 32, 64, 128, 1024)),
        *(sides(4, (9, n), (n + 3, -1), n) for n in around(1, 8, 32, 33)),
        *(sides(width, (3, 70), (-99, 1), 200, to=(71, 1)) for width in (4, 8)),
        sides(4, (2, 3, 5, 40), (1000, 200, -41, 1), 200),
        sides(8, (2,) * 7 + (33,), (2000, 1000, -500, 250, 125, -60, 33, 1), 560),
        sides(4, (40, 3), (0, -1), 2, to=(5, 1)),
        sides(4, (), (), at=3),
        sides(8, (5,), (0,), 3, to=(2,), at=1),
        # short runs, two dimensions a row
        *(sides(4, (n,), (3,), 1, at=3) for n in around(1, 16, 1024)),
        *(sides(width, (70, 3), (3, -1), 2, to=(4, 1)) for width in (4, 8)),
        *(sides(4, (50, n), (20, -1), 20) for n in (2, 3, 15, 16, 17, 20)),
        sides(4, (), (), at=3),
        sides(4, (5, 2, 2, 3), (100, -40, 9, 2), 40, to=(12, 6, 3, 1)),
        *(sides(4, (n, 3), (4, 1), 1, to=(5, 1)) for n in around(2, 11, 22, 43)),
        sides(4, (5, 7, 3), (50, -4, -1), 40, to=(40, 4, 1), at=1),
        sides(8, (9, 2, 2, 3), (100, -40, 9, 2), 40, to=(12, 6, 3, 1)),
    ],
    Kernel.WIDE_ROWS: [
        *(sides(16, (n,), (2,), 1, at=3) for n in around(1, 4, 8, 16, 33, 64)),
        *(sides(16, (9, n), (n + 3, -1), n) for n in around(1, 8, 9, 32)),
        sides(16, (2, 3, 5, 20), (500, 100, -21, 1), 100),
        sides(16, (2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36),
        sides(16, (), (), at=3),
        sides(16, (40, 3), (0, -1), 2, to=(5, 1)),
    ],
    Kernel.WORD_GRID: [
        *(sides(4, (n,), (2,), 1, at=3) for n in around(1, 64, 512, 1024)),
        *(sides(4, (n, 3), (4, -1), 2, at=1) for n in around(1, 16, 128, 256)),
        *(sides(4, (9, n), (n + 3, -1), n) for n in around(1, 8, 33, 64, 520)),
        *(sides(4, (70, n), (n, 2), to=(n + 1, 1)) for n in (1, 2, 3, 17, 40)),
        sides(4, (2, 3, 5, 40), (1000, 200, -41, 1), 200),
        sides(4, (90, 2, 2), (4, -2, 1), 2, at=1),  # the longest has the rows
        sides(4, (40, 3), (0, -1), 2, to=(5, 1)),
        sides(4, (9, 7), (1, 9), to=(21, 3), at=2),
        sides(4, (), (), at=3),
        sides(4, (2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36),
    ],
    Kernel.WIDE_GRID: [
        *(sides(16, (n,), (2,), 1, at=3) for n in around(1, 64, 256)),
        *(sides(16, (9, n), (n + 3, -1), n) for n in around(1, 8, 33, 256)),
        *(sides(16, (n, 5), (7, 1), 1, to=(6, 1)) for n in around(8, 32)),
        sides(16, (2, 3, 5, 20), (500, 100, -21, 1), 100),
        sides(16, (2,) * 8, (128, 64, -32, 16, 8, -4, 2, 1), 36),
        sides(16, (), (), at=3),
    ],
    Kernel.SHIFTED_GRID: [
        # rows of whole blocks: every start within a block of the source, forwards and backwards
        *(
            sides(width, (n,), (step,), (n - 1) * (step < 0) + o, at=p)
            for width in (1, 2, 4, 8)
            for step in (1, -1)
            for n in (32 // width, 4096 // width, 4112 // width)
            for o in range(16 // width)
            for p in (0, 16 // width)
        ),
        *(
            sides(width, (n,), (step,), (n - 1) * 4 * (step < 0) + o)
            for width in (1, 2, 4, 8)
            for step in (2, -2, 4, -4)
            for n in (32 // width, 4112 // width)
            for o in (0, 1, 16 // width - 1)
        ),
        # rows apart from each other, whose blocks differ in each, short and long
        *(
            sides(width, (m, n), (n + gap, step), n, to=(n + 16 // width, 1))
            for width in (1, 4)
            for m, n in ((70, 32 // width), (9, 144 // width), (3, 4128 // width))
            for gap in (1, 5)
            for step in (1, -1)
        ),
        sides(2, (2, 3, 5, 40), (2000, 400, -41, 1), 170, to=(720, 240, 48, 1), at=8),
        sides(4, (2,) * 7 + (8,), (1280, 640, -320, 160, 80, -40, 20, -1), 408),
    ],
    Kernel.ROW_ENDS: [
        # rows that are nothing but ends
        *(
            sides(width, (n,), (step,), (n - 1) * (step < 0) + o, at=p)
            for width in (1, 2, 4, 8)
            for step in (1, -1)
            for n in (16 // width, 30 // width)
            for o in (0, 1, 16 // width - 1)
            for p in range(1, 16 // width)
            if p + n < 32 // width
        ),
        *(sides(1, (7, 17), (20, 1), 2, to=(17 + gap, 1), at=8) for gap in (31, 32)),
    ],
    Kernel.SHIFTED_ROWS: [
        # one row: every start within a block on either side, forwards and backwards
        *(
            sides(width, (n,), (step,), (n - 1) * 4 * (step < 0) + o, at=p)
            for width in (1, 2, 4, 8)
            for step, places in (
                (1, range(16)),
                (-1, range(16)),
                *((s, (0, 1, 7, 15)) for s in (2, -2, 4, -4)),
            )
            for n in (31 // width + 1, 150 // width)
            for o in places
            for p in places
            if max(o, p) * width < 16
        ),
        # packed rows, whose blocks are shared, of the shortest length and others
        *(
            sides(width, (7, n), (n + 5, step), 5 * n, at=p)
            for width in (1, 2, 4, 8)
            for n in (31 // width + 1, 33 // width + 1, 47 // width + 1, 48 // width, 400 // width)
            for p in (0, 1, 16 // width - 1)
            for step in (1, -1, 2, -4)
        ),
        # rows apart from each other, by less than a block and by more; some end where the next begins
        *(
            sides(width, (5, n), (n + 2, 1), to=(n + gap, 1), at=3)
            for width, n in ((1, 31), (1, 40), (2, 17), (4, 9))
            for gap in (*range(18 // width + 1), 40)
        ),
        sides(2, (2, 3, 5, 40), (2000, 400, -41, 1), 170, to=(700, 220, 44, 1), at=2),
        sides(4, (2,) * 7 + (9,), (1280, 640, -320, 160, 80, -40, 20, -1), 408),
        # rows that begin and end with blocks, and read them from anywhere
        *(sides(4, (6, 16), (19, 1), o, to=(20, 1), at=4) for o in range(5)),
        # rows of whole blocks, of which only the first begins with one
        sides(1, (5, 64), (70, 1), 3, to=(72, 1)),
    ],
    Kernel.SUBWORD_ROWS: [
        # one row: every start within a word on either side, every step with code of its own, and one without
        *(
            sides(width, (n,), (step,), (n - 1) * 3 * (step < 0) + o, at=p)
            for width in (1, 2)
            for step in (1, -1, 2, -2, 3, -3)
            for n in (7, 8, 16, 17, 130)
            for o in range(4 // width)
            for p in range(4 // width)
        ),
        # packed rows, whose words are shared, of the shortest length and others
        *(
            sides(1, (7, n), (n + 5, step), 2 * n, at=p)
            for n in (7, 8, 9, 10, 11, 63, 131)
            for p in range(4)
            for step in (1, -1)
        ),
        *(sides(2, (7, n), (n + 5, 1), at=p) for n in (3, 4, 5, 65) for p in range(2)),
        # rows apart from each other, by less than a word and by more; some end where the next begins
        *(sides(1, (5, n), (n + 2, 1), to=(n + gap, 1), at=3) for n in (7, 10) for gap in range(9)),
        *(sides(2, (5, 3), (4, -1), 2, to=(3 + gap, 1), at=1) for gap in range(5)),
        sides(1, (2, 3, 5, 9), (400, 100, -10, 1), 50, to=(151, 50, 10, 1), at=2),
        sides(1, (2,) * 7 + (9,), (1280, 640, -320, 160, 80, -40, 20, 2), 400, at=3),
        sides(1, (9,), (0,), 3, at=1),
        # short runs, two dimensions a row: pixels of 3, 4 and other numbers of channels
        *(
            sides(width, (n, run), (run + 1, step), 2 * run, at=p)
            for width in (1, 2)
            for n in around(5, 11, 43)
            for run in (2, 3, 5)
            for step in (1, -1, 2, -2)
            for p in range(4 // width)
        ),
        *(
            sides(1, (4, 9, 3), (99, -4, step), 40, to=(27 + gap, 3, 1), at=2)
            for gap in range(6)
            for step in (1, -1)
        ),
        sides(2, (3, 2, 5, 3), (99, 40, 6, 2), to=(40, 17, 3, 1), at=1),
    ],
    Kernel.TILES: [
        *(
            sides(width, (m, n), (1, m + 3), 2, at=1)
            for width in (4, 8, 16)
            for m in (2, 7, 8, 9, 33, 65)
            for n in (2, 8, 31, 32, 33)
        ),
        sides(4, (5, 40, 35), (1600, -1, -45), 1600, to=(1500, 36, 1), at=3),
        sides(8, (20, 3, 2, 17), (1, 1000, 500, 21)),
        sides(16, (9,) + (2,) * 6 + (9,), (1, *(81 * 2**k for k in range(6)), 9)),
    ],
    Kernel.PIXELS: [
        # one row of pixels, with all or some of the source's channels, in both directions and from any byte
        *(
            sides(
                width,
                (n, channels),
                (step, across),
                o + (n * 4 if step < 0 else 0) + 3 * (across < 0),
                at=16 // width,
            )
            for width in (1, 2)
            for channels, steps, directions in (
                (2, (3, 4, -2, -4), (1, -1)),
                (3, (3, -3, 4, -4), (1, -1)),
                (3, (3,), (0, -1)),
                (4, (4, -4), (1, -1)),
            )
            for step in steps
            for across in directions
            for n in (32, 48, 80)
            for o in (0, 1, 5, 15)
        ),
        # repeated
        *(
            sides(
                width,
                (2, n, repeats, channels),
                (1999, step, 0, across),
                o + n * 4 * (step < 0) + 3 * (across < 0),
                at=16 // width,
            )
            for width, repeats, channels in ((1, 2, 3), (1, 8, 2), (2, 2, 3))
            for step, across in ((3, 1), (-4, -1))
            for n, o in ((16, 1), (40, 0))
        ),
        # one channel of three
        *(
            sides(width, (n,), (step,), o + (n * 3 if step < 0 else 0))
            for width in (1, 2)
            for step in (3, -3)
            for n in (64, 80, 144)
            for o in (0, 1, 15)
        ),
        # rows
        sides(1, (5, 2, 16, 3), (400, 200, -3, 1), 50, to=(160, 64, 3, 1), at=16),
        sides(1, (7, 32, 3), (101, 4, -1), 2),
        sides(2, (9, 40), (130, -3), 120, to=(48, 1), at=8),
        # rows that begin and end inside of blocks: shared with the next, or apart from it
        *(
            sides(
                width,
                (3, n, channels),
                (n * 4 + 7, step, across),
                4 * n * (step < 0) + 3 * (across < 0) + o,
                to=(n * channels + gap, channels, 1),
                at=p,
            )
            for width in (1, 2)
            for channels, step, across in ((3, 3, -1), (3, -3, 1), (2, -4, 1), (4, 4, -1), (3, 4, 1))
            for n in (22, 41)
            for o, p in ((0, 1), (5, 0), (1, 7), (3, 15))
            for gap in (0, 1, 40)
        ),
        *(sides(1, (3, n), (300, 3), 1, to=(n + gap, 1), at=5) for n in (65, 90) for gap in (0, 9)),
        # channels in planes of the source, interleaved, and out of pixels into planes
        *(
            sides(
                width,
                (2, n, channels),
                (2000, step, 400 * sign),
                1600 * (sign < 0) + n * (step < 0) + o,
                at=p,
            )
            for width in (1, 2)
            for channels in (2, 3, 4)
            for step in (1, -1)
            for sign in (1, -1)
            for n, o, p in ((32, 0, 0), (64, 3, 16), (70, 1, 3))
        ),
        # the most that a group reads: of planes whose pixels are apart
        *(
            sides(1, (2, 70, channels), (2000, step, 400), 281, at=3)
            for channels, step in ((3, 3), (4, 2), (3, -3))
        ),
        *(
            sides(
                width,
                (2, channels, n),
                (500, across, step),
                o + 4 * n * (step < 0) + 3 * (across < 0),
                to=(1008, 160, 1),
                at=16,
            )
            for width in (1, 2)
            for channels, step, across in ((3, 3, 1), (3, -3, 1), (4, 4, -1), (2, 2, 1), (3, 4, 1))
            for n in (64, 80)
            for o in (0, 1, 13)
        ),
        # strided in the target, which keeps what is between: some channels, every second element, fills
        *(
            sides(width, (n, channels), (step, across), 300, to=(target_step, channels > 1), at=p)
            for width, channels, step, across, target_step, p in (
                (1, 1, 1, 0, 2, 15),
                (1, 1, 0, 0, 3, 1),
                (1, 3, 4, -1, 4, 0),
                (2, 1, -4, 0, 4, 7),
                (2, 2, 3, 1, 3, 4),
                (2, 3, -3, -1, 4, 1),
            )
            for n in (32, 47)
        ),
        # in rows that share no block, at the same place of blocks or not, and out of planes
        *(
            sides(
                width,
                (3, n, channels),
                (200, channels, 1),
                3,
                to=(n * target_step + gap, target_step, 1),
                at=3,
            )
            for width, channels, target_step in ((1, 2, 3), (2, 3, 4))
            for n, gap in ((32, 16), (32, 17), (41, 17))
        ),
        sides(1, (3, 40), (60, 1), 5, to=(96, 2), at=3),
        sides(2, (3, 40), (0, 0), 5, to=(131, 3), at=3),
        sides(1, (2, 70, 2), (2000, -1, 400), 281, to=(300, 3, 1), at=1),
    ],
    Kernel.SUBWORD_ENDS: [
        # rows that are nothing but ends
        *(
            sides(width, (7, n, 3), (60, -3, 1), 40, at=p)
            for width in (1, 2)
            for n in (2, 3, 5)
            for p in (1, 2, 9, 15)
            if all(
                (p + k * 3 * n + 3 * n) * width // 16 <= -(-(p + k * 3 * n) * width // 16) for k in range(7)
            )
        ),
    ],
    Kernel.REGISTER_TILES: [
        # one tile and several, beside and below each other, as many per invocation as divide them
        *(
            sides(width, (m, n), (1, m + 4), 4, at=4 * p)
            for width in (1, 2)
            for m in (4, 8, 20, 64)
            for n in (4, 12, 16, 32)
            for p in (0, 1)
        ),
        # columns backwards and broadcast, rows apart in the target
        *(
            sides(width, (m, n), (1, step), 4 * n - step * (n - 1) * (step < 0), to=(n + 4, 1), at=8)
            for width in (1, 2)
            for step in (0, -40, 100)
            for m, n in ((4, 8), (36, 12))
        ),
        # in more dimensions
        *(sides(width, (3, 5, 8, 4), (8, 400, 1, 40), to=(400, 40, 4, 1)) for width in (1, 2)),
        sides(1, (2, 5, 8, 4, 12), (4000, -160, 480, 1, 40), 640),
    ],
    Kernel.WIDE_TILES: [
        # the shortest rows of whole vectors, and sides just below, at and above a tile's
        *(
            sides(width, (m, n), (1, m + -m % per_vector + per_vector), per_vector, at=per_vector)
            for width in WIDTHS
            for per_vector in (16 // width,)
            for m in (2, 3, 5, 16, 31, 32, 33, 64, 65, 70)
            for n in (max(per_vector, 2), 2 * per_vector, 64, 80)
        ),
        # every second and fourth neighbour, and backwards, whose last vectors may be parts
        *(
            sides(width, (m, n), (step, stride), per_vector + (m - 1) * -step * (step < 0), at=per_vector)
            for width in WIDTHS
            for per_vector in (16 // width,)
            for step in (-1, 2, -2, 4, -4)
            for m in (2, 5, 16, 33)
            for n in (max(per_vector, 2), 48)
            for stride in (160,)
        ),
        *(
            sides(
                width,
                (3, 40, 5, 48),
                (9600, 1, 1920, 40 + -40 % per_vector),
                to=(20_000, 400, 64, 1),
                at=per_vector,
            )
            for width in WIDTHS
            for per_vector in (16 // width,)
        ),
        sides(4, (9,) + (2,) * 6 + (8,), (1, *(12 * 8 * 2**k for k in range(6)), 12)),
    ],
    Kernel.SUBWORD_STEPS: [
        # a channel, or some, at every place of a word
        *(
            sides(width, (n,), (stride,), 40, to=(step,), at=o)
            for width in (1, 2)
            for step in (2, 3, 4, 5, 16 // width, 16 // width + 1, 50)
            for n in (2, 3, 5, 70)
            for o in range(4)
            for stride in (0, 3 - step % 3)
        ),
        *(
            sides(width, (n, run), (sign * (run + 1), 1), 300, to=(run + gap, 1), at=o)
            for width in (1, 2)
            for run in (2, 3, 5, 9)
            for gap in (1, 2, 4)
            for n in (2, 31)
            for o in range(4)
            for sign in (1, -1)
        ),
        # a repeated run, as long as its step
        *(
            sides(width, (n, run), (0, 1), 3, to=(run, 1), at=o)
            for width in (1, 2)
            for run in (2, 3)
            for n in (2, 5)
            for o in range(4)
        ),
        # rows that share no word: as far apart as need be, or at the same place of words
        *(
            sides(width, (3, 5, 7), (50, -9, 1), 60, to=(77 + apart, 16, 2), at=o)
            for width in (1, 2)
            for apart in (3, 9)
            for o in range(4)
        ),
        sides(1, (3, 5, 2), (50, 9, 1), to=(20, 4, 1), at=1),
        sides(2, (3, 5), (50, 9), to=(10, 2), at=1),
        sides(1, (2,) * 6, (64, -32, 16, 8, -4, 2), 36, to=(405, 189, 81, 36, 15, 6), at=1),
    ],
}


@pytest.mark.parametrize("profile", default_tier(PROFILES, PROFILE_IDS, 2))
@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
def test_each_kernel_at_the_edges_of_its_conditions(
    device: wg.Device, kernel: Kernel, profile: Profile
) -> None:
    check_conditions(device, kernel, profile)


def conditions(kernel: Kernel) -> Iterator[tuple[int, Layout, Layout, bool]]:
    """Widths, layouts, and whether two dimensions are a row: both, where both may be."""
    for width, source, target in CONDITIONS[kernel]:
        for paired in rows_of(kernel, width, target):
            yield width, source, target, paired


def rows_of(kernel: Kernel, width: int, target: Layout) -> list[bool]:
    """Whether rows may be the last two dimensions of a target, or the last one."""
    if kernel is Kernel.ROWS:
        return [False, True] if target.rank >= 2 else [False]
    if kernel is not Kernel.SUBWORD_ROWS:
        return [False]
    packed = target.strides[-2:] == (target.sizes[-1], 1)
    nbytes = {False: target.sizes[-1] * width, True: prod(target.sizes[-2:]) * width}
    return [
        paired for paired in ([False, True] if packed else [False]) if nbytes[paired] >= MIN_SUBWORD_NBYTES
    ]


def check_conditions(device: wg.Device, kernel: Kernel, profile: Profile) -> None:
    """Run a kernel's reference implementation on all that its conditions list, against NumPy.

    The kernel itself runs those of the pipelines that the tier has.
    """
    limits = replace(device.limits, profile=profile)
    runs: dict[Trial, tuple[Bytes, Bytes, Bytes]] = {}
    for number, (width, source_layout, target_layout, paired) in enumerate(conditions(kernel)):
        source = random_bytes(whole_words(source_layout.stop * width) + GUARD, number)
        target = random_bytes(whole_words(target_layout.stop * width) + GUARD, number + 1000)
        bound = source.size // 16 * 16, target.size // 16 * 16  # beyond the layouts
        sides = source_layout, target_layout
        plan = planned_by_kernel(kernel, *sides, width, limits, bound, paired=paired, completed=True)
        expected = copied(source, source_layout, target, target_layout, width)
        assert not np.array_equal(expected, target)
        reference_result = target.copy()
        run_plan(plan, source, reference_result)
        check_bytes(reference_result, expected)
        runs[Trial(plan, str(number), *bound, no_change)] = source, target, expected
    taken = [(trial.plan, *runs[trial]) for trial in of_the_tier(runs)]
    found = run_side_by_side(device, [(plan, source, target) for plan, source, target, _ in taken])
    check_bytes(found, side_by_side(device, [expected for *_, expected in taken])[0])


@pytest.mark.slow  # compiles every kernel anew
@pytest.mark.parametrize(
    "profile", [pytest.param(CPU, id="cpu", marks=pytest.mark.deep), pytest.param(GPU, id="gpu")]
)
@pytest.mark.parametrize(
    "kernel", [kernel for kernel in CONDITIONS if kernel is not Kernel.SLICE1], ids=lambda k: k.value
)
@on_one_adapter  # adapters differ in what they read there, but none does in what is clamped
def test_no_kernel_needs_what_is_out_of_bounds(
    device: wg.Device, compile_modules: Compile, kernel: Kernel, profile: Profile
) -> None:
    """Adapters differ in what they read there."""
    compile_modules(clamped_module)
    check_conditions(device, kernel, profile)


def test_a_kernel_is_parsed_once(device: wg.Device, limit: Limit, compile_modules: Compile) -> None:
    """However many sets of constants it is compiled with."""
    compile_modules(clamped_module)
    limit(profile=preferring(CPU, Kernel.ROWS))
    modules = device.pipelines.module
    before = modules.cache_info().misses
    with counted(device.wgpu_device, ["create_compute_pipeline"]) as counts:
        for dtype in ("u4", "u8"):
            for size in (9, 100):
                view = wg.zeros(2 * size, dtype, device=device)[::2]
                assert wg.explain(view).steps[0].name == "rows"
                view.copy()
    assert counts["create_compute_pipeline"] >= 2
    assert modules.cache_info().misses == before + 1


FOLDED = {  # three rows that fill a grid of two by two workgroups and more, of elements of a width
    Kernel.ROWS: (4, Layout.of((3, 40), (50, 1), 2)),
    Kernel.WIDE_ROWS: (16, Layout.of((3, 40), (50, 1), 2)),
    Kernel.SHIFTED_ROWS: (4, Layout.of((3, 190), (200, 1), 2)),
    Kernel.SUBWORD_ROWS: (1, Layout.of((3, 190), (200, 1), 2)),
}


@pytest.mark.every_adapter
@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kernel", FOLDED, ids=lambda kernel: kernel.value)
def test_a_folded_grid_writes_no_row_too_many(device: wg.Device, kernel: Kernel, profile: Profile) -> None:
    """Three rows on a grid of 2 x 2, in bindings that could hold more."""
    width, layout = FOLDED[kernel]
    slim = replace(profile, words_each=(), subword_words_each=(), blocks_each=1)
    nbytes = whole_words(layout.stop * width) // 16 * 16 + 4096
    bound = nbytes, nbytes
    pieces = only_dispatch(planned_by_kernel(kernel, layout, layout, width, slim, bound)).share.pieces
    limits = replace(device.limits, workgroups=2, profile=replace(slim, workgroup_size=pieces))
    source, target = random_bytes(nbytes, 1), random_bytes(nbytes, 2)
    plan = planned_by_kernel(kernel, layout, layout, width, limits, bound, completed=True)
    share = dispatches_of(plan)[0].share
    assert (share.workgroups, share.count, share.pieces) == ((2, 2, 1), 3, pieces)
    expected = copied(source, layout, target, layout, width)
    check_bytes(run_on_gpu(device, plan, source, target), expected)


def test_the_oracles_see_a_wrong_answer() -> None:
    source, target = random_bytes(64, 1), random_bytes(64, 2)
    layout = Layout.packed((16,), 8)
    expected = copied(source, layout, target, layout, 1)
    for wrong in (target, np.zeros_like(target), np.where(np.arange(64) == 24, expected + 1, expected)):
        with pytest.raises(AssertionError, match="bytes differ"):
            check_bytes(np.asarray(wrong, np.uint8), expected)
    plan = planned_copy(USUAL, layout, layout, 1, copy_to=False)
    zeros = target.copy()
    run_plan(plan, np.zeros_like(source), zeros)
    with pytest.raises(AssertionError, match="bytes differ"):
        check_bytes(zeros, expected)

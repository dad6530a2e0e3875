"""Trials of the kernels of copies: all that a device may choose for each case, each dispatch on its own."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product
from math import prod
from operator import mul
from random import Random
from typing import NamedTuple

import numpy as np

from wgslice.doctor.trials import Bytes, Trial, in_whole_blocks, side_nbytes, view_of
from wgslice.layout import Layout, coalesce
from wgslice.plans.copy_strategies import DISPATCHES
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext, Problem
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Dispatch, Span

FOLDED = 2  # workgroups in one dimension of a grid, so that a second one is in use

# Kernels that treat many cases alike, which differ for others: one of this many cases is tried.
ONE_OF = {
    Kernel.SLICE1: 5,
    **dict.fromkeys((Kernel.ROWS, Kernel.SUBWORD_ROWS, Kernel.SUBWORD_RUNS, Kernel.SHIFTED_GRID), 3),
}

# What writes whole blocks of rows only, and what writes the blocks that those rows begin and end inside of.
WHOLE = {Kernel.SHIFTED_ROWS: 1, Kernel.SHIFTED_GRID: 1, Kernel.PIXELS: 2}  # dimensions that are a row
ENDS = {Kernel.ROW_ENDS: 1, Kernel.SUBWORD_ENDS: 2}

SEED, COUNT = 1, 2000
MAX_NBYTES = 2**13  # that a case writes

# What is drawn of; what stands there several times is drawn more often.
WIDTHS = (1, 1, 1, 2, 2, 4, 4, 8, 16)  # bytes an element: kernels treat sub-word ones in more ways
ROWS_NBYTES = (2, 8, 19, 31, 32, 33, 40, 48, 64, 64, 80, 96, 128, 144, 152, 200, 400, 1024, 4096)
CHANNELS = (2, 3, 3, 4, 5)
OUTER_SIZES = (
    *((), (), (2,), (5,), (8,), (17,), (33,), (64,), (70,)),
    *((3, 2), (2, 9), (2, 33), (40, 3), (2, 3, 4)),
)
STEPS: Sequence[int] = (1, 1, 1, 1, 1, 2, 3, 4)  # elements from one of a source to the next
STEPS_DOWN = {1: (1, 1, 2), 2: (1,), 4: (1, 1, 4), 8: (1,), 16: (1,)}  # of a permuted source, by width
DENSE_STEPS = (1,) * 15 + (2, 3, 5)  # of a target
GAPS = (0, 0, 1, 3)  # elements behind a row or a plane
OFFSETS = (0, 1, 2, 3, 5, 15)


class Case(NamedTuple):
    """A copy of elements of a width; the layouts count from the start of their buffers."""

    width_nbytes: int
    source: Layout
    target: Layout


def cases() -> Iterator[Case]:
    """All of them: drawn at random, the same ones each time."""
    draw = Random(SEED)
    for width in sorted(set(WIDTHS)):  # the fewest dimensions and the most
        for sizes in ((), (2,) * 8, (2,) * 7 + (40 // width + 1,)):
            yield drawn_case(draw, width, sizes, 1)
    for _ in range(COUNT):
        width, outer, channels = draw.choice(WIDTHS), draw.choice(OUTER_SIZES), draw.choice(CHANNELS)
        alignment = draw.choice((1, WIDEST_NBYTES // width))
        row = draw.choice(ROWS_NBYTES) // width + draw.choice((-1, 0, 1))
        row = max(min(row, MAX_NBYTES // (prod(outer) * channels * width)), 1)
        row += -row % alignment
        inner = draw.choice(((row,), (row,), (row, channels), (channels, row)))
        yield drawn_case(draw, width, (*outer, *inner), alignment)


def drawn_case(draw: Random, width: int, sizes: Sequence[int], alignment: int) -> Case:
    """A copy of some sizes: aligned or with gaps; permuted, reversed, stepped or repeated, or not."""
    order = list(range(len(sizes)))
    steps = STEPS
    if draw.random() < 0.5:
        order[-2:], steps = reversed(order[-2:]), STEPS_DOWN[width]
    elif draw.random() < 0.1:
        draw.shuffle(order)
    target = drawn_strides(draw, sizes, range(len(sizes)), DENSE_STEPS, alignment)
    target_offset = draw.choice(OFFSETS) * alignment
    alignment = draw.choice((1, alignment, alignment))
    source = drawn_strides(draw, sizes, order, steps, alignment)
    source = [stride * draw.choice((1, 1, -1)) * (draw.random() > 0.03) for stride in source]
    below = sum((size - 1) * -min(stride, 0) for size, stride in zip(sizes, source, strict=True))
    source_offset = draw.choice(OFFSETS) * alignment + below
    return Case(width, Layout.of(sizes, source, source_offset), Layout.of(sizes, target, target_offset))


def drawn_strides(
    draw: Random, sizes: Sequence[int], order: Iterable[int], steps: Sequence[int], alignment: int
) -> list[int]:
    """Strides of dimensions that lie in each other in an order; what is longer than a pixel is aligned."""
    strides, step = [0] * len(sizes), draw.choice(steps)
    for dimension in reversed([*order]):
        strides[dimension] = step
        step *= sizes[dimension]
        if step <= max(CHANNELS):
            step += draw.choice(steps) - 1
        else:
            step += draw.choice(GAPS)
            step += -step % alignment
    return strides


def copy_trials(limits: Limits) -> Iterator[Trial]:
    """A trial of each kernel that a device may take for each case, also with its grid folded."""
    for number, case in enumerate(cases()):
        width, (source, target) = case.width_nbytes, coalesce(case.source, case.target)
        problem = Problem(source, target, width, PlanContext(limits))
        owners: dict[Kernel, str] = {}  # which of two kernels the same ends are tried with
        for strategy in DISPATCHES[width]:
            if strategy.applies(problem) is not None:
                continue
            for most in (limits.workgroups, FOLDED):
                folded = Problem(source, target, width, PlanContext(replace(limits, workgroups=most)))
                folded.bindings = Span(0, side_nbytes(source, width)), Span(0, side_nbytes(target, width))
                step, *ends = strategy.build(folded)
                assert isinstance(step, Dispatch)
                if number % ONE_OF.get(step.kernel, 1):
                    break
                yield trial_of(step)
                for end in ends:
                    assert isinstance(end, Dispatch)
                    if owners.setdefault(end.kernel, strategy.name) == strategy.name:
                        yield trial_of(end)
                if step.share.workgroups[0] <= FOLDED:
                    break  # nothing to fold


def trial_of(step: Dispatch) -> Trial:
    """The trial of one dispatch of a case."""
    width, source, target = step.width_nbytes, step.source, step.target

    def expected(read: Bytes, before: Bytes) -> Bytes:
        after = before.copy()
        view_of(after, target, width)[...] = view_of(read, source, width)
        return written_by(step, after, before)

    return Trial(
        Plan(target.size * width, width, width, source, target, (step,)),
        f"source strides {source.strides}, target strides {target.strides}, {width} bytes an element",
        side_nbytes(source, width),
        side_nbytes(target, width),
        expected,
    )


def written_by(step: Dispatch, after: Bytes, before: Bytes) -> Bytes:
    """What a dispatch writes of a copy: all of it, whole blocks of rows, or all but those."""
    dimensions = WHOLE.get(step.kernel, ENDS.get(step.kernel))
    layout, width = step.target, step.width_nbytes
    in_planes = dimensions == 2 and layout.sizes[-1] > 1 != layout.strides[-1]  # nothing but whole blocks
    if dimensions is None or in_planes:
        return after
    outer, row_nbytes = layout.strides[:-dimensions], prod(layout.sizes[-dimensions:]) * width
    starts = [
        (layout.offset + sum(map(mul, indices, outer))) * width
        for indices in product(*map(range, layout.sizes[:-dimensions]))
    ]
    whole = in_whole_blocks([(start, start + row_nbytes) for start in starts], after.size)
    return np.where(whole == (step.kernel in WHOLE), after, before)

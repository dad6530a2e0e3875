"""Trials of the kernels that copy: all that a device may choose for random copies, each dispatch alone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from math import prod
from random import Random

from wgslice.doctor.trials import Moves, Trial, elements_of, side_nbytes
from wgslice.layout import Layout, coalesce
from wgslice.plans.facade import DISPATCHES, LEAVING_ENDS, PlanContext, Problem
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Dispatch, Span

FOLDED = 2  # workgroups per dimension of a grid, so that a second dimension is used

# Kernels that many more cases apply to than they distinguish: one of this many cases is tested.
ONE_OF = {
    Kernel.SLICE1: 5,
    **dict.fromkeys((Kernel.ROWS, Kernel.SUBWORD_ROWS, Kernel.SHIFTED_GRID), 3),
}

# Trailing dimensions that make a row, of kernels that write only whole vectors of rows, or only the rest.
ROW_RANKS = {
    **dict.fromkeys((Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.ROW_ENDS), 1),
    **dict.fromkeys((Kernel.PIXELS, Kernel.SUBWORD_ENDS), 2),
}

SEED, COUNT = 1, 2000
MAX_NBYTES = 2**13  # written by a case

# Values to draw from; repeated ones are drawn more often.
WIDTHS = (1, 1, 1, 2, 2, 4, 4, 8, 16)  # bytes per element; most strategies are for sub-word elements
ROWS_NBYTES = (2, 8, 19, 31, 32, 33, 40, 48, 64, 64, 80, 96, 128, 144, 152, 200, 400, 1024, 4096)
CHANNELS = (2, 3, 3, 4, 5)
OUTER_SIZES = (
    *((), (), (2,), (5,), (8,), (17,), (33,), (64,), (70,)),
    *((3, 2), (2, 9), (2, 33), (40, 3), (2, 3, 4)),
)
STEPS: Sequence[int] = (1, 1, 1, 1, 1, 2, 3, 4)  # innermost strides of a source, in elements
STEPS_DOWN = {1: (1, 1, 2), 2: (1,), 4: (1, 1, 4), 8: (1,), 16: (1,)}  # of a permuted source, by width
DENSE_STEPS = (1,) * 15 + (2, 3, 5)  # of a target
GAPS = (0, 0, 1, 3)  # elements after a row or a plane
OFFSETS = (0, 1, 2, 3, 5, 15)


def cases() -> Iterator[tuple[int, Layout, Layout]]:
    """Yield element widths, sources and targets of copies; random, but the same ones at each call."""
    draw = Random(SEED)
    for width in sorted(set(WIDTHS)):  # the fewest dimensions and the most
        for sizes in ((), (2,) * 8, (2,) * 7 + (40 // width + 1,)):
            yield width, *drawn_sides(draw, width, sizes, 1)
    for _ in range(COUNT):
        width, outer, channels = draw.choice(WIDTHS), draw.choice(OUTER_SIZES), draw.choice(CHANNELS)
        alignment = draw.choice((1, WIDEST_NBYTES // width))
        row = draw.choice(ROWS_NBYTES) // width + draw.choice((-1, 0, 1))
        row = max(min(row, MAX_NBYTES // (prod(outer) * channels * width)), 1)
        row += -row % alignment
        inner = draw.choice(((row,), (row,), (row, channels), (channels, row)))
        yield width, *drawn_sides(draw, width, (*outer, *inner), alignment)


def drawn_sides(draw: Random, width: int, sizes: Sequence[int], alignment: int) -> tuple[Layout, Layout]:
    """Draw a source, which may be permuted, reversed, strided or broadcast, and a target; then coalesce."""
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
    return coalesce(Layout.of(sizes, source, source_offset), Layout.of(sizes, target, target_offset))


def drawn_strides(
    draw: Random, sizes: Sequence[int], order: Iterable[int], steps: Sequence[int], alignment: int
) -> list[int]:
    """Draw strides of dimensions nested in an order; those longer than a pixel are aligned."""
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
    """Yield a trial of each kernel that applies to each case, and one with its grid folded."""
    for number, (width, source, target) in enumerate(cases()):
        bound = Span(0, side_nbytes(source, width)), Span(0, side_nbytes(target, width))
        problem = Problem(source, target, width, PlanContext(limits))
        owners: dict[Kernel, str] = {}  # the strategy that row ends are tested with
        for strategy in DISPATCHES[width]:
            if strategy.applies(problem) is not None:
                continue
            for most in (limits.workgroups, FOLDED):
                folded = Problem(source, target, width, PlanContext(replace(limits, workgroups=most)))
                folded.bindings = bound
                step, *ends = strategy.build(folded)
                assert isinstance(step, Dispatch)
                if number % ONE_OF.get(step.kernel, 1):
                    break
                yield dispatch_trial(step)
                for end in ends:
                    assert isinstance(end, Dispatch)
                    if owners.setdefault(end.kernel, strategy.name) == strategy.name:
                        yield dispatch_trial(end)
                if step.share.workgroups[0] <= FOLDED:
                    break  # the grid has one dimension


def dispatch_trial(step: Dispatch) -> Trial:
    """Return the trial of one dispatch of a copy."""
    width, source, target = step.width_nbytes, step.source, step.target
    row_rank = ROW_RANKS.get(step.kernel, 0)
    planar = row_rank == 2 and target.sizes[-1] > 1 != target.strides[-1]
    if planar or (row_rank == 2 and target.strides[-2] > target.sizes[-1]):
        row_rank = 0  # planes are whole vectors, and all of strided rows is written
    moves = Moves(
        width,
        lambda: (elements_of(target), elements_of(source)),
        prod(target.sizes[-row_rank:]),
        step.kernel in LEAVING_ENDS if row_rank else None,
    )
    plan = Plan(target.size * width, width, width, source, target, (step,))
    case = f"source strides {source.strides}, target strides {target.strides}, {width} bytes an element"
    nbytes = step.source_binding.nbytes, step.target_binding.nbytes  # more than one part of a copy needs
    return Trial(plan, case, *nbytes, moves.expected)

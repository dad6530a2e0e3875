"""Trials of the kernels of copies: all that a device may choose for each case, each dispatch on its own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from math import prod
from operator import mul

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.cases import Case, cases
from wgslice.doctor.trials import Bytes, Trial, side_nbytes, view_of
from wgslice.layout import coalesce
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.problem import Problem, Terms
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Dispatch, Span
from wgslice.plans.strategies import DISPATCHES

__all__ = ["copy_trials"]

FOLDED = 2  # workgroups in one dimension of a grid, so that a second one is in use

# Kernels that go the same ways in many cases, which differ for others: one case of so many is tried.
ONE_OF = {
    Kernel.SLICE1: 5,
    **dict.fromkeys((Kernel.ROWS, Kernel.NARROW_ROWS, Kernel.NARROW_RUNS, Kernel.SHIFTED_GRID), 3),
}

# What writes whole blocks of rows only, and what writes the blocks that those rows begin and end inside of.
WHOLE = {Kernel.SHIFTED_ROWS: 1, Kernel.SHIFTED_GRID: 1, Kernel.PIXELS: 2}  # dimensions that are a row
ENDS = {Kernel.ROW_ENDS: 1, Kernel.NARROW_ENDS: 2}


def copy_trials(limits: Limits) -> Iterator[Trial]:
    """A trial of each kernel that a device may take for each case, also with its grid folded."""
    for number, case in enumerate(cases()):
        width, (source, target) = case.width_nbytes, coalesce(case.source, case.target)
        case = Case(width, source, target)
        problem = Problem(source, target, width, Terms(limits))
        owners: dict[Kernel, str] = {}  # which of two kernels the same ends are tried with
        for strategy in DISPATCHES[width]:
            if strategy.applies(problem) is not None:
                continue
            for most in (limits.workgroups, FOLDED):
                folded = Problem(source, target, width, Terms(replace(limits, workgroups=most)))
                folded.bindings = Span(0, side_nbytes(source, width)), Span(0, side_nbytes(target, width))
                step, *ends = strategy.build(folded)
                assert isinstance(step, Dispatch)
                if number % ONE_OF.get(step.kernel, 1):
                    break
                yield trial_of(case, step)
                for end in ends:
                    assert isinstance(end, Dispatch)
                    if owners.setdefault(end.kernel, strategy.name) == strategy.name:
                        yield trial_of(case, end)
                if step.share.workgroups[0] <= FOLDED:
                    break  # nothing to fold


def trial_of(case: Case, step: Dispatch) -> Trial:
    """The trial of one dispatch of a case."""
    width, source, target = case

    def expected(read: Bytes, before: Bytes) -> Bytes:
        after = before.copy()
        view_of(after, target, width)[...] = view_of(read, source, width)
        return np.where(written_by(step, before.size), after, before)

    return Trial(
        Plan(target.size * width, width, width, source, target, (step,)),
        f"source strides {source.strides}, target strides {target.strides}, {width} bytes an element",
        side_nbytes(source, width),
        side_nbytes(target, width),
        expected,
    )


def written_by(step: Dispatch, nbytes: int) -> NDArray[np.bool_]:
    """Which bytes of a target a dispatch may write: all, whole blocks of rows, or all but those."""
    dimensions = WHOLE.get(step.kernel, ENDS.get(step.kernel))
    layout, width = step.target, step.width_nbytes
    in_planes = dimensions == 2 and layout.sizes[-1] > 1 != layout.strides[-1]  # nothing but whole blocks
    if dimensions is None or in_planes:
        return np.ones(nbytes, np.bool_)
    outer = layout.strides[:-dimensions]
    row_nbytes = prod(layout.sizes[-dimensions:]) * width
    whole = np.zeros(nbytes, np.bool_)
    for indices in product(*map(range, layout.sizes[:-dimensions])):
        start = (layout.offset + sum(map(mul, indices, outer))) * width
        first = -(-start // WIDEST_NBYTES) * WIDEST_NBYTES
        whole[first : (start + row_nbytes) // WIDEST_NBYTES * WIDEST_NBYTES] = True
    return whole if step.kernel in WHOLE else ~whole

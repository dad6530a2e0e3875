"""The plan of a copy: from two layouts to the steps that copy one into the other."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from wgslice.arguments import U32_MAX
from wgslice.errors import NoKernelError
from wgslice.layout import Layout, coalesce
from wgslice.plans.choose import choose
from wgslice.plans.plan import Plan, in_order
from wgslice.plans.problem import Problem
from wgslice.plans.profiles import MOST_PLANS, PATTERN_NBYTES, untrusted
from wgslice.plans.strategies import COPIES
from wgslice.plans.terms import Terms
from wgslice.plans.widening import widen

__all__ = ["fills", "pattern_size", "plan_copy"]


@lru_cache(maxsize=MOST_PLANS)
def plan_copy(source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """The plan that copies `source` into `target`, two layouts of equal sizes, index by index.

    `target` must not overlap itself.
    """
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    nbytes = target.size * itemsize
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    source, target, width_nbytes = widen(*coalesce(source, target), itemsize)
    choice = choose(Problem(source, target, width_nbytes, terms), COPIES[width_nbytes])
    if choice is None:
        raise NoKernelError(untrusted(f"a copy of sizes {target.sizes}", terms.limits))
    costs = terms.limits.profile.costs
    return Plan(
        nbytes, itemsize, width_nbytes, source, target, in_order(choice.steps), costs=costs, choice=choice
    )


def fills(target: Layout, itemsize: int) -> list[tuple[Layout, Layout]]:
    """The copies that write one element everywhere, out of a buffer that repeats it.

    The runs of neighbours read as many neighbours, so that they are copied as quickly as any; those longer
    than the buffer are cut.
    """
    _, target = coalesce(target, target)
    if target.rank == 0 or target.strides[-1] != 1:
        return [(Layout.of(target.sizes, [0] * target.rank), target)]
    *outer, run = target.sizes
    outer_strides = target.strides[:-1]
    most = PATTERN_NBYTES // itemsize
    count, rest = divmod(run, most)
    pieces = []
    if count:
        pieces.append(Layout.of([*outer, count, most], [*outer_strides, most, 1], target.offset))
    if rest:
        pieces.append(Layout.of([*outer, rest], [*outer_strides, 1], target.offset + count * most))
    return [(Layout.of(piece.sizes, [0] * (piece.rank - 1) + [1]), piece) for piece in pieces]


def pattern_size(filling: Iterable[tuple[Layout, Layout]]) -> int:
    """Elements of the buffer that some fills read."""
    return max(read.stop for read, _ in filling)

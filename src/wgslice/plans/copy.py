"""Plans of a copy, of fills, and of a gradient, and the staging copies that come before some plans."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import inf
from typing import NamedTuple

from wgslice.arguments import U32_MAX
from wgslice.errors import NoKernelError
from wgslice.layout import Layout, coalesce
from wgslice.layout_rules import once
from wgslice.plans.choose import (
    Choice,
    OnPrint,
    Step,
    Strategy,
    anything,
    choose,
    explained,
    in_order,
    reading_from,
    seconds_of,
    where,
)
from wgslice.plans.copy_strategies import COPIES
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import PlanContext, Problem, Table, widen
from wgslice.plans.profiles import MAX_PLANS, PATTERN_NBYTES, all_disabled
from wgslice.plans.steps import Clear, Memory

CLEAR_FIRST = "clear first"  # a strategy
MAX_PIXEL_NBYTES = 16  # of what is a pixel, whose channels may be planes
ALIGNED = f"rows, strides and offsets are multiples of {WIDEST_NBYTES} bytes"


def plan_copy(source: Layout, target: Layout, itemsize: int, context: PlanContext) -> Plan:
    """The plan that copies `source` into `target`, of equal sizes, which must not overlap itself."""
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    nbytes = target.size * itemsize
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    shape = target.sizes
    choice = chosen(source, target, itemsize, context)
    if choice is None:
        raise NoKernelError(all_disabled(f"a copy of sizes {target.sizes}", context.limits))
    source, target, width_nbytes = choice.problem.source, choice.problem.target, choice.problem.width_nbytes
    widths, costs = (itemsize, width_nbytes), context.limits.profile.costs
    return Plan(nbytes, *widths, source, target, choice.steps, costs=costs, choice=choice, shape=shape)


def chosen(source: Layout, target: Layout, itemsize: int, context: PlanContext) -> Choice | None:
    """The strategy of the least estimate for a copy of elements, coalesced and as wide as can be."""
    source, target, width_nbytes = widen(*coalesce(source, target), itemsize)
    problem = Problem(source, target, width_nbytes, context)
    return choose(problem, COPIES[width_nbytes], OnPrint(changes=changes_of_copy))


def changes_of_copy(problem: Problem) -> Iterator[tuple[str, Choice | None]]:
    """Yields the choices for the copy with other layouts or buffers, each with its condition."""
    source, target, width_nbytes = problem.source, problem.target, problem.width_nbytes
    padded = problem.context._replace(source_capacity_nbytes=inf, target_capacity_nbytes=inf)
    if not problem.context.buffer_copies:
        usable = problem.context._replace(copy_from=True, copy_to=True)
        condition = "the buffers have usages COPY_SRC and COPY_DST"
        yield condition, chosen(source, target, width_nbytes, usable)
    if problem.unpadded:
        condition = f"both buffers are multiples of {WIDEST_NBYTES} bytes long"
        yield condition, chosen(source, target, width_nbytes, padded)
    if not problem.rank:
        return
    unit = WIDEST_NBYTES // width_nbytes
    if problem.in_runs and unit > 1 and unit <= 2 * target.sizes[-1]:
        yield ALIGNED, chosen(*padded_rows(source, target, unit), width_nbytes, padded)
    if any(source.strides):
        for condition, read, written in changed_layouts(source, target, width_nbytes):
            yield condition, chosen(read, written, width_nbytes, padded)
    elif not target.is_packed:
        pieces = fills(Layout.packed(target.sizes), width_nbytes)
        found = [chosen(*piece, width_nbytes, padded) for piece in pieces]
        filled = [choice for choice in found if choice]
        yield "the output is contiguous", filled[0]._replace(seconds=sum(each.seconds for each in filled))


def changed_layouts(
    source: Layout, target: Layout, width_nbytes: int
) -> Iterator[tuple[str, Layout, Layout]]:
    """Yields pairs of layouts that may be copied faster, each after its condition."""
    planes = [last_first(side) for side in (source, target)]
    if source.sizes[-1] * width_nbytes <= MAX_PIXEL_NBYTES and planes[0] and planes[1]:
        yield "the last dimension is stored first, as planes", planes[0], planes[1]
    order = sorted(range(source.rank), key=lambda axis: -abs(source.strides[axis]))
    if order != [*range(source.rank)] and target.is_packed and all(source.strides):
        written = Layout.packed([source.sizes[axis] for axis in order])
        yield "the output has the input's order of dimensions", source.permuted(order), written
    if min(source.strides) < 0:
        steps = zip(source.sizes, source.strides, strict=True)
        forwards = source.select([range(size)[:: -1 if stride < 0 else 1] for size, stride in steps])
        yield "the input is not reversed", forwards, target
    names = [name for name, side in (("input", source), ("output", target)) if not side.is_packed]
    if names and all(source.strides):
        text = f"the {' and the '.join(names)} {'are' if len(names) > 1 else 'is'} contiguous"
        yield text, Layout.packed(source.sizes), Layout.packed(target.sizes)


def last_first(layout: Layout) -> Layout | None:
    """A layout of pixels as one of planes; None if elements of one pixel are not between those of two."""
    *sizes, last = layout.sizes
    *strides, step = layout.strides
    pitch = abs(strides[-1]) if strides else 0
    unit = pitch if pitch % last else abs(step) * last  # elements of a pixel that is stored, skipped or not
    if not step or pitch < abs(step) * last or any(stride % unit for stride in strides):
        return None
    plane = Layout.of(sizes, [stride // unit for stride in strides])
    found = Layout.of((last, *sizes), ((plane.stop - plane.lowest) * (1 if step > 0 else -1), *plane.strides))
    return found.shifted(-found.lowest)


def padded_rows(source: Layout, target: Layout, unit: int) -> tuple[Layout, Layout]:
    """Both layouts with rows, strides and offsets rounded up to multiples of a number of elements."""

    def rounded(layout: Layout) -> Layout:
        sizes = *layout.sizes[:-1], -(-layout.sizes[-1] // unit) * unit
        if layout.is_packed:
            return Layout.packed(sizes)
        strides, extent = [*layout.strides], sizes[-1] + unit  # a gap stays a gap
        for axis in sorted(range(layout.rank - 1), key=lambda axis: abs(strides[axis])):
            if strides[axis]:
                pitch = -(-max(abs(strides[axis]), extent) // unit) * unit
                strides[axis] = pitch if strides[axis] > 0 else -pitch
                extent = pitch * sizes[axis]
        found = Layout.of(sizes, strides)
        return found.shifted(-found.lowest)

    return rounded(source), rounded(target)


def fills(target: Layout, itemsize: int) -> list[tuple[Layout, Layout]]:
    """Returns copies that fill a target from a buffer of one repeated element, by contiguous runs."""
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


class SliceGradPlanner(NamedTuple):
    """Copies a source into indices of the target, and zeros everywhere else, unless it is zero already."""

    taken: tuple[range, ...]  # of the target
    zeroed: bool

    def __call__(self, source: Layout, target: Layout, itemsize: int, context: PlanContext, /) -> Plan:
        """The plan for elements of `itemsize` bytes."""
        inside = plan_copy(source, target.select(self.taken), itemsize, context)
        if self.zeroed:
            return inside
        costs = context.limits.profile.costs
        outsides = list(complement(target, self.taken))
        clear = clear_of(target, itemsize) if outsides and context.copy_to else ()
        most_s = seconds_of(clear, costs) if clear else inf
        strategies: tuple[Strategy[PlanContext], ...] = (
            Strategy(
                "each byte once",
                anything,
                lambda _: seconds_of(inside.steps, costs),
                lambda _: with_fills(inside.steps, outsides, itemsize, context, most_s),
            ),
            Strategy(
                CLEAR_FIRST,
                where(lambda _: clear),
                lambda _: seconds_of((*clear, *inside.steps), costs),
                lambda _: in_order((*inside.steps, *clear)),
            ),
        )
        choice = choose(context, strategies)
        assert choice is not None  # zeros can be written anywhere
        fills_s = choice.seconds - seconds_of(inside.steps, costs)
        rejected = inside.choice.rejected if inside.choice else ()
        rejected = tuple(each._replace(seconds=each.seconds + fills_s) for each in rejected)
        choice = choice._replace(rejected=rejected)
        nbytes, shape = target.size * itemsize, target.sizes
        return replace(inside, nbytes=nbytes, steps=choice.steps, choice=choice, shape=shape)


def clear_of(target: Layout, itemsize: int) -> tuple[Step, ...]:
    """The clear of a target that is whole words without gaps; none for others."""
    _, whole = coalesce(target, target)
    start, nbytes = whole.offset * itemsize, whole.size * itemsize
    in_words = whole.is_packed and start % 4 == nbytes % 4 == 0
    return (Clear(start, nbytes),) if in_words else ()


def with_fills(
    inside: tuple[Step, ...], outsides: list[Layout], itemsize: int, context: PlanContext, most_s: float
) -> tuple[Step, ...]:
    """Returns steps and the fills of all other elements with zeros; none if fills exceed `most_s`."""
    of_pattern = context._replace(copy_from=True, source_capacity_nbytes=inf)
    steps, seconds = list(inside), 0.0
    for pattern, piece in (fill for outside in outsides for fill in fills(outside, itemsize)):
        added = plan_copy(pattern, piece, itemsize, of_pattern).steps
        steps += reading_from(Memory.ZEROS, added)
        seconds += seconds_of(added, context.limits.profile.costs)
        if seconds > most_s:
            return ()
    return in_order(steps)


def complement(target: Layout, taken: tuple[range, ...]) -> Iterator[Layout]:
    """All elements of a target without those of a selection, each in exactly one layout."""
    for axis, indices in enumerate(taken):
        (low, high), step = sorted((indices[0], indices[-1])), abs(indices.step)
        after = [range(size) for size in target.sizes[axis + 1 :]]
        for around in (range(low), range(high + 1, target.sizes[axis])):
            if around:
                yield target.select([*taken[:axis], around, *after])
        if step > 1 and len(indices) > 1:
            firsts = target.select([*taken[:axis], range(low, high, step), *after])
            stride = target.strides[axis]
            yield Layout.of((*firsts.sizes, step - 1), (*firsts.strides, stride), firsts.offset + stride)


def plan_anew(planner: Planner, source: Layout, target: Layout, itemsize: int, context: PlanContext) -> Plan:
    """A planner's plan, after staging copies: no command may read a buffer that it writes."""
    problem = planner, source, target, itemsize, context
    if not (context.shared and target.size):
        return replace(plan_packed(*problem), problem=problem)
    read = once(source)
    reason = "input and output share one buffer"
    packing = context._replace(copy_to=True, target_capacity_nbytes=inf, table=None)
    reading = staging_copy(read, itemsize, packing, Memory.INPUT, Memory.STAGING, reason)
    repeated = Layout.of(source.sizes, Layout.packed(read.sizes).strides)
    context = context._replace(copy_from=True, source_capacity_nbytes=inf, shared=False)
    moved = plan_packed(planner, repeated, target, itemsize, context)
    return replace(
        moved,
        steps=(*reading, *reading_from(Memory.STAGING, moved.steps)),
        staging=((Memory.STAGING, read.size * itemsize), *moved.staging),
        before=(*reading, *moved.before),
        staged=True,
        problem=problem,
    )


def planned_without(plan: Plan, disabled: frozenset[Kernel]) -> Plan:
    """A plan for the same problem on a device with other disabled kernels."""
    if plan.problem is None:
        return plan
    planner, source, target, itemsize, context = plan.problem
    context = context._replace(limits=replace(context.limits, disabled=disabled))
    anew = plan_anew(planner, source, target, itemsize, context)
    return replace(anew, name=plan.name, tensors=plan.tensors)


def plan_packed(
    planner: Planner, source: Layout, target: Layout, itemsize: int, context: PlanContext
) -> Plan:
    """A planner's plan, after the copy that packs the offsets of windows where they cannot be bound."""
    table = context.table
    if table is None or table.is_bindable or target.size == 0:
        return planner(source, target, itemsize, context)
    packed = Table(Layout.packed(table.layout.sizes), table.itemsize, memory=Memory.PACKED_OFFSETS)
    of_table = PlanContext(context.limits, table.copy_from, True, table.capacity_nbytes)
    reason = "kernels bind packed offsets"
    packing = staging_copy(table.layout, table.itemsize, of_table, Memory.OFFSETS, packed.memory, reason)
    plan = planner(source, target, itemsize, context._replace(table=packed))
    staging = ((packed.memory, packed.layout.size * packed.itemsize),)
    return replace(plan, steps=(*packing, *plan.steps), staging=staging, before=packing)


# The one cache of plans, by the problem: equal copies at other places share one. Windows' planners, which are
# made for a call and hold much, go without: the cache would keep them.
planned = lru_cache(maxsize=MAX_PLANS)(plan_anew)


def staging_copy(
    layout: Layout, itemsize: int, context: PlanContext, reads: Memory, writes: Memory, reason: str
) -> tuple[Step, ...]:
    """The steps that pack a layout of one memory into another, and why."""
    steps = plan_copy(layout, Layout.packed(layout.sizes), itemsize, context).steps
    return tuple(replace(step, reads=reads, writes=writes) for step in explained(steps, reason))

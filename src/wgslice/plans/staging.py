"""What cannot be used where it lies: copied aside, or packed, by the plan's first steps."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf

from wgslice.layout import Layout
from wgslice.plans.choose import Step
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan, Planner, reading_staged
from wgslice.plans.problem import Table, Terms
from wgslice.plans.profiles import MOST_PLANS
from wgslice.plans.steps import BufferCopies, Dispatch, Memory


def plan_anew(planner: Planner, source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """A planner's plan, after the copies that it needs beforehand.

    No command may read a buffer that it writes, so what is read of the output's buffer is copied aside.
    Kernels read offsets of windows in one piece, from where a binding can begin.
    """
    apart = terms._replace(shared=False)
    if terms.shared and target.size:
        return plan_aside(planner, source, target, itemsize, apart)
    return plan_packed(planner, source, target, itemsize, apart)


def plan_packed(planner: Planner, source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """A planner's plan, after the copy that packs the offsets of windows where they cannot be bound."""
    table = terms.table
    if table is None or table.is_bindable or target.size == 0:
        return planner(source, target, itemsize, terms)
    packed = Table(Layout.packed(table.layout.sizes), table.itemsize, memory=Memory.PACKED_OFFSETS)
    room = Terms(terms.limits, table.copy_from, True, table.room_nbytes)
    copied = plan_copy(table.layout, packed.layout, table.itemsize, room)
    reason = "kernels read offsets in one piece, from a binding of their own"
    packing = [redirected(step, Memory.OFFSETS, Memory.PACKED_OFFSETS, reason) for step in copied.steps]
    plan = planner(source, target, itemsize, terms._replace(table=packed))
    scratch = Memory.PACKED_OFFSETS, packed.layout.size * packed.itemsize
    return replace(
        plan,
        steps=(*packing, *plan.steps),
        scratch=(*plan.scratch, scratch),
        before=tuple(packing),
    )


def plan_aside(planner: Planner, source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """A planner's plan for a copy of its source, each element once, after what copies that aside."""
    once = unrepeated(source)
    room = Layout.packed(once.sizes)
    copied = plan_copy(once, room, itemsize, terms._replace(copy_to=True, target_room_nbytes=inf, table=None))
    reason = "input and output lie in one buffer"
    reading = [redirected(step, Memory.INPUT, Memory.ASIDE, reason) for step in copied.steps]
    repeated = Layout.of(source.sizes, room.strides)
    moved = plan_packed(
        planner, repeated, target, itemsize, terms._replace(copy_from=True, source_room_nbytes=inf)
    )
    scratch = Memory.ASIDE, room.size * itemsize
    return replace(
        moved,
        steps=(*reading, *reading_staged(moved.steps)),
        scratch=(scratch, *moved.scratch),
        before=(*reading, *moved.before),
        staged=True,
    )


# The one cache of plans, by the problem: equal copies at other places share one. Windows' planners, which are
# made for a call and hold much, go without: the cache would keep them.
planned = lru_cache(maxsize=MOST_PLANS)(plan_anew)


def unrepeated(layout: Layout) -> Layout:
    """The same places, each once: what repeats is taken at its first index."""
    firsts = [
        range(1) if stride == 0 else range(size)
        for size, stride in zip(layout.sizes, layout.strides, strict=True)
    ]
    return layout.select(firsts)


def redirected(step: Step, reads: Memory, writes: Memory, reason: str) -> Step:
    """A step of a copy between other memories, and why."""
    assert isinstance(step, BufferCopies | Dispatch)  # what copies are made of
    return replace(step, reads=reads, writes=writes, reason=f"{step.reason}; {reason}")

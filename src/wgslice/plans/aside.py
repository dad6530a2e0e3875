"""What cannot be used where it lies: copied aside, or packed, by the plan's first steps."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import inf

from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.profiles import MOST_PLANS
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory
from wgslice.plans.terms import Table, Terms

__all__ = ["plan_anew", "planned"]


def plan_anew(planner: Planner, source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """A planner's plan, after the copies that it needs beforehand.

    No command may read a buffer that it writes, so what is read of the output's buffer is copied aside.
    Kernels read offsets of windows in one piece, from where a binding can begin.
    """
    if target.size == 0:
        return planner(source, target, itemsize, terms)
    before: list[Step] = []
    scratch: list[tuple[Memory, int]] = []
    reads = Memory.INPUT
    if terms.shared:
        once = unrepeated(source)
        room = Layout.packed(once.sizes)
        copied = plan_copy(
            once, room, itemsize, Terms(terms.limits, terms.copy_from, True, terms.source_room_nbytes)
        )
        reason = "input and output lie in one buffer"
        before += [redirected(step, Memory.INPUT, Memory.ASIDE, reason) for step in copied.steps]
        scratch.append((Memory.ASIDE, room.size * itemsize))
        reads, source = Memory.ASIDE, Layout.of(source.sizes, room.strides)
        terms = terms._replace(copy_from=True, source_room_nbytes=inf, shared=False)
    table = terms.table
    if table is not None and not table.is_bindable:
        room = Layout.packed(table.layout.sizes)
        copied = plan_copy(
            table.layout, room, table.itemsize, Terms(terms.limits, table.copy_from, True, table.room_nbytes)
        )
        reason = "kernels read offsets in one piece, from a binding of their own"
        before += [redirected(step, Memory.OFFSETS, Memory.PACKED_OFFSETS, reason) for step in copied.steps]
        scratch.append((Memory.PACKED_OFFSETS, room.size * table.itemsize))
        terms = terms._replace(table=Table(room, table.itemsize, memory=Memory.PACKED_OFFSETS))
    plan = planner(source, target, itemsize, terms)
    if not before:
        return plan
    after = [
        replace(step, reads=reads) if not isinstance(step, Clear) and step.reads is Memory.INPUT else step
        for step in plan.steps
    ]
    return replace(plan, steps=(*before, *after), scratch=tuple(scratch))


# Equal copies at other places share a plan. Planners that are made for one call and hold much go without:
# the cache would keep them.
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

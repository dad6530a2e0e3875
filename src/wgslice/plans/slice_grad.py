"""The plan of a slice's gradient: the window receives it, everything else zeros, each byte once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import prod

from wgslice.layout import Layout, coalesce
from wgslice.plans.copy import fills, plan_copy
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Origin

__all__ = ["GradientPlanner"]


@dataclass(frozen=True)
class GradientPlanner(Planner):
    """Copy a source into a window of the target, and zeros around it and between its elements."""

    window: tuple[range, ...]  # the target's indices, dimension by dimension
    zeroed: bool = False  # whether the target is zero already

    @property
    def on_zeros(self) -> Planner:
        """The same for a target that is zero already."""
        return replace(self, zeroed=True)

    def plan(
        self,
        source: Layout,
        target: Layout,
        limits: Limits,
        *,
        buffer_copy: bool = True,
        whole_vectors: bool = True,
    ) -> Plan:
        """Plan a gradient."""
        inside = plan_copy(
            source,
            target.select(self.window),
            self.itemsize,
            limits,
            buffer_copy=buffer_copy,
            whole_vectors=whole_vectors,
        )
        steps = () if self.zeroed else self.zeros(target, limits, buffer_copy, whole_vectors)
        return replace(inside, nbytes=target.size * self.itemsize, steps=(*steps, *inside.steps))

    def zeros(
        self, target: Layout, limits: Limits, buffer_copy: bool, whole_vectors: bool
    ) -> tuple[Step, ...]:
        """What writes the zeros."""
        outsides = list(complement(target, self.window))
        cleared = cleared_span(target, self.itemsize)
        share = prod(map(len, self.window)) / target.size
        small = target.size * self.itemsize < limits.profile.cleared_nbytes
        clears = small or share < limits.profile.cleared_share
        if outsides and clears and buffer_copy and cleared is not None:
            return (cleared,)
        return tuple(
            of_zeros(step)
            for outside in outsides
            for pattern, piece in fills(outside, self.itemsize)
            for step in plan_copy(
                pattern,
                piece,
                self.itemsize,
                limits,
                buffer_copy=buffer_copy,
                whole_vectors=whole_vectors,
            ).steps
        )


def of_zeros(step: Step) -> Step:
    """The same copy, of zeros."""
    assert isinstance(step, BufferCopies | Dispatch)  # what copies are made of
    return replace(step, origin=Origin.ZEROS)


def cleared_span(target: Layout, itemsize: int) -> Clear | None:
    """The clear of all of a target, where its elements and nothing else lie in whole words."""
    _, merged = coalesce(target, target)
    start, nbytes = merged.offset * itemsize, merged.size * itemsize
    gapless = merged.rank == 0 or merged.strides == (1,)
    return Clear(start, nbytes) if gapless and start % 4 == nbytes % 4 == 0 else None


def complement(target: Layout, window: tuple[range, ...]) -> Iterator[Layout]:
    """Everything of a target that a window of it leaves out, each element in exactly one layout.

    Dimension by dimension: what lies before the window, behind it, and between two of its steps, over all of
    the dimensions after it, and within the window in those before it.
    """
    for axis, taken in enumerate(window):
        (low, high), step = sorted((taken[0], taken[-1])), abs(taken.step)
        after = [range(size) for size in target.sizes[axis + 1 :]]
        for around in (range(low), range(high + 1, target.sizes[axis])):
            if around:
                yield target.select([*window[:axis], around, *after])
        if step > 1 and len(taken) > 1:
            firsts = target.select([*window[:axis], range(low, high, step), *after])
            stride = target.strides[axis]
            yield Layout.of((*firsts.sizes, step - 1), (*firsts.strides, stride), firsts.offset + stride)

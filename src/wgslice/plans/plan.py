"""What a plan is, and who makes one for places in buffers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TypeAlias

from wgslice.arguments import whole_words
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Span
from wgslice.plans.window_steps import WindowDispatch

__all__ = [
    "LARGEST_BINDING_NBYTES",
    "PlacedPlan",
    "Plan",
    "Planner",
    "Step",
    "place_anew",
    "rebase",
    "span_of",
]

STEPS_PRINTED = 8

# No binding is larger, so that 32-bit counts of elements, words and invocations never wrap around.
LARGEST_BINDING_NBYTES = 2**31

Step: TypeAlias = Clear | BufferCopies | Dispatch | WindowDispatch


@dataclass(frozen=True)
class Plan:
    """What one copy runs, and why. Immutable, and the same for every buffer: printing one explains it.

    `source` and `target` are the merged layouts, in elements of `width_nbytes` from the tensor's base.
    """

    nbytes: int  # useful bytes, those of the target's elements
    itemsize: int  # bytes an element of the tensor
    width_nbytes: int  # bytes an element of the copy
    source: Layout
    target: Layout
    steps: tuple[Step, ...]

    @cached_property
    def by_kind(self) -> tuple[list[Clear], list[Dispatch | WindowDispatch], list[BufferCopies]]:
        """The steps in the order in which they are recorded."""
        return (
            [step for step in self.steps if isinstance(step, Clear)],
            [step for step in self.steps if isinstance(step, Dispatch | WindowDispatch)],
            [step for step in self.steps if isinstance(step, BufferCopies)],
        )

    @cached_property
    def is_unchecked(self) -> bool:
        """Whether wgpu looks at the buffers of some step no earlier than in a submission."""
        clears, _, copies = self.by_kind
        return bool(clears or copies)

    @property
    def summary(self) -> str:
        """One line: merged dimensions, element width, kernels."""
        names = (
            step.kernel.value
            if isinstance(step, Dispatch | WindowDispatch)
            else str(step).partition(" of ")[0]
            for step in self.steps
        )
        used = ", ".join(dict.fromkeys(names)) or "nothing to do"
        count = f" in {len(self.steps)} steps" if len(self.steps) > 1 else ""
        return f"merged {self.target.sizes} x {self.width_nbytes} bytes, {used}{count}"

    def __str__(self) -> str:
        lines = [
            f"copy of {self.nbytes} bytes, items of {self.itemsize}, moved {self.width_nbytes} at a time",
            f"  merged sizes {self.target.sizes}",
            f"  source strides {self.source.strides} from {self.source.offset}",
            f"  target strides {self.target.strides} from {self.target.offset}",
        ]
        lines += [f"  step {number}: {step}" for number, step in enumerate(self.steps[:STEPS_PRINTED], 1)]
        if len(self.steps) > STEPS_PRINTED:
            lines.append(f"  and {len(self.steps) - STEPS_PRINTED} more steps like these")
        return "\n".join(lines)


PlacedPlan = tuple[Plan, int, int]  # with the bases in bytes that it counts from, of source and target


@dataclass(frozen=True)
class Planner:
    """What is to be done with a source and a target, wherever they lie."""

    itemsize: int  # bytes an element of the tensors

    def plan(
        self,
        source: Layout,
        target: Layout,
        limits: Limits,
        *,
        buffer_copy: bool = True,
        whole_vectors: bool = True,
    ) -> Plan:
        """The plan, counted from both bases.

        `buffer_copy` says whether both buffers' usages allow buffer copies, `whole_vectors` whether both have
        room to bind the last vector of 16 bytes that holds an element.
        """
        raise NotImplementedError

    @property
    def on_zeros(self) -> Planner:
        """The same for a target that is zero already."""
        return self

    def place(
        self,
        source: Layout,
        target: Layout,
        limits: Limits,
        buffer_nbytes: tuple[int, int],
        *,
        buffer_copy: bool,
    ) -> PlacedPlan:
        """The plan for places in buffers of so many bytes."""
        return place(self, source, target, limits, buffer_nbytes, buffer_copy=buffer_copy)


def place_anew(
    planner: Planner,
    source: Layout,
    target: Layout,
    limits: Limits,
    buffer_nbytes: tuple[int, int],
    *,
    buffer_copy: bool,
) -> PlacedPlan:
    """Rebase both sides, and plan."""
    source_base, source_layout = rebase(source, planner.itemsize, limits)
    target_base, target_layout = rebase(target, planner.itemsize, limits)
    whole_vectors = has_whole_vectors((source, target), planner.itemsize, buffer_nbytes)
    plan = planner.plan(
        source_layout, target_layout, limits, buffer_copy=buffer_copy, whole_vectors=whole_vectors
    )
    return plan, source_base, target_base


place = lru_cache(maxsize=4096)(place_anew)


def has_whole_vectors(layouts: tuple[Layout, Layout], itemsize: int, buffer_nbytes: tuple[int, int]) -> bool:
    """Whether buffers of so many bytes have room for the last vector of 16 bytes that holds an element."""
    return all(
        -(-layout.stop * itemsize // WIDEST_NBYTES) * WIDEST_NBYTES <= nbytes
        for layout, nbytes in zip(layouts, buffer_nbytes, strict=True)
    )


def rebase(layout: Layout, itemsize: int, limits: Limits) -> tuple[int, Layout]:
    """Split a layout into an aligned base in bytes and the layout from there.

    The base is the last possible binding offset at or before the layout's lowest element, so that equal
    slices at different places of a buffer share a plan.
    """
    base = base_of(layout, itemsize, limits)
    return base, layout.shifted(-(base // itemsize))


def base_of(layout: Layout, width_nbytes: int, limits: Limits) -> int:
    """The last offset in bytes, at or before a layout's lowest element, at which a binding may begin."""
    alignment = limits.binding_alignment_nbytes
    return layout.lowest * width_nbytes // alignment * alignment


def span_of(layout: Layout, width_nbytes: int, limits: Limits) -> Span:
    """The binding that holds a layout: from an aligned offset to the end of its last word."""
    start = base_of(layout, width_nbytes, limits)
    return Span(start, whole_words(layout.stop * width_nbytes) - start)

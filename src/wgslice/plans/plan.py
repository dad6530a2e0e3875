"""What a plan is: the whole truth of what one copy runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from wgslice.layout import Layout
from wgslice.plans.choosing import Choice
from wgslice.plans.costs import Costs
from wgslice.plans.estimates import Estimate, Step, seconds_of
from wgslice.plans.hindrances import Copied
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory
from wgslice.plans.terms import Terms
from wgslice.plans.windows_steps import WindowDispatch

__all__ = ["Plan", "Planner", "Step", "in_order"]

STEPS_PRINTED = 8


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """What one copy runs, step by step, and why. Printed, it says so; immutable, the same for every buffer.

    Attributes
    ----------
    nbytes : int
        Useful bytes, those of the target's elements.
    itemsize, width_nbytes : int
        Bytes an element of the tensor, and of the copy, which moves several at a time where it can.
    source, target : Layout
        Merged sizes, strides and offsets, in elements of `width_nbytes`, from the bases of the buffers.
    steps : tuple
        Buffer copies, clears and dispatches, in the order in which they run; `str` of each says why.
    summary : str
        Merged sizes, element width and kernels in a line.
    seconds : float or None
        Estimate of the time from its submission to the end of the wait; None where there is nothing to do.
    hindrances : tuple of str
        What is in the way of something faster, a line for each such way.
    """

    nbytes: int
    itemsize: int
    width_nbytes: int
    source: Layout
    target: Layout
    steps: tuple[Step, ...]
    scratch: tuple[tuple[Memory, int], ...] = ()  # buffers to make for each recording, with their bytes
    costs: Costs | None = None  # that it is estimated by
    terms: Terms | None = None  # of the copy that `source` and `target` say, where they say one
    alternatives_of: Callable[[], list[Choice]] = list  # every way to do it, the cheapest first
    others: tuple[Estimate, ...] | None = None  # of ways not taken; None: as `choices`

    @cached_property
    def unbound(self) -> tuple[Memory, ...]:
        """Callers' memories that no dispatch binds: wgpu looks at their buffers only in a submission."""
        used: set[Memory] = set()
        bound: set[Memory] = set()
        for step in self.steps:
            if isinstance(step, Clear):
                used.add(Memory.OUTPUT)
            elif isinstance(step, BufferCopies):
                used |= {step.reads, step.writes}
            else:
                bound |= step.memories
        return tuple(sorted((used - bound) & {Memory.INPUT, Memory.OUTPUT, Memory.OFFSETS}))

    @cached_property
    def reads_zeros(self) -> bool:
        """Whether some step reads a buffer of zeros."""
        return any(not isinstance(step, Clear) and step.reads is Memory.ZEROS for step in self.steps)

    @property
    def summary(self) -> str:
        """One line: merged dimensions, element width, kernels."""
        used = ", ".join(dict.fromkeys(step.name for step in self.steps)) or "nothing to do"
        count = f" in {len(self.steps)} steps" if len(self.steps) > 1 else ""
        return f"merged {self.target.sizes} x {self.width_nbytes} bytes, {used}{count}"

    @property
    def seconds(self) -> float | None:
        """Estimate of the time from the submission to the end of the wait."""
        if self.costs is None:
            return None
        return self.costs.submission_s + seconds_of(self.steps, self.costs)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """Every way to do it that applies, the one that is taken first, then by their estimates."""
        return tuple(self.alternatives_of())

    def estimate(self) -> Iterator[str]:
        """What it is estimated to take, and what the next best way would, as it is printed."""
        if self.costs is None or self.seconds is None:
            return
        line = f"estimated to take {duration(self.seconds)}"
        others = self.others
        if others is None:
            others = tuple(Estimate(choice.name, choice.seconds) for choice in self.choices[1:])
        if others:
            second = min(others, key=lambda each: each.seconds)
            least = " at least" * second.is_bound
            line += f"; by {second.name}{least} {duration(self.costs.submission_s + second.seconds)}"
        yield f"{line}: {self.costs.origin}"

    @cached_property
    def hindrances(self) -> tuple[str, ...]:
        """What in the layouts and the buffers is in the way of something faster, a line for each such way."""
        reading = [step for step in self.steps if isinstance(step, Dispatch) and step.reads is Memory.INPUT]
        windows = [step for step in self.steps if isinstance(step, WindowDispatch) and step.hindrance]
        lines = [f"in the way of {step.hindered.value}: {step.hindrance}" for step in windows]
        found = list(dict.fromkeys(lines))
        if self.terms is not None:
            copied = Copied(self.source, self.target, self.width_nbytes, self.terms)
            found += copied.hindrances({step.kernel for step in reading})
        return tuple(found)

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        width = self.width_nbytes
        lines = [
            f"copy of {self.nbytes} bytes, items of {self.itemsize}, planned in elements of {width}",
            f"  merged sizes {self.target.sizes}",
            f"  source strides {self.source.strides} from {self.source.offset}",
            f"  target strides {self.target.strides} from {self.target.offset}",
        ]
        lines += [f"  step {number}: {step}" for number, step in enumerate(self.steps[:STEPS_PRINTED], 1)]
        if len(self.steps) > STEPS_PRINTED:
            lines.append(f"  and {len(self.steps) - STEPS_PRINTED} more steps")
        lines += [f"  {line}" for line in (*self.estimate(), *self.hindrances)]
        return "\n".join(lines)


class Planner(Protocol):
    """A function that plans what is to be done with a source and a target, counted from their bases."""

    def __call__(self, source: Layout, target: Layout, itemsize: int, terms: Terms, /) -> Plan:
        """The plan for elements of `itemsize` bytes."""


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Clears, then dispatches, which share a compute pass, then buffer copies; each kind as given."""
    kinds = (Clear, Dispatch | WindowDispatch, BufferCopies)
    given = tuple(steps)
    return tuple(step for kind in kinds for step in given if isinstance(step, kind))


def duration(seconds: float) -> str:
    """Seconds in the unit in which they are short."""
    return f"{seconds * 1e3:.3g} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.3g} us"

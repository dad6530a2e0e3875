"""A plan: the steps that one copy runs, its estimate, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

from wgslice.layout import Layout
from wgslice.plans.choose import COPY, WORTHWHILE, Choice, Estimate, Step, reading_from, seconds_of
from wgslice.plans.problem import PlanContext, counted
from wgslice.plans.profiles import UNCALIBRATED, UNKNOWN, Costs
from wgslice.plans.steps import BufferCopies, Clear, Memory, OnGrid, TextureCopy, prefixed

STEPS_PRINTED, OTHERS_PRINTED = 8, 3
WORTHWHILE_PERCENT = round(100 * (1 - WORTHWHILE))


@dataclass(frozen=True, eq=False, repr=False)
class Plan:
    """The steps of one copy and their reasons. Immutable, and independent of the buffers.

    Attributes
    ----------
    nbytes : int
        Useful bytes, those of the target's elements.
    itemsize, width_nbytes : int
        Bytes an element of the tensor, and of the copy, which moves several at a time where it can.
    source, target : Layout
        Coalesced sizes, strides and offsets, in elements of `width_nbytes`, from the bases of the buffers;
        along an indexed dimension the stride of one index.
    steps : tuple
        Buffer copies, clears and dispatches, in the order in which they run; `str` of each says why.
    summary : str
        Coalesced sizes, element width and kernels in a line.
    seconds : float or None
        Estimate of the time from its submission to the end of the wait; None where there is nothing to do.
    rejected : tuple of str
        Strategies that might be faster but are not applicable, and why, a line for each reason.
    """

    nbytes: int
    itemsize: int
    width_nbytes: int
    source: Layout
    target: Layout
    steps: tuple[Step, ...]
    staging: tuple[tuple[Memory, int], ...] = ()  # memories of copies before the strategy's steps, with bytes
    costs: Costs | None = None  # that it is estimated by
    choice: Choice | None = None  # of its strategy; None where there is nothing to do, or to choose
    before: tuple[Step, ...] = ()  # steps that come before those of every strategy
    masked: bool = False  # whether a mask says how many of the useful bytes are copied
    staged: bool = False  # whether they make a staging copy of the input, which strategies' steps read
    shape: tuple[int, ...] | None = None  # of the copied elements; None if that is the target's sizes
    name: str = "copy"  # of the operator
    tensors: str = ""  # dtype and shapes, where these are known
    note: str = ""  # printed below the layouts
    problem: tuple[Planner, Layout, Layout, int, PlanContext] | None = None  # of `plan_anew`, which made it

    @cached_property
    def unbound(self) -> tuple[Memory, ...]:
        """Callers' memories that no dispatch binds: wgpu validates their buffers only at submission."""
        bound = {memory for step in self.steps if isinstance(step, OnGrid) for memory in step.memories}
        others = (step for step in self.steps if not isinstance(step, OnGrid))
        used = {memory for step in others for memory in (step.reads, step.writes) if memory is not None}
        return tuple(sorted((used - bound) & {Memory.INPUT, Memory.OUTPUT, Memory.OFFSETS}))

    @cached_property
    def scratch(self) -> tuple[tuple[Memory, int], ...]:
        """The buffers to make for each recording, with their bytes."""
        needed = dict(self.staging) | scratch_of(self.steps)
        return tuple((memory, needed[memory]) for memory in SCRATCH if memory in needed)

    @cached_property
    def copies(self) -> tuple[Clear | BufferCopies | TextureCopy, ...]:
        """The steps, if they need no bind group and only callers' buffers; none for other plans."""
        copies = tuple(step for step in self.steps if not isinstance(step, OnGrid))
        return () if self.scratch or self.reads_zeros or len(copies) < len(self.steps) else copies

    @cached_property
    def reads_zeros(self) -> bool:
        """Whether some step reads a buffer of zeros."""
        return any(step.reads is Memory.ZEROS for step in self.steps)

    @property
    def summary(self) -> str:
        """One line: coalesced sizes, element width, kernels."""
        used = ", ".join(dict.fromkeys(step.name for step in self.steps)) or "nothing to do"
        count = f" in {len(self.steps)} steps" if len(self.steps) > 1 else ""
        return f"coalesced {self.target.sizes} x {self.width_nbytes} B, {used}{count}"

    @property
    def seconds(self) -> float | None:
        """Estimate of the time from the submission to the end of the wait."""
        if self.costs is None:
            return None
        return self.costs.submission_s + seconds_of(self.steps, self.costs)

    @property
    def choices(self) -> tuple[Choice, ...]:
        """Every applicable strategy, built anew: the chosen one, then the others by their estimated time."""
        if self.choice is None or self.costs is None:
            return ()
        before_s = seconds_of(self.before, self.costs)
        origin = Memory.STAGING if self.staged else Memory.INPUT
        return tuple(
            each._replace(
                steps=(*self.before, *reading_from(origin, each.steps)),
                seconds=before_s + each.seconds,
            )
            for each in self.choice.every()
        )

    @cached_property
    def others(self) -> tuple[Estimate, ...]:
        """Estimates of the other applicable strategies, the least first."""
        if self.choice is None or self.costs is None:
            return ()
        before_s = seconds_of(self.before, self.costs)
        others = sorted(self.choice.others, key=lambda each: each.seconds)
        return tuple(each._replace(seconds=before_s + each.seconds) for each in others)

    @cached_property
    def rejected(self) -> tuple[str, ...]:
        """Strategies that might be faster but are not applicable, and why, a line for each reason."""
        return self._reasons()

    def _reasons(self, *always: str) -> tuple[str, ...]:
        """As `rejected`, and with strategies that might not be faster whose names begin as given."""
        choice, found = self.choice, dict[str, list[str]]()
        if choice is None:
            return ()
        for each in choice.unavailable:
            might_win = each.reason is UNKNOWN or each.seconds < choice.seconds
            if might_win or each.name.startswith(always):
                found.setdefault(each.text, []).append(each.name)
        return tuple(f"{', '.join(names)}: {reason}" for reason, names in found.items())

    def _estimates(self, *, alone: bool) -> Iterator[tuple[str, str]]:
        """Labelled lines: the estimate, other strategies and their times, why some are rejected, remedies."""
        if self.costs is None or self.seconds is None:
            return
        tuning = "; `wgslice tune` calibrates it" * self.costs.origin.endswith(UNCALIBRATED)
        yield "estimate", f"{duration(self.seconds)} (cost model: {self.costs.origin}{tuning})"
        if self.choice is not None:
            others = []
            for number, each in enumerate(self.others):
                if number < OTHERS_PRINTED or each.name.startswith(COPY):
                    seconds = self.costs.submission_s + each.seconds
                    others.append(f"{each.name} {'at least ' * each.is_bound}{duration(seconds)}")
                    if each.is_bound and seconds < self.seconds:
                        others[-1] += f" (less than {WORTHWHILE_PERCENT} % faster)"
            yield "considered", "; ".join(others) or f"none: only {self.choice.name} is applicable"
        rejected = sorted(self.choice.unavailable if self.choice else (), key=lambda each: each.seconds)
        nearest = [each.name for each in rejected[:1]]
        yield from (("rejected", line) for line in self._reasons(COPY, *nearest))
        if not alone:
            return
        remedies = list(self._remedies(self.seconds, self.costs))
        if self.costs.submission_s > self.seconds / 2:
            latency = duration(self.costs.submission_s)
            remedies.append(f"other copies share its submission, whose latency is {latency} of the estimate")
        none = f"no known change is estimated to be {WORTHWHILE_PERCENT} % faster"
        yield from (("faster if", remedy) for remedy in remedies or [none])

    def _remedies(self, seconds: float, costs: Costs) -> Iterator[str]:
        """Yields changes of layouts, indices or buffers, each faster than those before."""
        before_s = seconds_of(self.before, costs)
        changes: list[tuple[str, Choice | None, float]] = []
        if self.before:
            remedy = "input and output are in different buffers" if self.staged else "the offsets are packed"
            changes.append((remedy, self.choice, 0.0))
        found = self.choice.on_print.changes(self.choice.problem) if self.choice else ()
        changes += [(condition, choice, before_s) for condition, choice in found]
        best_s = seconds
        for condition, choice, other_s in changes:
            if choice is None:
                continue
            changed_s = costs.submission_s + other_s + choice.seconds
            if changed_s < WORTHWHILE * best_s:
                best_s = changed_s
                yield f"{condition}: {choice.name}, {duration(best_s)}"

    def __repr__(self) -> str:
        return str(self)

    def __str__(self) -> str:
        return self.printed()

    def printed(self, *, alone: bool = True) -> str:
        """The plan in lines; without changes that make it faster if it is not `alone` in its submission."""
        header = f"{self.name}: {'at most ' * self.masked}{prefixed(self.nbytes)}, "
        header += self.tensors or f"{self.itemsize}-byte items, shape {self.shape or self.target.sizes}"
        if not self.steps:
            return f"{header}\n  note        no elements: nothing runs"
        sides = {"input": self.source, "output": self.target}
        layouts = [f"{name} sizes {side.sizes} strides {side.strides}" for name, side in sides.items()]
        if self.source.sizes == self.target.sizes:
            strides = [f"{name} strides {side.strides}" for name, side in sides.items()]
            layouts = [f"sizes {self.target.sizes}", *strides]
        layouts.append(f"element width {self.width_nbytes} B (the unit of sizes and strides)")
        lines = [("coalesced", "  ".join(layouts))]
        begins = [
            f"the {name} begins {counted(side.offset * self.width_nbytes)} after the start of its binding"
            for name, side in sides.items()
            if side.offset
        ]
        lines += [("offset", "; ".join(begins))] * bool(begins)
        lines += [("note", self.note)] * bool(self.note)
        lines += [("strategy", self.choice.name)] if self.choice else []
        lines += [(f"step {number}", f"{step}") for number, step in enumerate(self.steps[:STEPS_PRINTED], 1)]
        if len(self.steps) > STEPS_PRINTED:
            lines.append(("...", f"{len(self.steps) - STEPS_PRINTED} more steps"))
        made = [f"{prefixed(nbytes)} for {memory.phrase}" for memory, nbytes in self.scratch]
        lines += [("temporary", "; ".join(made))] * bool(made)
        lines += self._estimates(alone=alone)
        return "\n".join([header, *(f"  {label:<10}  {text}" for label, text in lines)])


class Planner(Protocol):
    """A function that plans a copy from a source to a target, both counted from their bases."""

    def __call__(self, source: Layout, target: Layout, itemsize: int, context: PlanContext, /) -> Plan:
        """The plan for elements of `itemsize` bytes."""


def duration(seconds: float) -> str:
    """Seconds with a decimal prefix, such as 1.25 ms."""
    seconds = float(f"{seconds:.3g}")
    scale, unit = (1.0, "s") if seconds >= 1 else (1e3, "ms") if seconds >= 1e-3 else (1e6, "us")
    return f"{seconds * scale:.3g} {unit}"


SCRATCH = Memory.STAGING, Memory.WINNERS, Memory.PACKED, Memory.WINDOW_OFFSETS, Memory.PACKED_OFFSETS


def scratch_of(steps: Iterable[Step]) -> dict[Memory, int]:
    """Returns the memories that the steps of a strategy need, with their bytes."""
    needed: dict[Memory, int] = {}
    for step in steps:
        if winners := getattr(step, "winners", None):  # of dispatches of windows and of indices
            needed[Memory.WINNERS] = max(needed.get(Memory.WINNERS, 0), winners.span.nbytes)
        if step.writes in (Memory.PACKED, Memory.WINDOW_OFFSETS):
            needed[step.writes] = max(needed.get(step.writes, 0), stop_nbytes(step))
    return needed


def stop_nbytes(step: Step) -> int:
    """Returns the end of what a step writes, in bytes."""
    if isinstance(step, BufferCopies):
        return int(step.offsets[:, 1].max()) + step.nbytes
    if isinstance(step, Clear):
        return step.offset_nbytes + step.nbytes
    assert isinstance(step, OnGrid)
    return step.target_binding.offset_nbytes + step.target_binding.nbytes

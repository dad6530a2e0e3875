"""The cheapest way to copy: candidates are estimated by what their work costs on the adapter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from math import inf, prod
from typing import NamedTuple, TypeAlias

from wgslice.layout import Layout, coalesce
from wgslice.plans.candidates import Candidate, candidates, ends_of
from wgslice.plans.costs import Costs, work_name
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits
from wgslice.plans.row_copies import are_whole_words, row_copies
from wgslice.plans.splitting import cut_end, has_room, split
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Span, dispatch_of
from wgslice.plans.terms import Terms, span_of
from wgslice.plans.windows_steps import WindowDispatch

__all__ = ["Choice", "Step", "alternatives", "cheapest", "dispatches_of", "seconds_of"]

Step: TypeAlias = Clear | BufferCopies | Dispatch | WindowDispatch
Only: TypeAlias = tuple[Kernel, bool] | None  # the one kernel that may be taken, and whether of paired rows


class Choice(NamedTuple):
    """Steps that do a copy, and how long they take by estimate."""

    name: str
    steps: tuple[Step, ...]
    seconds: float  # beside the submission that steps share


def seconds_of(steps: Iterable[Step], costs: Costs) -> float:
    """Estimated seconds of steps, beside those of the submission that they share."""
    return sum(step_seconds(step, costs) for step in steps)


def step_seconds(step: Step, costs: Costs) -> float:
    """Estimated seconds of one step."""
    if isinstance(step, Clear):
        return costs.copy_s + step.nbytes / costs.clear_bytes_per_s
    if isinstance(step, BufferCopies):
        return step.source.size * (costs.copy_s + step.nbytes / costs.copy_bytes_per_s)
    work = costs.works[step.work]
    invocations = prod(step.share.workgroups) * step.share.workgroup_size
    return costs.dispatch_s + invocations * (work.invocation_s + step.invocation_nbytes / work.bytes_per_s)


def cheapest(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Choice:
    """The steps for a coalesced copy that are estimated to take the least time.

    Buffer copies of everything or of rows, or dispatches of pieces that bindings hold.
    """
    copies = by_buffer_copies(source, target, width_nbytes, terms)
    most_s = copies.seconds if copies else inf
    dispatched = by_dispatches(source, target, width_nbytes, terms, most_s)
    if copies and (dispatched is None or copies.seconds <= dispatched.seconds):
        return copies
    assert dispatched is not None
    return dispatched


def alternatives(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> list[Choice]:
    """Every way to do a coalesced copy, the cheapest by estimate first.

    Of a copy in several pieces, those that a kernel cannot take go by the cheapest one that can.
    """
    copies = by_buffer_copies(source, target, width_nbytes, terms)
    found = {copies.name: copies} if copies else {}
    for piece in split(source, target, width_nbytes, terms.limits):
        cut = None if has_room(*piece, width_nbytes, terms) else cut_end(*piece, width_nbytes, terms)
        whole = cut is not None or has_room(*piece, width_nbytes, terms)
        for kernel, _, paired in trusted(*coalesce(*piece), width_nbytes, terms, whole_vectors=whole):
            name = kernel.value + " of pairs" * paired
            if name not in found:
                way = by_dispatches(source, target, width_nbytes, terms, inf, (kernel, paired))
                if way is not None:
                    found[name] = way._replace(name=name)
    return sorted(found.values(), key=lambda choice: choice.seconds)


def by_buffer_copies(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Choice | None:
    """A buffer copy of everything, or of each row, where buffers and layouts allow it."""
    if not (terms.buffer_copies and are_whole_words(source, target, width_nbytes)):
        return None
    step = row_copies(source, target, width_nbytes)
    return Choice(step.name, (step,), step_seconds(step, terms.limits.profile.costs))


def by_dispatches(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, most_s: float, only: Only = None
) -> Choice | None:
    """The cheapest dispatches of pieces; None where they take longer than `most_s`."""
    steps: list[Step] = []
    seconds = 0.0
    for piece in split(source, target, width_nbytes, terms.limits):
        choice = of_piece(*piece, width_nbytes, terms, most_s - seconds, only)
        choice = choice or (of_piece(*piece, width_nbytes, terms, most_s - seconds) if only else None)
        if choice is None:
            return None
        steps += choice.steps
        seconds += choice.seconds
    return Choice(steps[0].name, tuple(steps), seconds)


def of_piece(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, most_s: float, only: Only = None
) -> Choice | None:
    """The cheapest dispatch of a piece, or of all but its end where a buffer ends inside a vector."""
    if has_room(source, target, width_nbytes, terms):
        return by_kernel(source, target, width_nbytes, terms, most_s, only, whole_vectors=True)
    whole = by_kernel(source, target, width_nbytes, terms, most_s, only, whole_vectors=False)
    if whole is not None:
        most_s = whole.seconds
    two_s = 2 * terms.limits.profile.costs.dispatch_s
    cut = cut_end(source, target, width_nbytes, terms) if two_s < most_s else None
    if cut is None:
        return whole
    bulk, end = cut
    of_bulk = of_piece(*bulk, width_nbytes, terms, most_s, only)
    of_end = of_bulk and end_of_piece(*end, width_nbytes, terms, most_s - of_bulk.seconds)
    if of_bulk is None or of_end is None:
        return whole
    return Choice(of_bulk.name, (*of_bulk.steps, *of_end.steps), of_bulk.seconds + of_end.seconds)


def end_of_piece(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, most_s: float
) -> Choice | None:
    """What was cut off, without vectors that its buffer has no room for."""
    source, target = coalesce(source, target)
    copies = by_buffer_copies(source, target, width_nbytes, terms)
    if copies and copies.seconds < most_s:
        most_s = copies.seconds
    found = by_kernel(source, target, width_nbytes, terms, most_s, whole_vectors=False) or copies
    if found is None or found.seconds > most_s:
        return None
    steps = [
        replace(step, reason=f"{step.reason}; the end, whose buffer ends inside a vector of 16 bytes")
        for step in found.steps
        if isinstance(step, BufferCopies | Dispatch)  # what copies are made of
    ]
    return found._replace(steps=tuple(steps))


def by_kernel(
    source: Layout,
    target: Layout,
    width_nbytes: int,
    terms: Terms,
    most_s: float,
    only: Only = None,
    *,
    whole_vectors: bool,
) -> Choice | None:
    """The kernel for a piece, whose sides fit in a binding each, that takes the least time; None if longer.

    Candidates come in the order of what their bytes take at least, so that most need no closer look.
    """
    limits = terms.limits
    costs = limits.profile.costs
    bindings = span_of(source, width_nbytes, limits), span_of(target, width_nbytes, limits)
    source, target = (
        coalesced.shifted(-(binding.offset_nbytes // width_nbytes))
        for coalesced, binding in zip(coalesce(source, target), bindings, strict=True)
    )
    nbytes = target.size * width_nbytes
    bounds: list[tuple[float, int, Candidate]] = []
    for candidate in trusted(source, target, width_nbytes, terms, whole_vectors=whole_vectors):
        if only is None or only == (candidate.kernel, candidate.paired):
            work = costs.works[work_name(candidate.kernel, source, width_nbytes, candidate.paired)]
            bounds.append((costs.dispatch_s + nbytes / work.bytes_per_s, len(bounds), candidate))
    best = None
    for least_s, _, candidate in sorted(bounds):
        if least_s >= most_s:
            break
        steps = tuple(dispatches_of(candidate, source, target, width_nbytes, bindings, limits))
        seconds = seconds_of(steps, costs)
        fits = max(max(step.share.workgroups) for step in steps) <= limits.workgroups
        if fits and seconds < most_s:
            best, most_s = Choice(candidate.kernel.value, steps, seconds), seconds
    return best


def trusted(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, *, whole_vectors: bool
) -> Iterator[Candidate]:
    """Candidates whose kernels passed their tests on the device, and whose costs are known."""
    limits = terms.limits
    works = limits.profile.costs.works
    for candidate in candidates(source, target, width_nbytes, whole_vectors=whole_vectors):
        if work_name(candidate.kernel, source, width_nbytes, candidate.paired) not in works:
            continue
        if limits.distrusted:
            ends = ends_of(candidate.kernel, source, target, width_nbytes)
            if candidate.kernel in limits.distrusted or ends in limits.distrusted:
                continue
        yield candidate


def dispatches_of(
    candidate: Candidate,
    source: Layout,
    target: Layout,
    width_nbytes: int,
    bindings: tuple[Span, Span],
    limits: Limits,
) -> Iterator[Dispatch]:
    """What a candidate needs for a copy: itself, and one for the blocks that rows begin and end inside of."""
    kernel, reason, paired = candidate
    yield dispatch_of(kernel, source, target, width_nbytes, bindings, limits, reason, paired)
    ends = ends_of(kernel, source, target, width_nbytes)
    if ends is not None:
        reason = "the blocks that rows begin and end inside of"
        yield dispatch_of(ends, source, target, width_nbytes, bindings, limits, reason)

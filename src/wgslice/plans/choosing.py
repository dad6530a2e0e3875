"""The cheapest way to copy: candidates are estimated by what their work costs on the adapter."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from math import inf, prod
from typing import NamedTuple, TypeAlias

from wgslice.errors import NoKernelError
from wgslice.layout import Layout, coalesce
from wgslice.plans.candidates import Candidate, candidates, ends_of
from wgslice.plans.costs import name_of, pattern, step_of
from wgslice.plans.estimates import Step, seconds_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import Limits, untrusted
from wgslice.plans.row_copies import are_whole_words, row_copies, row_sizes
from wgslice.plans.splitting import cut_end, has_room, split
from wgslice.plans.steps import BufferCopies, Dispatch, Span, dispatch_of
from wgslice.plans.terms import Terms, span_of

__all__ = [
    "LEAST_OF_BLOCKS",
    "RUNS_OF_A_PIPELINE",
    "WORTHWHILE",
    "Choice",
    "alternatives",
    "cheapest",
    "dispatches_of",
    "trusted",
]

Only: TypeAlias = tuple[Kernel, bool] | None  # the one kernel that may be taken, and whether of paired rows

# Of a candidate's time, or less: what another must be able to take for a closer look at it. Estimates are no
# better than that, and a look is a tenth of planning.
WORTHWHILE = 0.95

# Kernels that leave the ends of rows to another dispatch, and the least share of a row's bytes that are not
# in its ends: of 31 bytes, a block of 16.
LEAVING_ENDS = (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS)
LEAST_OF_BLOCKS = 0.5

# Kernels that most copies of a process take anyway, by whether an invocation takes a piece of memory, as on
# CPUs. Any other may have to be compiled for a copy, and is taken where that pays over so many runs.
COMMON = {
    True: {Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.NARROW_ROWS},
    False: {Kernel.WORD_GRID, Kernel.PAIR_GRID, Kernel.WIDE_GRID, Kernel.NARROW_ROWS},
}
RUNS_OF_A_PIPELINE = 1000


class Choice(NamedTuple):
    """Steps that do a copy, and how long they take by estimate."""

    name: str
    steps: tuple[Step, ...]
    seconds: float  # beside the submission that steps share


def cheapest(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Choice:
    """The steps for a coalesced copy that are estimated to take the least time.

    Buffer copies of everything or of rows, or dispatches of pieces that bindings hold.
    """
    copies_s = copying_seconds(source, target, width_nbytes, terms)
    dispatched = by_dispatches(source, target, width_nbytes, terms, copies_s)
    if dispatched is None and copies_s < inf:
        return by_buffer_copies(source, target, width_nbytes, copies_s)
    if dispatched is None:
        raise NoKernelError(untrusted(f"a copy of sizes {target.sizes}", terms.limits))
    return dispatched


def alternatives(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> list[Choice]:
    """Every way to do a coalesced copy: what is chosen, then the others by what they are estimated to take.

    Of a copy in several pieces, those that a kernel cannot take go by the cheapest one that can.
    """
    copies_s = copying_seconds(source, target, width_nbytes, terms)
    found = {}
    if copies_s < inf:
        copies = by_buffer_copies(source, target, width_nbytes, copies_s)
        found[copies.name] = copies
    for piece in pieces_of(source, target, width_nbytes, terms):
        roomy = has_room(*piece, width_nbytes, terms)
        whole = roomy or cut_end(*piece, width_nbytes, terms) is not None
        for (kernel, _, paired), _ in trusted(*piece, width_nbytes, terms, whole_vectors=whole):
            name = name_by(kernel, paired)
            way = by_dispatches(source, target, width_nbytes, terms, inf, (kernel, paired))
            if way is not None and any(step.name == kernel.value for step in way.steps):
                found.setdefault(name, way._replace(name=name))
    chosen = cheapest(source, target, width_nbytes, terms)
    others = [choice for choice in found.values() if choice.name != chosen.name]
    return [chosen, *sorted(others, key=lambda choice: choice.seconds)]


def name_by(kernel: Kernel, paired: bool) -> str:
    """What a way by a kernel is called."""
    return kernel.value + " of pairs" * paired


def copying_seconds(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> float:
    """What buffer copies of everything, or of each row, take; infinite where they do not do it."""
    if not (terms.buffer_copies and are_whole_words(source, target, width_nbytes)):
        return inf
    costs = terms.limits.profile.costs
    count = prod(row_sizes(source, target))
    return count * costs.copy_s + target.size * width_nbytes / costs.copy_bytes_per_s


def by_buffer_copies(source: Layout, target: Layout, width_nbytes: int, seconds: float) -> Choice:
    """A buffer copy of everything, or of each row, which takes so many seconds."""
    step = row_copies(source, target, width_nbytes)
    return Choice(step.name, (step,), seconds)


def pieces_of(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> list[tuple[Layout, Layout]]:
    """The coalesced copies that bindings and grids hold."""
    pieces = list(split(source, target, width_nbytes, terms.limits))
    return pieces if len(pieces) == 1 else [coalesce(*piece) for piece in pieces]


def by_dispatches(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, most_s: float, only: Only = None
) -> Choice | None:
    """The cheapest dispatches of pieces; None where they take longer than `most_s`."""
    steps: list[Step] = []
    seconds, names = 0.0, []
    for piece in pieces_of(source, target, width_nbytes, terms):
        choice = of_piece(*piece, width_nbytes, terms, most_s - seconds, only)
        choice = choice or (of_piece(*piece, width_nbytes, terms, most_s - seconds) if only else None)
        if choice is None:
            return None
        steps += choice.steps
        seconds += choice.seconds
        names.append(choice.name)
    return Choice(names[0], tuple(steps), seconds)


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
    bulk, end = (coalesce(*part) for part in cut)
    of_bulk = of_piece(*bulk, width_nbytes, terms, most_s, only)
    of_end = of_bulk and end_of_piece(*end, width_nbytes, terms, most_s - of_bulk.seconds)
    if of_bulk is None or of_end is None:
        return whole
    return Choice(of_bulk.name, (*of_bulk.steps, *of_end.steps), of_bulk.seconds + of_end.seconds)


def end_of_piece(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, most_s: float
) -> Choice | None:
    """What was cut off, without vectors that its buffer has no room for."""
    copies_s = copying_seconds(source, target, width_nbytes, terms)
    least_s = min(copies_s, most_s)
    found = by_kernel(source, target, width_nbytes, terms, least_s, whole_vectors=False)
    if found is None:
        if copies_s >= most_s:
            return None
        found = by_buffer_copies(source, target, width_nbytes, copies_s)
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
    """The kernel for a coalesced piece, whose sides fit in a binding each, that takes the least time.

    None where that is longer than `most_s`. Candidates come in the order of what their bytes take at least,
    and only those are looked at more closely that may save a share worth it.
    """
    limits = terms.limits
    costs = limits.profile.costs
    bindings = span_of(source, width_nbytes, limits), span_of(target, width_nbytes, limits)
    source, target = (
        layout.shifted(-(binding.offset_nbytes // width_nbytes))
        for layout, binding in zip((source, target), bindings, strict=True)
    )
    nbytes = target.size * width_nbytes
    common, compiling_s = COMMON[limits.profile.contiguous], costs.pipeline_s / RUNS_OF_A_PIPELINE
    bounds: list[tuple[float, int, Candidate, str]] = []
    for candidate, work in trusted(source, target, width_nbytes, terms, whole_vectors=whole_vectors):
        if only is None or only == (candidate.kernel, candidate.paired):
            share = LEAST_OF_BLOCKS if candidate.kernel in LEAVING_ENDS else 1
            least_s = costs.dispatch_s + share * nbytes / costs.works[work].bytes_per_s
            if candidate.kernel not in common:
                least_s += compiling_s
            bounds.append((least_s, len(bounds), candidate, work))
    best = None
    for least_s, _, candidate, work in sorted(bounds):
        if least_s >= (most_s if best is None else WORTHWHILE * most_s):
            break
        steps = tuple(dispatches_of(candidate, source, target, width_nbytes, bindings, limits, work))
        seconds = seconds_of(steps, costs)
        with_compiling_s = seconds + (0 if candidate.kernel in common else compiling_s)
        fits = max(max(step.share.workgroups) for step in steps) <= limits.workgroups
        if fits and with_compiling_s < most_s:
            best = Choice(name_by(candidate.kernel, candidate.paired), steps, seconds)
            most_s = with_compiling_s
    return best


def trusted(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms, *, whole_vectors: bool
) -> Iterator[tuple[Candidate, str]]:
    """Candidates whose kernels passed their tests on the device, with classes of work of known costs."""
    limits = terms.limits
    works = limits.profile.costs.works
    lies, step = pattern(source, width_nbytes), step_of(source)
    for candidate in candidates(source, target, width_nbytes, whole_vectors=whole_vectors):
        work = name_of(candidate.kernel, width_nbytes, candidate.paired, lies, step)
        if work not in works:
            continue
        if limits.distrusted:
            ends = ends_of(candidate.kernel, source, target, width_nbytes)
            if candidate.kernel in limits.distrusted or ends in limits.distrusted:
                continue
        yield candidate, work


def dispatches_of(
    candidate: Candidate,
    source: Layout,
    target: Layout,
    width_nbytes: int,
    bindings: tuple[Span, Span],
    limits: Limits,
    work: str = "",
) -> Iterator[Dispatch]:
    """What a candidate needs for a copy: itself, and one for the blocks that rows begin and end inside of."""
    kernel, reason, paired = candidate
    yield dispatch_of(kernel, source, target, width_nbytes, bindings, limits, reason, paired, work)
    ends = ends_of(kernel, source, target, width_nbytes)
    if ends is not None:
        reason = "the blocks that rows begin and end inside of"
        yield dispatch_of(ends, source, target, width_nbytes, bindings, limits, reason)

"""A copy to plan: its bindings, its parts, and the reasons that reject strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from math import gcd, inf
from typing import NamedTuple

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout, coalesce, whole_words
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES
from wgslice.plans.profiles import MAX_PLANS, STEPS, Costs, Limits, pattern
from wgslice.plans.steps import Memory, Span, run_nbytes, tile_axis

# No binding is larger, so that 32-bit counts of elements, words and invocations never wrap around.
LARGEST_BINDING_NBYTES = 2**31
MAX_INVOCATIONS = 2**30  # multiplications divide twice as many exactly, and a grid is rounded up


def largest_binding_nbytes(limits: Limits) -> int:
    """The largest binding of a device, in whole vectors."""
    return min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) // WIDEST_NBYTES * WIDEST_NBYTES


def most_invocations(limits: Limits) -> int:
    """The invocations of the largest grid that 32 bits count."""
    return min(limits.workgroups**2 * limits.profile.workgroup_size, MAX_INVOCATIONS)


class Table(NamedTuple):
    """A table of device-resident offsets or indices."""

    layout: Layout  # of integers, from the base of their memory
    itemsize: int  # bytes an offset
    copy_from: bool = True  # whether its buffer's usages allow to copy from it
    capacity_nbytes: float = inf  # as `PlanContext` says of input and output
    in_output: bool = False  # whether it is in the output's buffer
    memory: Memory = Memory.OFFSETS

    @property
    def is_bindable(self) -> bool:
        """Whether a kernel can read them without a packed copy."""
        return self.layout.is_packed and self.layout.offset == 0 and not self.in_output

    @property
    def span(self) -> Span:
        """The binding that holds them."""
        return Span(0, whole_words(self.layout.size * self.itemsize))


class PlanContext(NamedTuple):
    """A plan context: limits, cost model and facts about the bound buffers."""

    limits: Limits
    copy_from: bool = True  # whether the input's buffer has the usage for copies from it
    copy_to: bool = True  # whether the output's buffer has the usage for copies into it
    source_capacity_nbytes: float = inf  # whole vectors of 16 bytes from the base on; inf if all are there
    target_capacity_nbytes: float = inf  # of the output's buffer
    shared: bool = False  # whether input and output share one buffer
    table: Table | None = None

    @property
    def buffer_copies(self) -> bool:
        """Whether both sides' usages allow buffer copies between them."""
        return self.copy_from and self.copy_to


class InContext:
    """What problems know of their device."""

    context: PlanContext

    @property
    def limits(self) -> Limits:
        """The device's limits."""
        return self.context.limits

    @property
    def costs(self) -> Costs:
        """The device's cost model."""
        return self.limits.profile.costs

    @property
    def max_nbytes(self) -> int:
        """Bytes that the largest binding holds at any alignment."""
        return largest_binding_nbytes(self.limits) - self.limits.binding_alignment_nbytes

    @property
    def max_invocations(self) -> int:
        """The invocations of the largest grid that 32 bits count."""
        return most_invocations(self.limits)


class Rebased(NamedTuple):
    """A layout in a buffer, from an offset on at which a binding may begin."""

    base: int  # bytes, where a plan counts from
    layout: Layout  # from there
    stop_nbytes: int  # from there to the end of the last element

    def capacity_nbytes(self, buffer_nbytes: int) -> float:
        """Bytes from the base on in a buffer, as `PlanContext` says them."""
        capacity_nbytes = buffer_nbytes - self.base
        whole_nbytes = -(-max(self.stop_nbytes, 1) // WIDEST_NBYTES) * WIDEST_NBYTES  # a binding is not empty
        return inf if whole_nbytes <= capacity_nbytes else capacity_nbytes // WIDEST_NBYTES * WIDEST_NBYTES


@lru_cache(maxsize=MAX_PLANS)
def rebase(layout: Layout, itemsize: int, limits: Limits) -> Rebased:
    """Splits a layout into the last possible binding offset before it and the layout from there."""
    base = base_of(layout, itemsize, limits)
    rest = layout.shifted(-(base // itemsize))
    return Rebased(base, rest, rest.stop * itemsize)


def base_of(layout: Layout, width_nbytes: int, limits: Limits) -> int:
    """The last offset in bytes, at or before a layout's lowest element, at which a binding may begin."""
    alignment = limits.binding_alignment_nbytes
    return layout.lowest * width_nbytes // alignment * alignment


def span_of(layout: Layout, width_nbytes: int, limits: Limits) -> Span:
    """The binding that holds a layout: from an aligned offset to the end of its last word."""
    start = base_of(layout, width_nbytes, limits)
    return Span(start, whole_words(layout.stop * width_nbytes) - start)


def widen(source: Layout, target: Layout, itemsize: int) -> tuple[Layout, Layout, int]:
    """The same copy in the widest elements that divide the contiguous runs, all strides and all offsets."""
    if target.rank == 0 or not source.strides[-1] == target.strides[-1] == 1:
        return source, target, itemsize
    offsets, distances = (source.offset, target.offset), (*source.strides[:-1], *target.strides[:-1])
    factor = gcd(WIDEST_NBYTES // itemsize, target.sizes[-1], *offsets, *distances)
    if factor == 1:
        return source, target, itemsize
    return *coalesce(in_units(source, factor), in_units(target, factor)), itemsize * factor


def in_units(layout: Layout, factor: int) -> Layout:
    """A layout with contiguous innermost runs, counted in elements `factor` times as wide."""
    *outer_sizes, run = layout.sizes
    outer_strides = [stride // factor for stride in layout.strides[:-1]]
    return Layout.of([*outer_sizes, run // factor], [*outer_strides, 1], layout.offset // factor)


def split(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits
) -> Iterator[tuple[Layout, Layout]]:
    """Halve a copy until bindings hold both sides of every piece, a grid its elements, a kernel its rank."""
    axis = axis_to_halve(source, target, width_nbytes, limits)
    if axis is None:
        yield source, target
        return
    for piece in zip(source.halves(axis), target.halves(axis), strict=True):
        yield from split(*piece, width_nbytes, limits)


def axis_to_halve(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> int | None:
    """The dimension to halve: the shortest beyond a kernel's rank, the furthest-reaching, or the longest."""
    longer = [size for size in target.sizes if size > 1]
    if len(longer) > MAX_RANK:
        return target.sizes.index(min(longer))
    max_nbytes = largest_binding_nbytes(limits)
    for side in (source, target):
        if side.stop * width_nbytes > max_nbytes < span_of(side, width_nbytes, limits).nbytes:
            reaches = [abs(reach) for reach in side.reaches]
            return reaches.index(max(reaches))
    if -(-target.size // limits.profile.workgroup_size) > limits.workgroups**2:
        return target.sizes.index(max(target.sizes))
    return None


# Bytes of a row of a strip; rows in the source that are a multiple of COMPETING_NBYTES apart compete for few
# cache lines.
STRIP_NBYTES = 256
MIN_STRIP_NBYTES = 32  # two elements of any width, and a row that any kernel takes
COMPETING_NBYTES = 256
REPEATED_RUNS = 256  # that are copied for each repeat in turn, while they are cached


SHIFTED_STEPS = tuple(STEPS)  # between source elements that wide loads bring
MIN_SHIFTED_NBYTES = 31  # a row that holds a block of 16 bytes wherever it begins
NO_COPY_USAGE = "a buffer lacks usage COPY_SRC or COPY_DST"
UNPADDED = "an unpadded buffer ends inside a vector of 16 bytes"


class Problem:
    """A coalesced copy of elements of `width_nbytes`; its rows are what the last dimension holds."""

    def __init__(self, source: Layout, target: Layout, width_nbytes: int, context: PlanContext) -> None:
        self.source, self.target = source, target
        self.width_nbytes, self.context, self.limits = width_nbytes, context, context.limits
        self.costs = context.limits.profile.costs
        self.rank = len(target.sizes)
        self.nbytes = target.size * width_nbytes
        self.row_nbytes = run_nbytes(target, width_nbytes)
        self.read_step, self.write_step = (
            (source.strides[-1], target.strides[-1]) if self.rank else (1, 1)  # from one of a row to the next
        )
        self.in_runs = self.read_step == self.write_step == 1  # whether rows are contiguous on both sides
        self.pattern = pattern(source, width_nbytes)  # of the source's row: contiguous, short or long stride
        self.tile_axis = tile_axis(source, target)  # dimension of the source's neighbours, unless rows are
        self.is_held = axis_to_halve(source, target, width_nbytes, context.limits) is None
        sides = (source, context.source_capacity_nbytes), (target, context.target_capacity_nbytes)
        padded = all(nbytes == inf or side.stop * width_nbytes <= nbytes for side, nbytes in sides)
        self.unpadded = None if padded else UNPADDED  # what keeps bindings from holding whole vectors

    def of(self, source: Layout, target: Layout) -> Problem:
        """The same of other layouts in the same buffers."""
        return Problem(source, target, self.width_nbytes, self.context)

    @property
    def parts(self) -> list[tuple[Layout, Layout]]:
        """The copies that bindings and grids hold."""
        return list(split(self.source, self.target, self.width_nbytes, self.limits))

    @cached_property
    def bindings(self) -> tuple[Span, Span]:
        """The bindings that hold both sides."""
        return (
            span_of(self.source, self.width_nbytes, self.limits),
            span_of(self.target, self.width_nbytes, self.limits),
        )

    @cached_property
    def from_bindings(self) -> tuple[Layout, Layout]:
        """Both layouts, counted from the start of their bindings."""
        source, target = (binding.offset_nbytes // self.width_nbytes for binding in self.bindings)
        return self.source.shifted(-source), self.target.shifted(-target)

    @cached_property
    def strips(self) -> list[Problem]:
        """Strips of few elements per row, so that a CPU reads a line again while it is cached; or none."""
        competing = (
            self.pattern == "long-stride" and self.read_step * self.width_nbytes % COMPETING_NBYTES == 0
        )
        if not (competing and self.write_step == 1 and self.limits.profile.contiguous):
            return []
        places = self.target.offset, self.target.sizes[-1], *self.target.strides[:-1]
        if any(place * self.width_nbytes % WORD_NBYTES for place in places):
            return []
        *outer, row = map(range, self.target.sizes)
        each = min(STRIP_NBYTES // self.width_nbytes, len(row))
        rest = len(row) % each
        columns = [row[: len(row) - rest]]
        if rest:
            columns.append(row[-max(rest, MIN_STRIP_NBYTES // self.width_nbytes) :])
        strips = []
        for part in columns:
            read, written = (side.select([*outer, part]) for side in (self.source, self.target))
            if len(part) > each:
                read, written = (side.divided(self.rank - 1, each) for side in (read, written))
            distances = [-abs(stride) for stride in read.strides]  # in the source's order, but for the last
            order = [*sorted(range(read.rank - 1), key=distances.__getitem__), read.rank - 1]
            strips.append(self.of(read.permuted(order), written.permuted(order)))
        return strips if all(strip.pattern == "short-stride" for strip in strips) else []

    @cached_property
    def repeats(self) -> list[Problem]:
        """Short repeated runs with the repeats outside, so that the rows of a CPU are long; or none."""
        profile = self.limits.profile
        if not (3 <= self.rank < MAX_RANK and self.source.strides[-2] == 0 and profile.contiguous):
            return []
        *_, count, repeats, run = self.target.sizes
        if repeats * run * self.width_nbytes >= max(profile.words_each, default=0) * WORD_NBYTES:
            return []
        each = gcd(count, REPEATED_RUNS)
        if each * run * self.width_nbytes < STRIP_NBYTES:
            each = count
        *outer, before, repeated, last = range(self.rank)
        order = *outer, before, repeated + 1, before + 1, last + 1
        sides = self.source, self.target
        return [self.of(*(side.divided(before, each).permuted(order) for side in sides))]

    @cached_property
    def bulk_and_end(self) -> tuple[Problem, Problem] | None:
        """The part before the last whole vector of an unpadded buffer, and the rest; None if that is all."""
        context = self.context
        sides = (self.source, context.source_capacity_nbytes), (self.target, context.target_capacity_nbytes)
        side, missing_nbytes = next(
            (layout, layout.stop * self.width_nbytes - int(capacity_nbytes))
            for layout, capacity_nbytes in sides
            if layout.stop * self.width_nbytes > capacity_nbytes
        )
        choices = []
        for axis, (size, stride) in enumerate(zip(side.sizes, side.strides, strict=True)):
            count = -(-missing_nbytes // (abs(stride) * self.width_nbytes)) if stride else size
            choices.append((count / size, axis, count))
        share, axis, count = min(choices, default=(1, 0, 0))  # of a scalar all
        if share >= 1:
            return None
        whole = [range(size) for size in side.sizes]
        outer, indices, inner = whole[:axis], whole[axis], whole[axis + 1 :]
        parts = indices[: len(indices) - count], indices[len(indices) - count :]
        if side.strides[axis] < 0:
            parts = indices[count:], indices[:count]
        bulk, end = (
            [layout.select([*outer, part, *inner]) for layout in (self.source, self.target)] for part in parts
        )
        return self.of(*coalesce(*bulk)), self.of(*coalesce(*end))  # the bulk perhaps in wider elements

    # reasons

    def against_buffer_copies(self) -> str:
        """Returns why buffer copies are not applicable."""
        found = ["the input buffer lacks usage COPY_SRC"] * (not self.context.copy_from)
        found += ["the output buffer lacks usage COPY_DST"] * (not self.context.copy_to)
        if not self.in_runs:
            found.append(self.apart())
            if self.row_nbytes % WORD_NBYTES:
                found.append(f"rows are {counted(self.row_nbytes)} long, not a multiple of {WORD_NBYTES}")
        elif self.width_nbytes < WORD_NBYTES:
            found.append(self.uneven(WORD_NBYTES))
        return "; ".join(found)

    def apart(self) -> str:
        """Returns the strides that keep rows from being contiguous."""
        read, written, axis = self.read_step, self.write_step, self.tile_axis
        found, element = [], f"{self.width_nbytes}-byte elements"
        if read == 0:
            found.append("the input broadcasts one element along each row")
        elif axis is not None:
            step = abs(self.source.strides[axis])
            step_text = f"{counted(step * self.width_nbytes)} apart" if step > 1 else "contiguous"
            found.append(f"input elements are {step_text} along coalesced dimension {axis}, not along rows")
        else:
            if abs(read) != 1:
                found.append(f"{element} of the input are {counted(abs(read) * self.width_nbytes)} apart")
            if read < 0:
                found.append("the input is reversed along rows")
        if written != 1:
            found.append(f"{element} of the output are {counted(written * self.width_nbytes)} apart")
        return ", and ".join(found)

    def uneven(self, unit_nbytes: int = WIDEST_NBYTES, strides: Sequence[int] | None = None) -> str:
        """Returns which row lengths, offsets and strides, by default of rows, are unaligned to a unit."""
        found = []
        if self.row_nbytes % unit_nbytes:
            found.append(f"rows are {counted(self.row_nbytes)} long")
        between = self.source.strides[:-1] if strides is None else strides
        sides = ("input", self.source, between), ("output", self.target, self.target.strides[:-1])
        for side, layout, outer in sides:
            if layout.offset * self.width_nbytes % unit_nbytes:
                past = counted(layout.offset * self.width_nbytes % unit_nbytes)
                found.append(f"the {side} begins {past} past a multiple")
            if not layout.is_packed:  # there the rows' length says it
                distances = [abs(stride) * self.width_nbytes for stride in outer]
                odd = [distance for distance in distances if distance % unit_nbytes]
                found += [f"{side} rows are {counted(distance)} apart" for distance in dict.fromkeys(odd)]
        return f"unaligned to {unit_nbytes} bytes: {'; '.join(found)}"


def too_short(row_nbytes: int, least_nbytes: int) -> str:
    """The reason against rows of fewer bytes than a kernel copies."""
    return f"rows are {counted(row_nbytes)} long; at least {least_nbytes} are needed"


def counted(nbytes: int) -> str:
    """A number of bytes in words."""
    return "1 byte" if nbytes == 1 else f"{nbytes:,} bytes"

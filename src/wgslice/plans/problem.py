"""A copy to plan: its bindings, its parts, and the reasons that reject strategies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property, lru_cache
from math import gcd, inf
from typing import NamedTuple

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout, coalesce, whole_words
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES
from wgslice.plans.launch import run_nbytes, tile_axis
from wgslice.plans.profiles import MAX_PLANS, STEPS, Limits, pattern
from wgslice.plans.steps import Memory, Span

# No binding is larger, so that 32-bit counts of elements, words and invocations never wrap around.
LARGEST_BINDING_NBYTES = 2**31


class Table(NamedTuple):
    """A table of device-resident offsets or indices."""

    layout: Layout  # of integers, from the base of their memory
    itemsize: int  # bytes an offset
    copy_from: bool = True  # whether its buffer's usages allow to copy from it
    room_nbytes: float = inf  # as `PlanContext` says of input and output
    in_output: bool = False  # whether it lies in the output's buffer
    memory: Memory = Memory.OFFSETS

    @property
    def is_bindable(self) -> bool:
        """Whether a kernel can read them where they lie."""
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
    source_room_nbytes: float = inf  # from the base, whole vectors of 16 bytes; inf where all that are used
    target_room_nbytes: float = inf  # of the output's buffer
    shared: bool = False  # whether input and output lie in one buffer
    table: Table | None = None

    @property
    def buffer_copies(self) -> bool:
        """Whether both sides' usages allow buffer copies between them."""
        return self.copy_from and self.copy_to


class Rebased(NamedTuple):
    """A layout in a buffer, from an offset on at which a binding may begin."""

    base: int  # bytes, where a plan counts from
    layout: Layout  # from there
    stop_nbytes: int  # from there to the end of the last element

    def capacity_nbytes(self, buffer_nbytes: int) -> float:
        """Bytes from the base on in a buffer, as `PlanContext` says them."""
        room_nbytes = buffer_nbytes - self.base
        whole_nbytes = -(-self.stop_nbytes // WIDEST_NBYTES) * WIDEST_NBYTES
        return inf if whole_nbytes <= room_nbytes else room_nbytes // WIDEST_NBYTES * WIDEST_NBYTES


@lru_cache(maxsize=MAX_PLANS)
def rebase(layout: Layout, itemsize: int, limits: Limits) -> Rebased:
    """Split a layout into an aligned base in bytes and the layout from there.

    The base is the last possible binding offset at or before the layout's lowest element, so that equal
    slices at different places of a buffer share a plan.
    """
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
    factor = gcd(
        WIDEST_NBYTES // itemsize,
        target.sizes[-1],
        source.offset,
        target.offset,
        *source.strides[:-1],
        *target.strides[:-1],
    )
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
    """The dimension that reaches furthest on a side too long for a binding, or the longest for a grid.

    Where more dimensions are left than a kernel takes, the shortest.
    """
    longer = [size for size in target.sizes if size > 1]
    if len(longer) > MAX_RANK:
        return target.sizes.index(min(longer))
    max_nbytes = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) // WIDEST_NBYTES * WIDEST_NBYTES
    for side in (source, target):
        if side.stop * width_nbytes > max_nbytes < span_of(side, width_nbytes, limits).nbytes:
            reaches = [abs(reach) for reach in side.reaches]
            return reaches.index(max(reaches))
    if -(-target.size // limits.profile.workgroup_size) > limits.workgroups**2:
        return target.sizes.index(max(target.sizes))
    return None


def cut_end(
    source: Layout, target: Layout, width_nbytes: int, context: PlanContext
) -> tuple[tuple[Layout, Layout], tuple[Layout, Layout]] | None:
    """What has room for whole vectors on a side that lacks it for all, and the rest; None if that is all.

    The cut takes indices off the dimension of which it takes the smallest share: mostly the last row.
    """
    rooms = context.source_room_nbytes, context.target_room_nbytes
    side, room_nbytes = next(
        (layout, int(room))
        for layout, room in zip((source, target), rooms, strict=True)
        if layout.stop * width_nbytes > room
    )
    missing_nbytes = side.stop * width_nbytes - room_nbytes
    choices = []
    for axis, (size, stride) in enumerate(zip(side.sizes, side.strides, strict=True)):
        count = -(-missing_nbytes // (abs(stride) * width_nbytes)) if stride else size
        choices.append((count / size, axis, count))
    share, axis, count = min(choices, default=(1, 0, 0))  # of a scalar all
    if share >= 1:
        return None
    size = side.sizes[axis]
    bulk, end = [[range(size) for size in side.sizes] for _ in range(2)]
    forwards = side.strides[axis] > 0
    bulk[axis] = range(size - count) if forwards else range(count, size)
    end[axis] = range(size - count, size) if forwards else range(count)
    return (source.select(bulk), target.select(bulk)), (source.select(end), target.select(end))


# Bytes of a row of a strip, and what elements of a row lie a multiple of apart where their cache lines
# compete for few places of a cache. Transposed on lavapipe, Mesa 22.3 and 25.0, two cores of an AMD EPYC, ms,
# whole and in strips: 2048 x 2048 uint8 6.0 and 3.9, 5.2 and 3.9; float16 10.3 and 5.3, 11.6 and 5.2; float32
# 13.4 and 7.7, 15.4 and 8.6; int64 26 and 13, 26 and 14. Strips of 128 bytes took 13 and 12 of float16, of
# 512 bytes 5.8 and 5.9, of 1024 8.1 and 9.2. By the bytes from one row of float16 to the next, 8 MiB, Mesa
# 25.0: 512 8.1 and 4.7, 768 6.0 and 4.8, 1280 6.8 and 5.3, 3072 6.4 and 4.8, 8192 10.1 and 5.5; 4160 5.1 and
# 5.1, 4224 5.8 and 5.8.
STRIP_NBYTES = 256
MIN_STRIP_NBYTES = 32  # two elements of any width, and a row that any kernel takes
COMPETING_NBYTES = 256


def strip_by_strip(source: Layout, target: Layout, each: int) -> tuple[Layout, Layout]:
    """Returns a copy with rows cut into `each` elements, dimensions before them in the source's order."""

    def cut(layout: Layout) -> Layout:
        *sizes, size = layout.sizes
        *strides, stride = layout.strides
        if size == each:
            return layout
        return Layout.of((*sizes, size // each, each), (*strides, each * stride, stride), layout.offset)

    read, written = cut(source), cut(target)
    *before, last = range(read.rank)
    order = [*sorted(before, key=lambda axis: -abs(read.strides[axis])), last]
    return read.permuted(order), written.permuted(order)


SHIFTED_STEPS = tuple(STEPS)  # between source elements that wide loads bring
MIN_SHIFTED_NBYTES = 31  # a row that holds a block of 16 bytes wherever it begins
NO_ROOM = "an unpadded buffer ends inside a vector of 16 bytes"


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
        self.pattern = pattern(source, width_nbytes)  # how elements of a row lie in the source
        self.tile_axis = tile_axis(source, target)  # dimension of the source's neighbours, unless rows are
        self.is_held = axis_to_halve(source, target, width_nbytes, context.limits) is None
        sides = (source, context.source_room_nbytes), (target, context.target_room_nbytes)
        has_room = all(room == inf or side.stop * width_nbytes <= room for side, room in sides)
        self.unpadded = None if has_room else NO_ROOM  # what keeps bindings from holding whole vectors

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
        """The same in strips of few elements of each row, so that a line is read again while it is cached.

        What does not divide is one more, which may write elements again. None where lines are cached anyway,
        on a GPU, whose neighbouring invocations write neighbours, and where rows share words.
        """
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
            strips.append(self.of(*strip_by_strip(read, written, min(each, len(part)))))
        return strips if all(strip.pattern == "short-stride" for strip in strips) else []

    # reasons

    def against_buffer_copies(self) -> str:
        """Returns why buffer copies are not applicable."""
        reasons = ["the input buffer lacks usage COPY_SRC"] * (not self.context.copy_from)
        reasons += ["the output buffer lacks usage COPY_DST"] * (not self.context.copy_to)
        if not self.in_runs:
            reasons.append(self.apart())
        elif self.width_nbytes < WORD_NBYTES:
            reasons.append(self.uneven(WORD_NBYTES))
        return "; ".join(reasons)

    def short(self) -> str:
        """Returns that rows are too short to hold an aligned vector of 16 bytes wherever they begin."""
        return f"rows are {counted(self.row_nbytes)} long; at least {MIN_SHIFTED_NBYTES} are needed"

    def against_tiles(self) -> str:
        """Why permuted elements are no whole vectors of 16 bytes."""
        axis = self.tile_axis
        assert axis is not None
        forwards = [range(size) for size in self.source.sizes]
        if self.source.strides[axis] < 0:
            forwards[axis] = forwards[axis][::-1]
        strides = [stride for other, stride in enumerate(self.source.strides) if other != axis]
        return self.of(self.source.select(forwards), self.target).uneven(WIDEST_NBYTES, strides)

    def apart(self) -> str:
        """Returns the strides that keep rows from being contiguous."""
        read, written = self.read_step, self.write_step
        reasons = []
        axis = self.tile_axis if read else None
        if read == 0:
            reasons.append("the input broadcasts one element along each row")
        elif axis is not None:
            step = abs(self.source.strides[axis])
            step_text = f"{counted(step * self.width_nbytes)} apart" if step > 1 else "contiguous"
            reasons.append(f"input elements are {step_text} along coalesced dimension {axis}, not along rows")
        elif abs(read) != 1:
            nbytes = counted(abs(read) * self.width_nbytes)
            reasons.append(f"elements of an input row are {nbytes} apart")
        if read < 0 and axis is None:
            reasons.append("the input is reversed along rows")
        if written != 1:
            nbytes = counted(written * self.width_nbytes)
            reasons.append(f"elements of an output row are {nbytes} apart")
        return ", and ".join(reasons)

    def uneven(self, unit_nbytes: int = WIDEST_NBYTES, strides: Sequence[int] | None = None) -> str:
        """Returns which row lengths, offsets and strides are unaligned to a unit.

        `strides` are those of the source that matter, where these are not those of its rows.
        """
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


def counted(nbytes: int) -> str:
    """A number of bytes in words."""
    return "1 byte" if nbytes == 1 else f"{nbytes:,} bytes"

"""The plan of a copy: from two layouts to the steps that copy one into the other."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache
from math import gcd, prod

from wgslice.arguments import MAX_RANK, U32_MAX
from wgslice.layout import Layout, coalesce
from wgslice.plans.dealing import most_groups
from wgslice.plans.kernels import Kernel, choose_kernel
from wgslice.plans.pixels import as_pixels, pixels_of
from wgslice.plans.plan import LARGEST_BINDING_NBYTES, Plan, Step, in_order
from wgslice.plans.profiles import LEAST_BULK_NBYTES, MOST_PLANS, PATTERN_NBYTES, WIDEST_NBYTES, Limits
from wgslice.plans.rows import is_ragged
from wgslice.plans.steps import BufferCopies, Dispatch, Span, dispatch_of
from wgslice.plans.terms import Terms, span_of

__all__ = ["dispatches_of", "fills", "plan_copy", "split"]


@lru_cache(maxsize=MOST_PLANS)
def plan_copy(source: Layout, target: Layout, itemsize: int, terms: Terms) -> Plan:
    """The plan that copies `source` into `target`, two layouts of equal sizes, index by index.

    `target` must not overlap itself.
    """
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    nbytes = target.size * itemsize
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    source, target, width_nbytes = widen(*coalesce(source, target), itemsize)
    steps = in_order(steps_of(source, target, width_nbytes, terms))
    return Plan(nbytes, itemsize, width_nbytes, source, target, steps, terms=terms)


def steps_of(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Iterator[Step]:
    """Buffer copies, or dispatches of pieces that bindings hold."""
    if terms.buffer_copies and copies_rows(source, target, width_nbytes, terms.limits):
        yield row_copies(source, target, width_nbytes)
        return
    for piece in split(source, target, width_nbytes, terms.limits):
        yield from dispatches(*piece, width_nbytes, terms)


def dispatches(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Iterator[Step]:
    """One piece, whose sides fit in a binding each, as a dispatch.

    Where a buffer ends inside the last vector of 16 bytes, a kernel of rows or pixels that needs whole
    vectors takes all but the end, which is a step of its own.
    """
    roomy = has_room(source, target, width_nbytes, terms)
    if not roomy and target.size * width_nbytes >= LEAST_BULK_NBYTES:
        (whole, *_) = dispatch(source, target, width_nbytes, terms.limits, whole_vectors=True)
        cut = whole.kernel in (Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS)
        parts = cut_end(source, target, width_nbytes, terms) if cut else None
        if parts is not None:
            bulk, end = parts
            yield from dispatches(*bulk, width_nbytes, terms)
            yield from end_steps(*end, width_nbytes, terms)
            return
    yield from dispatch(source, target, width_nbytes, terms.limits, whole_vectors=roomy)


def has_room(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> bool:
    """Whether both buffers have room to bind the last vector of 16 bytes that holds an element."""
    rooms = terms.source_room_nbytes, terms.target_room_nbytes
    return all(
        layout.stop * width_nbytes <= room for layout, room in zip((source, target), rooms, strict=True)
    )


def cut_end(
    source: Layout, target: Layout, width_nbytes: int, terms: Terms
) -> tuple[tuple[Layout, Layout], tuple[Layout, Layout]] | None:
    """What has room for whole vectors on a side that lacks it for all, and the rest; None if that is all.

    The cut takes indices off the dimension of which it takes the smallest share: mostly the last row.
    """
    rooms = terms.source_room_nbytes, terms.target_room_nbytes
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
    share, axis, count = min(choices)
    if share >= 1:
        return None
    size = side.sizes[axis]
    bulk, end = [[range(size) for size in side.sizes] for _ in range(2)]
    forwards = side.strides[axis] > 0
    bulk[axis] = range(size - count) if forwards else range(count, size)
    end[axis] = range(size - count, size) if forwards else range(count)
    return (source.select(bulk), target.select(bulk)), (source.select(end), target.select(end))


def end_steps(source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> Iterator[Step]:
    """What was cut off, without vectors that its buffer has no room for."""
    source, target = coalesce(source, target)
    steps: Iterable[BufferCopies | Dispatch]
    if terms.buffer_copies and copies_rows(source, target, width_nbytes, terms.limits):
        steps = [row_copies(source, target, width_nbytes)]
    else:
        pieces = split(source, target, width_nbytes, terms.limits)
        steps = (
            step
            for piece in pieces
            for step in dispatch(*piece, width_nbytes, terms.limits, whole_vectors=False)
        )
    for step in steps:
        yield replace(step, reason=f"{step.reason}; the end, whose buffer ends inside a vector of 16 bytes")


def copies_rows(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> bool:
    """Whether buffer copies do it: of everything, of long rows, or of few."""
    if width_nbytes < 4:
        return False
    if source.is_packed and target.is_packed:
        return True
    if not source.strides[-1:] == target.strides[-1:] == (1,):
        return False
    run = target.sizes[-1]
    long = run * width_nbytes >= limits.profile.row_copy_nbytes
    return long or target.size // run <= limits.profile.few_rows


def row_copies(source: Layout, target: Layout, width_nbytes: int) -> BufferCopies:
    """A buffer copy of each contiguous row; of everything, where that is one."""
    if source.is_packed and target.is_packed:
        rows: list[range] = []
    else:
        rows = [range(size) for size in target.sizes[:-1]]
    firsts: list[int | range] = [*rows, *[0] * (target.rank - len(rows))]
    nbytes = prod(target.sizes[len(rows) :]) * width_nbytes
    source_rows, target_rows = source.select(firsts), target.select(firsts)
    return BufferCopies(in_bytes(source_rows, width_nbytes), in_bytes(target_rows, width_nbytes), nbytes)


def in_bytes(layout: Layout, width_nbytes: int) -> Layout:
    """The same places, counted in bytes."""
    strides = [stride * width_nbytes for stride in layout.strides]
    return Layout.of(layout.sizes, strides, layout.offset * width_nbytes)


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
    most_nbytes = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) // WIDEST_NBYTES * WIDEST_NBYTES
    for side in (source, target):
        if span_of(side, width_nbytes, limits).nbytes > most_nbytes:
            reaches = [abs(reach) for reach in side.reaches]
            return reaches.index(max(reaches))
    if most_groups(source, target, width_nbytes, limits.profile) > limits.workgroups**2:
        return target.sizes.index(max(target.sizes))
    return None


def dispatch(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits, *, whole_vectors: bool
) -> Iterator[Dispatch]:
    """One piece, whose sides fit in a binding each, by the kernel that suits it."""
    bindings = span_of(source, width_nbytes, limits), span_of(target, width_nbytes, limits)
    source, target = (
        coalesced.shifted(-(binding.offset_nbytes // width_nbytes))
        for coalesced, binding in zip(coalesce(source, target), bindings, strict=True)
    )
    kernel, reason = choose_kernel(source, target, width_nbytes, limits, whole_vectors=whole_vectors)
    yield from dispatches_of(kernel, source, target, width_nbytes, bindings, limits, reason)


def dispatches_of(
    kernel: Kernel,
    source: Layout,
    target: Layout,
    width_nbytes: int,
    bindings: tuple[Span, Span],
    limits: Limits,
    reason: str,
) -> Iterator[Dispatch]:
    """What a kernel needs for a copy: itself, and one for the blocks that rows begin and end inside of."""
    yield dispatch_of(kernel, source, target, width_nbytes, bindings, limits, reason)
    ends = "the blocks that rows begin and end inside of"
    if kernel in (Kernel.SHIFTED_GRID, Kernel.SHIFTED_ROWS) and is_ragged(target, width_nbytes):
        yield dispatch_of(Kernel.ROW_ENDS, source, target, width_nbytes, bindings, limits, ends)
    if kernel is Kernel.PIXELS and pixels_of(*as_pixels(source, target), width_nbytes).ragged:
        yield dispatch_of(Kernel.NARROW_ENDS, source, target, width_nbytes, bindings, limits, ends)


def fills(target: Layout, itemsize: int) -> list[tuple[Layout, Layout]]:
    """The copies that write one element everywhere, out of a buffer that repeats it.

    The runs of neighbours read as many neighbours, so that they are copied as quickly as any; those longer
    than the buffer are cut.
    """
    _, target = coalesce(target, target)
    if target.rank == 0 or target.strides[-1] != 1:
        return [(Layout.of(target.sizes, [0] * target.rank), target)]
    *outer, run = target.sizes
    outer_strides = target.strides[:-1]
    most = PATTERN_NBYTES // itemsize
    count, rest = divmod(run, most)
    pieces = []
    if count:
        pieces.append(Layout.of([*outer, count, most], [*outer_strides, most, 1], target.offset))
    if rest:
        pieces.append(Layout.of([*outer, rest], [*outer_strides, 1], target.offset + count * most))
    return [(Layout.of(piece.sizes, [0] * (piece.rank - 1) + [1]), piece) for piece in pieces]

"""From two layouts to the steps that copy one into the other. All decisions are made here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from math import gcd, prod

from wgslice.integers import U32_MAX, whole_words
from wgslice.kernels import WIDEST_NBYTES, choose_kernel, most_groups
from wgslice.layout import Layout, coalesce
from wgslice.profiles import Limits
from wgslice.steps import BufferCopies, Dispatch, Span, dispatch_of

__all__ = ["Plan", "plan_between", "plan_copy", "rebase"]

STEPS_PRINTED = 8

# No binding is larger, so that 32-bit counts of elements, words and invocations never wrap around.
LARGEST_BINDING_NBYTES = 2**31


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
    steps: tuple[BufferCopies | Dispatch, ...]

    @property
    def summary(self) -> str:
        """One line: merged dimensions, element width, kernels."""
        names = (
            step.kernel.value if isinstance(step, Dispatch) else str(step).partition(" of ")[0]
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


@lru_cache(maxsize=4096)
def plan_between(
    source: Layout,
    target: Layout,
    itemsize: int,
    limits: Limits,
    buffer_nbytes: tuple[int, int],
    *,
    buffer_copy: bool,
) -> tuple[Plan, int, int]:
    """The plan for places in buffers of so many bytes, and the bases that it counts from on both sides."""
    source_base, source_layout = rebase(source, itemsize, limits)
    target_base, target_layout = rebase(target, itemsize, limits)
    stops = source.stop * itemsize, target.stop * itemsize
    whole_vectors = all(
        -(-stop // WIDEST_NBYTES) * WIDEST_NBYTES <= nbytes
        for stop, nbytes in zip(stops, buffer_nbytes, strict=True)
    )
    plan = plan_copy(
        source_layout,
        target_layout,
        itemsize,
        limits,
        buffer_copy=buffer_copy,
        whole_vectors=whole_vectors,
    )
    return plan, source_base, target_base


def rebase(layout: Layout, itemsize: int, limits: Limits) -> tuple[int, Layout]:
    """Split a layout into an aligned base in bytes and the layout from there.

    The base is the last possible binding offset at or before the layout's lowest element, so that equal
    slices at different places of a buffer share a plan.
    """
    base = base_of(layout, itemsize, limits)
    return base, layout.shifted(-(base // itemsize))


@lru_cache(maxsize=4096)
def plan_copy(
    source: Layout,
    target: Layout,
    itemsize: int,
    limits: Limits,
    *,
    buffer_copy: bool = True,
    whole_vectors: bool = True,
) -> Plan:
    """The plan that copies `source` into `target`, two layouts of equal sizes, index by index.

    `target` must not overlap itself. `buffer_copy` says whether both buffers' usages allow buffer copies,
    `whole_vectors` whether both have room to bind the last vector of 16 bytes that holds an element.
    """
    if target.size > U32_MAX:
        raise ValueError(f"{target.size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    nbytes = target.size * itemsize
    if target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    source, target, width_nbytes = widen(*coalesce(source, target), itemsize)
    steps: tuple[BufferCopies | Dispatch, ...]
    if buffer_copy and copies_rows(source, target, width_nbytes, limits):
        steps = (row_copies(source, target, width_nbytes),)
    else:
        pieces = split(source, target, width_nbytes, limits)
        steps = tuple(dispatch(*piece, width_nbytes, limits, whole_vectors=whole_vectors) for piece in pieces)
    return Plan(nbytes, itemsize, width_nbytes, source, target, steps)


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
    """Halve a copy until both sides of every piece fit in a binding, and its elements in a grid."""
    axis = axis_to_halve(source, target, width_nbytes, limits)
    if axis is None:
        yield source, target
        return
    for piece in zip(source.halves(axis), target.halves(axis), strict=True):
        yield from split(*piece, width_nbytes, limits)


def axis_to_halve(source: Layout, target: Layout, width_nbytes: int, limits: Limits) -> int | None:
    """The dimension that reaches furthest on a side too long for a binding, or the longest for a grid."""
    most_nbytes = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) // WIDEST_NBYTES * WIDEST_NBYTES
    for side in (source, target):
        if span_of(side, width_nbytes, limits).nbytes > most_nbytes:
            reaches = [abs(reach) for reach in side.reaches]
            return reaches.index(max(reaches))
    if most_groups(source, target, width_nbytes, limits.profile) > limits.workgroups**2:
        return target.sizes.index(max(target.sizes))
    return None


def base_of(layout: Layout, width_nbytes: int, limits: Limits) -> int:
    """The last offset in bytes, at or before a layout's lowest element, at which a binding may begin."""
    alignment = limits.binding_alignment_nbytes
    return layout.lowest * width_nbytes // alignment * alignment


def span_of(layout: Layout, width_nbytes: int, limits: Limits) -> Span:
    """The binding that holds a layout: from an aligned offset to the end of its last word."""
    start = base_of(layout, width_nbytes, limits)
    return Span(start, whole_words(layout.stop * width_nbytes) - start)


def dispatch(
    source: Layout, target: Layout, width_nbytes: int, limits: Limits, *, whole_vectors: bool
) -> Dispatch:
    """One piece, whose sides fit in a binding each, as a dispatch."""
    bindings = span_of(source, width_nbytes, limits), span_of(target, width_nbytes, limits)
    source, target = (
        coalesced.shifted(-(binding.offset_nbytes // width_nbytes))
        for coalesced, binding in zip(coalesce(source, target), bindings, strict=True)
    )
    kernel, reason = choose_kernel(source, target, width_nbytes, limits, whole_vectors=whole_vectors)
    return dispatch_of(kernel, source, target, width_nbytes, bindings, limits, reason)

"""What is known of the buffers of a copy, and where in them a plan counts from."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import NamedTuple

from wgslice.arguments import whole_words
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.profiles import MOST_PLANS, Limits
from wgslice.plans.steps import Memory, Span

__all__ = ["LARGEST_BINDING_NBYTES", "Rebased", "Table", "Terms", "rebase", "span_of"]

# No binding is larger, so that 32-bit counts of elements, words and invocations never wrap around.
LARGEST_BINDING_NBYTES = 2**31


class Table(NamedTuple):
    """Offsets of windows that the GPU has."""

    layout: Layout  # of integers, from the base of their memory
    itemsize: int  # bytes an offset
    copy_from: bool = True  # whether its buffer's usages allow to copy from it
    room_nbytes: float = inf  # as `Terms` says of input and output
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


class Terms(NamedTuple):
    """What a plan can rely on: the device, and what is known of the buffers on both sides."""

    limits: Limits
    copy_from: bool = True  # whether the input's buffer has the usage for copies from it
    copy_to: bool = True  # whether the output's buffer has the usage for copies into it
    source_room_nbytes: float = inf  # from the base, whole vectors of 16 bytes; inf where all that are used
    target_room_nbytes: float = inf  # likewise of the output's buffer
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
        """Bytes from the base on in a buffer, as `Terms` says them."""
        return room_of(self.stop_nbytes, buffer_nbytes - self.base)


@lru_cache(maxsize=MOST_PLANS)
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


def room_of(stop_nbytes: int, buffer_nbytes: int) -> float:
    """What `Terms` says of a buffer of so many bytes, for what ends at one of them; both from a base."""
    whole_nbytes = -(-stop_nbytes // WIDEST_NBYTES) * WIDEST_NBYTES
    return inf if whole_nbytes <= buffer_nbytes else buffer_nbytes // WIDEST_NBYTES * WIDEST_NBYTES

"""A copy to plan, and what of its layouts and buffers keeps strategies from it, as it is printed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from wgslice.layout import Layout
from wgslice.plans.costs import STEPS, pattern
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES
from wgslice.plans.rows import run_nbytes
from wgslice.plans.splitting import axis_to_halve, has_room, split
from wgslice.plans.steps import Span
from wgslice.plans.terms import Terms, span_of
from wgslice.plans.tiles import tile_axis

__all__ = ["LEAST_SHIFTED_NBYTES", "NO_ROOM", "SHIFTED_STEPS", "Problem"]

SHIFTED_STEPS = tuple(STEPS)  # between source elements that wide loads bring
LEAST_SHIFTED_NBYTES = 31  # a row that holds a block of 16 bytes wherever it begins
NO_ROOM = "a buffer ends inside a vector of 16 bytes"


class Problem:
    """A coalesced copy of elements of `width_nbytes`; its rows are what the last dimension holds."""

    def __init__(self, source: Layout, target: Layout, width_nbytes: int, terms: Terms) -> None:
        self.source, self.target = source, target
        self.width_nbytes, self.terms, self.limits = width_nbytes, terms, terms.limits
        self.rank = len(target.sizes)
        self.nbytes = target.size * width_nbytes
        self.row_nbytes = run_nbytes(target, width_nbytes)
        self.read_step, self.write_step = (
            (source.strides[-1], target.strides[-1]) if self.rank else (1, 1)  # from one of a row to the next
        )
        self.in_runs = self.read_step == self.write_step == 1  # whether rows are contiguous on both sides
        self.pattern = pattern(source, width_nbytes)  # how elements of a row lie in the source
        self.tile_axis = tile_axis(source, target)  # dimension of the source's neighbours, unless rows are
        self.is_held = axis_to_halve(source, target, width_nbytes, terms.limits) is None
        self.is_roomy = has_room(source, target, width_nbytes, terms)

    def of(self, source: Layout, target: Layout) -> Problem:
        """The same of other layouts in the same buffers."""
        return Problem(source, target, self.width_nbytes, self.terms)

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

    @property
    def tight(self) -> str | None:
        """What keeps bindings from holding whole vectors, if anything does."""
        return None if self.is_roomy else NO_ROOM

    # reasons

    def against_buffer_copies(self) -> str:
        """Why buffer copies do not do it."""
        return "; and ".join(self._against_buffer_copies())

    def _against_buffer_copies(self) -> Iterator[str]:
        if not self.terms.copy_from:
            yield "the input's buffer has no usage COPY_SRC"
        if not self.terms.copy_to:
            yield "the output's buffer has no usage COPY_DST"
        if not self.in_runs:
            yield self.apart()
        elif self.width_nbytes < WORD_NBYTES:
            yield self.uneven(WORD_NBYTES)

    def uneven_vectors(self) -> str:
        """What of the rows is no multiple of 16 bytes."""
        return self.uneven(WIDEST_NBYTES)

    def short(self) -> str:
        """That rows are too short to hold a block of 16 bytes wherever they begin."""
        return self.short_of(LEAST_SHIFTED_NBYTES)

    def short_of(self, least_nbytes: int) -> str:
        """That rows are too short."""
        return f"rows of {counted(self.row_nbytes)}, at least {least_nbytes} are needed"

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
        """How neighbours on one side lie on the other."""
        read, written = self.read_step, self.write_step
        reasons = []
        axis = self.tile_axis if read else None
        if read == 0:
            reasons.append("the input repeats one element along each row")
        elif axis is not None:
            step = abs(self.source.strides[axis])
            between = f", {counted(step * self.width_nbytes)} apart," if step > 1 else ""
            reasons.append(f"permuted, neighbours of the input{between} lie along merged dimension {axis}")
        elif abs(read) != 1:
            nbytes = counted(abs(read) * self.width_nbytes)
            reasons.append(f"elements of a row lie {nbytes} apart in the input")
        if read < 0 and axis is None:
            reasons.append("the input is read backwards")
        if written != 1:
            nbytes = counted(written * self.width_nbytes)
            reasons.append(f"elements of a row lie {nbytes} apart in the output")
        return ", and ".join(reasons)

    def uneven(self, unit_nbytes: int, strides: Sequence[int] | None = None) -> str:
        """What of the rows is no multiple of a unit: how long they are, where they begin, how far apart.

        `strides` are those of the source that matter, where these are not those of its rows.
        """
        found = []
        if self.row_nbytes % unit_nbytes:
            found.append(f"the rows' length, {self.row_nbytes}")
        between = self.source.strides[:-1] if strides is None else strides
        sides = ("input", self.source, between), ("output", self.target, self.target.strides[:-1])
        for side, layout, outer in sides:
            if layout.offset * self.width_nbytes % unit_nbytes:
                past = counted(layout.offset * self.width_nbytes % unit_nbytes)
                found.append(f"their beginning in the {side}, {past} past one")
            if not layout.is_packed:  # there the rows' length says it
                distances = [abs(stride) * self.width_nbytes for stride in outer]
                odd = [distance for distance in distances if distance % unit_nbytes]
                found += [f"their distance in the {side}, {distance}" for distance in dict.fromkeys(odd)]
        return f"not multiples of {unit_nbytes} bytes: {'; '.join(found)}"


def counted(nbytes: int) -> str:
    """Bytes as people say them."""
    return "1 byte" if nbytes == 1 else f"{nbytes} bytes"

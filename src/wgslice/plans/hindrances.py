"""What in the layouts of a copy, and in its buffers, keeps it from a faster way."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from math import prod

from wgslice.layout import Layout
from wgslice.plans.candidates import LEAST_SHIFTED_NBYTES, SHIFTED_STEPS
from wgslice.plans.choosing import cheapest
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.profiles import FAILED, Profile
from wgslice.plans.rows import run_nbytes
from wgslice.plans.splitting import has_room
from wgslice.plans.steps import Dispatch
from wgslice.plans.terms import Terms
from wgslice.plans.tiles import tile_axis

__all__ = ["Copied"]

FASTEST = {
    *(Kernel.WIDE_ROWS, Kernel.WIDE_GRID, Kernel.TILES, Kernel.WIDE_TILES),
    *(Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.ROW_ENDS),
}


@dataclass(frozen=True)
class Copied:
    """A merged copy in elements of `width_nbytes`; its rows are what the last dimension holds."""

    source: Layout
    target: Layout
    width_nbytes: int
    terms: Terms

    def hindrances(self, kernels: Set[Kernel]) -> Iterator[str]:
        """A line for each way, called by its name, that would be faster than the kernels that are taken.

        `wide_rows` moves whole vectors of 16 bytes, `shifted_rows` blocks of 16 bytes that may begin
        anywhere, `wide_tiles` vectors of permuted elements through workgroup memory.
        """
        yield from self.distrusted()
        if not kernels:
            return
        yield f"in the way of a buffer copy: {'; and '.join(self.against_buffer_copies())}"
        if Kernel.WIDE_TILES not in kernels and self.is_permuted and not self.profile.contiguous:
            yield f"in the way of wide_tiles: {self.against_tiles()}"
        if kernels <= {Kernel.WIDE_ROWS, Kernel.WIDE_GRID, Kernel.TILES, Kernel.WIDE_TILES}:
            return
        on_gpu = not self.profile.contiguous
        wide, shifted = ("wide_grid", "shifted_grid") if on_gpu else ("wide_rows", "shifted_rows")
        if self.in_runs and self.width_nbytes < WIDEST_NBYTES:
            yield f"in the way of {wide}: {self.uneven(WIDEST_NBYTES)}"
        if not kernels <= FASTEST and not {Kernel(shifted), Kernel.ROW_ENDS} & self.terms.limits.distrusted:
            yield f"in the way of {shifted}: {self.against_blocks()}"

    def distrusted(self) -> Iterator[str]:
        """What would be taken, had it not failed its tests on the device."""
        limits = self.terms.limits
        if limits.distrusted:
            trusting = self.terms._replace(limits=replace(limits, distrusted=frozenset()))
            choice = cheapest(self.source, self.target, self.width_nbytes, trusting)
            kernels = [step.kernel for step in choice.steps if isinstance(step, Dispatch)]
            for kernel in dict.fromkeys(kernels):
                if kernel in limits.distrusted:
                    yield f"in the way of {kernel.value}: {FAILED}"

    @property
    def profile(self) -> Profile:
        """Of the device."""
        return self.terms.limits.profile

    @property
    def row_nbytes(self) -> int:
        """Bytes of a row."""
        return run_nbytes(self.target, self.width_nbytes)

    @property
    def steps(self) -> tuple[int, int]:
        """Elements from one of a row to the next, in source and target."""
        return (self.source.strides[-1], self.target.strides[-1]) if self.target.rank else (1, 1)

    @property
    def in_runs(self) -> bool:
        """Whether neighbours are neighbours on both sides."""
        return self.steps == (1, 1)

    @property
    def is_permuted(self) -> bool:
        """Whether neighbours of the source lie along another dimension."""
        return self.steps[0] != 0 and tile_axis(self.source, self.target) is not None

    def against_buffer_copies(self) -> Iterator[str]:
        """Why copies of contiguous words do not do it."""
        if not self.terms.copy_from:
            yield "the input's buffer has no usage COPY_SRC"
        if not self.terms.copy_to:
            yield "the output's buffer has no usage COPY_DST"
        if not self.in_runs:
            yield self.apart()
            return
        if self.width_nbytes < WORD_NBYTES:
            yield self.uneven(WORD_NBYTES)
        rows = prod(self.target.sizes[:-1])
        if not (self.source.is_packed and self.target.is_packed):
            yield f"it would take {rows}, one for each row of {counted(self.row_nbytes)}"

    def against_blocks(self) -> str:
        """Why blocks of 16 bytes, from any byte on, do not do it."""
        if abs(self.steps[0]) not in SHIFTED_STEPS or self.steps[1] != 1:
            return self.apart()
        if not self.target.is_nested:
            return "rows of the output interleave"
        if self.row_nbytes < LEAST_SHIFTED_NBYTES:
            return f"rows of {counted(self.row_nbytes)}, at least {LEAST_SHIFTED_NBYTES} are needed"
        if self.tight:
            return self.tight
        return "it is estimated to take longer"

    def against_tiles(self) -> str:
        """Why vectors of a permuted source, through workgroup memory, do not do it."""
        axis = tile_axis(self.source, self.target)
        assert axis is not None
        forwards = [range(size) for size in self.source.sizes]
        if self.source.strides[axis] < 0:
            forwards[axis] = forwards[axis][::-1]
        apart = [stride for other, stride in enumerate(self.source.strides) if other != axis]
        uneven = replace(self, source=self.source.select(forwards)).uneven(WIDEST_NBYTES, apart)
        return uneven or self.tight or "it is estimated to take longer"

    @property
    def tight(self) -> str:
        """What keeps bindings from holding whole vectors; empty where nothing does."""
        roomy = has_room(self.source, self.target, self.width_nbytes, self.terms)
        return "" if roomy else "a buffer ends inside a vector of 16 bytes"

    def apart(self) -> str:
        """How neighbours on one side lie on the other."""
        read, written = self.steps
        reasons = []
        if read == 0:
            reasons.append("the input repeats one element along each row")
        elif self.is_permuted:
            axis = tile_axis(self.source, self.target)
            assert axis is not None
            step = abs(self.source.strides[axis])
            between = f", {counted(step * self.width_nbytes)} apart," if step > 1 else ""
            reasons.append(f"permuted, neighbours of the input{between} lie along merged dimension {axis}")
        elif abs(read) != 1:
            nbytes = counted(abs(read) * self.width_nbytes)
            reasons.append(f"elements of a row lie {nbytes} apart in the input")
        if read < 0 and not self.is_permuted:
            reasons.append("the input is read backwards")
        if written != 1:
            reasons.append(
                f"elements of a row lie {counted(written * self.width_nbytes)} apart in the output"
            )
        return ", and ".join(reasons)

    def uneven(self, unit_nbytes: int, apart: Sequence[int] | None = None) -> str:
        """What of the rows is no multiple of a unit: how long they are, where they begin, how far apart.

        `apart` are the strides of the source that matter, where these are not those of its rows. Empty where
        all are multiples.
        """
        found = []
        if self.row_nbytes % unit_nbytes:
            found.append(f"the rows' length, {self.row_nbytes}")
        between = self.source.strides[:-1] if apart is None else apart
        sides = ("input", self.source, between), ("output", self.target, self.target.strides[:-1])
        for side, layout, strides in sides:
            if layout.offset * self.width_nbytes % unit_nbytes:
                past = counted(layout.offset * self.width_nbytes % unit_nbytes)
                found.append(f"their beginning in the {side}, {past} past one")
            if not layout.is_packed:  # there the rows' length says it
                distances = [abs(stride) * self.width_nbytes for stride in strides]
                uneven = [distance for distance in distances if distance % unit_nbytes]
                found += [f"their distance in the {side}, {distance}" for distance in dict.fromkeys(uneven)]
        return f"not multiples of {unit_nbytes} bytes: {'; '.join(found)}" if found else ""


def counted(nbytes: int) -> str:
    """Bytes as people say them."""
    return "1 byte" if nbytes == 1 else f"{nbytes} bytes"

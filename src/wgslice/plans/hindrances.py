"""What in the layouts of a copy keeps it from a faster way."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import prod

from wgslice.layout import Layout
from wgslice.plans.kernels import SHIFTED_STEPS, WIDEST_NBYTES, Kernel, run_nbytes, tile_axis
from wgslice.plans.profiles import CPU, GPU
from wgslice.plans.steps import Dispatch

__all__ = ["hindrances"]

WORD_NBYTES = 4
SHORT_NBYTES = min(profile.least_shifted_row_nbytes for profile in (CPU, GPU))


def hindrances(step: Dispatch) -> Iterator[str]:
    """One line for each way that is faster than a dispatch and not open to it, the fastest first."""
    copy = Copied.of(step)
    yield f"in the way of a buffer copy: {copy.against_buffer_copies()}"
    if step.kernel in (Kernel.WIDE_ROWS, Kernel.TILES):
        return
    if copy.in_runs and copy.row_nbytes >= WIDEST_NBYTES:
        yield f"in the way of vectors of 16 bytes: {copy.uneven(WIDEST_NBYTES)}"
    if step.kernel is not Kernel.SHIFTED_ROWS:
        yield f"in the way of blocks of 16 bytes from any byte on: {copy.against_blocks()}"


@dataclass(frozen=True)
class Copied:
    """What a dispatch copies, in elements of `width_nbytes`; rows are what the last dimension holds."""

    source: Layout
    target: Layout
    width_nbytes: int

    @classmethod
    def of(cls, step: Dispatch) -> Copied:
        """The step's layouts without the dimension of size 1 that some kernels need."""
        source, target = step.source, step.target
        if target.sizes[-1:] == (1,):
            firsts: list[int | range] = [*map(range, target.sizes[:-1]), 0]
            source, target = source.select(firsts), target.select(firsts)
        return cls(source, target, step.width_nbytes)

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

    def against_buffer_copies(self) -> str:
        """Why a copy of contiguous words is none, or too many."""
        if not self.in_runs:
            return self.apart()
        rows = prod(self.target.sizes[:-1])
        reasons = [self.uneven(WORD_NBYTES)] if self.width_nbytes < WORD_NBYTES else []
        if rows > 1:
            reasons.append(f"one each for {rows} rows of {self.row_nbytes} bytes")
        return "; ".join(reasons) or "a buffer has no usage COPY_SRC or COPY_DST"

    def against_blocks(self) -> str:
        """Why blocks of 16 bytes, from any byte on, do not do it."""
        if abs(self.steps[0]) not in SHIFTED_STEPS or self.steps[1] != 1:
            return self.apart()
        if not self.target.is_nested:
            return "rows of the output interleave"
        if self.row_nbytes < SHORT_NBYTES:
            return f"rows of {self.row_nbytes} bytes are too short"
        return "a buffer ends inside the last of them"

    def apart(self) -> str:
        """How far neighbours on one side lie from each other on the other."""
        read, written = (step * self.width_nbytes for step in self.steps)
        axis = tile_axis(self.source, self.target, least=2)
        if axis is not None:
            return (
                f"permuted, neighbours of the input lie along merged dimension {axis} of {self.target.sizes}"
            )
        if read == 0:
            return "the input repeats one element along each row"
        if self.steps == (-1, 1):
            return "the input is read backwards"
        backwards = ", backwards" * (read < 0)
        reasons = {
            f"neighbours of a row lie {abs(read)} bytes apart in the input{backwards}": self.steps[0] != 1,
            f"neighbours of a row lie {written} bytes apart in the output": self.steps[1] != 1,
        }
        return ", and ".join(reason for reason, holds in reasons.items() if holds)

    def uneven(self, unit_nbytes: int) -> str:
        """What of the rows is no multiple of a unit: how long they are, where they begin, how far apart."""
        found = {f"length of rows {self.row_nbytes}": self.row_nbytes}
        for side, layout in (("input", self.source), ("output", self.target)):
            begin, *distances = (place * self.width_nbytes for place in (layout.offset, *layout.strides[:-1]))
            found[f"first byte {begin} of the {side}"] = begin
            for distance in distances:
                if distance % self.row_nbytes:
                    found[f"distance of rows {abs(distance)} in the {side}"] = distance
        uneven = [what for what, nbytes in found.items() if nbytes % unit_nbytes]
        whole = f"part of a copy in elements of {self.width_nbytes}"
        return f"no multiple of {unit_nbytes}: {', '.join(uneven)}" if uneven else whole

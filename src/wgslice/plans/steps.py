"""What a plan is made of: buffer copies, and dispatches with all that they need but the buffers."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel, Share, deal, tile_axis
from wgslice.plans.profiles import Limits

__all__ = ["PATTERN_NBYTES", "BufferCopies", "Clear", "Dispatch", "Origin", "Span", "dispatch_of"]


PATTERN_NBYTES = 2**16  # of one element repeated, from which runs are filled; long enough for buffer copies


class Origin(Enum):
    """Where a step reads."""

    INPUT = "the input"
    ZEROS = "zeros"  # PATTERN_NBYTES of them


@dataclass(frozen=True)
class Span:
    """A stretch of a buffer, whole words, its start a multiple of what its use demands."""

    offset_nbytes: int
    nbytes: int

    def in_whole(self, unit_nbytes: int) -> Span:
        """The same stretch, a multiple of a unit long."""
        return Span(self.offset_nbytes, -(-self.nbytes // unit_nbytes) * unit_nbytes)


@dataclass(frozen=True)
class BufferCopies:
    """One `copy_buffer_to_buffer` for each of some rows, contiguous whole words on both sides.

    The layouts place the rows' first bytes, counted from the bases that `rebase` split off.
    """

    source: Layout
    target: Layout
    nbytes: int  # a row
    origin: Origin = Origin.INPUT

    def __str__(self) -> str:
        rows = "a buffer copy" if self.source.size == 1 else f"{self.source.size} buffer copies"
        return f"{rows} of {self.nbytes} bytes{from_zeros(self.origin)}: contiguous words on both sides"


@dataclass(frozen=True)
class Clear:
    """Write zeros to a stretch of the target, whole words, counted from its base."""

    offset_nbytes: int
    nbytes: int

    def __str__(self) -> str:
        return f"a clear of {self.nbytes} bytes: then overwritten in part"


@dataclass(frozen=True)
class Dispatch:
    """One dispatch of a kernel. Layouts count elements of `width_nbytes` from the start of their binding."""

    kernel: Kernel
    width_nbytes: int
    source: Layout
    target: Layout
    source_binding: Span
    target_binding: Span
    share: Share
    reason: str
    origin: Origin = Origin.INPUT

    def __str__(self) -> str:
        grid = " x ".join(map(str, self.share.workgroups))
        return (
            f"{self.kernel.value} on {self.target.sizes}{from_zeros(self.origin)}, grid {grid} of "
            f"{self.share.workgroup_size}, {self.share.each} each: {self.reason}"
        )


def from_zeros(origin: Origin) -> str:
    """What a printed step says of where it reads."""
    return "" if origin is Origin.INPUT else f" from {origin.value}"


def dispatch_of(
    kernel: Kernel,
    source: Layout,
    target: Layout,
    width_nbytes: int,
    bindings: tuple[Span, Span],
    limits: Limits,
    reason: str,
) -> Dispatch:
    """A dispatch of a given kernel; layouts count from the start of their bindings."""
    apart = kernel.unit_nbytes(width_nbytes) > width_nbytes and target.strides[-1:] != (1,)
    if (kernel.deals_rows and target.rank == 0) or apart:
        source, target = (
            source.select([*map(range, source.sizes), None]),
            target.select([*map(range, target.sizes), None]),
        )
    if kernel is Kernel.TILES:
        axis = tile_axis(source, target, least=0)
        assert axis is not None
        axes = [other for other in range(target.rank - 1) if other != axis] + [axis, target.rank - 1]
        source, target = source.permuted(axes), target.permuted(axes)
    if kernel is Kernel.SHIFTED_ROWS:
        bindings = bindings[0].in_whole(WIDEST_NBYTES), bindings[1].in_whole(WIDEST_NBYTES)
    share = deal(kernel, target, width_nbytes, limits)
    return Dispatch(kernel, width_nbytes, source, target, *bindings, share, reason)

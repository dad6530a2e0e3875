"""Probes of cost classes: a copy or two of each class."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.index_probes import IndexProbe, index_probes
from bench.window_probes import SizedProbe, WindowProbe, sized_probes, window_probes
from wgslice.layout import Layout
from wgslice.plans.facade import WindowDispatch, span_of
from wgslice.plans.kernels import UNITS_NBYTES, Kernel
from wgslice.plans.profiles import ALIKE, IN_BLOCKS, STEPS, CostClass, Limits, copy_class, pattern, step_of
from wgslice.plans.steps import GRIDS, Dispatch, dispatch_of

__all__ = ["FAR_NBYTES", "FAR_RUN", "Probe", "probes"]

ROW_NBYTES = 4096  # long rows: an invocation takes as much as it can
SHORT_UNITS = 3  # of a row's elements, words or blocks: an invocation takes as little as it can
PATTERNS = ("contiguous", "short-stride", "long-stride")
PAIRED_RUN = 24  # elements of rows that go in pairs

# Elements with long strides are on a page each, and on more pages than a core caches the addresses
# of at once: a transpose of bytes of 4096 and more rows takes three times as long as one of 1024 (Mesa
# 25.0.7, 2 cores of an AMD EPYC).
FAR_NBYTES = 8192
FAR_RUN = 4096

# The widths of elements that kernels take, in bytes.
WIDTHS = {
    Kernel.ROWS: (4, 8),
    Kernel.WIDE_ROWS: (16,),
    Kernel.SHIFTED_ROWS: (1, 2, 4, 8),
    Kernel.SUBWORD_ROWS: (1, 2),
    Kernel.SUBWORD_STEPS: (1, 2),
    Kernel.SLICE1: (1, 2, 4, 8, 16),
    Kernel.PIXELS: (1, 2),
    Kernel.REGISTER_TILES: (1, 2),
    Kernel.TILES: (4, 8, 16),
    Kernel.WIDE_TILES: (1, 2, 4, 8, 16),
    Kernel.ROW_ENDS: (1, 2, 4, 8),
    Kernel.SUBWORD_ENDS: (1, 2),
    Kernel.WORD_GRID: (4,),
    Kernel.WIDE_GRID: (16,),
    Kernel.SHIFTED_GRID: (1, 2, 4, 8),
}
PAIRED = (Kernel.ROWS, Kernel.SUBWORD_ROWS)
SQUARE = (Kernel.TILES, Kernel.WIDE_TILES)


class Candidate(NamedTuple):
    """A kernel to time."""

    kernel: Kernel
    reason: str
    paired: bool = False  # whether it takes the last two dimensions as a row


class Probe(NamedTuple):
    """A cost class, and copies that consist of it."""

    work: CostClass
    candidate: Candidate
    width_nbytes: int
    pattern: str  # access pattern of the source, as in the cost class

    def steps(self, nbytes: int, limits: Limits) -> Sequence[Dispatch | WindowDispatch]:
        """The dispatches of the kernel for such copies, without those of the ends of rows."""
        kernel, reason, paired = self.candidate
        width = self.width_nbytes
        return [
            dispatch_of(kernel, source, target, width, bindings, limits, reason, paired)
            for source, target in self.copies(nbytes)
            for bindings in [(span_of(source, width, limits), span_of(target, width, limits))]
        ]

    def copies(self, nbytes: int) -> list[tuple[Layout, Layout]]:
        """Return copies of about `nbytes`: long rows, and short ones with fewer items per invocation."""
        kernel, _, paired = self.candidate
        width = self.width_nbytes
        if kernel in SQUARE:
            return [permuted(width, nbytes)]
        if kernel is Kernel.REGISTER_TILES:
            return [squares(width, nbytes)]
        if kernel is Kernel.SUBWORD_STEPS:
            return [channel(width, nbytes, step) for step in (3, 4)]
        if kernel in (Kernel.PIXELS, Kernel.SUBWORD_ENDS):
            return [pixels(width, nbytes, apart=kernel is Kernel.SUBWORD_ENDS)]
        runs = [ROW_NBYTES // width, SHORT_UNITS * UNITS_NBYTES.get(kernel, width) // width + 1]
        if paired:
            runs = [PAIRED_RUN]
        elif kernel is Kernel.ROW_ENDS:
            runs = runs[1:]
        elif kernel in (Kernel.SLICE1, *GRIDS) or self.pattern == "long-stride":
            runs = runs[:1]
        return [rows(run, width, self.pattern, nbytes) for run in runs]


def probes() -> Iterator[Probe | WindowProbe | SizedProbe | IndexProbe]:
    """Yield the probes of all cost classes, those of copies first."""
    yield from copy_probes()
    yield from window_probes()
    yield from sized_probes()
    yield from index_probes()


def copy_probes() -> Iterator[Probe]:
    """Yield the probes of copies."""
    for kernel, widths in WIDTHS.items():
        for width in widths:
            for paired in (False, True) if kernel in PAIRED else (False,):
                for access in patterns(kernel):
                    probe = Probe(
                        CostClass(kernel, width), Candidate(kernel, "a probe", paired), width, access
                    )
                    (source, _), *_ = probe.copies(2**20)
                    found = pattern(source, width)
                    yield probe._replace(work=copy_class(kernel, width, paired, found, step_of(source)))


def patterns(kernel: Kernel) -> tuple[str, ...]:
    """Return the access patterns of a kernel's sources."""
    if kernel in IN_BLOCKS:
        return tuple(STEPS.values())
    return PATTERNS[:1] if kernel in ALIKE else PATTERNS


def rows(run: int, width: int, access: str, nbytes: int) -> tuple[Layout, Layout]:
    """Return rows of `run` elements with an access pattern."""
    count = max(nbytes // (run * width), 1)
    target = Layout.packed((count, run))
    if access == "long-stride":
        count = max(nbytes // (FAR_RUN * width), 1)
        return Layout.of((count, FAR_RUN), (1, FAR_NBYTES // width)), Layout.packed((count, FAR_RUN))
    steps = {name: step for step, name in STEPS.items()}
    step = steps.get(access, 3)
    return Layout.of((count, run), (step * run + 1, step), 1), target


def permuted(width: int, nbytes: int) -> tuple[Layout, Layout]:
    """A transpose of a matrix of whole tiles."""
    side = max(int((nbytes / width) ** 0.5) // 64, 1) * 64
    return Layout.of((side, side), (1, side)), Layout.packed((side, side))


def squares(width: int, nbytes: int) -> tuple[Layout, Layout]:
    """Squares of 4 x 4 elements of a matrix, transposed and stored one after another, column by column."""
    side = max(int((nbytes / width) ** 0.5) // 64, 1) * 16
    target = Layout.packed((side, side, 4, 4))
    return Layout.of(target.sizes, (4, 16 * side, 1, 4 * side)), target


def channel(width: int, nbytes: int, channels: int) -> tuple[Layout, Layout]:
    """Return the layouts of one channel of pixels, `nbytes` in all channels."""
    count = nbytes // width // channels
    return Layout.of((count,), (1,)), Layout.of((count,), (channels,), 1)


def pixels(width: int, nbytes: int, *, apart: bool) -> tuple[Layout, Layout]:
    """Pixels of three channels in reverse order; in rows with gaps, or in one row."""
    count = max(nbytes // width // 3 // 1000, 1)
    sizes, gap = (count, 1000, 3), int(apart)
    return Layout.of(sizes, (3000 + gap, 3, -1), 2), Layout.of(sizes, (3000 + gap, 3, 1), gap)

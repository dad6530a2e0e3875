"""Probes of the cost classes of windows: windows below each other, extracted or inserted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from wgslice.layout import Layout
from wgslice.plans.facade import (
    DROPPED,
    ENDS,
    WINDOWS,
    Packing,
    PlanContext,
    SizedDispatch,
    SizedWindows,
    WindowDispatch,
    WindowProblem,
    Windows,
    extraction,
    plan,
    sized_class,
)
from wgslice.plans.kernels import EXTRACTING, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.profiles import CostClass, Limits, windows_class
from wgslice.plans.steps import Dispatch

__all__ = ["SizedProbe", "WindowProbe", "sized_probes", "window_probes"]

ROWS = 16  # of a window
GAP_NBYTES = 5  # by which the tensor's rows are longer, so that windows' begin inside of words and blocks
CHANNELS = 3  # of what is mirrored

# Bytes of a window's rows: of many blocks, of a few, and of what is taken by words or elements.
LONG_NBYTES, SHORT_NBYTES, SHORTEST_NBYTES = 1536, 48, 24


class WindowProbe(NamedTuple):
    """A cost class of windows, and windows whose copies consist of it."""

    kernel: Kernel
    width_nbytes: int  # an element
    unaligned: bool = False  # whether windows' rows begin and end inside of blocks
    ends: bool = False  # whether it takes the ends of rows alone
    mirrored: bool = False  # whether some go backwards

    @property
    def work(self) -> CostClass:
        """The cost class."""
        kinds = {"unaligned": self.unaligned, "ends": self.ends, "mirrored": self.mirrored}
        return windows_class(self.kernel, self.width_nbytes, **kinds)

    def steps(self, nbytes: int, limits: Limits) -> Sequence[Dispatch | WindowDispatch]:
        """Return dispatches that copy about `nbytes`, of long rows and of short ones where these differ."""
        if self.kernel in (Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS, Kernel.LAST_WRITER_ROWS):
            return [self.step(row_nbytes, nbytes, limits) for row_nbytes in (LONG_NBYTES, SHORT_NBYTES)]
        return [self.step(SHORT_NBYTES if self.ends else SHORTEST_NBYTES, nbytes, limits)]

    def step(self, row_nbytes: int, nbytes: int, limits: Limits) -> WindowDispatch:
        """Return the dispatch of this cost class on windows with rows of `row_nbytes`."""
        width, channels = self.width_nbytes, CHANNELS if self.mirrored else 1
        row = max(row_nbytes // (channels * width), 1) + self.unaligned
        gap = max(GAP_NBYTES // (channels * width), 1)
        count = max(nbytes // (ROWS * row * channels * width), 2)  # one of them mirrored
        tensor = Layout.packed((count * ROWS, row + gap, channels))
        batch = Layout.packed((count, ROWS, row, channels))
        inserts = self.kernel not in EXTRACTING
        windows = scattered(batch.sizes, gap, mirrored=channels > 1, inserts=inserts)
        contested = self.kernel in (Kernel.LAST_WRITER_WINDOWS, Kernel.LAST_WRITER_ROWS)
        sides = windows, tensor, batch, width
        problem = WindowProblem(*sides, PlanContext(limits), inserts, windows.numbers, contested)
        steps = (step for row in WINDOWS if row.applies(problem) is None for step in row.build(problem))
        return next(step for step in steps if isinstance(step, WindowDispatch) and step.work == self.work)


def scattered(sizes: tuple[int, ...], gap: int, *, mirrored: bool, inserts: bool) -> Windows:
    """Return windows below each other in random order; if `mirrored`, every other one is reversed."""
    count, *extents = sizes
    order = np.random.default_rng(0).permutation(count)
    offsets = np.zeros((count, len(extents)), np.int32)
    offsets[:, 0] = order * ROWS
    offsets[:, 1] = order % (gap + 1)
    flips = np.arange(count, dtype=np.uint32) % 2 * (2 if mirrored else 0)
    fill = DROPPED if inserts else None
    return Windows(tuple(extents), (1,) * len(extents), flips.astype(np.uint32), offsets, 4, True, fill)


class SizedProbe(NamedTuple):
    """A cost class of windows of different sizes, and windows whose copies consist of it."""

    width_nbytes: int  # an element
    apart: bool = False  # whether elements of a row are apart
    ends: bool = False  # whether it takes the ends of rows alone, which are apart in the batch

    @property
    def kernel(self) -> Kernel:
        """The kernel of the cost class."""
        return self.work.kernel

    @property
    def work(self) -> CostClass:
        """The cost class."""
        if self.ends:
            return ENDS
        in_words = self.width_nbytes % WORD_NBYTES == 0
        return sized_class(self.width_nbytes, apart=self.apart, in_words=in_words)

    def steps(self, nbytes: int, limits: Limits) -> Sequence[SizedDispatch]:
        """Return dispatches that copy about `nbytes`, of long rows and of short ones."""
        lengths = (SHORTEST_NBYTES,) if self.ends else (LONG_NBYTES, SHORT_NBYTES)
        return [self.step(row_nbytes, nbytes, limits) for row_nbytes in lengths]

    def step(self, row_nbytes: int, nbytes: int, limits: Limits) -> SizedDispatch:
        """Return the dispatch on windows below each other, with rows of about `row_nbytes`."""
        row = row_nbytes // self.width_nbytes
        count = max(nbytes // (ROWS * row_nbytes), 2)
        distance = 2 if self.apart else 1
        tensor = Layout.packed((count * ROWS, row * distance + GAP_NBYTES))
        number = np.arange(count)
        sizes = np.stack([np.full(count, ROWS), row - number % 2], axis=1)
        starts = -(-np.arange(count) * (ROWS * (row + self.ends)) // WIDEST_NBYTES) * WIDEST_NBYTES
        windows = SizedWindows(
            (sizes - 1) * np.array([1, distance]) + 1,
            (1, distance),
            np.zeros(count, np.uint32),
            np.stack([ROWS * np.random.default_rng(0).permutation(count), number % 5], axis=1).astype(
                np.int32
            ),
            4,
            True,
            None,
            Packing(
                starts + self.ends, np.stack([sizes[:, 1] + self.ends, np.ones(count, np.int64)], axis=1), 0
            ),
        )
        batch = Layout.packed((count * (ROWS * (row + self.ends) + WIDEST_NBYTES),))
        chosen = plan(extraction(tensor, batch, self.width_nbytes, windows), limits)
        return next(
            step for step in chosen.steps if isinstance(step, SizedDispatch) and step.work == self.work
        )


def sized_probes() -> Iterator[SizedProbe]:
    """Yield the probes of the cost classes of windows of different sizes."""
    yield from (SizedProbe(width) for width in (1, 4))
    yield from (SizedProbe(width, apart=True) for width in (1, 2, 4, 8, 16))
    yield SizedProbe(1, ends=True)


def window_probes() -> Iterator[WindowProbe]:
    """Yield the probes of all cost classes of windows."""
    for kernel in (Kernel.EXTRACT_WINDOWS, Kernel.INSERT_WINDOWS):
        for width in (1, 2, 4, 8, 16):
            yield WindowProbe(kernel, width)
    for width in (1, 2):
        yield WindowProbe(Kernel.WINDOW_WORDS, width)
    yield WindowProbe(Kernel.LAST_WRITER_WINDOWS, WORD_NBYTES)
    yield WindowProbe(Kernel.LAST_WRITER_ROWS, WORD_NBYTES)
    for mirrored in (False, True):
        yield WindowProbe(Kernel.WINDOW_ROWS, 1, mirrored=mirrored)
        yield WindowProbe(Kernel.WINDOW_ROWS, 1, unaligned=True, mirrored=mirrored)
        yield WindowProbe(Kernel.INSERT_ROWS, 1, mirrored=mirrored)
        yield WindowProbe(Kernel.INSERT_WORDS, 1, mirrored=mirrored)
        yield WindowProbe(Kernel.INSERT_WORDS, 1, ends=True, mirrored=mirrored)

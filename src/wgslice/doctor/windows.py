"""Trials of the kernels that extract and insert windows: each case by every kernel that applies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.trials import FILL, NONE, Bytes, Elements, Expected, Moves, Trial, elements_of, trial_of
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import (
    OnGpu,
    Outside,
    extracted_windows,
    inserted_windows,
    packed_windows,
)
from wgslice.plans.choose import Step
from wgslice.plans.facade import (
    Table,
    WindowDispatch,
    Windows,
    every,
    extraction,
    insertion,
    plan,
)
from wgslice.plans.kernels import WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits

COUNT, ROWS = 9, 3  # windows of a case, and rows of a window
HEIGHT, MARGIN = 5, 9  # rows of a picture to extract from; pixels by which its rows exceed a window's
OUTSIDE = 4  # pixels of some windows outside their picture

# Bytes per element, elements per pixel, and bytes per row: below and above one vector. Each number of
# elements and of whole vectors is a pipeline of `window_rows`, which takes 0.2 s to compile (lavapipe).
ROWS_OF_PIXELS = (
    *((1, 1, 31), (1, 1, 64), (1, 3, 96), (1, 4, 64), (1, 16, 64), (2, 1, 16), (2, 3, 66)),
    *((4, 1, 16), (4, 1, 64), (8, 1, 64), (16, 1, 16), (16, 1, 96)),
)

# The kernels of strategies to test: apart where the first writes whole vectors, the second the other bytes.
APART = [Kernel.INSERT_ROWS.value, Kernel.INSERT_WORDS.value]
TOGETHER = (
    [Kernel.LAST_WRITER_WINDOWS.value, Kernel.INSERT_WINDOWS.value],
    [Kernel.LAST_WRITER_ROWS.value, *APART],
)


@dataclass(frozen=True)
class WindowsCase:
    """Windows of a picture, in rows of `size` pixels; inserted windows are below each other."""

    inserts: bool  # whether windows are inserted into the picture, or extracted
    width: int  # bytes per element
    channels: int
    size: int  # pixels per row
    reversed: bool = False  # whether some windows are
    outside: int = 0  # pixels by which windows may leave the picture
    skip: int = 0  # elements before input and output
    step: int = 1  # pixels of the picture between neighbours of a row
    apart: int = 1  # elements of the batch between neighbours
    offset_dtype: str | None = None  # of device-resident offsets
    from_end: bool = False  # whether every other window has negative offsets, counted from the end
    overlap: bool = False  # whether inserted windows overlap

    @property
    def picture(self) -> Layout:
        """The layout of the picture."""
        height = COUNT * ROWS - 2 * bool(self.outside) if self.inserts else HEIGHT
        return Layout.packed((height, (self.size - 1) * self.step + 1 + MARGIN, self.channels), self.skip)

    @property
    def batch(self) -> Layout:
        """The layout of the windows."""
        packed = Layout.packed((COUNT, ROWS, self.size, self.channels))
        return Layout.of(packed.sizes, [stride * self.apart for stride in packed.strides], self.skip)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets of each window; inserted ones all leave the picture or none does, for one dispatch."""
        generator, number = np.random.default_rng(self.size), np.arange(COUNT)
        highest = [HEIGHT - ROWS + self.outside, MARGIN + self.outside]
        places = generator.integers(-self.outside, highest, (COUNT, 2), endpoint=True)
        if self.inserts:
            places[:, 0] = number * (1 if self.overlap else ROWS) - bool(self.outside)
            if self.outside or self.overlap:
                places[:, 1] = number % 2 * (MARGIN + 2 * self.outside if self.outside else 1) - self.outside
        return np.pad(places, ((0, 0), (0, 1)))

    @property
    def strides(self) -> NDArray[np.int64]:
        """Strides of each window; bits 0 and 1 of its number reverse its dimensions."""
        number = np.arange(COUNT) * self.reversed
        return np.stack([1 - 2 * (number & 1), (1 - (number & 2)) * self.step, np.ones_like(number)], axis=1)

    def moved(self) -> tuple[Elements, Elements]:
        """Return the elements of the target and of the source; none of the picture for indices outside."""
        (height, breadth, channels), indices = self.picture.sizes, []
        for axis, size in enumerate((ROWS, self.size)):
            stride = self.strides[:, axis, None]
            ahead = np.abs(stride) * np.arange(size)
            indices.append(self.offsets[:, axis, None] + np.where(stride > 0, ahead, ahead[:, ::-1]))
        y, x = indices[0][:, :, None, None], indices[1][:, None, :, None]
        numbers = (y * breadth + x) * channels + np.arange(channels) + self.skip
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < breadth)
        picture, batch = np.where(inside, numbers, NONE), elements_of(self.batch)
        return (picture, batch) if self.inserts else (batch, picture)

    def plan(self, limits: Limits, table: Table | None) -> Plan:
        """Plan the case, with every applicable strategy among the choices."""
        sizes = self.picture.sizes
        if self.inserts:
            windows = inserted_windows(self.offsets, self.batch.sizes, sizes, self.strides, "drop")
            return plan(insertion(self.batch, self.picture, self.width, windows), limits, table=table)
        extents = ROWS, sizes[1] - MARGIN, self.channels
        fill = bytes([FILL]) * WIDEST_NBYTES if self.outside else None
        offsets: NDArray[np.int64] | OnGpu = self.offsets
        if table is not None:
            offsets = OnGpu(self.offsets.shape, np.dtype(self.offset_dtype))
        windows = extracted_windows(offsets, sizes, extents, self.strides, fill, None, self.width)
        assert isinstance(windows, Windows)
        windows = replace(windows, indices=self.from_end)
        return plan(extraction(self.picture, self.batch, self.width, windows), limits, table=table)

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """Yield a trial of each kernel that applies."""
        table, content = None, None
        if self.offset_dtype is not None:
            given = self.offsets.copy()
            given[1::2] -= np.array(self.picture.sizes) * self.from_end
            content = given.astype(self.offset_dtype)
            table = Table(Layout.packed(given.shape), content.itemsize)
        chosen = self.plan(limits, table)
        for choice in chosen.choices:
            for whole, steps in parts_of(choice.steps):
                alone = replace(chosen, steps=steps)
                moves = Moves(self.width, self.moved, self.size * self.channels, whole)
                yield trial_of(alone, self, (chosen.source, chosen.target), moves, content)


def parts_of(steps: tuple[Step, ...]) -> list[tuple[bool | None, tuple[Step, ...]]]:
    """Return the dispatches to test apart, each with `whole` as for `Moves`; none of split windows."""
    kernels = [step.name for step in steps if isinstance(step, WindowDispatch)]
    if kernels == APART:
        return [(True, steps[:1]), (False, steps[1:])]
    return [(None, steps)] if len(kernels) == len(steps) == 1 or kernels in TOGETHER else []


def windows_cases() -> Iterator[WindowsCase]:
    """Yield cases at both sides of each condition by which kernels are chosen or branch."""
    both = False, True
    variants = list(product(both, (0, OUTSIDE)))  # reversed, and leaving the picture
    for inserts, (width, channels, nbytes), variant in product(both, ROWS_OF_PIXELS, variants):
        for skip in (0, 1, 5) if width < 4 else (0, 1):
            yield WindowsCase(inserts, width, channels, nbytes // (width * channels), *variant, skip)
    pixels = (1, 1, 1), (1, 7, 1), (1, 99, 2), (3, 5, 2)
    for inserts, width, (channels, size, step), variant, skip in product(
        both, (1, 2), pixels, variants, range(4)
    ):
        yield WindowsCase(inserts, width, channels, size, *variant, skip, step)
    for width, outside, skip in product((1, 2, 4, 8, 16), (0, OUTSIDE), (0, 1)):
        for inserts in both:
            yield WindowsCase(inserts, width, 1, 7, True, outside, skip, 2)
        yield WindowsCase(False, width, 1, 7, True, outside, skip, apart=2)
    for width, step in product((1, 2, 4, 8), (2, 4)):
        yield WindowsCase(False, width, 1, 99 // width, True, OUTSIDE, 1, step)
    for width, outside, (channels, size) in product((1, 2, 4), (0, OUTSIDE), ((1, 2), (3, 7))):
        yield WindowsCase(True, width, channels, size, True, outside, 1, overlap=True)
    for dtype in ("int64", "uint64", "int16", "uint16", "int8", "uint8", "uint32"):
        yield WindowsCase(False, 4, 3, 20, True, apart=2, offset_dtype=dtype)
    yield WindowsCase(False, 1, 3, 4, True, offset_dtype="uint16")
    for dtype, width in product(("int32", "int64"), (1, 4)):
        yield WindowsCase(False, width, 3, 20, offset_dtype=dtype, from_end=True)


LONG = 40  # times as broad, so that a row or rows of a window take several invocations
HEIGHTS, BREADTHS = np.array([1, 3, 2, 0, 4, 1]), np.array([1, 9, 17, 5, 2, 33])


@dataclass(frozen=True)
class SizedCase:
    """Windows of different sizes of a picture, below each other, or beside each other without gaps."""

    inserts: bool
    width: int  # bytes per element
    channels: int
    reversed: bool = False  # whether some windows are
    outside: int = 0  # pixels by which windows may leave the picture
    skip: int = 0  # elements before input and output
    step: int = 1  # pixels of the picture between neighbours of a row
    offset_dtype: str | None = None  # of device-resident offsets
    beside: bool = False  # whether windows are beside each other, so that rows share words
    scale: int = 1  # of breadths

    @property
    def breadths(self) -> NDArray[np.int64]:
        """Pixels of a row of each window."""
        return BREADTHS * self.scale

    @property
    def picture(self) -> Layout:
        """The layout of the picture."""
        if self.beside:
            return Layout.packed((int(HEIGHTS.max()), int(self.breadths.sum()), self.channels), self.skip)
        breadth = (int(self.breadths.max()) - 1) * self.step + 1 + MARGIN
        return Layout.packed((int(HEIGHTS.sum()), breadth, self.channels), self.skip)

    @cached_property
    def sizes(self) -> NDArray[np.int64]:
        """Elements of each window."""
        return np.stack([HEIGHTS, self.breadths, np.full_like(HEIGHTS, self.channels)], axis=1)

    @property
    def extents(self) -> NDArray[np.int64]:
        """Pixels of the picture that each window reaches over."""
        extents: NDArray[np.int64] = np.maximum((self.sizes - 1) * (1, self.step, 1) + 1, 0)
        return extents

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets of each window; those with elements are below each other."""
        number = np.arange(len(HEIGHTS))
        if self.beside:
            return np.stack([0 * number, np.cumsum(self.breadths) - self.breadths, 0 * number], axis=1)
        columns = number * 3 % (MARGIN + 1) - number % 2 * self.outside
        return np.stack([np.cumsum(HEIGHTS) - HEIGHTS, columns, 0 * number], axis=1)

    @property
    def strides(self) -> NDArray[np.int64]:
        """Strides of each window; bits 0 and 1 of its number reverse its dimensions."""
        number = np.arange(len(HEIGHTS)) * self.reversed
        return np.stack([1 - 2 * (number & 1), (1 - (number & 2)) * self.step, np.ones_like(number)], axis=1)

    def by_window(self) -> Iterator[tuple[Elements, Elements]]:
        """Yield the elements of the target and of the source; none of the picture for indices outside."""
        breadth, places = self.picture.sizes[1], packed_windows(self.sizes, self.width)
        for offset, stride, size, start in zip(
            self.offsets, self.strides, self.sizes, places.starts, strict=True
        ):
            ahead = (np.arange(count) * abs(step) for count, step in zip(size, stride, strict=True))
            y, x, c = (
                begin + (walk if step > 0 else walk[::-1])
                for begin, walk, step in zip(offset, ahead, stride, strict=True)
            )
            inside = ((x >= 0) & (x < breadth))[None, :, None]
            numbers = ((y[:, None] * breadth + x)[:, :, None] * self.channels) + c + self.skip
            taken = np.where(inside, numbers, NONE).reshape(-1)
            packed = self.skip + start + np.arange(taken.size)
            yield (taken, packed) if self.inserts else (packed, taken)

    def moved(self) -> tuple[Elements, Elements]:
        """Return the elements of all windows."""
        target, source = (np.concatenate(side) for side in zip(*self.by_window(), strict=True))
        return target, source

    def whole_words(self, nbytes: int) -> NDArray[np.bool_]:
        """Return which bytes of the target are of words that one window writes wholly."""
        found = np.zeros((nbytes // WORD_NBYTES, WORD_NBYTES), np.bool_)
        for elements, _ in self.by_window():
            written = np.zeros((nbytes // self.width, self.width), np.bool_)
            written[elements[elements != NONE]] = True
            found |= written.reshape(found.shape).all(axis=1, keepdims=True)
        return found.reshape(-1)

    def expected(self, whole: bool, all_written: Expected, source: Bytes, before: Bytes) -> Bytes:
        """Return the target after the dispatch of whole words alone, or of the others."""
        return np.where(self.whole_words(before.size) == whole, all_written(source, before), before)

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """Yield a trial of each kernel that is enabled."""
        trial = self.trial(limits)
        kernels = [step.name for step in trial.plan.steps] if trial else []
        if trial is None or Kernel.SIZED_ENDS.value not in kernels:
            yield from [trial] if trial else []
            return
        for name, step in zip(kernels, trial.plan.steps, strict=True):
            expected = partial(self.expected, name == Kernel.SIZED_WINDOWS.value, trial.expected)
            yield replace(trial, plan=replace(trial.plan, steps=(step,)), expected=expected)

    def trial(self, limits: Limits) -> Trial | None:
        """Return the trial of both kernels, if they are enabled."""
        table, content = None, None
        offsets: NDArray[np.int64] | OnGpu = self.offsets
        if self.offset_dtype is not None:
            content = self.offsets.astype(self.offset_dtype)
            table = Table(Layout.packed(content.shape), content.itemsize)
            offsets = OnGpu(content.shape, content.dtype)
        packing, sizes = packed_windows(self.sizes, self.width), self.picture.sizes
        batch = Layout.packed((packing.size,), self.skip)
        if self.inserts:
            outside: Outside | None = "drop" if self.outside else None
            windows = inserted_windows(offsets, self.sizes, sizes, self.strides, outside, packing)
            overlap = "refuse" if table is None else "disjoint"
            asked = insertion(batch, self.picture, self.width, windows, overlap)
        else:
            fill = bytes([FILL]) * WIDEST_NBYTES if self.outside else None
            windows = extracted_windows(offsets, sizes, self.extents, self.strides, fill, None, self.width)
            asked = extraction(self.picture, batch, self.width, windows)
        own = dict(every(plan(asked, limits, table=table))).get(Kernel.SIZED_WINDOWS.value)
        if own is None:
            return None
        sides = asked.source, asked.target
        return trial_of(own, self, sides, Moves(self.width, self.moved), content)


def sized_cases() -> Iterator[SizedCase]:
    """Yield cases at both sides of each condition by which the kernel branches."""
    both = False, True
    for inserts, (width, channels), is_reversed, outside in product(
        both, ((1, 1), (1, 3), (2, 1), (2, 3), (4, 1), (8, 3), (16, 1)), both, (0, OUTSIDE)
    ):
        for skip in (0, 1, 3) if width < 4 else (0, 1):
            yield SizedCase(inserts, width, channels, is_reversed, outside, skip)
    for inserts, width in product(both, (1, 2, 4, 8, 16)):
        yield SizedCase(inserts, width, 1, True, skip=1, step=2)
    for inserts, dtype, width in product(both, ("int64", "uint16", "int8"), (1, 4)):
        yield SizedCase(inserts, width, 3, skip=1, offset_dtype=dtype)
    for width, channels, skip in product((1, 2), (1, 3), (0, 1)):
        yield SizedCase(True, width, channels, skip=skip, beside=True)
    for inserts, width, outside in product(both, (1, 4), (0, OUTSIDE)):  # several invocations per row
        yield SizedCase(inserts, width, 3, outside=outside, skip=1, scale=LONG)


def window_trials(limits: Limits) -> Iterator[Trial]:
    """Yield the trials of every case of windows."""
    yield from (trial for case in windows_cases() for trial in case.trials(limits))
    yield from (trial for case in sized_cases() for trial in case.trials(limits))

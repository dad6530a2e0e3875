"""Trials of the kernels of many windows, extracted and inserted: each case by every kernel that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.trials import Bytes, Trial, in_whole_blocks, side_nbytes, view_of
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import OnGpu, extracted_windows, inserted_windows
from wgslice.plans.choose import Step
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.overlaps import insertion_of
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext, Table
from wgslice.plans.profiles import Limits
from wgslice.plans.window_strategies import extract_windows_planner, insert_windows_planner, winners_scratch
from wgslice.plans.windows import WindowDispatch

COUNT, ROWS = 9, 3  # windows of a case, and rows of a window
HEIGHT, ROOM = 5, 9  # rows of a picture to extract from, and pixels that a picture is longer than a window
OUTSIDE = 4  # pixels that some windows lie outside of their picture
FILL = 7  # each byte of what lies outside

# Bytes an element, elements a pixel, and bytes a row: of a block or none, of a few and of more. Each number
# of elements and of whole blocks is a pipeline of `window_rows`, which takes 0.2 s to compile (lavapipe).
ROWS_OF_PIXELS = (
    *((1, 1, 31), (1, 1, 64), (1, 3, 96), (1, 4, 64), (1, 16, 64), (2, 1, 16), (2, 3, 66)),
    *((4, 1, 16), (4, 1, 64), (8, 1, 64), (16, 1, 16), (16, 1, 96)),
)

KERNELS_APART = [Kernel.INSERT_ROWS.value, Kernel.INSERT_WORDS.value]  # write blocks of rows, and the rest
KERNELS_TOGETHER = (
    [Kernel.LAST_WRITER_WINDOWS.value, Kernel.INSERT_WINDOWS.value],
    [Kernel.LAST_WRITER_ROWS.value, *KERNELS_APART],
)


@dataclass(frozen=True)
class WindowsCase:
    """Windows of a picture, in rows of `size` pixels; those that are inserted lie below each other."""

    inserts: bool  # whether the windows are put into the picture, or read from it
    width: int  # bytes an element
    channels: int
    size: int  # pixels a row
    mirrored: bool = False  # whether some windows go backwards
    outside: int = 0  # pixels by which windows may leave the picture
    skip: int = 0  # elements before input and output
    step: int = 1  # pixels of the picture from one of a row to the next
    apart: int = 1  # elements of windows from one to the next
    offset_dtype: str | None = None  # of offsets that the GPU has
    from_end: bool = False  # whether every other window has indices as offsets, counted from the end
    overlap: bool = False  # whether windows that are inserted overlap

    @property
    def picture(self) -> Layout:
        """Where the picture lies."""
        height = COUNT * ROWS - 2 * bool(self.outside) if self.inserts else HEIGHT
        return Layout.packed((height, (self.size - 1) * self.step + 1 + ROOM, self.channels), self.skip)

    @property
    def batch(self) -> Layout:
        """Where the windows lie."""
        packed = Layout.packed((COUNT, ROWS, self.size, self.channels))
        return Layout.of(packed.sizes, [stride * self.apart for stride in packed.strides], self.skip)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Of each window; where one that is inserted leaves the picture all do: one dispatch takes them."""
        generator, number = np.random.default_rng(self.size), np.arange(COUNT)
        highest = [HEIGHT - ROWS + self.outside, ROOM + self.outside]
        places = generator.integers(-self.outside, highest, (COUNT, 2), endpoint=True)
        if self.inserts:
            places[:, 0] = number * (1 if self.overlap else ROWS) - bool(self.outside)
            if self.outside or self.overlap:
                places[:, 1] = number % 2 * (ROOM + 2 * self.outside if self.outside else 1) - self.outside
        return np.pad(places, ((0, 0), (0, 1)))

    @property
    def strides(self) -> NDArray[np.int64]:
        """Of each window; bits 0 and 1 of its number say in which directions it goes."""
        number = np.arange(COUNT) * self.mirrored
        down, along = 1 - 2 * (number & 1), 1 - (number & 2)
        return np.stack([down, along * self.step, np.ones(COUNT, np.int64)], axis=1)

    def indices(self, axis: int, size: int) -> NDArray[np.int64]:
        """The picture's indices in a dimension, for each window and each index of it."""
        stride = self.strides[:, axis, None]
        ahead = np.abs(stride) * np.arange(size)
        return self.offsets[:, axis, None] + np.where(stride > 0, ahead, ahead[:, ::-1])

    def expected(self, part: str, read: Bytes, before: Bytes) -> Bytes:
        """The target afterwards as NumPy indexes: all of it, the blocks that are all a row's, or the rest."""
        after, (height, breadth, _) = before.copy(), self.picture.sizes
        y, x = np.broadcast_arrays(self.indices(0, ROWS)[:, :, None], self.indices(1, self.size)[:, None])
        inside = (y >= 0) & (y < height) & (x >= 0) & (x < breadth)
        picture = view_of(after if self.inserts else read, self.picture, self.width)
        windows = view_of(read if self.inserts else after, self.batch, self.width)
        if self.inserts:
            picture[y[inside], x[inside]] = windows[inside]
        else:
            windows[inside] = picture[y[inside], x[inside]]
            windows[~inside] = np.void(bytes([FILL]) * self.width)
        if part == "all":
            return after
        first = (self.picture.offset + (y * breadth + x) * self.channels) * self.width
        rows = zip(first.reshape(-1, self.size), inside.reshape(-1, self.size), strict=True)
        pixel_nbytes = self.channels * self.width
        written = [row[kept] for row, kept in rows if kept.any()]
        whole = in_whole_blocks([(row.min(), row.max() + pixel_nbytes) for row in written], after.size)
        return np.where(whole == (part == "blocks"), after, before)

    def plan(self, limits: Limits, table: Table | None) -> Plan:
        """A plan, which has all choices."""
        context = PlanContext(replace(limits, disabled=frozenset()), table=table)
        sizes = self.picture.sizes
        if self.inserts:
            windows = inserted_windows(self.offsets, self.batch.sizes, sizes, self.strides, "drop")
            insertion = insertion_of(windows, sizes, "last")
            return insert_windows_planner(insertion)(self.batch, self.picture, self.width, context)
        extents = ROWS, sizes[1] - ROOM, self.channels
        fill = bytes([FILL]) * WIDEST_NBYTES if self.outside else None
        offsets: NDArray[np.int64] | OnGpu = self.offsets
        if table is not None:
            offsets = OnGpu(self.offsets.shape, np.dtype(self.offset_dtype))
        windows = extracted_windows(offsets, sizes, extents, self.strides, fill)
        windows = replace(windows, indices=self.from_end)
        return extract_windows_planner(windows)(self.picture, self.batch, self.width, context)

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """One for each kernel that takes these windows."""
        table, content = None, None
        if self.offset_dtype is not None:
            given = self.offsets.copy()
            given[1::2] -= np.array(self.picture.sizes) * self.from_end
            content = np.ascontiguousarray(given, self.offset_dtype).view(np.uint8).ravel()
            table = Table(Layout.packed(given.shape), np.dtype(self.offset_dtype).itemsize)
        plan = self.plan(limits, table)
        nbytes = side_nbytes(plan.source, self.width), side_nbytes(plan.target, self.width)
        for choice in plan.choices:
            for part, steps in parts_of(choice.steps):
                alone = replace(plan, steps=steps, scratch=winners_scratch(steps))
                yield Trial(alone, str(self), *nbytes, partial(self.expected, part), content)


def parts_of(steps: tuple[Step, ...]) -> list[tuple[str, tuple[Step, ...]]]:
    """The kernels of a choice apart, and what each writes; nothing of windows that few devices cut."""
    kernels = [step.name for step in steps if isinstance(step, WindowDispatch)]
    if kernels == KERNELS_APART:
        return [("blocks", steps[:1]), ("ends", steps[1:])]
    return [("all", steps)] if len(kernels) == len(steps) == 1 or kernels in KERNELS_TOGETHER else []


def windows_cases() -> Iterator[WindowsCase]:
    """Both sides of what decides which kernel windows take, and of what goes another way inside of it."""
    both = False, True
    ways = list(product(both, (0, OUTSIDE)))  # mirrored, and leaving the picture
    for inserts, (width, channels, nbytes), way in product(both, ROWS_OF_PIXELS, ways):
        for skip in (0, 1, 5) if width < 4 else (0, 1):
            yield WindowsCase(inserts, width, channels, nbytes // (width * channels), *way, skip)
    pixels = (1, 1, 1), (1, 7, 1), (1, 99, 2), (3, 5, 2)
    for inserts, width, (channels, size, step), way, skip in product(both, (1, 2), pixels, ways, range(4)):
        yield WindowsCase(inserts, width, channels, size, *way, skip, step)
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


def window_trials(limits: Limits) -> Iterator[Trial]:
    """All trials of windows."""
    return (trial for case in windows_cases() for trial in case.trials(limits))

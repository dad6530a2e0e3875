"""Trials of the kernels of many windows: each case by every kernel that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.trials import Bytes, Trial, side_nbytes, view_of
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.problem import Table, Terms
from wgslice.plans.profiles import Limits
from wgslice.plans.window_plans import extract_windows_planner
from wgslice.plans.windows import WindowDispatch, Windows

__all__ = ["WindowsCase", "window_trials", "windows_cases"]

COUNT = 9  # windows of a case
HEIGHT, ROOM = 5, 9  # rows of the input, and pixels that it is longer than a window
ROWS = 3  # of a window
FILL = 7  # each byte of what lies outside

# Bytes an element, elements a pixel, and bytes a row: of a block or none, of a few and of more. Each number
# of elements and of whole blocks is a pipeline of `window_rows`, which takes 0.2 s to compile (lavapipe).
ROWS_OF_PIXELS = (
    *((1, 1, 31), (1, 1, 64), (1, 3, 96), (1, 4, 64), (1, 16, 64), (2, 1, 16), (2, 3, 66)),
    *((4, 1, 16), (4, 1, 64), (8, 1, 64), (16, 1, 16), (16, 1, 96)),
)


@dataclass(frozen=True)
class WindowsCase:
    """Windows of a picture: rows of `size` pixels, some mirrored and some leaving it, where that is said."""

    width: int  # bytes an element
    channels: int
    size: int  # pixels a row
    mirrored: bool = False
    leaves: int = 0  # pixels by which windows may lie outside
    skip: int = 0  # elements before input and output
    step: int = 1  # pixels from one of a row to the next
    apart: int = 1  # elements from one of the output to the next
    offset_dtype: str | None = None  # of offsets that the GPU has
    from_end: bool = False  # whether every other window has indices as offsets, counted from the end

    @property
    def extents(self) -> tuple[int, int, int]:
        """Of a window, in the input's indices."""
        return ROWS, (self.size - 1) * self.step + 1, self.channels

    @property
    def input(self) -> Layout:
        """Where the picture lies."""
        return Layout.packed((HEIGHT, self.extents[1] + ROOM, self.channels), self.skip)

    @property
    def output(self) -> Layout:
        """Where the windows lie."""
        packed = Layout.packed((COUNT, ROWS, self.size, self.channels))
        return Layout.of(packed.sizes, [stride * self.apart for stride in packed.strides], self.skip)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Of each window."""
        generator = np.random.default_rng(self.size)
        highest = [HEIGHT - ROWS + self.leaves, ROOM + self.leaves]
        places = generator.integers(-self.leaves, highest, (COUNT, 2), endpoint=True)
        return np.pad(places, ((0, 0), (0, 1)))

    @cached_property
    def windows(self) -> Windows:
        """As planners take them; bits 0 and 1 of its number say in which directions a window goes."""
        flips = np.arange(COUNT, dtype=np.uint32) % 4 if self.mirrored else np.zeros(COUNT, np.uint32)
        dtype = np.dtype(self.offset_dtype or "int32")
        known = None if self.offset_dtype else self.offsets.astype(np.int32)
        fill = bytes([FILL]) * WIDEST_NBYTES if self.leaves else None
        steps = 1, self.step, 1
        signed = dtype.kind == "i"
        return Windows(self.extents, steps, flips, known, dtype.itemsize, signed, fill, indices=self.from_end)

    def expected(self, read: Bytes, before: Bytes) -> Bytes:
        """The target afterwards, pixel by pixel in NumPy's words."""
        picture = view_of(read, self.input, self.width)
        height, breadth, _ = picture.shape
        after = before.copy()
        written = view_of(after, self.output, self.width)
        fill = np.frombuffer(bytes([FILL]) * self.width, written.dtype)[0]
        for number, flip in enumerate(self.windows.flips.tolist()):
            y, x, _ = self.offsets[number].tolist()
            rows, columns = np.arange(y, y + ROWS), np.arange(x, x + self.extents[1])
            rows, columns = rows[:: -1 if flip & 1 else 1], columns[:: -self.step if flip & 2 else self.step]
            for target, row in zip(written[number], rows.tolist(), strict=True):
                inside = (columns >= 0) & (columns < breadth) & (0 <= row < height)
                target[~inside] = fill
                target[inside] = picture[row % height, columns[inside]]
        return after

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """One for each kernel that takes these windows."""
        source, target = self.input, self.output
        dtype = self.offset_dtype
        table = Table(Layout.packed(self.offsets.shape), np.dtype(dtype).itemsize) if dtype else None
        given = self.offsets.copy()
        given[1::2] -= np.array(source.sizes) * self.from_end
        content = np.ascontiguousarray(given, dtype).view(np.uint8).ravel() if dtype else None
        terms = Terms(replace(limits, distrusted=frozenset()), table=table)
        plan = extract_windows_planner(self.windows)(source, target, self.width, terms)
        nbytes = side_nbytes(source, self.width), side_nbytes(target, self.width)
        for choice in plan.choices:
            step, *others = choice.steps  # several where windows are cut, which most devices need not
            if isinstance(step, WindowDispatch) and not others:
                yield Trial(replace(plan, steps=choice.steps), str(self), *nbytes, self.expected, content)


def windows_cases() -> Iterator[WindowsCase]:
    """Both sides of what decides which kernel windows take, and of what goes another way inside of it."""
    ways = list(product((False, True), (0, 3)))  # mirrored, and leaving the input
    for (width, channels, nbytes), (mirrored, leaves) in product(ROWS_OF_PIXELS, ways):
        for skip in (0, 1, 5) if width < 4 else (0, 1):
            yield WindowsCase(width, channels, nbytes // (width * channels), mirrored, leaves, skip)
    for width, (channels, size, step) in product((1, 2), ((1, 1, 1), (1, 7, 1), (1, 99, 2), (3, 5, 2))):
        for (mirrored, leaves), skip in product(ways, range(4)):
            yield WindowsCase(width, channels, size, mirrored, leaves, skip, step)
    for width, leaves, skip in product((1, 2, 4, 8, 16), (0, 4), (0, 1)):
        yield WindowsCase(width, 1, 7, True, leaves, skip, 2)
        yield WindowsCase(width, 1, 7, True, leaves, skip, 1, 2)
    for dtype in ("int64", "uint64", "int16", "uint16", "int8", "uint8", "uint32"):
        yield WindowsCase(4, 3, 20, True, apart=2, offset_dtype=dtype)
    yield WindowsCase(1, 3, 4, True, offset_dtype="uint16")
    for dtype, width in product(("int32", "int64"), (1, 4)):
        yield WindowsCase(width, 3, 20, offset_dtype=dtype, from_end=True)


def window_trials(limits: Limits) -> Iterator[Trial]:
    """All trials of windows."""
    return (trial for case in windows_cases() for trial in case.trials(limits))

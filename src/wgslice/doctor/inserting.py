"""Trials of the kernels that put many windows into one tensor: each case by every kernel that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import product

import numpy as np
from numpy.typing import NDArray

from wgslice.doctor.trials import Bytes, Trial, side_nbytes, view_of
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import inserted_windows
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.overlaps import insertion_of
from wgslice.plans.plan import Plan
from wgslice.plans.problem import Terms
from wgslice.plans.profiles import Limits
from wgslice.plans.window_plans import claims_scratch, insert_windows_planner
from wgslice.plans.windows import WindowDispatch

__all__ = ["InsertCase", "insert_cases", "insert_trials"]

COUNT = 9  # windows of a case
ROWS, ROOM = 3, 9  # of a window, and pixels that the tensor is longer than one

# Bytes an element, elements a pixel, and bytes a row, as windows are tried.
ROWS_OF_PIXELS = (
    *((1, 1, 31), (1, 1, 64), (1, 3, 96), (1, 4, 64), (2, 1, 16), (2, 3, 66)),
    *((4, 1, 16), (4, 1, 64), (8, 1, 64), (16, 1, 96)),
)


@dataclass(frozen=True)
class InsertCase:
    """Windows to put into a picture, below each other; some mirrored, some leaving it, where that is said."""

    width: int  # bytes an element
    channels: int
    size: int  # pixels a row
    mirrored: bool = False
    leaves: bool = False
    skip: int = 0  # elements before input and output
    step: int = 1  # pixels of the picture from one of a row to the next
    overlap: bool = False

    @property
    def batch(self) -> Layout:
        """Where the windows lie."""
        return Layout.packed((COUNT, ROWS, self.size, self.channels), self.skip)

    @property
    def tensor(self) -> Layout:
        """Where the picture lies."""
        breadth = (self.size - 1) * self.step + 1 + ROOM
        return Layout.packed((COUNT * ROWS - 2 * self.leaves, breadth, self.channels), self.skip)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Of each window."""
        columns = np.random.default_rng(self.size).integers(0, ROOM, COUNT, endpoint=True)
        if self.overlap:
            columns = np.arange(COUNT) % 2
        if self.leaves:  # each of them, so that one dispatch takes all
            columns = np.where(np.arange(COUNT) % 2, ROOM + 4, -4)
        rows = np.arange(COUNT) * (1 if self.overlap else ROWS) - int(self.leaves)
        return np.stack([rows, columns, 0 * columns], 1)

    @property
    def signs(self) -> NDArray[np.int64]:
        """Of each window's steps along rows and pixels."""
        bits = np.arange(COUNT) % 4 if self.mirrored else np.zeros(COUNT, np.int64)
        return np.stack([1 - 2 * (bits & 1), 1 - (bits & 2), np.ones(COUNT, np.int64)], 1)

    def places(self) -> Iterator[tuple[tuple[int, int], int, int]]:
        """Window and row, the row of the picture, and the pixel where it begins, as the signs say."""
        for number, ((y, x, _), (down, along, _)) in enumerate(zip(self.offsets, self.signs, strict=True)):
            for row in range(ROWS):
                begin = x if along > 0 else x + (self.size - 1) * self.step
                yield (number, row), int(y + (row if down > 0 else ROWS - 1 - row)), int(begin)

    def expected(self, part: str, read: Bytes, before: Bytes) -> Bytes:
        """The picture afterwards, pixel by pixel in NumPy's words: all of it, blocks of rows, or the rest."""
        windows, after = view_of(read, self.batch, self.width), before.copy()
        picture, in_blocks = view_of(after, self.tensor, self.width), np.zeros(after.size, np.bool_)
        height, breadth, _ = picture.shape
        for (window, y, begin), along in zip(
            self.places(), np.repeat(self.signs[:, 1], ROWS).tolist(), strict=True
        ):
            pixels = begin + along * self.step * np.arange(self.size)
            inside = (pixels >= 0) & (pixels < breadth) & (0 <= y < height)
            picture[y % height, pixels[inside]] = windows[window][inside]
            if inside.any():
                first, last = (int(end) for end in (pixels[inside].min(), pixels[inside].max() + 1))
                start, stop = (
                    (self.skip + (y * breadth + pixel) * self.channels) * self.width
                    for pixel in (first, last)
                )
                in_blocks[
                    -(-start // WIDEST_NBYTES) * WIDEST_NBYTES : stop // WIDEST_NBYTES * WIDEST_NBYTES
                ] = 1
        parts = {"all": np.ones_like(in_blocks), "blocks": in_blocks, "ends": ~in_blocks}
        return np.where(parts[part], after, before)

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """One for each kernel that takes these windows."""
        source, target = self.batch, self.tensor
        steps = self.signs * np.array([1, self.step, 1])
        windows = inserted_windows(self.offsets, source.sizes, target.sizes, steps, "drop")
        insertion = insertion_of(windows, target.sizes, "last")
        terms = Terms(replace(limits, distrusted=frozenset()))
        whole = insert_windows_planner(insertion)(source, target, self.width, terms)
        for choice in whole.choices:
            scratch = claims_scratch(choice.steps)
            for part, plan in parts_of(replace(whole, steps=choice.steps, scratch=scratch)):
                nbytes = side_nbytes(source, self.width), side_nbytes(target, self.width)
                yield Trial(plan, str(self), *nbytes, partial(self.expected, part))


def parts_of(plan: Plan) -> list[tuple[str, Plan]]:
    """A plan's kernels apart, and what each writes; nothing of plans that are cut, as few devices need it."""
    kernels = [step.name for step in plan.steps if isinstance(step, WindowDispatch)]
    rows, words = Kernel.INSERT_ROWS.value, Kernel.INSERT_WORDS.value
    if kernels == [rows, words]:
        return [
            (part, replace(plan, steps=(step,)))
            for part, step in zip(("blocks", "ends"), plan.steps, strict=True)
        ]
    if len(kernels) == 1 or kernels == [Kernel.CLAIM_WINDOWS.value, Kernel.INSERT_WINDOWS.value]:
        return [("all", plan)]
    return []


def insert_cases() -> Iterator[InsertCase]:
    """Both sides of what decides which kernel windows take, and of what goes another way inside of it."""
    ways = list(product((False, True), (False, True)))  # mirrored, and leaving the picture
    for (width, channels, nbytes), (mirrored, leaves) in product(ROWS_OF_PIXELS, ways):
        for skip in (0, 1, 5) if width < 4 else (0, 1):
            yield InsertCase(width, channels, nbytes // (width * channels), mirrored, leaves, skip)
    for width, (channels, size), (mirrored, leaves) in product((1, 2), ((1, 1), (1, 7), (3, 5)), ways):
        for skip, step in ((0, 1), (1, 1), (3, 2)):
            yield InsertCase(width, channels, size, mirrored, leaves, skip, step)
    for width, leaves in product((1, 2, 4, 8, 16), (False, True)):
        yield InsertCase(width, 1, 7, True, leaves, 1, 2)
    for width, leaves, (channels, size) in product((1, 2, 4), (False, True), ((1, 2), (3, 7))):
        yield InsertCase(width, channels, size, True, leaves, 1, overlap=True)


def insert_trials(limits: Limits) -> Iterator[Trial]:
    """All trials of windows that are inserted."""
    return (trial for case in insert_cases() for trial in case.trials(limits))

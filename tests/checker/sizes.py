"""Copies of tensors of some GiB: buffers are functions of the address, and some workgroups of a grid run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from random import Random
from typing import Any, NamedTuple

import numpy as np
from checker.execute import run_plan, words_of
from checker.findings import Finding
from checker.memory import Memory, Numbers, Paged, garbage
from checker.trials import Tallies
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.doctor.copies import cases
from wgslice.doctor.trials import FILL, NONE, Elements, difference, elements_of
from wgslice.doctor.windows import COUNT, MARGIN, OUTSIDE, ROWS, WindowsCase
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.gather import indexed_copy
from wgslice.plans.index_strategies import plan_indexing
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext, Table
from wgslice.plans.profiles import CPU, GPU, Limits
from wgslice.plans.steps import Memory as Kind
from wgslice.plans.steps import OnGrid
from wgslice.plans.window_strategies import winners_scratch

GOALS_NBYTES = (2**31, 2**31, 2**31 + 2**20, 2**32 - 4, 2**32, 5 * 2**30)  # of the larger side, at most
RARE = 4  # plans of a kernel that are all taken; of further ones fewer
LARGE = Limits(binding_nbytes=2**32 - 16, binding_alignment_nbytes=32, workgroups=65535)
NEIGHBOURS = 200  # workgroups at either end of a grid that are executed
MAX_STEPS = 6  # of a plan that are executed: the first and the last ones


def before(words: Numbers) -> Numbers:
    """Return the words of a target before a copy."""
    return garbage(words + 2**48)


def byte_at(addresses: Numbers) -> Numbers:
    """Return bytes of a source."""
    return (garbage(addresses >> 2) >> (addresses % 4 * 8)) & 0xFF


def stretched(source: Layout, target: Layout, count: int) -> tuple[Layout, Layout]:
    """Return a copy with `count` indices of the first dimension, from the same lowest element on."""
    sides = []
    for side in (source, target):
        sizes = count, *side.sizes[1:]
        missing = (count - side.sizes[0]) * -min(side.strides[0], 0)
        sides.append(Layout.of(sizes, side.strides, side.offset + missing))
    return sides[0], sides[1]


def chosen_groups(step: OnGrid) -> Numbers:
    """Return the first and last workgroups of a grid, and those beside powers of two and ends of its rows."""
    x, *_ = step.share.workgroups
    total = prod(step.share.workgroups)
    count = step.share.count * max(step.share.pieces, 1) // step.share.workgroup_size
    near = [0, x, total, step.share.count, count, *(2**k for k in range(31))]
    found = {number + d for number in near for d in (-2, -1, 0, 1)}
    found |= {*range(NEIGHBOURS), *range(total - NEIGHBOURS, total)}
    return np.array(sorted(number for number in found if 0 <= number < total))


def large_copies(draw: Random) -> Iterator[tuple[str, Plan]]:
    """Yield a plan of each strategy of drawn copies, stretched to about the bytes of each goal."""
    templates = [case for case in cases() if case[2].is_nested and case[2].rank]
    permuted = [case for case in templates if abs(case[1].strides[-1]) > min(map(abs, case[1].strides))]
    seen: Counter[str] = Counter()
    while True:
        width, source, target = draw.choice(draw.choice((templates, permuted)))
        goal_nbytes, profile = draw.choice(GOALS_NBYTES), draw.choice((CPU, GPU))
        counts = [
            (goal_nbytes // width - side.stop) // abs(side.strides[0]) + side.sizes[0]
            for side in (source, target)
            if side.strides[0]
        ]
        count = max(min(*counts, U32_MAX // prod(target.sizes[1:])), 1) if counts else 1
        limits = replace(LARGE, profile=profile)
        sides = stretched(source, target, count)
        plan = plan_copy(*sides, width, PlanContext(limits))
        for choice in plan.choices:
            kernel = choice.steps[0].name
            seen[kernel] += 1  # strategies that apply to few copies are taken as often as others
            if all(isinstance(step, OnGrid) for step in choice.steps) and draw.random() < RARE / seen[kernel]:
                half = MAX_STEPS // 2
                steps = (
                    choice.steps
                    if len(choice.steps) <= MAX_STEPS
                    else (*choice.steps[:half], *choice.steps[-half:])
                )
                yield f"{sides[0]} to {sides[1]}, {width} bytes an element", replace(plan, steps=steps)


def check_large(plan: Plan, tallies: Tallies, change: Callable[[str], str] = str) -> list[Finding]:
    """Execute some workgroups of a plan of a copy; return what is found."""
    width, source, target = plan.width_nbytes, plan.source, plan.target
    nbytes = [-(-side.stop * width // 16) * 16 for side in (source, target)]
    memories = {
        int(Kind.INPUT): Paged(nbytes[0] // 4, garbage),
        int(Kind.OUTPUT): Paged(nbytes[1] // 4, before),
    }
    found = run_plan(plan, dict(memories), tallies, change, chosen_groups)
    written = memories[int(Kind.OUTPUT)]
    numbers, words = written.numbers(), written.words
    changed = np.flatnonzero(words != before(numbers))
    addresses = (numbers[changed][:, None] * 4 + np.arange(4)).reshape(-1)
    after = ((words[changed][:, None] >> (np.arange(4) * 8)) & 0xFF).reshape(-1)
    kept = ((before(numbers[changed])[:, None] >> (np.arange(4) * 8)) & 0xFF).reshape(-1)
    rest = addresses // width - target.offset
    inside, element = rest >= 0, np.full(rest.size, source.offset)
    for size, read, stride in zip(target.sizes, source.strides, target.strides, strict=True):
        if size > 1:
            index = rest // stride
            inside &= (index >= 0) & (index < size)
            rest -= index * stride
            element += index * read
    inside &= rest == 0
    expected = np.where(inside, byte_at(np.where(inside, element * width + addresses % width, 0)), kept)
    wrong = (after != expected) & (after != kept)
    kernel = plan.steps[0].name
    if wrong.any() or not changed.size:
        at = int(addresses[wrong][0]) if wrong.any() else -1
        text = f"{int(wrong.sum())} of {4 * changed.size} changed bytes are wrong, the first one at {at}"
        found.append(Finding("bytes", kernel, 0, "", text))
    return found


HEIGHTS = (2**31, 2**31 + 2**20, 2**32 - 2**12)  # bytes of a tensor, about


@dataclass(frozen=True)
class LargeWindows(WindowsCase):
    """A few windows at the ends, the middle and outside of a tall picture."""

    nbytes: int = 0  # of the picture, about

    @property
    def picture(self) -> Layout:
        """The layout of the picture."""
        breadth = (self.size - 1) * self.step + 1 + MARGIN
        height = self.nbytes // (breadth * self.channels * self.width)
        return Layout.packed((height, breadth, self.channels), self.skip)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets of each window; of inserted ones every second row is that of the window before."""
        height = self.picture.sizes[0]
        rows = np.linspace(-self.outside, height - ROWS + self.outside, COUNT).astype(np.int64)
        if self.overlap:
            rows = np.minimum(rows[-1] - ROWS, rows[0] + np.arange(COUNT))
        columns = np.arange(COUNT) * 2 % (MARGIN + 1) + (np.arange(COUNT) % 3 - 1) * self.outside
        return np.stack([rows, columns, columns * 0], axis=1)

    def moved(self) -> tuple[Elements, Elements]:
        """Return the elements of the target and of the source."""
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


def large_windows(draw: Random) -> Iterator[tuple[str, Plan, Moved]]:
    """Yield a plan of each strategy of drawn windows of pictures of some GiB."""
    while True:
        width, channels = draw.choice(((1, 1), (1, 3), (2, 4), (4, 1), (8, 1), (16, 1)))
        inserts, outside = draw.random() < 0.5, draw.choice((0, OUTSIDE))
        step = draw.choice((1, 1, 1, 2, 4)) if not inserts else 1
        size, is_reversed, skip = draw.choice((7, 16, 40, 99)), draw.random() < 0.5, draw.choice((0, 1, 5))
        overlap, nbytes = inserts and draw.random() < 0.3, draw.choice(HEIGHTS)
        case = LargeWindows(
            inserts, width, channels, size, is_reversed, outside, skip, step, overlap=overlap, nbytes=nbytes
        )
        limits = replace(LARGE, profile=draw.choice((CPU, GPU)))
        plan = case.plan(limits, None)
        for choice in plan.choices:
            if all(isinstance(step, OnGrid) for step in choice.steps):
                scratch = winners_scratch(choice.steps)
                yield (
                    str(case),
                    replace(plan, steps=choice.steps, scratch=scratch),
                    Moved(width, *case.moved()),
                )


def large_indexing(draw: Random) -> Iterator[tuple[str, Plan, Moved]]:
    """Yield plans of gathers and scatters at indices of tall, or of broad, pictures of some GiB."""
    while True:
        width, run = draw.choice((1, 1, 2, 4, 8, 16)), draw.choice((1, 3, 20))
        writes, dtype = draw.random() < 0.5, draw.choice((None, "int32", "int64", "uint32"))
        along, disjoint = draw.choice((0, 1)), draw.random() < 0.5
        few = 9
        many = min(draw.choice(HEIGHTS) // (few * run * width), 2**31 - 1)
        picture = Layout.packed((few, many, run) if along else (many, few, run), draw.choice((0, 1, 3)))
        indices = np.unique(np.linspace(0, many - 1, 40).astype(np.int64))
        if not disjoint:
            indices = np.concatenate([indices, indices[::3]])
        held = DeviceIndices(indices.shape, None) if dtype else indices
        selection = any_index(picture.sizes, (slice(None), held) if along else (held,))
        assert isinstance(selection, AdvancedSelection)
        places = [np.arange(size) for size in picture.sizes]
        places[along] = indices
        y, x, z = (index * stride for index, stride in zip(places, picture.strides, strict=True))
        numbers = picture.offset + y[:, None, None] + x[:, None] + z
        elements = Layout.packed(selection.shape, draw.choice((0, 1)))
        signed = dtype is None or dtype.startswith("i")
        copy = indexed_copy(selection, picture, elements, reads=not writes, signed=signed, disjoint=disjoint)
        sides = (elements, picture) if writes else (picture, elements)
        limits = replace(LARGE, profile=draw.choice((CPU, GPU)))
        table = None if dtype is None else indices.astype(dtype)
        known = None if table is None else Table(Layout.packed(table.shape), table.itemsize)
        if copy is None:
            continue
        plan = plan_indexing(copy, lambda: None, *sides, width, PlanContext(limits, table=known))
        moved = (numbers, elements_of(elements)) if writes else (elements_of(elements), numbers)
        if all(isinstance(step, OnGrid) for step in plan.steps):
            yield f"{picture} at {along}, {dtype}, {writes}", plan, Moved(width, moved[0], moved[1], table)


class Moved(NamedTuple):
    """The elements that a plan moves, of `width` bytes."""

    width: int
    written: Elements  # their numbers in the target, or NONE
    read: Elements  # in the source, or NONE
    table: Any = None  # device-resident indices


def check_moved(plan: Plan, moved: Moved, tallies: Tallies) -> list[Finding]:
    """Execute a plan on buffers of some GiB; return what is found."""
    width, (written, read) = moved.width, np.broadcast_arrays(moved.written, moved.read)
    written, read = written.reshape(-1), read.reshape(-1)
    nbytes = [-(-side.stop * width // 16) * 16 + 64 for side in (plan.source, plan.target)]
    nbytes = [
        max(size, (int(each.max()) + 1) * width // 16 * 16 + 64)
        for size, each in zip(nbytes, (read, written), strict=True)
    ]
    memories: dict[int, Memory] = {
        int(Kind.INPUT): Paged(nbytes[0] // 4, garbage),
        int(Kind.OUTPUT): Paged(nbytes[1] // 4, before),
    }
    if moved.table is not None:
        memories[int(Kind.OFFSETS)] = Memory(words_of(moved.table))
    found = run_plan(plan, memories, tallies)
    target = memories[int(Kind.OUTPUT)]
    assert isinstance(target, Paged)
    kept = written != NONE
    _, last = np.unique(written[kept][::-1], return_index=True)  # of equal ones the last one
    chosen = np.flatnonzero(kept)[::-1][last]
    places = (written[chosen][:, None] * width + np.arange(width)).reshape(-1)
    values = byte_at((np.maximum(read[chosen], 0)[:, None] * width + np.arange(width)).reshape(-1))
    values = np.where(np.repeat(read[chosen] == NONE, width), FILL, values)
    slots = target.slots(places >> 2)
    expected = before(target.numbers())
    shift = places % 4 * 8
    np.bitwise_and.at(expected, slots, ~(0xFF << shift))
    np.bitwise_or.at(expected, slots, values << shift)
    wrong = difference(target.words, expected, "words", "#x")
    return [*found, *([Finding("bytes", plan.steps[0].name, 0, "", wrong)] if wrong else [])]

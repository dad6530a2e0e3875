"""Copies of tensors of some GiB: buffers are functions of the address, and some workgroups of a grid run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from random import Random
from typing import Any, NamedTuple, cast

import numpy as np
from checker.execute import words_of
from checker.findings import Finding
from checker.memory import Memory, Numbers, Paged, garbage
from checker.plans import run_plan
from checker.trials import Tallies
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.doctor.copies import cases
from wgslice.doctor.indexing import table_of
from wgslice.doctor.trials import FILL, NONE, Elements, difference, elements_of
from wgslice.doctor.windows import COUNT, MARGIN, OUTSIDE, ROWS, SizedCase, WindowsCase
from wgslice.layout import Layout
from wgslice.plans.facade import (
    LARGEST_BINDING_NBYTES,
    MAX_INVOCATIONS,
    Asked,
    Table,
    copy_at_once,
    copying,
    every,
    masked_copy_at_once,
    masked_values_at_once,
    plan,
)
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import CPU, GPU, Limits
from wgslice.plans.steps import Memory as Kind
from wgslice.plans.steps import OnGrid

GOALS = 2**31 - 1, 2**31, 2**31 + 2**20, 2**32 - 4, 2**32 - 1, 2**32, 5 * 2**30  # elements, or bytes, at most
SKIPS = 0, 1, 2**31 + 1  # elements before those that a mask or indices select
RARE = 4  # plans of a kernel that are all taken; of further ones fewer
LARGE = Limits(binding_nbytes=2**32 - 16, binding_alignment_nbytes=32, workgroups=65535)
NEIGHBOURS = 200  # workgroups at either end of a grid that are executed
MAX_STEPS = 6  # of a plan that are executed: the first and the last ones


def before(words: Numbers) -> Numbers:
    """Return the words of a target before a copy."""
    return garbage(words + 2**48)


def mask_words(words: Numbers) -> Numbers:
    """Return the words of a mask, of which half of the bytes are 0."""
    return garbage(words + 2**49) & 0x80400101


def byte_of(content: Callable[[Numbers], Numbers], addresses: Numbers) -> Numbers:
    """Return bytes of a memory."""
    return (content(addresses >> 2) >> (addresses % 4 * 8)) & 0xFF


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


class Large(NamedTuple):
    """A plan of which some workgroups run, and what it copies: elements of `width` bytes."""

    case: str
    plan: Plan
    width: int
    source: Layout
    target: Layout
    mask: Layout | None = None  # of bytes, where an element is written if they are not 0
    read: Callable[[Numbers], Numbers] | None = None  # of the first dimension: index of the source, or NONE
    table: Memory | None = None  # mask or indices of the device


def by_kernels_alone(plan: Plan) -> Iterator[Plan]:
    """Yield a plan by each strategy of dispatches alone."""
    for _, each in every(plan):
        if all(isinstance(step, OnGrid) for step in each.steps):
            yield each


def by_kernels(large: Large) -> Iterator[Large]:
    """Yield a plan by each strategy of dispatches alone, of many dispatches the first and the last ones."""
    half = MAX_STEPS // 2
    for each in by_kernels_alone(large.plan):
        some = each.steps[:half] + each.steps[max(len(each.steps) - half, half) :]
        yield large._replace(plan=replace(each, steps=some))


def large_copies(draw: Random) -> Iterator[Large]:
    """Yield a plan of each strategy of drawn copies, stretched to about the bytes of each goal."""
    templates = [case for case in cases() if case[2].is_nested and case[2].rank]
    permuted = [case for case in templates if abs(case[1].strides[-1]) > min(map(abs, case[1].strides))]
    seen: Counter[str] = Counter()
    while True:
        width, source, target = draw.choice(draw.choice((templates, permuted)))
        goal_nbytes = draw.choice(GOALS) * draw.choice((1, width))
        profile = draw.choice((CPU, GPU))
        counts = [
            (goal_nbytes // width - side.stop) // abs(side.strides[0]) + side.sizes[0]
            for side in (source, target)
            if side.strides[0]
        ]
        count = max(min(*counts, U32_MAX // prod(target.sizes[1:])), 1) if counts else 1
        sides = stretched(source, target, count)
        chosen = plan(copying(*sides, width), replace(LARGE, profile=profile))
        for large in by_kernels(Large(f"{sides[0]} to {sides[1]}, width {width}", chosen, width, *sides)):
            kernel = large.plan.steps[0].name
            seen[kernel] += 1  # strategies that apply to few copies are taken as often as others
            if draw.random() < RARE / seen[kernel]:
                yield large


def large_masks(draw: Random) -> Iterator[Large]:
    """Yield masked copies of as many elements as one grid or two bindings hold."""
    while True:
        width, row, gap = (
            draw.choice((1, 2, 4, 8, 16)),
            draw.choice((1, 3, 33, 2**20)),
            draw.choice((0, 0, 1)),
        )
        skip, limits = draw.choice(SKIPS), replace(LARGE, profile=draw.choice((CPU, GPU)))
        rows = min(MAX_INVOCATIONS // row, (LARGEST_BINDING_NBYTES - 64) // width // (row + gap))
        target = Layout.of((rows, row), (row + gap, 1), skip)
        source = Layout.of((rows, row), draw.choice(((0, 0), (row, 1), (row, 1))), draw.choice(SKIPS))
        mask = Layout.packed((rows, draw.choice((1, row))))
        copy = masked_copy_at_once(mask.sizes, target, source, limits)
        if copy is None:
            continue
        chosen = plan(Asked(*copy, width), limits, table=Table(mask, 1))
        repeated = Layout.of(target.sizes, mask.strides)
        table = Paged(-(-mask.size // 4), mask_words)
        case = f"{source} to {target} by a mask of {mask.sizes}, width {width}"
        yield from by_kernels(Large(case, chosen, width, source, target, repeated, None, table))


def large_values(draw: Random) -> Iterator[Large]:
    """Yield copies of values in turn to where a mask of the host is true, as large as a grid."""
    while True:
        part = np.random.default_rng(draw.randrange(2**31)).random(2**20) < draw.choice((0.1, 0.9))
        ahead: Numbers = np.cumsum(part) - part
        count = int(np.count_nonzero(part))

        def read(index: Numbers, part: Any = part, ahead: Any = ahead, count: int = count) -> Numbers:
            turn, own = np.divmod(index, part.size)
            return np.where(part[own], turn * count + ahead[own], NONE)

        repeats, width = MAX_INVOCATIONS // part.size, draw.choice((1, 2))
        repeats -= width == 2  # a binding holds fewer
        target = Layout.packed((repeats * part.size,), 2**31)  # begins at a word
        source = Layout.packed((repeats * count,), draw.choice(SKIPS))
        limits = replace(LARGE, profile=draw.choice((CPU, GPU)))
        copy = masked_values_at_once(np.tile(part, repeats), target, source, width, limits)
        assert copy is not None
        chosen = plan(Asked(*copy, width), limits)
        yield from by_kernels(Large(f"{target.sizes} by a mask", chosen, width, source, target, None, read))


def large_gathers(draw: Random) -> Iterator[Large]:
    """Yield gathers of long rows, of as many elements as one grid or two bindings hold."""
    while True:
        width, row = draw.choice((1, 2, 4, 8, 16)), draw.choice((7, 2**10, 2**20))
        rows = min(MAX_INVOCATIONS, (LARGEST_BINDING_NBYTES - 64) // width) // row
        height = draw.choice((9, rows))
        picks = np.random.default_rng(draw.randrange(2**31)).integers(0, height, min(rows, 2**20))
        source = Layout.packed((height, row), draw.choice(SKIPS))
        target = Layout.packed((picks.size, row), draw.choice(SKIPS))
        dtype = draw.choice((None, np.dtype("int32"), np.dtype("uint32"), np.dtype("int64")))
        held: Any = picks if dtype is None else DeviceIndices(picks.shape, None)
        limits, selection = replace(LARGE, profile=draw.choice((CPU, GPU))), any_index(source.sizes, held)
        assert isinstance(selection, AdvancedSelection)
        copy = copy_at_once(selection, source, target, width, limits, reads=True, index_dtype=dtype)
        if copy is None:
            continue
        indices = None if dtype is None else picks.astype(dtype)
        chosen = plan(Asked(*copy, width), limits, table=table_of(indices))
        table = None if indices is None else Memory(words_of(indices))
        case = f"{picks.size} of {source}, width {width}, {dtype}"
        read = cast("Callable[[Numbers], Numbers]", picks.__getitem__)
        yield from by_kernels(Large(case, chosen, width, source, target, None, read, table))


def check_large(large: Large, tallies: Tallies, changed: Callable[[str], str] = str) -> list[Finding]:
    """Execute some workgroups of a plan; return what is found."""
    width, source, target = large.width, large.source, large.target
    nbytes = [-(-side.stop * width // 16) * 16 + 16 for side in (source, target)]
    written = Paged(nbytes[1] // 4, before)
    memories: dict[int, Memory] = {int(Kind.INPUT): Paged(nbytes[0] // 4, garbage), int(Kind.OUTPUT): written}
    if large.table is not None:
        memories[int(Kind.OFFSETS)] = large.table
    found = run_plan(large.plan, memories, tallies, changed, chosen_groups)
    numbers, words = written.numbers(), written.words
    differing = np.flatnonzero(words != before(numbers))
    addresses = (numbers[differing][:, None] * 4 + np.arange(4)).reshape(-1)
    after = ((words[differing][:, None] >> (np.arange(4) * 8)) & 0xFF).reshape(-1)
    kept = ((before(numbers[differing])[:, None] >> (np.arange(4) * 8)) & 0xFF).reshape(-1)
    rest = addresses // width - target.offset
    inside = rest >= 0
    element, mask = np.full(rest.size, source.offset), np.zeros(rest.size, np.int64)
    for axis, (size, stride) in enumerate(zip(target.sizes, target.strides, strict=True)):
        if size > 1:
            index = rest // stride
            inside &= (index >= 0) & (index < size)
            rest -= index * stride
            mask += index * (large.mask.strides[axis] if large.mask else 0)
            if axis == 0 and large.read is not None:
                index = large.read(np.where(inside, index, 0))
                inside &= index != NONE
            element += index * source.strides[axis]
    inside &= rest == 0
    if large.mask is not None:
        inside &= byte_of(mask_words, np.where(inside, mask, 0)) != 0
    source_bytes = byte_of(garbage, np.where(inside, element * width + addresses % width, 0))
    wrong = (after != np.where(inside, source_bytes, kept)) & (after != kept)
    if wrong.any() or not differing.size:
        at = int(addresses[wrong][0]) if wrong.any() else -1
        text = f"{int(wrong.sum())} of {4 * differing.size} changed bytes are wrong, the first one at {at}"
        found.append(Finding("bytes", large.plan.steps[0].name, 0, "", text))
    return [replace(each, case=large.case) for each in found]


HEIGHTS = (2**31, 2**31 + 2**20, 2**32 - 2**12)  # elements, or bytes, of a tensor, about


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


@dataclass(frozen=True)
class LargeSized(SizedCase):
    """Windows of different sizes from the first to the last rows of a tall picture."""

    nbytes: int = 0  # of the picture, about

    @property
    def picture(self) -> Layout:
        """The layout of the picture."""
        (_, breadth, channels), _, offset = super().picture
        return Layout.packed((self.nbytes // (breadth * channels * self.width), breadth, channels), offset)

    @cached_property
    def offsets(self) -> NDArray[np.int64]:
        """Offsets of each window."""
        offsets = super().offsets.copy()
        last = self.picture.sizes[0] - self.sizes[:, 0].max()
        offsets[:, 0] = np.linspace(0, last, len(offsets)).astype(np.int64)
        return offsets


def large_sized(draw: Random) -> Iterator[tuple[str, Plan, Moved]]:
    """Yield plans of drawn windows of different sizes in pictures of some GiB."""
    while True:
        width, channels = draw.choice(((1, 1), (1, 3), (2, 1), (4, 3), (8, 1), (16, 1)))
        inserts, is_reversed, outside = draw.random() < 0.5, draw.random() < 0.5, draw.choice((0, OUTSIDE))
        skip, nbytes = draw.choice((0, 1, 3)), draw.choice(HEIGHTS) * draw.choice((1, width))
        case = LargeSized(inserts, width, channels, is_reversed, outside, skip, nbytes=nbytes)
        trial = case.trial(replace(LARGE, profile=draw.choice((CPU, GPU))))
        assert trial is not None
        yield str(case), trial.plan, Moved(width, *case.moved())


def large_windows(draw: Random) -> Iterator[tuple[str, Plan, Moved]]:
    """Yield a plan of each strategy of drawn windows of pictures of some GiB."""
    while True:
        width, channels = draw.choice(((1, 1), (1, 3), (2, 4), (4, 1), (8, 1), (16, 1)))
        inserts, outside = draw.random() < 0.5, draw.choice((0, OUTSIDE))
        step = draw.choice((1, 1, 1, 2, 4)) if not inserts else 1
        size, is_reversed, skip = draw.choice((7, 16, 40, 99)), draw.random() < 0.5, draw.choice((0, 1, 5))
        overlap = inserts and draw.random() < 0.3
        nbytes = draw.choice(HEIGHTS) * draw.choice((1, width))
        case = LargeWindows(
            inserts, width, channels, size, is_reversed, outside, skip, step, overlap=overlap, nbytes=nbytes
        )
        limits = replace(LARGE, profile=draw.choice((CPU, GPU)))
        for each in by_kernels_alone(case.plan(limits, None)):
            yield str(case), each, Moved(width, *case.moved())


def large_indexing(draw: Random) -> Iterator[tuple[str, Plan, Moved]]:
    """Yield plans of gathers and scatters at indices of tall, or broad, pictures, as large as a binding."""
    while True:
        width, run = draw.choice((1, 1, 2, 4, 8, 16)), draw.choice((1, 3, 20))
        writes, dtype = draw.random() < 0.5, draw.choice((None, "int32", "int64", "uint32"))
        along, disjoint = draw.choice((0, 1)), draw.random() < 0.5
        few = 9
        many = (LARGEST_BINDING_NBYTES - 64) // (few * run * width)
        picture = Layout.packed((few, many, run) if along else (many, few, run), draw.choice((*SKIPS, 3)))
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
        table = None if dtype is None else indices.astype(dtype)
        limits = replace(LARGE, profile=draw.choice((CPU, GPU)))
        copy = copy_at_once(
            selection,
            picture,
            elements,
            width,
            limits,
            reads=not writes,
            index_dtype=None if table is None else table.dtype,
            disjoint=disjoint,
        )
        if copy is None:
            continue
        chosen = plan(Asked(*copy, width), limits, table=table_of(table))
        moved = (numbers, elements_of(elements)) if writes else (elements_of(elements), numbers)
        for each in by_kernels_alone(chosen):
            yield f"{picture} at {along}, {dtype}, {writes}", each, Moved(width, moved[0], moved[1], table)


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
    values = byte_of(garbage, (np.maximum(read[chosen], 0)[:, None] * width + np.arange(width)).reshape(-1))
    values = np.where(np.repeat(read[chosen] == NONE, width), FILL, values)
    slots = target.slots(places >> 2)
    expected = before(target.numbers())
    shift = places % 4 * 8
    np.bitwise_and.at(expected, slots, ~(0xFF << shift))
    np.bitwise_or.at(expected, slots, values << shift)
    wrong = difference(target.words, expected, "words", "#x")
    return [*found, *([Finding("bytes", plan.steps[0].name, 0, "", wrong)] if wrong else [])]

"""Hypothesis strategies for layouts and windows."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from helpers import (
    COPY_DST,
    COPY_SRC,
    DTYPES,
    GUARD,
    STORAGE,
    WIDTHS,
    Bytes,
    Window,
    copied,
    elements_of,
    make_buffer,
    random_bytes,
    read_buffer,
    record,
    whole_words,
)
from hypothesis import strategies as st

import wgslice as wg
from wgslice.layout import Layout

MAX_ELEMENTS = 1500
MAX_OF_LARGE = 200_000  # elements: rows for many invocations that take several elements each


class BetweenBuffers:
    """A call that reads one buffer of the caller's own and writes another; layouts in elements."""

    width: int  # bytes of an element
    seed: int

    @property
    def sides(self) -> tuple[Layout, Layout]:
        """What is read, and what is written."""
        raise NotImplementedError

    @property
    def usage(self) -> int:
        """Of both buffers."""
        return STORAGE | COPY_SRC | COPY_DST

    @property
    def dtype(self) -> str:
        return DTYPES[self.width]

    @property
    def described(self) -> tuple[wg.TensorDesc, wg.TensorDesc]:
        """Both sides for a descriptor."""
        read, written = (wg.TensorDesc(self.dtype, side.sizes, side.strides) for side in self.sides)
        return read, written

    def buffers(self) -> tuple[Bytes, Bytes]:
        """Distinct bytes of whole vectors, and guard bytes behind them that must not change."""
        source, target = (
            random_bytes((whole_words(side.stop * self.width) + 15) // 16 * 16 + GUARD, self.seed + number)
            for number, side in enumerate(self.sides)
        )
        return source, target

    def whole_nbytes(self, side: str) -> int:
        """The capacity of a buffer that ends with the last whole vector of a side."""
        return self.sides[("source", "target").index(side)].stop * self.width // 16 * 16

    def recorded(self, device: wg.Device, descriptor: Any, **bindings: Any) -> Bytes:
        """The written buffer after a compiled descriptor was recorded; the other ends with its elements."""
        read, written = self.sides
        content, before = self.buffers()
        source = make_buffer(device, content[: whole_words(read.stop * self.width)], self.usage)
        target = make_buffer(device, before, self.usage)
        bindings |= {"input": (source, read.offset * self.width)}
        bindings |= {"output": (target, written.offset * self.width)}
        record(device, device.compile(descriptor), **bindings)
        return read_buffer(target)


@dataclass(frozen=True)
class Case(BetweenBuffers):
    """One Slice1 on buffers of the caller's own."""

    width: int
    input: Layout
    window: Window
    output: Layout
    copyable: bool  # whether the buffers' usages allow buffer copies
    seed: int

    @property
    def sides(self) -> tuple[Layout, Layout]:
        return self.input, self.output

    @property
    def usage(self) -> int:
        return STORAGE | (COPY_SRC | COPY_DST) * self.copyable

    @property
    def descriptor(self) -> wg.Slice1:
        return wg.Slice1(*self.described, *self.window[:3])

    def expected(self, source: Bytes, target: Bytes) -> Bytes:
        """The written buffer after NumPy copied the window."""
        return copied(source, self.source, target, self.output, self.width)

    @property
    def source(self) -> Layout:
        """The source's layout, index by index of the output."""
        starts = [
            offset if stride > 0 else offset + size - 1
            for offset, size, stride in zip(*self.window[:3], strict=True)
        ]
        strides = [a * b for a, b in zip(self.window.strides, self.input.strides, strict=True)]
        start = sum(a * b for a, b in zip(starts, self.input.strides, strict=True))
        return Layout.of(self.window.output_sizes, strides, self.input.offset + start)


def distinct(layout: Layout) -> bool:
    places = elements_of(layout)
    return np.unique(places).size == places.size


def sizes_of(rank: int) -> st.SearchStrategy[tuple[int, ...]]:
    most = {1: 200, 2: 30, 3: 10}.get(rank, 5)
    dimension = st.one_of(st.integers(1, most), st.sampled_from([1, 3, 4]))
    return st.tuples(*[dimension] * rank).filter(lambda sizes: prod(sizes) <= MAX_ELEMENTS)


@st.composite
def large_sizes(draw: st.DrawFn) -> tuple[int, ...]:
    """A long dimension with some before it, and maybe channels behind it."""
    outer = draw(st.lists(st.integers(1, 12), max_size=3))
    channels = draw(st.sampled_from([[], [], [1], [3], [4]]))
    size = MAX_OF_LARGE // draw(st.integers(1, 4)) - draw(st.integers(0, 99))
    return (*outer, size // prod((*outer, *channels)), *channels)


@st.composite
def nested_strides(draw: st.DrawFn, sizes: tuple[int, ...], broadcast: bool) -> list[int]:
    """Dimensions in any memory order, with any padding; some repeat where `broadcast`."""
    strides = [0] * len(sizes)
    extent = draw(st.integers(1, 4)) if draw(st.integers(0, 3)) == 0 else 1
    keep_order = draw(st.booleans())
    order = range(len(sizes) - 1, -1, -1) if keep_order else draw(st.permutations(range(len(sizes))))
    padding = st.one_of(st.just(0), st.just(0), st.integers(0, 7))
    for axis in order:
        if broadcast and draw(st.integers(0, 9)) == 0:
            continue
        strides[axis] = extent
        extent = extent * sizes[axis] + draw(padding)
    return strides


@st.composite
def interleaved_strides(draw: st.DrawFn, sizes: tuple[int, ...]) -> list[int]:
    """Strides of which none need exceed another's extent, yet no two elements meet."""
    strides = st.lists(st.integers(1, 40), min_size=len(sizes), max_size=len(sizes))
    return draw(strides.filter(lambda drawn: distinct(Layout.of(sizes, drawn))))


@st.composite
def windows(draw: st.DrawFn, sizes: tuple[int, ...]) -> Window:
    """Any window of a tensor of `sizes`, of either direction, all or some of its output."""
    offsets, extents, strides, counts = [], [], [], []
    for size in sizes:
        offset = draw(st.integers(0, size - 1)) if draw(st.booleans()) else 0
        extent = draw(st.integers(1, size - offset)) if draw(st.booleans()) else size - offset
        stride = draw(st.one_of(st.sampled_from([1, -1, 2, -2]), st.integers(-extent - 1, extent + 1)))
        stride = stride or 1
        most = 1 + (extent - 1) // abs(stride)
        counts.append(draw(st.integers(1, most)) if draw(st.integers(0, 3)) == 0 else most)
        offsets.append(offset)
        extents.append(extent)
        strides.append(stride)
    return Window(tuple(offsets), tuple(extents), tuple(strides), tuple(counts))


@st.composite
def large_windows(draw: st.DrawFn, sizes: tuple[int, ...]) -> Window:
    """A window that leaves out little but what its strides skip."""
    some = st.integers(0, 9)
    offsets = tuple(min(draw(some), size - 1) for size in sizes)
    extents = tuple(max(size - offset - draw(some), 1) for size, offset in zip(sizes, offsets, strict=True))
    strides = tuple(draw(st.sampled_from([1, -1, 2, -2, 3, -3, 4, -4])) for _ in sizes)
    taken = (1 + (extent - 1) // abs(stride) for extent, stride in zip(extents, strides, strict=True))
    return Window(offsets, extents, strides, tuple(max(count - draw(some), 1) for count in taken))


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Any Slice1 that the specification allows, small enough to try many."""
    if draw(st.integers(0, 2)) == 0:
        return draw(regular_cases())
    sizes = draw(st.integers(1, 8).flatmap(sizes_of))
    return draw(cases_of(sizes, draw(windows(sizes))))


@st.composite
def regular_cases(draw: st.DrawFn) -> Case:
    """Pixels, long rows and permutes of these, mostly of whole blocks of 16 bytes, into packed memory."""
    dimensions = (
        st.sampled_from([1, 2, 9]),
        st.sampled_from([16, 22, 64, 96]),
        st.sampled_from([2, 3, 4, 16, 48]),
    )
    sizes = draw(st.tuples(*dimensions).filter(lambda sizes: prod(sizes) <= MAX_ELEMENTS))
    width = draw(st.sampled_from(WIDTHS))
    per_vector = 16 // width
    dense = draw(st.integers(0, 2)) == 0
    strides, extent = [0, 0, 0], 1 if dense else draw(st.sampled_from([1, 1, 1, 2, 4]))
    for axis in draw(st.permutations(range(3))):
        strides[axis] = extent
        extent *= sizes[axis]
        extent += 0 if dense else draw(st.sampled_from([0, 0, -extent % per_vector, 1]))
    steps = (1, 1, 1) if dense else draw(st.tuples(*[st.sampled_from([1, 1, 1, 1, -1, 2, 3])] * 3))
    taken = tuple(1 + (size - 1) // abs(step) for size, step in zip(sizes, steps, strict=True))
    places = st.sampled_from([0, 0, per_vector] if dense else [0, 0, per_vector, 1, 5])
    input, output = Layout.of(sizes, strides, draw(places)), Layout.packed(taken, draw(places))
    window = Window((0, 0, 0), sizes, steps, taken)
    return Case(width, input, window, output, draw(st.booleans()), draw(st.integers(0, 2**32 - 1)))


@st.composite
def large_cases(draw: st.DrawFn) -> Case:
    """A Slice1 of enough elements for invocations to take several."""
    sizes = draw(large_sizes())
    return draw(cases_of(sizes, draw(large_windows(sizes))))


@st.composite
def cases_of(draw: st.DrawFn, sizes: tuple[int, ...], window: Window) -> Case:
    """A window of a tensor of `sizes`, of any layout."""
    width = draw(st.sampled_from(WIDTHS))
    input = Layout.of(sizes, draw(nested_strides(sizes, broadcast=True)), draw(st.integers(0, 70)))
    if prod(window.output_sizes) <= 24 and len(sizes) <= 3 and draw(st.booleans()):
        output_strides = draw(interleaved_strides(window.output_sizes))
    else:
        output_strides = draw(nested_strides(window.output_sizes, broadcast=False))
    output = Layout.of(window.output_sizes, output_strides, draw(st.integers(0, 70)))
    return Case(width, input, window, output, draw(st.booleans()), draw(st.integers(0, 2**32 - 1)))

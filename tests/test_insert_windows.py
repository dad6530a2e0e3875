"""Many windows put into one tensor: against NumPy and their twins, also where limits split everything."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
from helpers import (
    DTYPES,
    GUARD,
    WIDTHS,
    Bytes,
    check_bytes,
    random_bytes,
    read_buffer,
    view_bytes,
    whole_words,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from strategies import nested_strides
from test_extract_windows import PROFILES, TIGHT, check_bindings, tensor

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.insert_windows import plan_insert_windows
from wgslice.plans.overlaps import insertion_of
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits, Profile
from wgslice.plans.terms import Table, Terms
from wgslice.plans.windows_steps import Windows
from wgslice.shaders.twins import run_plan
from wgslice.tensors.windows_arguments import inserted_on_gpu, inserted_windows


def numpy_insert(array: Any, windows: Any, offsets: Any, strides: Any) -> None:
    """One window after the other in NumPy's words, what lies outside left out."""
    steps = np.broadcast_to(strides, np.shape(offsets))
    for window, begins, signed in zip(windows, offsets, steps, strict=True):
        axes = []
        for size, begin, step in zip(window.shape, begins.tolist(), signed.tolist(), strict=True):
            forwards = np.arange(size) * abs(step) + begin
            axes.append(forwards if step > 0 else forwards[::-1])
        inside = [
            np.flatnonzero((indices >= 0) & (indices < extent))
            for indices, extent in zip(axes, array.shape, strict=True)
        ]
        taken = [indices[kept] for indices, kept in zip(axes, inside, strict=True)]
        array[np.ix_(*taken)] = window[np.ix_(*inside)]


@dataclass(frozen=True, eq=False)
class Case:
    """A batch of windows and a tensor, both anywhere in buffers; layouts in elements of `width` bytes."""

    width: int
    batch: Layout
    tensor: Layout
    offsets: NDArray[np.int64]
    strides: NDArray[np.int64]
    seed: int

    def buffers(self) -> tuple[Bytes, Bytes]:
        """Distinct bytes, and bytes that must not change around them."""
        sides = enumerate((self.batch, self.tensor))
        source, target = (
            random_bytes((whole_words(side.stop * self.width) + 15) // 16 * 16 + GUARD, self.seed + number)
            for number, side in sides
        )
        return source, target

    @property
    def dtype(self) -> str:
        return DTYPES[self.width]

    def expected(self, source: Bytes, target: Bytes) -> Bytes:
        result = target.copy()
        written = view_bytes(result, self.tensor, self.width)
        numpy_insert(written, view_bytes(source, self.batch, self.width), self.offsets, self.strides)
        return result

    def windows(self, *, on_gpu: bool = False) -> Windows:
        sizes = self.batch.sizes, self.tensor.sizes
        if on_gpu:
            return inserted_on_gpu(self.offsets.shape, np.dtype("int32"), *sizes, self.strides)
        return inserted_windows(self.offsets, *sizes, self.strides)

    def plan(
        self, limits: Limits, *, on_gpu: bool = False, source_room: float = inf, target_room: float = inf
    ) -> Plan:
        """The plan between two buffers, from their beginnings on."""
        table = Table(Layout.packed(self.offsets.shape), 4) if on_gpu else None
        terms = Terms(limits, True, True, source_room, target_room, table=table)
        insertion = insertion_of(self.windows(on_gpu=on_gpu), self.tensor.sizes, "last")
        return plan_insert_windows(insertion, self.batch, self.tensor, self.width, terms)

    def room_nbytes(self, side: str) -> int:
        """What a buffer has room for that ends with the last whole vector of a side."""
        return {"source": self.batch, "target": self.tensor}[side].stop * self.width // 16 * 16


@st.composite
def insertions(draw: st.DrawFn) -> Case:
    width = draw(st.sampled_from(WIDTHS))
    rank = draw(st.integers(1, 4) | st.integers(1, 8))
    most = {1: 300, 2: 40, 3: 12}.get(rank, 4)
    shape = tuple(draw(st.integers(1, most)) for _ in range(rank))
    if rank > 1 and draw(st.booleans()):
        shape = (*shape[:-1], draw(st.integers(1, 4)))  # channels
    tensor = some_layout(draw, shape, broadcast=False)
    count = draw(st.integers(1, 7))
    magnitudes = [draw(st.sampled_from([1, 1, 1, 1, 2, 3])) for _ in shape]
    whole = [draw(st.booleans()) for _ in shape]
    sizes = tuple(
        size if all_of_it else draw(st.integers(1, max(size // magnitude, 1) + 2))
        for size, magnitude, all_of_it in zip(shape, magnitudes, whole, strict=True)
    )
    offsets = np.zeros((count, rank), np.int64)
    apart = draw(st.booleans())  # so that many are disjoint
    for axis, (size, taken, step) in enumerate(zip(shape, sizes, magnitudes, strict=True)):
        reach = (taken - 1) * step + 1
        inside = st.integers(0, max(size - reach, 0))
        anywhere = st.integers(-reach - 2, size + 2)
        if not (whole[axis] and step == 1 and draw(st.integers(0, 3))):
            leaving = draw(st.integers(0, 2)) == 0
            offsets[:, axis] = [draw(anywhere if leaving else inside) for _ in range(count)]
            if apart and axis == 0:
                offsets[:, axis] = draw(st.permutations(range(count)))
                offsets[:, axis] *= reach
    per_window = draw(st.booleans())
    signs = np.ones((count if per_window else 1, rank), np.int64)
    for axis in range(rank):
        if draw(st.integers(0, 2)) == 0:
            signs[:, axis] = [draw(st.sampled_from([1, -1])) for _ in signs]
    batch = some_layout(draw, (count, *sizes), broadcast=True)
    strides = signs * magnitudes
    return Case(
        width, batch, tensor, offsets, strides if per_window else strides[0], draw(st.integers(0, 999))
    )


def some_layout(draw: st.DrawFn, sizes: tuple[int, ...], *, broadcast: bool) -> Layout:
    """Packed, or in any order with gaps, some dimensions backwards."""
    strides = list(Layout.packed(sizes).strides)
    offset = draw(st.integers(0, 40))
    if not draw(st.booleans()):
        strides = draw(nested_strides(sizes, broadcast))
        for axis, size in enumerate(sizes):
            if draw(st.integers(0, 5)) == 0:
                offset += (size - 1) * strides[axis]
                strides[axis] = -strides[axis]
    return Layout.of(sizes, strides, offset)


@settings(max_examples=200)
@given(case=insertions(), data=st.data())
def test_any_windows_go_where_numpys_go(device: wg.Device, case: Case, data: st.DataObject) -> None:
    """Offsets known or on the GPU, every byte of the target's buffer; the later window wins."""
    source, target = case.buffers()
    y = tensor(device, source, case.batch, case.dtype)
    x = tensor(device, target, case.tensor, case.dtype)
    few = ("int64", "int32", "int16")  # all of them have a test of their own; each is a pipeline to compile
    offsets: Any = case.offsets.astype(data.draw(st.sampled_from(few)))
    if data.draw(st.booleans()):
        offsets = wg.asarray(np.repeat(offsets, 2, axis=1), device)[:, ::2]
    wg.insert_windows(y, x, offsets, case.strides, overlap="last")
    check_bytes(read_buffer(x.buffer), case.expected(source, target))


@given(
    case=insertions(),
    profile=st.sampled_from(PROFILES),
    tight=st.sampled_from(TIGHT),
    on_gpu=st.booleans(),
    room_of=st.sampled_from([None, "source", "target"]),
)
def test_twins_do_what_numpy_does(
    case: Case, profile: Profile, tight: tuple[int, int], on_gpu: bool, room_of: str | None
) -> None:
    source, target = case.buffers()
    limits = Limits(tight[0], 32, tight[1], profile)
    room = {} if room_of is None else {f"{room_of}_room": case.room_nbytes(room_of)}
    plan = case.plan(limits, on_gpu=on_gpu, **room)
    check_bindings(plan, limits)
    result = target.copy()
    run_plan(plan, source, result, case.offsets)
    check_bytes(result, case.expected(source, target))

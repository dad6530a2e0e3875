"""Trials of the kernels that gather and scatter at indices: each case by the kernel that takes it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.doctor.trials import Bytes, Trial, side_nbytes, view_of
from wgslice.layout import Layout
from wgslice.plans.index_strategies import plan_indexing
from wgslice.plans.indexed import IndexedDispatch
from wgslice.plans.problem import PlanContext, Table
from wgslice.plans.profiles import Limits
from wgslice.plans.tables import indexed_copy, masked_copy

HEIGHT, BREADTH, COUNT = 9, 40, 33  # rows and columns of the input, and indices
BEYOND = 9  # by which indices of the GPU may be out of range


@dataclass(frozen=True)
class IndexCase:
    """Elements of a picture at indices of its rows, its columns, both, or of each pixel."""

    width: int  # bytes an element
    run: int  # elements a pixel
    kind: str  # what is indexed: "rows", "columns", "grid" or "pixels"
    skip: int = 0  # elements before input and output
    index_dtype: str | None = None  # of indices that the GPU has
    writes: bool = False  # whether they are written to
    disjoint: bool = False  # whether no two of them are equal

    @property
    def picture(self) -> Layout:
        """What is indexed."""
        return Layout.packed((HEIGHT, BREADTH, self.run), self.skip)

    @cached_property
    def indices(self) -> NDArray[np.int64]:
        """In no order, some twice; of the GPU's some negative, and some out of range."""
        generator = np.random.default_rng(self.run + self.width)
        size = HEIGHT if self.kind in ("rows", "grid") else BREADTH
        shape = (HEIGHT, COUNT) if self.kind == "pixels" else (COUNT,)
        if self.index_dtype is None:
            return generator.integers(0, size, shape)
        signed = self.index_dtype.startswith("i")
        if self.disjoint:
            each = np.argsort(generator.random((*shape[:-1], size)), axis=-1)[..., :COUNT]
            each[..., ::3] -= size * signed
            each[..., ::8] += 2 * size
            return each
        return generator.integers((-size - BEYOND) * signed, size + BEYOND, shape)

    def key(self, indices: Any, column: Any) -> tuple[Any, ...]:
        """NumPy's key, by the indices, and as a column of them."""
        rows = np.arange(HEIGHT)[:, None]
        return {
            "rows": (indices, slice(BREADTH)),
            "columns": (slice(HEIGHT), indices),
            "grid": (column, indices),
            "pixels": (rows, indices),
        }[self.kind]

    @cached_property
    def selection(self) -> AdvancedSelection:
        """As planners take it."""
        shape = self.indices.shape
        known = self.indices, self.indices[..., None]
        device_indices = DeviceIndices(shape, None), DeviceIndices((*shape, 1), None)
        found = any_index(self.picture.sizes, self.key(*(device_indices if self.index_dtype else known)))
        assert isinstance(found, AdvancedSelection)
        return found

    @cached_property
    def elements(self) -> Layout:
        """The other side of the copy."""
        return Layout.packed(self.selection.shape, self.skip)

    def in_range(self, size: int) -> NDArray[np.int64]:
        """The indices counted from 0 on, of a dimension; those out of range the nearest, or its size."""
        wrapped = np.where(self.indices < 0, self.indices + size, self.indices)
        nearest = np.clip(wrapped, 0, size - 1)
        return np.asarray(np.where((wrapped != nearest) & self.writes, size, nearest))

    def expected(self, read: Bytes, before: Bytes) -> Bytes:
        """The target afterwards."""
        after = before.copy()
        columns = self.in_range(HEIGHT if self.kind == "rows" else BREADTH)
        key = self.key(columns, self.in_range(HEIGHT)[..., None])
        if not self.writes:
            picture = view_of(read, self.picture, self.width)
            view_of(after, self.elements, self.width)[...] = picture[key]
            return after
        picture = view_of(after, self.picture, self.width)
        with_outside = np.zeros((HEIGHT + 1, BREADTH + 1, self.run), picture.dtype)
        with_outside[:HEIGHT, :BREADTH] = picture
        with_outside[key] = view_of(read, self.elements, self.width)
        picture[...] = with_outside[:HEIGHT, :BREADTH]
        return after

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """The one of the kernel that takes it."""
        dtype = np.dtype(self.index_dtype or "int32")
        table = Table(Layout.packed(self.indices.shape), dtype.itemsize) if self.index_dtype else None
        context = PlanContext(replace(limits, disabled=frozenset()), table=table)
        copy = indexed_copy(
            self.selection,
            self.picture,
            self.elements,
            reads=not self.writes,
            signed=dtype.kind == "i",
            disjoint=self.disjoint,
        )
        assert copy is not None
        sides = (self.elements, self.picture) if self.writes else (self.picture, self.elements)
        plan = plan_indexing(copy, lambda: None, *sides, self.width, context)
        content = self.indices.astype(dtype).view(np.uint8).ravel() if self.index_dtype else None
        nbytes = side_nbytes(sides[0], self.width), side_nbytes(sides[1], self.width)
        assert isinstance(plan.steps[0], IndexedDispatch)
        yield Trial(plan, str(self), *nbytes, self.expected, content)


@dataclass(frozen=True)
class MaskCase:
    """Elements of a picture, packed or every second row, written where a mask is true."""

    width: int  # bytes an element
    run: int  # elements a pixel
    skip: int  # elements before input and output
    by_pixels: bool  # whether the mask has an element for each pixel
    repeated: bool  # whether one element goes everywhere
    step: int = 1  # of rows

    index_dtype = "uint8"

    @property
    def picture(self) -> Layout:
        """What is written."""
        rows = range(0, HEIGHT * self.step, self.step)
        whole = Layout.packed((HEIGHT * self.step, BREADTH, self.run), self.skip)
        return whole.select([rows, range(BREADTH), range(self.run)])

    @property
    def elements(self) -> Layout:
        """What is read."""
        strides = (0, 0, 0) if self.repeated else Layout.packed(self.picture.sizes).strides
        return Layout.of(self.picture.sizes, strides, self.skip + 1)

    @cached_property
    def indices(self) -> NDArray[np.int64]:
        """The bytes of the mask, of which any but 0 is true."""
        generator = np.random.default_rng(self.run + self.width)
        marked = generator.choice([0, 0, 1, 128, 255], (HEIGHT, BREADTH, 1 if self.by_pixels else self.run))
        return marked.astype(np.int64)

    def expected(self, read: Bytes, before: Bytes) -> Bytes:
        """The target afterwards."""
        after = before.copy()
        marked = np.broadcast_to(self.indices != 0, self.picture.sizes)
        view_of(after, self.picture, self.width)[marked] = view_of(read, self.elements, self.width)[marked]
        return after

    def trials(self, limits: Limits) -> Iterator[Trial]:
        """The one of the kernel that takes it."""
        table = Table(Layout.packed(self.indices.shape), 1)
        context = PlanContext(replace(limits, disabled=frozenset()), table=table)
        copy = masked_copy(self.indices.shape, self.picture, self.elements)
        plan = plan_indexing(copy, None, self.elements, self.picture, self.width, context)
        sides = side_nbytes(self.elements, self.width), side_nbytes(self.picture, self.width)
        yield Trial(plan, str(self), *sides, self.expected, self.indices.astype(np.uint8).ravel())


def index_cases() -> Iterator[IndexCase | MaskCase]:
    """Both sides of what decides which kernel takes indices, and of what goes another way inside of it."""
    kinds = "rows", "columns", "grid", "pixels"
    for width, run, kind, writes in product((1, 2, 4, 8, 16), (1, 3, 20), kinds, (False, True)):
        for skip in (0, 1, 3) if width < 4 else (0, 1):
            yield IndexCase(width, run, kind, skip, writes=writes)
    signed = "int8", "int16", "int32", "int64"
    for dtype, width, run in product((*signed, *(f"u{name}" for name in signed)), (1, 4), (1, 3)):
        for kind, writes in product(kinds, (False, True)):
            yield IndexCase(width, run, kind, 1, dtype, writes)
        for kind in ("columns", "pixels"):
            yield IndexCase(width, run, kind, 1, dtype, writes=True, disjoint=True)
    for width, writes in product((4, 8, 16), (False, True)):
        yield IndexCase(width, 20, "rows", index_dtype="int64", writes=writes)

    for width, run, repeated in product((1, 2, 4, 8, 16), (1, 3, 20), (False, True)):
        for skip in (0, 1, 2, 3, 5) if width < 4 else (0, 1):
            yield MaskCase(width, run, skip, False, repeated)
    for width, run, repeated, step in product((1, 2, 4, 8, 16), (1, 3, 20), (False, True), (1, 2)):
        yield MaskCase(width, run, 1, True, repeated, step)


def index_trials(limits: Limits) -> Iterator[Trial]:
    """All trials of indices."""
    return (trial for case in index_cases() for trial in case.trials(limits))

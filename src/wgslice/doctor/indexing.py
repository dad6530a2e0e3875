"""Trials of the kernels that gather and scatter at indices: each case by the kernel that plans choose."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.doctor.trials import NONE, Elements, Moves, Trial, elements_of, trial_of
from wgslice.layout import Layout
from wgslice.plans.facade import Table, indexed_copy, indexing, masked_copy, masked_values, plan
from wgslice.plans.kernels import OF_WINDOWS, WORD_NBYTES, Kernel
from wgslice.plans.profiles import Limits

HEIGHT, BREADTH, COUNT = 9, 40, 33  # rows and columns of the input, and indices
MANY = 319  # indices along rows of each column, so that gathers go down columns where that is cheaper
BEYOND = 9  # by which device-resident indices may be out of range


@dataclass(frozen=True)
class IndexCase:
    """Elements of a picture at indices of its rows, its columns, both, or at one index per element."""

    width: int  # bytes per element
    run: int  # elements per pixel
    kind: str  # of the index: "rows", "columns", "grid", "pixels" or "along rows"
    skip: int = 0  # elements before input and output
    index_dtype: str | None = None  # of device-resident indices
    writes: bool = False  # whether the picture is written
    disjoint: bool = False  # whether no two indices are equal
    in_order: bool = False  # whether rows are written in order, without a last-writer pass

    @property
    def size(self) -> int:
        """The size of the dimension that is indexed."""
        return BREADTH if self.kind in ("columns", "pixels") else HEIGHT

    def indices(self) -> NDArray[np.int64]:
        """Return indices in random order, some twice; device-resident ones also negative or out of range."""
        generator = np.random.default_rng(self.run + self.width)
        shapes, size = {"pixels": (HEIGHT, COUNT), "along rows": (MANY, BREADTH)}, self.size
        shape = shapes.get(self.kind, (COUNT,))
        if self.index_dtype is None:
            return generator.integers(0, size, shape)
        signed = self.index_dtype.startswith("i")
        if not self.disjoint:
            return generator.integers((-size - BEYOND) * signed, size + BEYOND, shape)
        order = np.argsort(generator.random((*shape[:-1], size)), axis=-1)[..., :COUNT]
        order[..., ::3] -= size * signed
        order[..., ::8] += 2 * size
        return order

    def trial(self, limits: Limits) -> Trial:
        """Return the trial of the kernel that is planned."""
        indices, dtype = self.indices(), np.dtype(self.index_dtype or "int32")
        table = indices.astype(dtype) if self.index_dtype else None
        picture = Layout.packed((HEIGHT, BREADTH, self.run), self.skip)

        def key(along: Any, column: Any) -> tuple[Any, ...]:
            return {
                "rows": (along, slice(BREADTH)),
                "columns": (slice(HEIGHT), along),
                "grid": (column, along),
                "pixels": (np.arange(HEIGHT)[:, None], along),
                "along rows": (along, np.arange(BREADTH)),
            }[self.kind]

        def in_range(size: int) -> NDArray[np.int64]:
            wrapped = np.where(indices < 0, indices + size, indices)
            clamped = np.clip(wrapped, 0, size - 1)
            return np.where((wrapped != clamped) & self.writes, size, clamped)  # `size` is not written

        def moved() -> tuple[Elements, Elements]:
            numbers = np.pad(elements_of(picture), ((0, 1), (0, 1), (0, 0)), constant_values=NONE)
            indexed = numbers[
                key(in_range(BREADTH if self.kind == "grid" else self.size), in_range(HEIGHT)[..., None])
            ]
            return (indexed, elements_of(elements)) if self.writes else (elements_of(elements), indexed)

        held = (
            DeviceIndices(each.shape, None) if self.index_dtype else each
            for each in (indices, indices[..., None])
        )
        selection = any_index(picture.sizes, key(*held))
        assert isinstance(selection, AdvancedSelection)
        elements = Layout.packed(selection.shape, self.skip)
        signed, reads = dtype.kind == "i", not self.writes
        copy = indexed_copy(selection, picture, elements, reads=reads, signed=signed, disjoint=self.disjoint)
        assert copy is not None
        sides = (elements, picture) if self.writes else (picture, elements)
        others = {Kernel.SCATTER, Kernel.SCATTER_SUBWORD} if self.in_order else {Kernel.SCATTER_IN_ORDER}
        limits = replace(limits, disabled=limits.disabled | others | OF_WINDOWS)
        asked = indexing(*sides, self.width, copy)
        chosen = plan(asked, limits, table=table_of(table), copy_from=False)
        return trial_of(chosen, self, sides, Moves(self.width, moved), table)


@dataclass(frozen=True)
class MaskCase:
    """Elements of a picture, packed or every second row, written where a mask is true."""

    width: int  # bytes per element
    run: int  # elements per pixel
    skip: int  # elements before input and output
    by_pixels: bool  # whether the mask has one element per pixel
    repeated: bool  # whether the input is one element, broadcast
    step: int = 1  # of rows
    in_turn: bool = False  # whether the input has one element for each true element of the mask

    def trial(self, limits: Limits) -> Trial:
        """Return the trial of the kernel that is planned."""
        whole = Layout.packed((HEIGHT * self.step, BREADTH, self.run), self.skip)
        picture = whole.select([range(0, HEIGHT * self.step, self.step), range(BREADTH), range(self.run)])
        strides = (0, 0, 0) if self.repeated else Layout.packed(picture.sizes).strides
        elements = Layout.of(picture.sizes, strides, self.skip + 1)
        generator = np.random.default_rng(self.run + self.width)
        mask = generator.choice([0, 0, 1, 128, 255], (HEIGHT, BREADTH, 1 if self.by_pixels else self.run))
        if self.in_turn:
            elements = Layout.packed((int(np.count_nonzero(mask)),), self.skip + 1)
            copy, table = masked_values(mask != 0), None
        else:
            copy, table = masked_copy(mask.shape, picture, elements), mask.astype(np.uint8)

        def moved() -> tuple[Elements, Elements]:
            written, read = elements_of(picture), elements_of(elements)
            return (written[mask != 0] if self.in_turn else np.where(mask, written, NONE)), read

        sides = elements, picture
        chosen = plan(indexing(*sides, self.width, copy), limits, table=table_of(table))
        return trial_of(chosen, self, sides, Moves(self.width, moved), table)


def table_of(indices: NDArray[Any] | None) -> Table | None:
    """Describe device-resident indices."""
    return None if indices is None else Table(Layout.packed(indices.shape), indices.itemsize)


def index_cases() -> Iterator[IndexCase | MaskCase]:
    """Yield cases at both sides of each condition by which kernels are chosen or branch."""
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
        yield IndexCase(width, 1, "along rows", 1, "int64", writes)
    for width, dtype, kind in product((1, 2, 4, 8, 16), ("int8", "uint16", "int64"), ("columns", "pixels")):
        for skip in (0, max(WORD_NBYTES // width, 1)):
            yield IndexCase(width, 1, kind, skip, dtype, writes=True, in_order=True)
    yield from mask_cases()


def mask_cases() -> Iterator[MaskCase]:
    """Yield the cases of masks."""
    for width, run, repeated in product((1, 2, 4, 8, 16), (1, 3, 20), (False, True)):
        for skip in (0, 1, 2, 3, 5) if width < 4 else (0, 1):
            yield MaskCase(width, run, skip, False, repeated)
    for run, skip, repeated in product(range(4, 20), (0, 1), (False, True)):
        yield MaskCase(8, run, skip, False, repeated)
    for width, run, words in product((1, 2), range(1, 21), (0, 1)):
        yield MaskCase(width, run, words * WORD_NBYTES // width, False, False, in_turn=True)
    for width, run, repeated, step in product((1, 2, 4, 8, 16), (1, 3, 20), (False, True), (1, 2)):
        yield MaskCase(width, run, 1, True, repeated, step)


def index_trials(limits: Limits) -> Iterator[Trial]:
    """Yield the trial of every case of indices and masks."""
    return (case.trial(limits) for case in index_cases())

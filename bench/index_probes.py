"""Probes of the cost classes of gathers and scatters: rows of elements at random indices."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.layout import Layout
from wgslice.plans.facade import (
    COLUMN_EACH,
    READING,
    Host,
    IndexedDispatch,
    Indexing,
    PlanContext,
    index_dispatches,
    indexed_copy,
    indexing,
    masked_copy,
    masked_values,
    plan,
)
from wgslice.plans.kernels import GATHERS, WORD_NBYTES, Kernel
from wgslice.plans.profiles import CostClass, Limits

__all__ = ["IndexProbe", "index_probes"]

COLUMNS = 2048  # of a row, in no order
FEW_COLUMNS = 256  # of many rows
LAST_WRITERS = CostClass(Kernel.LAST_WRITER_INDICES, WORD_NBYTES)


class IndexProbe(NamedTuple):
    """A cost class of gathers or scatters, and copies that consist of it."""

    kernel: Kernel
    width_nbytes: int  # an element
    access: str = ""  # of gathers of which each column has indices of rows: "long-stride" or "columns"

    @property
    def work(self) -> CostClass:
        """The cost class."""
        return CostClass(self.kernel, self.width_nbytes, (self.access,) * bool(self.access))

    def steps(self, nbytes: int, limits: Limits) -> Sequence[IndexedDispatch]:
        """Return the dispatch that copies columns of rows, about `nbytes` in all."""
        if self.kernel in (Kernel.MASKED_WORDS, Kernel.MASKED_PAIRS, Kernel.MASKED_VALUES):
            return self.masked_steps(nbytes, limits)
        if self.access:
            return self.steps_of_rows(nbytes, limits)
        winners = self.kernel in (Kernel.LAST_WRITER_INDICES, Kernel.SCATTER_IN_ORDER)
        rows = max(nbytes // (COLUMNS * self.width_nbytes), 2)
        matrix = Layout.packed((rows, COLUMNS))
        shape = matrix.sizes if winners else matrix.sizes[1:]
        columns = np.random.default_rng(0).permuted(np.broadcast_to(np.arange(COLUMNS), shape), axis=-1)
        item = DeviceIndices(shape, None) if winners else columns
        key = (np.arange(rows)[:, None], item) if winners else (slice(None), item)
        selection = any_index(matrix.sizes, key)
        assert isinstance(selection, AdvancedSelection)
        copy = indexed_copy(selection, matrix, matrix, reads=self.kernel in READING)
        assert copy is not None
        if winners:
            copy = replace(copy, host=Host(columns.astype(np.int32).ravel()))
        problem = Indexing(copy, matrix, matrix, self.width_nbytes, PlanContext(limits))
        steps = index_dispatches(Kernel.SCATTER if self.work == LAST_WRITERS else self.kernel, problem)
        return [step for step in steps if isinstance(step, IndexedDispatch) and step.work == self.work]

    def steps_of_rows(self, nbytes: int, limits: Limits) -> Sequence[IndexedDispatch]:
        """Return the dispatch that copies random rows of each of few columns, about `nbytes` in all."""
        count = max(nbytes // (FEW_COLUMNS * self.width_nbytes), COLUMN_EACH)
        matrix = Layout.packed((count, FEW_COLUMNS))
        rows = np.random.default_rng(0).integers(0, count, matrix.size, np.int32)
        selection = any_index(matrix.sizes, (DeviceIndices(matrix.sizes, None), np.arange(FEW_COLUMNS)))
        assert isinstance(selection, AdvancedSelection)
        copy = indexed_copy(selection, matrix, matrix, reads=True)
        assert copy is not None
        copy, context = replace(copy, host=Host(rows)), PlanContext(limits)
        problem = Indexing(copy, matrix, matrix, self.width_nbytes, context)
        steps = index_dispatches(self.kernel, problem, columns=self.access == "columns")
        return [step for step in steps if isinstance(step, IndexedDispatch)]

    def masked_steps(self, nbytes: int, limits: Limits) -> Sequence[IndexedDispatch]:
        """Return the dispatch that writes one element where a mask is true, for `nbytes` of elements."""
        row = Layout.packed((max(nbytes // self.width_nbytes, COLUMNS),))
        element = Layout.of(row.sizes, (0,))
        mask = np.resize(np.array([0, 1, 1, 0], np.uint8), row.size // WORD_NBYTES * WORD_NBYTES)
        copy = replace(masked_copy(row.sizes, row, element), host=Host(mask.view(np.int32)))
        if self.kernel is Kernel.MASKED_VALUES:
            copy, element = masked_values(mask != 0), Layout.packed((mask.size // 2,))
        chosen = plan(indexing(element, row, self.width_nbytes, copy), limits)
        return [step for step in chosen.steps if isinstance(step, IndexedDispatch)]


def index_probes() -> Iterator[IndexProbe]:
    """All cost classes of gathers and scatters."""
    for width in (1, 2):
        yield IndexProbe(Kernel.GATHER_WORDS, width)
        yield IndexProbe(Kernel.SCATTER_SUBWORD, width)
        yield IndexProbe(Kernel.MASKED_WORDS, width)
        yield IndexProbe(Kernel.MASKED_VALUES, width)
    for width, kernel in GATHERS.items():
        yield IndexProbe(kernel, width)
        yield IndexProbe(kernel, width, "long-stride")
        yield IndexProbe(kernel, width, "columns")
        yield IndexProbe(Kernel.SCATTER, width)
    for width in (1, 2, 4, 8, 16):
        yield IndexProbe(Kernel.SCATTER_IN_ORDER, width)
    yield IndexProbe(Kernel.MASKED_PAIRS, 8)
    yield IndexProbe(*LAST_WRITERS[:2])

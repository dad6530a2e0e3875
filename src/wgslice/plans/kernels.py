"""Which kernels exist.

A new kernel needs `wgsl/NAME.wgsl`, a member of `Kernel`, cost parameters in `cost_models/*.json` (a kernel
without them is rejected), a row in `copy_strategies.py`, `window_strategies.py` or `index_strategies.py`, its
reference implementation in `tests/reference`, and what it is worth, by `bench --without NAME`.
"""

from __future__ import annotations

from enum import Enum

WIDEST_NBYTES = 16  # that an invocation moves at once: one vec4<u32>
WORD_NBYTES = 4


class Kernel(Enum):
    """A kernel, named as its file in `wgsl/` (`VARIANTS` of `wgsl/link.py` share two) and its reference."""

    SLICE1 = "slice1"
    ROWS = "rows"
    WIDE_ROWS = "wide_rows"
    SHIFTED_ROWS = "shifted_rows"
    WORD_GRID = "word_grid"
    WIDE_GRID = "wide_grid"
    SHIFTED_GRID = "shifted_grid"
    ROW_ENDS = "row_ends"
    SUBWORD_ROWS = "subword_rows"
    SUBWORD_ENDS = "subword_ends"
    SUBWORD_STEPS = "subword_steps"
    PIXELS = "pixels"
    REGISTER_TILES = "register_tiles"
    TILES = "tiles"
    WIDE_TILES = "wide_tiles"
    EXTRACT_WINDOWS = "extract_windows"
    WINDOW_ROWS = "window_rows"
    WINDOW_WORDS = "window_words"
    INSERT_WINDOWS = "insert_windows"
    INSERT_ROWS = "insert_rows"
    INSERT_WORDS = "insert_words"
    SIZED_WINDOWS = "sized_windows"
    SIZED_ENDS = "sized_ends"
    LAST_WRITER_WINDOWS = "last_writer_windows"
    LAST_WRITER_ROWS = "last_writer_rows"
    GATHER = "gather"
    PAIR_GATHER = "pair_gather"
    WIDE_GATHER = "wide_gather"
    GATHER_WORDS = "gather_words"
    SCATTER = "scatter"
    SCATTER_SUBWORD = "scatter_subword"
    SCATTER_IN_ORDER = "scatter_in_order"
    LAST_WRITER_INDICES = "last_writer_indices"
    MASKED_WORDS = "masked_words"
    MASKED_PAIRS = "masked_pairs"
    MASKED_VALUES = "masked_values"

    __hash__ = object.__hash__  # of singletons; Enum's own is a call of Python per lookup


# Kernels that split a row of the last dimension, or of two, over invocations; one must exist.
SPLITTING_ROWS = {
    *(Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SHIFTED_ROWS),
    *(Kernel.ROW_ENDS, Kernel.SUBWORD_ROWS, Kernel.SUBWORD_ENDS),
}

# Kernels of many windows: those that extract, those that insert, and those that say which window does.
EXTRACTING = {Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS}
INSERTING = {Kernel.INSERT_WINDOWS, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS}
LAST_WRITERS = {Kernel.LAST_WRITER_WINDOWS, Kernel.LAST_WRITER_ROWS}
OF_SIZED_WINDOWS = {Kernel.SIZED_WINDOWS, Kernel.SIZED_ENDS}
OF_WINDOWS = EXTRACTING | INSERTING | LAST_WRITERS | OF_SIZED_WINDOWS

# Kernels of elements at indices.
GATHERS = {4: Kernel.GATHER, 8: Kernel.PAIR_GATHER, 16: Kernel.WIDE_GATHER}  # by bytes per element
SCATTERING = {Kernel.SCATTER, Kernel.SCATTER_SUBWORD}
MASKING = {Kernel.MASKED_WORDS, Kernel.MASKED_PAIRS, Kernel.MASKED_VALUES}
OF_INDICES = {
    *GATHERS.values(),
    Kernel.GATHER_WORDS,
    Kernel.SCATTER_IN_ORDER,
    Kernel.LAST_WRITER_INDICES,
    *(SCATTERING | MASKING),
}

# Read-only buffers that a kernel binds besides source and target, if any: offsets or indices, picks, winners.
TABLES = {
    **dict.fromkeys(OF_INDICES, 1),
    **dict.fromkeys(OF_WINDOWS | SCATTERING, 2),
    **dict.fromkeys(INSERTING, 3),
}

# Bytes that an invocation copies at a time, if more than an element; then the last target stride must be 1.
UNITS_NBYTES = {
    **dict.fromkeys((Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.ROW_ENDS), WIDEST_NBYTES),
    **dict.fromkeys((Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS, Kernel.LAST_WRITER_ROWS), WIDEST_NBYTES),
    Kernel.SIZED_WINDOWS: WIDEST_NBYTES,
    **dict.fromkeys((Kernel.SUBWORD_ROWS, Kernel.SUBWORD_ENDS, Kernel.SUBWORD_STEPS), WORD_NBYTES),
    **dict.fromkeys((Kernel.WINDOW_WORDS, Kernel.INSERT_WORDS, Kernel.LAST_WRITER_WINDOWS), WORD_NBYTES),
    Kernel.SIZED_ENDS: WORD_NBYTES,
    **dict.fromkeys((Kernel.GATHER_WORDS, Kernel.LAST_WRITER_INDICES, Kernel.MASKED_WORDS), WORD_NBYTES),
}

"""Which kernels exist."""

from __future__ import annotations

from enum import Enum

WIDEST_NBYTES = 16  # that an invocation moves at once: one vec4<u32>
WORD_NBYTES = 4


class Kernel(Enum):
    """A kernel, named as its file in `wgsl/` (grids of units share one) and its reference implementation."""

    SLICE1 = "slice1"
    ROWS = "rows"
    WIDE_ROWS = "wide_rows"
    SHIFTED_ROWS = "shifted_rows"
    WORD_GRID = "word_grid"
    PAIR_GRID = "pair_grid"
    WIDE_GRID = "wide_grid"
    SHIFTED_GRID = "shifted_grid"
    ROW_ENDS = "row_ends"
    NARROW_ROWS = "narrow_rows"
    NARROW_ENDS = "narrow_ends"
    NARROW_RUNS = "narrow_runs"
    NARROW_STEPS = "narrow_steps"
    PIXELS = "pixels"
    TILES = "tiles"
    WIDE_TILES = "wide_tiles"
    EXTRACT_WINDOWS = "extract_windows"
    WINDOW_ROWS = "window_rows"
    WINDOW_WORDS = "window_words"
    INSERT_WINDOWS = "insert_windows"
    INSERT_ROWS = "insert_rows"
    INSERT_WORDS = "insert_words"
    CLAIM_WINDOWS = "claim_windows"
    CLAIM_ROWS = "claim_rows"
    GATHER = "gather"
    GATHER_WORDS = "gather_words"
    SCATTER = "scatter"
    SCATTER_NARROW = "scatter_narrow"
    CLAIM_INDICES = "claim_indices"
    MASKED_WORDS = "masked_words"

    __hash__ = object.__hash__  # of singletons; Enum's own is a call of Python, at each look into a table

    @property
    def deals_rows(self) -> bool:
        """Whether a row of the last dimension, or of two, is split over invocations; one must exist."""
        return self in BY_ROWS

    @property
    def takes_windows(self) -> bool:
        """Whether it copies many windows, with a struct and bindings of its own."""
        return self in EXTRACTING or self in INSERTING

    @property
    def takes_indices(self) -> bool:
        """Whether it gathers or scatters elements at indices, with a struct and bindings of its own."""
        return self in INDEXING

    @property
    def scatters(self) -> bool:
        """Whether it writes elements at indices, and binds claims on their places."""
        return self in (Kernel.SCATTER, Kernel.SCATTER_NARROW)

    @property
    def inserts_windows(self) -> bool:
        """Whether it puts many windows into a tensor, or says which of them."""
        return self in INSERTING

    @property
    def reads_claims(self) -> bool:
        """Whether it binds claims, where windows may overlap, beside what all kernels of windows bind."""
        return self in INSERTING and self not in CLAIMING

    def unit_nbytes(self, width_nbytes: int) -> int:
        """Bytes of what invocations deal with; if more than an element, the last target stride must be 1."""
        return UNITS_NBYTES.get(self, width_nbytes)


BY_ROWS = {
    *(Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SHIFTED_ROWS),
    *(Kernel.ROW_ENDS, Kernel.NARROW_ROWS, Kernel.NARROW_ENDS),
}
EXTRACTING = {Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS}
CLAIMING = {Kernel.CLAIM_WINDOWS, Kernel.CLAIM_ROWS}
INSERTING = {Kernel.INSERT_WINDOWS, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS, *CLAIMING}
INDEXING = {
    *(Kernel.GATHER, Kernel.GATHER_WORDS),
    *(Kernel.SCATTER, Kernel.SCATTER_NARROW, Kernel.CLAIM_INDICES, Kernel.MASKED_WORDS),
}
IN_BLOCKS = (
    *(Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.ROW_ENDS),
    *(Kernel.WINDOW_ROWS, Kernel.INSERT_ROWS, Kernel.CLAIM_ROWS),
)
BY_WORDS = (
    *(Kernel.NARROW_ROWS, Kernel.NARROW_ENDS, Kernel.NARROW_RUNS, Kernel.NARROW_STEPS),
    *(Kernel.WINDOW_WORDS, Kernel.INSERT_WORDS, Kernel.CLAIM_WINDOWS),
    *(Kernel.GATHER_WORDS, Kernel.CLAIM_INDICES, Kernel.MASKED_WORDS),
)
UNITS_NBYTES = {**dict.fromkeys(IN_BLOCKS, WIDEST_NBYTES), **dict.fromkeys(BY_WORDS, WORD_NBYTES)}

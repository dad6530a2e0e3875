"""The plan of a gather or a scatter: the strategies for a copy that has indices on one side."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import U32_MAX
from wgslice.dialects.advanced import AdvancedSelection
from wgslice.dtypes import DType
from wgslice.errors import NoKernelError
from wgslice.layout import Layout, whole_words
from wgslice.plans.choose import (
    COPY_PER_RUN,
    COPY_PER_WINDOW,
    OTHER,
    Choice,
    Estimate,
    OnPrint,
    Reason,
    Step,
    Strategy,
    choose,
    explained,
    where,
)
from wgslice.plans.copy import chosen, plan_copy
from wgslice.plans.copy_strategies import MIN_OF_BLOCKS
from wgslice.plans.index_problem import (
    BITS_OF_WORD,
    MASKED,
    MIN_WINDOW_NBYTES,
    Indexing,
    ListSlice,
    indexed_copy,
    masked_copy,
    masked_values,
    windows_at,
)
from wgslice.plans.indexed import INDEX_NBYTES, MAX_TABLES, Host, IndexedCopy, IndexedDispatch
from wgslice.plans.kernels import GATHERS, WIDEST_NBYTES, WORD_NBYTES, Kernel
from wgslice.plans.plan import Plan, Planner, scratch_of
from wgslice.plans.problem import NO_COPY_USAGE, PlanContext, span_of
from wgslice.plans.profiles import BLOCKS_EACH, CACHE_LINE_NBYTES, FAILED, CostClass, Limits, all_disabled
from wgslice.plans.steps import Clear, Memory, Share, Span, copies_by_length, words_spanned
from wgslice.plans.steps import share_of as launched
from wgslice.plans.window_problem import WindowProblem
from wgslice.plans.window_steps import words_each
from wgslice.plans.window_strategies import WINDOWS, changes_of_windows, further_rejected

READING = {*GATHERS.values(), Kernel.GATHER_WORDS}
WRITING = {Kernel.SCATTER, Kernel.SCATTER_SUBWORD, Kernel.LAST_WRITER_INDICES}
MASKING = {*MASKED.values(), Kernel.SCATTER, Kernel.SCATTER_SUBWORD}
ON_HOST = "the indices are in an array of the host"
DISJOINT = 'no index repeats, as put(..., overlap="disjoint") promises'
MIN_ROWS, SHORT_ROW = 256, 64  # copied in order: fewer rows leave cores idle, unless these are short
MAX_REORDERED = 4096  # elements of rows that are copied column by column, which saves the last-writer pass
COLUMN_EACH = 32  # elements of a column per invocation: a loop that Mesa does not unroll


class WindowCopy(NamedTuple):
    """A copy at indices, or where a mask is true: its planner, and the layouts that are read and written."""

    planner: Planner
    read: Layout
    written: Layout


def copy_at_once(
    selection: AdvancedSelection,
    tensor: Layout,
    other: Layout,
    itemsize: int,
    limits: Limits,
    *,
    reads: bool,
    index_dtype: DType | None = None,
    disjoint: bool = False,
) -> WindowCopy | None:
    """Returns the copy between the selected elements of a tensor and a layout of their shape.

    `index_dtype` is that of device-resident indices, all in one binding. None if host indices stand beside
    these, or if no kernel takes the indices and there are no windows at them.
    """
    view = tensor.select(selection.items)
    signed = index_dtype is not None and index_dtype.kind == "i"
    copy = indexed_copy(selection, view, other, reads=reads, signed=signed, disjoint=disjoint)
    if copy is None:
        return None
    of_indices = slice(selection.position, selection.position + len(selection.indices_shape))
    in_words = copy.widened(itemsize, (view.offset, other.offset))[1] >= WORD_NBYTES
    if copy.winners and in_words and not any(other.strides[of_indices]):
        copy = replace(copy, winners=None).coalesced()  # equal indices write equal words
    if not copy.tables:
        sides = copy.indexed.shifted(view.offset), copy.other.shifted(other.offset)
        return WindowCopy(plan_copy, *(sides if reads else sides[::-1]))
    rejected = len(copy.tables) > MAX_TABLES or (READING if reads else WRITING) & limits.disabled
    if rejected and windows_at(copy) is None:
        return None
    return WindowCopy(partial(plan_indexing, copy), *((view, other) if reads else (other, view)))


def masked_copy_at_once(
    mask_sizes: tuple[int, ...], target: Layout, source: Layout, limits: Limits
) -> WindowCopy | None:
    """Returns the copy between layouts of equal sizes where a mask, broadcast to these, is true, or None."""
    if MASKING & limits.disabled:
        return None
    copy = masked_copy(mask_sizes, target, source)
    return WindowCopy(partial(plan_indexing, copy), source, target)


def masked_values_at_once(
    mask: NDArray[np.bool_], target: Layout, source: Layout, itemsize: int, limits: Limits
) -> WindowCopy | None:
    """Returns the copy of packed sub-word elements, in turn, to where a mask of a packed target is true.

    The target begins at a word. None if the copy exceeds the kernel, or that is disabled.
    """
    copy = masked_values(mask)
    held = next(copy.parts(itemsize, INDEX_NBYTES, limits)) is copy
    if not held or Kernel.MASKED_VALUES in limits.disabled:
        return None
    return WindowCopy(partial(plan_indexing, copy), source, Layout.packed(copy.sizes, target.offset))


def plan_indexing(
    copy: IndexedCopy, source: Layout, target: Layout, itemsize: int, context: PlanContext
) -> Plan:
    """Plans a gather or a scatter."""
    size = prod(copy.sizes)
    if size > U32_MAX:
        raise ValueError(f"{size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    problem = Indexing(copy, source, target, itemsize, context)
    choice = choose(problem, INDEXING, OnPrint(further_rejected_indexing, changes_of_indexing))
    if choice is None:
        what = "gather" if copy.reads else "scatter"
        raise NoKernelError(all_disabled(f"a {what} of sizes {target.sizes}", context.limits))
    wide, width_nbytes = problem.wide
    shown = wide.per_index.shifted(*(side.offset * itemsize // width_nbytes for side in problem.sides))
    layouts, shape = (shown.source, shown.target), problem.sides[1].sizes
    widths, costs = (itemsize, width_nbytes), context.limits.profile.costs
    known: dict[str, Any] = {"costs": costs, "choice": choice, "shape": shape, "masked": copy.masked}
    return Plan(size * itemsize, *widths, *layouts, choice.steps, **known)


def against_kernel(kernel: Kernel, problem: Indexing) -> Reason | None:
    """Returns why a kernel is not applicable, or None."""
    return problem.against_kernels if problem.kernel is kernel else OTHER


def against_columns(problem: Indexing) -> Reason | None:
    """Returns why a gather does not go down columns, or None."""
    if not problem.goes_down or problem.kernel not in GATHERS.values() or len(problem.parts()) > 1:
        return OTHER
    size = problem.wide[0].sizes[-2]
    if size < COLUMN_EACH:
        return f"columns have {size} elements; at least {COLUMN_EACH} are needed"
    return against_kernel(problem.kernel, problem)


def against_in_order(problem: Indexing) -> Reason | None:
    """Returns why no invocation copies a row in order, which needs no last-writer pass, or None."""
    copy = problem.in_order
    if copy is None or len(copy.tables) > MAX_TABLES:
        return OTHER
    *outer, size = copy.sizes
    if problem.wide[0].by_rows and prod(copy.sizes) > MAX_REORDERED:
        return f"an index selects a row, {prod(copy.sizes)} elements in all; at most {MAX_REORDERED}"
    if prod(outer) < MIN_ROWS and size > SHORT_ROW:
        return f"{prod(outer)} rows of {size} elements; at least {MIN_ROWS} rows are needed"
    if not copy.owns_words(problem.wide[1], problem.target.offset):
        return "rows share words"
    return FAILED if Kernel.SCATTER_IN_ORDER in problem.limits.disabled else None


def work_of(kernel: Kernel, problem: Indexing, columns: bool) -> CostClass:
    """Returns the cost class of a kernel; gathers differ in where the elements of a row or column are."""
    apart = ("long-stride",) * (kernel in GATHERS.values() and problem.goes_down)
    return CostClass(kernel, problem.wide[1], ("columns",) if columns else apart)


def kernel_seconds(kernel: Kernel, problem: Indexing, *, columns: bool = False) -> float:
    """Lower bound of the seconds of a kernel."""
    return problem.costs.least_seconds(work_of(kernel, problem, columns), problem.nbytes)


def index_dispatches(kernel: Kernel, problem: Indexing, *, columns: bool = False) -> Iterator[Step]:
    """Yields a dispatch for each part, after the last-writer pass of indices that may be equal."""
    copy = problem.wide[0]
    if kernel is Kernel.SCATTER_IN_ORDER:
        assert problem.in_order is not None
        copy = problem.in_order
    elif kernel in GATHERS.values() and not columns:
        copy = problem.gathered
    parts = problem.parts(copy)
    for part in parts:
        if part.winners is not None:
            if part is not parts[0]:
                yield Clear(0, part.winners.span.nbytes, Memory.WINNERS)
            yield last_writer_pass(part, problem)
        yield index_dispatch(kernel, part, problem, columns)


def last_writer_pass(copy: IndexedCopy, problem: Indexing) -> Step:
    """Returns the last-writer pass of indices that may be equal."""
    assert copy.winners is not None
    kernel, (winning, table_binding) = Kernel.LAST_WRITER_INDICES, problem.bound_tables(copy.at_indices())
    return IndexedDispatch(
        kernel=kernel,
        copy=winning,
        width_nbytes=WORD_NBYTES,
        work=CostClass(kernel, WORD_NBYTES),
        table=problem.context.table,
        table_binding=table_binding,
        source_binding=Span(0, WORD_NBYTES),
        target_binding=copy.winners.span,
        writes=Memory.WINNERS,
        share=share_of(kernel, winning, WORD_NBYTES, problem.limits),
        reason="last-writer pass: winner index per element that several indices name",
    )


def index_dispatch(kernel: Kernel, copy: IndexedCopy, problem: Indexing, columns: bool) -> IndexedDispatch:
    """Returns the dispatch of a kernel for a copy, counted from the bases of both buffers."""
    width_nbytes, limits = problem.wide[1], problem.limits
    copy, table_binding = problem.bound_tables(copy)
    given = problem.sides[1] if copy.in_turn else copy.other  # as many elements as a mask has true ones
    indexed, other = (span_of(side, width_nbytes, limits) for side in (copy.reached, given))
    copy = copy.shifted(-indexed.offset_nbytes // width_nbytes, -other.offset_nbytes // width_nbytes)
    if columns:
        *axes, above, last = range(len(copy.sizes))
        copy, rows = copy.permuted((*axes, last, above)), CACHE_LINE_NBYTES // width_nbytes
        share = share_of_columns(copy, rows, limits)
    else:
        share = share_of(kernel, copy, width_nbytes, limits)
        down = kernel in (*GATHERS.values(), Kernel.SCATTER) and problem.goes_down
        rows = share.count if down else 1
    table = "mask element" if copy.masked else "index"
    reason = f"one {table} per {'row' if copy.by_rows else 'element'}" + ", down columns" * columns
    reason += ", rows in order: the last of equal indices wins" * (kernel is Kernel.SCATTER_IN_ORDER)
    reason += f", {problem.indices_each} for each given one" * (problem.indices_each > 1)
    for copied in (table.part for table in copy.tables if table.part is not None):
        reason += f", of indices {copied.start:,} to {copied.stop - 1:,}"
    return IndexedDispatch(
        kernel=kernel,
        copy=copy,
        width_nbytes=width_nbytes,
        rows=rows,
        work=work_of(kernel, problem, columns),
        table=problem.context.table,
        table_binding=table_binding,
        source_binding=indexed if copy.reads else other,
        target_binding=other if copy.reads else indexed,
        share=share,
        reason=reason,
    )


def share_of(kernel: Kernel, copy: IndexedCopy, width_nbytes: int, limits: Limits) -> Share:
    """Returns the launch configuration of a kernel."""
    profile = limits.profile
    *outer, size = copy.sizes
    rows = prod(outer)
    if kernel is Kernel.MASKED_VALUES:
        rows, size = -(-size // BITS_OF_WORD), BITS_OF_WORD
    if kernel in (Kernel.SCATTER_IN_ORDER, Kernel.MASKED_VALUES):
        return replace(launched(limits, rows, 1, size, rows), contiguous=False)
    if kernel in (Kernel.GATHER_WORDS, Kernel.MASKED_WORDS):
        words = words_spanned(Layout.packed((rows * size,), copy.target.offset), width_nbytes)
        if kernel is Kernel.GATHER_WORDS:
            each = words_each(size * width_nbytes, profile)
            return launched(limits, rows, 1, each, -(-words // each))
        rows, size = 1, words
    most = max(profile.words_each) * WORD_NBYTES // max(width_nbytes, WORD_NBYTES)
    each = max(count for count in BLOCKS_EACH if count <= max(min(size, most), 1))
    pieces = -(-size // each)
    share = launched(limits, rows, pieces, each, rows * pieces)
    # Contiguous pieces repeat elements, which invocations that write the same bits would write again in turn.
    return replace(share, contiguous=share.contiguous and kernel is not Kernel.SCATTER_SUBWORD)


def share_of_columns(copy: IndexedCopy, rows: int, limits: Limits) -> Share:
    """Returns the launch configuration of a transposed gather, of `rows` rows in turn."""
    *outer, size = copy.sizes
    count, pieces = prod(outer), -(-size // COLUMN_EACH)
    return launched(limits, count, pieces, COLUMN_EACH, -(-count // rows) * rows * pieces)


def of_windows(row: Strategy[WindowProblem]) -> Strategy[Indexing]:
    """A row of windows as one of a gather or a scatter."""

    def windows_of(problem: Indexing) -> WindowProblem:
        assert problem.as_windows is not None
        return problem.as_windows

    def build(problem: Indexing) -> Iterator[Step]:
        for number, step in enumerate(row.build(windows_of(problem))):
            if number == 0:
                yield from offsets_of_windows(problem)
            yield step

    return Strategy(
        row.name,
        lambda problem: row.applies(problem.as_windows) if problem.as_windows else OTHER,
        lambda problem: row.lower_bound(windows_of(problem)),
        build,
    )


def offsets_of_windows(problem: Indexing) -> Iterator[Step]:
    """Yields the steps that copy device-resident indices to the offsets of windows, which are 0 elsewhere."""
    table = problem.context.table
    if table is None:
        return
    assert problem.windows is not None
    tables = problem.windows.tables
    offsets = Layout.packed((*tables[0].sizes, problem.windows.tensor.rank))
    yield Clear(0, whole_words(offsets.size * table.itemsize), Memory.WINDOW_OFFSETS)
    context = PlanContext(problem.limits, table.copy_from, True, table.capacity_nbytes)
    for number, column in enumerate(tables):
        placed = offsets.select([*map(range, column.sizes), number])
        steps = plan_copy(column, placed, table.itemsize, context).steps
        for step in explained(steps, "offsets of windows"):
            yield replace(step, reads=table.memory, writes=Memory.WINDOW_OFFSETS)


def halves_of(problem: Indexing) -> list[Indexing]:
    """Returns the copies at the first indices and at the last ones, in order; none of one index."""
    copy = problem.copy
    sizes = [
        size if any(table.strides[axis] for table in copy.tables) else 1
        for axis, size in enumerate(copy.sizes)
    ]
    if copy.masked or max(sizes, default=1) == 1:
        return []
    axis = next(axis for axis, size in enumerate(sizes) if size > 1)
    whole, middle = range(sizes[axis]), sizes[axis] // 2
    parts = (copy.part(axis, half) for half in (whole[:middle], whole[middle:]))
    return [replace(problem, copy=part) for part in parts]


def in_halves(problem: Indexing) -> list[Step]:
    """Returns the steps of both halves, with winner indices cleared between them; none if one has none."""
    steps: list[Step] = []
    for half in halves_of(problem):
        choice = choose(half, INDEXING)
        if choice is None:
            return []
        winners_nbytes = scratch_of(choice.steps).get(Memory.WINNERS)
        if steps and winners_nbytes:
            steps.append(Clear(0, winners_nbytes, Memory.WINNERS))
        steps += choice.steps
    return steps


def slices_seconds(parts: Sequence[ListSlice], problem: Indexing) -> float:
    """Lower bound of the seconds of some slices."""
    costs = problem.costs
    return len(parts) * min(costs.copy_s, costs.dispatch_s) + problem.nbytes / costs.copy_bytes_per_s


def copies_of(parts: Sequence[ListSlice], problem: Indexing) -> list[Step]:
    """Returns the steps of a copy of each slice, in order; none if one has no strategy."""
    choices = [chosen(*problem.sides_of(part), problem.itemsize, problem.context) for part in parts]
    return [step for choice in choices if choice for step in choice.steps] if all(choices) else []


def by_slices(name: str, parts_of: Callable[[Indexing], Sequence[ListSlice]]) -> Strategy[Indexing]:
    """The row of a list of indices that is copied in slices."""
    return Strategy(
        name,
        where(parts_of),
        lambda problem: slices_seconds(parts_of(problem), problem),
        lambda problem: copies_of(parts_of(problem), problem),
    )


def against_runs(problem: Indexing) -> Reason | None:
    """Returns why runs of indices are not buffer copies, or None."""
    if problem.runs is None:
        return OTHER
    return None if problem.context.buffer_copies else NO_COPY_USAGE


def runs_seconds(problem: Indexing) -> float:
    """Estimated seconds of a buffer copy of each run."""
    assert problem.runs is not None
    costs = problem.costs
    return len(problem.runs.nbytes) * costs.copy_s + problem.nbytes / costs.copy_bytes_per_s


def copies_of_runs(problem: Indexing) -> Iterator[Step]:
    """Yields a buffer copy of each run."""
    assert problem.runs is not None
    indexed, other, nbytes = problem.runs
    read, written = (indexed, other) if problem.copy.reads else (other, indexed)
    return copies_by_length(read, written, nbytes, "runs of indices, contiguous words on both sides")


def further_rejected_indexing(problem: Indexing) -> Iterator[Estimate]:
    """Yields the strategies for other indices: as windows, of vectors of 16 bytes, and disjoint ones."""
    copy, width_nbytes = problem.wide
    costs, nbytes = problem.costs, prod(copy.sizes) * width_nbytes
    rows, vectors = (
        (Kernel.WINDOW_ROWS, Kernel.WIDE_GATHER) if copy.reads else (Kernel.INSERT_ROWS, Kernel.SCATTER)
    )
    if problem.as_windows is not None:
        yield from further_rejected(problem.as_windows)
    else:
        copies = nbytes / max(problem.run_nbytes, MIN_WINDOW_NBYTES)
        copying_s = copies * costs.copy_s + nbytes / costs.copy_bytes_per_s
        yield Estimate(COPY_PER_WINDOW, copying_s, True, problem.against_windows)
        share = 1 if copy.reads or width_nbytes == WIDEST_NBYTES else MIN_OF_BLOCKS
        rows_s = costs.least_seconds(CostClass(rows, WIDEST_NBYTES), share * nbytes)
        yield Estimate(rows.value, rows_s, True, problem.against_windows)
    if width_nbytes < WIDEST_NBYTES:
        vectors_s = costs.least_seconds(CostClass(vectors, WIDEST_NBYTES), nbytes)
        name = vectors.value if copy.reads else "scatter of vectors"
        yield Estimate(name, vectors_s, True, problem.against_vectors)
    if copy.winners is not None:
        disjoint_s = kernel_seconds(problem.kernel, problem)
        yield Estimate("scatter without a last-writer pass", disjoint_s, True, "indices may repeat")


def changes_of_indexing(problem: Indexing) -> Iterator[tuple[str, Choice | None]]:
    """Yields the choices for other indices, values or layouts, each change on top of those before it."""
    conditions: list[str] = []
    for condition, changed in changed_indexing(problem):
        if condition == ON_HOST:  # which finds those that repeat
            conditions = [each for each in conditions if each != DISJOINT]
        conditions.append(condition)
        yield ", and ".join(conditions), choose(changed, INDEXING)
    if problem.as_windows is not None and problem.copy.host is not None:
        yield from changes_of_windows(problem.as_windows, layouts=False)


def changed_indexing(problem: Indexing) -> Iterator[tuple[str, Indexing]]:
    """Yields a gather or scatter after one change after the other, each with the condition of the last."""
    copy = problem.copy
    if copy.masked or 0 in copy.sizes:
        return
    if problem.is_broadcast:
        copy = replace(copy, other=Layout.packed(copy.sizes))
        problem = replace(problem, copy=copy, source=copy.other)
        yield "the value is not broadcast along rows", problem
    if copy.winners is not None:
        copy = replace(copy, winners=None)
        problem = replace(problem, copy=copy)
        yield DISJOINT, problem
    if len(copy.tables) == 1:
        first, indexed = copy.stored_first()
        if (first.indexed, first.other) != (copy.indexed, copy.other):
            source, target = (indexed, first.other) if copy.reads else (first.other, indexed)
            copy = first.coalesced()
            problem = replace(problem, copy=copy, source=source, target=target)
            yield "the indexed dimension is stored first, with contiguous rows", problem
    if copy.host is None:
        if len(copy.tables) == 1:
            places = np.arange(copy.entries[0].stop) ** 2 % copy.tables[0].extent  # no runs
            copy = replace(copy, host=Host(places.astype(np.int32)), winners=None)
            problem = replace(problem, copy=copy, context=problem.context._replace(table=None))
        yield ON_HOST, problem


COPYING = (
    *(*GATHERS.values(), Kernel.GATHER_WORDS, Kernel.SCATTER, Kernel.SCATTER_SUBWORD),
    *(Kernel.MASKED_WORDS, Kernel.MASKED_PAIRS, Kernel.MASKED_VALUES),
)
INDEXING: tuple[Strategy[Indexing], ...] = (
    *(
        Strategy(
            kernel.value,
            partial(against_kernel, kernel),
            partial(kernel_seconds, kernel),
            partial(index_dispatches, kernel),
        )
        for kernel in COPYING
    ),
    Strategy(
        Kernel.SCATTER_IN_ORDER.value,
        against_in_order,
        partial(kernel_seconds, Kernel.SCATTER_IN_ORDER),
        partial(index_dispatches, Kernel.SCATTER_IN_ORDER),
    ),
    Strategy(
        "gather down columns",
        against_columns,
        lambda problem: kernel_seconds(problem.kernel, problem, columns=True),
        lambda problem: index_dispatches(problem.kernel, problem, columns=True),
    ),
    Strategy(COPY_PER_RUN, against_runs, runs_seconds, copies_of_runs),
    by_slices("slices", lambda problem: problem.slices),
    by_slices("all in order, then slices", lambda problem: problem.corrections),
    *map(of_windows, WINDOWS),
    Strategy(
        "in halves",
        where(lambda problem: problem.against_kernels and problem.as_windows is None and halves_of(problem)),
        lambda problem: 2 * problem.costs.dispatch_s,
        in_halves,
    ),
)

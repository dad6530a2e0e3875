"""The plan of a gather or a scatter: the strategies for a copy of which tables of indices move one side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from math import inf, prod
from typing import cast

from wgslice.arguments import U32_MAX
from wgslice.dialects.advanced import AdvancedSelection
from wgslice.dtypes import DType
from wgslice.errors import NoKernelError
from wgslice.layout import Layout
from wgslice.plans.choose import OTHER, Reason, Step, Strategy, choose
from wgslice.plans.copy import plan_copy
from wgslice.plans.gather import IndexedWindows, WindowCopy, indexed_windows
from wgslice.plans.indexed import INDEX_NBYTES, IndexedCopy, IndexedDispatch
from wgslice.plans.kernels import WORD_NBYTES, Kernel
from wgslice.plans.launch import Share, fold, words_spanned
from wgslice.plans.plan import Plan, Planner, in_order
from wgslice.plans.problem import LARGEST_BINDING_NBYTES, PlanContext, span_of
from wgslice.plans.profiles import BLOCKS_EACH, FAILED, CostClass, Limits, untrusted
from wgslice.plans.steps import Memory, Span
from wgslice.plans.tables import indexed_copy, masked_copy
from wgslice.plans.window_problem import MAX_INVOCATIONS, WindowProblem
from wgslice.plans.window_steps import words_each
from wgslice.plans.window_strategies import WINDOWS, winners_scratch

READING = {Kernel.GATHER, Kernel.GATHER_WORDS}
WRITING = {Kernel.SCATTER, Kernel.SCATTER_SUBWORD, Kernel.LAST_WRITER_INDICES}
MASKING = {Kernel.MASKED_WORDS, Kernel.SCATTER, Kernel.SCATTER_SUBWORD}
MASK_NBYTES = 1  # an element
CACHE_LINE_NBYTES = 64
MIN_WINDOW_NBYTES = 64  # contiguous bytes per index from which a copy may run as windows


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
    """The one copy between what a selection takes of a tensor and a layout of its shape.

    `index_dtype` is that of indices that the GPU has, all in one binding. None where kernels that take
    indices do not hold it, or failed the self-test.
    """
    view = tensor.select(selection.items)
    signed = index_dtype is not None and index_dtype.kind == "i"
    copy = indexed_copy(selection, view, other, reads=reads, signed=signed, disjoint=disjoint)
    if copy is None or (index_dtype is not None and goes_as_windows(copy, view, other, itemsize)):
        return None
    indexed, planner = view, cast(Planner, plan_copy)
    if not copy.tables:
        indexed, other = copy.indexed.shifted(view.offset), copy.other.shifted(other.offset)
    else:
        index_nbytes = index_dtype.itemsize if index_dtype else INDEX_NBYTES
        kernels = READING if reads else WRITING
        if kernels & limits.disabled or not is_held(copy, (view, other), itemsize, index_nbytes, limits):
            return None
        origins = tensor.shifted(-view.offset), other.shifted(-other.offset)
        windows = partial(indexed_windows, selection, *origins, reads=reads) if copy.host else None
        planner = partial(plan_indexing, copy, windows)
    return WindowCopy(planner, *((indexed, other) if reads else (other, indexed)))


def masked_copy_at_once(
    mask_sizes: tuple[int, ...], target: Layout, source: Layout, itemsize: int, limits: Limits
) -> WindowCopy | None:
    """The one copy between layouts of equal sizes to where a mask, which broadcasts to these, is true.

    None where kernels that take indices do not hold it, or failed the self-test.
    """
    copy = masked_copy(mask_sizes, target, source)
    if MASKING & limits.disabled or not is_held(copy, (source, target), itemsize, MASK_NBYTES, limits):
        return None
    return WindowCopy(partial(plan_indexing, copy, None), source, target)


def goes_as_windows(copy: IndexedCopy, view: Layout, other: Layout, itemsize: int) -> bool:
    """Whether long rows of elements of 1 and 2 bytes begin anywhere, which blocks of windows take."""
    wide, width_nbytes = copy.widened(itemsize, (view.offset, other.offset))
    return wide.by_rows and width_nbytes < WORD_NBYTES and wide.sizes[-1] * width_nbytes >= MIN_WINDOW_NBYTES


def is_held(
    copy: IndexedCopy, sides: Sequence[Layout], itemsize: int, index_nbytes: int, limits: Limits
) -> bool:
    """Whether bindings hold both sides, indices and winners, wherever they begin, and a grid the elements."""
    most = min(limits.binding_nbytes, LARGEST_BINDING_NBYTES) - limits.binding_alignment_nbytes
    bound = [(side.stop - side.lowest) * itemsize for side in sides]
    bound += [copy.winners.span.nbytes] if copy.winners else []
    if copy.host is None:
        bound += [(1 + table.reach(copy.sizes)) * index_nbytes for table in copy.tables]
    else:
        bound.append(copy.host.values.nbytes)
    invocations = min(MAX_INVOCATIONS, limits.workgroups**2 * limits.profile.workgroup_size)
    return max(bound) <= most and prod(copy.sizes) <= invocations


def plan_indexing(
    copy: IndexedCopy,
    windows: Callable[[], IndexedWindows | None] | None,
    source: Layout,
    target: Layout,
    itemsize: int,
    context: PlanContext,
) -> Plan:
    """Gather what indices take of a view, or scatter to it, by the strategy of the least estimated time.

    `windows` gives the same as windows, where the host knows the indices.
    """
    size = (target if copy.reads else source).size
    if size > U32_MAX:
        raise ValueError(f"{size} elements of sizes {target.sizes}: one call copies at most {U32_MAX}")
    problem = Indexing(copy, windows, source, target, itemsize, context)
    choice = choose(problem, INDEXING)
    if choice is None:
        what = "gather" if copy.reads else "scatter"
        raise NoKernelError(untrusted(f"a {what} of sizes {target.sizes}", context.limits))
    return Plan(
        size * itemsize,
        itemsize,
        problem.wide[1],
        source,
        target,
        in_order(choice.steps),
        winners_scratch(choice.steps),
        costs=context.limits.profile.costs,
        choice=choice,
    )


@dataclass(frozen=True, eq=False)
class Indexing:
    """A gather or a scatter to plan, in elements of `itemsize` from the bases of both buffers."""

    copy: IndexedCopy
    windows: Callable[[], IndexedWindows | None] | None
    source: Layout  # of a gather the view that is indexed
    target: Layout  # of a scatter the view that is indexed
    itemsize: int
    context: PlanContext

    @property
    def limits(self) -> Limits:
        """The device's limits."""
        return self.context.limits

    @property
    def nbytes(self) -> int:
        """Bytes that are written."""
        return prod(self.copy.sizes) * self.itemsize

    @property
    def sides(self) -> tuple[Layout, Layout]:
        """The view that is indexed, and the other side."""
        return (self.source, self.target) if self.copy.reads else (self.target, self.source)

    @cached_property
    def wide(self) -> tuple[IndexedCopy, int]:
        """The copy in the widest elements, and their bytes."""
        copy, width_nbytes = self.copy.widened(self.itemsize, (self.source.offset, self.target.offset))
        return copy.flattened(), width_nbytes

    @cached_property
    def as_windows(self) -> WindowProblem | None:
        """The same as windows; None where runs are short, or one table does not say all."""
        copy, width_nbytes = self.wide
        run_nbytes = copy.sizes[-1] * width_nbytes if copy.by_rows else width_nbytes
        if self.windows is None or run_nbytes < MIN_WINDOW_NBYTES:
            return None
        found = self.windows()
        if found is None or len(list(found.pieces(self.limits, INDEX_NBYTES))) > 1:
            return None
        indexed, other = self.sides
        numbers = range(found.count)
        windows = found.windows(numbers, found.offsets())
        tensor = found.tensor.shifted(indexed.offset)
        batch = found.elements_of(numbers).shifted(other.offset)
        inserts = not self.copy.reads
        given = found.insertion(windows).numbers if inserts else windows.numbers
        return WindowProblem(windows, tensor, batch, self.itemsize, self.context, inserts, given)


def kernel_of(copy: IndexedCopy, width_nbytes: int) -> Kernel:
    """What copies elements of a width."""
    if copy.masked and copy.is_flat and width_nbytes < WORD_NBYTES:
        return Kernel.MASKED_WORDS
    if copy.reads:
        return Kernel.GATHER_WORDS if width_nbytes < WORD_NBYTES else Kernel.GATHER
    return Kernel.SCATTER_SUBWORD if width_nbytes < WORD_NBYTES else Kernel.SCATTER


def against_kernel(kernel: Kernel, problem: Indexing) -> Reason | None:
    """Returns why a kernel is not applicable, or None."""
    if kernel_of(*problem.wide) is not kernel:
        return OTHER
    needed = {kernel, *([Kernel.LAST_WRITER_INDICES] if problem.copy.winners else [])}
    return FAILED if needed & problem.limits.disabled else None


def kernel_seconds(kernel: Kernel, problem: Indexing) -> float:
    """Estimated seconds that a dispatch takes at least for its bytes."""
    costs = problem.limits.profile.costs
    work = costs.classes.get(CostClass(kernel, problem.wide[1]))
    return costs.dispatch_s + problem.nbytes / work.bytes_per_s if work else inf


def dispatches(kernel: Kernel, problem: Indexing) -> Sequence[Step]:
    """The dispatch of a kernel, after the winners of its indices where several may name one place."""
    copy, width_nbytes = problem.wide
    spans = [span_of(side, problem.itemsize, problem.limits) for side in (problem.source, problem.target)]
    indexed, other = (
        (side.offset * problem.itemsize - span.offset_nbytes) // width_nbytes
        for side, span in zip(problem.sides, spans if copy.reads else spans[::-1], strict=True)
    )
    table = "mask element" if copy.masked else "index"
    how = f"one {table} per {'row' if copy.by_rows else 'element'}"
    copying = dispatch_of(problem, kernel, copy.shifted(indexed, other), width_nbytes, spans, how)
    if copy.winners is None:
        return [copying]
    winning = copy.at_indices()
    reason = "last-writer pass: winner index per element that several indices name"
    winners = [Span(0, WORD_NBYTES), copy.winners.span]
    first = dispatch_of(problem, Kernel.LAST_WRITER_INDICES, winning, WORD_NBYTES, winners, reason)
    return [replace(first, writes=Memory.WINNERS), copying]


def dispatch_of(
    problem: Indexing,
    kernel: Kernel,
    copy: IndexedCopy,
    width_nbytes: int,
    spans: Sequence[Span],
    reason: str,
) -> IndexedDispatch:
    """A dispatch of a kernel; the copy counts from the start of the bindings."""
    return IndexedDispatch(
        kernel=kernel,
        copy=copy,
        width_nbytes=width_nbytes,
        table=problem.context.table,
        down=kernel in (Kernel.GATHER, Kernel.SCATTER) and goes_down(copy, width_nbytes, problem.limits),
        source_binding=spans[0],
        target_binding=spans[1],
        share=share_of(kernel, copy, width_nbytes, problem.limits),
        reason=reason,
    )


def goes_down(copy: IndexedCopy, width_nbytes: int, limits: Limits) -> bool:
    """Whether neighbours in a row are in lines far from each other, and those below it in the same lines."""
    beside = abs(copy.indexed.strides[-1]) * width_nbytes < CACHE_LINE_NBYTES
    far = any(
        table.strides[-1] and abs(table.step) * width_nbytes >= CACHE_LINE_NBYTES for table in copy.tables
    )
    return limits.profile.contiguous and len(copy.sizes) > 1 and beside and far


def share_of(kernel: Kernel, copy: IndexedCopy, width_nbytes: int, limits: Limits) -> Share:
    """How elements are distributed over invocations."""
    profile = limits.profile
    *outer, size = copy.sizes
    rows = prod(outer)
    if kernel is Kernel.GATHER_WORDS:
        pieces, each = 1, words_each(size * width_nbytes, profile)
        words = words_spanned(Layout.packed((rows * size,), copy.target.offset), width_nbytes)
        invocations = -(-words // each)
    elif kernel is Kernel.MASKED_WORDS:
        words = words_spanned(Layout.packed((rows * size,), copy.target.offset), width_nbytes)
        each = max(count for count in BLOCKS_EACH if count <= max(min(words, max(profile.words_each)), 1))
        rows, pieces = 1, -(-words // each)
        invocations = pieces
    else:
        most = max(profile.words_each) * WORD_NBYTES // max(width_nbytes, WORD_NBYTES)
        each = max(count for count in BLOCKS_EACH if count <= max(min(size, most), 1))
        pieces = -(-size // each)
        invocations = rows * pieces
    # bits that two invocations flip at once are as before
    contiguous = profile.contiguous and kernel is not Kernel.SCATTER_SUBWORD
    grid = *fold(-(-invocations // profile.workgroup_size), limits), 1
    return Share(rows, False, pieces, each, contiguous, profile.workgroup_size, grid)


def by_kernel(kernel: Kernel) -> Strategy[Indexing]:
    """The row of a kernel."""
    return Strategy(
        kernel.value,
        partial(against_kernel, kernel),
        partial(kernel_seconds, kernel),
        partial(dispatches, kernel),
    )


def by_windows(row: Strategy[WindowProblem]) -> Strategy[Indexing]:
    """A row of windows as one of a gather or a scatter."""

    def windows_of(problem: Indexing) -> WindowProblem:
        assert problem.as_windows is not None
        return problem.as_windows

    return Strategy(
        row.name,
        lambda problem: row.applies(problem.as_windows) if problem.as_windows else OTHER,
        lambda problem: row.lower_bound(windows_of(problem)),
        lambda problem: row.build(windows_of(problem)),
    )


INDEXING: tuple[Strategy[Indexing], ...] = (
    *map(by_kernel, (Kernel.GATHER, Kernel.GATHER_WORDS)),
    *map(by_kernel, (Kernel.SCATTER, Kernel.SCATTER_SUBWORD, Kernel.MASKED_WORDS)),
    *map(by_windows, WINDOWS),
)

"""The plan that inserts many windows into one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from math import prod

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.choose import OTHER, Reason, Strategy, choose
from wgslice.plans.costs import CostClass, windows_class
from wgslice.plans.extract import check_tables
from wgslice.plans.insert_steps import (
    blocks_of,
    claims_of,
    elements_of,
    hindrance_of_rows,
    is_ragged,
    windows_with_room,
    words_of,
)
from wgslice.plans.kernels import Kernel
from wgslice.plans.overlaps import Insertion, layers_of
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.problem import Terms
from wgslice.plans.profiles import FAILED, UNKNOWN
from wgslice.plans.steps import BufferCopies
from wgslice.plans.strategies import LEAST_OF_BLOCKS
from wgslice.plans.window_plans import by_copies, least_seconds, left_out, plan_of_windows, window_copies
from wgslice.plans.window_rows import Band, Numbers, Row, bands, longest_row
from wgslice.plans.windows import Request

__all__ = ["INSERTIONS", "Inserted", "insert_windows_planner", "plan_insert_windows"]


TIGHT = "the input's buffer ends inside a vector of 16 bytes"


def insert_windows_planner(insertion: Insertion) -> Planner:
    """`plan_insert_windows` for some windows."""
    return partial(plan_insert_windows, insertion)


def plan_insert_windows(
    insertion: Insertion, source: Layout, target: Layout, itemsize: int, terms: Terms
) -> Plan:
    """Copy windows of a batch, `source`, to their places in a tensor, `target`; the outside is dropped."""
    nbytes = source.size * itemsize
    if source.size > U32_MAX:
        raise ValueError(f"{source.size} elements of sizes {source.sizes}: one call copies at most {U32_MAX}")
    if source.size == 0 or target.size == 0 or not insertion.numbers.size:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    check_tables(insertion.windows, terms.limits, "insert")
    request = Request(insertion.windows, target, source, itemsize, terms, inserts=True)
    return plan_of_windows(Inserted.of(request, insertion), INSERTIONS)


@dataclass(frozen=True, eq=False)
class Inserted(Request):
    """Windows to insert: some of those of a request, and the bands of the tensor that they reach."""

    numbers: Numbers = field(kw_only=True)
    contested: bool = field(kw_only=True)  # whether they may overlap
    bands: list[Band] = field(kw_only=True)

    @classmethod
    def of(cls, request: Request, insertion: Insertion) -> Inserted:
        """Windows in all the bands that they reach."""
        numbers, contested = insertion.numbers, insertion.contested
        found = list(bands(request, numbers, contested=contested))
        sides = request.windows, request.tensor, request.batch, request.itemsize, request.terms, True
        return cls(*sides, numbers=numbers, contested=contested, bands=found)

    @cached_property
    def copies(self) -> BufferCopies | str:
        """A buffer copy of each window, or why not."""
        return window_copies(self, self.numbers)

    @cached_property
    def disjoint(self) -> list[Numbers] | None:
        """Windows that may overlap, in sets of disjoint ones in order; None where that is not known."""
        if not self.contested or self.windows.offsets is None:
            return None
        return layers_of(self.windows, self.numbers)

    @cached_property
    def against_claims(self) -> Reason | None:
        """Why windows that may overlap cannot claim what they write; refused where nothing else does it."""
        if not self.contested:
            return None
        if len(self.bands) * self.windows.count <= U32_MAX:
            return FAILED if Kernel.CLAIM_WINDOWS in self.limits.distrusted else None
        if self.disjoint is not None:
            return "windows cannot be counted in 32 bits"
        raise ValueError(
            f"{self.windows.count} windows that may overlap, in {len(self.bands)} bindings: take fewer at "
            "once"
        )

    @cached_property
    def row(self) -> Row:
        """What of the windows lies in line."""
        return longest_row(self)

    @cached_property
    def ragged(self) -> bool:
        """Whether some row begins or ends inside a block of the output."""
        return is_ragged(self.row, self.numbers)

    @cached_property
    def against_rows(self) -> Reason | None:
        """Why windows are not inserted row by row."""
        reason = hindrance_of_rows(self.row, self.bands)
        return FAILED if reason is None and Kernel.INSERT_WORDS in self.limits.distrusted else reason

    @cached_property
    def stop(self) -> int:
        """The first window that blocks leave out, since the input's buffer ends inside a vector."""
        return windows_with_room(self)

    @property
    def nbytes(self) -> int:
        """Bytes of the windows of all bands."""
        return sum(len(band.numbers) for band in self.bands) * prod(self.windows.sizes) * self.itemsize

    def least_s(self, work: CostClass, share: float = LEAST_OF_BLOCKS) -> float:
        """Estimated seconds that a dispatch of a cost class takes at least for its bytes."""
        return least_seconds(work, share * self.nbytes, self.limits.profile.costs)

    def claimed(self, steps_of: Callable[[Band], Iterable[Step]]) -> list[Step]:
        """The steps of each band, after the claims of its windows, where these may overlap."""
        found: list[Step] = []
        for band in self.bands:
            found += [*(claims_of(self, band) if band.contested else ()), *steps_of(band)]
        return found


def against_layers(request: Inserted) -> Reason | None:
    """Why windows do not go in disjoint layers."""
    return OTHER if request.disjoint is None else None


def layers_seconds(request: Inserted) -> float:
    """Estimated seconds that a dispatch for each layer takes at least."""
    return len(request.disjoint or ()) * request.limits.profile.costs.dispatch_s


def by_layers(request: Inserted) -> Sequence[Step]:
    """The cheapest steps of each layer; none where some layer has none."""
    steps: list[Step] = []
    for layer in request.disjoint or ():
        choice = choose(Inserted.of(request, Insertion(request.windows, layer, contested=False)), IN_BANDS)
        if choice is None:
            return []
        steps += choice.steps
    return steps


def blocks_class(request: Inserted) -> CostClass:
    """The cost class of blocks of rows."""
    return request.row.work(Kernel.INSERT_ROWS)


def words_class(request: Inserted) -> CostClass:
    """The cost class of words of rows."""
    return request.row.work(Kernel.INSERT_WORDS)


def against_blocks(request: Inserted) -> Reason | None:
    """Why rows are not inserted in blocks of 16 bytes."""
    row, limits = request.row, request.limits
    reason = request.against_claims or request.against_rows
    if reason:
        return reason
    reason = row.hindrance_of_blocks(limits.profile, ragged=request.ragged)
    if reason:
        return reason
    if request.contested and request.stop < request.windows.count:
        return TIGHT
    if Kernel.INSERT_ROWS in limits.distrusted:
        return FAILED
    ends = windows_class(Kernel.INSERT_WORDS, row.element_nbytes, ends=True, mirrored=row.mirrored)
    return None if ends in limits.profile.costs.works else UNKNOWN


def by_blocks(request: Inserted) -> Sequence[Step]:
    """Blocks of rows, and the cheapest steps for windows that they leave out; none where these have none."""
    stop = request.stop
    steps = request.claimed(lambda band: blocks_of(request.row, request.ragged, band.before(stop)))
    left = [rest for band in request.bands for rest in [band.behind(stop)] if rest.numbers.size]
    if not left:
        return steps
    rest = choose(replace(request, bands=left), WITHOUT_BLOCKS)
    return [*steps, *left_out(rest, TIGHT)] if rest else []


def against_words(request: Inserted) -> Reason | None:
    """Why rows are not inserted word by word."""
    reason = request.against_claims or request.against_rows
    if reason:
        return reason
    return OTHER if request.row.nbytes <= request.itemsize else None


def by_words(request: Inserted) -> Sequence[Step]:
    """Words of rows."""
    return request.claimed(partial(words_of, request.row))


def elements_class(request: Inserted) -> CostClass:
    """The cost class of windows element by element."""
    return windows_class(Kernel.INSERT_WINDOWS, request.itemsize)


def against_elements(request: Inserted) -> Reason | None:
    """Why windows are not inserted element by element."""
    failed = FAILED if Kernel.INSERT_WINDOWS in request.limits.distrusted else None
    return request.against_claims or failed


def by_elements(request: Inserted) -> Sequence[Step]:
    """Windows element by element."""
    return request.claimed(partial(elements_of, request))


Inserting = Strategy[Inserted]
WITHOUT_BLOCKS: tuple[Inserting, ...] = (
    Strategy(
        Kernel.INSERT_WORDS.value,
        against_words,
        lambda request: request.least_s(words_class(request), 1),
        by_words,
    ),
    Strategy(
        Kernel.INSERT_WINDOWS.value,
        against_elements,
        lambda request: request.least_s(elements_class(request), 1),
        by_elements,
    ),
)
IN_BANDS: tuple[Inserting, ...] = (
    Strategy(
        Kernel.INSERT_ROWS.value,
        against_blocks,
        lambda request: request.least_s(blocks_class(request)),
        by_blocks,
    ),
    *WITHOUT_BLOCKS,
)
INSERTIONS: tuple[Inserting, ...] = (
    by_copies(),
    Strategy("layers", against_layers, layers_seconds, by_layers),
    *IN_BANDS,
)

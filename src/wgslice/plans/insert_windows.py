"""The plan that inserts many windows into one tensor, in as few dispatches as can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from math import prod

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.choosing import LEAST_OF_BLOCKS
from wgslice.plans.costs import windows_work
from wgslice.plans.extract_windows import check_tables
from wgslice.plans.insert_bands import Band, Numbers, bands
from wgslice.plans.insert_elements import claims_of, elements_of
from wgslice.plans.insert_rows import TIGHT, RowWay, row_ways
from wgslice.plans.kernels import Kernel
from wgslice.plans.overlaps import Insertion, layers_of
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.terms import Terms
from wgslice.plans.ways import Way, cheapest_way, least_seconds
from wgslice.plans.windows_plan import plan_of_windows
from wgslice.plans.windows_request import Request

__all__ = ["insert_windows_planner", "plan_insert_windows"]


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
    return plan_of_windows(request, insertion.numbers, ways(request, insertion))


def ways(request: Request, insertion: Insertion) -> Iterator[Way]:
    """The ways for kernels to insert windows; where these may overlap in disjoint layers, or by claims."""
    contested, costs = insertion.contested, request.limits.profile.costs
    known = contested and insertion.windows.offsets is not None
    layers = layers_of(insertion.windows, insertion.numbers) if known else None
    if layers is not None:
        yield Way("layers", len(layers) * costs.dispatch_s, partial(in_layers, request, layers))
    found = list(bands(request, insertion.numbers, contested=contested))
    if not contested or can_claim(request, found, needed=layers is None):
        yield from ways_for(request, found, insertion.numbers)


def can_claim(request: Request, found: Sequence[Band], *, needed: bool) -> bool:
    """Whether windows can claim what they write; refused, where they need to, and are too many."""
    countable = len(found) * request.windows.count <= U32_MAX
    if needed and not countable:
        raise ValueError(
            f"{request.windows.count} windows that may overlap, in {len(found)} bindings: take fewer at once"
        )
    return countable and Kernel.CLAIM_WINDOWS not in request.limits.distrusted


def in_layers(request: Request, layers: Sequence[Numbers]) -> list[Step]:
    """The cheapest steps of each layer; none where some layer has none."""
    costs = request.limits.profile.costs
    steps: list[Step] = []
    for layer in layers:
        found = list(bands(request, layer, contested=False))
        choice = cheapest_way(ways_for(request, found, layer), costs)
        if choice is None:
            return []
        steps += choice.steps
    return steps


def ways_for(request: Request, found: list[Band], numbers: Numbers) -> Iterator[Way]:
    """The ways to insert some windows into bands: in blocks of rows, by words of rows, by elements."""
    rows, hindrance = row_ways(request, found, numbers)
    nbytes = LEAST_OF_BLOCKS * nbytes_of(request, found)
    for way in rows:
        least_s = least_seconds(way.works[0], nbytes, request.limits.profile.costs)
        if way.kernel is Kernel.INSERT_ROWS and least_s is not None:
            yield Way(way.kernel.value, least_s, partial(in_blocks, request, found, rows))
    yield from ways_without_blocks(request, found, rows, hindrance)


def ways_without_blocks(
    request: Request, found: list[Band], rows: Sequence[RowWay], hindrance: str
) -> Iterator[Way]:
    """The ways to insert windows of bands by words of rows, and by elements."""
    costs, nbytes = request.limits.profile.costs, nbytes_of(request, found)
    for way in rows:
        least_s = least_seconds(way.works[0], nbytes, costs)
        if way.kernel is Kernel.INSERT_WORDS and least_s is not None:
            yield Way(way.kernel.value, least_s, partial(claimed, request, found, way.steps_of))
    least_s = least_seconds(windows_work(Kernel.INSERT_WINDOWS, request.itemsize), nbytes, costs)
    if least_s is not None and Kernel.INSERT_WINDOWS not in request.limits.distrusted:
        of_band = partial(elements_of, request, hindrance=hindrance)
        yield Way(Kernel.INSERT_WINDOWS.value, least_s, partial(claimed, request, found, of_band))


def nbytes_of(request: Request, found: Sequence[Band]) -> int:
    """Bytes of the windows of bands."""
    return sum(len(band.numbers) for band in found) * prod(request.windows.sizes) * request.itemsize


def in_blocks(request: Request, found: list[Band], rows: Sequence[RowWay]) -> list[Step]:
    """Blocks of rows, and the cheapest way to insert what windows they leave out; none without such a way."""
    way, *others = rows
    left = [rest for band in found for rest in [band.behind(way.stop)] if rest.numbers.size]
    of_left = ways_without_blocks(request, left, others, TIGHT) if left else ()
    rest = cheapest_way(of_left, request.limits.profile.costs)
    if left and rest is None:
        return []
    return [*claimed(request, found, way.steps_of), *(rest.steps if rest else ())]


def claimed(
    request: Request, found: list[Band], steps_of: Callable[[Band], Iterable[Step]]
) -> Iterator[Step]:
    """The steps of each band, after the claims of its windows, where these may overlap."""
    for band in found:
        if band.contested:
            yield from claims_of(request, band)
        yield from steps_of(band)

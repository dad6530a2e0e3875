"""The plan that inserts many windows into one tensor, in as few dispatches as can be."""

from __future__ import annotations

from functools import partial

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.extract_windows import check_tables
from wgslice.plans.insert_bands import Numbers, bands
from wgslice.plans.insert_elements import claims_of, elements_of
from wgslice.plans.insert_rows import TIGHT, RowWay, find_row_way
from wgslice.plans.kernels import Kernel
from wgslice.plans.overlaps import Insertion, layers_of
from wgslice.plans.plan import Plan, Planner, Step
from wgslice.plans.profiles import untrusted
from wgslice.plans.steps import Memory
from wgslice.plans.terms import Terms
from wgslice.plans.windows_request import Request

__all__ = ["insert_windows_planner", "plan_insert_windows"]

STEPS_A_LAYER = 2  # whole blocks, and the ends of rows


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
    if source.size == 0 or target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    check_tables(insertion.windows, terms.limits, "insert")
    request = Request(insertion.windows, target, source, itemsize, terms, inserts=True)
    layers = layers_for(request, insertion) if insertion.contested else None
    if layers is None:
        steps, claims_nbytes = steps_for(request, insertion.numbers, contested=insertion.contested)
    else:
        steps = [step for layer in layers for step in steps_for(request, layer, contested=False)[0]]
        claims_nbytes = 0
    scratch = ((Memory.CLAIMS, claims_nbytes),) if claims_nbytes else ()
    return Plan(nbytes, itemsize, itemsize, source, target, tuple(steps), scratch)


def layers_for(request: Request, insertion: Insertion) -> list[Numbers] | None:
    """Windows in layers of disjoint ones, if their dispatches are estimated to take less time than claims.

    Claims are made, and then looked at, element by element, as `slice1` copies.
    """
    if insertion.windows.offsets is None:
        return None
    layers = layers_of(insertion.windows, insertion.numbers)
    if layers is None:
        return None
    costs = request.limits.profile.costs
    elements_s = request.batch.size * request.itemsize / costs.works[f"slice1 {request.itemsize}"].bytes_per_s
    return layers if len(layers) * STEPS_A_LAYER * costs.dispatch_s < 2 * elements_s else None


def steps_for(request: Request, numbers: Numbers, *, contested: bool) -> tuple[list[Step], int]:
    """The dispatches for some windows, and bytes of claims, where windows may overlap."""
    found = list(bands(request, numbers, contested=contested))
    if contested and len(found) * request.windows.count > U32_MAX:
        raise ValueError(
            f"{request.windows.count} windows that may overlap, in {len(found)} bindings: take fewer at once"
        )
    way = find_row_way(request, found, numbers, contested=contested) if found else ""
    steps: list[Step] = []
    for band in found:
        if contested:
            check_trusted(request, Kernel.CLAIM_WINDOWS)
            steps += claims_of(request, band)
        if isinstance(way, RowWay):
            steps += way.steps_of(band)
        rest, why = (band.behind(way.stop), TIGHT) if isinstance(way, RowWay) else (band, way)
        if rest.numbers.size:
            check_trusted(request, Kernel.INSERT_WINDOWS)
            steps += elements_of(request, rest, why)
    return steps, max((band.claims_nbytes for band in found), default=0) if contested else 0


def check_trusted(request: Request, kernel: Kernel) -> None:
    """Refuse what no kernel is left for."""
    if kernel in request.limits.distrusted:
        raise RuntimeError(untrusted(f"windows of sizes {request.windows.sizes}", request.limits))

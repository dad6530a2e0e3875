"""The plan that inserts many windows into one tensor, in as few dispatches as can be."""

from __future__ import annotations

from functools import partial

from wgslice.arguments import U32_MAX
from wgslice.layout import Layout
from wgslice.plans.extract_windows import check_tables
from wgslice.plans.insert_elements import plan_insert_elements
from wgslice.plans.insert_rows import InsertedRows, plan_insert_rows
from wgslice.plans.overlaps import Insertion
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.steps import Memory
from wgslice.plans.terms import Terms
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
    if source.size == 0 or target.size == 0:
        return Plan(nbytes, itemsize, itemsize, source, target, ())
    check_tables(insertion.windows, terms.limits, "insert")
    request = Request(insertion.windows, target, source, itemsize, terms, inserts=True)
    rows = InsertedRows((), insertion.numbers, "windows may overlap")
    if not insertion.contested and insertion.numbers.size:
        rows = plan_insert_rows(request, insertion.numbers)
    elements = plan_insert_elements(
        request, rows.left, contested=insertion.contested, hindrance=rows.hindrance
    )
    scratch = ((Memory.CLAIMS, elements.claims_nbytes),) if elements.claims_nbytes else ()
    return Plan(nbytes, itemsize, itemsize, source, target, (*rows.steps, *elements.steps), scratch)

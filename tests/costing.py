"""Costs on which plans take what a test wants them to take, and the plans of copies by some costs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

from helpers import WIDTHS

import wgslice as wg
from bench.window_probes import window_probes
from wgslice.layout import Layout
from wgslice.plans.copy import plan_anew, plan_copy
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.problem import Table, Terms
from wgslice.plans.profiles import (
    IN_BLOCKS,
    CostClass,
    Costs,
    Limits,
    Profile,
    Work,
    copy_class,
    pattern,
    step_of,
)
from wgslice.plans.window_plans import extract_windows_planner, insert_windows_planner

CHEAP, DEAR, DEAREST = Work(0.0, 1e30), Work(1e-6, 1e6), Work(1e-3, 1e3)
WITH_ENDS = {Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS}
ENDS = {Kernel.ROW_ENDS, Kernel.NARROW_ENDS}  # which complete these, and are chosen with them
SOURCES = [Layout.of((2,), (stride,)) for stride in (1, 2, 4, 64)]  # beside each other, near and far


def priced(
    profile: Profile,
    price: Callable[[Kernel, bool], Work],
    *,
    dispatch_s: float,
    copy_s: float = 1.0,
    copy_bytes_per_s: float = 1e6,
    clear_bytes_per_s: float = 1e6,
) -> Profile:
    """A profile whose work costs what a function says of its kernel, and of whether it takes pairs."""
    works = {
        copy_class(kernel, width, paired, pattern(source, width), step_of(source)): price(kernel, paired)
        for kernel in Kernel
        for source in (SOURCES[:3] if kernel in IN_BLOCKS else SOURCES)
        for width in WIDTHS
        for paired in (False, True)
    }
    works |= {probe.work: CHEAP if probe.ends else price(probe.kernel, False) for probe in window_probes()}
    costs = Costs("a test", 0, dispatch_s, copy_s, copy_bytes_per_s, clear_bytes_per_s, 0, works)
    return replace(profile, costs=costs)


def ranking(profile: Profile, *kernels: Kernel, copies: bool = False) -> Profile:
    """A profile that takes the first of some kernels that can do a copy, or buffer copies before all."""

    def price(kernel: Kernel, _: bool) -> Work:
        if kernel in ENDS:
            return CHEAP
        return Work(0.0, 10.0 ** (30 - 4 * kernels.index(kernel))) if kernel in kernels else DEAR

    if copies:
        return priced(profile, price, dispatch_s=0, copy_s=0, copy_bytes_per_s=1e40)
    return priced(profile, price, dispatch_s=0)


@cache
def favouring(profile: Profile, *kernels: Kernel) -> Profile:
    """A profile on which some kernels of windows cost what they do, and everything else much."""
    costs = profile.costs
    works = {kind: work if kind.kernel in kernels else DEAREST for kind, work in costs.works.items()}
    return replace(profile, costs=replace(costs, works=works, dispatch_s=1e-9, copy_s=1.0))


@cache
def preferring(
    profile: Profile, *kernels: Kernel, paired: bool | None = None, copies: bool = False
) -> Profile:
    """A profile on which what some kernels do costs next to nothing, and everything else much.

    `paired` says whether that is so of two dimensions as a row, or else of one; None, of both. `copies` says
    whether buffer copies and clears cost nothing.
    """

    def price(kernel: Kernel, pairs: bool) -> Work:
        completing = kernel in ENDS and not WITH_ENDS.isdisjoint(kernels)
        chosen = kernel in kernels and paired in (None, pairs)
        return CHEAP if completing or chosen else DEAR

    if copies:
        return priced(
            profile, price, dispatch_s=1e-9, copy_s=0, copy_bytes_per_s=1e30, clear_bytes_per_s=1e30
        )
    return priced(profile, price, dispatch_s=1e-9)


def planned_copy(
    profile: Profile, source: Layout, target: Layout | None = None, width: int = 4, **terms: Any
) -> Plan:
    """The plan of a copy, to packed memory by default, on a device of usual limits."""
    limits = Limits(2**27, 32, 65535, profile)
    return plan_copy(source, target or Layout.packed(source.sizes), width, Terms(limits, **terms))


def planned_windows(
    profile: Profile,
    asked: wg.ExtractWindows | wg.InsertWindows,
    source: Layout | None = None,
    *,
    offsets: Layout | None = None,
    **terms: Any,
) -> Plan:
    """The plan of windows as a descriptor says, or out of another layout, on a device of usual limits.

    `offsets` is the layout of those in GPU memory, of 4 bytes each.
    """
    if isinstance(asked, wg.InsertWindows):
        planner = insert_windows_planner(asked.insertion)
    else:
        planner = extract_windows_planner(asked.windows)
    sides = source or asked.input.layout, asked.output.layout
    terms["table"] = Table(offsets, 4) if offsets else None
    limits = Limits(2**30, 32, 2**16, profile)
    return plan_anew(planner, *sides, asked.input.dtype.itemsize, Terms(limits, **terms))


def costing(profile: Profile, works: Mapping[str, tuple[float, float]], **fixed: float) -> Profile:
    """A profile with seconds an invocation and bytes a second for some classes; dispatches cost nothing."""
    own = {CostClass.parsed(name): Work(*work) for name, work in works.items()}
    known = profile.costs.works
    assert own.keys() <= known.keys()
    changed: Any = {"dispatch_s": 0.0, **fixed}
    return replace(profile, costs=replace(profile.costs, works={**known, **own}, **changed))

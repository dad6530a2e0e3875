"""Plans of problems that a test states: copies, gradients and windows, by chosen costs and limits."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from math import inf
from typing import Any, TypeAlias

import numpy as np
import pytest
from helpers import DTYPES, WIDTHS

import wgslice as wg
from bench.window_probes import window_probes
from wgslice.layout import Layout
from wgslice.operators.windows_arguments import OnGpu, extracted_windows, inserted_windows, repeated_bytes
from wgslice.plans.choose import RUNS_OF_A_PIPELINE, WORTHWHILE, seconds_of
from wgslice.plans.facade import (
    Asked,
    PlanContext,
    Problem,
    Table,
    Windows,
    copy_dispatches,
    copying,
    extraction,
    gradient,
    insertion,
    layers_of,
    plan,
)
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import (
    IN_BLOCKS,
    ClassCost,
    CostClass,
    Costs,
    Limits,
    Profile,
    copy_class,
    pattern,
    step_of,
)
from wgslice.plans.steps import BufferCopies, OnGrid, Span, dispatch_of
from wgslice.shaders import override_constants

Known: TypeAlias = Profile | Limits  # of a device
Price: TypeAlias = tuple[float, float]  # seconds an invocation, bytes a second

USUAL = Limits(binding_nbytes=2**30, binding_alignment_nbytes=32, workgroups=65535)
HEADS_AND_TAILS = {Kernel.ROW_ENDS, Kernel.SUBWORD_ENDS}  # of rows that other kernels leave, chosen with them

CHEAP, DEAR, DEAREST = (0.0, 1e30), (1e-6, 1e6), (1e-3, 1e3)
LEAVING_ENDS = {Kernel.SHIFTED_ROWS, Kernel.SHIFTED_GRID, Kernel.PIXELS}
SOURCES = [
    Layout.of((2,), (stride,)) for stride in (1, 2, 4, 64)
]  # contiguous, strided within a line, beyond


# cost models


def priced(
    profile: Profile,
    price: Callable[[Kernel, bool], Price],
    *,
    dispatch_s: float,
    copy_s: float = 1.0,
    copy_bytes_per_s: float = 1e6,
    clear_bytes_per_s: float = 1e6,
) -> Profile:
    """A profile whose cost classes have the price of their kernel, and of whether it takes pairs as rows."""
    works = {
        copy_class(kernel, width, paired, pattern(source, width), step_of(source)): price(kernel, paired)
        for kernel in Kernel
        for source in (SOURCES[:3] if kernel in IN_BLOCKS else SOURCES)
        for width in WIDTHS
        for paired in (False, True)
    }
    works |= {probe.work: CHEAP if probe.ends else price(probe.kernel, False) for probe in window_probes()}
    classes = {kind: ClassCost(*prices) for kind, prices in works.items()}
    costs = Costs("a test", 0, dispatch_s, copy_s, copy_bytes_per_s, clear_bytes_per_s, 0, classes)
    return replace(profile, costs=costs)


def ranking(profile: Profile, *kernels: Kernel, copies: bool = False) -> Profile:
    """A profile that chooses the first of some kernels that apply, or buffer copies before all."""

    def price(kernel: Kernel, _: bool) -> Price:
        if kernel in HEADS_AND_TAILS:
            return CHEAP
        return (0.0, 10.0 ** (30 - 4 * kernels.index(kernel))) if kernel in kernels else DEAR

    if copies:
        return priced(profile, price, dispatch_s=0, copy_s=0, copy_bytes_per_s=1e40)
    return priced(profile, price, dispatch_s=0)


@cache
def favouring(profile: Profile, *kernels: Kernel) -> Profile:
    """A profile on which some kernels of windows cost what they do, and everything else much."""
    costs, dearest = profile.costs, ClassCost(*DEAREST)
    works = {kind: work if kind.kernel in kernels else dearest for kind, work in costs.classes.items()}
    return replace(profile, costs=replace(costs, classes=works, dispatch_s=1e-9, copy_s=1.0))


@cache
def preferring(
    profile: Profile, *kernels: Kernel, paired: bool | None = None, copies: bool = False
) -> Profile:
    """A profile on which what some kernels do costs next to nothing, and everything else much.

    `paired` says whether that is so of two dimensions as a row, or else of one; None, of both. `copies` says
    whether buffer copies and clears cost nothing.
    """

    def price(kernel: Kernel, pairs: bool) -> Price:
        completing = kernel in HEADS_AND_TAILS and not LEAVING_ENDS.isdisjoint(kernels)
        chosen = kernel in kernels and paired in (None, pairs)
        return CHEAP if completing or chosen else DEAR

    if copies:
        return priced(
            profile, price, dispatch_s=1e-9, copy_s=0, copy_bytes_per_s=1e30, clear_bytes_per_s=1e30
        )
    return priced(profile, price, dispatch_s=1e-9)


def costing(profile: Profile, works: Mapping[str, Price | None], **fixed: float) -> Profile:
    """A profile with prices of its own for some cost classes, None for unknown; dispatches cost nothing."""
    own = {CostClass.parsed(name): price for name, price in works.items()}
    known = profile.costs.classes
    assert own.keys() <= known.keys()
    merged = {**known, **{kind: ClassCost(*price) for kind, price in own.items() if price is not None}}
    classes = {kind: work for kind, work in merged.items() if own.get(kind, CHEAP) is not None}
    changed: Any = {"dispatch_s": 0.0, **fixed}
    return replace(profile, costs=replace(profile.costs, classes=classes, **changed))


# plans; `context` has what is known of the buffers, with the names of the plan context's fields


def planned(asked: Asked, known: Known, context: Any) -> wg.Plan:
    return plan(asked, known if isinstance(known, Limits) else replace(USUAL, profile=known), **context)


def planned_copy(
    known: Known, source: Layout, target: Layout | None = None, width: int = 4, **context: Any
) -> wg.Plan:
    """The plan of a copy of elements of `width` bytes, to a packed target by default."""
    return planned(copying(source, target or Layout.packed(source.sizes), width), known, context)


def planned_gradient(
    known: Known,
    source: Layout,
    target: Layout,
    window: tuple[range, ...],
    width: int = 4,
    *,
    zeroed: bool = False,
    **context: Any,
) -> wg.Plan:
    """The plan of a copy to indices of a target and of zeros to the others, unless those are zero already."""
    return planned(gradient(source, target, width, window, zeroed=zeroed), known, context)


def planned_extraction(
    known: Known,
    source: Layout,
    target: Layout | None,
    width: int,
    offsets: Any,
    sizes: Sequence[int],
    strides: Any = None,
    fill: Any = None,
    *,
    on_gpu: bool = False,
    **context: Any,
) -> wg.Plan:
    """The plan of windows of a source, to a packed batch by default; `on_gpu`: at device-resident offsets."""
    shape = np.shape(offsets)
    filling = None if fill is None else repeated_bytes(fill, np.dtype(DTYPES[width]))
    table = OnGpu(shape, np.dtype("int32")) if on_gpu else offsets
    windows = extracted_windows(table, source.sizes, sizes, strides, filling, None, width)
    assert isinstance(windows, Windows)
    context["table"] = Table(Layout.packed(shape), 4) if on_gpu else None
    batch = target or Layout.packed((len(offsets), *windows.sizes))
    return planned(extraction(source, batch, width, windows), known, context)


def planned_insertion(
    known: Known,
    source: Layout,
    target: Layout,
    width: int,
    offsets: Any,
    strides: Any = None,
    *,
    on_gpu: bool = False,
    outside: Any = "drop",
    **context: Any,
) -> wg.Plan:
    """The plan of a batch of windows put into a target, of which later ones win where some overlap."""
    shape = np.shape(offsets)
    table = OnGpu(shape, np.dtype("int32")) if on_gpu else offsets
    windows = inserted_windows(table, source.sizes, target.sizes, strides, outside)
    context["table"] = Table(Layout.packed(shape), 4) if on_gpu else None
    return planned(insertion(source, target, width, windows), known, context)


def planned_windows(
    known: Known,
    asked: wg.ExtractWindows | wg.InsertWindows,
    *,
    source: Layout | None = None,
    offsets: Layout | None = None,
    **context: Any,
) -> wg.Plan:
    """The plan of windows as a descriptor says, or out of another layout.

    `offsets` is the layout of device-resident ones, of 4 bytes each.
    """
    sides = source or asked.input.layout, asked.output.layout
    context["table"] = Table(offsets, 4) if offsets else None
    return planned(Asked(asked.planner, *sides, asked.input.dtype.itemsize), known, context)


def planned_by_kernel(
    kernel: Kernel,
    source: Layout,
    target: Layout,
    width: int,
    known: Known,
    nbytes: tuple[int, int],
    *,
    paired: bool = False,
    completed: bool = False,
) -> wg.Plan:
    """A plan of one dispatch of a kernel, whether it applies or not, that binds `nbytes` of each side.

    `completed`: heads and tails of rows that it leaves have a dispatch of their own.
    """
    limits = known if isinstance(known, Limits) else replace(USUAL, profile=known)
    bindings = Span(0, nbytes[0]), Span(0, nbytes[1])
    steps = [dispatch_of(kernel, source, target, width, bindings, limits, "a test", paired)]
    if completed:
        problem = Problem(source, target, width, PlanContext(limits))
        problem.bindings = bindings
        steps = [*copy_dispatches(kernel, "a test", paired, problem)]
    return wg.Plan(target.size * width, width, width, source, target, tuple(steps))


# what is planned


def disjoint_sets(offsets: Any, sizes: Sequence[int], shape: tuple[int, ...]) -> list[list[int]]:
    """The windows that are inserted together, set after set, where windows overlap."""
    windows = inserted_windows(offsets, (len(offsets), *sizes), shape, None)
    assert isinstance(windows, Windows)
    found = layers_of(windows, windows.numbers)
    assert found is not None
    return [each.tolist() for each in found]


def dispatches_of(plan: wg.Plan) -> list[Any]:
    return [step for step in plan.steps if isinstance(step, OnGrid)]


def only_dispatch(plan: wg.Plan) -> Any:
    """The one step of a plan, which is a dispatch."""
    (step,) = plan.steps
    assert isinstance(step, OnGrid)
    return step


def kernels_of(plan: wg.Plan) -> list[Kernel]:
    return [step.kernel for step in dispatches_of(plan)]


def names_of(plan: wg.Plan) -> list[str]:
    return [step.name for step in plan.steps]


def buffer_copies_of(plan: wg.Plan) -> list[BufferCopies]:
    return [step for step in plan.steps if isinstance(step, BufferCopies)]


def constants_of(step: OnGrid) -> dict[str, int]:
    """The constants that the kernel of a step is compiled with."""
    return override_constants(step)


def check_choices(plan: wg.Plan) -> None:
    """The estimate of each strategy is that of its steps, and the least one is chosen."""
    assert plan.costs is not None
    compiling_s = plan.costs.pipeline_s / RUNS_OF_A_PIPELINE
    chosen, *others = plan.choices
    assert plan.steps == chosen.steps
    assert plan.seconds == pytest.approx(plan.costs.submission_s + chosen.seconds)
    built_s = {each.name: each.seconds + compiling_s for each in others}
    assert len({chosen.name, *built_s}) == len(plan.choices)
    # What has a bound alone was not built, and may be found to exceed a dispatch when it is.
    built = {each.name for each in plan.others if not each.is_bound}
    assert built <= built_s.keys() <= {each.name for each in plan.others}
    for other in plan.others:
        assert other.seconds <= built_s.get(other.name, inf) * (1 + 1e-9)
    for each in plan.choices:
        assert chosen.seconds <= (each.seconds + compiling_s) / WORTHWHILE
        assert each.seconds == pytest.approx(seconds_of(each.steps, plan.costs))

"""Measure a machine's cost parameters and cost classes with a few copies, and scale a cost model to them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import ceil, inf, isqrt
from time import perf_counter
from types import MappingProxyType
from typing import Any

from wgslice.calibration.verdict import ITEMSIZES, geometric_mean, typical_slices
from wgslice.gpu.device import Device, shipped_profile
from wgslice.gpu.protocols import Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.plans.choose import Step, seconds_of
from wgslice.plans.copy import plan_copy
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext
from wgslice.plans.profiles import UNCALIBRATED, ClassCost, CostClass, Costs, Limits, Profile
from wgslice.plans.steps import BufferCopies, Dispatch, Span, dispatch_of

# Cost parameters by name: label, factor from the SI unit to the printed one, that unit, and a legend.
CONSTANTS = {
    "submission_s": ("time per submission", 1e6, "us", "submit one command buffer and wait for it"),
    "dispatch_s": ("time per dispatch", 1e6, "us", "launch one kernel, without its bytes"),
    "copy_s": ("time per buffer copy", 1e6, "us", "issue one buffer copy, without its bytes"),
    "copy_bytes_per_s": ("buffer copy bandwidth", 1e-9, "GB/s", "bytes written by one large buffer copy"),
    "shader_bytes_per_s": ("shader bandwidth", 1e-9, "GB/s", "bytes written by the kernel rows"),
}

ROW_NBYTES, WORD_NBYTES = 4096, 4
MANY_COPIES, SMALL_NBYTES = 128, 256
MIN_TICKS = 100  # of the clock, that a timing lasts at least: a browser's clock may tick every 100 us
MIN_S = 1e-9  # lower bound of a difference of two timings, so that noise makes no parameter zero

ROUNDS, CLASS_ROUNDS = 24, 6
# Bytes copied on software adapters, whose caches are small; and on GPUs.
LARGE_NBYTES = {True: 2**23, False: 2**27}
SLICED_NBYTES = {True: 2**20, False: 2**25}  # of a matrix
EXTENT_STEP = 64  # elements, of which a matrix has a multiple a side: its rows are whole vectors of 16 bytes
MIN_KERNEL_S = 1e-3  # estimated, that a timing of a cost class lasts at least besides overheads
MOST_OF_A_CLASS = 4  # slices that a cost class is timed by
LONG_S = 5e-3  # timings that take longer are made in half of the rounds

Report = Callable[[float, str], None]


def with_constants(
    profile: Profile,
    measured: Mapping[str, float],
    date: str,
    factors: Mapping[CostClass, float] = MappingProxyType({}),
) -> Profile:
    """Return the profile with measured constants, and cost classes scaled by factors of their seconds.

    A class without a factor has the mean of its kernel's; a kernel without one has that of the shader
    bandwidth, which also stays that of the class by which it is defined.
    """
    costs, known = profile.costs, constants_of(profile)
    overall = known["shader_bytes_per_s"] / measured["shader_bytes_per_s"]
    found = {**factors, rows_dispatch(0, Limits(profile=profile)).work: overall}
    by_kernel: dict[Kernel, list[float]] = {}
    for kind, factor in factors.items():
        by_kernel.setdefault(kind.kernel, []).append(factor)
    means = {kernel: geometric_mean(values) for kernel, values in by_kernel.items()}
    classes = {}
    for kind, work in costs.classes.items():
        factor = found.get(kind, means.get(kind.kernel, overall))
        classes[kind] = ClassCost(work.invocation_s * factor, work.bytes_per_s / factor)
    changed: dict[str, Any] = {name: value for name, value in measured.items() if hasattr(costs, name)}
    faster = measured["copy_bytes_per_s"] / known["copy_bytes_per_s"]
    changed["clear_bytes_per_s"] = costs.clear_bytes_per_s * faster
    shipped = costs.origin.removesuffix(f", {UNCALIBRATED}")
    origin = f"{shipped}, scaled to what `wgslice tune` measured on {date}"
    return replace(profile, costs=replace(costs, origin=origin, classes=classes, **changed))


def constants_of(profile: Profile) -> dict[str, float]:
    """Return all constants of the profile's cost model."""
    row_s = kernel_seconds([rows_dispatch(ROW_NBYTES, Limits(profile=profile))], profile.costs)
    return {name: getattr(profile.costs, name, ROW_NBYTES / row_s) for name in CONSTANTS}


def rows_dispatch(nbytes: int, limits: Limits) -> Dispatch:
    """Return a dispatch of the kernel `rows` that copies contiguous rows of 4 KiB, at least one."""
    rows = max(nbytes // ROW_NBYTES, 1)
    layout, span = Layout.packed((rows, ROW_NBYTES // WORD_NBYTES)), Span(0, rows * ROW_NBYTES)
    return dispatch_of(Kernel.ROWS, layout, layout, WORD_NBYTES, (span, span), limits, "calibration")


def buffer_copies(nbytes: int, count: int) -> BufferCopies:
    """Return `count` buffer copies of adjacent blocks of `nbytes`."""
    blocks = Layout.of((count,), (nbytes,))
    return BufferCopies(blocks, blocks, nbytes)


def measure_constants(device: Device, report: Report, rounds: int = ROUNDS) -> dict[str, float]:
    """Measure all constants; calls `report` with the fraction done and the name of the next copy."""
    nbytes = min(LARGE_NBYTES[device.adapter.software], device.limits.binding_nbytes // 4)
    steps: list[Step] = [
        *(rows_dispatch(nbytes, device.limits), rows_dispatch(0, device.limits), buffer_copies(nbytes, 1)),
        *(buffer_copies(SMALL_NBYTES, MANY_COPIES), buffer_copies(SMALL_NBYTES, 1)),
    ]
    buffer_nbytes = max(nbytes, MANY_COPIES * SMALL_NBYTES)
    best = best_seconds(device, [[step] for step in steps], buffer_nbytes, rounds, report)
    large_s, small_s, large_copy_s, many_copies_s, one_copy_s = best
    copy_s = max(many_copies_s - one_copy_s, MIN_S) / (MANY_COPIES - 1)
    submission_s = max(one_copy_s - copy_s, MIN_S)
    return {
        "submission_s": submission_s,
        "dispatch_s": max(small_s - submission_s, MIN_S),
        "copy_s": copy_s,
        "copy_bytes_per_s": (nbytes - SMALL_NBYTES) / max(large_copy_s - one_copy_s, MIN_S),
        "shader_bytes_per_s": (nbytes - ROW_NBYTES) / max(large_s - small_s, MIN_S),
    }


def measure_factors(device: Device, constants: Mapping[str, float], report: Report) -> dict[CostClass, float]:
    """Measure seconds of cost classes over the shipped ones, by every kernel that copies a typical slice."""
    profile = shipped_profile(device.adapter)
    nbytes = min(SLICED_NBYTES[device.adapter.software], device.limits.binding_nbytes // 2)
    probes = probes_of(nbytes, replace(device.limits, profile=profile))
    best = best_seconds(device, probes, nbytes, CLASS_ROUNDS, report)
    ratios: dict[CostClass, list[float]] = {}
    for dispatches, measured_s in zip(probes, best, strict=True):
        kernels_s = measured_s - constants["submission_s"] - len(dispatches) * constants["dispatch_s"]
        if kernels_s > measured_s / 2:  # otherwise overheads decide
            ratio = kernels_s / kernel_seconds(dispatches, profile.costs)
            ratios.setdefault(class_of(dispatches, profile.costs), []).append(ratio)
    return {kind: geometric_mean(values) for kind, values in ratios.items()}


def probes_of(nbytes: int, limits: Limits) -> list[list[Dispatch]]:
    """Return dispatches that copy typical slices, as often as kernels are estimated to take MIN_KERNEL_S."""
    costs, found, counts = limits.profile.costs, list[list[Dispatch]](), Counter[CostClass]()
    for itemsize in ITEMSIZES:
        for source in typical_slices(isqrt(nbytes // itemsize) // EXTENT_STEP * EXTENT_STEP, itemsize):
            plan = plan_copy(source, Layout.packed(source.sizes), itemsize, PlanContext(limits))
            for choice in plan.choices:
                dispatches = [step for step in choice.steps if isinstance(step, Dispatch)]
                if len(dispatches) < len(choice.steps):
                    continue
                kind = class_of(dispatches, costs)
                if counts[kind] < MOST_OF_A_CLASS:
                    counts[kind] += 1
                    found.append(dispatches * ceil(MIN_KERNEL_S / kernel_seconds(dispatches, costs)))
    return found


def class_of(dispatches: Sequence[Dispatch], costs: Costs) -> CostClass:
    """Return the cost class of the dispatch that is estimated to take longest."""
    return max(dispatches, key=lambda step: kernel_seconds([step], costs)).work


def kernel_seconds(dispatches: Sequence[Dispatch], costs: Costs) -> float:
    """Estimate the seconds of kernels without those to launch them."""
    return seconds_of(dispatches, costs) - len(dispatches) * costs.dispatch_s


def best_seconds(
    device: Device, each: Sequence[Sequence[Step]], nbytes: int, rounds: int, report: Report
) -> list[float]:
    """Return the least seconds of several lists of steps, in rounds over all, between buffers of `nbytes`."""
    sink().check_runs("copies are timed")
    places = [Place(sink().create_buffer(device, nbytes)) for _ in range(2)]
    empty, least_s = Layout.packed((0,)), MIN_TICKS * tick_s()
    plans = [Plan(0, 1, 1, empty, empty, tuple(steps)) for steps in each]
    best = [inf] * len(plans)
    for done, number in product(range(rounds), range(len(plans))):
        if done < rounds / 2 or best[number] < LONG_S:
            report((done + number / len(plans)) / rounds, plans[number].steps[0].name)
            best[number] = min(best[number], seconds(device, plans[number], places, least_s))
    report(1, "")
    return best


def seconds(device: Device, plan: Plan, places: list[Place], least_s: float) -> float:
    """Return the seconds to record, submit and wait for a plan: the mean of as many as take `least_s`."""
    device.pipelines.prepare(plan)
    start, elapsed_s, count = perf_counter(), 0.0, 0
    while not count or elapsed_s < least_s:
        recorder = Recorder(device)
        recorder.add(plan, places)
        recorder.submit()
        device.synchronize()
        elapsed_s, count = perf_counter() - start, count + 1
    return elapsed_s / count


def tick_s() -> float:
    """Return the shortest of a few steps of the clock."""
    ticks = []
    for _ in range(5):
        begun = now = perf_counter()
        while now == begun:
            now = perf_counter()
        ticks.append(now - begun)
    return min(ticks)

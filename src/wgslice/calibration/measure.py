"""Measure a machine's cost parameters with a few copies, and scale the shipped cost model to them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from math import inf
from time import perf_counter, sleep
from typing import Any

from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.plans.choose import Step, seconds_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import UNCALIBRATED, ClassCost, Limits, Profile
from wgslice.plans.steps import BufferCopies, Dispatch, Span, dispatch_of

# Cost parameters by name: label, factor from the SI unit to the printed one, that unit, and a legend.
CONSTANTS = {
    "submission_s": ("time per submission", 1e6, "us", "submit one command buffer and wait for it"),
    "dispatch_s": ("time per dispatch", 1e6, "us", "launch one kernel, without its bytes"),
    "copy_s": ("time per buffer copy", 1e6, "us", "issue one buffer copy, without its bytes"),
    "copy_bytes_per_s": ("buffer copy bandwidth", 1e-9, "GB/s", "bytes written by one large buffer copy"),
    "shader_bytes_per_s": ("shader bandwidth", 1e-9, "GB/s", "bytes written by a kernel; scales all kernels"),
}
COMPARED = ("copy_s", "shader_bytes_per_s")  # measured on software adapters when a device is made

# Ratios within this factor may be noise of a busy machine; processors differ by more: lavapipe of Mesa 22.3
# copies 1.05 GB/s by shader on two cores of an AMD EPYC (Zen 3) and 4.7 GB/s on two cores of a Zen 4.
FACTOR = 3.0

ROW_NBYTES, WORD_NBYTES = 4096, 4
TYPICAL_NBYTES = 2**20  # copied by the dispatch that defines the shader bandwidth of a cost model

MANY_COPIES, SMALL_NBYTES = 128, 256
MIN_TICKS = 100  # of the clock, that a timing lasts at least: a browser's clock may tick every 100 us
MIN_S = 1e-9  # lower bound of a difference of two timings, so that noise makes no parameter zero

# A comparison takes at most MAX_S after the compilation of one pipeline; other processes may be running.
COMPARED_NBYTES, COMPARED_ROUNDS, PAUSE_S, MAX_S = 2**20, 5, 0.003, 0.03
MIN_ROUNDS = 2  # a single round does not separate noise from the machine

TUNED_ROUNDS = 24
TUNED_NBYTES = {True: 2**23, False: 2**27}  # on software adapters, whose caches are small; on GPUs


def with_constants(profile: Profile, measured: Mapping[str, float], date: str) -> Profile:
    """Return the profile with all constants, or with those of a comparison that differ beyond FACTOR."""
    costs, known = profile.costs, constants_of(profile)
    ratios = {name: value / known[name] for name, value in measured.items()}
    change = f"scaled to what `wgslice tune` measured on {date}"
    if measured.keys() != CONSTANTS.keys():
        ratios = {name: ratio for name, ratio in ratios.items() if differs(ratio)}
        if not ratios:
            return profile
        factors = [f"{CONSTANTS[name][0]} x {ratio:.2g}" for name, ratio in ratios.items()]
        change = f"on this machine {', '.join(factors)}"
    faster = ratios.get("shader_bytes_per_s", 1.0)
    classes = {
        name: ClassCost(work.invocation_s / faster, work.bytes_per_s * faster)
        for name, work in costs.classes.items()
    }
    changed: dict[str, Any] = {name: measured[name] for name in ratios if hasattr(costs, name)}
    changed["clear_bytes_per_s"] = costs.clear_bytes_per_s * ratios.get("copy_bytes_per_s", 1.0)
    origin = f"{costs.origin.removesuffix(f', {UNCALIBRATED}')}, {change}"
    costs = replace(costs, origin=origin, classes=classes, **changed)
    return replace(profile, costs=costs)


def differs(ratio: float) -> bool:
    """Whether a measured constant over the shipped one is beyond what a busy machine may make of it."""
    return not 1 / FACTOR <= ratio <= FACTOR


def constants_of(profile: Profile) -> dict[str, float]:
    """Return all constants of the profile's cost model."""
    limits = Limits(profile=profile)
    small, large = (seconds_of([rows_dispatch(n, limits)], profile.costs) for n in (0, TYPICAL_NBYTES))
    shader_bytes_per_s = (TYPICAL_NBYTES - ROW_NBYTES) / (large - small)
    return {name: getattr(profile.costs, name, shader_bytes_per_s) for name in CONSTANTS}


def rows_dispatch(nbytes: int, limits: Limits) -> Dispatch:
    """Return a dispatch of the kernel `rows` that copies contiguous rows of 4 KiB, at least one."""
    rows = max(nbytes // ROW_NBYTES, 1)
    layout, span = Layout.packed((rows, ROW_NBYTES // WORD_NBYTES)), Span(0, rows * ROW_NBYTES)
    return dispatch_of(Kernel.ROWS, layout, layout, WORD_NBYTES, (span, span), limits, "calibration")


def buffer_copies(nbytes: int, count: int) -> BufferCopies:
    """Return `count` buffer copies of adjacent blocks of `nbytes`."""
    blocks = Layout.of((count,), (nbytes,))
    return BufferCopies(blocks, blocks, nbytes)


def compare_constants(device: Device) -> dict[str, float]:
    """Measure two constants of a new device; empty if limits are small or timings say nothing.

    If one differs from the device's cost model, measures again: of both values and the model's, the median
    counts, so that a load which only one of the measurements met changes nothing.
    """
    known, first = constants_of(device.limits.profile), compared_once(device)
    if not any(differs(first[name] / known[name]) for name in first):
        return first
    second = compared_once(device)
    return {name: sorted((first[name], value, known[name]))[1] for name, value in second.items()}


def compared_once(device: Device) -> dict[str, float]:
    """Measure the constants of a comparison; empty if limits, the clock or timings do not allow it."""
    limits = device.limits
    workgroups = rows_dispatch(COMPARED_NBYTES, limits).share.workgroups
    if limits.binding_nbytes < COMPARED_NBYTES or max(workgroups) > limits.workgroups:
        return {}
    if MIN_TICKS * tick_s() > MAX_S / 10:
        return {}
    best = measure(device, COMPARED_NBYTES, COMPARED_ROUNDS, pause_s=PAUSE_S, max_s=MAX_S)
    differences = (("many copies", "one copy"), ("large dispatch", "small dispatch"))
    if not best or any(best[longer] - best[shorter] <= MIN_S for longer, shorter in differences):
        return {}
    return {name: constants(best, COMPARED_NBYTES)[name] for name in COMPARED}


def measure_constants(device: Device, report: Callable[[float, str], None]) -> dict[str, float]:
    """Measure all constants; calls `report` with the fraction done and the name of the next copy."""
    nbytes = min(TUNED_NBYTES[device.adapter.software], device.limits.binding_nbytes // 4)
    return constants(measure(device, nbytes, TUNED_ROUNDS, report=report), nbytes)


def measure(
    device: Device,
    nbytes: int,
    rounds: int,
    *,
    pause_s: float = 0.0,
    max_s: float = inf,
    report: Callable[[float, str], None] = lambda _, __: None,
) -> dict[str, float]:
    """Return the best seconds of copies, in rounds of at most `max_s`; empty after fewer than MIN_ROUNDS."""
    sink().check_runs("copies are timed")
    steps: dict[str, Step] = {
        "large dispatch": rows_dispatch(nbytes, device.limits),
        "small dispatch": rows_dispatch(0, device.limits),
        "one copy": buffer_copies(SMALL_NBYTES, 1),
        "many copies": buffer_copies(SMALL_NBYTES, MANY_COPIES),
        "large copy": buffer_copies(nbytes, 1),
    }
    empty = Layout.packed((0,))
    plans = {name: Plan(0, 1, 1, empty, empty, (step,)) for name, step in steps.items()}
    places = [Place(sink().create_buffer(device, max(nbytes, MANY_COPIES * SMALL_NBYTES))) for _ in range(2)]
    report(0, "compilation")
    seconds(device, plans["large dispatch"], places)
    least_s = MIN_TICKS * tick_s()
    best, begun = dict.fromkeys(plans, inf), perf_counter()
    for number in range(rounds):
        if number:
            spent_s = perf_counter() - begun
            if spent_s * (number + 1) / number + pause_s > max_s:
                return best if number >= MIN_ROUNDS else {}
            sleep(pause_s)
        for name, plan in plans.items():
            report(number / rounds, name)
            best[name] = min(best[name], seconds(device, plan, places, least_s))
    report(1, "")
    return best


def constants(best: Mapping[str, float], nbytes: int) -> dict[str, float]:
    """Compute all constants from the best seconds of copies of up to `nbytes`."""
    one_copy_s, small_s = best["one copy"], best["small dispatch"]
    copy_s = max(best["many copies"] - one_copy_s, MIN_S) / (MANY_COPIES - 1)
    submission_s = max(one_copy_s - copy_s, MIN_S)
    return {
        "submission_s": submission_s,
        "dispatch_s": max(small_s - submission_s, MIN_S),
        "copy_s": copy_s,
        "copy_bytes_per_s": (nbytes - SMALL_NBYTES) / max(best["large copy"] - one_copy_s, MIN_S),
        "shader_bytes_per_s": (nbytes - ROW_NBYTES) / max(best["large dispatch"] - small_s, MIN_S),
    }


def seconds(device: Device, plan: Plan, places: list[Place], least_s: float = 0.0) -> float:
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

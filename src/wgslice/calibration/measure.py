"""Measure the constants of a device: a few copies, timed in rounds of which the best counts."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection
from math import inf
from time import perf_counter, sleep

from wgslice.calibration.constants import COMPARED, CONSTANTS, ROW_NBYTES, shader_step
from wgslice.gpu.capture import refuse_in_capture
from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import Place
from wgslice.gpu.recording import Recorder
from wgslice.layout import Layout
from wgslice.plans.plan import Plan, Step
from wgslice.plans.steps import BufferCopies

__all__ = ["compare_constants", "measure_constants"]

MANY_COPIES, SMALL_NBYTES = 128, 256
LEAST_S = 1e-9  # of any difference of two timings, so that noise makes nothing free

# A comparison: at most MOST_S beyond the compilation of one pipeline, on a machine that others may use too.
COMPARED_NBYTES, COMPARED_ROUNDS, PAUSE_S, MOST_S = 2**20, 5, 0.003, 0.03
LEAST_ROUNDS = 2  # of fewer, the best one does not tell noise from the machine

TUNED_ROUNDS = 24
TUNED_NBYTES = {True: 2**23, False: 2**27}  # on software adapters, whose caches are small; on GPUs


def compare_constants(device: Device) -> dict[str, float]:
    """Measure the constants that are compared when a device is made.

    Empty where the limits of the device do not hold the copies, or where a busy machine leaves no time for
    LEAST_ROUNDS or makes a difference of two timings vanish.
    """
    limits = device.limits
    workgroups = shader_step(COMPARED_NBYTES, limits).share.workgroups
    if limits.binding_nbytes < COMPARED_NBYTES or max(workgroups) > limits.workgroups:
        return {}
    found = measure(device, COMPARED, COMPARED_NBYTES, COMPARED_ROUNDS, pause_s=PAUSE_S, most_s=MOST_S)
    vanished = found and (
        found["copy_s"] * (MANY_COPIES - 1) < 2 * LEAST_S  # LEAST_S but for rounding
        or (COMPARED_NBYTES - ROW_NBYTES) / found["shader_bytes_per_s"] < 2 * LEAST_S
    )
    return {} if vanished else found


def measure_constants(device: Device, report: Callable[[float, str], None]) -> dict[str, float]:
    """Measure all constants; `report` is called with the share that is done and what is measured next."""
    nbytes = min(TUNED_NBYTES[device.adapter.software], device.limits.binding_nbytes // 4)
    return measure(device, CONSTANTS, nbytes, TUNED_ROUNDS, report=report)


def measure(
    device: Device,
    names: Collection[str],
    nbytes: int,
    rounds: int,
    *,
    pause_s: float = 0.0,
    most_s: float = inf,
    report: Callable[[float, str], None] = lambda _, __: None,
) -> dict[str, float]:
    """Time copies of up to `nbytes` in rounds, of which `most_s` may leave out the last ones.

    Returns nothing where it leaves fewer than LEAST_ROUNDS.
    """
    refuse_in_capture("copies are timed")
    steps: dict[str, Step] = {
        "large dispatch": shader_step(nbytes, device.limits),
        "small dispatch": shader_step(0, device.limits),
        "one copy": copies(SMALL_NBYTES, 1),
        "many copies": copies(SMALL_NBYTES, MANY_COPIES),
    }
    if "copy_bytes_per_s" in names:
        steps["large copy"] = copies(nbytes, 1)
    nowhere = Layout.packed((0,))
    plans = {name: Plan(0, 1, 1, nowhere, nowhere, (step,)) for name, step in steps.items()}
    places = [Place(device.create_buffer(max(nbytes, MANY_COPIES * SMALL_NBYTES))) for _ in range(2)]
    report(0, "compilation")
    seconds(device, plans["large dispatch"], places)
    best, begun = defaultdict[str, float](lambda: inf), perf_counter()
    for number in range(rounds):
        spent_s = perf_counter() - begun
        if number:
            if spent_s * (number + 1) / number + pause_s > most_s:
                if number < LEAST_ROUNDS:
                    return {}
                break
            sleep(pause_s)
        for name, plan in plans.items():
            report(number / rounds, name)
            best[name] = min(best[name], seconds(device, plan, places))
    report(1, "")
    copy_s = difference(best["many copies"], best["one copy"]) / (MANY_COPIES - 1)
    submission_s = difference(best["one copy"], copy_s)
    values = {
        "submission_s": submission_s,
        "dispatch_s": difference(best["small dispatch"], submission_s),
        "copy_s": copy_s,
        "copy_bytes_per_s": (nbytes - SMALL_NBYTES) / difference(best["large copy"], best["one copy"]),
        "shader_bytes_per_s": (nbytes - ROW_NBYTES)
        / difference(best["large dispatch"], best["small dispatch"]),
    }
    return {name: values[name] for name in names}


def difference(longer_s: float, shorter_s: float) -> float:
    """Subtract two timings."""
    return max(longer_s - shorter_s, LEAST_S)


def seconds(device: Device, plan: Plan, places: list[Place]) -> float:
    """Record and submit a plan, wait for it, and return the seconds that this took."""
    device.pipelines.prepare(plan)
    start = perf_counter()
    recorder = Recorder(device, device.create_encoder())
    recorder.add(plan, places)
    recorder.end()
    device.submit(recorder.encoder)
    device.synchronize()
    return perf_counter() - start


def copies(nbytes: int, count: int) -> BufferCopies:
    """Return buffer copies of adjacent pieces of `nbytes` each."""
    pieces = Layout.of((count,), (nbytes,))
    return BufferCopies(pieces, pieces, nbytes)

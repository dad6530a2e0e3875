"""Measure the cost classes of a device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from math import inf
from statistics import median
from time import perf_counter
from typing import TypeAlias

from bench.index_probes import IndexProbe
from bench.probes import FAR_NBYTES, FAR_RUN, Probe, probes
from bench.window_probes import SizedProbe, WindowProbe
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Place, handle_of
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import RUNNING
from wgslice.layout import Layout
from wgslice.plans.choose import Step, seconds_of
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import ClassCost, CostClass, Costs
from wgslice.plans.steps import BufferCopies, Clear, OnGrid, Span, dispatch_of

__all__ = ["Bench", "Timed", "time_all", "typical", "work_of"]

Timed: TypeAlias = tuple[
    CostClass | str, int
]  # a class of work, or what all work needs, and which of its copies

PROBE_NBYTES = 2**23  # that a class of work writes: beyond the caches that a core has for itself
FEWER = 8  # times fewer bytes for what is slow
LONG_S = 0.01  # what a copy may be expected to take with all of its bytes
FIXED_EVERY = 22  # cost classes, the parts of every copy are timed too
SMALL_REPEATS = 8  # of what takes hardly more than its submission, which pays for what ran before it
MAX_S = 15.0  # seconds after which no round is begun or continued
MAX_OF_FIRST = 1.2  # times as long for the first one, which may have to compile all kernels
MANY_COPIES, SMALL_NBYTES = 256, 256
MAX_BESIDE = 0.9  # of an invocation's time that its bytes do not take
MIN_S = 1e-12  # an invocation takes some time, whatever noise says


def typical(rounds: Sequence[Mapping[Timed, float]]) -> dict[Timed, float]:
    """Return the median of each timing over rounds, after dividing each round by its load.

    The load of a round is the median ratio of its timings to their medians. The last round may be partial.
    """
    middle = {timed: median(each[timed] for each in rounds if timed in each) for timed in rounds[0]}
    normalized = []
    for each in rounds:
        load = median(seconds / middle[timed] for timed, seconds in each.items())
        normalized.append({timed: seconds / load for timed, seconds in each.items()})
    return {timed: median(each[timed] for each in normalized if timed in each) for timed in middle}


def time_all(device: Device, known: Costs) -> Costs:
    """Time every cost class.

    The known cost model decides the bytes of each class. The last classes are missing if compiling all
    kernels leaves no time for them.
    """
    bench, wanted = Bench(device, known), list(probes())
    started = perf_counter()
    while perf_counter() - started < MAX_S:
        bench.rounds.append({})
        for number, probe in enumerate(wanted):
            spent = (perf_counter() - started) / MAX_S
            if spent > (1 if len(bench.rounds) > 1 else MAX_OF_FIRST):
                break
            if number % FIXED_EVERY == 0:
                bench.time_fixed(number)
            bench.time(probe)
    return bench.costs(f"measured here on {datetime.now(UTC):%Y-%m-%d}")


class Bench:
    """Two buffers, and the steps that are timed between them in rounds."""

    def __init__(self, device: Device, known: Costs) -> None:
        self.device = device
        self.known = known  # expected costs, which decide the bytes of each cost class
        profile = replace(device.limits.profile, costs=known)
        self.limits = replace(device.limits, profile=profile, disabled=frozenset())
        self.compiled: list[float] = []  # seconds
        self.steps: dict[CostClass, list[OnGrid]] = {}  # by cost class
        self.rounds: list[dict[Timed, float]] = []  # seconds
        self.nbytes = min(PROBE_NBYTES, device.limits.binding_nbytes // 8)
        # A source of which every fourth element is read, or some elements of many pages.
        self.buffer_nbytes = max(5 * self.nbytes, FAR_RUN * FAR_NBYTES)
        self.places = [Place(RUNNING.create_buffer(device, self.buffer_nbytes)) for _ in range(2)]
        encoder = device.new_encoder()
        for place in self.places:  # memory is allocated at the first write
            encoder.clear_buffer(handle_of(place.buffer), 0, self.buffer_nbytes)
        device.submit(encoder)

    def seconds(self, step: Step, repeats: int = 1) -> float:
        """The least time that a step takes, from the first command to the end of the wait."""
        plan = plan_of(step)
        self.device.pipelines.prepare(plan)
        best = inf
        for number in range(1 + repeats):  # the first one finds no code and no memory in the caches
            start = perf_counter()
            encoder = self.device.new_encoder()
            recorder = Recorder(self.device, encoder)
            recorder.add(plan, self.places)
            recorder.end()
            self.device.submit(encoder)
            self.device.synchronize()
            if number:
                best = min(best, perf_counter() - start)
        return best

    def compile(self, step: Step) -> float:
        """Return the seconds to make a step's pipeline, about 0 if it exists."""
        start = perf_counter()
        self.device.pipelines.prepare(plan_of(step))
        return perf_counter() - start

    def time_fixed(self, number: int) -> None:
        """Time the parts of every copy: submission, dispatch, buffer copies, pipeline."""
        limits, copied = self.device.limits, Layout.packed((64,))
        spans = Span(0, 256), Span(0, 256)
        smallest = dispatch_of(Kernel.ROWS, copied, copied, 4, spans, limits, "a probe")
        one = copies(SMALL_NBYTES, 1)
        steps: dict[str, tuple[Step, int]] = {
            "submission": (one, SMALL_REPEATS),
            "dispatch": (smallest, SMALL_REPEATS),
            "one copy": (one, 1),
            "many copies": (copies(SMALL_NBYTES, MANY_COPIES), 1),
            "large copy": (copies(self.buffer_nbytes, 1), 1),
            "clear": (Clear(0, self.buffer_nbytes), 1),
        }
        for name, (step, repeats) in steps.items():
            self.rounds[-1][name, number] = self.seconds(step, repeats)

    def time(self, probe: Probe | WindowProbe | SizedProbe | IndexProbe) -> None:
        """Time the copies of a cost class."""
        if probe.work not in self.steps:
            self.steps[probe.work] = self.steps_of(probe)
            self.compiled.append(self.compile(self.steps[probe.work][0]))
        for number, step in enumerate(self.steps[probe.work]):
            self.rounds[-1][probe.work, number] = self.seconds(step)

    def steps_of(self, probe: Probe | WindowProbe | SizedProbe | IndexProbe) -> list[OnGrid]:
        """Return the copies of a cost class; few bytes if it is expected to be slow."""
        many, few = (probe.steps(nbytes, self.limits) for nbytes in (self.nbytes, self.nbytes // FEWER))
        return [pair[seconds_of(pair[:1], self.known) > LONG_S] for pair in zip(many, few, strict=True)]

    def costs(self, origin: str) -> Costs:
        """Return the cost model from the timings."""
        took = typical(self.rounds)

        def fixed_s(name: str) -> float:
            return median(seconds for (timed, _), seconds in took.items() if timed == name)

        one_s = fixed_s("one copy")
        copy_s = max((fixed_s("many copies") - one_s) / (MANY_COPIES - 1), MIN_S)
        submission_s = max(fixed_s("submission") - copy_s, MIN_S)
        dispatch_s = max(fixed_s("dispatch") - submission_s, MIN_S)
        copied, cleared = (max(fixed_s(name) - one_s, MIN_S) for name in ("large copy", "clear"))
        works: dict[CostClass, ClassCost] = {}
        for name, steps in self.steps.items():
            points = [
                (step.invocation_nbytes, step.share.invocations, took[name, number])
                for number, step in enumerate(steps)
            ]
            works[name] = work_of(name, points, submission_s + dispatch_s, works)
        pipeline_s = median(seconds for seconds in self.compiled if seconds > max(self.compiled) / 10)
        fixed = (
            submission_s,
            dispatch_s,
            copy_s,
            self.buffer_nbytes / copied,
            self.buffer_nbytes / cleared,
            pipeline_s,
        )
        return Costs(origin, *fixed, works)


def work_of(
    work: CostClass,
    points: Sequence[tuple[float, int, float]],
    fixed_s: float,
    known: Mapping[CostClass, ClassCost],
) -> ClassCost:
    """Return the cost of an invocation and of a byte, without the seconds of every copy."""
    (nbytes, seconds), *short = (
        (nbytes, max(seconds - fixed_s, MIN_S) / invocations) for nbytes, invocations, seconds in points
    )
    if short and short[0][0] < nbytes:
        less_nbytes, less_s = short[0]
        invocation_s = (less_s * nbytes - seconds * less_nbytes) / (nbytes - less_nbytes)
    else:
        alike = known.get(work._replace(traits=("contiguous",)))
        invocation_s = alike.invocation_s if alike else 0.0
    invocation_s = min(max(invocation_s, 0.0), MAX_BESIDE * seconds)
    return ClassCost(invocation_s, nbytes / (seconds - invocation_s))


def plan_of(step: Step) -> Plan:
    """A plan of one step."""
    nowhere = Layout.packed((0,))
    return Plan(0, 1, 1, nowhere, nowhere, (step,))


def copies(nbytes: int, count: int) -> BufferCopies:
    """Return `count` buffer copies of adjacent blocks of `nbytes`."""
    places = Layout.of((count,), (nbytes,))
    return BufferCopies(places, places, nbytes)

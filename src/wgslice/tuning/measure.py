"""What work costs on a device: each class of it timed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from math import inf, prod
from statistics import median
from time import perf_counter

from wgslice.gpu.device import Device
from wgslice.gpu.first_look import plain_bytes_per_s
from wgslice.gpu.pipelines import Place
from wgslice.gpu.recording import Recorder
from wgslice.layout import Layout
from wgslice.plans.costs import Costs, Work
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan, Step
from wgslice.plans.shipped import shipped_for
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Span, dispatch_of
from wgslice.plans.terms import span_of
from wgslice.tuning.probes import Probe, probes
from wgslice.tuning.settling import settled

__all__ = ["Bench", "Report", "measure_costs"]

Report = Callable[[float, str], None]  # how much is done, of 1, and what is next

PROBE_NBYTES = 2**23  # that a class of work writes: beyond the caches that a core has for itself
MOST_TURNS = 8  # of all classes, so that a moment in which the machine is busy spoils none
REPEATS = 2  # of each in a turn, after one that finds caches cold; the best counts
LONG_S = 0.016  # what a probe may take; larger ones become smaller
MOST_S = 15.0  # after which a turn is not begun, or ended
MANY_COPIES, SMALL_NBYTES = 256, 256
MOST_BESIDE = 0.9  # of an invocation's time that its bytes do not take
LEAST_S = 1e-12  # an invocation takes some time, whatever noise says


def measure_costs(device: Device, report: Report) -> Costs:
    """Time every class of work; `report` is called before each, and when all is done."""
    report(0, "buffer copies")
    bench = Bench(device)
    started, wanted = perf_counter(), list(probes())
    for turn in range(MOST_TURNS):
        bench.time_fixed()
        for number, probe in enumerate(wanted):
            spent = (perf_counter() - started) / MOST_S
            if turn and spent > 1:
                break
            report(min(max(spent, number / len(wanted) / MOST_TURNS), 1), probe.work)
            bench.time(probe)
    report(1, "")
    adapter = device.adapter
    known = shipped_for(adapter.name, adapter.backend, adapter.driver, software=adapter.software)
    return settled(bench.costs(f"figures tuned here on {datetime.now(UTC):%Y-%m-%d}"), known)


class Bench:
    """Two buffers, and steps that are timed between them."""

    def __init__(self, device: Device, nbytes: int = PROBE_NBYTES) -> None:
        self.device = device
        self.compiled: list[float] = []  # seconds
        self.plain_bytes_per_s = 0.0
        self.best: dict[str, float] = {}  # seconds of what all work needs
        self.points: dict[str, list[tuple[float, int, float]]] = {}  # bytes, invocations, seconds
        self.nbytes = min(nbytes, device.limits.binding_nbytes // 8)
        self.room = 5 * self.nbytes  # of a source, every fourth element of which is read
        self.places = [Place(device.create_buffer(self.room)) for _ in range(2)]
        encoder = device.create_encoder()
        for place in self.places:  # memory that nobody has written may be no memory yet
            encoder.clear_buffer(place.buffer, 0, self.room)
        device.submit(encoder)

    def seconds(self, step: Step, repeats: int = REPEATS) -> float:
        """The least time that a step takes, from the first command to the end of the wait."""
        plan = plan_of(step)
        commands = self.device.pipelines.prepare(plan)
        best = inf
        for _ in range(1 + repeats):  # the first one finds no code and no memory in the caches
            start = perf_counter()
            encoder = self.device.create_encoder()
            recorder = Recorder(self.device, encoder)
            recorder.add(plan, commands, self.places)
            recorder.end()
            self.device.submit(encoder)
            self.device.synchronize()
            best = min(best, perf_counter() - start)
        return best

    def compile(self, step: Dispatch) -> float:
        """Seconds to make a step's pipeline, next to none where there is one."""
        start = perf_counter()
        self.device.pipelines.prepare(plan_of(step))
        return perf_counter() - start

    def time_fixed(self) -> None:
        """Time what all work needs."""
        limits, copied = self.device.limits, Layout.packed((64,))
        spans = Span(0, 256), Span(0, 256)
        smallest = dispatch_of(Kernel.ROWS, copied, copied, 4, spans, limits, "a probe")
        steps: dict[str, Step] = {
            "one copy": copies(SMALL_NBYTES, 1),
            "many copies": copies(SMALL_NBYTES, MANY_COPIES),
            "large copy": copies(self.room, 1),
            "clear": Clear(0, self.room),
            "dispatch": smallest,
        }
        for name, step in steps.items():
            self.best[name] = min(self.best.get(name, inf), self.seconds(step))
        self.plain_bytes_per_s = max(self.plain_bytes_per_s, plain_bytes_per_s(self.device))

    def time(self, probe: Probe) -> None:
        """Time the copies of a class of work; few bytes of one that is slow."""
        few = self.nbytes // 8
        if probe.work not in self.points:
            self.compiled.append(self.compile(self.dispatch(probe, *probe.copies(few)[0])))
        seconds = self.seconds(self.dispatch(probe, *probe.copies(few)[0]), repeats=1)
        nbytes = self.nbytes if seconds < LONG_S / 8 else few
        points = []
        for layouts in probe.copies(nbytes):
            step = self.dispatch(probe, *layouts)
            invocations = prod(step.share.workgroups) * step.share.workgroup_size
            points.append((step.invocation_nbytes, invocations, self.seconds(step)))
        known = self.points.get(probe.work, points)
        self.points[probe.work] = [min(pair) for pair in zip(known, points, strict=True)]

    def costs(self, origin: str) -> Costs:
        """What all that was timed says."""
        best = self.best
        copy_s = max((best["many copies"] - best["one copy"]) / (MANY_COPIES - 1), LEAST_S)
        submission_s = max(best["one copy"] - copy_s, LEAST_S)
        dispatch_s = max(best["dispatch"] - submission_s, LEAST_S)
        copied, cleared = (max(best[name] - best["one copy"], LEAST_S) for name in ("large copy", "clear"))
        works: dict[str, Work] = {}
        for name, points in self.points.items():
            works[name] = work_of(name, points, submission_s + dispatch_s, works)
        pipeline_s = median(seconds for seconds in self.compiled if seconds > max(self.compiled) / 10)
        fixed = submission_s, dispatch_s, copy_s, self.room / copied, self.room / cleared, pipeline_s
        return Costs(origin, *fixed, self.plain_bytes_per_s, works, is_tuned=True)

    def dispatch(self, probe: Probe, source: Layout, target: Layout) -> Dispatch:
        """The dispatch of a probe's kernel, without that of the ends of rows."""
        kernel, reason, paired = probe.candidate
        limits, width = self.device.limits, probe.width_nbytes
        bindings = span_of(source, width, limits), span_of(target, width, limits)
        return dispatch_of(kernel, source, target, width, bindings, limits, reason, paired)


def work_of(
    name: str, points: Sequence[tuple[float, int, float]], fixed_s: float, known: Mapping[str, Work]
) -> Work:
    """What an invocation and a byte of a class of work cost, beside the seconds that all work takes."""
    (nbytes, seconds), *short = (
        (nbytes, max(seconds - fixed_s, LEAST_S) / invocations) for nbytes, invocations, seconds in points
    )
    if short and short[0][0] < nbytes:
        less_nbytes, less_s = short[0]
        invocation_s = (less_s * nbytes - seconds * less_nbytes) / (nbytes - less_nbytes)
    else:
        alike = known.get(" ".join([*name.split()[:2], "beside"]))
        invocation_s = alike.invocation_s if alike else 0.0
    invocation_s = min(max(invocation_s, 0.0), MOST_BESIDE * seconds)
    return Work(invocation_s, nbytes / (seconds - invocation_s))


def plan_of(step: Step) -> Plan:
    """A plan of one step."""
    nowhere = Layout.packed((0,))
    return Plan(0, 1, 1, nowhere, nowhere, (step,))


def copies(nbytes: int, count: int) -> BufferCopies:
    """So many buffer copies."""
    places = Layout.of((count,), (nbytes,))
    return BufferCopies(places, places, nbytes)

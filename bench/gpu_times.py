"""Runs and times the programs of the page "Test your GPU" by Python, as the page does."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import ceil, inf
from time import perf_counter
from typing import Any

import numpy as np

from bench.gpu_programs import (
    LARGE_RUN_S,
    LIMITS,
    REPEATS,
    SIDES,
    Captured,
    Job,
    choices,
    digest,
    fixed,
    races,
    speeds,
)
from bench.report import geometric_mean
from wgslice.calibration.measure import MANY_COPIES, MIN_S
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, Place
from wgslice.gpu.sink import RUNNING
from wgslice.gpu.transfer import download
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.programs.program import Program

__all__ = ["Timer", "measure_programs", "shares", "slowdowns"]

ROUNDS = 3
LEAST_S, MAX_RUNS = 0.03, 1000  # of a submission
HOPELESS = 5.0  # times the least: programs that take longer are timed once
Report = Callable[[str], None]


class Timer:
    """A device with buffers for jobs."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.buffers: dict[str, Buffer] = {}
        self.idle_s = min(self.submission_s(None, 0) for _ in range(5))

    def program(self, job: Job) -> Program:
        """Return a job's program, with its inputs in the buffers."""
        sizes = {}
        for name, each in job.inputs().items():
            sizes[name] = each.nbytes
            buffer = self.buffers.get(name)
            if buffer is None or buffer.size < each.nbytes:
                size = -(-each.nbytes // WIDEST_NBYTES) * WIDEST_NBYTES
                self.buffers[name] = RUNNING.create_buffer(self.device, size)
            RUNNING.upload(self.device, self.buffers[name], each.bytes())
        return Captured.of(self.device, job.trial.plan, sizes).program(job.name)

    def bound(self, program: Program) -> Mapping[str, Buffer]:
        """Return the buffers of a program's inputs."""
        return {name: self.buffers[name] for name in program.input_names}

    def failure(self, job: Job, program: Program, wanted: str) -> str:
        """Run a program, and describe what is wrong; empty if its bytes are those of NumPy."""
        before = job.inputs()["target"].bytes()
        RUNNING.upload(self.device, self.buffers["target"], before)
        program(**self.bound(program))
        after = np.empty_like(before)
        download(self.device, Place(self.buffers["target"]), after)
        return "" if digest(after) == wanted else "wrong bytes"

    def submission_s(self, program: Program | None, runs: int) -> float:
        """Return the seconds of a submission with some runs of a program."""
        encoder = self.device.new_encoder()
        for _ in range(runs):
            assert program is not None
            program.record(encoder, **self.bound(program))
        start = perf_counter()
        self.device.submit(encoder)
        self.device.synchronize()
        return perf_counter() - start

    def seconds(self, programs: Sequence[Program]) -> list[float]:
        """Return the least seconds of a run of each program, which take turns."""
        least, runs = [inf] * len(programs), []
        for program in programs:
            self.submission_s(program, 1)
            first = max(self.submission_s(program, 1) - self.idle_s, 1e-6)
            runs.append(min(max(ceil(LEAST_S / first), 1), MAX_RUNS))
        for number in range(ROUNDS):
            best = min(least)
            for index, program in enumerate(programs):
                if number and least[index] > HOPELESS * best:
                    continue
                taken = self.submission_s(program, runs[index]) - self.idle_s
                least[index] = min(least[index], max(taken, MIN_S) / runs[index])
        return least


def measure_programs(device: Device, seconds: float, say: Report) -> dict[str, Any]:
    """Provoke races, then time copies and their strategies; what does not fit into `seconds` is left out.

    The programs are planned for GPUs on every adapter, as those of the page are.
    """
    limits = device.limits
    device.update_limits(lambda _: LIMITS)
    try:
        return measured(Timer(device), perf_counter() + seconds, say)
    finally:
        device.update_limits(lambda _: limits)


def measured(timer: Timer, end: float, say: Report) -> dict[str, Any]:
    """Return the results by the names of the schema, some of them missing after `end`."""
    found: dict[str, Any] = {
        "races": provoked(timer),
        "side": side_of(timer),
        "clock": "host",
        **{"speeds": [], "choices": [], "constants": None, "failures": [], "notes": []},
    }
    say(f"races provoked: {sum(line['wrong'] for line in found['races'])} runs are wrong")
    digests: dict[str, str] = {}
    for job in speeds(found["side"]):
        if perf_counter() > end:
            return left_out(found, "copies")
        program, wanted = timer.program(job), digests.setdefault(job.name, job.digest())
        if failure := timer.failure(job, program, wanted):
            found["failures"].append({"name": job.name, "failure": failure})
            continue
        (best_s,) = timer.seconds([program])
        found["speeds"].append({"name": job.name, "group": job.group, "nbytes": job.nbytes, "best_s": best_s})
        copy = found["speeds"][0]
        found["speeds"][-1]["share"] = job.nbytes * copy["best_s"] / (copy["nbytes"] * best_s)
        say(f"{job.name}: {job.nbytes / best_s / 1e9:.3g} GB/s")
    found["constants"] = constants_of(timer, found["speeds"])
    for choice in choices(found["side"]):
        if perf_counter() > end:
            return left_out(found, "copies by every strategy")
        programs = {name: timer.program(job) for name, job in choice.ways.items()}
        wrong = [
            name
            for name, program in programs.items()
            if timer.failure(choice.ways[name], program, digests[choice.case])
        ]
        if wrong:
            found["failures"].append({"name": choice.case, "failure": f"wrong bytes by {', '.join(wrong)}"})
            continue
        times = timer.seconds([*programs.values()])
        chosen, ways_s = next(iter(choice.ways)), dict(zip(programs, times, strict=True))
        shipped = {"chosen": chosen, "estimate_s": choice.plan.seconds}
        found["choices"].append(
            {"name": choice.case, "nbytes": choice.plan.nbytes, "ways_s": ways_s, "shipped": shipped}
        )
        say(f"{choice.case}: {ways_s[chosen] / min(times):.2f} of the best")
    return found


def provoked(timer: Timer) -> list[dict[str, Any]]:
    """Run copies that provoke races; return a line by kernels."""
    lines: dict[str, dict[str, Any]] = {}
    repeats = 1 if timer.device.adapter.software else REPEATS
    for job in races():
        line = lines.setdefault(job.group, {"kernel": job.group, "trials": 0, "wrong": 0, "failure": ""})
        program, wanted = timer.program(job), job.digest()
        for failure in (timer.failure(job, program, wanted) for _ in range(repeats)):
            line["trials"] += 1
            line["wrong"] += bool(failure)
            line["failure"] = line["failure"] or (failure and f"{job.name}: {failure}")
    return [*lines.values()]


def left_out(found: dict[str, Any], what: str) -> dict[str, Any]:
    """Note what was left out."""
    found["notes"].append(f"Some {what} were left out for lack of time.")
    return found


def side_of(timer: Timer) -> int:
    """Return the rows of matrices to copy: the larger size where a kernel copies it quickly."""
    small, large = SIDES.values()
    job = next(each for each in speeds(small) if each.group == "kernel copy")
    (taken,) = timer.seconds([timer.program(job)])
    return large if taken * (large / small) ** 2 < LARGE_RUN_S else small


def constants_of(timer: Timer, timed: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """Return the cost parameters of any copy, named as those of `wgslice tune`."""
    dispatch_s, one_s, many_s = timer.seconds([timer.program(job) for job in fixed()])
    bandwidth = {each["group"]: each["nbytes"] / each["best_s"] for each in timed if "copy" in each["group"]}
    return {
        "submission_s": timer.idle_s,
        "dispatch_s": dispatch_s,
        "copy_s": max((many_s - one_s) / (MANY_COPIES - 1), MIN_S),
        "copy_bytes_per_s": bandwidth["buffer copy"],
        "shader_bytes_per_s": bandwidth["kernel copy"],
    }


def shares(content: Mapping[str, Any]) -> dict[str, float]:
    """Return the mean share of the buffer copy's speed, by group."""
    groups: dict[str, list[float]] = {}
    for each in content["speeds"][1:]:
        groups.setdefault(each["group"], []).append(each["share"])
    return {group: geometric_mean(values) for group, values in groups.items()}


def slowdowns(content: Mapping[str, Any]) -> Iterator[float]:
    """Yield the slowdown over best of each copy by the strategy that the shipped cost model takes."""
    for each in content["choices"]:
        ways_s = each["ways_s"]
        yield ways_s[each["shipped"]["chosen"]] / min(ways_s.values())

"""Contenders in processes of their own, timed in rounds."""

from __future__ import annotations

import json
import pickle
import subprocess
import tempfile
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import numpy as np

from bench.cases import Case

__all__ = ["ROOT", "Entry", "Outcome", "Process", "run_case"]

ROOT = Path(__file__).resolve().parents[1]
PATIENCE_SECONDS = 600.0  # for one answer; a contender that needs more is ended
MAX_RUNS = 20  # of a contender in a round


@dataclass(frozen=True)
class Entry:
    """A contender: its name in tables, its module, and the Python that runs it."""

    name: str
    module: str
    contender: str
    python: Path
    environment: str = ""  # a rival's own; empty for ours


@dataclass
class Outcome:
    """The result of one contender for one slice."""

    times: list[float] = field(default_factory=list)  # wall, seconds
    gpu_times: list[float] = field(default_factory=list)  # the GPU's own, seconds
    note: str = ""
    failure: str = ""

    @property
    def best(self) -> float:
        """Best wall time in seconds."""
        return min(self.times)

    def as_json(self, nbytes: int) -> dict[str, Any]:
        """Return the result as JSON: seconds, and useful gigabytes per second."""
        if self.failure:
            return {"failure": self.failure}
        kept: dict[str, Any] = {
            "best_s": self.best,
            "median_s": median(self.times),
            "runs": len(self.times),
            "gbytes_per_s": nbytes / self.best / 1e9,
        }
        if self.gpu_times:
            kept["gpu_best_s"] = min(self.gpu_times)
        if self.note:
            kept["plan"] = self.note
        return kept


class ContenderError(Exception):
    """A contender does not support a task; the message says why."""


class Process:
    """A contender's process: questions go in by its standard input, answers come out by its output."""

    def __init__(self, entry: Entry) -> None:
        self.entry = entry
        self.description: dict[str, str] = {}
        self.unable = ""  # why it never started
        self.process: subprocess.Popen[bytes] | None = None

    def ask(self, method: str, *arguments: Any) -> Any:
        """Send a request, to a new process if the last one has died."""
        if self.unable:
            raise ContenderError(self.unable)
        if self.process is None:
            self.start()
        return self.exchange((method, arguments))

    def start(self) -> None:
        """Start the process, and read its versions."""
        command = [str(self.entry.python), "-m", "bench.worker", self.entry.module, self.entry.contender]
        self.process = subprocess.Popen(
            command,
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        try:
            self.description = self.exchange(("describe", ()))
        except ContenderError as error:
            self.unable = str(error)
            self.stop()
            raise

    def exchange(self, question: tuple[str, tuple[Any, ...]]) -> Any:
        """Send a request and return the answer; a process that does not answer in time is ended."""
        process = self.process
        assert process is not None
        assert process.stdin is not None
        assert process.stdout is not None
        patience = threading.Timer(PATIENCE_SECONDS, process.kill)
        patience.start()
        try:
            pickle.dump(question, process.stdin)
            process.stdin.flush()
            succeeded, value = json.loads(process.stdout.readline())
        except (OSError, json.JSONDecodeError):
            self.stop()
            raise ContenderError("its process has died") from None
        finally:
            patience.cancel()
        if not succeeded:
            raise ContenderError(value)
        return value

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.communicate()
            self.process = None


def run_case(
    case: Case,
    processes: Sequence[Process],
    rounds: int,
    turn: float,
    until: float = inf,
    end: float = inf,
) -> dict[str, Outcome]:
    """Verify a case on every contender, then time them in rounds.

    Rounds after the first have to fit in before `until`; a TimeoutError says that the first did not begin
    for everybody before `end`. Both are times of perf_counter.
    """
    outcomes = {process.entry.name: Outcome() for process in processes}
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/array.npy"
        np.save(path, case.array())
        for process in processes:
            check_time(end)
            attempt(outcomes[process.entry.name], process, load, path, case.work)
    lasted = 0.0
    for number in range(rounds):
        begun = perf_counter()
        if number and begun + lasted > until:
            break
        first = number % len(processes)  # so that no contender always follows the same one
        for process in [*processes[first:], *processes[:first]]:
            check_time(end if number == 0 else inf)
            attempt(outcomes[process.entry.name], process, measure, turn)
        lasted = perf_counter() - begun
    for process in processes:
        attempt(outcomes[process.entry.name], process, unload)
    return outcomes


def check_time(end: float) -> None:
    """Raise if the process has been ended."""
    if perf_counter() > end:
        raise TimeoutError


def attempt(outcome: Outcome, process: Process, action: Callable[..., None], *arguments: Any) -> None:
    """Call a contender unless it has failed this slice, and record a failure."""
    if outcome.failure:
        return
    try:
        action(outcome, process, *arguments)
    except ContenderError as error:
        outcome.failure = str(error)
        outcome.times.clear()
        outcome.gpu_times.clear()


def load(outcome: Outcome, process: Process, path: str, work: Any) -> None:
    """Let a contender prepare and verify a slice."""
    outcome.note = process.ask("load", path, work)


def measure(outcome: Outcome, process: Process, turn: float) -> None:
    """Let a contender run for a while."""
    times, gpu_time = process.ask("time", turn, MAX_RUNS)
    outcome.times += times
    if gpu_time is not None:
        outcome.gpu_times.append(gpu_time)


def unload(_: Outcome, process: Process) -> None:
    """Let a contender drop a slice."""
    process.ask("unload")

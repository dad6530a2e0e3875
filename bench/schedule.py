"""The time budget of a run, its progress, and the contest of the cases in rounds."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import inf
from time import perf_counter
from typing import Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from bench.cases import Case
from bench.contest import Outcome, Process, run_case

__all__ = ["Schedule", "contest", "outcome_line", "say_what_is_left", "scheduled"]


# What the smallest case takes, in bytes. On 2 cores of an AMD EPYC, lavapipe, without rivals: 0.1 s and up to
# 0.4 s for each new kernel; a MiB of input takes 0.03 s sliced and 0.1 s or more transposed.
FIXED_NBYTES = 8 * 2**20


class Schedule:
    """A time budget shared by parts: shows a bar on a terminal, or a line per finished part in a pipe.

    The remaining seconds are divided among the remaining parts by their weights.
    """

    def __init__(self, console: Console, parts: int, seconds: float = inf, weight: int | None = None) -> None:
        self.console, self.parts, self.done = console, parts, 0
        self.weight = parts if weight is None else weight  # of the parts that are left
        self.end = perf_counter() + seconds
        columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self.progress = Progress(*columns, console=console, transient=True)
        self.bar = self.progress.add_task("", total=parts)

    def __enter__(self) -> Self:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()

    @property
    def spent(self) -> bool:
        """Whether no seconds are left."""
        return perf_counter() >= self.end

    def begin(self, name: str, weight: int = 1) -> float:
        """Show the begun part; return its deadline by perf_counter."""
        self.progress.update(self.bar, description=name)
        now = perf_counter()
        until = now + (self.end - now) * weight / self.weight
        self.weight -= weight
        return until

    def finish(self, line: str) -> None:
        """Show that it is done."""
        self.done += 1
        self.progress.advance(self.bar)
        if not self.console.is_terminal:  # where there is no bar
            self.console.print(f"{self.done} of {self.parts}: {line}", highlight=False, markup=False)


def scheduled(console: Console, cases: Sequence[Case], seconds: float) -> Schedule:
    """A schedule for cases, in which a large one has more time."""
    return Schedule(console, len(cases), seconds, sum(map(weight_of, cases)))


def weight_of(case: Case) -> int:
    """Return the bytes of a case."""
    return FIXED_NBYTES + case.input_nbytes


def contest(
    schedule: Schedule, cases: Sequence[Case], processes: Sequence[Process], rounds: int, turn: float
) -> dict[Case, dict[str, Outcome]]:
    """Time cases on their contenders until the schedule has no seconds left.

    Small ones come first: what is left out at the end would take longest.
    """
    found: dict[Case, dict[str, Outcome]] = {}
    for case in sorted(cases, key=lambda case: case.input_nbytes):
        if schedule.spent:
            break
        until = schedule.begin(case.name, weight_of(case))
        chosen = [process for process in processes if case.rivals or not process.entry.environment]
        try:
            found[case] = run_case(case, chosen, rounds, turn, until, schedule.end)
        except TimeoutError:
            break
        schedule.finish(f"{case.name}: {outcome_line(found[case])}")
    return {case: found[case] for case in cases if case in found}


def outcome_line(outcomes: Mapping[str, Outcome]) -> str:
    """Format the times of the first contender, wgslice's, and of NumPy, or why there is none."""
    ours, *others = outcomes
    numpy = [f"{name} {shown(outcomes[name])}" for name in others if name.startswith("NumPy")]
    return ", ".join([shown(outcomes[ours]), *numpy[:1]])


def shown(outcome: Outcome) -> str:
    """Format the best time, or why there is none."""
    return outcome.failure or f"{outcome.best * 1e3:.3g} ms"


def say_what_is_left(
    console: Console, cases: Iterable[Case], results: Mapping[Case, Mapping[str, Outcome]], seconds: float
) -> None:
    """Print the cases that the budget left out."""
    left = [case.name for case in cases if case not in results]
    if left:
        console.print(f"not run, since {seconds:g} s were over: {'; '.join(left)}", highlight=False)

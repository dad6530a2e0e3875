"""Strategies, estimated times, and the search for the strategy of the least estimated time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from math import inf
from typing import Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import UNKNOWN, Costs, Limits, Profile
from wgslice.plans.steps import BufferCopies, Clear, Dispatch, Memory, OnGrid, TextureCopy

COPY = "buffer copy"  # strategies without kernels
COPY_PER_ROW, COPY_PER_RUN, COPY_PER_WINDOW = (f"{COPY} per {each}" for each in ("row", "run", "window"))

Step: TypeAlias = Clear | BufferCopies | TextureCopy | OnGrid


def seconds_of(steps: Iterable[Step], costs: Costs) -> float:
    """Estimated seconds of steps, without the submission that they share."""
    total_s = 0.0
    for step in steps:
        if isinstance(step, OnGrid):
            work = costs.classes[step.work]
            invocation_s = work.invocation_s + step.invocation_nbytes / work.bytes_per_s
            total_s += costs.dispatch_s + step.share.invocations * invocation_s
        elif isinstance(step, Clear):
            total_s += costs.copy_s + step.nbytes / costs.clear_bytes_per_s
        else:
            rows = step.source.size if isinstance(step, BufferCopies) else 1
            total_s += rows * (costs.copy_s + step.nbytes / costs.copy_bytes_per_s)
    return total_s


def in_order(steps: Iterable[Step]) -> tuple[Step, ...]:
    """Clears, then dispatches, which share a compute pass, then buffer copies; each kind as given."""
    kinds = (Clear, OnGrid, BufferCopies)
    given = tuple(steps)
    return tuple(step for kind in kinds for step in given if isinstance(step, kind))


def reading_from(memory: Memory, steps: Iterable[Step]) -> tuple[Step, ...]:
    """The same steps, reading another memory instead of the input."""
    return tuple(
        replace(step, reads=memory) if not isinstance(step, Clear) and step.reads is Memory.INPUT else step
        for step in steps
    )


def explained(steps: Iterable[Step], why: str) -> tuple[BufferCopies | OnGrid, ...]:
    """The buffer copies and dispatches among some steps, with a further reason."""
    return tuple(
        replace(step, reason=f"{step.reason}; {why}")
        for step in steps
        if isinstance(step, BufferCopies | OnGrid)
    )


# A strategy is built only if its lower bound is below this share of the best estimate: estimates are no more
# accurate, and building the steps of one strategy is a tenth of planning.
WORTHWHILE = 0.95

# Kernels that most processes compile, by whether items of an invocation are blocked, as on CPUs. Compilation
# of any other kernel is spread over RUNS_OF_A_PIPELINE runs.
COMMON = {
    True: {Kernel.ROWS, Kernel.WIDE_ROWS, Kernel.SUBWORD_ROWS},
    False: {Kernel.WORD_GRID, Kernel.WIDE_GRID, Kernel.SUBWORD_ROWS},
}
RUNS_OF_A_PIPELINE = 1000

OTHER = "it is for other copies"  # not printed: no change of layouts or buffers that is small would help


Reason: TypeAlias = str | Callable[[], str]  # a function where the text takes long to make


class Problem(Protocol):
    """A problem that strategies are chosen for."""

    @property
    def limits(self) -> Limits:
        """The device's."""


P = TypeVar("P", bound=Problem)
Applies: TypeAlias = Callable[[P], Reason | None]  # None, or the reason why a strategy does not apply


class Strategy(NamedTuple, Generic[P]):
    """A strategy: one row of a table."""

    name: str
    applies: Applies[P]
    lower_bound: Callable[[P], float]  # estimated seconds that its steps take at least; inf if unknown
    build: Callable[[P], Iterable[Step]]  # in the order in which they run; none where it then does not apply


def where(condition: Callable[[P], object]) -> Applies[P]:
    """Returns a check that a condition is true; a strategy is for other copies if not."""
    return lambda problem: None if condition(problem) else OTHER


def anything(_: object) -> Reason | None:
    """Accepts every problem."""
    return None


class Estimate(NamedTuple):
    """Estimated time of a strategy not chosen: without the submission, with its share of compilation."""

    name: str
    seconds: float
    is_bound: bool = False  # whether it is a lower bound, since the strategy's steps were not built
    reason: Reason = ""  # why the strategy is not applicable, if it is not

    @property
    def text(self) -> str:
        """The reason as it is printed."""
        return self.reason if isinstance(self.reason, str) else self.reason()


def nothing(_: object) -> tuple[()]:
    """Returns no strategies and no changes."""
    return ()


class OnPrint(NamedTuple):
    """What is found out about a problem only when its plan is printed."""

    rejected: Callable[[Any], Iterable[Estimate]] = nothing  # further strategies, and why not
    changes: Callable[[Any], Iterable[tuple[str, Choice | None]]] = nothing


class Choice(NamedTuple):
    """The steps of the chosen strategy, and the estimates or reasons of all others."""

    name: str
    steps: tuple[Step, ...]
    seconds: float  # estimated, without the submission
    others: tuple[Estimate, ...]
    rejected: tuple[Estimate, ...]
    problem: Any
    strategies: Sequence[Strategy[Any]]
    on_print: OnPrint = OnPrint()

    @property
    def unavailable(self) -> list[Estimate]:
        """The rejected strategies, and those that are rejected only when a plan is printed."""
        return [*self.rejected, *self.on_print.rejected(self.problem)]

    def every(self) -> list[Choice]:
        """Every applicable strategy: the chosen one, then the others by their estimated time."""
        names = {each.name for each in self.others}
        others = [choose(self.problem, [row]) for row in self.strategies if row.name in names]
        return [self, *sorted(filter(None, others), key=lambda each: each.seconds)]


def choose(
    problem: P,
    strategies: Sequence[Strategy[P]],
    on_print: OnPrint = OnPrint(),  # noqa: B008 -- immutable
) -> Choice | None:
    """Choose the strategy of the least estimate, building only those whose lower bound may win; or None."""
    limits = problem.limits
    bounds: list[tuple[float, int, Strategy[P]]] = []
    others: list[Estimate] = []
    rejected: list[Estimate] = []
    for number, strategy in enumerate(strategies):
        reason = strategy.applies(problem)
        if reason is OTHER:
            continue
        least_s = strategy.lower_bound(problem)
        if reason is None and least_s < inf:
            bounds.append((least_s, number, strategy))
        else:
            rejected.append(Estimate(strategy.name, least_s, True, reason or UNKNOWN))
    built: list[tuple[float, Estimate, tuple[Step, ...]]] = []
    best_s = inf
    for least_s, _, strategy in sorted(bounds):
        if least_s >= WORTHWHILE * best_s:
            others.append(Estimate(strategy.name, least_s, is_bound=True))
            continue
        steps = tuple(strategy.build(problem))
        grids = [max(step.share.workgroups) for step in steps if isinstance(step, OnGrid)]
        if not steps or max(grids, default=0) > limits.workgroups:
            reason = "it exceeds the workgroups of one dispatch"
            rejected.append(Estimate(strategy.name, least_s, True, reason))
            continue
        first, seconds = steps[0], seconds_of(steps, limits.profile.costs)
        compiling_s = compiling_seconds(first.kernel, limits.profile) if isinstance(first, Dispatch) else 0
        built.append((seconds, Estimate(strategy.name, seconds + compiling_s), steps))
        best_s = min(best_s, seconds + compiling_s)
    if not built:
        return None
    best = min(built, key=lambda each: each[1].seconds)
    others += [each[1] for each in built if each is not best]
    seconds, estimate, steps = best
    return Choice(
        estimate.name, steps, seconds, tuple(others), tuple(rejected), problem, strategies, on_print
    )


def all_steps(choices: Iterable[Choice | None]) -> list[Step]:
    """Returns the steps of all choices, in order; none if a problem has no strategy."""
    steps: list[Step] = []
    for choice in choices:
        if choice is None:
            return []
        steps += choice.steps
    return steps


def compiling_seconds(kernel: Kernel, profile: Profile) -> float:
    """Compilation seconds of a kernel per run; 0 for kernels that most processes compile."""
    return 0.0 if kernel in COMMON[profile.contiguous] else profile.costs.pipeline_s / RUNS_OF_A_PIPELINE

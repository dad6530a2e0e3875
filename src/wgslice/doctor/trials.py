"""Trials of kernels: one dispatch each, many in one submission, compared with NumPy byte by byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import download
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Memory, OnGrid
from wgslice.shaders import override_constants

Bytes: TypeAlias = NDArray[np.uint8]
Elements: TypeAlias = NDArray[np.int64]  # numbers of elements in a buffer, or NONE
Expected: TypeAlias = Callable[[Bytes, Bytes], Bytes]  # target after a trial, of source and target before
Constants: TypeAlias = tuple[tuple[str, int], ...]

NONE = -1  # reads FILL in every byte, or is not written
FILL = 7
GUARD_NBYTES = 64  # bound after the elements of each trial, so that writes past the end are found
SEED = 1


class Moves(NamedTuple):
    """The elements that a case moves, and which of their bytes one dispatch writes."""

    width: int  # bytes per element
    elements: Callable[[], tuple[Elements, Elements]]  # of the target and of the source
    row: int = 0  # elements per row of the target, where `whole` is given
    whole: bool | None = None  # whether the dispatch writes the whole vectors of rows, or the other bytes

    def expected(self, source: Bytes, before: Bytes) -> Bytes:
        """Return the target after the dispatch; of elements written twice, the last one stays."""
        written, read = self.elements()
        spare = np.full(self.width, FILL, np.uint8)  # at index NONE
        given, target = (np.append(side, spare).view(f"V{self.width}") for side in (source, before))
        target[written] = given[read]
        after: Bytes = target.view(np.uint8)[: before.size]
        if self.whole is None:
            return after
        in_vectors = np.zeros((before.size // WIDEST_NBYTES, WIDEST_NBYTES), np.bool_)
        for row in written.reshape(-1, self.row):
            first = row[row != NONE].min(initial=before.size) * self.width
            in_vectors[-(-first // WIDEST_NBYTES) : (row.max() + 1) * self.width // WIDEST_NBYTES] = True
        return np.where(in_vectors.reshape(-1) == self.whole, after, before)


@dataclass(frozen=True, eq=False)
class Trial:
    """One dispatch of a kernel, or a last-writer pass and its reader, on bytes of its own."""

    plan: Plan
    case: str  # printed if the trial fails
    source_nbytes: int
    target_nbytes: int
    expected: Expected
    table: Bytes | None = None  # device-resident offsets, indices or mask

    @property
    def step(self) -> OnGrid:
        """The dispatch of the tested kernel."""
        step = self.plan.steps[0]
        assert isinstance(step, OnGrid)
        return step

    @property
    def kernel(self) -> Kernel:
        """The tested kernel."""
        return self.step.kernel

    @property
    def constants(self) -> Constants:
        """The tested kernel's constants, then readers of its winner indices and theirs, as `READER name`."""
        readers = [step for step in self.plan.steps[1:] if isinstance(step, OnGrid)]
        return (
            *override_constants(self.step).items(),
            *((step.name, 1) for step in readers),
            *((f"{step.name} {name}", n) for step in readers for name, n in override_constants(step).items()),
        )

    def fits(self, limits: Limits) -> bool:
        """Whether the limits of a device admit the trial, which is not split as plans are."""
        steps = [step for step in self.plan.steps if isinstance(step, OnGrid)]
        bound = max(max(step.source_binding.nbytes, step.target_binding.nbytes) for step in steps)
        groups = max(max(step.share.workgroups) for step in steps)
        return bound <= limits.binding_nbytes and groups <= limits.workgroups


def trial_of(
    plan: Plan, case: object, sides: Iterable[Layout], moves: Moves, table: NDArray[np.generic] | None = None
) -> Trial:
    """Return the trial of a plan between two layouts, which begin in the first bytes of their buffers."""
    source_nbytes, target_nbytes = (side_nbytes(side, moves.width) for side in sides)
    content = None if table is None else np.ascontiguousarray(table).reshape(-1).view(np.uint8)
    return Trial(plan, str(case), source_nbytes, target_nbytes, moves.expected, content)


def side_nbytes(layout: Layout, width_nbytes: int) -> int:
    """Return the bytes of a trial for a layout: whole vectors and a guard."""
    return -(-layout.stop * width_nbytes // WIDEST_NBYTES) * WIDEST_NBYTES + GUARD_NBYTES


def elements_of(layout: Layout) -> Elements:
    """Return the element number of each index of a layout."""
    axes = (stride * np.arange(size) for size, stride in zip(layout.sizes, layout.strides, strict=True))
    return np.asarray(sum(np.ix_(*axes), start=np.int64(layout.offset)))


def with_few_pipelines(trials: Iterable[Trial], most: int) -> list[Trial]:
    """Select trials of a kernel that use at most `most` pipelines and cover most pairs of constants.

    Faults depend on one constant or on a pair far more often than on three. Each value of each constant is
    covered, even if that takes more pipelines, but for readers of winner indices, which have trials of their
    own.
    """
    found: defaultdict[Constants, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[trial.constants].append(trial)
    unseen = [{met for constants in found for met in combinations(constants, count)} for count in (1, 2)]
    unseen[0] = {(constant,) for (constant,) in unseen[0] if " " not in constant[0]}
    chosen: list[Constants] = []

    def gain(constants: Constants) -> list[int]:
        met = [len(missing.intersection(combinations(constants, n))) for n, missing in enumerate(unseen, 1)]
        return [*met, len(found[constants])]

    while unseen[0] or (unseen[1] and len(chosen) < most):
        chosen.append(max(found, key=gain))
        for count, missing in enumerate(unseen, 1):
            missing.difference_update(combinations(chosen[-1], count))
    return [trial for constants in chosen for trial in found[constants]]


def run_trials(device: Device, trials: Sequence[Trial]) -> list[str]:
    """Run trials in one submission; return a description of each failure, empty for a correct trial."""
    sizes = [(t.source_nbytes, t.target_nbytes, 0 if t.table is None else t.table.size) for t in trials]
    alignment = device.limits.binding_alignment_nbytes
    places = [
        [0, *accumulate(-(-nbytes // alignment) * alignment for nbytes in each)]
        for each in zip(*sizes, strict=True)
    ]
    generator = np.random.default_rng(SEED)
    contents = [generator.integers(0, 256, starts[-1], np.uint8) for starts in places]
    source, before, table = contents
    expected = before.copy()
    buffers = [sink().create_buffer(device, content.size) for content in contents]
    recorder = Recorder(device)
    for trial, read, written, known in zip(trials, *places, strict=False):
        side = expected[written:][: trial.target_nbytes]
        side[:] = trial.expected(source[read:][: trial.source_nbytes], side)
        if trial.table is not None:
            table[known:][: trial.table.size] = trial.table
        recorder.add(trial.plan, [*map(Place, buffers, (read, written, known))])
    for buffer, content in zip(buffers, contents, strict=True):
        sink().upload(device, buffer, content)  # waits for earlier trials
    after = np.empty_like(before)
    download(device, Place(buffers[Memory.OUTPUT]), after, recorder.end())
    return [
        verdict(trial, after[start:stop], expected[start:stop])
        for trial, (start, stop) in zip(trials, pairwise(places[Memory.OUTPUT]), strict=True)
    ]


def verdict(trial: Trial, after: Bytes, expected: Bytes) -> str:
    """Describe the wrong bytes of a trial; empty if there are none."""
    found = difference(after, expected, "bytes", "#04x")
    return found and f"{trial.step}; {trial.case}: {found}"


def difference(found: NDArray[Any], wanted: NDArray[Any], noun: str, form: str = "") -> str:
    """Describe the wrong items, called `noun`, of which one is formatted; empty if there are none."""
    wrong = np.flatnonzero(found != wanted)
    if not wrong.size:
        return ""
    first = int(wrong[0])
    return (
        f"{wrong.size} of {found.size} {noun} are wrong, the first is number {first}, "
        f"which is {found.flat[first]:{form}} instead of {wanted.flat[first]:{form}}"
    )

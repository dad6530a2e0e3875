"""Trials of kernels: one dispatch each, many in one submission, compared with NumPy byte by byte."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations, pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import Place
from wgslice.gpu.recording import Recorder
from wgslice.gpu.transfer import download, upload
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits
from wgslice.plans.steps import Memory, OnGrid
from wgslice.shaders import override_constants

Bytes: TypeAlias = NDArray[np.uint8]
Constants: TypeAlias = tuple[tuple[str, int], ...]

GUARD_NBYTES = 64  # behind what a trial reads and writes; bound, so that a kernel can go wrong there
SEED = 1


@dataclass(frozen=True, eq=False)
class Trial:
    """One dispatch of a kernel between bytes of its own; a last-writer pass goes with its reader."""

    plan: Plan
    strides: str  # of source and target, for whoever looks for what went wrong
    source_nbytes: int
    target_nbytes: int
    expected: Callable[[Bytes, Bytes], Bytes]  # the target afterwards, by source and target before
    table: Bytes | None = None  # offsets of windows that the GPU has

    @property
    def step(self) -> OnGrid:
        """The dispatch."""
        step = self.plan.steps[0]
        assert isinstance(step, OnGrid)
        return step

    @property
    def kernel(self) -> Kernel:
        """What is tried."""
        return self.step.kernel

    @property
    def constants(self) -> Constants:
        """What the kernel is compiled with."""
        return tuple(override_constants(self.step).items())

    def fits(self, limits: Limits) -> bool:
        """Whether a device's bindings and grids hold it; plans cut what they do not hold."""
        steps = [step for step in self.plan.steps if isinstance(step, OnGrid)]
        bound = max(max(step.source_binding.nbytes, step.target_binding.nbytes) for step in steps)
        groups = max(max(step.share.workgroups) for step in steps)
        return bound <= limits.binding_nbytes and groups <= limits.workgroups


def with_few_pipelines(trials: Iterable[Trial], most: int) -> list[Trial]:
    """The trials of a kernel on at most `most` pipelines: those in which most pairs of constants meet.

    Faults hide in one constant, or in how two go together, much more often than in three. Each value of each
    constant is tried, even if that takes more pipelines.
    """
    found: defaultdict[Constants, list[Trial]] = defaultdict(list)
    for trial in trials:
        found[trial.constants].append(trial)
    unseen = [{met for constants in found for met in combinations(constants, count)} for count in (1, 2)]
    taken: list[Constants] = []

    def gain(constants: Constants) -> list[int]:
        met = [len(missing.intersection(combinations(constants, n))) for n, missing in enumerate(unseen, 1)]
        return [*met, len(found[constants])]

    while unseen[0] or (unseen[1] and len(taken) < most):
        taken.append(max(found, key=gain))
        for count, missing in enumerate(unseen, 1):
            missing.difference_update(combinations(taken[-1], count))
    return [trial for constants in taken for trial in found[constants]]


def side_nbytes(layout: Layout, width_nbytes: int) -> int:
    """The bytes that a trial has for a layout: whole vectors, and a guard."""
    return -(-layout.stop * width_nbytes // WIDEST_NBYTES) * WIDEST_NBYTES + GUARD_NBYTES


def view_of(content: Bytes, layout: Layout, width_nbytes: int) -> NDArray[np.void]:
    """NumPy's view of a layout of elements that are nothing but bits."""
    strides = [stride * width_nbytes for stride in layout.strides]
    return np.ndarray(layout.sizes, f"V{width_nbytes}", content.data, layout.offset * width_nbytes, strides)


def in_whole_blocks(rows: Iterable[tuple[int, int]], nbytes: int) -> NDArray[np.bool_]:
    """Which bytes lie in blocks that are all a row's; rows begin with one byte and stop before another."""
    whole = np.zeros(nbytes, np.bool_)
    for start, stop in rows:
        first = -(-start // WIDEST_NBYTES) * WIDEST_NBYTES
        whole[first : stop // WIDEST_NBYTES * WIDEST_NBYTES] = True
    return whole


def run_trials(device: Device, trials: Sequence[Trial]) -> list[str]:
    """What is wrong with each trial, or nothing; all in one submission."""
    sources = places_of(device, [trial.source_nbytes for trial in trials])
    targets = places_of(device, [trial.target_nbytes for trial in trials])
    tables = places_of(device, [0 if trial.table is None else trial.table.size for trial in trials])
    generator = np.random.default_rng(SEED)
    source, before, table = (
        generator.integers(0, 256, places[-1], np.uint8) for places in (sources, targets, tables)
    )
    expected = before.copy()
    for trial, read, written, known in zip(trials, sources, targets, tables, strict=False):
        side = expected[written:][: trial.target_nbytes]
        side[:] = trial.expected(source[read:][: trial.source_nbytes], side.copy())
        if trial.table is not None:
            table[known:][: trial.table.size] = trial.table
    buffers = [device.create_buffer(content.size) for content in (source, before, table)]
    encoder = device.create_encoder()
    recorder = Recorder(device, encoder)
    for trial, *places in zip(trials, sources, targets, tables, strict=False):
        recorder.add(trial.plan, [*map(Place, buffers, places)])
    recorder.end()
    for buffer, content in zip(buffers, (source, before, table), strict=True):
        upload(device, buffer, content)  # waits for the trials before
    after = np.empty_like(before)
    download(device, buffers[Memory.OUTPUT], 0, after, encoder)
    return [
        verdict(trial, after[start:stop], expected[start:stop])
        for trial, (start, stop) in zip(trials, pairwise(targets), strict=True)
    ]


def places_of(device: Device, sizes: Sequence[int]) -> list[int]:
    """Byte offsets of parts of these sizes, each where a binding may begin; and where the last one ends."""
    alignment = device.limits.binding_alignment_nbytes
    return [0, *accumulate(-(-nbytes // alignment) * alignment for nbytes in sizes)]


def verdict(trial: Trial, after: Bytes, expected: Bytes) -> str:
    """What a trial wrote that is wrong, in words; nothing where all is right."""
    wrong = np.flatnonzero(after != expected)
    if not wrong.size:
        return ""
    first = int(wrong[0])
    return (
        f"{trial.step}; {trial.strides}: {wrong.size} of {expected.size} bytes are wrong, the first is "
        f"number {first}, which is {after[first]:#04x} instead of {expected[first]:#04x}"
    )

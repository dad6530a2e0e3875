"""Kernels that gather and scatter at indices: reference implementations, and adapters against these."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from changed_modules import numbered_module
from helpers import Bytes, check_bytes, random_bytes
from planning import USUAL, dispatches_of
from reference.indexed import index_kernels, trace_indexed
from reference.memory import Writes
from reference.plans import run_plan
from running import compiling
from test_mapping import check_mapping

import wgslice as wg
from wgslice.doctor.indexing import BREADTH, HEIGHT, IndexCase, MaskCase, index_cases, index_trials
from wgslice.doctor.trials import Trial, run_trials, with_few_pipelines
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import CPU, GPU, Profile

PROFILES = pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])


def given(
    case: IndexCase | MaskCase, trial: Trial
) -> np.ndarray[tuple[int, ...], np.dtype[np.generic]] | None:
    """The indices that the GPU has."""
    if trial.table is None:
        return None
    if isinstance(case, MaskCase):
        return trial.table.reshape(HEIGHT, BREADTH, -1)
    return case.indices().astype(case.index_dtype)


@PROFILES
@pytest.mark.parametrize("kernel", index_kernels, ids=lambda kernel: kernel.value)
def test_reference_implementations_write_what_numpy_does(kernel: Kernel, profile: Profile) -> None:
    limits, seen = replace(USUAL, profile=profile), 0
    for case in index_cases():
        trial = case.trial(limits)
        if trial.kernel is kernel:
            source, before = random_bytes(trial.source_nbytes, 1), random_bytes(trial.target_nbytes, 2)
            after = before.copy()
            run_plan(trial.plan, source, after, given(case, trial))
            check_bytes(after, trial.expected(source, before))
            seen += 1
    assert seen >= 50


@pytest.mark.first_adapter
@PROFILES
@pytest.mark.parametrize(
    "kernel",
    [Kernel.GATHER, Kernel.GATHER_WORDS, Kernel.SCATTER, Kernel.MASKED_WORDS],
    ids=lambda kernel: kernel.value,
)
def test_invocations_write_what_the_reference_writes(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, kernel: Kernel, profile: Profile
) -> None:
    compiling(monkeypatch, device, numbered_module)
    limits = replace(device.limits, profile=profile)
    tables = {
        replace(trial, table=np.zeros(4, np.uint8) if trial.table is None else trial.table): given(
            case, trial
        )
        for case in index_cases()
        for trial in [case.trial(limits)]
        if trial.kernel is kernel
    }

    def written(trial: Trial, source: Bytes, target: Bytes) -> Writes:
        return trace_indexed(dispatches_of(trial.plan)[0], source, target, tables[trial]).writes

    check_mapping(device, list(tables), written)


@pytest.mark.every_adapter
@pytest.mark.parametrize("kernel", index_kernels, ids=lambda kernel: kernel.value)
def test_kernels_write_what_numpy_does(device: wg.Device, kernel: Kernel) -> None:
    trials = [trial for trial in index_trials(device.limits) if trial.kernel is kernel]
    assert [verdict for verdict in run_trials(device, with_few_pipelines(trials, 12)) if verdict] == []


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "int64"])
def test_rows_a_few_elements_apart_are_not_widened_past_them(device: wg.Device, dtype: str) -> None:
    array = np.arange(40 * 6).reshape(40, 6).astype(dtype)
    x = wg.asarray(array, device=device)
    order = np.random.default_rng(4).permutation(40)
    for width in (2, 4):
        assert np.array_equal(x[:, :width][order].numpy(), array[:, :width][order])
        array[:, :width][order] = array[:, 2 : 2 + width].copy()
        x[:, :width][order] = x[:, 2 : 2 + width].copy()
        assert np.array_equal(x.numpy(), array)

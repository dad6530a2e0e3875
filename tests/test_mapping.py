"""The mapping from invocations to what they write: an adapter's is the twin's."""

from __future__ import annotations

from dataclasses import replace
from itertools import islice

import numpy as np
import pytest
from costing import favouring
from helpers import GUARD, Bytes, random_bytes, whole_words
from numbered import numbered_module
from running import run_on_gpu, run_side_by_side, side_by_side
from test_extract_windows import CONDITIONS as WINDOW_CONDITIONS
from test_extract_windows import conditions as window_conditions
from test_extract_windows import offset_table
from test_kernels import CONDITIONS, conditions

import wgslice as wg
from wgslice.gpu.pipelines import Pipelines
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import CPU, GPU, Profile
from wgslice.plans.steps import OnGrid, Span, dispatch_of
from wgslice.plans.windows_steps import WindowDispatch
from wgslice.shaders.memory import Writes
from wgslice.shaders.twins import trace
from wgslice.shaders.windows_twins import trace_windows

pytestmark = pytest.mark.slow


def writers(writes: Writes) -> dict[int, set[int]]:
    """For each unit the invocations that write it."""
    found: dict[int, set[int]] = {}
    pairs = zip(writes.units.ravel().tolist(), writes.stores.invocations.ravel().tolist(), strict=True)
    for unit, invocation in pairs:
        found.setdefault(unit, set()).add(invocation)
    return found


def check_writers(step: OnGrid, writes: Writes, before: Bytes, after: Bytes) -> None:
    """Each unit holds the number of an invocation that writes it, and all else what it held."""
    words = writes.unit_nbytes // 4
    units = after.view("<u4").reshape(-1, words)
    unchanged = np.ones(len(units), bool)
    for unit, invocations in writers(writes).items():
        unchanged[unit] = False
        numbers = set(units[unit].tolist())
        assert len(numbers & invocations) == len(numbers) == 1, (
            f"{step}: {unit}: {numbers}, not {invocations}"
        )
    assert np.array_equal(units[unchanged], before.view("<u4").reshape(-1, words)[unchanged])


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kernel", CONDITIONS, ids=lambda kernel: kernel.value)
def test_invocations_write_what_the_twin_says(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, kernel: Kernel, profile: Profile
) -> None:
    monkeypatch.setattr("wgslice.gpu.pipelines.kernel_module", numbered_module)
    monkeypatch.setattr(device, "pipelines", Pipelines(device.wgpu_device))
    limits = replace(device.limits, profile=profile)
    runs, steps = [], []
    for number, (width, source_layout, target_layout, paired) in enumerate(conditions(kernel)):
        if kernel is Kernel.SLICE1 and width < 4:
            continue  # bits of words, which hold no number
        source = random_bytes(whole_words(source_layout.stop * width) + GUARD, number)
        target = random_bytes((whole_words(target_layout.stop * width) + GUARD) // 16 * 16, number + 1000)
        bindings = Span(0, source.size // 16 * 16), Span(0, target.size)
        step = dispatch_of(kernel, source_layout, target_layout, width, bindings, limits, "forced", paired)
        steps.append(step)
        runs.append((Plan(0, width, width, source_layout, target_layout, (step,)), source, target))
    after = run_side_by_side(device, runs)
    _, places = side_by_side(device, [target for _, _, target in runs])
    seen = 0
    for step, (_, source, target), place in zip(steps, runs, places, strict=True):
        writes = trace(step, source, target).writes
        check_writers(step, writes, target, after[place:][: target.size])
        seen += writes.units.size
    assert seen >= 20


@pytest.mark.parametrize("profile", [CPU, GPU], ids=["cpu", "gpu"])
@pytest.mark.parametrize("kernel", WINDOW_CONDITIONS, ids=lambda kernel: kernel.value)
def test_invocations_write_of_windows_what_the_twin_says(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, kernel: Kernel, profile: Profile
) -> None:
    monkeypatch.setattr("wgslice.gpu.pipelines.kernel_module", numbered_module)
    monkeypatch.setattr(device, "pipelines", Pipelines(device.wgpu_device))
    limits = replace(device.limits, profile=favouring(profile, kernel))
    seen = 0
    for case in islice(window_conditions(kernel, profile), 0, None, 5):
        if kernel is Kernel.EXTRACT_WINDOWS and case.width < 4:
            continue  # bits of words, which hold no number
        (step,) = case.plan(limits).steps
        assert isinstance(step, WindowDispatch)
        source, target = case.buffers()
        after = run_on_gpu(device, case.plan(limits), source, target, offset_table(case.offsets))
        assert step.target_binding.offset_nbytes == 0
        writes = trace_windows(step, source, target, case.offsets).writes
        check_writers(step, writes, target, after)
        seen += writes.units.size
    assert seen >= 20

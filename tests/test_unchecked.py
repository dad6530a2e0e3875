"""Run-time checks of modules: which dispatches run without, and that all others keep theirs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from checker.memory import Tally
from checker.trials import Tallies, all_trials, check_trial, spread
from helpers import on_one_adapter
from planning import dispatches_of, planned_by_kernel
from test_checked_kernels import executed
from test_kernels import PROFILES

import wgslice as wg
from wgslice.doctor.selftest import KernelTest
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.proofs import Checks, needed_checks

ON_PURPOSE = {  # kernels that load beyond their bindings, and kernels of windows, masks and winners
    *(Kernel.SHIFTED_GRID, Kernel.PIXELS, Kernel.EXTRACT_WINDOWS, Kernel.WINDOW_ROWS, Kernel.WINDOW_WORDS),
    *(Kernel.INSERT_WINDOWS, Kernel.INSERT_ROWS, Kernel.INSERT_WORDS, Kernel.SIZED_WINDOWS),
    *(Kernel.SIZED_ENDS, Kernel.LAST_WRITER_WINDOWS, Kernel.LAST_WRITER_ROWS, Kernel.SCATTER_SUBWORD),
    *(Kernel.SCATTER_IN_ORDER, Kernel.LAST_WRITER_INDICES, Kernel.MASKED_WORDS, Kernel.MASKED_PAIRS),
    Kernel.MASKED_VALUES,
}


def dispatches(kernel: Kernel) -> Iterator[Any]:
    """Yield the dispatches of a kernel in all of its trials."""
    for trial in all_trials()[kernel]:
        yield from (step for step in dispatches_of(trial.plan) if step.kernel is kernel)


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_trials_of_kernels_are_proven_unless_they_load_beyond(kernel: Kernel) -> None:
    proven = {needed_checks(step) is Checks.NONE for step in dispatches(kernel)}
    assert (True in proven) is (kernel not in ON_PURPOSE)


def test_a_proven_dispatch_loads_nothing_beyond_a_binding() -> None:
    body = "target_words[n] = source[n + 1u]; // beyond the binding"
    assert executed(body) == []
    assert executed(body, checks=Checks.NONE) == ["bounds"]


# Sources of elements of 4 bytes that end where their binding does.
TIGHT = {
    "contiguous": (Layout.of((9, 64), (64, 1)), Checks.NONE),
    "reversed": (Layout.of((9, 64), (64, -1), 63), Checks.NONE),
    # the vectors of the last block reach 16 bytes beyond the last element
    "every second": (Layout.of((9, 64), (128, 2)), Checks.BOUNDS),
    "every second reversed": (Layout.of((9, 64), (128, -2), 126), Checks.BOUNDS),
}


def shifted(source: Layout) -> Any:
    """Return a dispatch of `shifted_rows` to a packed target, whose bindings end with the elements."""
    target = Layout.packed(source.sizes)
    nbytes = -(-source.stop * 4 // 16) * 16
    plan = planned_by_kernel(Kernel.SHIFTED_ROWS, source, target, 4, PROFILES[0], (nbytes, target.size * 4))
    (step,) = dispatches_of(plan)
    assert step.source_binding.nbytes == nbytes
    return step


@pytest.mark.parametrize("name", TIGHT)
def test_loads_at_the_end_of_a_binding_keep_bounds_checks(name: str) -> None:
    source, checks = TIGHT[name]
    step = shifted(source)
    assert needed_checks(step) is checks
    more = replace(step.source_binding, nbytes=step.source_binding.nbytes + 32)
    assert needed_checks(replace(step, source_binding=more)) is Checks.NONE


@pytest.mark.parametrize("kernel", [kernel for kernel in Kernel if kernel not in ON_PURPOSE])
@pytest.mark.parametrize("side", ["source_binding", "target_binding"])
def test_a_plan_with_a_binding_too_short_is_not_proven(kernel: Kernel, side: str) -> None:
    step = next(step for step in dispatches(kernel) if needed_checks(step) is Checks.NONE)
    short = {side: replace(getattr(step, side), nbytes=0)}
    assert needed_checks(replace(step, **short)) is Checks.BOUNDS


@pytest.mark.parametrize("kernel", [Kernel.GATHER, Kernel.GATHER_WORDS])
def test_a_gather_is_proven_for_every_index_in_range(kernel: Kernel) -> None:
    step = next(step for step in dispatches(kernel) if needed_checks(step) is Checks.NONE)
    nbytes = step.source_binding.nbytes
    tables = [table._replace(extent=table.extent + nbytes, wrap=0) for table in step.copy.tables]
    assert any(table.step for table in tables)
    assert needed_checks(replace(step, copy=replace(step.copy, tables=tuple(tables)))) is Checks.BOUNDS


@pytest.mark.parametrize("kernel", [kernel for kernel in Kernel if kernel not in ON_PURPOSE])
def test_a_plan_with_other_work_than_its_layouts_is_not_proven(kernel: Kernel) -> None:
    for step in dispatches(kernel):
        if needed_checks(step) is Checks.NONE and kernel is not Kernel.GATHER_WORDS:
            assert needed_checks(replace(step, share=replace(step.share, count=step.share.count + 1))) != 0
            return


@pytest.mark.parametrize("kernel", [kernel for kernel in Kernel if kernel not in ON_PURPOSE])
def test_accesses_of_proven_trials_are_inside(kernel: Kernel) -> None:
    """The checker reports each load outside of a binding that no module clamps, also a marked one."""
    proven = [
        trial
        for trial in all_trials()[kernel]
        if any(needed_checks(step) is Checks.NONE for step in dispatches_of(trial.plan))
    ]
    for trial in spread(proven, 6, 1):
        assert check_trial(trial, Tallies(Tally)) == []


# modules on a device


@on_one_adapter
def test_a_slice_runs_unchecked_and_loaded_it_is_checked(device: wg.Device, tmp_path: Path) -> None:
    """The key of a pipeline says so: the module of the folder is the same text."""
    fresh = wg.Device.request(device.adapter)
    values = np.arange(96 * 50, dtype=np.float32).reshape(96, 50)
    x = wg.asarray(values, device=fresh)
    made: list[Checks] = []
    make = fresh.pipelines.module

    def noted(label: str, code: str, checks: Checks) -> object:
        made.append(checks)
        return make(label, code, checks)

    fresh.pipelines.pipeline.cache_clear()
    with patch.object(fresh.pipelines, "module", noted):
        program = wg.capture(lambda x: x[:, ::-3].copy(), x=x)
        np.testing.assert_array_equal(program(x=x).numpy(), values[:, ::-3])
        own = list(made)
        program.save(tmp_path / "program")
        loaded = wg.load_program(tmp_path / "program", fresh)
        np.testing.assert_array_equal(loaded(x=x).numpy(), values[:, ::-3])
    software = fresh.adapter.software and fresh.adapter.backend == "Vulkan"
    assert own == [Checks.NONE if software else Checks.ALL]
    assert made[len(own) :] == [Checks.ALL] * (len(made) - len(own)) != []


@on_one_adapter
def test_a_variable_keeps_all_checks(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WGSLICE_CHECKS", "1")
    assert wg.Device.request(device.adapter).pipelines.checks is Checks.ALL
    monkeypatch.setenv("WGSLICE_CHECKS", "")
    with pytest.raises(ValueError, match="WGSLICE_CHECKS = '': must be 0 or 1; 1 keeps all run-time checks"):
        wg.Device.request(device.adapter)


@on_one_adapter
def test_wrong_wgsl_is_refused_with_any_checks(device: wg.Device) -> None:
    for checks in Checks:
        with pytest.raises(Exception, match="wrong_name"):
            device.pipelines.module("name", "fn f() -> u32 { return wrong_name; }", checks)


@on_one_adapter
@pytest.mark.parametrize("passes", [True, False])
def test_a_gpu_omits_checks_once_its_self_test_has_passed(
    device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch, passes: bool
) -> None:
    gpu = replace(device.adapter, kind="DiscreteGPU", backend="Vulkan")
    monkeypatch.setattr("wgslice.gpu.device.describe_adapter", lambda *_: gpu)
    tested: list[Checks] = []

    def run(tried: wg.Device, *_: object) -> list[KernelTest]:
        tested.append(tried.pipelines.checks)
        wrong = int(tried.pipelines.checks is Checks.NONE and not passes)
        return [KernelTest("rows", 1, wrong, "a wrong byte" * wrong)]

    monkeypatch.setattr("wgslice.doctor.selftest.run", run)
    made = wg.Device.request(gpu)
    assert made.pipelines.checks is Checks.ALL
    assert wg.selftest(made).passed
    assert tested == ([Checks.NONE] if passes else [Checks.NONE, Checks.ALL])
    wanted = Checks.NONE if passes else Checks.ALL
    assert made.pipelines.checks is wanted
    assert wg.Device.request(gpu).pipelines.checks is wanted
    assert len([*kept.glob("*-unchecked.json")]) == passes
    monkeypatch.setenv("WGSLICE_CHECKS", "1")
    assert wg.Device.request(gpu).pipelines.checks is Checks.ALL


@on_one_adapter
def test_a_result_of_another_version_or_driver_is_not_taken(
    device: wg.Device, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gpu = replace(device.adapter, kind="DiscreteGPU", backend="Vulkan")
    monkeypatch.setattr("wgslice.gpu.device.describe_adapter", lambda *_: gpu)
    monkeypatch.setattr("wgslice.doctor.selftest.run", lambda *_: [KernelTest("rows", 1, 0, "")])
    wg.selftest(wg.Device.request(gpu))
    (path,) = kept.glob("*-unchecked.json")
    content = json.loads(path.read_text("utf-8"))
    assert wg.Device.request(gpu).pipelines.checks is Checks.NONE
    for text in (json.dumps({**content, "versions": {}}), "[]", "{"):
        path.write_text(text, "utf-8")
        assert wg.Device.request(gpu).pipelines.checks is Checks.ALL

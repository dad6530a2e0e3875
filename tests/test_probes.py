"""Probes of cost classes: each class has one, which copies what it says, and shipped figures know it."""

from __future__ import annotations

from math import prod

import numpy as np
import pytest
from reference.plans import run_plan

from bench.probes import probes
from bench.window_probes import WindowProbe, window_probes
from wgslice.layout import Layout
from wgslice.plans.kernels import Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import CPU, GPU, Limits, Profile, shipped
from wgslice.plans.windows import WindowDispatch

FIGURES = ("lavapipe-22-3", "lavapipe-25-0", "llvmpipe-opengl", "swiftshader", "gpus")


@pytest.mark.parametrize("name", FIGURES)
def test_shipped_figures_know_every_cost_class(name: str) -> None:
    assert {probe.work for probe in probes()} <= shipped(name).works.keys()


def steps_of(probe: WindowProbe, limits: Limits) -> list[WindowDispatch]:
    """Its dispatches, for 200 KB."""
    steps = [step for step in probe.steps(200_000, limits) if isinstance(step, WindowDispatch)]
    assert steps
    return steps


def test_each_class_of_work_has_one_probe() -> None:
    works = [probe.work for probe in probes()]
    assert len(set(works)) == len(works)


@pytest.mark.parametrize("profile", [CPU, GPU], ids=lambda profile: profile.name)
@pytest.mark.parametrize("probe", list(window_probes()), ids=lambda probe: str(probe.work))
def test_a_probe_is_of_its_work_and_copies_what_it_says(probe: WindowProbe, profile: Profile) -> None:
    """Its windows by reference implementations, against the bytes of the tensor or of the batch."""
    limits = Limits(2**30, 32, 2**16, profile)
    for step in steps_of(probe, limits):
        assert step.work == probe.work
        copied_nbytes = len(step.windows.flips) * prod(step.windows.sizes) * probe.width_nbytes
        assert 100_000 < copied_nbytes < 300_000
        nowhere = Layout.packed((0,))
        plan = Plan(0, 1, 1, nowhere, nowhere, (step,))
        if probe.kernel in (Kernel.CLAIM_WINDOWS, Kernel.CLAIM_ROWS):
            continue
        rng = np.random.default_rng(1)
        source = rng.integers(0, 256, step.source_binding.nbytes, np.uint8)
        target = np.zeros(step.target_binding.nbytes, np.uint8)
        run_plan(plan, source, target, step.windows.offsets)
        share = np.count_nonzero(target) / copied_nbytes
        assert share > (0.2 if probe.ends else 0.5)


def test_probes_of_inserted_windows_are_disjoint() -> None:
    for probe in window_probes():
        for step in steps_of(probe, Limits(2**30, 32, 2**16, CPU)):
            offsets = step.windows.offsets
            assert offsets is not None
            assert len(np.unique(offsets[:, 0])) == len(offsets)
            assert (np.diff(np.sort(offsets[:, 0])) >= step.windows.sizes[0]).all()

"""Copies beyond one dispatch or one binding, at full size: no test lowers a limit."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from helpers import on_one_adapter, random_bytes
from planning import preferring

import wgslice as wg
from wgslice.plans.kernels import Kernel
from wgslice.plans.profiles import GPU
from wgslice.plans.steps import Dispatch

MEMORY = Path("/proc/meminfo")

pytestmark = pytest.mark.xdist_group("memory")  # one process runs all of these, so that one GB is needed once


def need_memory(device: wg.Device, buffer_nbytes: int, all_nbytes: int) -> None:
    """Skip where the device or the machine is too small for a test."""
    if device.largest_buffer_nbytes < buffer_nbytes * 1.1:
        pytest.skip(
            f"{device} has buffers of {device.largest_buffer_nbytes} bytes, too small for {buffer_nbytes}"
        )
    if MEMORY.exists():
        available = int(MEMORY.read_text().split("MemAvailable:")[1].split()[0]) * 1024
        if available < 2 * all_nbytes:
            pytest.skip(f"{available} bytes of memory are left, twice {all_nbytes} are needed")


@pytest.mark.slow
@on_one_adapter  # plans are split on the host
def test_a_vector_of_a_billion_bytes(device: wg.Device) -> None:
    need_memory(device, 10**9, 4 * 10**9)
    x = np.resize(random_bytes(65521), 10**9)  # a prime, so that no two pieces of a plan look alike
    t = wg.asarray(x, device=device)
    for window in (slice(None, None, -3), slice(5, -2)):  # backwards, and at no word's beginning
        assert np.array_equal(t[window].numpy(), x[window])


def test_elements_further_apart_than_a_binding(device: wg.Device) -> None:
    """A window of a few elements over 160 MiB, forwards and backwards, read and written."""
    need_memory(device, 160 * 2**20, 6 * 10**8)
    x = np.arange(40 * 2**20, dtype=np.uint32).reshape(40, 2**20)
    t = wg.asarray(x, device=device)
    for key in (np.s_[::39, 5:9], np.s_[::-39, 9:5:-1], np.s_[39::-39, :: 2**19]):
        assert np.array_equal(t[key].numpy(), x[key])
    out = wg.zeros(x.shape, np.uint32, device=device)
    wg.slice1(t, (0, 5), (40, 4), (-39, 1), out=out[::39, 7:11])
    expected = np.zeros_like(x)
    expected[::39, 7:11] = x[::-39, 5:9]
    assert np.array_equal(out.numpy(), expected)


def test_more_rows_than_a_dimension_of_the_grid(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a GPU that launches an invocation per element of a short row."""
    monkeypatch.setattr(
        device, "limits", replace(device.limits, profile=preferring(GPU, Kernel.ROWS, paired=False))
    )
    x = np.arange(2_600_000 * 3, dtype=np.uint32).reshape(-1, 3)
    operator = device.compile(
        wg.Slice1(wg.TensorDesc("u4", x.shape), wg.TensorDesc("u4", (len(x), 2)), (0, 0), x.shape, (-1, 2))
    )
    (step,) = operator.plan.steps
    assert isinstance(step, Dispatch)
    assert step.share.workgroups[0] * step.share.workgroups[1] > device.limits.workgroups
    assert np.array_equal(operator(wg.asarray(x, device=device)).numpy(), x[::-1, ::2])

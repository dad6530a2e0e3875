"""Waits for the GPU, and what they leave in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from helpers import check_same

import wgslice as wg
from wgslice.gpu.device import TENSOR_USAGES
from wgslice.gpu.hosts import wgpu_native


@pytest.mark.parametrize("yielding_seconds", [60.0, -1.0], ids=["yields", "sleeps"])
def test_a_wait_polls_until_the_work_is_done(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, yielding_seconds: float
) -> None:
    answers = [False, False, False, True]
    monkeypatch.setattr(wgpu_native.WgpuNative, "queue_is_empty", lambda *_: answers.pop(0))
    monkeypatch.setattr(wgpu_native, "YIELDING_SECONDS", yielding_seconds)
    device.synchronize()
    assert not answers


def test_a_poll_distinguishes_pending_work_from_none(device: wg.Device) -> None:
    """A thousand copies take lavapipe 0.1 s; OpenGL's submission waits, and a GPU may be as quick."""
    fresh: Any = wg.Device.request(device.adapter)
    source, target = (fresh.new_buffer(2**20, TENSOR_USAGES) for _ in range(2))
    assert fresh.host.queue_is_empty(fresh.wgpu_device)
    encoder = fresh.new_encoder()
    for _ in range(1000):
        encoder.copy_buffer_to_buffer(source, 0, target, 0, 2**20)
    fresh.submit(encoder)
    if (device.adapter.software, device.adapter.backend) == (True, "Vulkan"):
        assert not fresh.host.queue_is_empty(fresh.wgpu_device)
    fresh.synchronize()
    assert fresh.host.queue_is_empty(fresh.wgpu_device)


def test_synchronize_waits_and_leaves_results_in_place(device: wg.Device) -> None:
    x = wg.asarray(np.arange(100_000), device=device)
    y = x[::-1].copy()
    device.synchronize()
    device.synchronize()
    check_same(y.numpy(), np.arange(100_000)[::-1].copy())

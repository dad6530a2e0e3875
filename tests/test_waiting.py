"""Waits for the GPU: by polls, by a thread, and what they leave in place."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from helpers import check_same

import wgslice as wg
from wgslice.gpu import native


class Polls:
    """Answers to `queue_is_empty` that a test chooses, and what waits for the GPU."""

    def __init__(self, device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
        self.answers: list[bool] = []
        self.waited_in: list[str] = []
        monkeypatch.setattr(native, "queue_is_empty", lambda _: self.answers.pop(0))
        monkeypatch.setattr(
            device.wgpu_device,
            "_poll_wait",
            lambda: self.waited_in.append(threading.current_thread().name),
            raising=False,
        )


@pytest.mark.parametrize("polls", [1, 4])
def test_a_short_wait_ends_by_polls_without_a_thread(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, polls: int
) -> None:
    """One poll ends the wait for an idle device."""
    made = Polls(device, monkeypatch)
    monkeypatch.setattr(native, "POLL_SECONDS", 60.0)
    made.answers += [False] * (polls - 1) + [True]
    device.synchronize()
    assert not made.answers
    assert not made.waited_in


def test_a_long_wait_goes_on_in_a_thread(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Polls(device, monkeypatch)
    monkeypatch.setattr(native, "POLL_SECONDS", -1.0)
    made.answers += [False, True]
    device.synchronize()
    assert made.waited_in == ["wgslice-wait"]
    assert made.answers == [True]


def test_a_poll_distinguishes_pending_work_from_none(device: wg.Device) -> None:
    """A thousand copies take lavapipe 0.1 s; OpenGL's submission waits, and a GPU may be as quick."""
    fresh = wg.Device.request(device.adapter)
    source, target = (fresh.create_buffer(2**20) for _ in range(2))
    assert native.queue_is_empty(fresh.wgpu_device)
    encoder = fresh.create_encoder()
    for _ in range(1000):
        encoder.copy_buffer_to_buffer(source, 0, target, 0, 2**20)
    fresh.submit(encoder)
    if (device.adapter.software, device.adapter.backend) == (True, "Vulkan"):
        assert not native.queue_is_empty(fresh.wgpu_device)
    fresh.synchronize()
    assert native.queue_is_empty(fresh.wgpu_device)


def test_synchronize_waits_and_leaves_results_in_place(device: wg.Device) -> None:
    x = wg.asarray(np.arange(100_000), device=device)
    y = x[::-1].copy()
    device.synchronize()
    device.synchronize()
    check_same(y.numpy(), np.arange(100_000)[::-1].copy())

"""`wg.timed`: the time of the commands that a thread submits."""

from __future__ import annotations

from threading import Thread
from time import perf_counter
from typing import Any

import numpy as np
import pytest

import wgslice as wg


@pytest.fixture(scope="module", params=["host", "gpu"])
def clocked(request: pytest.FixtureRequest, device: wg.Device) -> wg.Device:
    """A device, and one that was asked for timestamps."""
    return wg.Device.request(device.adapter, timestamps=True) if request.param == "gpu" else device


@pytest.mark.every_adapter
def test_a_block_has_the_time_of_its_commands(clocked: wg.Device, request: pytest.FixtureRequest) -> None:
    data = np.arange(2**18, dtype=np.float32).reshape(512, 512)
    x = wg.asarray(data, device=clocked)
    begun = perf_counter()
    with wg.timed(clocked) as t:
        y = x[::-1].copy()
        assert t.seconds == 0
        z = y.T.copy()
    assert t.clock == request.node.callspec.params["clocked"]
    assert 0 < t.seconds <= perf_counter() - begun
    assert np.array_equal(z.numpy(), data[::-1].T)


def test_a_block_without_commands_takes_no_time(clocked: wg.Device) -> None:
    x = wg.zeros(9, device=clocked)
    with wg.timed(clocked) as t:
        _ = x[::-1]
    assert t.seconds == 0


def test_other_threads_and_devices_do_not_begin_a_block(device: wg.Device) -> None:
    x = wg.zeros(9, device=device)
    other = wg.Device.request(device.adapter)
    with wg.timed(other) as t:
        x.copy()
        thread = Thread(target=lambda: wg.zeros(9, device=other).copy())
        thread.start()
        thread.join()
    assert t.seconds == 0


def test_nested_blocks_are_refused(device: wg.Device) -> None:
    with (
        wg.timed(device) as t,
        pytest.raises(RuntimeError, match=r"^timed: a block of this thread is being timed: end it before"),
        wg.timed(device),
    ):
        pass
    with pytest.raises(ZeroDivisionError), wg.timed(device):
        _ = 1 / 0
    x = wg.zeros(9, device=device)
    with wg.timed(device) as again:
        x.copy()
    assert (t.seconds, again.seconds > 0) == (0, True)


def test_what_cannot_be_timed_is_refused(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def timing(x: wg.Tensor) -> Any:
        with wg.timed(x.device):
            return x.copy()

    with pytest.raises(wg.CaptureRefused, match="a block is timed, which a captured call cannot do"):
        wg.capture(timing, x=wg.zeros(9, device=device))
    monkeypatch.setattr("wgslice.gpu.device.TIMESTAMPS", "no-such-feature")
    with pytest.raises(wg.NoAdapterError, match=r"^Device.request: .* has no timestamps: leave timestamps"):
        wg.Device.request(device.adapter, timestamps=True)

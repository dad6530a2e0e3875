"""Waits for the GPU that do not end before a test lets them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest
from onnx_graphs import parsed

import wgslice as wg
import wgslice.onnx as backend
from wgslice.gpu.hosts import wgpu_native
from wgslice.gpu.hosts.wgpu_native import WgpuNative
from wgslice.gpu.protocols import GPUDevice

LONGEST_SECONDS = 30.0  # a wait that nothing else ends, so that a test fails and does not hang


class Stall:
    """A wait that ends only when a test releases it."""

    def __init__(self) -> None:
        self.begun = threading.Event()  # set when a thread waits
        self.over = threading.Event()
        self.timed_out = False
        self.end = time.monotonic() + LONGEST_SECONDS

    def holds(self) -> bool:
        """Whether it still does, after a moment."""
        self.timed_out |= time.monotonic() > self.end
        return not (self.over.wait(0.001) or self.timed_out)

    def hold(self) -> None:
        self.timed_out |= not self.over.wait(LONGEST_SECONDS)


@contextmanager
def paused() -> Iterator[Stall]:
    """Keep whoever waits for a GPU inside of the wait, with all that it holds there, until `over` is set."""
    stall, finishes_before_loss = Stall(), wgpu_native.finishes_before_loss

    def held(is_done: Callable[[], bool], is_lost: Callable[[], bool]) -> bool:
        stall.begun.set()
        stall.hold()
        return finishes_before_loss(is_done, is_lost)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wgpu_native, "finishes_before_loss", held)
        try:
            yield stall
        finally:
            stall.over.set()


@contextmanager
def unanswered(device: wg.Device) -> Iterator[Stall]:
    """Keep wgpu from telling a device that its work is done, as if that took long.

    A submission would tell it all the same.
    """
    stall, finishes_before_loss = Stall(), wgpu_native.finishes_before_loss
    wgpu_device = device.wgpu_device

    def watched(is_done: Callable[[], bool], is_lost: Callable[[], bool]) -> bool:
        stall.begun.set()
        return finishes_before_loss(is_done, is_lost)

    queue_is_empty = WgpuNative.queue_is_empty

    def held_answer(host: WgpuNative, polled: GPUDevice) -> bool:
        return not (polled is wgpu_device and stall.holds()) and queue_is_empty(host, polled)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(wgpu_native, "finishes_before_loss", watched)
        patch.setattr(WgpuNative, "queue_is_empty", held_answer)
        try:
            yield stall
        finally:
            stall.over.set()


def check_ends_when_lost(device: wg.Device, wait: Callable[[], Any]) -> None:
    """A wait in a thread ends with an error once the device is destroyed, and answers no mapping any more."""
    raised: list[type] = []

    def work() -> None:
        try:
            wait()
        except Exception as error:
            raised.append(type(error))

    with unanswered(device) as stall:
        thread = threading.Thread(target=work, daemon=True)
        thread.start()
        assert stall.begun.wait(LONGEST_SECONDS)
        device.wgpu_device.destroy()
        thread.join(LONGEST_SECONDS)
        assert not stall.timed_out
    assert raised == [wg.DeviceLostError]


def transposing(device: wg.Device, sizes: tuple[int, int]) -> Any:
    """A model that transposes, on a device."""
    model = parsed(f"(int32[{sizes[0]}, {sizes[1]}] x) => (int32[m, n] y) {{ y = Transpose(x) }}", 13)
    return backend.prepare(model, device=device)


def waits(device: wg.Device, x: Any) -> dict[str, Callable[[], Any]]:
    """Everything that waits for a GPU, for an int32 array of two dimensions."""
    tensor, model = wg.asarray(x, device=device), transposing(device, x.shape)
    return {
        "numpy": tensor.numpy,
        "numpy of a view": tensor[::-1, ::2].numpy,
        "asarray": lambda: np.asarray(tensor),
        "synchronize": device.synchronize,
        "a model": lambda: model.run([x]),
    }


WAITS = ("numpy", "numpy of a view", "asarray", "synchronize", "a model")

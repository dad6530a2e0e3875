"""Threads that share a device: results are right, and a thread that waits stops no other."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest
from helpers import check_same, in_threads, make_buffer, record
from waits import LONGEST_SECONDS, WAITS, paused, transposing, waits

import wgslice as wg

ARRAY = np.arange(600 * 5000, dtype=np.int32).reshape(600, 5000)  # 12 MB, so that a readback has two chunks
SIZES = (40, 60)


def test_eight_threads_on_one_device_stay_right(device: wg.Device) -> None:
    """All that a device can do, in plans, kernels and buffers that no other test has used before."""
    shared = wg.Device.request(device.adapter)
    model = transposing(shared, SIZES)
    flip = shared.compile(
        wg.Slice1(wg.TensorDesc("int32", SIZES), wg.TensorDesc("int32", (40, 20)), (0, 0), SIZES, (-1, 3))
    )
    finished = []

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        for _ in range(6):
            dtype = random.choice(["int8", "uint16", "float32", "int64", "complex128"])
            array = random.integers(0, 100, SIZES).astype(dtype)
            x = wg.asarray(array, device=shared)
            key = (slice(None, None, int(random.choice([-2, -1, 1, 3]))), slice(number, -1 - number))
            check_same(x[key].numpy(), array[key].copy())
            check_same(x.T[::-1].copy().numpy(), array.T[::-1].copy())
            offsets = random.integers(0, 30, (9, 2))
            windows = [array[row : row + 10, column : column + 11] for row, column in offsets]
            check_same(wg.extract_windows(x, offsets, (10, 11)).numpy(), np.stack(windows))
            x[5:15] = x[10:20]  # through a staging copy
            array[5:15] = array[10:20].copy()
            check_same(np.asarray(x), array)
            integers = random.integers(0, 99, SIZES, np.int32)
            on_device = wg.asarray(integers, device=shared)
            encoder = shared.wgpu_device.create_command_encoder()
            recorded = make_buffer(shared, np.zeros(3200, np.uint8))
            flip.record(encoder, input=on_device, output=recorded)
            shared.wgpu_device.queue.submit([encoder.finish()])
            check_same(flip(on_device).numpy(), integers[::-1, ::3].copy())
            check_same(wg.from_buffer(recorded, (40, 20), np.int32).numpy(), integers[::-1, ::3].copy())
            check_same(model.run([integers])[0], integers.T.copy())
            shared.synchronize()
        finished.append(number)

    in_threads(work, 8)
    assert sorted(finished) == list(range(8))
    assert all(buffer.map_state == "unmapped" for buffer in shared.staging.buffers)


@pytest.mark.parametrize("wait", WAITS)
def test_a_waiting_thread_does_not_block_others(device: wg.Device, wait: str) -> None:
    """While one waits for work that does not end, another plans, compiles, uploads, records and submits."""
    shared = wg.Device.request(device.adapter)
    begin = waits(shared, ARRAY)
    expected = begin[wait]()
    model = transposing(shared, SIZES)
    results: list[Any] = []

    def other() -> list[wg.Tensor]:
        x = wg.asarray(ARRAY[:40, :60], device=shared)
        described = wg.TensorDesc("int32", SIZES), wg.TensorDesc("int32", (40, 30))
        operator = shared.compile(wg.Slice1(*described, (0, 0), SIZES, (1, -2)))
        recorded = wg.zeros((40, 30), np.int32, device=shared)
        record(shared, operator, input=x, output=recorded)
        windows = wg.extract_windows(x, [[0, 0], [3, 5]], (10, 11))
        (turned,) = model.run_on_device([x])
        assert wg.adapters()
        assert wg.Device.wrap(shared.wgpu_device) is shared
        return [recorded, windows, turned]

    with paused() as stall:
        waiting = threading.Thread(target=lambda: results.append(begin[wait]()))
        waiting.start()
        assert stall.begun.wait(LONGEST_SECONDS)
        recorded, windows, turned = other()
        assert waiting.is_alive()
        assert not stall.timed_out
        stall.over.set()
        waiting.join()
    assert np.array_equal(results[0], expected)
    check_same(recorded.numpy(), ARRAY[:40, 59:0:-2][:, :30].copy())
    check_same(windows.numpy(), np.stack([ARRAY[:10, :11], ARRAY[3:13, 5:16]]))
    check_same(turned.numpy(), ARRAY[:40, :60].T.copy())


def test_runs_of_one_model_do_not_wait_for_each_other(device: wg.Device) -> None:
    """The second begins, and is submitted, while the first is read back; both are right."""
    shared = wg.Device.request(device.adapter)
    model = transposing(shared, SIZES)
    arrays = [np.arange(2400, dtype=np.int32).reshape(SIZES) + 5000 * number for number in range(8)]
    model.run([arrays[0]])
    results: dict[int, Any] = {}

    def work(number: int) -> None:
        results[number] = model.run([arrays[number]])[0]

    with paused() as stall:
        first = threading.Thread(target=work, args=(0,))
        first.start()
        assert stall.begun.wait(LONGEST_SECONDS)
        stall.begun.clear()
        second = threading.Thread(target=work, args=(1,))
        second.start()
        assert stall.begun.wait(LONGEST_SECONDS)
        assert first.is_alive()
        assert second.is_alive()
        assert not stall.timed_out
        stall.over.set()
        first.join()
        second.join()
    in_threads(work, 8)
    for number, array in enumerate(arrays):
        check_same(results[number], array.T.copy())

"""Readback from the buffers of tensors themselves, which are mapped where the adapter is the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import wgpu
from helpers import check_same, random_bytes, run_python
from running import noted

import wgslice as wg

STAGING = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
ARRAY = random_bytes(300_003 * 11).reshape(-1, 11)


@pytest.fixture
def mapping(device: wg.Device) -> wg.Device:
    """A new device that maps tensors."""
    if not (device.adapter.software and device.adapter.backend == "Vulkan"):
        pytest.skip("tensors are mapped on CPU adapters of Vulkan")
    return wg.Device.request(device.adapter)


@pytest.fixture
def usages(mapping: wg.Device) -> Iterator[list[int]]:
    """Usages of the buffers that the device makes."""
    with noted(mapping.wgpu_device, "create_buffer", lambda *, usage, **_: usage) as found:
        yield found


def test_tensors_and_views_need_no_staging_buffer(mapping: wg.Device, usages: list[int]) -> None:
    x = wg.asarray(ARRAY, device=mapping)
    check_same(x.numpy(), ARRAY)
    check_same(x[1:].numpy(), ARRAY[1:])  # from an offset that is no multiple of 4
    check_same(np.asarray(x[::-1, ::3]), ARRAY[::-1, ::3].copy())
    assert x.item(7, 3) == ARRAY[7, 3]
    x[2:4] = 9  # by a submission after a mapping
    assert x[3].tolist() == [9] * 11
    assert STAGING not in usages


def test_bytes_that_the_queue_holds_arrive(mapping: wg.Device) -> None:
    """No mapping waits for them, neither here nor by the user."""
    for size in range(1, 9):
        array = random_bytes(size)
        check_same(wg.asarray(array, device=mapping).numpy(), array)
        buffer: Any = wg.asarray(array, device=mapping).buffer
        buffer.map_sync(wgpu.MapMode.READ)
        check_same(np.asarray(buffer.read_mapped())[:size], array)
        buffer.unmap()


def test_buffers_that_the_user_has_are_not_mapped(mapping: wg.Device, usages: list[int]) -> None:
    x, y = (wg.asarray(ARRAY, device=mapping) for _ in range(2))
    encoder = mapping.wgpu_device.create_command_encoder()
    encoder.copy_buffer_to_buffer(x.buffer, 0, y.buffer, 0, 64)
    pending = x.numpy_async()
    check_same(x.numpy(), ARRAY)
    mapping.wgpu_device.queue.submit([encoder.finish()])
    check_same(pending.sync_wait(), ARRAY)
    assert STAGING in usages


def test_other_devices_take_the_staging_way(mapping: wg.Device) -> None:
    """Those of GPUs, and those that a program has made without the feature."""
    listed_as_gpu = wg.Device.request(replace(mapping.adapter, kind="IntegratedGPU"))
    wrapped = wg.Device.wrap(mapping.adapter.handle.request_device_sync())
    for other in (listed_as_gpu, wrapped):
        x = wg.asarray(ARRAY, device=other)
        assert not x.buffer.usage & wgpu.BufferUsage.MAP_READ
        check_same(x.numpy(), ARRAY)


def test_a_buffer_in_use_by_another_submission_is_read_by_a_copy(
    mapping: wg.Device, usages: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another thread may submit work between the end of this thread's wait and the mapping."""
    x = wg.asarray(ARRAY, device=mapping)
    monkeypatch.setattr("wgslice.gpu.hosts.wgpu_native.Polled.is_over", lambda pending: pending.is_done)
    monkeypatch.setattr("wgslice.gpu.hosts.wgpu_native.Polled.wait", lambda _: mapping.synchronize())
    check_same(x.numpy(), ARRAY)
    assert STAGING in usages
    monkeypatch.undo()
    x[0] = 1
    check_same(x[0].numpy(), np.ones(11, np.uint8))


# wgpu aborts a process that submits commands on a mapped buffer.
THREADS = """
import threading, numpy as np, wgslice as wg
device = wg.default_device()
assert device.maps_tensors
array = np.arange(60_000, dtype=np.int32)
x, y = wg.asarray(array), wg.asarray(array)
done = []
def work(number):
    for step in range(150):
        if number % 3 == 0:
            assert np.array_equal(x.numpy(), array)
        elif number % 3 == 1:
            assert np.array_equal(x[::-1].copy().numpy(), array[::-1])
        else:
            y[...] = array
            y[1:] = x[:-1]
            x.buffer if step == 100 else y.numpy()
    done.append(number)
threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert np.array_equal(y.numpy()[1:], array[:-1])
print(sorted(done))
"""


def test_threads_read_and_submit_at_once(mapping: wg.Device) -> None:
    done = run_python(THREADS, WGSLICE_ADAPTER=str(mapping.adapter))
    assert done.stdout == "[0, 1, 2, 3, 4, 5]\n", done.stderr

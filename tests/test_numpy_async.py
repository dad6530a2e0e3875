"""Readback without waiting: promises of arrays, several at a time, through reused staging buffers."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import wgpu
from helpers import STORAGE, check_same, make_buffer, random_bytes
from running import noted
from waits import LONGEST_SECONDS, check_ends_when_lost

import wgslice as wg
from wgslice.gpu.hosts import wgpu_native

ARRAY = np.arange(300_000, dtype=np.int32).reshape(300, 1000)


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    "view",
    [
        np.s_[:],
        np.s_[::-1, ::3],
        np.s_[7:, 1:],
        np.s_[5:5],
        np.s_[3, 4],
    ],
)
@pytest.mark.parametrize("dtype", ["u1", "i4", "c16"])
def test_views_arrive_bit_for_bit(device: wg.Device, dtype: str, view: Any) -> None:
    array = random_bytes(60 * 50 * np.dtype(dtype).itemsize).view(dtype).reshape(60, 50)
    read = wg.asarray(array, device=device)[view].numpy_async().sync_wait()
    check_same(read, np.array(array[view]))
    assert read.flags.writeable


def test_bytes_at_any_offset_and_more_than_a_staging_buffer(device: wg.Device) -> None:
    array = random_bytes(9 * 2**20 + 5)
    x = wg.asarray(array, device=device)
    promises = [x[start:].numpy_async() for start in range(5)]
    for start in (3, 0, 4, 1, 2):  # in any order
        assert np.array_equal(promises[start].sync_wait(), array[start:])


def test_buffers_that_cannot_be_copied_from_are_read(device: wg.Device) -> None:
    content = random_bytes(64)
    x = wg.from_buffer(make_buffer(device, content, STORAGE), 32, np.uint8, offset=8)
    check_same(x.numpy_async().sync_wait(), content[8:40])


def test_elements_are_those_of_the_call(device: wg.Device) -> None:
    x = wg.asarray(ARRAY, device=device)
    promise = x.numpy_async()
    x[...] = -1
    check_same(promise.sync_wait(), ARRAY)
    assert promise.sync_wait() is promise.sync_wait()


def test_await_and_then_in_an_event_loop(device: wg.Device) -> None:
    x = wg.asarray(ARRAY, device=device)

    async def main() -> None:
        first, second = x[::2].numpy_async(), x[1::2].numpy_async()
        seen: list[Any] = []
        appended = second.then(seen.append)
        check_same(await first, ARRAY[::2].copy())
        await appended
        check_same(seen[0], ARRAY[1::2].copy())
        assert await second is seen[0]
        assert await asyncio.gather(*(settled(x[:count].numpy_async()) for count in range(4))) == [
            count * 1000 for count in range(4)
        ]

    async def settled(promise: Any) -> int:
        return int((await promise).size)

    asyncio.run(main())


def test_what_has_arrived_is_awaited_without_a_sleep(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    x = wg.asarray(ARRAY, device=device)
    slept: list[float] = []
    monkeypatch.setattr("wgpu._async.async_sleep", slept.append)

    async def main() -> None:
        promise = x.numpy_async()
        device.synchronize()
        check_same(await promise, ARRAY)

    asyncio.run(main())
    assert not slept


def test_then_outside_of_an_event_loop_raises(device: wg.Device) -> None:
    with pytest.raises(RuntimeError, match="no running event loop"):
        wg.asarray(ARRAY, device=device).numpy_async().then(print)


def test_a_promise_outlives_its_event_loop(device: wg.Device) -> None:
    """It is waited for, and awaited and followed in another loop."""
    x = wg.asarray(ARRAY, device=device)

    async def begun() -> Any:
        return x[::-1].numpy_async()

    async def awaited(promise: Any) -> Any:
        seen: list[Any] = []
        await promise.then(seen.append)
        assert await promise is seen[0]
        return seen[0]

    ends: tuple[Callable[[Any], Any], ...] = (
        lambda promise: promise.sync_wait(),
        lambda promise: asyncio.run(asyncio.wait_for(awaited(promise), LONGEST_SECONDS)),
    )
    for end in ends:
        check_same(end(asyncio.run(begun())), ARRAY[::-1].copy())


def test_what_then_calls_may_fail(device: wg.Device) -> None:
    x = wg.asarray(ARRAY, device=device)

    async def main() -> list[Any]:
        failed = x.numpy_async().then(lambda array: 1 // (array.size - ARRAY.size))
        return [*await asyncio.gather(failed, return_exceptions=True)]

    (error,) = asyncio.run(main())
    assert isinstance(error, ZeroDivisionError)


def test_frames_read_two_frames_later_block_nothing(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And no staging buffer is made after the first frames."""
    fresh = wg.Device.request(device.adapter)
    blocked, finishes = [0], wgpu_native.finishes_before_loss

    def watched(is_done: Callable[[], bool], is_lost: Callable[[], bool]) -> bool:
        blocked[0] += not is_done()
        return finishes(is_done, is_lost)

    monkeypatch.setattr(wgpu_native, "finishes_before_loss", watched)
    with noted(fresh.wgpu_device, "create_buffer", lambda *, usage, **_: usage) as usages:
        texture = fresh.wgpu_device.create_texture(size=(65, 40, 1), format="rgba8unorm", usage=3)
        pending: deque[tuple[int, Any]] = deque()
        for number in range(12):
            wg.copy_to_texture(wg.full((40, 65, 4), number, np.uint8, device=fresh), texture)
            pending.append((number, wg.from_texture(texture).numpy_async()))
            time_of_two_frames(pending[0][1])
            if len(pending) > 2:
                drawn, promise = pending.popleft()
                check_same(promise.sync_wait(), np.full((40, 65, 4), drawn, np.uint8))
    assert blocked == [0]
    assert usages.count(wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST) == 3


def time_of_two_frames(promise: Any) -> None:
    """Sleep as long as frames take that a promise is late by, on a machine of any load."""
    end = time.monotonic() + LONGEST_SECONDS
    while not promise._readback.mapping.is_over():
        assert time.monotonic() < end
        time.sleep(0.001)


def test_a_promise_of_a_lost_device_is_rejected(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    x = wg.asarray(np.arange(2_000_000), device=lost)

    async def main() -> list[Any]:
        promises = [x[::-1].numpy_async() for _ in range(4)]
        seen: list[Exception] = []
        promises[3].then(print, seen.append)
        lost.wgpu_device.destroy()
        raised = await asyncio.wait_for(
            asyncio.gather(*map(awaited, promises), return_exceptions=True), LONGEST_SECONDS
        )
        await asyncio.sleep(0)
        return [*raised, *seen]

    async def awaited(promise: Any) -> Any:
        return await promise

    assert [type(each) for each in asyncio.run(main())] == [wg.DeviceLostError] * 5
    with pytest.raises(wg.DeviceLostError):
        x.numpy_async()


def test_a_wait_for_a_promise_ends_when_the_device_is_lost(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    x = wg.asarray(ARRAY, device=lost)
    check_ends_when_lost(lost, lambda: x.numpy_async().sync_wait())


def test_an_interrupted_wait_may_be_repeated(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> bool:
        raise KeyboardInterrupt

    promise = wg.asarray(ARRAY, device=device)[::-1].numpy_async()
    with monkeypatch.context() as patch:
        patch.setattr(wgpu_native, "finishes_before_loss", interrupt)
        with pytest.raises(KeyboardInterrupt):
            promise.sync_wait()
    check_same(promise.sync_wait(), ARRAY[::-1].copy())


def test_destroyed_buffers_and_captured_calls_are_refused(device: wg.Device) -> None:
    buffer = make_buffer(device, random_bytes(64))
    x = wg.from_buffer(buffer, 64, np.uint8)
    buffer.destroy()
    with pytest.raises(ValueError, match="numpy_async: the buffer has been destroyed"):
        x.numpy_async()
    with pytest.raises(wg.CaptureRefused, match=r"numpy_async: 1200000 bytes are read back"):
        wg.explain(lambda: wg.asarray(ARRAY, device=device).numpy_async())

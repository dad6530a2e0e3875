"""The memory of released tensors is reused by others, which no result shows."""

from __future__ import annotations

import gc
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
import wgpu
from helpers import check_same, in_threads
from hypothesis import given
from hypothesis import strategies as st
from moving import numbered
from numpy.typing import NDArray
from running import noted

import wgslice as wg

MIB = 2**20
SIZES = (MIB, MIB + 5, MIB + 16, 2 * MIB)  # bytes; the second leaves 11 of its buffer


def numbers(size: int, seed: int) -> NDArray[np.uint8]:
    """Bytes without a zero, others for each seed."""
    return (np.arange(size, dtype=np.uint32) * 3 + seed * 7 + (np.arange(size) >> 8)).astype(
        np.uint8
    ) | np.uint8(1)


def behind(x: wg.Tensor) -> NDArray[Any]:
    """The bytes of a packed tensor's buffer after the tensor."""
    return wg.from_buffer(x.buffer, (x.buffer.size,), np.uint8).numpy()[x.offset + x.nbytes :]


def scattered(x: wg.Tensor) -> wg.Tensor:
    """Each element behind a zero, into memory of which only every second byte is written."""
    return wg.slice_grad(x, [1], [2 * x.size - 1], [2], output_sizes=[2 * x.size])


def exposed(x: wg.Tensor) -> wg.Tensor:
    """The tensor, whose buffer has been asked for."""
    assert x.buffer.size >= x.nbytes
    return x


def written(x: wg.Tensor) -> wg.Tensor:
    """A copy into an empty tensor, after which there are zeros."""
    out = wg.empty(x.size, np.uint8, device=x.device)
    check_same(behind(out), np.zeros(-x.size % 16, np.uint8))
    wg.copyto(out, x)
    return out


QUARTERS = [3, 0, 3, 1]
DERIVED: dict[str, tuple[Callable[[wg.Tensor], wg.Tensor], Callable[[Any], Any]]] = {
    "copy": (lambda x: x[::-1].copy(), lambda a: a[::-1]),
    "view": (lambda x: x[::2], lambda a: a[::2]),
    "exposed": (exposed, lambda a: a),
    "written": (written, lambda a: a),
    "zeros": (lambda x: wg.zeros(x.size, np.uint8, device=x.device), np.zeros_like),
    "pad": (lambda x: wg.pad(x, (3, 2)), lambda a: np.pad(a, (3, 2))),
    "gradient": (scattered, lambda a: np.stack([np.zeros_like(a), a], axis=1).reshape(-1)),
    "gather": (
        lambda x: x[: x.size // 4 * 4].reshape(4, -1)[QUARTERS].reshape(-1),
        lambda a: a[: a.size // 4 * 4].reshape(4, -1)[QUARTERS].reshape(-1),
    ),
}
ACTIONS = st.tuples(
    st.sampled_from(["upload", "release", *DERIVED]), st.integers(0, 20), st.sampled_from(SIZES)
)


@given(st.lists(ACTIONS, min_size=5, max_size=25))
def test_reuse_leaves_every_living_tensor_as_it_is(
    device: wg.Device, actions: list[tuple[str, int, int]]
) -> None:
    living: list[tuple[wg.Tensor, NDArray[np.uint8]]] = []
    for seed, (action, choice, size) in enumerate(actions):
        if action == "upload" or not living:
            array = numbers(size, seed)
            living.append((wg.asarray(array, device=device), array))
        elif action == "release":
            living.pop(choice % len(living))
        else:
            x, array = living[choice % len(living)]
            derive, expected = DERIVED[action]
            if array.size < 8 * MIB:
                living.append((derive(x), expected(array)))
            del x
    for x, array in living:
        check_same(x.numpy(), np.ascontiguousarray(array))


def test_released_memory_is_reused_up_to_a_limit(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    def made(limit_mib: str, *sizes: int) -> int:
        """Count the buffers made for tensors of some sizes, alive at the same time, and for as many again."""
        monkeypatch.setenv("WGSLICE_REUSED_MIB", limit_mib)
        used = wg.Device.request(device.adapter)
        with noted(used.wgpu_device, "create_buffer") as created:
            for _ in range(2):
                tensors = [wg.empty(size, np.uint8, device=used) for size in sizes]
                del tensors
        return len(created)

    assert made("8", MIB, MIB, 3 * MIB) == 3
    assert made("8", MIB, MIB + 5, MIB + 16) == 2 + 1  # two of them have buffers of one size
    assert made("8", 9 * MIB, MIB // 2) == 4  # too large, and too small
    assert made("3", 2 * MIB, 2 * MIB) == 3
    assert made("0", MIB) == 2


def test_limit_that_is_no_number_is_refused(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WGSLICE_REUSED_MIB", "1 GiB")
    with pytest.raises(ValueError, match="WGSLICE_REUSED_MIB = '1 GiB': must be a number of MiB"):
        wg.Device.request(device.adapter)


def test_exposed_buffers_are_left_to_whoever_has_them(device: wg.Device) -> None:
    """Commands that a program recorded itself, and submits after the tensor's end, reach no other tensor."""
    ones = wg.full(MIB, 1, np.uint8, device=device)
    step = device.compile(
        wg.Slice1(wg.TensorDesc("uint8", (MIB,)), wg.TensorDesc("uint8", (MIB,)), (0,), (MIB,), (-1,))
    )
    encoder = device.wgpu_device.create_command_encoder()
    first, second = (wg.empty(MIB, np.uint8, device=device) for _ in range(2))
    encoder.copy_buffer_to_buffer(ones.buffer, 0, first[::2].buffer, 0, MIB)
    step.record(encoder, input=ones, output=second)
    del first, second
    after = [wg.full(MIB, 2, np.uint8, device=device) for _ in range(3)]
    device.wgpu_device.queue.submit([encoder.finish()])
    for x in after:
        check_same(x.numpy(), np.full(MIB, 2, np.uint8))


def test_memory_of_a_reference_cycle_is_reused_alive(device: wg.Device) -> None:
    """The garbage collector finalizes all objects of a cycle before it drops their references."""
    for turn in range(4):
        array = numbers(3 * MIB, turn)
        cycle: list[Any] = [wg.asarray(array, device=device)]
        cycle.append(cycle)
        check_same(cycle[0][::-1].numpy(), array[::-1])
        del cycle
        gc.collect()


def test_exhausted_memory_frees_what_was_kept(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    full = wg.Device.request(device.adapter)
    create = full.wgpu_device.create_buffer
    refusals = [0]

    def refused(*, size: int, usage: int) -> Any:
        if refusals[0]:
            refusals[0] -= 1
            raise wgpu.GPUValidationError("In wgpuDeviceCreateBuffer\n  Not enough memory left.")
        return create(size=size, usage=usage)

    monkeypatch.setattr(full.wgpu_device, "create_buffer", refused)
    array = numbers(2 * MIB, 1)
    refusals[0] = 1
    with pytest.raises(wg.OutOfDeviceMemory):  # nothing is kept yet
        wg.asarray(array, device=full)
    wg.asarray(array[:MIB], device=full)
    refusals[0] = 1
    check_same(wg.asarray(array, device=full).numpy(), array)
    assert refusals == [0]


def test_a_lost_device_is_named_where_memory_was_kept(device: wg.Device) -> None:
    lost = wg.Device.request(device.adapter)
    wg.asarray(numbers(MIB, 1), device=lost)
    lost.wgpu_device.destroy()
    for make in (wg.empty, wg.zeros):
        with pytest.raises(wg.DeviceLostError):
            make(MIB, np.uint8, device=lost)


def test_threads_share_released_memory(device: wg.Device) -> None:
    def work(number: int) -> None:
        for turn in range(8):
            array = numbers(SIZES[turn % 2], number * 8 + turn)
            x = wg.asarray(array, device=device)
            y = x[::-1].copy()
            del x
            check_same(y[1:].copy().numpy(), array[::-1][1:].copy())

    in_threads(work, 4)


@pytest.mark.every_adapter
@pytest.mark.usefixtures("garbage")
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
@pytest.mark.parametrize("captured", [False, True])
def test_rows_are_written_at_device_resident_indices(device: wg.Device, dtype: str, captured: bool) -> None:
    """Rows that are no whole words, at the place that the table of their windows names in each dimension."""
    array, rows = numbered((8, 5, 7), dtype), numbered((3, 5, 7), dtype)[::-1]
    x, value = wg.asarray(array, device=device), wg.asarray(rows, device=device)
    places = wg.asarray([6, 1, 4], device=device)

    def write(x: wg.Tensor) -> None:
        np.pad(cast("Any", x), 2, constant_values=1).copy()  # memory that a program uses again
        x[places] = value

    if captured:
        wg.capture(write, x=x)(x=x)
    else:
        write(x)
    array[[6, 1, 4]] = rows
    check_same(x.numpy(), array)


@pytest.mark.usefixtures("garbage")
@pytest.mark.parametrize("sizes", [None, [(2,), (3,)]])
def test_a_compiled_insertion_begins_with_zeros(device: wg.Device, sizes: Any) -> None:
    array = np.array([7, 8, 9, 1, 2, 3] if sizes is None else [7, 8, *[0] * 14, 1, 2, 3, *[0] * 13], np.uint8)
    given = array.reshape(2, 3) if sizes is None else array
    described = wg.TensorDesc("uint8", given.shape), wg.TensorDesc("uint8", (2**20,))
    operator = device.compile(wg.InsertWindows(*described, [[4], [90]], sizes=sizes))
    expected = np.zeros(2**20, np.uint8)
    expected[4:7], expected[90:93] = ([7, 8, 9] if sizes is None else [7, 8, 0]), [1, 2, 3]
    check_same(operator(wg.asarray(given, device=device)).numpy(), expected)

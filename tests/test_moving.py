"""Functions that move elements: NumPy's results bit for bit, views where promised, else one submission."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest
from helpers import check_same, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from moving import GATHERED, Pair, check_moved, numbered, pairs, shapes

import wgslice as wg
from wgslice import array_api as xp
from wgslice.numpy_protocol.joining import MANY
from wgslice.numpy_protocol.taking import take_along_axis

MODES = ["constant", "edge", "reflect", "symmetric", "wrap"]


def check_both_ways(device: wg.Device, function: Callable[[], wg.Tensor], expected: Any) -> None:
    """By indices where there are several pieces, and piece by piece."""
    check_moved(device, function, expected)
    with mock.patch(GATHERED, 0):
        check_moved(device, function, expected)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32"])
@pytest.mark.parametrize("channels", [(3, 1), (1, 0, 3), (2, 2), (3, 2)])
def test_channels_are_joined_through_planes(device: wg.Device, dtype: str, channels: tuple[int, ...]) -> None:
    """Up to four sub-word channels are interleaved by one kernel; more are written at a step."""
    whole = random_bytes(41 * 32 * 5 * 4).view(dtype)[: 41 * 32 * 5].reshape(41, 32, 5)
    ends = np.cumsum(channels)
    arrays = [whole[:, ::-1, end - size : end] for size, end in zip(channels, ends, strict=True)]
    tensors = [
        wg.asarray(whole, device=device)[:, ::-1, end - size : end]
        for size, end in zip(channels, ends, strict=True)
    ]
    with mock.patch(GATHERED, 0):
        shown = str(wg.explain(wg.concat, tensors, -1))
        check_moved(device, lambda: wg.concat(tensors, -1), np.concatenate(arrays, -1))
    interleaved = dtype != "float32" and sum(channels) <= 4
    assert f"{sum(size > 0 for size in channels) + interleaved} plans in 1 submission" in shown


@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "complex128"])
@pytest.mark.parametrize("count", [MANY - 1, MANY])
def test_many_views_of_one_buffer_are_joined_at_once(device: wg.Device, dtype: str, count: int) -> None:
    array = random_bytes(40 * 6 * 5 * 16).view(dtype)[: 40 * 6 * 5].reshape(40, 6, 5)
    x = wg.asarray(array, device=device)
    keys = [np.s_[k % 37 : k % 37 + k % 3, :: (-1) ** k, 1:4] for k in range(count)]  # some of no element
    rows = [np.s_[k % 40, :: (-1) ** (k // 2)] for k in range(count)]
    parts = [x[key] for key in keys]
    check_moved(device, lambda: wg.concat(parts), np.concatenate([array[key] for key in keys]))
    check_moved(
        device, lambda: wg.stack([x[key] for key in rows], 1), np.stack([array[key] for key in rows], 1)
    )
    filled = sum(part.size > 0 for part in parts)
    assert len(wg.explain(wg.concat, parts).plans) == (1 if count == MANY else filled)
    program = wg.capture(lambda x: wg.concat([x[key] for key in keys]), x=x)
    other = array[::-1].copy()
    check_same(
        program(x=wg.asarray(other, device=device)).numpy(), np.concatenate([other[key] for key in keys])
    )
    assert wg.concat([x[:, :0]] * count).shape == (40 * count, 0, 5)


def test_many_views_of_a_destroyed_buffer_are_refused(device: wg.Device) -> None:
    x = wg.zeros(9, device=device)
    x.buffer.destroy()
    with pytest.raises(ValueError, match=r"concat: arrays\[0\]: .*destroyed"):
        wg.concat([x] * MANY)


@pytest.mark.parametrize("rank", [4, 5, 8])
def test_every_dimension_is_tiled(device: wg.Device, rank: int) -> None:
    """Up to rank 4 one copy has dimensions enough; a result of more than 8 is made one by one."""
    x = Pair(wg.asarray(numbered((2,) * rank, "uint8"), device=device), numbered((2,) * rank, "uint8"))
    check_moved(device, lambda: wg.tile(x.tensor, (2,) * rank), np.tile(x.array, (2,) * rank))
    check_moved(device, lambda: wg.tile(x.tensor.T, (2,) * rank), np.tile(x.array.T, (2,) * rank))


@given(data=st.data())
def test_constants_of_a_border_may_differ(device: wg.Device, data: st.DataObject) -> None:
    x = data.draw(pairs(device, shapes(least=1, most=3), "int16"))
    rank = x.array.ndim
    constant = st.integers(-9, 99)
    couple = st.tuples(constant, constant)
    values: Any = data.draw(st.one_of(constant, couple, st.tuples(*[couple] * rank)))
    widths: Any = data.draw(st.tuples(*[st.tuples(*[st.integers(0, 3)] * 2)] * rank))
    expected = np.pad(x.array, widths, constant_values=values)
    check_moved(device, lambda: wg.pad(x.tensor, widths, constant_values=values), expected)


def test_pad_takes_widths_by_axis_and_casts_constants(device: wg.Device) -> None:
    array = numbered((2, 3), "uint8")
    x = wg.asarray(array, device=device)
    check_same(wg.pad(x, {-1: (2, 1), 0: 3}).numpy(), np.pad(array, [(3, 3), (2, 1)]))
    check_same(wg.pad(x, {0: 9, -1: 1, -2: (0, 2)}).numpy(), np.pad(array, [(0, 2), (1, 1)]))
    check_same(wg.pad(x, 1, constant_values=2.9).numpy(), np.pad(array, 1, constant_values=2.9))
    nan = np.array([[0x7FC1]], np.uint16).view(np.float16)
    padded = wg.pad(wg.asarray(nan, device=device), 1, constant_values=-0.0).numpy()
    check_same(padded.view(np.uint16), np.pad(nan.view(np.uint16), 1, constant_values=0x8000))


@pytest.mark.parametrize("rank", [5, 8])
@pytest.mark.parametrize("mode", MODES)
def test_pad_of_many_dimensions(device: wg.Device, mode: Any, rank: int) -> None:
    array = numbered((2,) * rank, "uint8")
    x = wg.asarray(array, device=device)
    check_both_ways(device, lambda: wg.pad(x, 1, mode), np.pad(array, 1, mode))


@pytest.mark.parametrize(
    ("shape", "widths", "plans"),
    [
        ((30, 40), ((1, 0), (0, 1)), 1),
        ((30, 40), ((1, 1), (0, 0)), 3),  # as few buffer copies
        ((30, 40), ((1, 0), (0, 0)), 2),
        ((253, 127), ((1, 2), (1, 0)), 1),  # 2**15 elements
        ((253, 127), ((1, 2), (1, 1)), 9),
        ((2, 3, 4, 5, 6), ((0, 0), (1, 1), (0, 0), (0, 0), (1, 1)), 1),  # tables of four dimensions
        ((2, 3, 4, 5, 6), ((1, 1), (0, 0), (0, 0), (0, 0), (1, 1)), 9),
    ],
)
def test_several_pieces_of_few_elements_are_one_gather(
    device: wg.Device, shape: tuple[int, ...], widths: tuple[tuple[int, int], ...], plans: int
) -> None:
    array = numbered(shape, "float32")
    x = wg.asarray(array, device=device)
    check_moved(device, lambda: wg.pad(x, widths, "edge"), np.pad(array, widths, "edge"))
    assert len(wg.explain(wg.pad, x, widths, "edge").plans) == plans


@pytest.mark.parametrize("k", [-300, -299, -1, 0, 1, 257, 399, 400])
def test_large_triangles(device: wg.Device, k: int) -> None:
    array = numbered((300, 400), "float32")
    check_moved(device, lambda: xp.tril(wg.asarray(array, device=device), k=k), np.tril(array, k))
    check_moved(device, lambda: xp.triu(wg.asarray(array, device=device), k=k), np.triu(array, k))


def test_other_spellings(device: wg.Device) -> None:
    array = numbered((2, 3, 4), "int16")
    x = wg.asarray(array, device=device)
    for view in (wg.permute(x, 2, 0, 1), wg.permute(x, (2, 0, 1)), wg.permute(x, axes=(2, 0, 1))):
        check_same(view.numpy(), array.transpose(2, 0, 1))
    check_same(wg.permute(x[0, 0], 0).numpy(), array[0, 0])
    for view in (wg.reverse(x, 1), wg.reverse(x, axes=1), wg.reverse(x, axis=1), wg.reverse(x, axis=(1,))):
        check_same(view.numpy(), array[:, ::-1])


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (2, 3)])
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "int32", "complex128"])
def test_filled_tensors(device: wg.Device, shape: tuple[int, ...], dtype: str) -> None:
    like = wg.asarray(np.zeros(shape, np.int16), device=device)
    for made, expected in (
        (wg.full(shape, 1, dtype, device=device), np.full(shape, 1, dtype)),
        (wg.full(shape, True, None, device=device), np.full(shape, True)),
        (wg.full(shape, 2.5, None, device=device), np.full(shape, 2.5)),
        (wg.full(shape, wg.asarray(np.int8(-3), device=device)), np.full(shape, np.int8(-3))),
        (wg.ones(shape, dtype, device=device), np.ones(shape, dtype)),
        (xp.ones_like(like, dtype=dtype), np.ones(shape, dtype)),
        (xp.zeros_like(like, dtype=dtype), np.zeros(shape, dtype)),
        (xp.full_like(like, -7), np.full(shape, -7, np.int16)),
    ):
        assert made.device is device
        check_same(made.numpy(), expected)
    made = xp.empty_like(like, dtype=dtype)
    assert (made.shape, made.dtype, made.device) == (shape, np.dtype(dtype), device)


@pytest.mark.filterwarnings("ignore:The 'generic' unit:DeprecationWarning")  # of NumPy 2.5
@pytest.mark.parametrize("dtype", ["M8", "m8", "M8[D]", "m8[25s]"])
def test_times_are_filled_and_padded_as_numpys(device: wg.Device, dtype: str) -> None:
    """Also times without a unit, to which NumPy assigns no integer of Python's."""
    array: Any = np.array(["NaT", "NaT"], dtype)
    x: Any = wg.asarray(array, device=device)
    pairs: list[tuple[Any, Any]] = [
        (np.pad(x, 1), np.pad(array, 1)),
        (np.pad(x, (2, 1), constant_values=(7, 2.5)), np.pad(array, (2, 1), constant_values=(7, 2.5))),
        (np.pad(x, 1, constant_values="NaT"), np.pad(array, 1, constant_values="NaT")),
        (np.ones_like(x), np.ones_like(array)),
        (xp.ones_like(x), np.ones_like(array)),
        (np.zeros_like(x), np.zeros_like(array)),
        (np.full_like(x, 3), np.full_like(array, 3)),
        (np.full_like(x, [3, 4]), np.full_like(array, [3, 4])),
        (np.full_like(x, array[0]), np.full_like(array, array[0])),
        (xp.full_like(x, 3), np.full_like(array, 3)),
        (wg.full(2, 3, dtype, device=device), np.full(2, 3, dtype)),
        (wg.ones(2, dtype, device=device), np.ones(2, dtype)),
    ]
    for ours, numpys in pairs:
        assert ours.dtype == numpys.dtype
        check_same(ours.numpy().view(np.int64), numpys.view(np.int64))


@pytest.mark.parametrize("value", ["5", None, 2.75, 1 + 2j, True, [1, 2]], ids=repr)
@pytest.mark.parametrize("dtype", ["int16", "float32", "bool"])
@pytest.mark.filterwarnings("ignore::numpy.exceptions.ComplexWarning")
def test_values_are_cast_as_by_numpys_full(device: wg.Device, value: Any, dtype: str) -> None:
    like: Any = wg.zeros(2, dtype, device=device)
    ours = (lambda: wg.full(2, value, dtype, device=device)), (lambda: np.full_like(like, value))
    try:
        expected = np.full(2, value, dtype)
    except TypeError:
        for call in ours:
            with pytest.raises(TypeError):
                call()
    else:
        for call in ours:
            check_same(call().numpy(), expected)


def test_an_array_fills_by_broadcasting(device: wg.Device) -> None:
    check_same(
        wg.full((2, 3), [1, 2, 3], np.uint8, device=device).numpy(), np.full((2, 3), [1, 2, 3], np.uint8)
    )


COPYING: dict[str, Callable[[wg.Tensor], Any]] = {
    "concat: arrays[0]": lambda x: wg.concat([x, x]),
    "stack: arrays[0]": lambda x: wg.stack([x]),
    "roll: x": lambda x: wg.roll(x, 1, 0),
    "pad: x": lambda x: wg.pad(x, 1),
    "tile: x": lambda x: wg.tile(x, 2),
    "repeat: x": lambda x: wg.repeat(x, 2),
    "take: indexing: input": lambda x: wg.take(x, [0], 0),
    "take_along_axis: indexing: input": lambda x: take_along_axis(x, [[0]], 0),
    "tril: x": xp.tril,
    "triu: x": xp.triu,
}


@pytest.mark.parametrize("name", COPYING)
def test_destroyed_buffers_are_refused_by_name(device: wg.Device, name: str) -> None:
    x = wg.asarray(numbered((2, 3), "int16"), device=device)
    COPYING[name](x)
    x.buffer.destroy()
    with pytest.raises(ValueError, match=f"^{re.escape(name)}: .*destroyed"):
        COPYING[name](x)


def test_a_later_part_destroyed_after_a_join_is_refused(device: wg.Device) -> None:
    parts = [wg.asarray(numbered((2, 3), "int16"), device=device) for _ in range(3)]
    buffers = [x.buffer for x in parts]
    wg.concat(parts)
    buffers[2].destroy()
    with pytest.raises(ValueError, match=r"concat: arrays\[2\]: .*destroyed"):
        wg.concat(parts)


@pytest.mark.parametrize("name", COPYING)
def test_tensors_of_a_lost_device_name_the_loss(device: wg.Device, name: str) -> None:
    lost = wg.Device.request(device.adapter)
    x = wg.asarray(numbered((2, 3), "int16"), device=lost)
    lost.wgpu_device.destroy()
    with pytest.raises(wg.DeviceLostError):
        COPYING[name](x)


def test_what_another_device_holds_is_refused(device: wg.Device) -> None:
    x = wg.asarray(numbered((2, 3), "int16"), device=device)
    y = wg.asarray(numbered((2, 3), "int16"), device=wg.Device.request(device.adapter))
    with pytest.raises(ValueError, match=r"concat: arrays\[1\]: .* is not on .*: use one device for both"):
        wg.concat([x, y])

"""Two adapters in one process: tensors move from one to the other, and do not meet by mistake."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers import ADAPTERS, check_same, in_threads
from hypothesis import given
from hypothesis import strategies as st
from moving import numbered, pairs

import wgslice as wg

pytestmark = pytest.mark.skipif(len(ADAPTERS) < 2, reason="WGSLICE_TEST_ADAPTERS names one adapter")

DTYPES: list[Any] = [
    *("bool", "int8", "uint16", "float16", "int32", "float32", "float64", "complex64", "complex128"),
    *("M8[ns]", ml_dtypes.bfloat16),
]


@pytest.fixture(scope="module")
def other(device: wg.Device) -> wg.Device:
    """A device of another adapter."""
    return next(found for found in map(wg.Device.request, ADAPTERS) if found.adapter != device.adapter)


@pytest.mark.parametrize("dtype", DTYPES, ids=lambda dtype: np.dtype(dtype).name)
def test_tensors_move_between_devices(device: wg.Device, other: wg.Device, dtype: Any) -> None:
    for shape in ((), (0, 3), (5, 7)):
        array = numbered(shape, "int16").astype(dtype)
        x = wg.asarray(array, device=device)
        there = x.to_device(other)
        assert (there.device, there.is_packed) == (other, True)
        check_same(there.numpy(), array)
        check_same(there.to_device(device).numpy(), array)
        check_same(wg.asarray(x, device=other).numpy(), array)


@given(data=st.data())
def test_views_move_as_their_elements(device: wg.Device, other: wg.Device, data: st.DataObject) -> None:
    x, array = data.draw(pairs(device))
    there = x.to_device(other)
    check_same(there.numpy(), array.copy())
    there[...] = 0
    check_same(x.numpy(), array.copy())  # a copy, not a view


def test_by_name_too(device: wg.Device, other: wg.Device) -> None:
    x = wg.asarray(np.arange(6), device=device)
    there = x.to_device(str(other.adapter))
    assert there.device.adapter == other.adapter
    check_same(there[::-1].numpy(), np.arange(6)[::-1].copy())
    assert x.to_device(device) is x


def test_tensors_of_two_devices_do_not_meet(device: wg.Device, other: wg.Device) -> None:
    """Each is refused, by the side on the other device; nothing has been written."""
    array = numbered((4, 6), "int32")
    x: Any = wg.asarray(array, device=device)
    y: Any = wg.asarray(array[::-1], device=other)
    numpy: Any = np

    def assign() -> None:
        x[1:] = y[1:]

    calls: dict[str, Callable[[], Any]] = {
        "assignment": assign,
        "copyto": lambda: wg.copyto(x, y),
        "concat": lambda: wg.concat([x, y]),
        "stack": lambda: wg.stack([y, x]),
        "slice1": lambda: wg.slice1(x, [0, 0], [4, 6], out=y),
        "insert_windows": lambda: wg.insert_windows(y, [[0, 0]], x[None, :2, :2]),
        "numpy.concatenate": lambda: numpy.concatenate([x, y]),
        "take": lambda: wg.take(x, wg.asarray(np.array([1, 0]), device=other), axis=0),
        "compiled": lambda: device.compile(
            wg.Slice1(wg.TensorDesc("int32", (4, 6)), wg.TensorDesc("int32", (4, 6)), (0, 0), (4, 6))
        )(y),
    }
    for call in calls.values():
        with pytest.raises(ValueError, match=r"is not on Device.* but on another Device object: use one"):
            call()
    check_same(x.numpy(), array)
    check_same(y.numpy(), array[::-1].copy())


def test_two_devices_in_threads_at_once(device: wg.Device, other: wg.Device) -> None:
    """Each thread goes to and fro, and has its own elements at the end."""
    found: dict[int, Any] = {}

    def work(number: int) -> None:
        array = numbered((30, 40), "float32", 1 + number)
        x = wg.asarray(array, device=(device, other)[number % 2])
        for _ in range(5):
            x = x[::-1].T.to_device((other, device)[x.device is other]).T
        found[number] = np.array_equal(x.numpy(), array[::-1])

    in_threads(work, 4)
    assert found == dict.fromkeys(range(4), True)

"""Slice: DirectML's rules, and NumPy's elements."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from helpers import DTYPES, check_same, random_array
from hypothesis import given
from hypothesis import strategies as st
from strategies import sizes_of

import wgslice as wg

U32 = 2**32 - 1


@given(data=st.data(), sizes=st.integers(1, 8).flatmap(sizes_of))
def test_any_slice_is_numpys(device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]) -> None:
    dtype = data.draw(st.sampled_from(list(DTYPES.values())))
    array = random_array(sizes, dtype)
    offsets, counts, strides = [], [], []
    for size in sizes:
        offsets.append(data.draw(st.integers(0, size - 1)))
        strides.append(data.draw(st.integers(1, size + 1)))
        counts.append(data.draw(st.integers(1, 1 + (size - offsets[-1] - 1) // strides[-1])))
    expected = array[
        tuple(slice(o, o + (n - 1) * s + 1, s) for o, n, s in zip(offsets, counts, strides, strict=True))
    ]
    x = wg.asarray(array, device=device)
    check_same(wg.slice(x, offsets, counts, strides).numpy(), np.ascontiguousarray(expected))
    operator = device.compile(
        wg.Slice(wg.TensorDesc(dtype, sizes), wg.TensorDesc(dtype, counts), offsets, counts, strides)
    )
    check_same(operator(x).numpy(), np.ascontiguousarray(expected))


def test_slice_and_slice1_mean_different_sizes(device: wg.Device) -> None:
    x = wg.asarray(np.arange(10), device=device)
    assert wg.slice(x, [2], [3], [2]).numpy().tolist() == [2, 4, 6]
    assert wg.slice1(x, [2], [3], [2]).numpy().tolist() == [2, 4]
    assert wg.slice(x, [9], [1], [U32]).numpy().tolist() == [9]


@pytest.mark.parametrize(
    ("window", "message"),
    [
        (
            ((1,), (5,), (2,)),
            r"offsets\[0\] \+ \(sizes\[0\] - 1\) \* strides\[0\] = 1 \+ 4 \* 2 = 9: .* size 9",
        ),
        (((9,), (1,), None), r"= 9 \+ 0 \* 1 = 9: must be less than the input's size 9 in dimension 0"),
        (((0,), (0,), None), r"sizes\[0\] = 0: must be an integer from 1 to"),
        (((0,), (2,), (0,)), r"strides\[0\] = 0: must be an integer from 1 to"),
        (((0,), (2,), (-1,)), r"strides\[0\] = -1: must be an integer from 1 to"),
        (((-1,), (2,), None), r"offsets\[0\] = -1: must be an integer from 0 to"),
        (((0,), (1,), (U32 + 1,)), r"strides\[0\] = 4294967296"),
        (((0, 0), (1, 1), None), "rank 2 on an input of rank 1"),
        (((0,), (1, 1), None), "1 offsets, 2 sizes"),
    ],
)
def test_slice_refuses_by_its_own_rules(device: wg.Device, window: Any, message: str) -> None:
    x = wg.asarray(np.arange(9, dtype=np.int16), device=device)
    with pytest.raises(wg.WindowError, match=f"^slice: .*{message}"):
        wg.slice(x, *window)
    with pytest.raises(wg.WindowError, match=f"^Slice: .*{message}"):
        wg.Slice(wg.TensorDesc("int16", (9,)), wg.TensorDesc("int16", (1,)), *window)


def test_a_slices_output_has_its_sizes(device: wg.Device) -> None:
    with pytest.raises(
        wg.WindowError, match=r"Slice: output sizes \(2,\): must be the window's sizes, \(3,\)"
    ):
        wg.Slice(wg.TensorDesc("u1", (9,)), wg.TensorDesc("u1", (2,)), (0,), (3,))
    x = wg.asarray(np.arange(9, dtype=np.int16), device=device)
    with pytest.raises(ValueError, match=r"slice: out has sizes \(2,\): must be \(3,\)"):
        wg.slice(x, (0,), (3,), out=wg.empty(2, np.int16, device=device))
    with pytest.raises(TypeError, match="Slice: input is of type tuple: must be a TensorDesc"):
        wg.Slice(cast("Any", (9,)), wg.TensorDesc("u1", (3,)), (0,), (3,))
    descriptor = wg.Slice(wg.TensorDesc("u1", (9,)), wg.TensorDesc("u1", (3,)), (1,), (3,), (2,))
    assert (descriptor.offsets, descriptor.sizes, descriptor.strides) == ((1,), (3,), (2,))

"""`x[key]` with arrays, lists, masks and tensors in the key: what NumPy takes, bit for bit, or its error."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from helpers import (
    DTYPES,
    STORAGE,
    check_same,
    make_buffer,
    on_one_adapter,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import INTEGERS, any_keys, outcome, placed, recorded_plans
from numpy.typing import NDArray
from strategies import nested_strides

import wgslice as wg
from wgslice.layout import Layout


def check_read(array: Any, x: wg.Tensor, key: Any) -> None:
    """NumPy's result in memory of its own, or its exception."""
    expected = outcome(lambda: np.asarray(array[key]))
    if isinstance(expected, str):
        assert outcome(lambda: x[key]) == expected
    else:
        check_same(x[key].numpy(), expected)


@pytest.mark.every_adapter
@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=6, min_side=0, max_side=5))
def test_any_key_reads_what_numpy_does(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    strides = data.draw(nested_strides(sizes, broadcast=True))
    layout = Layout.of(sizes, strides, data.draw(st.integers(0, 9)))
    _, _, array, x = placed(device, layout, DTYPES[data.draw(st.sampled_from([1, 2, 4, 8, 16]))])
    back = tuple(slice(None, None, data.draw(st.sampled_from([1, -1, 2]))) for _ in sizes)
    array, x = array[back], x[back]
    key = data.draw(any_keys(array.shape))
    if np.ndim(outcome(lambda: np.empty(array.shape)[key])) <= 8:
        check_read(array, x, key)


@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
def test_tensors_as_indices_are_clamped(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    """Beside arrays and slices; those inside select what NumPy selects, the others their nearest."""
    elements = data.draw(st.sampled_from(["uint8", "int16", "float32"]))
    _, _, array, x = placed(device, Layout.packed(sizes, 3), elements)
    dtype = data.draw(st.sampled_from(INTEGERS))
    shape = data.draw(array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    key: list[Any] = []
    nearest: list[Any] = []
    for size in sizes:
        kind = data.draw(st.sampled_from(["tensor", "strided tensor", "array", "slice", "integer"]))
        if kind.endswith("tensor"):
            own = data.draw(st.sampled_from([shape, (1,) * len(shape)]))
            lowest = -2 * size if dtype[0] == "i" else 0
            wider = random.integers(lowest, 2 * size, (*own, 2)).astype(dtype)
            strided = wg.asarray(wider, device=device)[..., 1]
            key.append(strided if kind == "strided tensor" else strided.copy())
            nearest.append(np.clip(wider[..., 1].astype(int), 0, size - 1))
        else:
            others = {"array": random.integers(-size, size, shape), "slice": np.s_[::-1], "integer": -1}
            key.append(others[kind])
            nearest.append(others[kind])
    check_same(x[tuple(key)].numpy(), np.asarray(array[tuple(nearest)]))


def test_a_mask_on_the_gpu_is_read_back(device: wg.Device) -> None:
    _, _, array, x = placed(device, Layout.packed((5, 6)), "int16")
    for mask in (array > 0, array > 2**15, (array > 0)[:, 0]):
        check_same(x[wg.asarray(mask, device=device)].numpy(), array[mask])
    check_same(x[1:, wg.asarray(array[0] > 0, device=device)].numpy(), array[1:, array[0] > 0])
    check_same(x[wg.asarray(np.array(True), device=device), [1]].numpy(), array[True, [1]])


@pytest.mark.parametrize("shape", [(3, 4), (3,), (0,), (0, 4)])
def test_masks_that_select_nothing(device: wg.Device, shape: tuple[int, ...]) -> None:
    array = np.arange(shape[0] * 4, dtype=np.int16).reshape(shape[0], 4) + np.int16(1)
    x = wg.asarray(array, device=device)
    mask = np.zeros(shape, bool)
    for key in (mask, wg.asarray(mask, device=device)):
        check_same(x[key].numpy(), array[mask])
        x[key] = 7
        check_same(x.numpy(), array)


def test_wrong_tensors_of_indices_are_refused(device: wg.Device) -> None:
    x = wg.zeros((3, 4), "f4", device=device)
    indices = wg.asarray(np.array([0, 1], np.int8), device=device)
    with pytest.raises(IndexError, match=r"must be of integer .or boolean. type, this .* dtype float32"):
        x[x]
    with pytest.raises(IndexError, match="boolean index did not match indexed array along axis 0"):
        x[wg.zeros(4, bool, device=device)]
    with pytest.raises(IndexError, match="too many indices"):
        x[indices, indices, indices]
    with pytest.raises(
        TypeError, match="indexing: tensors of indices have dtypes int16 and int8: they must have"
    ):
        x[indices, wg.zeros(2, "i2", device=device)]
    wide = wg.zeros((3, 129), "f4", device=device)
    with pytest.raises(TypeError, match="have dtype int8, which does not count the 129 places that an array"):
        wide[indices, [0, 128]]
    assert wide[:, :128][indices, [0, 127]].shape == (2,)
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match=r"indexing: indices: the buffer .* is not on"):
        x[wg.asarray([0], device=other)]
    with pytest.raises(IndexError, match="axis 0 has size 0: no index is within its bounds"):
        x[:0][indices]
    indices.buffer.destroy()
    with pytest.raises(ValueError, match=r"indexing: indices: .*destroyed"):
        x[indices]


def test_a_result_has_memory_of_its_own_and_integers_alone_make_views(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12).reshape(3, 4), device=device)
    taken = x[[0, 1]]
    assert taken.is_packed
    assert taken.buffer is not x.buffer
    taken[...] = 7
    assert x.numpy().tolist() == np.arange(12).reshape(3, 4).tolist()
    for key in (np.int64(1), np.array(1), (np.uint8(1), ...), (slice(None), np.array(-1))):
        assert x[key].buffer is x.buffer


def test_ranks_stop_at_eight(device: wg.Device) -> None:
    x = wg.zeros((2,) * 8, "u1", device=device)
    assert x[[0, 1]].shape == (2,) * 8
    assert x[[[0, 1]], [0, 1]].shape == (1,) + (2,) * 7
    with pytest.raises(IndexError, match=r"number of dimensions must be within \[0, 8\], .* would have 9"):
        x[[[0, 1]]]


@on_one_adapter
def test_one_dispatch_as_extract_windows_makes_it(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch of images in another order, and points."""
    _, _, array, x = placed(device, Layout.packed((20, 16, 16, 3)), "uint8")
    order = np.random.default_rng(0).permutation(20)
    offsets = np.stack([order, *np.zeros((3, 20), int)], axis=1)
    plans = recorded_plans(monkeypatch)
    images = x[order]
    windows = wg.extract_windows(x, offsets, (1, 16, 16, 3))
    assert [len(plan.steps) for plan in plans] == [1, 1]
    assert str(plans[0].steps[0]) == str(plans[1].steps[0])
    check_same(images.numpy(), array[order])
    check_same(windows.squeeze(1).numpy(), array[order])
    del plans[:]
    rows, columns = np.random.default_rng(1).integers(0, 16, (2, 500))
    x[3, rows, columns]
    x[..., 0][:, rows[:3]]
    assert [len(plan.steps) for plan in plans] == [1, 1]


def test_more_windows_than_a_binding_says(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several dispatches, one submission; here a binding holds 1 KiB."""
    _, _, array, x = placed(device, Layout.packed((10, 20)), "int16")
    monkeypatch.setattr(device, "limits", replace(device.limits, binding_nbytes=1024))
    plans = recorded_plans(monkeypatch)
    rows, columns = np.random.default_rng(2).integers(0, (10, 20), (400, 2)).T
    check_same(x[rows, columns].numpy(), array[rows, columns])
    assert len(plans) == 4
    found = x[wg.asarray(rows, device=device), wg.asarray(columns, device=device)]
    check_same(found.numpy(), array[rows, columns])


def test_buffers_need_no_copy_usages(device: wg.Device) -> None:
    _, _, array, x = placed(device, Layout.packed((9, 7)), "uint8", STORAGE)
    check_same(x[[3, 1], 1:].numpy(), array[[3, 1], 1:])
    indices: NDArray[np.int64] = np.array([[4, 4, 0]])
    held = wg.from_buffer(make_buffer(device, indices.view(np.uint8).ravel(), STORAGE), (1, 3), np.int64)
    check_same(x[held, [0, 1, 2]].numpy(), array[indices, [0, 1, 2]])


def test_a_broken_tensor_is_named(device: wg.Device) -> None:
    x = wg.asarray(np.arange(12), device=device)
    x.buffer.destroy()
    with pytest.raises(ValueError, match=r"indexing: input: .*destroyed"):
        x[[0, 1]]


@on_one_adapter
def test_sequences_of_tensors_are_not_read_back(device: wg.Device) -> None:
    """As NumPy would do it without a word, in an index, a value or an array."""
    x = wg.zeros((3, 4), "i8", device=device)
    one: Any = x[0, 0]
    for call in (
        lambda: x[[one, one]],
        lambda: x[:, [[one], [one]]],
        lambda: x.__setitem__(0, [one] * 4),
        lambda: x.__setitem__([0, 1], [[one], [one]]),
        lambda: wg.copyto(x[0], (one, 1, 2, 3)),
        lambda: wg.asarray([x, x]),
    ):
        with pytest.raises(TypeError, match="a sequence of tensors: stack puts them together"):
            call()

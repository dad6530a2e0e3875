"""`x[key]` with arrays, lists, masks and tensors in the key: what NumPy takes, bit for bit, or its error."""

from __future__ import annotations

import gc
import re
import weakref
from collections.abc import Callable
from functools import partial
from math import prod
from operator import getitem, setitem
from typing import Any

import numpy as np
import pytest
from helpers import STORAGE, check_same, make_buffer, on_one_adapter, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import INTEGERS, outcome, placed
from numpy.typing import NDArray
from running import Limit, noted, run_on_gpu

import wgslice as wg
import wgslice.array_api as xp
from wgslice.layout import Layout
from wgslice.plans.facade import forced
from wgslice.plans.profiles import CPU


def check_read(array: Any, x: wg.Tensor, key: Any) -> None:
    """NumPy's result in memory of its own, or its exception."""
    expected = outcome(lambda: np.asarray(array[key]))
    if isinstance(expected, str):
        assert outcome(lambda: x[key]) == expected
    else:
        check_same(x[key].numpy(), expected)


def nearest_index(indices: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Negative ones counted from the end once, and the nearest in range of what is out of it."""
    wide = indices.astype(object)
    return np.asarray(np.clip(np.where(wide < 0, wide + size, wide), 0, size - 1), np.int64)


@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=5))
def test_device_indices_read_what_numpy_reads(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    """Of several dtypes, among arrays and slices; those out of range read the nearest element."""
    elements = data.draw(st.sampled_from(["uint8", "int16", "float32"]))
    _, _, array, x = placed(device, Layout.packed(sizes, 3), elements)
    shape = data.draw(array_shapes(min_dims=0, max_dims=2, min_side=1, max_side=4))
    random = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    key: list[Any] = []
    nearest: list[Any] = []
    for size in sizes:
        kind = data.draw(st.sampled_from(["tensor", "strided tensor", "array", "slice", "integer"]))
        if kind.endswith("tensor"):
            own = data.draw(st.sampled_from([shape, (1,) * len(shape)]))
            dtype = data.draw(st.sampled_from(INTEGERS))
            lowest = -2 * size if dtype[0] == "i" else 0
            wider = random.integers(lowest, 2 * size, (*own, 2)).astype(dtype)
            strided = wg.asarray(wider, device=device)[..., 1]
            key.append(strided if kind == "strided tensor" else strided.copy())
            nearest.append(nearest_index(wider[..., 1], size))
        else:
            others = {"array": random.integers(-size, size, shape), "slice": np.s_[::-1], "integer": -1}
            key.append(others[kind])
            nearest.append(others[kind])
    check_same(x[tuple(key)].numpy(), np.asarray(array[tuple(nearest)]))


def ends_of(dtype: str, size: int) -> NDArray[Any]:
    """Indices at the borders of a dimension and of integer types; none is truncated to 32 bits."""
    near = [-size - 1, -size, -1, 0, 1, size - 1, size]
    far = [2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**32 + 1, 2**63 - 1, 2**63, 2**64 - 1]
    info = np.iinfo(dtype)
    values = [*near, *far, *(-value for value in far), info.min, info.max]
    return np.array([value for value in values if info.min <= value <= info.max], dtype)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_device_indices_wrap_once_up_to_the_dtypes_ends(device: wg.Device, dtype: str) -> None:
    """Alone and with another dtype, in elements and in rows."""
    array = np.arange(300 * 37, dtype=np.int16).reshape(300, 37)
    x, indices = wg.asarray(array, device=device), ends_of(dtype, 300)
    held, nearest = wg.asarray(indices, device=device), nearest_index(indices, 300)
    check_same(x[held].numpy(), array[nearest])
    columns = np.arange(len(indices), dtype=np.int8 if dtype == "uint8" else np.uint8) % 37
    check_same(x[held, wg.asarray(columns, device=device)].numpy(), array[nearest, columns])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_checked_device_indices_are_refused_as_numpys(
    device: wg.Device, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """On request, when read and before anything is written."""
    monkeypatch.setenv("WGSLICE_CHECK_INDICES", "1")
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    x: Any = wg.asarray(array, device=device)
    for values, refused in (([0, 3], True), ([2, 0], False), ([-1, -3], False), ([0, -4], True)):
        if min(values) < 0 and dtype[0] == "u":
            continue
        indices = np.array(values, dtype)
        held = wg.asarray(indices, device=device)
        expected = outcome(partial(getitem, array, indices))
        assert isinstance(expected, str) == refused
        if refused:
            assert outcome(partial(getitem, x, held)) == expected
            assert outcome(partial(getitem, x, (held, [0, 1]))) == expected
            assert outcome(partial(wg.take, x, held, 0)) == expected
            assert outcome(partial(np.take, x, held, 0)) == expected
            assert outcome(partial(setitem, x, held, 7)) == expected
            check_same(x.numpy(), array)
            clipped: Any = np.take(x, held, 0, mode="clip")
            check_same(clipped.numpy(), np.take(array, indices, 0, mode="clip"))
        else:
            check_same(x[held].numpy(), array[indices])


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_clipped_device_indices_do_not_wrap(device: wg.Device, axis: int | None) -> None:
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    indices = np.array([[-1, 2], [-100, 100]], np.int8)
    x: Any = wg.asarray(array, device=device)
    found: Any = np.take(x, wg.asarray(indices, device=device), axis, mode="clip")
    check_same(found.numpy(), np.take(array, indices, axis, mode="clip"))


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (3, 0, 2)])
def test_indices_into_nothing_are_checked_as_numpy_does(device: wg.Device, shape: tuple[int, ...]) -> None:
    """Not where nothing is read in the mode "clip", nor beside an empty dimension before the axis."""
    array = np.zeros(shape, np.int16)
    x: Any = wg.asarray(array, device=device)
    for indices in (np.zeros((2, 0), np.int64), np.array([0, 5]), np.array([[-7, 1]])):
        held: Any = wg.asarray(indices, device=device)
        for axis in (None, *range(x.ndim)):
            for mode in ("clip", "raise"):
                try:
                    expected = np.take(array, indices, axis, mode=mode)
                except IndexError:
                    with pytest.raises(IndexError):
                        np.take(x, indices, axis, mode=mode)
                    continue
                for places in (indices, held):
                    found: Any = np.take(x, places, axis, mode=mode)
                    check_same(found.numpy(), expected)


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
def test_an_array_beyond_the_tensors_dtype_is_accepted(device: wg.Device, dtype: str) -> None:
    array = np.arange(3 * 300, dtype=np.int16).reshape(3, 300)
    held = wg.asarray(np.array([2, 0], dtype), device=device)
    check_same(wg.asarray(array, device=device)[held, [-1, 128]].numpy(), array[[2, 0], [-1, 128]])


def test_indices_of_several_dtypes_take_any_layout(device: wg.Device) -> None:
    """Of rank 8, permuted, of which no dimensions merge."""
    array = np.arange(15, dtype=np.int16).reshape(3, 5)
    wide = np.random.default_rng(0).integers(-3, 3, (2,) * 8).astype(np.int32)
    rows, columns = wide.transpose(7, 5, 3, 1, 0, 2, 4, 6), (wide % 5).astype(np.uint8)
    held = wg.permute(wg.asarray(wide, device=device), (7, 5, 3, 1, 0, 2, 4, 6))
    found = wg.asarray(array, device=device)[held, wg.asarray(columns, device=device)]
    check_same(found.numpy(), array[rows, columns])


def test_indices_of_one_shape_share_a_plan_but_no_values(device: wg.Device) -> None:
    array = np.arange(60, dtype=np.float32).reshape(12, 5)
    for dtype in ("int8", "uint8", "int64", "int8"):
        for seed in range(3):
            x, order = wg.asarray(array, device=device), np.random.default_rng(seed).permutation(12)
            indices = wg.asarray(order.astype(dtype), device=device)
            assert np.array_equal(x[indices].numpy(), array[order])
            x[indices] = x
            assert np.array_equal(x.numpy()[order], array)


def test_indices_are_released_with_their_tensor(device: wg.Device) -> None:
    x = wg.zeros((12, 5), np.float32, device=device)
    indices = wg.asarray(np.arange(12), device=device)
    mask = wg.asarray(np.arange(12) > 4, device=device)
    x[indices].numpy()
    x[mask] = 1
    held = weakref.ref(indices), weakref.ref(mask)
    del indices, mask
    gc.collect()
    assert [each() for each in held] == [None, None]


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
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match=r"indexing: indices: the buffer .* is not on"):
        x[wg.asarray([0], device=other)]
    with pytest.raises(IndexError, match="axis 0 has size 0: no index is within its bounds"):
        x[:0][indices]
    indices.buffer.destroy()
    with pytest.raises(ValueError, match=r"indexing: indices: .*destroyed"):
        x[indices]


def test_arrays_copy_and_integers_alone_make_views(device: wg.Device) -> None:
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
def test_one_dispatch_as_extract_windows_makes_it(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit
) -> None:
    """A batch of images in another order, and points."""
    limit(profile=CPU)
    _, _, array, x = placed(device, Layout.packed((20, 16, 16, 3)), "uint8")
    order = np.random.default_rng(0).permutation(20)
    offsets = np.stack([order, *np.zeros((3, 20), int)], axis=1)
    images = x[order]
    windows = wg.extract_windows(x, offsets, (1, 16, 16, 3))
    assert [len(plan.steps) for plan in recorded] == [1, 1]
    # Windows of the rank of x have more offsets each than images.
    first, second = (re.sub(r" \([\d.]+ k?B\)", "", str(plan.steps[0])) for plan in recorded)
    assert first == second
    check_same(images.numpy(), array[order])
    check_same(windows.squeeze(1).numpy(), array[order])
    del recorded[:]
    rows, columns = np.random.default_rng(1).integers(0, 16, (2, 500))
    x[3, rows, columns]
    x[..., 0][:, rows[:3]]
    assert [len(plan.steps) for plan in recorded] == [1, 1]


def test_indices_beyond_a_binding_are_several_dispatches(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit
) -> None:
    """Several dispatches, one submission; here a binding holds 1 KiB from any place of a buffer."""
    _, _, array, x = placed(device, Layout.packed((10, 20)), "int16")
    limit(binding_nbytes=1024 + device.limits.binding_alignment_nbytes)
    rows, columns = np.random.default_rng(2).integers(0, (10, 20), (400, 2)).T
    check_same(x[rows, columns].numpy(), array[rows, columns])
    (plan,) = recorded
    assert len(plan.steps) == 2  # of 400 indices of 4 bytes
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
    one_and_one: Any = [one, one]
    for call in (
        lambda: x[[one, one]],
        lambda: x[:, [[one], [one]]],
        lambda: x.__setitem__(0, [one] * 4),
        lambda: x.__setitem__([0, 1], [[one], [one]]),
        lambda: wg.copyto(x[0], (one, 1, 2, 3)),
        lambda: wg.extract_windows(x, [[one, one]], (1, 2)),
        lambda: wg.extract_windows(x, [[0, 0]], (1, 2), [[one, one]]),
        lambda: wg.take(x, [one, one]),
        lambda: np.take(x, [one, one], mode="wrap"),
        lambda: wg.full((2,), [one, one]),
        lambda: wg.pad(x, [one, one]),
        lambda: x[(one, one), :],
        lambda: x[:, ((one, one),)],
        lambda: x.__setitem__(((one, 0),), 1),
        lambda: wg.roll(x, [one, one], (0, 1)),
        lambda: wg.repeat(x, [one] * 3, 0),
        lambda: wg.tile(x, (one, one)),
        lambda: wg.split(x, [one, 2]),
        lambda: np.array_split(x, (one, 2)),
        lambda: np.concatenate([x[0], [one, 1]]),
        lambda: np.vstack([x[0], [one] * 4]),
        lambda: np.atleast_2d(x, [one, one]),
        lambda: xp.linspace(one_and_one, 3, 2),
        lambda: wg.stream([one, one], np.s_[:], device=device),
    ):
        with pytest.raises(TypeError, match="a sequence of tensors: stack joins them"):
            call()


@on_one_adapter
def test_a_tensor_of_integers_is_read_back_once(device: wg.Device) -> None:
    """Not once for each of its elements."""
    array = np.arange(12).reshape(3, 4)
    x = wg.asarray(array, device=device)
    two: Any = wg.asarray([2, 1], device=device)
    with noted(wg.Tensor, "numpy") as reads:
        moved = [wg.roll(x, two, (0, 1)), wg.tile(x, two), *wg.split(x, two), wg.slice1(x, two, [1, 3])]
    assert len(reads) == 4
    expected = [
        *(np.roll(array, (2, 1), (0, 1)), np.tile(array, (2, 1))),
        *(*np.split(array, [2, 1]), array[2:, 1:]),
    ]
    for ours, numpys in zip(moved, expected, strict=True):
        check_same(ours.numpy(), numpys)


@on_one_adapter
def test_tensors_as_numbers_are_not_read_back(device: wg.Device) -> None:
    x = wg.zeros((3, 4), "i8", device=device)
    one: Any = x[0, 0]
    calls: tuple[tuple[Callable[[], Any], str], ...] = (
        (lambda: wg.extract_windows(x, [[0, 0]], (1, 2), fill=one), "extract_windows: fill: a tensor where"),
        (lambda: wg.extract_windows(x, [[0, 0]], (1, 2), x[0, :2]), "extract_windows: strides: a tensor"),
        (lambda: wg.pad(x, one), "pad: pad_width: a tensor where host numbers are needed: item"),
    )
    for call, words in calls:
        with pytest.raises(TypeError, match=words):
            call()


def test_kept_selections_are_distinguished(device: wg.Device) -> None:
    """By the content of their indices, the tensor's shape and layout, and what else is in the key."""
    array = np.arange(60, dtype=np.int32).reshape(10, 6)
    turned = array.T.copy()
    x, y = wg.asarray(array, device=device), wg.asarray(turned, device=device)
    places = np.array([3, 1, 4])
    slices = np.s_[1:5:3], (1, 5, 3)  # a tuple inside of a key is an array
    for _ in range(2):
        for number in range(3):
            places[0] = number
            check_same(x[places].numpy(), array[places])
            check_same(x[::-1][places].numpy(), array[::-1][places])
            check_same(y[places].numpy(), turned[places])
            check_same(x[:, places].numpy(), array[:, places])
            check_same(x[places.astype(np.uint8)].numpy(), array[places])
        for item in slices:
            check_same(x[places, item].numpy(), array[places, item])
        mask = array % 7 == places[0]
        check_same(x[mask].numpy(), array[mask])
        x[mask], array[mask] = 100, 100
        check_same(x.numpy(), array)


RUNS = "buffer copy per run"


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("row", [(), (4,), (2, 6)])
@given(lengths=st.lists(st.integers(0, 9), min_size=1, max_size=9), words=st.booleans())
def test_runs_of_indices_may_be_buffer_copies(
    device: wg.Device, dtype: str, row: tuple[int, ...], lengths: list[int], words: bool
) -> None:
    """Such as those of a padding mask, one run for each sequence, read and written."""
    unit = 4 if words else 1
    lengths = [unit * length for length in lengths]
    stops = np.cumsum([unit + length for length in lengths])
    runs = [np.arange(stop - length, stop) for stop, length in zip(stops, lengths, strict=True)]
    key = np.concatenate(runs[::-1])
    sizes, itemsize = (int(stops[-1]) + unit, *row), np.dtype(dtype).itemsize
    array = random_bytes(prod(sizes) * itemsize).view(dtype).reshape(sizes)
    values = random_bytes(prod((len(key), *row)) * itemsize, 1).view(dtype).reshape(len(key), *row)
    x, y = (wg.asarray(each, device=device) for each in (array, array))
    check_same(x[key].numpy(), array[key])
    in_words = prod(row) * itemsize % 4 == 0 or words
    filled = [length for length in lengths if length]
    copied = bool(filled) and 2 * len(filled) <= len(key) and in_words
    for given_call in ((getitem, x, key), (setitem, y, key, wg.asarray(values, device=device))):
        plans = wg.explain(*given_call).plans
        found = [plan for plan in plans if RUNS in {choice.name for choice in plan.choices}]
        assert bool(found) == (copied and len(filled) > 1)
        for plan in found:
            writes = given_call[0] is setitem
            sides = (values, array) if writes else (array, np.zeros_like(values))
            source, target = (bits_of(side) for side in sides)
            after = run_on_gpu(device, forced(plan, RUNS), source, target)
            expected = array.copy() if writes else array[key]
            if writes:
                expected[key] = values
            assert after[: expected.nbytes].tobytes() == expected.tobytes()

    def moved(x: Any, y: Any) -> Any:
        taken = x[key]
        y[key] = x[key][::-1].copy()  # dropped before the submission
        return taken[::-1].copy()

    program, other = wg.capture(moved, x=x, y=y), array[::-1].copy()
    written, given_other = (wg.asarray(each, device=device) for each in (array, other))
    check_same(program(x=given_other, y=written).numpy(), other[key][::-1].copy())
    after_program = array.copy()
    after_program[key] = other[key][::-1]
    check_same(written.numpy(), after_program)
    y[key] = values
    array = array.copy()
    array[key] = values
    check_same(y.numpy(), array)


@pytest.mark.parametrize("runs_first", [True, False])
def test_runs_are_looked_for_where_the_first_indices_have_some(device: wg.Device, runs_first: bool) -> None:
    array = np.arange(40_000, dtype=np.float32)
    x = wg.asarray(array, device=device)
    run, apart = np.arange(20_000, 35_000), np.arange(0, 10_000, 2)[::-1]
    key = np.concatenate([run, apart] if runs_first else [apart, run])
    (plan,) = wg.explain(getitem, x, key).plans
    assert (RUNS in {choice.name for choice in plan.choices}) == runs_first
    check_same(x[key].numpy(), array[key])


def test_a_run_ends_where_the_next_index_goes_back(device: wg.Device) -> None:
    array = random_bytes(40 * 4).view(np.float32)
    x, key = wg.asarray(array, device=device), np.r_[10:20, 18:30, 30:20:-1, 3:39]
    (plan,) = wg.explain(getitem, x, key).plans
    after = run_on_gpu(device, forced(plan, RUNS), bits_of(array), bits_of(np.zeros_like(array[key])))
    assert after[: 4 * key.size].tobytes() == array[key].tobytes()


def bits_of(array: NDArray[Any]) -> NDArray[np.uint8]:
    """Its bytes, and zeros up to whole vectors."""
    data = np.frombuffer(array.tobytes(), np.uint8)
    return np.pad(data, (0, -data.size % 16))

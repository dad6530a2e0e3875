"""`x[key] = y` with arrays, lists, masks and tensors in the key: what NumPy does to every byte."""

from __future__ import annotations

from functools import partial
from math import prod
from operator import setitem
from typing import Any

import numpy as np
import pytest
from helpers import check_same, on_one_adapter, random_array, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import INTEGERS, outcome, placed
from running import Limit, noted
from strategies import nested_strides

import wgslice as wg
from wgslice.dialects.advanced import AdvancedSelection, any_index
from wgslice.layout import Layout
from wgslice.plans.facade import indexed_copy, windows_at


@st.composite
def broadcastable(draw: st.DrawFn, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts to another, most often with all of its elements."""
    if draw(st.booleans()):
        return shape
    sizes = tuple(1 if draw(st.booleans()) else size for size in shape)
    return (1,) * draw(st.integers(0, 1)) + sizes[draw(st.integers(0, len(shape))) :]


@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=6))
def test_a_value_in_the_same_buffer_is_read_before_writes(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    both = placed(device, Layout.packed(sizes, 1), data.draw(st.sampled_from(["uint8", "int16", "float32"])))
    key = data.draw(st.lists(st.integers(-sizes[0], sizes[0] - 1), max_size=sizes[0]))
    count = len(key) if data.draw(st.booleans()) else min(1, len(key))
    both.array[key] = both.array[::-1][:count].copy()
    both.tensor[key] = both.tensor[::-1][:count]
    both.check()


@pytest.mark.parametrize("dtype", INTEGERS)
def test_device_indices_out_of_range_are_dropped(device: wg.Device, dtype: str) -> None:
    """Negative ones count from the end, and the last of equal ones stays, among arrays and slices too."""
    both = placed(device, Layout.packed((5, 4, 3)), "int16")
    info = np.iinfo(dtype)
    values = [1, 4, 5, 1, 100, -1, -4, 3, -100, -5, -6, 2**32 + 2, 2 - 2**32, 2**64 - 2, info.min, info.max]
    indices = np.array([value for value in values if info.min <= value <= info.max], dtype)
    inside = (indices >= -5 if dtype[0] == "i" else True) & (indices < 5)
    value = random_array((len(indices), 4, 3), "int16", 3)
    both.array[indices[inside]] = value[inside]
    held = wg.asarray(indices, device=device)
    both.tensor[held] = wg.asarray(value, device=device)
    both.check()
    columns = np.arange(len(indices)) % 3
    both.array[indices[inside], :, columns[inside]] = value[inside, :, 0]
    both.tensor[held, :, columns] = value[:, :, 0]
    both.check()
    both.array[indices[inside], 1:, 2] = 7
    both.tensor[held, 1:, 2] = 7
    both.check()
    narrow = columns.astype(np.uint8 if dtype == "int8" else np.int8) - 3 * (dtype != "int8")
    both.array[indices[inside], 3, narrow[inside]] = value[inside, 1, 1]
    both.tensor[held, 3, wg.asarray(narrow, device=device)] = wg.asarray(value[:, 1, 1].copy(), device=device)
    both.check()


def test_indices_in_the_buffer_that_is_written(device: wg.Device, limit: Limit) -> None:
    """Are read before anything is written, also where several dispatches write."""
    nbytes = max(256, 4 * device.limits.binding_alignment_nbytes)
    both = placed(device, Layout.packed((nbytes // 4,)), "int32")
    both.array[:] = np.random.default_rng(1).permutation(nbytes // 4)
    both.tensor[...] = both.array
    limit(binding_nbytes=nbytes)
    indices = both.array.copy()
    both.array[indices] = both.array[::-1].copy()
    both.tensor[both.tensor] = both.tensor[::-1]
    both.check()


MASKED = ["uint8", "int16", "float32", "int64", "complex128"]


@st.composite
def masks(draw: st.DrawFn, device: wg.Device, shape: tuple[int, ...]) -> tuple[Any, wg.Tensor]:
    """A mask, and the same on the device: packed, reversed, with gaps or repeated, from any byte on."""
    skip, seed = draw(st.integers(0, 5)), draw(st.integers(0, 9))
    how = draw(st.sampled_from(["packed", "reversed", "gaps", "repeated"]))
    whole = {"gaps": (*shape, 2), "repeated": (1, *shape[1:])}.get(how, shape)
    flat = np.random.default_rng(seed).random(skip + int(np.prod(whole, dtype=int))) < 0.5
    array: Any = flat[skip:].reshape(whole)
    mask = wg.asarray(flat, device=device)[skip:].reshape(whole)
    if how == "reversed":
        return array[::-1], mask[::-1]
    if how == "gaps":
        return array[..., 1], mask[..., 1]
    return np.broadcast_to(array, shape), wg.broadcast_to(mask, shape)


@pytest.mark.every_adapter
@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_one_value_at_a_mask_on_the_gpu_is_written_as_numpy_does(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    dtype = data.draw(st.sampled_from(MASKED))
    strides = data.draw(nested_strides(sizes, broadcast=False))
    if data.draw(st.booleans()):
        strides = list(Layout.packed(sizes).strides)
    both = placed(device, Layout.of(sizes, strides, data.draw(st.integers(0, 9))), dtype)
    rank = data.draw(st.integers(1, len(sizes)))
    mask, on_device = data.draw(masks(device, sizes[:rank]))
    rest = sizes[rank:]
    value = random_array(data.draw(broadcastable(rest)) if rest else (), dtype, 2)
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("wgslice.tensors.placed.download", None)
        both.tensor[on_device] = wg.asarray(value, device=device) if data.draw(st.booleans()) else value
    both.array[mask] = value
    both.check()


@pytest.mark.every_adapter
@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_copyto_where_a_mask_is_true_writes_what_numpy_does(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    dtype = data.draw(st.sampled_from(MASKED))
    both = placed(device, Layout.packed(sizes, data.draw(st.integers(0, 9))), dtype)
    mask, on_device = data.draw(masks(device, (data.draw(broadcastable(sizes)) or (1,))[-len(sizes) :]))
    value = random_array(data.draw(broadcastable(sizes)), dtype, 2)
    copyto: Any = np.copyto
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr("wgslice.tensors.placed.download", None)
        copyto(both.tensor, wg.asarray(value, device=device), where=on_device)
    if value.ndim <= both.array.ndim:
        np.copyto(both.array, value, where=mask)
        both.check()


@pytest.mark.parametrize(
    ("dtype", "columns"), [("uint8", 63), ("uint8", 64), ("uint8", 65537), ("int16", 36)]
)
@pytest.mark.parametrize("value", ["one", "per row", "tensor", "tensor per row"])
def test_values_broadcast_along_rows(
    device: wg.Device, recorded: list[wg.Plan], dtype: str, columns: int, value: str
) -> None:
    """Rows of at least 64 bytes are copied from a repeated value, whether the host repeats it or the GPU."""
    both = placed(device, Layout.of((7, columns), (columns + 3, 1), 1), dtype)
    rows = np.array([5, 0, 3, 6])
    given = random_array((4, 1) if "per row" in value else (), dtype, 4)
    both.tensor[rows] = wg.asarray(given, device=device) if "tensor" in value else given
    both.array[rows] = given
    both.check()
    short = columns * np.dtype(dtype).itemsize < 64
    assert ("scatter_subword" in {plan.choice and plan.choice.name for plan in recorded}) == short


@pytest.mark.parametrize("dtype", MASKED)
@pytest.mark.parametrize("where", ["device", "host"])
def test_many_elements_at_a_mask(device: wg.Device, dtype: str, where: str) -> None:
    """Also with other bytes in their words, and pixels of three elements."""
    for sizes, rank in (((203, 97), 2), ((61, 53, 3), 2), ((61, 53, 4), 2), ((4099, 7), 1)):
        both = placed(device, Layout.packed(sizes, 1), dtype)
        mask = np.random.default_rng(3).random(sizes[:rank]) < 0.5
        both.array[mask] = 5
        both.tensor[wg.asarray(mask, device=device) if where == "device" else mask] = 5
        both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "sizes", "offset", "part", "kernel"),
    [
        ("uint8", (3, 683), 0, 0.5, "masked_values"),
        ("uint8", (2048,), 0, 0.5, "scatter_subword"),  # whose plan is kept
        ("uint8", (3, 683), 3, 0.5, "scatter_subword"),  # which begins inside a word
        ("int16", (3, 683), 2, 0.3, "masked_values"),
        ("int16", (3, 683), 2, 0.2, "scatter_subword"),  # where indices have fewer bytes than the mask
        ("int16", (31, 67), 0, 1.0, "masked_values"),
        ("float32", (31, 67), 0, 0.5, "scatter"),
    ],
)
@pytest.mark.parametrize("where", ["device", "host", "the same buffer"])
def test_values_at_many_true_elements(
    device: wg.Device,
    recorded: list[wg.Plan],
    dtype: str,
    sizes: tuple[int, ...],
    offset: int,
    part: float,
    kernel: str,
    where: str,
) -> None:
    both = placed(device, Layout.packed(sizes, offset), dtype)
    mask = np.random.default_rng(3).random(sizes) < part
    count = int(mask.sum())
    array, tensor = both.array.reshape(-1)[:count][::-1].copy(), both.tensor.ravel()[:count][::-1]
    held = wg.asarray(mask, device=device) if where == "device" else mask
    both.tensor[held] = tensor if where == "the same buffer" else wg.asarray(array, device=device)
    both.array[mask] = array
    both.check()
    assert recorded[-1].steps[-1].name == kernel
    with pytest.raises(ValueError, match=rf"cannot assign {count - 1} input values to the {count} output"):
        both.tensor[held] = array[1:]


@pytest.mark.parametrize(("sizes", "rank"), [((3, 0), 1), ((0, 3), 1), ((0, 3), 2), ((3, 2), 0), ((), 0)])
def test_masks_without_dimensions_and_of_nothing(
    device: wg.Device, sizes: tuple[int, ...], rank: int
) -> None:
    for marked in (False, True):
        both = placed(device, Layout.packed(sizes), "int16")
        mask = np.full(sizes[:rank], marked)
        both.array[mask] = 5
        both.tensor[wg.asarray(mask, device=device)] = 5
        both.check()


@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_elements_beyond_a_masks_end_are_ignored(device: wg.Device, dtype: str) -> None:
    mask = wg.full(64, True, bool, device=device)
    for count in range(1, 9):
        both = placed(device, Layout.packed((count,), 1), dtype)
        both.array[:] = 5
        both.tensor[mask[:count]] = 5
        both.check()


def test_a_mask_and_a_value_in_the_buffer_that_is_written(device: wg.Device) -> None:
    both = placed(device, Layout.packed((7, 9)), "bool")
    both.array[both.array.copy()] = False
    both.tensor[both.tensor] = False
    both.check()
    both = placed(device, Layout.packed((7, 9)), "int16")
    mask = np.arange(7) % 3 > 0
    both.array[mask] = both.array[0].copy()
    both.tensor[wg.asarray(mask, device=device)] = both.tensor[0]
    both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "float64", "complex128"])
def test_masks_and_values_in_the_same_buffer_are_read_first(device: wg.Device, dtype: str) -> None:
    """Also where other elements of it are read than are written."""
    copyto: Any = np.copyto
    both = placed(device, Layout.packed((67, 59)), dtype)
    mask = np.random.default_rng(3).random((67, 59)) < 0.5
    both.array[...] = np.where(mask, both.array[::-1].copy(), both.array)
    copyto(both.tensor, both.tensor[::-1], where=wg.asarray(mask, device=device))
    both.check()
    both.array[:, 1:] = np.where(mask[:, 1:], both.array[3, :-1].copy(), both.array[:, 1:])
    copyto(both.tensor[:, 1:], both.tensor[3, :-1], where=mask[:, 1:])
    if dtype == "bool":
        both.array[both.array[::-1, ::-1].copy()] = False
        both.tensor[both.tensor[::-1, ::-1]] = False
    both.check()


def test_a_mask_that_no_binding_holds_is_read_back(device: wg.Device, limit: Limit) -> None:
    both = placed(device, Layout.packed((70, 90)), "int16")
    limit(binding_nbytes=4096)
    mask = both.array > 0
    both.array[mask] = 5
    both.tensor[wg.asarray(mask, device=device)] = 5
    both.check()
    copyto: Any = np.copyto
    both.array[~mask] = -1
    copyto(both.tensor, wg.full((1, 90), -1, np.int16, device=device), where=wg.asarray(~mask, device=device))
    both.check()


def test_values_at_a_mask_on_the_gpu(device: wg.Device) -> None:
    """Their number depends on the mask, which is read back."""
    both = placed(device, Layout.packed((7, 9)), "int16")
    mask = both.array[:, 0] > 0
    count = int(mask.sum())
    both.array[mask] = np.arange(count * 9).reshape(count, 9)
    both.tensor[wg.asarray(mask, device=device)] = np.arange(count * 9).reshape(count, 9)
    both.check()
    held = wg.asarray(mask, device=device)
    with pytest.raises(ValueError, match="shape mismatch: value array of shape"):
        both.tensor[held] = np.zeros((count + 1, 9))
    with pytest.raises(TypeError, match="requires a 0 or 1-dimensional input, input has 2 dimensions"):
        both.tensor[wg.asarray(both.array > 0, device=device)] = [[1]]
    with pytest.raises(IndexError, match="boolean index did not match indexed array along axis 0"):
        both.tensor[held[1:]] = 0
    both.check()


@pytest.mark.parametrize(
    ("key", "value", "error", "words"),
    [
        ([0, 1], np.zeros((3, 4)), ValueError, r"value array of shape \(3,4\) could not .* shape \(2,4\)"),
        (
            [],
            np.zeros((5, 4)),
            ValueError,
            r"of shape \(5,4\) could not be .* indexing result of shape \(0,4\)",
        ),
        (True, np.zeros((2, 3, 4)), ValueError, r"of shape \(2,3,4\) could not be broadcast"),
        (np.ones((3, 4), bool), [1, 2], ValueError, "cannot assign 2 input values to the 12 output values"),
        (np.zeros((3, 4), bool), [1, 2], ValueError, "cannot assign 2 input values to the 0 output values"),
        (np.ones((3, 4), bool), np.zeros((3, 4)), TypeError, "requires a 0 or 1-dimensional input, .* has 2"),
        ([3], 0, IndexError, "index 3 is out of bounds for axis 0 with size 3"),
        (([0, 1], [0, 1, 2]), 0, IndexError, "shape mismatch: indexing arrays"),
        ([1.0], 0, IndexError, "only integers, slices"),
        ([0], 2**70, OverflowError, "too large"),
        ([0], "a", ValueError, "assignment: "),
    ],
)
def test_refused_assignments_write_nothing(
    device: wg.Device, key: Any, value: Any, error: type[Exception], words: str
) -> None:
    both = placed(device, Layout.packed((3, 4)), "int32")
    with pytest.raises(error):
        both.array[key] = value
    with pytest.raises(error, match=words):
        both.tensor[key] = value
    both.check()


@pytest.mark.parametrize("shape", [(0,), (5,), (0, 0), (0, 4), (5, 0)])
@pytest.mark.parametrize("mask_shape", [(0,), (0, 0), (0, 4), (5, 0)])
def test_masks_without_elements_take_what_numpys_take(
    device: wg.Device, shape: tuple[int, ...], mask_shape: tuple[int, ...]
) -> None:
    """A mask of the tensor's shape has rules of its own; NumPy takes a mask without elements for any size."""
    array = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    x, mask = wg.asarray(array, device=device), np.zeros(mask_shape, bool)
    for value_shape in ((), (1,), (2,), (0,), (1, 1), (2, 1), (1, 0), (1, 1, 1), (1, 4), (2, 4)):
        value = np.full(value_shape, 7, np.int32)
        expected = outcome(partial(setitem, array, mask, value))
        found = outcome(partial(setitem, x, mask, value))
        assert str(found).replace("assignment: ", "") == str(expected)
    assert x.numpy().tolist() == array.tolist()


def test_tensors_that_do_not_fit_are_refused(device: wg.Device) -> None:
    both = placed(device, Layout.packed((3, 4)), "int32")
    with pytest.raises(TypeError, match="assignment: output has dtype int32, the input float32"):
        both.tensor[[0]] = wg.zeros(4, "f4", device=device)
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match=r"assignment: input: the buffer .* is not on"):
        both.tensor[[0]] = wg.zeros(4, "i4", device=other)
    overlapping = wg.from_buffer(both.buffer, (2, 3), "i4", strides=(0, 1))
    with pytest.raises(ValueError, match="two elements share bytes"):
        overlapping[[0]] = 0
    both.check()
    both.buffer.destroy()
    with pytest.raises(ValueError, match=r"assignment: .*destroyed"):
        both.tensor[[0]] = 0


def test_the_later_one_wins_over_several_dispatches(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit
) -> None:
    both = placed(device, Layout.packed((30,)), "int16")
    limit(binding_nbytes=1024)
    indices = np.random.default_rng(2).integers(0, 30, 500)
    value = random_array((500,), "int16", 4)
    both.array[indices] = value
    both.tensor[indices] = value
    (plan,) = recorded
    assert len(plan.steps) == 3
    both.check()


@on_one_adapter
def test_host_indices_take_no_last_writer_pass(device: wg.Device, recorded: list[wg.Plan]) -> None:
    x = wg.zeros((20, 64, 64, 3), "u1", device=device)
    y = wg.zeros((20, 64, 64, 3), "u1", device=device)
    x[np.random.default_rng(0).permutation(20)] = y
    x[np.zeros(20, int)] = y
    x[:, [1, 1], [2, 2]] = y[:, :2, 0]
    x[x.numpy() > 1] = 1  # nothing
    x[..., [True, False, True]] = 1
    assert len(recorded) == 4
    assert not any("last_writer" in str(plan) for plan in recorded)
    x[wg.asarray(np.zeros(20, int), device=device)] = y
    assert "last_writer" in str(recorded[-1])


@pytest.mark.parametrize("span", [40, 100_000])
def test_of_equal_places_the_last_one_is_written(span: int) -> None:
    """By a table where places are dense, by sorting where they are not."""
    random = np.random.default_rng(3)
    for places in (random.integers(0, 40, 200), np.arange(40), np.array([5, 5]), np.array([7])):
        sizes = (span,)
        selected = any_index(sizes, places)
        assert isinstance(selected, AdvancedSelection)
        view, other = Layout.packed(sizes), Layout.packed(selected.shape)
        copy = indexed_copy(selected, view, other, reads=False)
        assert copy is not None
        assert copy.winners is None
        last = {place: number for number, place in enumerate(places.tolist())}
        if copy.host is None:  # equal steps
            assert len(last) == places.size
            continue
        assert np.flatnonzero(copy.host.values >= 0).tolist() == sorted(last.values())
        *_, numbers, _ = windows_at(copy) or pytest.fail("no windows")
        assert numbers.tolist() == sorted(last.values())


@pytest.mark.parametrize("dtype", ["uint8", "float16", "float32", "complex128"])
@pytest.mark.parametrize("shape", [(3000,), (75, 40), (5, 60, 10)])
def test_a_mask_beyond_a_binding_is_copied_in_parts(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, dtype: str, shape: tuple[int, ...]
) -> None:
    """Not through indices, which would read it back; here a binding holds 1 KiB."""
    limit(binding_nbytes=1024)
    nbytes = prod(shape) * np.dtype(dtype).itemsize
    array, values = (random_bytes(nbytes, seed).view(dtype).reshape(shape) for seed in (1, 2))
    mask = np.random.default_rng(3).random(shape) < 0.5
    v = wg.asarray(values, device=device)
    for where, key in ((mask, ...), (mask[..., :1], ...), (mask[:1], np.s_[::-1]), (mask, np.s_[..., ::-1])):
        expected, x = array.copy(), wg.asarray(array, device=device)
        np.copyto(expected[key], values, where=where)
        marks = wg.asarray(where, device=device)
        target: Any = x[key]
        recorded.clear()
        with noted(wg.Device, "submit") as submitted:
            np.copyto(target, v, where=marks)
        assert sum(len(plan.steps) for plan in recorded) > 1 == len(submitted)
        assert not any("gather" in plan.summary for plan in recorded)
        check_same(x.numpy(), expected)
        y, z = (wg.asarray(each, device=device) for each in (array, values))

        def copied(x: Any, v: Any, marks: Any, key: Any = key) -> None:
            np.copyto(x[key], v[::-1].copy()[::-1], where=marks)  # of a tensor dropped before the submission

        wg.capture(copied, x=x, v=v, marks=marks)(x=y, v=z, marks=marks)
        check_same(y.numpy(), expected)
    one = wg.asarray(values[(0,) * len(shape)], device=device)
    x = wg.asarray(array, device=device)
    found: Any = np.where(wg.asarray(mask, device=device), one, x)
    check_same(found.numpy(), np.where(mask, values[(0,) * len(shape)], array))

"""`wg.put` and `np.put_along_axis`: what NumPy does to every byte; what is refused; the plans."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from helpers import DTYPES, check_bytes, check_same, on_one_adapter, random_array, read_buffer
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from index_keys import INTEGERS, placed
from running import Limit
from strategies import nested_strides

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.profiles import CPU


@pytest.mark.every_adapter
@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_put_writes_what_assignment_does(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    layout = Layout.of(sizes, data.draw(nested_strides(sizes, broadcast=False)), data.draw(st.integers(0, 5)))
    dtype = DTYPES[data.draw(st.sampled_from([1, 2, 4, 8, 16]))]
    both = placed(device, layout, dtype)
    axis = data.draw(st.integers(-len(sizes), len(sizes) - 1))
    size, own = sizes[axis], data.draw(st.sampled_from(INTEGERS))
    shape = data.draw(array_shapes(min_dims=1, max_dims=2, min_side=1, max_side=12))
    indices = data.draw(arrays(own, shape, elements=st.integers(-size if own[0] == "i" else 0, size - 1)))
    key = (*[slice(None)] * (axis % len(sizes)), indices)
    values = random_array(both.array[key].shape, dtype)
    overlap: Any = "last"
    if len(np.unique(indices % size if own[0] == "i" else indices)) == indices.size:
        overlap = data.draw(st.sampled_from(["last", "refuse", "disjoint"]))
    on_gpu = data.draw(st.booleans())
    held = wg.asarray(indices, device=device) if on_gpu and overlap != "refuse" else indices
    both.array[key] = values
    wg.put(both.tensor, held, wg.asarray(values, device=device), axis, overlap=overlap)
    both.check()


@pytest.mark.every_adapter
@given(data=st.data(), sizes=array_shapes(min_dims=1, max_dims=3, min_side=1, max_side=9))
def test_put_along_axis_writes_what_numpy_does(
    device: wg.Device, data: st.DataObject, sizes: tuple[int, ...]
) -> None:
    dtype = DTYPES[data.draw(st.sampled_from([1, 2, 4, 8, 16]))]
    both = placed(device, Layout.packed(sizes, data.draw(st.integers(0, 3))), dtype)
    axis = data.draw(st.sampled_from([None, *range(-len(sizes), len(sizes))]))
    shape = (both.array.size,) if axis is None else sizes
    count = data.draw(st.integers(1, 12))
    along = 0 if axis is None else axis % len(sizes)
    own = (*shape[:along], count, *shape[along + 1 :])
    indices = data.draw(arrays(np.int64, own, elements=st.integers(-shape[along], shape[along] - 1)))
    values = random_array(own, dtype)
    np.put_along_axis(both.array, indices, values, axis)
    held: Any = wg.asarray(indices, device=device) if data.draw(st.booleans()) else indices
    np.put_along_axis(both.tensor, held, wg.asarray(values, device=device), axis)  # type: ignore[arg-type]  # a tensor
    both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "sizes", "columns", "axis", "in_order"),
    [
        ("float32", (256, 65), slice(None), -1, True),
        ("float32", (255, 65), slice(None), -1, False),  # few rows, each of many elements
        ("float32", (255, 64), slice(None), -1, True),
        ("float32", (3, 65, 100), slice(None), 1, True),
        ("uint8", (30, 64), slice(4, None), -1, True),
        ("uint8", (30, 64), slice(None, 0, -1), -1, False),  # rows begin inside a word
        ("uint8", (30, 63), slice(None), -1, False),  # rows share words
        ("uint16", (30, 64), slice(1, None), -1, False),
        ("uint16", (30, 64), slice(None, None, -1), -1, True),
        ("uint16", (30, 64), slice(None), 0, False),  # columns share words
        ("uint16", (30, 63), slice(None), None, False),
        ("uint16", (1, 63), slice(1, None), -1, True),
        ("complex128", (30, 63), slice(None), 0, True),
    ],
)
def test_rows_are_written_in_order_without_a_last_writer_pass(
    device: wg.Device,
    recorded: list[wg.Plan],
    limit: Limit,
    dtype: str,
    sizes: tuple[int, ...],
    columns: slice,
    axis: int | None,
    in_order: bool,
) -> None:
    limit(profile=CPU)
    both = placed(device, Layout.packed(sizes, 4), dtype)
    view, written = both.tensor[..., columns], both.array[..., columns]
    size, shape = (view.size, (view.size,)) if axis is None else (view.shape[axis], view.shape)
    random = np.random.default_rng(2)
    indices, values = random.integers(-size, size, shape), random_array(shape, dtype)
    np.put_along_axis(written, indices, values, axis)
    held: Any = wg.asarray(indices, device=device)
    np.put_along_axis(view, held, wg.asarray(values, device=device), axis)  # type: ignore[arg-type]  # a tensor
    assert ("scatter_in_order" in [step.name for plan in recorded for step in plan.steps]) == in_order
    both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize(("width", "in_order"), [(256, True), (260, False)])
def test_few_whole_rows_are_written_in_order(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, width: int, in_order: bool
) -> None:
    """Up to 4,096 vectors of 16 bytes in all: a last-writer pass costs a dispatch of its own."""
    limit(profile=CPU)
    both = placed(device, Layout.packed((50, width), 4), "float32")
    indices, values = np.random.default_rng(4).integers(-50, 50, 64), random_array((64, width), "float32")
    both.array[indices] = values
    both.tensor[wg.asarray(indices, device=device)] = wg.asarray(values, device=device)
    names = [step.name for plan in recorded for step in plan.steps]
    assert names == (["scatter_in_order"] if in_order else ["last_writer_indices", "scatter"])
    both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize(
    ("dtype", "row", "shape", "steps"),
    [
        ("float32", (300,), (), ["scatter"]),
        ("float32", (300,), (300,), ["scatter"]),
        ("float32", (300,), (80, 1), ["last_writer_indices", "scatter"]),
        ("uint8", (300,), (), ["subword_rows", "scatter"]),
        ("uint8", (), (), ["last_writer_indices", "scatter_subword"]),  # elements share words
    ],
)
def test_one_value_for_all_indices_needs_no_last_writer_pass(
    device: wg.Device,
    recorded: list[wg.Plan],
    limit: Limit,
    dtype: str,
    row: tuple[int, ...],
    shape: tuple[int, ...],
    steps: list[str],
) -> None:
    limit(profile=CPU)
    both = placed(device, Layout.packed((50, *row), 4), dtype)
    indices, values = np.random.default_rng(5).integers(-50, 50, 80), random_array(shape, dtype)
    both.array[indices] = values
    both.tensor[wg.asarray(indices, device=device)] = wg.asarray(values, device=device)
    assert [step.name for plan in recorded for step in plan.steps] == steps
    both.check()


def test_indices_may_be_equal_along_two_dimensions(device: wg.Device) -> None:
    indices, values = np.random.default_rng(3).integers(0, 20, (40, 7)), np.arange(7, dtype=np.float32)
    expected, x = np.zeros(20, np.float32), wg.zeros(20, np.float32, device=device)
    expected[indices] = values
    wg.put(x, wg.asarray(indices, device=device), wg.asarray(values, device=device))
    assert np.array_equal(x.numpy(), expected)


def test_a_promise_saves_the_last_writer_pass(device: wg.Device, recorded: list[wg.Plan]) -> None:
    """Once for each row that an index names, not for each element; one index needs none."""
    rows = wg.asarray(np.arange(24000, dtype=np.float32).reshape(40, 600), device=device)
    x = wg.zeros((50, 600), np.float32, device=device)
    indices = wg.asarray(np.random.default_rng(0).permutation(50)[:40], device=device)
    wg.put(x, indices, rows)
    wg.put(x, indices, rows, overlap="disjoint")
    wg.put(x, indices[:1], rows[:1])
    assert [[step.name for step in plan.steps] for plan in recorded] == [
        ["last_writer_indices", "scatter"],
        ["scatter"],
        ["scatter"],
    ]
    last_writers: Any = recorded[0].steps[0]
    assert last_writers.copy.sizes == (40,)
    expected = np.zeros((50, 600), np.float32)
    expected[indices.numpy()] = rows.numpy()
    check_bytes(x.numpy().view(np.uint8), expected.view(np.uint8))


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32", "complex128"])
def test_a_broken_promise_changes_no_other_element(device: wg.Device, dtype: str) -> None:
    """Of 4 bytes and more an element's words are those of either value."""
    both = placed(device, Layout.packed((40, 5), 3), dtype)
    indices = np.array([3, 9, 3, 17, -37, 9])
    values = random_array((6, 5), dtype)
    wg.put(
        both.tensor, wg.asarray(indices, device=device), wg.asarray(values, device=device), overlap="disjoint"
    )
    both.array[17] = values[3]
    expected = both.array.copy()
    after = np.frombuffer(read_buffer(both.buffer), np.uint8)
    found = np.ndarray((40, 5), dtype, after.data, 3 * np.dtype(dtype).itemsize)
    others = [number for number in range(40) if number not in (3, 9)]
    check_bytes(found[others].view(np.uint8), expected[others].view(np.uint8))
    if np.dtype(dtype).itemsize == 4:
        for row in (3, 9):
            of_row = values[np.flatnonzero(indices % 40 == row)]
            assert (found[row].view(np.uint32) == of_row.view(np.uint32)).any(axis=0).all()


@on_one_adapter
@pytest.mark.parametrize("width", [4, 8, 16])
def test_a_promise_about_wide_elements_leaves_the_later_value(device: wg.Device, width: int) -> None:
    """Beyond 4 bytes, WGSL has no atomics that keep an element whole."""
    x, values = (wg.asarray(random_array((n,), DTYPES[width], n), device=device) for n in (9, 600))
    at = wg.asarray(np.arange(600) % 9, device=device)
    plans = str(wg.explain(wg.put, x, at, values, overlap="disjoint"))
    assert ("last_writer_indices" in plans) == (width > 4)
    wg.put(x, at, values, overlap="disjoint")
    if width > 4:
        expected = x.numpy()
        expected[np.arange(600) % 9] = values.numpy()
        check_same(x.numpy(), expected)


def test_put_refuses_in_words(device: wg.Device) -> None:
    x = wg.zeros((4, 5), np.int32, device=device)
    held = wg.asarray([1, 2], device=device)
    refused: dict[str, Any] = {
        r"^put: 3 indices name element 3: must be distinct": lambda: wg.put(
            x, [3, -1, 3], 7, overlap="refuse"
        ),
        r"^put: overlap = \"refuse\": equal indices in a tensor cannot be refused": lambda: wg.put(
            x, held, 7, overlap="refuse"
        ),
        r"^put: overlap = 'first': must be 'last', 'refuse' or 'disjoint'": lambda: wg.put(
            x,
            [1],
            7,
            overlap="first",  # type: ignore[arg-type]  # refused
        ),
        r"^put: shape mismatch: value array of shape \(3,\)": lambda: wg.put(x, [1, 2], [1, 2, 3]),
    }
    for match, refuse in refused.items():
        with pytest.raises(ValueError, match=match):
            refuse()
    with pytest.raises(IndexError, match=r"index 4 is out of bounds for axis 0 with size 4$"):
        wg.put(x, [1, 4], 7)
    with pytest.raises(TypeError, match=r"^put: indices have dtype float64: must be integers"):
        wg.put(x, [0.5], 7)
    assert not x.numpy().any()


@on_one_adapter
def test_indices_print_what_runs(device: wg.Device, recorded: list[wg.Plan], limit: Limit) -> None:
    """Steps of reads and writes; equal steps are views, and windows stay where they are cheaper."""
    limit(profile=CPU)
    x = wg.zeros((64, 128), np.float32, device=device)
    pixels = wg.zeros((64, 128, 3), np.uint8, device=device)
    order = np.random.default_rng(0).permutation(128)
    held = wg.asarray(order, device=device)
    x[:, order]
    x[:, held]
    x[order[:9, None] % 64, order]
    pixels[:, order]
    x[:, [1, 3, 5]]
    x[:, order] = x.copy()
    x[held[:64]] = x.copy()
    pixels[:, held] = 1
    found = [[re.split(r", \d+ x ", str(step))[0] for step in plan.steps] for plan in recorded]
    written = [steps for steps in found if not any("scratch" in step for step in steps)]
    assert written == [
        ["kernel gather on (64, 128) by 128 indices uploaded with the submission (512 B)"],
        ["kernel gather on (64, 128) by indices in device memory (1.02 kB)"],
        ["kernel gather on (9, 128) by 137 indices uploaded with the submission (548 B)"],
        ["kernel gather_words on (64, 384) by 384 indices uploaded with the submission (1.54 kB)"],
        ["kernel rows on (64, 3)"],
        ["buffer copy of 32.8 kB, without a kernel: contiguous words on both sides"],
        ["kernel scatter on (64, 128) by 128 indices uploaded with the submission (512 B)"],
        ["buffer copy of 32.8 kB, without a kernel: contiguous words on both sides"],
        ["kernel scatter_in_order on (32, 64) by indices in device memory (512 B)"],
        [
            "kernel last_writer_indices on (128,) by indices in device memory (1.02 kB) "
            "to the winner indices",
            "kernel scatter_subword on (64, 128, 3) by indices in device memory (1.02 kB)",
        ],
    ]


def test_equal_indices_share_a_plan(device: wg.Device, recorded: list[wg.Plan]) -> None:
    """In an array or in a list, which is not planned again at each call."""
    both = placed(device, Layout.packed((6, 40)), "float32")
    for keys in ([5, 1, 1, -7], np.array([5, 1, 1, -7]), [5, 1, 1, -7], [5, 1, 1, 7]):
        check_same(both.tensor[:, keys].numpy(), both.array[:, keys])
    gathered = [plan for plan in recorded if "indices" in str(plan)]
    assert gathered[0] is gathered[1] is gathered[2] is not gathered[3]


@pytest.mark.parametrize("held", [0, 1])
def test_copies_beyond_a_binding_are_several_dispatches(
    device: wg.Device, recorded: list[wg.Plan], limit: Limit, held: int
) -> None:
    """At both sides of the largest binding, for reads and writes by indices of the host and of the GPU."""
    alignment = device.limits.binding_alignment_nbytes
    nbytes = 64 * max(alignment, 32)
    both = placed(device, Layout.packed((nbytes // 32, 8)), "float32")
    limit(profile=CPU, binding_nbytes=nbytes + alignment - 16 * (1 - held))
    order = np.random.default_rng(3).permutation(len(both.array))[:30]
    values = random_array((30, 8), "float32")
    for indices in (order, wg.asarray(order, device=device)):
        assert np.array_equal(both.tensor[indices].numpy().view(np.uint8), both.array[order].view(np.uint8))
        both.tensor[indices] = values
        both.array[order] = values
        both.check()
    names = [step.name for plan in recorded for step in plan.steps]
    counts = [names.count(name) for name in ("wide_gather", "scatter", "scatter_in_order")]
    assert counts == ([2, 1, 1] if held else [3, 1, 2])  # those of the host reach fewer rows


@pytest.mark.every_adapter
@pytest.mark.parametrize("on_gpu", [False, True])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_windows_promised_disjoint_need_no_last_writer_pass(
    device: wg.Device, recorded: list[wg.Plan], dtype: str, on_gpu: bool
) -> None:
    """If two of them overlap after all, no other element changes."""
    both = placed(device, Layout.packed((20, 30), 3), dtype)
    windows = random_array((3, 4, 7), dtype)
    apart, meeting = np.array([[0, 1], [5, 20], [9, 3]]), np.array([[0, 1], [2, 4], [15, 3]])
    for offsets in (apart, meeting):
        held: Any = wg.asarray(offsets, device=device) if on_gpu else offsets
        wg.insert_windows(both.tensor, held, windows, overlap="disjoint")
    steps = [step.name for plan in recorded for step in plan.steps]
    assert steps
    assert "last_writer_windows" not in steps
    touched = np.zeros((20, 30), int)
    for offsets in (apart, meeting):
        for (row, column), window in zip(offsets.tolist(), windows, strict=True):
            both.array[row : row + 4, column : column + 7] = window
    for row, column in meeting.tolist():
        touched[row : row + 4, column : column + 7] += 1
    after = np.frombuffer(read_buffer(both.buffer), np.uint8)
    found = np.ndarray((20, 30), dtype, after.data, 3 * np.dtype(dtype).itemsize)
    assert (touched > 1).any()
    check_bytes(found[touched < 2].view(np.uint8), both.array[touched < 2].view(np.uint8))
    guards = slice(0, 3 * np.dtype(dtype).itemsize)
    check_bytes(after[guards], both.content[guards])


def test_a_promise_of_disjoint_rows_saves_the_last_writer_pass(device: wg.Device) -> None:
    """Also of rows that are written as windows: long ones, of items narrower than a word."""
    x = wg.zeros((50, 601), np.float16, device=device)
    array = np.arange(30 * 601, dtype=np.float32).astype(np.float16).reshape(30, 601)
    order = np.random.default_rng(2).permutation(50)[:30]
    given = x, wg.asarray(order, device=device), wg.asarray(array, device=device)
    names = [
        [step.name for plan in wg.explain(wg.put, *given, overlap=overlap).plans for step in plan.steps]
        for overlap in ("last", "disjoint")
    ]
    assert [any("last_writer" in name for name in each) for each in names] == [True, False]
    wg.put(*given, overlap="disjoint")
    expected = np.zeros(x.shape, np.float16)
    expected[order] = array
    check_same(x.numpy(), expected)

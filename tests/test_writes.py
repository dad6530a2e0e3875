"""Window writes: what NumPy's assignment does to every byte of the buffer."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from helpers import (
    check_same,
    make_buffer,
    random_array,
    random_bytes,
)
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import placed

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.profiles import PATTERN_NBYTES

DTYPES = ["bool", "int8", "uint8", "uint16", "float16", "float32", "int64", "complex64", "complex128"]


@given(data=st.data(), shape=array_shapes(min_dims=1, max_dims=4, min_side=1, max_side=9))
def test_windows_of_one_buffer_are_read_before_they_are_written(
    device: wg.Device, data: st.DataObject, shape: tuple[int, ...]
) -> None:
    """Overlapping or not, any directions: write after read, as NumPy has it."""
    both = placed(device, Layout.packed(shape, 1), data.draw(st.sampled_from(DTYPES)))
    sizes = tuple(data.draw(st.integers(1, size)) for size in shape)
    keys = []
    for _ in range(2):
        key = []
        for size, extent in zip(shape, sizes, strict=True):
            step = data.draw(st.integers(1, max((size - 1) // max(extent - 1, 1), 1)))
            start = data.draw(st.integers(0, size - (extent - 1) * step - 1))
            taken = slice(start, start + (extent - 1) * step + 1, step)
            if data.draw(st.booleans()):
                taken = slice(taken.stop - 1, taken.start - 1 if taken.start else None, -step)
            key.append(taken)
        keys.append(tuple(key))
    source, target = keys
    read = both.array[source].copy()  # what assignment promises; NumPy 2.4 itself errs on some that overlap
    if data.draw(st.booleans()):
        both.array[target] = read
        both.tensor[target] = both.tensor[source]
    else:  # a row of it for every row, broadcast out of the same buffer
        both.array[target] = read[:1]
        wg.copyto(both.tensor[target], both.tensor[source][:1])
    both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize("width", [1, 2, 4, 8, 16])
def test_every_short_window_leaves_its_neighbours_alone(device: wg.Device, width: int) -> None:
    """Any start, any length and step within two words, one after the other on one buffer."""
    dtype = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64", 16: "complex128"}[width]
    both = placed(device, Layout.packed((24,), 1), dtype)
    for number, (start, count, step) in enumerate(
        (start, count, step) for start in range(6) for count in range(1, 8) for step in (1, 2, 3, -1)
    ):
        last = start + (count - 1) * abs(step)
        key = slice(start, last + 1, step) if step > 0 else slice(last, start - 1 if start else None, step)
        value = random_array((count,), dtype, number)
        both.array[key] = value
        both.tensor[key] = value if number % 2 else wg.asarray(value, device=device)
    both.check()


RUN = PATTERN_NBYTES


@pytest.mark.parametrize(
    ("shape", "dtype", "key"),
    [
        ((RUN - 1,), "uint8", np.s_[:]),
        ((RUN,), "uint8", np.s_[:]),
        ((RUN + 1,), "uint8", np.s_[:]),
        ((3 * RUN + 7,), "uint8", np.s_[2:-3]),
        ((2, RUN + 5), "float16", np.s_[:, 1:-1]),
        ((300, 301), "float32", np.s_[...]),
        ((300, 301), "float32", np.s_[1:-1, 1:-1]),
        ((50, 60, 3), "uint8", np.s_[5:-5, 7:-7]),
        ((50, 60, 3), "uint8", np.s_[..., 1]),
        ((40, 41), "complex128", np.s_[::-2, ::3]),
    ],
)
def test_a_scalar_fills_a_window(device: wg.Device, shape: tuple[int, ...], dtype: str, key: Any) -> None:
    both = placed(device, Layout.packed(shape, 3), dtype)
    both.array[key] = 7
    both.tensor[key] = 7
    both.check()
    both.array[key] = np.asarray(5, dtype)
    wg.copyto(both.tensor[key], wg.asarray(np.asarray(5, dtype), device=device))
    both.check()


@pytest.mark.parametrize(
    ("dtype", "value"),
    [
        ("uint8", 300),
        ("uint8", -1),
        ("uint8", [1, 2, 300]),
        ("uint8", np.array([1, 2, 300])),
        ("uint8", 2.7),
        ("int8", np.float32(3.5)),
        ("float32", 1 / 3),
        ("float16", np.array([1 / 3, 1e-7, 65504])),
        ("bool", [0, 3, -1]),
        ("float32", "0.25"),
        ("int32", "half"),
        ("int32", 1 + 2j),
        ("float32", [[1, 2], [3]]),
        ("datetime64[s]", np.datetime64("2020-02-03T04", "h")),
        ("int32", np.arange(3, dtype=">i4")),
        ("int32", None),
        ("float32", None),
    ],
)
@pytest.mark.parametrize("how", ["assignment", "copyto"])
def test_values_are_cast_as_numpy_casts_them(device: wg.Device, dtype: str, value: Any, how: str) -> None:
    """The same elements, or the same kind of exception and nothing written."""
    array = np.zeros(3, dtype)
    x = wg.zeros(3, dtype, device=device)
    outcomes: list[Any] = []
    for target in (array, x):
        try:
            if how == "assignment":
                target[...] = value
            else:
                (np.copyto if target is array else wg.copyto)(cast("Any", target), value)
            outcomes.append(None)
        except (TypeError, ValueError, OverflowError) as error:
            outcomes.append(type(error))
    assert outcomes[0] == outcomes[1]
    check_same(x.numpy(), array if outcomes[0] is None else np.zeros(3, dtype))


@pytest.mark.parametrize(
    ("key", "value", "error", "message"),
    [
        (
            np.s_[:],
            np.zeros(2),
            ValueError,
            r"could not broadcast input array from shape \(2,\) into shape \(4, 3\)",
        ),
        (np.s_[0], np.zeros((2, 3)), ValueError, r"from shape \(2, 3\) into shape \(3,\)"),
        (np.s_[:0], np.zeros((2, 3)), ValueError, r"from shape \(2, 3\) into shape \(0, 3\)"),
        (np.s_[4], 0, IndexError, "index 4 is out of bounds for axis 0 with size 4"),
        (np.s_[1.0], 0, IndexError, "only integers, slices"),
    ],
)
def test_refused_assignments_write_nothing(
    device: wg.Device, key: Any, value: Any, error: type[Exception], message: str
) -> None:
    array = random_array((4, 3), "float64")
    x = wg.asarray(array, device=device)
    with pytest.raises(error, match=message):
        x[key] = value
    if not np.isscalar(value):
        with pytest.raises(error, match=message):
            x[key] = wg.asarray(value, device=device)
    check_same(x.numpy(), array)


READ_ONLY: dict[str, Callable[[wg.Tensor], Any]] = {
    "an element": lambda x: x.__setitem__(0, 1),
    "a row": lambda x: x[0].__setitem__(..., 1),
    "an index out of range": lambda x: x.__setitem__(9, 1),
    "nothing": lambda x: x.__setitem__(slice(0, 0), 1),
    "arrays of indices": lambda x: x.__setitem__([0], 1),
    "copyto": lambda x: wg.copyto(x, 1),
    "numpy.copyto": lambda x: np.copyto(cast("Any", x), 1),
    "slice1": lambda x: wg.slice1(x.copy(), (0, 0), (2, 3), out=x),
    "slice": lambda x: wg.slice(x.copy(), (0, 0), (2, 3), out=x),
    "slice_grad": lambda x: wg.slice_grad(x.copy(), (0, 0), (2, 3), output_sizes=(2, 3), out=x),
    "extract_windows": lambda x: wg.extract_windows(x[0].copy(), [[0], [0]], (3,), out=x),
    "insert_windows": lambda x: wg.insert_windows(x, [[0, 0]], np.ones((1, 1, 1))),
    "a compiled operator": lambda x: identity(x)(x.copy(), out=x),
    "a recording": lambda x: identity(x).record(
        x.device.wgpu_device.create_command_encoder(), input=x.copy(), output=x
    ),
    "stream": lambda x: wg.stream(np.ones((2, 3)), ..., x),
}


def identity(x: wg.Tensor) -> Any:
    """An operator that writes all of a packed tensor."""
    side = wg.TensorDesc(x.dtype, x.shape)
    return x.device.compile(wg.Slice1(side, side, (0, 0), x.shape))


@pytest.mark.parametrize("write", READ_ONLY.values(), ids=READ_ONLY)
def test_a_read_only_view_refuses_to_be_written(device: wg.Device, write: Callable[[wg.Tensor], Any]) -> None:
    """Although each element of this one has a place of its own."""
    array = random_array((2, 3), "float64")
    x = wg.asarray(array, device=device)
    rule = "is read-only, as views of broadcast_to are: write to a copy"
    with pytest.raises(ValueError, match=rule) as caught:
        write(wg.broadcast_to(x, x.shape))
    assert re.match(
        r"(assignment|.*copyto|insert_windows|Slice1: output): the dest|\w+: out is", str(caught.value)
    )
    check_same(x.numpy(), array)


def test_tensors_are_not_converted(device: wg.Device) -> None:
    x = wg.zeros(3, np.float32, device=device)
    with pytest.raises(
        TypeError, match=r"assignment: output has dtype float32, the input int32: must be equal; .*astype"
    ):
        x[...] = wg.zeros(3, np.int32, device=device)
    for value, name in ((1j, "complex128"), ("a", "str_")):
        with pytest.raises((TypeError, ValueError), match=f"assignment: cannot cast {name} to float32: "):
            x[0] = value
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match=r"copyto: input: .* is not on Device"):
        wg.copyto(x, wg.zeros(3, np.float32, device=other))
    with pytest.raises(ValueError, match=r"copyto: input: .* is not on Device"):
        wg.copyto(x[:0], wg.zeros(0, np.float32, device=other))
    with pytest.raises(TypeError, match="copyto: dst is of type ndarray: must be a Tensor"):
        wg.copyto(cast("Any", np.zeros(3)), x)


def test_a_destroyed_target_is_refused(device: wg.Device) -> None:
    for value in (1, np.arange(4, dtype=np.float32), np.arange(4, dtype=np.float32)[:1]):
        buffer = make_buffer(device, random_bytes(16))
        x = wg.from_buffer(buffer, 4, np.float32)
        buffer.destroy()
        with pytest.raises(ValueError, match="assignment: output: the buffer has been destroyed"):
            x[...] = value


def test_a_large_array_is_uploaded_straight_into_its_place(device: wg.Device) -> None:
    """Beyond one chunk of an upload, on both sides guarded."""
    x = np.zeros(6_000_000, np.uint16)
    tensor = wg.asarray(x, device=device)
    value = random_bytes(10_000_004).view(np.uint16)
    for start in (2, 3):  # whole words, and not
        x[start : start + value.size] = value
        tensor[start : start + value.size] = value
        assert np.array_equal(tensor.numpy(), x)

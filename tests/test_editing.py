"""Deleting, inserting, joining into `out`, views by bytes and strides, and padding between elements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import check_same
from hypothesis import given
from hypothesis import strategies as st
from moving import Pair, axis_of, check_moved, numbered, pairs, shapes, shares, submissions
from numpy.typing import NDArray

import wgslice as wg

numpy: Any = np  # whose stubs know nothing of tensors
tricks: Any = np.lib.stride_tricks


def many(device: wg.Device, data: st.DataObject, most: int = 90) -> tuple[Pair, int]:
    """A tensor with a long dimension, and the dimension."""
    sizes = list(data.draw(shapes(least=1, most=3, smallest=1)))
    axis = data.draw(axis_of(len(sizes)))
    sizes[axis] = data.draw(st.integers(0, most))
    return data.draw(pairs(device, tuple(sizes))), axis


@given(data=st.data())
def test_delete_is_numpys(device: wg.Device, data: st.DataObject) -> None:
    x, axis = many(device, data)
    size = x.array.shape[axis]
    whole = st.integers(-size, size - 1)
    some = st.none() | st.integers(-size - 2, size + 2)
    kinds = [
        st.builds(slice, some, some, st.sampled_from([None, 1, 2, -1, -3])),
        st.lists(st.booleans(), min_size=size, max_size=size).map(lambda mask: np.array(mask, bool)),
        *([whole, st.lists(whole, max_size=60)] if size else []),
    ]
    deleted = data.draw(st.one_of(kinds))
    expected = numpy.delete(x.array, deleted, axis)
    check_moved(device, lambda: numpy.delete(x.tensor, deleted, axis), expected)
    if isinstance(deleted, np.ndarray):  # a mask in a tensor is read back
        check_same(numpy.delete(x.tensor, wg.asarray(deleted, device=device), axis).numpy(), expected)


@given(data=st.data())
def test_insert_is_numpys(device: wg.Device, data: st.DataObject) -> None:
    x, axis = many(device, data)
    size = x.array.shape[axis]
    place = st.integers(-size, size)
    places: Any = data.draw(st.one_of(place, st.lists(place, max_size=60)))
    box = list(x.array.shape)
    single = isinstance(places, int) or len(places) == 1
    box[axis] = data.draw(st.integers(0, 3)) if single else len(places)
    if isinstance(places, int):  # the values have their dimension first
        box.insert(0, box.pop(axis))
    repeated = data.draw(st.lists(st.booleans(), min_size=len(box), max_size=len(box)))
    sizes = tuple(1 if once else extent for once, extent in zip(repeated, box, strict=True))
    values = data.draw(pairs(device, sizes, x.array.dtype.name, 500))
    given_values: Any = values.array if data.draw(st.booleans()) else values.tensor
    expected = numpy.insert(x.array, places, values.array, axis)
    with submissions(device) as counted:
        found = numpy.insert(x.tensor, places, given_values, axis)
    assert len(counted) <= 1 + (not single and len(places) > 20)
    assert found.is_packed
    check_same(found.numpy(), expected)


def test_values_are_cast_as_numpy_inserts_them(device: wg.Device) -> None:
    array = numbered((2, 3), "int16")
    x = wg.asarray(array, device=device)
    check_same(numpy.insert(x, 1, 2.9, axis=1).numpy(), numpy.insert(array, 1, 2.9, axis=1))
    check_same(numpy.insert(x, [1, 0], [True, False]).numpy(), numpy.insert(array, [1, 0], [True, False]))
    with pytest.raises(OverflowError, match=r"numpy\.insert: Python integer 70000 out of bounds for int16"):
        numpy.insert(x, 0, 70000)
    with pytest.raises(TypeError, match=r"numpy\.insert: output has dtype int16, the input float32: must be"):
        numpy.insert(x, 0, wg.zeros(1, np.float32, device=device))


@given(data=st.data())
def test_results_go_into_any_view(device: wg.Device, data: st.DataObject) -> None:
    """Into a tensor with steps, or in the buffer of what is read, without touching other bytes."""
    x = data.draw(pairs(device, shapes(least=1, most=3)))
    rank, axis = x.array.ndim, data.draw(axis_of(x.array.ndim))
    indices = data.draw(st.lists(st.integers(0, 9), max_size=4))

    def along_axis(each: Any, out: Any) -> Any:
        return numpy.concatenate([each, each], axis, out)

    call, shape = data.draw(
        st.sampled_from(
            [
                (along_axis, None),
                (lambda each, out: numpy.concatenate([each, each], None, out), None),
                (lambda each, out: numpy.stack([each, each], axis=axis, out=out), None),
                (lambda each, out: numpy.take(each, indices, axis, out, "wrap"), x.array.shape[axis] or None),
                (lambda each, out: numpy.take(each, 0, axis, out, "wrap"), x.array.shape[axis] or None),
            ]
        )
    )
    if shape is None and not x.array.size and rank:
        call = along_axis
    expected = call(x.array, None)
    out = data.draw(pairs(device, expected.shape, x.array.dtype.name, 700))
    wrote = wg.from_buffer(out.tensor.buffer, out.tensor.buffer.size // out.tensor.itemsize, x.array.dtype)
    before = wrote.numpy()
    places = wg.asarray(np.arange(wrote.size), device=device)  # which of them the view has
    written = wg.Tensor(device, places.memory, places.dtype, out.tensor.layout).numpy()
    with submissions(device) as counted:
        assert call(x.tensor, out.tensor) is out.tensor
    assert len(counted) <= 2
    check_same(out.tensor.numpy(), expected)
    kept = ~np.isin(np.arange(wrote.size), written)
    check_same(wrote.numpy()[kept], before[kept])


def test_out_is_read_before_it_is_written(device: wg.Device) -> None:
    array = numbered((4, 3), "uint8")
    cases: list[Callable[[Any, Any], Any]] = [
        lambda x, out: numpy.concatenate([x[2:], x[:2]], out=out),
        lambda x, out: numpy.stack([x[3], x[0], x[1], x[2]], out=out),
        lambda x, out: numpy.take(x, [3, 2, 1, 0], 0, out),
        lambda x, out: numpy.compress([1, 1, 1, 1], x[::-1], 0, out),
    ]
    for case in cases:
        x = wg.asarray(array, device=device)
        assert case(x, x) is x
        check_same(x.numpy(), case(array, None))


def test_indices_in_a_tensor_take_into_out(device: wg.Device) -> None:
    array = numbered((5, 3), "float16")
    x, places = (wg.asarray(each, device=device) for each in (array, np.array([4, -1, 99])))
    out = wg.zeros((3, 6), np.float16, device=device)[:, ::2]
    numpy.take(x, places, 0, out)
    check_same(out.numpy(), array[[4, 4, 4]])
    target = wg.asarray(np.array([3, 3, 3]), device=device)
    numpy.take(places, wg.asarray(np.array([1, 0, 1]), device=device), out=target)
    check_same(target.numpy(), np.array([-1, 4, -1]))


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda x: numpy.concatenate([x, x], out=x), ValueError, r"out has sizes \(2, 3\): must be \(4, 3\)"),
        (
            lambda x: numpy.stack([x], out=np.zeros((1, 2, 3))),
            TypeError,
            "out is of type ndarray: must be a T",
        ),
        (
            lambda x: numpy.take(x, 0, 0, out=wg.zeros(3, np.float32, device=x.device)),
            TypeError,
            "output has dtype float32, the input int16: must be equal",
        ),
        (
            lambda x: numpy.take(x, [0, 0], 0, out=np.broadcast_to(x[:1], (2, 3))),
            ValueError,
            "out is read-only",
        ),
        (
            lambda x: numpy.concatenate([x], dtype="i2", out=x),
            TypeError,
            "out and dtype are both given: out has a dtype of its own",
        ),
        (
            lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, 0, writeable=True),
            NotImplementedError,
            "writeable = True: windows share elements, so that the view is read-only",
        ),
        (lambda x: numpy.block([x, (x,)]), TypeError, "arrays has a tuple: only lists arrange blocks"),
        (lambda x: numpy.block([x, [x]]), ValueError, r"arrays has lists of depths \[0, 1\]: must be of one"),
        (lambda x: numpy.block([x, []]), ValueError, "arrays has an empty list"),
        (lambda x: numpy.diagonal(x, 0, 1, -1), ValueError, "axis1 and axis2 cannot be the same"),
    ],
)
def test_requests_are_refused_by_rule(
    device: wg.Device, call: Any, error: type[Exception], words: str
) -> None:
    x = wg.asarray(numbered((2, 3), "int16"), device=device)
    with submissions(device) as counted, pytest.raises(error, match=rf"^numpy\..*{words}"):
        call(x)
    assert not counted
    check_same(x.numpy(), numbered((2, 3), "int16"))


@given(data=st.data())
def test_views_of_another_width_are_numpys(device: wg.Device, data: st.DataObject) -> None:
    """Or refused, where NumPy refuses them, and where bytes begin between two elements."""
    flat = data.draw(pairs(device, shapes(most=3)))
    sizes = (*flat.array.shape, data.draw(st.sampled_from([1, 4, 16])))
    rows = data.draw(pairs(device, sizes, flat.array.dtype.name))
    dtype = data.draw(st.sampled_from(["uint8", "int16", "float32", "complex64", "complex128"]))
    for each in (flat, rows):
        try:
            expected = each.array.view(dtype)
        except ValueError:
            with pytest.raises(ValueError, match=f"^view: dtype {dtype}: "):
                each.tensor.view(dtype)
            continue
        x, size = each.tensor, np.dtype(dtype).itemsize
        strides = (x.offset, *(stride * x.itemsize for stride in x.strides[:-1])) if x.size else ()
        if x.itemsize < size and any(stride % size for stride in strides):
            with pytest.raises(ValueError, match=f"^view: dtype {dtype}: .*; copy\\(\\) the tensor$"):
                x.view(dtype)
            x = x.copy()
        found = x.view(dtype)
        assert shares(found, x)
        check_same(found.numpy(), expected)


def test_views_between_wider_elements_are_refused(device: wg.Device) -> None:
    array = numbered((3, 12), "uint8")
    x = wg.asarray(array, device=device)
    key: Any
    for key, dtype in ((np.s_[:, 4:], "u4"), (np.s_[::-2, :8], "f4"), (np.s_[1:2, 4:], "u8")):
        check_same(x[key].view(dtype).numpy(), array[key].view(dtype))
    for key, dtype, what in (
        (np.s_[:, 2:10], "u4", "offset of 2 bytes"),
        (np.s_[:, 1:3], "u2", "offset of 1 bytes"),
        (np.s_[:, :8], "u8", "stride of 12 bytes"),
    ):
        size = np.dtype(dtype).itemsize
        words = rf"^view: dtype uint\d+: {what}: must be a multiple of {size}; copy\(\) the tensor$"
        with pytest.raises(ValueError, match=words):
            x[key].view(dtype)
        check_same(x[key].copy().view(dtype).numpy(), array[key].view(dtype))


def test_bits_are_written_through_a_view_of_bytes(device: wg.Device) -> None:
    array = numbered((3, 4), "int64")
    x = wg.asarray(array, device=device)
    x.view("u1")[1, 3:9] = 0xAB
    array.view("u1")[1, 3:9] = 0xAB
    check_same(x.numpy(), array)
    assert not wg.broadcast_to(x, (2, 3, 4)).view("u1").flags.writeable


@given(data=st.data())
def test_any_strides_are_numpys(device: wg.Device, data: st.DataObject) -> None:
    array = numbered((60,), data.draw(st.sampled_from(["uint8", "float16", "int64", "complex128"])))
    x = wg.asarray(array, device=device)
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=3))
    strides = data.draw(st.lists(st.integers(-6, 6), min_size=len(sizes), max_size=len(sizes)))
    reaches = [(size - 1) * stride for size, stride in zip(sizes, strides, strict=True)]
    first = -sum(min(reach, 0) for reach in reaches)
    start = data.draw(st.integers(0, 59 - sum(map(abs, reaches)))) + first
    offset = start * x.itemsize
    in_bytes = [stride * x.itemsize for stride in strides]
    expected = tricks.as_strided(array[start:], sizes, in_bytes)
    found = wg.as_strided(x, sizes, strides, offset=offset)
    assert shares(found, x)
    check_same(found.numpy(), np.ascontiguousarray(expected).reshape(sizes))
    places = tricks.as_strided(
        np.arange(60, dtype=np.int64)[start:], sizes, [stride * 8 for stride in strides]
    )
    assert found.flags.writeable == (np.unique(places).size == places.size)
    same = wg.as_strided(x[start : start + 1], [1] * len(sizes), strides)
    check_same(same.numpy().reshape(1), array[start : start + 1])


@pytest.mark.parametrize(
    ("arguments", "offset", "words"),
    [
        (((5,), (1,)), 0, "reaches elements 0 to 4 from the first of x: must be within those of x, -3 to 0"),
        (
            ((4,), (1,)),
            -8,
            "reaches elements -4 to -1 from the first of x: must be within those of x, -3 to 0",
        ),
        (((2,), (-4,)), 0, "reaches elements -4 to 0"),
        (((2, 2), (1,)), 0, "1 strides for 2 dimensions: pass one per dimension"),
        (((2,), (-1,)), 1, "offset = 1 bytes: must be a multiple of the item size, 2"),
        (((-1,), (1,)), 0, r"shape\[0\] = -1"),
    ],
)
def test_views_beyond_a_tensor_are_refused(
    device: wg.Device, arguments: Any, offset: int, words: str
) -> None:
    """Also within its buffer."""
    x = wg.asarray(numbered((12,), "int16"), device=device)[7:3:-1]
    with pytest.raises(ValueError, match=f"^as_strided: .*{words}"):
        wg.as_strided(x, *arguments, offset=offset)
    with pytest.raises(ValueError, match=r"^as_strided: shape \(1,\)"):
        wg.as_strided(x[:0], (1,), (1,))
    assert wg.as_strided(x[:0], (0, 3), (1, 1)).shape == (0, 3)


def spread(array: NDArray[Any], widths: Any, interior: Any, constant: Any) -> NDArray[Any]:
    """XLA's Pad, dimension by dimension, element by element."""
    for axis, ((low, high), between) in enumerate(zip(widths, interior, strict=True)):
        size = array.shape[axis]
        total = low + high + size + max(size - 1, 0) * between
        made = np.full((*array.shape[:axis], total, *array.shape[axis + 1 :]), constant, array.dtype)
        for index in range(size):
            place = low + index * (between + 1)
            if 0 <= place < total:
                made[(slice(None),) * axis + (place,)] = array[(slice(None),) * axis + (index,)]
        array = made
    return array


@given(data=st.data())
def test_padding_between_elements_is_xlas(device: wg.Device, data: st.DataObject) -> None:
    x = data.draw(pairs(device, shapes(most=3)))
    interior = [data.draw(st.integers(0, 3)) for _ in x.array.shape]
    widths = []
    for size, between in zip(x.array.shape, interior, strict=True):
        low = data.draw(st.integers(-4, 4))
        spare = low + size + max(size - 1, 0) * between
        widths.append((low, data.draw(st.integers(max(-4, -spare), 4)) if spare >= -4 else -spare))
    constant = numbered((), x.array.dtype.name, data.draw(st.sampled_from([1, 30])))
    given_constant: Any = wg.asarray(constant, device=device) if data.draw(st.booleans()) else constant
    pad_width = np.array(widths, int).reshape(-1, 2)
    check_moved(
        device,
        lambda: wg.pad(x.tensor, pad_width, interior=interior, constant_values=given_constant),
        spread(x.array, widths, interior, constant),
    )


@pytest.mark.parametrize(("low", "between"), [(-1, 1), (-3, 1), (-2, 2), (-3, 2), (-9, 3), (2, 3)])
@pytest.mark.parametrize("high", [-5, -1, 0, 2])
def test_padding_begins_and_ends_between_elements(
    device: wg.Device, low: int, between: int, high: int
) -> None:
    array = numbered((6, 2), "uint8")
    x = wg.asarray(array, device=device)
    for axis in (0, 1):
        if low + high + array.shape[axis] * (between + 1) - between < 0:
            continue
        widths, interior = np.zeros((2, 2), int), [0, 0]
        widths[axis], interior[axis] = (low, high), between
        found = wg.pad(x, widths, interior=interior, constant_values=255)
        check_same(found.numpy(), spread(array, widths, interior, 255))


@given(data=st.data(), mode=st.sampled_from(["edge", "reflect", "symmetric", "wrap"]))
def test_negative_widths_crop_first(device: wg.Device, data: st.DataObject, mode: str) -> None:
    x = data.draw(pairs(device, shapes(least=1, most=2, smallest=3)))
    widths = [(data.draw(st.integers(-1, 4)), data.draw(st.integers(-1, 4))) for _ in x.array.shape]
    kept = tuple(
        slice(max(-low, 0), size + min(high, 0))
        for size, (low, high) in zip(x.array.shape, widths, strict=True)
    )
    added = [(max(low, 0), max(high, 0)) for low, high in widths]
    expected = np.pad(x.array[kept], added, mode)  # type: ignore[call-overload]  # of any mode
    check_moved(device, lambda: wg.pad(x.tensor, widths, mode), expected)


def test_an_empty_border_has_the_tensor_inside(device: wg.Device) -> None:
    array = numbered((3, 4), "int16")
    x = wg.asarray(array, device=device)
    found = numpy.pad(x, ((1, 2), (0, 3)), mode="empty")
    assert found.shape == (6, 7)
    check_same(found[1:4, :4].numpy(), array)
    check_same(wg.pad(x, 1, "empty", interior=1)[1:-1:2, 1:-1:2].numpy(), array)


@pytest.mark.parametrize("dtype", ["uint8", "float16", "int32", "complex64", "complex128"])
def test_a_value_on_the_device_fills(device: wg.Device, dtype: str) -> None:
    """NaNs keep their bits."""
    bits = np.full(16, 0xFF, np.uint8).view(dtype)[:1].reshape(())
    value: Any = wg.asarray(bits, device=device)
    array = numbered((3, 5), dtype)
    x: Any = wg.asarray(array, device=device)

    def same(found: Any, expected: Any) -> None:
        check_same(found.view(np.uint8).numpy(), expected.view(np.uint8))

    same(wg.pad(x, (1, 2), constant_values=value), np.pad(array, (1, 2), constant_values=bits))
    with submissions(device) as counted:
        filled = numpy.full_like(x, value)
    assert len(counted) == 1
    same(filled, np.full_like(array, bits))
    x[1:, ::2] = value
    array[1:, ::2] = bits
    same(x, array)
    with pytest.raises(TypeError, match=r"^pad: constant_values: .* must be equal"):
        wg.pad(x, 1, constant_values=wg.zeros((), "i8" if dtype != "int64" else "i4", device=device))
    with pytest.raises(TypeError, match=r"^pad: constant_values: a tensor where host numbers are needed"):
        wg.pad(x, 1, constant_values=wg.zeros(2, dtype, device=device))


def test_indices_of_a_grid_select_it(device: wg.Device) -> None:
    array = numbered((4, 5, 3), "int32")
    rows, mask = np.array([3, 0]), np.array([True, False, True])
    x, on_device, marked = (wg.asarray(each, device=device) for each in (array, rows, mask))
    for key in (numpy.ix_(on_device, [1, 1, 4], marked), numpy.ix_(on_device, on_device, mask)):
        theirs = tuple(np.asarray(each) for each in key)
        assert [each.shape for each in key] == [each.shape for each in theirs]
        check_same(x[key].numpy(), array[theirs])
    assert shares(numpy.ix_(on_device, rows)[0], on_device)


@pytest.mark.parametrize(
    "call",
    [
        lambda x: numpy.resize(x, (3, 7)),
        lambda x: numpy.diagflat(x, 1),
        lambda x: numpy.diag(x[0], -2),
        lambda x: numpy.meshgrid(x[0], x[:, 1], x[0])[1],
        lambda x: numpy.append(x, x),
        lambda x: numpy.block([[x, x[:, :1]], [x[:2], x[:2, :1]]]),
        lambda x: numpy.delete(x, [0, 2], axis=0),
        lambda x: numpy.insert(x, [0, 2, 3], x[:1], axis=0),
        lambda x: numpy.compress([1, 0, 1], x, axis=1),
        lambda x: numpy.concatenate([x[1:], x[:1]], out=x),
        lambda x: numpy.stack([x, x], out=numpy.empty_like(x, shape=(2, *x.shape))),
        lambda x: numpy.pad(x, 2, "empty"),
    ],
)
def test_a_call_is_one_submission(device: wg.Device, call: Callable[[Any], Any]) -> None:
    """Also of a tensor without a flat view."""
    array = numbered((4, 3), "int16")
    for x in (wg.asarray(array, device=device), wg.asarray(array.T, device=device).T):
        with submissions(device) as counted:
            call(x)
        assert len(counted) == 1

"""Tensors: made from anything, indexed as NumPy indexes, read back bit for bit."""

from __future__ import annotations

import copy
import re
import weakref
from typing import Any, cast

import numpy as np
import pytest
from helpers import COPY_DST, COPY_SRC, STORAGE, bits, check_same, make_buffer, random_array, random_bytes

import wgslice as wg
from wgslice.tensors.uncomputed import INSTEAD, REMEDY

DTYPES = ["bool", "int8", "uint16", "float16", "float32", "int64", "complex64", "complex128", "datetime64[s]"]


@pytest.mark.every_adapter
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(), (1,), (3,), (0,), (2, 0, 3), (3, 5), (2, 1, 2, 1, 2, 1, 2, 3)])
def test_readback_equals_the_upload(device: wg.Device, shape: tuple[int, ...], dtype: str) -> None:
    array = random_array(shape, dtype)
    back = wg.asarray(array, device=device).numpy()
    check_same(back, array)
    assert back.flags.writeable
    assert back.flags.c_contiguous
    assert back.base is None or back.base.base is None


@pytest.mark.parametrize("start", [0, 1, 2, 3, 4])
def test_readback_in_chunks_begins_at_any_byte(device: wg.Device, start: int) -> None:
    """Readback copies whole words, 8 MiB at a time."""
    array = random_array((25 * 2**20,), "uint8")
    check_same(
        wg.asarray(array, device=device)[start : 24 * 2**20 + 2].numpy(), array[start : 24 * 2**20 + 2]
    )


def test_any_memory_layout_and_byte_order_is_uploaded(device: wg.Device) -> None:
    array = random_array((5, 6, 7), "float32")
    for view in (array.T, array[::-1, ::2], np.asfortranarray(array), np.broadcast_to(array[0], (3, 6, 7))):
        check_same(wg.asarray(view, device=device).numpy(), np.ascontiguousarray(view))
    swapped = array.astype(">f4")
    tensor = wg.asarray(swapped, device=device)
    assert tensor.dtype == np.float32
    assert tensor.dtype.isnative
    assert np.array_equal(tensor.numpy().view(np.uint32), swapped.astype("=f4").view(np.uint32))
    readonly = array.copy()
    readonly.flags.writeable = False
    check_same(wg.asarray(readonly, device=device).numpy(), array)


def test_asarray_accepts_what_numpy_accepts(device: wg.Device) -> None:
    check_same(wg.asarray([[1, 2], [3, 4]], device=device).numpy(), np.array([[1, 2], [3, 4]]))
    check_same(wg.asarray(2.5, device=device).numpy(), np.array(2.5))
    x = wg.asarray([1, 2, 3], device=device)
    assert wg.asarray(x) is x
    assert wg.asarray(x, device=device) is x
    other = wg.Device.request(device.adapter)
    moved = wg.asarray(x[::-1], device=other)
    assert moved.device is other
    assert moved.numpy().tolist() == [3, 2, 1]


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (["text"], TypeError, "asarray: dtype <U4: strings and structured"),
        ([object()], TypeError, "asarray: dtype object: must be numbers or bools, not Python objects"),
        (np.zeros(3, "V7"), TypeError, "asarray: dtype .*V7.*: strings and structured"),
        (np.zeros(2, "f4,i2"), TypeError, "asarray: .*strings and structured"),
        (np.zeros(2, "f4,i4").view(np.recarray), TypeError, "asarray: .*strings and structured"),
        (np.zeros((1,) * 9), ValueError, r"asarray: shape .* has rank 9: the rank must be 0 to 8"),
    ],
)
def test_unsupported_dtypes_and_ranks_are_refused(
    device: wg.Device, value: Any, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        wg.asarray(value, device=device)


def test_wide_floats_are_refused_where_no_width_fits(device: wg.Device) -> None:
    wide = np.dtype(np.clongdouble)
    if wide.itemsize in (8, 16):
        pytest.skip("this platform's clongdouble has a width that fits")
    with pytest.raises(TypeError, match=f"an element has 1, 2, 4, 8 or 16 bytes, this one {wide.itemsize}"):
        wg.empty(3, wide, device=device)


def test_an_array_protocol_as_numpy_2_defines_it(device: wg.Device) -> None:
    array = random_array((3, 4), "int16")
    x = wg.asarray(array, device=device)[:, ::-1]
    check_same(np.asarray(x), np.ascontiguousarray(array[:, ::-1]))
    assert np.asarray(x, dtype=np.int64).dtype == np.int64
    assert np.array(x, copy=True).tolist() == array[:, ::-1].tolist()


def test_attributes_and_protocols_of_a_tensor(device: wg.Device) -> None:
    x = wg.asarray(np.arange(24, dtype=np.uint16).reshape(2, 3, 4), device=device)
    y = x[1, ::-1, 2:]
    assert (len(y), y.shape, y.strides, y.offset) == (3, (3, 2), (-4, 1), (12 + 8 + 2) * 2)
    assert (y.dtype.name, y.ndim, y.size, y.nbytes, y.is_packed) == ("uint16", 2, 6, 12, False)
    assert y.device is device
    assert x.is_packed
    assert x[1].is_packed
    assert repr(y) == f"Tensor(shape=(3, 2), dtype=uint16, strides=(-4, 1), device={device.adapter})"
    assert "packed" in repr(x)
    assert [row.numpy().tolist() for row in y] == [[22, 23], [18, 19], [14, 15]]
    with pytest.raises(TypeError, match="unsized"):
        len(x[0, 0, 0])
    with pytest.raises(TypeError, match="0-d"):
        iter(x[0, 0, 0])
    with pytest.raises(IndexError, match="index 2 is out of bounds for axis 0 with size 2"):
        x[2]


def test_a_tensor_does_not_change(device: wg.Device) -> None:
    x: Any = wg.asarray(np.arange(8), device=device)
    for name in ("dtype", "device", "buffer", "layout", "shape", "T", "copy", "anything"):
        with pytest.raises(AttributeError, match=rf"cannot be set \({name}\): x\[...\] = value .* x.reshape"):
            setattr(x, name, None)
        with pytest.raises(AttributeError, match=rf"cannot be deleted \({name}\)"):
            delattr(x, name)
    with pytest.raises(ValueError, match="cannot delete elements of a tensor"):
        del x[0]
    check_same(x.numpy(), np.arange(8))
    assert weakref.ref(x)() is x


def test_absent_attributes_name_a_replacement(device: wg.Device) -> None:
    x: Any = wg.asarray(np.arange(8), device=device)
    absent = [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(wg.Tensor, name)]
    assert {"sum", "mean", "byteswap", "tobytes"} <= set(absent)
    for name in absent:
        what = re.escape(INSTEAD.get(name, REMEDY))
        assert not hasattr(x, name)
        words = rf"^'Tensor' object has no attribute '{name}': .*{what}$"
        with pytest.raises(AttributeError, match=words) as refused:
            getattr(x, name)
        assert isinstance(refused.value, wg.ComputationRefused) is (name not in INSTEAD)
    for name in ("nothing", "_repr_html_", "__cuda_array_interface__"):
        with pytest.raises(AttributeError, match=f"has no attribute '{name}'$"):
            getattr(x, name)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (2, 3), (2, 1, 3), (0, 3)])
def test_item_by_index_is_numpys(device: wg.Device, shape: tuple[int, ...]) -> None:
    array = random_array(shape, "int16")[..., ::-1] if shape else random_array(shape, "int16")
    x = wg.asarray(np.ascontiguousarray(array.T), device=device).T
    last = tuple(size - 1 for size in shape)
    indices: list[Any] = [
        (),
        (0,),
        (-1,),
        (4,),
        (6,),
        (-7,),
        last,
        (last,),
        (1, 9),
        (0, 0, 0, 0),
        ("a",),
        (1.0,),
    ]
    for index in indices:
        try:
            expected = array.item(*index)
        except (IndexError, TypeError, ValueError) as error:
            with pytest.raises(type(error)):
                x.item(*index)
            continue
        found = x.item(*index)
        assert (found, type(found)) == (expected, type(expected))


def test_a_rank_0_tensor_is_formatted_as_a_scalar(device: wg.Device) -> None:
    array = np.array([[1.1, 2.25]], np.float32)
    x = wg.asarray(array, device=device)
    assert f"{x[0, 1]:.2f} {x[0, 0]:>8.3e}" == f"{array[0, 1]:.2f} {array[0, 0]:>8.3e}"
    assert f"{x[0, 0]}" == f"{array[0, 0]}"
    assert f"{x}" == str(x)
    with pytest.raises(
        TypeError, match=r"format '.2f' of a tensor of shape \(1, 2\): only a tensor of rank 0"
    ):
        f"{x:.2f}"
    with pytest.raises(ValueError, match="Unknown format code"):
        f"{x[0, 0]:d}"


@pytest.mark.parametrize("dtype", ["bool", "uint8", "float16", "complex64", "int64"])
def test_itemsize_and_tolist_are_numpys(device: wg.Device, dtype: str) -> None:
    array = random_array((2, 3), dtype)
    x = wg.asarray(array, device=device)
    assert x.itemsize == array.itemsize
    assert x[:, ::-1].tolist() == array[:, ::-1].tolist()
    assert type(x[0, 0].tolist()) is type(array[0, 0].tolist())


@pytest.mark.parametrize("wrong", [0, False, b"vulkan"])
def test_a_device_is_a_device(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"asarray: device is of type .*: must be a Device"):
        wg.asarray([1], device=wrong)
    with pytest.raises(TypeError, match=r"zeros: device is of type .*: must be a Device"):
        wg.zeros(3, "f4", device=wrong)


@pytest.mark.parametrize("axes", [None, 0, -1, (0, 2), [], (1,)])
def test_reverse_is_flip(device: wg.Device, axes: Any) -> None:
    array = random_array((3, 4, 5), "uint8")
    x = wg.asarray(array, device=device)
    flipped = wg.reverse(x, axes)
    assert flipped.buffer is x.buffer
    check_same(flipped.numpy(), np.ascontiguousarray(np.flip(array, axes if axes != [] else ())))


def test_reverse_refuses_axes_that_are_none(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((3, 4)), device=device)
    with pytest.raises(
        np.exceptions.AxisError, match="reverse: axis 2 is out of bounds for array of dimension 2"
    ):
        wg.reverse(x, 2)
    with pytest.raises(ValueError, match=r"reverse: axes = \(0, -2\): an axis is repeated"):
        wg.reverse(x, (0, -2))
    with pytest.raises(TypeError, match=r"reverse: axes = 1.5: must be an integer"):
        wg.reverse(x, cast("Any", 1.5))
    with pytest.raises(TypeError, match="reverse: x is of type ndarray: must be a Tensor"):
        wg.reverse(cast("Any", np.zeros(3)))


def test_a_positional_dtype_is_no_device() -> None:
    dtype: Any = np.float64
    with pytest.raises(TypeError, match="positional"):
        wg.asarray([1], dtype)  # type: ignore[call-arg]  # refused
    with pytest.raises(TypeError, match=r"asarray: device is of type type: must be a Device"):
        wg.asarray([1], device=dtype)
    for make in (wg.empty, wg.zeros, wg.ones):
        with pytest.raises(TypeError, match="positional"):
            make(3, np.uint8, "vulkan")  # type: ignore[call-arg]  # refused


def test_made_tensors_have_numpys_default_dtypes(device: wg.Device) -> None:
    check_same(wg.zeros((2, 3), device=device).numpy(), np.zeros((2, 3)))
    check_same(wg.ones(3, None, device=device).numpy(), np.ones(3))
    assert wg.empty(3, device=device).dtype == np.float64
    check_same(wg.full((2, 2), 7, device=device).numpy(), np.full((2, 2), 7))
    check_same(wg.full(3, 2.5, "f4", device=device).numpy(), np.full(3, 2.5, "f4"))


@pytest.mark.parametrize("numbers", [(5,), (2, 9), (9, 2, -3), (0, 2, 0.5), (3, 3), (2.5,), (4, None, 3)])
def test_arange_is_numpys(device: wg.Device, numbers: Any) -> None:
    check_same(wg.arange(*numbers, device=device).numpy(), np.arange(*numbers))
    check_same(wg.arange(*numbers, dtype="f4", device=device).numpy(), np.arange(*numbers, dtype="f4"))
    with pytest.raises(ValueError, match="arange: step = 0: must not be 0"):
        wg.arange(5, step=0, device=device)


def test_zeros_and_empty(device: wg.Device) -> None:
    check_same(wg.zeros((2, 3), "float16", device=device).numpy(), np.zeros((2, 3), np.float16))
    x = wg.empty(5, np.int64, device=device)
    assert (x.shape, x.dtype.name, x.is_packed) == ((5,), "int64", True)
    assert wg.empty((), "u1", device=device).shape == ()
    for shape, error, message in [
        ((2, -1), ValueError, r"empty: shape\[1\] = -1: must be an integer from 0 to"),
        ((2**32,), ValueError, r"empty: shape\[0\] = 4294967296"),
        ((1,) * 9, ValueError, "empty: shape .* has rank 9"),
        ((2.0,), TypeError, r"empty: shape\[0\] = 2.0: must be an integer"),
        ("ab", TypeError, "empty: shape = 'ab': must be a sequence of integers, not str"),
        ({3, 2}, TypeError, "empty: shape = .* not set"),
    ]:
        with pytest.raises(error, match=message):
            wg.empty(cast("Any", shape), np.uint8, device=device)


def test_error_beyond_the_largest_buffer_states_the_limit(device: wg.Device) -> None:
    limit = device.largest_buffer_nbytes
    with pytest.raises(ValueError, match=f"empty: a buffer of .* bytes: .* allows at most {limit}"):
        wg.empty((2**20, limit // 2**20 + 2**20), np.uint8, device=device)


def test_from_buffer_views_the_callers_memory(device: wg.Device) -> None:
    content = random_bytes(64)
    buffer = make_buffer(device, content)
    x = wg.from_buffer(buffer, (2, 3), np.uint16, offset=6, strides=(10, -1))
    assert x.buffer is buffer
    assert x.device is device
    elements = content.view(np.uint16)
    assert x.numpy().tolist() == [[elements[3 + 10 * i - j] for j in range(3)] for i in range(2)]
    repeated = wg.from_buffer(buffer, (3, 2), np.uint8, offset=1, strides=(0, 1))
    assert repeated.numpy().tolist() == [content[1:3].tolist()] * 3
    assert wg.from_buffer(buffer, 8, np.float64).shape == (8,)
    assert wg.from_buffer(buffer, (), np.uint8, offset=63).numpy() == content[63]
    assert wg.from_buffer(buffer, (0, 9), np.uint8, offset=64).numpy().shape == (0, 9)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"shape": (17,)}, ValueError, "too small: float32 of sizes .17,.* need 68"),
        ({"shape": (2,), "offset": 60}, ValueError, "too small: .* from byte offset 60 need 68"),
        (
            {"shape": (2,), "offset": 2},
            ValueError,
            "offset = 2 bytes: must be a multiple of the item size, 4",
        ),
        ({"shape": (2,), "offset": -4}, ValueError, "offset = -4 bytes: .* at least 0"),
        ({"shape": (2,), "strides": (-1,)}, ValueError, "reaches 4 bytes before the start"),
        ({"shape": (2, 2), "strides": (9, 9)}, ValueError, "too small: .* need 76"),
        ({"shape": (2, 2), "strides": (1,)}, ValueError, "1 strides for 2 dimensions"),
        ({"shape": (2,), "strides": (1.5,)}, TypeError, r"strides\[0\] = 1.5"),
        ({"shape": (2,), "dtype": object}, TypeError, "Python objects"),
        ({"shape": (-2,)}, ValueError, r"shape\[0\] = -2"),
        ({"shape": (2,), "dtype": ">f4"}, TypeError, "byte order"),
    ],
)
def test_from_buffer_refuses_layouts_outside_the_buffer(
    device: wg.Device, arguments: dict[str, Any], error: type[Exception], message: str
) -> None:
    buffer = make_buffer(device, random_bytes(64))
    with pytest.raises(error, match=f"from_buffer: .*{message}"):
        wg.from_buffer(buffer, **{"dtype": np.float32, **arguments})


def test_buffers_of_any_size(device: wg.Device) -> None:
    for nbytes in (4, 5, 6, 7, 10):
        buffer = device.wgpu_device.create_buffer(size=nbytes, usage=STORAGE | COPY_SRC | COPY_DST)
        whole = nbytes // 4 * 4
        assert wg.from_buffer(buffer, whole, np.uint8)[::-1].numpy().tolist() == [0] * whole
        if nbytes > whole:
            with pytest.raises(ValueError, match=f"too small: .* need {whole + 4}, in whole words"):
                wg.from_buffer(buffer, whole + 1, np.uint8)
    for nbytes in (0, 3):
        buffer = device.wgpu_device.create_buffer(size=nbytes, usage=STORAGE)
        with pytest.raises(ValueError, match=r"from_buffer: .* is too small: a binding has at least 4"):
            wg.from_buffer(buffer, (0,), np.uint8)


@pytest.mark.parametrize("usage", [STORAGE, STORAGE | COPY_SRC, STORAGE | COPY_DST])
def test_buffers_need_no_copy_usages(device: wg.Device, usage: int) -> None:
    content = random_bytes(256)
    x = wg.from_buffer(make_buffer(device, content, usage), 256, np.uint8)
    assert bits(x.numpy()) == bits(content)
    assert bits(x[3:201].numpy()) == bits(content[3:201])
    out = wg.from_buffer(make_buffer(device, random_bytes(256, 1), usage), 256, np.uint8)
    assert bits(wg.slice1(x, [0], [256], out=out).numpy()) == bits(content)


def test_large_odd_sized_tensor_round_trip(device: wg.Device) -> None:
    array = random_bytes(3_000_001)
    x = wg.asarray(array, device=device)
    check_same(x.numpy(), array)
    check_same(x[1:].numpy(), array[1:])
    check_same(x[2_999_998:].numpy(), array[2_999_998:])


def test_copies_have_separate_memory(device: wg.Device) -> None:
    """As NumPy's arrays have; and in whatever holds a tensor."""
    array = np.arange(12, dtype=np.int16).reshape(3, 4)
    x = wg.asarray(array, device=device)
    view = x[:, ::-2]
    for copied in (copy.copy(view), copy.deepcopy(view), copy.deepcopy({"x": [view]})["x"][0]):
        assert copied.buffer is not x.buffer
        check_same(copied.numpy(), array[:, ::-2].copy())
        copied[...] = 7
    check_same(x.numpy(), array)
    x.buffer.destroy()
    with pytest.raises(ValueError, match=r"copy\.deepcopy: .*has been destroyed"):
        copy.deepcopy(x)

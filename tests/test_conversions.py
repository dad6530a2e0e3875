"""Tensors as numbers, of other dtypes and in other shapes, and devices by name: as people expect them."""

from __future__ import annotations

import io
import operator
import re
import sys
from typing import Any, cast

import ml_dtypes
import numpy as np
import pytest
from helpers import bits, check_same, random_array

import wgslice as wg
import wgslice.array_api as xp

ONE = [np.array(-7, "i2"), np.array([[200]], "u1"), np.array(2.5, "f4"), np.array(True), np.array([1 + 2j])]


@pytest.mark.parametrize("array", ONE, ids=repr)
def test_one_element_is_a_number(device: wg.Device, array: Any) -> None:
    x = wg.asarray(array, device=device)
    assert type(x.item()) is type(array.item())
    assert x.item() == array.item()
    assert bool(x) is bool(array)
    assert complex(x) == complex(array.item())
    if array.dtype.kind != "c":
        assert int(x) == int(array.item())
        assert float(x) == float(array.item())
    else:
        with pytest.raises(TypeError):
            int(x)


def test_an_integer_without_dimensions_is_an_index(device: wg.Device) -> None:
    x = wg.asarray(np.array([3, 1, 2], np.uint8), device=device)
    assert operator.index(x[0]) == 3
    assert [10, 20, 30, 40][x[0]] == 40
    assert list(range(5)[x[1] :]) == [1, 2, 3, 4]
    for wrong in (x, x[:1], wg.asarray(2.0, device=device), wg.asarray(True, device=device)):
        with pytest.raises(TypeError, match=r"index: a tensor of shape .* only an integer of rank 0"):
            operator.index(wrong)


@pytest.mark.parametrize("shape", [(2,), (0,), (3, 0), (2, 2)])
def test_several_elements_are_no_number(device: wg.Device, shape: tuple[int, ...]) -> None:
    x = wg.zeros(shape, "f4", device=device)
    with pytest.raises(
        ValueError, match=rf"item: a tensor of shape .* has {x.size} elements: it must have 1"
    ):
        x.item()
    with pytest.raises(ValueError, match=r"the truth value of a tensor of shape .* is ambiguous: use x\."):
        bool(x)
    conversions: list[Any] = [int, float, complex]
    for convert in conversions:
        with pytest.raises(TypeError, match=f"{convert.__name__}: a tensor .* it must have 1"):
            convert(x)


def test_times_are_items_too(device: wg.Device) -> None:
    array = np.array("2024-02-29", "M8[s]")
    assert wg.asarray(array, device=device).item() == array.item()


UNITS = ["", "[Y]", "[M]", "[W]", "[D]", "[h]", "[m]", "[s]", "[25s]", "[ms]", "[us]", "[ns]", "[ps]", "[as]"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("kind", ["M8", "m8"])
def test_times_are_numbers_where_numpys_are(device: wg.Device, kind: str, unit: str) -> None:
    for count in (0, 1, -3, np.iinfo(np.int64).min):  # the last is NaT
        array = np.array([[count]], np.int64).view(kind + unit)
        x = wg.asarray(array, device=device)
        assert bool(x) is bool(array)
        for convert in (int, float, complex):
            try:
                expected = convert(array[0, 0, ...])
            except TypeError:
                with pytest.raises(TypeError):
                    convert(x)
            else:
                assert convert(x) == expected
        with pytest.raises(TypeError, match="only an integer of rank 0"):
            operator.index(x[0, 0])


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "complex128", "M8[s]", "bfloat16"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2), (2, 1, 2)])
def test_bytes_are_those_of_the_elements(device: wg.Device, shape: tuple[int, ...], dtype: str) -> None:
    array = random_array(shape, ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    x = wg.asarray(array, device=device)
    assert bytes(x) == array.tobytes()
    assert bytes(x.T) == array.T.tobytes()
    if shape:
        assert bytes(x[::-1]) == array[::-1].tobytes()


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks objects for buffers from 3.12 on")
@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16", "complex128"])
@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (0, 2)])
def test_buffers_are_copies_of_the_elements(device: wg.Device, shape: tuple[int, ...], dtype: str) -> None:
    array = random_array(shape, dtype)
    x: Any = wg.asarray(array, device=device).T
    view = memoryview(x)
    assert (view.shape, view.format, view.nbytes) == (array.T.shape, memoryview(array).format, array.nbytes)
    assert view.tobytes() == array.T.tobytes()
    if shape or dtype not in (
        "int64",
        "uint8",
    ):  # of which Python makes so many zeros, as of NumPy's integers
        assert bytearray(x) == array.T.tobytes()
    with pytest.raises(TypeError, match="read-write bytes-like object"):
        io.BytesIO(bytes(64)).readinto(x)
    found = np.asarray(x)
    check_same(found, np.array(array.T, order="C"))
    assert found.flags.writeable
    if shape:
        check_same(np.array([x, x]), np.array([array.T, array.T]))


@pytest.mark.skipif(sys.version_info < (3, 12), reason="Python asks objects for buffers from 3.12 on")
@pytest.mark.parametrize("dtype", ["M8[s]", "m8", ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_dtypes_without_a_buffer_format_are_arrays(device: wg.Device, dtype: Any) -> None:
    array = random_array((2, 3), dtype)
    x: Any = wg.asarray(array, device=device)
    for make in (memoryview, bytearray):
        with pytest.raises(BufferError, match=r"no format in Python's buffers: bytes\(x\) has"):
            make(x)
    check_same(np.asarray(x), array)


@pytest.mark.parametrize("dtype", [">f4", ">i2", ">u8", ">c16", ">M8[ms]"])
def test_another_byte_order_means_the_native_one(device: wg.Device, dtype: str) -> None:
    native = np.dtype(dtype).newbyteorder("=")
    ones = np.ones(3, native)
    x = wg.asarray(ones.astype(dtype), device=device)
    made: Any = {
        "zeros": wg.zeros(3, dtype, device=device),
        "ones": wg.ones(3, dtype, device=device),
        "full": wg.full(3, 1, dtype, device=device),
        "full of its own": wg.full(3, ones.astype(dtype), device=device),
        "asarray": wg.asarray(x, dtype=dtype),
        "asarray of tensors": wg.asarray([x, x], dtype=dtype)[1],
        "astype": x.astype(dtype),
        "concatenate": np.concatenate([x, x], dtype=dtype)[:3],
        "zeros_like": np.zeros_like(x, dtype=dtype),
        "ones_like": np.ones_like(x, dtype=dtype),
        "full_like": np.full_like(x, 1, dtype=dtype),
        "xp.ones_like": xp.ones_like(x, dtype=dtype),
        "xp.zeros": xp.zeros(3, dtype=dtype, device=device),
        "xp.full": xp.full(3, 1, dtype=dtype, device=device),
    }
    for name, found in made.items():
        check_same(found.numpy(), np.zeros(3, native) if "zeros" in name else ones)
    for empty in (
        wg.empty(3, dtype, device=device),
        np.empty_like(x, dtype=dtype),
        xp.empty_like(x, dtype=dtype),
    ):
        assert (empty.shape, empty.dtype) == ((3,), native)
    if native.kind in "iuf":
        check_same(wg.arange(3, dtype=dtype, device=device).numpy(), np.arange(3, dtype=native))
        check_same(
            xp.linspace(0, 4, 3, dtype=dtype, device=device).numpy(), np.linspace(0, 4, 3, dtype=native)
        )
    described = wg.TensorDesc(dtype, (3,))
    assert described == wg.TensorDesc(native, (3,))
    operator = device.compile(wg.Slice1(described, wg.TensorDesc(native, (2,)), [1], [2], [-1]))
    counted = np.arange(3).astype(dtype)
    check_same(operator(wg.asarray(counted, device=device)).numpy(), counted[:0:-1].astype(native))
    for view in (x.view, lambda other: wg.from_buffer(x.buffer, 3, other)):
        with pytest.raises(
            TypeError, match=f"dtype {re.escape(dtype)}: must be in this machine's byte order"
        ):
            view(dtype)


@pytest.mark.parametrize("axes", [(), (None,), (2, 0, 1), ((2, 0, 1),), ([-1, 1, 0],)])
def test_transpose(device: wg.Device, axes: Any) -> None:
    array = random_array((2, 3, 4), "i2")
    x = wg.asarray(array, device=device)
    assert x.transpose(*axes).buffer is x.buffer
    check_same(x.transpose(*axes).numpy(), np.ascontiguousarray(array.transpose(*axes)))


def test_matrices_and_axes_are_exchanged(device: wg.Device) -> None:
    array = random_array((2, 3, 4), "i2")
    x = wg.asarray(array, device=device)
    for ours, numpys in [
        (x.swapaxes(0, -1), array.swapaxes(0, -1)),
        (x.swapaxes(1, 1), array),
        (x.mT, array.swapaxes(1, 2)),
        (x.T, array.T),
    ]:
        assert ours.buffer is x.buffer
        check_same(ours.numpy(), np.ascontiguousarray(numpys))
    with pytest.raises(ValueError, match=r"mT: a tensor of shape \(4,\) has no matrices"):
        _ = x[0, 0].mT
    with pytest.raises(np.exceptions.AxisError, match="swapaxes: axis 3 is out of bounds"):
        x.swapaxes(0, 3)
    with pytest.raises(TypeError, match=r"swapaxes: axis1 = 1.0: must be an integer"):
        x.swapaxes(cast("Any", 1.0), 0)
    with pytest.raises(ValueError, match=r"transpose: axes = \(0, 1\): must name each of the 3 dimensions"):
        x.transpose(0, 1)


@pytest.mark.parametrize("key", [np.s_[:], np.s_[:, ::-1], np.s_[1:, :2], np.s_[:0], np.s_[0, 0, 0]])
def test_flatten_copies_and_ravel_does_where_it_must(device: wg.Device, key: Any) -> None:
    array = np.asarray(random_array((2, 3, 4), "i2")[key])
    x = wg.asarray(random_array((2, 3, 4), "i2"), device=device)[key]
    check_same(x.flatten().numpy(), array.flatten())
    check_same(x.ravel().numpy(), array.ravel())
    assert x.flatten().buffer is not x.buffer
    packed = x.is_packed or x.size < 2
    assert (x.ravel().buffer is x.buffer) is packed


def test_astype_keeps_bits_or_is_refused(device: wg.Device) -> None:
    x = wg.asarray(random_array((5,), "i2"), device=device)[::2]
    for dtype in (np.int16, "i2", np.dtype("int16")):
        copied = x.astype(dtype)
        assert copied.buffer is not x.buffer
        check_same(copied.numpy(), x.numpy())
    assert x.astype("i2", copy=False) is x
    integers = np.arange(3, dtype="q")
    codes = [code for code in "lq" if integers.dtype == code]  # except on Windows, C's `long` is as wide
    assert [wg.asarray(integers, device=device).astype(code).dtype.char for code in codes] == codes
    with pytest.raises(
        NotImplementedError, match=r"astype: int16 to float32: nothing .*; use np.asarray\(x\).astype"
    ):
        x.astype(np.float32)
    others: list[Any] = [object, str, "S5", [("a", "i2")], None]
    for dtype in others:
        name = re.escape(str(np.dtype(dtype)))
        with pytest.raises(
            wg.ComputationRefused, match=rf"^astype: int16 to {name}: nothing .* np.asarray\(x\)"
        ):
            x.astype(dtype)
    assert np.asarray(x).astype(str).tolist() == [str(number) for number in x.numpy()]
    with pytest.raises(TypeError, match=r"^astype: Cannot interpret '5' as a data type"):
        x.astype(cast("Any", 5))


def test_asarray_casts_arrays_before_the_upload(device: wg.Device) -> None:
    for given in ([1, 2, 3], np.array([1.5, 2.5]), 7, np.arange(4, dtype=">i8")[::-1]):
        for dtype in (np.uint8, "f4", ">i4", complex):
            expected = np.asarray(given).astype(dtype)
            made = wg.asarray(given, device=device, dtype=dtype)
            check_same(made.numpy(), expected.astype(expected.dtype.newbyteorder("=")))
    x = wg.asarray([1, 2], device=device)
    assert wg.asarray(x, dtype=x.dtype) is x
    with pytest.raises(
        NotImplementedError, match="asarray: dtype float32: the tensor has int64, and nothing is converted"
    ):
        wg.asarray(x, dtype="f4")
    with pytest.raises(TypeError, match="asarray: dtype object: must be numbers or bools, not Py"):
        wg.asarray([1], device=device, dtype=object)


def test_asarray_copies_where_asked(device: wg.Device) -> None:
    x = wg.asarray(np.arange(6), device=device)[::2]
    copied = wg.asarray(x, copy=True)
    assert copied.buffer is not x.buffer
    assert copied.is_packed
    assert bits(copied.numpy()) == bits(x.numpy())
    assert wg.asarray(x, copy=False) is x
    assert wg.asarray([1], device=device, copy=True).numpy().tolist() == [1]
    with pytest.raises(
        ValueError, match="asarray: copy=False: elements have to be copied from this machine's"
    ):
        wg.asarray([1], device=device, copy=False)
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match="asarray: copy=False: elements have to be copied from Device"):
        wg.asarray(x, device=other, copy=False)
    moved = wg.asarray(x, device=other)
    assert moved.device is other
    check_same(moved.numpy(), x.numpy())


def test_devices_by_name_are_shared(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wgslice.gpu.device.shared_devices", [])
    monkeypatch.setattr("wgslice.gpu.device.default_devices", [])
    backend = device.adapter.backend
    x = wg.zeros(3, "u1", device=backend.lower())
    assert x.device is not device
    assert x.device.adapter.backend == backend
    assert wg.asarray([1], device=backend).device is x.device
    assert wg.empty(3, "u1", device=str(x.device.adapter)).device is x.device
    assert wg.from_dlpack(np.arange(3), backend).device is x.device
    assert wg.asarray(x, device=backend) is x
    assert wg.asarray(x, device=device).device is device
    monkeypatch.setenv("WGSLICE_ADAPTER", backend)
    assert wg.default_device() is x.device
    with pytest.raises(wg.NoAdapterError, match="no adapter has 'voodoo' in its name or backend"):
        wg.asarray([1], device="voodoo")
    x.device.wgpu_device.destroy()
    again = wg.zeros(3, "u1", device=backend)
    assert again.device is not x.device
    assert wg.zeros(3, "u1", device=backend).device is again.device
    assert wg.default_device() is again.device

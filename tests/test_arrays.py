"""Arrays of other libraries, in and out: NumPy's protocols, and DLPack with NumPy or PyTorch there."""

from __future__ import annotations

import sys
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from helpers import check_same, random_array, random_bytes
from index_keys import outcome

import wgslice as wg
import wgslice.array_api as xp

DTYPES = [
    *("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"),
    *("float16", "float32", "float64", "complex64", "complex128"),
]


@pytest.fixture(params=["numpy", pytest.param("torch", marks=pytest.mark.torch)])
def library(request: pytest.FixtureRequest) -> Any:
    """The other end: functions that both have share a name."""
    return import_module(request.param)


def bits_of(dtype: Any, count: int) -> Any:
    return random_bytes(count * np.dtype(dtype).itemsize, seed=count).view(dtype)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dlpack_round_trip_keeps_bits(device: wg.Device, library: Any, dtype: str) -> None:
    array = bits_of(dtype, 60).reshape(3, 4, 5)
    x = wg.asarray(array, device=device)[:, ::-2, 1:]
    given = library.from_dlpack(x)
    assert given.dtype == getattr(library, dtype)
    check_same(np.asarray(given), array[:, ::-2, 1:])
    turned = library.moveaxis(given, 2, 0)  # not contiguous
    back = wg.from_dlpack(turned, device)
    check_same(back.numpy(), array[:, ::-2, 1:].transpose(2, 0, 1))
    assert back.is_packed


@pytest.mark.parametrize("shape", [(), (0, 3), (1,)])
def test_scalars_and_nothing(device: wg.Device, library: Any, shape: tuple[int, ...]) -> None:
    t = library.full(shape, 2.5)
    x = wg.from_dlpack(t, device)
    check_same(x.numpy(), np.asarray(t))
    check_same(np.asarray(library.from_dlpack(x)), np.asarray(t))


def test_booleans(device: wg.Device, library: Any) -> None:
    t = library.asarray([True, False, True])
    check_same(wg.from_dlpack(t, device)[::-1].numpy(), np.array([True, False, True]))
    assert library.from_dlpack(wg.asarray(np.array([True, False]), device=device)).tolist() == [True, False]


def test_exported_array_is_a_copy(device: wg.Device, library: Any) -> None:
    x = wg.asarray(np.arange(4, dtype=np.int32), device=device)
    t = library.from_dlpack(x)
    x[:] = 9
    assert t.tolist() == [0, 1, 2, 3]


@pytest.mark.torch
def test_exported_array_is_writable(device: wg.Device) -> None:
    import torch

    x = wg.asarray(np.arange(4, dtype=np.int32), device=device)
    t = torch.from_dlpack(x)
    t[0] = 7
    assert t.tolist() == [7, 1, 2, 3]
    assert x.numpy().tolist() == [0, 1, 2, 3]


def test_imported_array_is_a_copy(device: wg.Device, library: Any) -> None:
    t = library.arange(4)
    x = wg.from_dlpack(t, device)
    t[:] = 9
    assert x.numpy().tolist() == [0, 1, 2, 3]
    assert wg.from_dlpack(x) is x


@pytest.mark.torch
def test_bfloat16_is_exchanged_as_integers(device: wg.Device) -> None:
    import torch

    t = torch.tensor([1.5, -2.0, float("inf")], dtype=torch.bfloat16)
    with pytest.raises(BufferError, match=r"from_dlpack: .*view\(\) it as integers of the same width"):
        wg.from_dlpack(t, device)
    x = wg.from_dlpack(t.view(torch.uint16), device).view(ml_dtypes.bfloat16)
    assert x.numpy().tolist() == [1.5, -2.0, float("inf")]
    with pytest.raises(BufferError, match=r"__dlpack__: dtype bfloat16: .*view\(\) it as integers"):
        torch.from_dlpack(x)
    back = torch.from_dlpack(x[::-1].view(np.uint16)).view(torch.bfloat16)
    assert torch.equal(back, t.flip(0))


def test_a_dtype_that_dlpack_lacks_is_refused(device: wg.Device) -> None:
    x = wg.asarray(np.array([1.5, -2.0], ml_dtypes.bfloat16), device=device)
    with pytest.raises(BufferError, match=r"__dlpack__: dtype bfloat16: .*view\(\) it as integers"):
        np.from_dlpack(x)


def test_a_view_is_of_a_dtype_with_a_width(device: wg.Device) -> None:
    x = wg.asarray(np.zeros(4, np.float32), device=device)
    assert x.view(np.int32).dtype == np.int32
    assert x.view("u4").buffer is x.buffer
    with pytest.raises(TypeError, match="view: dtype object: must be numbers or bools, not Python objects"):
        x.view(object)


@pytest.mark.torch
def test_gradients_are_refused(device: wg.Device) -> None:
    import torch

    with pytest.raises(BufferError, match=r"from_dlpack: .*require gradient"):
        wg.from_dlpack(torch.ones(3, requires_grad=True), device)


def test_objects_without_dlpack_are_refused(device: wg.Device) -> None:
    with pytest.raises(TypeError, match="from_dlpack: x is of type list: must have __dlpack__"):
        wg.from_dlpack([1, 2], device)


def test_the_protocol_is_answered(device: wg.Device) -> None:
    x = wg.asarray(np.arange(6, dtype=np.int16).reshape(2, 3), device=device)
    assert x.__dlpack_device__() == (1, 0)
    check_same(np.from_dlpack(x), x.numpy())
    check_same(np.from_dlpack(x, device="cpu", copy=True), x.numpy())
    for arguments, words in (
        ({"copy": False}, "a tensor on a GPU cannot be shared"),
        ({"dl_device": (2, 0)}, r"dl_device = \(2, 0\): must be \(1, 0\)"),
        ({"stream": 1}, "stream = 1: must be None"),
    ):
        with pytest.raises(BufferError, match=f"__dlpack__: {words}"):
            x.__dlpack__(**arguments)
    assert "versioned" in repr(x.__dlpack__(max_version=(1, 0)))
    assert "versioned" not in repr(x.__dlpack__())


class Section:
    """An array of a FITS file, as astropy's: it has no protocol of NumPy's."""

    shape = (2, 3)
    dtype = np.dtype(">i2")
    ndim = 2

    def __getitem__(self, key: Any) -> Any:
        return np.arange(6, dtype=self.dtype).reshape(self.shape)[key]


class SafeSlice:
    """A tensor of a safetensors file, which counts a slice along an empty dimension as out of bounds."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def get_shape(self) -> list[int]:
        return list(self.array.shape)

    def get_dtype(self) -> str:
        return "F32"

    def __getitem__(self, key: Any) -> Any:
        if key != () and self.array.size == 0:
            raise RuntimeError("index 0 out of bounds for tensor dimension #0 of size 0")
        return self.array[key]


def test_arrays_of_files_are_read_as_a_whole(device: wg.Device) -> None:
    section: Any = Section()
    expected = np.arange(6, dtype=np.int16).reshape(2, 3)
    check_same(wg.asarray(section, device=device).numpy(), expected)
    check_same(wg.asarray(section, dtype="f4", device=device).numpy(), expected.astype("f4"))
    check_same(xp.asarray(section, device=device).numpy(), expected)
    x: Any = wg.zeros((2, 2, 3), np.int16, device=device)
    x[1] = section
    check_same(x.numpy(), np.stack([np.zeros_like(expected), expected]))
    for dtype in ("f4", ml_dtypes.bfloat16):
        for shape in ((), (3, 4), (0, 3)):
            array = np.arange(np.prod(shape), dtype="f4").reshape(shape).astype(dtype)
            tensor: Any = SafeSlice(array)
            check_same(wg.asarray(tensor, device=device).numpy(), array)


def test_numpy_writes_tensors_to_files(device: wg.Device, tmp_path: Path) -> None:
    array = random_array((3, 4), "f4")
    x: Any = wg.asarray(array, device=device)[:, ::-2]
    expected = array[:, ::-2]
    np.save(tmp_path / "x.npy", x)
    np.save(file=tmp_path / "y.npy", arr=x.T, allow_pickle=False)
    check_same(np.load(tmp_path / "x.npy", allow_pickle=False), np.ascontiguousarray(expected))
    check_same(np.ascontiguousarray(np.load(tmp_path / "y.npy")), np.ascontiguousarray(expected.T))
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "x.npz", x, array, y=x[0])
        with np.load(tmp_path / "x.npz", allow_pickle=False) as files:
            assert files.files == ["y", "arr_0", "arr_1"]
            check_same(files["arr_0"], np.ascontiguousarray(expected))
            check_same(files["arr_1"], array)
            check_same(files["y"], np.ascontiguousarray(expected[0]))
    whole: Any = wg.asarray(np.arange(6).reshape(2, 3), device=device)
    np.savetxt(tmp_path / "x.txt", whole, fmt="%d")
    assert (tmp_path / "x.txt").read_text() == "0 1 2\n3 4 5\n"


def test_numpys_protocol_of_arrays(device: wg.Device) -> None:
    """NumPy 2's rules: dtype and copy, and copy=False is refused if it asks, since memory must be copied."""
    array = np.array([[1.5, -2.0], [3.0, 300.0]], np.float32)
    x = wg.asarray(array, device=device)[::-1]
    check_same(np.asarray(x), array[::-1])
    for copy in (True, None):
        check_same(np.array(x, copy=copy), array[::-1])
        check_same(np.array(x, dtype=np.float64, copy=copy), array[::-1].astype(np.float64))
        check_same(x.__array__(copy=copy), array[::-1])
        for wanted in ("f2", "f8", "c8"):  # of a direct caller, which casts nothing itself
            check_same(x.__array__(wanted, copy), array[::-1].astype(wanted))
        check_same(np.array(x, dtype=np.int16, copy=copy), array[::-1].astype(np.int16))
    with pytest.raises(ValueError, match="cannot become an array without a copy"):
        x.__array__(copy=False)
    if sys.version_info < (3, 12):  # from then on NumPy takes the buffer, and does not ask
        with pytest.raises(ValueError, match="cannot become an array without a copy"):
            np.array(x, copy=False)
        with pytest.raises(ValueError, match="cannot become an array without a copy"):
            np.asarray(x, copy=False)
    total = np.asarray(x) + np.ones(2)
    check_same(total, array[::-1] + np.ones(2))
    assert np.asarray(x).flags.writeable


@pytest.mark.parametrize("dtype", ["float32", "uint64", "complex64", "int8", "bool"])
def test_numpys_functions_cast_tensors_as_they_cast_arrays(device: wg.Device, dtype: str) -> None:
    """Indices and counts that are tensors, of functions on arrays, are truncated nowhere."""
    array, given = np.arange(3), np.array([1, 0, 1], dtype)
    x: Any = wg.asarray(given, device=device)
    for function in (np.take, np.repeat):
        expected = outcome(partial(function, array, given))
        found = outcome(partial(function, array, x))
        assert repr(found) == repr(expected)

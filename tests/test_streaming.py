"""`stream` against NumPy, between arrays in memory, files, array-likes in blocks, and tensors."""

from __future__ import annotations

import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import pytest
import zarr
from blocks import Blocks, numbered, streams
from helpers import check_same, on_one_adapter, random_bytes, view_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from zarr.abc.store import ByteRequest
from zarr.core.buffer import Buffer, BufferPrototype
from zarr.storage import FsspecStore, LocalStore, LoggingStore, MemoryStore

import wgslice as wg
from wgslice.streaming.sinks import STRIP_NBYTES, copy_in_strips
from wgslice.streaming.sources import fetch, mapped, release, runs

CUBE = numbered((13, 17, 19))
KEYS = [
    np.s_[...],
    np.s_[::-1, 3:16:5, ::-2],
    np.s_[5, :, None, 3],
    np.s_[-1, 4, 5],
    np.s_[2:2],
    np.s_[::4, ..., -1:],
]


def packed(view: Any) -> NDArray[Any]:
    """A contiguous copy, an array also without dimensions."""
    return np.array(view, order="C")


def idle_threads() -> list[str]:
    return [
        thread.name
        for thread in threading.enumerate()
        if "wgslice-" in thread.name and "wait" not in thread.name
    ]


@pytest.mark.parametrize("limit", ["32 KiB", "256 MiB"])
@pytest.mark.parametrize("key", KEYS, ids=str)
def test_a_stream_equals_numpys_slice(device: wg.Device, key: Any, limit: str) -> None:
    check_same(wg.stream(CUBE, key, limit=limit, device=device), packed(view_of(CUBE, key)))


@given(streams(), st.sampled_from(["4 KiB", "9 KiB", "1 MiB"]))
def test_blocks_of_any_sizes(device: wg.Device, case: tuple[Blocks, Any, Blocks], limit: str) -> None:
    """Each block of the source is read once, and one thread writes."""
    source, key, target = case
    assert wg.stream(source, key, target, limit=limit, device=device) is target
    check_same(target.array, packed(view_of(source.array, key)))
    if source.chunks is not None and source.block_nbytes() < 500:
        assert set(Counter(place for box in source.read for place in source.touched(box)).values()) <= {1}
    assert len(target.threads) <= 1
    assert threading.get_ident() not in target.threads
    assert idle_threads() == []


@given(streams(), st.sampled_from(["4 KiB", "1 MiB"]))
def test_into_a_tensor(device: wg.Device, case: tuple[Blocks, Any, Blocks], limit: str) -> None:
    """Targets are reversed views, between elements that stay unchanged."""
    source, key, _ = case
    expected = view_of(source.array, key)
    around = wg.asarray(np.full(expected.size + 2, 7, np.uint32), device=device)
    out = (
        around[1:-1][::-1].reshape(expected.size)
        if expected.ndim == 1
        else around[1:-1].reshape(expected.shape)
    )
    assert wg.stream(source, key, out, limit=limit) is out
    check_same(out.numpy(), packed(expected))
    assert around[0].item() == around[-1].item() == 7


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "float16", "bfloat16", ">u2", "float32", ">f8", "complex128"]
)
def test_every_width_keeps_its_bits(device: wg.Device, dtype: str) -> None:
    """NaN payloads too; new arrays have native byte order, targets may have any."""
    if dtype == "bfloat16":
        dtype = pytest.importorskip("ml_dtypes", reason="bfloat16 is its").bfloat16
    array = random_bytes(7 * 11 * 5 * np.dtype(dtype).itemsize)
    array = (array & 1 if dtype == "bool" else array).view(dtype).reshape(7, 11, 5)
    for key in (np.s_[::-2, 1:, ::3], np.s_[1:, 2]):  # with copies on the GPU, and without
        expected = array[key]
        streamed = wg.stream(array, key, limit="2 KiB", device=device)
        check_same(streamed, expected.astype(np.dtype(dtype).newbyteorder("=")))
        out = np.zeros(expected.shape, dtype)
        wg.stream(array, key, out, limit="2 KiB", device=device)
        check_same(out, packed(expected))


@on_one_adapter
def test_sources_in_any_memory_layout(device: wg.Device, tmp_path: Path) -> None:
    path = tmp_path / "columns.npy"
    np.save(path, np.asfortranarray(CUBE))
    for source in (
        np.load(path, mmap_mode="r"),
        np.asfortranarray(CUBE),
        np.ascontiguousarray(CUBE[::-1].T).T[::-1],
        np.broadcast_to(CUBE[0], CUBE.shape),
        CUBE.tolist(),
    ):
        for key in (np.s_[::-1, 3:16:5, ::-2], np.s_[4, 2:]):
            expected = packed(np.asarray(source)[key])
            check_same(wg.stream(source, key, limit="8 KiB", device=device), expected)


@on_one_adapter
def test_a_selection_in_another_notation(device: wg.Device) -> None:
    selection = wg.dialects.onnx_slice(CUBE.shape, [12], [3], steps=[-2])
    check_same(wg.stream(CUBE, selection, device=device), packed(CUBE[12:3:-2]))


class Counting(LocalStore):
    """A store that counts reads and writes per key."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reads: Counter[str] = Counter()
        self.writes: Counter[str] = Counter()

    async def get(
        self, key: str, prototype: BufferPrototype | None = None, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        self.reads[key] += 1
        return await super().get(key, prototype, byte_range)

    async def set(self, key: str, value: Buffer) -> None:
        self.writes[key] += 1
        await super().set(key, value)


def counts_of_chunks(counter: Counter[str]) -> list[int]:
    return [count for key, count in counter.items() if key.startswith("c/")]


@pytest.mark.parametrize("limit", ["150 KiB", "256 MiB"])
def test_chunks_of_zarr_are_read_once_and_written_once(device: wg.Device, tmp_path: Path, limit: str) -> None:
    """Compressed chunks, partial ones and unused ones; a target chunk consists of several."""
    cube = numbered((40, 48, 50))
    stores = Counting(tmp_path / "source.zarr"), Counting(tmp_path / "target.zarr")
    source = zarr.create_array(stores[0], shape=cube.shape, dtype=cube.dtype, chunks=(8, 16, 8))
    source[:] = cube
    expected = cube[:, 32::-1, ::2]
    target = zarr.create_array(stores[1], shape=expected.shape, dtype=cube.dtype, chunks=(16, 33, 8))
    for store in stores:
        store.reads.clear()
        store.writes.clear()
    wg.stream(source, np.s_[:, 32::-1, ::2], target, limit=limit, device=device)
    check_same(np.asarray(target[...]), packed(expected))
    assert counts_of_chunks(stores[0].reads) == [1] * (5 * 3 * 7)
    assert counts_of_chunks(stores[1].writes) == [1] * (3 * 1 * 4)


@on_one_adapter
def test_shards_of_a_target_are_written_once(device: wg.Device, tmp_path: Path) -> None:
    store = Counting(tmp_path / "target.zarr")
    target = zarr.create_array(store, shape=CUBE.shape, dtype=CUBE.dtype, chunks=(4, 4, 4), shards=(8, 8, 8))
    wg.stream(CUBE, ..., target, limit="32 KiB", device=device)
    assert counts_of_chunks(store.writes) == [1] * (2 * 3 * 3)
    check_same(wg.stream(target, np.s_[::-3], limit="32 KiB", device=device), packed(CUBE[::-3]))


class Failing(Blocks):
    """Raises at the fourth read or write."""

    def __getitem__(self, key: tuple[slice, ...]) -> Any:
        if len(self.read) == 3:
            raise OSError("the disk is gone")
        return super().__getitem__(key)

    def __setitem__(self, key: tuple[slice, ...], value: Any) -> None:
        if len(self.written) == 3:
            raise OSError("the disk is full")
        super().__setitem__(key, value)


@on_one_adapter
def test_errors_of_source_or_target_end_a_stream(device: wg.Device) -> None:
    chunks = (1, *CUBE.shape[1:])
    target = np.zeros_like(CUBE)
    with pytest.raises(OSError, match="the disk is gone"):
        wg.stream(Failing(CUBE, chunks), np.s_[::-1], target, limit="32 KiB", device=device)
    for row, expected in zip(target, CUBE[::-1], strict=True):  # what arrived before stays
        assert np.array_equal(row, expected) or not row.any()
    assert not target[3:].any()
    full = Failing(np.zeros_like(CUBE), chunks)
    with pytest.raises(OSError, match="the disk is full"):
        wg.stream(CUBE, ..., full, limit="32 KiB", device=device)
    assert np.array_equal(full.array[:3], CUBE[:3])
    assert not full.array[3:].any()
    assert idle_threads() == []


@on_one_adapter
def test_progress_goes_from_0_to_1_and_may_interrupt(device: wg.Device) -> None:
    source, shown = Blocks(CUBE, (1, *CUBE.shape[1:])), []
    wg.stream(source, ..., limit="32 KiB", device=device, progress=lambda *what: shown.append(what))
    shares = [share for share, _ in shown]
    assert shares == sorted(set(shares))
    assert shares[0] < 0.2
    assert shown[-1] == (1, "16.4 KiB of 16.4 KiB")

    def interrupting(share: float, _: str) -> None:
        raise KeyboardInterrupt

    source, target = Blocks(CUBE, source.chunks), Blocks(np.zeros_like(CUBE), source.chunks)
    with pytest.raises(KeyboardInterrupt):
        wg.stream(source, ..., target, limit="32 KiB", device=device, progress=interrupting)
    assert idle_threads() == []
    for part in target.written:
        assert np.array_equal(target.array[part], CUBE[part])


def test_a_lost_device_is_an_error() -> None:
    device = wg.Device.request()
    device.wgpu_device.destroy()
    with pytest.raises(wg.DeviceLostError):
        wg.stream(CUBE, ..., device=device)
    assert idle_threads() == []


def read_only(array: Any) -> Any:
    array.flags.writeable = False
    return array


WRONG: list[tuple[Any, Any, Any, dict[str, Any], type[Exception], str]] = [
    (CUBE, np.s_[0, 0, 0, 0], None, {}, IndexError, "stream: key: too many indices"),
    (CUBE, 13, None, {}, IndexError, "stream: key: index 13 is out of bounds"),
    (CUBE, [1, 2], None, {}, IndexError, "stream: key: only integers, slices"),
    (CUBE, 0, None, {"limit": "many"}, ValueError, "stream: limit = 'many': must be a number of bytes"),
    (CUBE, 0, None, {"limit": 10}, ValueError, "stream: limit = 10: must be at least 1 KiB"),
    (np.zeros((1,) * 9), 0, None, {}, ValueError, "stream: the source has rank 9: the rank must be 0 to 8"),
    (np.array(["a"]), 0, None, {}, TypeError, "stream: dtype <U1: strings and structured"),
    (
        CUBE,
        0,
        np.zeros((17, 18), CUBE.dtype),
        {},
        ValueError,
        "stream: out has shape (17, 18), the result (17, 19)",
    ),
    (CUBE, 0, np.zeros((17, 19), np.int32), {}, TypeError, "stream: out has dtype int32, the result uint32"),
    (CUBE, 0, [[0]], {}, TypeError, "stream: out is of type list: must have shape and dtype"),
    (CUBE, 0, read_only(np.zeros((17, 19), CUBE.dtype)), {}, ValueError, "stream: out cannot be written"),
    (CUBE, 0, CUBE[1], {}, ValueError, "stream: out overlaps the source in memory"),
    (CUBE, 0, None, {"device": 3}, TypeError, "stream: device is of type int"),
    (CUBE, 0, None, {"dtype": "U3"}, TypeError, "stream: dtype <U3: strings and structured"),
    (
        np.zeros((2, 3)),
        0,
        None,
        {"dtype": "i2"},
        TypeError,
        "stream: dtype = int16: NumPy's rule 'same_kind' does not cast to it the source's float64",
    ),
]


@pytest.mark.parametrize(
    ("source", "key", "out", "options", "error", "message"), WRONG, ids=range(len(WRONG))
)
def test_bad_arguments_are_refused_before_a_read(
    source: Any, key: Any, out: Any, options: dict[str, Any], error: type[Exception], message: str
) -> None:
    watched = Blocks(source, None)
    if out is not None and np.may_share_memory(out, source):
        watched = source
    with pytest.raises(error) as raised:
        wg.stream(watched, key, out, **options)
    assert message in str(raised.value)
    assert watched is source or not watched.read[1:]  # the first is of one element
    assert watched is source or all(part == slice(0, 1, 1) for box in watched.read for part in box)


def test_overlapping_maps_of_a_file_are_refused(tmp_path: Path) -> None:
    """Maps of other names, dtypes and offsets; a refused target is unchanged."""
    path, linked = tmp_path / "array.npy", tmp_path / "linked.npy"
    np.save(path, numbered((64, 512)))
    linked.hardlink_to(path)
    before = path.read_bytes()
    source = np.load(path, mmap_mode="r")
    header = source.offset
    rows = np.memmap(linked, source.dtype, "r+", header + 32 * 512 * 4, (32, 512))  # the last 32
    for whole in (np.load(path, mmap_mode="r+"), np.load(linked, mmap_mode="r+")):
        cases = [
            (source, np.s_[::-1], whole),
            (source[:33], np.s_[:32], np.asarray(whole)[32:]),
            (np.load(path, mmap_mode="c")[::2], ..., whole[1:65:2][:32]),
            (source[:, ::-1], np.s_[32:], rows),
        ]
        for part, key, out in cases:
            with pytest.raises(ValueError, match="stream: out overlaps the source in memory, or in its file"):
                wg.stream(part, key, out)
    assert path.read_bytes() == before
    expected = source[:32, ::-1].copy()
    wg.stream(source[:32], np.s_[:, ::-1], rows)
    check_same(source[32:].copy(), expected)
    np.save(tmp_path / "other.npy", numbered((64, 512)))
    private = np.load(tmp_path / "other.npy", mmap_mode="r+")
    assert wg.stream(source, np.s_[::-1], private) is private


def test_a_store_opened_twice_is_refused_as_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    in_memory = MemoryStore()
    zarr.create_array(in_memory, name="a", data=CUBE[0])
    zarr.create_array(tmp_path / "group" / "a", data=CUBE[0])
    zarr.create_array(tmp_path / "group" / "b", data=CUBE[0])
    by_url = FsspecStore.from_url((tmp_path / "group").as_uri())
    (tmp_path / "linked").symlink_to(tmp_path / "group")
    (tmp_path / "group" / "linked").symlink_to(tmp_path / "group" / "a")
    pairs = [
        (zarr.open_array(in_memory.with_read_only(True), path="a"), zarr.open_array(in_memory, path="a")),
        (zarr.open_array("group/a", mode="r"), zarr.open_array(tmp_path / "group", path="a")),
        (zarr.open_array("group/a", mode="r"), zarr.open_array(LoggingStore(LocalStore("group")), path="a")),
        (zarr.open_array("group/a", mode="r"), zarr.open_array(by_url, path="a")),
        (zarr.open_array("linked/a", mode="r"), zarr.open_array(by_url, path="a")),
        (zarr.open_array("group/linked", mode="r"), zarr.open_array("group/a")),
    ]
    for source, out in pairs:
        with pytest.raises(ValueError, match="stream: out overlaps the source"):
            wg.stream(source, np.s_[::-1], out)
        assert np.array_equal(out[:], CUBE[0])
    other = zarr.open_array("group/b")
    wg.stream(pairs[1][0], np.s_[::-1], other)
    check_same(np.asarray(other[:]), CUBE[0, ::-1].copy())
    copy = zarr.create_array(MemoryStore(), name="a", data=CUBE[0])
    wg.stream(pairs[0][0], np.s_[::-1], copy)
    check_same(np.asarray(copy[:]), CUBE[0, ::-1].copy())


def test_overlapping_views_of_a_tensor_are_refused(device: wg.Device) -> None:
    tensor = wg.asarray(CUBE[0], device=device)
    for source, key, out in [
        (tensor, np.s_[::-1], tensor[:]),
        (tensor[:9], np.s_[::-1], tensor[8:17]),
        (tensor.view(np.int32), ..., wg.from_buffer(tensor.buffer, tensor.shape, np.int32)),
    ]:
        with pytest.raises(ValueError, match="stream: out overlaps the source in memory"):
            wg.stream(source, key, out)
    check_same(tensor.numpy(), CUBE[0])
    wg.stream(tensor[:8], np.s_[::-1], tensor[8:16])
    check_same(tensor[8:16].numpy(), CUBE[0, 7::-1].copy())
    other = wg.empty(CUBE[0].shape, CUBE.dtype, device=device)
    check_same(wg.stream(tensor[:], np.s_[::-1], other).numpy(), tensor.numpy()[::-1].copy())


class File(NamedTuple):
    """The attribute of h5py's file that is used."""

    filename: str


class Dataset(Blocks):
    """The attributes of h5py's dataset that are used; `id` is equal for all handles of one dataset."""

    def __init__(self, array: NDArray[Any], number: int) -> None:
        super().__init__(array, None)
        self.id = number
        self.file = File("cubes.h5")


def test_two_handles_of_an_hdf5_dataset_are_refused() -> None:
    array = CUBE[0].copy()
    with pytest.raises(ValueError, match="stream: out overlaps the source"):
        wg.stream(Dataset(array, 1), np.s_[::-1], Dataset(array, 1))
    check_same(array, CUBE[0])
    other = Dataset(np.zeros_like(array), 2)
    wg.stream(Dataset(array, 1), np.s_[::-1], other)
    check_same(other.array, CUBE[0, ::-1].copy())


def test_tensors_that_cannot_be_written_are_refused(device: wg.Device) -> None:
    zeros = wg.zeros(19, np.uint32, device=device)
    repeated = wg.from_buffer(zeros.buffer, (17, 19), np.uint32, strides=(0, 1))
    with pytest.raises(ValueError, match=r"stream: output sizes .* two elements share bytes"):
        wg.stream(CUBE, 0, repeated)
    other = wg.Device.request(device.adapter)
    with pytest.raises(ValueError, match=r"stream: out is on .*: omit device="):
        wg.stream(CUBE, 0, wg.zeros((17, 19), np.uint32, device=device), device=other)


def test_a_source_with_a_wrong_shape_or_dtype_is_refused() -> None:
    source = Blocks(CUBE, None)
    source.shape = (13, 17, 20)
    with pytest.raises(ValueError, match=r"the source returned shape \(13, 17, 19\) for the key"):
        wg.stream(source, ...)
    source = Blocks(CUBE, (5, 17, 19))
    source.dtype = np.dtype(np.int8)
    with pytest.raises(
        TypeError, match=r"^stream: the source returned dtype uint32: must be int8, .*dtype='uint32' accepts"
    ):
        wg.stream(source, ...)
    check_same(wg.stream(source, ..., dtype="uint32"), CUBE)


class Scaled:
    """The attributes of nibabel's and netCDF4's arrays that are used: the dtype is that of the file."""

    def __init__(self, stored: NDArray[Any], slope: Any) -> None:
        self.stored, self.slope, self.shape, self.dtype = stored, slope, stored.shape, stored.dtype

    def __getitem__(self, key: Any) -> Any:
        return self.stored[key] * self.slope

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.asarray(self[...], dtype)


@pytest.mark.parametrize("limit", ["4 KiB", "1 MiB"])
@pytest.mark.parametrize(
    "slope", [np.float32(0.1), np.float64(0.1), np.complex64(1j), np.int64(-3)], ids=repr
)
def test_sources_that_scale_give_what_numpy_gets(device: wg.Device, limit: str, slope: Any) -> None:
    """Into new arrays, chunks and tensors; with copies on the GPU, and without."""
    for stored in (CUBE.astype(np.int16), CUBE[0].astype(">i2").T, np.array(7, np.int8), CUBE[:0]):
        source = Scaled(stored, slope)
        for key in (
            np.s_[...],
            np.s_[::-2, 3:] if stored.ndim else np.s_[None],
            np.s_[:0] if stored.ndim else (),
        ):
            expected = packed(np.asarray(source)[key])
            check_same(wg.stream(source, key, limit=limit, device=device), expected)
            for out in (
                np.zeros_like(expected),
                Blocks(np.zeros_like(expected), (2,) * expected.ndim),
                wg.zeros(expected.shape, expected.dtype, device=device),
            ):
                assert wg.stream(source, key, out, limit=limit) is out
                found = out.array if isinstance(out, Blocks) else np.asarray(out)
                check_same(found, expected)


def test_blocks_are_cast_to_a_dtype(device: wg.Device, tmp_path: Path) -> None:
    """By NumPy, from sources of any kind, of which maps stay released."""
    np.save(tmp_path / "cube.npy", CUBE.astype(np.int16))
    cases: list[tuple[Any, Any]] = [
        (Scaled(CUBE.astype(np.int16), 0.1), np.float32),
        (Scaled(CUBE.astype(np.int16), np.float32(0.1)), ">f8"),
        (CUBE, np.float64),
        (CUBE.tolist(), np.int32),
        (np.load(tmp_path / "cube.npy", mmap_mode="r"), np.float32),
        (Blocks(CUBE, (5, 17, 7)), np.uint16),
        (wg.asarray(CUBE, device=device), np.float64),
        (CUBE.astype(">i2"), "<i2"),
    ]
    for source, dtype in cases:
        whole = source.array if isinstance(source, Blocks) else np.asarray(source)
        for key in (np.s_[1:], np.s_[::-1, 3:16:5, ::-2], np.s_[3, 4, 5]):
            expected = packed(whole[key]).astype(np.dtype(dtype).newbyteorder("="))
            check_same(wg.stream(source, key, dtype=dtype, limit="16 KiB", device=device), expected)
            out = wg.zeros(expected.shape, expected.dtype, device=device)
            check_same(wg.stream(source, key, out, dtype=dtype, limit="16 KiB").numpy(), expected)
    with pytest.raises(
        TypeError, match="out has dtype float32, the result float64: they must be equal; dtype="
    ):
        wg.stream(Scaled(CUBE, 0.1), ..., np.zeros(CUBE.shape, np.float32))


class Masking(Scaled):
    """A variable of netCDF4's, which masks fill values, and returns arrays of its class without any, too."""

    def __getitem__(self, key: Any) -> Any:
        return np.ma.masked_equal(self.stored[key], self.slope)


def test_a_mask_is_refused_and_not_lost(device: wg.Device) -> None:
    last = int(CUBE.max())
    masked: Any = np.ma.masked_equal(CUBE, last)
    for source in (Masking(CUBE, last), masked):
        out = np.zeros_like(CUBE)
        with pytest.raises(ValueError, match=r"^stream: .* masked elements .*\.set_auto_mask\(False\)"):
            wg.stream(source, ..., out, limit="32 KiB", device=device)
        assert not out[-1].any()
        check_same(wg.stream(source, np.s_[-2::-1], device=device), packed(CUBE[-2::-1]))
    check_same(wg.stream(Masking(CUBE, 1), np.s_[1:], device=device), packed(CUBE[1:]))


def test_a_source_without_a_shape_is_named() -> None:
    source = SimpleNamespace(shape=None, dtype=np.dtype("f4"), chunks=None, __getitem__=None)
    with pytest.raises(ValueError, match=r"^stream: the source has shape None, as empty datasets of HDF5"):
        wg.stream(source, ...)


@pytest.mark.parametrize("shape", [(), (0, 3), (5,), (1000, 300), (3, 400_000), (1, 2, 7, 90_000)])
def test_large_tiles_are_copied_in_strips(shape: tuple[int, ...]) -> None:
    tile = numbered(shape)
    part = np.zeros_like(tile)
    copied = []

    def copyto(a: NDArray[Any], b: NDArray[Any]) -> None:
        copied.append(b.nbytes)
        a[...] = b

    with patch("wgslice.streaming.sinks.np.copyto", copyto):
        copy_in_strips(part, tile)
    check_same(part, tile)
    assert sum(copied) == tile.nbytes
    assert max(copied) <= STRIP_NBYTES


@given(st.data())
def test_runs_contain_every_byte_of_a_part_once(data: st.DataObject) -> None:
    array = np.zeros((3, 5, 9000), np.uint16)
    steps = st.integers(1, 4)
    key = tuple(
        slice(
            data.draw(st.integers(0, size - 1)), None, data.draw(steps) * data.draw(st.sampled_from([1, -1]))
        )
        for size in array.shape
    )
    part = array[key][..., :: data.draw(st.sampled_from([1, 700]))]
    first, offsets, nbytes = runs(part)
    begins = part.__array_interface__["data"][0] - array.__array_interface__["data"][0] + first + offsets
    covered = np.zeros(array.nbytes, bool)
    for begin in begins.tolist():
        assert not covered[begin : begin + nbytes].any()
        covered[begin : begin + nbytes] = True
    part[...] = 0x0101
    assert covered[array.reshape(-1).view(np.uint8) == 1].all()
    pages = np.unique(np.flatnonzero(covered) // 4096)
    assert np.array_equal(pages, np.unique(np.flatnonzero(array.view(np.uint8) == 1) // 4096))


def test_released_pages_keep_their_elements(tmp_path: Path) -> None:
    """Changes of a private map stay too."""
    path = tmp_path / "array.npy"
    np.save(path, numbered((64, 4096)))
    for mode in ("r", "r+", "c"):
        array = np.load(path, mmap_mode=mode)
        assert (mapped(array[3:, ::2]) is None) == (mode == "c")
        if mode != "r":
            array[5, 7] = 99
        for part in (array, array[::-3, 5:], array[:0]):
            fetch(part)
            release(part)
        assert array[5, 7] == (5 * 4096 + 8 if mode == "r" else 99)
    assert mapped(np.zeros(3)) is None

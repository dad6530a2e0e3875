"""Zarr arrays as tensors: read bit for bit what Zarr reads into NumPy's arrays, and written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy as np
import pytest
import wgpu
import zarr
from faults import failing
from helpers import check_same, in_threads, on_one_adapter, random_bytes, run_python
from hypothesis import assume, given
from hypothesis import strategies as st
from moving import DTYPES, numbered
from numpy.typing import NDArray
from zarr.buffer import cpu
from zarr.codecs import ShardingCodec, TransposeCodec
from zarr.codecs.numcodecs import Delta

import wgslice as wg
import wgslice.zarr
from wgslice import zarr as ndbuffer
from wgslice.gpu.device import Device
from wgslice.gpu.transfer import download

SIZES = (7, 6, 5)
LAYOUTS: dict[str, dict[str, Any]] = {
    "chunks": {"chunks": (3, 4, 2), "compressors": None},
    "compressed": {"chunks": (4, 6, 3)},
    "shards": {"chunks": (2, 3, 2), "shards": (4, 6, 4)},
    "one_chunk": {"chunks": (7, 6, 5), "compressors": None, "config": {"write_empty_chunks": True}},
    "transposed": {"chunks": (4, 3, 5), "filters": TransposeCodec(order=(2, 0, 1))},
    "version_2": {"chunks": (3, 4, 2), "zarr_format": 2, "order": "F"},
}


def stored(array: NDArray[Any], name: str, **options: Any) -> Any:
    """An array in memory, with one of LAYOUTS for its chunks."""
    settings = {**LAYOUTS[name], **options}
    z = zarr.create_array({}, shape=array.shape, dtype=array.dtype, **settings)
    z[...] = array
    return z


@pytest.fixture(params=["whole", "batched"])
def enabled(
    request: pytest.FixtureRequest, device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> Iterator[wg.Device]:
    """Zarr reads into tensors, uploaded whole or in small batches of chunks."""
    if request.param == "batched":
        monkeypatch.setattr(ndbuffer, "WHOLE_NBYTES", 0)
        monkeypatch.setattr(ndbuffer, "GATHERED_NBYTES", 256)
    with wgslice.zarr.enable(device):
        yield device


def check_read(found: Any, expected: Any, device: wg.Device) -> None:
    """A tensor on the device, of the same elements."""
    assert isinstance(found, wg.Tensor)
    assert found.device is device
    assert {*map(type, found.shape)} <= {int}  # of masks Zarr has sizes of NumPy's
    check_same(found.numpy(), np.asarray(expected))


def slices_of(size: int) -> st.SearchStrategy[Any]:
    """Slices with positive steps, which Zarr requires."""
    return st.slices(size).map(lambda key: slice(key.start, key.stop, abs(key.step or 1)))


def indices_of(size: int) -> st.SearchStrategy[Any]:
    """Distinct indices in any order, or a mask."""
    some = st.lists(
        st.integers(-size, size - 1), min_size=1, max_size=size, unique_by=lambda each: each % size
    )
    return some | st.lists(st.booleans(), min_size=size, max_size=size).map(np.array)


@st.composite
def selections(draw: st.DrawFn) -> tuple[str, Any, Any]:
    """A kind of index, its key, and NumPy's key for the same elements."""
    kind = draw(st.sampled_from(["basic", "oindex", "vindex", "mask", "blocks"]))
    if kind == "oindex":
        keys = [draw(slices_of(size) | indices_of(size)) for size in SIZES]
        selected = [np.arange(size)[key] for size, key in zip(SIZES, keys, strict=True)]
        return kind, tuple(keys), np.ix_(*selected)
    if kind == "vindex":
        count = draw(st.integers(1, 6))
        flat = draw(st.lists(st.integers(0, prod(SIZES) - 1), min_size=count, max_size=count, unique=True))
        places = np.unravel_index(np.array(flat), SIZES)
        return kind, places, places
    if kind == "mask":
        mask = np.random.default_rng(draw(st.integers(0, 99))).random(SIZES) < 0.3
        return kind, mask, mask
    if kind == "blocks":
        return kind, (0, slice(0, 1)), kind
    key: Any = tuple(draw(slices_of(size) | st.integers(-size, size - 1)) for size in SIZES)
    key = key[: draw(st.integers(0, 2))] or (...,)
    return kind, key, key


def numpys_block(z: Any) -> tuple[slice, ...]:
    """NumPy's key for `z.blocks[0, 0:1]`."""
    first, second, _ = z.shards or z.chunks
    return (slice(first), slice(second))


def indexer(z: Any, kind: str) -> Any:
    """The indexer of an array for a kind of index."""
    return {"basic": z, "mask": z.vindex}.get(kind) or getattr(z, kind)


@given(st.data())
def test_reads_equal_numpys(enabled: wg.Device, data: st.DataObject) -> None:
    array = numbered(SIZES, data.draw(st.sampled_from(DTYPES)))
    z = stored(array, data.draw(st.sampled_from(sorted(LAYOUTS))))
    kind, key, numpys = data.draw(selections())
    found = indexer(z, kind)[key]
    expected = array[numpys_block(z) if kind == "blocks" else numpys]
    if kind in ("vindex", "mask"):  # of which Zarr itself makes NumPy's arrays
        check_same(found, expected)
    else:
        check_read(found, expected, enabled)


@given(st.data())
def test_writes_equal_numpys(enabled: wg.Device, data: st.DataObject) -> None:
    """Values are tensors, views, arrays and numbers."""
    dtype = data.draw(st.sampled_from(DTYPES))
    array = numbered(SIZES, dtype)
    layout = data.draw(st.sampled_from(sorted(LAYOUTS)))
    z = stored(array, layout)
    kind, key, numpys = data.draw(selections())
    assume((kind, layout) != ("oindex", "shards"))  # which Zarr cannot, into arrays either: its issue 2834
    key_of_numpys = numpys_block(z) if kind == "blocks" else numpys
    shape = array[key_of_numpys].shape
    value = numbered(shape, dtype, first=501)
    given = data.draw(st.sampled_from(["tensor", "view", "array", "number"]))
    if given == "number":
        value = value.reshape(-1)[:1].reshape(()) if value.size else np.zeros((), dtype)
        indexer(z, kind)[key] = value[()].item()
    elif given == "view":
        indexer(z, kind)[key] = wg.asarray(value[..., ::-1].copy(), device=enabled)[..., ::-1]
    else:
        indexer(z, kind)[key] = wg.asarray(value, device=enabled) if given == "tensor" else value
    array[key_of_numpys] = value
    check_read(z[...], array, enabled)


def test_each_dtype_comes_back(enabled: wg.Device) -> None:
    """Random bits, other byte orders and dates."""
    for dtype in ("int8", "uint16", "float16", "float64", "complex128", ">i4", ">f8", "datetime64[s]"):
        array = random_bytes(480).view(dtype)
        z = zarr.create_array({}, shape=array.shape, dtype=array.dtype, chunks=(7,), zarr_format=2)
        z[...] = array
        native = array.astype(array.dtype.newbyteorder("="))
        check_read(z[1:], native[1:], enabled)
        z[3:] = wg.asarray(native, device=enabled)[:-3]
        check_read(z[3:], native[:-3], enabled)


def test_missing_chunks_are_the_fill_value(enabled: wg.Device) -> None:
    for fill in (0, -0.0, 7.5, np.nan):
        expected = np.full((9, 33), fill, np.float32)
        z = zarr.create_array({}, shape=(9, 33), dtype=np.float32, chunks=(4, 5), fill_value=fill)
        check_read(z[...], expected, enabled)
        z[3:5, 7] = expected[3:5, 7] = 1
        check_read(z[...], expected, enabled)
        check_read(z[1::3, 2::5], expected[1::3, 2::5], enabled)


def test_chunks_equal_to_the_fill_value_are_not_stored(enabled: wg.Device) -> None:
    store: dict[str, Any] = {}
    z = zarr.create_array(store, shape=(6,), dtype=np.int32, chunks=(2,), fill_value=3)
    written = np.array([3, 3, 1, 2, 3, 3], np.int32)
    z[...] = wg.asarray(written, device=enabled)
    assert [key for key in store if key.startswith("c/")] == ["c/1"]
    check_read(z[...], written, enabled)


@on_one_adapter
def test_scalars_and_unsupported_data(enabled: wg.Device) -> None:
    array = numbered(SIZES, "int64")
    z = stored(array, "chunks")
    number = z.get_basic_selection((1, 2, 3))
    assert isinstance(number, np.int64)
    assert number == array[1, 2, 3]
    check_read(z[1, 2, 3], array[1, 2, 3], enabled)  # of rank 0, as Zarr's
    alone = zarr.create_array({}, data=np.array(7.5))
    assert alone[()] == 7.5
    alone[...] = wg.asarray(np.array(2.5), device=enabled)
    assert alone[()] == 2.5
    data: Any = wg.asarray(array, device=enabled)
    check_read(zarr.create_array({}, data=data, chunks=(2, 6, 3))[:], array, enabled)
    records = np.array([(1, 2.5), (3, 4.5)], [("a", "i4"), ("b", "f8")])
    for held in (np.array(["one", "two"]), records, numbered((2,) * 9, "uint8")):
        kept = zarr.create_array({}, shape=held.shape, dtype=held.dtype, chunks=held.shape, zarr_format=2)
        kept[...] = held
        assert isinstance(kept[...], np.ndarray)
        assert np.array_equal(kept[...], held)


@pytest.fixture(params=["disabled", "disabled, in parts", "enabled", "enabled, in parts"])
def writing(
    request: pytest.FixtureRequest, device: wg.Device, monkeypatch: pytest.MonkeyPatch
) -> Iterator[wg.Device]:
    """Tensors are written with and without `enable`, read back whole or chunk by chunk."""
    if "in parts" in request.param:
        monkeypatch.setattr(ndbuffer, "WHOLE_NBYTES", 0)
    with wgslice.zarr.enable(device) if "enabled" in request.param else wgslice.zarr.disable():
        yield device


def check_same_stores(ours: dict[str, Any], numpys: dict[str, Any]) -> None:
    """The same chunks of the same bytes, none of which a tensor holds."""
    assert ours.keys() == numpys.keys()
    for key, value in numpys.items():
        assert ours[key].to_bytes() == value.to_bytes(), key
        assert isinstance(ours[key].as_array_like(), np.ndarray)


WIDTHS = ["bool", "int8", "float16", "uint16", "float32", "float64", "datetime64[s]", "complex128"]


def random_bits(shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """Elements of any bits, NaNs with payloads among them."""
    bits = random_bytes(prod(shape) * np.dtype(dtype).itemsize)
    array: NDArray[Any] = (bits & 1 if dtype == "bool" else bits).view(dtype)
    return array.reshape(shape)


@given(st.data())
def test_a_tensor_is_stored_as_its_array_is(writing: wg.Device, data: st.DataObject) -> None:
    """Whole chunks, parts of chunks, and chunks of the fill value, which are stored or not."""
    dtype = data.draw(st.sampled_from(WIDTHS))
    layout = data.draw(st.sampled_from([name for name in LAYOUTS if name != "one_chunk"]))
    settings = {
        **LAYOUTS[layout],
        "shape": SIZES,
        "dtype": dtype,
        "fill_value": data.draw(st.sampled_from([0, 1])),
        "config": {"write_empty_chunks": data.draw(st.booleans())},
    }
    if data.draw(st.booleans()) and layout not in ("shards", "transposed"):
        settings["chunks"] = SIZES
    kind, key, numpys = data.draw(selections())
    assume((kind, layout) != ("oindex", "shards"))  # which Zarr cannot, into arrays either: its issue 2834
    stores: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
    ours, theirs = (zarr.create_array(store, **settings) for store in stores)
    shape = np.empty(SIZES)[numpys_block(ours) if kind == "blocks" else numpys].shape
    constant = np.full(shape, data.draw(st.sampled_from([0, 1])), "int8").astype(dtype)
    value = constant if data.draw(st.booleans()) else random_bits(shape, dtype)
    x = wg.asarray(value[..., ::-1], device=writing)[..., ::-1]
    indexer(ours, kind)[key] = x
    indexer(theirs, kind)[key] = value
    check_same_stores(*stores)


def written(z: Any, kind: str, key: Any, value: Any) -> None:
    indexer(z, kind)[key] = value


def of_array(store: dict[str, Any], array: Any, **options: Any) -> Any:
    """An array of the fill value, for elements of the same kind."""
    return zarr.create_array(store, shape=array.shape, dtype=array.dtype, **options)


DOORS: dict[str, Callable[[dict[str, Any], Any], Any]] = {
    "z[:]": lambda s, x: written(of_array(s, x, chunks=(7, 6)), "basic", np.s_[:], x),
    "z[...]": lambda s, x: written(of_array(s, x, chunks=(2, 3), shards=(4, 6)), "basic", ..., x),
    "z[1]": lambda s, x: written(of_array(s, x, chunks=(1, 6)), "basic", 1, x[0]),
    "one element": lambda s, x: written(of_array(s, x, chunks=(2, 3)), "basic", np.s_[1:3], x[2, 2]),
    "oindex": lambda s, x: written(of_array(s, x, chunks=(7, 6)), "oindex", ([*range(7)], np.s_[:]), x),
    "vindex": lambda s, x: written(of_array(s, x, chunks=(2, 3)), "vindex", ([0, 5], [4, 1]), x[0, :2]),
    "mask": lambda s, x: written(of_array(s, x), "mask", np.arange(42).reshape(7, 6) < 6, x[1]),
    "blocks": lambda s, x: written(of_array(s, x, chunks=(2, 6)), "blocks", 1, x[2:4]),
    "append": lambda s, x: zarr.create_array(s, data=np.zeros((1, 6), x.dtype), chunks=(4, 6)).append(x),
    "create_array": lambda s, x: zarr.create_array(s, data=x, chunks=(7, 6)),
    "zarr.array": lambda s, x: zarr.array(x, store=s),
    "from_array": lambda s, x: zarr.from_array(s, data=x, chunks=(3, 6)),
    "save_array": lambda s, x: zarr.save_array(s, x),
    "save": lambda s, x: zarr.save(s, x[::-1]),
    "save several": lambda s, x: zarr.save(s, x, x.T, third=x[0]),
    "a group's item": lambda s, x: zarr.group(s).__setitem__("name", x),
    "a group's array": lambda s, x: zarr.group(s).create_array("name", data=x, chunks=(7, 3)),
    "version 2": lambda s, x: zarr.create_array(s, data=x, chunks=(7, 6), zarr_format=2, order="F"),
    "big-endian": lambda s, x: written(
        zarr.create_array(s, shape=(7, 6), dtype=x.dtype.newbyteorder(">"), chunks=(7, 6)), "basic", ..., x
    ),
    "nested shards": lambda s, x: written(
        of_array(
            s,
            x,
            chunks=(8, 8),
            serializer=ShardingCodec(chunk_shape=(4, 4), codecs=[ShardingCodec(chunk_shape=(2, 2))]),
            compressors=None,
        ),
        "basic",
        ...,
        x,
    ),
    "uncompressed": lambda s, x: zarr.create_array(s, data=x, chunks=(7, 6), compressors=None),
}


@on_one_adapter
@pytest.mark.parametrize("door", DOORS)
def test_every_door_takes_tensors(writing: wg.Device, door: str) -> None:
    for dtype in ("int8", "float16", "float32", "float64", "complex128"):
        array = random_bits((7, 6), dtype)
        stores: tuple[dict[str, Any], dict[str, Any]] = ({}, {})
        x: Any = wg.asarray(array, device=writing)
        DOORS[door](stores[0], x)
        DOORS[door](stores[1], array.copy())
        x[...] = 1  # which no store sees
        check_same_stores(*stores)


@on_one_adapter
def test_parts_of_nested_shards_are_read_without_enabling(device: wg.Device) -> None:
    """Zarr refuses these with any class of buffers but its own."""
    store: dict[str, Any] = {}
    array = random_bits((7, 6), "float32")
    DOORS["nested shards"](store, wg.asarray(array, device=device))
    check_same(np.asarray(zarr.open_array(store)[2:5, 1:3]), array[2:5, 1:3].copy())


@on_one_adapter
def test_a_missing_all_method_refuses_to_compute(device: wg.Device) -> None:
    x: Any = wg.zeros(3, device=device)
    with pytest.raises(wg.ComputationRefused, match=r"^all: tensors are moved"):
        x.all()
    with pytest.raises(TypeError, match=r"^all: .*'axis'.*x\.numpy\(\)\.all\(\)"):
        x.all(axis=0)


@on_one_adapter
def test_another_dtype_writes_nothing(writing: wg.Device) -> None:
    store: dict[str, Any] = {}
    z = zarr.create_array(store, shape=(6,), dtype="int32", chunks=(6,))
    for value in (wg.arange(6, dtype="int64", device=writing), wg.ones(6, "float32", device=writing)):
        with pytest.raises(wg.ComputationRefused, match=r"to int32: .*np\.asarray\(x\)\.astype"):
            z[:] = value
    assert [*store] == ["zarr.json"]


@on_one_adapter
def test_nothing_is_converted(enabled: wg.Device) -> None:
    array = numbered(SIZES, "int32")
    z = stored(array, "compressed")
    with pytest.raises(wg.ComputationRefused, match=r"^astype: int64 to int32: .*np\.asarray\(x\)\.astype"):
        z[...] = wg.asarray(array.astype(np.int64), device=enabled)
    check_read(z[...], array, enabled)


def test_a_tensor_is_read_into(enabled: wg.Device) -> None:
    array = numbered(SIZES, "float32")
    z = stored(array, "chunks", fill_value=2)
    out = wg.asarray(np.full((9, 6, 10), np.nan, np.float32), device=enabled)
    window = out[1:-1, :, ::-2]
    assert z.get_basic_selection(out=ndbuffer.NDBuffer(window)) is window
    expected = np.full((9, 6, 10), np.nan, np.float32)
    expected[1:-1, :, ::-2] = array
    check_same(out.numpy(), expected)


@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning")  # of Numcodecs, and of such shards
def test_filters_around_a_shard_see_arrays(enabled: wg.Device) -> None:
    """Zarr allocates the shard by the same call as the result."""
    array = numbered(SIZES, "int64")
    around: list[tuple[Any, NDArray[Any]]] = [
        (Delta(dtype="<i8"), array.reshape(-1)),
        (TransposeCodec(order=(2, 0, 1)), array),
    ]
    for codec, held in around:
        z = zarr.create_array(
            {},
            shape=held.shape,
            dtype=held.dtype,
            chunks=tuple(size // 4 * 4 + 4 for size in held.shape),
            serializer=ShardingCodec(chunk_shape=(4,) * held.ndim),
            filters=codec,
            compressors=None,
        )
        z[...] = wg.asarray(held, device=enabled)
        check_read(z[...], held, enabled)
        z[3:5] = wg.asarray(held[1:3], device=enabled)
        held = held.copy()
        held[3:5] = held[1:3]
        check_read(z[1:], held[1:], enabled)


def test_the_asynchronous_interface(enabled: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several reads in one task, and one per task: results are batched, shards are not."""
    batched: list[Any] = []

    class Counted(ndbuffer.UploadBatcher):
        def __init__(self, sizes: Any, *arguments: Any) -> None:
            batched.append(sizes)
            super().__init__(sizes, *arguments)

    monkeypatch.setattr(ndbuffer, "UploadBatcher", Counted)
    array = numbered(SIZES, "float64")
    z = stored(array, "shards").async_array

    async def read() -> list[Any]:
        await z.setitem(np.s_[2:4], wg.asarray(array[:2], device=enabled))
        one = await z.getitem(np.s_[1:, ::2])
        others = await asyncio.gather(*(z.getitem(np.s_[number:]) for number in range(6)))
        return [one, *others]

    one, *others = asyncio.run(read())
    array[2:4] = array[:2]
    check_read(one, array[1:, ::2], enabled)
    for number, other in enumerate(others):
        check_read(other, array[number:], enabled)
    assert batched == ([other.shape for other in (one, *others)] if ndbuffer.WHOLE_NBYTES == 0 else [])


@on_one_adapter
def test_after_a_read_that_failed_the_next_one_is_right(enabled: wg.Device) -> None:
    array = numbered(SIZES, "uint8")
    store: dict[str, Any] = {}
    z = zarr.create_array(store, shape=SIZES, dtype=np.uint8, chunks=(3, 4, 2))
    z[...] = array
    spoiled, store["c/1/1/1"] = store["c/1/1/1"], cpu.Buffer.from_bytes(b"no zstd")

    async def read() -> Any:
        with pytest.raises(RuntimeError):
            await z.async_array.getitem(...)
        store["c/1/1/1"] = spoiled
        return await z.async_array.getitem(...), await z.async_array.getitem(np.s_[1:])

    first, second = asyncio.run(read())
    check_read(first, array, enabled)
    check_read(second, array[1:], enabled)


def test_a_write_whose_readback_fails_writes_no_chunk(device: wg.Device) -> None:
    z: Any = zarr.create_array({}, data=np.zeros((9, 9), np.int32), chunks=(2, 2))
    x = wg.asarray(np.arange(1, 82, dtype=np.int32).reshape(9, 9), device=device)
    with wgslice.zarr.enable(device), failing("refused", 1, device), pytest.raises(wgpu.GPUError):
        z[...] = x
    assert not z[...].any()
    with wgslice.zarr.enable(device):
        z[...] = x
    np.testing.assert_array_equal(z[...], x.numpy())


def test_threads_read_and_write_at_once(enabled: wg.Device) -> None:
    array = numbered((16, 12, 5), "float32")
    z = stored(array, "compressed", chunks=(4, 6, 3))
    right = []

    def work(number: int) -> None:
        rows = slice(4 * number, 4 * number + 4)  # chunks of its own
        for _ in range(3):
            check_read(z[rows, ::2], array[rows, ::2], enabled)
            z[rows] = wg.asarray(array[rows], device=enabled)
        right.append(number)

    in_threads(work)
    assert sorted(right) == [0, 1, 2, 3]
    check_read(z[...], array, enabled)


@on_one_adapter
def test_chunks_share_submissions_and_readbacks(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """210 chunks."""
    submitted: list[Any] = []
    waited: list[int] = []  # with how many submissions, of which the queue holds one at most
    downloaded: list[int] = []
    submit = Device.submit

    def submitting(device: Device, encoder: Any) -> None:
        submitted.append(encoder)
        submit(device, encoder)

    def downloading(device: Device, source: Any, into: Any, *encoder: Any) -> None:
        downloaded.append(into.size)
        download(device, source, into, *encoder)

    def waiting(device: Device) -> None:
        waited.append(len(submitted))

    monkeypatch.setattr(Device, "submit", submitting)
    monkeypatch.setattr(Device, "synchronize", waiting)
    monkeypatch.setattr("wgslice.tensors.placed.download", downloading)
    array = numbered(SIZES, "int64")
    z = stored(array, "chunks", chunks=(1, 1, 1), fill_value=99)
    tensor = wg.asarray(array, device=device)
    with wgslice.zarr.enable(device):
        z[...]
        assert not submitted  # but for what the queue is given
        z[...] = tensor
        assert downloaded == [array.nbytes]
        monkeypatch.setattr(ndbuffer, "WHOLE_NBYTES", 0)
        submitted.clear()
        z[...]
        assert len(submitted) == 1
        monkeypatch.setattr(ndbuffer, "GATHERED_NBYTES", 64 * 16)
        submitted.clear()
        z[...]
        assert len(submitted) == 4
        assert waited == [1, 2, 3]
        downloaded.clear()
        z[:2] = tensor[:2]
        assert downloaded == [8] * 60


@on_one_adapter
def test_enable_and_disable_nest(device: wg.Device) -> None:
    z = stored(numbered(SIZES, "int16"), "chunks")
    with wgslice.zarr.enable(device.adapter.backend.lower()):
        assert z[...].device.adapter == device.adapter
        with wgslice.zarr.disable():
            assert isinstance(z[...], np.ndarray)
        assert isinstance(z[...], wg.Tensor)
    assert isinstance(z[...], np.ndarray)
    with pytest.raises(wg.NoAdapterError):
        wgslice.zarr.enable("no such adapter")
    with pytest.raises(TypeError, match=r"^enable: device is of type int"):
        wgslice.zarr.enable(3)  # type: ignore[arg-type]  # which is what is refused
    assert isinstance(z[...], np.ndarray)


@pytest.mark.slow
@on_one_adapter
def test_the_environment_enables_tensors(device: wg.Device) -> None:
    """Zarr finds the class by its entry point."""
    program = "import zarr\nprint(type(zarr.create_array({}, data=zarr.zeros(3)[...])[1:]))"
    done = run_python(program, ZARR_NDBUFFER=ndbuffer.NAME, ZARR_WGSLICE__DEVICE=device.adapter.backend)
    assert done.stdout.strip() == "<class 'wgslice.tensors.tensor.Tensor'>", done.stderr
    assert "ndarray" in run_python(program).stdout


def test_more_than_the_device_holds_is_refused(enabled: wg.Device) -> None:
    z = zarr.create_array({}, shape=(2**20, 2**20), dtype=np.uint8, chunks=(2**10, 2**10))
    with pytest.raises(
        ValueError, match=r"^wgslice\.zarr: a buffer of 1099511627776 bytes: .* allows at most"
    ):
        z[...]

"""Dask's arrays of tensors: what NumPy makes of the whole, in one process, in threads, on two processes."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable
from math import prod
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pytest
import zarr
from clusters import LIMIT_MIB, cluster, kill_the_first, worker_pids
from dask.array.chunk_types import is_valid_chunk_type
from dask.array.dispatch import concatenate_lookup, take_lookup, to_numpy_dispatch
from dask.base import tokenize
from dask.sizeof import sizeof
from distributed import Client
from helpers import ADAPTERS, check_same, on_one_adapter, random_bytes, run_python
from hypothesis import given
from hypothesis import strategies as st
from moving import numbered
from numpy.typing import NDArray

import wgslice as wg

__all__ = ["cluster"]

pytestmark = pytest.mark.usefixtures("default")

on_the_cluster = pytest.mark.xdist_group("dask")  # one process has it

DTYPES = ["bool", "uint8", "int16", "float16", "float32", "float64", "complex128"]
BORDERS = {"reflect": "symmetric", "periodic": "wrap", "nearest": "edge", 7: "constant"}
Step = Callable[[Any, Any], Any]  # of `dask.array` or `numpy`, and an array of that


def chunks_of(shape: tuple[int, ...]) -> st.SearchStrategy[tuple[int, ...]]:
    """Sizes of chunks, at most three per dimension."""
    return st.tuples(*(st.integers(-(-size // 3), size) for size in shape))


def slices(size: int) -> st.SearchStrategy[slice]:
    """Slices with elements and any step."""
    bound = st.one_of(st.none(), st.integers(-size - 1, size + 1))
    step = st.sampled_from([None, 1, 2, 3, -1, -2, -3])
    return st.builds(slice, bound, bound, step).filter(lambda key: len(range(*key.indices(size))) > 0)


def slicing(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    key = tuple(draw(st.one_of(slices(size), st.integers(-size, size - 1))) for size in shape)
    return lambda lib, x: x[key if any(isinstance(each, slice) for each in key) else (*key, None)]


def picking(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axis = draw(st.integers(0, len(shape) - 1))
    indices = draw(st.lists(st.integers(-shape[axis], shape[axis] - 1), min_size=1, max_size=5))
    return lambda lib, x: lib.take(x, indices, axis=axis)


def flipping(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axis = draw(st.integers(-len(shape), len(shape) - 1))
    return lambda lib, x: lib.flip(x, axis)


def concatenating(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axis = draw(st.integers(0, len(shape) - 1))
    key = (slice(None),) * axis + (draw(slices(shape[axis])),)
    return lambda lib, x: lib.concatenate([x, x[key], x], axis=axis)


def stacking(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axis = draw(st.integers(0, len(shape)))
    return lambda lib, x: lib.stack([x, x[::-1]], axis=axis)


def transposing(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    order = draw(st.permutations(range(len(shape))))
    return lambda lib, x: lib.transpose(x, order)


def reshaping(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    first = draw(st.integers(0, len(shape) - 1))
    merged = (*shape[:first], prod(shape[first : first + 2]), *shape[first + 2 :])
    divided = (*shape[:-1], 2, shape[-1] // 2) if shape[-1] % 2 == 0 else (*shape, 1)
    sizes = draw(st.sampled_from([(-1,), merged, divided]))
    return lambda lib, x: lib.reshape(x, sizes)


def rechunking(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    chunks = draw(chunks_of(shape))
    return lambda lib, x: x.rechunk(chunks) if lib is da else x


def rolling(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    axis = draw(st.one_of(st.none(), st.integers(0, len(shape) - 1)))
    shift = draw(st.integers(-9, 9))
    return lambda lib, x: lib.roll(x, shift, axis=axis)


def padding(draw: st.DrawFn, shape: tuple[int, ...]) -> Step:
    """Widths up to the size: beyond that Dask differs from NumPy."""
    mode = draw(st.sampled_from(["constant", "edge", "reflect", "symmetric", "wrap"]))
    widths = [tuple(draw(st.integers(0, size - (mode == "reflect"))) for _ in "ab") for size in shape]
    options = {"constant_values": draw(st.sampled_from([0, 1]))} if mode == "constant" else {}
    return lambda lib, x: lib.pad(x, widths, mode=mode, **options)


STEPS = [
    *(slicing, picking, flipping, concatenating, stacking, transposing),
    *(reshaping, rechunking, rolling, padding),
]


@st.composite
def moved(draw: st.DrawFn) -> tuple[Any, NDArray[Any]]:
    """A Dask array of tensors after a few steps, and what NumPy makes of the same steps."""
    shape = tuple(draw(st.lists(st.integers(1, 7), min_size=1, max_size=3)))
    array = numbered(shape, draw(st.sampled_from(DTYPES)))
    x: Any = da.from_array(array, chunks=draw(chunks_of(shape)))
    x = x.map_blocks(wg.asarray)
    for kind in draw(st.lists(st.sampled_from(STEPS), min_size=1, max_size=3)):
        if array.ndim < 5 and array.size < 2000:
            step = kind(draw, array.shape)
            x, array = step(da, x), step(np, array)
    return x, array


def check(found: Any, array: NDArray[Any]) -> None:
    """Check that a result is a tensor of these elements."""
    assert isinstance(found, wg.Tensor)
    check_same(found.numpy(), array.copy())


@given(case=moved())
def test_in_one_process(device: wg.Device, case: tuple[Any, NDArray[Any]]) -> None:
    x, array = case
    assert (x.shape, x.dtype) == (array.shape, array.dtype)
    assert isinstance(x._meta, wg.Tensor)
    assert x._meta.size == 0
    check(x.compute(scheduler="synchronous"), array)


@given(case=moved())
def test_in_threads(device: wg.Device, case: tuple[Any, NDArray[Any]]) -> None:
    x, array = case
    check(x.compute(scheduler="threads", num_workers=4), array)
    found = x.map_blocks(np.asarray).compute(scheduler="threads", num_workers=4)
    assert isinstance(found, np.ndarray)
    check_same(found, array.copy())


@pytest.mark.slow
@on_the_cluster
@on_one_adapter  # its workers have both
@given(case=moved())
def test_on_two_processes(device: wg.Device, cluster: Client, case: tuple[Any, NDArray[Any]]) -> None:
    x, array = case
    check(x.compute(scheduler=cluster), array)


@pytest.mark.parametrize("boundary", BORDERS)
def test_overlap(device: wg.Device, boundary: Any) -> None:
    """Blocks with elements of their neighbours, and of the boundary at the ends."""
    array = numbered((6, 9), "float32")
    x: Any = da.from_array(array, chunks=(2, 4)).map_blocks(wg.asarray)
    found = da.map_overlap(np.roll, x, depth=2, boundary=boundary, shift=(2, -1), axis=(0, 1))
    options = {"constant_values": 7} if boundary == 7 else {}
    bordered = np.pad(array, 2, BORDERS[boundary], **options)  # type: ignore[call-overload]  # of any mode
    expected = np.roll(bordered, (2, -1), axis=(0, 1))[2:-2, 2:-2]
    check(found.compute(scheduler="synchronous"), expected)
    check(found.compute(scheduler="threads"), expected)


def test_parts_are_assigned(device: wg.Device) -> None:
    array = numbered((6, 9), "int16")
    x: Any = da.from_array(array, chunks=(2, 4)).map_blocks(wg.asarray)
    array[1:5, ::-2] = 7
    array[::3] = array[1]
    x[1:5, ::-2] = 7
    x[::3] = x[1]
    check(x.compute(scheduler="synchronous"), array)


VALUES: dict[str, Callable[[NDArray[Any]], Any]] = {
    "tensor": wg.asarray,
    "view": lambda array: wg.asarray(array[::-1])[::-1],
    "element": lambda array: wg.asarray(array)[0],
    "array": lambda array: array,
    "number": lambda array: array[0].item(),
    "dask of tensors": lambda array: da.from_array(array, chunks=1).map_blocks(wg.asarray),
    "dask of arrays": lambda array: da.from_array(array, chunks=2),
}
INDICES: dict[str, Callable[[Any], Any]] = {
    "slice": lambda lib: np.s_[1:4:2],
    "reversed": lambda lib: np.s_[4:2:-1],
    "integers": lambda lib: [0, 5],
    "mask": lambda lib: np.array([1, 0, 0, 0, 0, 1], bool),
    "dask mask": lambda lib: lib.asarray([True, False, False, False, True, False]),
}


@pytest.mark.parametrize("index", INDICES)
@pytest.mark.parametrize("value", VALUES)
def test_assigned_values_may_be_tensors(device: wg.Device, value: str, index: str) -> None:
    """To chunks of NumPy's arrays and of tensors, which stay what they are."""
    for dtype in ("bool", "uint8", "int64", "float32"):
        for backed in (False, True):
            array = np.arange(6).astype(dtype)
            x: Any = da.from_array(array.copy(), chunks=4)
            x = x.map_blocks(wg.asarray) if backed else x
            new = np.array([0, 1] if dtype == "bool" else [7, 8], dtype)
            expected = new[0] if value in ("element", "number") else new
            if index == "dask mask" and expected.ndim:
                continue  # Dask itself refuses values with dimensions there
            x[INDICES[index](da)] = VALUES[value](new)
            array[INDICES[index](np)] = expected
            found = x.compute(scheduler="synchronous")
            assert isinstance(found, wg.Tensor if backed else np.ndarray)
            check_same(np.asarray(found), array)


def test_floats_in_a_tensor_are_not_assigned_to_integers(device: wg.Device) -> None:
    x: Any = da.from_array(np.arange(6), chunks=3)
    for function in (np.isnan, np.isinf):
        assert not function(wg.asarray(np.arange(6), device=device)).any()
        with pytest.raises(wg.ComputationRefused, match=f"^numpy.{function.__name__}: .*nothing is computed"):
            function(wg.ones(2, "float32", device=device))
    with pytest.raises(wg.ComputationRefused, match="nothing is computed"):
        x[1:3] = wg.ones(2, "float32", device=device)
    assert x.compute(scheduler="synchronous").tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("dtype", ["bool", "int16", "float32", "complex128"])
def test_stores_get_the_elements_of_tensors(device: wg.Device, tmp_path: Path, dtype: str) -> None:
    """Chunks of a store that one tensor covers, or several."""
    bits = random_bytes(54 * np.dtype(dtype).itemsize)
    array = (bits & 1 if dtype == "bool" else bits).view(dtype).reshape(6, 9)
    x: Any = da.from_array(array, chunks=(3, 4)).map_blocks(wg.asarray)
    x.to_zarr(tmp_path / "made.zarr")
    made: Any = zarr.open_array(tmp_path / "made.zarr", mode="r")
    assert made.chunks == (3, 4)
    targets: list[Any] = [
        zarr.create_array({}, shape=array.shape, dtype=array.dtype, chunks=chunks)
        for chunks in ((3, 4), (6, 9), (2, 2))
    ]
    targets += [np.zeros_like(array), wg.zeros(array.shape, dtype, device=device)]
    for target in targets:
        da.store(x, target, scheduler="synchronous")
    for stored in (made, *targets):
        check_same(np.asarray(stored[:]), array)


def test_tensors_among_dask_arrays_are_chunks(device: wg.Device) -> None:
    array = numbered((6, 4), "uint8")
    tensor: Any = wg.asarray(array, device=device)
    x: Any = da.from_array(tensor, chunks=(3, 2))
    for both in (np.concatenate([x, tensor]), np.concatenate([tensor, x]), da.concatenate([tensor, x])):
        assert isinstance(both, da.Array)
        check(both.compute(scheduler="synchronous"), np.concatenate([array, array]))
    check(da.asarray(tensor)[::-1].compute(scheduler="synchronous"), array[::-1])


def test_numpys_arrays_come_back_to_compute_with(device: wg.Device) -> None:
    array = numbered((6, 9), "float64")
    x: Any = da.from_array(array, chunks=(2, 4)).map_blocks(wg.asarray)[::-1]
    for back in (x.map_blocks(np.asarray), x.to_backend("numpy")):
        assert isinstance(back._meta, np.ndarray)
        check_same((back * 2).sum(axis=0).compute(scheduler="synchronous"), (array[::-1] * 2).sum(axis=0))
    for computed in (x + 1, x.sum(), da.where(x > 3, x, 0), x.astype("int8")):
        with pytest.raises(NotImplementedError, match=r"computed|converted|wg\.|x\.copy"):
            computed.compute(scheduler="synchronous")


def test_protocols_that_dask_uses(device: wg.Device) -> None:
    x: Any = wg.asarray(numbered((6, 9), "float32"), device=device)
    assert is_valid_chunk_type(wg.Tensor)
    assert 6 * 9 * 4 < sizeof(x) < 6 * 9 * 4 + 500
    assert sizeof(x) - sizeof(x[::2, :3]) == (6 * 9 - 3 * 3) * 4
    check(concatenate_lookup.dispatch(wg.Tensor)([x, x[:, :2]], axis=1), np.c_[x.numpy(), x.numpy()[:, :2]])
    check(take_lookup.dispatch(wg.Tensor)(x, [3, 1], axis=1), x.numpy()[:, [3, 1]])
    check_same(to_numpy_dispatch(x[::-1]), x.numpy()[::-1].copy())


def test_equal_tensors_have_equal_tokens(device: wg.Device) -> None:
    array = numbered((6, 9), "float32")
    x: Any = wg.asarray(array, device=device)
    token = tokenize(x)
    assert (
        tokenize(wg.asarray(array, device=device))
        == tokenize(wg.asarray(array[::-1], device=device)[::-1])
        == token
    )
    others = [x[::-1], x.T, x.reshape(9, 6), x.view("int32"), array]
    assert len({token, *map(tokenize, others)}) == 6
    x[0, 0] = 99
    assert tokenize(x) != token


@on_one_adapter
def test_dask_imported_after_a_tensor_takes_it_as_chunk(device: wg.Device) -> None:
    program = """
import sys
import numpy as np, wgslice as wg
tensor = wg.asarray(np.arange(4))
assert not any(type(finder).__module__.startswith("wgslice") for finder in sys.meta_path)
import dask.array as da
both = np.concatenate([da.from_array(np.arange(2), chunks=1), tensor])
print(type(both).__name__, both.map_blocks(np.asarray).compute())
print(type(da.from_array(tensor, name=False).to_backend("numpy").compute()).__name__)
"""
    done = run_python(program, WGSLICE_ADAPTER=str(device.adapter))
    assert done.stdout.splitlines() == ["Array [0 1 0 1 2 3]", "ndarray"], done.stderr


@on_one_adapter
@pytest.mark.slow  # another process, which imports Dask
def test_an_older_dask_is_imported_and_left_alone(device: wg.Device, tmp_path: Path) -> None:
    """A stand-in package whose modules lack the names to register with."""
    package = tmp_path / "dask" / "array"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    (package / "__init__.py").write_text("from dask.array import chunk_types, dispatch\n", "utf-8")
    (package / "chunk_types.py").touch()
    (package / "dispatch.py").write_text("concatenate_lookup = {}\n", "utf-8")
    program = """
import wgslice as wg
import dask.array
print(wg.asarray([3, 1]).numpy(), dask.array.dispatch.concatenate_lookup, dask.__path__)
"""
    done = run_python(
        program, WGSLICE_ADAPTER=str(device.adapter), PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])
    )
    assert done.stdout.splitlines() == [f"[3 1] {{}} [{str(tmp_path / 'dask')!r}]"], done.stderr


@on_one_adapter
@pytest.mark.slow  # another process, which imports Dask
def test_tensors_made_while_dask_is_imported_are_registered(device: wg.Device, tmp_path: Path) -> None:
    """A stand-in package that makes a tensor before it defines the names to register with."""
    package = tmp_path / "dask" / "array"
    package.mkdir(parents=True)
    (package.parent / "__init__.py").touch()
    half_imported = "import wgslice as wg\nwg.asarray([3, 1])\n"
    (package / "__init__.py").write_text(f"{half_imported}known = []\nimport dask.array.dispatch\n", "utf-8")
    (package / "chunk_types.py").write_text(
        "from dask.array import known\nregister_chunk_type = known.append\n", "utf-8"
    )
    (package / "dispatch.py").write_text(
        "from types import SimpleNamespace\nfrom dask.array import known\n"
        "to_numpy_dispatch = SimpleNamespace(register=lambda kind, _: known.append(kind))\n",
        "utf-8",
    )
    program = """
import dask.array
import wgslice as wg
print(dask.array.known)
for _ in range(2):
    wg.asarray([3, 1])[::-1]
print([kind is wg.Tensor for kind in dask.array.known])
"""
    done = run_python(
        program, WGSLICE_ADAPTER=str(device.adapter), PYTHONPATH=os.pathsep.join([str(tmp_path), *sys.path])
    )
    assert done.stdout.splitlines() == ["[]", "[True, True]"], done.stderr


def test_chunks_of_rank_0_are_known_as_tensors(device: wg.Device) -> None:
    array = numbered((6, 9), "uint8")
    x: Any = da.from_array(array, chunks=(2, 4)).map_blocks(wg.asarray)
    single, stacked = x[4, 3], da.stack([x[0, 0], x[-1, -1], x[4, 3]])
    for found, expected in ((single, array[4, 3]), (stacked, array[[0, -1, 4], [0, -1, 3]])):
        assert isinstance(found._meta, wg.Tensor)
        assert (found._meta.ndim, found._meta.dtype) == (found.ndim, array.dtype)
        check(found.compute(scheduler="synchronous"), np.asarray(expected))
        back = found.to_backend("numpy").compute(scheduler="synchronous")
        assert not isinstance(back, wg.Tensor)
        assert (back == expected).all()


def test_only_a_tensor_without_elements_is_summed(device: wg.Device) -> None:
    nothing: Any = wg.zeros((0, 3), "int16", device=device)
    check_same(nothing.sum().numpy(), np.zeros((), "int16"))
    for size in (1, 3):
        assert not hasattr(wg.zeros((size,), "int16", device=device), "sum")
    for arguments, options in (((0,), {}), ((None, "f4"), {}), ((), {"axis": 1}), ((), {"keepdims": True})):
        with pytest.raises(wg.ComputationRefused, match=r"^sum: tensors are moved, .*nothing is computed"):
            nothing.sum(*arguments, **options)


@pytest.mark.slow
@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="this system has no fork")
@on_one_adapter
def test_errors_in_forked_workers_name_a_remedy(device: wg.Device) -> None:
    program = """
import multiprocessing
import os
import sys
from concurrent.futures import ProcessPoolExecutor
import dask.array as da, numpy as np, wgslice as wg
x = da.from_array(np.arange(6), chunks=3).map_blocks(wg.asarray)
with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
    try:
        x.compute(scheduler="processes", pool=pool)
    except RuntimeError as error:
        print(error)
"""
    done = run_python(program, WGSLICE_ADAPTER=str(device.adapter))
    assert "forked child" in done.stdout, done.stderr
    assert "multiprocessing.context" in done.stdout


@on_the_cluster
@pytest.mark.slow
@on_one_adapter
def test_each_worker_has_the_device_that_its_variable_names(device: wg.Device, cluster: Client) -> None:
    names = cluster.run(lambda: str(wg.default_device().adapter)).values()
    assert len(names) == 2
    for wanted in ADAPTERS[:2]:
        assert any(wanted.lower() in name.lower() for name in names)


@pytest.mark.slow
@on_the_cluster
@on_one_adapter
def test_a_worker_that_dies_in_the_middle(device: wg.Device, cluster: Client, tmp_path: Path) -> None:
    """Dask computes the lost chunks again; the result is equal."""
    array = numbered((40, 60), "int16")
    x: Any = da.from_array(array, chunks=(10, 15)).map_blocks(wg.asarray)
    with cluster.as_current():
        held = x[::-1].persist()
        before = worker_pids(cluster)
        y = held.map_blocks(kill_the_first, str(tmp_path / "killed"), meta=held._meta)
        found = da.concatenate([y, held[:, ::-2]], axis=1).T.rechunk((11, 7)).compute()
        cluster.wait_for_workers(2)
        after = worker_pids(cluster)
    check(found, np.concatenate([array[::-1], array[::-1, ::-2]], axis=1).T)
    assert (tmp_path / "killed").exists()
    assert len(set(before) & set(after)) == 1


PLANE = (1024, 2048)


@pytest.mark.slow
@on_the_cluster
@on_one_adapter
def test_a_store_larger_than_the_limit(device: wg.Device, cluster: Client, tmp_path: Path) -> None:
    """Reversed, cropped and re-chunked into another store, by workers that Dask ends at their limit."""
    depth = LIMIT_MIB // 4 + 20
    plane = np.arange(PLANE[0] * PLANE[1], dtype=np.uint16).reshape(PLANE)
    store = zarr.create_array(
        tmp_path / "large.zarr",
        shape=(depth, *PLANE),
        chunks=(1, *PLANE),
        dtype=plane.dtype,
        compressors=None,
    )
    for z in range(depth):
        store[z] = plane + np.uint16(301 * z)
    assert store.nbytes > LIMIT_MIB * 2**20
    with cluster.as_current():
        pids = worker_pids(cluster)
        x = da.from_zarr(tmp_path / "large.zarr").map_blocks(wg.asarray)
        cut = x[:, ::-1, 64:-64].rechunk((4, 512, 1920))
        cut.map_blocks(np.asarray).to_zarr(tmp_path / "cut.zarr")
        assert worker_pids(cluster) == pids  # no worker died
    found: Any = zarr.open_array(tmp_path / "cut.zarr", mode="r")
    assert found.shape == (depth, PLANE[0], PLANE[1] - 128)
    assert found.chunks == (4, 512, 1920)
    for z in (0, 1, 3, 4, depth // 2, depth - 2, depth - 1):
        check_same(found[z], (plane + np.uint16(301 * z))[::-1, 64:-64].copy())

"""xarray's arrays of tensors: what xarray makes of NumPy's, elements, dimensions and coordinates."""

from __future__ import annotations

import pickle
import re
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from helpers import check_same, on_one_adapter
from moving import numbered
from numpy.typing import NDArray

import wgslice as wg

if find_spec("xarray"):  # these tests are collected without it too, and deselected or failed by their mark
    import xarray as xr

pytestmark = [pytest.mark.xarray, pytest.mark.usefixtures("default")]

DTYPES = ["bool", "uint8", "int16", "float16", "float32", "float64", "complex128"]
DIMS = ("z", "y", "x")
Move = Callable[[Any], Any]


def both(array: NDArray[Any]) -> tuple[Any, Any]:
    """A tensor and the array, with the same names and coordinates."""
    coordinates = {"z": np.arange(array.shape[0]) * 10, "y": np.linspace(0, 1, array.shape[1])}
    ours, theirs = (xr.DataArray(data, coordinates, DIMS, "v") for data in (wg.asarray(array), array))
    return ours, theirs


def check(found: Any, expected: Any) -> None:
    """Check that two objects are equal except for the device of their elements."""
    assert isinstance(found.data, wg.Tensor)
    check_same(found.data.numpy(), np.ascontiguousarray(expected.data).reshape(expected.shape))
    assert found.as_numpy().identical(expected)


def some_of(x: Any) -> Any:
    """A mask that NumPy computes."""
    return xr.DataArray(np.arange(x.size).reshape(x.shape) * 7 % 5 < 3, dims=x.dims)


MOVES: dict[str, Move] = {
    "isel slices": lambda x: x.isel(z=slice(None, None, -2), y=slice(1, None), x=0),
    "isel integers": lambda x: x.isel(z=0, y=-1),
    "isel lists": lambda x: x.isel(z=[-1, 0, 0], x=[0]),
    "isel names": lambda x: x.isel(y=xr.DataArray([0, 0], dims="p")),
    "sel": lambda x: x.sel(z=0, y=slice(0.2, None)),
    "keys": lambda x: x[..., ::-1],
    "thin": lambda x: x.thin(2),
    "transpose": lambda x: x.transpose("x", "z", "y"),
    "T": lambda x: x.T,
    "concat": lambda x: xr.concat([x, x.isel(y=slice(None, None, -1))], dim="y"),
    "concat anew": lambda x: xr.concat([x, x], dim="w"),
    "combine": lambda x: xr.combine_nested([[x, x], [x, x]], concat_dim=["z", "x"]),
    "pad a constant": lambda x: x.pad(z=(1, 2), x=1, constant_values=1),
    "pad edges": lambda x: x.pad(z=(2, 1), mode="edge"),
    "pad wrapped": lambda x: x.pad(y=1, mode="wrap"),
    "pad symmetric": lambda x: x.pad(x=(0, 1), mode="symmetric"),
    "roll": lambda x: x.roll(z=2, x=-1),
    "roll with coordinates": lambda x: x.roll(z=1, roll_coords=True),
    "shift": lambda x: x.shift(z=2, y=-1, fill_value=0),
    "shift beyond": lambda x: x.shift(x=99, fill_value=1),
    "stack": lambda x: x.stack(p=("z", "x")),
    "unstack": lambda x: x.stack(p=("z", "y")).unstack("p"),
    "expand_dims": lambda x: x.expand_dims(w=3),
    "squeeze": lambda x: x.isel(z=[0]).squeeze(),
    "sortby": lambda x: x.sortby("z", ascending=False),
    "broadcast": lambda x: x.isel(y=0).broadcast_like(x),
    "reindex": lambda x: x.reindex(z=[0, 0]),
    "construct": lambda x: x.coarsen(z=1).construct(z=("a", "b")),
    "windows": lambda x: x.rolling(y=3).construct("w", fill_value=0),
    "windows in two dimensions": lambda x: x.rolling(z=2, x=3, center=True).construct(
        z="v", x="w", stride=2, fill_value=0
    ),
    "where": lambda x: x.where(some_of(x), x.roll(z=1, x=1)),
    "where along a dimension": lambda x: x.where(some_of(x).isel(z=0, x=0), x[::-1].drop_vars("z").data),
    "where a number": lambda x: x.where(some_of(x), x.dtype.type(1)),
    "where, the function": lambda x: xr.where(some_of(x), x.dtype.type(1), x),
    "deep copy": lambda x: x.copy(deep=True),
    "pickle": lambda x: pickle.loads(pickle.dumps(x)),
    "chunks": lambda x: x.chunk(z=1).isel(y=slice(None, None, -1)).compute(scheduler="synchronous"),
}


@pytest.mark.parametrize("name", MOVES)
def test_results_equal_those_of_arrays(device: wg.Device, name: str) -> None:
    for number, shape in enumerate([(3, 4, 2), (1, 1, 1), (6, 2, 5), (2, 5, 1)]):
        x, expected = both(numbered(shape, DTYPES[(number + len(name)) % len(DTYPES)]))
        check(MOVES[name](x), MOVES[name](expected))


def test_floats_have_missing_values_of_their_own(device: wg.Device) -> None:
    for dtype in ("float16", "float32", "complex64"):
        x, expected = both(numbered((3, 4, 2), dtype))
        check(x.shift(z=1), expected.shift(z=1))
        check(x.pad(y=(1, 0)), expected.pad(y=(1, 0)))
        check(x.where(some_of(x)), expected.where(some_of(expected)))
        check(x.where(x.y > 0.5, drop=True), expected.where(expected.y > 0.5, drop=True))
        check(x.rolling(y=2).construct("w"), expected.rolling(y=2).construct("w"))


def test_parts_are_assigned(device: wg.Device) -> None:
    x, expected = both(numbered((3, 4, 2), "int16"))
    for each in (x, expected):
        each[{"z": 1}] = 7
        each.loc[{"z": 20}] = each.isel(z=0).drop_vars("z")
    check(x, expected)


@on_one_adapter
def test_operations_that_compute_are_refused(device: wg.Device) -> None:
    """The error names the operation, as the page says."""
    x, _ = both(numbered((3, 4, 2), "int16"))
    refused: dict[Callable[[], Any], str] = {
        (lambda: x + 1): r"Tensor \+ int: .*nothing is computed",
        (lambda: x.sum()): r"sum: .*nothing is computed",
        (lambda: x.isnull().any()): r"any: .*nothing is computed",
        (lambda: x.where(some_of(x))): r"astype: int16 to float\d+: nothing is converted on the GPU",
        (lambda: x.where(some_of(x), 1)): r"astype: int\d+ to int\d+: nothing is converted on the GPU",
        (lambda: x.shift(z=1)): r"astype: int16 to float\d+: nothing is converted on the GPU",
        (lambda: x.reindex(z=[0, 5])): r"logical_not: .*nothing is computed",
        (lambda: x.isel(z=xr.DataArray([0, 1], dims="p"), y=xr.DataArray([0, 1], dims="p"))): "Vectorized",
    }
    for call, words in refused.items():
        with pytest.raises((NotImplementedError, TypeError), match=words):
            call()


@on_one_adapter
def test_remedies_of_refused_operations_work(device: wg.Device) -> None:
    """On the array of xarray's or Dask's that the caller has, not only on the tensor inside."""
    x, expected = both(numbered((3, 4, 2), "int16"))
    for each in (x, x.chunk(z=1).data):
        with pytest.raises(wg.ComputationRefused, match=r"np\.asarray\(a\) for an xarray or Dask array a"):
            np.asarray(each + 1)
        check_same(np.asarray(each), expected.data)
    remedies: dict[str, tuple[Move, Move]] = {
        "shift(..., fill_value=0)": (lambda a: a.shift(z=1), lambda a: a.shift(z=1, fill_value=0)),
        "pad(..., constant_values=0)": (lambda a: a.pad(x=1), lambda a: a.pad(x=1, constant_values=0)),
        "where(mask, x.dtype.type(0))": (
            lambda a: a.where(some_of(a)),
            lambda a: a.where(some_of(a), a.dtype.type(0)),
        ),
    }
    for words, (refused, remedy) in remedies.items():
        with pytest.raises(wg.ComputationRefused, match=f"NaN needs floats.*{re.escape(words)}"):
            refused(x)
        check(remedy(x), remedy(expected))


COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equals": lambda x, y: x.equals(y),
    "equals an array": lambda x, y: x.equals(y.as_numpy()),
    "equals a tensor": lambda x, y: x.as_numpy().equals(y),
    "broadcast_equals": lambda x, y: x.broadcast_equals(y),
    "identical": lambda x, y: x.identical(y),
    "datasets": lambda x, y: x.to_dataset().equals(y.to_dataset()),
    "merge, no_conflicts": lambda x, y: xr.merge([x, y], compat="no_conflicts"),
    "merge, equals": lambda x, y: xr.merge([x, y], compat="equals"),
    "merge, identical": lambda x, y: xr.merge([x, y], compat="identical"),
    "coordinates": lambda x, y: x[0, 0].assign_coords(c=x[0, 0]).equals(x[0, 0].assign_coords(c=y[0, 0])),
}


@on_one_adapter
@pytest.mark.parametrize("name", COMPARISONS)
@pytest.mark.parametrize("change", [0, 1], ids=["equal", "unequal"])
def test_comparison_raises_and_is_never_false(device: wg.Device, name: str, change: int) -> None:
    array = numbered((3, 4, 2), "int16")
    (x, _), (y, _) = both(array), both(array + change)
    with pytest.raises(wg.ComputationRefused, match="nothing is computed"):
        COMPARISONS[name](x, y)


@on_one_adapter
def test_shapes_and_identity_are_compared(device: wg.Device) -> None:
    x, _ = both(numbered((3, 4, 2), "int16"))
    assert x.equals(x.copy(deep=False))
    assert not x.equals(x[1:])


@on_one_adapter
@pytest.mark.filterwarnings("ignore::zarr.errors.ZarrUserWarning", "ignore::FutureWarning")
def test_stores_get_what_they_get_of_arrays(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    """Bytes of every chunk; NaNs among the elements."""
    zarr = pytest.importorskip("zarr", reason="xarray's stores are Zarr's")
    config = pytest.importorskip("dask", reason="xarray's chunks are Dask's").config.config
    monkeypatch.setitem(config, "scheduler", "synchronous")  # which writes parts of one chunk in turn
    for dtype in [*DTYPES, "datetime64[ns]"]:
        array = numbered((3, 4, 2), dtype)
        if array.dtype.kind == "f":
            array[1, 2] = np.nan
        stores: list[dict[str, Any]] = [{}, {}, {}, {}]
        x, expected = both(array)
        for store, each in zip(stores, (x, expected, x.chunk(z=2), expected.chunk(z=2)), strict=True):
            held = zarr.storage.MemoryStore(store)
            each.to_dataset().to_zarr(held, encoding={"v": {"chunks": (2, 4, 2)}}, consolidated=False)
            part = each[:2].to_dataset().drop_vars("y")
            part.to_zarr(held, region={"z": slice(1, 3)}, safe_chunks=False, consolidated=False)
            each.to_dataset().to_zarr(held, append_dim="z", safe_chunks=False, consolidated=False)
            store_bytes = {key: value.to_bytes() for key, value in store.items()}
            store.clear()
            store.update(store_bytes)
        assert stores[0] == stores[1]
        assert stores[2] == stores[3]
        assert len(stores[0]) > 5


@on_one_adapter
def test_encodings_that_compute_are_refused(device: wg.Device) -> None:
    x, _ = both(numbered((3, 4, 2), "float32"))
    for encoding in ({"scale_factor": 2.0}, {"dtype": "float64"}, {"_FillValue": 3.0}):
        store: dict[str, Any] = {}
        with pytest.raises(wg.ComputationRefused, match=r"computed|converted"):
            x.to_dataset().to_zarr(store, encoding={"v": encoding})
        assert not [key for key in store if key.startswith("v/c")]

"""Views: permuted, broadcast, reshaped and squeezed as NumPy does it, without GPU work; read and written."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import pytest
from helpers import check_same, elements_of, on_one_adapter, random_array, view_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices

import wgslice as wg
import wgslice.array_api as xp
from wgslice.layout import Layout
from wgslice.layout_rules import reshaped

DTYPES = ["uint8", "float16", "int32", "float64", "complex128"]


def factored(size: int) -> st.SearchStrategy[tuple[int, ...]]:
    """Shapes of `size` elements, some of their sizes 1."""

    def split(numbers: list[int]) -> tuple[int, ...]:
        left, sizes = size, []
        for number in numbers:
            divisors = [d for d in range(1, max(left, 1) + 1) if left % d == 0]
            sizes.append(divisors[number % len(divisors)])
            left //= sizes[-1]
        return (*sizes, left)

    return st.lists(st.integers(0, 30), max_size=6).map(split)


@st.composite
def rearrangements(draw: st.DrawFn, array: Any, x: wg.Tensor) -> tuple[Any, wg.Tensor]:
    """One step away from a NumPy view and our view of the same elements."""
    kind = draw(st.sampled_from(["index", "permute", "T", "broadcast", "squeeze", "reshape", "reverse"]))
    if kind == "index":
        key = draw(basic_indices(array.shape, allow_newaxis=array.ndim < 8, max_dims=8))
        return view_of(array, key), x[key]
    if kind == "permute":
        axes = draw(st.permutations(range(array.ndim)))
        return array.transpose(axes), wg.permute(x, [axis - array.ndim * (axis % 2) for axis in axes])
    if kind == "T":
        return array.T, x.T
    if kind == "squeeze":
        return array.squeeze(), wg.squeeze(x) if draw(st.booleans()) else x.squeeze()
    if kind == "reverse":
        return array[(..., *[slice(None, None, -1)] * array.ndim)], wg.reverse(x)
    if kind == "reshape":
        shape = draw(factored(array.size)) if array.size else array.shape[::-1]
        return reshape_like_numpy(array, x, shape)
    sizes = [draw(st.sampled_from([1, 2, 3])) if size == 1 else size for size in array.shape]
    shape = (*draw(st.lists(st.integers(0, 3), max_size=min(2, 8 - array.ndim))), *sizes)
    return np.broadcast_to(array, shape), wg.broadcast_to(x, shape)


def reshape_like_numpy(array: Any, x: wg.Tensor, shape: tuple[int, ...]) -> tuple[Any, wg.Tensor]:
    """Both reshaped; or, where it needs a copy, as they are."""
    view = array.view()
    try:
        view.shape = shape  # how NumPy reshapes without a copy
    except AttributeError:
        with pytest.raises(ValueError, match=r"^reshape: .*copy\(\) the tensor first"):
            wg.reshape(x, shape)
        return array, x
    return view, x.reshape(*shape)


@pytest.mark.filterwarnings("ignore:Setting the shape:DeprecationWarning")
@given(data=st.data(), shape=array_shapes(min_dims=0, max_dims=8, min_side=0, max_side=4))
def test_any_chain_of_views_is_numpys(device: wg.Device, data: st.DataObject, shape: tuple[int, ...]) -> None:
    original = random_array(shape, data.draw(st.sampled_from(DTYPES)), data.draw(st.integers(0, 99)))
    x = wg.asarray(original, device=device)
    array, view = original, x
    for _ in range(data.draw(st.integers(1, 4))):
        array, view = data.draw(rearrangements(array, view))
    assert view.buffer is x.buffer
    assert view.shape == array.shape
    assert view.base is (None if view is x else x)
    for flag in ("c_contiguous", "f_contiguous", "writeable", "forc", "fnc"):
        assert getattr(view.flags, flag) == getattr(array.flags, flag)
    if array.size <= 5000:
        check_same(view.numpy(), np.ascontiguousarray(array).reshape(array.shape))
        if array.size and view.flags.writeable:  # as a target too
            value = random_array(array.shape, array.dtype.name, 5)
            start = offset_in(original, array)
            writable = np.ndarray(array.shape, array.dtype, original, start, array.strides)
            writable[...] = value
            view[...] = wg.asarray(value, device=device)
            check_same(x.numpy(), original)


def offset_in(base: Any, view: Any) -> int:
    return int(view.__array_interface__["data"][0] - base.__array_interface__["data"][0])


@given(array_shapes(min_dims=0, max_dims=4, min_side=1, max_side=6), st.data())
def test_reshaped_layouts_list_the_same_places(sizes: tuple[int, ...], data: st.DataObject) -> None:
    """Possible if and only if some strides say it: tried against all that could."""
    strides = data.draw(st.lists(st.integers(-7, 24), min_size=len(sizes), max_size=len(sizes)))
    layout = Layout.of(sizes, strides, 200)
    wanted = data.draw(factored(layout.size))
    places = elements_of(layout)
    grid = places.reshape(wanted)
    steps = [int(grid.take(size > 1, axis).flat[0] - grid.flat[0]) for axis, size in enumerate(wanted)]
    candidate = Layout.of(wanted, steps, 200)
    result = reshaped(layout, wanted)
    if np.array_equal(elements_of(candidate), places):
        assert result == candidate
    else:
        assert result is None


def test_views_cost_no_gpu_work(device: wg.Device, monkeypatch: pytest.MonkeyPatch) -> None:
    x = wg.asarray(np.zeros((2, 1, 3)), device=device)
    monkeypatch.setattr(type(device.wgpu_device), "create_command_encoder", None)
    monkeypatch.setattr(type(device.wgpu_device), "create_buffer", None)
    assert wg.permute(x, (2, 0, 1)).shape == (3, 2, 1)
    assert wg.broadcast_to(x, (4, 2, 5, 3)).shape == (4, 2, 5, 3)
    assert (x.T.shape, x.reshape(-1).shape, x.squeeze().shape) == ((3, 1, 2), (6,), (2, 3))
    assert x[:, 0, None].shape == (2, 1, 3)


@pytest.mark.parametrize(
    ("dtype", "shape", "axes"),
    [
        *(("uint8", (rows, 4096), (1, 0)) for rows in (256, 258, 260, 512)),
        *(("float16", (rows, 2048), (1, 0)) for rows in (258, 383, 384)),
        *(("int32", (rows, 1024), (1, 0)) for rows in (256, 257, 320)),
        *(("float64", (rows, 512), (1, 0)) for rows in (257, 288)),
        ("complex128", (257, 256), (1, 0)),
        ("int32", (20, 20, 512), (2, 1, 0)),
        ("float16", (3, 20, 20, 1024), (0, 3, 2, 1)),
    ],
)
def test_long_stride_rows_a_power_of_two_apart_are_copied(
    device: wg.Device, dtype: str, shape: tuple[int, ...], axes: tuple[int, ...]
) -> None:
    """Into rows of a larger tensor, of which nothing else is written, forwards and backwards."""
    array = random_array(shape, dtype)
    x = wg.asarray(array, device=device)
    check_same(wg.permute(x, axes).copy().numpy(), array.transpose(axes).copy())
    check_same(wg.reverse(wg.permute(x, axes)).copy().numpy(), np.flip(array.transpose(axes)).copy())
    sizes = [shape[axis] + 4 for axis in axes]
    around = random_array(tuple(sizes), dtype, 1)
    y = wg.asarray(around, device=device)
    inside = tuple(slice(4, None) for _ in sizes)
    y[inside] = wg.permute(x, axes)
    around[inside] = array.transpose(axes)
    check_same(y.numpy(), around)


def test_permute_refuses_invalid_orders(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((3, 4)), device=device)
    for axes, error, message in [
        ((0,), ValueError, r"permute: axes = \(0,\): must name each of the 2 dimensions once"),
        ((0, 0), ValueError, r"permute: axes = \(0, 0\): an axis is repeated"),
        ((0, 2), np.exceptions.AxisError, "permute: axis 2 is out of bounds for array of dimension 2"),
        ((0, 1.0), TypeError, r"permute: axes\[1\] = 1.0: must be an integer"),
    ]:
        with pytest.raises(error, match=message):
            wg.permute(x, cast("Any", axes))
    with pytest.raises(TypeError, match="permute: x is of type ndarray: must be a Tensor"):
        wg.permute(cast("Any", np.zeros(3)), 0)


@pytest.mark.parametrize("shape", [(4,), (2, 4), (3, 2), (), (2, 3, 1), (-1, 3), (2, 0)])
def test_broadcasts_that_do_not_fit_are_refused(device: wg.Device, shape: tuple[int, ...]) -> None:
    x = wg.asarray(np.zeros((2, 3)), device=device)
    with pytest.raises(ValueError, match=r"^broadcast_to: sh"):
        wg.broadcast_to(x, shape)


@pytest.mark.parametrize("shape", [(4,), (-1, 4), (-1, -1), (2, -2), (1,) * 9, (0, -1), ()])
def test_shapes_of_other_sizes_are_refused(device: wg.Device, shape: tuple[int, ...]) -> None:
    array = np.zeros((2, 3))
    x = wg.asarray(array, device=device)
    if len(shape) < 9 and -2 not in shape:
        with pytest.raises(ValueError, match=r"reshape|unknown"):
            array.reshape(shape)
    for reshape in (wg.reshape, wg.Tensor.reshape):
        with pytest.raises(ValueError, match=r"^reshape: "):
            reshape(x, shape)
    with pytest.raises(TypeError, match=r"^reshape: shape\[1\] = 1.5"):
        x.reshape(4, cast("Any", 1.5))
    with pytest.raises(TypeError, match=r"^reshape: x is of type list"):
        wg.reshape(cast("Any", [1]), 1)


def test_reshape_copies_where_there_is_no_view(device: wg.Device) -> None:
    """As NumPy's method does, and `wg.reshape` does not."""
    array = random_array((4, 6), "int16", 3)
    x = wg.asarray(array, device=device)
    for copied in (x.T.reshape(-1), x.T.reshape(3, 8), x[:, 1:].reshape((2, -1))):
        assert copied.buffer is not x.buffer
        assert copied.is_packed
    check_same(x.T.reshape(3, -1).numpy(), array.T.reshape(3, -1))
    check_same(x[::-1, 1:].reshape(5, 4).numpy(), array[::-1, 1:].reshape(5, 4))
    assert x[::2].reshape(2, 3, -1).buffer is x.buffer


def test_reshape_computes_the_size_of_minus_one(device: wg.Device) -> None:
    x = wg.asarray(np.arange(24), device=device)
    assert x.reshape(2, -1, 3).shape == (2, 4, 3)
    assert wg.reshape(x, -1).shape == (24,)
    assert wg.reshape(x[:0], (0, 5)).shape == (0, 5)
    assert x[:0].reshape(3, -1).shape == (3, 0)
    assert x[4].reshape(1, 1).shape == (1, 1)


def test_squeeze_drops_only_ones(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((1, 3, 1)), device=device)
    assert (x.squeeze().shape, x.squeeze(0).shape, wg.squeeze(x, (0, -1)).shape) == ((3,), (3, 1), (3,))
    with pytest.raises(ValueError, match="squeeze: axis 1 has size 3: must have size 1"):
        x.squeeze(1)
    with pytest.raises(np.exceptions.AxisError, match="squeeze: axis 3 is out of bounds"):
        wg.squeeze(x, 3)


def test_views_that_repeat_elements_are_read_only(device: wg.Device) -> None:
    """As NumPy's are, also where nothing is repeated in the end; copies and other views are not."""
    x, y = (wg.asarray(np.zeros(shape), device=device) for shape in ((1, 3), (2, 1)))
    repeated = [wg.broadcast_to(x, (2, 3)), wg.broadcast_to(x, x.shape), *xp.broadcast_arrays(x, y)]
    repeated += [*xp.meshgrid(x[0], y[:, 0]), cast("Any", np).broadcast_to(x, (2, 3))]
    repeated += [xp.lib.stride_tricks.sliding_window_view(x, 2, 1)]
    for view in repeated:
        assert not view.flags.writeable
        assert not view.view(np.int64)[0].T.flags.writeable
        assert view.copy().flags.writeable
    assert all(same.flags.writeable for same in (x, x[0], x.T, *xp.broadcast_arrays(x, x)))


@on_one_adapter
def test_flags_are_items_by_numpys_names(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((2, 3)), device=device)
    for tensor, array in ((x, x.numpy()), (x.T, x.numpy().T), (x[:, 1:], x.numpy()[:, 1:])):
        for name in ("C_CONTIGUOUS", "F_CONTIGUOUS", "OWNDATA", "WRITEABLE", "C", "F", "O", "W"):
            assert tensor.flags[name] == array.flags[name]
    with pytest.raises(KeyError, match="unknown flag 'c_contiguous': must be one of C_CONTIGUOUS, C, F_"):
        x.flags["c_contiguous"]


@on_one_adapter
def test_copies_have_no_base(device: wg.Device) -> None:
    x = wg.asarray(np.zeros((2, 3)), device=device)
    view = x[1:].T
    assert view.base is x
    for copied in (view.copy(), view.copy("F"), view.flatten("F"), x.T.reshape(-1), x[[0]], wg.tile(x, 2)):
        assert copied.base is None
        assert copied.flags.owndata
    assert x.view("int64").base is x

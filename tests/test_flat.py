"""`x.flat`, and what NumPy writes by numbers in row-major order: put, place, putmask, fill_diagonal, fill."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pytest
from helpers import DTYPES, check_same, on_one_adapter, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import Placed, placed
from strategies import nested_strides

import wgslice as wg
from wgslice.layout import Layout
from wgslice.plans.kernels import OF_INDICES

numpy: Any = np  # whose stubs know nothing of tensors


@st.composite
def targets(draw: st.DrawFn, device: wg.Device, least: int = 0, smallest: int = 0) -> Placed:
    """Any view of any element width, and bytes around it."""
    sizes = draw(array_shapes(min_dims=least, max_dims=4, min_side=smallest, max_side=5))
    strides = draw(st.one_of(st.just(Layout.packed(sizes).strides), nested_strides(sizes, broadcast=False)))
    dtype = DTYPES[draw(st.sampled_from([1, 2, 4, 8, 16]))]
    both = placed(device, Layout.of(sizes, strides, draw(st.integers(0, 5))), dtype)
    turns = [slice(None, None, draw(st.sampled_from([1, 1, -1]))) for _ in sizes]
    order = draw(st.permutations(range(len(sizes))))
    array, x = (side[(..., *turns)].transpose(order) for side in (both.array, both.tensor))
    return both._replace(array=array, tensor=x)


class Values(NamedTuple):
    """The same values for an array and for a tensor, which has them on the host or on its device."""

    array: Any
    ours: Any


@st.composite
def values_for(draw: st.DrawFn, both: Placed, counts: tuple[int, ...] = (1, 1, 2, 3, 7, 300)) -> Values:
    """One value or several, to be repeated or cut; or the target's own elements, all or the first ones."""
    if len(counts) > 1 and both.array.size and draw(st.integers(0, 9)) == 0:
        part: Any = (..., slice(draw(st.sampled_from([1, 2, None])))) if both.array.ndim else ...
        return Values(both.array[part].T.copy(), both.tensor[part].T)
    count = draw(st.sampled_from(counts))
    array = random_bytes(count * both.array.itemsize, 7).view(both.array.dtype)
    array = array.reshape(draw(st.sampled_from([(count,), (1, count), (count, 1)])))
    if count == 1 and draw(st.booleans()):
        array = array.reshape(())
    return Values(array, draw(st.sampled_from([array, wg.asarray(array, device=both.tensor.device)])))


@st.composite
def numbers(draw: st.DrawFn, size: int) -> Any:
    """Indices into one dimension; slices, arrays of one or two dimensions, and masks."""
    kind = draw(st.sampled_from(["all", "slice", "indices", "mask"]))
    if kind == "all":
        return draw(st.sampled_from([..., slice(None)]))
    if kind == "slice":
        ends = st.none() | st.integers(-size - 2, size + 2)
        return slice(draw(ends), draw(ends), draw(st.none() | st.integers(-4, 4).filter(bool)))
    if kind == "mask" or not size:
        return np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    found = draw(st.lists(st.integers(-size, size - 1), min_size=2, max_size=8))
    return np.array(found[: len(found) // 2 * 2]).reshape(draw(st.sampled_from([(-1,), (2, -1)])))


def held(data: st.DataObject, device: wg.Device, key: Any) -> Any:
    """An array as it is, or on the device."""
    on_device = isinstance(key, np.ndarray) and data.draw(st.booleans())
    return wg.asarray(key, device=device) if on_device else key


@pytest.mark.every_adapter
@given(data=st.data())
def test_flat_is_written_as_numpy_does(device: wg.Device, data: st.DataObject) -> None:
    both = data.draw(targets(device))
    key = data.draw(numbers(both.array.size))
    values, ours = data.draw(values_for(both))
    both.array.flat[key] = values
    both.tensor.flat[held(data, device, key)] = ours
    both.check()


@pytest.mark.every_adapter
@given(data=st.data())
def test_flat_is_read_as_numpy_does(device: wg.Device, data: st.DataObject) -> None:
    """Always copied."""
    array, x = data.draw(targets(device))[2:]
    key = data.draw(numbers(array.size))
    found = x.flat[held(data, device, key)]
    check_same(found.numpy(), array.flat[key])
    assert found.buffer is not x.buffer
    assert len(x.flat) == len(array.flat)
    if array.size:
        number = data.draw(st.integers(-array.size, array.size - 1))
        found = x.flat[number]
        check_same(found.numpy(), np.asarray(array.flat[number]))
        assert found.buffer is not x.buffer


@given(data=st.data())
def test_flat_yields_views_of_elements(device: wg.Device, data: st.DataObject) -> None:
    array, x = data.draw(targets(device))[2:]
    elements = x.flat
    assert iter(elements) is elements
    assert elements.base is x
    found = list(elements)
    assert elements.index == len(found) == array.size
    for view, element in list(zip(found, array.flat, strict=True))[:3]:
        check_same(view.numpy(), np.asarray(element))
        assert view.buffer is x.buffer
    check_same(elements.copy().numpy(), array.flat.copy())
    check_same(np.asarray(elements), np.asarray(array.flat))


@pytest.mark.every_adapter
@given(data=st.data(), mode=st.sampled_from(["raise", "wrap", "clip"]))
def test_put_writes_what_numpy_does(device: wg.Device, data: st.DataObject, mode: Any) -> None:
    both = data.draw(targets(device, smallest=1))
    reach = 1 if mode == "raise" else 3
    ends = st.integers(-both.array.size * reach, both.array.size * reach - 1)
    indices = np.array(data.draw(st.lists(ends, max_size=9)), np.int64)
    values, ours = data.draw(values_for(both))
    np.put(both.array, indices, values, mode)
    given_indices = held(data, device, indices)
    if data.draw(st.booleans()):
        both.tensor.put(given_indices, ours, mode)
    else:
        numpy.put(both.tensor, given_indices, ours, mode=mode)
    both.check()


# Limits by which calls need several dispatches, or other kernels.
LIMITS: dict[str, dict[str, Any]] = {
    "usual": {},
    "narrow": {"binding_nbytes": 1024},
    "disabled": {"disabled": frozenset(OF_INDICES)},
}


@contextmanager
def limited(device: wg.Device, name: str) -> Iterator[None]:
    """Other limits of a device, until the block ends."""
    usual = device.limits
    device.update_limits(lambda _: replace(usual, **LIMITS[name]))
    try:
        yield
    finally:
        device.update_limits(lambda _: usual)


@pytest.mark.parametrize("limits", LIMITS)
@given(data=st.data())
def test_the_last_of_repeated_values_stays(device: wg.Device, limits: str, data: st.DataObject) -> None:
    """Of fewer values in a tensor than indices, which name elements several times, and of the true ones."""
    both = data.draw(targets(device, smallest=1))
    size = both.array.size
    array = random_bytes(both.array.itemsize * data.draw(st.integers(2, 6)), 3).view(both.array.dtype)
    turned = slice(None, None, data.draw(st.sampled_from([1, -1])))
    values = Values(array[turned], wg.asarray(array, device=device)[turned])
    indices = np.array(data.draw(st.lists(st.integers(-size, size - 1), min_size=4, max_size=40)), np.int64)
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    calls: list[tuple[Any, Any]] = [(np.put, indices), (np.place, mask), (np.putmask, ~mask)]
    for function, key in calls:
        function(both.array, key, values.array)
        ours = held(data, device, key)
        with limited(device, limits):
            function(both.tensor, ours, values.ours)
        both.check()


@pytest.mark.every_adapter
@pytest.mark.parametrize("function", [np.place, np.putmask])
@given(data=st.data())
def test_masks_write_what_numpy_does(device: wg.Device, function: Any, data: st.DataObject) -> None:
    both = data.draw(targets(device))
    size = both.array.size
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    mask = mask.reshape(data.draw(st.sampled_from([both.array.shape, (size,), (1, size)])))
    values, ours = data.draw(values_for(both))
    function(both.array, mask, values)
    function(both.tensor, held(data, device, mask), ours)
    both.check()


@pytest.mark.every_adapter
@given(data=st.data(), wrap=st.booleans())
def test_diagonals_are_filled_as_numpy_does(device: wg.Device, data: st.DataObject, wrap: bool) -> None:
    both = data.draw(targets(device, least=2))
    side = min(both.array.shape)
    if both.array.ndim > 2:
        corner = (slice(side),) * both.array.ndim
        both = both._replace(array=both.array[corner], tensor=both.tensor[corner])
    values, ours = data.draw(values_for(both))
    np.fill_diagonal(both.array, values, wrap)
    numpy.fill_diagonal(both.tensor, ours, wrap=wrap)
    both.check()


@given(data=st.data())
def test_fill_writes_one_number(device: wg.Device, data: st.DataObject) -> None:
    both = data.draw(targets(device))
    values, ours = data.draw(values_for(both, (1,)))
    both.array.fill(values.reshape(-1)[0])
    both.tensor.fill(ours.reshape(-1)[0] if values.size else ours)
    both.check()


Case = Callable[[Any, Any], Any]
# Of an array x of shape (3, 4), and a function that makes an array or a tensor. Nothing is written if NumPy
# raises, and the kind of exception is NumPy's.
CASES: list[Case] = [
    lambda x, a: x.flat[12],
    lambda x, a: x.flat[-13],
    lambda x, a: x.flat[[0, 12]],
    lambda x, a: x.flat[0, 1],
    lambda x, a: x.flat[None],
    lambda x, a: x.flat["a"],
    lambda x, a: x.flat[np.ones(11, bool)],
    lambda x, a: x.flat[np.ones((3, 4), bool)],
    lambda x, a: x.flat[np.array([1.5])],
    lambda x, a: x.flat[(slice(2, 5),)],
    lambda x, a: x.flat[()],
    lambda x, a: x.flat[np.int8(3)],
    lambda x, a: x.flat[[]],
    lambda x, a: x.flat.__setitem__(12, 1),
    lambda x, a: x.flat.__setitem__([0, -13], 1),
    lambda x, a: x.flat.__setitem__(None, 1),
    lambda x, a: x.flat.__setitem__(0, [1, 2]),
    lambda x, a: x.flat.__setitem__(slice(None), "a"),
    lambda x, a: x.flat.__setitem__(slice(None), 2**70),
    lambda x, a: x.flat.__setitem__(slice(None), [1.7, -2]),
    lambda x, a: x.flat.__setitem__(slice(None), []),
    lambda x, a: setattr(x, "flat", [7, 8]),
    lambda x, a: np.put(x, [0, 99], [70, 71]),
    lambda x, a: np.put(x, [-13], 1),
    lambda x, a: np.put(x, [1, 2], []),
    lambda x, a: np.put(x, 2, 5.7),
    lambda x, a: np.put(x, np.array([1.5]), 1),
    lambda x, a: numpy.put(x, [1], 1, mode="nope"),
    lambda x, a: np.put(x[:0], [0], 1, "wrap"),
    lambda x, a: np.put(x[:0], [0], 1, "clip"),
    lambda x, a: np.put(x[:0], [0], 1),
    lambda x, a: np.put(x[:0], np.zeros(0, int), 1, "clip"),
    lambda x, a: np.put(x[0, 0, ...], [0, -1], [1, 2]),
    lambda x, a: np.put(np.broadcast_to(x, (2, 3, 4)), [], 1),
    lambda x, a: np.place(x, a(np.ones(5, bool)), 1),
    lambda x, a: np.place(x, a(np.ones((3, 4), bool)), []),
    lambda x, a: np.place(x, a(np.zeros((3, 4), bool)), []),
    lambda x, a: np.place(x, np.arange(12) % 3, [7, 8]),
    lambda x, a: np.place(x, np.arange(12) % 3, np.array([1.5])),
    lambda x, a: np.place(np.broadcast_to(x, (2, 3, 4)), np.ones(24, int), 1),
    lambda x, a: np.putmask(x, a(np.ones(5, bool)), 1),
    lambda x, a: np.putmask(x, a(np.ones((3, 4), bool)), []),
    lambda x, a: numpy.putmask(x, np.arange(12) % 3, [7, 8]),
    lambda x, a: np.putmask(x, [True] * 12, np.array([1.5])),
    lambda x, a: np.putmask(x, a(np.eye(3, 4, dtype=bool)), x[::-1]),
    lambda x, a: numpy.putmask(np.broadcast_to(x, (2, 3, 4)), np.ones(24), 1),
    lambda x, a: np.fill_diagonal(x[0], 1),
    lambda x, a: np.fill_diagonal(np.atleast_3d(x), 1),
    lambda x, a: np.fill_diagonal(x[:, :1], 7, wrap=True),
    lambda x, a: np.fill_diagonal(np.broadcast_to(x, (3, 4)), 1),
    lambda x, a: np.fill_diagonal(x, "x"),
    lambda x, a: np.fill_diagonal(x, []),
    lambda x, a: x.fill([1]),
    lambda x, a: x.fill(a(np.ones(2, "int16"))),
    lambda x, a: x.fill(2.7),
    lambda x, a: x.fill("x"),
    lambda x, a: x.fill(2**70),
    lambda x, a: np.broadcast_to(x, (3, 4)).fill(1),
]


@on_one_adapter
@pytest.mark.parametrize("number", range(len(CASES)))
def test_corner_cases_are_numpys(device: wg.Device, number: int) -> None:
    """Elements, or the same kind of exception, after which nothing has been written."""
    before = np.arange(12, dtype="int16").reshape(3, 4)
    x, array = wg.asarray(before, device=device), before.copy()
    error: Any = None
    try:
        expected = CASES[number](array, np.asarray)
    except (IndexError, TypeError, ValueError, OverflowError) as raised:
        error = raised
    if error is not None:
        with pytest.raises((IndexError, TypeError, ValueError, OverflowError)) as ours:
            CASES[number](x, lambda given: wg.asarray(given, device=device))
        assert isinstance(error, ours.type)
        check_same(x.numpy(), before)
        return
    found = CASES[number](x, lambda given: wg.asarray(given, device=device))
    check_same(x.numpy(), array)
    if expected is not None:
        check_same(found.numpy(), np.asarray(expected))


@on_one_adapter
def test_nothing_is_converted_on_the_gpu(device: wg.Device) -> None:
    x: Any = wg.zeros((3, 4), np.float32, device=device)
    ones = wg.ones((3, 4), np.int64, device=device)
    calls: list[Callable[[], Any]] = [
        lambda: x.flat.__setitem__(slice(None), ones),
        lambda: numpy.put(x, [0], ones),
        lambda: numpy.place(x, np.ones((3, 4)), ones),
        lambda: numpy.putmask(x, np.ones((3, 4)), ones),
        lambda: np.fill_diagonal(x, ones),
        lambda: x.fill(ones[0, 0]),
    ]
    for call in calls:
        with pytest.raises(TypeError, match="output has dtype float32, the input int64: must be equal"):
            call()
    for function in (numpy.place, numpy.putmask):
        with pytest.raises(
            wg.ComputationRefused, match="mask has dtype int64: must be bool, since comparing"
        ):
            function(x, ones, 1)
    check_same(x.numpy(), np.zeros((3, 4), np.float32))


@on_one_adapter
def test_methods_are_numpys_functions(device: wg.Device) -> None:
    array = np.arange(12).reshape(3, 4)
    x = wg.asarray(array, device=device)
    check_same(x.take([2, 0], axis=1).numpy(), array.take([2, 0], axis=1))
    check_same(x.take([-1, 99], mode="clip").numpy(), array.take([-1, 99], mode="clip"))
    check_same(x.repeat([1, 0, 2], axis=0).numpy(), array.repeat([1, 0, 2], axis=0))
    check_same(x.repeat(2).numpy(), array.repeat(2))
    check_same(x.diagonal(1).numpy(), array.diagonal(1))
    check_same(x.T.diagonal(-2, axis1=1, axis2=0).numpy(), array.T.diagonal(-2, axis1=1, axis2=0))
    assert x.diagonal().base is x
    with pytest.raises(IndexError, match="index 99 is out of bounds for axis 1 with size 4"):
        x.take([99], 1)
    with pytest.raises(ValueError, match=r"^repeat: repeats = .* must not be negative"):
        x.repeat(-1)


@on_one_adapter
def test_calls_are_one_submission(device: wg.Device) -> None:
    """Of tensors that have a flat view, with as many values as are written, or one."""
    x: Any = wg.zeros((30, 40), np.float32, device=device)
    values = wg.ones((30, 40), np.float32, device=device)
    mask: Any = wg.zeros((30, 40), bool, device=device)
    calls: list[tuple[Callable[..., Any], *tuple[Any, ...]]] = [
        (lambda: x.flat[::3],),
        (lambda: x.flat.__setitem__(slice(None, None, 3), values),),
        (lambda: x.T.flat.__setitem__([5, 1], 7),),
        (lambda: x[:, 1:].T.flat.__setitem__(..., values),),
        (numpy.put, x, wg.asarray([3, 1, 2], device=device), values),
        (numpy.putmask, x, mask, values),
        (numpy.place, x, mask, 7),
        (numpy.fill_diagonal, x, values),
        (numpy.fill_diagonal, x.T, 7, True),
        (x.fill, values[0, 0]),
        (x.flatten, "F"),
    ]
    for function, *arguments in calls:
        assert len(wg.explain(function, *arguments).submissions) == 1


@on_one_adapter
@pytest.mark.parametrize("count", [3, 7])
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_fewer_values_are_repeated_in_one_submission(device: wg.Device, dtype: str, count: int) -> None:
    """Of 600 elements that are written, which 3 values divide and 7 do not."""
    x: Any = wg.zeros((30, 40), dtype, device=device)
    square: Any = wg.zeros((99, 99), dtype, device=device)
    indices = np.random.default_rng(0).integers(0, 1200, 600)
    mask = np.arange(1200) % 2 == 0
    on_device = [wg.asarray(each, device=device) for each in (indices, mask)]
    values, own = wg.ones(count, dtype, device=device), x[1, 5 : 5 + count]
    set_flat = type(x.flat).__setitem__
    # Plans: of the copy that repeats the values, if there is one, and of the one that writes them. Strided
    # elements of 1 byte are written sooner from such a copy.
    strided = 1 if dtype == "uint8" else count // 4
    calls: list[tuple[int, Callable[..., Any], *tuple[Any, ...]]] = [
        (count // 4, set_flat, x.flat, slice(600), values),
        (strided, set_flat, x.flat, slice(0, None, 2), values),
        (count // 4, set_flat, x.T.flat, slice(0, None, 2), values),
        (count // 4, set_flat, x.flat, indices, values),
        (count // 4, set_flat, x.T.flat, indices, values),
        (count // 4, set_flat, x.flat, on_device[0], values),
        (count // 4, set_flat, x.flat, mask, values),
        (count // 4, numpy.put, x, indices, values),
        (count // 4, numpy.put, x, on_device[0], values),
        (strided, numpy.fill_diagonal, square, values),
        (1, set_flat, x.T.flat, ..., values),
        (1, numpy.place, x, mask, values),
        (1, numpy.place, x.T, mask, values),
        (1, numpy.putmask, x, mask, values),
        (1, numpy.putmask, x.T, mask, values),
        (1, numpy.putmask, x, on_device[1], values),
        (1, numpy.put, x, indices, own),
        (1, numpy.put, x, on_device[0], own),
        (1, numpy.putmask, x, mask, own),
        (1, set_flat, x.flat, slice(0, None, 2), own),
    ]
    for copies, function, *arguments in calls:
        submissions = wg.explain(function, *arguments).submissions
        assert [len(each.plans) for each in submissions] == [1 + copies]
    # Into a tensor without a flat view, by a tensor of indices: it is copied, written, and copied back.
    assert len(wg.explain(numpy.put, x.T, on_device[0], values).submissions) == 3


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32"])
@pytest.mark.parametrize("count", [3, 7])
def test_place_repeats_values_for_large_masks(device: wg.Device, dtype: str, count: int) -> None:
    both = placed(device, Layout.packed((100, 101)), dtype)
    mask = np.random.default_rng(1).random((100, 101)) < 0.6
    array = random_bytes(count * both.array.itemsize, 5).view(dtype)
    np.place(both.array, mask, array)
    numpy.place(both.tensor, mask, wg.asarray(array, device=device))
    both.check()

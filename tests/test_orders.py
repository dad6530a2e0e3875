"""Orders of elements, in and out: NumPy's C, F, A and K, and `copy=`, in methods and functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from helpers import check_same, on_one_adapter
from hypothesis import given
from hypothesis import strategies as st
from moving import Pair, numbered, pairs, shares

import wgslice as wg

numpy: Any = np  # whose stubs know nothing of tensors
ORDERS: list[Any] = ["C", "F", "A", "K", "c", "f", None]


@st.composite
def repeated(draw: st.DrawFn, pair: Pair) -> Pair:
    """The same elements, or repeated along new and old dimensions, which have stride 0 then."""
    shape = [size * draw(st.sampled_from([1, 1, 3])) if size == 1 else size for size in pair.array.shape]
    shape = [*draw(st.sampled_from([[], [], [2], [2, 3]])), *shape]
    order = draw(st.permutations(range(len(shape))))
    turned = np.broadcast_to(pair.array, shape).transpose(order)
    return Pair(wg.permute(wg.broadcast_to(pair.tensor, shape), axes=order), turned)


@pytest.mark.every_adapter
@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_elements_are_read_in_an_order(device: wg.Device, data: st.DataObject, order: Any) -> None:
    x, array = data.draw(repeated(data.draw(pairs(device))))
    check_same(x.flatten(order).numpy(), array.flatten(order))
    check_same(x.ravel(order).numpy(), array.ravel(order))
    check_same(numpy.ravel(x, order=order).numpy(), np.ravel(array, order=order))
    flat, expected = x.ravel(order), array.ravel(order)
    assert flat.is_packed
    assert flat.flags.writeable == expected.flags.writeable
    assert shares(flat, x) == np.may_share_memory(expected, array) or not array.size
    if order != "K":
        shape = data.draw(st.sampled_from([(-1,), (array.size, 1), array.shape[::-1], (1, *array.shape)]))
        if -1 not in shape or array.size:
            check_same(x.reshape(shape, order=order).numpy(), array.reshape(shape, order=order))
            check_same(numpy.reshape(x, shape, order=order).numpy(), np.reshape(array, shape, order=order))


@given(data=st.data(), order=st.sampled_from(ORDERS))
def test_copies_are_contiguous_in_their_order(device: wg.Device, data: st.DataObject, order: Any) -> None:
    x, array = data.draw(pairs(device))
    columns = order in ("F", "f") or (order == "A" and array.flags.fnc)
    for copied in (
        x.copy(order),
        x.astype(x.dtype, order=order),
        numpy.copy(x, order),
        copied_like(x, order),
    ):
        check_same(copied.numpy(), array)
        assert copied.buffer is not x.buffer
        assert (copied.T if columns else copied).is_packed
    for made, theirs in (
        (numpy.zeros_like(x, order=order), np.zeros_like(array)),
        (numpy.ones_like(x, "u1", order=order), np.ones_like(array, "u1")),
        (numpy.full_like(x, array, order=order), array),
        (numpy.full_like(x, x, order=order), array),
    ):
        check_same(made.numpy(), np.ascontiguousarray(theirs).reshape(array.shape))
        assert (made.T if columns else made).is_packed


def copied_like(x: Any, order: Any) -> Any:
    return numpy.array(x, order=order, like=x)


@given(data=st.data(), order=st.sampled_from(["C", "F", "A", "K"]))
def test_no_copy_where_the_order_is_met(device: wg.Device, data: st.DataObject, order: Any) -> None:
    x, drawn = data.draw(pairs(device))
    array = np.asarray(drawn)
    found = x.astype(x.dtype, copy=False, order=order)
    assert (found is x) is (array.astype(array.dtype, copy=False, order=order) is array)
    check_same(found.numpy(), array)
    found = numpy.asarray(x, order=order, like=x)
    assert (found is x) is (np.asarray(array, order=order) is array)
    check_same(found.numpy(), array)


@on_one_adapter
def test_uploads_in_an_order(device: wg.Device) -> None:
    array = numbered((3, 4), "int16")
    x: Any = wg.asarray(array, device=device)
    for made in (
        numpy.asarray(array, order="F", like=x),
        numpy.array(array.tolist(), "int16", order="f", like=x),
        numpy.asanyarray(x, order="F", like=x),
    ):
        check_same(made.numpy(), array)
        assert made.T.is_packed
        assert made.device is device
    assert numpy.array(array, order="F", ndmin=3, like=x).shape == (1, 3, 4)
    assert numpy.zeros_like(x, order="F", shape=(2, 5)).strides == (1, 2)


@on_one_adapter
def test_a_reshape_copies_as_its_argument_says(device: wg.Device) -> None:
    x = wg.asarray(numbered((4, 6), "int16"), device=device)
    assert x.reshape(2, 12, copy=False).buffer is x.buffer
    assert x.reshape(2, 12, copy=True).buffer is not x.buffer
    assert x.T.reshape(2, 12, order="F", copy=False).buffer is x.buffer
    with pytest.raises(ValueError, match=r"^reshape: shape \(6, 4\) with strides .* cannot be viewed as"):
        x.T.reshape(2, 12, copy=False)
    with pytest.raises(ValueError, match=r"^reshape: shape \(4, 6\) with strides .* cannot be viewed as"):
        x.reshape(2, 12, order="F", copy=False)
    with pytest.raises(ValueError, match="copy=False: elements have to be copied to order F"):
        numpy.asarray(x, order="F", copy=False, like=x)


Case = Callable[[Any], Any]
REFUSED: list[Case] = [
    lambda x: x.copy("Q"),
    lambda x: x.copy(3),
    lambda x: x.flatten(order="rows"),
    lambda x: x.ravel(7),
    lambda x: x.reshape(-1, order="K"),
    lambda x: x.astype(x.dtype, order="Z"),
    lambda x: x.astype("float32", casting="no"),
    lambda x: x.astype(x.dtype, casting="sometimes"),
]


@on_one_adapter
@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refusals_are_numpys(device: wg.Device, number: int) -> None:
    array = numbered((2, 3), "float64")
    with pytest.raises((TypeError, ValueError)) as expected:
        REFUSED[number](array)
    with pytest.raises(expected.type):
        REFUSED[number](wg.asarray(array, device=device))

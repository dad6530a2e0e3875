"""NumPy's basic indexing: the same selection, or the same exception in the same words."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from helpers import elements_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, basic_indices
from index_keys import outcome

from wgslice.dialects.basic import numpy_index
from wgslice.layout import Layout


def check_same_index(sizes: tuple[int, ...], key: Any) -> None:
    """The same elements as NumPy selects, or NumPy's exception."""
    array = np.arange(np.prod(sizes, dtype=int)).reshape(sizes)
    expected = outcome(lambda: np.asarray(array[key]))
    if isinstance(expected, str):
        found = outcome(lambda: numpy_index(sizes, key))
        assert found == expected or found.startswith(f"{expected}; ")  # a remedy
        return
    selected = Layout.packed(sizes).select(numpy_index(sizes, key).items)
    assert selected.sizes == expected.shape
    assert elements_of(selected).tolist() == expected.ravel().tolist()


@given(st.data(), array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=5))
def test_any_basic_index(data: st.DataObject, sizes: tuple[int, ...]) -> None:
    check_same_index(sizes, data.draw(basic_indices(sizes, allow_newaxis=True, max_dims=8)))


bounds = st.none() | st.integers(-8, 8) | st.sampled_from([-(10**30), 10**30])
parts = st.one_of(
    st.integers(-7, 7),
    st.builds(slice, bounds, bounds, bounds),
    st.just(Ellipsis),
    st.none(),
    st.integers(-7, 7).map(np.int64),
)


@given(array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=5), st.lists(parts, max_size=5).map(tuple))
def test_any_index_right_or_wrong(sizes: tuple[int, ...], key: Any) -> None:
    check_same_index(sizes, key)


def test_every_slice_of_a_short_axis() -> None:
    values = [None, *range(-5, 6)]
    for start in values:
        for stop in values:
            for step in values:
                check_same_index((4,), slice(start, stop, step))


@pytest.mark.parametrize("key", [slice(1.0, 2), slice("a"), (slice(None), slice(0, 1, 2.5))])
def test_slices_of_no_integers(key: Any) -> None:
    check_same_index((3, 4), key)


@pytest.mark.parametrize(
    "key", [1.0, "a", [0, 1], np.array([0, 1]), True, np.bool_(False), np.array(True), (0, [1])]
)
def test_advanced_and_invalid_indices_are_refused(key: Any) -> None:
    with pytest.raises(IndexError, match=r"^only integers, slices .* are valid indices here; axis \d got"):
        numpy_index((3, 4), key)


def test_ranks_stop_at_eight() -> None:
    assert len(numpy_index((2, 3), (None,) * 6).shape) == 8
    with pytest.raises(IndexError, match=r"within \[0, 8\], indexing result would have 9"):
        numpy_index((2, 3), (None,) * 7)


def test_objects_with_dunder_index_are_indices() -> None:
    class Third:
        def __index__(self) -> int:
            return 2

    assert operator.index(Third()) == 2
    assert numpy_index((3,), Third()).items == (2,)
    assert numpy_index((3,), np.array(2)).items == (2,)


@pytest.mark.parametrize("index", [2**31, 2**63 - 1, 2**63, 2**64, -(2**63), -(2**63) - 1])
def test_an_index_of_any_length_is_out_of_bounds(index: int) -> None:
    """NumPy's words vary with the length, and its class too: OverflowError at 2**63."""
    for key in (index, (0, index), (..., index), (index, np.s_[:])):
        with pytest.raises(IndexError, match=rf"index {index} is out of bounds for axis . with size"):
            numpy_index((3, 4), key)
    beyond = slice(-index, None) if index > 0 else slice(index, None)
    assert numpy_index((3, 4), beyond).items == (range(3), range(4))

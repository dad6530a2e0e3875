"""NumPy's advanced indexing as integers: the same elements, or the same exception in the same words."""

from __future__ import annotations

import re
from math import prod
from typing import Any

import numpy as np
import pytest
from helpers import elements_of
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes
from index_keys import any_keys, outcome
from numpy.typing import NDArray

from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.dialects.basic import Selection, is_plain
from wgslice.layout import Layout
from wgslice.plans.facade import IndexedCopy, indexed_copy, windows_at

I32_MAX = 2**31 - 1


def elements(sizes: tuple[int, ...], selected: Selection | AdvancedSelection) -> NDArray[np.int64]:
    """The elements of a packed tensor that are selected, by the windows that a plan copies."""
    tensor = Layout.packed(sizes)
    if isinstance(selected, Selection):
        layout = tensor.select(selected.items)
        return elements_of(layout).reshape(layout.sizes)
    found = np.full(selected.shape, -1)
    if found.size:
        copy = copy_of(tensor, selected)
        found.reshape(-1)[elements_of(copy.other)] = sources_of(copy)
    return found


def copy_of(tensor: Layout, selected: AdvancedSelection) -> IndexedCopy:
    """Return the gather of all elements that are selected, counted from the start of the tensor."""
    view = tensor.select(selected.items)
    copy = indexed_copy(selected, view, Layout.packed(selected.shape), reads=True)
    assert copy is not None
    return copy.shifted(view.offset, 0)


def sources_of(copy: IndexedCopy) -> NDArray[np.int64]:
    """Return the element that each one of a gather is copied from, by its tables."""
    found = elements_of(copy.indexed)
    for table in copy.tables:
        assert copy.host is not None
        indices = copy.host.values[elements_of(Layout.of(copy.sizes, table.strides, table.offset))]
        assert (indices >= 0).all()
        assert (indices < table.extent).all()
        found = found + indices.astype(np.int64) * table.step
    return found


def check_same_index(sizes: tuple[int, ...], key: Any) -> None:
    """The same elements as NumPy selects, or NumPy's exception."""
    array = np.arange(prod(sizes)).reshape(sizes)
    expected = outcome(lambda: np.asarray(array[key]))
    found = outcome(lambda: elements(sizes, any_index(sizes, key)))
    if isinstance(expected, str):
        assert found == expected or found.startswith(f"{expected}; ")  # a remedy
    else:
        assert found.shape == expected.shape
        assert found.tolist() == expected.tolist()


@given(st.data(), array_shapes(min_dims=1, max_dims=8, min_side=0, max_side=4))
def test_any_index(data: st.DataObject, sizes: tuple[int, ...]) -> None:
    key = data.draw(any_keys(sizes))
    rank = np.ndim(outcome(lambda: np.empty(sizes)[key]))  # 0 of an exception's words
    if rank > max(8, len(sizes)):
        with pytest.raises(IndexError, match=rf"within \[0, 8\], indexing result would have {rank}"):
            any_index(sizes, key)
    else:
        check_same_index(sizes, key)


@pytest.mark.parametrize(
    "key",
    [
        np.s_[:, [0, 1], :, [2, 3]],
        np.s_[:, 0, :, [2, 3]],
        np.s_[:, [0, 1], ..., 3],
        np.s_[[0, 1], :, [2, 3]],
        np.s_[0, :, [2, 3]],
        np.s_[[0, 1], ..., 3],
        np.s_[:, [0, 1], [2, 3]],
        np.s_[:, 1, [2, 3]],
        np.s_[[0, 1], [2, 3], :],
        np.s_[[0, 1], None, [2, 3]],
        np.s_[..., [0, 1], 2],
    ],
    ids=repr,
)
def test_a_slice_between_arrays_puts_index_dimensions_first(key: Any) -> None:
    check_same_index((3, 4, 5, 6), key)


def id_of(key: Any) -> str:
    """The name of a test of a key, the same in every process."""
    return re.sub(r" at 0x\w+", "", repr(key))


@pytest.mark.parametrize(
    "key",
    [
        1.0,
        "a",
        b"a",
        {1},
        object(),
        np.float64(1),
        np.array(1.0),
        np.array([1.0]),
        np.zeros(0),
        np.array([], object),
        np.datetime64(1, "s"),
        [1.0],
        ["a"],
        [None],
        [slice(1)],
        [[1], [1, 2]],
        [3],
        [-4],
        (slice(None), [0, 4]),
        (Ellipsis, [[0], [-5]]),
        [10**30],
        ([0, 1], [0, 1, 2]),
        (True, [0, 1], [[0, 1, 2]], None),
        ([0], [0], [0]),
        ([0], 0, None, 0),
        (Ellipsis, [0], Ellipsis),
        [True, False],
        (slice(None), np.ones(3, bool)),
        np.ones((3, 3), bool),
        np.ones((3, 4, 1), bool),
        (np.ones((3, 4), bool), 0),
        (False, [0, 1]),
        (np.array([True, True, False]), [0, 1, 2]),
        (np.ones((3, 4), bool), [0, 1]),
        (np.arange(12).reshape(3, 4) > 5, True, False, None, []),
    ],
    ids=id_of,
)
def test_an_index_that_is_wrong(key: Any) -> None:
    assert isinstance(outcome(lambda: np.zeros((3, 4))[key]), str)
    check_same_index((3, 4), key)


@pytest.mark.parametrize(
    "key",
    [
        [],
        [[]],
        range(2),
        [True, 2],
        [True, False, True],
        [np.True_, False, True],
        True,
        np.array(False),
        (True, False),
        np.array([1], ">i4"),
        np.ma.array([0, 1]),
        memoryview(b"\x01\x02"),
        bytearray(b"\x01"),
        (np.array(1), [0, 1]),
        (slice(None), [0, 3], Ellipsis),
        ([0], Ellipsis, [1]),
        ([5], []),
    ],
    ids=id_of,
)
def test_objects_that_numpy_accepts_as_an_index(key: Any) -> None:
    check_same_index((3, 4), key)


def test_an_empty_dimension_has_no_index() -> None:
    for sizes, key in [((0, 3), [5]), ((3, 0), [5]), ((3, 0), [2]), ((0, 3), []), ((0,), np.zeros(0, bool))]:
        check_same_index(sizes, key)


def test_indices_beyond_64_bits_are_out_of_bounds() -> None:
    with pytest.raises(IndexError, match="index 9223372036854775807 is out of bounds for axis 1 with size 4"):
        any_index((3, 4), (slice(None), np.array([2**64 - 1], np.uint64)))


def test_plain_keys_are_pythons_own() -> None:
    for key in (0, slice(None), None, Ellipsis, (), (0, None), (slice(1), ...)):
        assert is_plain(key)
    for other in ("a", np.int64(0), [0], (0, True), (np.array(0),), 1.0, True):
        assert not is_plain(other)


def gathered(tensor: Layout, key: Any) -> IndexedCopy:
    selected = any_index(tensor.sizes, key)
    assert isinstance(selected, AdvancedSelection)
    return copy_of(tensor, selected)


def test_indexed_dimensions_become_one_and_the_others_merge() -> None:
    """The windows have one column of offsets that says something, whichever dimensions are indexed."""
    for tensor, key, expected, offsets in [
        (Layout.packed((9, 8, 7, 3)), [4, 2, 7], Layout.packed((8, 168)), [[4, 0], [2, 0], [7, 0]]),
        (Layout.packed((9, 8)), ([4, 2, 5], [-1, 0, 0]), Layout.packed((41,)), [[39], [16], [40]]),
        (
            Layout.packed((9, 8, 7)),
            ([4, 2, 0], slice(None), [6, 0, 0]),
            Layout((7, 3, 8), (1, -2 * 56, 7), 4 * 56),  # with one for the equal steps
            [[6, 0, 0], [0, 1, 0], [0, 2, 0]],
        ),
        (Layout.packed((2, 3)), [[True, True, False], [False, False, True]], None, [[0], [1], [5]]),
    ]:
        windows, found, _, numbers, _ = windows_at(gathered(tensor, key)) or pytest.fail("no windows")
        assert found == (expected or Layout.packed((6,)))
        assert windows.offsets is not None
        assert windows.offsets.tolist() == offsets
        assert numbers.tolist() == [0, 1, 2]
    copy = gathered(Layout((4, 6), (-8, -2), 50), ([3, 1, 1], [0, 5, 0]))
    assert sources_of(copy).tolist() == [50 - 24, 50 - 8 - 10, 50 - 8]


def test_a_dimension_beyond_an_i32_is_refused() -> None:
    match = "a dimension of 2147483648 elements: arrays of indices take at most 2147483647 of them"
    with pytest.raises(ValueError, match=match):
        gathered(Layout.packed((2**31,)), [0])


def test_mask_of_dimensions_that_do_not_coalesce_is_split() -> None:
    tensor = Layout((3, 4), (1, 2**28), 0)
    mask = np.zeros((3, 4), bool)
    mask[2, 1] = mask[0, 3] = mask[0, 0] = True
    assert sources_of(gathered(tensor, mask)).tolist() == [0, 3 * 2**28, 2 + 2**28]


def test_device_resident_indices_depend_on_shape_only() -> None:
    key = DeviceIndices((2, 1), "held"), slice(None), [0, 1, 2]
    selected = any_index((5, 4, 3), key)
    assert isinstance(selected, AdvancedSelection)
    assert selected.shape == (2, 3, 4)
    held = any_index((5, 4, 3), (DeviceIndices((2, 1), "held"), slice(None), DeviceIndices((3,), "held")))
    assert isinstance(held, AdvancedSelection)
    copy = indexed_copy(held, Layout.packed((5, 4, 3)), Layout.packed((2, 3, 4)), reads=True)
    assert copy is not None
    assert [table.extent for table in copy.tables] == [5, 3]  # each clamped on its own
    with pytest.raises(IndexError, match="axis 1 has size 0: no index is within its bounds"):
        any_index((5, 0), (slice(None), DeviceIndices((2,), "held")))
    with pytest.raises(IndexError, match="could not be broadcast together with shapes"):
        any_index((5, 4), (DeviceIndices((2,), "held"), [0, 1, 2]))

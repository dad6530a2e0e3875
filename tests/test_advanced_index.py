"""NumPy's advanced indexing as integers: the same elements, or the same exception in the same words."""

from __future__ import annotations

import re
from dataclasses import replace
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

import wgslice as wg
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.dialects.basic import Selection, is_plain
from wgslice.layout import Layout
from wgslice.plans.facade import IndexedWindows, indexed_windows

I32_MAX = 2**31 - 1


def elements(sizes: tuple[int, ...], selected: Selection | AdvancedSelection) -> NDArray[np.int64]:
    """The elements of a packed tensor that are selected, by the windows that a plan copies."""
    tensor = Layout.packed(sizes)
    if isinstance(selected, Selection):
        layout = tensor.select(selected.items)
        return elements_of(layout).reshape(layout.sizes)
    result = Layout.packed(selected.shape)
    found = np.full(result.sizes, -1)
    if result.size:
        windows = indexed_windows(selected, tensor, result, reads=True)
        assert windows is not None
        found.reshape(-1)[targets_of(windows)] = sources_of(windows)
    return found


def targets_of(found: IndexedWindows) -> NDArray[np.int64]:
    return elements_of(found.elements)


def sources_of(found: IndexedWindows) -> NDArray[np.int64]:
    """Return the element offsets of all windows, computed from the window offsets alone."""
    windows = found.windows(range(found.count))
    box = elements_of(Layout.of(windows.extents, found.tensor.strides, found.tensor.offset))
    assert windows.offsets is not None
    begins = windows.offsets.astype(np.int64) @ np.asarray(found.tensor.strides, np.int64)
    assert (windows.offsets >= 0).all()
    assert (windows.offsets + windows.extents <= found.tensor.sizes).all()
    return (begins[:, None] + box[None]).reshape(-1)


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


def windows_of(tensor: Layout, key: Any) -> IndexedWindows:
    selected = any_index(tensor.sizes, key)
    assert isinstance(selected, AdvancedSelection)
    found = indexed_windows(selected, tensor, Layout.packed(selected.shape), reads=True)
    assert found is not None
    return found


def test_indexed_dimensions_become_one_and_the_others_merge() -> None:
    """A table of offsets has one column that says something, whichever dimensions are indexed."""
    images = windows_of(Layout.packed((9, 8, 7, 3)), [4, 2])
    assert images.tensor == Layout.packed((9, 168))
    assert images.offsets.tolist() == [[4, 0], [2, 0]]
    points = windows_of(Layout.packed((9, 8)), ([4, 2], [-1, 0]))
    assert points.tensor == Layout.packed((72,))
    assert points.offsets.tolist() == [[39], [16]]
    apart = windows_of(Layout.packed((9, 8, 7)), ([4, 2], slice(None), [6, 0]))
    assert apart.tensor == Layout((8 * 56 + 7, 8), (1, 7), 0)
    assert apart.offsets.tolist() == [[4 * 56 + 6, 0], [2 * 56, 0]]
    mask = windows_of(Layout.packed((2, 3)), [[True, False, True], [False, False, True]])
    assert mask.offsets.tolist() == [[0], [2], [5]]
    backwards = windows_of(Layout((4, 6), (-8, -2), 50), ([3, 1], [0, 5]))
    assert backwards.tensor == Layout((18,), (2,), 50 - 24 - 10)
    assert sources_of(backwards).tolist() == [50 - 24, 50 - 8 - 10]


def test_dimensions_beyond_an_i32_do_not_coalesce() -> None:
    large = windows_of(Layout.packed((2**16, 2**16)), ([3, 1], [-1, 0]))
    assert large.tensor.sizes == (2**16, 2**16)
    assert large.offsets.tolist() == [[3, 2**16 - 1], [1, 0]]
    below = windows_of(Layout((2, 9), (I32_MAX - 9, 1), 0), ([1], [8]))
    assert below.tensor.sizes == (I32_MAX,)
    beyond = windows_of(Layout((2, 9), (I32_MAX - 8, 1), 0), ([1], [8]))
    assert beyond.tensor.sizes == (2, 9)
    with pytest.raises(
        ValueError, match="a dimension of 2147483648 elements: arrays of indices take at most"
    ):
        windows_of(Layout.packed((2**31,)), [0])


def test_mask_of_dimensions_that_do_not_coalesce_is_split() -> None:
    tensor = Layout((3, 4), (1, 2**30), 0)
    mask = np.zeros((3, 4), bool)
    mask[2, 1] = mask[0, 3] = True
    found = windows_of(tensor, mask)
    assert found.tensor == tensor
    assert found.offsets.tolist() == [[0, 3], [2, 1]]


def test_too_many_dimensions_that_do_not_merge() -> None:
    tensor = Layout((2,) * 9, tuple(3**axis for axis in range(9)), 0)  # of windows of rank 8
    with pytest.raises(ValueError, match=r"do not merge: arrays of indices take at most 8 .*copy\(\) it"):
        windows_of(tensor, [0, 1])
    assert windows_of(tensor, ([0], [1])).rank == 8


def test_more_windows_than_a_binding_holds_are_split(device: wg.Device) -> None:
    found = windows_of(Layout.packed((100,)), np.arange(10))
    assert list(found.pieces(device.limits, 4)) == [range(10)]
    small = replace(device.limits, binding_nbytes=24)  # three windows of 8 bytes, though one takes 4
    pieces = list(found.pieces(small, 4))
    assert pieces == [range(3), range(3, 6), range(6, 9), range(9, 10)]
    taken = [found.windows(piece).offsets for piece in pieces]
    assert np.concatenate([offsets for offsets in taken if offsets is not None]).ravel().tolist() == [
        *range(10)
    ]
    assert [elements_of(found.elements_of(piece)).tolist() for piece in pieces][1] == [3, 4, 5]


def test_device_resident_indices_depend_on_shape_only() -> None:
    key = DeviceIndices((2, 1), "held"), slice(None), [0, 1, 2]
    selected = any_index((5, 4, 3), key)
    assert isinstance(selected, AdvancedSelection)
    assert selected.shape == (2, 3, 4)
    found = indexed_windows(selected, Layout.packed((5, 4, 3)), Layout.packed((2, 3, 4)), reads=True)
    assert found is not None
    assert [dimension.size for dimension in found.dimensions] == [5, 3]  # each clamped on its own
    with pytest.raises(IndexError, match="axis 1 has size 0: no index is within its bounds"):
        any_index((5, 0), (slice(None), DeviceIndices((2,), "held")))
    with pytest.raises(IndexError, match="could not be broadcast together with shapes"):
        any_index((5, 4), (DeviceIndices((2,), "held"), [0, 1, 2]))

"""Views of layouts: the elements that NumPy's functions of arrays give, and their refusals."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, cast

import numpy as np
import pytest
from helpers import elements_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from wgslice.layout import Layout, check_disjoint
from wgslice.layout_rules import (
    broadcast,
    flipped,
    parts,
    permuted,
    repeated_to,
    squeezed,
    unsqueezed,
    without_leading_ones,
)

layouts = st.integers(0, 5).flatmap(
    lambda rank: st.builds(
        Layout.of,
        st.tuples(*[st.integers(0, 4)] * rank),
        st.tuples(*[st.integers(-13, 13)] * rank),
        st.integers(0, 100),
    )
)


def grid_of(layout: Layout) -> NDArray[np.int64]:
    """The place of each index, in an array of the layout's sizes."""
    return elements_of(layout).reshape(layout.sizes)


def check_grid(layout: Layout, expected: NDArray[np.int64]) -> None:
    """The same elements in the same order and shape, in canonical form."""
    assert layout.sizes == expected.shape
    assert np.array_equal(grid_of(layout), expected)
    assert layout == Layout.of(layout.sizes, layout.strides, layout.offset)


@st.composite
def signed_axes(draw: st.DrawFn, rank: int) -> tuple[int, ...]:
    """Some of the dimensions in any order, counted from either end."""
    axes = draw(st.permutations(range(rank)))[: draw(st.integers(0, rank))]
    return tuple(axis - rank if draw(st.booleans()) else axis for axis in axes)


@given(layouts, st.data())
def test_flipped_is_numpys_flip(layout: Layout, data: st.DataObject) -> None:
    axes = data.draw(st.none() | signed_axes(layout.rank))
    check_grid(flipped(layout, axes), np.flip(grid_of(layout), axes))
    assert flipped(flipped(layout, axes), axes) == layout


@given(layouts, st.data())
def test_permuted_is_numpys_transpose(layout: Layout, data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(layout.rank)))
    axes = [axis - layout.rank * (axis % 2) for axis in order]
    check_grid(permuted(layout, axes), grid_of(layout).transpose(order))
    assert permuted(permuted(layout, axes), np.argsort(order)) == layout


@given(layouts, st.data())
def test_squeezed_is_numpys_squeeze_and_unsqueezed_undoes_it(layout: Layout, data: st.DataObject) -> None:
    ones = [axis for axis, size in enumerate(layout.sizes) if size == 1]
    axes = data.draw(st.none() | st.lists(st.sampled_from(ones), unique=True)) if ones else None
    dropped = ones if axes is None else axes
    check_grid(squeezed(layout, axes), np.squeeze(grid_of(layout), None if axes is None else tuple(axes)))
    assert unsqueezed(squeezed(layout, axes), dropped) == layout


@given(layouts, st.data())
def test_unsqueezed_is_numpys_expand_dims(layout: Layout, data: st.DataObject) -> None:
    rank = layout.rank + data.draw(st.integers(0, 3))
    added = data.draw(st.permutations(range(rank)))[: rank - layout.rank]
    axes = tuple(axis - rank * (axis % 2) for axis in added)
    check_grid(unsqueezed(layout, axes), np.expand_dims(grid_of(layout), axes))


@given(layouts, st.data())
def test_repeated_to_is_numpys_broadcast_to(layout: Layout, data: st.DataObject) -> None:
    sizes = data.draw(st.lists(st.integers(0, 4), max_size=8).map(tuple))
    if data.draw(st.booleans()):  # any sizes rarely fit
        own = [data.draw(st.integers(0, 3)) if size == 1 else size for size in layout.sizes]
        sizes = (*sizes[: 8 - layout.rank], *own)
    try:
        expected = np.broadcast_to(grid_of(layout), sizes)
    except ValueError:
        assert broadcast(layout, sizes) is None
        with pytest.raises(ValueError, match="does not broadcast to"):
            repeated_to(layout, sizes)
    else:
        check_grid(repeated_to(layout, sizes), expected)


@given(layouts, st.data())
def test_parts_are_numpys_split(layout: Layout, data: st.DataObject) -> None:
    if not layout.rank:
        return
    axis = data.draw(st.integers(0, layout.rank - 1))
    size = layout.sizes[axis]
    ends = sorted(data.draw(st.lists(st.integers(0, size), max_size=3)))
    sizes = [end - begin for begin, end in itertools.pairwise([0, *ends, size])]
    expected = np.split(grid_of(layout), ends, axis)
    for part, array in zip(parts(layout, axis, tuple(sizes)), expected, strict=True):
        check_grid(part, array)


@given(layouts, st.integers(0, 6))
def test_leading_ones_are_dropped_only_beyond_a_rank(layout: Layout, most_rank: int) -> None:
    beyond = max(layout.rank - most_rank, 0)
    kept = layout.sizes[beyond:] if set(layout.sizes[:beyond]) <= {1} else layout.sizes
    check_grid(without_leading_ones(layout, most_rank), grid_of(layout).reshape(kept))


LAYOUT = Layout.packed((3, 1, 4))


@pytest.mark.parametrize("rearranged", [flipped, permuted, squeezed])
def test_axes_that_are_none_are_refused(rearranged: Callable[..., Layout]) -> None:
    name = "axis" if rearranged is squeezed else "axes"
    for axes, error, message in [
        ((1, -2), ValueError, rf"^{name} = \(1, -2\): an axis is repeated$"),
        ((0, 3, 1), AxisError, "^axis 3 is out of bounds for array of dimension 3$"),
        ((-4,), AxisError, "^axis -4 is out of bounds for array of dimension 3$"),
        ((0, 1.0, 2), TypeError, rf"^{name}\[1\] = 1.0: must be an integer, not float$"),
    ]:
        with pytest.raises(error, match=message):
            rearranged(LAYOUT, cast("Any", axes))


def test_refusals_of_their_own() -> None:
    for axes in ((), (0,), (2, 0)):
        with pytest.raises(ValueError, match=r"^axes = \(.*\): must name each of the 3 dimensions once$"):
            permuted(LAYOUT, axes)
    for axis in (2, (1, 2), -1):
        with pytest.raises(ValueError, match=r"^axis 2 has size 4: must have size 1$"):
            squeezed(LAYOUT, axis)
    with pytest.raises(
        ValueError, match=r"^axes = \(0, 1, 2, 3, 4, 5\): the result would have rank 9, must be at most 8$"
    ):
        unsqueezed(LAYOUT, tuple(range(6)))
    for axes in ((0, 0), (1, -4)):
        with pytest.raises(ValueError, match=r"an axis is repeated$"):
            unsqueezed(LAYOUT, axes)
    with pytest.raises(AxisError, match="axis 5 is out of bounds for array of dimension 5"):
        unsqueezed(LAYOUT, (0, 5))


@pytest.mark.parametrize(
    ("sizes", "message"),
    [
        ((3, 4), r"^shape \(3, 1, 4\) does not broadcast to \(3, 4\): its rank must be at most 2$"),
        ((3, 2, 5), "does not broadcast .*: its dimension 2 has size 4, must be 1 or 5$"),
        ((2, 2, 4), "does not broadcast .*: its dimension 0 has size 3, must be 1 or 2$"),
        ((1,) * 9, r"^shape \(1, .*\) has rank 9: the rank must be 0 to 8$"),
        ((-1, 1, 4), r"^shape\[0\] = -1: must be an integer from"),
    ],
)
def test_repetitions_that_do_not_fit_are_refused(sizes: tuple[int, ...], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        repeated_to(LAYOUT, sizes)


def test_an_output_is_refused_where_two_elements_share_bytes() -> None:
    check_disjoint(LAYOUT)
    check_disjoint(Layout.of((2, 3), (3, 2)))  # interleaved, and apart
    for layout in (repeated_to(LAYOUT, (3, 2, 4)), Layout.of((3, 4), (3, 2))):
        with pytest.raises(ValueError, match=r"^output sizes \(3, .*two elements share bytes"):
            check_disjoint(layout)

"""Views of layouts: the elements that NumPy's functions of arrays give, and their refusals."""

from __future__ import annotations

import numpy as np
import pytest
from helpers import elements_of
from hypothesis import given
from hypothesis import strategies as st
from numpy.exceptions import AxisError
from numpy.typing import NDArray

from wgslice.layout import Layout, check_disjoint
from wgslice.layout_rules import (
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


@given(layouts, st.integers(0, 6))
def test_leading_ones_are_dropped_only_beyond_a_rank(layout: Layout, most_rank: int) -> None:
    beyond = max(layout.rank - most_rank, 0)
    kept = layout.sizes[beyond:] if set(layout.sizes[:beyond]) <= {1} else layout.sizes
    check_grid(without_leading_ones(layout, most_rank), grid_of(layout).reshape(kept))


LAYOUT = Layout.packed((3, 1, 4))


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

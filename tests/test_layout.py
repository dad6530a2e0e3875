"""Layouts: one canonical form, overlap decided exactly, coalescing that changes nothing."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from helpers import elements_of, packed_strides
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import Case, cases, distinct

from wgslice.layout import Layout, coalesce

small_layouts = st.integers(0, 4).flatmap(
    lambda rank: st.builds(
        Layout.of,
        st.tuples(*[st.integers(1, 4)] * rank),
        st.tuples(*[st.integers(-13, 13)] * rank),
        st.integers(0, 100),
    )
)


@given(small_layouts)
def test_overlaps_says_whether_two_indices_share_an_element(layout: Layout) -> None:
    assert layout.overlaps is not distinct(layout)


@pytest.mark.parametrize(
    ("sizes", "strides", "overlaps"),
    [
        ((2, 3), (3, 2), False),  # interleaved: 0 2 4, 3 5 7
        ((3, 4), (3, 2), True),  # 2 * 3 == 3 * 2
        ((4, 1, 5), (5, 999, 1), False),
        ((2, 2), (0, 1), True),
        ((1, 2), (0, 1), False),
        ((2**31, 2), (2, 1), False),
        ((2**31, 3), (2, 1), True),
        ((0, 2), (0, 0), False),
        ((), (), False),
    ],
)
def test_overlaps_at_its_edges(sizes: tuple[int, ...], strides: tuple[int, ...], overlaps: bool) -> None:
    assert Layout.of(sizes, strides).overlaps is overlaps


@pytest.mark.parametrize(
    "layout",
    [
        Layout.of((2**32 - 1,) * 2, (2**32 - 1, 2**32 - 2)),
        Layout.of(
            (10,) * 8,
            (2724573685, 2418525393, 3242996796, 2653940617, 4275361147, 4078033059, 4175761505, 3777918614),
        ),
    ],
)
def test_overlaps_too_long_to_decide_are_refused(layout: Layout) -> None:
    with pytest.raises(ValueError, match="interleave too irregularly to decide whether two elements share"):
        layout.overlaps  # noqa: B018 -- the property decides


def test_more_elements_than_places_overlap() -> None:
    assert Layout.of((10,) * 8, (1,) * 8).overlaps
    assert Layout.of((10, 10), (3, 1)).overlaps


@given(small_layouts)
def test_lowest_and_stop_enclose_all_elements(layout: Layout) -> None:
    places = elements_of(layout)
    assert [layout.lowest, layout.stop - 1] == [int(places.min()), int(places.max())]


@given(small_layouts)
def test_nested_layouts_never_overlap(layout: Layout) -> None:
    if layout.is_nested:
        assert distinct(layout)


def test_strides_of_unit_and_empty_dimensions_do_not_matter() -> None:
    assert Layout.of((4, 1, 5), (5, 999, 1)) == Layout.packed((4, 1, 5))
    assert Layout.of((3, 0), (1, 7), 12) == Layout.packed((3, 0))
    assert Layout.packed((3, 0)).stop == Layout.packed((3, 0)).lowest == 0


def test_packed_is_row_major() -> None:
    for sizes in itertools.product(range(2, 4), repeat=3):
        assert list(Layout.packed(sizes).strides) == packed_strides(sizes)
        assert Layout.packed(sizes, 5).is_packed
        assert not Layout.of(sizes, packed_strides(sizes)[::-1]).is_packed


@given(cases())
def test_coalescing_keeps_every_pair_and_the_promised_form(case: Case) -> None:
    source, target = coalesce(case.source, case.output)
    pairs = sorted(zip(elements_of(case.source), elements_of(case.output), strict=True))
    assert sorted(zip(elements_of(source), elements_of(target), strict=True)) == pairs
    assert all(size > 1 for size in target.sizes)
    assert all(stride > 0 for stride in target.strides)
    assert list(target.strides) == sorted(target.strides, reverse=True)
    for outer, inner in itertools.pairwise(range(target.rank)):
        mergeable = [
            layout.strides[outer] == layout.sizes[inner] * layout.strides[inner]
            for layout in (source, target)
        ]
        assert not all(mergeable)
    assert coalesce(source, target) == (source, target)


def test_coalescing_merges_what_real_slices_have_in_common() -> None:
    whole = Layout.packed((16, 3, 640, 640))
    crop = whole.select([range(2, 10), range(3), range(640), range(640)])
    assert coalesce(crop, Layout.packed(crop.sizes))[0].sizes == (8 * 3 * 640 * 640,)
    flipped = whole.select([range(16), range(3), range(640), range(639, -1, -1)])
    assert coalesce(flipped, Layout.packed(flipped.sizes))[1].sizes == (16 * 3 * 640, 640)
    both_flipped = coalesce(flipped, flipped)
    assert both_flipped[1] == Layout.packed((whole.size,))


@example((4, 6), [range(4), 2, None])
@given(st.just((3, 4)), st.tuples(st.integers(0, 2), st.just(range(3, 0, -2))))
def test_select_is_numpys(sizes: tuple[int, ...], selection: list[int | range | None]) -> None:
    array = np.arange(np.prod(sizes)).reshape(sizes)
    key = tuple(slice(i.start, i.stop, i.step) if isinstance(i, range) else i for i in selection)
    selected = Layout.packed(sizes).select(selection)
    assert selected.sizes == array[key].shape
    assert elements_of(selected).tolist() == array[key].ravel().tolist()

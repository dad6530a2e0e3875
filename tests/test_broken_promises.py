"""`overlap="disjoint"` where it is not so: one value stays, and no other byte changes, by every strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from forcing import Forcing, Tally, TooManyStepsError
from helpers import DTYPES, default_tier, random_array
from numpy.typing import NDArray

import wgslice as wg
from wgslice.gpu.sink import Sink

Places = list[NDArray[np.int64]]  # elements that each window or index writes, in the order of its values

pytestmark = pytest.mark.every_adapter
TORN = 1, 2, 8  # widths of elements that share words, and that have several
by_width = pytest.mark.parametrize(
    "dtype", default_tier([DTYPES[width] for width in TORN], [f"{width} B" for width in TORN], count=2)
)
wherever = pytest.mark.parametrize("on_gpu", [False, True], ids=["host", "device"])


def by_each_strategy(write: Callable[[], wg.Tensor]) -> Iterator[tuple[list[str], Any]]:
    """The strategies of a call that returns what it wrote, and its result by these."""
    forcing = Forcing(Tally())
    with patch.object(Sink, "bind", forcing.bind):
        while forcing.number < forcing.most:
            forcing.used = []
            try:
                written = write()
            except TooManyStepsError:
                pass
            else:
                yield forcing.used, written.numpy()
            forcing.number += 1


def check(found: Any, before: Any, places: Places, values: list[Any], how: object) -> None:
    """Every element has a value that was written to it, or else the one that it had."""
    result, old, new = (
        np.ascontiguousarray(array).reshape(-1).view(f"V{before.itemsize}")
        for array in (found, before, np.concatenate([np.ravel(value) for value in values]))
    )
    targets = np.concatenate([np.ravel(place) for place in places])
    kept, is_new = result == old, np.zeros(result.shape, bool)
    kept[targets] = False
    np.logical_or.at(is_new, targets, result[targets] == new)
    wrong = np.flatnonzero(~(kept | is_new))
    assert not wrong.size, f"{wrong.size} of {len(result)} wrong, first {wrong[0]}: {how}"


@by_width
@wherever
@pytest.mark.parametrize("row", [(), (3,), (50,)], ids=["elements", "short rows", "rows"])
def test_put_at_equal_indices_leaves_one_of_the_values(
    device: wg.Device, dtype: str, on_gpu: bool, row: tuple[int, ...]
) -> None:
    random = np.random.default_rng(len(row))
    before, numbers = random_array((300, *row), dtype), np.arange(300 * int(np.prod(row))).reshape(300, *row)
    indices = np.repeat(random.permutation(300)[:200], random.integers(1, 9, 200))
    values = random_array((len(indices), *row), dtype, seed=1)
    held = wg.asarray(indices, device=device) if on_gpu else indices

    def put() -> wg.Tensor:
        x = wg.asarray(before, device=device)
        wg.put(x, held, wg.asarray(values, device=device), overlap="disjoint")
        return x

    results = [*by_each_strategy(put)]
    assert results
    for how, found in results:
        check(found, before, [numbers[indices]], [values], how)


def window_places(offsets: Any, sizes: Any, numbers: Any, flips: Any) -> Places:
    """The elements of each window."""
    boxes = (
        tuple(slice(begin, begin + size) for begin, size in zip(*each, strict=True))
        for each in zip(offsets.tolist(), sizes.tolist(), strict=True)
    )
    return [numbers[box][:, :: -1 if flip else 1] for box, flip in zip(boxes, flips, strict=True)]


@by_width
@wherever
@pytest.mark.parametrize("size", [(1, 1), (2, 5), (3, 66)], ids=str)
@pytest.mark.parametrize("equal", [False, True], ids=["in part", "equal"])
def test_windows_that_overlap_leave_one_of_the_values(
    device: wg.Device, dtype: str, on_gpu: bool, size: tuple[int, int], equal: bool
) -> None:
    random = np.random.default_rng(size[1])
    before, numbers = random_array((30, 149), dtype), np.arange(30 * 149).reshape(30, 149)
    offsets = random.integers(0, [31 - size[0], 150 - size[1]], (40, 2))
    offsets = np.repeat(offsets, 5, axis=0) if equal else np.sort(offsets, axis=0)
    strides = np.where(np.arange(len(offsets))[:, None] % 3 == [3, 0], -1, 1)
    values = random_array((len(offsets), *size), dtype, seed=1)
    held = wg.asarray(offsets, device=device) if on_gpu else offsets

    def insert() -> wg.Tensor:
        x = wg.asarray(before, device=device)
        wg.insert_windows(x, held, wg.asarray(values, device=device), strides, overlap="disjoint")
        return x

    results = [*by_each_strategy(insert)]
    assert results
    places = window_places(offsets, np.full_like(offsets, size), numbers, strides[:, 1] < 0)
    for how, found in results:
        check(found, before, places, [*values], how)


@by_width
@wherever
@pytest.mark.parametrize(
    ("sizes", "unit"),
    [((4, 5), 1), ((3, 50), 1), ((3, 50), 4), ((1, 300), 4)],
    ids=["short", "unaligned", "aligned", "long"],
)
def test_windows_of_sizes_that_overlap_leave_one_of_the_values(
    device: wg.Device, dtype: str, on_gpu: bool, sizes: tuple[int, int], unit: int
) -> None:
    """Elements that one window writes have its value, though another one ends inside of their word."""
    random = np.random.default_rng(sizes[1])
    before, numbers = random_array((12, 320), dtype), np.arange(12 * 320).reshape(12, 320)
    own = random.integers(1, [1 + sizes[0], 1 + sizes[1]], (60, 2))
    offsets = random.integers(0, [13 - sizes[0], 321 - sizes[1]], (20, 2)) // unit * unit
    offsets = np.repeat(offsets, 3, axis=0)
    values = [random_array(shape, dtype, seed=number) for number, shape in enumerate(own.tolist())]
    held = wg.asarray(offsets, device=device) if on_gpu else offsets
    listed = [wg.asarray(value, device=device) for value in values]

    def insert() -> wg.Tensor:
        x = wg.asarray(before, device=device)
        wg.insert_windows(x, held, listed, overlap="disjoint")
        return x

    results = [*by_each_strategy(insert)]
    assert results
    places = window_places(offsets, own, numbers, np.zeros(len(own), bool))
    for how, found in results:
        check(found, before, places, values, how)

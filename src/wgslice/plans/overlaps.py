"""Windows to insert, and which of them write the same element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I64_MAX
from wgslice.errors import WindowError
from wgslice.layout import Layout
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.windows import Integers, Numbers, PlacedWindows, SizedWindows, Windows

Overlap: TypeAlias = Literal["refuse", "last", "disjoint"]

MAX_PAIRS = 250_000  # of windows that overlap, which take 0.1 s to put into layers
MAX_COMPARED = 2**17  # pairs of boxes compared at once
MAX_SPARSE = 16  # keys per number up to which a table is faster than sorting


def kept_overlap(overlap: str, itemsize: int) -> str:
    """Return the rule that elements are inserted by: the later wins where two could each write a part.

    WGSL has no atomics beyond 4 bytes, so a broken promise of disjoint windows would leave words of several
    values in one element.
    """
    return "last" if overlap == "disjoint" and itemsize > WORD_NBYTES else overlap


class Inside(NamedTuple):
    """The parts of windows inside of a tensor; without windows that have none."""

    numbers: Numbers  # (B,)
    begins: Integers  # (B, rank) first index of the tensor
    stops: Integers  # (B, rank) one past the last
    steps: tuple[int, ...]

    @classmethod
    def of(cls, windows: PlacedWindows[Any], tensor_sizes: tuple[int, ...]) -> Inside:
        """Returns the parts of windows whose offsets are known."""
        assert windows.offsets is not None
        places = windows.offsets.astype(np.int64)
        begins = np.where(places < 0, places % np.array(windows.steps, np.int64), places)
        stops = np.minimum(places + windows.extents, tensor_sizes)
        return cls(windows.numbers, begins, stops, windows.steps).some(np.all(begins < stops, axis=1))

    def some(self, kept: NDArray[np.bool_]) -> Inside:
        """Some of them."""
        return Inside(self.numbers[kept], self.begins[kept], self.stops[kept], self.steps)

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        """Batches of pairs that overlap, as positions among these."""
        return meeting(self.begins, self.stops - self.begins, self.steps)

    def in_words(self, tensor: Layout, itemsize: int) -> Inside | None:
        """Returns parts without steps in words along the rows of a tensor, or None where rows share words.

        A row is the last dimensions, from the last one on that is not in every window as a whole. Its
        elements follow one another without gaps, and it begins at a word.
        """
        whole = ((self.begins == 0) & (self.stops == tensor.sizes)).all(axis=0)
        axis = int(np.flatnonzero(~whole).max(initial=0))
        places = tensor.offset, *tensor.strides[:axis]
        in_order = tensor.strides[axis:] == Layout.packed(tensor.sizes[axis:]).strides
        if not in_order or any(place * itemsize % WORD_NBYTES for place in places):
            return None
        nbytes = prod(tensor.sizes[axis + 1 :]) * itemsize
        begins, stops = self.begins.copy(), self.stops.copy()
        begins[:, axis] = begins[:, axis] * nbytes // WORD_NBYTES
        stops[:, axis] = -(-stops[:, axis] * nbytes // WORD_NBYTES)
        return self._replace(begins=begins, stops=stops)


def insertion_of(
    windows: Windows | SizedWindows, tensor_sizes: tuple[int, ...], overlap: str
) -> tuple[Numbers, bool]:
    """Returns the windows that write something, and whether two of them may write the same element.

    Refuses windows that overlap inside the tensor, and offsets that only the GPU knows, unless the last of
    overlapping windows is to win, or they are promised to be disjoint.
    """
    if overlap not in get_args(Overlap):
        raise ValueError(
            f"overlap = {overlap!r}: must be 'refuse', 'last', where the later window wins, or 'disjoint', "
            "which promises that none overlap"
        )
    if windows.offsets is None:
        numbers = windows.filled if isinstance(windows, SizedWindows) else windows.numbers
        if overlap == "refuse" and numbers.size > 1:
            raise WindowError(
                "offsets are on the device, so that the host cannot check whether windows overlap: let the "
                'later window win by overlap="last", promise that there is none by overlap="disjoint", or '
                "give offsets as an array"
            )
        return numbers, numbers.size > 1 and overlap == "last"
    inside = Inside.of(windows, tensor_sizes)
    if overlap == "disjoint" or (overlap == "last" and isinstance(windows, SizedWindows)):
        return inside.numbers, overlap == "last"
    if overlap == "last":
        inside = inside.some(are_last(keys_of([*inside.begins.T, *inside.stops.T])))
    pair = next(inside.pairs(), None)
    if pair is not None and overlap == "refuse":
        numbers = np.sort([inside.numbers[indices[0]] for indices in pair])
        offsets = " and ".join(f"{tuple(place)}" for place in windows.offsets[numbers].tolist())
        extents = f"each of extent {windows.extents}"
        if isinstance(windows, SizedWindows):
            extents = (
                f"of extents {' and '.join(f'{tuple(own)}' for own in windows.extents[numbers].tolist())}"
            )
        raise WindowError(
            f"windows {numbers[0]} and {numbers[1]} overlap, at offsets {offsets}, {extents}: move one of "
            'them, or let the later window win by overlap="last"'
        )
    return inside.numbers, pair is not None


def are_last(keys: Integers) -> NDArray[np.bool_]:
    """Returns which of some keys, none of them negative, equal no later one."""
    numbers, size = np.arange(keys.size), int(keys.max(initial=-1)) + 1
    if (keys[1:] > keys[:-1]).all():  # a mask's
        return np.ones(keys.size, np.bool_)
    if size <= MAX_SPARSE * keys.size:
        last = np.empty(size, np.int64)
        last[keys] = numbers  # NumPy's later one wins
    else:
        _, last, keys = np.unique(keys[::-1], return_index=True, return_inverse=True)
        last, keys = keys.size - 1 - last, keys[::-1]
    lasting: NDArray[np.bool_] = last[keys] == numbers
    return lasting


def layers_of(windows: Windows, numbers: Numbers) -> list[Numbers] | None:
    """Returns windows in sets of disjoint ones, each after all that it overlaps; None if too many overlap."""
    assert windows.offsets is not None
    places = windows.offsets[numbers].astype(np.int64)
    return in_layers(meeting(places, windows.extents, windows.steps), numbers)


def in_layers(pairs: Iterable[tuple[Integers, Integers]], numbers: Numbers) -> list[Numbers] | None:
    """Returns numbers in sets without pairs, each after those it is in a pair with; None if too many are."""
    found, count = [], 0
    for pair in pairs:
        found.append(np.sort(pair, axis=0))
        count += len(found[-1][0])
        if count > MAX_PAIRS:
            return None
    earlier, later = np.concatenate(found, axis=1) if found else np.zeros((2, 0), np.int64)
    order = np.argsort(later, kind="stable")
    depths = [0] * len(numbers)
    for before, behind in zip(earlier[order].tolist(), later[order].tolist(), strict=True):
        depths[behind] = max(depths[behind], depths[before] + 1)
    depth = np.array(depths)
    return [numbers[depth == layer] for layer in range(int(depth.max(initial=-1)) + 1)]


def meeting(
    places: Integers, extents: Integers | tuple[int, ...], steps: tuple[int, ...]
) -> Iterator[tuple[Integers, Integers]]:
    """Yields batches of pairs of boxes that share an index; a pair may occur again, no batch is empty.

    Boxes of different remainders by the steps are disjoint. Along all dimensions but one, each box touches at
    most two cells of the greatest box's size, and boxes overlap if and only if they do in a cell that both
    touch. Along that one, in which the fewest pairs do, boxes of a cell are sorted by their first index: each
    is compared with those after it that begin before it ends.
    """
    if len(places) < 2:
        return
    remainders = places % np.array(steps, np.int64)
    firsts, stops = np.hstack([remainders, places]).T, np.hstack([remainders + 1, places + extents]).T
    bounds = [each for each in zip(firsts, stops, strict=True) if np.ptp(each, axis=1).any()]
    bounds = bounds or [(firsts[0], stops[0])]
    counts = [np.searchsorted(np.sort(first), stop).sum() for first, stop in bounds]
    swept, swept_stop = bounds.pop(int(np.argmin(counts)))
    keys, boxes = np.zeros(len(places), np.int64), np.arange(len(places))
    for first, stop in bounds:
        size = int((stop - first).max())
        cell, last = ((end[boxes] - first.min()) // size for end in (first, stop - 1))
        crossing = last > cell  # into the next cell
        cells = [np.concatenate(pair) for pair in ((keys, keys[crossing]), (cell, cell[crossing] + 1))]
        keys, boxes = shared(keys_of(cells), np.concatenate([boxes, boxes[crossing]]))
    begin = keys * int(swept_stop.max(initial=0) - swept.min(initial=0)) + swept[boxes]
    order = np.argsort(begin, kind="stable")
    begin, boxes = begin[order], boxes[order]
    length = (swept_stop - swept)[boxes]
    later = np.searchsorted(begin, begin + length) - np.arange(1, len(boxes) + 1)
    ends, start = np.cumsum(later), 0
    while start < len(boxes):
        before = ends[start] - later[start]
        some = slice(start, max(int(np.searchsorted(ends, before + MAX_COMPARED, side="right")), start + 1))
        one = np.repeat(np.arange(some.start, some.stop), later[some])
        other = one + 1 + np.arange(len(one)) - np.repeat((ends - later)[some] - before, later[some])
        one, other, start = boxes[one], boxes[other], some.stop
        meet = np.ones(len(one), np.bool_)
        for first, stop in bounds:
            meet &= (first[one] < stop[other]) & (first[other] < stop[one])
        if meet.any():
            yield one[meet], other[meet]


def shared(keys: Integers, boxes: Integers) -> tuple[Integers, Integers]:
    """Returns the boxes whose key another box has too, and those keys, renumbered."""
    _, numbers, counts = np.unique(keys, return_inverse=True, return_counts=True)
    kept = counts[numbers] > 1
    return numbers[kept].astype(np.int64), boxes[kept]


def keys_of(columns: list[Integers] | Integers) -> Integers:
    """Returns a number for each row of columns, equal for equal rows and not negative."""
    keys = np.zeros(len(columns[0]), np.int64)
    most = 1
    for column in columns:
        low, high = (int(end) for end in (column.min(initial=0), column.max(initial=0)))
        span = high - low + 1
        if most * span > I64_MAX:
            keys = np.unique(keys, return_inverse=True)[1].astype(np.int64)
            most = len(keys) + 1
        keys = keys * span + (column - low)
        most *= span
    return keys


def sets_of(
    windows: SizedWindows, tensor: Layout, itemsize: int, overlap: str, most: int
) -> tuple[Sequence[Numbers], bool]:
    """Returns the numbers of windows to insert, in sets of disjoint ones, and whether rows own their words.

    A later set overwrites earlier ones. Where rows share words, a set takes two dispatches or more: sets in
    which they do not are worth it up to `most` times as many. A promise of `disjoint` compares nothing.
    """
    if overlap == "disjoint":
        return [windows.filled], False
    if windows.offsets is None:
        return list(windows.filled[:, None]), False
    inside = Inside.of(windows, tensor.sizes)
    found = [inside.numbers]
    if overlap == "last":
        found = in_layers(inside.pairs(), inside.numbers) or list(inside.numbers[:, None])
    if itemsize < WORD_NBYTES and max(windows.steps) == 1:
        in_words = inside.in_words(tensor, itemsize)
        by_words = None if in_words is None else in_layers(in_words.pairs(), inside.numbers)
        if by_words is not None and len(by_words) <= most * len(found):
            return by_words, True
    return found, False

"""Windows to insert, and which of them write the same element."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import I64_MAX
from wgslice.errors import WindowError
from wgslice.layout import Layout
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.windows import Integers, SizedWindows, Windows

Overlap: TypeAlias = Literal["refuse", "last", "disjoint"]
SomeNumbers = TypeVar("SomeNumbers", bound=NDArray[Any])

MAX_PAIRS = 250_000  # of windows that overlap, which take 0.1 s to put into layers
MAX_COMPARED = 2**17  # pairs of boxes compared at once
MAX_SPARSE = 16  # keys per number up to which a table is faster than sorting


@dataclass(frozen=True, eq=False)
class Insertion:
    """Windows to insert, and those of them that write something."""

    windows: Windows
    numbers: NDArray[np.uint32]  # of those that write something, in order
    contested: bool  # whether two of them may write the same element, of which the later one then stays


UNKNOWN_OVERLAP = (
    "offsets are on the device, so that the host cannot check whether windows overlap: let the later window "
    'win by overlap="last", promise that there is none by overlap="disjoint", or give offsets as an array'
)


def check_overlap(overlap: str) -> None:
    """Refuse an unknown rule for windows that overlap."""
    if overlap not in get_args(Overlap):
        raise ValueError(
            f"overlap = {overlap!r}: must be 'refuse', 'last', where the later window wins, or 'disjoint', "
            "which promises that none overlap"
        )


def kept_overlap(overlap: str, itemsize: int) -> str:
    """Return the rule that elements are inserted by: the later wins where two could each write a part.

    WGSL has no atomics beyond 4 bytes, so a broken promise of disjoint windows would leave words of several
    values in one element.
    """
    return "last" if overlap == "disjoint" and itemsize > WORD_NBYTES else overlap


def insertion_of(windows: Windows, tensor_sizes: tuple[int, ...], overlap: str) -> Insertion:
    """Returns the insertion of windows that write something.

    Refuses windows that overlap inside the tensor, and offsets that only the GPU knows, unless the last of
    overlapping windows is to win, or they are promised to be disjoint.
    """
    check_overlap(overlap)
    if windows.offsets is None:
        if overlap == "refuse" and windows.count > 1:
            raise WindowError(UNKNOWN_OVERLAP)
        return Insertion(windows, windows.numbers, windows.count > 1 and overlap == "last")
    places = windows.offsets.astype(np.int64)
    numbers = windows.numbers[reaching(windows, places, tensor_sizes)]
    if overlap == "disjoint":
        return Insertion(windows, numbers, contested=False)
    if overlap == "last":
        numbers = numbers[are_last(keys_of(places[numbers].T))]
    pair = next(meeting(places[numbers], windows.extents, windows.steps), None)
    if pair is not None and overlap == "refuse":
        first, second = sorted(int(numbers[indices[0]]) for indices in pair)
        raise WindowError(
            f"windows {first} and {second} overlap, at offsets {tuple(places[first].tolist())} and "
            f"{tuple(places[second].tolist())}, each of extent {windows.extents}: move one of them, or let "
            'the later window win by overlap="last"'
        )
    return Insertion(windows, numbers, pair is not None)


def reaching(windows: Windows, places: Integers, tensor_sizes: tuple[int, ...]) -> NDArray[np.bool_]:
    """Returns which windows have an element inside a tensor."""
    inside = np.ones(len(places), np.bool_)
    for axis, size in enumerate(tensor_sizes):
        step, count = windows.steps[axis], windows.sizes[axis]
        first = np.maximum(-(places[:, axis] // step), 0)  # element of the window at index 0 or after it
        inside &= (first < count) & (places[:, axis] + first * step < size)
    return inside


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


def layers_of(windows: Windows, numbers: NDArray[np.uint32]) -> list[NDArray[np.uint32]] | None:
    """Returns windows in sets of disjoint ones, each after all that it overlaps; None if too many overlap."""
    assert windows.offsets is not None
    return in_layers(
        meeting(windows.offsets[numbers].astype(np.int64), windows.extents, windows.steps), numbers
    )


def in_layers(pairs: Iterable[tuple[Integers, Integers]], numbers: SomeNumbers) -> list[SomeNumbers] | None:
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


def crossing(lows: Integers, highs: Integers) -> Iterator[tuple[Integers, Integers]]:
    """Yields batches of pairs of boxes that share an element, from the first indices of each to their stops.

    Along the dimension in which the fewest do, boxes are sorted by their first index: each is compared with
    those after it that begin before it ends.
    """
    if not len(lows):
        return
    bounds = [each for each in zip(lows.T.copy(), highs.T.copy(), strict=True) if np.ptp(each, axis=1).any()]
    sweeps = []
    for low, high in bounds or [(lows[:, 0], highs[:, 0])]:
        order = np.argsort(low, kind="stable")
        later = np.searchsorted(low[order], high[order]) - np.arange(1, len(low) + 1)
        sweeps.append((int(later.sum()), order, later))
    _, order, later = min(sweeps, key=lambda sweep: sweep[0])
    stops, begin = np.cumsum(later), 0
    while begin < len(order):
        before = stops[begin] - later[begin]
        end = max(int(np.searchsorted(stops, before + MAX_COMPARED, side="right")), begin + 1)
        first = np.repeat(np.arange(begin, end), later[begin:end])
        behind = np.arange(1, len(first) + 1) - np.repeat(
            stops[begin:end] - later[begin:end] - before, later[begin:end]
        )
        one, other = order[first], order[first + behind]
        meet = np.ones(len(first), np.bool_)
        for low, high in bounds:
            meet &= (low[one] < high[other]) & (low[other] < high[one])
        if meet.any():
            yield one[meet], other[meet]
        begin = end


def meeting(
    places: Integers, extents: tuple[int, ...], steps: tuple[int, ...]
) -> Iterator[tuple[Integers, Integers]]:
    """Yields batches of pairs of windows that share an index; a pair may occur again, no batch is empty.

    Windows of different remainders by the steps are disjoint; those of equal ones are boxes without gaps. In
    cells of a box's sizes, each box touches at most two along a dimension, and boxes overlap if and only if
    they do in a cell that both touch. A cell has as many disjoint boxes as corners: few share one.
    """
    remainders, quotients, sizes = [], [], []
    for column, extent, step in zip(places.T, extents, steps, strict=True):
        if len(column) and (column != column[0]).any():
            remainders.append(column % step)
            quotients.append(column // step - column.min() // step)
            sizes.append((extent - 1) // step + 1)
    keys, boxes = np.zeros(len(places), np.int64), np.arange(len(places))
    if quotients:
        keys, boxes = shared(keys_of(remainders), boxes)
    for quotient, size in zip(quotients, sizes, strict=True):
        first, rest = np.divmod(quotient[boxes], size)
        crossing = rest != 0  # into the next cell
        cells = [np.concatenate(pair) for pair in ((keys, keys[crossing]), (first, first[crossing] + 1))]
        keys, boxes = shared(keys_of(cells), np.concatenate([boxes, boxes[crossing]]))
    order = np.argsort(keys, kind="stable")
    keys, boxes = keys[order], boxes[order]  # cells are runs of equal keys
    for apart in range(1, len(keys)):
        together = np.flatnonzero(keys[apart:] == keys[:-apart])
        if not together.size:
            return
        one, other = boxes[together], boxes[together + apart]
        meet = np.ones(len(together), np.bool_)
        for quotient, size in zip(quotients, sizes, strict=True):
            meet &= np.abs(quotient[one] - quotient[other]) < size
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


class Inside(NamedTuple):
    """The parts of windows inside of a tensor; without windows that have none."""

    numbers: Integers  # (B,)
    begins: Integers  # (B, rank) first index of the tensor
    stops: Integers  # (B, rank) one past the last
    remainders: Integers  # (B, rank) of offsets by the steps: windows of different ones are disjoint

    @classmethod
    def of(cls, windows: SizedWindows, tensor_sizes: tuple[int, ...]) -> Inside:
        """Returns the parts of windows whose offsets are known."""
        assert windows.offsets is not None
        steps, places = np.array(windows.steps, np.int64), windows.offsets.astype(np.int64)
        begins = np.where(places < 0, places % steps, places)
        stops = np.minimum(places + windows.extents, tensor_sizes)
        kept = ((windows.extents > 0) & (begins < stops)).all(axis=1)
        return cls(np.flatnonzero(kept), begins[kept], stops[kept], (places % steps)[kept])

    def pairs(self) -> Iterator[tuple[Integers, Integers]]:
        """Batches of pairs that overlap, as positions among these."""
        lows, highs = (self.begins, self.remainders), (self.stops, self.remainders + 1)
        return crossing(np.hstack(lows), np.hstack(highs))

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


def refuse_overlaps(windows: SizedWindows, tensor_sizes: tuple[int, ...], overlap: str) -> None:
    """Refuses windows that overlap inside the tensor, or at offsets that only the GPU knows, if asked to."""
    check_overlap(overlap)
    if overlap != "refuse":
        return
    if windows.offsets is None:
        if (windows.extents > 0).all(axis=1).sum() > 1:
            raise WindowError(UNKNOWN_OVERLAP)
        return
    inside = Inside.of(windows, tensor_sizes)
    pair = next(inside.pairs(), None)
    if pair is not None:
        first, second = sorted(int(inside.numbers[indices[0]]) for indices in pair)
        places, extents = windows.offsets, windows.extents
        raise WindowError(
            f"windows {first} and {second} overlap, at offsets {tuple(places[first].tolist())} and "
            f"{tuple(places[second].tolist())}, of extents {tuple(extents[first].tolist())} and "
            f"{tuple(extents[second].tolist())}: move one of them, or let the later window win by "
            'overlap="last"'
        )


def sets_of(
    windows: SizedWindows, tensor: Layout, itemsize: int, overlap: str, most: int
) -> tuple[Sequence[Integers], bool]:
    """Returns the numbers of windows to insert, in sets of disjoint ones, and whether rows own their words.

    A later set overwrites earlier ones. Where rows share words, a set takes two dispatches or more: sets in
    which they do not are worth it up to `most` times as many. A promise of `disjoint` compares nothing.
    """
    numbers = np.flatnonzero((windows.extents > 0).all(axis=1))
    if overlap == "disjoint":
        return [numbers], False
    if windows.offsets is None:
        return list(numbers[:, None]), False
    inside = Inside.of(windows, tensor.sizes)
    found: Sequence[Integers] | None = [inside.numbers]
    if overlap == "last":
        found = in_layers(inside.pairs(), inside.numbers)
    if found is None:
        found = list(inside.numbers[:, None])
    if itemsize < WORD_NBYTES and max(windows.steps) == 1:
        in_words = inside.in_words(tensor, itemsize)
        by_words = None if in_words is None else in_layers(in_words.pairs(), inside.numbers)
        if by_words is not None and len(by_words) <= most * len(found):
            return by_words, True
    return found, False

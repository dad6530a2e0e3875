"""A dimension of a result that is put together from windows of a tensor's: padded, rolled, repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

__all__ = ["MODES", "Segment", "padded", "rolled", "tiled"]


class Segment(NamedTuple):
    """Neighbours in the result, and the indices they take; one index is taken for all of them."""

    target: range
    indices: range
    repeats: int = 1
    period: int = 0  # elements of the result from one repeat to the next


def rolled(size: int, shift: int) -> list[Segment]:
    """A dimension whose last elements come first."""
    moved = shift % size if size else 0
    if moved == 0:
        return [Segment(range(size), range(size))]
    return [
        Segment(range(moved), range(size - moved, size)),
        Segment(range(moved, size), range(size - moved)),
    ]


def tiled(size: int, count: int) -> list[Segment]:
    """A dimension that is there so many times, at least once, one behind the other."""
    return [Segment(range(size), range(size), count, size)]


def padded(mode: str, size: int, before: int, behind: int) -> list[Segment]:
    """A dimension with so many elements more before and behind it, from its beginning."""
    if before == behind == 0:
        return [Segment(range(size), range(size))]
    if size == 0:
        raise ValueError(f"mode = {mode!r}: needs an element to repeat, and a dimension has size 0")
    if size == 1:
        mode = "edge"
    period = {"edge": ENDLESS, "wrap": size, "reflect": 2 * (size - 1), "symmetric": 2 * size}[mode]
    first = -(before // period) * period  # where whole periods begin
    count = (size + behind - first) // period
    last = first + count * period
    if count < 2:
        return list(runs(mode, size, -before, size + behind, before))
    return [
        *runs(mode, size, -before, first, before),
        *(
            run._replace(repeats=count, period=period)
            for run in runs(mode, size, first, first + period, before)
        ),
        *runs(mode, size, last, size + behind, before),
    ]


def runs(mode: str, size: int, start: int, stop: int, before: int) -> Iterator[Segment]:
    """What a mode takes from one position to another, counted from the tensor's first element."""
    while start < stop:
        indices, count = MODES[mode](start, size)
        count = min(count, stop - start)
        yield Segment(range(before + start, before + start + count), indices[:count])
        start += count


ENDLESS = 2**64  # more than any dimension has


def edge_part(position: int, size: int) -> tuple[range, int]:
    """The indices that mode `edge` takes from a position on, and for how many elements."""
    if position < 0:
        return range(1), -position
    if position >= size:
        return range(size - 1, size), ENDLESS
    return range(position, size), size - position


def wrap_part(position: int, size: int) -> tuple[range, int]:
    """What mode `wrap` takes: it begins again."""
    return range(position % size, size), size - position % size


def reflect_part(position: int, size: int) -> tuple[range, int]:
    """What mode `reflect` takes: there and back, either end once."""
    phase = position % (2 * (size - 1))
    if phase < size:
        return range(phase, size), size - phase
    index = 2 * (size - 1) - phase
    return range(index, 0, -1), index


def symmetric_part(position: int, size: int) -> tuple[range, int]:
    """What mode `symmetric` takes: there and back, either end twice."""
    phase = position % (2 * size)
    if phase < size:
        return range(phase, size), size - phase
    index = 2 * size - 1 - phase
    return range(index, -1, -1), index + 1


MODES = {"edge": edge_part, "reflect": reflect_part, "symmetric": symmetric_part, "wrap": wrap_part}

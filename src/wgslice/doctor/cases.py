"""Copies at both sides of every condition under which a kernel is taken, or goes another way inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import product
from typing import NamedTuple

from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES

__all__ = ["Case", "around", "cases"]

WIDTHS = (1, 2, 4, 8, 16)
NARROW = (1, 2)


# Pixels: bytes an element, channels, and elements from one pixel and from one channel to the next.
FORMATS = (
    *((1, 3, 3, -1), (1, 3, -3, 1), (1, 3, 4, 1), (1, 4, -4, -1)),
    *((2, 3, -4, 1), (2, 4, 4, 1), (2, 2, -3, -1)),
)


# Elements of a width from one to the next down the columns of a permuted source, beside 1.
STEPS_DOWN = {1: (-1, 2), 2: (-1,), 4: (-1, 4), 8: (-1,), 16: (-1,)}


class Case(NamedTuple):
    """A copy of elements of a width; the layouts count from the start of their buffers."""

    width_nbytes: int
    source: Layout
    target: Layout


def cases() -> list[Case]:
    """All of them."""
    kinds = single_rows, steps, many_rows, short_runs, planes, permutes, pixels, channel_planes, oddities
    return [case for kind in kinds for case in kind()]


def around(*numbers: int) -> list[int]:
    """These, and what lies beside them, from 1 on."""
    return sorted({max(number + d, 1) for number in numbers for d in (-1, 0, 1)})


def lanes(width_nbytes: int) -> int:
    """Elements of a block."""
    return WIDEST_NBYTES // width_nbytes


def copy(width: int, sizes: Iterable[int], strides: Iterable[int], start: int, target: Layout) -> Case:
    """A copy out of a source whose lowest element is number `start`, whichever way its strides go."""
    sizes, strides = tuple(sizes), tuple(strides)
    below = sum((size - 1) * -stride for size, stride in zip(sizes, strides, strict=True) if stride < 0)
    return Case(width, Layout.of(sizes, strides, start + below), target)


def single_rows() -> Iterator[Case]:
    """Rows of neighbours, forwards and backwards, from every place of a block into several."""
    for width in WIDTHS:
        places = sorted({place % lanes(width) for place in (0, 1, 5, 15)})
        for (nbytes, ends), sign in product(((40, places), (152, places[::2])), (1, -1)):
            for p, o in product(ends, range(lanes(width))):
                yield copy(width, [nbytes // width], [sign], o, Layout.packed((nbytes // width,), p))
        for n in around(*(nbytes // width for nbytes in (8, 16, 32, 64, 128, 1024, 4096) if nbytes > width)):
            yield copy(width, [n], [-1], 1, Layout.packed((n,), 3))


def steps() -> Iterator[Case]:
    """Rows of elements apart from each other, or of one that is repeated."""
    for width, step in product(WIDTHS, (0, 2, -2, 3, -3, 4, -4)):
        for nbytes, (o, p) in product((36, 200), ((0, 0), (1, 1), (lanes(width) - 1, 3))):
            n = max(nbytes // width, 2)
            yield copy(width, [n], [step], o, Layout.packed((n,), p))


def many_rows() -> Iterator[Case]:
    """Rows, packed and with gaps of less than a word, less than a block and more, short and long ones."""
    for width in WIDTHS:
        lengths = sorted({max(nbytes // width, 2) for nbytes in (7, 19, 31, 33, 48, 132, 400)})
        gaps = sorted({-(-nbytes // width) for nbytes in (0, 1, 3, 5, 16, 31, 40)})
        for n, gap in product(lengths, gaps):
            yield copy(width, [5, n], [n + 3, 1], 1, Layout.of((5, n), (n + gap, 1), gap % 4))
        for n, step in product(lengths, (-1, 2, -4)):
            yield copy(width, [7, n], [n * 4 + 5, step], 2, Layout.packed((7, n), 1))
        n = lanes(width) * 4
        for o in range(
            min(5, lanes(width))
        ):  # rows that begin and end with blocks, and read them from anywhere
            target = Layout.of((6, n), (n + lanes(width), 1), lanes(width))
            yield copy(width, [6, n], [n + 3, 1], o, target)
        yield copy(width, [5, n], [n + 6, 1], 3, Layout.of((5, n), (n + lanes(width) // 2 + 1, 1)))


def short_runs() -> Iterator[Case]:
    """Rows of two dimensions, of which the last is short."""
    for width, run, n in product((1, 2, 4, 8), (2, 3, 5), (5, 11, 43, 150)):
        for step, p in ((1, 0), (-1, 1), (2, 3), (-2, 2)):
            yield copy(width, [n, run], [run * abs(step) + 1, step], 1, Layout.packed((n, run), p))
        yield copy(width, [n, run], [-run, 1], 0, Layout.packed((n, run), 1))
    for width, gap, step in product(NARROW, range(6), (1, -1)):
        yield copy(width, [4, 9, 3], [99, -4, step], 2, Layout.of((4, 9, 3), (27 + gap, 3, 1), 2))
    for width in (4, 8, 16):
        yield copy(width, [40, 3], [0, -1], 0, Layout.of((40, 3), (5, 1)))
        yield copy(width, [5, 7, 3], [50, -4, -1], 0, Layout.of((5, 7, 3), (40, 4, 1), 1))


def planes() -> Iterator[Case]:
    """Two dimensions that share out tiles in every way, and more dimensions around them."""
    for width in (4, 8, 16):
        for n in around(1, 16, 64, 128, 256, 512):
            yield copy(width, [n, 3], [4, -1], 0, Layout.packed((n, 3), 1))
        for n in around(8, 33, 64, 256, 520):
            yield copy(width, [9, n], [n + 3, -2], 0, Layout.packed((9, n)))
        for n in (2, 3, 17, 40):
            yield copy(width, [70, n], [2 * n, 2], 0, Layout.of((70, n), (n + 1, 1)))
        yield copy(width, [90, 2, 2], [4, -2, 1], 0, Layout.packed((90, 2, 2), 1))
    for width in (1, 2, 4, 8):  # whole blocks, whose source begins elsewhere in each row
        for m, nbytes, gap, sign in product((3, 70), (32, 144, 4128), (1, 5), (1, -1)):
            n = nbytes // width
            if m * nbytes < 2**14:
                target = Layout.of((m, n), (n + lanes(width), 1))
                yield copy(width, [m, n], [n + gap, sign], 0, target)
    for width in WIDTHS:
        inner = 40 // width + 2
        source = 30 * inner, 6 * inner, -(inner + 1), 1
        yield copy(width, [2, 3, 5, inner], source, 1, Layout.packed((2, 3, 5, inner), 1))
        source = 8 * inner, 4 * inner, inner + 1, 2
        yield copy(
            width,
            [3, 2, 2, inner],
            source,
            0,
            Layout.of((3, 2, 2, inner), (6 * inner, 2 * inner + 3, inner, 1)),
        )


def permutes() -> Iterator[Case]:
    """Sources whose neighbours lie along another dimension of the target, also stepped and backwards."""
    for width in WIDTHS:
        side = lanes(width)
        for m, n in product((2, 3, 8, 16, 31, 33, 64, 65), (max(side, 2), 2 * side, 64, 80)):
            pitch = m + -m % side + side
            yield copy(width, [m, n], [1, pitch], side, Layout.packed((m, n), side))
        for step, m, n in product(STEPS_DOWN[width], (2, 16, 33), (max(side, 2), 48)):
            yield copy(width, [m, n], [step, 160], side, Layout.packed((m, n), side))
        for m, n in product((2, 8, 33), (2, 9, 33)):
            yield copy(width, [m, n], [1, m + 3], 2, Layout.packed((m, n), 1))
        source = 9600, 1, 1920, 40 + -40 % side
        yield copy(width, [3, 33, 2, 48], source, 0, Layout.of((3, 33, 2, 48), (5000, 150, 64, 1), side))
        yield copy(width, [5, 40, 35], [1600, -1, -45], 0, Layout.of((5, 40, 35), (1500, 36, 1), 3))
        yield copy(width, [20, 3, 2, 17], [1, 1000, 500, 21], 0, Layout.packed((20, 3, 2, 17)))


def pixels() -> Iterator[Case]:
    """Pixels of one to four channels, all of the source's or some, forwards, backwards and turned."""
    for width, channels, step, across in FORMATS:
        strides = step, across
        for n, o in product((32, 48, 80), (0, 1, 5, 15)):
            yield copy(width, [n, channels], strides, o, Layout.packed((n, channels), lanes(width)))
        for n, (o, p, gap) in product((22, 41), ((0, 1, 0), (5, 0, 1), (3, 7, 0), (2, 15, 40))):
            target = Layout.of((3, n, channels), (n * channels + gap, channels, 1), p)
            yield copy(width, [3, n, channels], [n * 4 + 7, *strides], o, target)
    for width, step, o in product(NARROW, (3, -3), (0, 1, 15)):  # one channel of three
        for n in (64, 80, 144):
            yield copy(width, [n], [step], o, Layout.packed((n,)))
        for n, gap in product((65, 90), (0, 9)):
            yield copy(width, [3, n], [300, step], o, Layout.of((3, n), (n + gap, 1), 5))


def channel_planes() -> Iterator[Case]:
    """Channels in planes of the source, put beside each other, and out of pixels into planes."""
    for (width, channels), sign in product(((1, 2), (1, 3), (2, 4)), (1, -1)):
        for n, o, p in ((32, 0, 0), (64, 3, 16), (70, 1, 3)):
            target = Layout.packed((2, n, channels), p)
            yield copy(width, [2, n, channels], [2000, sign, 400], o, target)
    for width, (channels, step, across) in product(NARROW, ((3, 3, 1), (3, -3, 1), (4, 4, -1))):
        for n, o in product((64, 80), (0, 1, 13)):
            target = Layout.of((2, channels, n), (1008, 160, 1), 16)
            yield copy(width, [2, channels, n], [500, across, step], o, target)


def oddities() -> Iterator[Case]:
    """The most dimensions and the fewest, targets with gaps between elements, interleaved rows."""
    folds = 128, 64, -32, 16, 8, -4, 2
    for width in WIDTHS:
        yield copy(width, [], [], 5, Layout.packed((), 3))
        yield copy(width, [9], [2], 0, Layout.of((9,), (5,), 2))
        yield copy(width, [9], [-1], 0, Layout.of((9,), (3,), 1))
        yield copy(width, [2, 3], [9, 2], 0, Layout.of((2, 3), (3, 2), 1))
        yield copy(width, [9, 7], [1, 9], 0, Layout.of((9, 7), (21, 3), 2))
        yield copy(width, [2] * 8, [*folds, 3], 1, Layout.packed((2,) * 8))
        yield copy(width, [2] * 8, [*folds, 3], 0, Layout.of((2,) * 8, [3 * 2**k for k in range(7, -1, -1)]))
        n = 40 // width + 1
        wide = [stride * n for stride in folds]
        yield copy(width, [2] * 7 + [n], [*wide, -2], 0, Layout.packed((2,) * 7 + (n,)))

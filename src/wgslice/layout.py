"""Layouts of tensors in their buffers: their parts, whether elements overlap, and coalescing for a copy."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import accumulate
from math import gcd, prod
from operator import mul
from typing import NamedTuple

# Elements of a range. `len` is faster, and raises beyond 31 bits where addresses have 32, as in a browser.
count: Callable[[range], int] = (
    len if sys.maxsize > 2**32 else lambda steps: max(-((steps.start - steps.stop) // steps.step), 0)
)
MAX_TRIES = 100_000  # about 0.1 s of Python; layouts of real tensors need fewer than ten


class Fields(NamedTuple):
    """The fields of a `Layout`, which is hashed and compared by them as a tuple is: plans are found so."""

    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int


class Layout(Fields):
    """Sizes, signed strides and an offset, all in elements: index c is at `offset + dot(c, strides)`.

    Two layouts that place the same indices on the same elements are equal, since `Layout.of` makes
    irrelevant strides 0: those of dimensions of size 1, and everything in a layout without elements.
    """

    @classmethod
    def of(cls, sizes: Sequence[int], strides: Sequence[int], offset: int = 0) -> Layout:
        """Return the canonical layout of given sizes, strides and offset."""
        if 0 in sizes:
            return cls(tuple(sizes), (0,) * len(sizes), 0)
        relevant = [stride if size > 1 else 0 for size, stride in zip(sizes, strides, strict=True)]
        return cls(tuple(sizes), tuple(relevant), offset)

    @classmethod
    def packed(cls, sizes: Sequence[int], offset: int = 0) -> Layout:
        """Return the row-major layout without gaps."""
        strides = [*accumulate(sizes[:0:-1], mul, initial=1)][::-1] if sizes else []
        return cls.of(sizes, strides, offset)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.sizes)

    @property
    def size(self) -> int:
        """Number of elements, repeated ones counted."""
        return prod(self.sizes)

    @cached_property
    def is_packed(self) -> bool:
        """Whether the layout is row-major without gaps, at any offset."""
        extent = 1
        for size, stride in zip(reversed(self.sizes), reversed(self.strides), strict=True):
            if size > 1 and stride != extent:
                return 0 in self.sizes
            extent *= size
        return True

    @property
    def lowest(self) -> int:
        """The lowest element that an index reaches."""
        return self.offset + sum([reach for reach in self.reaches if reach < 0])

    @property
    def stop(self) -> int:
        """One past the highest element that an index reaches; `lowest` for a layout without elements."""
        return self.offset + sum([reach for reach in self.reaches if reach > 0]) + (self.size > 0)

    @cached_property
    def reaches(self) -> tuple[int, ...]:
        """For each dimension the signed distance from its first to its last element."""
        return tuple([(size - 1) * stride for size, stride in zip(self.sizes, self.strides, strict=True)])

    def places(self) -> list[int]:
        """Return the element of each index, in row-major order."""
        found = [self.offset]
        if not self.sizes:
            return found
        for size, stride in zip(self.sizes, self.strides, strict=True):
            found = [place + stride * c for place in found for c in range(size)]
        return found

    def shifted(self, elements: int) -> Layout:
        """Return the layout with its offset increased."""
        if elements == 0 or 0 in self.sizes:
            return self
        return Layout(self.sizes, self.strides, self.offset + elements)

    def select(self, selection: Sequence[int | range | None]) -> Layout:
        """Return a part: for each dimension an index (drops it) or a range; a None adds one of size 1."""
        sizes: list[int] = []
        strides: list[int] = []
        offset = self.offset
        remaining_strides = iter(self.strides)
        for item in selection:
            if item is None:
                sizes.append(1)
                strides.append(0)
                continue
            stride = next(remaining_strides)
            if isinstance(item, int):
                offset += item * stride
            else:
                offset += item.start * stride
                sizes.append(count(item))
                strides.append(item.step * stride)
        return Layout.of(sizes, strides, offset)

    def permuted(self, axes: Sequence[int]) -> Layout:
        """Return the layout with its dimensions in another order."""
        return Layout.of(
            [self.sizes[axis] for axis in axes], [self.strides[axis] for axis in axes], self.offset
        )

    def divided(self, axis: int, each: int) -> Layout:
        """Return the layout with a dimension divided into two: blocks, and the `each` indices of a block."""
        size, stride = self.sizes[axis], self.strides[axis]
        sizes = *self.sizes[:axis], size // each, each, *self.sizes[axis + 1 :]
        strides = *self.strides[:axis], each * stride, stride, *self.strides[axis + 1 :]
        return Layout.of(sizes, strides, self.offset)

    def halves(self, axis: int) -> tuple[Layout, Layout]:
        """Return both halves along `axis`, which has at least two elements."""
        whole = [range(size) for size in self.sizes]
        middle = self.sizes[axis] // 2
        first, second = whole.copy(), whole.copy()
        first[axis], second[axis] = range(middle), range(middle, self.sizes[axis])
        return self.select(first), self.select(second)

    @cached_property
    def is_nested(self) -> bool:
        """Whether every stride exceeds the extent of all dimensions with smaller ones."""
        extent = 1
        for stride, size in sorted(zip(map(abs, self.strides), self.sizes, strict=True)):
            if size > 1 and stride < extent:
                return False
            extent += (size - 1) * stride
        return True

    @property
    def overlaps(self) -> bool:
        """Whether two indices share an element; exact, raises ValueError if that takes too long."""
        if self.is_nested or self.size == 0:
            return False
        if self.size > self.stop - self.lowest:
            return True
        steps = [
            (abs(stride), size - 1) for size, stride in zip(self.sizes, self.strides, strict=True) if size > 1
        ]
        return meets(sorted(steps, reverse=True))


def whole_words(nbytes: int) -> int:
    """Return `nbytes` rounded up to words of 4 bytes, the unit of bindings and buffer copies."""
    return -(-nbytes // 4) * 4


def check_disjoint(layout: Layout) -> None:
    """Refuse an output that places two elements on the same bytes."""
    if layout.overlaps:
        raise ValueError(
            f"output sizes {layout.sizes} with strides {layout.strides}: two elements share bytes; "
            "elements of an output must be disjoint"
        )


def meets(steps: list[tuple[int, int]]) -> bool:
    """Whether `sum(d * stride) == 0` for integers d, not all 0, `abs(d) <= most`; steps are (stride, most).

    Two indices meet if and only if their difference is such a d. Depth first, largest stride first; a
    branch ends where the smaller strides together cannot return to 0, or no multiple of their greatest
    common divisor does.
    """
    tried = 0

    def search(position: int, total: int, moved: bool) -> bool:
        nonlocal tried
        if position == len(steps):
            return moved and total == 0
        stride, most = steps[position]
        rest = steps[position + 1 :]
        if stride == 0:
            return True
        reach = sum(rest_stride * rest_most for rest_stride, rest_most in rest)
        divisor = gcd(*(rest_stride for rest_stride, _ in rest))
        lowest = max(-most, -((total + reach) // stride))
        highest = min(most, (reach - total) // stride)
        first = lowest if moved else max(lowest, 0)  # of d and -d, one is enough
        for d in range(first, highest + 1):
            tried += 1
            if tried > MAX_TRIES:
                raise ValueError(
                    f"strides {tuple(stride for stride, _ in steps)} interleave too irregularly to decide "
                    "whether two elements share bytes; each must exceed the extent of the smaller ones"
                )
            value = total + d * stride
            back = value % divisor == 0 if divisor else value == 0
            if back and search(position + 1, value, moved or d != 0):
                return True
        return False

    return search(0, 0, False)


def coalesce(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Coalesce both layouts of a copy into as few dimensions as possible.

    The result has exactly the same pairs (element of `source`, element of `target`). No dimension of size 1
    is left, target strides are positive and in descending order, and neighbours i, i + 1
    are coalesced if and only if `stride[i] == size[i + 1] * stride[i + 1]` on both sides.
    """
    if min(target.strides, default=0) < 0:
        flips = [
            range(size - 1, -1, -1) if stride < 0 else range(size)
            for size, stride in zip(target.sizes, target.strides, strict=True)
        ]
        source, target = source.select(flips), target.select(flips)
    steps = zip(target.strides, source.strides, target.sizes, strict=True)
    dimensions = [dimension for dimension in steps if dimension[2] > 1]
    dimensions.sort(key=lambda dimension: -dimension[0])
    coalesced: list[tuple[int, int, int]] = []
    for target_stride, source_stride, size in dimensions:
        if coalesced and coalesced[-1][:2] == (size * target_stride, size * source_stride):
            size *= coalesced.pop()[2]
        coalesced.append((target_stride, source_stride, size))
    target_strides, source_strides, sizes = zip(*coalesced, strict=True) if coalesced else ((), (), ())
    return Layout.of(sizes, source_strides, source.offset), Layout.of(sizes, target_strides, target.offset)

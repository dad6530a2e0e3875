"""Device-independent layout rules: NumPy's views, and the copies of pad, roll, tile and triangles."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate, chain, cycle, product
from math import prod
from typing import NamedTuple, SupportsIndex

from wgslice.arguments import MAX_RANK, OneOrMore, checked_shape, distinct_axes, integer, order_letter
from wgslice.layout import Layout, coalesce


def flipped(layout: Layout, axes: OneOrMore | None = None) -> Layout:
    """`layout` with `axes`, or all, from the last index to the first."""
    chosen = range(layout.rank) if axes is None else distinct_axes("axes", axes, layout.rank)
    return layout.select(
        [range(size - 1, -1, -1) if axis in chosen else range(size) for axis, size in enumerate(layout.sizes)]
    )


def permuted(layout: Layout, axes: OneOrMore) -> Layout:
    """`layout` with its dimensions in the order of `axes`, each of them once."""
    order = distinct_axes("axes", axes, layout.rank)
    if len(order) != layout.rank:
        raise ValueError(f"axes = {tuple(order)}: must name each of the {layout.rank} dimensions once")
    return layout.permuted(order)


def squeezed(layout: Layout, axis: OneOrMore | None = None) -> Layout:
    """`layout` without dimensions of size 1: those of `axis`, or all."""
    if layout.rank == 0 and isinstance(axis, SupportsIndex) and integer("axis", axis) in (0, -1):
        return layout  # as in NumPy
    ones = [number for number, size in enumerate(layout.sizes) if size == 1]
    dropped = ones if axis is None else distinct_axes("axis", axis, layout.rank)
    for number in dropped:
        if number not in ones:
            raise ValueError(f"axis {number} has size {layout.sizes[number]}: must have size 1")
    return layout.select(
        [0 if number in dropped else range(size) for number, size in enumerate(layout.sizes)]
    )


def unsqueezed(layout: Layout, axes: Sequence[int]) -> Layout:
    """`layout` with further dimensions of size 1, which are `axes` of the result."""
    rank = layout.rank + len(axes)
    if rank > MAX_RANK:
        raise ValueError(f"axes = {axes}: the result would have rank {rank}, must be at most {MAX_RANK}")
    added = distinct_axes("axes", axes, rank)
    sizes = iter(layout.sizes)
    return layout.select([None if axis in added else range(next(sizes)) for axis in range(rank)])


@lru_cache(maxsize=64)  # equal joins find their plans sooner by the same layouts
def parts(layout: Layout, axis: int, sizes: tuple[int, ...]) -> tuple[Layout, ...]:
    """Return consecutive parts of `layout` with given sizes along a dimension."""
    before, stride, behind = layout.sizes[:axis], layout.strides[axis], layout.sizes[axis + 1 :]
    return tuple(
        Layout.of((*before, size, *behind), layout.strides, layout.offset + (end - size) * stride)
        for size, end in zip(sizes, accumulate(sizes), strict=True)
    )


def repeated_to(layout: Layout, shape: OneOrMore) -> Layout:
    """`layout` repeated to a tensor's `shape`, to which it must broadcast."""
    sizes = checked_shape(shape)
    found = broadcast(layout, sizes)
    if found is not None:
        return found
    error = f"shape {layout.sizes} does not broadcast to {sizes}"
    added = len(sizes) - layout.rank
    if added < 0:
        raise ValueError(f"{error}: its rank must be at most {len(sizes)}")
    pairs = enumerate(zip(layout.sizes, sizes[added:], strict=True))
    axis, (own, size) = next(pair for pair in pairs if pair[1][0] not in (1, pair[1][1]))
    raise ValueError(f"{error}: its dimension {axis} has size {own}, must be 1 or {size}")


def once(layout: Layout, dimensions: int | None = None) -> Layout:
    """The elements of a layout without repetitions, or without those along its first `dimensions`."""
    repeating = layout.strides[:dimensions]
    sizes = [size if stride else 1 for size, stride in zip(layout.sizes, repeating, strict=False)]
    return layout.select([*map(range, sizes), *map(range, layout.sizes[len(sizes) :])])


def broadcast(layout: Layout, sizes: Sequence[int]) -> Layout | None:
    """`layout` repeated to `sizes` as NumPy broadcasts; None where it does not fit."""
    added = len(sizes) - layout.rank
    own = (1,) * added + layout.sizes
    if added < 0 or any(mine not in (1, size) for mine, size in zip(own, sizes, strict=True)):
        return None
    return Layout.of(sizes, (0,) * added + layout.strides, layout.offset)


def without_leading_ones(layout: Layout, most_rank: int) -> Layout:
    """`layout` without leading dimensions of size 1 beyond a rank, which NumPy ignores where it assigns."""
    beyond = max(layout.rank - most_rank, 0)
    if any(size != 1 for size in layout.sizes[:beyond]):
        return layout
    return layout.select([0] * beyond + [range(size) for size in layout.sizes[beyond:]])


def reshaped(layout: Layout, sizes: Sequence[int]) -> Layout | None:
    """`layout` over other sizes, the same elements in row-major order; None where that needs a copy.

    Neighbours with `stride[i] == size[i + 1] * stride[i + 1]` are coalesced to runs; a view exists
    if and only if the new sizes divide each of the runs.
    """
    assert prod(sizes) == layout.size
    if layout.size == 0:
        return Layout.of(sizes, (0,) * len(sizes))
    runs: list[list[int]] = []  # size and stride
    for size, stride in zip(layout.sizes, layout.strides, strict=True):
        if size > 1 and runs and runs[-1][1] == size * stride:
            runs[-1] = [runs[-1][0] * size, stride]
        elif size > 1:
            runs.append([size, stride])
    strides = []
    left, stride = 1, 0  # of the run at the end that new dimensions have not used up, from the last one on
    for size in reversed(sizes):
        if left == 1 and size > 1:
            left, stride = runs.pop()
        if left % size:
            return None
        strides.append(stride)
        left, stride = left // size, stride * size
    return Layout.of(sizes, strides[::-1], layout.offset)


def is_column_major(layout: Layout, order: str | None) -> bool:
    """Whether the first index varies fastest in an order of NumPy's, for A if it does in the layout alone."""
    letter = order_letter(order)
    return letter == "F" or (letter == "A" and not layout.is_packed and transposed(layout).is_packed)


def has_order(layout: Layout, order: str | None) -> bool:
    """Whether a layout is contiguous in one of NumPy's orders; every layout has order K."""
    letter = order_letter(order)
    rows, columns = letter in "CA" and layout.is_packed, letter in "FA" and transposed(layout).is_packed
    return letter == "K" or rows or columns


def in_order(layout: Layout, order: str | None) -> Layout:
    """`layout` with its dimensions permuted so that row-major order is one of NumPy's orders of `layout`."""
    if order_letter(order) == "K":
        return layout.permuted(slowest_first(layout.strides))
    return transposed(layout) if is_column_major(layout, order) else layout


def transposed(layout: Layout) -> Layout:
    """`layout` with its dimensions reversed."""
    return layout.permuted(range(layout.rank)[::-1])


def slowest_first(strides: Sequence[int]) -> list[int]:
    """Return dimensions by descending distance of their elements; those of stride 0 keep their place."""
    found: list[int] = []
    for axis in reversed(range(len(strides))):
        place = 0
        for position, other in enumerate(found):
            mine, theirs = abs(strides[axis]), abs(strides[other])
            if mine and theirs:
                if mine >= theirs:
                    break
                place = position + 1
        found.insert(place, axis)
    return found


def diagonal(layout: Layout, offset: int, axis1: int, axis2: int) -> Layout:
    """`layout` with the diagonal `offset` of two dimensions in their place, as the last one."""
    row, column = max(-offset, 0), max(offset, 0)
    count = max(min(layout.sizes[axis1] - row, layout.sizes[axis2] - column), 0)
    others = [axis for axis in range(layout.rank) if axis not in (axis1, axis2)]
    first, second = layout.strides[axis1], layout.strides[axis2]
    return Layout.of(
        [*(layout.sizes[axis] for axis in others), count],
        [*(layout.strides[axis] for axis in others), first + second],
        layout.offset + row * first + column * second,
    )


def reinterpreted(layout: Layout, itemsize: int, other: int) -> Layout:
    """`layout`, of elements of `itemsize` bytes, over the same bytes as elements of another width."""
    if itemsize == other:
        return layout
    if not layout.sizes:
        raise ValueError("a tensor of rank 0 keeps its itemsize")
    *outer, last = layout.sizes
    if last * itemsize % other:
        raise ValueError(
            f"the last dimension has {last} elements of {itemsize} bytes: their bytes must be a multiple of "
            f"{other}"
        )
    sizes = [*outer, last * itemsize // other]
    if 0 in sizes:
        return Layout.of(sizes, (0,) * layout.rank)
    *strides, step = layout.strides
    if last > 1 and step != 1:
        raise ValueError(
            f"strides {layout.strides}: must be 1 in the last dimension; copy() the tensor first"
        )
    for name, elements in (("offset", layout.offset), *(("stride", stride) for stride in strides)):
        if elements * itemsize % other:
            raise ValueError(
                f"{name} of {elements * itemsize} bytes: must be a multiple of {other}; copy() the tensor"
            )
    return Layout.of(
        sizes, [*(stride * itemsize // other for stride in strides), 1], layout.offset * itemsize // other
    )


# Copies in one stage (3 per axis of a padded result); beyond them, one axis after the other needs fewer.
MAX_PIECES = 27  # measured: `bench/results/constants.md`


class Segment(NamedTuple):
    """A range of the result and its source indices; a single index stands for the whole range."""

    target: range
    indices: range
    repeats: int = 1
    period: int = 0  # elements of the result from one repeat to the next


def rolled(size: int, shift: int) -> list[Segment]:
    """Return the segments of a dimension shifted cyclically."""
    moved = shift % size if size else 0
    behind, before = range(size - moved, size), range(size - moved)
    return [Segment(range(moved), behind), Segment(range(moved, size), before)] if moved else whole(size)


MODES = ("edge", "reflect", "symmetric", "wrap")


def padded(mode: str, size: int, before: int, behind: int) -> list[Segment]:
    """Return the segments of a dimension with a border before and behind it."""
    if before == behind == 0:
        return whole(size)
    if size == 0:
        raise ValueError(f"mode = {mode!r}: needs an element to repeat, and a dimension has size 0")
    end = before + size
    if mode == "edge" or size == 1:
        found = [
            Segment(range(before), range(1)),
            Segment(range(before, end), range(size)),
            Segment(range(end, end + behind), range(size - 1, size)),
        ]
        return [segment for segment in found if segment.target]
    back = {"wrap": range(0), "reflect": range(size - 2, 0, -1), "symmetric": range(size - 1, -1, -1)}[mode]
    period = size + len(back)
    first = -(before // period) * period  # where whole periods begin
    count = (size + behind - first) // period
    last = first + count * period
    if count < 2:
        return runs(size, back, -before, size + behind, before)
    period_runs = runs(size, back, first, first + period, before)
    return [
        *runs(size, back, -before, first, before),
        *(run._replace(repeats=count, period=period) for run in period_runs),
        *runs(size, back, last, size + behind, before),
    ]


def runs(size: int, back: range, start: int, stop: int, before: int) -> list[Segment]:
    """Return the segments of positions `start` to `stop` in the period of all indices, then `back`."""
    found: list[Segment] = []
    period, position = cycle((range(size), back)), start - start % (size + len(back))
    while position < stop:
        indices = next(period)
        first, last = max(position, start), min(position + len(indices), stop)
        if first < last:
            part = indices[first - position : last - position]
            found.append(Segment(range(before + first, before + last), part))
        position += len(indices)
    return found


def border_parts(sizes: Sequence[int], inner: Sequence[range]) -> list[tuple[Layout, Layout]]:
    """Return the parts before and behind a box in each dimension; corners belong to the last, as in NumPy."""
    whole = Layout.packed(sizes)
    found = []
    for axis, indices in enumerate(inner):
        before, behind = (
            whole.select([*map(range, sizes[:axis]), part, *inner[axis + 1 :]])
            for part in (range(indices.start), range(indices.stop, sizes[axis]))
        )
        found.append((before, behind))
    return found


class Stage(NamedTuple):
    """A packed result of these sizes, and copies that fill it: the layouts of what is read and written."""

    sizes: tuple[int, ...]
    copies: list[tuple[Layout, Layout]]


def stages(source: Layout, segmented: Sequence[Sequence[Segment]]) -> list[Stage]:
    """Return stages that copy each combination of segments: one, or one per dimension if these are fewer."""
    changed = [
        axis
        for axis, (segments, size) in enumerate(zip(segmented, source.sizes, strict=True))
        if list(segments) != whole(size)
    ]
    if len(changed) < 2 or not is_split(source, segmented):
        return [stage_of(source, segmented)]
    found = []
    for axis in changed:
        alone = [whole(size) for size in source.sizes]
        alone[axis] = list(segmented[axis])
        found.append(stage_of(source, alone))
        source = Layout.packed(found[-1].sizes)
    return found


def is_split(source: Layout, segmented: Sequence[Sequence[Segment]]) -> bool:
    """Whether fewer or simpler copies make the result one dimension after the other."""
    counts = [len(segments) for segments in segmented]
    if prod(counts) > max(MAX_PIECES, *counts):
        return True
    if prod(counts) > 1:
        return any(segment.repeats > 1 for segment in chain(*segmented))
    ((read, written),) = stage_of(source, segmented).copies
    return coalesce(read, written)[0].rank > MAX_RANK


def whole(size: int) -> list[Segment]:
    """Return the single segment of an unchanged dimension."""
    return [Segment(range(size), range(size))]


def stage_of(source: Layout, segmented: Sequence[Sequence[Segment]]) -> Stage:
    """Return the stage that copies each combination of segments."""
    sizes = tuple(sum(len(part.target) * part.repeats for part in segments) for segments in segmented)
    result = Layout.packed(sizes)
    copies = []
    for piece in product(*segmented):
        written = result.select([segment.target for segment in piece])
        read = repeated_to(source.select([segment.indices for segment in piece]), written.sizes)
        for segment, stride in zip(piece, result.strides, strict=True):
            if segment.repeats > 1:
                read, written = (
                    Layout.of((segment.repeats, *side.sizes), (apart, *side.strides), side.offset)
                    for side, apart in ((read, 0), (written, segment.period * stride))
                )
        copies.append((read, written))
    return Stage(sizes, copies)


class Block(NamedTuple):
    """A box of a matrix, repeated along the diagonal."""

    rows: range
    columns: range
    times: int = 1
    step: int = 0  # rows, and as many columns, from one to the next

    def of(self, layout: Layout) -> Layout:
        """Return the block in the last two dimensions of a layout, after a dimension of repeats."""
        *outer, _, _ = layout.sizes
        box = layout.select([*map(range, outer), self.rows, self.columns])
        *strides, row, column = box.strides
        apart = self.step * sum(layout.strides[-2:])
        return Layout.of((*outer, self.times, *box.sizes[-2:]), (*strides, apart, row, column), box.offset)


def lower_triangle(rows: int, columns: int, k: int) -> list[Block]:
    """Return about 2 log2(n) disjoint blocks that cover `column <= row + k` of a matrix."""
    top = min(max(-k, 0), rows)  # the first row of which something is left
    left = min(max(k, 0), columns)  # columns that are left whole
    height, width = rows - top, columns - left
    side = min(height, width)
    blocks = [Block(range(top, rows), range(left)), Block(range(top + side, rows), range(left, columns))]
    blocks.append(Block(range(top, top + min(side, 1)), range(left, left + min(side, 1)), side, 1))
    size = 1
    while size < side:  # squares at equal distances along the diagonal, the last of them cut off
        count = side // (2 * size)
        if count:
            blocks.append(Block(range(top + size, top + 2 * size), range(left, left + size), count, 2 * size))
        start = 2 * size * count
        cut = range(top + start + size, top + side)
        blocks.append(Block(cut, range(left + start, left + start + size)))
        size *= 2
    return [block for block in blocks if block.rows and block.columns]

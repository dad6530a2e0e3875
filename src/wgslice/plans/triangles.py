"""The lower triangle of matrices as a few blocks, each of which is a window."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from wgslice.layout import Layout

__all__ = ["Block", "lower_triangle"]


class Block(NamedTuple):
    """A box of a matrix, and how often it comes again along the diagonal."""

    rows: range
    columns: range
    times: int = 1
    step: int = 0  # rows, and as many columns, from one to the next

    def of(self, layout: Layout) -> Layout:
        """The block in the last two dimensions of a layout, with a dimension of repeats before these."""
        *outer, _, _ = layout.sizes
        box = layout.select([*map(range, outer), self.rows, self.columns])
        *strides, row, column = box.strides
        apart = self.step * sum(layout.strides[-2:])
        return Layout.of((*outer, self.times, *box.sizes[-2:]), (*strides, apart, row, column), box.offset)


def lower_triangle(rows: int, columns: int, k: int) -> list[Block]:
    """Disjoint blocks of all elements with `column <= row + k` in a matrix of so many rows and columns.

    Some 2 * log2 of its size: rectangles beside a triangle, and of the triangle, for each power of two, the
    squares below the diagonal, which lie at equal distances along it.
    """
    top = min(max(-k, 0), rows)  # the first row of which something is left
    left = min(max(k, 0), columns)  # columns that are left whole
    height, width = rows - top, columns - left
    side = min(height, width)
    beside = Block(range(top, rows), range(left))
    below = Block(range(top + side, rows), range(left, columns))
    blocks = [beside, below, *(shifted(block, top, left) for block in squares(side))]
    return [block for block in blocks if block.rows and block.columns]


def shifted(block: Block, rows: int, columns: int) -> Block:
    """A block further down and to the right."""
    return block._replace(
        rows=range(block.rows.start + rows, block.rows.stop + rows),
        columns=range(block.columns.start + columns, block.columns.stop + columns),
    )


def squares(side: int) -> Iterator[Block]:
    """The lower triangle of a square matrix, its diagonal included."""
    yield Block(range(min(side, 1)), range(min(side, 1)), side, 1)
    size = 1
    while size < side:
        count = side // (2 * size)
        if count:
            yield Block(range(size, 2 * size), range(size), count, 2 * size)
        start = 2 * size * count
        if start + size < side:  # the last one is cut off
            yield Block(range(start + size, side), range(start, start + size))
        size *= 2

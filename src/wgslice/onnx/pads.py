"""ONNX's Pad: a border of a constant, or of the tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate, product
from math import prod
from typing import Any, NamedTuple

from wgslice.layout import Layout
from wgslice.onnx.values import Value
from wgslice.onnx.workspace import Workspace
from wgslice.operators.windows_arguments import repeated_bytes, windows_of
from wgslice.plans.extract_windows import extract_windows_planner
from wgslice.plans.profiles import MOST_PAD_PIECES

__all__ = ["pad", "segments"]


def pad(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str, value: Any) -> Value:
    """A copy of `x` with so many elements more, or fewer, before and behind each dimension."""
    sizes = padded_sizes(x, widths)
    for axis, size in enumerate(sizes):
        if size < 0:
            raise ValueError(
                f"pads {widths[axis]} of axis {axis} leave {size} of its {x.shape[axis]} elements"
            )
    if mode not in MODES and mode != "constant":
        raise ValueError(f"mode = {mode!r}: must be 'constant', 'edge', 'reflect' or 'wrap'")
    if all(width == (0, 0) for width in widths):
        return x
    if 0 in sizes:
        return workspace.empty(sizes, x.dtype)
    if mode == "constant":
        return constant_border(workspace, x, widths, value)
    return own_border(workspace, x, widths, mode)


def constant_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], value: Any) -> Value:
    """A window that leaves the tensor, filled with a value where it does."""
    sizes = padded_sizes(x, widths)
    result = workspace.empty(sizes, x.dtype)
    begins = [-before for before, _ in widths]
    windows = windows_of([begins], x.shape, sizes, None, repeated_bytes(value, x.dtype))
    target = result.viewed(Layout.packed((1, *sizes)))
    workspace.run(extract_windows_planner(windows), x, target)
    return result


def own_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str) -> Value:
    """A copy of each piece of the border, all at once; one axis after the other where they are too many."""
    cropped = x.layout.select(
        [
            range(max(-before, 0), size + min(behind, 0))
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        ]
    )
    segmented = [
        segments(mode, size, max(before, 0), max(behind, 0))
        for size, (before, behind) in zip(cropped.sizes, widths, strict=True)
    ]
    if prod(map(len, segmented)) > max(MOST_PAD_PIECES, *map(len, segmented)):
        for axis, width in enumerate(widths):
            if width != (0, 0):
                alone = [(0, 0)] * x.ndim
                alone[axis] = width
                x = own_border(workspace, x, alone, mode)
        return x
    result = workspace.empty(padded_sizes(x, widths), x.dtype)
    for piece in product(*segmented):
        source = cropped.select([segment.indices for segment in piece])
        padded = result.layout.select([segment.padded for segment in piece])
        workspace.copy(x.viewed(source), result.viewed(padded))
    return result


def padded_sizes(x: Value, widths: Sequence[tuple[int, int]]) -> list[int]:
    """Sizes with so many elements more, or fewer, before and behind."""
    return [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]


class Segment(NamedTuple):
    """Neighbours of a padded dimension, and the indices they take; one index is taken for all of them."""

    padded: range
    indices: range


def segments(mode: str, size: int, before: int, behind: int) -> list[Segment]:
    """A padded dimension of the result, from its beginning, in parts that are windows of the tensor's."""
    if size == 0:
        raise ValueError(f"mode = {mode!r}: needs an element to repeat, and a dimension has size 0")
    part_of = MODES[mode] if size > 1 else edge_part
    taken: list[range] = []
    counts: list[int] = []
    position, stop = -before, size + behind
    while position < stop:
        indices, count = part_of(position, size)
        count = min(count, stop - position)
        taken.append(indices[:count])
        counts.append(count)
        position += count
    ends = list(accumulate(counts))
    return [
        Segment(range(end - count, end), indices)
        for end, count, indices in zip(ends, counts, taken, strict=True)
    ]


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


MODES = {"edge": edge_part, "reflect": reflect_part, "wrap": wrap_part}

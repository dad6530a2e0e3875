"""ONNX's Pad: a border of a constant, or of the tensor's own elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain, product
from math import prod
from typing import Any, NamedTuple

from wgslice.layout import Layout
from wgslice.onnx.values import Value
from wgslice.onnx.workspace import Workspace
from wgslice.operators.windows_arguments import repeated_bytes, windows_of
from wgslice.plans.aside import plan_anew
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
    workspace.run(extract_windows_planner(windows), x, target, plan_anew)
    return result


def own_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str) -> Value:
    """A copy of each piece of the border, all at once; one axis after the other where they are too many.

    Likewise where the tensor comes again and again, so that no copy has two dimensions of repeats.
    """
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
    many = prod(map(len, segmented)) > max(MOST_PAD_PIECES, *map(len, segmented))
    again = any(segment.repeats > 1 for segment in chain(*segmented))
    if (many or again) and sum(width != (0, 0) for width in widths) > 1:
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
        for axis, (segment, stride) in enumerate(zip(piece, result.layout.strides, strict=True)):
            if segment.repeats > 1:
                source = with_dimension(source, axis, 1, 0)
                padded = with_dimension(padded, axis, segment.repeats, segment.period * stride)
        workspace.copy(x.viewed(source), result.viewed(padded))
    return result


def with_dimension(layout: Layout, axis: int, size: int, stride: int) -> Layout:
    """A layout with a dimension more, before `axis`."""
    sizes, strides = list(layout.sizes), list(layout.strides)
    sizes.insert(axis, size)
    strides.insert(axis, stride)
    return Layout.of(sizes, strides, layout.offset)


def padded_sizes(x: Value, widths: Sequence[tuple[int, int]]) -> list[int]:
    """Sizes with so many elements more, or fewer, before and behind."""
    return [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]


class Segment(NamedTuple):
    """Neighbours of a padded dimension, and the indices they take; one index is taken for all of them."""

    padded: range
    indices: range
    repeats: int = 1
    period: int = 0  # elements of the padded dimension from one repeat to the next


def segments(mode: str, size: int, before: int, behind: int) -> list[Segment]:
    """A padded dimension of the result, from its beginning, in parts that are windows of the tensor's."""
    if size == 0:
        raise ValueError(f"mode = {mode!r}: needs an element to repeat, and a dimension has size 0")
    if size == 1:
        mode = "edge"
    period = {"edge": ENDLESS, "wrap": size, "reflect": 2 * (size - 1)}[mode]
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


MODES = {"edge": edge_part, "reflect": reflect_part, "wrap": wrap_part}

"""ONNX's Pad: a border of a constant, or of the tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

from wgslice.layout import Layout
from wgslice.layout_rules import border_parts, padded, stages
from wgslice.onnx.values import Value
from wgslice.onnx.workspace import Workspace
from wgslice.plans.copy import fills, pattern_size
from wgslice.tensors.writing import as_assigned

__all__ = ["pad"]

MODES = "constant", "edge", "reflect", "wrap"


def pad(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str, value: Any) -> Value:
    """A copy of `x` with so many elements more, or fewer, before and behind each dimension."""
    sizes = padded_sizes(x, widths)
    for axis, size in enumerate(sizes):
        if size < 0:
            raise ValueError(
                f"pads {widths[axis]} of axis {axis} leave {size} of its {x.shape[axis]} elements"
            )
    if mode not in MODES:
        raise ValueError(f"mode = {mode!r}: must be 'constant', 'edge', 'reflect' or 'wrap'")
    if all(width == (0, 0) for width in widths):
        return x
    if 0 in sizes:
        return workspace.empty(sizes, x.dtype)
    if mode == "constant":
        return constant_border(workspace, x, widths, value)
    return own_border(workspace, x, widths, mode)


def constant_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], value: Any) -> Value:
    """A copy of what is left of the tensor, and beside it the value, as often as there is border."""
    cropped = cropped_layout(x, widths)
    sizes = padded_sizes(x, widths)
    result = workspace.empty(sizes, x.dtype)
    begins = [min(max(before, 0), size) for (before, _), size in zip(widths, sizes, strict=True)]
    inner = [range(begin, begin + size) for begin, size in zip(begins, cropped.sizes, strict=True)]
    workspace.copy(x.viewed(cropped), result.viewed(Layout.packed(sizes).select(inner)))
    parts = [part for part in chain(*border_parts(sizes, inner)) if part.size]
    copies = [copy for part in parts for copy in fills(part, x.dtype.itemsize)]
    if copies:
        pattern = workspace.constant(as_assigned(value, x.dtype), pattern_size(copies))
        for repeated, part in copies:
            workspace.copy(pattern.viewed(repeated), result.viewed(part))
    return result


def own_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str) -> Value:
    """A copy of each piece of the border; negative widths leave elements out beforehand."""
    cropped = cropped_layout(x, widths)
    segmented = [
        padded(mode, size, max(before, 0), max(behind, 0))
        for size, (before, behind) in zip(cropped.sizes, widths, strict=True)
    ]
    return workspace.assembled(x, stages(cropped, segmented))


def cropped_layout(x: Value, widths: Sequence[tuple[int, int]]) -> Layout:
    """What negative widths leave of a value."""
    return x.layout.select(
        [
            range(min(max(-before, 0), size), max(min(size + behind, size), 0))
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        ]
    )


def padded_sizes(x: Value, widths: Sequence[tuple[int, int]]) -> list[int]:
    """Sizes with so many elements more, or fewer, before and behind."""
    return [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]

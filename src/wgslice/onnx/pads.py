"""ONNX's Pad: a border of a constant, or of the tensor's own elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wgslice.layout import Layout
from wgslice.onnx.values import Value
from wgslice.onnx.workspace import Workspace
from wgslice.plans.aside import plan_anew
from wgslice.plans.assembling import stages
from wgslice.plans.extract_windows import extract_windows_planner
from wgslice.plans.segments import padded
from wgslice.tensors.windows_arguments import repeated_bytes, windows_of

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
    """A window that leaves the tensor, filled with a value where it does."""
    sizes = padded_sizes(x, widths)
    result = workspace.empty(sizes, x.dtype)
    begins = [-before for before, _ in widths]
    windows = windows_of([begins], x.shape, sizes, None, repeated_bytes(value, x.dtype))
    target = result.viewed(Layout.packed((1, *sizes)))
    workspace.run(extract_windows_planner(windows), x, target, plan_anew)
    return result


def own_border(workspace: Workspace, x: Value, widths: Sequence[tuple[int, int]], mode: str) -> Value:
    """A copy of each piece of the border; negative widths leave elements out beforehand."""
    cropped = x.layout.select(
        [
            range(max(-before, 0), size + min(behind, 0))
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        ]
    )
    segmented = [
        padded(mode, size, max(before, 0), max(behind, 0))
        for size, (before, behind) in zip(cropped.sizes, widths, strict=True)
    ]
    return workspace.assembled(x, stages(cropped, segmented))


def padded_sizes(x: Value, widths: Sequence[tuple[int, int]]) -> list[int]:
    """Sizes with so many elements more, or fewer, before and behind."""
    return [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]

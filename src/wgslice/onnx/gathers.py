"""ONNX's Gather, GatherElements and ReverseSequence: what NumPy's arrays of indices select, copied."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.dialects.advanced_index import AdvancedSelection, any_index
from wgslice.layout import Layout
from wgslice.onnx.call import Call
from wgslice.onnx.values import Value
from wgslice.plans.extract import extract_windows_planner
from wgslice.plans.gather import indexed_windows
from wgslice.plans.staging import plan_anew

__all__ = ["gather", "gather_elements", "reverse_sequence", "within"]


def gather(call: Call) -> list[Value]:
    """Gather: a view where the indices are evenly spaced."""
    x = call.x
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), x.ndim)
    indices = within(call.indices(1), x.shape[axis], axis)
    sizes = checked_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    step = spacing(indices)
    if step is None:
        return [selected(call, (*[slice(None)] * axis, indices))]
    stride, first = x.strides[axis], int(indices.flat[0]) if indices.size else 0
    among = [step * stride * each for each in Layout.packed(indices.shape).strides]
    strides = (*x.strides[:axis], *among, *x.strides[axis + 1 :])
    return [x.viewed(Layout.of(sizes, strides, x.layout.offset + first * stride))]


def within(indices: NDArray[np.int64], size: int, axis: int) -> NDArray[np.int64]:
    """Indices of a dimension, of which negative ones count from its end, as such from its beginning."""
    outside = indices[(indices < -size) | (indices >= size)]
    if outside.size:
        raise ValueError(
            f"index {int(outside[0])}: must be {-size} to {size - 1}, as axis {axis} has size {size}"
        )
    return np.where(indices < 0, indices + size, indices)


def spacing(indices: NDArray[np.int64]) -> int | None:
    """The distance from each index to the next; None where they differ."""
    steps = np.diff(indices.reshape(-1))
    if steps.size == 0:
        return 0
    return int(steps[0]) if (steps == steps[0]).all() else None


def gather_elements(call: Call) -> list[Value]:
    """GatherElements: an index for each element."""
    x = call.x
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), x.ndim)
    indices = within(call.indices(1), x.shape[axis], axis)
    if indices.ndim != x.ndim:
        raise ValueError(f"indices have rank {indices.ndim}: must have rank {x.ndim} as the input has")
    for other, (size, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if other != axis and size > most:
            raise ValueError(f"indices have size {size} in dimension {other}: must be at most {most}")
    key = list(np.ogrid[tuple(map(slice, indices.shape))])
    key[axis] = indices
    return [selected(call, tuple(key))]


def reverse_sequence(call: Call) -> list[Value]:
    """ReverseSequence: an index for each step of each sequence."""
    x = call.x
    batch_axis, time_axis = call.attributes.get("batch_axis", 1), call.attributes.get("time_axis", 0)
    if x.ndim < 2 or {batch_axis, time_axis} != {0, 1}:
        raise ValueError(
            f"batch_axis = {batch_axis} and time_axis = {time_axis} of an input of rank {x.ndim}: must be 0 "
            "and 1, or 1 and 0, of an input of rank 2 at least"
        )
    given = call.required("sequence_lens", position=1, since=10)
    batch, time = x.shape[batch_axis], x.shape[time_axis]
    if len(given) != batch or not all(0 <= length <= time for length in given):
        raise ValueError(f"sequence_lens = {given}: must be {batch}, one a sequence, each 0 to {time}")
    lengths, steps = np.array(given, np.int64)[:, None], np.arange(time)
    key = [np.arange(batch)[:, None], np.where(steps < lengths, lengths - 1 - steps, steps)]
    return [selected(call, tuple(key if batch_axis == 0 else [each.T for each in reversed(key)]))]


def selected(call: Call, key: tuple[Any, ...]) -> Value:
    """A copy of what an index with arrays selects of the first input."""
    x, workspace = call.x, call.workspace
    selection = any_index(x.shape, key)
    assert isinstance(selection, AdvancedSelection)
    result = workspace.empty(selection.shape, x.dtype)
    if result.size:
        windows = indexed_windows(selection, x.layout, result.layout, reads=True)
        assert windows is not None  # the dimensions of a packed value merge
        offsets = windows.offsets()
        for numbers in windows.pieces(workspace.device.limits, offsets.itemsize):
            planner = extract_windows_planner(windows.windows(numbers, offsets))
            source, target = x.viewed(windows.tensor), result.viewed(windows.elements_of(numbers))
            workspace.run(planner, source, target, plan_anew)
    return result

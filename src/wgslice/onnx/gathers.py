"""ONNX's Gather, GatherElements and ReverseSequence: windows at indices that the host knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.layout import Layout
from wgslice.onnx.call import Call
from wgslice.onnx.values import Value
from wgslice.operators.windows_arguments import windows_of
from wgslice.plans.extract_windows import extract_windows_planner

__all__ = ["gather", "gather_elements", "reverse_sequence"]

Indices = NDArray[np.int64]


def gather(call: Call) -> list[Value]:
    """Gather: a view where the indices are evenly spaced, else a window for each index."""
    x = call.x
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), x.ndim)
    indices = call.indices(1, x.shape[axis], axis)
    before, behind = x.shape[:axis], x.shape[axis + 1 :]
    sizes = checked_shape((*before, *indices.shape, *behind))
    step = spacing(indices.reshape(-1))
    if step is not None:
        first = int(indices.flat[0]) if indices.size else 0
        strides = [step * stride * x.strides[axis] for stride in Layout.packed(indices.shape).strides]
        all_strides = (*x.strides[:axis], *strides, *x.strides[axis + 1 :])
        return [x.viewed(Layout.of(sizes, all_strides, x.layout.offset + first * x.strides[axis]))]
    result = call.workspace.empty(sizes, x.dtype)
    offsets = np.zeros((indices.size, x.ndim), np.int64)
    offsets[:, axis] = indices.reshape(-1)
    target = Layout.packed((*before, indices.size, 1, *behind))
    windows_first = target.permuted([axis, *(other for other in range(target.rank) if other != axis)])
    take(call, x, offsets, (*before, 1, *behind), result.viewed(windows_first))
    return [result]


def spacing(indices: Indices) -> int | None:
    """The distance from each index to the next; None where they differ."""
    steps = np.diff(indices)
    if steps.size and (steps != steps[0]).any():
        return None
    return int(steps[0]) if steps.size else 0


def gather_elements(call: Call) -> list[Value]:
    """GatherElements: a window of one element for each index, out of the memory that the input lies in."""
    x = call.x
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), x.ndim)
    indices = call.indices(1, x.shape[axis], axis)
    if indices.ndim != x.ndim:
        raise ValueError(f"indices have rank {indices.ndim}: must have rank {x.ndim} as the input has")
    for other, (size, most) in enumerate(zip(indices.shape, x.shape, strict=True)):
        if other != axis and size > most:
            raise ValueError(f"indices have size {size} in dimension {other}: must be at most {most}")
    coordinates = list(np.ogrid[tuple(map(slice, indices.shape))])
    coordinates[axis] = indices
    lowest = x.layout.lowest
    places = np.full(indices.shape, x.layout.offset - lowest)
    for coordinate, stride in zip(coordinates, x.strides, strict=True):
        places += coordinate * stride
    result = call.workspace.empty(indices.shape, x.dtype)
    memory = x.viewed(Layout.packed([x.layout.stop - lowest], lowest))
    take(call, memory, places.reshape(-1, 1), (1,), result.viewed(Layout.packed((indices.size, 1))))
    return [result]


def reverse_sequence(call: Call) -> list[Value]:
    """ReverseSequence: a window for each step of each sequence."""
    x = call.x
    batch_axis, time_axis = (call.attributes.get(f"{name}_axis", default) for name, default in AXES)
    if x.ndim < 2 or {batch_axis, time_axis} != {0, 1}:
        raise ValueError(
            f"batch_axis = {batch_axis} and time_axis = {time_axis} of an input of rank {x.ndim}: must be 0 "
            "and 1, or 1 and 0, and the rank at least 2"
        )
    lengths = np.array(call.required("sequence_lens", position=1, since=10), np.int64)
    batch, time = x.shape[batch_axis], x.shape[time_axis]
    if lengths.shape != (batch,) or ((lengths < 0) | (lengths > time)).any():
        raise ValueError(f"sequence_lens = {tuple(lengths.tolist())}: must be {batch}, each 0 to {time}")
    steps = np.arange(time)
    taken = np.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    offsets = np.zeros((batch, time, x.ndim), np.int64)
    offsets[..., batch_axis], offsets[..., time_axis] = np.arange(batch)[:, None], taken
    if time_axis == 0:
        offsets = offsets.swapaxes(0, 1)
    result = call.workspace.empty(x.shape, x.dtype)
    windows = result.viewed(Layout.packed((batch * time, 1, 1, *x.shape[2:])))
    take(call, x, offsets.reshape(-1, x.ndim), (1, 1, *x.shape[2:]), windows)
    return [result]


AXES = ("batch", 1), ("time", 0)  # and where they are by default


def take(call: Call, x: Value, offsets: Indices, extents: tuple[int, ...], target: Value) -> None:
    """Copy windows from the offsets on, one behind the other, unless there is nothing to copy."""
    if target.size:
        windows = windows_of(offsets, x.shape, extents, None, None)
        call.workspace.run(extract_windows_planner(windows), x, target)

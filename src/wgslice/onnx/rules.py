"""A rule for each of ONNX's operators that move elements: here those that copy, and the table of all."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wgslice.onnx.views as views
from wgslice.arguments import checked_shape, distinct_axes
from wgslice.dialects.advanced import AdvancedSelection, any_index
from wgslice.layout import Layout
from wgslice.layout_rules import repeated_to, unsqueezed
from wgslice.numpy_protocol import copies
from wgslice.numpy_protocol.copies import extended, joined, triangle, with_border
from wgslice.onnx.views import Call
from wgslice.onnx.workspace import Nested, Value, as_value
from wgslice.tensors.placed import as_assigned

MODES = "constant", "edge", "reflect", "wrap"


def concat(call: Call) -> list[Value]:
    """Concat."""
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 1), call.x.ndim)
    first = call.x.shape
    values: list[Value] = []
    for number, given in enumerate(call.data):
        value = as_value(number, given)
        if value.dtype != call.x.dtype:
            raise TypeError(f"input {number} has dtype {value.dtype}: must be {call.x.dtype} as input 0 has")
        others = value.shape[:axis] + value.shape[axis + 1 :]
        if value.ndim != call.x.ndim or others != first[:axis] + first[axis + 1 :]:
            raise ValueError(
                f"input {number} has sizes {value.shape}: must be {first} as input 0 has, but for axis {axis}"
            )
        values.append(value)
    if len(values) == 1:
        return values
    return [joined(call.workspace, values, [value.layout for value in values], axis)]


def pad(call: Call) -> list[Value]:
    """Pad, in all of its modes."""
    x = call.x
    name = "paddings" if call.version == 1 else "pads"
    amounts = call.required(name, position=1, since=11)
    axes = call.integers("axes", position=3, since=18)
    chosen = distinct_axes("axes", range(x.ndim) if axes is None else axes, x.ndim)
    if len(amounts) != 2 * len(chosen):
        raise ValueError(f"{name} = {amounts}: must be {2 * len(chosen)}, a begin and an end for each axis")
    widths = [(0, 0)] * x.ndim
    for number, axis in enumerate(chosen):
        widths[axis] = amounts[number], amounts[len(chosen) + number]
    value, given = call.attributes.get("value", 0), call.parameters.get(2)
    if call.version >= 11 and given is not None:
        value = given
        if value.size != 1 or value.dtype != x.dtype:
            raise TypeError(f"constant_value is {value.size} of dtype {value.dtype}: must be one {x.dtype}")
        value = value.reshape(())
    return [padded(call, widths, value)]


def padded(call: Call, widths: list[tuple[int, int]], value: Any) -> Value:
    """Copy with `widths` elements more, or fewer if negative, before and behind each dimension."""
    x, mode = call.x, call.attributes.get("mode", b"constant").decode()
    sizes = [size + before + behind for size, (before, behind) in zip(x.shape, widths, strict=True)]
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
        return call.workspace.empty(sizes, x.dtype)
    cropped = x.layout.select(
        [
            range(min(max(-before, 0), size), max(min(size + behind, size), 0))
            for size, (before, behind) in zip(x.shape, widths, strict=True)
        ]
    )
    added = [(max(before, 0), max(behind, 0)) for before, behind in widths]
    if mode != "constant":
        return extended(call.workspace, x, cropped, added, mode)
    begins = [min(before, size) for (before, _), size in zip(added, sizes, strict=True)]
    inner = [range(begin, begin + size) for begin, size in zip(begins, cropped.sizes, strict=True)]
    constants = np.broadcast_to(as_assigned(value, x.dtype), (x.ndim, 2))
    return with_border(call.workspace, x, cropped, sizes, inner, constants)


def tile(call: Call) -> list[Value]:
    """Tile: a view where only dimensions of size 1 are repeated."""
    x, counts = call.x, repeats(call)
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ValueError(f"repeats = {counts}: must be {x.ndim}, one a dimension, each at least 0")
    if all(size == 1 or count == 1 for size, count in zip(x.shape, counts, strict=True)):
        return [x.viewed(repeated_to(x.layout, [a * b for a, b in zip(x.shape, counts, strict=True)]))]
    return [copies.tile(call.workspace, x, x.layout, counts)]


def repeats(call: Call) -> tuple[int, ...]:
    """How often Tile repeats each dimension; at first it was one dimension, named by numbers of any type."""
    if call.version >= 6:
        return call.required("repeats", position=1, since=6)
    count, along = (call.parameters[position] for position in (1, 2))
    assert count is not None
    assert along is not None  # neither may be absent
    (axis,) = distinct_axes("axis", int(along.item()), call.x.ndim)
    return tuple(int(count.item()) if number == axis else 1 for number in range(call.x.ndim))


def constant_of_shape(call: Call) -> list[Value]:
    """ConstantOfShape: a view of one element."""
    value = np.asarray(call.attributes.get("value", np.zeros(1, np.float32)))
    shape = checked_shape(call.required("input", position=0, since=9))
    element = call.workspace.upload(value.reshape(()))
    return [element.viewed(repeated_to(element.layout, shape))]


def trilu(call: Call) -> list[Value]:
    """Trilu: a copy, and zeros in the other triangle."""
    x = call.x
    if x.ndim < 2:
        raise ValueError(f"input of rank {x.ndim}: must have rank 2 at least, as a matrix has")
    (k,) = call.integers("k", position=1, since=14) or (0,)
    return [triangle(call.workspace, x, x.layout, k, upper=bool(call.attributes.get("upper", 1)))]


def gather(call: Call) -> list[Value]:
    """Gather: a view where the indices are evenly spaced."""
    x = call.x
    (axis,) = distinct_axes("axis", call.attributes.get("axis", 0), x.ndim)
    indices = within(call.indices(1), x.shape[axis], axis)
    sizes = checked_shape((*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]))
    steps = np.diff(indices.reshape(-1))
    if (steps != steps[:1]).any():
        return [selected(call, (*[slice(None)] * axis, indices))]
    step, first = (int(found.flat[0]) if found.size else 0 for found in (steps, indices))
    stride = x.strides[axis]
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
    x = call.x
    selection = any_index(x.shape, key)
    assert isinstance(selection, AdvancedSelection)
    result = call.workspace.empty(selection.shape, x.dtype)
    if result.size:
        call.workspace.copy_at(selection, x, result, reads=True)
    return result


def scatter_nd(call: Call) -> list[Value]:
    """ScatterND without a reduction; of equal indices the last one stays."""
    x, updates, indices = call.x, as_value(2, call.data[1]), call.indices(1)
    if updates.dtype != x.dtype:
        raise TypeError(f"input 2 has dtype {updates.dtype}: must be {x.dtype} as input 0 has")
    if indices.ndim == 0 or not 1 <= indices.shape[-1] <= x.ndim:
        raise ValueError(
            f"indices have shape {indices.shape}: the last size must be 1 to {x.ndim}, the input's rank"
        )
    indexed = indices.shape[-1]
    expected = (*indices.shape[:-1], *x.shape[indexed:])
    if updates.shape != expected:
        raise ValueError(
            f"updates have sizes {updates.shape}: must be {expected}, as indices have shape {indices.shape} "
            f"and the input has sizes {x.shape}"
        )
    if indices.ndim == 1:  # one index
        indices, updates = indices[None], updates.viewed(unsqueezed(updates.layout, [0]))
    key = tuple(within(indices[..., axis], x.shape[axis], axis) for axis in range(indexed))
    workspace = call.workspace
    result = workspace.packed(x)
    if updates.size:
        selection = any_index(result.shape, key)
        assert isinstance(selection, AdvancedSelection)
        workspace.copy_at(selection, result, updates, reads=False)
    return [result]


class Rule(NamedTuple):
    """How an operator runs, and which of its inputs are data, by their positions; None where all are."""

    run: Callable[[Call], Sequence[Nested[Value]]]
    data: Collection[int] | None = (0,)

    def positions(self, count: int) -> list[int]:
        """The positions of data among so many inputs."""
        return [position for position in range(count) if self.data is None or position in self.data]


RULES = {
    "Concat": Rule(concat, data=None),
    "ConstantOfShape": Rule(constant_of_shape, data=()),
    "DepthToSpace": Rule(views.depth_to_space),
    "Expand": Rule(views.expand),
    "Flatten": Rule(views.flatten),
    "Gather": Rule(gather),
    "GatherElements": Rule(gather_elements),
    "Identity": Rule(views.identity),
    "Pad": Rule(pad),
    "Reshape": Rule(views.reshape),
    "ReverseSequence": Rule(reverse_sequence),
    "ScatterND": Rule(scatter_nd, data=(0, 2)),
    "Slice": Rule(views.slice_),
    "SpaceToDepth": Rule(views.space_to_depth),
    "Split": Rule(views.split),
    "Squeeze": Rule(views.squeeze),
    "Tile": Rule(tile),
    "Transpose": Rule(views.transpose),
    "Trilu": Rule(trilu),
    "Unsqueeze": Rule(views.unsqueeze),
}

"""ONNX's Tile, ConstantOfShape and Trilu: elements again and again, a tensor's or a value."""

from __future__ import annotations

import numpy as np

from wgslice.arguments import checked_shape, distinct_axes
from wgslice.layout_rules import lower_triangle, stages, tiled
from wgslice.onnx.call import Call
from wgslice.onnx.values import Value
from wgslice.rearrange import repeated_to

__all__ = ["constant_of_shape", "tile", "trilu"]


def tile(call: Call) -> list[Value]:
    """Tile: a view where only dimensions of size 1 are repeated."""
    x, counts = call.x, repeats(call)
    if len(counts) != x.ndim or min(counts, default=0) < 0:
        raise ValueError(f"repeats = {counts}: must be {x.ndim}, one a dimension, each at least 0")
    sizes = checked_shape([size * count for size, count in zip(x.shape, counts, strict=True)])
    if all(size == 1 or count == 1 for size, count in zip(x.shape, counts, strict=True)):
        return [x.viewed(repeated_to(x.layout, sizes))]
    if 0 in sizes:
        return [call.workspace.empty(sizes, x.dtype)]
    return [call.workspace.assembled(x, stages(x.layout, list(map(tiled, x.shape, counts))))]


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
    rows, columns = x.shape[-2:]
    result = call.workspace.packed(x)
    zero = call.workspace.upload(np.zeros((), x.dtype))
    if call.attributes.get("upper", 1):
        layout, blocks = result.layout, lower_triangle(rows, columns, k - 1)
    else:  # what lies above is below in the transpose
        order = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
        layout, blocks = result.layout.permuted(order), lower_triangle(columns, rows, -k - 1)
    for block in blocks:
        call.workspace.copy(zero, result.viewed(block.of(layout)))
    return [result]

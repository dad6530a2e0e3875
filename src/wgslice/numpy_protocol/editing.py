"""Elements deleted, inserted and repeated along a dimension, by NumPy's functions."""

from __future__ import annotations

from itertools import pairwise
from math import prod
from typing import Any, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import checked_shape, int64_of, one_axis, one_or_more
from wgslice.dialects.advanced import NO_INDEX_ARRAY, non_negative
from wgslice.dtypes import check_same_dtype
from wgslice.layout import Layout
from wgslice.layout_rules import (
    MAX_PIECES,
    Segment,
    broadcast,
    repeated_to,
    reshaped,
    whole,
    without_leading_ones,
)
from wgslice.numpy_protocol.copies import Copies
from wgslice.numpy_protocol.moving import in_segments
from wgslice.tensors.creation import asarray, zeros
from wgslice.tensors.indexing import assign
from wgslice.tensors.placed import as_assigned, check_no_sequence, check_tensor, viewed
from wgslice.tensors.tensor import Tensor, allocate
from wgslice.tensors.views import moveaxis


def delete(arr: Tensor, obj: Any, axis: SupportsIndex | None = None) -> Tensor:
    """Copy a tensor without the elements at indices along a dimension, as `numpy.delete`."""
    x, along = edited(arr, axis)
    size = x.shape[along]
    edges = np.concatenate([[-1], np.unique(positions(obj, size, along, inserting=False)), [size]])
    kept = np.flatnonzero(np.diff(edges) > 1)  # runs of elements, each after one of the edges
    if len(kept) > MAX_PIECES:
        return x[(*[slice(None)] * along, np.delete(np.arange(size), edges[1:-1]))]
    segments: list[Segment] = []
    start = 0
    for run in map(range, (edges[kept] + 1).tolist(), edges[kept + 1].tolist()):
        segments.append(Segment(range(start, start + len(run)), run))
        start += len(run)
    return in_segments(x, [segments if each == along else whole(n) for each, n in enumerate(x.shape)])


def insert(arr: Tensor, obj: Any, values: Any, axis: SupportsIndex | None = None) -> Tensor:
    """Copy a tensor with values inserted before indices along a dimension, as `numpy.insert`.

    One submission, or two where the values are inserted in many places.
    """
    x, along = edited(arr, axis)
    size = x.shape[along]
    places = positions(obj, size, along, inserting=True)
    check_no_sequence(values)
    given = values if isinstance(values, Tensor) else as_assigned(values, x.dtype)
    check_same_dtype(given.dtype, x.dtype)
    value = given if isinstance(given, Tensor) else asarray(given, device=x.device)
    if places.size == 1:  # as many as the values are
        value = value[(None,) * (x.ndim - value.ndim)]
        value = value if places.ndim else moveaxis(value, 0, along)
        places = places.reshape(1).repeat(value.shape[along])
    count = len(places)
    before, behind = x.shape[:along], x.shape[along + 1 :]
    box = (*before, count, *behind)
    layout = broadcast(without_leading_ones(value.layout, x.ndim), box)
    if layout is None:
        raise ValueError(f"could not broadcast input array from shape {value.shape} into shape {box}")
    sizes = checked_shape((*before, size + count, *behind))
    order = places.argsort(kind="stable")
    ordered = places[order] + np.arange(count)  # indices of the result
    breaks = np.flatnonzero((np.diff(ordered) != 1) | (np.diff(order) != 1)) + 1
    if len(breaks) >= MAX_PIECES:
        result = allocate(sizes, x.dtype, x.device, zeroed=False)
        outer = [slice(None)] * along
        inserted = np.empty_like(ordered)
        inserted[order] = ordered
        assign(result, (*outer, np.delete(np.arange(size + count), ordered)), x, disjoint=True)
        assign(result, (*outer, inserted), viewed(value, layout), disjoint=True)
        return result
    with Copies([x, value], "tensors[{}]") as copies:
        result = copies.empty(sizes, x.dtype)

        def add(source: Tensor, layout: Layout, first: int, start: int, stop: int) -> None:
            """Collect a copy of elements from `first` on to elements `start` to `stop` of the result."""
            pair = zip((layout, result.layout), (first, start), strict=True)
            read, written = (
                each.select([*map(range, before), range(at, at + stop - start), *map(range, behind)])
                for each, at in pair
            )
            copies.copy(source, read, result, written)

        done = 0
        for first, stop in pairwise([0, *breaks.tolist(), count]) if count else ():
            place = int(ordered[first])
            add(x, x.layout, done - first, done, place)
            done = place + stop - first
            add(value, layout, int(order[first]), place, done)
        add(x, x.layout, done - count, done, size + count)
    return result


def resize(a: Tensor, new_shape: Any) -> Tensor:
    """Copy the flattened elements, repeated as often as they fit, to another shape, as `numpy.resize`."""
    check_tensor("a", a)
    sizes = one_or_more("new_shape", new_shape)
    if min(sizes, default=0) < 0:
        raise ValueError(f"new_shape = {sizes}: all elements of `new_shape` must be non-negative")
    shape = checked_shape(sizes)
    count = prod(shape)
    if a.size == 0 or count == 0:
        return zeros(shape, a.dtype, device=a.device)
    times, rest = divmod(count, a.size)
    flat = reshaped(a.layout, [a.size])
    with Copies([a], "a") as copies:
        source = a if flat is not None else copies.copied(a)
        flat = flat or Layout.packed([a.size], source.layout.offset)
        result = copies.empty(shape, a.dtype)
        copies.copy(source, repeated_to(flat, (times, a.size)), result, Layout.packed((times, a.size)))
        end = Layout.packed([rest], times * a.size)
        copies.copy(source, flat.select([range(rest)]), result, end)
    return result


def edited(arr: Tensor, axis: SupportsIndex | None) -> tuple[Tensor, int]:
    """Return a tensor and the dimension to edit; flattened, if it is None."""
    check_tensor("arr", arr)
    if axis is None:
        return arr if arr.ndim == 1 else arr.reshape(-1), 0
    return arr, one_axis("axis", axis, arr.ndim)


def positions(obj: Any, size: int, axis: int, *, inserting: bool) -> NDArray[np.int64]:
    """Return checked indices of a dimension; those of a tensor are read back, as masks are.

    Indices to insert at have at most one dimension, and the size itself is one.
    """
    if isinstance(obj, slice):
        return np.arange(*obj.indices(size))
    check_no_sequence(obj)
    given = np.asarray(obj)
    if given.size == 0 and not hasattr(obj, "dtype"):
        given = given.astype(np.int64)  # an empty list has no dtype of its own
    if inserting and given.ndim > 1:
        raise ValueError(f"obj has shape {given.shape}: must be one dimensional or scalar")
    if given.dtype.kind == "b":
        if given.ndim != 1 or (not inserting and given.shape != (size,)):
            raise ValueError(f"obj is a mask of shape {given.shape}: must be {(size,)}, as axis {axis}")
        given = np.flatnonzero(given)
    if given.dtype.kind not in "iu":
        raise (TypeError if inserting and given.size == 1 else IndexError)(NO_INDEX_ARRAY)
    return non_negative(int64_of(given), size, axis, at_end=inserting)

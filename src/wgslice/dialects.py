"""Notations for a part of a tensor, each turned into the indices that it selects."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, SupportsIndex

from wgslice.integers import MAX_RANK, checked_shape, one_or_more

__all__ = ["numpy_index", "numpy_shape"]


def numpy_index(key: Any, sizes: Sequence[int]) -> tuple[int | range | None, ...]:
    """NumPy basic indexing: what `key` selects of a tensor of `sizes`, dimension by dimension.

    An int drops its dimension, a range keeps it, a None adds one. Errors have NumPy's types and words.
    """
    items = list(key) if isinstance(key, tuple) else [key]
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    indexed = sum(item is not None and item is not Ellipsis for item in items)
    if indexed > len(sizes):
        raise IndexError(
            f"too many indices for array: array is {len(sizes)}-dimensional, but {indexed} were indexed"
        )
    first, last = (ellipses[0], ellipses[0] + 1) if ellipses else (len(items), len(items))
    items[first:last] = [slice(None)] * (len(sizes) - indexed)
    axes = iter(enumerate(sizes))
    selection = tuple(None if item is None else select_axis(item, *next(axes)) for item in items)
    rank = sum(not isinstance(item, int) for item in selection)
    if rank > max(MAX_RANK, len(sizes)):  # windows of rank 8 make a tensor of rank 9
        raise IndexError(
            f"number of dimensions must be within [0, {MAX_RANK}], indexing result would have {rank}"
        )
    return selection


def select_axis(item: Any, axis: int, size: int) -> int | range:
    """One dimension's part of a NumPy index."""
    if isinstance(item, slice):
        return range(*item.indices(size))
    try:
        index = operator.index(item)
    except TypeError:
        index = None
    if index is None or isinstance(item, bool):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`) and numpy.newaxis (`None`) are valid "
            f"indices here; axis {axis} got {type(item).__name__}"
        )
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size


def numpy_shape(shape: SupportsIndex | Iterable[SupportsIndex], size: int) -> tuple[int, ...]:
    """NumPy's notation for reshaping `size` elements: sizes, of which one may be -1, what is left."""
    given = one_or_more("shape", shape)
    if given.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = prod(extent for extent in given if extent != -1)
    left = size // known if known else 0
    sizes = checked_shape(left if extent == -1 else extent for extent in given)
    if prod(sizes) != size or (known == 0 and -1 in given):
        raise ValueError(f"cannot reshape array of size {size} into shape {given}")
    return sizes

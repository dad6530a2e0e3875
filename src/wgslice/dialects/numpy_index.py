"""NumPy's notations: an index, and a shape to reshape to."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any, SupportsIndex

from wgslice.arguments import MAX_RANK, checked_shape, one_or_more, tensor_sizes
from wgslice.dialects.selection import Selection

__all__ = ["basic_index", "check_result_rank", "expanded", "numpy_index", "numpy_shape", "select_axis"]


def numpy_index(input_sizes: Sequence[int], key: Any) -> Selection:
    """NumPy's basic indexing, of which `x[key]` makes a view.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor, each a u32.
    key : int, slice, Ellipsis, None, or a tuple of them
        An int drops its dimension, a slice keeps it, a None adds one.

    Returns
    -------
    Selection
        Of the elements that NumPy's view has, in its shape.

    Raises
    ------
    IndexError, TypeError, ValueError
        NumPy's, in its words; also where the result would have a rank above 8, or a size is no u32.
    """
    return basic_index(tensor_sizes(input_sizes), key)


def basic_index(sizes: tuple[int, ...], key: Any) -> Selection:
    """`numpy_index` of a tensor that is there."""
    given = key if isinstance(key, tuple) else (key,)
    indexed = sum(item is not None and item is not Ellipsis for item in given)
    items = expanded(given, indexed, len(sizes))
    axes = iter(enumerate(sizes))
    selected = tuple(None if item is None else select_axis(item, *next(axes)) for item in items)
    check_result_rank(sum(not isinstance(item, int) for item in selected), len(sizes))
    return Selection(sizes, selected)


def expanded(items: Sequence[Any], indexed: int, rank: int) -> list[Any]:
    """Items that index so many of a tensor's dimensions, with a slice for each that they leave whole."""
    ellipses = [position for position, item in enumerate(items) if item is Ellipsis]
    if len(ellipses) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if indexed > rank:
        raise IndexError(
            f"too many indices for array: array is {rank}-dimensional, but {indexed} were indexed"
        )
    first, last = (ellipses[0], ellipses[0] + 1) if ellipses else (len(items), len(items))
    return [*items[:first], *[slice(None)] * (rank - indexed), *items[last:]]


def check_result_rank(result_rank: int, rank: int) -> None:
    """Refuse an index into a tensor of some rank that gives too many dimensions."""
    if result_rank > max(MAX_RANK, rank):  # windows of rank 8 make a tensor of rank 9
        raise IndexError(
            f"number of dimensions must be within [0, {MAX_RANK}], indexing result would have {result_rank}"
        )


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
            f"indices here; axis {axis} got {type(item).__name__}; arrays of indices and masks need a "
            "tensor, asarray(…)[key]"
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

"""Selections of a tensor's elements, independent of notation, and NumPy's notations for them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from math import prod
from numbers import Real
from types import EllipsisType, NoneType
from typing import Any, SupportsIndex

from wgslice.arguments import MAX_RANK, OneOrMore, checked_shape, integer, integers, one_or_more, tensor_sizes
from wgslice.dialects.window import Window
from wgslice.errors import WindowError

KINDS = {int, range, NoneType}
PLAIN = {int, slice, NoneType, EllipsisType}


@dataclass(frozen=True)
class Selection:
    """The indices that a slice notation selects; `x[selection]` is the view of them.

    Attributes
    ----------
    sizes : tuple of int
        Sizes of the tensor.
    items : tuple of int, range or None
        In order: for each dimension of the tensor one index, which drops the dimension, or the range of
        indices; a None adds a dimension of size 1.
    shape : tuple of int
        Sizes of the result.
    window : Window
        Offsets, sizes and strides for Slice1, of the tensor's rank.

    Raises
    ------
    TypeError
        An item is of another type.
    """

    sizes: tuple[int, ...]
    items: tuple[int | range | None, ...]

    def __post_init__(self) -> None:
        if not (KINDS.issuperset(map(type, self.items)) and type(self.items) is type(self.sizes) is tuple):
            object.__setattr__(self, "sizes", integers("sizes", self.sizes))
            object.__setattr__(self, "items", tuple(map(checked_item, count(), self.items)))

    def check(self, sizes: tuple[int, ...]) -> None:
        """Check that the selection fits a tensor.

        Parameters
        ----------
        sizes : tuple of int
            Sizes of the tensor.

        Raises
        ------
        IndexError
            The tensor has other sizes, or items are out of bounds, too many or too few.
        """
        if self.sizes != sizes:
            raise IndexError(f"a selection of sizes {self.sizes} in a tensor of sizes {sizes}")
        kept = [item for item in self.items if item is not None]
        if len(kept) != len(self.sizes):
            raise IndexError(f"a selection of {len(kept)} dimensions in a tensor of {len(self.sizes)}")
        for axis, (item, size) in enumerate(zip(kept, self.sizes, strict=True)):
            ends = [item] if isinstance(item, int) else [item[0], item[-1]] if item else []
            for index in ends:
                if not 0 <= index < size:
                    raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the result."""
        return tuple(1 if item is None else extent(item) for item in self.items if not isinstance(item, int))

    @property
    def window(self) -> Window:
        """The window of DirectML's Slice1; its output has the tensor's rank.

        Raises
        ------
        WindowError
            The selection is empty, the tensor has rank 0, or a step between two elements is no i32.
        """
        kept = [item for item in self.items if item is not None]
        ranges = [range(item, item + 1) if isinstance(item, int) else item for item in kept]
        for axis, indices in enumerate(ranges):
            if not indices:
                raise WindowError(
                    f"the selection is empty in dimension {axis}: a window has at least 1 element"
                )
        return Window.of(
            [min(indices[0], indices[-1]) for indices in ranges],
            [abs(indices[-1] - indices[0]) + 1 for indices in ranges],
            [indices.step if extent(indices) > 1 else 1 for indices in ranges],
        )


def checked_item(number: int, item: object) -> int | range | None:
    """Normalize an item of a selection; raise if it is of another type."""
    if item is None or isinstance(item, range):
        return item
    if isinstance(item, bool) or not isinstance(item, SupportsIndex):
        kind = type(item).__name__
        raise TypeError(f"items[{number}] = {item!r}: must be an int, a range or None, not {kind}")
    return integer(f"items[{number}]", item)


def extent(indices: range) -> int:
    """The number of indices, also above 2**63, where `len` fails."""
    return (indices[-1] - indices[0]) // indices.step + 1 if indices else 0


def is_plain(key: Any) -> bool:
    """Whether a key consists of int, slice, Ellipsis and None only: a fast check for views."""
    return type(key) in PLAIN or (type(key) is tuple and PLAIN.issuperset(map(type, key)))


def numpy_index(input_sizes: Sequence[int], key: Any) -> Selection:
    """Convert a basic index of NumPy, of which `x[key]` makes a view.

    Parameters
    ----------
    input_sizes : sequence of int
        Of the tensor, each a u32.
    key : int, slice, Ellipsis, None, or a tuple of them
        An int drops its dimension, a slice keeps it, a None adds one.

    Returns
    -------
    Selection
        The elements of NumPy's view, in its shape.

    Raises
    ------
    IndexError, TypeError, ValueError
        As NumPy; also if the result has a rank above 8, or a size is no u32.

    Examples
    --------
    >>> import numpy as np
    >>> from wgslice.dialects import numpy_index
    >>> numpy_index((10,), np.s_[7:2:-2]).items
    (range(7, 2, -2),)
    """
    return basic_index(tensor_sizes(input_sizes), key)


def basic_index(sizes: tuple[int, ...], key: Any) -> Selection:
    """`numpy_index` for sizes that are checked."""
    given = key if isinstance(key, tuple) else (key,)
    indexed = sum(item is not None and item is not Ellipsis for item in given)
    items = expanded(given, indexed, len(sizes))
    axes = iter(enumerate(sizes))
    selected = tuple(None if item is None else select_axis(item, *next(axes)) for item in items)
    check_result_rank(sum(not isinstance(item, int) for item in selected), len(sizes))
    return Selection(sizes, selected)


def expanded(items: Sequence[Any], indexed: int, rank: int) -> list[Any]:
    """Replace the ellipsis by full slices, so that items index all dimensions."""
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
    """Raise if the result of an index has too many dimensions."""
    if result_rank > max(MAX_RANK, rank):  # windows of rank 8 make a tensor of rank 9
        raise IndexError(
            f"number of dimensions must be within [0, {MAX_RANK}], indexing result would have {result_rank}"
        )


def select_axis(item: Any, axis: int, size: int) -> int | range:
    """The index or range that an item of a NumPy index selects in one dimension."""
    if isinstance(item, slice):
        try:
            return range(*item.indices(size))
        except TypeError as error:
            raise TypeError(f"{error}{float_remedy(item.start, item.stop, item.step)}") from None
    try:
        index = operator.index(item)
    except TypeError:
        index = None
    if index is None or isinstance(item, bool):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`) and numpy.newaxis (`None`) are valid "
            f"indices here; axis {axis} got {type(item).__name__}"
            f"{float_remedy(item) or '; arrays of indices and masks need a tensor, asarray(…)[key]'}"
        )
    if not -size <= index < size:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return index % size


def float_remedy(*values: Any) -> str:
    """Return how to make an index of the first number that is no integer; empty if there is none."""
    for value in values:
        if isinstance(value, Real) and not isinstance(value, SupportsIndex):
            return f"; int(index) makes an integer of {value!r}, and i // 2 gives one"
    return ""


def numpy_shape(shape: OneOrMore, size: int) -> tuple[int, ...]:
    """Resolve a shape for `size` elements, in which one size may be -1."""
    given = one_or_more("shape", shape)
    if given.count(-1) > 1:
        raise ValueError("can only specify one unknown dimension")
    known = prod(extent for extent in given if extent != -1)
    left = size // known if known else 0
    sizes = checked_shape(left if extent == -1 else extent for extent in given)
    if prod(sizes) != size or (known == 0 and -1 in given):
        raise ValueError(f"cannot reshape array of size {size} into shape {given}")
    return sizes

"""NumPy's advanced indexing: arrays of indices and masks, among integers, slices, Ellipsis and None."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from types import EllipsisType
from typing import Any, TypeAlias, TypeGuard, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import int64_of
from wgslice.dialects.basic import (
    Selection,
    basic_index,
    check_result_rank,
    expanded,
    float_remedy,
    select_axis,
)
from wgslice.layout import count

Part = TypeVar("Part")
NO_INDEX = (
    "only integers, slices (`:`), ellipsis (`...`), numpy.newaxis (`None`) and integer or boolean arrays are "
    "valid indices"
)
NO_INDEX_ARRAY = (
    "arrays used as indices must be of integer (or boolean) type; indices.astype(np.int64) makes integers"
)


@dataclass(frozen=True)
class DeviceIndices:
    """Device-resident indices; only their shape is known on the host, and compared."""

    shape: tuple[int, ...]
    holder: Any = field(compare=False)
    clipped: bool = False  # whether negative ones are out of range, instead of counting from the end
    first: int = 0  # place in the holder of the first one


Indices: TypeAlias = NDArray[np.int64] | DeviceIndices


@dataclass(frozen=True, eq=False)
class Indexed:
    """The adjacent dimensions of a view that one array indexes; none for a 0-dimensional mask."""

    axes: range
    axis: int  # first of the dimensions, in the tensor
    places: Indices  # row-major in these dimensions


@dataclass(frozen=True, eq=False)
class AdvancedSelection:
    """The elements that NumPy's advanced indexing selects: elements of a view at positions from arrays."""

    items: tuple[int | range | None, ...]  # the view, with full ranges for indexed dimensions
    indexed: tuple[Indexed, ...]
    indices_shape: tuple[int, ...]  # of the arrays, broadcast to each other
    position: int  # of the first dimension of `indices_shape` in the result
    kept_axes: tuple[int, ...]  # of the view: the other dimensions of the result, in order
    kept_sizes: tuple[int, ...]
    is_mask: bool  # whether the key is one mask of the tensor's shape, which assignment treats differently
    unheld: AdvancedSelection | None = None  # the selection without holders of indices, for caches

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the result."""
        return self.arranged(self.indices_shape, self.kept_sizes)

    def held_by(self, holders: Iterable[Any]) -> AdvancedSelection:
        """The selection with other holders of its device-resident indices."""
        given = iter(holders)
        indexed = tuple(
            replace(each, places=replace(each.places, holder=next(given)))
            if isinstance(each.places, DeviceIndices)
            else each
            for each in self.indexed
        )
        return replace(self, indexed=indexed, unheld=self)

    def arranged(self, of_indices: Sequence[Part], of_kept: Sequence[Part]) -> tuple[Part, ...]:
        """Arrange a value per dimension in the result's order."""
        return (*of_kept[: self.position], *of_indices, *of_kept[self.position :])


def any_index(sizes: tuple[int, ...], key: Any) -> Selection | AdvancedSelection:
    """The selection of any NumPy index; errors are NumPy's."""
    items = [as_item(item) for item in (key if isinstance(key, tuple) else (key,))]
    if any(isinstance(item, np.ndarray | DeviceIndices) for item in items):
        return advanced_index(sizes, items)
    return basic_index(sizes, tuple(items))


def as_item(item: Any) -> int | slice | EllipsisType | NDArray[Any] | DeviceIndices | None:
    """Normalize an item of an index; array-likes become arrays of int64 or bool."""
    if item is None or item is Ellipsis or isinstance(item, slice | DeviceIndices):
        return item
    if not isinstance(item, bool):
        try:
            return operator.index(item)
        except TypeError:
            pass
    array = np.asarray(item)
    given = isinstance(item, np.ndarray)
    if array.size == 0 and not given:
        array = array.astype(np.int64)  # an empty list has no dtype of its own
    if array.dtype.kind == "b":
        return array
    if array.dtype.kind not in "iu" or (array.ndim == 0 and not given):
        raise IndexError(NO_INDEX_ARRAY if given else f"{NO_INDEX}{float_remedy(item)}")
    return int64_of(array)


def advanced_index(sizes: tuple[int, ...], items: Sequence[Any]) -> AdvancedSelection:
    """The selection of items with at least one array, of int64 or bool."""
    consumed = sum(map(dimensions_of, items))
    axis = 0  # of the tensor
    view: list[int | range | None] = []
    view_rank = 0
    indexed: list[Indexed] = []
    for item in expanded(items, consumed, len(sizes)):
        own = sizes[axis : axis + dimensions_of(item)]
        if isinstance(item, np.ndarray | DeviceIndices):
            indexed.append(Indexed(range(view_rank, view_rank + len(own)), axis, places_of(item, axis, own)))
            view += map(range, own)
            view_rank += len(own)
        else:
            view.append(None if item is None else select_axis(item, axis, *own))
            view_rank += not isinstance(view[-1], int)
        axis += len(own)
    shape = broadcast_shape(indexed)
    extents = [1 if part is None else count(part) for part in view if not isinstance(part, int)]
    axes = {number for each in indexed for number in each.axes}
    kept = tuple(number for number in range(view_rank) if number not in axes)
    check_result_rank(len(shape) + len(kept), len(sizes))
    return AdvancedSelection(
        items=tuple(view),
        indexed=tuple(indexed if 0 in shape else [within(each, sizes) for each in indexed]),
        indices_shape=shape,
        position=position_of(items, len(sizes) - consumed),
        kept_axes=kept,
        kept_sizes=tuple(extents[number] for number in kept),
        is_mask=len(items) == 1 and is_mask(items[0]) and items[0].shape == sizes,
    )


def is_mask(item: Any) -> TypeGuard[NDArray[np.bool_]]:
    """Whether an item of an index is an array of bools."""
    return isinstance(item, np.ndarray) and item.dtype.kind == "b"


def dimensions_of(item: Any) -> int:
    """The number of dimensions that an item of an index consumes."""
    if item is None or item is Ellipsis:
        return 0
    return item.ndim if is_mask(item) else 1


def places_of(item: NDArray[Any] | DeviceIndices, axis: int, sizes: Sequence[int]) -> Indices:
    """The indices of an array item: of a mask over `sizes` from `axis` on, the positions of its trues."""
    if not is_mask(item):
        return item
    for number, (extent, size) in enumerate(zip(item.shape, sizes, strict=True), axis):
        if extent not in (0, size):  # NumPy accepts an empty mask for any size
            raise IndexError(
                f"boolean index did not match indexed array along axis {number}; size of axis is {size} but "
                f"size of corresponding boolean axis is {extent}"
            )
    return np.flatnonzero(item)


def broadcast_shape(indexed: Sequence[Indexed]) -> tuple[int, ...]:
    """The broadcast shape of all indices."""
    shapes = [shape for each in indexed for shape in [each.places.shape] * max(len(each.axes), 1)]
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " ".join(str(shape).replace(" ", "") for shape in shapes)
        raise IndexError(
            f"shape mismatch: indexing arrays could not be broadcast together with shapes {listed}"
        ) from None


def within(indexed: Indexed, sizes: Sequence[int]) -> Indexed:
    """Normalize indices to non-negative; raise if one is out of bounds."""
    places = indexed.places
    if len(indexed.axes) != 1:  # a mask
        return indexed
    size = sizes[indexed.axis]
    if isinstance(places, DeviceIndices):
        if size == 0:
            raise IndexError(f"axis {indexed.axis} has size 0: no index is within its bounds")
        return indexed
    counted = non_negative(places, size, indexed.axis)
    return indexed if counted is places else replace(indexed, places=counted)


def non_negative(
    places: NDArray[np.int64], size: int, axis: int, *, at_end: bool = False
) -> NDArray[np.int64]:
    """Count indices from the start; raise if one is out of bounds, as `size` is unless `at_end`."""
    if not places.size:
        return places
    lowest = int(places.min())
    if lowest < -size or places.max() >= size + at_end:
        index = places[(places < -size) | (places >= size + at_end)].flat[0]
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {size}")
    return places if lowest >= 0 else np.where(places < 0, places + size, places)


def position_of(items: Sequence[Any], whole: int) -> int:
    """The position of the index dimensions: in place if arrays and integers are adjacent, else first."""
    advanced = [
        number for number, item in enumerate(items) if isinstance(item, int | np.ndarray | DeviceIndices)
    ]
    if advanced[-1] - advanced[0] >= len(advanced):
        return 0
    return sum(whole if item is Ellipsis else 1 for item in items[: advanced[0]])

"""Which elements of a tensor are meant, whatever notation said so."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count
from types import NoneType
from typing import SupportsIndex

from wgslice.arguments import integer, integers
from wgslice.dialects.window import Window
from wgslice.errors import WindowError

__all__ = ["Selection"]

KINDS = {int, range, NoneType}


@dataclass(frozen=True)
class Selection:
    """The indices of a tensor's elements that a notation selects: `x[selection]` is the view of them.

    Attributes
    ----------
    sizes : tuple of int
        Of the tensor.
    items : tuple of int, range or None
        In order: for each dimension of the tensor the one index that is taken, which drops the dimension, or
        the range of indices; a None adds a dimension of size 1.
    shape : tuple of int
        Of the result.
    window : Window
        The same as offsets, sizes and strides for Slice1, of the tensor's rank.

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
        """Refuse a tensor of other sizes, and items that are none of its: outside, too many or too few."""
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
        """The box and the steps that DirectML's Slice1 takes; its output has the tensor's rank.

        Raises
        ------
        WindowError
            Nothing is selected, the tensor has rank 0, or a step between two elements is no i32.
        """
        kept = [item for item in self.items if item is not None]
        ranges = [range(item, item + 1) if isinstance(item, int) else item for item in kept]
        for axis, indices in enumerate(ranges):
            if not indices:
                raise WindowError(f"nothing is selected in dimension {axis}: a window has at least 1 element")
        return Window.of(
            [min(indices[0], indices[-1]) for indices in ranges],
            [abs(indices[-1] - indices[0]) + 1 for indices in ranges],
            [indices.step if extent(indices) > 1 else 1 for indices in ranges],
        )


def checked_item(number: int, item: object) -> int | range | None:
    """An item of a selection, refused by name where it is none."""
    if item is None or isinstance(item, range):
        return item
    if isinstance(item, bool) or not isinstance(item, SupportsIndex):
        raise TypeError(
            f"items[{number}] = {item!r}: must be an int, a range or None, not {type(item).__name__}"
        )
    return integer(f"items[{number}]", item)


def extent(indices: range) -> int:
    """How many indices; `len` knows none above 2**63."""
    return (indices[-1] - indices[0]) // indices.step + 1 if indices else 0

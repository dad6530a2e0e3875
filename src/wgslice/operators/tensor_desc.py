"""How a tensor lies in what is bound for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import SupportsIndex

from numpy.typing import DTypeLike

from wgslice.arguments import MAX_RANK, U32_MAX, check_within, integers, whole_words
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.layout import Layout

__all__ = ["TensorDesc", "check_descs"]


@dataclass(frozen=True, init=False)
class TensorDesc:
    """How a tensor lies in what is bound for it, as DirectML's buffer tensor descriptor says it.

    Parameters
    ----------
    dtype : dtype_like
        Of elements of 1, 2, 4, 8 or 16 bytes.
    sizes : sequence of int
        1 to 8 extents, u32, each at least 1.
    strides : sequence of int, optional
        Steps in elements, u32: larger than packed is padding, 0 repeats (inputs only). Packed row-major by
        default. Directions belong to the window.

    Raises
    ------
    TypeError, ValueError
        A rule above is broken.

    Notes
    -----
    Descriptors of the same dtype that place the same indices on the same elements are equal.

    Examples
    --------
    >>> import wgslice as wg
    >>> wg.TensorDesc("float32", (2, 3))
    TensorDesc('float32', (2, 3), (3, 1))
    >>> wg.TensorDesc("float32", (2, 3), (8, 1)).nbytes  # rows padded to 8 elements
    44
    """

    dtype: DType
    layout: Layout

    def __init__(
        self,
        dtype: DTypeLike,
        sizes: Iterable[SupportsIndex],
        strides: Iterable[SupportsIndex] | None = None,
    ) -> None:
        with named("TensorDesc"):
            if isinstance(sizes, str):
                raise TypeError(f"sizes {sizes!r}: must be integers; the dtype comes before them")
            object.__setattr__(self, "dtype", element_dtype(dtype))
            object.__setattr__(self, "layout", described_layout(sizes, strides))

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extents."""
        return self.layout.sizes

    @property
    def strides(self) -> tuple[int, ...]:
        """Steps in elements; 0 in dimensions of size 1."""
        return self.layout.strides

    @property
    def nbytes(self) -> int:
        """Least bytes of a binding: to the end of the last element, rounded up to 4."""
        return whole_words(self.layout.stop * self.dtype.itemsize)

    def __repr__(self) -> str:
        return f"TensorDesc({self.dtype.name!r}, {self.sizes}, {self.strides})"


def check_descs(**sides: object) -> None:
    """Refuse what is no descriptor of a tensor."""
    for side, desc in sides.items():
        if not isinstance(desc, TensorDesc):
            raise TypeError(f"{side} is of type {type(desc).__name__}: must be a TensorDesc")


def described_layout(sizes: Iterable[SupportsIndex], strides: Iterable[SupportsIndex] | None) -> Layout:
    """The layout that a descriptor's sizes and strides say, by its rules."""
    extents = integers("sizes", sizes)
    if not 1 <= len(extents) <= MAX_RANK:
        raise ValueError(f"sizes {extents} have rank {len(extents)}: the rank must be 1 to {MAX_RANK}")
    check_within("sizes", extents, 1, U32_MAX, "a u32 of at least 1")
    if strides is None:
        return Layout.packed(extents)
    steps = integers("strides", strides)
    if len(steps) != len(extents):
        raise ValueError(f"{len(steps)} strides for {len(extents)} sizes: one of each is needed")
    check_within("strides", steps, 0, U32_MAX, "a u32")
    return Layout.of(extents, steps)

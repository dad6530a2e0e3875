"""The other views that a tensor's own methods give."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Self, SupportsIndex, cast

from numpy.typing import DTypeLike

from wgslice.arguments import distinct_axes, integer
from wgslice.dtypes import element_dtype
from wgslice.errors import named
from wgslice.rearrange import permuted, squeezed
from wgslice.tensors.placed import Placed, viewed

__all__ = ["Rearrangeable"]


class Rearrangeable(Placed):
    """Gives views of the same elements in other shapes and orders."""

    __slots__ = ()

    @property
    def T(self) -> Self:  # noqa: N802 -- NumPy's name
        """The view with all dimensions in reverse order."""
        return viewed(self, self.layout.permuted(range(self.ndim)[::-1]))

    @property
    def mT(self) -> Self:  # noqa: N802 -- NumPy's name
        """The view with the last two dimensions exchanged: each matrix transposed."""
        if self.ndim < 2:
            raise ValueError(f"mT: a tensor of shape {self.shape} has no matrices: it needs two dimensions")
        return self.swapaxes(-2, -1)

    def transpose(self, *axes: SupportsIndex | Iterable[SupportsIndex] | None) -> Self:
        """View with the dimensions in the order of `axes`, or in reverse, as `numpy.ndarray.transpose`.

        Raises
        ------
        TypeError, ValueError
            An axis is no integer, out of range (`numpy.exceptions.AxisError`), named twice or missing.
        """
        with named("transpose"):
            order = axes[0] if len(axes) == 1 else axes or None
            return self.T if order is None else viewed(self, permuted(self.layout, cast("Any", order)))

    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Self:
        """View with two dimensions exchanged.

        Raises
        ------
        TypeError, ValueError
            An axis is no integer, or out of range (`numpy.exceptions.AxisError`).
        """
        with named("swapaxes"):
            given = integer("axis1", axis1), integer("axis2", axis2)
            (first,), (second,) = (distinct_axes("axis", axis, self.ndim) for axis in given)
            order = list(range(self.ndim))
            order[first], order[second] = second, first
            return viewed(self, self.layout.permuted(order))

    def squeeze(self, axis: SupportsIndex | Iterable[SupportsIndex] | None = None) -> Self:
        """View without dimensions of size 1: those of `axis`, or all.

        Raises
        ------
        TypeError, ValueError
            An axis is out of range (`numpy.exceptions.AxisError`), named twice, or of another size than 1.
        """
        with named("squeeze"):
            return viewed(self, squeezed(self.layout, axis))

    def view(self, dtype: DTypeLike) -> Self:
        """View the same bits as another dtype of the same width, such as bfloat16 as uint16.

        Raises
        ------
        TypeError
            The dtype is not one of elements.
        ValueError
            The dtype has another width.
        """
        with named("view"):
            element = element_dtype(dtype)
            if element.itemsize != self.dtype.itemsize:
                raise ValueError(
                    f"dtype {element}: must have the width of {self.dtype}, {self.dtype.itemsize} bytes"
                )
            return type(self)(self.device, self.buffer, element, self.layout, self.flags)

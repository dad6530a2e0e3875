"""NumPy's methods of tensors that view or copy them."""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Self, SupportsIndex, cast

import numpy as np
from numpy.typing import DTypeLike

from wgslice.arguments import OneOrMore, copy_choice, one_axis, order_letter
from wgslice.dialects.basic import numpy_shape
from wgslice.docstrings import (
    COPY,
    NO_AXIS,
    NO_INDEX,
    NO_INTEGER,
    NO_MEMORY,
    NO_ORDER,
    PARAMETERS,
    WRITTEN,
    documented,
)
from wgslice.dtypes import DType, view_dtype
from wgslice.errors import ComputationRefused, fitted, named, public
from wgslice.gpu.recording import Binding, Copy, run_copy
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.layout_rules import (
    has_order,
    in_order,
    is_column_major,
    permuted,
    reinterpreted,
    reshaped,
    squeezed,
    transposed,
)
from wgslice.plans.profiles import MAX_PLANS
from wgslice.tensors.placed import Placed, SomePlaced, upper_modules, viewed, write

FILLS = (
    "; xarray's fill value NaN needs floats, others do not: shift(..., fill_value=0), pad(..., "
    "constant_values=0), where(mask, x.dtype.type(0))"
)


class ArrayMethods(Placed):
    """The methods of a tensor that arrays of NumPy have, but for those that read it back."""

    __slots__ = ()

    @public()
    def copy(self, order: str | None = "C") -> Self:
        """Copy the tensor on the GPU.

        Parameters
        ----------
        order : {"C", "F", "A", "K"}
            "F" makes a column-major copy, and "A" one of a tensor that is column-major: the transpose is
            packed. The others, also "K", make a packed one.

        Returns
        -------
        Tensor
            Contiguous, in a new buffer. The work is submitted, not waited for.

        Raises
        ------
        ValueError
            The order is another one, or the buffer has been destroyed, or is mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the copy, or is lost.
        """
        return ordered_copy(self, order)

    @documented(COPY, NO_ORDER, NO_MEMORY)
    @public()
    def flatten(self, order: str | None = "C") -> Self:
        """Copy the tensor to one dimension, with its elements in any of NumPy's orders."""
        return packed_copy(viewed(self, in_order(self.layout, order)), packed_layout((self.size,)))

    @public()
    def reshape(self, *shape: OneOrMore, order: str | None = "C", copy: bool | None = None) -> Self:
        """View the tensor with other sizes, or copy it if its strides allow no such view.

        Parameters
        ----------
        shape : int, or one sequence of int
            Sizes with the same number of elements; one may be -1, and is then computed from the others.
        order : {"C", "F", "A"}
            Order of the elements on both sides: row-major; with the first index varying fastest; or this one
            for a column-major tensor only.
        copy : bool, optional
            True always copies, False raises instead of copying. By default copies only if needed.

        Returns
        -------
        Tensor
            A view, or a contiguous copy, whose work is submitted and not waited for.

        Raises
        ------
        TypeError
            A size is not an integer.
        ValueError, OutOfDeviceMemory, DeviceLostError
            The number of elements differs, the rank is above 8, or `copy` is text, or False where a copy is
            needed; or as `copy`.
        """
        sizes = numpy_shape(shape[0] if len(shape) == 1 else cast("Any", shape), self.size)
        copy = copy_choice(copy)
        if order_letter(order) == "K":
            raise ValueError("order 'K' is not permitted for reshaping")
        turned = is_column_major(self.layout, order)
        x, wanted = (self.T, sizes[::-1]) if turned else (self, sizes)
        layout = None if copy else reshaped(x.layout, wanted)
        if layout is None and copy is False:
            raise ValueError(
                f"shape {self.shape} with strides {self.strides} cannot be viewed as {sizes}: "
                "copy() the tensor first"
            )
        found = packed_copy(x, packed_layout(wanted)) if layout is None else viewed(x, layout)
        return found.T if turned else found

    @documented(("Tensor", "A view, or as `flatten`; contiguous."), NO_ORDER, NO_MEMORY)
    @public()
    def ravel(self, order: str | None = "C") -> Self:
        """View the tensor in one dimension if it is contiguous in one of NumPy's orders, or else copy it."""
        x = viewed(self, in_order(self.layout, order))
        return x.reshape(-1) if x.is_packed else packed_copy(x, packed_layout((self.size,)))

    @documented(
        ("Tensor", "With the dimensions of `indices` in place of `axis`, as `wgslice.take` describes."),
        *(NO_INTEGER, NO_INDEX, NO_AXIS, NO_MEMORY),
        axis=("int, optional", "The dimension; by default all elements in row-major order."),
    )
    @fitted()
    def take(
        self,
        indices: Any,
        axis: SupportsIndex | None = None,
        out: Self | None = None,
        mode: str = "raise",
    ) -> Self:
        """Gather elements at indices along a dimension, or of all in row-major order, as `numpy.take`."""
        taken: Self = self._dispatched("take", indices, axis, out, mode)
        return taken

    @documented(
        ("Tensor", "Of the shape that the tensor and `choices` broadcast to, packed."),
        ("ValueError", 'A number names no array in the mode "raise", or shapes do not broadcast.'),
        *(NO_INTEGER, NO_MEMORY),
    )
    @fitted()
    def choose(self, choices: Any, out: Self | None = None, mode: str = "raise") -> Self:
        """Gather at each element from the array that the element's number names, as `numpy.choose`."""
        chosen: Self = self._dispatched("choose", choices, out, mode)
        return chosen

    @documented(
        ("Tensor", "Packed, as `wgslice.repeat` describes."),
        *(NO_INTEGER, NO_AXIS, NO_MEMORY),
        repeats=("int or sequence of int", "Copies of each element along `axis`, at least 0."),
        axis=("int, optional", "The dimension that grows; by default the tensor is flattened."),
    )
    @fitted()
    def repeat(self, repeats: OneOrMore, axis: SupportsIndex | None = None) -> Self:
        """Copy the tensor with each element repeated along a dimension, or flattened, as `numpy.repeat`."""
        repeated: Self = self._dispatched("repeat", repeats, axis)
        return repeated

    @documented(
        ("Tensor", "A read-only view of shape `(..., k)`, without the two dimensions."),
        *(NO_INTEGER, NO_AXIS, ("ValueError", "The tensor has fewer than two dimensions.")),
        offset=("int", "The diagonal: 0 is the main one, positive ones are above it."),
        axis1=PARAMETERS["axis"],
        axis2=PARAMETERS["axis"],
    )
    @fitted()
    def diagonal(self, offset: SupportsIndex = 0, axis1: SupportsIndex = 0, axis2: SupportsIndex = 1) -> Self:
        """View the diagonal of two dimensions as the last one, read-only, as `numpy.diagonal`."""
        found: Self = self._dispatched("diagonal", offset, axis1, axis2)
        return found

    @documented(
        WRITTEN,
        ("ValueError", "The tensor is read-only, or its buffer is destroyed or mapped."),
        *(NO_INTEGER, NO_INDEX, NO_MEMORY),
        values=("Tensor or array_like", "Repeated as often as needed; a tensor has this dtype."),
    )
    @fitted()
    def put(self, indices: Any, values: Any, mode: str = "raise") -> None:
        """Write values at indices of all elements in row-major order, as `numpy.put`."""
        self._dispatched("put", indices, values, mode)

    @documented(
        WRITTEN,
        *(("TypeError", "The value cannot be cast."), NO_MEMORY),
        ("ValueError", "The value has dimensions, or the tensor is read-only."),
        value=("scalar or Tensor of rank 0", "Cast as NumPy assigns it; a tensor has this dtype."),
    )
    @public()
    def fill(self, value: Any) -> None:
        """Write one number, or the element of a tensor of rank 0, to all elements, as NumPy does."""
        if isinstance(value, Placed | np.ndarray) and value.ndim:
            raise ValueError(f"value has shape {value.shape}: must have rank 0; x[...] = value broadcasts")
        if not isinstance(value, Placed):
            element = np.empty(1, self.dtype)
            element.fill(value)
            value = element
        write(self, value)

    @property
    def flat(self) -> Any:
        """All elements in row-major order, to be read, written and iterated over, as `numpy.ndarray.flat`."""
        return upper_modules["numpy_functions"]().Flat(self)

    def _dispatched(self, name: str, *arguments: Any) -> Any:
        """Run NumPy's function of a name, which an upper layer implements."""
        with named(name):
            return upper_modules["numpy_functions"]().BY_NAME[name](self, *arguments)

    @public()
    def astype(
        self,
        dtype: DTypeLike,
        order: str | None = "K",
        casting: str = "unsafe",
        *,
        copy: bool = True,
    ) -> Self:
        """Copy the tensor on the GPU; only its own dtype is allowed, since nothing is converted.

        Parameters
        ----------
        dtype : dtype_like
            The tensor's dtype, in any byte order; `view` reinterprets the bits as another dtype of the same
            width.
        order : {"K", "A", "C", "F"}, optional
            As of `copy`.
        casting : {"unsafe", "same_kind", "safe", "equiv", "no"}, optional
            NumPy's rule for the dtype.
        copy : bool
            False returns the tensor itself if it is contiguous in the order; in "K" always.

        Returns
        -------
        Tensor
            Contiguous, in a new buffer, or the tensor itself. The work is submitted, not waited for.

        Raises
        ------
        ComputationRefused
            The dtype differs from the tensor's.
        TypeError
            `dtype` is not a dtype, or `casting` excludes it.
        ValueError, OutOfDeviceMemory, DeviceLostError
            As `copy`; or `casting` is another word.
        """
        as_is = not copy_choice(copy) and has_order(self.layout, order)
        element: DType = np.dtype(dtype).newbyteorder("=")
        if not np.can_cast(self.dtype, element, cast("Any", casting)):
            raise TypeError(f"cannot cast {self.dtype} to {element} according to the rule {casting!r}")
        if element != self.dtype:
            fills = "xarray" in sys.modules and self.dtype.kind in "biu" and element.kind == "f"
            raise ComputationRefused(
                f"{self.dtype} to {element}: nothing is converted on the GPU; use np.asarray(x).astype, "
                f"or x.view for the same bits with another dtype of numbers{FILLS * fills}"
            )
        # equal dtypes of C's types, such as int64 of `long` and `long long`, have classes of their own
        return self if as_is else ordered_copy(viewed(self, self.layout, dtype=element), order)

    @property
    def T(self) -> Self:  # noqa: N802 -- NumPy's name
        """A view with all dimensions in reverse order."""
        return viewed(self, transposed(self.layout))

    @property
    def mT(self) -> Self:  # noqa: N802 -- NumPy's name
        """A view with the last two dimensions exchanged, so that each matrix is transposed."""
        if self.ndim < 2:
            raise ValueError(
                f"mT: a tensor of shape {self.shape} has no matrices: it must have at least two dimensions"
            )
        return self.swapaxes(-2, -1)

    @public()
    def transpose(self, *axes: OneOrMore | None) -> Self:
        """View the tensor with dimensions in the order of `axes`, by default reversed, as NumPy does.

        Parameters
        ----------
        axes : int, or one sequence of int
            The dimension of the tensor for each dimension of the result; negative ones count from the last.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError, ValueError
            An axis is not an integer, out of range (`numpy.exceptions.AxisError`), named twice or missing.

        Examples
        --------
        >>> import wgslice as wg
        >>> wg.zeros((2, 3, 4)).transpose(2, 0, 1).shape
        (4, 2, 3)
        """
        order = axes[0] if len(axes) == 1 else axes or None
        return self.T if order is None else viewed(self, permuted(self.layout, cast("Any", order)))

    @public()
    def swapaxes(self, axis1: SupportsIndex, axis2: SupportsIndex) -> Self:
        """View the tensor with two dimensions exchanged.

        Parameters
        ----------
        axis1, axis2 : int
            The dimensions; negative ones count from the last.

        Returns
        -------
        Tensor
            A view.

        Raises
        ------
        TypeError, ValueError
            An axis is not an integer, or is out of range (`numpy.exceptions.AxisError`).
        """
        first, second = one_axis("axis1", axis1, self.ndim), one_axis("axis2", axis2, self.ndim)
        order = list(range(self.ndim))
        order[first], order[second] = second, first
        return viewed(self, self.layout.permuted(order))

    @documented(
        ("Tensor", "A view."),
        NO_AXIS,
        ("ValueError", "The size of an axis is not 1."),
        axis=("int or sequence of int, optional", "Dimensions to drop; by default all of size 1."),
    )
    @public()
    def squeeze(self, axis: OneOrMore | None = None) -> Self:
        """View the tensor without the dimensions `axis` of size 1, as `wgslice.squeeze` describes."""
        return viewed(self, squeezed(self.layout, axis))

    @public("x.reshape(shape) changes the shape")
    def view(self, dtype: DTypeLike) -> Self:
        """View the same bits as another dtype, as NumPy does.

        Parameters
        ----------
        dtype : dtype_like
            A dtype of the same width, such as uint16 for bfloat16, or of another one: then the last dimension
            is contiguous, and has as many elements as its bytes hold.

        Returns
        -------
        Tensor
            A view; of the same shape, if the widths are equal.

        Raises
        ------
        TypeError
            The dtype does not have elements of 1, 2, 4, 8 or 16 bytes, or is not in native byte order.
        ValueError
            The width of the dtype differs, and the tensor has rank 0 or a last dimension with a stride; or
            the bytes of the last dimension, of the offset or of another stride are no multiple of the width.

        Examples
        --------
        >>> import numpy as np, wgslice as wg
        >>> wg.asarray(np.float32([1, -2])).view(np.uint32).numpy()
        array([1065353216, 3221225472], dtype=uint32)
        >>> wg.asarray(np.uint16([258, 772])).view(np.uint8).shape
        (4,)
        """
        element = view_dtype(dtype)
        with named(f"dtype {element}"):
            layout = reinterpreted(self.layout, self.itemsize, element.itemsize)
        return viewed(self, layout, dtype=element)


def packed_copy(tensor: SomePlaced, layout: Layout | None = None) -> SomePlaced:
    """Copy a tensor on the GPU, packed, into a new one; `layout` is another one of the new elements."""
    device, packed = tensor.device, packed_layout(tensor.shape)
    memory = sink().reused_buffer(device, tensor.nbytes)
    made = Binding(memory, packed, tensor.itemsize, fresh=True)
    run_copy(device, Copy(tensor.bound_layout, made))
    return type(tensor)(device, memory, tensor.dtype, layout or packed)


def ordered_copy(tensor: SomePlaced, order: str | None) -> SomePlaced:
    """Copy a tensor on the GPU into a new one that is column-major if the order says so, else packed."""
    if not is_column_major(tensor.layout, order):
        return packed_copy(tensor)
    reversed_axes = viewed(tensor, transposed(tensor.layout))
    return packed_copy(reversed_axes, transposed(packed_layout(tensor.shape[::-1])))


# Cached, since programs make many tensors of equal sizes.
packed_layout = lru_cache(maxsize=MAX_PLANS)(Layout.packed)

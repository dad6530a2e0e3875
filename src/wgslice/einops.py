"""Tensors in einops' functions: `import wgslice.einops` is all that they need. Needs the extra `einops`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NoReturn

try:
    from einops._backends import AbstractBackend  # where einops itself adds a library
except ModuleNotFoundError as error:
    message = "wgslice.einops needs the package einops, the extra `einops` of wgslice: pip install einops"
    raise ModuleNotFoundError(message, name=error.name) from None
from numpy.typing import NDArray

from wgslice.numpy_protocol.joining import concat, stack
from wgslice.numpy_protocol.moving import tile
from wgslice.tensors.creation import arange, asarray
from wgslice.tensors.tensor import Tensor
from wgslice.tensors.uncomputed import refused
from wgslice.tensors.views import broadcast_to

__all__ = ["Backend"]


class Backend(AbstractBackend):
    """The operations on tensors by which einops rearranges; einops finds and calls this class itself.

    A pattern is a view where strides allow one, or else one copy. `reduce` of a dimension, and `einsum`,
    compute, and raise a ComputationRefused.
    """

    framework_name = "wgslice"

    def is_appropriate_type(self, tensor: object) -> bool:
        """Return whether `tensor` is a `Tensor`."""
        return isinstance(tensor, Tensor)

    def from_numpy(self, x: NDArray[Any]) -> Tensor:
        """Upload an array to the default device."""
        return asarray(x)

    def to_numpy(self, x: Tensor) -> NDArray[Any]:
        """Read a tensor back, for `einops.asnumpy`."""
        return x.numpy()

    def arange(self, start: int, stop: int) -> Tensor:
        """Make a tensor of the integers from `start` up to `stop`."""
        return arange(start, stop)

    def stack_on_zeroth_dimension(self, tensors: list[Tensor]) -> Tensor:
        """Copy a list of tensors into one, with a new first dimension, in one submission."""
        return stack(tensors)

    def add_axis(self, x: Tensor, new_position: int) -> Tensor:
        """View a tensor with a dimension of size 1 before the dimension `new_position`."""
        return x[(slice(None),) * new_position + (None,)]

    def add_axes(self, x: Tensor, n_axes: int, pos2len: Mapping[int, int]) -> Tensor:
        """View a tensor in `n_axes` dimensions; those in `pos2len` repeat it, by their sizes there."""
        expanded = x[tuple(None if axis in pos2len else slice(None) for axis in range(n_axes))]
        return broadcast_to(expanded, [pos2len.get(axis, size) for axis, size in enumerate(expanded.shape)])

    def tile(self, x: Tensor, repeats: Sequence[int]) -> Tensor:
        """Copy a tensor so often along each dimension, in one submission."""
        return tile(x, repeats)

    def concat(self, tensors: list[Tensor], axis: int) -> Tensor:
        """Copy tensors into one, one after the other along `axis`, in one submission."""
        return concat(tensors, axis)

    def is_float_type(self, x: Tensor) -> bool:
        """Return whether the elements are floats; einops refuses the mean of others itself."""
        return x.dtype.kind == "f"

    def reduce(self, x: Tensor, operation: str, axes: Sequence[int]) -> NoReturn:
        """Raise ComputationRefused."""
        refused(f"einops.reduce of {len(axes)} of {x.ndim} dimensions by {operation!r}")

    def einsum(self, pattern: str, *x: Tensor) -> NoReturn:
        """Raise ComputationRefused."""
        refused(f"einops.einsum of {len(x)} tensors by {pattern!r}")

"""Tensor descriptors, their binding slots, and the outputs of operators."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, SupportsIndex, TypeAlias

from numpy.typing import DTypeLike

from wgslice.arguments import MAX_RANK, U32_MAX, Integers, check_within, checked_offset, integers
from wgslice.dtypes import DType, element_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.hosts import found_by
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import Binding, check_fits, keep_for_caller
from wgslice.gpu.sink import placeholder, sink
from wgslice.layout import Layout, whole_words
from wgslice.plans.profiles import MAX_PLACES
from wgslice.tensors.placed import check_destination, check_tensor, check_writeable
from wgslice.tensors.tensor import Tensor, allocate


@dataclass(frozen=True, init=False)
class TensorDesc:
    """Dtype and layout of a tensor in its binding, as DirectML's buffer tensor descriptor has them.

    Parameters
    ----------
    dtype : dtype_like
        Of elements of 1, 2, 4, 8 or 16 bytes, which are in native byte order whichever this has.
    sizes : sequence of int
        0 to 8 extents, u32, each at least 1; Slice1, Slice and SliceGrad need one at least.
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

    def __init__(self, dtype: DTypeLike, sizes: Integers, strides: Integers | None = None) -> None:
        with named("TensorDesc"):
            if isinstance(sizes, str):
                raise TypeError(f"sizes {sizes!r}: must be integers; the dtype comes before them")
            object.__setattr__(self, "dtype", element_dtype(dtype))
            extents = integers("sizes", sizes)
            if len(extents) > MAX_RANK:
                raise ValueError(
                    f"sizes {extents} have rank {len(extents)}: the rank must be 0 to {MAX_RANK}"
                )
            check_within("sizes", extents, 1, U32_MAX)
            layout = Layout.packed(extents)
            if strides is not None:
                steps = integers("strides", strides)
                if len(steps) != len(extents):
                    raise ValueError(f"{len(steps)} strides for {len(extents)} sizes: one of each is needed")
                check_within("strides", steps, 0, U32_MAX)
                layout = Layout.of(extents, steps)
            object.__setattr__(self, "layout", layout)

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
        """Bytes that a binding needs at least: to the end of the last element, rounded up to 4."""
        return whole_words(self.layout.stop * self.dtype.itemsize)

    def __repr__(self) -> str:
        return f"TensorDesc({self.dtype.name!r}, {self.sizes}, {self.strides})"


def check_descs(**sides: object) -> None:
    """Raise TypeError for sides that are not a TensorDesc."""
    for side, desc in sides.items():
        if not isinstance(desc, TensorDesc):
            raise TypeError(f"{side} is of type {type(desc).__name__}: must be a TensorDesc")


Bindable: TypeAlias = Tensor | Buffer | tuple[Buffer, SupportsIndex]


def buffer_and_offset(binding: Buffer | tuple[Buffer, SupportsIndex]) -> tuple[Buffer, SupportsIndex]:
    """Return a binding's buffer and byte offset, 0 where it has none; raise TypeError for other values."""
    pair: Any = binding if isinstance(binding, tuple) and len(binding) == 2 else (binding, 0)
    given, offset = pair
    remedy = "or a Tensor, which asarray(array) makes, or a tuple of a buffer and a byte offset"
    return found_by("GPUBuffer", given, remedy=remedy)[1], offset


class BindingSlot:
    """Binding slot of a described tensor."""

    def __init__(self, device: Device, side: str, desc: TensorDesc, used: Layout) -> None:
        self.device = device
        self.side = side
        self.desc = desc
        self.used = used  # the elements that are read or written, from the one at index 0
        self.itemsize = desc.dtype.itemsize
        self.stop = desc.layout.stop
        self.alignment_nbytes = device.limits.binding_alignment_nbytes
        self._used_from = lru_cache(maxsize=MAX_PLACES)(used.shifted)  # by the start, in elements
        if desc.nbytes > device.largest_buffer_nbytes:
            raise ValueError(
                f"{side} sizes {desc.sizes} with strides {desc.strides} need {desc.nbytes} bytes: a buffer "
                f"of {device} has at most {device.largest_buffer_nbytes}"
            )

    def on_placeholder(self) -> Binding:
        """Return the binding at the start of a buffer of every usage, with capacity for vectors."""
        return self.bound(placeholder(self.device, self.desc.nbytes))

    def bound(self, binding: Bindable) -> Binding:
        """Check a binding against the descriptor, and return it as a layout in a buffer."""
        with named(self.side):
            if isinstance(binding, Tensor):
                check_described(self.desc, binding, self.side)
                if self.side == "output":
                    check_writeable(binding)
                buffer, start = binding.memory, binding.layout.offset
            else:
                buffer, offset = buffer_and_offset(binding)
                start = checked_offset(offset, self.itemsize)
                if whole_words((start + self.stop) * self.itemsize) > buffer.size:
                    check_fits(buffer, self.desc.layout.shifted(start), self.desc.dtype)
        phase_nbytes = start * self.itemsize % self.alignment_nbytes
        layout = self._used_from(phase_nbytes // self.itemsize)
        return Binding(buffer, layout, self.itemsize, offset_nbytes=start * self.itemsize - phase_nbytes)


def check_described(desc: TensorDesc, tensor: Tensor, side: str) -> None:
    """Refuse a tensor whose dtype, sizes or strides differ from the descriptor's."""
    if tensor.dtype != desc.dtype:
        raise TypeError(f"dtype {tensor.dtype}: compiled for {desc.dtype}")
    if tensor.shape != desc.sizes:
        raise ValueError(f"sizes {tensor.shape}: compiled for {desc.sizes}")
    if tensor.strides != desc.strides:
        copied = side != "output" and desc.layout.is_packed
        remedy = "copy() the tensor" if copied else f"give a tensor of strides {desc.strides}"
        remedy += ", or describe its strides" * (min(tensor.strides) >= 0)
        raise ValueError(f"strides {tensor.strides}: compiled for {desc.strides}; {remedy}")


def keep_buffers(device: Device, *bindings: object) -> None:
    """Reuse the buffers of bound tensors for no other ones: the caller's commands use them at any time."""
    keep_for_caller(device, [binding.memory for binding in bindings if isinstance(binding, Tensor)])


def new_output(device: Device, desc: TensorDesc, *, zeroed: bool = False) -> Tensor:
    """Make a tensor as described, of any content unless `zeroed` or padded."""
    memory = sink().reused_buffer(device, desc.nbytes, zeroed=zeroed or not desc.layout.is_packed)
    return Tensor(device, memory, desc.dtype, desc.layout)


def output_for(
    x: Tensor,
    sizes: Sequence[int],
    out: Tensor | None,
    before: str = "",
    behind: str = "",
    *,
    zeroed: bool = True,
) -> Tensor:
    """Return `out`, checked for a result of `x`, or a new tensor; `before` and `behind` extend errors."""
    if out is None:
        return allocate(sizes, x.dtype, x.device, zeroed=zeroed)
    check_tensor("out", out, written=True)
    check_destination(out, x.dtype, "out")
    if out.shape != tuple(sizes):
        raise ValueError(f"out has sizes {out.shape}: must be {before}{tuple(sizes)}{behind}")
    return out

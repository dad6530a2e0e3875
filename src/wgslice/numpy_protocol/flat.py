"""Elements of a tensor in row-major order: `x.flat`, and NumPy's functions that write by their numbers."""

from __future__ import annotations

from itertools import accumulate
from operator import mul
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.dialects.advanced import as_item, non_negative
from wgslice.dtypes import AnyDType, check_same_dtype
from wgslice.errors import ComputationRefused, named
from wgslice.gpu.protocols import CommandEncoder
from wgslice.gpu.recording import Copy, Recorder
from wgslice.layout_rules import repeated_to, reshaped
from wgslice.numpy_protocol.taking import as_indices
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.tensors.indexing import assign, copy_where
from wgslice.tensors.methods import packed_copy
from wgslice.tensors.placed import (
    check_input,
    check_no_sequence,
    check_of_numbers,
    check_tensor,
    check_writeable,
    element,
    viewed,
    write,
)
from wgslice.tensors.tensor import Tensor, allocate
from wgslice.tensors.uncomputed import of_two


class Flat:
    """All elements of a tensor in row-major order, as `numpy.flatiter`.

    One index reads or writes: an integer, a slice, `...`, integers or a mask in an array or a tensor, where a
    mask in a tensor is read back. Reading copies, in one submission; a tensor that has no flat view is copied
    first. Values that are written are repeated as often as needed, in row-major order. Iteration yields views
    of rank 0.

    Attributes
    ----------
    base : Tensor
        The tensor.
    index : int
        Number of the element that iteration yields next.
    """

    __slots__ = ("base", "index")

    __hash__ = object.__hash__
    __eq__, __ne__ = of_two("==")[0], of_two("!=")[0]

    def __init__(self, base: Tensor) -> None:
        self.base = base
        self.index = 0

    def __len__(self) -> int:
        return self.base.size

    def __iter__(self) -> Flat:
        return self

    def __next__(self) -> Tensor:
        if self.index >= len(self):
            raise StopIteration
        self.index += 1
        return element(self.base, self.index - 1)

    def copy(self) -> Tensor:
        """Copy all elements to one dimension."""
        return self.base.flatten()

    def __array__(self, dtype: AnyDType = None, copy: bool | None = None) -> NDArray[Any]:
        return self.base.__array__(dtype, copy).reshape(-1)

    def __getitem__(self, key: Any) -> Tensor:
        with named("flat"):
            item = one_item(key)
            if isinstance(item, int):
                return packed_copy(element(self.base, item))
            x = self.base.reshape(-1)
            found = x[item]
            return packed_copy(found) if isinstance(item, slice) and x.memory is self.base.memory else found

    def __setitem__(self, key: Any, value: Any) -> None:
        with named("flat"):
            item = one_item(key)
            if not isinstance(item, int):
                write_flat(self.base, item, value)
                return
            target = element(self.base, item)
            if np.ndim(value):
                raise ValueError(f"one element cannot be set to a sequence of shape {np.shape(value)}")
            target[...] = value


def one_item(key: Any) -> int | slice | NDArray[Any] | Tensor:
    """Return the index of elements in one dimension; a mask in a tensor as an array."""
    if isinstance(key, tuple):
        if len(key) > 1:
            raise IndexError(f"too many indices: elements are counted in one dimension, not {len(key)}")
        key = key[0] if key else ...
    if key is ...:
        return slice(None)
    is_mask = isinstance(key, Tensor) and key.dtype.kind == "b"
    item = np.asarray(key) if is_mask else key if isinstance(key, Tensor) else as_item(key)
    if item is None or (isinstance(item, np.ndarray) and item.dtype.kind == "b" and not item.ndim):
        raise IndexError(
            "only integers, slices (`:`), ellipsis (`...`) and arrays of integers or bools are indices"
        )
    return item  # type: ignore[return-value]  # `...` is a slice


def write_flat(x: Tensor, item: slice | NDArray[Any] | Tensor, values: Any) -> None:
    """Write values, repeated or cut to as many, to elements that are counted in row-major order."""
    check_writeable(x)
    if isinstance(item, slice):
        count = len(range(*item.indices(x.size)))
    elif isinstance(item, np.ndarray) and item.dtype.kind != "b" and not np.size(values):
        return  # NumPy checks indices when it writes at them
    else:
        item = item.reshape(-1) if isinstance(item, Tensor) else numbers_of(item, x.size)
        count = item.size
    layout = reshaped(x.layout, (x.size,))
    whole = layout is None and isinstance(item, slice) and count == x.size and (item.step or 1) > 0
    divides = not whole
    if layout is not None and isinstance(item, slice):  # short rows of strided sub-word elements are slow
        written = layout.select([range(*item.indices(x.size))])
        divides = written.is_packed or x.itemsize >= WORD_NBYTES
    given, encoder = repeated(x, values, count, divides=divides)
    if not given.size or not count:
        return
    shape = (-1, *given.shape) if given.size < count else (-1,)
    if whole:
        assign(x, ..., given.reshape(x.shape) if given.ndim else given, encoder=encoder)
    elif layout is None and isinstance(item, Tensor):
        copied = packed_copy(x)
        assign(copied.reshape(-1), item.reshape(shape), given, encoder=encoder)
        write(x, copied)
    elif layout is None:
        numbers = np.arange(*item.indices(x.size)) if isinstance(item, slice) else item
        assign(x, np.unravel_index(numbers.reshape(shape), x.shape), given, encoder=encoder)
    elif isinstance(item, slice):
        assign(viewed(x, layout)[item].reshape(shape), ..., given, encoder=encoder)
    else:
        assign(viewed(x, layout), item.reshape(shape), given, encoder=encoder)


def numbers_of(item: NDArray[Any], size: int) -> NDArray[np.int64]:
    """Return the numbers of elements, from 0 on, that integers or a mask select of `size` elements."""
    if item.dtype.kind == "b":
        if item.shape != (size,):
            raise IndexError(
                f"a mask of shape {item.shape}: must have shape {(size,)}, one bool for each element"
            )
        return np.flatnonzero(item)
    return non_negative(item, size, 0).reshape(-1)


def repeated(
    x: Tensor, values: Any, count: int, *, safe: bool = False, divides: bool = False
) -> tuple[Tensor | NDArray[Any], CommandEncoder | None]:
    """Return values for elements of a tensor, repeated or cut to `count` in row-major order.

    One value has no dimensions. Arrays are cast as NumPy assigns them, or if `safe` by that rule. A tensor is
    repeated by the commands that are returned with it; if `divides`, not where its size divides `count`.
    """
    if isinstance(values, Tensor):
        check_same_dtype(values.dtype, x.dtype)
        check_input(x.device, "values", values.memory)
        given = values.reshape(-1)
        if given.size == 1:
            return given.reshape(()), None
        if not given.size or given.size >= count:
            return given[:count], None
        if divides and count % given.size == 0 and given.memory is not x.memory:
            return given, None
        turns = allocate((-(-count // given.size), given.size), x.dtype, x.device, zeroed=False)
        source = given.bound_layout._replace(layout=repeated_to(given.layout, turns.shape))
        recorder = Recorder(x.device)
        recorder.copy(Copy(source, turns.bound_layout._replace(fresh=True)))
        return turns.reshape(-1)[:count], recorder.end()
    check_of_numbers(values)
    size = np.size(values)
    made = np.empty(min(size, 1) if size < 2 else count, x.dtype)
    if safe:
        np.putmask(made, np.ones(made.shape, np.bool_), values)
    else:
        made.flat[:] = values
    return made.reshape(()) if size == 1 else made, None


def put(a: Tensor, ind: Tensor | ArrayLike, v: Any, mode: str = "raise") -> None:
    """Write values at indices of all elements, as `numpy.put`; modes "wrap" and "clip" read tensors back."""
    check_tensor("a", a, written=True)
    check_writeable(a)
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"mode = {mode!r}: must be 'raise', 'wrap' or 'clip'")
    indices = as_indices(ind)
    if indices.size and not a.size:
        raise IndexError("cannot replace elements of an empty array")
    if mode != "raise" and indices.size:
        read = np.asarray(indices)
        indices = as_indices(read % a.size if mode == "wrap" else read.clip(0, a.size - 1))
    write_flat(a, indices, v)


def place(arr: Tensor, mask: Any, vals: Any) -> None:
    """Write values in order where a mask is true, as `numpy.place`; for several, a tensor's is read back."""
    check_tensor("arr", arr, written=True)
    check_writeable(arr)
    check_no_sequence(vals)
    marked = as_mask(arr, mask)
    if np.size(vals) != 1:
        marked = np.asarray(marked)
    count = 1 if isinstance(marked, Tensor) else int(np.count_nonzero(marked))
    given, encoder = repeated(arr, vals, count, safe=True)
    if count and not given.size:
        raise ValueError("Cannot insert from an empty array!")
    assign(arr, marked, given, encoder=encoder)


def putmask(a: Tensor, mask: Any, values: Any) -> None:
    """Write the values at the same places where a mask is true, as `numpy.putmask`."""
    check_tensor("a", a, written=True)
    check_writeable(a)
    marked = as_mask(a, mask)
    same = isinstance(values, Tensor) and values.shape == a.shape
    given, encoder = (values, None) if same else repeated(a, values, a.size, safe=True)
    if given.size or not a.size:
        copy_where(a, given if given.ndim == 0 else given.reshape(a.shape), marked, encoder)


def as_mask(x: Tensor, mask: Any) -> Tensor | NDArray[np.bool_]:
    """Return a mask in the shape of a tensor, which it must have as many elements as."""
    if isinstance(mask, Tensor) and mask.dtype.kind != "b":
        raise ComputationRefused(
            f"mask has dtype {mask.dtype}: must be bool, since comparing its elements with 0 computes"
        )
    check_no_sequence(mask)
    given = mask if isinstance(mask, Tensor) else np.asarray(mask).astype(np.bool_)
    if given.size != x.size:
        raise ValueError(f"mask has shape {given.shape}, the tensor {x.shape}: must be the same size")
    return given.reshape(x.shape)


def fill_diagonal(a: Tensor, val: Any, wrap: bool = False) -> None:
    """Write values to the main diagonal, repeated, as `numpy.fill_diagonal`."""
    check_tensor("a", a, written=True)
    if a.ndim < 2:
        raise ValueError(f"a has shape {a.shape}: array must be at least 2-d")
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError(f"a has shape {a.shape}: all dimensions must be of equal length")
    step = 1 + sum(accumulate(a.shape[:0:-1], mul))
    write_flat(a, slice(None, a.shape[1] ** 2 if a.ndim == 2 and not wrap else None, step), val)

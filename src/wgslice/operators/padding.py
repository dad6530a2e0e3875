"""Tensors of different sizes in one batch, each at the start of its part."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from wgslice.arguments import Integers, integers
from wgslice.errors import NoKernelError, public
from wgslice.gpu.recording import Copy, run_copy
from wgslice.layout import Layout
from wgslice.operators.windows import write_windows
from wgslice.operators.windows_arguments import (
    Table,
    cached_by_value,
    checked_windows,
    gathered,
    repeated_bytes,
    sizes_table,
)
from wgslice.plans.box_strategies import plan_covering
from wgslice.plans.plan import Planner
from wgslice.plans.windows import Boxes, layouts_of
from wgslice.tensors.placed import check_tensor, viewed
from wgslice.tensors.tensor import Tensor, allocate


@public()
def pad_windows(
    windows: Sequence[Tensor | ArrayLike], size: Integers | None = None, *, fill: Any = 0
) -> Tensor:
    """Join tensors of different sizes in a batch, each at the start of its part, as pad_sequence of PyTorch.

    Parameters
    ----------
    windows : sequence of Tensor or array_like
        At least one tensor; all of one dtype, rank 0 to 7 and device. Arrays are cast where NumPy's rule
        `same_kind` allows it.
    size : sequence of int, optional
        Sizes of each part, at least those of every window; by default the greatest of each dimension.
    fill : scalar, optional
        Value of all other elements, cast as NumPy assigns it. 0 by default.

    Returns
    -------
    Tensor
        Of the sizes `(B, *size)`. The work is submitted, not waited for.

    Raises
    ------
    OverflowError
        `fill` is a Python integer that the dtype does not hold.
    TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
        As `copyto`; there is no tensor, ranks differ, or a window is larger than `size`.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> lines = [wg.asarray([1, 2, 3]), wg.asarray([4]), wg.asarray([5, 6])]
    >>> wg.pad_windows(lines, fill=-1).numpy()
    array([[ 1,  2,  3],
           [ 4, -1, -1],
           [ 5,  6, -1]])
    """
    given = list(windows)
    first = next((each for each in given if isinstance(each, Tensor)), None)
    if first is None:
        raise ValueError("no tensor among the windows: numpy.asarray pads arrays on the host")
    listed = checked_windows(first, given)
    sizes = np.array([each.shape for each in listed], np.int64).reshape(len(listed), -1)
    greatest = tuple(sizes.max(axis=0).tolist())
    box = greatest if size is None else integers("size", size)
    if len(box) != first.ndim or any(most < least for most, least in zip(box, greatest, strict=False)):
        raise ValueError(f"size {box}: must be at least {greatest}, the greatest sizes of the windows")
    filled = repeated_bytes(fill, first.dtype)
    output = allocate((len(listed), *box), first.dtype, first.device, zeroed=False)
    source, packing = gathered(first.device, first.dtype, listed, sizes)
    _, planner, planning = prepared_padding(sizes, box, packing.starts, packing.strides, filled)
    target = output.bound_layout._replace(fresh=True)
    try:
        run_copy(first.device, Copy(source, target, planner, planning=planning))
    except NoKernelError:  # disabled, or the source ends inside a vector of 16 bytes: in two steps
        output[...] = np.frombuffer(filled, first.dtype)[0]
        offsets = np.zeros((len(listed), len(box) + 1), np.int64)
        offsets[:, 0] = np.arange(len(listed))
        write_windows(output, offsets, [each[None] for each in listed], None, "disjoint", None)
    return output


@cached_by_value
def prepared_padding(
    sizes: Table, box: tuple[int, ...], source_starts: Table, source_strides: Table, fill: bytes
) -> tuple[Boxes, Planner]:
    """Return windows that are each at the start of a box, of which the rest is filled, and their planner."""
    count, whole = len(sizes), Layout.packed((len(sizes), *box))
    boxes = np.broadcast_to(np.array(box, np.int64), sizes.shape)
    starts = np.arange(count) * np.int64(whole.strides[0] if count > 1 else 0)
    strides = np.broadcast_to(np.array(whole.strides[1:], np.int64), sizes.shape)
    highs = np.where((sizes == 0).any(axis=1, keepdims=True), 0, sizes)
    places = np.stack([source_starts, starts]), np.stack([source_strides, strides])
    padded = Boxes(np.arange(count), boxes, *places, 0 * highs, highs, fill).of(np.full(count, 0 not in box))
    return padded, partial(plan_covering, padded)


@public()
def unpad_windows(x: Tensor, sizes: ArrayLike) -> list[Tensor]:
    """View the start of each part of a batch: the reverse of `pad_windows`.

    Parameters
    ----------
    x : Tensor
        Batch of B parts.
    sizes : array_like of int, shape (B, rank - 1)
        Sizes of each view.

    Returns
    -------
    list of Tensor
        Views, at no cost: `x[b, :sizes[b, 0], ...]`.

    Raises
    ------
    TypeError, ValueError
        `sizes` are no integers, of another shape, or not within the parts.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> batch = wg.asarray([[1, 2, 3], [4, -1, -1]])
    >>> [view.tolist() for view in wg.unpad_windows(batch, [[3], [1]])]
    [[1, 2, 3], [4]]
    """
    check_tensor("x", x)
    table = sizes_table(sizes, (*x.shape[:1], x.ndim - 1))
    if ((table < 0) | (table > np.array(x.shape[1:], np.int64))).any():
        window = int(np.argwhere(((table < 0) | (table > x.shape[1:])).any(axis=1))[0, 0])
        raise ValueError(f"sizes[{window}] = {tuple(table[window].tolist())}: must be 0 to {x.shape[1:]}")
    apart, *inner = x.layout.strides
    starts = x.layout.offset + apart * np.arange(len(table))
    return [viewed(x, layout) for layout in layouts_of(table, np.array(inner, np.int64), starts)]

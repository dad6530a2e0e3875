"""Windows of different sizes: checks of their arguments, extraction into lists, and insertion of lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from wgslice.arguments import I32_MAX, I32_MIN, Integers, integers
from wgslice.dtypes import DType, check_same_dtype
from wgslice.errors import NoKernelError, WindowError, named, public
from wgslice.gpu.device import Device
from wgslice.gpu.recording import BoundCopy, BoundLayout, planned_anew, run_copies, run_copy
from wgslice.layout import Layout
from wgslice.operators.binding import TensorDesc, check_descs
from wgslice.operators.windows_arguments import (
    EXTRACTING,
    INSERTING,
    OnGpu,
    Outside,
    cached_by_value,
    check_inside,
    checked_outside,
    checked_strides,
    integer_array,
    offsets_table,
    repeated_bytes,
)
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.plan import Planner
from wgslice.plans.sized import Boxes, SizedWindows, layouts_of
from wgslice.plans.sized_strategies import boxes_planner, extract_sized_planner, insert_sized_planner
from wgslice.plans.windows import DROPPED
from wgslice.tensors.placed import (
    as_copied,
    check_destination,
    check_input,
    check_tensor,
    uploaded,
    viewed,
)
from wgslice.tensors.tensor import Tensor, allocate

Table: TypeAlias = NDArray[np.int64]


class Packing(NamedTuple):
    """Where windows lie in a packed buffer, each from a multiple of 16 bytes on."""

    starts: Table  # (B,) elements
    strides: Table  # (B, rank) elements
    size: int  # elements of the buffer


def packed_windows(sizes: Table, itemsize: int) -> Packing:
    """Return the places of windows of some sizes, (B, rank), in a packed buffer."""
    unit = WIDEST_NBYTES // itemsize
    stops = np.cumsum(-(-sizes.prod(axis=1) // unit) * unit)
    strides = np.ones_like(sizes)
    for axis in range(sizes.shape[1] - 2, -1, -1):
        strides[:, axis] = strides[:, axis + 1] * sizes[:, axis + 1]
    return Packing(
        np.concatenate([[0], stops[:-1]])[: len(sizes)], strides, int(stops[-1]) if len(stops) else 0
    )


def are_per_window(sizes: Any) -> bool:
    """Whether sizes are of shape (B, rank)."""
    if isinstance(sizes, np.ndarray):
        return sizes.ndim == 2
    return isinstance(sizes, Sequence) and any(np.ndim(each) for each in sizes)


def sizes_table(sizes: ArrayLike, shape: tuple[int, ...]) -> Table:
    """Return sizes per window as a table of the shape of the offsets."""
    table = integer_array("sizes", sizes)
    if table.shape != shape:
        raise ValueError(
            f"sizes have shape {table.shape}: must be {shape}, as offsets, or one size for each dimension"
        )
    return table


def offsets_shape(offsets: ArrayLike | OnGpu) -> tuple[int, ...]:
    """Return the shape of offsets on the host or in device memory."""
    return offsets.shape if isinstance(offsets, OnGpu) else integer_array("offsets", offsets).shape


def packed_desc(name: str, desc: TensorDesc | None, dtype: DType, sizes: Table) -> TensorDesc:
    """Return the descriptor of packed windows of some sizes, or the one that is given, checked."""
    size = packed_windows(sizes, dtype.itemsize).size
    if desc is None:
        return TensorDesc(dtype, (size,))
    check_descs(**{name: desc})
    if desc.sizes != (size,):
        raise ValueError(f"{name} sizes {desc.sizes}: must be ({size},), packed windows")
    return desc


def sized_extraction(
    offsets: ArrayLike | OnGpu,
    input_sizes: tuple[int, ...],
    sizes: ArrayLike,
    strides: ArrayLike | None,
    fill: bytes | None,
    outside: Outside | None,
    itemsize: int,
    packing: Packing | None = None,
) -> SizedWindows:
    """Return checked windows of an input, packed by default."""
    rule = checked_outside(outside, EXTRACTING, known=not isinstance(offsets, OnGpu), filled=fill is not None)
    table = offsets_table("the input", input_sizes, offsets)
    extents = sizes_table(sizes, table.shape)
    steps, flips = checked_strides(strides, table.shape)
    anywhere = (extents == 0).any(axis=1, keepdims=True) | (fill is not None)
    most = np.where(anywhere, I32_MAX, np.array(input_sizes, np.int64))
    wrong = (extents < 0) | (extents > most)
    if wrong.any():
        window, axis = (int(index) for index in np.argwhere(wrong)[0])
        bound = "" if anywhere[window, 0] else "the input's size, "
        raise WindowError(
            f"sizes[{window}][{axis}] = {extents[window, axis]}: must be 0 to {bound}{most[window, axis]}"
        )
    if packing is None:
        packing = packed_windows(1 + (extents - 1) // np.array(steps, np.int64), itemsize)
    return placed_sized(table, extents, steps, flips, input_sizes, rule, fill, "the input", packing)


def sized_insertion(
    offsets: ArrayLike | OnGpu,
    window_sizes: Table,
    tensor_sizes: tuple[int, ...],
    strides: ArrayLike | None,
    outside: Outside | None,
    packing: Packing,
) -> SizedWindows:
    """Return checked windows of a batch to be inserted into a tensor."""
    rule = checked_outside(outside, INSERTING, known=not isinstance(offsets, OnGpu))
    table = offsets_table("x", tensor_sizes, offsets)
    if window_sizes.shape != table.shape:
        raise ValueError(
            f"{len(window_sizes)} windows of rank {window_sizes.shape[1]}: must be {table.shape[0]} of rank "
            f"{table.shape[1]}, one for each of the offsets"
        )
    steps, flips = checked_strides(strides, table.shape)
    extents = np.maximum((window_sizes - 1) * np.array(steps, np.int64) + 1, 0)
    anywhere = (extents == 0).any(axis=1, keepdims=True) | (rule == "drop")
    wrong = (extents > I32_MAX) | (~anywhere & (extents > np.array(tensor_sizes, np.int64)))
    if wrong.any():
        window, axis = (int(index) for index in np.argwhere(wrong)[0])
        most = I32_MAX if anywhere[window, 0] else tensor_sizes[axis]
        remedy = "" if anywhere[window, 0] else f", the size of x; {INSERTING['drop']}"
        raise WindowError(
            f"windows[{window}] has extent {extents[window, axis]} in dimension {axis}, "
            f"{window_sizes[window, axis]} elements in steps of {steps[axis]}: must be at most {most}{remedy}"
        )
    fill = DROPPED if rule == "drop" else None
    return placed_sized(table, extents, steps, flips, tensor_sizes, rule, fill, "x", packing)


def placed_sized(
    table: Table | OnGpu,
    extents: Table,
    steps: tuple[int, ...],
    flips: NDArray[np.uint32],
    sizes: tuple[int, ...],
    rule: str,
    fill: bytes | None,
    name: str,
    packing: Packing,
) -> SizedWindows:
    """Return windows with the rule for out-of-bounds ones applied to offsets on the host."""
    places = packing.starts, packing.strides
    if not sizes:  # rank 0: as one dimension of one element
        one = np.ones((len(flips), 1), np.int64)
        table, extents, steps, sizes, places = 0 * one, one, (1,), (1,), (packing.starts, one)
    if isinstance(table, OnGpu):  # without a fill the kernel clamps them
        signed = table.dtype.kind == "i"
        return SizedWindows(extents, steps, flips, None, table.dtype.itemsize, signed, fill, *places)
    empty = (extents == 0).any(axis=1, keepdims=True)  # these may be anywhere
    highest = np.array(sizes, np.int64) - extents
    leaving = ~empty & ((table < 0) | (table > highest))
    if rule == "refuse":
        check_inside(leaving, table, extents, sizes, name)
    bounds = (0, np.maximum(highest, 0)) if rule == "clamp" else (I32_MIN, I32_MAX)
    known = np.where(empty, 0, np.clip(table, *bounds)).astype(np.int32)
    kept = fill if leaving.any() and rule != "clamp" else None
    return SizedWindows(extents, steps, flips, known, 4, True, kept, *places)


# extraction


@cached_by_value
def prepared_extraction(*arguments: Any) -> tuple[SizedWindows, Planner]:
    """Return the windows of the arguments of `sized_extraction`, and the planner of their extraction."""
    windows = sized_extraction(*arguments)
    return windows, extract_sized_planner(windows)


def extract_sized(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    sizes: ArrayLike,
    strides: ArrayLike | None,
    fill: bytes | None,
    outside: Outside | None,
    out: Tensor | Sequence[Tensor] | None,
) -> list[Tensor]:
    """Copy windows of different sizes of one tensor into one buffer, and return a tensor of each."""
    table = OnGpu(offsets.shape, offsets.dtype) if isinstance(offsets, Tensor) else as_table(offsets)
    arguments = table, x.shape, as_table(sizes), strides, fill, outside, x.itemsize
    windows, planner, planning = prepared_extraction(*arguments)
    on_gpu = offsets.bound_layout if isinstance(offsets, Tensor) and windows.offsets is None else None
    whole = x if x.ndim else x[None]
    source = whole.bound_layout
    kept = windows.sizes[:, : x.ndim]
    if out is None or isinstance(out, Tensor):
        packing = packed_windows(kept, x.itemsize)
        output = packed_output(x, packing.size, out)
        written = output.bound_layout._replace(fresh=out is None)
        run_copy(x.device, BoundCopy(source, written, planner, on_gpu, planning))
        first = output.layout.offset
        layouts = windows.layouts if x.ndim else [layout.select([0]) for layout in windows.layouts]
        return [viewed(output, layout.shifted(first)) for layout in layouts]
    outputs = checked_outputs(x.dtype, list(out), kept)
    buffers = by_buffer(outputs)
    if len(buffers) > 1:  # one submission for each, of which an earlier one could overwrite what is read
        overwritten = {id(target.buffer) for _, target, _ in buffers}
        if id(source.buffer) in overwritten:
            source = whole.copy().bound_layout
        if on_gpu is not None and isinstance(offsets, Tensor) and id(on_gpu.buffer) in overwritten:
            on_gpu = offsets.copy().bound_layout
    for numbers, target, packing in buffers:
        among = np.isin(np.arange(len(outputs)), numbers)
        extents = np.where(among[:, None], windows.extents, 0)
        strides_of = packing.strides if x.ndim else np.ones_like(extents)
        some = replace(windows, extents=extents, starts=packing.starts, strides=strides_of)
        run_copy(x.device, BoundCopy(source, target, extract_sized_planner(some), on_gpu, planned_anew))
    return outputs


def as_table(values: Any) -> Any:
    """Return a nested list of integers as an array, whose content is a key of a cache."""
    return np.asarray(values) if isinstance(values, list | tuple) and len(values) else values


def packed_output(x: Tensor, size: int, out: Tensor | None) -> Tensor:
    """Return `out`, checked for packed windows of `x`, or a new tensor."""
    if out is None:
        return allocate((size,), x.dtype, x.device, zeroed=False)
    check_tensor("out", out, written=True)
    check_destination(out, x.dtype, "out")
    if out.shape != (size,) or not out.is_packed:
        raise ValueError(
            f"out has sizes {out.shape} and strides {out.strides}: must be ({size},), packed, or a list with "
            "a tensor for each window"
        )
    return out


def checked_outputs(dtype: DType, out: list[Any], sizes: Table) -> list[Tensor]:
    """Return the tensors of a list `out`, one for each window."""
    if len(out) != len(sizes):
        raise ValueError(f"out has {len(out)} tensors: must be {len(sizes)}, one for each window")
    for number, (tensor, expected) in enumerate(zip(out, map(tuple, sizes.tolist()), strict=True)):
        name = f"out[{number}]"
        check_tensor(name, tensor, written=True)
        check_destination(tensor, dtype, name)
        if tensor.shape != expected:
            raise ValueError(f"{name} has sizes {tensor.shape}: must be {expected}")
    return out


def by_buffer(tensors: list[Tensor]) -> list[tuple[list[int], BoundLayout, Packing]]:
    """Return the numbers of the tensors of each buffer, all of it that they reach, and their places in it."""
    if not tensors:
        return []
    order: dict[int, list[int]] = {}
    for number, tensor in enumerate(tensors):
        order.setdefault(id(tensor.memory), []).append(number)
    columns = zip(*[tensor.layout for tensor in tensors], strict=True)
    sizes, strides, starts = (np.array(values, np.int64).reshape(len(tensors), -1) for values in columns)
    starts, reaches = starts[:, 0], (sizes - 1) * strides
    lows = starts + np.minimum(reaches, 0).sum(axis=1)
    stops = starts + np.maximum(reaches, 0).sum(axis=1) + 1
    found = []
    for numbers in order.values():
        kept = [number for number in numbers if tensors[number].size]
        low, stop = (int(lows[kept].min()), int(stops[kept].max())) if kept else (0, 0)
        memory, itemsize = tensors[numbers[0]].memory, tensors[numbers[0]].itemsize
        whole = BoundLayout(memory, Layout.of((stop - low,), (1,), low), itemsize)
        found.append((numbers, whole, Packing(starts - low, strides, stop - low)))
    return found


# insertion


@cached_by_value
def prepared_insertion(
    overlap: str, tensor_sizes: tuple[int, ...], *arguments: Any
) -> tuple[SizedWindows, Planner]:
    """Return windows at starts and strides in a batch, and the planner of their insertion."""
    offsets, sizes, strides, outside, starts, batch_strides = arguments
    packing = Packing(starts, batch_strides, 0)
    windows = sized_insertion(offsets, sizes, tensor_sizes, strides, outside, packing)
    return windows, insert_sized_planner(windows, tensor_sizes or (1,), overlap)


def listed_windows(windows: Any) -> list[Any] | None:
    """Return windows in a list of tensors, or of arrays of different shapes; None if they are a batch."""
    if not isinstance(windows, list | tuple):
        return None
    if not windows or any(isinstance(each, Tensor) for each in windows):
        return list(windows)
    if all(np.ndim(each) == 0 for each in windows) or len({np.shape(each) for each in windows}) < 2:
        return None
    return [np.asarray(each) for each in windows]


def insert_sized(
    x: Tensor,
    offsets: ArrayLike | Tensor,
    windows: list[Any],
    strides: ArrayLike | None,
    overlap: str,
    outside: Outside | None,
) -> None:
    """Write windows of a list into a tensor."""
    table = OnGpu(offsets.shape, offsets.dtype) if isinstance(offsets, Tensor) else as_table(offsets)
    listed = checked_windows(x, windows)
    sizes = np.array([each.shape for each in listed], np.int64).reshape(len(listed), x.ndim)
    source, packing = gathered(x.device, x.dtype, listed, sizes)
    arguments = overlap, x.shape, table, sizes, strides, outside, packing.starts, packing.strides
    boxes, planner, planning = prepared_insertion(*arguments)
    on_gpu = offsets.bound_layout if isinstance(offsets, Tensor) and boxes.offsets is None else None
    target = (x if x.ndim else x[None]).bound_layout
    run_copy(x.device, BoundCopy(source, target, planner, on_gpu, planning))


def checked_windows(x: Tensor, windows: list[Any]) -> list[Tensor | NDArray[Any]]:
    """Return the windows of a list as tensors and arrays of the dtype and the rank of their target."""
    found: list[Tensor | NDArray[Any]] = []
    usable: set[int] = set()  # memories: a thousand windows are often of one
    for number, given in enumerate(windows):
        alike = isinstance(given, Tensor) and (given.ndim, given.dtype) == (x.ndim, x.dtype)
        if alike and id(given.memory) in usable:
            found.append(given)
            continue
        name = f"windows[{number}]"
        with named(name):
            window = given if isinstance(given, Tensor) else as_copied(given, x.dtype)
            if isinstance(window, Tensor):
                check_same_dtype(x.dtype, window.dtype)
            if window.ndim != x.ndim:
                raise ValueError(f"shape {window.shape}: must be of rank {x.ndim}, as x")
        if isinstance(window, Tensor):
            check_input(x.device, name, window.memory)
            usable.add(id(window.memory))
        found.append(window)
    return found


def gathered(
    device: Device, dtype: DType, windows: list[Tensor | NDArray[Any]], sizes: Table
) -> tuple[BoundLayout, Packing]:
    """Return one buffer with all windows, and their places in it.

    Tensors of one buffer stay where they are; others are copied into a new one.
    """
    packing = packed_windows(sizes, dtype.itemsize)
    tensors = [each for each in windows if isinstance(each, Tensor)]
    if tensors and len(tensors) == len(windows):
        buffers = by_buffer(tensors)
        if len(buffers) == 1:
            return buffers[0][1:]
    if not tensors:
        packed = np.zeros(packing.size, dtype)
        for window, start in zip(windows, packing.starts.tolist(), strict=True):
            packed[start : start + window.size] = np.asarray(window).reshape(-1)
        return uploaded(device, packed), packing
    target = allocate((packing.size,), dtype, device, zeroed=False)
    copies = []
    for window, start in zip(windows, packing.starts.tolist(), strict=True):
        if window.size:
            read = window.bound_layout if isinstance(window, Tensor) else uploaded(device, window)
            layout = Layout.packed(window.shape, start)
            moved = read.layout.shifted(read.offset_nbytes // dtype.itemsize)
            copies.append((read.buffer, moved, target.memory, layout))
    run_copies(device, dtype.itemsize, copies)
    return target.bound_layout._replace(fresh=True), packing


# padding


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
    prepared = prepared_padding(sizes, box, packing.starts, packing.strides, filled)
    target = output.bound_layout._replace(fresh=True)
    try:
        run_copy(first.device, BoundCopy(source, target, prepared.planner, planning=prepared.planning))
    except NoKernelError:  # disabled, or the source ends inside a vector of 16 bytes: in two steps
        output[...] = np.frombuffer(filled, first.dtype)[0]
        offsets = np.zeros((len(listed), len(box) + 1), np.int64)
        offsets[:, 0] = np.arange(len(listed))
        insert_sized(output, offsets, [each[None] for each in listed], None, "disjoint", None)
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
    read_strides = source_strides.copy()
    following = np.ones(count, np.int64)  # the stride with which a dimension follows the one after it
    for axis in range(len(box) - 1, -1, -1):  # of a dimension of size 1 any stride is right: one that merges
        read_strides[:, axis] = np.where(sizes[:, axis] == 1, following, source_strides[:, axis])
        following = read_strides[:, axis] * box[axis]
    kept = np.full(count, 0 not in box)
    empty = (sizes == 0).any(axis=1, keepdims=True)
    highs = np.where(empty, 0, sizes)
    places = np.stack([source_starts, starts]), np.stack([read_strides, strides])
    padded = Boxes(np.arange(count), boxes, *places, 0 * highs, highs, fill).of(kept)
    return padded, boxes_planner(padded)


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

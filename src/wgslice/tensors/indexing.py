"""Advanced indexing: arrays and tensors of indices, gathered or scattered in one submission."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_CACHED_VALUES, key_of, value_of
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, any_index
from wgslice.dialects.basic import Selection, basic_index, is_plain
from wgslice.dtypes import DType
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.gpu.recording import (
    Binding,
    Copy,
    Planning,
    Recorder,
    plan_between,
    planned_anew,
    run_copy,
)
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.layout_rules import broadcast, once, reshaped, without_leading_ones
from wgslice.plans.copy import plan_anew, plan_copy
from wgslice.plans.gather import MIN_WINDOW_NBYTES, IndexedWindows, indexed_windows
from wgslice.plans.index_strategies import copy_at_once
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext
from wgslice.plans.profiles import PATTERN_NBYTES
from wgslice.tensors.placed import (
    Placed,
    check_destination,
    check_input,
    check_no_sequence,
    check_sides,
    uploaded,
)

CHECK_VARIABLE = "WGSLICE_CHECK_INDICES"
INT64, UINT8 = np.dtype(np.int64), np.dtype(np.uint8)


def selected(x: Placed, key: Any) -> Selection | AdvancedSelection:
    """Return the selection of an index, or of another notation; masks on the GPU are read back."""
    if is_plain(key):
        return basic_index(x.shape, key)
    if isinstance(key, Selection):
        key.check(x.shape)
        return key
    items = key if isinstance(key, tuple) else (key,)
    for item in items:
        check_no_sequence(item)
    held = [indices_held(x, item) if isinstance(item, Placed) else item for item in items]
    if os.environ.get(CHECK_VARIABLE) == "1":
        any_index(x.shape, tuple(np.asarray(item) if isinstance(item, Placed) else item for item in items))
    holders = [item.holder for item in held if isinstance(item, DeviceIndices)]
    keys = tuple(
        replace(item, holder=None)
        if isinstance(item, DeviceIndices)
        else key_of(np.asarray(item) if isinstance(item, list) else item)
        for item in held
    )
    if NotImplemented in keys:
        return any_index(x.shape, tuple(held))
    selection = selection_by_value(x.shape, keys)
    return selection.held_by(holders) if holders and isinstance(selection, AdvancedSelection) else selection


# Cached selections, copies and plans: by few host indices, whose tables plans hold, or by device indices.
MAX_SELECTIONS = 64


@lru_cache(maxsize=MAX_SELECTIONS)
def selection_by_value(sizes: tuple[int, ...], keys: tuple[Any, ...]) -> Selection | AdvancedSelection:
    """Return the selection of an index given by hashable keys."""
    return any_index(sizes, tuple(map(value_of, keys)))


cached_copy = lru_cache(maxsize=MAX_SELECTIONS)(copy_at_once)
cached_plan: Planning = partial(plan_between, lru_cache(maxsize=MAX_SELECTIONS)(plan_anew))


def indices_held(x: Placed, item: Placed, *, clipped: bool = False) -> Any:
    """Return a tensor as an item of an index into `x`; `clipped` as for `DeviceIndices`."""
    if item.dtype.kind == "b":
        return np.asarray(item)
    if item.dtype.kind not in "iu" or item.dtype.itemsize > 8:
        raise IndexError(
            f"tensors used as indices must be of integer (or boolean) type, this one has dtype {item.dtype}; "
            "indices.numpy().astype(np.int64) makes integers"
        )
    check_input(x.device, "indices", item.memory)
    return DeviceIndices(item.shape, item, clipped)


def gather(
    x: Placed, selection: AdvancedSelection, result: Placed, encoder: CommandEncoder | None = None
) -> None:
    """Copy the selected elements of a tensor into a new packed one; `encoder` as for `run`."""
    if result.size == 0:
        return
    target = result.bound_layout._replace(fresh=True)
    if run_indexed(x, selection, target, reads=True, encoder=encoder):
        return
    found = indexed_windows(selection, x.layout, result.layout, reads=True)
    assert found is not None  # the dimensions of a packed tensor merge
    run_windows(x.device, found, x.bound_layout, target, encoder)


def run_indexed(
    x: Placed,
    selection: AdvancedSelection,
    other: Binding,
    *,
    reads: bool,
    disjoint: bool = False,
    encoder: CommandEncoder | None = None,
) -> bool:
    """Gather into, or scatter from, a layout by kernels with indices; return False if none does so."""
    holders = shared_holders(selection)
    if holders is None:
        return False
    dtype = holders[0].dtype if holders else None
    sides = x.layout, other.layout, x.itemsize, x.device.limits
    few = selection.unheld or all(
        isinstance(each.places, np.ndarray) and each.places.size <= MAX_CACHED_VALUES
        for each in selection.indexed
    )
    copying, planning = (cached_copy, cached_plan) if few else (copy_at_once, planned_anew)
    copy = copying(selection.unheld or selection, *sides, reads=reads, index_dtype=dtype, disjoint=disjoint)
    if copy is None:
        return False
    source, target = (x.bound_layout, other) if reads else (other, x.bound_layout)
    bound = source._replace(layout=copy.read), target._replace(layout=copy.written)
    offsets = holders[0].bound_layout if holders else None
    run_copy(x.device, Copy(*bound, copy.planner, offsets, planning), encoder)
    return True


def shared_holders(selection: AdvancedSelection) -> list[Placed] | None:
    """Return the tensors used as indices if one binding of one dtype holds all of them, else None."""
    holders = [each.places.holder for each in selection.indexed if isinstance(each.places, DeviceIndices)]
    bound = {
        (holder.dtype, holder.layout.offset, holder.layout.size, holder.layout.is_packed)
        for holder in holders
    }
    buffers = {id(holder.memory) for holder in holders}
    together = len(holders) <= 1 or (len(bound) == len(buffers) == 1 and holders[0].layout.is_packed)
    return holders if together else None


def run_windows(
    device: Device,
    found: IndexedWindows,
    source: Binding,
    target: Binding,
    encoder: CommandEncoder | None = None,
) -> None:
    """Copy windows between two buffers in one submission; indices of several dtypes become int64 before."""
    recorder = Recorder(device, encoder)

    dtype = dtype_of_indices(found)
    columns = [operand_of(device, each.places, dtype) for each in found.dimensions]
    table = table_of(recorder, found, columns, target.buffer)
    for numbers in found.pieces(device.limits, table.itemsize):
        copy, rows = found.copy_of(numbers, dtype), table.layout.select([numbers, range(found.rank)])
        sides = source._replace(layout=copy.read), target._replace(layout=copy.written)
        recorder.copy(Copy(*sides, copy.planner, table._replace(layout=rows), planned_anew))
    recorder.submit()


def dtype_of_indices(found: IndexedWindows) -> DType:
    """Return the dtype of device indices: a common one that fits all, else int64."""
    tensors = [each.places for each in found.dimensions if isinstance(each.places, DeviceIndices)]
    known = [each for each in found.dimensions if not isinstance(each.places, DeviceIndices)]
    dtype: DType = tensors[0].holder.dtype
    same = all(each.holder.dtype == dtype for each in tensors)
    return dtype if same and all(each.size - 1 <= np.iinfo(dtype.name).max for each in known) else INT64


def table_of(
    recorder: Recorder,
    found: IndexedWindows,
    columns: list[Binding],
    written: Buffer,
) -> Binding:
    """Return the start of each window as `(B, rank)`, a view of the indices or a copy on the GPU."""
    itemsize = columns[0].itemsize
    repeated = [broadcast(column.layout, found.shape) for column in columns]
    if found.rank == 1 and repeated[0] is not None and columns[0].buffer is not written:
        as_table = reshaped(repeated[0], (found.count, 1))
        if as_table is not None:
            return columns[0]._replace(layout=as_table)
    made = Binding.packed(recorder.device, (*found.shape, found.rank), itemsize)
    whole = [range(size) for size in found.shape]
    if len(columns) < found.rank:  # windows begin at 0 in the other dimensions
        others = made.layout.select([*whole, range(len(columns), found.rank)])
        zero = uploaded(recorder.device, np.zeros(1, f"u{itemsize}"))
        repeated_zero = broadcast(zero.layout, others.sizes)
        assert repeated_zero is not None
        copy = Copy(zero._replace(layout=repeated_zero), made._replace(layout=others), plan_indices)
        recorder.copy(copy)
    for number, (column, layout) in enumerate(zip(columns, repeated, strict=True)):
        assert layout is not None  # found.shape is the broadcast shape
        target = made._replace(layout=made.layout.select([*whole, number]))
        recorder.copy(Copy(column._replace(layout=layout), target, plan_indices))
    return made._replace(layout=Layout.packed((found.count, found.rank)))


def operand_of(device: Device, places: Any, dtype: DType) -> Binding:
    """Return the indices of a dimension on the GPU, in a dtype."""
    if not isinstance(places, DeviceIndices):
        return uploaded(device, places.astype(dtype))
    indices: Placed = places.holder
    return indices.bound_layout if indices.dtype == dtype else as_int64(indices).bound_layout


def as_int64(indices: Placed) -> Placed:
    """Convert integers to int64: a table gives the result for the highest byte, the others are copied."""
    device, dtype = indices.device, indices.dtype
    values = np.arange(256, dtype=np.uint8).view(f"{dtype.kind}1").astype(np.int64)
    if dtype == np.uint64:
        values = np.minimum(values, 127)
    table = uploaded(device, values << 8 * (dtype.itemsize - 1))
    result = Placed(
        device, sink().create_buffer(device, 8 * indices.size), INT64, Layout.packed(indices.shape)
    )
    whole = [range(size) for size in indices.shape]
    low = range(dtype.itemsize - 1)
    given, made = bytes_of(indices), bytes_of(result)
    highest = Placed(device, indices.memory, UINT8, given.layout.select([*whole, dtype.itemsize - 1]))
    selection = any_index((256,), DeviceIndices(highest.shape, highest))
    assert isinstance(selection, AdvancedSelection)
    gather(Placed(device, table.buffer, INT64, table.layout), selection, result)
    source, target = (each._replace(layout=each.layout.select([*whole, low])) for each in (given, made))
    run_copy(device, Copy(source, target, plan_indices))
    return result


def plan_indices(source: Layout, target: Layout, itemsize: int, context: PlanContext) -> Plan:
    """Plan a copy of indices to where a kernel binds them."""
    return replace(plan_copy(source, target, itemsize, context), name="copy of indices")


def bytes_of(tensor: Placed) -> Binding:
    """Return a tensor as bytes, with the bytes of an element as an additional last dimension."""
    layout, width = tensor.layout, tensor.dtype.itemsize
    strides = [*(stride * width for stride in layout.strides), 1]
    return Binding(tensor.memory, Layout.of([*layout.sizes, width], strides, layout.offset * width), 1)


def scatter(
    x: Placed,
    selection: AdvancedSelection,
    value: Placed | NDArray[Any],
    *,
    disjoint: bool = False,
    encoder: CommandEncoder | None = None,
) -> None:
    """Write a tensor or an array of the same dtype, broadcast, to the selected elements.

    The commands of `encoder`, which make the elements of a packed tensor in another buffer, run before.
    """
    check_destination(x, value.dtype)
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    layout = assigned(given, selection)
    if layout.size == 0:
        check_sides(x, value)
        return
    source = in_rows(x, selection, value, layout)
    if source.buffer is x.memory:
        source = packed(x, source)
    if run_indexed(x, selection, source, reads=False, disjoint=disjoint, encoder=encoder):
        return
    found = indexed_windows(selection, x.layout, source.layout, reads=False, disjoint=disjoint)
    if found is None:
        source = packed(x, source)
        if run_indexed(x, selection, source, reads=False, disjoint=disjoint, encoder=encoder):
            return
        found = indexed_windows(selection, x.layout, source.layout, reads=False, disjoint=disjoint)
    assert found is not None  # the dimensions of a packed tensor merge
    run_windows(x.device, found, source, x.bound_layout, encoder)


def in_rows(x: Placed, selection: AdvancedSelection, value: Placed | NDArray[Any], layout: Layout) -> Binding:
    """Return a value broadcast by a layout; sub-word elements are repeated in memory along selected rows."""
    first = selection.position + len(selection.indices_shape)  # dimension of the rows
    row = layout.sizes[first:]
    row_nbytes = prod(row) * x.itemsize
    repeats = any(size > 1 and not stride for size, stride in zip(row, layout.strides[first:], strict=True))
    whole = x.itemsize >= WORD_NBYTES or row_nbytes < MIN_WINDOW_NBYTES or not repeats
    if not whole and isinstance(value, np.ndarray) and row_nbytes <= PATTERN_NBYTES:
        value = np.broadcast_to(value, np.broadcast_shapes(value.shape, row))
        return uploaded(x.device, value)._replace(layout=assigned(Layout.packed(value.shape), selection))
    source = on_device(x, value)._replace(layout=layout)
    return source if whole else packed_once(x, source, first)


def on_device(x: Placed, value: Placed | NDArray[Any]) -> Binding:
    """Return the binding of a tensor, or of an array uploaded to the device of `x`."""
    return value.bound_layout if isinstance(value, Placed) else uploaded(x.device, value)


def assigned(given: Layout, selection: AdvancedSelection) -> Layout:
    """Return a value's layout broadcast to a selection, or raise NumPy's error if it does not broadcast."""
    shape = selection.shape
    if selection.is_mask and given.rank > 1:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has "
            f"{given.rank} dimensions"
        )
    layout = broadcast(without_leading_ones(given, len(shape)), shape)
    if layout is not None:
        return layout
    if selection.is_mask:
        raise ValueError(
            f"NumPy boolean array indexing assignment cannot assign {given.size} input values to the "
            f"{shape[0]} output values where the mask is true"
        )
    value, result = (str(sizes).replace(" ", "") for sizes in (given.sizes, shape))
    raise ValueError(
        f"shape mismatch: value array of shape {value} could not be broadcast to indexing result of shape "
        f"{result}"
    )


def packed_once(x: Placed, source: Binding, dimensions: int | None = None) -> Binding:
    """Copy a source to a new buffer, without repetitions in the first `dimensions`, and repeat it there."""
    copied = packed(x, source._replace(layout=once(source.layout, dimensions)))
    repeated = broadcast(copied.layout, source.layout.sizes)
    assert repeated is not None
    return copied._replace(layout=repeated)


def packed(x: Placed, source: Binding) -> Binding:
    """Copy a source to a new packed buffer on the GPU, without waiting for it."""
    made = Binding.packed(x.device, source.layout.sizes, source.itemsize)
    run_copy(x.device, Copy(source, made))
    return made

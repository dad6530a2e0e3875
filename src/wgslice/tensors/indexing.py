"""Advanced indexing and assignment: indices gathered or scattered in one submission, masks not read back."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import lru_cache, partial
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_CACHED_VALUES, key_of, value_of
from wgslice.dialects.advanced import AdvancedSelection, DeviceIndices, Indexed, any_index
from wgslice.dialects.basic import Selection, basic_index, is_plain
from wgslice.dtypes import DType
from wgslice.errors import NoKernelError
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import CommandEncoder
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
from wgslice.layout_rules import broadcast, once, without_leading_ones
from wgslice.plans.copy import plan_anew, plan_copy
from wgslice.plans.index_problem import MIN_WINDOW_NBYTES
from wgslice.plans.index_strategies import copy_at_once, masked_copy_at_once, masked_values_at_once
from wgslice.plans.indexed import INDEX_NBYTES
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.plan import Plan
from wgslice.plans.problem import PlanContext
from wgslice.plans.profiles import PATTERN_NBYTES, all_disabled
from wgslice.tensors.placed import (
    Placed,
    as_assigned,
    check_destination,
    check_input,
    check_no_sequence,
    check_sides,
    check_writeable,
    uploaded,
    viewed,
    write,
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
cached_masked_copy = lru_cache(maxsize=MAX_SELECTIONS)(masked_copy_at_once)
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
    if not run_indexed(x, selection, target, reads=True, encoder=encoder):
        raise no_kernel("gather", result.shape, x)


def no_kernel(what: str, sizes: tuple[int, ...], x: Placed) -> NoKernelError:
    """Return the error of a copy that no kernel is left for."""
    return NoKernelError(all_disabled(f"a {what} of sizes {sizes}", x.device.limits))


def run_indexed(
    x: Placed,
    selection: AdvancedSelection,
    other: Binding,
    *,
    reads: bool,
    disjoint: bool = False,
    encoder: CommandEncoder | None = None,
) -> bool:
    """Gather into, or scatter from, a layout; return False if no strategy takes its strides."""
    holders, made = shared_holders(selection), list[Copy]()
    indices = holders[0] if holders else None
    few = selection.unheld or all(
        isinstance(each.places, np.ndarray) and each.places.size <= MAX_CACHED_VALUES
        for each in selection.indexed
    )
    copying, planning = (cached_copy, cached_plan) if few else (copy_at_once, planned_anew)
    sides = x.layout, other.layout, x.itemsize, x.device.limits
    given: dict[str, Any] = {"reads": reads, "disjoint": disjoint}
    copy = None
    if holders is not None:
        dtype = holders[0].dtype if holders else None
        copy = copying(selection.unheld or selection, *sides, **given, index_dtype=dtype)
    if copy is None and holders != []:
        selection, indices, made = in_one_table(x, selection)
        copy, planning = copy_at_once(selection, *sides, **given, index_dtype=indices.dtype), planned_anew
    if copy is None:
        return False
    source, target = (x.bound_layout, other) if reads else (other, x.bound_layout)
    bound = source._replace(layout=copy.read), target._replace(layout=copy.written)
    offsets = None if indices is None else indices.bound_layout
    recorder = Recorder(x.device, encoder)
    for each in (*made, Copy(*bound, copy.planner, offsets, planning)):
        recorder.copy(each)
    recorder.submit()
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


def in_one_table(x: Placed, selection: AdvancedSelection) -> tuple[AdvancedSelection, Placed, list[Copy]]:
    """Return a selection whose indices are one tensor, and the copies that make it.

    The dtype is that of device-resident indices if it is one that fits all indices, else int64.
    """
    sizes, parts = x.layout.select(selection.items).sizes, list[Indexed]()
    for each in selection.indexed:
        places: Any = [each.places]
        if len(each.axes) > 1:  # a mask
            places = np.unravel_index(np.asarray(each.places), [sizes[axis] for axis in each.axes])
        own = [range(axis, axis + 1) for axis in each.axes]  # none of a 0-dimensional mask
        parts += [Indexed(axes, each.axis, one) for axes, one in zip(own, places, strict=False)]
    dtypes = {each.places.holder.dtype for each in parts if isinstance(each.places, DeviceIndices)}
    known = [each.places for each in parts if isinstance(each.places, np.ndarray)]
    dtype = dtypes.pop()
    if dtypes or any(places.max() > np.iinfo(dtype).max for places in known):
        dtype = INT64
    operands = [operand_of(x.device, each.places, dtype) for each in parts]
    firsts = [0, *accumulate(operand.layout.size for operand in operands)]
    table = Binding.packed(x.device, firsts[-1:], dtype.itemsize)
    copies, indexed = list[Copy](), list[Indexed]()
    for first, operand, each in zip(firsts, operands, parts, strict=False):
        shape = operand.layout.sizes
        copies.append(Copy(operand, table._replace(layout=Layout.packed(shape, first)), plan_indices))
        clipped = isinstance(each.places, DeviceIndices) and each.places.clipped
        indexed.append(replace(each, places=DeviceIndices(shape, None, clipped, first)))
    held = Placed(x.device, table.buffer, dtype, table.layout)
    return replace(selection, indexed=tuple(indexed), unheld=None), held, copies


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
    run = partial(run_indexed, x, selection, reads=False, disjoint=disjoint, encoder=encoder)
    if not run(source) and not run(packed(x, source)):
        raise no_kernel("scatter", layout.sizes, x)


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


# assignment, and masks


def assign(
    x: Placed, key: Any, value: Any, *, disjoint: bool = False, encoder: CommandEncoder | None = None
) -> None:
    """Run `Tensor.__setitem__`; `disjoint` promises that no index selects an element twice.

    The commands of `encoder`, which make the elements of a packed tensor in another buffer, run before.
    """
    check_writeable(x)
    given = value if isinstance(value, Placed) else as_assigned(value, x.dtype)
    mask = leading_mask(x, key)
    if mask is not None:
        if encoder is None and assigned_by_mask(x, mask, given):
            return
        key = np.asarray(mask)
        if assigned_in_turn(x, key, given, encoder):
            return
    selection = selected(x, key)
    if isinstance(selection, Selection):
        write(viewed(x, x.layout.select(selection.items)), given, encoder)
    else:
        scatter(x, selection, given, disjoint=disjoint or mask is not None, encoder=encoder)


def leading_mask(x: Placed, key: Any) -> Placed | NDArray[np.bool_] | None:
    """Return a key that is a mask of the first dimensions, if it is on the GPU or selects many elements."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(mask, Placed | np.ndarray) or mask.dtype.kind != "b" or x.size == 0:
        return None
    if mask.shape != x.shape[: mask.ndim]:
        return None
    if isinstance(mask, Placed):
        return mask
    return mask if many_true(mask.size, int(np.count_nonzero(mask))) else None


def many_true(size: int, count: int) -> bool:
    """Return whether a mask has no more bytes than the indices of its true elements, and these are many."""
    return size > MAX_CACHED_VALUES and count * INDEX_NBYTES >= size


def assigned_by_mask(x: Placed, mask: Placed | NDArray[np.bool_], value: Placed | NDArray[Any]) -> bool:
    """Write a value where a mask of the first dimensions is true; return False if no kernel does so."""
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    rest = x.shape[mask.ndim :]
    per_element = broadcast(without_leading_ones(given, len(rest)), rest)
    if per_element is None or (not rest and given.rank > 1):
        return False  # its broadcasting depends on the number of true elements
    check_destination(x, value.dtype)
    layout = broadcast(per_element, x.shape)
    assert layout is not None
    source, marked = on_device(x, value), on_device(x, mask)
    per_row = marked.layout.select([*map(range, mask.shape), *[None] * len(rest)])
    return written_where(x, marked._replace(layout=per_row), source._replace(layout=layout))


def assigned_in_turn(
    x: Placed,
    mask: NDArray[np.bool_],
    value: Placed | NDArray[Any],
    encoder: CommandEncoder | None = None,
) -> bool:
    """Write an element of a value for each true one of a large mask; return False if no kernel does so."""
    if x.itemsize >= WORD_NBYTES or x.offset % WORD_NBYTES or not x.is_packed or mask.shape != x.shape:
        return False
    if value.ndim != 1 or not many_true(mask.size, value.size) or value.size != np.count_nonzero(mask):
        return False
    check_destination(x, value.dtype)
    source = apart(x, on_device(x, value))
    if not source.layout.is_packed:
        source = packed(x, source)
    copy = masked_values_at_once(mask, x.layout, source.layout, x.itemsize, x.device.limits)
    if copy is None:
        return False
    target = x.bound_layout._replace(layout=copy.written)
    run_copy(x.device, Copy(source, target, copy.planner, planning=planned_anew), encoder)
    return True


def copy_where(
    x: Placed,
    value: Placed | NDArray[Any],
    where: Placed | NDArray[np.bool_],
    encoder: CommandEncoder | None = None,
) -> None:
    """Copy a tensor or an array of the same dtype where a mask is true, both broadcast, without waiting.

    The commands of `encoder`, which make the elements of a packed tensor in another buffer, run before.
    """
    check_destination(x, value.dtype)
    sides = value, where
    given = [side.layout if isinstance(side, Placed) else Layout.packed(side.shape) for side in sides]
    read = broadcast(without_leading_ones(given[0], x.ndim), x.shape)
    marks = broadcast(given[1], x.shape)
    if read is None or marks is None:
        name, shape = ("input array", value.shape) if read is None else ("where mask", where.shape)
        raise ValueError(f"could not broadcast {name} from shape {shape} into shape {x.shape}")
    if x.size == 0:
        check_sides(x, value)
        return
    source, mask = on_device(x, value)._replace(layout=read), on_device(x, where)._replace(layout=marks)
    if written_where(x, mask._replace(layout=once(mask.layout)), source, encoder):
        return
    marked = any_index(x.shape, np.broadcast_to(np.asarray(where), x.shape))
    assert isinstance(marked, AdvancedSelection)
    gathered = Placed(
        x.device,
        sink().create_buffer(x.device, x.itemsize * marked.shape[0]),
        x.dtype,
        Layout.packed(marked.shape),
    )
    gather(Placed(x.device, source.buffer, x.dtype, source.layout), marked, gathered, encoder)
    scatter(x, marked, gathered)


def written_where(x: Placed, mask: Binding, source: Binding, encoder: CommandEncoder | None = None) -> bool:
    """Copy where a mask, which broadcasts to the source's sizes, is true; return False if no kernel can."""
    check_input(x.device, "mask", mask.buffer)
    mask, source = apart(x, mask), apart(x, source)
    if x.itemsize < WORD_NBYTES and x.is_packed:
        mask, source = in_words(x, mask, source)
    copy = cached_masked_copy(mask.layout.sizes, x.layout, source.layout, x.device.limits)
    if copy is not None:
        bound = Copy(source, x.bound_layout, copy.planner, mask, cached_plan)
        run_copy(x.device, bound, encoder)
    return copy is not None


def apart(x: Placed, side: Binding) -> Binding:
    """Return a side of a copy into a tensor; one in its buffer is copied before, each element once."""
    return packed_once(x, side) if side.buffer is x.memory else side


def in_words(x: Placed, mask: Binding, source: Binding) -> tuple[Binding, Binding]:
    """Return mask and source with layouts by which kernels write whole words of sub-word elements."""
    rows = x.ndim
    while rows and mask.layout.sizes[rows - 1] == 1:
        rows -= 1
    row_nbytes = prod(x.shape[rows:]) * x.itemsize
    whole = rows < x.ndim and row_nbytes % WORD_NBYTES == 0 == x.offset % WORD_NBYTES
    if not whole:
        layout = broadcast(mask.layout, x.shape)
        assert layout is not None
        mask = mask._replace(layout=layout)
        rows = 0
    strides = source.layout.strides
    if any(strides) or whole:
        given = once(source.layout, rows)
        if not given.is_packed:
            source = packed(x, source._replace(layout=given))
            given = source.layout
        layout = broadcast(given, x.shape)
        assert layout is not None
        source = source._replace(layout=layout)
    return mask, source

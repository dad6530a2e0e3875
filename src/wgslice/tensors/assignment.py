"""Assignment to the elements that an index selects, and to those of a mask without reading it back."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_CACHED_VALUES
from wgslice.dialects.advanced import AdvancedSelection, any_index
from wgslice.dialects.basic import Selection
from wgslice.gpu.protocols import CommandEncoder
from wgslice.gpu.recording import Binding, Copy, planned_anew, run_copy
from wgslice.gpu.sink import sink
from wgslice.layout import Layout
from wgslice.layout_rules import broadcast, once, without_leading_ones
from wgslice.plans.index_strategies import masked_copy_at_once, masked_values_at_once
from wgslice.plans.indexed import INDEX_NBYTES
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.tensors.indexing import (
    MAX_SELECTIONS,
    cached_plan,
    gather,
    on_device,
    packed,
    packed_once,
    scatter,
    selected,
)
from wgslice.tensors.placed import (
    Placed,
    as_assigned,
    check_destination,
    check_input,
    check_sides,
    check_writeable,
    viewed,
    write,
)


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


cached_masked_copy = lru_cache(maxsize=MAX_SELECTIONS)(masked_copy_at_once)


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

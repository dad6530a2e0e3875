"""Assignment: values for what an index selects, and for where a mask is true, which is not read back."""

from __future__ import annotations

from functools import lru_cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import MAX_CACHED_VALUES
from wgslice.dialects.advanced import AdvancedSelection, any_index
from wgslice.dialects.basic import Selection
from wgslice.dtypes import check_same_dtype
from wgslice.errors import named
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.recording import BoundLayout, run
from wgslice.layout import Layout
from wgslice.layout_rules import broadcast, without_leading_ones
from wgslice.plans.index_strategies import masked_copy_at_once
from wgslice.plans.indexed import INDEX_NBYTES
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.tensors.indexing import MAX_SELECTIONS, gather, kept_plan, on_device, packed, scatter, selected
from wgslice.tensors.placed import (
    Placed,
    as_assigned,
    check_destination,
    check_sides,
    check_writeable,
    viewed,
    write,
)


def assign(x: Placed, key: Any, value: Any, *, disjoint: bool = False) -> None:
    """Write a tensor, an array or a scalar to what an index selects, broadcast as NumPy assigns.

    Of elements for the same place the last one is written, unless these are promised to be `disjoint`. No
    wait for the GPU.
    """
    check_writeable(x)
    mask = leading_mask(x, key)
    selection = selected(x, key) if mask is None else None
    given = value if isinstance(value, Placed) else as_assigned(value, x.dtype)
    if mask is not None and assigned_by_mask(x, mask, given):
        return
    selection = selection or selected(x, key)
    if isinstance(selection, Selection):
        write(viewed(x, x.layout.select(selection.items)), given)
    else:
        scatter(x, selection, given, disjoint=disjoint)


def leading_mask(x: Placed, key: Any) -> Placed | NDArray[np.bool_] | None:
    """The mask of a tensor's first dimensions that a key is, if the GPU has it or it marks many of them."""
    mask = key[0] if isinstance(key, tuple) and len(key) == 1 else key
    if not isinstance(mask, Placed | np.ndarray) or mask.dtype.kind != "b" or x.size == 0:
        return None
    if mask.shape != x.shape[: mask.ndim]:
        return None
    if isinstance(mask, Placed):
        return mask
    many = mask.size > MAX_CACHED_VALUES and np.count_nonzero(mask) * INDEX_NBYTES >= mask.size
    return mask if many else None


def assigned_by_mask(x: Placed, mask: Placed | NDArray[np.bool_], value: Placed | NDArray[Any]) -> bool:
    """Write one value for each true element of a mask of the first dimensions; whether kernels take it.

    They do not take one of which the number of true elements decides whether it broadcasts.
    """
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    rest = x.shape[mask.ndim :]
    each = broadcast(without_leading_ones(given, len(rest)), rest)
    if each is None or (not rest and given.rank > 1):
        return False
    check_destination(x)
    check_same_dtype(value.dtype, x.dtype)
    layout = broadcast(each, x.shape)
    assert layout is not None
    source, marked = on_device(x, value), on_device(x, mask)
    one_each = marked.layout.select([*map(range, mask.shape), *[None] * len(rest)])
    return written_where(x, marked._replace(layout=one_each), source._replace(layout=layout))


def copy_where(x: Placed, value: Placed | NDArray[Any], where: Placed | NDArray[np.bool_]) -> None:
    """Copy a tensor or an array of the tensor's dtype to where a mask is true, both broadcast to the tensor.

    No wait for the GPU.
    """
    check_destination(x)
    check_same_dtype(value.dtype, x.dtype)
    if x.size == 0:
        check_sides(x, value)
        return
    sides = [on_device(x, value), on_device(x, where)]
    for number, name in enumerate(("input array", "where mask")):
        side = sides[number]
        layout = broadcast(without_leading_ones(side.layout, x.ndim), x.shape)
        if layout is None:
            raise ValueError(
                f"could not broadcast {name} from shape {side.layout.sizes} into shape {x.shape}"
            )
        sides[number] = side._replace(layout=layout)
    source, mask = sides
    once = [range(size if stride else 1) for size, stride in zip(x.shape, mask.layout.strides, strict=True)]
    if written_where(x, mask._replace(layout=mask.layout.select(once)), source):
        return
    marked = any_index(x.shape, np.broadcast_to(np.asarray(where), x.shape))
    assert isinstance(marked, AdvancedSelection)
    taken = Placed(
        x.device, x.device.create_buffer(x.itemsize * marked.shape[0]), x.dtype, Layout.packed(marked.shape)
    )
    gather(Placed(x.device, source.buffer, x.dtype, source.layout), marked, taken)
    scatter(x, marked, taken)


kept_masked_copy = lru_cache(maxsize=MAX_SELECTIONS)(masked_copy_at_once)


def written_where(x: Placed, mask: BoundLayout, source: BoundLayout) -> bool:
    """Copy to where a mask on the GPU is true, which is not read back; whether kernels take it.

    The source has the tensor's sizes, the mask sizes that broadcast to these.
    """
    with named("mask"):
        check_usable(x.device, mask.buffer)
        check_alive(x.device, mask.buffer)
    if x.itemsize < WORD_NBYTES and x.is_packed:
        mask, source = in_words(x, mask, source)
    copy = kept_masked_copy(mask.layout.sizes, x.layout, source.layout, x.itemsize, x.device.limits)
    if copy is None:
        return False
    run(x.device, copy.planner, source, x.bound_layout, mask, planning=kept_plan)
    return True


def in_words(x: Placed, mask: BoundLayout, source: BoundLayout) -> tuple[BoundLayout, BoundLayout]:
    """A mask and a source for sub-word elements, so that kernels merge whole words without atomics.

    Rows of whole words that one element of the mask is for are repeated; else the mask is, for each element.
    """
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
        repeated = [range(1 if stride == 0 else size) for size, stride in zip(x.shape, strides, strict=True)]
        once = source.layout.select([*repeated[:rows], *map(range, x.shape[rows:])])
        if not once.is_packed:
            source = packed(x, source._replace(layout=once))
            once = source.layout
        layout = broadcast(once, x.shape)
        assert layout is not None
        source = source._replace(layout=layout)
    return mask, source

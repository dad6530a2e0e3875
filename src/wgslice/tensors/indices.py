"""Tensors as indices, and the one submission that copies the windows that indices name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wgslice.dialects.advanced_index import AdvancedSelection, Elsewhere, any_index
from wgslice.dialects.selection import Selection
from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.gpu.recording import Operand, record
from wgslice.layout import Layout
from wgslice.plans.aside import plan_anew
from wgslice.plans.copy import plan_copy
from wgslice.plans.indexed_windows import IndexedWindows
from wgslice.plans.plan import Planner
from wgslice.plans.windows_steps import Windows
from wgslice.rearrange import broadcast, reshaped
from wgslice.tensors.placed import Placed, check_of_numbers, uploaded

__all__ = ["run_windows", "selected"]


def selected(x: Placed, key: Any) -> Selection | AdvancedSelection:
    """What NumPy's indexing selects of a tensor; masks on the GPU are read back, as shapes depend on them."""
    items = key if isinstance(key, tuple) else (key,)
    check_of_numbers([item for item in items if isinstance(item, list)])
    held = [indices_held(x, item) if isinstance(item, Placed) else item for item in items]
    dtypes = {item.holder.dtype for item in held if isinstance(item, Elsewhere)}
    if len(dtypes) > 1:
        listed = " and ".join(sorted(map(str, dtypes)))
        raise TypeError(
            f"tensors of indices have dtypes {listed}: they must have one, since a copy converts nothing"
        )
    return any_index(x.shape, tuple(held))


def indices_held(x: Placed, item: Placed) -> Any:
    """A tensor as an item of an index into another."""
    if item.dtype.kind == "b":
        return np.asarray(item)
    if item.dtype.kind not in "iu" or item.dtype.itemsize > 8:
        raise IndexError(
            f"tensors used as indices must be of integer (or boolean) type, this one has dtype {item.dtype}"
        )
    with named("indices"):
        check_usable(x.device, item.buffer)
        check_alive(x.device, item.buffer)
    return Elsewhere(item.shape, item)


def run_windows(
    device: Device,
    found: IndexedWindows,
    planner_for: Callable[[Windows], Planner],
    sides: Callable[[range], tuple[Operand, Operand]],
    written: Buffer | None = None,
) -> None:
    """Copy windows in one submission, without waiting for it; `sides` gives source and target of some.

    Indices in the buffer that is written are read before anything is.
    """
    encoder = device.create_encoder()
    dtypes = [each.places.holder.dtype for each in found.dimensions if isinstance(each.places, Elsewhere)]
    if not dtypes:
        offsets = found.offsets()
        for numbers in found.pieces(device.limits, offsets.itemsize):
            planner = planner_for(found.windows(numbers, offsets))
            record(device, encoder, planner, *sides(numbers), planning=plan_anew)
    else:
        table = table_of(device, encoder, found, dtypes[0], written)
        for numbers in found.pieces(device.limits, table.itemsize):
            rows = table._replace(layout=table.layout.select([numbers, range(found.rank)]))
            planner = planner_for(found.windows_on_gpu(numbers, table.itemsize, dtypes[0].kind == "i"))
            record(device, encoder, planner, *sides(numbers), rows, planning=plan_anew)
    device.submit(encoder)


def table_of(
    device: Device, encoder: CommandEncoder, found: IndexedWindows, dtype: DType, written: Buffer | None
) -> Operand:
    """Where each window begins, `(B, rank)`, put together on the GPU where it is not there as it is."""
    columns = [operand_of(device, each.places, each.size, dtype) for each in found.dimensions]
    repeated = [broadcast(column.layout, found.shape) for column in columns]
    if found.rank == 1 and repeated[0] is not None and columns[0].buffer is not written:
        as_table = reshaped(repeated[0], (found.count, 1))
        if as_table is not None:
            return columns[0]._replace(layout=as_table)
    table = Layout.packed((*found.shape, found.rank))
    made = Operand(device.create_buffer(table.size * dtype.itemsize), table, dtype.itemsize, fresh=True)
    whole = [range(size) for size in found.shape]
    for number, (column, layout) in enumerate(zip(columns, repeated, strict=True)):
        assert layout is not None  # their shapes made that of all
        target = made._replace(layout=table.select([*whole, number]))
        record(device, encoder, plan_copy, column._replace(layout=layout), target)
    return made._replace(layout=Layout.packed((found.count, found.rank)))


def operand_of(device: Device, places: Any, size: int, dtype: DType) -> Operand:
    """Places along a dimension on the GPU."""
    if isinstance(places, Elsewhere):
        operand: Operand = places.holder.operand
        return operand
    if size > 2 ** (8 * dtype.itemsize - (dtype.kind == "i")):
        raise TypeError(
            f"tensors of indices have dtype {dtype}, which does not count the {size} places that an array "
            "beside them indexes: make them of a wider one"
        )
    return uploaded(device, places.astype(dtype))

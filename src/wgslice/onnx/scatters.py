"""ONNX's ScatterND: a copy, and what NumPy's arrays of indices select of it, written."""

from __future__ import annotations

from typing import Any

from wgslice.dialects.advanced_index import AdvancedSelection, any_index
from wgslice.onnx.call import Call
from wgslice.onnx.gathers import within
from wgslice.onnx.values import Value, as_value
from wgslice.plans.gather import indexed_windows
from wgslice.plans.insert import insert_windows_planner
from wgslice.plans.staging import plan_anew
from wgslice.rearrange import unsqueezed

__all__ = ["scatter_nd"]


def scatter_nd(call: Call) -> list[Value]:
    """ScatterND without a reduction; of equal indices the last one stays."""
    x, updates, indices = call.x, as_value(2, call.data[1]), call.indices(1)
    if updates.dtype != x.dtype:
        raise TypeError(f"input 2 has dtype {updates.dtype}: must be {x.dtype} as input 0 has")
    if indices.ndim == 0 or not 1 <= indices.shape[-1] <= x.ndim:
        raise ValueError(
            f"indices have shape {indices.shape}: the last size must be 1 to {x.ndim}, the input's rank"
        )
    indexed = indices.shape[-1]
    expected = (*indices.shape[:-1], *x.shape[indexed:])
    if updates.shape != expected:
        raise ValueError(
            f"updates have sizes {updates.shape}: must be {expected}, as indices have shape {indices.shape} "
            f"and the input has sizes {x.shape}"
        )
    if indices.ndim == 1:  # one index
        indices, updates = indices[None], updates.viewed(unsqueezed(updates.layout, [0]))
    key = tuple(within(indices[..., axis], x.shape[axis], axis) for axis in range(indexed))
    result = call.workspace.packed(x)
    if updates.size:
        write(call, result, key, updates)
    return [result]


def write(call: Call, result: Value, key: tuple[Any, ...], updates: Value) -> None:
    """Write what an index with arrays selects."""
    workspace = call.workspace
    selection = any_index(result.shape, key)
    assert isinstance(selection, AdvancedSelection)
    windows = indexed_windows(selection, result.layout, updates.layout, reads=False)
    if windows is None:
        updates = workspace.packed(updates)
        windows = indexed_windows(selection, result.layout, updates.layout, reads=False)
    assert windows is not None  # the dimensions of a packed value merge
    offsets = windows.offsets()
    for numbers in windows.pieces(workspace.device.limits, offsets.itemsize):
        insertion = windows.insertion(windows.windows(numbers, offsets))
        source, target = updates.viewed(windows.elements_of(numbers)), result.viewed(windows.tensor)
        workspace.run(insert_windows_planner(insertion), source, target, plan_anew)

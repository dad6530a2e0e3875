"""Advanced indexing, written: elements put to the places that arrays of indices name."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from wgslice.dialects.advanced_index import AdvancedSelection
from wgslice.dtypes import check_same_dtype
from wgslice.gpu.recording import Operand, run_copy
from wgslice.layout import Layout
from wgslice.plans.gather import IndexedWindows, indexed_windows
from wgslice.plans.insert import insert_windows_planner
from wgslice.plans.plan import Planner
from wgslice.plans.windows import Windows
from wgslice.rearrange import broadcast, without_leading_ones
from wgslice.tensors.indices import run_windows
from wgslice.tensors.placed import Placed, check_destination, uploaded
from wgslice.tensors.writing import check_sides

__all__ = ["scatter"]


def scatter(x: Placed, selection: AdvancedSelection, value: Placed | NDArray[Any]) -> None:
    """Broadcast a tensor or an array of the tensor's dtype to what a selection takes of it, as NumPy assigns.

    Of elements for the same place the last one is written. No wait for the GPU.
    """
    check_destination(x)
    check_same_dtype(value.dtype, x.dtype)
    given = value.layout if isinstance(value, Placed) else Layout.packed(value.shape)
    layout = assigned(given, selection)
    check_sides(x, value)
    if layout.size == 0:
        return
    source = value.operand if isinstance(value, Placed) else uploaded(x.device, value)
    source = source._replace(layout=layout)
    found = indexed_windows(selection, x.layout, layout, reads=False)
    if found is None or source.buffer is x.buffer:
        source = packed(x, source)
        found = indexed_windows(selection, x.layout, source.layout, reads=False)
        assert found is not None  # the dimensions of a packed tensor merge
    insert(x, source, found)


def assigned(given: Layout, selection: AdvancedSelection) -> Layout:
    """A value's layout, broadcast to what a selection takes; in NumPy's words refused where it does not."""
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


def insert(x: Placed, source: Operand, found: IndexedWindows) -> None:
    """Write windows of a source into a tensor."""
    target = x.operand._replace(layout=found.tensor)

    def planner_for(windows: Windows) -> Planner:
        return insert_windows_planner(found.insertion(windows))

    def sides(numbers: range) -> tuple[Operand, Operand]:
        return source._replace(layout=found.elements_of(numbers)), target

    run_windows(x.device, found, planner_for, sides, x.buffer)


def packed(x: Placed, source: Operand) -> Operand:
    """A source that is copied on the GPU, with each of its elements."""
    layout = Layout.packed(source.layout.sizes)
    made = Operand(x.device.create_buffer(layout.size * source.itemsize), layout, source.itemsize, fresh=True)
    run_copy(x.device, source, made)
    return made

"""Advanced indexing, read: the elements at places that arrays of indices name, copied into a new tensor."""

from __future__ import annotations

from wgslice.dialects.advanced_index import AdvancedSelection
from wgslice.gpu.recording import Operand
from wgslice.plans.extract_windows import extract_windows_planner
from wgslice.plans.indexed_windows import indexed_windows
from wgslice.tensors.indices import run_windows
from wgslice.tensors.placed import Placed

__all__ = ["gather"]


def gather(x: Placed, selection: AdvancedSelection, result: Placed) -> None:
    """Copy what a selection takes of a tensor into a new and packed one, without waiting for the GPU."""
    if result.size == 0:
        return
    found = indexed_windows(selection, x.layout, result.layout, reads=True)
    assert found is not None  # the dimensions of a packed tensor merge
    source = x.operand._replace(layout=found.tensor)
    target = result.operand._replace(fresh=True)

    def sides(numbers: range) -> tuple[Operand, Operand]:
        return source, target._replace(layout=found.elements_of(numbers))

    run_windows(x.device, found, extract_windows_planner, sides)

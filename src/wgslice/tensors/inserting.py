"""Many windows written into one tensor, their arguments checked."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray

from wgslice.gpu.recording import Operand, run
from wgslice.plans.insert import insert_windows_planner
from wgslice.plans.overlaps import Insertion
from wgslice.plans.staging import plan_anew
from wgslice.tensors.placed import Placed, uploaded

__all__ = ["insert"]


def insert(
    target: Placed, value: Placed | NDArray[Any], insertion: Insertion, offsets: Operand | None = None
) -> None:
    """Write windows of `value`, (B, *sizes) of the target's dtype, into the target; no wait for the GPU.

    `offsets` are those that the GPU has; the target must not overlap itself.
    """
    source = value.operand if isinstance(value, Placed) else uploaded(target.device, value)
    planner = insert_windows_planner(insertion)
    run(target.device, planner, source, target.operand, offsets, planning=plan_anew)

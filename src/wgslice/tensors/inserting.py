"""Many windows written into one tensor, their arguments checked: of operators, and of advanced indices."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.recording import Operand, run
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.plans.aside import plan_anew
from wgslice.plans.insert_windows import insert_windows_planner
from wgslice.plans.overlaps import Insertion
from wgslice.tensors.placed import Placed

__all__ = ["insert"]


def insert(
    target: Placed, value: Placed | NDArray[Any], insertion: Insertion, offsets: Operand | None = None
) -> None:
    """Write windows of `value`, (B, *sizes) of the target's dtype, into the target; no wait for the GPU.

    `offsets` are those that the GPU has; the target must not overlap itself.
    """
    if isinstance(value, Placed):
        source = value.operand
    else:
        array = np.ascontiguousarray(value)
        buffer = target.device.create_buffer(array.nbytes)
        if array.size:
            upload(target.device, buffer, array.reshape(-1).view(np.uint8))
        source = Operand(buffer, Layout.packed(array.shape), array.itemsize, fresh=True)
    planner = insert_windows_planner(insertion)
    run(target.device, planner, source, target.operand, offsets, planning=plan_anew)

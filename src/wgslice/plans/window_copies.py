"""Windows that are contiguous words on both sides, such as whole images: a buffer copy of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.estimates import seconds_of
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.steps import BufferCopies, Places
from wgslice.plans.ways import Way
from wgslice.plans.window_row import longest_row
from wgslice.plans.windows_request import Request

__all__ = ["copies_way"]


def copies_way(request: Request, numbers: NDArray[np.uint32]) -> Way | None:
    """The way that copies each of some windows by a buffer copy, in order; None where that is none."""
    step = window_copies(request, numbers)
    if step is None:
        return None
    return Way(step.name, seconds_of([step], request.limits.profile.costs), lambda: [step])


def window_copies(request: Request, numbers: NDArray[np.uint32]) -> BufferCopies | None:
    """A buffer copy of each of some windows; None where some of them is not a row of whole words."""
    windows, tensor, batch, itemsize = request.windows, request.tensor, request.batch, request.itemsize
    if windows.offsets is None or not request.terms.buffer_copies or 0 in tensor.sizes:
        return None
    row = longest_row(request)
    if row.count > 1 or row.mirrored or row.nbytes % WORD_NBYTES or row.hindrance():
        return None
    own = slice(row.axis + 1)
    offsets = windows.offsets[numbers, own].astype(np.int64)
    if (offsets < 0).any() or (offsets + windows.extents[own] > tensor.sizes[own]).any():
        return None
    backwards = windows.flips[numbers, None] >> np.arange(row.axis + 1, dtype=np.uint32) & np.uint32(1)
    offsets += backwards * (np.array(windows.extents[own]) - 1)  # a window begins at its end there
    strides = np.array([*tensor.strides[: row.axis], row.unit], np.int64)
    in_tensor = (tensor.offset + offsets @ strides) * itemsize
    in_batch = (batch.offset + numbers.astype(np.int64) * batch.strides[0]) * itemsize
    if ((in_tensor | in_batch) % WORD_NBYTES).any():
        return None
    source, target = (in_batch, in_tensor) if request.inserts else (in_tensor, in_batch)
    reason = "windows of contiguous words on both sides"
    return BufferCopies(Places(source), Places(target), row.nbytes, reason=reason)

"""Windows that are contiguous words on both sides, such as whole images: a buffer copy of each."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wgslice.plans.choose import OTHER
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.steps import BufferCopies, Places
from wgslice.plans.window_row import longest_row
from wgslice.plans.windows_request import Request

__all__ = ["window_copies"]


def window_copies(request: Request, numbers: NDArray[np.uint32]) -> BufferCopies | str:
    """A buffer copy of each of some windows, in order; or why some of them is not a row of whole words."""
    windows, tensor, batch, itemsize = request.windows, request.tensor, request.batch, request.itemsize
    row = longest_row(request)
    if windows.offsets is None or 0 in tensor.sizes or row.count > 1 or row.mirrored:
        return OTHER
    if not request.terms.buffer_copies:
        return "a buffer has no usage COPY_SRC or COPY_DST"
    if row.nbytes % WORD_NBYTES:
        return f"rows of {row.nbytes} bytes, not multiples of {WORD_NBYTES}"
    reason = row.hindrance()
    if reason:
        return reason
    own = slice(row.axis + 1)
    offsets = windows.offsets[numbers, own].astype(np.int64)
    if (offsets < 0).any() or (offsets + windows.extents[own] > tensor.sizes[own]).any():
        return f"a window leaves the {request.tensor_name}"
    backwards = windows.flips[numbers, None] >> np.arange(row.axis + 1, dtype=np.uint32) & np.uint32(1)
    offsets += backwards * (np.array(windows.extents[own]) - 1)  # a window begins at its end there
    strides = np.array([*tensor.strides[: row.axis], row.unit], np.int64)
    in_tensor = (tensor.offset + offsets @ strides) * itemsize
    in_batch = (batch.offset + numbers.astype(np.int64) * batch.strides[0]) * itemsize
    if ((in_tensor | in_batch) % WORD_NBYTES).any():
        return f"a window begins inside of {WORD_NBYTES} bytes"
    source, target = (in_batch, in_tensor) if request.inserts else (in_tensor, in_batch)
    reason = "windows of contiguous words on both sides"
    return BufferCopies(Places(source), Places(target), row.nbytes, reason=reason)

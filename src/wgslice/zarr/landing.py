"""Where chunks land that are read into a tensor: gathered in host memory, then inserted many at a time."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dialects.basic import is_plain
from wgslice.dtypes import DType
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import BoundLayout, run_copies
from wgslice.gpu.transfer import upload
from wgslice.layout import Layout
from wgslice.plans.copy import fills, pattern_size
from wgslice.tensors.tensor import allocate

__all__ = ["GATHERED_NBYTES", "Landing"]

# What is gathered before it is uploaded and inserted. 192 MiB of float32 in an uncompressed store in memory,
# on lavapipe of Mesa 22.3, two cores of an AMD EPYC that others shared, in times of what Zarr took to read an
# array: chunks of 64 x 64 x 64 5.5 by 2 MiB, 6.1 by 4, 5.6 by 8, 5.4 by 16, 5.4 by 32; of 16 x 32 x 32 3.1,
# 2.7, 2.8, 2.5, 2.9.
GATHERED_NBYTES = 2**24
ALIGNMENT_NBYTES = 16  # of each array among those that are gathered, so that elements can be so wide


class Landing:
    """A tensor of zeros that threads write into, each place once.

    Arrays are copied into host memory at once, since they may be small views of large chunks. Once there are
    GATHERED_NBYTES of them, they are uploaded and inserted into the tensor by one submission, on which the
    GPU works while the next are gathered.
    """

    def __init__(self, sizes: Sequence[int], dtype: DType, device: Device) -> None:
        self.tensor = allocate(sizes, dtype, device)
        self.lock = Lock()
        self.gathered = np.empty(GATHERED_NBYTES, np.uint8)
        self.used_nbytes = 0
        self.windows: list[tuple[Layout, Layout]] = []  # of elements in `gathered`, and in the tensor
        self.buffer: Buffer | None = None  # for what is gathered, on the device

    def __setitem__(self, key: Any, value: Any) -> None:
        given = np.asarray(value, self.tensor.dtype)
        if not is_plain(key):
            self.tensor[key] = given
            return
        target = self.tensor[key].layout
        with self.lock:
            if given.ndim == 0:
                self.gather_repeated(given, target)
            else:
                self.gather_parts(np.broadcast_to(given, target.sizes), target)

    def gather_repeated(self, element: NDArray[Any], target: Layout) -> None:
        """Gather one element for many places; zero is there already."""
        if target.size and any(element.tobytes()):
            pieces = fills(target, element.itemsize)
            self.gather(np.repeat(element, pattern_size(pieces)), pieces)

    def gather_parts(self, array: NDArray[Any], target: Layout) -> None:
        """Gather an array, halved along its longest dimension until the parts are small enough."""
        if array.nbytes <= GATHERED_NBYTES:
            self.gather(array, [(Layout.packed(target.sizes), target)])
            return
        axis = int(np.argmax(array.shape))
        halves = np.split(array, [target.sizes[axis] // 2], axis)
        for part, layout in zip(halves, target.halves(axis), strict=True):
            self.gather_parts(part, layout)

    def gather(self, array: NDArray[Any], windows: list[tuple[Layout, Layout]]) -> None:
        """Keep an array, and which of its elements go where."""
        if self.used_nbytes + array.nbytes > GATHERED_NBYTES:
            self.insert_gathered()
        start, stop = self.used_nbytes, self.used_nbytes + array.nbytes
        np.copyto(self.gathered[start:stop].view(array.dtype).reshape(array.shape), array)
        first = start // array.itemsize
        self.windows += [(source.shifted(first), target) for source, target in windows if target.size]
        self.used_nbytes = -(-stop // ALIGNMENT_NBYTES) * ALIGNMENT_NBYTES

    def insert_gathered(self) -> None:
        """Let the GPU insert what is gathered, once it has done so with what was gathered before."""
        if not self.windows:
            return
        device, itemsize = self.tensor.device, self.tensor.dtype.itemsize
        if self.buffer is None:
            self.buffer = device.create_buffer(GATHERED_NBYTES)
        else:
            device.synchronize()  # or the queue would hold all that the GPU has not come to
        upload(device, self.buffer, self.gathered[: self.used_nbytes])
        run_copies(
            device,
            [
                (BoundLayout(self.buffer, source, itemsize), self.tensor.bound_layout._replace(layout=target))
                for source, target in self.windows
            ],
        )
        self.windows, self.used_nbytes = [], 0

    def insert(self) -> None:
        """Let the GPU insert all that has been written, without waiting for it."""
        with self.lock:
            self.insert_gathered()

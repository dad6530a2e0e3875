"""wgslice's batches in another order: by indices, by windows, and the copy that neither can beat."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from bench.cases import Cut
from bench.rivals.ours import BufferCopy, Clocked, describe, device
from bench.tasks import Order

__all__ = ["Copied", "Extracted", "Indexed", "IndexedOnGpu", "describe"]


class Indexed(Clocked):
    """A tensor indexed by an array."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        self.x = wg.asarray(array, device=device)
        self.indices: Any = order.indices
        self.out = self.x

    def start(self) -> None:
        """Take."""
        self.out = self.x[self.indices]


class IndexedOnGpu(Indexed):
    """A tensor indexed by a tensor."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        super().__init__(array, order)
        self.indices = wg.asarray(self.indices, device=device)


class Extracted(Indexed):
    """`extract_windows`, each as large as an image, without `out`."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        super().__init__(array, order)
        self.sizes = 1, *array.shape[1:]
        self.offsets = np.zeros((order.count, array.ndim), np.int64)
        self.offsets[:, 0] = order.indices

    def start(self) -> None:
        """Extract."""
        self.out = wg.extract_windows(self.x, self.offsets, self.sizes)


class Copied(BufferCopy):
    """A plain buffer copy of the batch, in the order that it must have, to a new buffer."""

    def __init__(self, array: NDArray[Any], order: Order) -> None:
        super().__init__(order.of(array), Cut(tuple(range(array.ndim)), ()))

    def start(self) -> None:
        """Copy."""
        self.out = wg.empty(self.x.shape, self.x.dtype, device=device)
        super().start()

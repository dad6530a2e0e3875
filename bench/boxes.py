"""Tasks with windows of different sizes: boxes of a photograph and of a plane, sequences of a batch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.tasks import Task

__all__ = ["BOXES", "PADDINGS", "PUT_BACK", "Boxes", "PutBack", "Sequences"]

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Boxes:
    """Boxes of an image at random places, to be packed without gaps; channels are taken whole."""

    count: int
    least: int  # pixels of a side
    most: int

    def places(self, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
        """First elements and sizes, (boxes, rank) each."""
        random = np.random.default_rng(2)
        sizes = np.broadcast_to(np.array(shape), (self.count, len(shape))).copy()
        sizes[:, :2] = random.integers(self.least, self.most + 1, (self.count, 2))
        return random.integers(0, np.array(shape) - sizes + 1), sizes

    def equal(self, shape: tuple[int, ...]) -> tuple[Integers, tuple[int, ...]]:
        """First elements and sizes of windows of one size, of about as many bytes."""
        offsets, sizes = self.places(shape)
        varied = (sizes != sizes[0]).any(axis=0)
        fixed = sizes[0, ~varied].prod()
        side = round(float(sizes.prod(axis=1).mean() / fixed) ** (1 / max(varied.sum(), 1)))
        size = np.where(varied, side, sizes[0])
        return np.minimum(offsets, np.array(shape) - size), tuple(size.tolist())

    def windows(self, shape: tuple[int, ...]) -> list[tuple[slice, ...]]:
        """Each box as an index of the image."""
        return indices(*self.places(shape))

    def of(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        return np.concatenate([image[window].reshape(-1) for window in self.windows(image.shape)])

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return (int(self.places(shape)[1].prod(axis=1).sum()),)


class Sequences(Boxes):
    """Sequences at the starts of the parts of a batch."""

    def places(self, shape: tuple[int, ...]) -> tuple[Integers, Integers]:
        """First elements and sizes, (sequences, rank) each."""
        offsets, sizes = (np.zeros((self.count, len(shape)), np.int64) for _ in range(2))
        offsets[:, 0] = np.arange(self.count)
        lengths = np.random.default_rng(2).integers(self.least, self.most + 1, self.count)
        sizes[:] = 1, 0, *shape[2:]
        sizes[:, 1] = lengths
        return offsets, sizes


@dataclass(frozen=True)
class PutBack:
    """Packed boxes written into zeros of some shape, the later ones over the earlier ones."""

    shape: tuple[int, ...]
    boxes: Boxes

    def split(self, packed: Any) -> list[Any]:
        """View each box of an array or a tensor."""
        sizes = self.boxes.places(self.shape)[1]
        stops = np.cumsum(sizes.prod(axis=1)).tolist()
        parts = zip([0, *stops], stops, sizes.tolist(), strict=False)
        return [packed[start:stop].reshape(size) for start, stop, size in parts]

    def of(self, packed: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        result = np.zeros(self.shape, packed.dtype)
        for window, box in zip(self.boxes.windows(self.shape), self.split(packed), strict=True):
            result[window] = box
        return result

    def sizes(self, _: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return self.shape


def indices(offsets: Integers, sizes: Integers) -> list[tuple[slice, ...]]:
    """Windows as indices of an array."""
    places = zip(offsets.tolist(), (offsets + sizes).tolist(), strict=True)
    return [tuple(map(slice, begin, end)) for begin, end in places]


def put_back(task: Task) -> Task:
    """The reverse of a task."""
    return Task(
        f"{task.name}, put back", task.dtype, task.work.sizes(task.shape), PutBack(task.shape, task.work)
    )


BATCH = Task(
    "10,000 sequences of 1 to 512 tokens of 64 float16",
    "float16",
    (10_000, 512, 64),
    Sequences(10_000, 1, 512),
)
BOXES = [
    Task("1,000 boxes of 8 to 256 pixels, RGB", "uint8", (3000, 4000, 3), Boxes(1000, 8, 256)),
    Task("1,000 boxes of 8 to 256 pixels, float32", "float32", (3000, 4000), Boxes(1000, 8, 256)),
    BATCH,
]
PUT_BACK = [put_back(task) for task in BOXES[:2]]
PADDINGS = [put_back(BATCH)]

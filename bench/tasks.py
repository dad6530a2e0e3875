"""What is timed beside slices: thousands of windows at once, and gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cases import Case

__all__ = ["GRADIENTS", "WINDOWS", "Crops", "Gradient", "Task"]


@dataclass(frozen=True)
class Crops:
    """Windows of an image of channels at random places, some of them mirrored."""

    count: int
    size: int  # pixels a side
    mirrored: bool

    def places(self, shape: tuple[int, ...]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First rows and columns."""
        random = np.random.default_rng(2)
        rows, columns = (random.integers(0, extent - self.size + 1, self.count) for extent in shape[:2])
        return rows, columns

    def steps(self) -> NDArray[np.int64]:
        """Direction of each window along its rows."""
        steps = np.random.default_rng(3).choice([1, -1], self.count)
        return steps if self.mirrored else np.ones_like(steps)

    def of(self, image: NDArray[Any]) -> NDArray[Any]:
        """What must come out."""
        every = zip(*self.places(image.shape), self.steps(), strict=True)
        size = self.size
        return np.stack(
            [image[row : row + size, column : column + size][:, ::step] for row, column, step in every]
        )


@dataclass(frozen=True)
class Gradient:
    """Of a slice with positive steps out of a tensor of some shape."""

    shape: tuple[int, ...]
    key: Any

    def of(self, g: NDArray[Any]) -> NDArray[Any]:
        """What must come out."""
        result = np.zeros(self.shape, g.dtype)
        result[self.key] = g
        return result


@dataclass(frozen=True, eq=False)
class Task(Case):
    """An array and what is done with it."""

    @property
    def work(self) -> Any:
        """The key itself, which has a method `of`."""
        return self.key

    @property
    def nbytes(self) -> int:
        """Useful bytes, those of the output."""
        itemsize = np.dtype(self.dtype).itemsize
        if isinstance(self.key, Crops):
            return int(self.key.count * self.key.size**2 * np.prod(self.shape[2:], dtype=int)) * itemsize
        return int(np.prod(self.key.shape)) * itemsize


def gradient(name: str, dtype: str, shape: tuple[int, ...], key: Any) -> Task:
    """The gradient of a slice."""
    taken = np.broadcast_to(np.empty(()), shape)[key].shape
    return Task(name, dtype, taken, Gradient(shape, key))


PHOTO = ("uint8", (4096, 4096, 3))

WINDOWS = [
    Task("10,000 crops of 64 x 64 RGB", *PHOTO, Crops(10_000, 64, mirrored=False)),
    Task("10,000 crops of 64 x 64 RGB, mirrored at random", *PHOTO, Crops(10_000, 64, mirrored=True)),
    Task("1,000 crops of 224 x 224 RGB, mirrored at random", *PHOTO, Crops(1_000, 224, mirrored=True)),
    Task("10,000 crops of 32 x 32 float32", "float32", (4096, 4096), Crops(10_000, 32, mirrored=False)),
]
GRADIENTS = [
    gradient("f32 crop of 3001 x 3001", "float32", (4096, 4096), np.s_[7:3008, 5:3006]),
    gradient("f32 crop of 3900 x 3900", "float32", (4096, 4096), np.s_[9:3909, 5:3905]),
    gradient("f32 crop of 200 x 200", "float32", (4096, 4096), np.s_[1000:1200, 1000:1200]),
    gradient("f32 every second row and column", "float32", (4096, 4096), np.s_[::2, ::2]),
    gradient("u8 RGB crop, odd offsets", "uint8", (3000, 4000, 3), np.s_[101:2900, 77:3801]),
    gradient("f16 KV cache crop", "float16", (2, 12, 4096, 128), np.s_[:, :, 100:3172]),
    gradient("u16 volume crop, odd offsets", "uint16", (250, 500, 512), np.s_[3:200, 7:400, 9:402]),
]

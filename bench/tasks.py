"""Tasks besides slices: thousands of windows, extracted or inserted, gradients, permuted batches."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.cases import Case

__all__ = [
    "BATCHES",
    "GATHERS",
    "GRADIENTS",
    "INSERTIONS",
    "MANY_WINDOWS",
    "WINDOWS",
    "Columns",
    "Crops",
    "Gradient",
    "Inserts",
    "Order",
    "Task",
]


@dataclass(frozen=True)
class Crops:
    """Windows of an image or a volume, with channels or without, some of them mirrored."""

    count: int
    sides: tuple[int, ...]  # of a window, in pixels; channels are taken whole
    mirrored: bool = False  # along the last side
    gridded: bool = False  # side by side, row by row, rather than at random places

    def places(self, shape: tuple[int, ...]) -> list[NDArray[np.int64]]:
        """First pixels, an array for each side."""
        if self.gridded:
            counts = [extent // side for extent, side in zip(shape, self.sides, strict=False)]
            corners = np.unravel_index(np.arange(self.count), counts)
            return [corner * side for corner, side in zip(corners, self.sides, strict=True)]
        random = np.random.default_rng(2)
        return [
            random.integers(0, extent - side + 1, self.count)
            for extent, side in zip(shape, self.sides, strict=False)
        ]

    def steps(self) -> NDArray[np.int64]:
        """Direction of each window along its last side."""
        steps = np.random.default_rng(3).choice([1, -1], self.count)
        return steps if self.mirrored else np.ones_like(steps)

    def offsets(self, shape: tuple[int, ...]) -> NDArray[np.int64]:
        """First elements, (windows, rank)."""
        found = np.zeros((self.count, len(shape)), np.int64)
        found[:, : len(self.sides)] = np.stack(self.places(shape), 1)
        return found

    def directions(self, rank: int) -> NDArray[np.int64]:
        """Steps, (windows, rank)."""
        found = np.ones((self.count, rank), np.int64)
        found[:, self.last] = self.steps()
        return found

    def windows(self, shape: tuple[int, ...]) -> list[tuple[tuple[slice, ...], bool]]:
        """Yield each window as an index of the image, and whether it is flipped."""
        corners = np.stack(self.places(shape), 1).tolist()
        return [
            (
                tuple(slice(first, first + side) for first, side in zip(corner, self.sides, strict=True)),
                step < 0,
            )
            for corner, step in zip(corners, self.steps().tolist(), strict=True)
        ]

    @property
    def last(self) -> int:
        """The axis of a window along which it may be flipped."""
        return len(self.sides) - 1

    @property
    def backwards(self) -> tuple[slice, ...]:
        """The index that flips a window."""
        return (*[slice(None)] * self.last, slice(None, None, -1))

    def of(self, image: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        return np.stack(
            [
                image[window][self.backwards] if mirrored else image[window]
                for window, mirrored in self.windows(image.shape)
            ]
        )

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return self.count, *self.sides, *shape[len(self.sides) :]


@dataclass(frozen=True)
class Gradient:
    """The gradient of a slice with positive steps."""

    shape: tuple[int, ...]
    key: Any

    @property
    def taken(self) -> tuple[range, ...]:
        """The indices of each dimension that receive it."""
        parts = *self.key, *[slice(None)] * (len(self.shape) - len(self.key))
        return tuple(range(size)[part] for size, part in zip(self.shape, parts, strict=True))

    def of(self, g: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        result = np.zeros(self.shape, g.dtype)
        result[self.key] = g
        return result

    def sizes(self, _: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return self.shape


@dataclass(frozen=True)
class Inserts:
    """Windows written into zeros of some shape, the later ones over the earlier ones."""

    shape: tuple[int, ...]
    crops: Crops

    def of(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        result = np.zeros(self.shape, batch.dtype)
        for number, (window, mirrored) in enumerate(self.crops.windows(self.shape)):
            result[window] = batch[number][self.crops.backwards] if mirrored else batch[number]
        return result

    def sizes(self, _: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return self.shape


@dataclass(frozen=True)
class Order:
    """A batch in another order, each of its elements once."""

    count: int

    @property
    def indices(self) -> NDArray[np.int64]:
        """Return the indices of the batch in the new order."""
        return np.random.default_rng(4).permutation(self.count)

    def of(self, batch: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        result: NDArray[Any] = batch[self.indices]
        return result

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return shape


@dataclass(frozen=True)
class Columns:
    """The columns of a matrix in random order, each of a row's an element or a pixel."""

    count: int

    @property
    def key(self) -> tuple[slice, NDArray[np.int64]]:
        """Return the index of the columns."""
        return slice(None), np.random.default_rng(5).permutation(self.count)

    def of(self, matrix: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output."""
        result: NDArray[Any] = matrix[self.key]
        return result

    def sizes(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the sizes of the output."""
        return shape


@dataclass(frozen=True, eq=False)
class Task(Case):
    """An array and a task; the task returns the expected output and its sizes."""

    @property
    def work(self) -> Any:
        """The task."""
        return self.key

    @property
    def nbytes(self) -> int:
        """Useful bytes, those of the output."""
        sizes: tuple[int, ...] = self.key.sizes(self.shape)
        return prod(sizes) * self.itemsize


def gradient(name: str, dtype: str, shape: tuple[int, ...], key: Any) -> Task:
    """The gradient of a slice."""
    taken = np.broadcast_to(np.empty(()), shape)[key].shape
    return Task(name, dtype, taken, Gradient(shape, key))


def insertion(name: str, dtype: str, shape: tuple[int, ...], crops: Crops) -> Task:
    """Windows that are written."""
    return Task(name, dtype, crops.sizes(shape), Inserts(shape, crops))


PHOTO = ("uint8", (4096, 4096, 3))

WINDOWS = [
    Task("10,000 crops of 64 x 64 RGB", *PHOTO, Crops(10_000, (64, 64))),
    Task("10,000 crops of 64 x 64 RGB, mirrored at random", *PHOTO, Crops(10_000, (64, 64), mirrored=True)),
    Task("1,000 crops of 224 x 224 RGB, mirrored at random", *PHOTO, Crops(1_000, (224, 224), mirrored=True)),
    Task("10,000 crops of 32 x 32 float32", "float32", (4096, 4096), Crops(10_000, (32, 32))),
    Task("10,000 crops of 16 x 16 RGB", *PHOTO, Crops(10_000, (16, 16))),
    Task(
        "4,096 patches of 16 x 16 RGB on a grid",
        "uint8",
        (1024, 1024, 3),
        Crops(4096, (16, 16), gridded=True),
    ),
    Task("10,000 crops of 32 x 32 grey", "uint8", (4096, 4096), Crops(10_000, (32, 32))),
    Task("10,000 crops of 14 x 14 float32", "float32", (4096, 4096), Crops(10_000, (14, 14))),
    Task("10,000 crops of 8 x 8 x 8 float16", "float16", (256, 256, 256), Crops(10_000, (8, 8, 8))),
]
INSERTIONS = [
    insertion(
        "10,000 patches of 64 x 64 RGB on a grid",
        "uint8",
        (6400, 6400, 3),
        Crops(10_000, (64, 64), gridded=True),
    ),
    insertion(
        "10,000 patches of 64 x 64 RGB on a grid, mirrored at random",
        "uint8",
        (6400, 6400, 3),
        Crops(10_000, (64, 64), gridded=True, mirrored=True),
    ),
    insertion(
        "10,000 patches of 32 x 32 float32 on a grid",
        "float32",
        (3200, 3200),
        Crops(10_000, (32, 32), gridded=True),
    ),
    insertion("10,000 patches of 64 x 64 RGB anywhere", *PHOTO, Crops(10_000, (64, 64))),
]
BATCHES = [
    Task("1,000 images of 224 x 224 RGB", "uint8", (1000, 224, 224, 3), Order(1000)),
    Task("100,000 rows of 64 float32", "float32", (100_000, 64), Order(100_000)),
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

# Windows of about 4 MiB, in rows of 12 bytes to 3 KiB, from any byte on and from whole blocks: how well plans
# choose between blocks, words and elements.
GREY, DEPTH = ("uint8", (2048, 2048)), ("float32", (1024, 1024))
MANY_WINDOWS = [
    Task("crops of 5 x 5 RGB", *PHOTO, Crops(50_000, (5, 5))),
    Task("crops of 8 x 8 RGB", *PHOTO, Crops(20_000, (8, 8))),
    Task("crops of 16 x 16 RGB", *PHOTO, Crops(5_000, (16, 16))),
    Task("crops of 16 x 16 RGB, mirrored", *PHOTO, Crops(5_000, (16, 16), mirrored=True)),
    Task("crops of 64 x 64 RGB", *PHOTO, Crops(350, (64, 64))),
    Task("crops of 64 x 64 RGB, mirrored", *PHOTO, Crops(350, (64, 64), mirrored=True)),
    Task("crops of 1024 x 1024 RGB", *PHOTO, Crops(4, (1024, 1024))),
    Task("images of 112 x 112 RGB", "uint8", (200, 112, 112, 3), Crops(120, (1, 112, 112))),
    Task("rows of 128 float32", "float32", (8192, 128), Crops(8192, (1, 128))),
    Task("crops of 16 x 16 grey", *GREY, Crops(16_000, (16, 16))),
    Task("crops of 33 x 33 grey", *GREY, Crops(4_000, (33, 33))),
    Task("crops of 8 x 8 x 8 float16", "float16", (256, 256, 256), Crops(4_000, (8, 8, 8))),
    Task("crops of 3 x 3 float32", *DEPTH, Crops(100_000, (3, 3))),
    Task("crops of 4 x 4 float32", *DEPTH, Crops(60_000, (4, 4))),
    Task("crops of 14 x 14 float32", *DEPTH, Crops(5_000, (14, 14))),
    Task("crops of 2 x 2 complex128", "complex128", (512, 512), Crops(60_000, (2, 2))),
    insertion("patches of 5 x 5 RGB", *PHOTO, Crops(50_000, (5, 5), gridded=True)),
    insertion("patches of 10 x 10 RGB", *PHOTO, Crops(14_000, (10, 10), gridded=True)),
    insertion("patches of 16 x 16 RGB", *PHOTO, Crops(5_000, (16, 16), gridded=True)),
    insertion("patches of 17 x 17 RGB", *PHOTO, Crops(4_500, (17, 17), gridded=True)),
    insertion("patches of 17 x 17 RGB, mirrored", *PHOTO, Crops(4_500, (17, 17), True, True)),
    insertion("patches of 64 x 64 RGB, mirrored", *PHOTO, Crops(350, (64, 64), True, True)),
    insertion("patches of 33 x 33 grey", *GREY, Crops(3_600, (33, 33), gridded=True)),
    insertion("patches of 3 x 3 float32", *DEPTH, Crops(100_000, (3, 3), gridded=True)),
    insertion("patches of 14 x 14 float32", *DEPTH, Crops(5_000, (14, 14), gridded=True)),
    insertion("patches of 2 x 2 complex128", "complex128", (512, 512), Crops(60_000, (2, 2), gridded=True)),
    insertion("images of 112 x 112 RGB, written", "uint8", (120, 112, 112, 3), Crops(120, (1, 112, 112))),
    insertion("patches of 64 x 64 RGB anywhere", *PHOTO, Crops(350, (64, 64))),
    insertion("patches of 64 x 64 RGB one over the other", "uint8", (700, 700, 3), Crops(350, (64, 64))),
]

# Elements of 1 to 16 bytes, one for each index.
GATHERS = [
    Task("u8 columns in random order", "uint8", (4096, 4096), Columns(4096)),
    Task("f16 columns in random order", "float16", (4096, 4096), Columns(4096)),
    Task("f32 columns in random order", "float32", (4096, 4096), Columns(4096)),
    Task("i64 columns in random order", "int64", (4096, 4096), Columns(4096)),
    Task("f32 RGBA columns in random order", "float32", (2048, 2048, 4), Columns(2048)),
]

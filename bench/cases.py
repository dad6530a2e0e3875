"""The slices to time, typical ones of images, volumes, caches and batches, permutes, and plain copies."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["CASES", "COPIES", "PERMUTES", "Case", "Cut"]


@dataclass(frozen=True)
class Cut:
    """A slice in NumPy's notation, of an array with its axes in some order."""

    axes: tuple[int, ...]
    key: Any

    @property
    def permuted(self) -> bool:
        """Whether the axes are permuted."""
        return self.axes != tuple(range(len(self.axes)))

    def of(self, array: NDArray[Any]) -> NDArray[Any]:
        """Return the expected output, a view."""
        result: NDArray[Any] = array.transpose(self.axes)[self.key]
        return result


@dataclass(frozen=True, eq=False)
class Case:
    """An array, and a slice of it in NumPy's notation."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    key: Any
    axes: tuple[int, ...] = ()  # their order, that of `shape` by default
    rivals: bool = True  # whether others than NumPy and our own baselines run it

    @property
    def work(self) -> Any:
        """The task of a contender; its method `of` returns the expected output."""
        return Cut(self.axes or tuple(range(len(self.shape))), self.key)

    @property
    def nbytes(self) -> int:
        """Useful bytes, those of the output."""
        return int(self.work.of(np.broadcast_to(np.empty((), self.dtype), self.shape)).nbytes)

    @property
    def itemsize(self) -> int:
        """Bytes an element."""
        return np.dtype(self.dtype).itemsize

    def array(self) -> NDArray[Any]:
        """Return the input: every bit pattern, the same in each run."""
        words = np.random.default_rng(1).integers(0, 256, self.input_nbytes, np.uint8)
        return words.view(self.dtype).reshape(self.shape)

    @property
    def input_nbytes(self) -> int:
        """Bytes of the input."""
        return prod(self.shape) * np.dtype(self.dtype).itemsize


MATRIX = ("float32", (4096, 4096))
PHOTO = ("uint8", (3000, 4000, 3))
GRAY = ("uint8", (6000, 8000))
STACK = ("uint16", (250, 500, 512))
CACHE = ("float16", (2, 12, 4096, 128))
TO_NHWC, TO_NCHW = (0, 2, 3, 1), (0, 3, 1, 2)

CASES = [
    Case("f32 crop, aligned", *MATRIX, np.s_[8:3008, 8:3008]),
    Case("f32 crop, odd offsets", *MATRIX, np.s_[7:3008, 5:3006]),
    Case("f32 every second row", *MATRIX, np.s_[::2]),
    Case("f32 every second column", *MATRIX, np.s_[:, ::2]),
    Case("f32 every third column, backwards", *MATRIX, np.s_[:, ::-3]),
    Case("f32 horizontal flip", *MATRIX, np.s_[:, ::-1]),
    Case("f32 vertical flip", *MATRIX, np.s_[::-1]),
    Case("u8 RGB crop, odd offsets", *PHOTO, np.s_[101:2900, 77:3801]),
    Case("u8 RGB crop of 1200 x 1200", *PHOTO, np.s_[501:1701, 77:1277]),
    Case("u8 RGB to BGR", *PHOTO, np.s_[..., ::-1]),
    Case("u8 RGB horizontal flip", *PHOTO, np.s_[:, ::-1]),
    Case("u8 RGB, the green channel", *PHOTO, np.s_[..., 1]),
    Case("u8 RGBA to RGB", "uint8", (3000, 4000, 4), np.s_[..., :3]),
    Case("u8 half size", *GRAY, np.s_[::2, ::2]),
    Case("u8 quarter size", *GRAY, np.s_[::4, ::4]),
    Case("u8 horizontal flip", *GRAY, np.s_[:, ::-1]),
    Case("u8 224 x 224 photograph, mirrored", *PHOTO, np.s_[1000:1224, 2223:1999:-1]),
    Case("u8 256 x 256 patch of a slide", "uint8", (8192, 8192, 3), np.s_[4001:4257, 3001:3257]),
    Case("f16 KV cache crop", *CACHE, np.s_[:, :, 100:3172]),
    Case("f16 KV cache, heads reversed inside", *CACHE, np.s_[..., ::-1]),
    Case("f16 gated halves", "float16", (64, 512, 2048), np.s_[..., 1024:]),
    Case("u16 volume, step 2 on each axis", *STACK, np.s_[::2, ::2, ::2]),
    Case("u16 volume crop, odd offsets", *STACK, np.s_[3:200, 7:400, 9:402]),
    Case("f32 96^3 crop", "float32", (200, 200, 200), np.s_[3:99, 50:146, 77:173]),
    Case("f32 focus", "float32", (16, 3, 640, 640), np.s_[..., ::2, ::2]),
    Case("f32 Swin patch merging", "float32", (32, 56, 56, 96), np.s_[:, 0::2, 1::2]),
    Case("f32 RGB to BGR", "float32", (2000, 2000, 3), np.s_[..., ::-1]),
    Case("i64 rows reversed, step 3", "int64", (3000, 4000), np.s_[::-3]),
    Case("f32 6-D", "float32", (8, 9, 10, 11, 12, 26), np.s_[::2, 1:, ::-1, ::3, 1:-1, ::-2]),
    Case("f32 4 x 16", "float32", (4, 16), np.s_[:, ::2]),
    # the shapes of PyTorch's issue 194310 about transposes
    Case("f32 transpose", "float32", (8192, 8192), ..., (1, 0)),
    Case("f32 transpose of 4096 x 16384", "float32", (4096, 16384), ..., (1, 0)),
    Case("f32 transpose of 2048 x 32768", "float32", (2048, 32768), ..., (1, 0)),
    Case("f32 transpose of 32768 x 2048", "float32", (32768, 2048), ..., (1, 0)),
    Case("f16 transpose", "float16", (4096, 16384), ..., (1, 0)),
    Case("f16 transpose of 8192 x 8192", "float16", (8192, 8192), ..., (1, 0)),
    Case("f16 transpose of 2048 x 32768", "float16", (2048, 32768), ..., (1, 0)),
    Case("f16 transpose of 32768 x 2048", "float16", (32768, 2048), ..., (1, 0)),
    Case("u8 transpose", "uint8", (8192, 8192), ..., (1, 0)),
    Case("u8 transpose of 4096 x 16384", "uint8", (4096, 16384), ..., (1, 0)),
    Case("u8 transpose of 2048 x 32768", "uint8", (2048, 32768), ..., (1, 0)),
    Case("u8 transpose of 32768 x 2048", "uint8", (32768, 2048), ..., (1, 0)),
    Case("i64 transpose", "int64", (4096, 4096), ..., (1, 0)),
    Case("f16 NCHW to NHWC", "float16", (8, 64, 256, 256), ..., TO_NHWC),
    Case("f16 NHWC to NCHW", "float16", (8, 256, 256, 64), ..., TO_NCHW),
    Case("f16 NCHW to NHWC, 3 channels", "float16", (8, 3, 1024, 1024), ..., TO_NHWC),
    Case("f16 NHWC to NCHW, 3 channels", "float16", (8, 1024, 1024, 3), ..., TO_NCHW),
    Case("f16 NCHW to NHWC, 4 channels", "float16", (8, 4, 1024, 1024), ..., TO_NHWC),
    Case("f16 NHWC to NCHW, 4 channels", "float16", (8, 1024, 1024, 4), ..., TO_NCHW),
    Case("u8 NCHW to NHWC, 3 channels", "uint8", (8, 3, 1024, 1024), ..., TO_NHWC),
    Case("u8 NHWC to NCHW, 3 channels", "uint8", (8, 1024, 1024, 3), ..., TO_NCHW),
    Case("u8 NCHW to NHWC, 4 channels", "uint8", (8, 4, 1024, 1024), ..., TO_NHWC),
    Case("u8 NHWC to NCHW, 4 channels", "uint8", (8, 1024, 1024, 4), ..., TO_NCHW),
    Case("u8 NCHW to NHWC, 64 channels", "uint8", (8, 64, 256, 256), ..., TO_NHWC),
    Case("u8 NHWC to NCHW, 64 channels", "uint8", (8, 256, 256, 64), ..., TO_NCHW),
    Case("u8 HWC to CHW", *PHOTO, ..., (2, 0, 1)),
    Case("u8 CHW to HWC", "uint8", (3, 3000, 4000), ..., (1, 2, 0)),
    Case("f32 0-2 permute", "float32", (64, 32, 64, 32), ..., (2, 1, 0, 3)),
    Case("f32 x.T[::2]", *MATRIX, np.s_[::2], (1, 0)),
    # the same crop from 1 MiB to 1 GiB: rows of 16 KiB out of slightly longer ones
    *(
        Case(f"crop to {mebibytes} MiB", "float32", (64 * mebibytes, 4104), np.s_[:, 3:4099], rivals=False)
        for mebibytes in (1, 4, 16, 64, 256, 1024)
    ),
]

# Of `python3 run gpu`: contiguous copies, and permutes of about 64 MiB for each element width.
COPIES = [Case(f"copy of {2**n} MiB", "float32", (2 ** (18 + n),), ...) for n in range(9)]
PERMUTES = [
    case
    for dtype in ("uint8", "float16", "float32", "float64", "complex128")
    for width in [np.dtype(dtype).itemsize]
    for case in (
        Case(f"{dtype} transpose", dtype, (8192, 8192 // width), ..., (1, 0)),
        Case(f"{dtype} heads, 128 B", dtype, (16, 1024, 32, 128 // width), ..., (0, 2, 1, 3)),
        Case(f"{dtype} HWC to CHW", dtype, (2048, 10240 // width, 3), ..., (2, 0, 1)),
    )
]

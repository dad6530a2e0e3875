"""Pages of images as one array, which is read page by page."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

INSTALL = "pip install 'wgslice[images]'"
Result = TypeVar("Result")


class Pages:
    """An array of shape (pages, height, width[, channels]), or one page of it, read when it is indexed.

    Parameters
    ----------
    kinds : sequence of str
        What each page is. Pages that differ are refused.
    page : callable
        Returns the array-like of a page, of which the latest is kept.
    """

    def __init__(self, path: Path, noun: str, kinds: Sequence[str], page: Callable[[int], Any]) -> None:
        for number, kind in enumerate(kinds):
            if kind != kinds[0]:
                raise ValueError(
                    f"page {number} is {kind}, page 0 is {kinds[0]}: pages must be of one size and mode; "
                    "save those that are into a file of their own"
                )
        self.path, self.noun = path, noun
        self.page = lru_cache(maxsize=1)(page)
        first = self.page(0)
        self.is_one = len(kinds) == 1
        self.size = first.shape
        self.dtype = first.dtype.newbyteorder("=")
        self.shape = first.shape if self.is_one else (len(kinds), *first.shape)
        if not isinstance(first, np.memmap):  # what is decoded as a whole, as `wg.stream` takes it
            chunks = getattr(first, "chunks", first.shape)
            self.chunks = chunks if self.is_one else (1, *chunks)

    def __getitem__(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Read a box."""
        if self.is_one:
            return self._read(0, box)
        return np.stack([self._read(number, box[1:]) for number in range(self.shape[0])[box[0]]])

    def _read(self, number: int, box: tuple[slice, ...]) -> NDArray[Any]:
        """Read a box of a page."""

        def read() -> NDArray[Any]:
            found = self.page(number)
            if (found.shape, found.dtype.newbyteorder("=")) != (self.size, self.dtype):
                raise ValueError(f"page {number} has shape {found.shape}, page 0 {self.size}")
            return np.asarray(found[box], self.dtype)

        return parsed(self.path, self.noun, read)


def parsed(path: Path, noun: str, parse: Callable[[], Result]) -> Result:
    """Parse a file; turn any error about its content into a ValueError that names the file."""
    try:
        return parse()
    except ImportError:
        raise
    except MemoryError:
        raise MemoryError(f"{path}: takes more memory than there is") from None
    except Exception as error:  # parsers of images raise any type, SyntaxError among them
        if isinstance(error, OSError) and error.filename is not None:  # absent, or not readable
            raise
        is_named = not str(error) or isinstance(error, LookupError)  # the text of a LookupError is a key
        reason = f"{type(error).__name__} {error}".strip() if is_named else error
        raise ValueError(f"{path}: cannot be read as {noun}: {reason}") from None


def turned(pixels: NDArray[Any], orientation: object) -> NDArray[Any]:
    """A view of pixels as viewers show them, by the number that EXIF and TIFF have for it."""
    shown = pixels.swapaxes(0, 1) if orientation in (5, 6, 7, 8) else pixels
    return shown[:: -1 if orientation in (3, 4, 7, 8) else 1, :: -1 if orientation in (2, 3, 6, 7) else 1]


def allocate(part: Path) -> None:
    """Allocate a new file's disk space: writing a memory map on a full disk kills the process."""
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is not None:
        with part.open("r+b") as file:
            try:
                reserve(file.fileno(), 0, part.stat().st_size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise


def zarr() -> Any:
    """Import zarr; an ImportError says how to install it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "Zarr stores need the package zarr, the extra `zarr` of wgslice: pip install zarr"
        ) from None
    return zarr

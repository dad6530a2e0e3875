"""Pages of images as one array, which is read page by page."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType

INSTALL = "pip install 'wgslice[images]'"
Result = TypeVar("Result")


class Pages:
    """An array of shape (pages, height, width[, channels]), or one page of it, read when it is indexed.

    Parameters
    ----------
    read : callable
        Returns rows and columns of a page, with all of its channels.
    chunks : tuple, optional
        Sizes of what is decoded as a whole, as `wg.stream` takes them.
    """

    def __init__(
        self,
        count: int | None,
        page: tuple[int, ...],
        dtype: DType,
        read: Callable[[int, slice, slice], NDArray[Any]],
        chunks: tuple[Any, ...] | None = None,
    ) -> None:
        self.is_one = count is None
        self.shape = page if count is None else (count, *page)
        self.dtype = dtype
        self.read = read
        if chunks is not None:
            self.chunks = chunks if count is None else (1, *chunks)

    def __getitem__(self, box: tuple[slice, ...]) -> NDArray[Any]:
        """Read a box."""
        numbers = range(1) if self.is_one else range(self.shape[0])[box[0]]
        rows, columns, *channels = box if self.is_one else box[1:]
        key = (slice(None), slice(None), *channels)
        pages = [self.read(number, rows, columns)[key] for number in numbers]
        return pages[0] if self.is_one else np.stack(pages)


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


def check_alike(pages: Sequence[str]) -> None:
    """Refuse pages that cannot be one array, given what each of them is."""
    for number, page in enumerate(pages):
        if page != pages[0]:
            raise ValueError(
                f"page {number} is {page}, page 0 is {pages[0]}: pages must be of one size and mode; "
                "save those that are into a file of their own"
            )


def orientation_of(tag: object) -> tuple[bool, bool, bool]:
    """Whether an EXIF orientation swaps rows with columns, and then reverses rows, and columns."""
    return tag in (5, 6, 7, 8), tag in (3, 4, 7, 8), tag in (2, 3, 6, 7)


def turned(pixels: NDArray[Any], orientation: tuple[bool, bool, bool]) -> NDArray[Any]:
    """A view of pixels as viewers show them."""
    is_swapped, *reversed_axes = orientation
    shown = pixels.swapaxes(0, 1) if is_swapped else pixels
    return shown[tuple(slice(None, None, -1 if each else 1) for each in reversed_axes)]


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

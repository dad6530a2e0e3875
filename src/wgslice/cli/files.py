"""Arrays and images, opened to read from, and made to write to."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.dtypes import DType
from wgslice.whole_files import written_whole


def open_array(path: Path) -> Any:
    """A .npy file as a memory map, a Zarr store as its array, an image as an array in memory."""
    if path.suffix.lower() == ".npy":
        return parsed(path, "a .npy file of numbers", load_npy)
    if is_store_name(path) or path.is_dir():
        return parsed(path, "a Zarr array", lambda store: zarr().open_array(store, mode="r"))
    return parsed(path, "an image", partial(load_image, pillow()))


def parsed(path: Path, kind: str, parse: Callable[[Path], Any]) -> Any:
    """What a parser of files makes of one; whatever it meets in a damaged file is refused by the path."""
    try:
        return parse(path)
    except ImportError:
        raise
    except MemoryError:
        raise MemoryError(f"{path}: takes more memory than there is") from None
    except Exception as error:  # parsers of images raise what they please, SyntaxError among it
        if isinstance(error, OSError) and error.filename is not None:  # not there, or not to be read
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read as {kind}: {reason}") from None


def load_image(pillow: Any, path: Path) -> NDArray[Any]:
    """An image's pixels, as viewers show them."""
    from PIL import ImageOps

    with pillow.open(path) as opened:
        image = ImageOps.exif_transpose(opened)  # cameras say in EXIF how they were held, and no array does
        if image.mode in ("P", "PA"):  # colours by number
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):  # no array says which of these it holds
            image = image.convert("RGB")
        return np.asarray(image)


def load_npy(path: Path) -> NDArray[Any]:
    """An array of numbers from a .npy file, as a memory map where it has elements to map."""
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError:  # there are objects in it, or it is empty, or else the same is said again
        array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an archive of several arrays")
    return array


@contextmanager
def written_array(
    path: Path, shape: tuple[int, ...], dtype: DType, chunks: Sequence[int] | None
) -> Iterator[Any]:
    """An array to write to, in the format that the path's ending names: there once it is whole."""
    with written_whole(path) as part:
        if path.suffix.lower() == ".npy":
            array = create_npy(part, shape, dtype)
            yield array
            array.flush()
        elif is_store_name(path):
            yield zarr().create_array(part, shape=shape, dtype=dtype, chunks=chunks or "auto")
        else:
            pixels = np.empty(shape, dtype)
            yield pixels
            write_image(part, pixels, path)


def create_npy(part: Path, shape: tuple[int, ...], dtype: DType) -> np.memmap[Any, Any]:
    """A .npy file as a memory map with room on the disk, since a write that finds none ends the process."""
    array = np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape)
    allocate = getattr(os, "posix_fallocate", None)
    if allocate is not None:
        with part.open("r+b") as file:
            try:
                allocate(file.fileno(), 0, part.stat().st_size)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
                    raise
    return array


def write_image(part: Path, array: NDArray[Any], path: Path) -> None:
    """Write an array as an image to `part`, on its way to `path`."""
    as_image = array.dtype in (np.uint8, np.uint16, np.bool_) and array.size and array.ndim in (2, 3)
    try:
        if not as_image:
            raise TypeError
        image = pillow().fromarray(array)
    except TypeError:
        raise ValueError(
            f"{path}: {array.dtype} of shape {array.shape} is no image; write a .npy file"
        ) from None
    try:
        image.save(part)
    except (KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path}: cannot be written: {error}") from None


def pillow() -> Any:
    """Pillow's Image module, or how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install pillow") from None
    Image.MAX_IMAGE_PIXELS = None  # whole slides are large, and the user's own
    return Image


def is_store_name(path: Path) -> bool:
    """Whether a path is meant as a Zarr store."""
    return path.suffix.lower() == ".zarr"


def is_array_store(path: Path) -> bool:
    """Whether a folder is a Zarr array, of version 2 or 3, and no group of several."""
    if (path / ".zarray").is_file():
        return True
    described = path / "zarr.json"
    return described.is_file() and '"array"' in described.read_text("utf-8")


def zarr() -> Any:
    """The package, or how to install it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "Zarr stores need the package zarr, the extra `zarr` of wgslice: pip install zarr"
        ) from None
    return zarr

"""Arrays and images, read from files and written to them."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["read_array", "write_array"]


def read_array(path: Path) -> NDArray[Any]:
    """A .npy file or an image as an array."""
    if path.suffix.lower() == ".npy":
        return parsed(path, "a .npy file of numbers", load_npy)
    return parsed(path, "an image", partial(load_image, pillow()))


def parsed(path: Path, kind: str, parse: Callable[[Path], NDArray[Any]]) -> NDArray[Any]:
    """What a parser of files makes of one; whatever it meets in a damaged file is refused by the path."""
    try:
        return parse(path)
    except MemoryError:
        raise MemoryError(f"{path}: takes more memory than there is") from None
    except Exception as error:  # parsers of images raise what they please, SyntaxError among it
        if isinstance(error, OSError) and error.filename is not None:  # not there, or not to be read
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read as {kind}: {reason}") from None


def load_image(pillow: Any, path: Path) -> NDArray[Any]:
    """An image's pixels."""
    with pillow.open(path) as opened:
        image = turned_upright(opened)
        if image.mode in ("P", "PA"):  # colours by number
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):  # no array says which of these it holds
            image = image.convert("RGB")
        return np.asarray(image)


def turned_upright(image: Any) -> Any:
    """The image as viewers show it: cameras say in EXIF how they were held, and no array does."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def load_npy(path: Path) -> NDArray[Any]:
    """An array of numbers from a .npy file."""
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an archive of several arrays")
    return array


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in the format that the path's ending names; what was there stays if that fails."""
    with tempfile.TemporaryDirectory(prefix=".wgslice-", dir=path.parent) as folder:
        part = Path(folder) / path.name
        if path.suffix.lower() == ".npy":
            np.save(part, array)
        else:
            write_image(part, array, path)
        part.replace(path)


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

"""`wgslice slice IN KEY -o OUT`: a part of an array or an image of any size, as NumPy indexes it."""

from __future__ import annotations

import errno
import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from wgslice.cli.progress import progress_bar
from wgslice.dialects.basic import Selection, basic_index
from wgslice.dtypes import DType, native_dtype
from wgslice.streaming.walk import limit_nbytes
from wgslice.whole_files import written_whole

CHANNELS = 4  # that a picture has at most


def slice_file(arguments: Namespace) -> None:
    """`wgslice slice`: stream from one file into another."""
    output = arguments.output
    check_paths(arguments.input, output)
    key, limit = parse_key(arguments.key), limit_nbytes(arguments.limit)
    source = open_array(arguments.input)
    selection = basic_index(tuple(source.shape), key)
    chunks = parse_chunks(arguments.chunks, output, selection.shape)
    if output.suffix.lower() not in (".npy", ".zarr"):
        check_picture(output, selection, source.shape)
    dtype = native_dtype(source.dtype)
    device = wg.Device.request(arguments.adapter) if arguments.adapter is not None else wg.default_device()
    with progress_bar() as progress, written_array(output, selection.shape, dtype, chunks) as out:
        wg.stream(source, selection, out, limit=limit, progress=progress, device=device)


def check_paths(source: Path, target: Path) -> None:
    """Refuse names without a format, an output that has no folder, and one that is the input."""
    for path in (source, target):
        if not path.suffix and not path.is_dir():
            raise ValueError(
                f"{path}: the name must end in .npy or an image format such as .png, or in .zarr"
            )
        if path.suffix.lower() == ".npz":
            raise ValueError(
                f"{path}: an archive of several arrays, .npz, is neither read nor written; use .npy"
            )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent} to write it to; make it first")
    if target.is_dir() and not (is_store_name(target) and is_array_store(target)):
        raise IsADirectoryError(f"{target}: is a folder; name a file")
    if target.exists() and source.exists() and target.samefile(source):
        raise ValueError(f"{target}: is the input itself; name another file")
    if target.is_file() and is_store_name(target):
        raise FileExistsError(f"{target}: is a file, and a Zarr store is a folder; name another")


def parse_chunks(text: str | None, path: Path, shape: tuple[int, ...]) -> tuple[int, ...] | None:
    """Turn the text of chunk sizes into them, one for each dimension of the result."""
    if text is None:
        return None
    if not is_store_name(path):
        raise ValueError(f"--chunks {text}: {path} has none; name a .zarr")
    sizes = [size.strip() for size in text.split(",")]
    if not all(re.fullmatch("[0-9]*[1-9][0-9]*", size) for size in sizes):
        raise ValueError(f"--chunks {text}: must be integers above 0, such as 64,256,256")
    if len(sizes) != len(shape):
        raise ValueError(f"--chunks {text}: the result has shape {shape}, one size for each is needed")
    return tuple(map(int, sizes))


def check_picture(path: Path, selection: Selection, sizes: tuple[int, ...]) -> None:
    """Refuse colours that would become columns, where KEY drops rows or columns, or grey with alpha."""
    kept = [item for item in selection.items if item is not None]
    dropped = {axis: item for axis, item in enumerate(kept) if isinstance(item, int)}
    coloured = len(sizes) == 3 and sizes[2] <= CHANNELS and 2 not in dropped
    if coloured and len(selection.shape) == 2:
        axis, index = next(iter(dropped.items()))
        raise ValueError(
            f"{path}: shape {selection.shape} is no image: KEY drops axis {axis} and keeps the {sizes[2]} "
            f"channels; write {index}:{index + 1} to keep the axis, or a .npy file"
        )
    if len(selection.shape) == 3 and selection.shape[2] == 2 and sizes[-1] != 2:
        raise ValueError(
            f"{path}: shape {selection.shape} would be an image of grey with alpha: KEY keeps 2 of "
            f"{sizes[-1]} channels; keep 1, 3 or 4, or write a .npy file"
        )


def parse_key(text: str) -> tuple[Any, ...]:
    """Turn the text of a NumPy basic index into the index: "1, ::-2, ..., None", parentheses optional."""
    inner = text.strip()
    if inner.startswith("[") and inner.endswith("]"):
        raise ValueError(f"KEY {text!r}: no list of indices is taken; write a basic index without brackets")
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    parts = [part.strip() for part in inner.split(",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()  # a trailing comma, as in x[1,]
    return tuple(parse_part(part, text) for part in parts)


def parse_part(part: str, text: str) -> int | slice | Any:
    """One dimension's part of an index."""
    if part == "...":
        return Ellipsis
    if part in ("None", "newaxis", "np.newaxis"):
        return None
    fields = [field.strip() for field in part.split(":")]
    if len(fields) > 3 or not all(re.fullmatch(r"[+-]?[0-9]+", field) or not field for field in fields):
        raise ValueError(f"KEY {text!r}: {part!r} is no integer, slice start:stop:step, '...' or None")
    if len(fields) == 1:
        if not part:
            raise ValueError(f"KEY {text!r}: nothing between two commas, or nothing at all")
        return int(part)
    return slice(*(int(field) if field else None for field in fields))


def open_array(path: Path) -> Any:
    """A .npy file as a memory map, a Zarr store as its array, an image as an array in memory."""
    if path.suffix.lower() == ".npy":
        return parsed(path, "a .npy file of numbers", load_npy)
    if is_store_name(path) or path.is_dir():
        return parsed(path, "a Zarr array", lambda store: zarr().open_array(store, mode="r"))
    return parsed(path, "an image", load_image)


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


def load_image(path: Path) -> NDArray[Any]:
    """An image's pixels, as viewers show them."""
    with pillow().open(path) as opened:
        from PIL import ImageOps

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

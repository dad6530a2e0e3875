"""`wgslice slice IN KEY -o OUT`: stream a slice of an array or image of any size between files."""

from __future__ import annotations

import errno
import os
import re
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from wgslice.cli.progress import progress_bar
from wgslice.dialects.basic import Selection, basic_index
from wgslice.dtypes import DType, element_dtype
from wgslice.gpu.device import checked_device
from wgslice.streaming.walk import limit_nbytes
from wgslice.whole_files import written_whole

MAX_CHANNELS = 4  # of an image
PARTS = {"...": Ellipsis, "None": None, "newaxis": None, "np.newaxis": None}  # of KEY, besides numbers


def slice_file(arguments: Namespace) -> None:
    """`wgslice slice`: stream from one file into another."""
    output = arguments.output
    check_paths(arguments.input, output)
    key, limit = parse_key(arguments.key), limit_nbytes(arguments.limit)
    source = open_array(arguments.input)
    selection = basic_index(tuple(source.shape), key)
    chunks = parse_chunks(arguments.chunks, output, selection.shape)
    if output.suffix.lower() not in (".npy", ".zarr"):
        check_image(output, selection, source.shape)
    dtype = element_dtype(source.dtype)
    device = checked_device(arguments.adapter)
    with progress_bar() as progress, written_array(output, selection.shape, dtype, chunks) as out:
        wg.stream(source, selection, out, limit=limit, progress=progress, device=device)


def check_paths(source: Path, target: Path) -> None:
    """Refuse names without a format, an output without a folder, and an output that is the input."""
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
    """Parse chunk sizes, one for each dimension of the result."""
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


def check_image(path: Path, selection: Selection, sizes: tuple[int, ...]) -> None:
    """Refuse unknown formats, channels that would become columns, and two that would be grey with alpha."""
    if path.suffix.lower() not in pillow().registered_extensions():
        raise ValueError(f"{path}: {path.suffix!r} is no known format: name .npy, .zarr or an image")
    kept = [item for item in selection.items if item is not None]
    dropped = {axis: item for axis, item in enumerate(kept) if isinstance(item, int)}
    coloured = len(sizes) == 3 and sizes[2] <= MAX_CHANNELS and 2 not in dropped
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
    """Parse a NumPy basic index such as "1, ::-2, ..., None", with or without parentheses."""
    inner = text.strip()
    if "[" in inner or "]" in inner:
        raise ValueError(
            f"KEY {text!r}: lists of indices are not supported; KEY is what x[KEY] has between its brackets: "
            '"3, 1" is one element, "1:4:2" is rows 1 and 3; in Python, wg.asarray(x)[[3, 1]] is rows 3 and 1'
        )
    if inner.startswith("(") and inner.endswith(")"):
        inner = inner[1:-1]
    parts = [part.strip() for part in inner.split(",")]
    if len(parts) > 1 and not parts[-1]:
        parts.pop()  # a trailing comma, as in x[1,]
    return tuple(PARTS[part] if part in PARTS else parse_part(part, text) for part in parts)


def parse_part(part: str, text: str) -> int | slice:
    """Parse an integer or a slice."""
    fields = [field.strip() for field in part.split(":")]
    if len(fields) > 3 or not all(re.fullmatch(r"[+-]?[0-9]+", field) or not field for field in fields):
        raise ValueError(
            f"KEY {text!r}: {part!r} is neither an integer, a slice start:stop:step, '...' nor None"
        )
    if not part:
        raise ValueError(f"KEY {text!r}: an index is missing, before or between commas")
    return slice(*(int(field) if field else None for field in fields)) if len(fields) > 1 else int(part)


def open_array(path: Path) -> Any:
    """Open a .npy file as a memory map, a Zarr store as its array, or an image as an array in memory."""
    if path.suffix.lower() == ".npy":
        return parsed(path, "a .npy file of numbers", load_npy)
    if is_store_name(path) or path.is_dir():
        return parsed(path, "a Zarr array", lambda store: zarr().open_array(store, mode="r"))
    return parsed(path, "an image", load_image)


def parsed(path: Path, kind: str, parse: Callable[[Path], Any]) -> Any:
    """Parse a file; turn any error about its content into a ValueError that names the file."""
    try:
        return parse(path)
    except ImportError:
        raise
    except MemoryError:
        raise MemoryError(f"{path}: takes more memory than there is") from None
    except Exception as error:  # parsers of images raise any type, SyntaxError among them
        if isinstance(error, OSError) and error.filename is not None:  # absent, or not readable
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read as {kind}: {reason}") from None


def load_image(path: Path) -> NDArray[Any]:
    """Load an image's pixels as viewers show them: rotated by EXIF, palettes and CMYK as RGB."""
    with pillow().open(path) as opened:
        from PIL import ImageOps

        image = ImageOps.exif_transpose(opened)
        if image.mode in ("P", "PA"):
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):
            image = image.convert("RGB")
        return np.asarray(image)


def load_npy(path: Path) -> NDArray[Any]:
    """Load an array of numbers from a .npy file, memory-mapped unless it is empty."""
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError:  # an empty array; for objects the second call raises again
        array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an archive of several arrays")
    return array


@contextmanager
def written_array(
    path: Path, shape: tuple[int, ...], dtype: DType, chunks: tuple[int, ...] | None
) -> Iterator[Any]:
    """Yield an array to write to, in the format of the path; the file appears when it is complete."""
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
    """Create a memory-mapped .npy file, allocated first: writing a map on a full disk kills the process."""
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
    """Write an array as an image to `part`, which becomes `path`."""
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
    """Import Pillow's Image module; an ImportError says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install pillow") from None
    Image.MAX_IMAGE_PIXELS = None  # whole slides are large, and the user's own
    return Image


def zarr() -> Any:
    """Import zarr; an ImportError says how to install it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "Zarr stores need the package zarr, the extra `zarr` of wgslice: pip install zarr"
        ) from None
    return zarr


def is_store_name(path: Path) -> bool:
    """Whether a path names a Zarr store."""
    return path.suffix.lower() == ".zarr"


def is_array_store(path: Path) -> bool:
    """Whether a folder is a Zarr array of version 2 or 3, and not a group."""
    described = path / "zarr.json"
    in_version_3 = described.is_file() and '"array"' in described.read_text("utf-8")
    return in_version_3 or (path / ".zarray").is_file()

"""`wgslice slice IN KEY -o OUT`: a part of an array or an image of any size, as NumPy indexes it."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import wgslice as wg
from wgslice.cli.files import is_array_store, is_store_name, open_array, written_array
from wgslice.cli.progress import progress_bar
from wgslice.dialects.basic import Selection, basic_index
from wgslice.dtypes import native_dtype
from wgslice.streaming.walk import limit_nbytes

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

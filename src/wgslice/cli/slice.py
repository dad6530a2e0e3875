"""`wgslice slice IN KEY -o OUT`: a part of an array or an image, as NumPy indexes it."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import wgslice as wg
from wgslice.cli.files import read_array, write_array
from wgslice.dialects.numpy_index import numpy_index
from wgslice.dialects.selection import Selection

__all__ = ["add_slice", "parse_key"]

CHANNELS = 4  # that a picture has at most


def add_slice(commands: Any) -> None:
    """Describe it to the parser."""
    slicing = commands.add_parser("slice", help="slice an array or image as NumPy does")
    slicing.add_argument("input", metavar="IN", type=Path, help="a .npy file or an image")
    slicing.add_argument("key", metavar="KEY", help='a NumPy index, such as "100:200, ::-1"')
    slicing.add_argument("-o", "--output", metavar="OUT", type=Path, required=True, help=".npy or an image")
    slicing.add_argument("--adapter", metavar="NAME", help="part of an adapter's name or backend")
    slicing.set_defaults(run=slice_file)


def slice_file(arguments: Namespace) -> None:
    """`wgslice slice`: read, slice on the GPU, write."""
    check_paths(arguments.input, arguments.output)
    key = parse_key(arguments.key)
    array = read_array(arguments.input)
    if arguments.output.suffix.lower() != ".npy":
        check_picture(arguments.output, numpy_index(array.shape, key), array.shape)
    device = wg.Device.request(arguments.adapter) if arguments.adapter is not None else wg.default_device()
    write_array(arguments.output, wg.asarray(array, device)[key].numpy())


def check_paths(source: Path, target: Path) -> None:
    """Refuse names without a format, an output that has no folder, and one that is the input."""
    for path in (source, target):
        if not path.suffix:
            raise ValueError(f"{path}: the name must end in .npy or an image format such as .png")
        if path.suffix.lower() == ".npz":
            raise ValueError(
                f"{path}: an archive of several arrays, .npz, is neither read nor written; use .npy"
            )
    if not target.parent.is_dir():
        raise FileNotFoundError(f"{target}: there is no folder {target.parent} to write it to; make it first")
    if target.is_dir():
        raise IsADirectoryError(f"{target}: is a folder; name a file")
    if target.exists() and source.exists() and target.samefile(source):
        raise ValueError(f"{target}: is the input itself; name another file")


def check_picture(path: Path, selection: Selection, sizes: tuple[int, ...]) -> None:
    """Refuse colours that would become a picture's columns: rows or columns were dropped, and they stay."""
    kept = [item for item in selection.items if item is not None]
    dropped = {axis: item for axis, item in enumerate(kept) if isinstance(item, int)}
    coloured = len(sizes) == 3 and sizes[2] <= CHANNELS and 2 not in dropped
    if coloured and len(selection.shape) == 2:
        axis, index = next(iter(dropped.items()))
        raise ValueError(
            f"{path}: shape {selection.shape} is no image: KEY drops axis {axis} and keeps the {sizes[2]} "
            f"channels; write {index}:{index + 1} to keep the axis, or a .npy file"
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

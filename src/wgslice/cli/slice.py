"""`wgslice slice IN KEY -o OUT`: stream a slice of an array or image of any size between files."""

from __future__ import annotations

import re
from argparse import Namespace
from pathlib import Path
from typing import Any

import wgslice as wg
from wgslice.cli.files import check_paths, is_store_name, opened_array, written_array
from wgslice.cli.images import check_image
from wgslice.cli.progress import progress_bar
from wgslice.dialects.basic import basic_index
from wgslice.dtypes import element_dtype
from wgslice.gpu.device import checked_device
from wgslice.streaming.walk import limit_nbytes

PARTS = {"...": Ellipsis, "None": None, "newaxis": None, "np.newaxis": None}  # of KEY, besides numbers


def slice_file(arguments: Namespace) -> None:
    """`wgslice slice`: stream from one file into another."""
    output = arguments.output
    check_paths(arguments.input, output)
    key, limit = parse_key(arguments.key), limit_nbytes(arguments.limit)
    with opened_array(arguments.input) as source:
        selection = basic_index(tuple(source.shape), key)
        chunks = parse_chunks(arguments.chunks, output, selection.shape)
        if output.suffix.lower() not in (".npy", ".zarr"):
            check_image(output, selection, source.shape)
        device = checked_device(arguments.adapter)
        dtype = element_dtype(source.dtype)
        with progress_bar() as progress, written_array(output, selection.shape, dtype, chunks) as out:
            wg.stream(source, selection, out, limit=limit, progress=progress, device=device)


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

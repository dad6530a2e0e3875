"""Kinds of files that `wgslice slice` reads and writes, and how each is opened and created."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.cli.images import created_image, open_image
from wgslice.cli.pages import allocate, parsed, zarr
from wgslice.cli.tiff import created_tiff, is_tiff, open_tiff
from wgslice.dtypes import DType, element_dtype
from wgslice.whole_files import written_whole

Chunks = tuple[int, ...] | None  # chunk sizes of a store


class Kind(NamedTuple):
    """A kind of files."""

    noun: str
    # Returns an array-like; the contexts that it enters stay open until it is not needed any more.
    open: Callable[[Path, ExitStack], Any]
    # Yields an array-like to write to; writes to the first path, which becomes the second.
    created: Callable[[Path, Path, tuple[int, ...], DType, Chunks], AbstractContextManager[Any]]


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


def is_store_name(path: Path) -> bool:
    """Whether a path names a Zarr store."""
    return path.suffix.lower() == ".zarr"


def is_array_store(path: Path) -> bool:
    """Whether a folder is a Zarr array of version 2 or 3, and not a group."""
    described = path / "zarr.json"
    in_version_3 = described.is_file() and '"array"' in described.read_text("utf-8")
    return in_version_3 or (path / ".zarray").is_file()


@contextmanager
def opened_array(path: Path) -> Iterator[Any]:
    """Yield the array of a file: a memory map, a Zarr array, pages, or an image in memory."""
    kind = kind_of(path)
    if kind in (IMAGE, TIFF):
        kind = TIFF if is_tiff(path) else IMAGE
    with ExitStack() as files:
        array = parsed(path, kind.noun, lambda: kind.open(path, files))
        parsed(path, kind.noun, lambda: element_dtype(array.dtype))
        yield array


@contextmanager
def written_array(path: Path, shape: tuple[int, ...], dtype: DType, chunks: Chunks) -> Iterator[Any]:
    """Yield an array to write to, in the format of the path; the file appears when it is complete."""
    with (
        written_whole(path) as part,
        kind_of(path).created(part, path, shape, dtype, chunks) as array,
    ):
        yield array


def kind_of(path: Path) -> Kind:
    """The kind of files that have the name of a path; a folder is a store, whatever its name."""
    return KINDS.get(".zarr" if path.is_dir() else path.suffix.lower(), IMAGE)


def open_npy(path: Path, _: ExitStack) -> NDArray[Any]:
    """Load an array of numbers from a .npy file, memory-mapped unless it is empty."""
    try:
        array = np.load(path, mmap_mode="r")
    except ValueError:  # an empty array; for objects the second call raises again
        array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        array.close()
        raise ValueError("it is an archive of several arrays")
    if array.dtype.names:
        field = array.dtype.names[0]
        raise TypeError(
            f"its elements have the fields {', '.join(array.dtype.names)}; save one of them first: "
            f"python -c \"import numpy as np; np.save('{field}.npy', np.load('{path}')['{field}'])\""
        )
    return array


@contextmanager
def created_npy(part: Path, _: Path, shape: tuple[int, ...], dtype: DType, __: Chunks) -> Iterator[Any]:
    """Create a memory-mapped .npy file."""
    array = np.lib.format.open_memmap(part, mode="w+", dtype=dtype, shape=shape)
    allocate(part)
    yield array
    array.flush()


@contextmanager
def created_store(part: Path, _: Path, shape: tuple[int, ...], dtype: DType, chunks: Chunks) -> Iterator[Any]:
    """Create a Zarr array."""
    yield zarr().create_array(part, shape=shape, dtype=dtype, chunks=chunks or "auto")


IMAGE = Kind("an image", open_image, created_image)
TIFF = Kind("a TIFF file", open_tiff, created_tiff)
KINDS = {
    ".npy": Kind("a .npy file of numbers", open_npy, created_npy),
    ".zarr": Kind("a Zarr array", lambda path, _: zarr().open_array(path, mode="r"), created_store),
    ".tif": TIFF,
    ".tiff": TIFF,
}

"""Zarr stores as the command line reads and makes them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wgslice.dtypes import DType

__all__ = ["create_store", "is_array_store", "is_store_name", "open_store"]


def is_store_name(path: Path) -> bool:
    """Whether a path is meant as a Zarr store."""
    return path.suffix.lower() == ".zarr"


def is_array_store(path: Path) -> bool:
    """Whether a folder is a Zarr array, of version 2 or 3, and no group of several."""
    if (path / ".zarray").is_file():
        return True
    described = path / "zarr.json"
    return described.is_file() and '"array"' in described.read_text("utf-8")


def open_store(path: Path) -> Any:
    """A Zarr array, to read from."""
    return zarr().open_array(path, mode="r")


def create_store(path: Path, shape: tuple[int, ...], dtype: DType, chunks: Sequence[int] | None) -> Any:
    """A new Zarr array to write to, with chunks that Zarr finds suitable by default."""
    return zarr().create_array(path, shape=shape, dtype=dtype, chunks="auto" if chunks is None else chunks)


def zarr() -> Any:
    """The package, or how to install it."""
    try:
        import zarr
    except ImportError:
        raise ImportError(
            "Zarr stores need the package zarr, the extra `zarr` of wgslice: pip install zarr"
        ) from None
    return zarr

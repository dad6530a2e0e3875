"""TIFF files, by tifffile: pages of any dtype, of which only tiles and strips that are needed are read.

Without tifffile and its codecs, Pillow reads and writes what its modes hold bit for bit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from wgslice.cli.images import (
    MAX_CHANNELS,
    ORIENTATION,
    created_image,
    imagecodecs,
    layouts,
    open_image,
    pillow,
)
from wgslice.cli.pages import INSTALL, Pages, allocate, turned, zarr
from wgslice.dtypes import DType

SIGNATURES = b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"  # the latter two of BigTIFF
# Files of several parts, which tifffile would read too, wherever the first one says that they are.
ONE_FILE = {"is_ome": False, "is_mmstack": False, "is_ndtiff": False}
SAMPLES = {"MINISBLACK", "RGB", "MASK", "CFA", "LINEAR_RAW"}  # what is read as it is stored
JPEG = {6, 7, 34892, 33007}  # compressions that are decoded to RGB
SAMPLE_FORMAT, PHOTOMETRIC, DESCRIPTION, METAMORPH_PLANES = 339, 262, 270, 33629
NUMBERS = "?bBhHiIlLqQefdFD"  # dtypes that TIFF has, in NumPy's characters
# Layouts that Pillow reads as tifffile does; of planes it names each by its channel.
EXACT_LAYOUTS = {
    *("1", "1;R", "L", "L;R", "LA", "R", "G", "B", "A", "RGB", "RGB;R", "RGBA"),
    *("I;16", "I;16B", "I;16N", "I;16R", "I;16S", "I;16BS", "I;32N", "I;32S", "I;32BS", "F;32F", "F;32BF"),
}


def is_tiff(path: Path) -> bool:
    """Whether a file begins as TIFF does, whatever its name is."""
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(4) in SIGNATURES


def open_tiff(path: Path, files: ExitStack) -> Any:
    """Open the pages of a TIFF file, without reduced copies of them and masks."""
    library = tifffile()
    if library is None:
        return open_by_pillow(path, files)
    file = files.enter_context(library.TiffFile(path, **ONE_FILE))
    pages = [page for page in all_pages(file) if not (page.is_reduced or page.is_mask)]
    if not pages:
        raise ValueError("it has no page, or only reduced copies of one")
    kinds = [description(page) for page in pages]
    first = pages[0]
    is_stack = len(pages) == 1 and (first.is_imagej or first.is_shaped or first.is_stk)
    series = file.series[0] if is_stack else first
    count = series.size // first.size  # one page stands for many, as of ImageJ beyond 4 GiB and of MetaMorph
    if count == 1:
        return Pages(path, "a TIFF file", kinds, lambda number: shown(pages[number], stored(pages[number])))
    if series.dataoffset is None:
        raise ValueError(f"its one page stands for {count} images, which are not stored in a row")
    stack = mapped(first, series.dataoffset, count)
    return Pages(path, "a TIFF file", kinds * count, lambda number: shown(first, stack[number]))


def all_pages(file: Any) -> list[Any]:
    """All pages of a file; refuses a list that breaks off, of which tifffile reads the beginning."""
    pages: dict[int, Any] = {}
    for page in file.pages:
        if page.offset in pages:
            raise ValueError(f"the list of its pages is a circle of {len(pages)}")
        pages[page.offset] = page
        ends = map(sum, zip(page.dataoffsets, page.databytecounts, strict=False))
        if max(ends, default=0) > file.filehandle.size:
            raise ValueError(f"it ends within page {page.index}")
    file.filehandle.seek(file.pages.next_page_offset)
    if file.filehandle.read(file.tiff.offsetsize) != bytes(file.tiff.offsetsize):
        raise ValueError(f"the list of its pages breaks off after {len(pages)} of them")
    return list(pages.values())


def stored(page: Any) -> Any:
    """A page as it is stored: mapped where it is in a row, else decoded by tiles or strips."""
    if page.is_final and page.dataoffsets[0]:  # 0 where a sparse file leaves it out
        return mapped(page, page.dataoffsets[0], 1)[0]
    found, tiles = min(len(page.dataoffsets), len(page.databytecounts)), prod(page.chunked)
    if found < tiles:  # tifffile's store would fill the others
        raise ValueError(f"page {page.index} has {found} of {tiles} tiles or strips")
    return zarr().open_array(page.aszarr(), mode="r")


def mapped(page: Any, offset: int, count: int) -> Any:
    """Pages that lie in a row at any byte of a file."""
    dtype = page.dtype.newbyteorder(page.parent.byteorder)
    return page.parent.filehandle.memmap_array(dtype, (count, *page.shape), offset)


def description(page: Any) -> str:
    """What must be the same of all pages; refuses a page that cannot be read bit for bit."""
    is_grey = page.axes == "YX"
    if page.dtype is None or not (is_grey or (page.axes in ("YXS", "SYX") and page.dtype != np.bool_)):
        raise ValueError(f"page {page.index}: samples of {page.bitspersample} bits and shape {page.shape}")
    name = getattr(page.photometric, "name", page.photometric)
    is_decoded = name == "YCBCR" and page.compression in JPEG
    is_looked_up = is_grey and page.dtype.kind in "bu" and name in ("MINISWHITE", "PALETTE")
    if not (name in SAMPLES or is_decoded or is_looked_up):
        raise ValueError(
            f"the colours of page {page.index} are {name}, of which RGB would be rounded; "
            "convert it to RGB first"
        )
    orientation = page.tags.valueof(ORIENTATION, 1)
    suffix = f", in orientation {orientation}" if orientation != 1 else ""
    return f"{name} of {page.dtype} of shape {page.shape}{suffix}"


def shown(page: Any, stored: Any) -> Any:
    """A page as viewers show it: in memory as a whole, unless it is stored so, or mapped."""
    orientation, name = page.tags.valueof(ORIENTATION, 1), getattr(page.photometric, "name", None)
    if orientation == 1 and page.axes != "SYX" and name not in ("MINISWHITE", "PALETTE"):
        return stored
    pixels = np.moveaxis(stored[...], 0, -1) if page.axes == "SYX" else stored[...]
    if name == "MINISWHITE":
        pixels = np.bitwise_xor(pixels, pixels.dtype.type(2**page.bitspersample - 1))
    if name == "PALETTE":
        high, low = np.divmod(page.colormap.T, 256)
        is_short = not low.any() or (low == high).all()  # colours of 8 bits, as most are
        pixels = (high.astype(np.uint8) if is_short else page.colormap.T)[pixels]
    return turned(pixels, orientation)


def open_by_pillow(path: Path, files: ExitStack) -> Any:
    """Open a TIFF file by Pillow, if its samples are exact."""
    try:
        image = files.enter_context(pillow().open(path))
    except OSError as error:
        raise ValueError(f"{error} by Pillow; to read more: {INSTALL}") from None
    count = image.n_frames
    for number in range(count):
        image.seek(number)
        tags = image.tag_v2
        is_exact = {*layouts(image)} <= EXACT_LAYOUTS and tags.get(PHOTOMETRIC) in (1, 2)
        is_signed = image.mode == "L" and set(tags.get(SAMPLE_FORMAT, (1,))) != {1}
        many = re.search(r'^images=(?!1$)|"truncated": true', str(tags.get(DESCRIPTION, "")), re.MULTILINE)
        if is_signed or not is_exact or (count == 1 and (many or METAMORPH_PLANES in tags)):
            raise ValueError(f"Pillow reads page {number} in part, or not bit for bit; to read it: {INSTALL}")
    return open_image(path, files)


@contextmanager
def created_tiff(
    part: Path, path: Path, shape: tuple[int, ...], dtype: DType, chunks: object
) -> Iterator[Any]:
    """Create a TIFF file that is memory-mapped, or of bools, which are packed, written at the end."""
    library = tifffile()
    if library is None:
        with created_image(part, path, shape, dtype, chunks) as pixels:
            yield pixels
        return
    is_coloured = len(shape) > 2 and shape[-1] <= MAX_CHANNELS
    samples = shape[-1] if is_coloured else 1
    is_number = dtype.char in NUMBERS and not (dtype == np.bool_ and samples > 1)
    if not is_number or 0 in shape or not 2 <= len(shape) - is_coloured <= 3:
        raise ValueError(
            f"{path}: {dtype} of shape {shape} is no TIFF file, which holds numbers of shape "
            "([pages, ]height, width[, channels]); write a .npy file"
        )
    options = {
        "photometric": "rgb" if samples > 2 else "minisblack",
        "planarconfig": "contig" if samples > 1 else None,
        "extrasamples": ["unassalpha"] if samples in (2, 4) else None,
        "metadata": None,
    }
    stored = shape[:-1] if is_coloured and samples == 1 else shape
    if dtype == np.bool_:
        packed = np.empty(shape, dtype)
        yield packed
        library.imwrite(part, packed.reshape(stored), **options)
    else:
        array = library.memmap(part, shape=stored, dtype=dtype, **options)
        allocate(part)
        yield array.reshape(shape)
        array.flush()


def tifffile() -> Any:
    """Import tifffile, or return None if it, its codecs or zarr is missing."""
    try:
        import tifffile
        import tifffile.zarr
    except ImportError:
        return None
    logging.getLogger("tifffile").addHandler(logging.NullHandler())  # else its warnings go to stderr
    return tifffile if imagecodecs() else None

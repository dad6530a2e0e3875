"""TIFF files, by tifffile: pages of any dtype, of which only tiles and strips that are needed are read.

Without tifffile and its codecs, Pillow reads and writes what its modes hold bit for bit.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.cli.images import (
    MAX_CHANNELS,
    ORIENTATION,
    created_image,
    imagecodecs,
    layouts,
    open_image,
    pillow,
)
from wgslice.cli.pages import INSTALL, Pages, allocate, check_alike, orientation_of, parsed, turned
from wgslice.dtypes import DType

SIGNATURES = b"II*\0", b"MM\0*", b"II+\0", b"MM\0+"  # the latter two of BigTIFF
# Files of several parts, which tifffile would read too, wherever the first one says that they are.
ONE_FILE = {"is_ome": False, "is_mmstack": False, "is_ndtiff": False}
WHITE_IS_ZERO, BLACK_IS_ZERO, RGB, PALETTE, MASK, YCBCR, MOSAIC, LINEAR = 0, 1, 2, 3, 4, 6, 32803, 34892
JPEG = {6, 7, 34892, 33007}  # compressions that are decoded to RGB
COLORMAP, SAMPLE_FORMAT, PHOTOMETRIC, DESCRIPTION, METAMORPH_PLANES = 320, 339, 262, 270, 33629
NUMBERS = "?bBhHiIlLqQefdFD"  # dtypes that TIFF has, in NumPy's characters
# Layouts that Pillow reads as tifffile does; of planes it names each by its channel.
EXACT_LAYOUTS = {
    *("1", "1;I", "1;R", "1;IR", "L", "L;I", "L;R", "L;IR", "LA", "P", "P;R", "R", "G", "B", "A"),
    *("I;16", "I;16B", "I;16N", "I;16R", "I;16S", "I;16BS", "I;32N", "I;32S", "I;32BS", "F;32F", "F;32BF"),
    *("RGB", "RGB;R", "RGBA"),
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
    tiff = Tiff(path, files.enter_context(library.TiffFile(path, **ONE_FILE)))

    def read(number: int, rows: slice, columns: slice) -> NDArray[Any]:
        return parsed(path, "a TIFF file", lambda: tiff.read(number, rows, columns))

    return Pages(None if tiff.count == 1 else tiff.count, tiff.shape, tiff.dtype, read, tiff.chunks)


class Tiff:
    """The pages of an open TIFF file, of one shape and dtype."""

    def __init__(self, path: Path, file: Any) -> None:
        self.path = path
        self.file = file
        check_complete(file)
        self.pages = [page for page in file.pages if not (page.is_reduced or page.is_mask)]
        if not self.pages:
            raise ValueError("it has no page, or only reduced copies of one")
        check_alike([description(page.keyframe) for page in self.pages])
        first = self.pages[0].keyframe
        self.count = len(self.pages)
        if self.count == 1 and (first.is_imagej or first.is_shaped or first.is_stk):
            self.count = self._virtual_pages(first)
        self.shape = page_shape(first)
        self.dtype = page_dtype(first)
        self.orientation = orientation_of(first.tags.valueof(ORIENTATION))
        encoded = [page for page in self.pages if not is_mapped(page)]
        self.chunks = self._chunks(encoded[0].keyframe) if encoded else None
        self.segment = lru_cache(maxsize=1)(self._segment)  # one larger than a piece is decoded once

    def _virtual_pages(self, first: Any) -> int:
        """The number of images that one page stands for: of ImageJ beyond 4 GiB, of MetaMorph, and others."""
        series = self.file.series[0]
        count = int(series.size // prod(first.shape))
        if count > 1 and series.dataoffset is None:
            raise ValueError(f"its one page stands for {count} images, which are not stored in a row")
        return count

    def _chunks(self, page: Any) -> tuple[Any, ...]:
        """The sizes of tiles or strips along rows and columns as they are shown."""
        edges = []
        for size, chunk in zip(page.shaped[2:4], page.chunks, strict=False):
            edges.append([chunk] * (size // chunk) + [size % chunk] * bool(size % chunk))
        is_swapped, *reversed_axes = self.orientation
        shown = edges[::-1] if is_swapped else edges
        return (
            *(tuple(sizes[:: -1 if each else 1]) for sizes, each in zip(shown, reversed_axes, strict=True)),
            *self.shape[2:],
        )

    def read(self, number: int, rows: slice, columns: slice) -> NDArray[Any]:
        """Read rows and columns of a page as viewers show them."""
        is_swapped, *reversed_axes = self.orientation
        box = [
            mirrored(part, size) if is_reversed else part
            for part, size, is_reversed in zip((rows, columns), self.shape, reversed_axes, strict=False)
        ]
        return turned(self._stored(number, *(box[::-1] if is_swapped else box)), self.orientation)

    def _stored(self, number: int, rows: slice, columns: slice) -> NDArray[Any]:
        """Read rows and columns of a page as they are stored, and look up palettes."""
        is_virtual = self.count > len(self.pages)
        page = self.pages[0 if is_virtual else number]
        keyframe = page.keyframe
        if is_mapped(page):
            offset = page.dataoffsets[0] + is_virtual * number * keyframe.nbytes
            if offset + keyframe.nbytes > self.file.filehandle.size:
                raise ValueError(f"it ends within page {number}")
            dtype = keyframe.dtype.newbyteorder(self.file.byteorder)
            planes = np.memmap(self.path, dtype, "r", offset, keyframe.shaped)[:, 0, rows, columns]
        else:
            planes = self._tiles(number, keyframe, rows, columns)
        pixels: NDArray[Any] = planes[0] if planes.shape[0] == 1 else np.moveaxis(planes[..., 0], 0, -1)
        if pixels.shape[-1] == 1:
            pixels = pixels[..., 0]
        if keyframe.photometric == PALETTE:
            pixels = colours(keyframe.colormap)[pixels]
        elif keyframe.photometric == WHITE_IS_ZERO:
            pixels = np.bitwise_xor(pixels, pixels.dtype.type(2**keyframe.bitspersample - 1))
        return pixels

    def _tiles(self, number: int, page: Any, rows: slice, columns: slice) -> NDArray[Any]:
        """Read rows and columns from the tiles or strips that contain them."""
        planes, _, height, width, channels = page.shaped
        tall, wide = page.chunks[:2]
        top, left = rows.start // tall, columns.start // wide
        down, across = range(top, -(-rows.stop // tall)), range(left, -(-columns.stop // wide))
        shape = (
            planes,
            min(height, down.stop * tall) - top * tall,
            min(width, across.stop * wide) - left * wide,
            channels,
        )
        found = np.full(shape, page.nodata, page.dtype)
        for plane, row, column in product(range(planes), down, across):
            segment = self.segment(number, (plane * -(-height // tall) + row) * -(-width // wide) + column)
            if segment is not None:
                part = found[plane, (row - top) * tall :, (column - left) * wide :][:tall, :wide]
                part[...] = segment[0, : part.shape[0], : part.shape[1]]
        moved = zip((rows, columns), (top * tall, left * wide), strict=True)
        return found[:, *(slice(part.start - first, part.stop - first, part.step) for part, first in moved)]

    def _segment(self, number: int, index: int) -> NDArray[Any] | None:
        """Decode a tile or strip; None where the file has none, and its fill value stands."""
        page = self.pages[number]
        offset, nbytes = page.dataoffsets[index], page.databytecounts[index]
        if not (offset and nbytes):
            return None
        self.file.filehandle.seek(offset)
        data = self.file.filehandle.read(nbytes)
        if len(data) < nbytes:
            raise ValueError(f"it ends within page {number}")
        keyframe = page.keyframe
        tables = {"jpegtables": page.jpegtables, "jpegheader": keyframe.jpegheader}
        decoded: NDArray[Any] = keyframe.decode(data, index, **tables)[0]
        return decoded


def is_mapped(page: Any) -> bool:
    """Whether a page is stored in a row, neither compressed nor in tiles, and not left out."""
    return bool(page.is_final and page.dataoffsets[0])


def check_complete(file: Any) -> None:
    """Refuse a list of pages that breaks off, of which tifffile would read the beginning, or never ends."""
    seen: set[int] = set()

    def number(offset: int, nbytes: int) -> int:
        file.filehandle.seek(offset)
        data = file.filehandle.read(nbytes)
        if len(data) < nbytes:
            raise ValueError(f"the list of its pages breaks off after {len(seen) - 1} of them")
        return int.from_bytes(data, "little" if file.byteorder == "<" else "big")

    format, offset = file.tiff, file.pages.first.offset if file.pages else 0
    while offset:
        if offset in seen:
            raise ValueError(f"the list of its pages is a circle of {len(seen)}")
        seen.add(offset)
        tags = number(offset, format.tagnosize)
        offset = number(offset + format.tagnosize + tags * format.tagsize, format.offsetsize)


def description(page: Any) -> str:
    """What must be the same of all pages; refuses a page that cannot be read bit for bit."""
    samples = page.shaped[0] * page.shaped[4]
    is_image = all(isinstance(size, int) and size > 0 for size in page.shaped) and page.shaped[1] == 1
    if page.dtype is None or not is_image or (page.dtype == np.bool_ and samples > 1):
        raise ValueError(f"page {page.index}: samples of {page.bitspersample} bits and shape {page.shape}")
    name = getattr(page.photometric, "name", page.photometric)
    is_known = page.photometric in (BLACK_IS_ZERO, RGB, MASK, MOSAIC, LINEAR)
    is_decoded = page.photometric == YCBCR and page.compression in JPEG
    is_grey = samples == 1 and page.dtype.kind in "bu"
    if not (is_known or is_decoded or (is_grey and page.photometric in (WHITE_IS_ZERO, PALETTE))):
        raise ValueError(
            f"the colours of page {page.index} are {name}, of which RGB would be rounded; "
            "convert it to RGB first"
        )
    orientation = page.tags.valueof(ORIENTATION, 1)
    return f"{name} of {page_dtype(page)} of shape {page_shape(page)}" + (
        f", in orientation {orientation}" if orientation != 1 else ""
    )


def page_shape(page: Any) -> tuple[int, ...]:
    """The shape of a page as viewers show it: (height, width[, channels])."""
    planes, _, height, width, channels = page.shaped
    samples = 3 if page.photometric == PALETTE else planes * channels
    is_swapped, _, _ = orientation_of(page.tags.valueof(ORIENTATION))
    return (*((width, height) if is_swapped else (height, width)), *[samples] * (samples > 1))


def page_dtype(page: Any) -> DType:
    """The dtype of a page, or of its palette's colours."""
    dtype: DType = colours(page.colormap).dtype if page.photometric == PALETTE else page.dtype
    return dtype


def colours(colormap: NDArray[np.uint16]) -> NDArray[Any]:
    """The colours of a palette of shape (3, colours): of 8 bits if these are all that they have."""
    high, low = np.divmod(colormap.T, 256)
    return high.astype(np.uint8) if not low.any() or (low == high).all() else np.ascontiguousarray(colormap.T)


def mirrored(part: slice, size: int) -> slice:
    """The same elements of an axis that is counted from its other end, in reverse."""
    indices = range(size)[part]
    return slice(size - 1 - indices[-1], size - indices[0], indices.step)


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
        is_exact = {*layouts(image)} <= EXACT_LAYOUTS
        if image.mode in ("L", "P"):
            is_exact &= set(tags.get(SAMPLE_FORMAT, (1,))) == {1}
        elif image.mode != "1":
            is_exact &= tags.get(PHOTOMETRIC) != WHITE_IS_ZERO
        if image.mode == "P":
            is_exact &= colours(np.array(tags[COLORMAP], np.uint16).reshape(3, -1)).dtype == np.uint8
        many = re.search(r'^images=(?!1$)|"truncated": true', str(tags.get(DESCRIPTION, "")), re.MULTILINE)
        if not is_exact or (count == 1 and (many or METAMORPH_PLANES in tags)):
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
    samples = shape[-1] if len(shape) > 2 and shape[-1] <= MAX_CHANNELS else 1
    is_coloured = len(shape) > 2 and shape[-1] == samples
    is_number = dtype.char in NUMBERS and not (dtype == np.bool_ and samples > 1)
    if not is_number or 0 in shape or not 2 <= len(shape) - is_coloured <= 3:
        raise ValueError(
            f"{path}: {dtype} of shape {shape} is no TIFF file, which holds numbers of shape "
            "([pages, ]height, width[, channels]); write a .npy file"
        )
    options: dict[str, Any] = {"photometric": "rgb" if samples > 2 else "minisblack", "metadata": None}
    if samples > 1:
        options["planarconfig"] = "contig"
    if samples in (2, 4):
        options["extrasamples"] = ["unassalpha"]
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
    """Import tifffile, or return None if it or imagecodecs is missing."""
    if imagecodecs() is None:
        return None
    try:
        import tifffile
    except ImportError:
        return None
    logging.getLogger("tifffile").addHandler(logging.NullHandler())  # else its warnings go to stderr
    return tifffile

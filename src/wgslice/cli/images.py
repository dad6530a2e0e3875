"""Images other than TIFF, by Pillow; those whose samples it would reduce, by imagecodecs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.cli.pages import INSTALL, Pages, turned
from wgslice.dialects.basic import Selection
from wgslice.dtypes import DType

MAX_CHANNELS = 4
ORIENTATION = 0x0112  # a tag of EXIF and TIFF
# Formats of which Pillow gives the samples themselves, if its mode is one of EXACT and has their bits.
FORMATS = {
    *("BMP", "DIB", "GIF", "ICNS", "ICO", "JPEG", "MPO", "PCX", "PNG", "PPM", "PSD", "QOI", "SGI", "TGA"),
    *("TIFF", "WEBP"),
}
# Pillow's modes whose samples are an array's, or become them exactly. RGB of CMYK, YCbCr and LAB is rounded.
EXACT = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"}
# Samples that Pillow widens to the 32 bits of its mode "I", by the name of their layout in the file.
WIDENED = {"I;16B": np.uint16, "I;16S": np.int16, "I;16BS": np.int16, "I;32N": np.uint32}
# Functions of imagecodecs: for PNG of 16 bits, and formats of which Pillow does not tell the bits.
DECODERS = {"PNG": "png_decode", "JPEG2000": "jpeg2k_decode", "AVIF": "avif_decode"}
ROUNDING = {"JPEG", "MPO", "AVIF", "PDF", "EPS"}  # formats that are chosen for size or print
LOSSLESS: dict[str, dict[str, Any]] = {"WEBP": {"lossless": True, "exact": True}}  # options of Pillow


def open_image(path: Path, files: ExitStack) -> Pages:
    """Open an image: its pixels in memory, or its pages, one at a time."""
    image = files.enter_context(pillow().open(path))
    if image.format not in FORMATS | DECODERS.keys():
        raise ValueError(f"{image.format} is not known to be read bit for bit; save it as .png or .tif first")
    if image.format == "GIF":
        with CompleteFile(path) as file, pillow().open(file) as whole:
            _ = whole.n_frames  # reads all blocks until the trailer
    count = 1 if image.format == "PSD" else getattr(image, "n_frames", 1)  # Photoshop's layers are no pages
    frames = []
    for number in range(count):
        image.seek(number)
        mode = "RGBA" if image.format == "GIF" else image.mode
        frames.append((number, f"{mode} of {image.width} x {image.height}"))
    if image.format == "MPO":  # a photograph; smaller images beside it are previews
        frames = [frame for frame in frames if frame[1] == frames[0][1]]
    numbers, kinds = zip(*frames, strict=True)

    def page(number: int) -> NDArray[Any]:
        image.seek(numbers[number])
        return pixels(image, path)

    return Pages(path, "an image", kinds, page)


class CompleteFile(FileIO):
    """A file that refuses to be read beyond its end, where Pillow would take a GIF to be complete."""

    def read(self, size: int | None = -1) -> bytes:
        """Read all of the bytes."""
        data = super().read(size)
        if size is not None and len(data) < size:
            raise ValueError("it ends early, so that frames may be missing")
        return data


def pixels(image: Any, path: Path) -> NDArray[Any]:
    """The pixels of an image's frame as viewers show them: rotated by EXIF, palettes as RGB."""
    if image.mode not in EXACT:
        raise ValueError(
            f"its colours are {image.mode}, of which RGB would be rounded; convert it to RGB first"
        )
    if image.format not in FORMATS or is_reduced(image):
        array = decoded(image, path)
    elif image.format == "GIF" and image.is_animated:
        array = np.asarray(image.convert("RGBA"))
    elif image.mode in ("P", "PA"):
        has_alpha = "transparency" in image.info or image.mode == "PA"
        array = np.asarray(image.convert("RGBA" if has_alpha else "RGB"))
    else:
        layout = layouts(image)[:1]
        array = np.asarray(image)
        if image.mode == "1":
            array = array != 0  # bytes of 0 and 1 for Pillow's 0 and 255
        if image.mode == "I" and layout:
            array = array.astype(WIDENED.get(layout[0], np.int32))
    return turned(array, image.getexif().get(ORIENTATION))


def layouts(image: Any) -> list[str]:
    """How the samples of each part of an image are laid out in the file, in Pillow's words."""
    found = [part[3] for part in image.tile]
    return [each if isinstance(each, str) else str(each[0]) for each in found if each]


def is_reduced(image: Any) -> bool:
    """Whether Pillow gives other samples than those of the file: fewer bits of each, or scaled ones."""
    held = {"I;16": {16}, "I": {16, 32}, "F": {32}}.get(image.mode[:4], set())
    decoders = {part[0] for part in image.tile}
    bits = {int(number) for text in (*decoders, *layouts(image)) for number in re.findall(r"\d+", text)}
    return any(number > 8 for number in bits - held) or not decoders.isdisjoint(("ppm", "ppm_plain"))


def decoded(image: Any, path: Path) -> NDArray[Any]:
    """Decode an image whose samples Pillow would reduce, or may; of 8 bits it has to agree."""
    if getattr(image, "n_frames", 1) > 1:
        raise ValueError(
            "it is animated AVIF, or animated, of samples of more than 8 bits, which Pillow reduces"
        )
    reduced = f"its samples have another depth than Pillow gives them in mode {image.mode}"
    codecs = imagecodecs()
    if codecs is None and image.format in DECODERS:
        raise ValueError(f"{reduced}; to read them: {INSTALL}")
    decode = getattr(codecs, DECODERS.get(image.format, ""), None)
    array: Any = None if decode is None else decode(path.read_bytes())
    if array is None or (array.dtype.itemsize == 1 and not np.array_equal(array, np.asarray(image))):
        raise ValueError(f"{reduced}; save it as .png or .tif first")
    return np.asarray(array)


def check_image(path: Path, selection: Selection, sizes: tuple[int, ...]) -> None:
    """Refuse channels that would become columns, and two that would be grey with alpha."""
    kept = [item for item in selection.items if item is not None]
    dropped = {axis: item for axis, item in enumerate(kept) if isinstance(item, int)}
    last = len(sizes) - 1
    coloured = len(sizes) in (3, 4) and sizes[last] <= MAX_CHANNELS and last not in dropped
    if coloured and len(selection.shape) == 2:
        axis, index = next(iter(dropped.items()))
        raise ValueError(
            f"{path}: shape {selection.shape} is no image: KEY drops axis {axis} and keeps the {sizes[last]} "
            f"channels; write {index}:{index + 1} to keep the axis, or a .npy file"
        )
    if len(selection.shape) in (3, 4) and selection.shape[-1] == 2 and sizes[last] != 2:
        raise ValueError(
            f"{path}: shape {selection.shape} would be an image of grey with alpha: KEY keeps 2 of "
            f"{sizes[last]} channels; keep 1, 3 or 4, or write a .npy file"
        )


@contextmanager
def created_image(part: Path, path: Path, shape: tuple[int, ...], dtype: DType, _: object) -> Iterator[Any]:
    """Yield pixels in memory, and write them as an image."""
    format = pillow().registered_extensions().get(path.suffix.lower())
    if format not in pillow().SAVE:
        raise ValueError(f"{path}: {path.suffix!r} is no known format: name .npy, .zarr or an image")
    if is_deep(format, shape, dtype) and imagecodecs() is None:
        raise ValueError(f"{path}: a PNG of colours of 16 bits needs imagecodecs: {INSTALL}")
    try:
        if len(shape) not in (2, 3) or 0 in shape or (format in ROUNDING and dtype.itemsize > 1):
            raise TypeError
        if not is_deep(format, shape, dtype):
            pillow().fromarray(np.empty((1, 1, *shape[2:]), dtype))
    except TypeError:
        message = f"{path}: {dtype} of shape {shape} is no image; write a {instead(format)}"
        raise ValueError(message) from None
    array = np.empty(shape, dtype)
    yield array
    write_image(part, array, path, format)


def is_deep(format: str, shape: tuple[int, ...], dtype: DType) -> bool:
    """Whether pixels are those of a PNG that Pillow cannot write: colours of 16 bits."""
    return format == "PNG" and dtype == np.uint16 and len(shape) == 3 and 2 <= shape[2] <= MAX_CHANNELS


def write_image(part: Path, array: NDArray[Any], path: Path, format: str) -> None:
    """Write an image to `part`, which becomes `path`; refuse a format that does not hold it bit for bit."""
    try:
        if is_deep(format, array.shape, array.dtype):
            part.write_bytes(imagecodecs().png_encode(array))
        else:
            pillow().fromarray(array).save(part, **LOSSLESS.get(format, {}))
        with ExitStack() as files:
            back = array if format in ROUNDING else open_image(part, files).page(0)
    except (KeyError, ValueError, OSError, TypeError) as error:
        raise ValueError(f"{path}: cannot be written: {error}; write a {instead(format)}") from None
    held = array != 0 if array.dtype == np.bool_ else array
    if (back.dtype, back.shape, back.tobytes()) != (held.dtype, held.shape, held.tobytes()):
        raise ValueError(
            f"{path}: {format} does not hold {array.dtype} of shape {array.shape} bit for bit; "
            f"write a {instead(format)}"
        )


def instead(format: str) -> str:
    """Files that hold what a format does not, or the library that holds it in one."""
    return f".npy file, or to write more: {INSTALL}" if format == "TIFF" else ".tif or .npy file"


def pillow() -> Any:
    """Import Pillow's Image module; an ImportError says how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install pillow") from None
    Image.MAX_IMAGE_PIXELS = None  # whole slides are large, and the user's own
    return Image


def imagecodecs() -> Any:
    """Import imagecodecs, or return None."""
    try:
        import imagecodecs
    except ImportError:
        return None
    return imagecodecs

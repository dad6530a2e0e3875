"""Images other than TIFF, by Pillow; those whose samples it would reduce, by imagecodecs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wgslice.cli.pages import INSTALL, Pages, check_alike, orientation_of, parsed, turned
from wgslice.dialects.basic import Selection
from wgslice.dtypes import DType

MAX_CHANNELS = 4
ORIENTATION = 0x0112  # a tag of EXIF and TIFF
# Pillow's modes whose samples are an array's, or become them exactly. RGB of CMYK, YCbCr and LAB is rounded.
EXACT = {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "I", "F", "I;16", "I;16L", "I;16B", "I;16N"}
# Samples that Pillow widens to the 32 bits of its mode "I", by the name of their layout in the file.
WIDENED = {"I;16B": np.uint16, "I;16S": np.int16, "I;16BS": np.int16, "I;32N": np.uint32}
DECODERS = {"PNG": "png_decode", "JPEG2000": "jpeg2k_decode"}  # functions of imagecodecs
ROUNDING = {"JPEG", "MPO", "AVIF", "PDF", "EPS"}  # formats that are chosen for size or print
LOSSLESS: dict[str, dict[str, Any]] = {"WEBP": {"lossless": True, "exact": True}}  # options of Pillow


def open_image(path: Path, files: ExitStack) -> Any:
    """Open an image: its pixels in memory, or its pages."""
    image = files.enter_context(pillow().open(path))
    if image.format == "GIF":
        check_gif(path)
    count = 1 if image.format == "PSD" else getattr(image, "n_frames", 1)  # Photoshop's layers are no pages
    if count == 1:
        return pixels(image, path)
    frames = []
    for number in range(count):
        image.seek(number)
        if is_reduced(image, path):
            raise ValueError("it is animated, of samples of more than 8 bits, which Pillow reduces")
        frames.append((image.size, "RGBA" if image.format == "GIF" else image.mode))
    numbers = list(range(count))
    if image.format == "MPO":  # a photograph; smaller images beside it are previews
        numbers = [number for number in numbers if frames[number][0] == frames[0][0]]
    check_alike([f"{mode} of {size[0]} x {size[1]}" for size, mode in map(frames.__getitem__, numbers)])

    @lru_cache(maxsize=1)
    def page(number: int) -> NDArray[Any]:
        image.seek(numbers[number])
        return pixels(image, path)

    if len(numbers) == 1:
        return page(0)
    shape, dtype = page(0).shape, page(0).dtype

    def read(number: int, rows: slice, columns: slice) -> NDArray[Any]:
        found = parsed(path, "an image", lambda: page(number))
        if (found.shape, found.dtype) != (shape, dtype):
            raise ValueError(f"{path}: page {number} has shape {found.shape}, page 0 {shape}")
        return found[rows, columns]

    return Pages(len(numbers), shape, dtype, read, chunks=shape)


def check_gif(path: Path) -> None:
    """Refuse a GIF that ends before its trailer, of which Pillow would read the frames until there."""
    with path.open("rb") as file:

        def read(nbytes: int) -> bytes:
            data = file.read(nbytes)
            if len(data) < nbytes:
                raise ValueError("it ends early, so that frames may be missing")
            return data

        def read_colours(flags: int) -> None:
            read(3 * 2 ** (flags % 8 + 1) if flags & 128 else 0)

        read_colours(read(13)[10])
        while (block := read(1)) != b";":
            if block == b",":  # a frame: its box, flags and colours, the bits of a code, and its data
                read_colours(read(9)[8])
            if block in b",!":  # an extension: its kind, and its data
                read(1)
                while nbytes := read(1)[0]:
                    read(nbytes)


def pixels(image: Any, path: Path) -> NDArray[Any]:
    """The pixels of an image's frame as viewers show them: rotated by EXIF, palettes as RGB."""
    if image.mode not in EXACT:
        raise ValueError(
            f"its colours are {image.mode}, of which RGB would be rounded; convert it to RGB first"
        )
    if is_reduced(image, path):
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
    return turned(array, orientation_of(image.getexif().get(ORIENTATION)))


def layouts(image: Any) -> list[str]:
    """How the samples of each part of an image are laid out in the file, in Pillow's words."""
    found = [part[3] for part in image.tile]
    return [each if isinstance(each, str) else str(each[0]) for each in found if each]


def is_reduced(image: Any, path: Path) -> bool:
    """Whether Pillow gives other samples than those of the file: fewer bits of each, or scaled ones."""
    match image.format:
        case "JPEG2000":
            data = path.read_bytes()
            header = data.find(b"\xff\x4f\xff\x51") + 40  # the markers SOC and SIZ, then sizes
            components = int.from_bytes(data[header : header + 2])
            depths = data[header + 2 : header + 2 + 3 * components : 3]
            return set(depths) != {15 if image.mode == "I;16" else 7}  # bits less one; signed ones have bit 7
        case "AVIF":
            return any(
                found[1][0] & 0x40 for found in re.finditer(rb"av1C..(.)", path.read_bytes(), re.DOTALL)
            )
        case "PPM":  # maxval
            most = [part[3][1] for part in image.tile if part[0].startswith("ppm") and len(part[3]) == 2]
            return most not in ([], [255], [65535] if image.mode == "I" else [])
        case "DDS":
            return bool(image.tile[0][3][0] == 6)  # half floats
        case "FITS" if image.mode == "I;16":  # FITS has signed integers
            return True
        case "SGI" if image.tile[0][0] == "SGI16":
            return True
    held = {"I;16": {16}, "I": {16, 32}, "F": {32}}.get(image.mode[:4], {8})
    return any(
        int(found[1]) > 8 and int(found[1]) not in held
        for layout in layouts(image)
        if (found := re.search(r";(\d+)", layout)) and not layout.startswith("BGR")  # bits of a whole pixel
    )


def decoded(image: Any, path: Path) -> NDArray[Any]:
    """Decode an image whose samples Pillow would reduce."""
    reduced = f"its samples have another depth than Pillow gives them in mode {image.mode}"
    if image.format not in DECODERS:
        raise ValueError(f"{reduced}; save it as .png or .tif first")
    codecs = imagecodecs()
    if codecs is None:
        raise ValueError(f"{reduced}; to read them: {INSTALL}")
    array: NDArray[Any] = getattr(codecs, DECODERS[image.format])(path.read_bytes())
    return array


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
    is_written = not (format in ROUNDING and dtype.itemsize > 1)
    if is_deep(format, shape, dtype):
        if imagecodecs() is None:
            raise ValueError(f"{path}: a PNG of colours of 16 bits needs imagecodecs: {INSTALL}")
    else:
        try:
            pillow().fromarray(np.empty((1, 1, *shape[2:]), dtype))
        except TypeError:
            is_written = False
    if not is_written or len(shape) not in (2, 3) or 0 in shape:
        raise ValueError(f"{path}: {dtype} of shape {shape} is no image; write a {instead(format)}")
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
            back = array if format in ROUNDING else open_image(part, files)
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

"""The command line: `wgslice adapters`, `wgslice slice IN KEY -o OUT`, `wgslice kernel NAME`."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import wgslice as wg
from wgslice.dialects.numpy_index import numpy_index
from wgslice.dialects.selection import Selection
from wgslice.gpu.adapter import choose_adapter
from wgslice.plans.kernels import Kernel
from wgslice.shaders.modules import kernel_module

__all__ = ["main", "parse_key"]

CHANNELS = 4  # that a picture has at most


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit status: 0, 1 for a refusal, 2 for wrong usage."""
    words = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args([guarded(word) for word in words])
    try:
        arguments.run(arguments)
    except (
        ValueError,
        TypeError,
        IndexError,
        OSError,
        RuntimeError,
        MemoryError,
        ImportError,
        EOFError,
    ) as error:
        reason = " ".join(str(error).split()) or type(error).__name__
        print(f"wgslice: error: {reason}", file=sys.stderr)
        return 1
    return 0


def parser() -> argparse.ArgumentParser:
    """Describe the command line."""
    top = argparse.ArgumentParser(prog="wgslice", description="Slice tensors on any GPU.")
    top.add_argument("--version", action="version", version=f"wgslice {wg.__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("adapters", help="list what this machine has; * is the default")
    listing.set_defaults(run=list_adapters)

    slicing = commands.add_parser("slice", help="slice an array or image as NumPy does")
    slicing.add_argument("input", metavar="IN", type=Path, help="a .npy file or an image")
    slicing.add_argument("key", metavar="KEY", help='a NumPy index, such as "100:200, ::-1"')
    slicing.add_argument("-o", "--output", metavar="OUT", type=Path, required=True, help=".npy or an image")
    slicing.add_argument("--adapter", metavar="NAME", help="part of an adapter's name or backend")
    slicing.set_defaults(run=slice_file)

    names = [kernel.value for kernel in Kernel]
    printing = commands.add_parser("kernel", help="print a kernel: complete WGSL, for any host of WebGPU")
    printing.add_argument("name", metavar="NAME", choices=names, help=f"one of {', '.join(names)}")
    printing.set_defaults(run=print_kernel)
    return top


def guarded(word: str) -> str:
    """Put an index that begins with a minus sign in parentheses, or argparse would take it for an option."""
    return f"({word})" if re.fullmatch(r"-\d+\s*([:,].*)?", word) else word


def list_adapters(_: argparse.Namespace) -> None:
    """`wgslice adapters`: a line each."""
    adapters = wg.adapters()
    default = choose_adapter(adapters, os.environ.get("WGSLICE_ADAPTER"))
    for adapter in adapters:
        mark = "*" if adapter is default else " "
        print(f"{mark} {adapter}, {adapter.kind}{', software' * adapter.software}, {adapter.driver}")


def print_kernel(arguments: argparse.Namespace) -> None:
    """`wgslice kernel`: the module that runs."""
    print(kernel_module(Kernel(arguments.name)), end="")


def slice_file(arguments: argparse.Namespace) -> None:
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


def read_array(path: Path) -> NDArray[Any]:
    """A .npy file or an image as an array."""
    if path.suffix.lower() == ".npy":
        return parsed(path, "a .npy file of numbers", load_npy)
    return parsed(path, "an image", partial(load_image, pillow()))


def parsed(path: Path, kind: str, parse: Callable[[Path], NDArray[Any]]) -> NDArray[Any]:
    """What a parser of files makes of one; whatever it meets in a damaged file is refused by the path."""
    try:
        return parse(path)
    except MemoryError:
        raise MemoryError(f"{path}: takes more memory than there is") from None
    except Exception as error:  # parsers of images raise what they please, SyntaxError among it
        if isinstance(error, OSError) and error.filename is not None:  # not there, or not to be read
            raise
        reason = str(error) or type(error).__name__
        raise ValueError(f"{path}: cannot be read as {kind}: {reason}") from None


def load_image(pillow: Any, path: Path) -> NDArray[Any]:
    """An image's pixels."""
    with pillow.open(path) as opened:
        image = turned_upright(opened)
        if image.mode in ("P", "PA"):  # colours by number
            image = image.convert("RGBA" if "transparency" in image.info or image.mode == "PA" else "RGB")
        elif image.mode in ("CMYK", "YCbCr", "LAB", "HSV"):  # no array says which of these it holds
            image = image.convert("RGB")
        return np.asarray(image)


def turned_upright(image: Any) -> Any:
    """The image as viewers show it: cameras say in EXIF how they were held, and no array does."""
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def load_npy(path: Path) -> NDArray[Any]:
    """An array of numbers from a .npy file."""
    array = np.load(path, allow_pickle=False)
    if not isinstance(array, np.ndarray):
        raise ValueError("it is an archive of several arrays")
    return array


def write_array(path: Path, array: NDArray[Any]) -> None:
    """Write an array in the format that the path's ending names; what was there stays if that fails."""
    with tempfile.TemporaryDirectory(prefix=".wgslice-", dir=path.parent) as folder:
        part = Path(folder) / path.name
        if path.suffix.lower() == ".npy":
            np.save(part, array)
        else:
            write_image(part, array, path)
        part.replace(path)


def write_image(part: Path, array: NDArray[Any], path: Path) -> None:
    """Write an array as an image to `part`, on its way to `path`."""
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
    """Pillow's Image module, or how to install it."""
    try:
        from PIL import Image
    except ImportError:
        raise ImportError("images need Pillow: pip install pillow") from None
    Image.MAX_IMAGE_PIXELS = None  # whole slides are large, and the user's own
    return Image


if __name__ == "__main__":
    sys.exit(main())

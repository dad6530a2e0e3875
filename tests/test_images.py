"""Images by `wgslice slice`: pages, and samples of every depth, bit for bit or refused by name."""

from __future__ import annotations

import struct
import sys
import tracemalloc
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import imagecodecs
import numpy as np
import pytest
import tifffile
from helpers import check_same, random_array
from numpy.typing import NDArray
from PIL import Image, ImageOps

from wgslice.cli import main

DTYPES = [*("?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8"), *("f2", "f4", "f8", "c8", "c16")]
REMEDY = "pip install 'wgslice[images]'"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def no_tifffile(monkeypatch: pytest.MonkeyPatch) -> None:
    """An environment with Pillow alone."""
    for name in ("avif_encode", "jpeg2k_encode", "packints_encode", "png_encode"):
        getattr(imagecodecs, name)  # loaded now: tests make files by it, and it loads its parts late
    monkeypatch.setitem(sys.modules, "tifffile", None)
    monkeypatch.setitem(sys.modules, "imagecodecs", None)


def sliced(source: str, key: str = "...", limit: str = "256MiB") -> Any:
    """What the command writes of a file."""
    assert main(["slice", source, key, "-o", "out.npy", "--limit", limit]) == 0
    return np.load("out.npy")


def refusal(capsys: pytest.CaptureFixture[str], source: str, key: str = "...", output: str = "o.npy") -> str:
    """The line that the command prints in place of an output."""
    assert main(["slice", source, key, "-o", output]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert not Path(output).exists()
    return str(line)


def contiguous(array: Any) -> Any:
    return np.array(array, order="C")


@pytest.mark.parametrize("dtype", DTYPES)
def test_tiff_round_trip_of_every_dtype_and_shape(dtype: str) -> None:
    colours = [(2, 5, 7, 3), (5, 7, 4), (2, 3, 7, 2)]
    for shape in ((5, 7), (3, 5, 7), *(colours if dtype != "?" else [])):
        array = random_array(shape, dtype, seed=len(shape))
        np.save("in.npy", array)
        assert main(["slice", "in.npy", "..., ::-1, :", "-o", "out.tif"]) == 0
        check_same(tifffile.imread("out.tif"), contiguous(array[..., ::-1, :]))
        check_same(sliced("out.tif", "::-1, 1:4"), contiguous(array[..., ::-1, :][::-1, 1:4]))


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rowsperstrip": 3},
        {"compression": "zlib", "predictor": True, "rowsperstrip": 5},
        {"compression": "lzw", "tile": (16, 32)},
        {"compression": "zstd", "tile": (16, 16), "planarconfig": "separate"},
        {"planarconfig": "separate"},
        {"bigtiff": True, "compression": "packbits"},
        {"metadata": None, "contiguous": False},
    ],
    ids=str,
)
def test_stored_in_any_way_pages_are_read_in_parts(order: Any, options: dict[str, Any]) -> None:
    array = random_array((5, 37, 41, 3), "u2", seed=3)
    is_planar = options.get("planarconfig") == "separate"
    stored = np.moveaxis(array, -1, 1) if is_planar else array
    tifffile.imwrite("in.tif", stored, photometric="rgb", byteorder=order, **options)
    for limit in ("4KiB", "64KiB", "256MiB"):
        check_same(sliced("in.tif", limit=limit), array)
        key = np.s_[::-2, 3:30:5, ::-3, 1:]
        check_same(sliced("in.tif", "::-2, 3:30:5, ::-3, 1:", limit), contiguous(array[key]))


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("tile", [None, (16, 16)])
def test_tiff_orientation_turns_rows_and_columns(orientation: int, tile: tuple[int, int] | None) -> None:
    array = random_array((21, 35, 3), "u1")
    tag = (274, "H", 1, orientation, True)
    tifffile.imwrite("in.tif", array, photometric="rgb", extratags=[tag], tile=tile)
    with Image.open("in.tif") as image:
        shown = np.asarray(ImageOps.exif_transpose(image))
    check_same(sliced("in.tif", "::-2, 3:, :", "4KiB"), contiguous(shown[::-2, 3:]))


def test_ome_and_imagej_pages_are_a_leading_dimension() -> None:
    array = random_array((2, 3, 9, 8), "u2")
    tifffile.imwrite("in.ome.tif", array, metadata={"axes": "TCYX"})
    check_same(sliced("in.ome.tif", "::-1"), contiguous(array.reshape(6, 9, 8)[::-1]))
    tifffile.imwrite("imagej.tif", array, imagej=True, metadata={"axes": "TZYX"})
    check_same(sliced("imagej.tif"), array.reshape(6, 9, 8))


def test_one_directory_for_many_images_gives_all_of_them() -> None:
    """As ImageJ writes beyond 4 GiB."""
    array = random_array((7, 9, 8), "u2")
    tifffile.imwrite("in.tif", array, photometric="minisblack", truncate=True)
    with tifffile.TiffFile("in.tif") as file:
        assert len(file.pages) == 1
    check_same(sliced("in.tif", "::-2"), contiguous(array[::-2]))


def test_white_is_zero_and_palettes_are_shown_as_colours() -> None:
    grey = random_array((6, 8), "u2")
    tifffile.imwrite("white.tif", grey, photometric="miniswhite")
    check_same(sliced("white.tif"), 65535 - grey)
    bilevel = random_array((6, 8), "?")
    tifffile.imwrite("fax.tif", bilevel, photometric="miniswhite")
    check_same(sliced("fax.tif"), ~bilevel)
    indices = random_array((2, 6, 8), "u1")
    for colours in (random_array((3, 256), "u2"), random_array((3, 256), "u1").astype(np.uint16) * 257):
        tifffile.imwrite("palette.tif", indices, photometric="palette", colormap=colours)
        shown = np.moveaxis(colours[:, indices], 0, -1)
        is_short = (colours % 257 == 0).all()
        check_same(sliced("palette.tif"), (shown // 257).astype(np.uint8) if is_short else contiguous(shown))


def test_samples_at_any_byte_of_a_tiff_are_read() -> None:
    array = random_array((3, 9, 8), "c8")
    tifffile.imwrite("in.tif", array, photometric="minisblack", align=1, description="odd", metadata=None)
    with tifffile.TiffFile("in.tif") as file:
        assert file.pages.first.dataoffsets[0] % 8
    check_same(sliced("in.tif", "::-1, ::2, ::-1"), contiguous(array[::-1, ::2, ::-1]))


def test_what_a_sparse_tiff_leaves_out_is_its_fill_value() -> None:
    """As GDAL writes tiles and strips without data."""
    array = random_array((2, 32, 48), "u1")
    tag = (42113, "s", 0, "7", False)
    cases: list[tuple[int, int, dict[str, Any]]] = [
        (16, 16, {"tile": (16, 16)}),
        (8, 48, {"compression": "zlib", "rowsperstrip": 8}),
        (32, 48, {}),
    ]
    for height, width, options in cases:
        tifffile.imwrite("in.tif", array, photometric="minisblack", extratags=[tag], metadata=None, **options)
        with tifffile.TiffFile("in.tif", mode="r+") as file:
            page = file.pages.get(1)
            assert isinstance(page, tifffile.TiffPage)
            for code in (273, 279, 324, 325):
                if code in page.tags:
                    left = page.tags[code]
                    left.overwrite((0, *left.value[1:]))
        shown = array.copy()
        shown[1, :height, :width] = 7
        check_same(sliced("in.tif", "::-1"), contiguous(shown[::-1]))


def test_reduced_copies_and_masks_are_no_pages(capsys: pytest.CaptureFixture[str]) -> None:
    array = random_array((32, 48), "u1")
    with tifffile.TiffWriter("pyramid.tif") as file:
        file.write(array, metadata=None)
        file.write(array[::2, ::2], subfiletype=1, metadata=None)
    check_same(sliced("pyramid.tif"), array)
    with tifffile.TiffWriter("reduced.tif") as file:
        file.write(array, subfiletype=1, metadata=None)
    assert "it has no page, or only reduced copies of one" in refusal(capsys, "reduced.tif")


@pytest.mark.parametrize(
    ("shape", "dtype", "message"),
    [
        ((4, 6), "u1", "MINISBLACK of uint8 of shape (4, 6)"),
        ((5, 6), "i1", "MINISBLACK of int8 of shape (5, 6)"),
        ((5, 6, 3), "u1", "RGB of uint8 of shape (5, 6, 3)"),
    ],
)
def test_pages_that_differ_are_refused_by_name(
    capsys: pytest.CaptureFixture[str], shape: tuple[int, ...], dtype: str, message: str
) -> None:
    with tifffile.TiffWriter("in.tif") as file:
        for page in (random_array((5, 6), "u1"), random_array(shape, dtype)):
            file.write(page, metadata=None)
    assert f"page 1 is {message}, page 0 is MINISBLACK of " in refusal(capsys, "in.tif", "0")


def test_colours_that_would_be_rounded_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    array = random_array((5, 6, 4), "u1")
    tifffile.imwrite("cmyk.tif", array, photometric="separated")
    assert "the colours of page 0 are SEPARATED, of which RGB would" in refusal(capsys, "cmyk.tif")
    Image.fromarray(array, "CMYK").save("cmyk.jpg")
    assert "cmyk.jpg: cannot be read as an image: its colours are CMYK" in refusal(capsys, "cmyk.jpg")


def test_a_tiff_file_that_ends_early_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with tifffile.TiffWriter("in.tif") as file:
        for page in random_array((4, 9, 8), "u2"):
            file.write(page, contiguous=False, metadata=None)
    whole = Path("in.tif").read_bytes()
    with tifffile.TiffFile("in.tif") as read:
        third, last = read.pages.get(2), read.pages.get(3)
    cuts = {
        "breaks off after 3 of them": last.offset,
        "cannot be read as a TIFF file: corrupted IFD structure": last.offset + 20,  # in tifffile's words
        "it ends within page 3": last.dataoffsets[0] + 10,
    }
    for message, nbytes in cuts.items():
        Path("cut.tif").write_bytes(whole[:nbytes])
        assert message in refusal(capsys, "cut.tif")
    assert isinstance(third, tifffile.TiffPage)
    following = third.offset + 2 + 12 * len(third.tags)
    Path("circle.tif").write_bytes(
        whole[:following] + struct.pack("<I", third.offset) + whole[following + 4 :]
    )
    assert "the list of its pages is a circle of 3" in refusal(capsys, "circle.tif")
    tifffile.imwrite("strips.tif", random_array((40, 40), "u2"), compression="zlib", metadata=None)
    Path("cut.tif").write_bytes(Path("strips.tif").read_bytes()[:-100])
    assert "cut.tif: cannot be read as a TIFF file: it ends within page 0" in refusal(capsys, "cut.tif")


def test_a_page_without_some_of_its_tiles_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    array = random_array((32, 48), "u1")
    for code in (324, 325):
        tifffile.imwrite("in.tif", array, compression="zlib", tile=(16, 16), metadata=None)
        with tifffile.TiffFile("in.tif", mode="r+") as file:
            tag = file.pages.first.tags[code]
            tag.overwrite(tag.value[:-1])
        assert "page 0 has 5 of 6 tiles or strips" in refusal(capsys, "in.tif")


def test_a_limit_bounds_memory_and_only_touched_tiles_are_read(monkeypatch: pytest.MonkeyPatch) -> None:
    pages = random_array((24, 512, 512), "u2")
    tifffile.imwrite("in.tif", pages, photometric="minisblack", compression="zlib", tile=(128, 128))
    sliced("in.tif", "0", "2MiB")  # what comes once
    tracemalloc.start()
    try:
        assert main(["slice", "in.tif", "::-1, :, ::-1", "-o", "out.npy", "--limit", "2MiB"]) == 0
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    check_same(np.load("out.npy"), contiguous(pages[::-1, :, ::-1]))
    assert peak < pages.nbytes / 3
    read = []

    def counted(file: Any, size: int = -1, unbound: Any = tifffile.FileHandle.read) -> bytes:
        data: bytes = unbound(file, size)
        read.append(len(data))
        return data

    monkeypatch.setattr(tifffile.FileHandle, "read", counted)
    check_same(sliced("in.tif", "20, 130:140, 200:210"), contiguous(pages[20, 130:140, 200:210]))
    assert 128 * 128 < sum(read) < 5 * 128 * 128 * 2


@pytest.mark.usefixtures("no_tifffile")
@pytest.mark.parametrize("dtype", ["?", "u1", "u2", "i2", "i4", "u4", "f4"])
def test_pillow_alone_reads_exact_modes(dtype: str, capsys: pytest.CaptureFixture[str]) -> None:
    orders: tuple[Any, ...] = "<", ">"
    for order in orders:
        for shape in ((5, 7), (3, 5, 7), (2, 5, 7, 3)):
            array = random_array(shape, dtype)
            kind = "rgb" if len(shape) == 4 else "minisblack"
            tifffile.imwrite("in.tif", array, photometric=kind, byteorder=order, metadata=None)
            if (len(shape) == 4 and dtype != "u1") or (dtype == "u4" and order == ">"):
                assert REMEDY in refusal(capsys, "in.tif")
            else:
                check_same(sliced("in.tif", "::-1"), contiguous(array[::-1]))


@pytest.mark.usefixtures("no_tifffile")
def test_pillow_alone_refuses_what_it_would_change(capsys: pytest.CaptureFixture[str]) -> None:
    grey = random_array((6, 8), "u1")
    indices = {"photometric": "palette", "colormap": random_array((3, 256), "u2")}
    cases: list[tuple[Any, dict[str, Any]]] = [
        (random_array((5, 7, 3), "u2"), {"photometric": "rgb"}),
        (random_array((5, 7), "f8"), {}),
        (random_array((5, 7), "i1"), {}),
        (random_array((5, 7), "u2"), {"photometric": "miniswhite"}),
        (random_array((3, 5, 7), "u2"), {"photometric": "minisblack", "truncate": True}),
        (random_array((3, 5, 7), "u2"), {"imagej": True, "truncate": True}),
        (grey, indices),
        (grey & 15, {"bitspersample": 4}),
        (random_array((5, 7, 4), "u1"), {"photometric": "rgb", "extrasamples": ["assocalpha"]}),
        (random_array((5, 7, 4), "u1"), {"photometric": "rgb", "extrasamples": ["unspecified"]}),
    ]
    for number, (array, options) in enumerate(cases):
        tifffile.imwrite("in.tif", array, **options)
        assert REMEDY in refusal(capsys, "in.tif"), number


@pytest.mark.usefixtures("no_tifffile")
def test_pillow_alone_writes_exact_modes(capsys: pytest.CaptureFixture[str]) -> None:
    for dtype in ("?", "u1", "u2", "i4", "f4"):
        array = random_array((5, 7), dtype)
        np.save("in.npy", array)
        assert main(["slice", "in.npy", "::-1", "-o", "out.tif"]) == 0
        check_same(tifffile.imread("out.tif"), contiguous(array[::-1]))
    for shape, dtype in (((5, 7), "f8"), ((5, 7, 3), "u2"), ((3, 5, 7), "u1"), ((5, 7), "i8")):
        np.save("in.npy", random_array(shape, dtype))
        assert REMEDY in refusal(capsys, "in.npy", output="o.tif")


def animation(path: str, frames: Sequence[NDArray[Any]], **options: Any) -> None:
    first, *others = map(Image.fromarray, frames)
    first.save(path, save_all=True, append_images=others, **options)


@pytest.mark.parametrize("name", ["in.png", "in.webp"])
@pytest.mark.parametrize("channels", [3, 4])
def test_frames_of_animations_are_pages(name: str, channels: int) -> None:
    frames = random_array((4, 6, 9, channels), "u1")
    animation(name, frames, **({"lossless": True, "exact": True} if name == "in.webp" else {}))
    check_same(sliced(name, "::-1, 1:, ::2"), contiguous(frames[::-1, 1:, ::2]))
    check_same(sliced(name, "2", "1KiB"), frames[2])


def test_frames_of_a_gif_are_composed_as_rgba() -> None:
    """Each stores the part that changes; the last one shows what lies below, of which a part was cleared."""
    palette = random_array((8, 3), "u1")
    indices = np.zeros((4, 6, 9), np.uint8) + np.arange(9, dtype=np.uint8) % 7
    indices[1, 2:4, 3:5] = 1
    indices[3, 1:5, 2:4] = 7
    frames = [Image.fromarray(frame) for frame in indices]
    for frame in frames:
        frame.putpalette(palette.tobytes())
    options: dict[str, Any] = {"transparency": 7, "disposal": [1, 3, 2, 1]}
    frames[0].save("in.gif", save_all=True, append_images=frames[1:], **options)
    with Image.open("in.gif") as image:
        assert (image.mode, getattr(image, "n_frames", 1)) == ("P", 4)
        image.seek(1)
        assert image.tile[0][1] != (0, 0, 9, 6)
    shown = np.concatenate([palette[indices], np.full((4, 6, 9, 1), 255, np.uint8)], axis=-1)
    shown[3, 1:5, 2:4] = shown[0, 1:5, 2:4]
    shown[3, 2:4, 3] = 0
    found = sliced("in.gif")
    is_seen = shown[..., 3] == 255
    check_same(found[..., 3], shown[..., 3])
    check_same(found[is_seen], shown[is_seen])
    check_same(sliced("in.gif", "::-1, 2, 3:"), contiguous(found[::-1, 2, 3:]))
    frames[0].save("one.gif")
    check_same(sliced("one.gif"), palette[indices[0]])


@pytest.mark.filterwarnings("ignore")  # Pillow's own, of truncated files
@pytest.mark.parametrize("name", ["in.gif", "in.png", "in.webp", "in.tif", "deep.png"])
def test_a_cut_file_is_refused_or_whole(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A reader could take the pages before the cut for all."""
    if name == "deep.png":
        Path(name).write_bytes(imagecodecs.png_encode(random_array((6, 9, 3), "u2")))
    else:
        animation(name, random_array((3, 6, 9, 3), "u1"))
    expected, data = sliced(name), Path(name).read_bytes()
    refused = 0
    for nbytes in range(8, len(data), len(data) // 40):
        Path(f"cut-{name}").write_bytes(data[:nbytes])
        if main(["slice", f"cut-{name}", "...", "-o", "out.npy"]) == 0:
            check_same(np.load("out.npy"), expected)
        else:
            assert len(capsys.readouterr().err.splitlines()) == 1
            refused += 1
    assert refused > 30


def test_photographs_with_further_images() -> None:
    """Frames of the photograph's size are pages, and smaller ones are previews of it."""
    photo = random_array((16, 24, 3), "u1")
    names = {"preview.mpo": photo[::2, ::2], "stereo.mpo": photo[::-1]}
    for name, other in names.items():
        animation(name, [photo, other])
    assert [sliced(name).shape for name in names] == [(16, 24, 3), (2, 16, 24, 3)]


def deep_files() -> None:
    """Images whose samples Pillow would reduce or scale."""
    colours = random_array((5, 7, 3), "u2")
    Path("deep.png").write_bytes(imagecodecs.png_encode(colours))
    Path("deep.jp2").write_bytes(imagecodecs.jpeg2k_encode(colours))
    Path("deep.avif").write_bytes(imagecodecs.avif_encode(colours >> 6, bitspersample=10))
    Path("deep.ppm").write_bytes(b"P6 7 5 65535\n" + colours.astype(">u2").tobytes())
    Path("scaled.pgm").write_bytes(b"P5 7 5 100\n" + bytes(range(35)))
    header = struct.pack(">hBBHHHH", 474, 0, 2, 3, 7, 5, 3)
    Path("deep.sgi").write_bytes(
        header.ljust(512, b"\0") + colours.transpose(2, 0, 1).astype(">u2").tobytes()
    )


def test_greys_of_few_bits_are_scaled_as_viewers_do() -> None:
    for bits, data in ((1, b"\x50"), (2, b"\x1b"), (4, b"\x0f")):
        rows = zlib.compress(b"\0" + data)
        header = struct.pack(">IIBBBBB", 8 // bits, 1, bits, 0, 0, 0, 0)
        Path("in.png").write_bytes(png(header, [(b"IDAT", rows)]))
        levels = [[0, 1, 0, 1, 0, 0, 0, 0], [0, 85, 170, 255], [0, 255]][bits // 2]
        check_same(sliced("in.png"), np.array([levels], np.bool_ if bits == 1 else np.uint8))


def test_samples_of_another_depth_are_exact_or_refused(capsys: pytest.CaptureFixture[str]) -> None:
    deep_files()
    check_same(sliced("deep.jp2"), random_array((5, 7, 3), "u2"))
    check_same(sliced("deep.avif"), random_array((5, 7, 3), "u2") >> 6)
    for name in ("deep.ppm", "scaled.pgm", "deep.sgi"):
        line = refusal(capsys, name)
        assert f"{name}: cannot be read as an image: its samples have another depth" in line
        assert "save it as .png or .tif first" in line


@pytest.mark.usefixtures("no_tifffile")
def test_16_bit_colours_without_codecs_name_what_to_install(capsys: pytest.CaptureFixture[str]) -> None:
    deep_files()
    for name in ("deep.png", "deep.jp2"):
        assert refusal(capsys, name).endswith(
            f"another depth than Pillow gives them in mode RGB; to read them: {REMEDY}"
        )
    np.save("in.npy", random_array((5, 7, 3), "u2"))
    assert refusal(capsys, "in.npy", output="o.png") == (
        f"wgslice: error: o.png: a PNG of colours of 16 bits needs imagecodecs: {REMEDY}"
    )


@pytest.mark.parametrize(
    ("name", "shape", "dtype"),
    [
        *((f"grey.{suffix}", (5, 7), "u2") for suffix in ("png", "pgm", "jp2", "tif")),
        *(("colours.png", (5, 7, channels), "u2") for channels in (2, 3, 4)),
        ("colours.webp", (20, 30, 4), "u1"),
    ],
)
def test_samples_go_both_ways(name: str, shape: tuple[int, ...], dtype: str) -> None:
    array = random_array(shape, dtype)
    np.save("in.npy", array)
    assert main(["slice", "in.npy", "::-1", "-o", name]) == 0
    if name == "colours.png":
        check_same(imagecodecs.png_decode(Path(name).read_bytes()), contiguous(array[::-1]))
    check_same(sliced(name, "::-1"), array)


def png(header: bytes, chunks: Sequence[tuple[bytes, bytes]]) -> bytes:
    """A PNG file of chunks."""
    file = b"\x89PNG\r\n\x1a\n"
    for kind, data in [(b"IHDR", header), *chunks, (b"IEND", b"")]:
        file += struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    return file


def test_an_animated_png_of_16_bit_colours_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    rows = zlib.compress(b"\0" + random_array((6,), "u2").tobytes())
    frame = struct.pack(">IIIIHHBB", 2, 1, 0, 0, 1, 1, 0, 0)
    chunks = [
        (b"acTL", struct.pack(">II", 2, 0)),
        (b"fcTL", struct.pack(">I", 0) + frame),
        (b"IDAT", rows),
        (b"fcTL", struct.pack(">I", 1) + frame),
        (b"fdAT", struct.pack(">I", 2) + rows),
    ]
    Path("in.png").write_bytes(png(struct.pack(">IIBBBBB", 2, 1, 16, 2, 0, 0, 0), chunks))
    assert "animated, of samples of more than 8 bits, which Pillow reduces" in refusal(capsys, "in.png")


@pytest.mark.parametrize(
    ("name", "shape", "dtype", "message"),
    [
        ("o.webp", (5, 7), "u2", "WEBP does not hold {} bit for bit; write a .tif"),
        ("o.gif", (20, 20, 3), "u1", "GIF does not hold {} bit for bit"),
        ("o.ico", (300, 300, 3), "u1", "ICO does not hold {} bit for bit"),
        ("o.avif", (5, 7), "u2", "{} is no image; write a .tif or .npy file"),
        ("o.png", (5, 7), "i4", "cannot be written: cannot write mode I as PNG; write a .tif or .npy"),
        ("o.png", (3, 5, 7), "u1", "{} is no image; write a .tif or .npy file"),
        ("o.png", (2, 5, 7, 3), "u1", "{} is no image; write a .tif or .npy"),
        ("o.png", (5, 7), "c8", "{} is no image; write a .tif or .npy file"),
        ("o.tif", (5, 7), "M8[s]", "{} is no TIFF file, which holds numbers"),
        ("o.tif", (2, 2, 5, 7), "u1", "{} is no TIFF file, which holds numbers"),
        ("o.tif", (0, 7), "u1", "{} is no TIFF file, which holds numbers"),
    ],
)
def test_a_format_that_does_not_hold_the_result_is_refused(
    capsys: pytest.CaptureFixture[str], name: str, shape: tuple[int, ...], dtype: str, message: str
) -> None:
    np.save("in.npy", random_array(shape, dtype))
    line = f"{name}: {message.format(f'{np.dtype(dtype)} of shape {shape}')}"
    assert line in refusal(capsys, "in.npy", output=name)


def test_channels_of_a_stack_are_no_columns(capsys: pytest.CaptureFixture[str]) -> None:
    tifffile.imwrite("in.tif", random_array((3, 5, 7, 3), "u1"), photometric="rgb")
    assert "KEY drops axis 0 and keeps the 3 channels; write 1:2 to keep" in refusal(
        capsys, "in.tif", "1, 2", "o.png"
    )
    assert "would be an image of grey with alpha: KEY keeps 2 of 3" in refusal(
        capsys, "in.tif", "..., :2", "o.tif"
    )


def test_a_structured_array_names_its_file_and_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    np.save("points.npy", np.zeros(3, [("x", "f4"), ("y", "f4")]))
    assert refusal(capsys, "points.npy", "0") == (
        "wgslice: error: points.npy: cannot be read as a .npy file of numbers: its elements have the fields "
        "x, y; save one of them first: "
        "python -c \"import numpy as np; np.save('x.npy', np.load('points.npy')['x'])\""
    )
    np.save("words.npy", np.array(["a", "bc"]))
    assert "words.npy: cannot be read as a .npy file of numbers: dtype <U2" in refusal(
        capsys, "words.npy", "0"
    )

"""The command line: what it writes, and one line for every bad argument."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers import check_same, random_bytes
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from planning import preferring
from running import MODULE_OF, Limit, by_step

import wgslice as wg
from wgslice.cli import main
from wgslice.cli.slice import parse_key
from wgslice.plans.kernels import Kernel
from wgslice.shaders import kernel_module

PHOTO = random_bytes(31 * 21 * 3).reshape(21, 31, 3)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with an array and an image in it, to work in."""
    monkeypatch.chdir(tmp_path)
    np.save("volume.npy", np.arange(4 * 5 * 6, dtype=np.int16).reshape(4, 5, 6))
    Image.fromarray(PHOTO).save("photo.png")
    return tmp_path


def test_adapters_marks_the_default(named: wg.Device, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["adapters"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(wg.adapters())
    (default,) = [line for line in lines if line.startswith("* ")]
    assert default.startswith(f"* {named.adapter}, {named.adapter.kind}")


def test_an_array_is_sliced(device: wg.Device, folder: Path) -> None:
    adapter = str(device.adapter)
    assert main(["slice", "volume.npy", "1:, ::-2, None, 3", "-o", "out.npy", "--adapter", adapter]) == 0
    check_same(np.load("out.npy"), np.ascontiguousarray(np.load("volume.npy")[1:, ::-2, None, 3]))


def test_an_image_is_sliced_from_and_to_images_and_arrays(folder: Path) -> None:
    assert main(["slice", "photo.png", "2:20:3, ::-1, ::-1", "-o", "out.png"]) == 0
    with Image.open("out.png") as image:
        check_same(np.asarray(image), np.ascontiguousarray(PHOTO[2:20:3, ::-1, ::-1]))
    assert main(["slice", "photo.png", "..., 0", "-o", "out.npy"]) == 0
    check_same(np.load("out.npy"), np.ascontiguousarray(PHOTO[..., 0]))
    Image.fromarray(PHOTO).convert("P").save("palette.png")
    assert main(["slice", "palette.png", "0, 0", "-o", "pixel.npy"]) == 0
    assert np.load("pixel.npy").shape == (3,)


def test_brackets_are_no_list_of_indices(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """NumPy would take them for one."""
    for key in ("[1,2]", "[1]", "[-2:, -1]", "[3,1],", "[[3,1]]", "0, [1], :", "([1],)"):
        assert main(["slice", "volume.npy", key, "-o", "out.npy"]) == 1
        assert (
            f"KEY {key!r}: lists of indices are not supported; KEY is what x[KEY] has between its brackets: "
            '"3, 1" is one element, "1:4:2" is rows 1 and 3; in Python, wg.asarray(x)[[3, 1]] is rows 3 and 1'
        ) in capsys.readouterr().err
    assert not Path("out.npy").exists()


def test_photographs_are_turned_as_their_cameras_were(folder: Path) -> None:
    """An array has no place for what EXIF says."""
    exif = Image.Exif()
    exif[0x0112] = 6  # a quarter turn
    Image.fromarray(PHOTO).save("turned.png", exif=exif)
    assert main(["slice", "turned.png", "..., ::-1", "-o", "out.npy"]) == 0
    check_same(np.load("out.npy"), np.ascontiguousarray(np.rot90(PHOTO, -1)[..., ::-1]))


def test_an_index_may_begin_with_a_minus(folder: Path) -> None:
    for key in ("-2:, -1", "(-2:, -1)"):
        assert main(["slice", "volume.npy", key, "-o", "out.npy"]) == 0
        check_same(np.load("out.npy"), np.load("volume.npy")[-2:, -1])


@pytest.mark.parametrize("kernel", Kernel, ids=lambda kernel: kernel.value)
def test_a_printed_kernel_is_a_complete_module(
    device: wg.Device, capsys: pytest.CaptureFixture[str], kernel: Kernel
) -> None:
    assert main(["kernel", kernel.value]) == 0
    printed = capsys.readouterr()
    listing, module = printed.out.split("\n\n", 1)
    assert (module, printed.err) == (kernel_module(kernel), "")
    assert module.startswith(f"// {kernel.value}: ")
    for name, type_ in re.findall(r"^override (\w+): (\w+) = -?\w+;", module, re.MULTILINE):
        assert re.search(rf"^//   {name}: {type_} = \S+ +\S", listing, re.MULTILINE)
    for number, name in re.findall(r"@binding\((\d)\) var<.*> (\w+):", module):
        assert re.search(rf"^//   {number}  <.*> {name}: ", listing, re.MULTILINE)
    (entry,) = re.findall(r"^// Entry point `(\w+)`", listing)
    pipeline = device.wgpu_device.create_compute_pipeline(
        layout="auto",
        compute={
            "module": device.wgpu_device.create_shader_module(code=printed.out),
            "entry_point": entry,
        },
    )
    assert pipeline is not None


def test_a_printed_kernel_is_all_that_a_host_needs(
    device: wg.Device, capsys: pytest.CaptureFixture[str], limit: Limit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The printed text in place of the one that the device would load."""
    printed = {}
    for kernel in (Kernel.SHIFTED_ROWS, Kernel.ROW_ENDS, Kernel.WINDOW_ROWS):
        assert main(["kernel", kernel.value]) == 0
        printed[kernel] = capsys.readouterr().out
    monkeypatch.setattr(MODULE_OF, by_step(printed.__getitem__))
    monkeypatch.setattr(device, "pipelines", device.new_pipelines())
    profile = preferring(device.limits.profile, Kernel.SHIFTED_ROWS, Kernel.WINDOW_ROWS)
    limit(profile=profile)
    x = wg.asarray(PHOTO.reshape(-1), device=device)
    check_same(x[::-1].copy().numpy(), PHOTO.reshape(-1)[::-1])
    check_same(
        wg.extract_windows(x, [[3], [40]], (90,)).numpy(), np.stack([x.numpy()[3:93], x.numpy()[40:130]])
    )
    assert device.pipelines.module.cache_info().currsize == len(printed)


def test_the_kernels_names_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    for arguments, status in ((["kernel", "--help"], 0), (["kernel", "words"], 2), (["kernel"], 2)):
        with pytest.raises(SystemExit) as exit:
            main(arguments)
        assert exit.value.code == status
        printed = capsys.readouterr()
        shown = printed.out + printed.err
        assert "NAME" in shown
        assert all(kernel.value in shown for kernel in Kernel) or arguments == ["kernel"]


BAD: list[tuple[list[str], str]] = [
    (["volume.npy", "5", "-o", "o.npy"], "index 5 is out of bounds for axis 0 with size 4"),
    (["volume.npy", "0,0,0,0", "-o", "o.npy"], "too many indices for array"),
    (["volume.npy", "..., ...", "-o", "o.npy"], "an index can only have a single ellipsis"),
    (["volume.npy", "::0", "-o", "o.npy"], "slice step cannot be zero"),
    (["volume.npy", "1.5", "-o", "o.npy"], "KEY '1.5': '1.5' is neither an integer, a slice"),
    (["volume.npy", "٣", "-o", "o.npy"], "is neither an integer"),
    (["volume.npy", "a:b", "-o", "o.npy"], "KEY 'a:b': 'a:b' is neither an integer"),
    (["volume.npy", "1:2:3:4", "-o", "o.npy"], "'1:2:3:4' is neither an integer"),
    (["volume.npy", "__import__('os')", "-o", "o.npy"], "is neither an integer"),
    (["volume.npy", "1,,2", "-o", "o.npy"], "an index is missing"),
    (["volume.npy", "", "-o", "o.npy"], "an index is missing"),
    (["missing.npy", "0", "-o", "o.npy"], "No such file or directory: 'missing.npy'"),
    (["missing.png", "0", "-o", "o.npy"], "missing.png"),
    (["text.npy", "0", "-o", "o.npy"], "text.npy: cannot be read as a .npy file of numbers"),
    (["text.png", "0", "-o", "o.npy"], "cannot identify image file"),
    (
        ["objects.npy", "0", "-o", "o.npy"],
        "objects.npy: cannot be read as a .npy file of numbers: Object arrays",
    ),
    (["volume.npy", "0", "-o", "o"], "o: the name must end in .npy or an image format"),
    (["volume", "0", "-o", "o.npy"], "volume: the name must end in .npy"),
    (["photo.png", "0:2", "-o", "o.xyz"], "o.xyz: '.xyz' is no known format: name .npy, .zarr or an image"),
    (["volume.npy", "0:2", "-o", "o.png"], "o.png: int16 of shape (2, 5, 6) is no image; write a .tif"),
    (
        ["volume.npy", "0", "-o", "nowhere/o.npy"],
        "nowhere/o.npy: there is no folder nowhere to write it to; make it first",
    ),
    (["volume.npy", "0", "-o", "text.npy/o.npy"], "there is no folder text.npy"),
    (["volume.npy", "0", "-o", "folder.npy"], "folder.npy: is a folder; name a file"),
    (
        ["volume.npz", "0", "-o", "o.npy"],
        "volume.npz: an archive of several arrays, .npz, is neither read nor",
    ),
    (["volume.npy", "0", "-o", "o.NPZ"], "o.NPZ: an archive of several arrays, .npz, is neither read nor"),
    (
        ["archive.npy", "0", "-o", "o.npy"],
        "archive.npy: cannot be read as a .npy file of numbers: it is an arch",
    ),
    (["volume.npy", "0", "-o", "volume.npy"], "volume.npy: is the input itself; name another file"),
    (
        ["photo.png", "::2", "-o", "folder.npy/../photo.png"],
        "photo.png: is the input itself; name another file",
    ),
    (
        ["photo.png", "7", "-o", "o.png"],
        "o.png: shape (31, 3) is no image: KEY drops axis 0 and keeps the 3 channels",
    ),
    (
        ["photo.png", ":, -1", "-o", "o.png"],
        "axis 1 and keeps the 3 channels; write 30:31 to keep the axis, or a .npy",
    ),
    (
        ["photo.png", "..., :2", "-o", "o.png"],
        "o.png: shape (21, 31, 2) would be an image of grey with alpha: KEY keeps 2 of 3 channels; keep 1, 3",
    ),
    (["photo.png", "..., ::-2", "-o", "o.png"], "would be an image of grey with alpha"),
    (["photo.png", "None, 0, 0", "-o", "o.png"], "o.png: shape (1, 3) is no image"),
    (["volume.npy", "0", "-o", "o.npy", "--adapter", "voodoo"], "no adapter has 'voodoo' in its name"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_a_bad_argument_is_one_line_and_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    for name in ("text.npy", "text.png"):
        Path(name).write_text("this is text")
    np.save("objects.npy", np.array([object()]), allow_pickle=True)
    Path("folder.npy").mkdir()
    with Path("archive.npy").open("wb") as file:
        np.savez(file, np.zeros(3))
    Path("volume.npz").write_bytes(Path("archive.npy").read_bytes())
    before = sorted(path.name for path in folder.iterdir())
    assert main(["slice", *arguments]) == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    (line,) = printed.err.splitlines()
    assert line.startswith("wgslice: error: ")
    assert message in line
    assert sorted(path.name for path in folder.iterdir()) == before


def damaged(format: str, count: int) -> Iterator[bytes]:
    """An image's file, cut, or with some other bytes."""
    file = io.BytesIO()
    image = Image.fromarray(np.zeros((64, 64, 3), np.uint8) + np.arange(64, dtype=np.uint8)[:, None])
    image.save(file, format)
    rng = np.random.default_rng(7)
    for _ in range(count):
        data = bytearray(file.getvalue())
        for place in rng.integers(0, rng.choice([40, 400, len(data)]), 3):
            data[min(place, len(data) - 1)] = rng.integers(256)
        yield bytes(data[: rng.integers(1, 2 * len(data))])


@pytest.mark.filterwarnings("ignore")  # Pillow's own, of damaged files
@pytest.mark.parametrize("format", ["PNG", "AVIF", "ICNS", "QOI", "TIFF"])
def test_a_damaged_image_is_one_line_and_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, format: str
) -> None:
    """Pillow's readers raise SyntaxError, OverflowError, struct.error and others; some still read it."""
    Image.init()
    if format not in Image.SAVE:
        pytest.skip(f"this Pillow was built without {format}")
    monkeypatch.setattr("wgslice.cli.images.write_image", lambda *_: None)
    path = folder / "damaged.png"
    refused = 0
    for data in damaged(format, 60):
        path.write_bytes(data)
        status = main(["slice", str(path), ":1", "-o", "o.npy"])
        printed = capsys.readouterr().err
        assert (status, len(printed.splitlines())) in ((0, 0), (1, 1))
        if status:
            assert re.search(
                f"{re.escape(str(path))}: (cannot be read as an? (image|TIFF file): .|takes more mem)",
                printed,
            )
        refused += status
    assert refused >= 20


@pytest.mark.parametrize("error", [SyntaxError("broken PNG file"), OverflowError(), RecursionError("deep")])
def test_whatever_a_reader_of_images_raises_is_one_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: Exception
) -> None:
    def raising(*_: Any) -> None:
        raise error

    monkeypatch.setattr(Image, "open", raising)
    assert main(["slice", "photo.png", "0", "-o", "o.npy"]) == 1
    reason = str(error) or type(error).__name__
    message = f"wgslice: error: photo.png: cannot be read as an image: {reason}\n"
    assert capsys.readouterr().err == message


def test_a_channel_is_a_picture_and_so_is_a_table(folder: Path) -> None:
    """Images of two dimensions, of one channel or from the start."""
    assert main(["slice", "photo.png", "..., 1", "-o", "green.png"]) == 0
    np.save("table.npy", PHOTO[0])
    assert main(["slice", "table.npy", "::2", "-o", "table.png"]) == 0
    for name, expected in (("green.png", PHOTO[..., 1]), ("table.png", PHOTO[0, ::2])):
        with Image.open(name) as image:
            check_same(np.asarray(image), np.ascontiguousarray(expected))


def test_grey_with_alpha_stays_grey_with_alpha(folder: Path) -> None:
    Image.fromarray(PHOTO[..., :2]).save("grey.png")
    assert main(["slice", "grey.png", "::2", "-o", "out.png"]) == 0
    with Image.open("out.png") as image:
        assert image.mode == "LA"
        check_same(np.asarray(image), np.ascontiguousarray(PHOTO[::2, :, :2]))


def test_a_reader_that_ends_early_is_no_error() -> None:
    """As of `wgslice kernel NAME | head -1`, whose text is longer than a pipe holds."""
    code = (
        "import sys; from wgslice.cli import main; sys.exit(max(main(['kernel', 'rows']) for _ in range(99)))"
    )
    command = [sys.executable, "-c", code]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.stdout.close()
        assert running.stderr.read() == b""
    assert running.returncode == 1


def test_no_command_prints_the_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    shown = capsys.readouterr()
    assert shown.err == ""
    assert "usage: wgslice" in shown.out
    assert all(
        f"\n    {command} " in shown.out for command in ("adapters", "slice", "kernel", "doctor", "tune")
    )


@pytest.mark.parametrize("rich", [True, False])
def test_progress_is_shown_on_a_terminal_only(
    rich: bool, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not rich:
        monkeypatch.setitem(sys.modules, "rich.progress", None)
    assert main(["slice", "volume.npy", "1:", "-o", "out.npy"]) == 0
    assert capsys.readouterr() == ("", "")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["slice", "volume.npy", "1:", "-o", "out.npy"]) == 0
    shown = capsys.readouterr()
    assert shown.out == ""
    assert rich or shown.err == "\r\x1b[K100% 180 bytes of 180 bytes\r\x1b[K"


@pytest.mark.parametrize("arguments", [["slice"], ["slice", "a.npy", "0"], ["polish"], ["slice", "--what"]])
def test_wrong_usage_is_status_2(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as exit:
        main(arguments)
    assert exit.value.code == 2
    assert "usage: wgslice" in capsys.readouterr().err


def test_images_without_pillow_name_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert main(["slice", "photo.png", "0", "-o", "o.npy"]) == 1
    assert capsys.readouterr().err == "wgslice: error: images need Pillow: pip install pillow\n"


def test_the_installed_command_runs(folder: Path) -> None:
    command = [str(Path(sys.executable).with_name("wgslice")), "slice", "volume.npy", "-1", "-o", "out.npy"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    check_same(np.load("out.npy"), np.load("volume.npy")[-1])


bounds = st.none() | st.integers(-(2**40), 2**40)
parts = st.one_of(st.integers(), st.builds(slice, bounds, bounds, bounds), st.just(Ellipsis), st.none())


def written(part: Any) -> str:
    if isinstance(part, slice):
        return ":".join("" if bound is None else str(bound) for bound in (part.start, part.stop, part.step))
    return "..." if part is Ellipsis else str(part)


@given(st.lists(parts, min_size=1, max_size=5).map(tuple), st.sampled_from(["{}", "({})", " ( {} ) "]))
def test_keys_are_read_back_as_they_are_written(key: tuple[Any, ...], form: str) -> None:
    assert parse_key(form.format(", ".join(map(written, key)))) == key


def test_keys_in_their_shorter_forms() -> None:
    assert parse_key("1:2") == (slice(1, 2),)
    assert parse_key("1,") == (1,)
    assert parse_key("newaxis,np.newaxis,+3") == (None, None, 3)

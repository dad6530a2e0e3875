"""`wgslice slice` on files of any size: a file appears under its name only when it is complete."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from blocks import numbered
from helpers import check_same, on_one_adapter, run_python

import wgslice as wg
from wgslice.cli import main
from wgslice.whole_files import remove_left_over, written_whole

CUBE = numbered((20, 24, 28), np.int16)
posix = pytest.mark.skipif(os.name != "posix", reason="signals are POSIX's")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a cube in it, as a .npy file and as a Zarr store."""
    monkeypatch.chdir(tmp_path)
    np.save("cube.npy", CUBE)
    zarr.create_array("cube.zarr", data=CUBE, chunks=(6, 6, 6))
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("source", ["cube.npy", "cube.zarr"])
@pytest.mark.parametrize("key", ["..., ::-2", "3, 4, 5", "5:5", "None, ::-1, 1"])
def test_files_and_stores_are_sliced(device: wg.Device, folder: Path, source: str, key: str) -> None:
    expected = np.array(eval(f"CUBE[{key}]"), order="C")
    for _ in range(2):  # the second time what is there is replaced
        for output in ("out.npy", "out.zarr"):
            command = [
                "slice",
                source,
                key,
                "-o",
                output,
                "--limit",
                "64KiB",
                "--adapter",
                str(device.adapter),
            ]
            assert main(command) == 0
        check_same(np.load("out.npy"), expected)
        check_same(np.asarray(zarr.open_array("out.zarr", mode="r")[...]), expected)
    assert names(folder) == ["cube.npy", "cube.zarr", "out.npy", "out.zarr"]


@on_one_adapter
def test_chunks_are_those_requested(device: wg.Device, folder: Path) -> None:
    assert main(["slice", "cube.zarr", "..., ::-2", "-o", "t.zarr", "--chunks", "8, 24,7"]) == 0
    assert zarr.open_array("t.zarr", mode="r").chunks == (8, 24, 7)


@on_one_adapter
def test_stores_and_images(device: wg.Device, folder: Path) -> None:
    zarr.create_array("pixels.zarr", data=np.arange(60, dtype=np.uint8).reshape(4, 5, 3))
    assert main(["slice", "pixels.zarr", "::-1", "-o", "pixels.png"]) == 0
    assert main(["slice", "pixels.png", "::-1, :2", "-o", "back.zarr"]) == 0
    check_same(
        np.asarray(zarr.open_array("back.zarr", mode="r")[...]),
        np.arange(60, dtype=np.uint8).reshape(4, 5, 3)[:, :2].copy(),
    )


BAD = [
    (["cube.npy", "0", "-o", "o.npy", "--chunks", "1,2"], "--chunks 1,2: o.npy has none; name a .zarr"),
    (["cube.npy", "0", "-o", "o.zarr", "--chunks", "1"], "the result has shape (24, 28), one size for each"),
    (["cube.npy", "0", "-o", "o.zarr", "--chunks", "0,5"], "--chunks 0,5: must be integers above 0"),
    (["cube.npy", "0", "-o", "o.npy", "--limit", "lots"], "limit = 'lots': must be a number of bytes"),
    (["cube.npy", "0", "-o", "o.npy", "--limit", "3"], "limit = '3': must be at least 1 KiB"),
    (["group.zarr", "0", "-o", "o.npy"], "group.zarr: cannot be read as a Zarr array"),
    (["none.zarr", "0", "-o", "o.npy"], "none.zarr"),
    (["cube.npy", "0", "-o", "group.zarr"], "group.zarr: is a folder; name a file"),
    (["cube.npy", "0", "-o", "empty.zarr"], "empty.zarr: is a folder; name a file"),
    (["cube.npy", "0", "-o", "file.zarr"], "file.zarr: is a file, and a Zarr store is a folder"),
    (["cube.zarr", "0", "-o", "cube.zarr"], "cube.zarr: is the input itself"),
    (["cube.zarr", "20", "-o", "o.npy"], "index 20 is out of bounds for axis 0 with size 20"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD)
def test_a_bad_argument_is_one_line_and_status_1(
    folder: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    zarr.create_group("group.zarr").create_array("inside", data=CUBE)
    Path("empty.zarr").mkdir()
    Path("file.zarr").write_text("")
    before = names(folder)
    assert main(["slice", *arguments]) == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("wgslice: error: ")
    assert message in line
    assert names(folder) == before


def test_stores_without_zarr_name_what_to_install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "zarr", None)
    assert main(["slice", "cube.zarr", "0", "-o", "o.npy"]) == 1
    message = "Zarr stores need the package zarr, the extra `zarr` of wgslice: pip install zarr"
    assert capsys.readouterr().err == f"wgslice: error: {message}\n"


@pytest.mark.parametrize("name", ["out.npy", "out.zarr"])
def test_the_previous_output_stays_if_a_stream_fails(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    assert main(["slice", "cube.npy", "::-1", "-o", name]) == 0
    before = read(folder / name)

    def failing(*_: Any, **__: Any) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr("wgslice.streaming.stream.write_tile", failing)
    assert main(["slice", "cube.npy", "::2", "-o", name]) == 1
    assert capsys.readouterr().err == "wgslice: error: the disk is full\n"
    check_same(read(folder / name), before)
    assert names(folder) == ["cube.npy", "cube.zarr", name]


def read(path: Path) -> Any:
    return np.load(path) if path.suffix == ".npy" else np.asarray(zarr.open_array(path, mode="r")[...])


@posix
@pytest.mark.parametrize("is_there", [False, True])
def test_a_store_left_between_two_renames_gets_its_name(tmp_path: Path, is_there: bool) -> None:
    left = tmp_path / ".wgslice-left"
    for folder in (left / "replaced", left / "out.zarr", *[tmp_path / "out.zarr"] * is_there):
        folder.mkdir(parents=True)
        (folder / "zarr.json").write_text(str(folder.relative_to(tmp_path)))
    (left / "lock").touch()
    remove_left_over(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["out.zarr"]
    kept = "out.zarr" if is_there else str(Path(".wgslice-left", "out.zarr"))
    assert (tmp_path / "out.zarr" / "zarr.json").read_text() == kept


@posix
def test_only_files_without_a_writer_are_left_over(tmp_path: Path) -> None:
    with written_whole(tmp_path / "out.npy") as part:
        part.write_text("whole")
        remove_left_over(tmp_path)
        assert part.read_text() == "whole"
    left = tmp_path / ".wgslice-left"
    left.mkdir()
    (left / "lock").touch()
    remove_left_over(tmp_path)
    assert names(tmp_path) == ["out.npy"]


# A process that has everything loaded forks one child after another, each of which makes a device of its own
# and slices; it prints the child's number, and, once it is asked, the child's status.
SERVER = """
import os, signal, sys
import rich, zarr, zarr.codecs, wgpu, wgpu.backends.wgpu_native
import wgslice as wg, wgslice.cli
signal.signal(signal.SIGINT, signal.default_int_handler)  # shells ignore it for background jobs
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        os._exit(wgslice.cli.main(line.split()))
    print(child, flush=True)
    sys.stdin.readline()
    print(os.waitpid(child, 0)[1], flush=True)
"""


@pytest.fixture
def server(folder: Path) -> Iterator[Any]:
    running = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", SERVER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    with running:
        yield running
        assert running.stdin is not None
        running.stdin.close()


def begin(server: Any, command: str) -> int:
    server.stdin.write(command + "\n")
    server.stdin.flush()
    return int(server.stdout.readline())


def status(server: Any) -> int:
    """The status of the child; only then can another process get its number."""
    server.stdin.write("\n")
    server.stdin.flush()
    return int(server.stdout.readline())


@pytest.mark.slow
@posix
@on_one_adapter
@pytest.mark.parametrize("name", ["out.npy", "out.zarr"])
def test_outputs_of_killed_processes_are_complete_or_absent(
    device: wg.Device, folder: Path, server: Any, name: str
) -> None:
    """Killed at random moments of a run; the next run removes leftovers."""
    large = numbered((600, 40, 60))
    np.save("large.npy", large)
    expected = large[::-1, :, ::2].copy()
    chunks = " --chunks 30,40,30" if name == "out.zarr" else ""
    command = f"slice large.npy ::-1,:,::2 -o {name} --limit 1MiB{chunks}"
    begun = time.monotonic()
    begin(server, command)
    assert status(server) == 0, server.stderr.read()
    seconds = time.monotonic() - begun
    Path(name).rename(f"first-{name}")
    moments = random.Random(7)
    killed = 0
    for _ in range(4):
        child = begin(server, command)
        time.sleep(moments.uniform(0.1, 1) * seconds)
        os.kill(child, signal.SIGKILL)
        killed += status(server) == signal.SIGKILL
        if Path(name).exists():
            check_same(read(Path(name)), expected)
        assert len([left for left in names(folder) if left.startswith(".wgslice-")]) <= 1
    assert killed
    begin(server, command)
    assert status(server) == 0
    check_same(read(Path(name)), expected)
    assert not [left for left in names(folder) if left.startswith(".wgslice-")]


@pytest.mark.slow
@posix
@on_one_adapter
def test_an_interrupt_leaves_nothing_and_is_one_line(device: wg.Device, folder: Path, server: Any) -> None:
    """Interrupted while it writes, with a small limit so that this takes a while."""
    np.save("large.npy", numbered((1000, 100, 100)))
    child = begin(server, "slice large.npy ::-1,:,::2 -o out.npy --limit 64KiB")
    while not [*folder.glob(".wgslice-*/out.npy")]:  # made after the device, of which wgpu loses interrupts
        time.sleep(0.01)
    os.kill(child, signal.SIGINT)
    assert os.waitstatus_to_exitcode(status(server)) == 130
    server.stdin.close()
    assert server.stderr.read() == "wgslice: interrupted\n"
    assert names(folder) == ["cube.npy", "cube.zarr", "large.npy"]


# Streams windows of a sparse file of 6 GiB, and prints for each the peak memory, and the pages of the file
# that the system has read over the pages of the window.
LARGE = """
import ctypes, json, mmap, os, resource, sys
import numpy as np, wgslice as wg

path, shape = sys.argv[1], (1536, 1024, 1024)
array = np.memmap(path, np.float32, "r", shape=shape)
file = array._mmap
wg.stream(np.zeros((300, 300), np.float32), np.s_[::-1, ::2])  # what comes once: a device, a pipeline
libc = ctypes.CDLL(None, use_errno=True)


def resident():
    found = np.zeros(len(file) // mmap.PAGESIZE, np.uint8)
    begin = ctypes.c_void_p(np.frombuffer(file, np.uint8).ctypes.data)
    assert libc.mincore(begin, ctypes.c_size_t(len(file)), found.ctypes.data_as(ctypes.c_void_p)) == 0
    return int((found & 1).sum())


def rss():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def pages(key):
    items, rows, columns = (np.arange(size)[part] for size, part in zip(shape, key))
    of_row = np.unique(columns * 4 // mmap.PAGESIZE).size
    return items.size * rows.size * of_row


base = rss()
for text in sys.argv[2:]:
    key = eval(f"np.s_[{text}]")
    with open(path, "rb") as opened:
        os.posix_fadvise(opened.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    before = resident()
    out = np.lib.format.open_memmap(path + ".npy", mode="w+", dtype=array.dtype, shape=array[key].shape)
    wg.stream(array, key, out, limit="256 MiB")
    found = {"read": (resident() - before) / pages(key), "memory": rss() - base}
    places = np.random.default_rng(7).integers(0, out.shape, (2000, 3))
    ends = np.array(np.meshgrid(*[[0, size - 1] for size in out.shape])).reshape(3, -1).T
    written = np.flatnonzero(np.frombuffer(out, np.uint32))
    places = np.concatenate([places, ends, np.stack(np.unravel_index(written, out.shape), axis=1)])
    found["right"] = all(out[tuple(place)] == array[key][tuple(place)] for place in places)
    found["written"] = written.size
    print(json.dumps(found), flush=True)
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "posix_fadvise"), reason="only some systems say what they have read")
@pytest.mark.xdist_group("memory")
@on_one_adapter
def test_a_file_of_6_gib_in_256_mib(device: wg.Device, tmp_path: Path) -> None:
    """Negative and large steps, and a crop; numbers at the corners of each window and at random places."""
    path = tmp_path / "sparse.bin"
    shape, keys = (1536, 1024, 1024), ["::-16, :, :", "::5, ::-37, ::2", "1000:800:-1, 400:500, 1000:9:-3"]
    with path.open("wb") as file:
        file.truncate(6 * 2**30)
    array = np.memmap(path, np.float32, "r+", shape=shape)
    rng = np.random.default_rng(3)
    for text in keys:
        window = array[eval(f"np.s_[{text}]")]
        for place in rng.integers(0, window.shape, (500, 3)):
            window[tuple(place)] = rng.random() + 1
        for number in range(8):
            corner = tuple((size - 1) * (number >> axis & 1) for axis, size in enumerate(window.shape))
            window[corner] = number + 3
    array.flush()
    del array, window
    done = run_python(LARGE, str(path), *keys)
    assert done.returncode == 0, done.stderr
    for line in done.stdout.splitlines():
        found = json.loads(line)
        assert found["right"]
        assert found["written"] >= 500
        assert found["memory"] < 700 * 2**20
        assert found["read"] <= 1.3
    assert len(done.stdout.splitlines()) == len(keys)

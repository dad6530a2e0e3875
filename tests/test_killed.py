"""A process that is killed at any of its calls of the file system leaves each file whole or absent."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from helpers import ADAPTERS, MEASURED

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="processes are not forked there")

# Forks children that have all modules loaded, and kills each before one more call of the file system, counted
# in all its threads from the first folder that it makes, until one ends by itself. Prints after each child
# what is at the target.
KILLING = """
import json, os, re, signal, sys, threading
from pathlib import Path

OWNERS = ("posix", "_io", "fcntl", "mmap", "numpy._core._multiarray_umath", "numpy.core._multiarray_umath")
HARMLESS = re.compile(
    "read.*|.*stat|scandir|is_dir|.*path.*|seek|tell|fileno|get.*|cpu.*|urandom|madvise|sched_yield"
)

def kill_at(number):
    counted, begun = iter(range(number - 1)), []

    def before(frame, event, argument):
        if event != "c_call":
            return
        name, owner = argument.__name__, argument.__self__
        module = argument.__module__ or type(owner).__module__
        if module in OWNERS and not HARMLESS.fullmatch(name) and owner is not sys.stderr:
            if next(counted, None) is None:
                os.kill(os.getpid(), signal.SIGKILL)

    def begin_counting(event, _):
        if event == "os.mkdir" and not begun:
            begun.append(event)
            threading.setprofile(before)
            sys.setprofile(before)

    sys.addaudithook(begin_counting)

def after(number):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            kill_at(number)
            write()
            sys.setprofile(None)
            status = 0
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1]

for number in range(1, 10_000, every):
    if begin is not None:
        begin()
    status = after(number)
    found = content() if target.exists() else None
    left = [path for path in folder.rglob(".wgslice-*/*") if path.name != "locking"]
    print(json.dumps([status, found, len(left)]), flush=True)
    if status != 9:  # not killed
        break
"""

FILE = """
from pathlib import Path
from wgslice.whole_files import written_whole
folder = Path(sys.argv[1]); target = folder / "out.json"
def write():
    with written_whole(target) as part:
        with part.open("w") as file:
            for line in ("new ", "content"):
                file.write(line)
                file.flush()
def content():
    return target.read_text()
def begin():
    target.write_text("old content")
"""
FOLDER = """
import shutil
from pathlib import Path
from wgslice.whole_files import written_whole
folder = Path(sys.argv[1]); target = folder / "out.zarr"
def write():
    with written_whole(target) as part:
        part.mkdir()
        for name in ("first", "second"):
            with (part / name).open("w") as file:
                file.write(name)
def content():
    return " ".join(sorted(path.name + path.read_text() for path in target.iterdir()))
begin = None
"""
# A folder cannot be replaced at once: a process that is killed in between leaves both to the next one.
REPLACED = f"""{FOLDER}
def begin():
    if target.exists():
        shutil.rmtree(target)
    elif list(folder.glob(".wgslice-*/replaced")):
        with written_whole(folder / "another") as part:
            part.touch()
        assert content() == "firstfirst secondsecond"
        shutil.rmtree(target)
    target.mkdir()
    (target / "old").write_text("")
"""
COMMAND = """
import zarr, zarr.codecs, rich, PIL.Image, numpy as np, wgpu.backends.wgpu_native
from pathlib import Path
import wgslice.cli
folder = Path(sys.argv[1]); target = folder / f"out{sys.argv[2]}"
array = np.arange(40 * 30, dtype=np.uint8).reshape(40, 30)
np.save(folder.parent / "in.npy", array)
def write():
    command = ["slice", str(folder.parent / "in.npy"), "::-1, ::2", "-o", str(target)]
    command += ["--adapter", sys.argv[3]]
    if target.suffix == ".zarr":
        command += ["--chunks", "20,8"]
    assert not wgslice.cli.main(command)
def content():
    if target.suffix == ".zarr":
        found = zarr.open_array(target, mode="r")[...]
    elif target.suffix == ".npy":
        found = np.load(target)
    else:
        found = np.asarray(PIL.Image.open(target))
    return "new" if np.array_equal(found, array[::-1, ::2]) else "wrong"
begin = None
"""
SAVING = """
import io, os, wgpu.backends.wgpu_native, zarr, rich
from contextlib import redirect_stdout
from pathlib import Path
import wgslice.cli
folder = Path(sys.argv[1]); target, expected = folder / "program", folder.parent / "expected"
def save(path):
    with redirect_stdout(io.StringIO()):
        assert not wgslice.cli.main(["export", "40,30", "uint8", "::-1, ::2", "-o", str(path)])
def write():
    save(target)
def files(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}
def content():
    return "new" if files(target) == files(expected) else "wrong"
begin = None
if os.fork() == 0:  # the parent must not use the GPU
    save(expected)
    os._exit(0)
os.wait()
"""
TUNING = """
import json, os, wgpu.backends.wgpu_native
from pathlib import Path
import wgslice as wg
import wgslice.calibration.tune as tune
folder = Path(sys.argv[1])
os.environ["XDG_CACHE_HOME"] = str(folder)
tune.measure_constants = lambda device, report: json.loads(sys.argv[2])
tune.measure_factors = lambda device, constants, report: {}
target = folder / "wgslice" / "costs"
def write():
    wg.tune(sys.argv[3])
def content():
    tuned = json.loads(sys.argv[2])
    found = [json.loads(path.read_text())["constants"] for path in target.iterdir() if path.suffix == ".json"]
    return ["new" if each == tuned else "wrong" for each in found] or None
begin = None
"""


# All calls of the file system, or some of them: of a command that makes some hundred.
CALLS = pytest.mark.parametrize("every", [pytest.param(1, marks=pytest.mark.deep), 19])


def killed(program: str, folder: Path, *arguments: str, every: int = 1) -> list[tuple[int, object, int]]:
    """The status of each child, what was at the target after it, and the number of files left beside it."""
    folder.mkdir()
    script = f"import sys\n{program}\nevery = {every}\n{KILLING}"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(folder), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )
    outcomes = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert outcomes, done.stderr
    assert outcomes[-1][0] == 0, done.stderr
    return outcomes


def check(outcomes: list[tuple[int, object, int]], before: object, new: object, *, least: int = 8) -> None:
    """Each child but the last was killed, and found old or new content; the last left no other file."""
    states = [found for _, found, _ in outcomes]
    assert {status for status, _, _ in outcomes[:-1]} == {9}
    assert all(found in (before, None, new) for found in states), states
    assert states[-1] == new
    assert outcomes[-1][2] == 0
    assert len(outcomes) > least


def test_a_killed_process_leaves_a_file_as_before_or_new(tmp_path: Path) -> None:
    outcomes = killed(FILE, tmp_path / "out")
    check(outcomes, "old content", "new content")
    assert None not in [found for _, found, _ in outcomes]  # a file is replaced at once


def test_a_killed_process_leaves_a_folder_whole_or_absent(tmp_path: Path) -> None:
    check(killed(FOLDER, tmp_path / "out"), None, "firstfirst secondsecond")


def test_a_killed_process_replaces_a_folder_by_a_whole_one(tmp_path: Path) -> None:
    outcomes = killed(REPLACED, tmp_path / "out")
    check(outcomes, "old", "firstfirst secondsecond")
    assert None in [found for _, found, _ in outcomes]


@pytest.mark.slow
@CALLS
def test_a_killed_saving_leaves_its_program_whole_or_absent(tmp_path: Path, every: int) -> None:
    check(killed(SAVING, tmp_path / "out", every=every), None, "new", least=1)


@pytest.mark.slow
@CALLS
def test_a_killed_tuning_leaves_its_record_whole_or_absent(tmp_path: Path, every: int) -> None:
    outcomes = killed(TUNING, tmp_path / "out", json.dumps(MEASURED), ADAPTERS[0], every=every)
    check(outcomes, None, ["new"], least=1)


@pytest.mark.slow
@CALLS
@pytest.mark.parametrize("suffix", [".npy", ".zarr", ".png"])
def test_a_killed_command_leaves_its_output_whole_or_absent(tmp_path: Path, suffix: str, every: int) -> None:
    check(killed(COMMAND, tmp_path / "out", suffix, ADAPTERS[0], every=every), None, "new", least=1)

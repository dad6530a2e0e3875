"""Files of measured constants: found, kept, refused and forgotten, whoever else writes them."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from helpers import MEASURED

import wgslice as wg
from wgslice.calibration.measure import COMPARED
from wgslice.calibration.store import (
    Machine,
    Record,
    find,
    folder,
    forget,
    keep,
    name_in,
    processor,
    read_record,
)

ADAPTER = wg.Adapter("Voodoo (tm) 5", "Vulkan", "CPU", "Mesa 99")
MACHINE = Machine.of(ADAPTER)
DATE = datetime(2026, 2, 3, 4, 5, 6, tzinfo=UTC)
RECORD = Record(MACHINE, MEASURED, DATE, 12.34)


def text_of(content: Any) -> bytes:
    return json.dumps(content).encode()


def found(path: Path) -> Record | None:
    """What is found of MACHINE, in a file."""
    record = find(MACHINE)
    assert record is None or record.path == path
    return record


def changed(path: str, value: Any = None) -> bytes:
    """A record's text with one field set, or without it."""
    content = json.loads(json.dumps(RECORD.as_json()))
    *outer, last = path.split("/")
    inner: Any = content
    for name in outer:
        inner = inner[name]
    if value is None:
        del inner[last]
    else:
        inner[last] = value
    return text_of(content)


ILL_FORMED = "a field is missing or of another type: "
DEFECTS = {
    "empty": (b"", "Expecting value: "),
    "binary": (b"\xff\xfe\x00\xd8", ""),
    "prose": (b"hello", "Expecting value: "),
    "a list": (b"[1, 2]", ILL_FORMED),
    "brackets": (b"[" * 200_000, ILL_FORMED),
    "nothing in it": (b"{}", "its format is None, not 'wgslice constants 1'"),
    "an old format": (
        changed("format", "wgslice costs 1"),
        "its format is 'wgslice costs 1', not 'wgslice constants 1'",
    ),
    "another wgslice": (changed("wgslice", "9.9"), "its wgslice is '9.9', not"),
    "no date": (changed("date"), ILL_FORMED),
    "a bad date": (changed("date", "yesterday"), "Invalid isoformat string: 'yesterday'"),
    "a date in numbers": (changed("date", 2026), ILL_FORMED),
    "no machine": (changed("machine"), "its adapter is None, not 'Voodoo (tm) 5'"),
    "no driver": (changed("machine/driver"), "its driver is None, not "),
    "a machine's number": (changed("machine", 3), ILL_FORMED),
    "cores in words": (changed("machine/cores", "two"), "its cores is 'two', not "),
    "no constants": (changed("constants"), ILL_FORMED),
    "a list of constants": (changed("constants", [1]), ILL_FORMED),
    "a constant in words": (changed("constants/copy_s", "fast"), "could not convert string to float: 'fast'"),
    "a constant beyond counting": (changed("constants/copy_s", 10**400), ILL_FORMED),
    "one constant less": (changed("constants/copy_s"), "its constants are submission_s, dispatch_s, "),
    "one constant more": (changed("constants/luck", 1.0), "its constants are submission_s, dispatch_s, "),
    "negative": (changed("constants/copy_s", -1.0), "constants.copy_s = -1.0 is not positive and finite"),
    "zero": (changed("constants/dispatch_s", 0), "constants.dispatch_s = 0.0 is not positive and finite"),
    "NaN": (changed("constants/copy_s", float("nan")), "constants.copy_s = nan is not positive"),
    "infinite": (changed("constants/copy_s", float("inf")), "constants.copy_s = inf is not positive"),
    "another adapter": (changed("machine/adapter", "GeForce"), "its adapter is 'GeForce', not 'Voodoo"),
    "another backend": (changed("machine/backend", "OpenGL"), "its backend is 'OpenGL', not 'Vulkan'"),
    "another driver": (changed("machine/driver", "Mesa 98"), "its driver is 'Mesa 98', not 'Mesa 99'"),
    "another processor": (changed("machine/processor", "Z80"), "its processor is 'Z80', not "),
    "more cores": (changed("machine/cores", 4000), "its cores is 4000, not "),
}


@pytest.mark.parametrize("name", DEFECTS)
def test_a_bad_file_is_reported_once_and_not_used(
    kept: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    text, reason = DEFECTS[name]
    path = keep(RECORD)
    assert found(path) == RECORD
    path.write_bytes(text)
    assert find(MACHINE) is None
    assert find(MACHINE) is None
    (line,) = capsys.readouterr().err.splitlines()
    said = f"wgslice: {path} is ignored, shipped figures are used: "
    assert line.startswith(f"{said}it is no record of this machine and version: {reason}")
    assert line.endswith("; `wgslice tune` measures again, `wgslice tune --forget` removes the file")


def test_no_part_of_a_file_is_taken_for_all() -> None:
    text = text_of(RECORD.as_json())
    assert read_record(text, MACHINE) == RECORD
    for stop in range(len(text)):
        with pytest.raises(ValueError, match=r"\(char \d+\)"):
            read_record(text[:stop], MACHINE)


def test_each_machine_and_kind_of_record_has_a_file(kept: Path) -> None:
    fields = {"adapter": "GeForce", "backend": "OpenGL", "driver": "Mesa 98", "processor": "Z80"}
    machines = [MACHINE, replace(MACHINE, cores=4000)]
    machines += [replace(MACHINE, **{name: value}) for name, value in fields.items()]  # type: ignore[arg-type]  # no cores
    compared = {name: MEASURED[name] for name in COMPARED}
    paths = {
        keep(Record(machine, constants, DATE, 1))
        for machine in machines
        for constants in (MEASURED, compared)
    }
    assert len(paths) == 2 * len(machines) == len(list(kept.iterdir()))
    assert {path.parent for path in paths} == {kept}
    assert find(MACHINE, compared=True) == Record(MACHINE, compared, DATE, 1)
    long = replace(MACHINE, adapter="a/b\\c:*?\n" * 100)
    assert keep(replace(RECORD, machine=long)).parent == kept


def test_a_killed_writer_leaves_the_file_before(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ended between writing and renaming; the next one writes as if nothing had been."""
    path = keep(RECORD)

    def killed(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(Path, "replace", killed)
        with pytest.raises(KeyboardInterrupt):
            keep(replace(RECORD, seconds=1))
    assert found(path) == RECORD
    newer = replace(RECORD, seconds=2)
    assert keep(newer) == path
    assert found(path) == newer
    assert forget() == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="files are not locked there: nothing tells what is left")
def test_the_next_writer_removes_what_a_killed_one_left(kept: Path) -> None:
    """Of a process that writes still nothing is removed."""
    writer = """
import sys
from pathlib import Path
from wgslice.whole_files import written_whole
with written_whole(Path(sys.argv[1])) as part:
    part.write_text("half a rec")
    print("writing", flush=True)
    sys.stdin.readline()
"""
    path = keep(RECORD)
    command = [sys.executable, "-c", writer, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "writing\n"
        keep(RECORD)
        assert len(list(kept.iterdir())) == 2
        running.kill()
    assert found(path) == RECORD
    newer = replace(RECORD, seconds=2)
    assert keep(newer) == path
    assert found(path) == newer
    assert list(kept.iterdir()) == [path]


def test_concurrent_writers_leave_one_whole_record(kept: Path) -> None:
    records = [replace(RECORD, seconds=float(number)) for number in range(8)]
    seen: list[Record | None] = []
    path = kept / MACHINE.file_name(compared=False)

    def write(record: Record) -> None:
        for _ in range(20):
            keep(record)
            seen.append(found(path))

    threads = [threading.Thread(target=write, args=[record]) for record in records]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(record in records for record in seen)
    assert len(seen) == 160
    assert list(kept.iterdir()) == [path]


def test_an_unreadable_file_is_reported(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = kept / MACHINE.file_name(compared=False)
    path.mkdir(parents=True)
    assert find(MACHINE) is None
    assert f"{path} is ignored, shipped figures are used: it cannot be read: " in capsys.readouterr().err


def test_a_missing_cache_folder_is_silent(
    kept: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without the library, a home, or with a file in the folder's place."""

    def homeless(*_: Any, **__: Any) -> Path:
        raise RuntimeError("could not determine the home directory")

    kept.parent.parent.mkdir(exist_ok=True)
    kept.parent.write_text("no folder")
    assert find(MACHINE) is find(MACHINE, compared=True) is None
    with monkeypatch.context() as patched:
        patched.setattr("platformdirs.user_cache_path", homeless)
        assert find(MACHINE) is find(MACHINE, compared=True) is None
        with pytest.raises(OSError, match="no cache folder to keep constants in: could not determine"):
            folder()
    monkeypatch.setitem(sys.modules, "platformdirs", None)
    assert find(MACHINE) is find(MACHINE, compared=True) is None
    with pytest.raises(OSError, match="pip install platformdirs"):
        folder()
    assert capsys.readouterr().err == ""


def test_the_environment_names_a_file_or_none(
    kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path, other = keep(RECORD), replace(RECORD, seconds=1)
    named = tmp_path / "named.json"
    named.write_bytes(text_of(other.as_json()))
    for value, file, expected in ((str(named), named, other), ("", path, RECORD), ("shipped", path, None)):
        monkeypatch.setenv("WGSLICE_PROFILE", value)
        assert found(file) == expected
    assert capsys.readouterr().err == ""
    monkeypatch.setenv("WGSLICE_PROFILE", "none such")
    assert find(MACHINE) is None
    assert capsys.readouterr().err == (
        "wgslice: none such is ignored, shipped figures are used: "
        "it cannot be read: No such file or directory; correct or unset WGSLICE_PROFILE\n"
    )


def test_forgotten_records_are_gone(kept: Path) -> None:
    other = replace(RECORD, machine=replace(MACHINE, driver="Mesa 98"))
    compared = replace(RECORD, constants=dict.fromkeys(COMPARED, 1.0))
    paths = [keep(RECORD), keep(compared), keep(other)]
    (kept / "notes.txt").write_text("not ours")
    assert forget(other.machine) == paths[2:]
    assert find(MACHINE) is not None
    assert forget() == sorted(paths[:2])
    assert find(MACHINE) is None
    assert forget() == []
    assert [path.name for path in kept.iterdir()] == ["notes.txt"]


def test_processors_are_named_as_their_systems_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    information = tmp_path / "cpuinfo"
    monkeypatch.setattr("platform.machine", lambda: "aarch64")
    for text, name in (
        ("processor\t: 0\nmodel name\t: AMD EPYC\n\nprocessor\t: 1\nmodel name\t: B\n", "AMD EPYC"),
        (
            "CPU implementer\t: 0x41\nCPU part\t: 0xd0c\n\nprocessor\t: 1\nCPU part\t: 0xd0d\n",
            "aarch64, implementer 0x41, part 0xd0c",
        ),
        ("isa : rv64\n", ""),
    ):
        information.write_text(text)
        assert name_in(information) == name
    assert processor()

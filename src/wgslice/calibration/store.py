"""Keep measured constants in files of the user's cache folder, one per machine and kind of measurement."""

from __future__ import annotations

import json
import os
import re
import sys
from dataclasses import asdict, dataclass
from datetime import datetime
from hashlib import sha256
from math import isfinite
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from wgslice.calibration.constants import COMPARED, CONSTANTS
from wgslice.calibration.processor import processor
from wgslice.gpu.adapter import Adapter
from wgslice.version import VERSION
from wgslice.whole_files import written_whole

__all__ = ["Machine", "NoFolderError", "Record", "find", "find_compared", "folder", "forget", "keep", "say"]

VARIABLE = "WGSLICE_PROFILE"  # names a file to read instead of the cache folder's, or is SHIPPED
SHIPPED = "shipped"

FORMAT = "wgslice constants 1"
MOST_CHARACTERS = 80  # of a file's name, before the hash

said: set[Path] = set()  # files whose defect was printed in this process


class NoFolderError(RuntimeError):
    """There is no cache folder: no package that finds it, or no home."""


class RecordError(ValueError):
    """A file is no record of this machine; the message says why."""


@dataclass(frozen=True)
class Machine:
    """An adapter, its driver and the processor: constants differ with each of these.

    A software adapter is as fast as the processor, and a GPU's commands are recorded by it.
    """

    adapter: str
    backend: str
    driver: str
    processor: str
    cores: int

    @classmethod
    def of(cls, adapter: Adapter) -> Machine:
        """Return the machine that this process runs on, with an adapter of it."""
        return cls(adapter.name, adapter.backend, adapter.driver, processor(), os.cpu_count() or 1)

    @property
    def file_stem(self) -> str:
        """The adapter's name and a hash of everything."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.adapter} via {self.backend}".lower()).strip("-")
        return f"{words[:MOST_CHARACTERS]}-{sha256(repr(self).encode()).hexdigest()[:12]}"

    def file_name(self, *, compared: bool) -> str:
        """The name of the file that keeps a comparison, or else all constants."""
        return f"{self.file_stem}{'-compared' * compared}.json"


@dataclass(frozen=True)
class Record:
    """Constants, the machine they were measured on, when, and how long that took."""

    machine: Machine
    constants: dict[str, float]  # by the names of CONSTANTS, or of COMPARED
    date: datetime
    seconds: float

    def as_json(self) -> dict[str, Any]:
        """Return what `read_record` takes back as text; units are in the names."""
        return {
            "format": FORMAT,
            "wgslice": VERSION,
            "date": self.date.isoformat(timespec="seconds"),
            "measured_in_s": self.seconds,
            "machine": asdict(self.machine),
            "constants": self.constants,
        }


def read_record(text: bytes, machine: Machine) -> Record:
    """Parse a file's bytes; raises RecordError unless they are a record of this machine and version."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise RecordError(f"it is no JSON: {error}" if text.strip() else "it is empty") from None
    if not isinstance(content, dict):
        raise RecordError("it holds no JSON object")
    for name, wanted in (("format", FORMAT), ("wgslice", VERSION)):
        if content.get(name) != wanted:
            found = shortened(content.get(name))
            raise RecordError(f"it is from another version: its {name} is {found}, not {wanted!r}")
    try:
        measured = Machine(**content["machine"])
        date, seconds = datetime.fromisoformat(content["date"]), float(content["measured_in_s"])
        constants = {name: float(value) for name, value in content["constants"].items()}
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise RecordError(f"a field is missing or of another type: {shortened(str(error))}") from None
    record = Record(measured, constants, date, seconds)
    check_record(record, machine)
    return record


def check_record(record: Record, machine: Machine) -> None:
    """Raise RecordError unless a record is of this machine, and its constants are possible."""
    for name, here in vars(machine).items():
        there = getattr(record.machine, name)
        if there != here:
            raise RecordError(f"it was measured with {name} {shortened(there)}, and this is {here!r}")
    constants = record.constants
    if set(constants) not in (set(CONSTANTS), set(COMPARED)):
        raise RecordError(f"its constants are {shortened(sorted(constants))}, not {', '.join(CONSTANTS)}")
    for name, value in constants.items():
        if not (isfinite(value) and value > 0):
            raise RecordError(f"constants.{name} = {value} is not positive and finite")


def folder() -> Path:
    """Return the folder of all records, in the user's cache folder as the platform has it."""
    try:
        import platformdirs
    except ImportError:
        raise NoFolderError(
            "to keep measured constants needs the package platformdirs, of the extra `tune` of wgslice: "
            "pip install platformdirs"
        ) from None
    try:
        return platformdirs.user_cache_path("wgslice", appauthor=False) / "costs"
    except RuntimeError as error:  # neither a home nor a variable that names one
        raise NoFolderError(f"there is no cache folder to keep constants in: {error}") from None


def find(machine: Machine) -> tuple[Record, Path] | None:
    """Return what `tune` measured on this machine; prints once per process why a file is not used."""
    named = os.environ.get(VARIABLE)
    if named == SHIPPED:
        return None
    if named:
        path, remedy = Path(named), f"correct or unset {VARIABLE}"
    else:
        remedy = "`wgslice tune` measures again, `wgslice tune --forget` removes the file"
        try:
            path = folder() / machine.file_name(compared=False)
            if not path.exists():
                return None
        except (NoFolderError, OSError):  # a folder that this user may not read holds nothing of theirs
            return None
    try:
        return read_record(path.read_bytes(), machine), path
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
    except RecordError as error:
        reason = str(error)
    if path not in said:
        said.add(path)
        say(f"{path} is ignored, shipped figures are used: {reason}; {remedy}")
    return None


def find_compared(machine: Machine) -> tuple[Record, Path] | None:
    """Return the comparison made on this machine; None, without a message, where a new one is due."""
    try:
        path = folder() / machine.file_name(compared=True)
        return read_record(path.read_bytes(), machine), path
    except (NoFolderError, OSError, RecordError):
        return None


def say(message: str) -> None:
    """Print one line on stderr."""
    print(f"wgslice: {' '.join(message.split())}", file=sys.stderr)


def keep(record: Record) -> Path:
    """Write a record where devices look for it, atomically; raises NoFolderError or OSError."""
    path = folder() / record.machine.file_name(compared=set(record.constants) == set(COMPARED))
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(json.dumps(record.as_json(), indent=1) + "\n", "utf-8")
    return path


def forget(machine: Machine | None = None) -> list[Path]:
    """Remove the records of a machine, or all; returns the files that were there."""
    removed = sorted(folder().glob("*.json" if machine is None else f"{machine.file_stem}*.json"))
    for path in removed:
        path.unlink()
    return removed

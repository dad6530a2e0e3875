"""Where records are: a file for each subject in the user's cache folder, or one that is named instead."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from wgslice.kept_costs.record import Record, RecordError, read_record
from wgslice.kept_costs.subject import Subject

__all__ = ["SHIPPED", "VARIABLE", "Kept", "NoFolderError", "find", "folder", "forget", "keep", "say"]

VARIABLE = "WGSLICE_PROFILE"
SHIPPED = "shipped"  # its value for devices that shall not look for records

said: set[Path] = set()  # files of which it was said what is wrong


class Kept(NamedTuple):
    """A record, and where it is."""

    record: Record
    path: Path


class NoFolderError(RuntimeError):
    """There is no place to keep records in, for a reason that is not a file's."""


def folder() -> Path:
    """The folder of all records, in the user's cache folder, as the platform has it."""
    try:
        import platformdirs
    except ImportError:
        raise NoFolderError(
            "to keep figures needs the package platformdirs, of the extra `tune` of wgslice: "
            "pip install platformdirs"
        ) from None
    try:
        return platformdirs.user_cache_path("wgslice", appauthor=False) / "costs"
    except RuntimeError as error:  # neither a home nor a variable that names one
        raise NoFolderError(f"there is no cache folder to keep figures in: {error}") from None


def find(adapter: str, backend: str, driver: str) -> Kept | None:
    """What was measured of an adapter on this machine; a file that is not used is told of on stderr."""
    named = os.environ.get(VARIABLE)
    if named == SHIPPED:
        return None
    if named:
        return read(Path(named), Subject.here(adapter, backend, driver), f"correct or unset {VARIABLE}")
    try:
        records = folder()
        if not records.exists():
            return None
        subject = Subject.here(adapter, backend, driver)
        path = records / subject.file_name
        if not path.exists():
            return None
    except (NoFolderError, OSError):  # a folder that may not be looked into holds nothing of this user's
        return None
    return read(path, subject, "`wgslice tune` measures anew, `wgslice tune --forget` removes the file")


def read(path: Path, subject: Subject, remedy: str) -> Kept | None:
    """A file's record, unless something is wrong with it, which is said once a process."""
    try:
        record = read_record(path.read_bytes())
        check_subject(record.subject, subject)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
    except RecordError as error:
        reason = str(error)
    else:
        return Kept(record, path)
    if path not in said:
        said.add(path)
        say(f"{path} is ignored, shipped figures are used: {reason}; {remedy}")
    return None


def check_subject(measured: Subject, subject: Subject) -> None:
    """Refuse a record of something else."""
    for name, here in vars(subject).items():
        there = getattr(measured, name)
        if there != here:
            raise RecordError(f"it was measured with {name} {there!r}, and this is {here!r}")


def say(message: str) -> None:
    """One line on stderr."""
    print(f"wgslice: {' '.join(message.split())}", file=sys.stderr)


def keep(record: Record) -> Path:
    """Write a record where devices look for it; whole, or not at all."""
    path = folder() / record.subject.file_name
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".wgslice-", dir=path.parent) as beside:
        part = Path(beside) / path.name
        part.write_text(json.dumps(record.as_json(), indent=1) + "\n", "utf-8")
        part.replace(path)
    return path


def forget(subject: Subject | None = None) -> list[Path]:
    """Remove the record of a subject, or all; those that were there."""
    paths = folder().glob("*.json" if subject is None else subject.file_name)
    removed = sorted(paths)
    for path in removed:
        path.unlink()
    return removed

"""Files and folders that appear under their name when they are whole, and not before."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PREFIX = ".wgslice-"  # of a folder beside the target, with the part and a file that is locked meanwhile
LOCK, REPLACED = "lock", "replaced"


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """A path to write to, which becomes `target` at the end; what was there stays if that is not reached.

    What a process that was killed left beside the target is removed, or given its name where it is whole; it
    stays on Windows, where no lock tells it from what is being written.
    """
    remove_left_over(target.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    try:
        with locked(folder):
            part = folder / target.name
            yield part
            if part.is_file():
                with part.open("rb+") as file:  # Windows flushes no file that is only read
                    os.fsync(file.fileno())
            if target.is_dir():  # a folder cannot take another's place
                target.rename(folder / REPLACED)
            part.replace(target)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; it is there when it is held, and the system lets it go with the process."""
    with (folder / f"{LOCK}ing").open("w") as file:
        lock(file)
        with suppress(OSError):  # Windows renames no file that is open
            Path(file.name).rename(folder / LOCK)
        yield


def lock(file: IO[str]) -> bool:
    """Lock a file, where the system can, unless another process has done so; whether that was possible."""
    try:
        import fcntl
    except ImportError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def remove_left_over(folder: Path) -> None:
    """Remove the folders of processes that are gone: no process holds their locks."""
    for left in folder.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), left.open() as file:
            if lock(file):
                if (left.parent / REPLACED).exists():  # what was there is moved aside: the part is whole
                    for part in left.parent.iterdir():
                        if part.name not in (LOCK, REPLACED) and not (folder / part.name).exists():
                            part.rename(folder / part.name)
                shutil.rmtree(left.parent, ignore_errors=True)

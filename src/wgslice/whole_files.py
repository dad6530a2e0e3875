"""Files and folders that appear under their name atomically, when they are complete."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO

PREFIX = ".wgslice-"  # of a sibling folder with the incomplete file and a locked file
LOCK, REPLACED = "lock", "replaced"


@contextmanager
def written_whole(target: Path) -> Iterator[Path]:
    """Yield a path to write to, which replaces `target` at the end; on an exception `target` is unchanged.

    Also removes leftovers of killed processes in the folder of `target`, and renames complete ones to their
    target; not on Windows, where no lock distinguishes them from files in progress.
    """
    remove_left_over(target.parent)
    folder = Path(tempfile.mkdtemp(prefix=PREFIX, dir=target.parent))
    try:
        with (folder / f"{LOCK}ing").open("w") as lock_file:  # released with the process
            lock(lock_file)
            with suppress(OSError):  # Windows cannot rename an open file
                Path(lock_file.name).rename(folder / LOCK)  # so that LOCK exists only locked
            part = folder / target.name
            yield part
            if part.is_file():
                with part.open("rb+") as file:  # Windows cannot flush a file opened for reading
                    os.fsync(file.fileno())
            if target.is_dir():  # a folder cannot be replaced atomically
                target.rename(folder / REPLACED)
            part.replace(target)
    finally:
        remove(folder)


def lock(file: IO[str]) -> bool:
    """Try to lock a file without waiting; return whether it succeeded."""
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
    """Remove the folders of dead processes, whose locks are free."""
    for left in folder.glob(f"{PREFIX}*/{LOCK}"):
        with suppress(OSError), left.open() as file:
            if lock(file):
                if (left.parent / REPLACED).exists():  # the target was moved: the part is complete
                    for part in left.parent.iterdir():
                        if part.name not in (LOCK, REPLACED) and not (folder / part.name).exists():
                            part.rename(folder / part.name)
                remove(left.parent)


def remove(folder: Path) -> None:
    """Remove a folder, its lock last, so that what a killed process leaves of it is found by its lock."""
    with suppress(OSError):
        for path in folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif path.name != LOCK:
                path.unlink()
    shutil.rmtree(folder, ignore_errors=True)

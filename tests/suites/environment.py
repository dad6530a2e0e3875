"""The virtual environment that suites run in."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from hashlib import sha256
from pathlib import Path

from suites.table import Suite

ROOT = Path(__file__).parents[2]
LOCK = ROOT / ".ci" / "lock.txt"
NEEDED = (3, 12)  # by Zarr's packages
TESTING = ("pytest", "pytest-xdist", "hypothesis")


def prepare(folder: Path, suites: Iterable[Suite]) -> Path:
    """Make the environment, install what suites need, and return its interpreter."""
    python = folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    if not python.exists():
        run(find_interpreter(), "-m", "venv", folder)
    stamp = folder / "installed.txt"
    packages = sorted({*TESTING, *(package for suite in suites for package in suite.packages)})
    lock = sha256(LOCK.read_bytes()).hexdigest()
    installed = set(stamp.read_text("utf-8").splitlines()) if stamp.exists() else set()
    if not {lock, *packages} <= installed:
        print(f"suites: installing {', '.join(packages)}", flush=True)
        options = ("--quiet", "--disable-pip-version-check", "--constraint", LOCK)
        run(python, "-m", "pip", "install", *options, "--editable", ROOT, *packages)
        kept = installed if lock in installed else set()
        stamp.write_text("\n".join(sorted({lock, *packages, *kept})), "utf-8")
    return python


def find_interpreter() -> str:
    """Return a Python that is new enough: this one, or the newest that is found."""
    if sys.version_info >= NEEDED:
        return sys.executable
    for candidate in candidates():
        if subprocess.run([candidate, "-c", ""], capture_output=True, check=False).returncode == 0:
            return candidate
    sys.exit(f"suites: Python {'.'.join(map(str, NEEDED))} or newer is needed; none was found")


def candidates() -> Iterator[str]:
    """Yield interpreters on the path, and those of pyenv, the newest version first."""
    for minor in range(14, NEEDED[1] - 1, -1):
        if found := shutil.which(f"python3.{minor}"):
            yield found
        yield from map(str, Path.home().glob(f".pyenv/versions/3.{minor}.*/bin/python"))


def run(*command: object) -> None:
    """Run a command, and end if it fails."""
    if subprocess.run([str(word) for word in command], check=False).returncode:
        sys.exit(f"suites: failed: {' '.join(str(word) for word in command)}")

"""Keep what `tune` measured in files of the user's cache folder, one per machine."""

from __future__ import annotations

import json
import os
import platform
import re
import sys
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import cache
from hashlib import sha256
from math import inf
from pathlib import Path
from reprlib import repr as shortened
from typing import Any

from wgslice.calibration.measure import CONSTANTS
from wgslice.gpu.adapter import Adapter
from wgslice.plans.profiles import CostClass
from wgslice.version import VERSION
from wgslice.whole_files import written_whole

VARIABLE = "WGSLICE_PROFILE"  # names a file to read instead of the cache folder's, or is SHIPPED
SHIPPED = "shipped"

FORMAT = "wgslice constants 2"
MAX_CHARACTERS = 80  # of a file's name, before the hash

said: set[Path] = set()  # files whose defect was printed in this process


@dataclass(frozen=True)
class Machine:
    """An adapter, its driver and the processor that records its commands: constants differ with each."""

    adapter: str
    backend: str
    driver: str
    processor: str
    cores: int

    @classmethod
    def of(cls, adapter: Adapter) -> Machine:
        """Return the machine that this process runs on, with an adapter of it."""
        name = adapter.name + " by Dawn" * (adapter.host == "dawn")  # which compiles other machine code
        return cls(name, adapter.backend, adapter.driver, processor(), os.cpu_count() or 1)

    @property
    def file_stem(self) -> str:
        """The adapter's name and a hash of everything."""
        words = re.sub(r"[^a-z0-9]+", "-", f"{self.adapter} via {self.backend}".lower()).strip("-")
        return f"{words[:MAX_CHARACTERS]}-{sha256(repr(self).encode()).hexdigest()[:12]}"

    def path(self, suffix: str = "") -> Path:
        """Return the file that keeps what `tune` measured, or another; raises OSError without a folder."""
        return folder() / f"{self.file_stem}{suffix}.json"


@cache
def processor() -> str:
    """The processor's name, as far as the system has it."""
    name = ""
    with suppress(OSError):  # such as of a file that may not be read
        if sys.platform == "win32":
            import winreg

            path = r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
            with winreg.OpenKey(winreg.HKEY_LOCAL_MACHINE, path) as key:
                name = str(winreg.QueryValueEx(key, "ProcessorNameString")[0])
        elif sys.platform == "darwin":
            import subprocess  # takes longer to import than all else here

            command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
            name = subprocess.run(command, capture_output=True, text=True, check=False).stdout
        else:
            name = name_in(Path("/proc/cpuinfo"))
    return name.strip() or platform.processor() or platform.machine()


def name_in(information: Path) -> str:
    """The first processor of /proc/cpuinfo: its name, or on ARM the numbers that stand for one."""
    with information.open(encoding="utf-8", errors="replace") as file:
        first, _, _ = file.read(2**12).partition("\n\n")  # of many cores each costs the system time to write
    fields = dict(re.findall(r"^(.*?)[ \t]*:[ \t]*(.*)$", first, re.MULTILINE))
    known = [name for name in ("implementer", "part") if f"CPU {name}" in fields]
    numbers = [f"{name} {fields[f'CPU {name}']}" for name in known]
    return fields.get("model name") or ", ".join([platform.machine(), *numbers] if numbers else [])


@dataclass(frozen=True)
class Record:
    """Constants, factors of cost classes, the machine they were measured on, when, and how long that took."""

    machine: Machine
    constants: dict[str, float]  # by the names of CONSTANTS
    date: datetime
    seconds: float
    path: Path | None = field(default=None, compare=False)  # the file that keeps it
    factors: dict[CostClass, float] = field(default_factory=dict)  # measured seconds over the shipped ones

    def as_json(self) -> dict[str, Any]:
        """Return what `read_record` takes back as text; units are in the names."""
        return {
            "format": FORMAT,
            "wgslice": VERSION,
            "date": self.date.isoformat(timespec="seconds"),
            "measured_in_s": self.seconds,
            "machine": asdict(self.machine),
            "constants": self.constants,
            "factors": {str(name): factor for name, factor in self.factors.items()},
        }


def read_record(text: bytes, machine: Machine) -> Record:
    """Parse a file's bytes; raises ValueError unless they are a record of this machine and version."""
    try:
        content = json.loads(text)
        found = content | content.get("machine", {})
        for name, wanted in {"format": FORMAT, "wgslice": VERSION, **asdict(machine)}.items():
            if found.get(name) != wanted:
                raise ValueError(f"its {name} is {shortened(found.get(name))}, not {wanted!r}")
        constants, factors = (
            {name: float(value) for name, value in content[part].items()} for part in ("constants", "factors")
        )
        if constants.keys() != CONSTANTS.keys():
            raise ValueError(f"its constants are {', '.join(constants)}, not {', '.join(CONSTANTS)}")
        for name, value in (constants | factors).items():
            if not 0 < value < inf:
                raise ValueError(f"{name} = {value} is not positive and finite")
        classes = {CostClass.parsed(name): factor for name, factor in factors.items()}
        date, seconds = datetime.fromisoformat(content["date"]), float(content["measured_in_s"])
        return Record(machine, constants, date, seconds, factors=classes)
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"a field is missing or of another type: {shortened(str(error))}") from None


def folder() -> Path:
    """Return the folder of all records, in the user's cache folder; raises OSError where there is none."""
    try:
        import platformdirs
    except ImportError:
        raise OSError(
            "to keep measured constants needs the package platformdirs, of the extra `tune` of wgslice: "
            "pip install platformdirs"
        ) from None
    try:
        return platformdirs.user_cache_path("wgslice", appauthor=False) / "costs"
    except RuntimeError as error:  # neither a home nor a variable that names one
        raise OSError(f"there is no cache folder to keep constants in: {error}") from None


def find(machine: Machine) -> Record | None:
    """Return what `tune` measured on this machine; prints once why a file is not used."""
    named = os.environ.get(VARIABLE)
    if named == SHIPPED:
        return None
    try:
        path = Path(named) if named else machine.path()
        if not named and not path.exists():
            return None
    except OSError:  # a folder that this user may not read holds nothing of theirs
        return None
    try:
        return replace(read_record(path.read_bytes(), machine), path=path)
    except OSError as error:
        reason = f"it cannot be read: {error.strerror}"
    except ValueError as error:
        reason = f"it is no record of this machine and version: {error}"
    if path not in said:
        said.add(path)
        measuring = "`wgslice tune` measures again, `wgslice tune --forget` removes the file"
        remedy = f"correct or unset {VARIABLE}" if named else measuring
        say(f"{path} is ignored, the shipped cost model is used: {reason}; {remedy}")
    return None


def say(message: str) -> None:
    """Print one line on stderr."""
    print(f"wgslice: {' '.join(message.split())}", file=sys.stderr)


def keep(record: Record) -> Path:
    """Write a record where devices read it, atomically; raises OSError where it cannot."""
    return write_json(record.machine.path(), record.as_json())


def write_json(path: Path, content: dict[str, Any]) -> Path:
    """Write a file atomically, with its folder; raises OSError where it cannot."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with written_whole(path) as part:
        part.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    return path


def forget(machine: Machine | None = None) -> list[Path]:
    """Remove the records of a machine, or all; returns the files that were there."""
    removed = sorted(folder().glob("*.json" if machine is None else f"{machine.file_stem}*.json"))
    for path in removed:
        path.unlink()
    return removed

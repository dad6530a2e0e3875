"""The processor of this machine, by the name that its system gives it."""

from __future__ import annotations

import platform
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

__all__ = ["processor"]

INFORMATION = Path("/proc/cpuinfo")  # of Linux


@cache
def processor() -> str:
    """The processor's name, or as much of it as the system tells."""
    name = ""
    with suppress(OSError):  # such as of a file that may not be read
        name = system_name()
    return name or platform.processor() or platform.machine()


def system_name() -> str:
    """What the system keeps of it where it says which model it is; nothing elsewhere."""
    if sys.platform == "win32":
        import winreg

        with winreg.OpenKey(
            winreg.HKEY_LOCAL_MACHINE, r"HARDWARE\DESCRIPTION\System\CentralProcessor\0"
        ) as key:
            return str(winreg.QueryValueEx(key, "ProcessorNameString")[0]).strip()
    if sys.platform == "darwin":
        import subprocess  # takes longer to import than all else here

        command = ["/usr/sbin/sysctl", "-n", "machdep.cpu.brand_string"]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()
    return name_in(INFORMATION) if INFORMATION.exists() else ""


def name_in(information: Path) -> str:
    """The first processor of /proc/cpuinfo: its name, or on ARM the numbers that stand for one."""
    numbers = []
    with information.open(encoding="utf-8", errors="replace") as lines:
        for line in lines:  # of many cores: each costs the system time to write
            name, _, value = (part.strip() for part in line.partition(":"))
            if name == "model name":
                return value
            if name in ("CPU implementer", "CPU part"):
                numbers.append(f"{name.removeprefix('CPU ')} {value}")
            if not name and numbers:
                break
    return ", ".join([platform.machine(), *numbers]) if numbers else ""

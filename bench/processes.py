"""Processes that are timed from their start."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from time import perf_counter
from typing import NamedTuple

__all__ = ["Start", "start"]


class Start(NamedTuple):
    """A new process."""

    seconds: float  # until its result is in memory, the start of Python and the import of NumPy included
    stages: list[float]


def start(kept: str, code: str, *arguments: str) -> Start:
    """Run one process, which prints a line when its result is ready."""
    environment = {**os.environ, "MESA_SHADER_CACHE_DIR": kept}
    command = [sys.executable, "-c", code, *arguments]
    begun = perf_counter()
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        line = process.stdout.readline()
        seconds = perf_counter() - begun
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return Start(seconds, json.loads(line))

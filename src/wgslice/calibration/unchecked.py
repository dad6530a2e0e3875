"""Keep which GPUs of this machine have passed the self-test without run-time checks of their kernels."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any

from wgslice.calibration.store import Machine, write_json
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.hosts import host_named
from wgslice.version import VERSION

FORMAT, SUFFIX = "wgslice self-test without checks 1", "-unchecked"


def described(adapter: Adapter) -> dict[str, Any]:
    """Return what the result depends on: the machine, its driver, and the versions that make its kernels."""
    versions = {"wgslice": VERSION, **host_named(adapter.host).versions()}
    return {"format": FORMAT, "versions": versions, "machine": asdict(Machine.of(adapter))}


def has_passed(adapter: Adapter) -> bool:
    """Whether the newest self-test without checks has passed, by these versions on this machine."""
    with suppress(OSError, ValueError):
        return bool(json.loads(Machine.of(adapter).path(SUFFIX).read_bytes()) == described(adapter))
    return False


def keep_passed(adapter: Adapter, passed: bool) -> None:
    """Keep that a self-test without checks has passed, or has not; nothing where no file can be written."""
    with suppress(OSError):
        path = Machine.of(adapter).path(SUFFIX)
        if not passed:
            path.unlink(missing_ok=True)
        else:
            write_json(path, described(adapter))

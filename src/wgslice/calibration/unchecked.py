"""Keep which GPUs of this machine have passed the self-test without run-time checks of their kernels."""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from wgslice.calibration.store import Machine, folder
from wgslice.gpu.adapter import Adapter
from wgslice.gpu.hosts import host_named
from wgslice.version import VERSION
from wgslice.whole_files import written_whole

FORMAT = "wgslice self-test without checks 1"


def described(adapter: Adapter) -> dict[str, Any]:
    """Return what the result depends on: the machine, its driver, and the versions that make its kernels."""
    versions = {"wgslice": VERSION, **host_named(adapter.host).versions()}
    return {"format": FORMAT, "versions": versions, "machine": asdict(Machine.of(adapter))}


def path_of(adapter: Adapter) -> Path:
    """Return the file, beside the machine's measured constants; raises OSError without a cache folder."""
    return folder() / f"{Machine.of(adapter).file_stem}-unchecked.json"


def has_passed(adapter: Adapter) -> bool:
    """Whether the newest self-test without checks has passed, by these versions on this machine."""
    with suppress(OSError, ValueError):
        return bool(json.loads(path_of(adapter).read_bytes()) == described(adapter))
    return False


def keep_passed(adapter: Adapter, passed: bool) -> None:
    """Keep that a self-test without checks has passed, or has not; nothing where no file can be written."""
    with suppress(OSError):
        path = path_of(adapter)
        if not passed:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_whole(path) as part:
            part.write_text(json.dumps(described(adapter), indent=1) + "\n", "utf-8")

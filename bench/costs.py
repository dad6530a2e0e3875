"""What a program pays before anything is sliced, and a call of each size: where slicing on a device pays."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import wgslice as wg

__all__ = ["measure_costs", "pays_from", "show_costs"]

PROCESSES = 3
ROW = 256  # float32, 1 KiB
ROWS = [4**power for power in range(9)]  # to 64 MiB

# Prints the seconds of each stage. NumPy is there already; kernels are those of one slice.
STAGES = """
import json, os, sys
from time import perf_counter
import numpy
times = [perf_counter()]
import wgslice as wg
times.append(perf_counter())
device = wg.Device.request(os.environ.get("WGSLICE_ADAPTER"))
times.append(perf_counter())
x = wg.asarray(numpy.arange(4096, dtype=numpy.float32).reshape(64, 64), device)
times.append(perf_counter())
assert x[:, ::-2].numpy()[0, 0] == 63
times.append(perf_counter())
print(json.dumps([after - before for before, after in zip(times, times[1:])]))
"""
NAMES = ("import wgslice", "make a device", "first upload", "first operator")


def measure_costs() -> dict[str, Any]:
    """Seconds of what comes once, the best of some processes, and of a call by its bytes."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return {"date": date, "once_s": once(), "calls": calls()}


def once() -> dict[str, float]:
    """A new process from import to its first result, on Mesa with no compiled kernel kept, then with it."""
    with tempfile.TemporaryDirectory() as kept:
        first = [stages(Path(kept) / str(number)) for number in range(PROCESSES)]
        again = [stages(Path(kept) / "0") for _ in range(PROCESSES)]
    found = {name: min(times[place] for times in first) for place, name in enumerate(NAMES)}
    found["first operator, kernel kept by the driver"] = min(times[-1] for times in again)
    return found


def stages(kept: Path) -> list[float]:
    """The stages of one process, whose driver keeps its kernels in a folder."""
    environment = {**os.environ, "MESA_SHADER_CACHE_DIR": str(kept)}
    command = [sys.executable, "-c", STAGES]
    shown = subprocess.run(command, env=environment, stdout=subprocess.PIPE, check=True, text=True).stdout
    times: list[float] = json.loads(shown)
    return times


def calls() -> list[dict[str, float]]:
    """A crop of each size, called and waited for, beside NumPy's into an array that is given too."""
    from bench.overheads import best_times  # imported here: they ask for a device
    from bench.rivals.ours import device

    found = []
    for rows in ROWS:
        array = np.ones((rows + 3, ROW + 5), np.float32)  # zeros would lie in one page of memory
        given = np.empty((rows, ROW), np.float32)
        x, out = wg.asarray(array, device), wg.empty(given.shape, np.float32, device)
        np_view = array[3:, 5:]

        def call(x: wg.Tensor = x, out: wg.Tensor = out, rows: int = rows) -> None:
            wg.slice1(x, (3, 5), (rows, ROW), out=out)
            device.synchronize()

        def by_numpy(given: Any = given, np_view: Any = np_view) -> None:
            np.copyto(given, np_view)

        repeats = max(1, min(100, 2**24 // given.nbytes))
        times = best_times({"wgslice": call, "NumPy": by_numpy}, repeats)
        found.append({"nbytes": given.nbytes, "wgslice_s": times["wgslice"], "numpy_s": times["NumPy"]})
    return found


def pays_from(costs: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Bytes from which on copying takes as long as the call around it, and from which on NumPy is slower.

    Each holds at all greater sizes too, or is None.
    """
    calls = costs["calls"]
    least = min(call["wgslice_s"] for call in calls)
    return (
        from_which_on(calls, lambda call: call["wgslice_s"] >= 2 * least),
        from_which_on(calls, lambda call: call["wgslice_s"] < call["numpy_s"]),
    )


def from_which_on(
    calls: Sequence[Mapping[str, float]], holds: Callable[[Mapping[str, float]], bool]
) -> int | None:
    """The least bytes from which on something holds."""
    found = None
    for call in reversed(calls):
        if not holds(call):
            break
        found = int(call["nbytes"])
    return found


def show_costs(console: Console, costs: Mapping[str, Any]) -> None:
    """One a line."""
    for name, seconds in costs["once_s"].items():
        console.print(f"{name}: [bold]{seconds:.2f}[/bold] s", highlight=False)
    for call in costs["calls"]:
        ours, theirs = call["wgslice_s"] * 1e6, call["numpy_s"] * 1e6
        console.print(
            f"a crop of {call['nbytes'] / 1024:.0f} KiB: [bold]{ours:.0f}[/bold] us, NumPy {theirs:.0f} us",
            highlight=False,
        )
    labels = "copying takes as long as the call around it", "it is quicker than NumPy"
    for label, nbytes in zip(labels, pays_from(costs), strict=True):
        reached = "at no size" if nbytes is None else f"from {nbytes / 1024:.0f} KiB on"
        console.print(f"{label} {reached}", highlight=False)

"""Time from process start to the first result, and of calls by size, against NumPy."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
from rich.console import Console

import wgslice as wg
from bench.processes import Start, start
from bench.schedule import Schedule

__all__ = ["measure_costs", "pays_from", "run_costs", "show_costs"]

PROCESSES = 3
GPU_ROUNDS = 8
ROW = 256  # float32, 1 KiB
ROWS = [4**power for power in range(9)]  # to 64 MiB

# Prints the seconds of each stage. NumPy is there already; kernels are those of one slice.
SLICED = """
import json, os
from time import perf_counter
import numpy
times = [perf_counter()]
import wgslice as wg
times.append(perf_counter())
device = wg.Device.request(os.environ.get("WGSLICE_ADAPTER"))
times.append(perf_counter())
x = wg.asarray(numpy.arange(4096, dtype=numpy.float32).reshape(64, 64), device=device)
times.append(perf_counter())
assert x[:, ::-2].numpy()[0, 0] == 63
times.append(perf_counter())
print(json.dumps([after - before for before, after in zip(times, times[1:])]), flush=True)
"""
NAMES = ("import wgslice", "make a device", "first upload", "first operator")

# What no program on wgpu can do without: a device, a pipeline, a dispatch, and the result in memory.
BARE = """
import sys
import numpy, wgpu
device = wgpu.gpu.enumerate_adapters_sync()[int(sys.argv[1])].request_device_sync()
x = numpy.arange(4096, dtype=numpy.float32)
usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
buffer = device.create_buffer_with_data(data=x, usage=usage)
module = device.create_shader_module(code='''
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(64) fn negate(@builtin(global_invocation_id) id: vec3u) { x[id.x] = -x[id.x]; }
''')
pipeline = device.create_compute_pipeline(layout="auto", compute={"module": module, "entry_point": "negate"})
entries = [{"binding": 0, "resource": {"buffer": buffer}}]
group = device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
encoder = device.create_command_encoder()
run = encoder.begin_compute_pass()
run.set_pipeline(pipeline)
run.set_bind_group(0, group)
run.dispatch_workgroups(64)
run.end()
device.queue.submit([encoder.finish()])
assert numpy.frombuffer(device.queue.read_buffer(buffer), numpy.float32)[1] == -1
print("[]", flush=True)
"""
FROM_START = ("first slice of a process", "first dispatch of a process, bare wgpu")
BEYOND = "first slice of a process beyond wgpu's own start"
KEPT = ", kernel kept by the driver"


def run_costs(console: Console, _: Namespace) -> None:
    """Measure and print."""
    show_costs(console, measure_costs(console))


def measure_costs(console: Console) -> dict[str, Any]:
    """Return the seconds from start, the best of some processes, and of calls by their bytes."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    with Schedule(console, 2 * PROCESSES + len(ROWS)) as schedule:
        return {"date": date, **once(schedule), "calls": calls(schedule)}


def once(schedule: Schedule) -> dict[str, dict[str, float]]:
    """Time processes to their first result; on Mesa without and with cached kernels."""
    with tempfile.TemporaryDirectory() as folder:
        first = [starts(schedule, f"{folder}/{number}") for number in range(PROCESSES)]
        again = [starts(schedule, f"{folder}/0") for _ in range(PROCESSES)]
    found = {name: min(ours.stages[place] for ours, _ in first) for place, name in enumerate(NAMES)}
    found["first operator" + KEPT] = min(ours.stages[-1] for ours, _ in again)
    return {"once_s": found, "start_s": {**from_start(first), **from_start(again, KEPT)}}


def starts(schedule: Schedule, kept: str) -> tuple[Start, Start]:
    """A process of ours and one of bare wgpu on the same adapter, whose driver keeps kernels in a folder."""
    from bench.rivals.ours import device  # imported here: it asks for a device

    schedule.begin("a new process")
    pair = start(kept, SLICED), start(kept, BARE, str(wg.adapters().index(device.adapter)))
    schedule.finish(f"a new process: {pair[0].seconds:.2f} s, bare wgpu {pair[1].seconds:.2f} s")
    return pair


def from_start(pairs: Sequence[tuple[Start, Start]], suffix: str = "") -> dict[str, float]:
    """Return the best times from process start, of wgslice and of bare wgpu, and the difference."""
    ours, bare = (min(start.seconds for start in side) for side in zip(*pairs, strict=True))
    best_s = {FROM_START[0]: ours, FROM_START[1]: bare, BEYOND: ours - bare}
    return {name + suffix: seconds for name, seconds in best_s.items()}


def calls(schedule: Schedule) -> list[dict[str, float]]:
    """Time a crop of each size with the wait, and NumPy's, both into a given output."""
    from bench.overheads import best_times  # imported here: they ask for a device
    from bench.rivals.ours import device, stopwatch

    found = []
    for rows in ROWS:
        schedule.begin(f"a crop of {rows} KiB")
        array = np.ones((rows + 3, ROW + 5), np.float32)  # zeros would share one page of memory
        given = np.empty((rows, ROW), np.float32)
        x, out = wg.asarray(array, device=device), wg.empty(given.shape, np.float32, device=device)
        np_view = array[3:, 5:]

        def call(x: wg.Tensor = x, out: wg.Tensor = out, rows: int = rows) -> None:
            wg.slice1(x, (3, 5), (rows, ROW), out=out)
            device.synchronize()

        def by_numpy(given: Any = given, np_view: Any = np_view) -> None:
            np.copyto(given, np_view)

        repeats = max(1, min(100, 2**24 // given.nbytes))
        times = best_times({"wgslice": call, "NumPy": by_numpy}, repeats)
        found.append({"nbytes": given.nbytes, "wgslice_s": times["wgslice"], "numpy_s": times["NumPy"]})
        if stopwatch:
            found[-1]["gpu_s"] = min(stopwatch.seconds(call) for _ in range(GPU_ROUNDS))
        schedule.finish(f"a crop of {rows} KiB")
    return found


def pays_from(costs: Mapping[str, Any]) -> tuple[int | None, int | None]:
    """Return the bytes from which copying exceeds the call overhead, and from which NumPy is slower.

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
    """Return the least bytes from which on a condition holds."""
    found = None
    for call in reversed(calls):
        if not holds(call):
            break
        found = int(call["nbytes"])
    return found


def show_costs(console: Console, costs: Mapping[str, Any]) -> None:
    """Print one result per line."""
    for name, seconds in (costs["once_s"] | costs["start_s"]).items():
        console.print(f"{name}: [bold]{seconds:.2f}[/bold] s", highlight=False)
    for call in costs["calls"]:
        size, ours, theirs = call["nbytes"] / 1024, call["wgslice_s"] * 1e6, call["numpy_s"] * 1e6
        own = f", the GPU's own {call['gpu_s'] * 1e6:.0f} us" if "gpu_s" in call else ""
        console.print(
            f"a crop of {size:.0f} KiB: [bold]{ours:.0f}[/bold] us, NumPy {theirs:.0f} us{own}",
            highlight=False,
        )
    labels = "copying takes as long as the call around it", "it is quicker than NumPy"
    for label, nbytes in zip(labels, pays_from(costs), strict=True):
        reached = "at no size" if nbytes is None else f"from {nbytes / 1024:.0f} KiB on"
        console.print(f"{label} {reached}", highlight=False)

"""Run mixed operations of ever new shapes from several threads, and judge whether memory stays flat.

`python3 run soak --minutes N` samples resident memory, live wgpu buffers, pipelines, plans and Python's
memory blocks. After a third of the time, no median of the last quarter may exceed that of the first by more
than an allowance. Samples and a chart are kept in `bench/results`.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from itertools import count
from pathlib import Path
from statistics import median
from time import monotonic, sleep
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
import wgpu
from helpers import check_same, record
from matplotlib import pyplot as plt
from numpy.random import Generator
from numpy.typing import NDArray

import wgslice as wg
from bench.report import write_json
from wgslice.gpu.pipelines import VARIABLE
from wgslice.plans.profiles import MAX_PLANS

RESULTS = Path(__file__).parents[1] / "bench" / "results"
THREADS = 4
WARM_UP = 1 / 3  # of the time
STEADY = 25  # rounds of all workloads that compile nothing, after which few kernels are missing
SAMPLES = 120
REUSED_MIB = "64"  # that the device keeps of released buffers: reached in the warm-up
MEMORY = Path("/proc/self/statm")
DTYPES = ["uint8", "float32", "complex128"]  # few, so that the warm-up compiles nearly all kernels


class Quantity(NamedTuple):
    """A sampled quantity, and by how much its median may grow: a share of it, and some."""

    name: str
    share: float
    some: float


QUANTITIES = [
    Quantity("resident MiB", 0.05, 16),
    Quantity("buffers", 0.1, 64),
    Quantity("pipelines", 0.15, 8),
    Quantity("plans", 0.1, 64),
    Quantity("Python blocks", 0.05, 20_000),
]


# workloads: each makes shapes of its own, and compares its result with NumPy's


def some_array(random: Generator, most: int = 90) -> NDArray[Any]:
    """An array of any shape and dtype, of few elements."""
    shape = tuple(int(size) for size in random.integers(1, most, 2))
    return random.integers(0, 200, shape).astype(DTYPES[random.integers(len(DTYPES))])


def slices(device: wg.Device, random: Generator) -> None:
    x = some_array(random)
    key = tuple(slice(random.integers(0, size), None, random.choice([1, 2, 3])) for size in x.shape)
    check_same(wg.asarray(x, device=device)[key][:, ::-1].copy().numpy(), x[key][:, ::-1].copy())


def large_slices(device: wg.Device, random: Generator) -> None:
    """Buffers that are reused once they are released."""
    x = np.resize(some_array(random), (int(random.integers(300, 600)), 1021))
    check_same(wg.asarray(x, device=device).T[::-1].copy().numpy(), x.T[::-1].copy())


def windows(device: wg.Device, random: Generator) -> None:
    x = some_array(random)
    sizes = [int(random.integers(1, size + 1)) for size in x.shape]
    highest = [size - extent + 1 for size, extent in zip(x.shape, sizes, strict=True)]
    offsets = random.integers(0, highest, (int(random.integers(1, 9)), 2))
    expected = np.stack([x[a : a + sizes[0], b : b + sizes[1]] for a, b in offsets.tolist()])
    on_device = wg.asarray(x, device=device)
    found = wg.extract_windows(on_device, offsets, sizes)
    check_same(found.numpy(), expected)
    wg.insert_windows(on_device, offsets, found, overlap="last")
    check_same(on_device.numpy(), x)


def indices(device: wg.Device, random: Generator) -> None:
    x = some_array(random)
    rows = random.integers(-len(x), len(x), int(random.integers(1, 60)))
    on_device = wg.asarray(x, device=device)
    held = wg.asarray(rows, device=device) if random.integers(2) else rows
    check_same(on_device[held].numpy(), x[rows])
    on_device[held] = on_device[held]
    mask = random.integers(0, 2, x.shape).astype(bool)
    on_device[wg.asarray(mask, device=device)] = 7
    x[mask] = 7
    check_same(on_device.numpy(), x)


def functions(device: wg.Device, random: Generator) -> None:
    x = some_array(random, 40)
    on_device = wg.asarray(x, device=device)
    before, after = random.integers(0, 6, (2, 2)).tolist()
    shift = int(random.integers(-9, 9))
    check_same(
        wg.pad(on_device, [(before[0], after[0]), (before[1], after[1])]).numpy(),
        np.pad(x, [*zip(before, after, strict=True)]),
    )
    check_same(wg.roll(on_device, shift, 1).numpy(), np.roll(x, shift, 1))
    check_same(wg.concat([on_device, on_device[::-1]], 0).numpy(), np.concatenate([x, x[::-1]]))


def operators(device: wg.Device, random: Generator) -> None:
    """A compiled operator, recorded into an encoder."""
    x = some_array(random)
    described = wg.TensorDesc(x.dtype, x.shape), wg.TensorDesc(x.dtype, (len(x), -(-x.shape[1] // 2)))
    operator = device.compile(wg.Slice1(*described, (0, 0), x.shape, (1, 2)))
    out = wg.empty(described[1].sizes, x.dtype, device=device)
    record(device, operator, input=wg.asarray(x, device=device), output=out)
    check_same(out.numpy(), x[:, ::2].copy())


Workload = Callable[[wg.Device, Generator], None]
WORKLOADS: list[Workload] = [slices, large_slices, windows, indices, functions, operators]


# samples


def sample(device: wg.Device) -> dict[str, float]:
    """The quantities now."""
    native = wgpu.diagnostics.wgpu_native_counts.get_dict()
    values = [
        resident_nbytes() / 2**20,
        native["Buffer"]["count"],
        native["ComputePipeline"]["count"],
        len(device.pipelines.commands),
        sys.getallocatedblocks(),
    ]
    return dict(zip((quantity.name for quantity in QUANTITIES), values, strict=True))


def resident_nbytes() -> int:
    """Resident memory of this process."""
    if not MEMORY.exists():
        sys.exit("soak: resident memory is sampled on Linux only")
    return int(MEMORY.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def verdict(samples: Sequence[dict[str, float]], warm_up_s: float) -> list[str]:
    """A line for each quantity that has grown after the warm-up; none if all are flat."""
    warm = [each for each in samples if each["seconds"] >= warm_up_s]
    quarter = max(len(warm) // 4, 1)
    grown = []
    for name, share, some in QUANTITIES:
        first, last = (median(each[name] for each in part) for part in (warm[:quarter], warm[-quarter:]))
        if last > first * (1 + share) + some:
            grown.append(f"{name} grew from {first:,.0f} to {last:,.0f}")
    return grown


# a run


def soak(
    device: wg.Device, seconds: float, workloads: Sequence[Workload]
) -> tuple[list[dict[str, float]], list[str]]:
    """Run workloads in threads; return samples, and errors or the quantities that grew."""
    warm_up(device, workloads, seconds)
    samples: list[dict[str, float]] = []
    begun = monotonic()
    with running(device, workloads) as (done, failures):
        while (now := monotonic() - begun) < seconds and not failures:
            samples.append({"seconds": round(now, 2), "operations": sum(done), **sample(device)})
            sleep(seconds / SAMPLES)
    return samples, failures or verdict(samples, WARM_UP * seconds)


@contextmanager
def running(device: wg.Device, workloads: Sequence[Workload]) -> Iterator[tuple[list[int], list[str]]]:
    """Threads that do workloads until they are stopped; how many each has done, and their errors."""
    stop = threading.Event()
    # wgpu aborts the process if a thread waits some seconds for the context of OpenGL.
    turns: Any = threading.Lock() if device.adapter.backend == "OpenGL" else nullcontext()
    done, failures = [0] * THREADS, list[str]()

    def work(number: int) -> None:
        random = np.random.default_rng(number)
        try:
            for step in count():
                if stop.is_set():
                    return
                with turns:
                    workloads[(step + number) % len(workloads)](device, random)
                done[number] += 1
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(THREADS)]
    for thread in threads:
        thread.start()
    try:
        yield done, failures
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def warm_up(device: wg.Device, workloads: Sequence[Workload], seconds: float) -> None:
    """Do workloads in one thread until they compile nothing new, or for some seconds."""
    random, quiet, begun = np.random.default_rng(0), 0, monotonic()
    pipelines = device.pipelines.pipeline
    while quiet < STEADY and monotonic() - begun < seconds:
        before = pipelines.cache_info().misses
        for workload in workloads:
            workload(device, random)
        quiet = quiet + 1 if pipelines.cache_info().misses == before else 0


def fill_plans(device: wg.Device) -> None:
    """Plan as many copies as caches keep, so that they are full before anything is judged."""
    x = wg.zeros((90, 90), "float32", device=device)
    for number in range(MAX_PLANS):
        x[number % 89 :, number // 89 % 46 :: 1 + number % 2].copy()
    device.synchronize()


def draw(samples: Sequence[dict[str, float]], title: str, path: Path) -> None:
    """Draw each quantity over time, the warm-up on grey."""
    mpl.use("Agg")
    figure, panels = plt.subplots(
        1, len(QUANTITIES), figsize=(3 * len(QUANTITIES), 2.6), layout="constrained"
    )
    minutes = [each["seconds"] / 60 for each in samples]
    for axes, quantity in zip(panels, QUANTITIES, strict=True):
        values = [each[quantity.name] for each in samples]
        axes.plot(minutes, values, color="#0b7a75")
        axes.axvspan(0, WARM_UP * minutes[-1], color="#d7dde3", zorder=0)
        axes.set_title(quantity.name, fontsize=10)
        axes.set_ylim(0, 1.2 * max(values))
        axes.set_xlabel("minutes")
    figure.suptitle(title, fontsize=10)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def main(arguments: Sequence[str] | None = None) -> int:
    """Parse the command line, and run; return 1 if a quantity grew or a workload failed."""
    parser = argparse.ArgumentParser(prog="run soak", description=__doc__.partition("\n\n")[0])
    parser.add_argument("--minutes", type=float, default=2.0, help="how long; 2 by default")
    parser.add_argument("--adapter", help="part of a name or backend; the best one by default")
    options = parser.parse_args(arguments)
    os.environ[VARIABLE] = REUSED_MIB
    device = wg.Device.request(options.adapter)
    print(f"soak: {device.adapter}, {options.minutes:g} minutes on {THREADS} threads", flush=True)
    fill_plans(device)
    samples, failures = soak(device, 60 * options.minutes, WORKLOADS)
    last = samples[-1]
    kept = {
        "adapter": str(device.adapter),
        "driver": device.adapter.driver,
        "minutes": options.minutes,
        "warm_up": round(WARM_UP, 3),
        "verdict": failures or "flat",
        "samples": samples,
    }
    stem = f"soak-{re.sub('[^a-z0-9]+', '-', device.adapter.backend.lower())}"
    write_json(kept, RESULTS / f"{stem}.json")
    title = f"{last['operations']:,.0f} operations on {device.adapter}"
    draw(samples, title, RESULTS / f"{stem}.png")
    print("\n".join(f"soak: {line}" for line in failures) or f"soak: {title}: all is flat")
    print(f"soak: kept in {RESULTS.name}/{stem}.json and .png")
    return int(bool(failures))


if __name__ == "__main__":
    sys.exit(main())

"""Time streams from one memory map into another, against NumPy, and each of their stages."""

from __future__ import annotations

import re
import tempfile
from argparse import Namespace
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager
from math import inf
from pathlib import Path
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

import wgslice as wg
from bench.contest import ROOT
from bench.report import MEBIBYTE, RESULTS, about, keep, stem_of
from bench.rivals.ours import describe, device
from bench.schedule import Schedule
from wgslice.dialects.basic import basic_index
from wgslice.gpu.protocols import Buffer
from wgslice.gpu.recording import Binding
from wgslice.gpu.transfer import Readback
from wgslice.streaming.sources import Block, Source
from wgslice.streaming.stream import Ring, TileBuffer
from wgslice.streaming.walk import Piece, Tile, limit_nbytes, shares

__all__ = ["STAGES", "STREAMS", "Stream", "measure_stream", "run_stream"]

LIMIT = "256 MiB"
STAGES = ("file", "upload", "kernel", "readback")
SHAPE = 384, 512, 512  # of the source, float32: 384 MiB, written before, so that the system has it in memory


class Stream(NamedTuple):
    """A window of the source."""

    name: str
    key: Any


STREAMS = (
    Stream("contiguous, [32:352]", np.s_[32:352]),
    Stream("crop, [:, 56:456, 20:-20]", np.s_[:, 56:456, 20:-20]),
    Stream("stepped, [::-1, :, ::2]", np.s_[::-1, :, ::2]),
    Stream("mirrored, [..., ::-1]", np.s_[..., ::-1]),
)


class Stages(Ring):
    """A ring whose stages run one after the other, each to its end, and are clocked."""

    seconds: dict[str, float]

    def take(self, read: Future[Any]) -> Any:
        """Read."""
        with clocked(self.seconds, "file"):
            return super().take(read)

    def upload(self, block: Block, piece: Piece) -> Binding:
        """Upload."""
        with clocked(self.seconds, "upload"):
            source = super().upload(block, piece)
            self.device.synchronize()
        return source

    def copy(self, source: Binding, target: Binding) -> None:
        """Run a kernel, or a buffer copy."""
        with clocked(self.seconds, "kernel"):
            super().copy(source, target)
            self.device.synchronize()

    def read_back(self, readback: Readback, buffer: Buffer, nbytes: int) -> None:
        """Copy a tile to its staging buffer."""
        with clocked(self.seconds, "readback"):
            super().read_back(readback, buffer, nbytes)
            self.device.synchronize()

    def write(self, tile: Tile, tile_buffer: TileBuffer) -> int:
        """Write."""
        with clocked(self.seconds, "file"):
            return super().write(tile, tile_buffer)

    def write_through(self, tile: Tile, part: NDArray[Any]) -> int:
        """Write a tile that needs no GPU."""
        with clocked(self.seconds, "file"):
            return super().write_through(tile, part)


@contextmanager
def clocked(seconds: dict[str, float], stage: str) -> Iterator[None]:
    """Add to a stage's seconds."""
    begun = perf_counter()
    yield
    seconds[stage] += perf_counter() - begun


def run_stream(console: Console, arguments: Namespace) -> None:
    """`python3 run bench --stream`: each window by both in rounds, then its stages one after the other."""
    streams = [stream for stream in STREAMS if re.search(arguments.cases, stream.name)]
    (ROOT / "out").mkdir(exist_ok=True)
    found: dict[str, dict[str, Any]] = {}
    with (
        tempfile.TemporaryDirectory(dir=ROOT / "out") as folder,
        Schedule(console, 1 + len(streams), arguments.budget) as schedule,
    ):
        schedule.begin("the source")
        source = make_source(Path(folder) / "source.npy", SHAPE)
        schedule.finish("the source")
        for stream in streams:
            if schedule.spent:
                break
            schedule.begin(stream.name)
            target = Path(folder) / "target.npy"
            found[stream.name] = measure_stream(source, stream.key, target, arguments.rounds)
            schedule.finish(stream.name)
    console.print(table(found))
    if len(found) < len(STREAMS):
        console.print("not kept: only a run of all windows is")
        return
    kept = {
        **about([], arguments),
        "contenders": {"wgslice": describe()},
        "limit": LIMIT,
        "shape": SHAPE,
        "streams": found,
    }
    keep(console, kept, RESULTS / f"{stem_of(kept)}-stream.json")


def make_source(path: Path, shape: tuple[int, ...]) -> NDArray[Any]:
    """A file of numbers that all differ, as a memory map."""
    made = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=shape)
    made.reshape(-1).view(np.uint32)[:] = np.arange(made.size, dtype=np.uint32)
    made.flush()
    return np.lib.format.open_memmap(path, mode="r")


def measure_stream(source: NDArray[Any], key: Any, path: Path, rounds: int) -> dict[str, Any]:
    """Best seconds of both, each into a new file, and the share of each stage where none overlaps another."""
    expected = source[key]
    best = {"wgslice": inf, "NumPy": inf}
    for number in range(rounds + 1):  # the first time kernels are compiled, and the result is compared
        for name in best:
            path.unlink(missing_ok=True)
            begun = perf_counter()
            target = np.lib.format.open_memmap(path, mode="w+", dtype=source.dtype, shape=expected.shape)
            if name == "NumPy":
                np.copyto(target, expected)
            else:
                wg.stream(source, key, target, limit=LIMIT, device=device)
            taken = perf_counter() - begun
            if number:
                best[name] = min(best[name], taken)
            elif not np.array_equal(target.view(np.uint32), expected.view(np.uint32)):
                raise AssertionError(f"{name} makes something else of {key}")
    path.unlink()
    target = np.lib.format.open_memmap(path, mode="w+", dtype=source.dtype, shape=expected.shape)
    seconds = stages(source, key, target)
    total = sum(seconds.values())
    return {
        "nbytes": expected.nbytes,
        "best_s": best,
        "speed_up": best["NumPy"] / best["wgslice"],
        "one_after_the_other_s": total,
        "shares": {stage: seconds[stage] / total for stage in STAGES},
    }


def stages(source: NDArray[Any], key: Any, target: NDArray[Any]) -> dict[str, float]:
    """Seconds of each stage of a stream, by itself."""
    opened = Source(source)
    walk = opened.walk(
        basic_index(opened.shape, key), None, shares(limit_nbytes(LIMIT), device.largest_buffer_nbytes)
    )
    ring = Stages(device, opened, target, walk, 1)
    ring.seconds = dict.fromkeys(STAGES, 0.0)
    ring.run(lambda _: None)
    return ring.seconds


def table(found: Mapping[str, Mapping[str, Any]]) -> Table:
    """A row for each window."""
    shown = Table(title=f"streams between memory maps, limit {LIMIT}", title_justify="left")
    for column in ("window", "MiB", "wgslice, GB/s", "speed-up over NumPy", *STAGES, "one after the other"):
        shown.add_column(column, justify="left" if column == "window" else "right")
    for name, stream in found.items():
        ours = stream["best_s"]["wgslice"]
        shown.add_row(
            name,
            f"{stream['nbytes'] / MEBIBYTE:.0f}",
            f"{stream['nbytes'] / ours / 1e9:.2f}",
            f"{stream['speed_up']:.2f}",
            *(f"{stream['shares'][stage]:.0%}" for stage in STAGES),
            f"{stream['one_after_the_other_s'] / ours:.2f}",
        )
    return shown

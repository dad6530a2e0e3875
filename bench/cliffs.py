"""Cliffs: every public function that moves elements, against bare kernels on the same adapter and run."""

from __future__ import annotations

import re
import sys
import tomllib
from argparse import Namespace
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from math import inf
from operator import setitem
from pathlib import Path
from time import perf_counter
from types import CodeType, SimpleNamespace
from typing import Any

import numpy as np
import wgpu
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from rich.console import Console
from rich.markdown import Markdown

import wgslice as wg
import wgslice.array_api as xp
from bench.cliffs_page import DTYPES, draw_cliffs, exceeding, report
from bench.report import RESULTS, about, keep, stem_of, write_json
from bench.rivals.ours import describe, device, dispatch, submit_pass
from bench.schedule import Schedule

__all__ = ["Ceilings", "Operands", "Row", "measure", "rows", "run_cliffs"]

TABLE = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))
LIMITS = {"copy": 6.0, "permute": 8.0, "gather": 4.0}  # times the ceiling
TINY_LIMIT = 2.5  # times `x.copy()` of as many elements
SIDE, TINY_SIDE = 2048, 32
SECONDS = 570  # of a run at most, without its start and end
EVERY = 20  # rows, after which ceilings have a turn
WRONG = "wrong result"

ELEMENTS = 2**22  # of 4 bytes, which the bare kernels move
COPY = """
@group(0) @binding(0) var<storage, read> source: array<vec4<u32>>;
@group(0) @binding(1) var<storage, read_write> copied: array<vec4<u32>>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var i = 0u; i < 8u; i++) { copied[8u * id.x + i] = source[8u * id.x + i]; }
}
"""
GATHER = """
@group(0) @binding(0) var<storage, read> source: array<ELEMENT>;
@group(0) @binding(1) var<storage, read> indices: array<u32>;
@group(0) @binding(2) var<storage, read_write> gathered: array<ELEMENT>;
@compute @workgroup_size(64) fn main(@builtin(global_invocation_id) id: vec3u) {
    for (var i = 0u; i < 8u; i++) { gathered[8u * id.x + i] = source[indices[8u * id.x + i] & 1023u]; }
}
"""  # out of 1,024 elements: with short strides, as in a row


@dataclass
class Row:
    """An expression with operands of a dtype, and its times."""

    dtype: str
    expression: str
    ceiling: str  # its kind
    touched: int  # bytes, of a gather elements
    best_s: float = inf
    ceiling_s: float = inf
    limit: float = inf
    numpy_s: float = inf
    failure: str = ""

    @property
    def name(self) -> str:
        """Dtype and expression."""
        return f"{self.dtype} {self.expression}"

    @property
    def code(self) -> CodeType:
        """The expression for `eval`, which takes code of assignments too."""
        return compile(self.expression, self.name, "exec" if " = " in self.expression else "eval")

    def as_json(self) -> dict[str, Any]:
        """Return the measurements as JSON."""
        known = {name: value for name, value in asdict(self).items() if value not in (inf, "")}
        return {"name": self.name, **known}


def extract_windows(
    x: NDArray[Any],
    offsets: NDArray[Any],
    sizes: Any,
    strides: Any = (1, 1),
    fill: Any = None,
    out: Any = None,
) -> NDArray[Any]:
    """Implement `wg.extract_windows` of a matrix; with a fill, windows begin at most one element outside."""
    if np.ndim(sizes) == 2:
        unit, start = 16 // x.itemsize, 0
        for (i, j), (height, width) in zip(offsets.tolist(), sizes.tolist(), strict=True):
            out[start : start + height * width].reshape(height, width)[...] = x[i : i + height, j : j + width]
            start += -(-height * width // unit) * unit
        return np.asarray(out)
    wide = x if fill is None else np.pad(x, 1, constant_values=fill)
    i, j = offsets.T + (fill is not None)
    return sliding_window_view(wide, sizes)[i, j, :: strides[0], :: strides[1]]


def insert_windows(x: NDArray[Any], offsets: NDArray[Any], windows: Any, **_: Any) -> None:
    """Implement `wg.insert_windows` into a matrix; the last window wins."""
    if isinstance(windows, list):
        for (i, j), window in zip(offsets.tolist(), windows, strict=True):
            x[i : i + window.shape[0], j : j + window.shape[1]] = window
        return
    sliding_window_view(x, windows.shape[1:], writeable=True)[tuple(offsets.T)] = windows


def pad_windows(windows: list[NDArray[Any]], size: tuple[int, ...]) -> NDArray[Any]:
    """Implement `wg.pad_windows` with zeros."""
    result = np.zeros((len(windows), *size), windows[0].dtype)
    for part, window in zip(result, windows, strict=True):
        part[tuple(map(slice, window.shape))] = window
    return result


def unpad_windows(x: NDArray[Any], sizes: NDArray[Any]) -> list[NDArray[Any]]:
    """Implement `wg.unpad_windows`."""
    return [part[tuple(map(slice, size))] for part, size in zip(x, sizes.tolist(), strict=True)]


IN_NUMPY = SimpleNamespace(
    extract_windows=extract_windows,
    insert_windows=insert_windows,
    pad_windows=pad_windows,
    unpad_windows=unpad_windows,
    put=setitem,
)


class Operands:
    """Return the operands of expressions by name: arrays of a dtype, and tensors of the same bits."""

    def __init__(self, dtype: str, n: int) -> None:
        random = np.random.default_rng(1)

        def bits(*shape: int) -> NDArray[Any]:
            itemsize = np.dtype(dtype).itemsize
            return random.integers(0, 256, (*shape, itemsize), np.uint8).view(dtype)[..., 0]

        self.arrays: dict[str, Any] = {"random": random, "bits": bits, "n": n, "k": min(64, n // 4), "np": np}
        self.arrays |= {"xp": np, "wg": IN_NUMPY}
        self.tensors: dict[str, Any] = {**self.arrays, "xp": xp, "wg": wg}
        for name, expression in (TABLE["tensors"] | TABLE["arrays"]).items():
            array = self.arrays[name] = eval(expression, self.arrays)
            on_device = name in TABLE["tensors"]
            self.tensors[name] = wg.asarray(array, device=device) if on_device else array
        self.before = {name: self.arrays[name].copy() for name in TABLE["tensors"] if name[0] == "z"}

    def results(self, row: Row) -> list[NDArray[Any]]:
        """Evaluate an expression with wgslice and NumPy; operands written in place are restored first."""
        found = []
        written = re.search(r"\bz\w*", row.expression)
        for names in (self.tensors, self.arrays):
            if written:
                names[written[0]][...] = self.before[written[0]]
            value = eval(row.code, names)
            found.append(np.asarray(names[written[0]] if written else value))
        return found


def rows(operands: Mapping[str, Operands], only: str = "") -> list[Row]:
    """Return the rows of each dtype whose names match."""
    return [
        row
        for dtype, of_dtype in operands.items()
        for kind in LIMITS
        for touched, expressions in TABLE[kind].items()
        for row in (Row(dtype, each, kind, eval(touched, of_dtype.arrays)) for each in expressions)
        if only in row.name
    ]


class Ceilings:
    """The baseline of rows: best times so far of bare kernels, or of the copy of a tiny tensor."""

    def __init__(self, tiny: Operands | None = None) -> None:
        self.actions = {"call": tiny.tensors["x"].copy} if tiny else bare_kernels()
        self.best_s = dict.fromkeys(self.actions, inf)

    def take_turn(self, seconds: float) -> None:
        """Time each once more."""
        for name, action in self.actions.items():
            self.best_s[name] = min(self.best_s[name], best_time(action, seconds))

    def compare(self, row: Row) -> None:
        """Set the ceiling of a row, a dispatch and its share of what a bare kernel moves, and its limit."""
        if "call" in self.best_s:
            row.ceiling_s, row.limit = self.best_s["call"], TINY_LIMIT
            return
        kind, whole = "copy", 4 * ELEMENTS
        if row.ceiling == "gather":
            wide = np.dtype(row.dtype).itemsize == 8
            kind, whole = ("gather of 8 bytes", ELEMENTS // 2) if wide else ("gather", ELEMENTS)
        row.ceiling_s = self.best_s["dispatch"] + self.best_s[kind] * row.touched / whole
        row.limit = LIMITS[row.ceiling]


def bare_kernels() -> dict[str, Callable[[], None]]:
    """The kernels, and a single workgroup."""
    usage = wgpu.BufferUsage.STORAGE
    numbers = np.random.default_rng(1).permutation(ELEMENTS).astype(np.uint32)
    source = device.wgpu_device.create_buffer_with_data(data=numbers, usage=usage)
    result = device.wgpu_device.create_buffer(size=numbers.nbytes, usage=usage)
    return {
        "copy": bare_kernel(COPY, [source, result], ELEMENTS // 4 // 512),
        "gather": bare_kernel(GATHER.replace("ELEMENT", "u32"), [source, source, result], ELEMENTS // 512),
        "gather of 8 bytes": bare_kernel(
            GATHER.replace("ELEMENT", "vec2u"), [source, source, result], ELEMENTS // 2 // 512
        ),
        "dispatch": bare_kernel(COPY, [source, result], 1),
    }


def bare_kernel(code: str, buffers: Sequence[Any], workgroups: int) -> Callable[[], None]:
    """Record and submit a kernel."""
    made = device.wgpu_device
    compute = {"module": made.create_shader_module(code=code), "entry_point": "main"}
    pipeline = made.create_compute_pipeline(layout="auto", compute=compute)
    entries = [{"binding": number, "resource": {"buffer": buffer}} for number, buffer in enumerate(buffers)]
    bind_group = made.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)
    return lambda: submit_pass(lambda encoder: dispatch(encoder, pipeline, bind_group, (workgroups,)))


def best_time(action: Callable[[], Any], seconds: float) -> float:
    """Return the best time of a round, with waits for the device, after a warm-up."""
    best, until = inf, 0.0
    while best == inf or perf_counter() < until:
        begun = perf_counter()
        action()
        device.synchronize()
        if until:
            best = min(best, perf_counter() - begun)
        else:
            until = perf_counter() + seconds
    return best


def measure(
    schedule: Schedule,
    every: Sequence[Row],
    operands: Mapping[str, Operands],
    ceilings: Ceilings,
    arguments: Namespace,
) -> list[Row]:
    """Check rows against NumPy, time rows and ceilings in rounds; return the rows that were timed."""
    done: list[Row] = []
    for turn in range(arguments.rounds):
        for number, row in enumerate(every):
            if schedule.spent:
                break
            if number % EVERY == 0:
                ceilings.take_turn(arguments.turn)
            of_dtype = operands[row.dtype]
            if turn == 0:
                schedule.begin(row.name)
                row.failure = checked(row, of_dtype)
                done.append(row)
            if not row.failure:
                action = partial(eval, row.code, of_dtype.tensors)
                row.best_s = min(row.best_s, best_time(action, arguments.turn))
            if turn == 0:
                schedule.finish(f"{row.name}: {row.failure or f'{row.best_s * 1e3:.3g} ms'}")
    for row in done:
        ceilings.compare(row)
    return done


def checked(row: Row, operands: Operands) -> str:
    """Return why a row has no time: refused, or a wrong result; time NumPy for the others."""
    try:
        ours, numpys = operands.results(row)
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    if (ours.shape, ours.dtype, ours.tobytes()) != (numpys.shape, numpys.dtype, numpys.tobytes()):
        return WRONG
    row.numpy_s = best_time(partial(eval, row.code, operands.arrays), 0)
    return ""


def run_cliffs(console: Console, arguments: Namespace) -> None:
    """`python3 run bench --cliffs`; exits with 1 where a result is wrong."""
    operands = {dtype: Operands(dtype, TINY_SIDE if arguments.tiny else SIDE) for dtype in DTYPES}
    every = rows(operands, arguments.only)
    if not every:
        sys.exit(f"bench: no row has {arguments.only!r} in its name")
    ceilings = Ceilings(operands["float32"] if arguments.tiny else None)
    with Schedule(console, len(every), min(arguments.budget, SECONDS)) as schedule:
        done = measure(schedule, every, operands, ceilings, arguments)
    content = {
        **about([], arguments),
        "contenders": {"wgslice": describe(), "NumPy": {"numpy": np.__version__}},
        "ceilings_s": ceilings.best_s,
        "equivalents": TABLE["equivalents"],
        "cliffs": [row.as_json() for row in done],
    }
    console.print(Markdown(report(content)))
    wrong = [row.name for row in done if row.failure == WRONG]
    if arguments.json:
        write_json(content, arguments.json)
    elif len(done) < len(every) or wrong or arguments.only or arguments.tiny:
        console.print("not kept: only a run of all rows is")
    else:
        keep(console, content, RESULTS / f"{stem_of(content)}-cliffs.json", draw_cliffs)
    if wrong:
        sys.exit(f"bench: {WRONG}: {'; '.join(wrong)}")
    if arguments.limits and (exceeded := exceeding(content)):
        sys.exit(f"bench: limits are exceeded: {'; '.join(exceeded)}")

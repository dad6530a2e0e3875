"""Overheads: host time of a recording and of a call, key-value caches, transfers, textures, memory."""

from __future__ import annotations

import gc
from argparse import Namespace
from collections import deque
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Any
from unittest.mock import patch

import numpy as np
import wgpu
from rich.console import Console

import wgslice as wg
from bench.report import MEBIBYTE
from bench.rivals.ours import device, dispatch, submit_pass
from bench.way_back import BY_SIZE, SIZES, STARTS, start_times, transfers
from wgslice.gpu.pipelines import PreparedDispatch
from wgslice.gpu.protocols import Place
from wgslice.plans.plan import Plan
from wgslice.plans.steps import Dispatch

__all__ = ["measure_overheads", "run_overheads", "show_overheads"]

ROUNDS = 8
CACHED_ROWS = 512, 1024, 2048, 4096  # as in https://github.com/ml-explore/mlx/pull/4019, which grows arrays
IMAGES = (1920, 1080), (1000, 1000), (1366, 768)  # only the first one's rows are multiples of 256 bytes
STORAGE = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC | wgpu.BufferUsage.COPY_DST
COPIED = wgpu.TextureUsage.COPY_SRC | wgpu.TextureUsage.COPY_DST
STATUS, RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


def run_overheads(console: Console, _: Namespace) -> None:
    """Measure and print."""
    show_overheads(console, measure_overheads())


def measure_overheads() -> dict[str, float]:
    """Seconds, and bytes of memory."""
    return {
        **host_times(),
        **replay_times(),
        **cache_times(),
        **transfer_times(),
        **start_times(),
        **times_by_size(),
        **texture_times(),
        **frame_times(),
        **memory(),
    }


def show_overheads(console: Console, found: Mapping[str, float]) -> None:
    """The ratios, one a line."""
    for ours, theirs in (
        ("record", "record, bare wgpu"),
        ("slice1 of 4 x 16", "slice1 of 4 x 16, bare wgpu"),
        ("20 copies of 16 x 32, captured", "20 copies of 16 x 32, bare wgpu"),
        ("20 copies of 16 x 32, captured", "20 copies of 16 x 32, one by one"),
        ("step of 20 caches", "step of 20 caches, bare wgpu"),
        ("step of 20 caches", "step of 20 caches, concat"),
        *(
            (f"step of 20 caches of {rows} rows, waited for", f"step of 20 caches of {rows} rows, concat")
            for rows in CACHED_ROWS
        ),
        *STARTS,
        *BY_SIZE,
        ("asarray of 64 MiB", "memcpy of 64 MiB"),
        ("numpy() of 64 MiB", "memcpy of 64 MiB"),
        *(
            (f"{call} of {width} x {height}{into}", f"read_texture of {width} x {height}")
            for width, height in IMAGES
            for call, into in (
                ("map_texture", ""),
                ("from_texture", ", out=array"),
                ("from_texture", ", numpy()"),
            )
        ),
        *(
            (f"map_texture of {width} x {height}", f"map of {width} x {height}, bare wgpu")
            for width, height in IMAGES
        ),
        ("frame, read two frames later", "frame, then a read of one"),
        ("frame, read two frames later", "frame, read two frames later, bare wgpu"),
    ):
        value = found[ours] / found[theirs]
        line = f"{ours}: [bold]{value:.2f}[/bold] x {theirs} ({found[ours] * 1e6:.0f} us)"
        console.print(line, highlight=False)
    for label, value in found.items():
        if label.startswith("memory"):
            console.print(f"{label}: [bold]{value / MEBIBYTE:.1f}[/bold] MiB", highlight=False)


def best_times(actions: Mapping[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    """Return the best mean time of `repeats` calls, in rounds over the actions."""
    best = dict.fromkeys(actions, float("inf"))
    for _ in range(ROUNDS):
        for name, action in actions.items():
            action()
            start = perf_counter()
            for _ in range(repeats):
                action()
            best[name] = min(best[name], (perf_counter() - start) / repeats)
            device.synchronize()
    return best


def host_times() -> dict[str, float]:
    """Time our calls and the equivalent wgpu calls on a 4 x 16 tensor, without waits."""
    x = wg.asarray(np.zeros((4, 16), np.float32), device=device)
    out = wg.empty((4, 8), np.float32, device=device)
    window = (0, 0), (4, 16), (1, 2)
    described = wg.TensorDesc("float32", x.shape), wg.TensorDesc("float32", out.shape)
    operator = device.compile(wg.Slice1(*described, *window))
    by_hand = ByHand(operator.plan, x.buffer)
    encoder = device.wgpu_device.create_command_encoder()

    def bare_slice() -> None:
        target = device.wgpu_device.create_buffer(size=128, usage=STORAGE)
        own = device.wgpu_device.create_command_encoder()
        by_hand.record(own, target)
        device.wgpu_device.queue.submit([own.finish()])

    recording = {
        "record": lambda: operator.record(encoder, input=x, output=out),
        "record, bare wgpu": lambda: by_hand.record(encoder, out.buffer),
    }
    calling = {
        "slice1 of 4 x 16": lambda: wg.slice1(x, *window),
        "slice1 of 4 x 16, bare wgpu": bare_slice,
    }
    return {**best_times(recording, 300), **best_times(calling, 300)}


def replay_times() -> dict[str, float]:
    """Time a captured program of 20 small copies, one by one, and the same dispatches by bare wgpu."""
    x = wg.asarray(np.zeros((16, 32), np.float32), device=device)

    def copies(x: wg.Tensor) -> list[wg.Tensor]:
        views = x[:, ::-1], x.T, x[1::2, ::2], x[::-1, ::-2]
        return [view.copy() for view in views for _ in range(5)]

    program = wg.capture(copies, x=x)
    calls = recorded_calls(lambda encoder: program.record(encoder, x=x))
    assert len(calls) == 20, "every copy is one dispatch"

    def bare(compute_pass: Any) -> None:
        for call in calls:
            dispatch(compute_pass, *call)

    actions = {
        "captured": lambda: program(x=x),
        "bare wgpu": lambda: submit_pass(bare),
        "one by one": lambda: copies(x),
    }
    named = {f"20 copies of 16 x 32, {name}": action for name, action in actions.items()}
    return best_times(named, 30)


def recorded_calls(record: Callable[[Any], Any]) -> list[tuple[Any, Any, tuple[int, ...]]]:
    """Return pipeline, bind group and workgroups of each dispatch that a function records."""
    calls: list[tuple[Any, Any, tuple[int, ...]]] = []
    last: list[Any] = [None, None]
    kind = wgpu.backends.wgpu_native.GPUComputePassEncoder
    with (
        patch.object(kind, "set_pipeline", lambda _, pipeline: last.__setitem__(0, pipeline)),
        patch.object(kind, "set_bind_group", lambda _, _number, group: last.__setitem__(1, group)),
        patch.object(kind, "dispatch_workgroups", lambda _, *groups: calls.append((*last, groups))),
    ):
        record(device.wgpu_device.create_command_encoder())
    return calls


class ByHand:
    """The wgpu calls that one dispatch cannot avoid: bind group, pass, pipeline, dispatch."""

    def __init__(self, plan: Plan, source: Any) -> None:
        (step,), (command,) = plan.steps, device.pipelines.prepare(plan)
        assert isinstance(step, Dispatch)
        assert isinstance(command, PreparedDispatch)
        self.step = step
        self.source = source
        self.pipeline, self.layout = command.pipeline, command.layout
        self.uniform_buffer = command.constants[0].buffer

    def record(self, encoder: Any, target: Any) -> None:
        """Record the dispatch."""
        resources = [
            self.uniform_buffer,
            {"buffer": self.source, "offset": 0, "size": self.step.source_binding.nbytes},
            {"buffer": target, "offset": 0, "size": self.step.target_binding.nbytes},
        ]
        entries = [{"binding": number, "resource": resource} for number, resource in enumerate(resources)]
        bind_group = device.wgpu_device.create_bind_group(layout=self.layout, entries=entries)
        compute_pass = encoder.begin_compute_pass()
        dispatch(compute_pass, self.pipeline, bind_group, self.step.share.workgroups)
        compute_pass.end()


def cache_times() -> dict[str, float]:
    """Time a step of 20 key-value caches: on the host by three strategies, and with the wait by two."""
    found = best_times(cache_steps(512), 20)
    for rows in CACHED_ROWS:
        bound, _, concat = (waited_for(step) for step in cache_steps(rows).values())
        name = f"step of 20 caches of {rows} rows"
        found |= best_times({f"{name}, waited for": bound, f"{name}, concat": concat}, 3)
    return found


def waited_for(action: Callable[[], Any]) -> Callable[[], None]:
    """Return the action followed by the wait."""

    def run() -> None:
        kept = action()
        device.synchronize()
        del kept

    return run


def cache_steps(rows: int) -> dict[str, Callable[[], Any]]:
    """Return a step of 20 caches of [1, 8, rows, 128] float16: bound operators, bare wgpu, and `concat`.

    A step appends a row to each cache; `concat` copies the caches.
    """
    row, cache = (1, 1, 8, 1, 128), (1, 8, rows, 128)
    described = wg.TensorDesc("float16", row), wg.TensorDesc("float16", cache), wg.TensorDesc("int32", (1, 4))
    operator = device.compile(wg.InsertWindows(*described))
    token, *caches = (wg.zeros(sizes, np.float16, device=device) for sizes in (row, *[cache] * 20))
    place = wg.zeros((1, 4), np.int32, device=device)
    bound = [operator.bind(input=token, output=each, offsets=place) for each in caches]
    (command,) = device.pipelines.prepare(operator.plan)
    assert isinstance(command, PreparedDispatch)
    bind_groups = [
        device.pipelines.bind(command, [Place(side.buffer) for side in (token, each, place)]).bind_group
        for each in caches
    ]

    def record(compute_pass: Any) -> None:
        for each in bound:
            each.record(compute_pass)

    def record_bare(compute_pass: Any) -> None:
        for bind_group in bind_groups:
            dispatch(compute_pass, command.pipeline, bind_group, command.workgroups)

    def step(recorded: Callable[[Any], None]) -> None:
        device.queue.write_buffer(place.buffer, 0, np.array([0, 0, 100, 0], np.int32))
        submit_pass(recorded)

    return {
        "step of 20 caches": lambda: step(record),
        "step of 20 caches, bare wgpu": lambda: step(record_bare),
        "step of 20 caches, concat": lambda: [wg.concat([each, token[0]], axis=2) for each in caches],
    }


def transfer_times() -> dict[str, float]:
    """64 MiB to the device and back, as in a loop over frames, against a copy between two warm arrays."""
    array = np.random.default_rng(1).integers(0, 256, 64 * MEBIBYTE, np.uint8)
    other = np.empty_like(array)
    frame: list[wg.Tensor] = [wg.asarray(array, device=device)]

    def upload() -> None:
        frame[0] = wg.asarray(array, device=device)
        device.synchronize()

    actions = {
        "memcpy of 64 MiB": lambda: np.copyto(other, array),
        "asarray of 64 MiB": upload,
        "numpy() of 64 MiB": lambda: frame[0].numpy(),
    }
    return best_times(actions, 3)


def times_by_size() -> dict[str, float]:
    """Time readbacks and uploads of some sizes, and the calls that they cannot avoid."""
    found: dict[str, float] = {}
    for nbytes in SIZES:
        found |= best_times(transfers(nbytes), max(2, min(100, 2**22 // nbytes)))
    return found


def texture_times() -> dict[str, float]:
    """Time images from a texture as arrays, against wgpu's `read_texture`."""
    found: dict[str, float] = {}
    for width, height in IMAGES:
        size = width, height, 1
        texture = device.wgpu_device.create_texture(size=size, format="rgba8unorm", usage=COPIED)
        source = {"texture": texture, "mip_level": 0, "origin": (0, 0, 0)}
        rows = {"bytes_per_row": 4 * width}
        out = np.ones((height, width, 4), np.uint8)
        actions: dict[str, Callable[[], Any]] = {
            f"read_texture of {width} x {height}": partial(
                device.wgpu_device.queue.read_texture, source, rows, size
            ),
            f"map of {width} x {height}, bare wgpu": BareRead(texture).map,
            f"map_texture of {width} x {height}": partial(wg.map_texture, texture),
            f"from_texture of {width} x {height}, out=array": partial(wg.from_texture, texture, out=out),
            f"from_texture of {width} x {height}, numpy()": partial(read_through_tensor, texture),
        }
        found |= best_times(actions, 20)
    return found


class BareRead:
    """The wgpu calls that a texture's readback cannot avoid, with a staging buffer that is kept."""

    def __init__(self, texture: Any) -> None:
        width, height, _ = texture.size
        row_nbytes = -(-4 * width // 256) * 256
        usage = wgpu.BufferUsage.MAP_READ | wgpu.BufferUsage.COPY_DST
        self.texture = texture
        self.staging = device.wgpu_device.create_buffer(size=row_nbytes * height, usage=usage)
        self.rows = {"buffer": self.staging, "bytes_per_row": row_nbytes, "rows_per_image": height}

    def begin(self) -> None:
        """Submit the copy."""
        encoder = device.wgpu_device.create_command_encoder()
        encoder.copy_texture_to_buffer({"texture": self.texture}, self.rows, self.texture.size)
        device.queue.submit([encoder.finish()])
        self.mapping = self.staging.map_async("READ_NOSYNC")

    def end(self, *, copied: bool = True) -> Any:
        """Wait for the copy, and copy the rows to an array if that is asked for."""
        self.mapping.sync_wait()
        rows = np.frombuffer(self.staging.read_mapped(copy=False), np.uint8)
        array = rows.copy() if copied else None
        self.staging.unmap()
        return array

    def map(self) -> None:
        """Read without a copy to an array."""
        self.begin()
        self.end(copied=False)


def read_through_tensor(texture: Any) -> Any:
    """Read a texture through a tensor."""
    return wg.from_texture(texture).numpy()


def frame_times() -> dict[str, float]:
    """Time a frame of a loop that reads it two frames later, by bare wgpu too, and both waited for."""
    width, height = IMAGES[0]
    texture = device.wgpu_device.create_texture(size=(width, height), format="rgba8unorm", usage=COPIED)
    pixels = wg.zeros((height, width, 4), np.uint8, device=device)
    pending: deque[Any] = deque()
    bare = deque(BareRead(texture) for _ in range(3))  # the first two have begun
    for reader in (bare[0], bare[1]):
        reader.begin()

    def draw() -> None:
        wg.copy_to_texture(pixels, texture)

    def draw_and_read() -> None:
        draw()
        pending.append(wg.from_texture(texture).numpy_async())
        if len(pending) > 2:
            pending.popleft().sync_wait()

    def draw_and_read_bare() -> None:
        draw()
        bare[2].begin()
        bare[0].end()
        bare.rotate(-1)

    actions: dict[str, Callable[[], Any]] = {
        "frame": waited_for(draw),
        "read of a frame": partial(read_through_tensor, texture),
        "frame, read two frames later": draw_and_read,
        "frame, read two frames later, bare wgpu": draw_and_read_bare,
    }
    found = best_times(actions, 20)
    return {**found, "frame, then a read of one": found["frame"] + found["read of a frame"]}


def memory() -> dict[str, float]:
    """Return the peak memory while slicing 256 MiB, without input and output; Linux only.

    Only on a software adapter is the GPU's memory this process's own.
    """
    if not (device.adapter.software and STATUS.exists() and RESET.exists()):
        return {}
    x = wg.asarray(np.ones((16384, 4104), np.float32), device=device)
    out = wg.empty((16384, 4096), np.float32, device=device)
    operator = device.compile(
        wg.Slice1(wg.TensorDesc("f4", x.shape), wg.TensorDesc("f4", out.shape), (0, 3), out.shape)
    )
    found = {}
    array = np.ones(64 * MEBIBYTE, np.float32)
    actions: dict[str, Callable[[], wg.Tensor]] = {
        "memory of a slice of 256 MiB, beyond input and output": lambda: operator(x, out=out),
        "memory of asarray of 256 MiB, beyond input and output": lambda: wg.asarray(array, device=device),
    }
    for label, action in actions.items():
        gc.collect()
        operator(x, out=out)  # its memory is committed
        device.synchronize()
        RESET.write_text("5")
        before = status("VmRSS")
        kept = action()
        device.synchronize()
        new_nbytes = 0 if kept is out else kept.nbytes
        found[label] = float(max(status("VmHWM") - before - new_nbytes, 0))
        del kept
    return found


def status(field: str) -> int:
    """Return the memory of this process on Linux, in bytes."""
    for line in STATUS.read_text("utf-8").splitlines():
        if line.startswith(field):
            return int(line.split()[1]) * 1024
    raise ValueError(f"{STATUS} has no {field}")

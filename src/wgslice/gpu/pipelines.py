"""Objects kept for reuse on a device: pipelines, uniform blocks, tables, commands of plans, and buffers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from functools import lru_cache, partial
from hashlib import blake2b
from threading import Lock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from wgslice.gpu.capture import Place
from wgslice.gpu.native import lease_class, translated_errors
from wgslice.gpu.protocols import (
    COMPUTE_STAGE,
    BindGroup,
    BindGroupLayout,
    Buffer,
    BufferUsage,
    GPUDevice,
    Pipeline,
)
from wgslice.plans.choose import Step
from wgslice.plans.indexed import IndexedDispatch
from wgslice.plans.kernels import INSERTING, OF_WINDOWS, SCATTERING, TABLES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import MAX_PIPELINES, MAX_UNIFORM_BUFFERS
from wgslice.plans.steps import BufferCopies, Clear, Memory, Span, TextureCopy
from wgslice.plans.windows import WindowDispatch
from wgslice.shaders import entry_point, kernel_module, override_constants, uniform_block

# Binding numbers; window kernels use the last three, gathers and scatters INDICES and INDEX_WINNERS instead.
UNIFORMS, SOURCE, TARGET, PICKS, OFFSETS, WINDOW_WINNERS = range(6)
INDICES, INDEX_WINNERS = 3, 4
READ = "read-only-storage"

# Fresh memory costs page faults and a clear: 64 MiB reversed on lavapipe (Mesa 22.3, two cores of an AMD
# EPYC) take 45 ms into a buffer that was written before and 75 to 90 ms into a new one, 256 MiB 200 and 340.
MIN_REUSED_NBYTES = 2**20  # wgpu allocates smaller buffers from memory that it holds, as fast as reuse
VARIABLE = "WGSLICE_REUSED_MIB"
MAX_REUSED_MIB = 512


class Binding(NamedTuple):
    """The part of a memory that a dispatch binds."""

    number: int
    memory: Memory
    offset_nbytes: int
    nbytes: int


class Bound(NamedTuple):
    """A dispatch with everything that does not depend on callers' buffers."""

    pipeline: Pipeline
    layout: BindGroupLayout
    entries: tuple[dict[str, Any], ...]  # of a bind group: uniform block and constant tables
    bindings: tuple[Binding, ...]  # buffers given at recording
    workgroups: tuple[int, int, int]


Command: TypeAlias = Clear | BufferCopies | TextureCopy | Bound


class Pipelines:
    """Caches of pipelines by kernel and constants, uniform blocks by value, and commands by plan."""

    def __init__(self, wgpu_device: GPUDevice) -> None:
        self.wgpu_device = wgpu_device
        self.layouts = [  # indexed by the number of tables
            bind_group_layout(wgpu_device, "uniform", READ, "storage", *[READ] * count) for count in range(4)
        ]
        self.probe_layout = bind_group_layout(wgpu_device, READ)
        self.module = lru_cache(maxsize=len(Kernel))(
            lambda kernel: wgpu_device.create_shader_module(label=kernel.value, code=kernel_module(kernel))
        )
        self.pipeline = lru_cache(maxsize=MAX_PIPELINES)(self._make_pipeline)
        self.uniform_buffer, self.constant_buffer = (
            lru_cache(maxsize=MAX_UNIFORM_BUFFERS)(partial(wgpu_device.create_buffer_with_data, usage=usage))
            for usage in (BufferUsage.UNIFORM, BufferUsage.STORAGE | BufferUsage.COPY_SRC)
        )
        self.tables: WeakKeyDictionary[object, dict[bytes, Buffer]] = WeakKeyDictionary()
        self.commands: WeakKeyDictionary[Plan, tuple[Command, ...]] = WeakKeyDictionary()

    def prepare(self, plan: Plan) -> tuple[Command, ...]:
        """Return a plan's commands, made on first use and kept as long as the plan."""
        found = self.commands.get(plan)
        if found is None:
            with translated_errors:
                found = tuple(self._command(step) for step in plan.steps)
            self.commands[plan] = found
        return found

    def bind(self, command: Bound, places: Sequence[Place]) -> BindGroup:
        """Make a bind group of the buffers at `places`, indexed by memory."""
        entries = list(command.entries)
        for number, memory, offset_nbytes, nbytes in command.bindings:
            buffer, base = places[memory]
            resource = {"buffer": buffer, "offset": base + offset_nbytes, "size": nbytes}
            entries.append({"binding": number, "resource": resource})
        return self.wgpu_device.create_bind_group(layout=command.layout, entries=entries)

    def probe(self, buffer: Buffer) -> None:
        """Make an unused bind group: an invalid buffer raises here, and would abort in a submission."""
        entries = [{"binding": 0, "resource": {"buffer": buffer, "offset": 0, "size": 4}}]
        self.wgpu_device.create_bind_group(layout=self.probe_layout, entries=entries)

    def _command(self, step: Step) -> Command:
        """Return the command of a step; constant tables live as long as the windows or indices they hold."""
        if isinstance(step, Clear | BufferCopies | TextureCopy):
            return step
        constant: dict[int, Buffer] = {UNIFORMS: self.uniform_buffer(data=uniform_block(step))}
        supplied = {SOURCE: (step.reads, step.source_binding), TARGET: (step.writes, step.target_binding)}
        if isinstance(step, WindowDispatch | IndexedDispatch):
            self._add_tables(step, constant, supplied)
        spare = OFFSETS if step.kernel in OF_WINDOWS else INDICES
        for number in {*range(3, 3 + TABLES.get(step.kernel, 0))} - {*constant, *supplied}:
            if spare in constant:  # an unread binding needs a buffer as well
                constant[number] = constant[spare]
            else:
                supplied[number] = supplied[spare]
        return Bound(
            self.pipeline(step.kernel, tuple(override_constants(step).items())),
            self.layouts[TABLES.get(step.kernel, 0)],
            tuple({"binding": number, "resource": buffer} for number, buffer in constant.items()),
            tuple(
                Binding(number, memory, span.offset_nbytes, span.nbytes)
                for number, (memory, span) in supplied.items()
            ),
            step.share.workgroups,
        )

    def _add_tables(
        self,
        step: WindowDispatch | IndexedDispatch,
        constant: dict[int, Buffer],
        supplied: dict[int, tuple[Memory, Span]],
    ) -> None:
        """Add the offsets or indices that a dispatch binds, and the winners."""
        of_windows = isinstance(step, WindowDispatch)
        table, winners = (OFFSETS, WINDOW_WINNERS) if of_windows else (INDICES, INDEX_WINNERS)
        if step.table is not None:
            supplied[table] = step.table.memory, step.table.span
        elif isinstance(step, WindowDispatch):
            assert step.windows.offsets is not None
            constant[table] = self._table(step.windows, step.windows.offsets)
        else:
            assert step.copy.host is not None
            constant[table] = self._table(step.copy.host, step.copy.host.values, only=True)
        if isinstance(step, WindowDispatch) and step.picks is not None:
            chosen = np.stack([step.picks, step.windows.flips[step.picks]], axis=1)
            constant[PICKS] = self._table(step.windows, chosen)
        if step.winners is not None and step.kernel in INSERTING | SCATTERING:
            supplied[winners] = Memory.WINNERS, step.winners.span

    def _table(self, owner: object, values: NDArray[Any], *, only: bool = False) -> Buffer:
        """Return the buffer of an owner's values, shared by plans; `only` if it has no other values."""
        data = np.ascontiguousarray(values)
        kept = self.tables.setdefault(owner, {})
        content = b"" if only else blake2b(data.data).digest()
        if content not in kept:
            kept[content] = self.wgpu_device.create_buffer_with_data(data=data, usage=BufferUsage.STORAGE)
        return kept[content]

    def _make_pipeline(self, kernel: Kernel, constants: tuple[tuple[str, int], ...]) -> Pipeline:
        """Compile a kernel with its override constants."""
        layout = self.layouts[TABLES.get(kernel, 0)]
        return self.wgpu_device.create_compute_pipeline(
            layout=self.wgpu_device.create_pipeline_layout(bind_group_layouts=[layout]),
            compute={
                "module": self.module(kernel),
                "entry_point": entry_point(kernel),
                "constants": dict(constants),
            },
        )


def bind_group_layout(wgpu_device: GPUDevice, *types: str) -> BindGroupLayout:
    """Make the layout of a bind group whose buffers are numbered from 0."""
    return wgpu_device.create_bind_group_layout(
        entries=[
            {"binding": number, "visibility": COMPUTE_STAGE, "buffer": {"type": type_}}
            for number, type_ in enumerate(types)
        ]
    )


class BufferPool:
    """Unused buffers of limited total size; the least recently returned one is freed first."""

    def __init__(self, max_nbytes: int) -> None:
        self.max_nbytes = max_nbytes
        self.nbytes = 0
        self.buffers: list[Buffer] = []  # least recently returned first
        # Referenced here, a buffer is no part of a reference cycle that its tensor is in: the garbage
        # collector would free its memory before it is given back.
        self.in_use: set[Buffer] = set()
        self.lock = Lock()

    def lease(self, buffer: Buffer) -> Buffer:
        """Return a second handle of a buffer, which gives it back when it is dropped."""
        self.in_use.add(buffer)
        return lease_class()(buffer, self.give)

    def give(self, buffer: Buffer, exposed: bool) -> None:
        """Keep an unreferenced buffer for reuse; free it if it was exposed, or another call holds the lock.

        Called when the last reference is dropped, which the garbage collector may do in any thread and
        during these methods, so that waiting for the lock could deadlock.
        """
        self.in_use.discard(buffer)
        if exposed or buffer.size > self.max_nbytes or not self.lock.acquire(blocking=False):
            return
        try:
            self.buffers.append(buffer)
            self.nbytes += buffer.size
            self._shrink(self.max_nbytes)
        finally:
            self.lock.release()

    def take(self, size: int) -> Buffer | None:
        """Remove and return the most recently returned buffer of exactly `size` bytes, if any."""
        with self.lock:
            for position in reversed(range(len(self.buffers))):
                if self.buffers[position].size == size:
                    self.nbytes -= size
                    return self.buffers.pop(position)
        return None

    def shrink(self, max_nbytes: int = 0) -> bool:
        """Free the least recently returned buffers beyond `max_nbytes`; return whether there was one."""
        with self.lock:
            return self._shrink(max_nbytes)

    def _shrink(self, max_nbytes: int) -> bool:
        before = self.nbytes
        while self.nbytes > max_nbytes:
            self.nbytes -= self.buffers.pop(0).size
        return self.nbytes < before


def max_reused_nbytes() -> int:
    """Return how many bytes a device keeps for reuse, from the environment variable WGSLICE_REUSED_MIB."""
    given = os.environ.get(VARIABLE, str(MAX_REUSED_MIB))
    if not given.isdecimal():
        raise ValueError(f"{VARIABLE} = {given!r}: must be a number of MiB; 0 keeps no buffer for reuse")
    return int(given) << 20

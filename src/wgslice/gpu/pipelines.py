"""Objects kept for reuse on a device: pipelines, uniform blocks, tables, commands of plans, and buffers."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import lru_cache, partial
from threading import Lock
from typing import Any, NamedTuple, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np

from wgslice.gpu.adapter import Adapter
from wgslice.gpu.hosts import host_named, setting
from wgslice.gpu.hosts.webgpu import WebGPU
from wgslice.gpu.protocols import COMPUTE_STAGE, Buffer, BufferRange, BufferUsage, GPUDevice, Place
from wgslice.plans.indexed import IndexedDispatch
from wgslice.plans.kernels import INSERTING, OF_WINDOWS, SCATTERING, TABLES, WIDEST_NBYTES, Kernel
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import MAX_CONSTANTS, MAX_PIPELINES, MAX_UNIFORM_BUFFERS
from wgslice.plans.proofs import Checks, needed_checks
from wgslice.plans.steps import BufferCopies, Clear, Memory, OnGrid, Span, TextureCopy
from wgslice.plans.windows import SizedDispatch, WindowDispatch
from wgslice.shaders import entry_point, module_of, override_constants, uniform_block

# Binding numbers; window kernels use the last three, gathers and scatters INDICES and INDEX_WINNERS instead.
UNIFORMS, SOURCE, TARGET, PICKS, OFFSETS, WINDOW_WINNERS = range(6)
INDICES, INDEX_WINNERS = 3, 4
READ = "read-only-storage"
MAX_LAYOUTS = 16
WORKGROUP_SIZE = "workgroup_size"  # the override constant of every kernel; its default is 64
MAX_CHECKED_NBYTES = 2**16  # of a binding; a module's types of fixed size are smaller

# Fresh memory costs page faults and a clear: 64 MiB reversed on lavapipe (Mesa 22.3, two cores of an AMD
# EPYC) take 45 ms into a buffer that was written before and 75 to 90 ms into a new one, 256 MiB 200 and 340.
MIN_REUSED_NBYTES = 2**20  # wgpu allocates smaller buffers from memory that it holds, as fast as reuse
VARIABLE = "WGSLICE_REUSED_MIB"
CHECKS_VARIABLE = "WGSLICE_CHECKS"
UNCHECKED_BACKENDS = "Vulkan", "Metal", "D3D12"  # of GPUs; OpenGL's drivers have shown most faults
MAX_REUSED_MIB = 512


class MemoryRange(NamedTuple):
    """The part of a memory that a dispatch binds."""

    number: int
    memory: int  # index among the buffers of a recording
    offset_nbytes: int
    nbytes: int


class Content(NamedTuple):
    """Bytes that a dispatch binds: a uniform block, or a table, which lives as long as its owner."""

    values: Any  # bytes of a uniform block, or an array
    owner: object = None
    only: bool = False  # whether the owner has no other tables


class KernelCall(NamedTuple):
    """A dispatch without GPU objects: all that a WebGPU host needs but the buffers."""

    module: str  # WGSL
    entry_point: str
    constants: tuple[tuple[str, int], ...]
    types: tuple[str, ...]  # of the bindings, by number
    contents: dict[int, Content]  # by binding number
    bindings: tuple[MemoryRange, ...]  # buffers given at recording
    workgroups: tuple[int, int, int]
    checks: Checks = Checks.ALL  # that its module needs: fewer only where a plan's step has a proof


class PreparedDispatch(NamedTuple):
    """A dispatch with everything that does not depend on callers' buffers."""

    pipeline: Any
    layout: Any
    constants: tuple[BufferRange, ...]  # uniform block and constant tables
    bindings: tuple[MemoryRange, ...]  # buffers given at recording
    workgroups: tuple[int, int, int]


class ReadyDispatch(NamedTuple):
    """A dispatch with its buffers."""

    pipeline: Any
    bind_group: Any
    workgroups: tuple[int, int, int]


Command: TypeAlias = Clear | BufferCopies | TextureCopy | PreparedDispatch
# A dispatch, or another command and places in buffers, indexed by memory.
ReadyCommand: TypeAlias = ReadyDispatch | tuple[Clear | BufferCopies | TextureCopy, Sequence[Place]]


class Pipelines:
    """Caches of pipelines by kernel and constants, of blocks and constants by value, of commands by plan."""

    def __init__(
        self, host: WebGPU, wgpu_device: GPUDevice, calls: AbstractContextManager[None], checks: Checks
    ) -> None:
        self.host = host
        self.wgpu_device = wgpu_device
        self.calls = calls  # around those of the host
        self.checks = checks  # that every module has at least
        self.layout = lru_cache(maxsize=MAX_LAYOUTS)(partial(bind_group_layout, wgpu_device))
        self.probe_layout = self.layout(READ)  # of one buffer
        self.module = lru_cache(maxsize=2 * len(Kernel))(partial(host.create_module, wgpu_device))
        self.pipeline = lru_cache(maxsize=MAX_PIPELINES)(self._make_pipeline)
        self.uniform_buffer = lru_cache(maxsize=MAX_UNIFORM_BUFFERS)(
            partial(wgpu_device.create_buffer_with_data, usage=BufferUsage.UNIFORM)
        )
        self.constant = lru_cache(maxsize=MAX_CONSTANTS)(partial(constant_buffer, wgpu_device))
        self.tables: WeakKeyDictionary[object, dict[bytes, Buffer]] = WeakKeyDictionary()
        self.commands: WeakKeyDictionary[Plan, tuple[Command, ...]] = WeakKeyDictionary()

    def prepare(self, plan: Plan) -> tuple[Command, ...]:
        """Return a plan's commands, made on first use and kept as long as the plan."""
        found = self.commands.get(plan)
        if found is None:
            with self.calls:
                found = tuple(
                    self.bound(kernel_call(step)) if isinstance(step, OnGrid) else step for step in plan.steps
                )
            self.commands[plan] = found
        return found

    def bind_all(self, commands: Sequence[Command], places: Sequence[Place]) -> list[ReadyCommand]:
        """Make the bind groups of commands whose buffers are at `places`, indexed by memory."""
        with self.calls:
            return [
                self.bind(each, places) if isinstance(each, PreparedDispatch) else (each, places)
                for each in commands
            ]

    def bind(self, command: PreparedDispatch, places: Sequence[Place]) -> ReadyDispatch:
        """Make the bind group of a dispatch."""
        ranges = list(command.constants)
        for number, memory, offset_nbytes, nbytes in command.bindings:
            buffer, base = places[memory]
            ranges.append(BufferRange(number, buffer, base + offset_nbytes, nbytes))
        bind_group = self.host.make_bind_group(self.wgpu_device, command.layout, ranges)
        return ReadyDispatch(command.pipeline, bind_group, command.workgroups)

    def bound(self, call: KernelCall) -> PreparedDispatch:
        """Return the pipeline and the constant buffers of a call."""
        constant = {
            number: self.uniform_buffer(data=content.values)
            if call.types[number] == "uniform"
            else self._table(content)
            for number, content in call.contents.items()
        }
        return PreparedDispatch(
            self.pipeline(*call[:4], max(call.checks, self.checks)),
            self.layout(*call.types),
            tuple(BufferRange(number, buffer, 0, buffer.size) for number, buffer in constant.items()),
            call.bindings,
            call.workgroups,
        )

    def check(self, call: KernelCall) -> None:
        """Submit a call on small buffers, without workgroups, so that wgpu's errors of it are raised.

        wgpu-native 29 keeps commands that are not submitted, and the memory of their buffers, for ever.
        """
        most = self.wgpu_device.limits["max-compute-invocations-per-workgroup"]
        # wgpu does not check an overridden size
        invocations = dict(call.constants).get(WORKGROUP_SIZE, 0)
        if invocations > most:
            raise ValueError(f"{WORKGROUP_SIZE} {invocations}: the device allows at most {most}")
        command = self.bound(call)
        ranges = list(command.constants)
        for number, _, _, nbytes in command.bindings:
            size = min(nbytes, MAX_CHECKED_NBYTES)
            usage = BufferUsage.STORAGE
            ranges.append(
                BufferRange(number, self.wgpu_device.create_buffer(size=size, usage=usage), 0, size)
            )
        encoder = self.wgpu_device.create_command_encoder()
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(command.pipeline)
        compute_pass.set_bind_group(0, self.host.make_bind_group(self.wgpu_device, command.layout, ranges))
        compute_pass.dispatch_workgroups(0, 0, 0)
        compute_pass.end()
        self.host.submit(self.wgpu_device, encoder)

    def _table(self, content: Content) -> Buffer:
        """Return the buffer of an owner's table, shared by plans."""
        data = np.ascontiguousarray(content.values)
        kept = self.tables.setdefault(content.owner, {})
        key = b"" if content.only else data.tobytes()
        if key not in kept:
            kept[key] = self.wgpu_device.create_buffer_with_data(data=data, usage=BufferUsage.STORAGE)
        return kept[key]

    def _make_pipeline(
        self,
        module: str,
        entry_point: str,
        constants: tuple[tuple[str, int], ...],
        types: tuple[str, ...],
        checks: Checks,
    ) -> Any:
        """Compile a kernel with its override constants and run-time checks."""
        return self.wgpu_device.create_compute_pipeline(
            layout=self.wgpu_device.create_pipeline_layout(bind_group_layouts=[self.layout(*types)]),
            compute={
                "module": self.module(entry_point, module, checks),
                "entry_point": entry_point,
                "constants": dict(constants),
            },
        )


def kernel_call(step: OnGrid) -> KernelCall:
    """Return a step's dispatch; its tables live as long as the windows or indices they hold."""
    contents = {UNIFORMS: Content(uniform_block(step))}
    supplied = {SOURCE: (step.reads, step.source_binding), TARGET: (step.writes, step.target_binding)}
    if isinstance(step, SizedDispatch):
        contents[PICKS] = Content(step.table, step, only=True)
        if step.device is None:
            contents[OFFSETS] = contents[PICKS]  # unread
        else:
            supplied[OFFSETS] = step.device.table.memory, step.device.table.span
    if isinstance(step, WindowDispatch | IndexedDispatch):
        add_tables(step, contents, supplied)
    tables = TABLES.get(step.kernel, 0)
    spare = OFFSETS if step.kernel in OF_WINDOWS else INDICES
    for number in {*range(3, 3 + tables)} - {*contents, *supplied}:
        if spare in contents:  # an unread binding needs a buffer as well
            contents[number] = contents[spare]
        else:
            supplied[number] = supplied[spare]
    return KernelCall(
        module_of(step),
        entry_point(step.kernel),
        tuple(override_constants(step).items()),
        ("uniform", READ, "storage", *[READ] * tables),
        contents,
        tuple(
            MemoryRange(number, memory, span.offset_nbytes, span.nbytes)
            for number, (memory, span) in supplied.items()
        ),
        step.share.workgroups,
        needed_checks(step),
    )


def add_tables(
    step: WindowDispatch | IndexedDispatch,
    contents: dict[int, Content],
    supplied: dict[int, tuple[Memory, Span]],
) -> None:
    """Add the offsets or indices that a dispatch binds, and the winners."""
    of_windows = isinstance(step, WindowDispatch)
    table, winners = (OFFSETS, WINDOW_WINNERS) if of_windows else (INDICES, INDEX_WINNERS)
    if step.table is not None:
        binding = step.table_binding if isinstance(step, IndexedDispatch) else step.table.span
        supplied[table] = step.table.memory, binding
    elif isinstance(step, WindowDispatch):
        assert step.windows.offsets is not None
        contents[table] = Content(step.windows.offsets, step.windows)
    else:
        assert step.copy.host is not None
        contents[table] = Content(step.copy.host.values, step.copy.host, only=True)
    if isinstance(step, WindowDispatch) and step.picks is not None:
        chosen = np.stack([step.picks, step.windows.flips[step.picks]], axis=1)
        contents[PICKS] = Content(chosen, step.windows)
    if step.winners is not None and step.kernel in INSERTING | SCATTERING:
        supplied[winners] = Memory.WINNERS, step.winners.span


def constant_buffer(wgpu_device: GPUDevice, values: bytes, count: int = 1) -> Buffer:
    """Make a buffer of some bytes `count` times, then zeros to whole vectors, that is never written."""
    data = values * count
    data += bytes(-len(data) % WIDEST_NBYTES)
    usage = BufferUsage.STORAGE | BufferUsage.COPY_SRC
    made: Buffer = wgpu_device.create_buffer_with_data(data=data, usage=usage)
    return made


def bind_group_layout(wgpu_device: GPUDevice, *types: str) -> Any:
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

    def give(self, buffer: Buffer, is_given_out: bool = False) -> None:
        """Keep an unreferenced buffer for reuse; free it if it was given out, or another call holds the lock.

        Called when the last reference is dropped, which the garbage collector may do in any thread and
        during these methods, so that waiting for the lock could deadlock.
        """
        self.in_use.discard(buffer)
        if is_given_out or buffer.size > self.max_nbytes or not self.lock.acquire(blocking=False):
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
    rule = "a number of MiB; 0 keeps no buffer for reuse"
    return int(setting(VARIABLE, str(MAX_REUSED_MIB), r"\d+", rule)) << 20


def fewest_checks(adapter: Adapter) -> Checks:
    """Return the fewest checks that modules on an adapter may have: all by the variable WGSLICE_CHECKS."""
    rule = "0 or 1; 1 keeps all run-time checks, 0 is the default"
    given = setting(CHECKS_VARIABLE, "0", "0|1", rule)
    backends = ("Vulkan",) if adapter.software else UNCHECKED_BACKENDS
    omits = given == "0" and host_named(adapter.host).omits_checks and adapter.backend in backends
    return Checks.NONE if omits else Checks.ALL

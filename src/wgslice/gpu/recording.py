"""A plan and buffers become recorded commands. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeAlias

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.first_look import planned_after_a_look
from wgslice.gpu.handles import check_alive, check_usable
from wgslice.gpu.pipelines import Bound, Command, Place
from wgslice.gpu.protocols import BindGroup, Buffer, CommandEncoder, ComputePass
from wgslice.gpu.translation import translated_errors
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import Table, Terms, seat
from wgslice.plans.profiles import Limits
from wgslice.plans.staging import planned
from wgslice.plans.steps import BufferCopies, Clear, Memory

__all__ = [
    "SIDES",
    "Operand",
    "Placed",
    "Planning",
    "Recorder",
    "check_bindable",
    "place",
    "record",
    "record_placed",
    "run",
    "run_copies",
    "run_copy",
]


Planning: TypeAlias = Callable[..., Plan]  # `planned` or `plan_anew`
SIDES = ("input", "output", "offsets")  # callers' memories, as errors call them


class Operand(NamedTuple):
    """One side of a copy, or offsets of windows: a buffer and the layout of elements in it."""

    buffer: Buffer
    layout: Layout
    itemsize: int  # bytes an element
    fresh: bool = False  # whether the buffer was made a moment ago, so that no caller can have spoiled it


class Placed(NamedTuple):
    """A plan, and the buffers that callers bring, by the memories they stand for."""

    plan: Plan
    places: Sequence[Place]


class Recorder:
    """Records commands into an encoder; dispatches that follow each other share a compute pass."""

    def __init__(self, device: Device, encoder: CommandEncoder) -> None:
        self.device = device
        self.encoder = encoder
        self.compute_pass: ComputePass | None = None

    def copy(
        self, planner: Planner, source: Operand, target: Operand, *, planning: Planning = planned
    ) -> None:
        """Plan and record between buffers that have been checked."""
        plan, places = place(self.device, planner, source, target, planning=planning)
        self.add(plan, self.device.pipelines.prepare(plan), places)

    def add(self, plan: Plan, commands: Sequence[Command], places: Sequence[Place]) -> None:
        """Record a plan's prepared commands; what is refused records nothing."""
        with translated_errors:
            brought = self._with_own(plan, places)
            bind = self.device.pipelines.bind
            bound = [bind(command, brought) if isinstance(command, Bound) else None for command in commands]
            for command, bind_group in zip(commands, bound, strict=True):
                if isinstance(command, Bound):
                    self._dispatch(command, bind_group)
                else:
                    self.end()
                    self._copy(command, brought)

    def end(self) -> None:
        """Leave the encoder without an open pass."""
        if self.compute_pass is not None:
            self.compute_pass.end()
            self.compute_pass = None

    def _with_own(self, plan: Plan, places: Sequence[Place]) -> Sequence[Place]:
        """Callers' buffers, and those that nobody brings."""
        if not (plan.scratch or plan.reads_zeros):
            return places
        own = dict(enumerate(places))
        if plan.reads_zeros:
            own[Memory.ZEROS] = Place(self.device.zeros)
        for memory, nbytes in plan.scratch:
            own[memory] = Place(self.device.create_buffer(nbytes))
        unused = places[Memory.OUTPUT]
        return [own.get(memory, unused) for memory in Memory]

    def _dispatch(self, command: Bound, bind_group: BindGroup | None) -> None:
        assert bind_group is not None
        if self.compute_pass is None:
            self.compute_pass = self.encoder.begin_compute_pass()
        self.compute_pass.set_pipeline(command.pipeline)
        self.compute_pass.set_bind_group(0, bind_group)
        self.compute_pass.dispatch_workgroups(*command.workgroups)

    def _copy(self, command: Clear | BufferCopies, places: Sequence[Place]) -> None:
        """Record a clear, or buffer copies."""
        if isinstance(command, Clear):
            target, base = places[Memory.OUTPUT]
            self.encoder.clear_buffer(target, base + command.offset_nbytes, command.nbytes)
            return
        (source, source_base), (target, target_base) = places[command.reads], places[command.writes]
        for source_place, target_place in zip(command.source.places(), command.target.places(), strict=True):
            self.encoder.copy_buffer_to_buffer(
                source, source_base + source_place, target, target_base + target_place, command.nbytes
            )


def run_copy(device: Device, source: Operand, target: Operand) -> None:
    """Copy on the GPU, without waiting for it."""
    run(device, plan_copy, source, target)


def run(
    device: Device,
    planner: Planner,
    source: Operand,
    target: Operand,
    offsets: Operand | None = None,
    *,
    planning: Planning = planned,
) -> None:
    """Plan, record and submit, without waiting for the GPU."""
    encoder = device.create_encoder()
    record(device, encoder, planner, source, target, offsets, planning=planning)
    device.submit(encoder)


def run_copies(device: Device, copies: Iterable[tuple[Operand, Operand]]) -> None:
    """Copy one after the other in one submission, between buffers that have been checked; no wait for it."""
    recorder = Recorder(device, device.create_encoder())
    for source, target in copies:
        recorder.copy(plan_copy, source, target)
    recorder.end()
    device.submit(recorder.encoder)


def record(
    device: Device,
    encoder: CommandEncoder,
    planner: Planner,
    source: Operand,
    target: Operand,
    offsets: Operand | None = None,
    *,
    planning: Planning = planned,
) -> None:
    """Plan, and record into an encoder; what is refused records nothing."""
    operands = (source, target) if offsets is None else (source, target, offsets)
    made = [memory for memory, operand in enumerate(operands) if operand.fresh]
    check_bindable(device, [operand.buffer for operand in operands], made)
    placed = place(device, planner, source, target, offsets, planning=planning)
    record_placed(device, encoder, placed, device.pipelines.prepare(placed.plan), made)


def check_bindable(device: Device, buffers: Sequence[Buffer], made: Sequence[int]) -> None:
    """Refuse callers' buffers that cannot be bound; of the memories `made` they were made a moment ago."""
    for memory, buffer in enumerate(buffers):
        if memory not in made:
            with named(SIDES[memory]):
                check_usable(device, buffer)


def record_placed(
    device: Device,
    encoder: CommandEncoder,
    placed: Placed,
    commands: Sequence[Command],
    made: Sequence[int],
    check: Callable[[Device, Buffer], None] = check_alive,
) -> None:
    """Record a plan's commands; `check` looks at the callers' buffers that no bind group looks at."""
    plan, places = placed
    for memory in plan.unbound:
        if memory not in made:
            with named(SIDES[memory]):
                check(device, places[memory].buffer)
    recorder = Recorder(device, encoder)
    try:
        recorder.add(plan, commands, places)
    except ValueError:
        check_sides(device, places)
        raise
    recorder.end()


def check_sides(device: Device, places: Sequence[Place]) -> None:
    """Say of the first callers' buffer that has been destroyed which it is."""
    for side, (buffer, _) in zip(SIDES, places, strict=False):
        with named(side):
            check_alive(device, buffer)


def place(
    device: Device,
    planner: Planner,
    source: Operand,
    target: Operand,
    offsets: Operand | None = None,
    *,
    planning: Planning = planned,
) -> Placed:
    """The plan for buffers, and where in them it counts from."""
    limits, itemsize = device.limits, source.itemsize
    read = seat(source.layout, itemsize, source.buffer.size, limits)
    written = seat(target.layout, itemsize, target.buffer.size, limits)
    places = [Place(source.buffer, read.base), Place(target.buffer, written.base)]
    table = None
    if offsets is not None:
        held = seat(offsets.layout, offsets.itemsize, offsets.buffer.size, limits)
        places.append(Place(offsets.buffer, held.base))
        copy_from = bool(offsets.buffer.usage & BufferUsage.COPY_SRC)
        in_output = offsets.buffer is target.buffer
        table = Table(held.layout, offsets.itemsize, copy_from, held.room_nbytes, in_output)

    def plan_for(limits: Limits) -> Plan:
        terms = Terms(
            limits,
            bool(source.buffer.usage & BufferUsage.COPY_SRC),
            bool(target.buffer.usage & BufferUsage.COPY_DST),
            read.room_nbytes,
            written.room_nbytes,
            source.buffer is target.buffer,
            table,
        )
        return planning(planner, read.layout, written.layout, itemsize, terms)

    return Placed(planned_after_a_look(device, plan_for), places)

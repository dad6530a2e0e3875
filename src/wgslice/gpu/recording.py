"""Recording: commands for a plan and its buffers, without further choices."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from wgslice.errors import named
from wgslice.gpu.device import Device, check_usable
from wgslice.gpu.handles import check_alive
from wgslice.gpu.host import copy_rows, copy_texels, translated_errors
from wgslice.gpu.pipelines import BoundCommand, BoundDispatch
from wgslice.gpu.protocols import Buffer, BufferUsage, CommandEncoder, ComputePass, Pipeline, Place, Region
from wgslice.gpu.sink import BoundPlan, sink
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy, planned
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import PlanContext, Table, rebase
from wgslice.plans.profiles import MAX_PLANS, Limits
from wgslice.plans.steps import BufferCopies, Clear, Memory, TextureCopy

# What a plan depends on of one side: layout, its byte offset in a buffer, and bytes and usage of the buffer.
Side: TypeAlias = tuple[Layout, int, int, int]
Planning: TypeAlias = Callable[..., Plan]  # `planned` or `plan_anew`
Copy: TypeAlias = tuple[Buffer, Layout, Buffer, Layout]  # of a layout in one buffer to a layout in another
SIDES = ("input", "output", "offsets")  # names of callers' memories in errors


class BoundLayout(NamedTuple):
    """A layout in a buffer: one side of a copy, or offsets of windows."""

    buffer: Buffer
    layout: Layout  # of elements, counted from `offset_nbytes`
    itemsize: int  # bytes an element
    fresh: bool = False  # the buffer is new and unknown to callers, so it needs no checks
    offset_nbytes: int = 0  # in the buffer, aligned for a binding

    @classmethod
    def packed(cls, device: Device, sizes: Sequence[int], itemsize: int) -> BoundLayout:
        """Make a packed layout in a new buffer of any content."""
        layout = Layout.packed(sizes)
        return cls(sink().reused_buffer(device, layout.size * itemsize), layout, itemsize, fresh=True)


class Recorder:
    """Records commands into an encoder; consecutive dispatches share a compute pass."""

    def __init__(
        self,
        device: Device,
        encoder: CommandEncoder,
        region: Region | None = None,
        compute_pass: ComputePass | None = None,
    ) -> None:
        self.device = device
        self.encoder = encoder
        self.region = region  # read or written by texture copies
        self.compute_pass = compute_pass  # the open one
        self.pipeline: Pipeline | None = None  # that of the open pass
        self.copies = False  # whether it has recorded a copy, which an encoder that has ended refuses

    def add(self, plan: Plan, places: Sequence[Place]) -> None:
        """Bind and record a plan, or nothing if it raises."""
        self.play(sink().bind(self.device, plan, places))

    def play(self, bound: BoundPlan) -> None:
        """Record a bound plan."""
        sink().record(self.encoder, bound, self.record)

    def record(self, commands: Sequence[BoundCommand], places: Sequence[Place]) -> None:
        """Record commands on buffers, in order."""
        with translated_errors:
            for command in commands:
                if isinstance(command, BoundDispatch):
                    self.compute_pass = self.compute_pass or self.encoder.begin_compute_pass()
                    if command.pipeline is not self.pipeline:
                        self.pipeline = command.pipeline
                        self.compute_pass.set_pipeline(command.pipeline)
                    self.compute_pass.set_bind_group(0, command.bind_group)
                    self.compute_pass.dispatch_workgroups(*command.workgroups)
                else:
                    self.end()
                    self._copy(command, places)

    def end(self) -> None:
        """End the open compute pass, if any."""
        if self.compute_pass is not None:
            with translated_errors:
                self.compute_pass.end()
            self.compute_pass = self.pipeline = None

    def _copy(self, command: Clear | BufferCopies | TextureCopy, places: Sequence[Place]) -> None:
        """Record a clear, buffer copies, or a texture copy."""
        if isinstance(command, BufferCopies):
            sides = places[command.reads], places[command.writes]
            copy_rows(self.encoder, sides, command.offsets.tolist(), command.nbytes, not self.copies)
            self.copies = True
        elif isinstance(command, Clear):
            target, base = places[command.writes]
            self.encoder.clear_buffer(target, base + command.offset_nbytes, command.nbytes)
        else:
            assert self.region is not None
            writes = command.writes is Memory.TEXTURE
            buffer, base = places[command.reads if writes else command.writes]
            rows = base + command.offset_nbytes, command.row_nbytes, command.image_rows
            copy_texels(self.encoder, self.region, buffer, rows, command.size, writes=writes)


def run_copy(
    device: Device, source: BoundLayout, target: BoundLayout, encoder: CommandEncoder | None = None
) -> None:
    """Submit a copy, without waiting for the GPU; `encoder` as for `run`."""
    run(device, plan_copy, source, target, encoder=encoder)


def run(
    device: Device,
    planner: Planner,
    source: BoundLayout,
    target: BoundLayout,
    offsets: BoundLayout | None = None,
    *,
    planning: Planning = planned,
    encoder: CommandEncoder | None = None,
) -> None:
    """Plan, record and submit, without waiting for the GPU; the commands of `encoder` run before."""
    encoder = encoder or sink().create_encoder(device)
    play(device, encoder, plan_and_bind(device, planner, source, target, offsets, planning=planning))
    sink().submit(device, encoder)


def run_copies(device: Device, itemsize: int, copies: Iterable[Copy]) -> None:
    """Submit copies between checked buffers, in order and in one submission, without waiting."""
    recorder, limits = Recorder(device, sink().create_encoder(device)), device.limits
    for read, source, written, target in copies:
        sides = (source, 0, read.size, read.usage), (target, 0, written.size, written.usage)
        plan, base, target_base = planned_between(plan_copy, limits, itemsize, read is written, *sides)
        recorder.add(plan, (Place(read, base), Place(written, target_base)))
    recorder.end()
    sink().submit(device, recorder.encoder)


def play(device: Device, encoder: CommandEncoder, bound: BoundPlan) -> None:
    """Record a bound plan into an encoder, which has no pass open."""
    recorder = Recorder(device, encoder)
    recorder.play(bound)
    recorder.end()


def plan_and_bind(
    device: Device,
    planner: Planner,
    source: BoundLayout,
    target: BoundLayout,
    offsets: BoundLayout | None = None,
    *,
    planning: Planning = planned,
    limits: Limits | None = None,
    check: Callable[[Device, Buffer], None] = check_alive,
) -> BoundPlan:
    """Plan a copy and bind its buffers; `check` checks those of callers that no bind group has."""
    sides = source, target, offsets
    for name, side in zip(SIDES, sides, strict=True):
        if side is not None and not side.fresh:
            with named(name):
                check_usable(device, side.buffer)
    plan, places = place(limits or device.limits, planner, source, target, offsets, planning=planning)
    for memory in plan.unbound:
        side = sides[memory]
        if side is not None and not side.fresh:
            with named(SIDES[memory]):
                check(device, side.buffer)
    try:
        return sink().bind(device, plan, places)
    except ValueError:
        for name, (buffer, _) in zip(SIDES, places, strict=False):
            with named(name):
                check_alive(device, buffer)
        raise


def place(
    limits: Limits,
    planner: Planner,
    source: BoundLayout,
    target: BoundLayout,
    offsets: BoundLayout | None = None,
    *,
    planning: Planning = planned,
) -> tuple[Plan, Sequence[Place]]:
    """Return the plan for bound layouts, and the buffers with their base offsets."""
    read, written = source.buffer, target.buffer
    sides = (
        (source.layout, source.offset_nbytes, read.size, read.usage),
        (target.layout, target.offset_nbytes, written.size, written.usage),
    )
    if offsets is None and planning is planned:
        plan, base, target_base = planned_between(planner, limits, source.itemsize, read is written, *sides)
        return plan, (Place(read, base), Place(written, target_base))
    layouts, context, bases = problem_between(limits, source.itemsize, read is written, *sides)
    places = [Place(read, bases[0]), Place(written, bases[1])]
    if offsets is not None:
        held = rebase(offsets.layout, offsets.itemsize, limits)
        places.append(Place(offsets.buffer, offsets.offset_nbytes + held.base))
        table = Table(
            held.layout,
            offsets.itemsize,
            bool(offsets.buffer.usage & BufferUsage.COPY_SRC),
            held.capacity_nbytes(offsets.buffer.size - offsets.offset_nbytes),
            offsets.buffer is target.buffer,
        )
        context = context._replace(table=table)
    return planning(planner, *layouts, source.itemsize, context), places


def problem_between(
    limits: Limits, itemsize: int, shared: bool, source: Side, target: Side
) -> tuple[tuple[Layout, Layout], PlanContext, tuple[int, int]]:
    """Return rebased layouts, plan context and base offsets in bytes for two sides of a copy."""
    source_layout, source_nbytes, read_nbytes, read_usage = source
    target_layout, target_nbytes, written_nbytes, written_usage = target
    read, written = (rebase(layout, itemsize, limits) for layout in (source_layout, target_layout))
    context = PlanContext(
        limits,
        bool(read_usage & BufferUsage.COPY_SRC),
        bool(written_usage & BufferUsage.COPY_DST),
        read.capacity_nbytes(read_nbytes - source_nbytes),
        written.capacity_nbytes(written_nbytes - target_nbytes),
        shared,
    )
    bases = source_nbytes + read.base, target_nbytes + written.base
    return (read.layout, written.layout), context, bases


def plan_between(
    planner: Planner, limits: Limits, itemsize: int, shared: bool, source: Side, target: Side
) -> tuple[Plan, int, int]:
    """Return a plan that copies at other offsets share, and the base offsets of these two sides."""
    layouts, context, bases = problem_between(limits, itemsize, shared, source, target)
    planning: Planning = planned
    return planning(planner, *layouts, itemsize, context), *bases


planned_between: Callable[..., tuple[Plan, int, int]] = lru_cache(maxsize=MAX_PLANS)(plan_between)

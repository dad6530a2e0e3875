"""Recording: checks of callers' wgpu handles, and commands for a plan and its buffers.

An invalid handle in a submission would abort the process.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.adapter import check_process
from wgslice.gpu.device import Device, check_usable, describe_buffer, is_elsewhere
from wgslice.gpu.pipelines import ReadyCommand, ReadyDispatch
from wgslice.gpu.protocols import (
    Buffer,
    BufferRange,
    BufferUsage,
    CommandEncoder,
    ComputePass,
    Place,
    Region,
    TexelRows,
    given_out,
    handle_of,
    is_given_out,
)
from wgslice.gpu.sink import ListedSubmission, Listing, ReadyPlan, sink
from wgslice.layout import Layout, whole_words
from wgslice.plans.copy import plan_anew, plan_copy, planned
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import PlanContext, Table, rebase
from wgslice.plans.profiles import MAX_PLANS, Limits
from wgslice.plans.steps import BufferCopies, Clear, Memory, TextureCopy

# What a plan depends on of one side: layout, its byte offset in a buffer, and bytes and usage of the buffer.
Side: TypeAlias = tuple[Layout, int, int, int]
Planning: TypeAlias = Callable[..., tuple[Plan, int, int]]  # `plan_between` with its first argument
# A copy of a layout in one buffer to a layout in another.
LayoutCopy: TypeAlias = tuple[Buffer, Layout, Buffer, Layout]
Check: TypeAlias = Callable[[Device, Buffer], None]  # raises if a caller's buffer has been destroyed
SIDES = ("input", "output", "offsets")  # names of callers' memories in errors


# callers' handles


def checked_encoder(device: Device, value: Any, *, or_pass: bool = False) -> Any:
    """Return the command encoder of the device, or the compute pass if that is accepted, that a value is."""
    encoder = device.host.handle_in(value, "GPUCommandEncoder", *["GPUComputePassEncoder"] * or_pass)
    if encoder is None:
        kinds = "a wgpu.GPUCommandEncoder" + " or an open wgpu.GPUComputePassEncoder" * or_pass
        raise TypeError(f"encoder is of type {device.host.type_name(value)}: must be {kinds}")
    if is_elsewhere(device, encoder):
        raise ValueError(f"the command encoder is not on {device}: create it on that device")
    return encoder


def check_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed or its device is lost; calls that do not run check nothing.

    An unused bind group raises what would abort in a submission. Dawn and browsers take a destroyed buffer
    there, and raise at the submission.
    """
    if sink().runs:
        with device.calls:
            ranges = [BufferRange(0, buffer, 0, 4)]
            device.host.make_bind_group(device.wgpu_device, device.pipelines.probe_layout, ranges)


def check_still_alive(device: Device, buffer: Buffer) -> None:
    """Raise if a buffer has been destroyed, as only the user can to whom it was given."""
    if is_given_out(buffer) and not device.host.is_known_alive(buffer) and sink().runs:
        check_alive(device, buffer)
        device.host.watch(buffer)


def keep_for_caller(device: Device, buffers: Iterable[Buffer]) -> None:
    """Reuse buffers for no other tensors: commands use them that the caller submits at any time."""
    if sink().runs:
        with device.mapping_lock:
            for buffer in buffers:
                given_out(buffer)


def check_given(device: Device, buffers: Iterable[tuple[str, Buffer]], check: Check = check_alive) -> None:
    """Raise, with a buffer's name, if one cannot be used, or `check` finds that it is destroyed."""
    for name, buffer in buffers:
        with named(name):
            check_usable(device, buffer)
            check(device, buffer)


def check_bound(device: Device, buffers: Iterable[tuple[str, Buffer]]) -> None:
    """Raise, with a buffer's name, if one that a bind group has was destroyed or is mapped."""
    is_known_alive = device.host.is_known_alive
    changed = [
        each
        for each in buffers
        if is_given_out(each[1]) and not (is_known_alive(each[1]) and each[1].map_state == "unmapped")
    ]
    check_given(device, changed, check_still_alive)


def check_fits(buffer: Buffer, layout: Layout, dtype: DType) -> None:
    """Raise ValueError if a layout exceeds its buffer, in whole words of 4 bytes."""
    if layout.lowest < 0:
        raise ValueError(
            f"the layout reaches {-layout.lowest * dtype.itemsize} bytes before the start of "
            f"{describe_buffer(buffer)}: raise the offset"
        )
    needed = whole_words(layout.stop * dtype.itemsize)
    if needed > buffer.size:
        raise ValueError(
            f"{describe_buffer(buffer)} is too small: {dtype} of sizes {layout.sizes}, "
            f"strides {layout.strides} from byte offset {layout.offset * dtype.itemsize} need {needed}, "
            "in whole words of 4 bytes"
        )


# commands


class Binding(NamedTuple):
    """A layout in a buffer: one side of a copy, or offsets of windows."""

    buffer: Buffer
    layout: Layout  # of elements, counted from `offset_nbytes`
    itemsize: int  # bytes an element
    fresh: bool = False  # the buffer is new and unknown to callers, so it needs no checks
    offset_nbytes: int = 0  # in the buffer, aligned for a binding

    @classmethod
    def packed(cls, device: Device, sizes: Sequence[int], itemsize: int) -> Binding:
        """Make a packed layout in a new buffer of any content."""
        layout = Layout.packed(sizes)
        return cls(sink().reused_buffer(device, layout.size * itemsize), layout, itemsize, fresh=True)


def plan_between(
    plan_problem: Callable[..., Plan],
    planner: Planner,
    limits: Limits,
    itemsize: int,
    shared: bool,
    source: Side,
    target: Side,
    table: Table | None,
) -> tuple[Plan, int, int]:
    """Return a plan that copies at other offsets share, and the base offsets of these two sides in bytes."""
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
        table,
    )
    plan = plan_problem(planner, read.layout, written.layout, itemsize, context)
    return plan, source_nbytes + read.base, target_nbytes + written.base


planned_between: Planning = lru_cache(maxsize=MAX_PLANS)(partial(plan_between, planned))
planned_anew: Planning = partial(plan_between, plan_anew)


class Copy(NamedTuple):
    """A copy between bindings, and how it is planned."""

    source: Binding
    target: Binding
    planner: Planner = plan_copy
    offsets: Binding | None = None  # device-resident, or indices, which the planner's plan reads
    planning: Planning = planned_between


class Recorder:
    """Records commands into an encoder, given or new; consecutive dispatches share a compute pass."""

    def __init__(
        self,
        device: Device,
        encoder: CommandEncoder | None = None,
        region: Region | None = None,
        compute_pass: ComputePass | None = None,
    ) -> None:
        check_process()
        self.device = device
        self.encoder: Any = encoder or (device.new_encoder() if sink().runs else ListedSubmission())
        self.region = region  # read or written by texture copies
        self.compute_pass = compute_pass  # the open one
        self.pipeline: Any = None  # that of the open pass
        self.copies = False  # whether it has recorded a copy, which an encoder that has ended refuses

    def add(self, plan: Plan, places: Sequence[Place]) -> None:
        """Bind and record a plan, or nothing if it raises."""
        self.play(sink().bind(self.device, plan, places))

    def play(self, *bound: ReadyPlan) -> None:
        """Record bound plans, or list them; every plan passes here."""
        listing = sink()
        if isinstance(listing, Listing):
            for each in bound:
                listing.list_plan(self.encoder, each)
        else:
            self.record([command for each in bound for command in each.commands])

    def copy(self, copy: Copy) -> None:
        """Plan, bind and record a copy, or nothing if it raises."""
        self.play(plan_and_bind(self.device, copy))

    def record(self, commands: Sequence[ReadyCommand]) -> None:
        """Record commands in order."""
        with self.device.calls:
            for command in commands:
                if isinstance(command, ReadyDispatch):
                    self.compute_pass = self.compute_pass or self.encoder.begin_compute_pass()
                    if command.pipeline is not self.pipeline:
                        self.pipeline = command.pipeline
                        self.compute_pass.set_pipeline(command.pipeline)
                    self.compute_pass.set_bind_group(0, command.bind_group)
                    self.compute_pass.dispatch_workgroups(*command.workgroups)
                else:
                    self.end()
                    self._copy(*command)

    def end(self) -> CommandEncoder:
        """End the open compute pass, if any, and return the encoder."""
        if self.compute_pass is not None:
            with self.device.calls:
                self.compute_pass.end()
            self.compute_pass = self.pipeline = None
        return self.encoder

    def submit(self) -> None:
        """Submit what is recorded, without waiting for the GPU."""
        encoder, listing = self.end(), sink()
        if isinstance(listing, Listing):
            listing.submit(encoder)
        else:
            self.device.submit(encoder)

    def _copy(self, command: Clear | BufferCopies | TextureCopy, places: Sequence[Place]) -> None:
        """Record a clear, buffer copies, or a texture copy."""
        host = self.device.host
        if isinstance(command, BufferCopies):
            sides = places[command.reads], places[command.writes]
            host.copy_rows(self.encoder, sides, command, not self.copies)
            self.copies = True
        elif isinstance(command, Clear):
            target, base = places[command.writes]
            self.encoder.clear_buffer(handle_of(target), base + command.offset_nbytes, command.nbytes)
        else:
            assert self.region is not None
            writes = command.writes is Memory.TEXTURE
            buffer, base = places[command.reads if writes else command.writes]
            rows = TexelRows(buffer, base + command.offset_nbytes, command.row_nbytes, command.image_rows)
            host.copy_texels(self.encoder, self.region, rows, command.size, writes=writes)


def run_copy(device: Device, copy: Copy, encoder: CommandEncoder | None = None) -> None:
    """Plan, record and submit, without waiting for the GPU; the commands of `encoder` run before."""
    recorder = Recorder(device, encoder)
    recorder.copy(copy)
    recorder.submit()


def run_copies(device: Device, itemsize: int, copies: Iterable[LayoutCopy]) -> None:
    """Submit copies between checked buffers, in order and in one submission, without waiting."""
    recorder, limits, bind = Recorder(device), device.limits, sink().bind
    bound: list[ReadyPlan] = []
    for read, source, written, target in copies:  # as `place`, in half the time
        sides = (source, 0, read.size, read.usage), (target, 0, written.size, written.usage)
        plan, *bases = planned_between(plan_copy, limits, itemsize, read is written, *sides, None)
        bound.append(bind(device, plan, (Place(read, bases[0]), Place(written, bases[1]))))
    recorder.play(*bound)
    recorder.submit()


def plan_and_bind(
    device: Device, copy: Copy, limits: Limits | None = None, check: Check = check_alive
) -> ReadyPlan:
    """Plan a copy and bind its buffers; `check` checks those of callers that no bind group has."""
    sides = copy.source, copy.target, copy.offsets
    for name, side in zip(SIDES, sides, strict=True):
        if side is not None and not side.fresh:
            with named(name):
                check_usable(device, side.buffer)
    plan, places = place(limits or device.limits, copy)
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


def place(limits: Limits, copy: Copy) -> tuple[Plan, Sequence[Place]]:
    """Return the plan of a copy, and the buffers with their base offsets."""
    source, target, planner, offsets, planning = copy
    read, written = source.buffer, target.buffer
    sides = (
        (source.layout, source.offset_nbytes, read.size, read.usage),
        (target.layout, target.offset_nbytes, written.size, written.usage),
    )
    table = held = None
    if offsets is not None:
        held = rebase(offsets.layout, offsets.itemsize, limits)
        table = Table(
            held.layout,
            offsets.itemsize,
            bool(offsets.buffer.usage & BufferUsage.COPY_SRC),
            held.capacity_nbytes(offsets.buffer.size - offsets.offset_nbytes),
            offsets.buffer is written,
        )
    plan, base, target_base = planning(planner, limits, source.itemsize, read is written, *sides, table)
    places = [Place(read, base), Place(written, target_base)]
    if offsets is not None and held is not None:
        places.append(Place(offsets.buffer, offsets.offset_nbytes + held.base))
    return plan, places

"""A plan and buffers become recorded commands. Nothing is decided here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from wgslice.arguments import whole_words
from wgslice.errors import named
from wgslice.gpu.device import COPY_DST, COPY_SRC, Device, translated_errors
from wgslice.gpu.handles import check_alive, check_encoder, check_usable
from wgslice.layout import Layout
from wgslice.plans.copy import CopyPlanner
from wgslice.plans.plan import PlacedPlan, Plan, Planner
from wgslice.plans.steps import BufferCopies, Dispatch, Origin, Span
from wgslice.plans.window_steps import WindowDispatch

if TYPE_CHECKING:
    from wgslice.gpu.device import Buffer, CommandEncoder

__all__ = ["Offsets", "Operand", "compile_plan", "place", "record", "record_plan", "run", "run_copy"]


class Operand(NamedTuple):
    """One side of a copy: a buffer and the layout of elements in it."""

    buffer: Buffer
    layout: Layout


class Offsets(NamedTuple):
    """Offsets of windows that the GPU has: a buffer, and the layout of integers in it."""

    buffer: Buffer
    layout: Layout
    itemsize: int


def run_copy(device: Device, itemsize: int, source: Operand, target: Operand) -> None:
    """Copy on the GPU, without waiting for it."""
    run(device, CopyPlanner(itemsize), source, target)


def run(
    device: Device, planner: Planner, source: Operand, target: Operand, offsets: Offsets | None = None
) -> None:
    """Plan, record and submit, without waiting for the GPU."""
    encoder = device.wgpu_device.create_command_encoder()
    record(device, encoder, planner, source, target, offsets)
    with translated_errors():
        device.wgpu_device.queue.submit([encoder.finish()])


def record(
    device: Device,
    encoder: CommandEncoder,
    planner: Planner,
    source: Operand,
    target: Operand,
    offsets: Offsets | None = None,
) -> None:
    """Plan, and record into an encoder; what is refused records nothing. Windows may have offsets on the GPU.

    No command may read a buffer that it writes, so what is read of the target's buffer is copied aside first.
    """
    check_encoder(device, encoder)
    operands: list[tuple[str, Operand | Offsets]] = [("input", source), ("output", target)]
    if offsets is not None:
        operands.append(("offsets", offsets))
    for side, operand in operands:
        with named(side):
            check_usable(device, operand.buffer)
    copied: list[tuple[CopyPlanner, Operand, Operand]] = []
    if source.buffer is target.buffer and target.layout.size:
        original, source = source, aside(device, planner.itemsize, source)
        copied.append((CopyPlanner(planner.itemsize), unrepeated(original), unrepeated(source)))
    if offsets is not None and not bindable(device, offsets, target):
        room = Layout.packed(offsets.layout.sizes)
        packed = Operand(device.create_buffer(room.size * offsets.itemsize), room)
        copied.append((CopyPlanner(offsets.itemsize), Operand(*offsets[:2]), packed))
        offsets = Offsets(*packed, offsets.itemsize)
    placed_plan = place(device, planner, source, target)
    if copied or placed_plan[0].is_unchecked:
        for side, operand in operands:
            with named(side):
                check_alive(device, operand.buffer)
    for part in copied:
        record_plan(device, encoder, place(device, *part), part[1].buffer, part[2].buffer)
    record_plan(device, encoder, placed_plan, source.buffer, target.buffer, offsets)


def place(device: Device, planner: Planner, source: Operand, target: Operand) -> PlacedPlan:
    """The plan for two buffers."""
    return planner.place(
        source.layout,
        target.layout,
        device.limits,
        (source.buffer.size, target.buffer.size),
        buffer_copy=bool(source.buffer.usage & COPY_SRC and target.buffer.usage & COPY_DST),
    )


def bindable(device: Device, offsets: Offsets, target: Operand) -> bool:
    """Whether a kernel can read offsets where they are."""
    aligned = offsets.layout.offset * offsets.itemsize % device.limits.binding_alignment_nbytes == 0
    return offsets.layout.is_packed and aligned and offsets.buffer is not target.buffer


def unrepeated(operand: Operand) -> Operand:
    """The same places, each once: what repeats is taken at its first index."""
    layout = operand.layout
    firsts = [
        range(1) if stride == 0 else range(size)
        for size, stride in zip(layout.sizes, layout.strides, strict=True)
    ]
    return Operand(operand.buffer, layout.select(firsts))


def aside(device: Device, itemsize: int, operand: Operand) -> Operand:
    """A new buffer with room for what an operand reads, and the same elements there."""
    once = unrepeated(operand).layout
    room = Layout.packed(once.sizes)
    repeated = Layout.of(operand.layout.sizes, room.strides)
    return Operand(device.create_buffer(room.size * itemsize), repeated)


Place: TypeAlias = "tuple[Buffer, int]"  # a buffer, and the base in bytes that a plan counts from
Prepared: TypeAlias = tuple[Any, Any, tuple[int, int, int]]  # pipeline, bind group, grid


def record_plan(
    device: Device,
    encoder: CommandEncoder,
    placed_plan: PlacedPlan,
    source_buffer: Buffer,
    target_buffer: Buffer,
    offsets: Offsets | None = None,
) -> None:
    """Record a plan's steps between two buffers: clears, then dispatches, then buffer copies."""
    plan, source_base, target_base = placed_plan
    target = target_buffer, target_base
    sources = {Origin.INPUT: (source_buffer, source_base), Origin.ZEROS: (device.zeros, 0)}
    clears, dispatches, copies = plan.by_kind
    with translated_errors():
        commands = [
            prepared_windows(device, step, sources[Origin.INPUT], target, offsets)
            if isinstance(step, WindowDispatch)
            else prepared(device, step, sources[step.origin], target)
            for step in dispatches
        ]
        for clear in clears:
            encoder.clear_buffer(target_buffer, target_base + clear.offset_nbytes, clear.nbytes)
        if commands:
            compute_pass = encoder.begin_compute_pass()
            for pipeline, bind_group, workgroups in commands:
                compute_pass.set_pipeline(pipeline)
                compute_pass.set_bind_group(0, bind_group)
                compute_pass.dispatch_workgroups(*workgroups)
            compute_pass.end()
        for copy in copies:
            record_buffer_copies(encoder, copy, sources[copy.origin], target)


def prepared(device: Device, step: Dispatch, source: Place, target: Place) -> Prepared:
    """The pipeline, bind group and grid of a dispatch."""
    pipeline, uniform_buffer = device.pipelines.prepare(step)
    sides = placed(source, step.source_binding), placed(target, step.target_binding)
    return pipeline, device.pipelines.bind_group(uniform_buffer, *sides), step.share.workgroups


def prepared_windows(
    device: Device, step: WindowDispatch, source: Place, target: Place, offsets: Offsets | None
) -> Prepared:
    """The pipeline, bind group and grid of a dispatch that copies windows."""
    pipeline, uniform_buffer = device.pipelines.prepare(step)
    sides = placed(source, step.source_binding), placed(target, step.target_binding)
    span = None
    if offsets is not None:
        start, nbytes = offsets.layout.offset * offsets.itemsize, offsets.layout.size * offsets.itemsize
        span = offsets.buffer, Span(start, whole_words(nbytes))
    bind_group = device.pipelines.bind_windows(step, uniform_buffer, *sides, span)
    return pipeline, bind_group, step.share.workgroups


def record_buffer_copies(encoder: CommandEncoder, step: BufferCopies, source: Place, target: Place) -> None:
    """Record buffer copies."""
    (source_buffer, source_base), (target_buffer, target_base) = source, target
    for source_place, target_place in zip(step.source.places(), step.target.places(), strict=True):
        encoder.copy_buffer_to_buffer(
            source_buffer,
            source_base + source_place,
            target_buffer,
            target_base + target_place,
            step.nbytes,
        )


def compile_plan(device: Device, plan: Plan) -> None:
    """Make the pipelines of a plan, so that its first run does not wait for them."""
    with translated_errors():
        for step in plan.by_kind[1]:
            device.pipelines.prepare(step)


def placed(place: Place, span: Span) -> tuple[Buffer, Span]:
    """A plan's binding in a real buffer."""
    buffer, base = place
    return buffer, Span(base + span.offset_nbytes, span.nbytes)

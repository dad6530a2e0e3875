"""A plan and buffers become recorded commands. Nothing is decided here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wgslice.buffers import check_alive, check_encoder, check_usable, describe_buffer
from wgslice.device import COPY_DST, COPY_SRC, Device, translated_errors
from wgslice.errors import named
from wgslice.layout import Layout
from wgslice.plan import Plan, plan_between
from wgslice.steps import BufferCopies, Dispatch, Span

if TYPE_CHECKING:
    from wgslice.device import Buffer, CommandEncoder

__all__ = ["Operand", "compile_plan", "record_copy", "run_copy"]


class Operand(NamedTuple):
    """One side of a copy: a buffer and the layout of elements in it."""

    buffer: Buffer
    layout: Layout


def run_copy(device: Device, itemsize: int, source: Operand, target: Operand) -> None:
    """Copy on the GPU, without waiting for it."""
    encoder = device.wgpu_device.create_command_encoder()
    record_copy(device, encoder, itemsize, source, target)
    with translated_errors():
        device.wgpu_device.queue.submit([encoder.finish()])


def record_copy(
    device: Device, encoder: CommandEncoder, itemsize: int, source: Operand, target: Operand
) -> None:
    """Record the copy into an encoder; a refused one records nothing."""
    check_encoder(device, encoder)
    for side, operand in (("input", source), ("output", target)):
        with named(side):
            check_usable(device, operand.buffer)
    if source.buffer is target.buffer:
        raise ValueError(
            f"input and output share {describe_buffer(source.buffer)}: a copy needs two buffers; "
            "copy() the input first"
        )
    copyable = bool(source.buffer.usage & COPY_SRC and target.buffer.usage & COPY_DST)
    nbytes = source.buffer.size, target.buffer.size
    plan, source_base, target_base = plan_between(
        source.layout, target.layout, itemsize, device.limits, nbytes, buffer_copy=copyable
    )
    record_plan(device, encoder, plan, (source.buffer, source_base), (target.buffer, target_base))


def record_plan(
    device: Device,
    encoder: CommandEncoder,
    plan: Plan,
    source: tuple[Buffer, int],
    target: tuple[Buffer, int],
) -> None:
    """Record a plan's steps between two buffers, from a base in bytes in each."""
    steps = [step for step in plan.steps if isinstance(step, Dispatch)]
    if steps:
        with translated_errors():
            dispatches = [prepared(device, step, source, target) for step in steps]
            compute_pass = encoder.begin_compute_pass()
            for pipeline, bind_group, workgroups in dispatches:
                compute_pass.set_pipeline(pipeline)
                compute_pass.set_bind_group(0, bind_group)
                compute_pass.dispatch_workgroups(*workgroups)
            compute_pass.end()
    copies = [step for step in plan.steps if isinstance(step, BufferCopies)]
    if copies:
        record_buffer_copies(device, encoder, copies, source, target)


def prepared(
    device: Device, step: Dispatch, source: tuple[Buffer, int], target: tuple[Buffer, int]
) -> tuple[Any, Any, tuple[int, int, int]]:
    """The pipeline, bind group and grid of a dispatch."""
    pipeline, uniform_buffer = device.pipelines.prepare(step)
    sides = placed(source, step.source_binding), placed(target, step.target_binding)
    return pipeline, device.pipelines.bind_group(uniform_buffer, *sides), step.share.workgroups


def record_buffer_copies(
    device: Device,
    encoder: CommandEncoder,
    copies: Sequence[BufferCopies],
    source: tuple[Buffer, int],
    target: tuple[Buffer, int],
) -> None:
    """Record buffer copies, whose buffers nothing else has checked."""
    for side, (buffer, _) in (("input", source), ("output", target)):
        with named(side):
            check_alive(device, buffer)
    (source_buffer, source_base), (target_buffer, target_base) = source, target
    with translated_errors():
        for step in copies:
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
        for step in plan.steps:
            if isinstance(step, Dispatch):
                device.pipelines.prepare(step)


def placed(place: tuple[Buffer, int], span: Span) -> tuple[Buffer, Span]:
    """A plan's binding in a real buffer."""
    buffer, base = place
    return buffer, Span(base + span.offset_nbytes, span.nbytes)

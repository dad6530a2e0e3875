"""What decides between buffer copies of rows and shaders, found in a moment on a software adapter."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from importlib.resources import files
from time import perf_counter

from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.kept_costs.store import SHIPPED, VARIABLE
from wgslice.plans.costs import Costs, Figure, Work
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import Limits

__all__ = ["plain_bytes_per_s", "planned_after_a_look"]

LARGE_NBYTES = 2**20  # of a copy that is worth a look
LOOK_NBYTES = 2**20  # that a shader copies
MANY_COPIES, SMALL_NBYTES = 128, 256
WORKGROUP_SIZE, WORD_NBYTES = 64, 4  # as the shader says
TURNS = 3  # the first of which finds no memory and no code, and of a shader compiles it
LEAST_S = 1e-7  # so that noise makes nothing free
LOOKED = ", adjusted by a look at this machine"


def planned_after_a_look(device: Device, plan_for: Callable[[Limits], Plan]) -> Plan:
    """The plan for a device, which is looked at first where that may decide a large copy.

    One copy is held up for one figure, and the next one for the other.
    """
    plan = plan_for(device.limits)
    if not (device.untried and plan.nbytes >= LARGE_NBYTES and plan.is_contested):
        return plan
    if (
        not device.adapter.software
        or device.limits.profile.costs.is_tuned
        or os.environ.get(VARIABLE) == SHIPPED
    ):
        device.untried.clear()
        return plan
    if Figure.COPY in device.untried:
        device.untried.discard(Figure.COPY)
        copy_s = copy_seconds(device)
        device.update_limits(partial(adjusted, change=lambda costs: replace(costs, copy_s=copy_s)))
    elif device.pipelines.living:
        device.untried.discard(Figure.SHADER)  # a driver's first shader takes far longer than a look
        bytes_per_s = plain_bytes_per_s(device)
        device.update_limits(partial(adjusted, change=lambda costs: as_fast(costs, bytes_per_s)))
    return plan_for(device.limits)


def adjusted(limits: Limits, change: Callable[[Costs], Costs]) -> Limits:
    """Limits whose costs are changed, except for costs that `tune` has measured in the meantime."""
    costs = limits.profile.costs
    if costs.is_tuned:
        return limits
    origin = f"{costs.origin.removesuffix(LOOKED)}{LOOKED}"
    return replace(limits, profile=replace(limits.profile, costs=replace(change(costs), origin=origin)))


def as_fast(costs: Costs, plain_bytes_per_s: float) -> Costs:
    """Costs with all kernels as much faster or slower as the plain one."""
    factor = plain_bytes_per_s / costs.plain_bytes_per_s
    works = {
        name: Work(work.invocation_s / factor, work.bytes_per_s * factor)
        for name, work in costs.works.items()
    }
    return replace(costs, plain_bytes_per_s=plain_bytes_per_s, works=works)


def copy_seconds(device: Device) -> float:
    """Seconds of a small buffer copy among many."""
    source, target = (device.create_buffer(MANY_COPIES * SMALL_NBYTES) for _ in range(2))

    def copies(count: int) -> Callable[[CommandEncoder], None]:
        def record(encoder: CommandEncoder) -> None:
            for place in range(0, count * SMALL_NBYTES, SMALL_NBYTES):
                encoder.copy_buffer_to_buffer(source, place, target, place, SMALL_NBYTES)

        return record

    one, many = (best_of(device, copies(count)) for count in (1, MANY_COPIES))
    return max(many - one, LEAST_S) / (MANY_COPIES - 1)


def plain_bytes_per_s(device: Device) -> float:
    """Bytes a second of a shader that copies words."""
    source, target = (device.create_buffer(LOOK_NBYTES) for _ in range(2))
    nothing = best_of(device, lambda _: None)
    copied = plain_copy(device, source, target)
    timed(device, partial(copied, workgroups=1))  # which compiles it
    took = min(timed(device, copied) for _ in range(TURNS - 1))
    return LOOK_NBYTES / max(took - nothing, LEAST_S)


def best_of(device: Device, action: Callable[[CommandEncoder], None]) -> float:
    """The least seconds of some turns but the first."""
    return min([timed(device, action) for _ in range(TURNS)][1:])


def timed(device: Device, action: Callable[[CommandEncoder], None]) -> float:
    """Seconds to record and submit something, and to wait for it."""
    start = perf_counter()
    encoder = device.create_encoder()
    action(encoder)
    device.submit(encoder)
    device.synchronize()
    return perf_counter() - start


def plain_copy(device: Device, source: Buffer, target: Buffer) -> Callable[..., None]:
    """What records a shader's copy of all of a buffer into another, or of what some workgroups copy."""
    wgpu_device = device.wgpu_device
    text = (files("wgslice.wgsl") / "probes" / "plain_copy.wgsl").read_text("utf-8")
    module = wgpu_device.create_shader_module(label="plain_copy", code=text)
    pipeline = wgpu_device.create_compute_pipeline(
        layout="auto", compute={"module": module, "entry_point": "plain_copy"}
    )
    entries = [
        {"binding": number, "resource": {"buffer": buffer, "offset": 0, "size": buffer.size}}
        for number, buffer in ((1, source), (2, target))
    ]
    bind_group = wgpu_device.create_bind_group(layout=pipeline.get_bind_group_layout(0), entries=entries)

    def record(
        encoder: CommandEncoder, workgroups: int = source.size // WORD_NBYTES // WORKGROUP_SIZE
    ) -> None:
        compute_pass = encoder.begin_compute_pass()
        compute_pass.set_pipeline(pipeline)
        compute_pass.set_bind_group(0, bind_group)
        compute_pass.dispatch_workgroups(workgroups, 1, 1)
        compute_pass.end()

    return record

"""An operator on a device: what may be bound to it, and what runs then. Compiled or not."""

from __future__ import annotations

from typing import NamedTuple

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import Place
from wgslice.gpu.usages import BufferUsage
from wgslice.layout import Layout
from wgslice.operators.sockets import ALIGNED, Binding, Seated, Socket
from wgslice.operators.tensor_desc import TensorDesc
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.problem import Table, Terms
from wgslice.plans.profiles import Limits
from wgslice.plans.staging import plan_anew

__all__ = ["PlannedOperator", "Seating"]


class Seating(NamedTuple):
    """All that is bound for an operator, as far as plans differ by it."""

    source: Seated
    target: Seated
    offsets: Seated | None = None
    shared: bool = False  # whether input and output lie in one buffer
    offsets_in_output: bool = False
    zeroed: bool = False  # whether the output is zero already


class PlannedOperator:
    """What a descriptor says, on a device: plans for whatever is bound, without a pipeline."""

    def __init__(
        self,
        device: Device,
        name: str,
        input: TensorDesc,
        output: TensorDesc,
        source: Layout,
        planner: Planner,
        *,
        planner_on_zeros: Planner | None = None,
        offsets: TensorDesc | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.input = input
        self.output = output
        self.offsets = offsets  # of windows, where they are bound when it runs
        self.planner = planner
        self.planner_on_zeros = planner_on_zeros  # where that differs
        self.aligned = Seating(ALIGNED, ALIGNED, ALIGNED if offsets else None)
        with named(name):
            copy_from, copy_to = BufferUsage.COPY_SRC, BufferUsage.COPY_DST
            self._source = Socket(device, "input", input, source, copy_from)
            self._target = Socket(device, "output", output, output.layout, copy_to)
            self._table = None
            if offsets is not None:
                self._table = Socket(device, "offsets", offsets, offsets.layout, copy_from)

    def seat(self, input: Binding, output: Binding, offsets: Binding | None) -> tuple[list[Place], Seating]:
        """Bindings, refused where they are not as described."""
        source, read = self._source.bound(input)
        target, written = self._target.bound(output)
        shared = source.buffer is target.buffer
        if offsets is None and self._table is None:
            return [source, target], Seating(read, written, None, shared)
        if offsets is None or self._table is None:
            described = "has them already" if self._table is None else f"describes {self.offsets}"
            given = "given" if offsets is not None else "missing"
            raise ValueError(f"offsets are {given}: the descriptor {described}")
        table, held = self._table.bound(offsets)
        in_output = table.buffer is target.buffer
        return [source, target, table], Seating(read, written, held, shared, in_output)

    def plan(self, seating: Seating, limits: Limits) -> Plan:
        """What runs on a seating, and why; `limits` are the device's."""
        read, written, held, shared, in_output, zeroed = seating
        table = None
        if held is not None and self._table is not None:
            place = self._table.layout(held)
            table = Table(place, self._table.itemsize, held.copyable, held.room_nbytes, in_output)
        copies, rooms = (read.copyable, written.copyable), (read.room_nbytes, written.room_nbytes)
        return plan_anew(
            self.planner_on_zeros if zeroed and self.planner_on_zeros else self.planner,
            self._source.layout(read),
            self._target.layout(written),
            self._source.itemsize,
            Terms(limits, *copies, *rooms, shared, table),
        )

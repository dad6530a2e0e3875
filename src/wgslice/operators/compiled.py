"""An operator compiled for a device, to call or to record."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import NamedTuple

from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_encoder, check_still_alive
from wgslice.gpu.pipelines import Command
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.gpu.recording import Placed, check_bindable, record_placed
from wgslice.operators.planned import PlannedOperator, Seating
from wgslice.operators.sockets import Binding
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import MOST_PLACES, SMALL_NBYTES
from wgslice.plans.steps import Memory
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

__all__ = ["CompiledOperator"]


class Way(NamedTuple):
    """What runs on one seating."""

    plan: Plan
    commands: tuple[Command, ...]


class CompiledOperator:
    """An operator planned for a device: call it, or record it into commands of your own.

    Attributes
    ----------
    device : Device
        Where it runs.
    name : str
        Of the operator, as errors begin with it.
    input, output : TensorDesc
        What it takes and gives.
    offsets : TensorDesc or None
        Of windows, where they are bound when it runs.
    plan : Plan
        What runs, and why, on buffers with the usages STORAGE, COPY_SRC and COPY_DST and room for whole
        vectors of 16 bytes, bound at multiples of the device's binding alignment. `plan_for` says it of
        other bindings. A call without `out` leaves out the zeros that a new buffer has already.
    """

    def __init__(self, planned: PlannedOperator) -> None:
        self.device = planned.device
        self.name = planned.name
        self.input = planned.input
        self.output = planned.output
        self.offsets = planned.offsets
        self._planned = planned
        with named(self.name):
            self._aligned_way = self._make_way(planned.aligned)
        self._other_way = lru_cache(maxsize=MOST_PLACES)(self._make_way)

    @property
    def plan(self) -> Plan:
        """What runs on aligned bindings, and why."""
        return self._aligned_way.plan

    def plan_for(self, *, input: Binding, output: Binding, offsets: Binding | None = None) -> Plan:
        """Tell what runs on some bindings, and why.

        Parameters
        ----------
        input, output, offsets : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            As for `record`.

        Returns
        -------
        Plan
            `plan` itself for aligned bindings; planned once for any other alignment, usage, or buffer that
            ends inside a vector of 16 bytes, and then what `record` uses.

        Raises
        ------
        TypeError, ValueError
            A binding is too small, misaligned, without STORAGE, or not as described.
        """
        with named(self.name):
            places, seating = self._planned.seat(input, output, offsets)
            check_bindable(self.device, [place.buffer for place in places], [])
            return self._way(seating).plan

    def __call__(self, x: Tensor, out: Tensor | None = None, *, offsets: Tensor | None = None) -> Tensor:
        """Run on a tensor.

        Parameters
        ----------
        x : Tensor
            Of the described dtype, sizes and strides, at any offset.
        out : Tensor, optional
            As described too; it may lie in the buffer of `x`, which is read before anything is written. A new
            one by default, unless most of the output is padding, and more than 64 KiB.
        offsets : Tensor, optional
            As described, for windows whose descriptor describes offsets.

        Returns
        -------
        Tensor
            `out`. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError
            A tensor is not as described, not on this device, destroyed or mapped; or there is no `out`, and
            most of the output is padding.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the output, or is gone.
        """
        with named(self.name):
            check_tensor("x", x)
            made = [Memory.OUTPUT] if out is None else []
            if out is None:
                self._check_unpadded()
                buffer = self.device.create_buffer(self.output.nbytes)
                out = Tensor(self.device, buffer, self.output.dtype, self.output.layout)
            check_tensor("out", out)
            encoder = self.device.create_encoder()
            self._record(encoder, (x, out, offsets), made, check_alive)
            self.device.submit(encoder)
        return out

    def record(
        self,
        encoder: CommandEncoder,
        *,
        input: Binding,
        output: Binding,
        offsets: Binding | None = None,
    ) -> None:
        """Record into a command encoder of the caller's, who finishes and submits it.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        input, output : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            A tensor as described, or a buffer with usage STORAGE and the byte offset, a multiple of the
            item size, at which the described tensor starts in it. Where both lie in one buffer, the input is
            copied aside first.
        offsets : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int), optional
            Likewise, for windows whose descriptor describes offsets.

        Raises
        ------
        TypeError, ValueError
            A binding is too small, misaligned, destroyed, mapped, of another device or without STORAGE; a
            tensor is not as described; offsets are missing, or given where none are described. Nothing is
            recorded then.
        DeviceLostError
            The device is gone.
        wgpu.GPUValidationError
            The encoder is finished, or has a pass open; of a pass wgpu may say so only when the encoder is
            finished.

        Notes
        -----
        wgpu aborts the process when a submitted buffer has been destroyed or mapped after it was recorded, or
        when a command buffer is submitted twice. Dropping all references to a buffer is safe at any time.
        Of buffers that are only copied, a later record notices what their own `destroy()` did since the
        first, not that the device is gone.
        """
        with named(self.name):
            self._record(encoder, (input, output, offsets), [], check_still_alive)

    def __repr__(self) -> str:
        sides = f"{self.input.dtype} {self.input.sizes} -> {self.output.sizes}"
        return f"CompiledOperator({self.name}: {sides}; {self.plan.summary}; {self.device})"

    def _check_unpadded(self) -> None:
        """Refuse to make an output that is padding for the most part."""
        elements_nbytes = self.output.layout.size * self.output.dtype.itemsize
        if self.output.nbytes > max(2 * elements_nbytes, SMALL_NBYTES):
            raise ValueError(
                f"out is missing: the output's strides {self.output.strides} take {self.output.nbytes} bytes "
                f"for {elements_nbytes} of elements; give out, a view on the buffer that it is for, or "
                "describe no strides"
            )

    def _record(
        self,
        encoder: CommandEncoder,
        bindings: tuple[Binding, Binding, Binding | None],
        made: Sequence[Memory],
        check: Callable[[Device, Buffer], None],
    ) -> None:
        """Record what runs on bindings, of which the memories `made` were made a moment ago."""
        places, seating = self._planned.seat(*bindings)
        check_encoder(self.device, encoder)
        check_bindable(self.device, [place.buffer for place in places], made)
        if made and self._planned.planner_on_zeros is not None:  # a new buffer is zero
            seating = seating._replace(zeroed=True)
        plan, commands = self._way(seating)
        record_placed(self.device, encoder, Placed(plan, places), commands, made, check)

    def _way(self, seating: Seating) -> Way:
        """What runs on a seating, made the first time."""
        return self._aligned_way if seating == self._planned.aligned else self._other_way(seating)

    def _make_way(self, seating: Seating) -> Way:
        """Plan, and make pipelines, so that no recording waits for them."""
        plan = self._planned.plan(seating, self.device.limits)
        return Way(plan, self.device.pipelines.prepare(plan))

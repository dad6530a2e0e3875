"""An operator compiled for a device, to call or to record, and the descriptors that it is compiled from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Literal, NamedTuple

from wgslice.dialects.window import Window
from wgslice.dtypes import check_same_dtype
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.handles import check_alive, check_encoder, check_still_alive
from wgslice.gpu.native import exposed
from wgslice.gpu.protocols import Buffer, CommandEncoder
from wgslice.gpu.recording import check_bindable, place, record
from wgslice.layout import check_disjoint
from wgslice.operators.binding import Binding, PlannedOperator, Problem, TensorDesc
from wgslice.plans.copy import plan_anew
from wgslice.plans.plan import Plan
from wgslice.plans.profiles import MOST_PLACES, SMALL_NBYTES, Limits
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor


class Compiled(NamedTuple):
    """What an operator is planned to do on aligned bindings."""

    limits: Limits
    aligned: Problem
    plan: Plan


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
        other bindings. A call without `out` leaves out the zeros that a new buffer has already. It stays the
        same unless the self-test disables or enables kernels of the device.
    """

    def __init__(self, planned: PlannedOperator) -> None:
        self.device = planned.device
        self.name = planned.name
        self.input = planned.input
        self.output = planned.output
        self.offsets = planned.offsets
        self._planned = planned
        with named(self.name):
            self._compiled = self._compile(self.device.limits)
        self._other_plans = lru_cache(maxsize=MOST_PLACES)(plan_anew)

    @property
    def plan(self) -> Plan:
        """What runs on aligned bindings, and why."""
        with named(self.name):
            return self._current().plan

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
            bound = self._planned.bind(input, output, offsets)
            check_bindable(self.device, *bound)
            plan, _ = place(self._current().limits, self._planned.planner, *bound, planning=self._planning)
            self.device.pipelines.prepare(plan)
            return plan

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
            fresh = out is None
            if out is None:
                self._check_unpadded()
                zeroed = self._planned.planner_on_zeros is not None or not self.output.layout.is_packed
                buffer = self.device.reused_buffer(self.output.nbytes, zeroed=zeroed)
                out = Tensor(self.device, buffer, self.output.dtype, self.output.layout)
            check_tensor("out", out)
            encoder = self.device.create_encoder()
            self._record(encoder, (x, out, offsets), fresh, check_alive)
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
            check_encoder(self.device, encoder)
            for binding in (input, output, offsets):
                if isinstance(binding, Tensor):
                    exposed(binding.memory)  # what the caller submits later is in no order with a reuse
            self._record(encoder, (input, output, offsets), False, check_still_alive)

    def __repr__(self) -> str:
        sides = f"{self.input.dtype} {self.input.sizes} -> {self.output.sizes}"
        return f"CompiledOperator({self.name}: {sides}; {self._compiled.plan.summary}; {self.device})"

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
        fresh: bool,
        check: Callable[[Device, Buffer], None],
    ) -> None:
        """Record what runs on bindings, of which a `fresh` output was made a moment ago."""
        source, target, offsets = self._planned.bind(*bindings)
        planner = self._planned.planner
        if fresh and self._planned.planner_on_zeros is not None:  # it was made of zeros
            planner = self._planned.planner_on_zeros
        record(
            self.device,
            encoder,
            planner,
            source,
            target._replace(fresh=fresh),
            offsets,
            planning=self._planning,
            limits=self._current().limits,
            check=check,
        )

    def _compile(self, limits: Limits) -> Compiled:
        """Plan for aligned bindings, and compile the pipelines, so that no recording waits for them."""
        aligned = self._planned.aligned(limits)
        plan = plan_anew(*aligned)
        self.device.pipelines.prepare(plan)
        return Compiled(limits, aligned, plan)

    def _current(self) -> Compiled:
        """What is compiled, anew where the self-test has disabled or enabled kernels of the device since."""
        compiled, distrusted = self._compiled, self.device.limits.distrusted
        if compiled.limits.distrusted != distrusted:
            compiled = self._compiled = self._compile(replace(compiled.limits, distrusted=distrusted))
        return compiled

    def _planning(self, *problem: Any) -> Plan:
        """The plan for a problem, made the first time."""
        compiled = self._compiled
        return compiled.plan if problem == compiled.aligned else self._other_plans(*problem)


class Descriptor(ABC):
    """What an operator does, checked, before there is a device."""

    @abstractmethod
    def planned(self, device: Device) -> PlannedOperator:
        """What `explain` calls: plans on `device`, without a pipeline."""

    def compile(self, device: Device) -> CompiledOperator:
        """What `Device.compile` calls."""
        return CompiledOperator(self.planned(device))


@dataclass(frozen=True, init=False)
class WindowDescriptor(Descriptor):
    """Two tensors, and a window of the one that the other fills."""

    input: TensorDesc
    output: TensorDesc
    window: Window

    @property
    def offsets(self) -> tuple[int, ...]:
        """First element of the window."""
        return self.window.offsets

    @property
    def sizes(self) -> tuple[int, ...]:
        """Extent of the window in elements."""
        return self.window.sizes

    @property
    def strides(self) -> tuple[int, ...]:
        """Step within the window in elements."""
        return self.window.strides

    def _hold(
        self, input: TensorDesc, output: TensorDesc, window: Window, *, filled: Literal["input", "output"]
    ) -> None:
        """Take over what is checked but for what two tensors must have in common."""
        check_same_dtype(input.dtype, output.dtype)
        window.check_filled((input if filled == "input" else output).sizes, filled)
        check_disjoint(output.layout)
        object.__setattr__(self, "input", input)
        object.__setattr__(self, "output", output)
        object.__setattr__(self, "window", window)

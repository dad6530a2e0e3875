"""Operators compiled for a device, to call or to record, and the base of their descriptors."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

from numpy.typing import NDArray

from wgslice.dtypes import check_same_dtype
from wgslice.errors import fitted, named
from wgslice.gpu.device import Device
from wgslice.gpu.pipelines import ReadyDispatch
from wgslice.gpu.protocols import CommandEncoder, ComputePass
from wgslice.gpu.recording import (
    SIDES,
    Check,
    Copy,
    Recorder,
    check_alive,
    check_bound,
    check_still_alive,
    checked_encoder,
    place,
    plan_and_bind,
    plan_between,
)
from wgslice.gpu.sink import ReadyPlan, sink
from wgslice.layout import Layout, check_disjoint
from wgslice.operators.binding import Bindable, BindingSlot, TensorDesc, keep_buffers, new_output
from wgslice.plans.copy import plan_anew
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.profiles import MAX_PLACES, SMALL_NBYTES, Limits
from wgslice.tensors.placed import check_tensor, upper_modules
from wgslice.tensors.tensor import Tensor


def named_plan(name: str, tensors: str, *problem: Any) -> Plan:
    """Return the plan of a problem, which prints its operator, dtype and shapes."""
    return replace(plan_anew(*problem), name=name, tensors=tensors)


class CompiledOperator:
    """An operator planned for a device: call it, or record it into commands of your own.

    Attributes
    ----------
    device : Device
        Where it runs.
    name : str
        Of the operator; errors begin with it.
    input, output : TensorDesc
        Of the tensors that are bound.
    offsets : TensorDesc or None
        Of the windows' offsets, if these are bound too.
    plan : Plan
        For buffers with the usages STORAGE, COPY_SRC and COPY_DST and capacity for whole vectors of 16
        bytes, bound at multiples of the device's binding alignment. A call without `out` skips writing zeros
        to a new buffer. It changes only if the self-test disables or enables kernels of the device.
    temporary_nbytes : int
        Of the buffers that each call or recording makes for itself, as in `plan`.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        input: TensorDesc,
        output: TensorDesc,
        source: Layout,
        planner: Planner,
        *,
        target: Layout | None = None,
        planner_on_zeros: Planner | None = None,
        offsets: TensorDesc | NDArray[Any] | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.input = input
        self.output = output
        self.offsets = offsets if isinstance(offsets, TensorDesc) else None
        self._planner = planner
        self._planner_on_zeros = planner_on_zeros  # of a new output, if that begins with zeros
        tensors = f"{input.dtype} {input.sizes} -> {output.sizes}"
        plan_problem = lru_cache(maxsize=MAX_PLACES)(partial(named_plan, name, tensors))
        self._planning = lru_cache(maxsize=MAX_PLACES)(partial(plan_between, plan_problem))
        self._limits = device.limits
        with named(name):
            self._source = BindingSlot(device, "input", input, source)
            self._target = BindingSlot(device, "output", output, target or output.layout)
            self._offsets = None
            if self.offsets is not None:
                self._offsets = BindingSlot(device, "offsets", self.offsets, self.offsets.layout)
            self._plan_aligned()

    @property
    def plan(self) -> Plan:
        """The plan for aligned bindings."""
        with named(self.name):
            return self._plan_aligned()

    @property
    def temporary_nbytes(self) -> int:
        """Bytes of the buffers that each call or recording makes for itself."""
        return sum(nbytes for _, nbytes in self.plan.scratch)

    def plan_for(self, *, input: Bindable, output: Bindable, offsets: Bindable | None = None) -> Plan:
        """Return the plan for given bindings.

        Parameters
        ----------
        input, output, offsets : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            As for `record`.

        Returns
        -------
        Plan
            `plan` itself for aligned bindings. Any other alignment, usage, or buffer that ends inside a
            vector of 16 bytes is planned once, and `record` uses the same plan.

        Raises
        ------
        TypeError, ValueError, DeviceLostError
            As `record`.
        """
        with named(self.name):
            return self._bound(input, output, offsets, check_still_alive).plan

    @fitted()
    def __call__(self, x: Tensor, out: Tensor | None = None, *, offsets: Tensor | None = None) -> Tensor:
        """Run on a tensor.

        Parameters
        ----------
        x : Tensor
            Of the described dtype, sizes and strides, at any offset.
        out : Tensor, optional
            As described; it may share the buffer of `x`, which is read before anything is written. A new
            tensor by default; required if most of the output is padding, and more than 64 KiB.
        offsets : Tensor, optional
            As described, for windows whose descriptor describes offsets.

        Returns
        -------
        Tensor
            `out`. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
            As `record`; there is no `out`, and most of the output is padding, or no memory for it.
        """
        with named(self.name):
            check_tensor("x", x)
            fresh = out is None
            if out is None:
                self._check_unpadded()
                out = new_output(self.device, self.output, zeroed=self._planner_on_zeros is not None)
            check_tensor("out", out, written=True)
            recorder = Recorder(self.device)
            recorder.play(self._bound(x, out, offsets, check_alive, fresh=fresh))
            recorder.submit()
        return out

    @fitted()
    def record(
        self,
        encoder: CommandEncoder,
        *,
        input: Bindable,
        output: Bindable,
        offsets: Bindable | None = None,
    ) -> None:
        """Record into a command encoder, which the caller finishes and submits.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        input, output : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            A tensor as described, or a buffer with usage STORAGE and the byte offset, a multiple of the
            item size, at which the described tensor starts in it. If both share one buffer, the input is
            copied to a staging copy first.
        offsets : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int), optional
            Bound as `input`, for windows whose descriptor describes offsets.

        Raises
        ------
        TypeError, ValueError
            A binding is too small, misaligned, destroyed, mapped, of another device or without STORAGE; a
            tensor is not as described; offsets are missing, or given where none are described. Nothing is
            recorded then.
        DeviceLostError
            The device is gone.
        wgpu.GPUValidationError
            The encoder is finished, or has a pass open, which wgpu may report only when it is finished.

        Notes
        -----
        wgpu aborts the process when a submitted buffer has been destroyed or mapped after it was recorded, or
        when a command buffer is submitted twice. Dropping all references to a buffer is safe at any time.
        For buffers that no kernel binds, records after the first detect a `destroy()` of the buffer, but not
        a lost device.
        """
        with named(self.name):
            recorder = Recorder(self.device, checked_encoder(self.device, encoder))
            recorder.play(self._bound_by_caller(input, output, offsets))
            recorder.end()

    @fitted()
    def bind(self, *, input: Bindable, output: Bindable, offsets: Bindable | None = None) -> BoundOperator:
        """Bind buffers once, to record their plan again and again.

        Parameters
        ----------
        input, output, offsets : Tensor, wgpu.GPUBuffer or (wgpu.GPUBuffer, int)
            As for `record`. The result keeps them alive.

        Returns
        -------
        BoundOperator
            Its `record` takes about a tenth of the host time, and makes no plan, pipeline, buffer or bind
            group.

        Raises
        ------
        TypeError, ValueError, DeviceLostError
            As `record`.
        CaptureRefused
            The call is explained, so that there is nothing to bind.
        """
        with named(self.name):
            sink().check_runs("buffers are bound")
            return BoundOperator(self.device, self.name, self._bound_by_caller(input, output, offsets))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Save for any WebGPU host, as `Program.save` does.

        Parameters
        ----------
        folder : path
            As of `Program.save`. The inputs are named `input`, `output`, which is written, and `offsets`, if
            the descriptor describes them; buffers are bound from multiples of the alignment on, and end with
            whole vectors of 16 bytes.

        Raises
        ------
        FileExistsError, OSError, CaptureRefused, DeviceLostError
            As `Program.save`.
        """
        upper_modules["programs"]().operator_program(self).save(folder)

    def __repr__(self) -> str:
        plan = self._plan_aligned()
        return f"CompiledOperator({self.name}: {plan.tensors}; {plan.summary}; {self.device})"

    def _check_unpadded(self) -> None:
        """Refuse to allocate an output that is mostly padding."""
        elements_nbytes = self.output.layout.size * self.output.dtype.itemsize
        if self.output.nbytes > max(2 * elements_nbytes, SMALL_NBYTES):
            raise ValueError(
                f"out is missing: the output's strides {self.output.strides} need {self.output.nbytes} bytes "
                f"for {elements_nbytes} bytes of elements; pass out, a view of the target "
                "buffer, or leave the strides out of the descriptor"
            )

    def _bound_by_caller(self, input: Bindable, output: Bindable, offsets: Bindable | None) -> ReadyPlan:
        """Return the bound plan of a caller's commands, which may be submitted at any time."""
        keep_buffers(self.device, input, output, offsets)
        return self._bound(input, output, offsets, check_still_alive)

    def _bound(
        self,
        input: Bindable,
        output: Bindable,
        offsets: Bindable | None,
        check: Check,
        *,
        fresh: bool = False,
    ) -> ReadyPlan:
        """Plan and bind; a `fresh` output is a new buffer, zeroed if that is needed."""
        source, target = self._source.bound(input), self._target.bound(output)
        if (offsets is None) != (self._offsets is None):
            described = "has them already" if self._offsets is None else f"describes {self.offsets}"
            given = "given" if offsets is not None else "missing"
            raise ValueError(f"offsets are {given}: the descriptor {described}")
        table = self._offsets.bound(offsets) if self._offsets and offsets is not None else None
        zeroed = self._planner_on_zeros if fresh else None
        planner = zeroed or self._planner
        copy = Copy(source, target._replace(fresh=fresh), planner, table, self._planning)
        return plan_and_bind(self.device, copy, self._current_limits(), check)

    def _plan_aligned(self) -> Plan:
        """Return the plan for aligned bindings of every usage, with capacity for vectors."""
        source, target = self._source.on_placeholder(), self._target.on_placeholder()
        table = self._offsets.on_placeholder() if self._offsets else None
        copy = Copy(source, target, self._planner, table, self._planning)
        return place(self._current_limits(), copy)[0]

    def _current_limits(self) -> Limits:
        """Return the limits that it was compiled for, with the kernels that are disabled now."""
        limits, disabled = self._limits, self.device.limits.disabled
        if limits.disabled != disabled:
            limits = self._limits = replace(limits, disabled=disabled)
        return limits


class BoundOperator:
    """A compiled operator with buffers, made by `CompiledOperator.bind`; recording makes no GPU object.

    Attributes
    ----------
    name : str
        Of the operator; errors begin with it.
    plan : Plan
        What it records.
    """

    def __init__(self, device: Device, name: str, bound: ReadyPlan) -> None:
        self.name = name
        self.plan = bound.plan
        self._device = device
        self._named = named(name)
        self._bound = bound
        self._sides = list(zip(SIDES, (buffer for buffer, _ in bound.places), strict=False))
        self._in_pass = all(isinstance(command, ReadyDispatch) for command in bound.commands)
        check_bound(device, self._sides)

    def record(self, encoder: CommandEncoder | ComputePass) -> None:
        """Record into a command encoder or a compute pass, which the caller ends and submits.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder or wgpu.GPUComputePassEncoder
            An encoder on this device with no pass open, or an open pass, which takes dispatches only. One
            pass for many operators takes less time than one for each.

        Raises
        ------
        TypeError, ValueError
            `encoder` is of another type or device, or a pass although the plan copies or clears buffers; or a
            buffer is destroyed or mapped. Nothing is recorded then.
        wgpu.GPUValidationError
            As of `CompiledOperator.record`; its notes apply here too.
        """
        with self._named:
            given = checked_encoder(self._device, encoder, or_pass=True)
            check_bound(self._device, self._sides)
            in_pass = hasattr(given, "dispatch_workgroups")
            if in_pass and not self._in_pass:
                raise ValueError(
                    f"encoder is a compute pass, but the plan copies or clears buffers "
                    f"({self.plan.summary}): give the command encoder, with no pass open"
                )
            recorder = Recorder(self._device, given, compute_pass=given if in_pass else None)
            recorder.play(self._bound)
            if not in_pass:
                recorder.end()

    def __repr__(self) -> str:
        return f"BoundOperator({self.name}: {self.plan.summary}; {self._device})"


class Descriptor(ABC):
    """Checked parameters of an operator, independent of a device."""

    input: TensorDesc
    output: TensorDesc

    @abstractmethod
    def planned(self, device: Device) -> CompiledOperator:
        """Return the operator with its plan for `device`, which `explain` shows, without pipelines."""

    def compile(self, device: Device) -> CompiledOperator:
        """Return the operator with the pipelines that aligned bindings need."""
        operator = self.planned(device)
        with named(operator.name):
            if sink().runs:
                device.pipelines.prepare(operator.plan)
        return operator

    def _hold(self, input: TensorDesc, output: TensorDesc, **others: object) -> None:
        """Store checked attributes; refuses differing dtypes and outputs whose elements overlap."""
        check_same_dtype(input.dtype, output.dtype)
        check_disjoint(output.layout)
        vars(self).update(input=input, output=output, **others)

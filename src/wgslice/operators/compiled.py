"""An operator compiled for a device, to call or to record."""

from __future__ import annotations

from typing import TYPE_CHECKING, SupportsIndex, TypeAlias

from wgslice.arguments import checked_offset
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.execute import Offsets, Operand, compile_plan, record, run
from wgslice.gpu.handles import check_buffer_type, check_fits
from wgslice.layout import Layout
from wgslice.operators.tensor_desc import TensorDesc
from wgslice.plans.plan import Plan, Planner
from wgslice.tensors.placed import check_tensor
from wgslice.tensors.tensor import Tensor

if TYPE_CHECKING:
    from wgslice.gpu.device import Buffer, CommandEncoder

    Binding: TypeAlias = Tensor | Buffer | tuple[Buffer, SupportsIndex]

__all__ = ["CompiledOperator"]


class CompiledOperator:
    """An operator planned for a device: call it, or record it into commands of your own.

    Attributes
    ----------
    device : Device
        Where it runs.
    plan : Plan
        What runs, and why, on buffers with the usages STORAGE, COPY_SRC and COPY_DST, bound at multiples of
        the device's binding alignment. Other bindings get a plan of their own from the same planner.
    """

    def __init__(
        self,
        device: Device,
        name: str,
        input: TensorDesc,
        output: TensorDesc,
        source: Layout,
        planner: Planner,
        offsets: TensorDesc | None = None,
    ) -> None:
        self.device = device
        self.name = name
        self.input = input
        self.output = output
        self.source = source  # what the planner is given of the input
        self.planner = planner
        self.offsets = offsets  # of windows, where they are bound when it runs
        with named(name):
            for side, desc in (("input", input), ("output", output)):
                check_buffer_can_hold(device, side, desc)
            self.plan: Plan = planner.plan(source, output.layout, device.limits)
            compile_plan(device, self.plan)

    def __call__(self, x: Tensor, out: Tensor | None = None, *, offsets: Tensor | None = None) -> Tensor:
        """Run on a tensor.

        Parameters
        ----------
        x : Tensor
            Of the described dtype, sizes and strides, at any offset.
        out : Tensor, optional
            As described too; it may lie in the buffer of `x`, which is read before anything is written. A new
            one by default.
        offsets : Tensor, optional
            As described, for windows whose descriptor describes offsets.

        Returns
        -------
        Tensor
            `out`. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError
            A tensor is not as described, not on this device, destroyed or mapped.
        OutOfDeviceMemory, DeviceLostError
            The device has no memory left for the output, or is gone.
        """
        with named(self.name):
            check_tensor("x", x)
            source, planner = self._bound("input", self.input, x), self.planner
            if out is None:
                planner = planner.on_zeros
                nbytes = self.output.nbytes
                buffer = self.device.create_buffer(nbytes)
                out = Tensor(self.device, buffer, self.output.dtype, self.output.layout)
            check_tensor("out", out)
            target = self._bound("output", self.output, out)
            run(self.device, planner, self._window(source), target, self._bound_offsets(offsets))
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
        """
        with named(self.name):
            source = self._bound("input", self.input, input)
            target = self._bound("output", self.output, output)
            table = self._bound_offsets(offsets)
            record(self.device, encoder, self.planner, self._window(source), target, table)

    def _window(self, source: Operand) -> Operand:
        """The part of a bound input that is read."""
        return Operand(source.buffer, self.source.shifted(source.layout.offset))

    def _bound_offsets(self, binding: Binding | None) -> Offsets | None:
        """Bound offsets, where the descriptor describes some."""
        if binding is None and self.offsets is None:
            return None
        if binding is None or self.offsets is None:
            described = "has them already" if self.offsets is None else f"describes {self.offsets}"
            given = "given" if binding is not None else "missing"
            raise ValueError(f"offsets are {given}: the descriptor {described}")
        operand = self._bound("offsets", self.offsets, binding)
        return Offsets(*operand, self.offsets.dtype.itemsize)

    def _bound(self, side: str, desc: TensorDesc, binding: Binding) -> Operand:
        """A binding as an operand, refused where it is not what the descriptor says."""
        with named(side):
            if isinstance(binding, Tensor):
                check_described(desc, binding)
                return binding.operand
            buffer, offset = binding if isinstance(binding, tuple) and len(binding) == 2 else (binding, 0)
            check_buffer_type(buffer)
            layout = desc.layout.shifted(checked_offset(offset, desc.dtype.itemsize))
            check_fits(buffer, layout, desc.dtype)
            return Operand(buffer, layout)


def check_buffer_can_hold(device: Device, side: str, desc: TensorDesc) -> None:
    """Refuse a tensor that no buffer of the device holds."""
    if desc.nbytes > device.largest_buffer_nbytes:
        raise ValueError(
            f"{side} sizes {desc.sizes} with strides {desc.strides} need {desc.nbytes} bytes: a buffer of "
            f"{device} has at most {device.largest_buffer_nbytes}"
        )


def check_described(desc: TensorDesc, tensor: Tensor) -> None:
    """Refuse a tensor that is not what the operator was compiled for."""
    if tensor.dtype != desc.dtype:
        raise TypeError(f"dtype {tensor.dtype}: compiled for {desc.dtype}")
    if tensor.shape != desc.sizes:
        raise ValueError(f"sizes {tensor.shape}: compiled for {desc.sizes}")
    if tensor.strides != desc.strides:
        remedy = "copy() the tensor" + ", or describe its strides" * (min(tensor.strides) >= 0)
        raise ValueError(f"strides {tensor.strides}: compiled for {desc.strides}; {remedy}")

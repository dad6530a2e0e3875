"""Copies between tensors and textures as operators that record into a caller's encoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any, SupportsIndex, TypeAlias

from wgslice.arguments import Integers, integer
from wgslice.errors import fitted, named
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import Buffer, CommandEncoder, Region, Texture
from wgslice.gpu.recording import Check, Recorder, check_alive, check_still_alive, checked_encoder
from wgslice.gpu.sink import RUNNING, sink
from wgslice.gpu.textures import (
    TextureSide,
    check_region,
    checked_corner,
    checked_texture,
    placed_plans,
    record_texture_copy,
)
from wgslice.layout import check_disjoint
from wgslice.operators.binding import Bindable, BindingSlot, TensorDesc, check_descs, keep_buffers, new_output
from wgslice.operators.textures import START, check_dtype, check_shape, fill_of
from wgslice.plans.plan import Plan
from wgslice.plans.textures import Aspect, Extent, extent_of, in_four, texels_of

TextureBinding: TypeAlias = Texture | tuple[Texture, Integers]


@dataclass(frozen=True, init=False)
class TextureDescriptor:
    """Descriptor of a copy between a tensor and a region of a texture of some format."""

    tensor: TensorDesc
    format: str
    side: TextureSide
    origin: Extent
    mip_level: int
    alpha: Any = None

    def _hold(
        self,
        tensor: TensorDesc,
        format: str,
        aspect: Aspect,
        origin: Integers,
        mip_level: SupportsIndex,
        alpha: Any,
        *,
        writes: bool,
    ) -> None:
        """Store attributes, checked as far as possible without a texture."""
        name = "input" if writes else "output"
        check_descs(**{name: tensor})
        texels = texels_of(format, aspect, writes=writes)
        check_dtype(name, tensor.dtype, format, texels)
        check_shape(name, tensor.sizes, format, texels, None, alpha)
        if not writes:
            check_disjoint(tensor.layout)
        extent = extent_of(tensor.sizes, texels.channels)
        vars(self).update(
            tensor=tensor,
            format=format,
            side=TextureSide(extent, texels, writes, fill_of(alpha, texels)),
            origin=checked_corner("origin", origin, 0),
            mip_level=integer("mip_level", mip_level),
            alpha=alpha,
        )

    @property
    def name(self) -> str:
        """Name of the operator in errors."""
        return type(self).__name__

    def slot(self, device: Device) -> BindingSlot:
        """Return the binding slot of the tensor."""
        images = in_four(self.tensor.layout, self.side.texels.channels)
        return BindingSlot(device, "input" if self.side.writes else "output", self.tensor, images)

    def plans(self, device: Device, new_staging: Callable[[int], Buffer]) -> tuple[Plan, ...]:
        """Return the plans for a buffer of every usage, bound at its start."""
        bound = self.slot(device).on_placeholder()
        return tuple(plan for plan, _ in placed_plans(device, bound, self.side, new_staging))

    def compile(self, device: Device) -> CompiledTextureCopy:
        """Return the operator for a device, with its pipelines."""
        return CompiledTextureCopy(device, self)


@dataclass(frozen=True, init=False)
class FromTexture(TextureDescriptor):
    """`from_texture` as an operator, to compile once and to record many times.

    Parameters
    ----------
    format : str
        Of the textures that are bound, as WebGPU names it.
    output : TensorDesc
        Of the dtype and sizes that `from_texture` gives for a region of that format. The sizes before the
        channels are the extent: rank 1 is a 1d texture, rank 3 has layers or depth.
    origin : sequence of int
        First texel if the binding has no origin: x, y, and z or the first layer.
    mip_level : int
        The level to copy from.
    aspect : {"all", "depth-only", "stencil-only"}
        What to copy of a format with depth and stencil.

    Raises
    ------
    TypeError, ValueError
        One of `from_texture`'s rules is broken.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> device = wg.default_device()
    >>> texture = device.wgpu_device.create_texture(size=(4, 4), format="rg8uint", usage=1 | 2)
    >>> operator = device.compile(wg.FromTexture("rg8uint", wg.TensorDesc("uint8", (2, 3, 2)), origin=(1, 0)))
    >>> operator(texture).shape
    (2, 3, 2)
    """

    def __init__(
        self,
        format: str,
        output: TensorDesc,
        *,
        origin: Integers = START,
        mip_level: SupportsIndex = 0,
        aspect: Aspect = "all",
    ) -> None:
        with named("FromTexture"):
            self._hold(output, format, aspect, origin, mip_level, None, writes=False)


@dataclass(frozen=True, init=False)
class ToTexture(TextureDescriptor):
    """`copy_to_texture` as an operator, to compile once and to record many times.

    Parameters
    ----------
    input : TensorDesc
        Of a dtype and sizes that `copy_to_texture` accepts; the sizes are the extent of the region.
    format : str
        Of the textures that are bound, as WebGPU names it.
    origin, mip_level : sequence of int, int
        As of `FromTexture`, of the region that is written.
    alpha : scalar, optional
        Value of the fourth channel where `input` has three.

    Raises
    ------
    TypeError, ValueError, OverflowError
        One of `copy_to_texture`'s rules is broken.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> device = wg.default_device()
    >>> texture = device.wgpu_device.create_texture(size=(4, 4), format="r8uint", usage=1 | 2)
    >>> operator = device.compile(wg.ToTexture(wg.TensorDesc("uint8", (2, 2)), "r8uint"))
    >>> encoder = device.wgpu_device.create_command_encoder()
    >>> for x in (0, 2):
    ...     operator.record(encoder, input=wg.full((2, 2), x, np.uint8), output=(texture, (x, 0)))
    >>> device.wgpu_device.queue.submit([encoder.finish()])
    >>> wg.from_texture(texture, size=(4, 2)).numpy()
    array([[0, 0, 2, 2],
           [0, 0, 2, 2]], dtype=uint8)
    """

    def __init__(
        self,
        input: TensorDesc,
        format: str,
        *,
        origin: Integers = START,
        mip_level: SupportsIndex = 0,
        alpha: Any = None,
    ) -> None:
        with named("ToTexture"):
            self._hold(input, format, "all", origin, mip_level, alpha, writes=True)


class CompiledTextureCopy:
    """A copy between a tensor and a texture, planned for a device: call it, or record it.

    Attributes
    ----------
    device : Device
        Where it runs.
    name : str
        Of the operator; errors begin with it.
    plans : tuple of Plan
        In order, for buffers with the usages STORAGE, COPY_SRC and COPY_DST, bound at multiples of the
        device's binding alignment. All recordings share one staging buffer.
    """

    def __init__(self, device: Device, descriptor: TextureDescriptor) -> None:
        self.device = device
        self.name = descriptor.name
        self._descriptor = descriptor
        self._staging = lru_cache(maxsize=1)(partial(RUNNING.create_buffer, device))
        with named(self.name):
            self._slot = descriptor.slot(device)
            self.plans = descriptor.plans(device, self._staging)
            for plan in self.plans if sink().runs else ():
                device.pipelines.prepare(plan)

    def __call__(self, input: Any, output: Any = None) -> Any:
        """Run on a tensor and a texture.

        Parameters
        ----------
        input, output : Tensor, wgpu.GPUTexture, (wgpu.GPUTexture, origin) and others, as for `record`
            The output of `FromTexture` may be left out: a new tensor as described.

        Returns
        -------
        Tensor or wgpu.GPUTexture
            The output as it is given. The work is submitted, not waited for.

        Raises
        ------
        TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
            As `from_texture` and `copy_to_texture`.
        """
        with named(self.name):
            if output is None and not self._descriptor.side.writes:
                output = new_output(self.device, self._descriptor.tensor)
            self._record(None, input, output, check_alive).submit()
        return output

    @fitted()
    def record(
        self,
        encoder: CommandEncoder,
        *,
        input: Bindable | TextureBinding,
        output: Bindable | TextureBinding,
    ) -> None:
        """Record into a command encoder, which the caller finishes and submits.

        Parameters
        ----------
        encoder : wgpu.GPUCommandEncoder
            On this device, with no pass open.
        input, output : wgpu.GPUTexture or (wgpu.GPUTexture, origin), and Tensor or buffer
            The texture is of the described format; an origin given with it replaces the described one. The
            tensor is bound as for `CompiledOperator.record`.

        Raises
        ------
        TypeError, ValueError, OutOfDeviceMemory, DeviceLostError
            As `from_texture`, `copy_to_texture` and `CompiledOperator.record`. Nothing is recorded then.

        Notes
        -----
        wgpu aborts the process when a submitted texture or buffer has been destroyed after it was recorded.
        """
        with named(self.name):
            encoder = checked_encoder(self.device, encoder)
            keep_buffers(self.device, input, output)
            self._record(encoder, input, output, check_still_alive).end()

    def __repr__(self) -> str:
        size = " x ".join(map(str, self._descriptor.side.size))
        return f"CompiledTextureCopy({self.name}: {self._descriptor.format}, {size}; {self.device})"

    def _record(self, encoder: CommandEncoder | None, input: Any, output: Any, check: Check) -> Recorder:
        """Record the plans for bindings into the encoder, or a new one for None."""
        described, side = self._descriptor, self._descriptor.side
        tensor, texture = (input, output) if side.writes else (output, input)
        origin, texels = described.origin, side.texels
        with named("output" if side.writes else "input"):
            if isinstance(texture, tuple) and len(texture) == 2:
                origin = checked_corner("origin", texture[1], 0)
                texture = texture[0]
            texture, _ = checked_texture(texture, self.device)
            if texture.format != described.format:
                raise ValueError(f"format {texture.format}: compiled for {described.format}")
            sizes = described.tensor.sizes
            check_shape("the tensor", sizes, described.format, texels, texture.dimension, described.alpha)
            region = Region(texture, origin, described.mip_level, texels.aspect)
            check_region(self.device, region, side)
        bound = self._slot.bound(tensor)
        return record_texture_copy(self.device, encoder, region, bound, side, self._staging, check)

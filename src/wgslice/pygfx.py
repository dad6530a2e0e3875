"""Tensors in pygfx's scenes: textures and buffers filled on the GPU. Needs the extra `pygfx`.

pygfx draws on one device for the whole process; what lives there needs no way through memory.
"""

from __future__ import annotations

from math import prod

import numpy as np

try:
    import pygfx
except ModuleNotFoundError as error:
    message = "wgslice.pygfx needs the package pygfx, the extra `pygfx` of wgslice: pip install pygfx"
    raise ModuleNotFoundError(message, name=error.name) from None
from pygfx.renderers.wgpu import get_shared
from pygfx.renderers.wgpu.engine.update import ensure_wgpu_object

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.capture import refuse_in_capture
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import BufferUsage, TextureUsage
from wgslice.tensors.creation import empty, from_buffer
from wgslice.tensors.placed import copyto
from wgslice.tensors.tensor import Tensor

__all__ = ["device", "to_buffer", "to_texture", "update"]

TEXTURE_USAGE = TextureUsage.COPY_DST | TextureUsage.TEXTURE_BINDING
BUFFER_USAGE = (
    BufferUsage.COPY_SRC | BufferUsage.COPY_DST | BufferUsage.INDEX | BufferUsage.VERTEX | BufferUsage.STORAGE
)

ROW_NBYTES = 256  # WebGPU copies textures from buffers whose rows begin at multiples of it
FORMATS = ("i1", "u1", "i2", "u2", "i4", "u4", "f2", "f4")  # kinds and widths that pygfx's formats have


def device() -> Device:
    """Get the device that pygfx draws on, to make tensors on: `asarray(array, device=device())`.

    Returns
    -------
    Device
        Always the same.

    Raises
    ------
    RuntimeError
        pygfx finds no adapter that it can use.
    """
    return Device.wrap(get_shared().device)


def to_texture(x: Tensor, *, dim: int = 2, colorspace: str = "srgb") -> pygfx.Texture:
    """Make a texture of a tensor's elements, on the GPU.

    Parameters
    ----------
    x : Tensor
        Of the sizes (width,), (height, width) or (depth, height, width), as `dim` says, with 1 to 4 channels
        behind them or none; integers of 8, 16 and 32 bits, or floats of 16 and 32. On `device()`; views
        welcome.
    dim : int
        Dimensions of the texture, 1, 2 or 3.
    colorspace : str
        As for `pygfx.Texture`.

    Returns
    -------
    pygfx.Texture
        Without data in memory. Three channels get a fourth, opaque, since GPUs have no such format. The work
        is submitted, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or of a dtype that pygfx has no texture format for.
    ValueError
        The sizes are none of a texture, or beyond the device's; or `x` is on another device.
    """
    with named("to_texture"):
        check_given(x)
        texels = Texels(x, dim)
        texture = pygfx.Texture(
            None,
            dim=dim,
            size=texels.sizes[::-1],
            format=texels.format,
            colorspace=colorspace,
            usage=TEXTURE_USAGE,
        )
        write_texture(texture, x, texels)
        return texture


def to_buffer(x: Tensor) -> pygfx.Buffer:
    """Make a buffer of a tensor's elements, on the GPU: positions, colors, indices and the like.

    Parameters
    ----------
    x : Tensor
        Of the sizes (items,) or (items, 1 to 4); integers of 8, 16 and 32 bits, or floats of 16 and 32; a
        multiple of 4 bytes. On `device()`; views welcome.

    Returns
    -------
    pygfx.Buffer
        Without data in memory, so that pygfx knows no bounding box of it. The work is submitted, not waited
        for.

    Raises
    ------
    TypeError
        `x` is no tensor, or of a dtype that pygfx has no format for.
    ValueError
        The sizes are none of a buffer, the bytes no multiple of 4, or `x` is on another device.
    """
    with named("to_buffer"):
        check_given(x)
        kind = buffer_format(x)
        buffer = pygfx.Buffer(None, nbytes=x.nbytes, nitems=len(x), format=kind, usage=BUFFER_USAGE)
        copyto(from_buffer(ensure_wgpu_object(buffer), x.shape, x.dtype), x)
        return buffer


def update(resource: pygfx.Texture | pygfx.Buffer, x: Tensor) -> None:
    """Write a tensor's elements into a texture or buffer that was made here.

    Parameters
    ----------
    resource : pygfx.Texture or pygfx.Buffer
        From `to_texture` or `to_buffer`.
    x : Tensor
        Of the sizes and dtype of the tensor that it was made from, on `device()`.

    Returns
    -------
    None
        The next drawing shows it. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError
        `x` is no tensor, is not as the one that the resource was made from, or is on another device.
    """
    with named("update"):
        check_given(x)
        check_made_here(resource)
        if isinstance(resource, pygfx.Buffer):
            kind = buffer_format(x)
            if (len(x), kind) != (resource.nitems, resource.format):
                raise ValueError(
                    f"x has {len(x)} items of {kind}: the buffer has {resource.nitems} of {resource.format}"
                )
            copyto(from_buffer(ensure_wgpu_object(resource), x.shape, x.dtype), x)
            return
        texels = Texels(x, resource.dim)
        if (texels.sizes[::-1], texels.format) != (resource.size, resource.format):
            raise ValueError(
                f"x has width, height and depth {texels.sizes[::-1]} and format {texels.format}: "
                f"the texture has {resource.size} and {resource.format}"
            )
        write_texture(resource, x, texels)


def check_made_here(resource: pygfx.Texture | pygfx.Buffer) -> None:
    """Refuse what has other usages, or data in memory that pygfx would upload over ours."""
    usages = {pygfx.Texture: TEXTURE_USAGE, pygfx.Buffer: BUFFER_USAGE}.get(type(resource))
    if usages is None:
        raise TypeError(f"resource is of type {type(resource).__name__}: must be a pygfx Texture or Buffer")
    if resource.data is not None or resource._wgpu_usage & usages != usages:
        raise ValueError("resource is not from to_texture or to_buffer: make it there, to write into it here")


class Texels:
    """How a texture of `dim` dimensions holds a tensor, refused where it cannot."""

    def __init__(self, x: Tensor, dim: int) -> None:
        if dim not in (1, 2, 3):
            raise ValueError(f"dim = {dim}: must be 1, 2 or 3")
        self.channels = prod(x.shape[dim:])
        if x.ndim not in (dim, dim + 1) or x.size == 0 or not 1 <= self.channels <= 4:
            axes = ", ".join(("depth", "height", "width")[3 - dim :])
            raise ValueError(f"x has sizes {x.shape}: with dim = {dim} must be ({axes}) or ({axes}, 1 to 4)")
        limit = device().wgpu_device.limits[f"max-texture-dimension-{dim}d"]
        if max(x.shape[:dim]) > limit:
            raise ValueError(f"x has sizes {x.shape}: a texture's are at most {limit} on {device()}")
        self.sizes = (1,) * (3 - dim) + x.shape[:dim]  # depth, height, width
        self.filled = 4 if self.channels == 3 else self.channels  # of the texture, which has no three
        self.format = pygfx_format(x.dtype, self.filled)  # pygfx's name


def buffer_format(x: Tensor) -> str:
    """pygfx's name of a buffer's format, refused where a tensor cannot become one."""
    if x.ndim not in (1, 2) or x.size == 0 or not 1 <= prod(x.shape[1:]) <= 4:
        raise ValueError(f"x has sizes {x.shape}: must be (items,), or (items, 1 to 4)")
    if x.nbytes % 4:
        raise ValueError(f"x has {x.nbytes} bytes: must have a multiple of 4, as GPU buffers do")
    return pygfx_format(x.dtype, prod(x.shape[1:]))


def pygfx_format(dtype: DType, channels: int) -> str:
    """pygfx's name of a format."""
    name = f"{dtype.kind}{dtype.itemsize}"
    if name not in FORMATS:
        raise TypeError(f"dtype {dtype}: pygfx has integers of 8, 16 and 32 bits, and float16 and float32")
    return name if channels == 1 else f"{channels}x{name}"


def write_texture(texture: pygfx.Texture, x: Tensor, texels: Texels) -> None:
    """Copy a tensor into rows that a texture can be copied from, and these into the texture."""
    sizes, channels, filled = texels.sizes, texels.channels, texels.filled
    row_nbytes = -(-sizes[2] * filled * x.dtype.itemsize // ROW_NBYTES) * ROW_NBYTES
    row = row_nbytes // x.dtype.itemsize
    memory = empty((sizes[0] * sizes[1] * row,), x.dtype, device=x.device)
    rows = from_buffer(memory.buffer, (*sizes, filled), x.dtype, strides=(sizes[1] * row, row, filled, 1))
    if channels == 3:
        rows[..., 3] = 1 if x.dtype.kind == "f" else np.iinfo(x.dtype.str).max
    copyto(rows[..., :channels], x[..., None] if x.ndim == texture.dim else x)
    encoder = x.device.create_encoder()
    encoder.copy_buffer_to_texture(
        {"buffer": memory.buffer, "offset": 0, "bytes_per_row": row_nbytes, "rows_per_image": sizes[1]},
        {"texture": ensure_wgpu_object(texture), "mip_level": 0, "origin": (0, 0, 0)},
        sizes[::-1],
    )
    x.device.submit(encoder)


def check_given(x: Tensor) -> None:
    """Refuse what pygfx cannot see."""
    refuse_in_capture("memory of pygfx's is written")
    if not isinstance(x, Tensor):
        kind = type(x).__name__
        raise TypeError(f"x is of type {kind}: must be a Tensor, asarray(x, device=wgslice.pygfx.device())")
    if x.device is not device():
        raise ValueError(
            f"x is on another device than pygfx, {device()}: asarray(array, "
            "device=wgslice.pygfx.device()) makes tensors there"
        )

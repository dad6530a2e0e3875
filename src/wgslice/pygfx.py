"""Tensors in pygfx's scenes: textures and buffers filled on the GPU. Needs the extra `pygfx`.

pygfx draws on one device per process; tensors on that device are copied without a transfer to the host.
"""

from __future__ import annotations

import re
from math import prod

import numpy as np

try:
    import pygfx
except ModuleNotFoundError as error:
    message = "wgslice.pygfx needs the package pygfx, the extra `pygfx` of wgslice: pip install pygfx"
    raise ModuleNotFoundError(message, name=error.name) from None
from pygfx.renderers.wgpu import get_shared
from pygfx.renderers.wgpu.engine.update import ensure_wgpu_object, update_resource
from pygfx.renderers.wgpu.engine.utils import to_texture_format

from wgslice.dtypes import DType
from wgslice.errors import named
from wgslice.gpu.device import Device
from wgslice.gpu.protocols import BufferUsage, Texture, TextureUsage
from wgslice.gpu.sink import sink
from wgslice.operators.textures import copy_to_texture
from wgslice.tensors.creation import from_buffer
from wgslice.tensors.placed import copyto
from wgslice.tensors.tensor import Tensor

__all__ = ["device", "gpu_texture", "to_buffer", "to_texture", "update"]

COPY_USAGES = TextureUsage.COPY_SRC | TextureUsage.COPY_DST
TEXTURE_USAGE = COPY_USAGES | TextureUsage.TEXTURE_BINDING
BUFFER_USAGE = (
    BufferUsage.COPY_SRC | BufferUsage.COPY_DST | BufferUsage.INDEX | BufferUsage.VERTEX | BufferUsage.STORAGE
)

# Formats that every device can blend, so that a renderer can target them. pygfx makes rgba of rgb.
TARGET_FORMATS = re.compile(r"(r|rg|rgba?)(8unorm|16float)|(rgba|bgra)8unorm(-srgb)?|rgb10a2unorm")
FORMATS = ("i1", "u1", "i2", "u2", "i4", "u4", "f2", "f4")  # kinds and bytes of pygfx's formats


def device() -> Device:
    """Get the device that pygfx draws on, to make tensors on: `asarray(array, device=device())`.

    Returns
    -------
    Device
        The same object for every call.

    Raises
    ------
    RuntimeError
        pygfx finds no suitable adapter.
    """
    return Device.wrap(get_shared().device)


def to_texture(x: Tensor, *, dim: int = 2, colorspace: str = "srgb") -> pygfx.Texture:
    """Make a texture of a tensor's elements, on the GPU.

    Parameters
    ----------
    x : Tensor
        Of sizes (width,), (height, width) or (depth, height, width) by `dim`, optionally followed by 1 to 4
        channels; integers of 8, 16 and 32 bits, or floats of 16 and 32. On `device()`; may be a view.
    dim : int
        Dimensions of the texture, 1, 2 or 3.
    colorspace : str
        As for `pygfx.Texture`.

    Returns
    -------
    pygfx.Texture
        Without host data. Three channels get a fourth, opaque one, since GPUs have no format of three. The
        work is submitted, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or pygfx has no texture format for its dtype.
    ValueError
        The sizes are not valid for a texture or exceed the device's limits, or `x` is on another device.
    """
    with named("to_texture"):
        check_given(x)
        size, kind = texels_of(x, dim)
        texture = pygfx.Texture(
            None, dim=dim, size=size, format=kind, colorspace=colorspace, usage=TEXTURE_USAGE
        )
        write_texture(texture, x)
        return texture


def to_buffer(x: Tensor) -> pygfx.Buffer:
    """Make a buffer of a tensor's elements, on the GPU: positions, colors, indices and the like.

    Parameters
    ----------
    x : Tensor
        Of sizes (items,) or (items, 1 to 4); integers of 8, 16 and 32 bits, or floats of 16 and 32; a
        multiple of 4 bytes. On `device()`; may be a view.

    Returns
    -------
    pygfx.Buffer
        Without host data, so that pygfx computes no bounding box. The work is submitted, not waited for.

    Raises
    ------
    TypeError
        `x` is no tensor, or pygfx has no format for its dtype.
    ValueError
        The sizes are not valid for a buffer, the bytes no multiple of 4, or `x` is on another device.
    """
    with named("to_buffer"):
        check_given(x)
        kind = buffer_format(x)
        buffer = pygfx.Buffer(None, nbytes=x.nbytes, nitems=len(x), format=kind, usage=BUFFER_USAGE)
        copyto(from_buffer(ensure_wgpu_object(buffer), x.shape, x.dtype), x)
        return buffer


def gpu_texture(texture: pygfx.Texture) -> Texture:
    """Get the GPU's texture of a pygfx texture, for `copy_to_texture`, `from_texture` and their operators.

    Call it before the texture is first rendered, and before or after its renderer is made: a texture gets its
    usages when it is made on the GPU, which the first of this call and the render does.

    Parameters
    ----------
    texture : pygfx.Texture
        Any: with or without host data, of an image on the screen, or the target of a renderer.

    Returns
    -------
    wgpu.GPUTexture
        The same object for every call. Has the usages COPY_SRC and COPY_DST, and those that pygfx needs to
        sample it and to render to it, unless pygfx has made it before: then those that pygfx gave it, which
        are COPY_DST for host data, and the `usage` of the pygfx texture. Host data that pygfx still has to
        upload is uploaded, so that it does not overwrite elements that are written afterwards.

    Raises
    ------
    TypeError
        `texture` is no pygfx texture.
    ValueError
        pygfx has made the texture before, with neither COPY_SRC nor COPY_DST.
    """
    with named("gpu_texture"):
        if not isinstance(texture, pygfx.Texture):
            raise TypeError(f"texture is of type {type(texture).__name__}: must be a pygfx Texture")
        if texture._wgpu_object is None:
            texture._wgpu_usage |= TEXTURE_USAGE
            if texture.dim == 2 and TARGET_FORMATS.fullmatch(to_texture_format(texture.format)):
                texture._wgpu_usage |= TextureUsage.RENDER_ATTACHMENT  # of a renderer that is made later
        elif not texture._wgpu_usage & COPY_USAGES:
            raise ValueError(
                "texture has neither usage COPY_SRC nor COPY_DST, since pygfx has rendered it before: call "
                "gpu_texture before the first render, or make it with pygfx.Texture(..., usage=3)"
            )
        made: Texture = ensure_wgpu_object(texture)
        update_resource(texture)
        return made


def update(resource: pygfx.Texture | pygfx.Buffer, x: Tensor) -> None:
    """Write a tensor's elements into a texture or buffer from `to_texture` or `to_buffer`.

    Parameters
    ----------
    resource : pygfx.Texture or pygfx.Buffer
        From `to_texture` or `to_buffer`.
    x : Tensor
        Of the sizes and dtype of the original tensor, on `device()`.

    Returns
    -------
    None
        The next draw uses the elements. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError
        `x` is no tensor, differs from the original in sizes or dtype, or is on another device.
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
        size, kind = texels_of(x, resource.dim)
        if (size, kind) != (resource.size, resource.format):
            raise ValueError(
                f"x has width, height and depth {size} and format {kind}: "
                f"the texture has {resource.size} and {resource.format}"
            )
        write_texture(resource, x)


def check_made_here(resource: pygfx.Texture | pygfx.Buffer) -> None:
    """Raise if a resource has other usages, or host data that pygfx would upload over the elements."""
    usages = {pygfx.Texture: TEXTURE_USAGE, pygfx.Buffer: BUFFER_USAGE}.get(type(resource))
    if usages is None:
        raise TypeError(f"resource is of type {type(resource).__name__}: must be a pygfx Texture or Buffer")
    if resource.data is not None or resource._wgpu_usage & usages != usages:
        raise ValueError("resource is not from to_texture or to_buffer: make it with one of them")


def texels_of(x: Tensor, dim: int) -> tuple[tuple[int, ...], str]:
    """pygfx's size and format of a texture of `dim` dimensions for a tensor; raises if there are none."""
    if dim not in (1, 2, 3):
        raise ValueError(f"dim = {dim}: must be 1, 2 or 3")
    channels = checked_channels(x, *("depth", "height", "width")[3 - dim :])
    limit = device().wgpu_device.limits[f"max-texture-dimension-{dim}d"]
    if max(x.shape[:dim]) > limit:
        raise ValueError(f"x has sizes {x.shape}: a texture's are at most {limit} on {device()}")
    size = (*x.shape[:dim][::-1], 1, 1)[:3]
    return size, pygfx_format(x.dtype, 4 if channels == 3 else channels)


def buffer_format(x: Tensor) -> str:
    """pygfx's name of a buffer's format for a tensor; raises if there is none."""
    channels = checked_channels(x, "items")
    if x.nbytes % 4:
        raise ValueError(f"x has {x.nbytes} bytes: must have a multiple of 4, as GPU buffers do")
    return pygfx_format(x.dtype, channels)


def checked_channels(x: Tensor, *axes: str) -> int:
    """Count the channels behind the named dimensions; raises if there are others, or no elements."""
    channels = prod(x.shape[len(axes) :])
    if x.ndim not in (len(axes), len(axes) + 1) or x.size == 0 or not 1 <= channels <= 4:
        names = ", ".join(axes)
        raise ValueError(f"x has sizes {x.shape}: must be ({names}), or ({names}, 1 to 4)")
    return channels


def pygfx_format(dtype: DType, channels: int) -> str:
    """pygfx's name of a format; raises if the dtype has none."""
    name = f"{dtype.kind}{dtype.itemsize}"
    if name not in FORMATS:
        raise TypeError(f"dtype {dtype}: pygfx has integers of 8, 16 and 32 bits, and float16 and float32")
    return name if channels == 1 else f"{channels}x{name}"


def write_texture(texture: pygfx.Texture, x: Tensor) -> None:
    """Copy a tensor to a whole texture, with opaque alpha if only the texture has a fourth channel."""
    channels = prod(x.shape[texture.dim :])
    opaque = 1 if x.dtype.kind == "f" else np.iinfo(x.dtype.str).max
    given = x[..., 0] if x.ndim > texture.dim and channels == 1 else x
    copy_to_texture(given, ensure_wgpu_object(texture), alpha=opaque if channels == 3 else None)


def check_given(x: Tensor) -> None:
    """Raise unless `x` is a tensor on pygfx's device, outside of a capture."""
    sink().check_runs("memory of pygfx is written")
    if not isinstance(x, Tensor):
        kind = type(x).__name__
        raise TypeError(f"x is of type {kind}: must be a Tensor, asarray(x, device=wgslice.pygfx.device())")
    if x.device is not device():
        raise ValueError(
            f"x is on another device than pygfx, {device()}: asarray(array, "
            "device=wgslice.pygfx.device()) makes tensors there"
        )

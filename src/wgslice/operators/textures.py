"""Copies between tensors and textures as functions, and the checks that their operators share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import Integers, integer
from wgslice.dtypes import DType
from wgslice.errors import public
from wgslice.gpu.device import AnyDevice, Device
from wgslice.gpu.protocols import Buffer, Region, Texture
from wgslice.gpu.recording import Binding, check_alive
from wgslice.gpu.sink import sink
from wgslice.gpu.textures import (
    TextureSide,
    check_readable,
    check_region,
    checked_corner,
    checked_texture,
    map_texels,
    read_texels,
    record_texture_copy,
    rest_of_level,
)
from wgslice.operators.windows_arguments import repeated_bytes
from wgslice.plans.textures import Aspect, Texels, extent_of, in_four, shape_of, texels_of
from wgslice.tensors.placed import check_destination, check_tensor, check_writeable
from wgslice.tensors.tensor import Tensor, allocate

START = (0, 0, 0)


@overload
def from_texture(
    texture: Texture,
    *,
    origin: Integers = ...,
    size: Integers | None = ...,
    mip_level: SupportsIndex = ...,
    aspect: Aspect = ...,
    out: Tensor | None = ...,
) -> Tensor: ...
@overload
def from_texture(
    texture: Texture,
    *,
    origin: Integers = ...,
    size: Integers | None = ...,
    mip_level: SupportsIndex = ...,
    aspect: Aspect = ...,
    out: NDArray[Any],
) -> NDArray[Any]: ...
@public()
def from_texture(
    texture: Texture,
    *,
    origin: Integers = START,
    size: Integers | None = None,
    mip_level: SupportsIndex = 0,
    aspect: Aspect = "all",
    device: AnyDevice = None,
    out: Tensor | NDArray[Any] | None = None,
) -> Tensor | NDArray[Any]:
    """Copy a region of a texture into a tensor, on the GPU.

    Parameters
    ----------
    texture : wgpu.GPUTexture
        With usage COPY_SRC and one sample a texel. Of a format r, rg or rgba with 8, 16 or 32 bits a channel,
        bgra8unorm, or of depth or stencil.
    origin : sequence of int
        First texel: x, y, and z or the first layer.
    size : sequence of int, optional
        Width, height, and depth or layers, in texels; missing ones are 1. To the end of the mip level by
        default.
    mip_level : int
        The level to copy from.
    aspect : {"all", "depth-only", "stencil-only"}
        What to copy of a format with depth and stencil.
    device : Device or str, optional
        The texture's, which wgpu's own textures tell; of others by default the only one of their host.
    out : Tensor or numpy.ndarray, optional
        Where to write, of the result's dtype and sizes: a tensor, an array, or a view of either, of any
        strides. An array is filled without a tensor in between.

    Returns
    -------
    Tensor or numpy.ndarray
        Of the sizes (height, width), or (width,) of a 1d texture; with depth or layers in front unless that
        is 1, and with channels behind where the format has more than one. unorm and uint are unsigned
        integers, snorm and sint signed ones, float is float16 or float32, depth float32 or uint16, stencil
        uint8: the bits as they are, srgb not decoded, and bgra in its own order. `out`, or packed in a
        buffer of its own. The work is submitted, and waited for if `out` is an array.

    Raises
    ------
    TypeError
        `texture` is no texture, a number no integer, `out` no tensor or array, or of another dtype.
    ValueError
        WebGPU has no such copy: of the format or aspect, a region outside of the mip level, a part of a depth
        or stencil texture, several samples, no COPY_SRC. The texture is destroyed. `out` has other sizes, is
        read-only, on another device, destroyed or mapped, or places two elements on the same bytes.
    OutOfDeviceMemory, DeviceLostError
        The device has no memory left for the copy, or is gone.

    Notes
    -----
    Semantics: WebGPU's `copyTextureToBuffer`, whose padding of rows to 256 bytes is removed on the GPU, or by
    the copy into an array.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> device = wg.default_device()
    >>> texture = device.wgpu_device.create_texture(size=(3, 2), format="r8uint", usage=1 | 2)
    >>> wg.copy_to_texture(wg.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3)), texture)
    >>> wg.from_texture(texture, origin=(1, 0)).numpy()
    array([[1, 2],
           [4, 5]], dtype=uint8)
    """
    device, region, side, shape = source_of(texture, origin, size, mip_level, aspect, device)
    texels = side.texels
    if isinstance(out, np.ndarray):
        check_writeable(out, "out")
    elif out is not None:
        check_tensor("out", out, written=True)
        check_destination(out, out.dtype, "out")
    if out is not None:
        check_dtype("out", out.dtype, texture.format, texels)
        if out.shape != shape:
            raise ValueError(f"out has sizes {out.shape}: must be {shape}")
    if isinstance(out, np.ndarray):
        check_readable(device, region, side)
        if out.size:
            read_texels(device, region, side, out)
        return out
    result = allocate(shape, texels.dtype, device, zeroed=False) if out is None else out
    run(device, region, result, side, fresh=out is None)
    return result


@public()
def map_texture(
    texture: Texture,
    *,
    origin: Integers = START,
    size: Integers | None = None,
    mip_level: SupportsIndex = 0,
    aspect: Aspect = "all",
    device: AnyDevice = None,
) -> NDArray[Any]:
    """Copy a region of a texture into mapped memory, and return a read-only array on that.

    Saves the copy into memory of the host that `from_texture(texture, out=array)` makes.

    Parameters
    ----------
    texture : wgpu.GPUTexture
        As of `from_texture`, which describes the other parameters too.
    origin, size : sequence of int
        The region to copy.
    mip_level : int
        The level to copy from.
    aspect : {"all", "depth-only", "stencil-only"}
        What to copy of a format with depth and stencil.
    device : Device or str, optional
        As of `from_texture`.

    Returns
    -------
    numpy.ndarray
        Of the dtype and sizes that `from_texture` gives, read-only, with rows a multiple of 256 bytes apart.
        Each call maps a staging buffer of its own, which the device reuses once the array and all views of it
        are dropped; `array.copy()` is independent of it. The GPU has finished.

    Raises
    ------
    TypeError, ValueError
        As `from_texture`, or the device allows no buffer of this size.
    OutOfDeviceMemory, DeviceLostError
        As `from_texture`.
    BufferError
        Later, by `destroy` of the wgpu device: arrays that were not dropped are in its memory.

    Notes
    -----
    A fault that makes the driver lose the device takes the memory away: elements must not be read after that.

    Semantics: WebGPU's `copyTextureToBuffer`, `mapAsync` and `getMappedRange`, with `unmap` when the last
    array is dropped.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> device = wg.default_device()
    >>> texture = device.wgpu_device.create_texture(size=(3, 2), format="r8uint", usage=1 | 2)
    >>> wg.copy_to_texture(wg.asarray(np.arange(6, dtype=np.uint8).reshape(2, 3)), texture)
    >>> array = wg.map_texture(texture)
    >>> array.max(), array.strides
    (np.uint8(5), (256, 1))
    """
    device, region, side, shape = source_of(texture, origin, size, mip_level, aspect, device)
    check_readable(device, region, side)
    if 0 in shape:
        array = np.empty(shape, side.texels.dtype)
        array.flags.writeable = False
        return array
    return map_texels(device, region, side).reshape(shape)


@public()
def copy_to_texture(
    x: Tensor,
    texture: Texture,
    *,
    origin: Integers = START,
    mip_level: SupportsIndex = 0,
    alpha: Any = None,
) -> None:
    """Copy a tensor into a region of a texture, on the GPU.

    Parameters
    ----------
    x : Tensor
        Of the dtype and sizes that `from_texture` gives for the region; views of any strides welcome. One
        layer, or a depth of one, may be in front or left out.
    texture : wgpu.GPUTexture
        With usage COPY_DST, on the device of `x`, of a format as in `from_texture`; WebGPU does not let depth
        of 32 bits be written, so that of a format with depth and stencil only the stencil is written.
    origin : sequence of int
        First texel: x, y, and z or the first layer.
    mip_level : int
        The level to write.
    alpha : scalar, optional
        Value of the fourth channel where `x` has three, in the units of `x`: 255 is opaque for rgba8unorm.
        Cast as NumPy assigns it.

    Returns
    -------
    None
        Texels outside of the region keep their values. The work is submitted, not waited for.

    Raises
    ------
    TypeError, ValueError
        As `from_texture`, of `x` in place of `out`, with COPY_DST; or `alpha` is no scalar, missing for three
        channels, or given for others.
    OverflowError
        `alpha` is a Python integer that the dtype does not hold.
    OutOfDeviceMemory, DeviceLostError
        As `from_texture`.

    Notes
    -----
    Semantics: WebGPU's `copyBufferToTexture`, whose rows are padded to 256 bytes on the GPU.

    Examples
    --------
    >>> import numpy as np, wgslice as wg
    >>> device = wg.default_device()
    >>> texture = device.wgpu_device.create_texture(size=(2, 1), format="rgba8unorm", usage=1 | 2)
    >>> rgb = wg.asarray(np.array([[[1, 2, 3], [4, 5, 6]]], np.uint8))
    >>> wg.copy_to_texture(rgb[:, ::-1], texture, alpha=255)
    >>> wg.from_texture(texture).numpy()
    array([[[  4,   5,   6, 255],
            [  1,   2,   3, 255]]], dtype=uint8)
    """
    check_tensor("x", x)
    texture, device = checked_texture(texture, x.device)
    texels = texels_of(texture.format, "all", writes=True)
    check_dtype("x", x.dtype, texture.format, texels)
    check_shape("x", x.shape, texture.format, texels, texture.dimension, alpha)
    region = region_of(texture, origin, mip_level, texels)
    extent = extent_of(x.shape, texels.channels)
    side = TextureSide(extent, texels, True, fill_of(alpha, texels))
    check_region(device, region, side)
    run(device, region, x, side)


def run(device: Device, region: Region, tensor: Tensor, side: TextureSide, *, fresh: bool = False) -> None:
    """Copy between a region and a tensor that fits it, without waiting for the GPU."""
    bound = Binding(tensor.memory, in_four(tensor.layout, side.texels.channels), tensor.itemsize, fresh)
    held: list[Buffer] = []  # another thread may be given the memory of a buffer that is dropped earlier

    def new_staging(nbytes: int) -> Buffer:
        held.append(sink().reused_buffer(device, nbytes))
        return held[-1]

    recorder = record_texture_copy(device, None, region, bound, side, new_staging, check_alive)
    if tensor.size:
        recorder.submit()


def source_of(
    texture: Texture,
    origin: Integers,
    size: Integers | None,
    mip_level: SupportsIndex,
    aspect: Aspect,
    given: AnyDevice,
) -> tuple[Device, Region, TextureSide, tuple[int, ...]]:
    """Return the device of a texture, the checked region to read, and the sizes of its elements."""
    texture, device = checked_texture(texture, given)
    texels = texels_of(texture.format, aspect, writes=False)
    region = region_of(texture, origin, mip_level, texels)
    extent = rest_of_level(region) if size is None else checked_corner("size", size, 1)
    side = TextureSide(extent, texels, writes=False)
    check_region(device, region, side)
    return device, region, side, shape_of(extent, texture.dimension, texels.channels)


def region_of(texture: Texture, origin: Integers, mip_level: SupportsIndex, texels: Texels) -> Region:
    """Return the region of a texture at an origin and a mip level."""
    corner = checked_corner("origin", origin, 0)
    return Region(texture, corner, integer("mip_level", mip_level), texels.aspect)


def check_dtype(name: str, dtype: DType, format: str, texels: Texels) -> None:
    """Refuse a tensor whose dtype is not that of a format's texels."""
    if dtype != texels.dtype:
        raise TypeError(
            f"{name} has dtype {dtype}: texels of the format {format} are {texels.dtype}; view gives "
            "the same bits another dtype of their width"
        )


def check_shape(
    name: str, shape: Sequence[int], format: str, texels: Texels, dimension: str | None, alpha: Any
) -> None:
    """Refuse sizes that no region of a format has, and three channels for four without alpha."""
    channels = texels.channels
    behind = channels > 1
    ranks = {"1d": (1,), "2d": (2, 3), "3d": (2, 3), None: (1, 2, 3)}[dimension]
    is_rgb = channels == 4 and len(shape) > 1 and shape[-1] == 3
    if len(shape) - behind not in ranks or (behind and shape[-1] != channels and not is_rgb):
        rows = "width" if dimension == "1d" else "height, width"
        front = "" if dimension == "1d" else ", or with depth or layers in front"
        one_channel = not behind and shape[-1:] == (1,) and len(shape) - 1 in ranks
        remedy = "; x.squeeze(-1) views a tensor x without its last dimension" * one_channel
        raise ValueError(
            f"{name} has sizes {tuple(shape)}: must be ({rows}{f', {channels}' * behind}) for the format "
            f"{format}{front}{remedy}"
        )
    if is_rgb and alpha is None:
        raise ValueError(
            f"{name} has 3 channels, the format {format} has 4: alpha= gives the value of the fourth"
        )
    if alpha is not None and not is_rgb:
        raise ValueError(
            f"alpha = {alpha!r}: must be left out, since {name} of sizes {tuple(shape)} has no 3 channels"
        )


def fill_of(alpha: Any, texels: Texels) -> bytes:
    """Return 16 bytes of elements of the fourth channel, or none if the tensor has it."""
    return b"" if alpha is None else repeated_bytes(alpha, texels.dtype, "alpha")

"""Checks of callers' textures, and recording of copies between them and buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from wgslice.arguments import Integers, integers
from wgslice.gpu.adapter import check_process
from wgslice.gpu.device import AnyDevice, Device, is_elsewhere, owning_device
from wgslice.gpu.hosts import found_by
from wgslice.gpu.protocols import (
    Buffer,
    BufferUsage,
    CommandEncoder,
    Place,
    Region,
    TexelRows,
    Texture,
    TextureUsage,
)
from wgslice.gpu.recording import Binding, Check, Copy, Recorder, check_given, place
from wgslice.gpu.sink import sink
from wgslice.gpu.transfer import Readback, arriving
from wgslice.layout import Layout
from wgslice.plans.copy import plan_copy
from wgslice.plans.kernels import WORD_NBYTES
from wgslice.plans.plan import Plan
from wgslice.plans.problem import rebase
from wgslice.plans.profiles import STAGING_NBYTES
from wgslice.plans.textures import (
    ROW_NBYTES,
    Extent,
    Texels,
    filled_rows,
    padded_nbytes,
    padded_rows,
    plan_texture_copy,
)


def checked_texture(value: Any, device: AnyDevice = None) -> tuple[Texture, Device]:
    """Return the texture that a caller's value is, and its device; raise TypeError if it is none."""
    host, texture = found_by("GPUTexture", value, "texture is ")
    return texture, owning_device(host, texture, device)


def describe_texture(texture: Texture) -> str:
    """Return the description of a texture for error messages."""
    label = f" {texture.label!r}" if texture.label else ""
    return f"the texture{label} of {texture.format}, {' x '.join(map(str, texture.size))}"


def checked_corner(name: str, values: Integers, default: int) -> Extent:
    """Return x, y and z from up to three integers of at least 0; missing ones are the default."""
    given = integers(name, values)
    if len(given) > 3 or min(given, default=0) < 0:
        raise ValueError(f"{name} = {given}: must be up to three integers of at least 0, for x, y and z")
    x, y, z = (*given, *[default] * (3 - len(given)))
    return x, y, z


def level_extent(texture: Texture, mip_level: int) -> Extent:
    """Return the extent of a mip level; the number of layers is constant, depth halves like other sides."""
    count = texture.mip_level_count
    if not 0 <= mip_level < count:
        raise ValueError(f"mip_level = {mip_level}: {describe_texture(texture)} has levels 0 to {count - 1}")
    width, height, depth = (max(side >> mip_level, 1) for side in texture.size)
    return width, height, (depth if texture.dimension == "3d" else texture.size[2])


class TextureSide(NamedTuple):
    """The texture side of a copy: extent, texel format and direction."""

    size: Extent
    texels: Texels
    writes: bool  # the texture
    fill: bytes = b""  # 16 bytes of the fourth channel's value, for tensors of three channels


def check_region(device: Device, region: Region, side: TextureSide) -> None:
    """Raise ValueError if wgpu would reject a copy between a region and a buffer of the device."""
    check_process()
    size, texels, writes, _ = side
    texture, origin, mip_level, aspect = region
    name = describe_texture(texture)
    if is_elsewhere(device, texture):
        raise ValueError(f"{name} is not on {device}: make the tensor on the texture's device")
    usage = "COPY_DST" if writes else "COPY_SRC"
    if not texture.usage & getattr(TextureUsage, usage):
        raise ValueError(
            f"{name} lacks usage {usage}: create it with that usage (of a pygfx texture, call gpu_texture "
            "before its first render)"
        )
    if texture.sample_count != 1:
        raise ValueError(
            f"{name} has {texture.sample_count} samples per texel: resolve it into another texture"
        )
    extent = level_extent(texture, mip_level)
    for axis, start, count, limit in zip("xyz", origin, size, extent, strict=True):
        if start + count > limit:
            # Sizes (height, width, 1) are as many layers as rows to a format of one channel.
            image = writes and texels.channels == 1 and size[0] == 1 < size[2]
            remedy = ", or if x is (height, width, 1), copy x.squeeze(-1)" * image
            raise ValueError(
                f"origin {origin} and size {size} reach {axis} = {start + count}: mip level {mip_level} of "
                f"{name} has {' x '.join(map(str, extent))} texels; move or shrink the region{remedy}"
            )
    fault = opengl_fault(texture, origin, texels, writes) if device.adapter.backend == "OpenGL" else None
    if fault is not None:
        raise ValueError(f"{name}: wgpu on OpenGL {fault}; use an adapter of another backend")
    if aspect != "all" and "-stencil8" in texture.format and not device.host.copies_single_aspects:
        raise ValueError(
            f"{name}: {device} copies no single aspect, such as {aspect!r}, by wgpu's public calls"
        )
    if not texels.is_color and (origin[:2], size[:2]) != ((0, 0), extent[:2]):
        raise ValueError(
            f"origin {origin} and size {size}: WebGPU copies depth and stencil whole, from (0, 0) the "
            f"{extent[0]} x {extent[1]} texels of mip level {mip_level}"
        )


def opengl_fault(texture: Texture, origin: Extent, texels: Texels, writes: bool) -> str | None:
    """Name the reason why wgpu 0.32 rejects a copy on OpenGL or copies other texels silently, if any."""
    width, height, layers = texture.size
    if not texels.is_color:
        return "copies no depth or stencil"
    if writes:
        return None
    if "snorm" in texture.format:
        return "reads negative snorm as 0"
    if texture.dimension == "3d" and origin[2] > 0:
        return "reads 3d textures from z = 0 only"
    if texture.dimension == "2d" and width == height and layers % 6 == 0:
        return "cannot read layers of a texture that may be a cube map"
    return None


def check_texture_alive(device: Device, texture: Texture) -> None:
    """Raise if a texture has been destroyed or its device is lost: a submission would abort."""
    try:
        if sink().runs:
            with device.calls:
                device.host.check_valid(device.wgpu_device)
                texture.create_view()
    except ValueError:
        raise ValueError(f"{describe_texture(texture)} has been destroyed: make it again") from None


def rest_of_level(region: Region) -> Extent:
    """Return the extent from the origin of a region to the end of its mip level."""
    extent = level_extent(region.texture, region.mip_level)
    width, height, depth = (max(limit - start, 0) for start, limit in zip(region.origin, extent, strict=True))
    return width, height, depth


def placed_plans(
    device: Device, tensor: Binding, side: TextureSide, new_staging: Callable[[int], Buffer]
) -> list[tuple[Plan, Sequence[Place]]]:
    """Plan a copy between a texture and a tensor of four dimensions, with a staging buffer if needed."""
    (size, texels, writes, fill), limits = side, device.limits
    buffer, itemsize = tensor.buffer, tensor.itemsize
    usage = BufferUsage.COPY_SRC if writes else BufferUsage.COPY_DST
    if buffer.usage & usage and not fill:
        base, layout, _ = rebase(tensor.layout, itemsize, limits)
        plan = plan_texture_copy(layout, texels, limits, writes=writes)
        if plan is not None:
            return [(plan, [Place(buffer, tensor.offset_nbytes + base)] * 2)]
    rows = padded_rows(size, texels)
    is_filled = fill and itemsize < WORD_NBYTES
    planner, target = filled_rows(size, texels, fill) if is_filled else (plan_copy, rows)
    staging = Binding(new_staging(target.stop * itemsize), target, itemsize, fresh=True)
    plan = plan_texture_copy(rows, texels, limits, writes=writes)
    assert plan is not None  # padded rows fit a texture copy
    of_texture = plan, [Place(staging.buffer)] * 2
    if not writes:
        return [of_texture, place(limits, Copy(staging, tensor))]
    copies = [Copy(tensor, staging, planner)]
    if fill and not is_filled:  # filled rows take 1.1 to 4.5 times as long by each shipped cost model
        repeated = Layout.of((*rows.sizes[:-1], 1), (0, 0, 0, 0))
        alpha = Binding(device.pipelines.constant(fill), repeated, itemsize, fresh=True)
        outer = [*map(range, rows.sizes[:-1])]
        colors, last = (rows.select([*outer, channels]) for channels in (range(3), range(3, 4)))
        parts = (tensor, staging._replace(layout=colors)), (alpha, staging._replace(layout=last))
        copies = [Copy(*part) for part in parts]
    return [*(place(limits, copy) for copy in copies), of_texture]


def record_texture_copy(
    device: Device,
    encoder: CommandEncoder | None,
    region: Region,
    tensor: Binding,
    side: TextureSide,
    new_staging: Callable[[int], Buffer],
    check: Check,
) -> Recorder:
    """Record a copy between a checked region and a tensor into the encoder, or a new one for None."""
    if not tensor.fresh:
        check_given(device, [("input" if side.writes else "output", tensor.buffer)], check)
    check_texture_alive(device, region.texture)
    recorder = Recorder(device, encoder, region)
    if tensor.layout.size:
        for plan, places in placed_plans(device, tensor, side, new_staging):
            recorder.add(plan, places)
    return recorder


def check_readable(device: Device, region: Region, side: TextureSide) -> None:
    """Raise if texels cannot be read back: in a captured call, or of a destroyed texture or lost device."""
    sink().check_runs(f"{prod(side.size) * side.texels.nbytes} bytes are read back")
    check_texture_alive(device, region.texture)


def begin_reading(device: Device, region: Region, size: Extent, texels: Texels) -> Readback:
    """Submit a copy of a region to a staging buffer, with rows as WebGPU pads them."""
    nbytes = padded_rows(size, texels).stop * texels.dtype.itemsize
    readback = Readback(device, max(nbytes, STAGING_NBYTES))
    encoder, padded = device.new_encoder(), padded_nbytes(size[0], texels)
    with device.calls:
        rows = TexelRows(readback.staging, 0, padded, size[1])
        device.host.copy_texels(encoder, region, rows, size, writes=False)
    readback.begin(None, nbytes, encoder)
    return readback


def texels_in(data: NDArray[np.uint8], size: Extent, texels: Texels) -> NDArray[Any]:
    """Return a view of the texels in padded rows, of four dimensions."""
    rows = padded_rows(size, texels)
    strides = [stride * texels.dtype.itemsize for stride in rows.strides]
    return np.ndarray(rows.sizes, texels.dtype, data, 0, strides)


def map_texels(device: Device, region: Region, side: TextureSide) -> NDArray[Any]:
    """Wait for the GPU, then return a read-only array on a mapped copy of a checked region, not empty.

    The memory stays mapped until the array and its views are dropped.
    """
    size, texels, _, _ = side
    nbytes = padded_rows(size, texels).stop * texels.dtype.itemsize
    if nbytes > device.largest_buffer_nbytes:
        raise ValueError(
            f"rows padded to {ROW_NBYTES} bytes have {nbytes}: {device} allows buffers of at most "
            f"{device.largest_buffer_nbytes}; map smaller regions"
        )
    device.host.guard_mappings(device.wgpu_device, device.staging.in_use)
    return texels_in(begin_reading(device, region, size, texels).mapped_array(), size, texels)


def read_texels(device: Device, region: Region, side: TextureSide, array: NDArray[Any]) -> None:
    """Wait for the GPU, then fill an array of any strides from a checked region of a texture.

    Bands of rows arrive in staging buffers as WebGPU pads them, and the host's copy leaves the padding out.
    """
    (width, height, depth), texels, _, _ = side
    sizes = depth, height, width, texels.channels
    into = np.asarray(array).reshape(sizes)  # a view: only sizes of 1 come and go
    row_nbytes = padded_nbytes(width, texels)
    rows = max(STAGING_NBYTES // (row_nbytes * depth), 1) if texels.is_color else height
    bands = [range(first, min(first + rows, height)) for first in range(0, height, rows)]
    x, y, z = region.origin

    def begun(band: range) -> Readback:
        part = region._replace(origin=(x, y + band.start, z))
        return begin_reading(device, part, (width, len(band), depth), texels)

    for data, band in zip(arriving(map(begun, bands)), bands, strict=True):
        into[:, band.start : band.stop] = texels_in(data, (width, len(band), depth), texels)

"""Texel formats, and the rows of texels in buffers that WebGPU copies to textures and back."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from wgslice.arguments import U32_MAX
from wgslice.dtypes import DType
from wgslice.layout import Layout
from wgslice.plans.plan import Plan, Planner
from wgslice.plans.profiles import MAX_PLANS, Limits
from wgslice.plans.steps import Memory, TextureCopy
from wgslice.plans.window_strategies import plan_windows
from wgslice.plans.windows import Windows

ROW_NBYTES = 256  # WebGPU: rows in a buffer begin at multiples of 256 bytes from the first one

Aspect: TypeAlias = Literal["all", "depth-only", "stencil-only"]
Extent: TypeAlias = tuple[int, int, int]  # width, height, and depth or layers, in texels

KINDS = {
    **{"unorm": ("u", (8, 16)), "snorm": ("i", (8, 16))},
    **{"uint": ("u", (8, 16, 32)), "sint": ("i", (8, 16, 32)), "float": ("f", (16, 32))},
}
COLORS = {  # channels and dtypes
    f"{channels}{bits}{kind}": (len(channels), f"{letter}{bits // 8}")
    for channels in ("r", "rg", "rgba")
    for kind, (letter, widths) in KINDS.items()
    for bits in widths
}
COLORS |= dict.fromkeys(("rgba8unorm-srgb", "bgra8unorm", "bgra8unorm-srgb"), (4, "u1"))
DEPTH_AND_STENCIL: dict[str, dict[Aspect, str]] = {  # dtypes of the aspects that WebGPU copies
    "stencil8": {"stencil-only": "u1"},
    "depth16unorm": {"depth-only": "u2"},
    "depth32float": {"depth-only": "f4"},
    "depth24plus": {},
    "depth24plus-stencil8": {"stencil-only": "u1"},
    "depth32float-stencil8": {"depth-only": "f4", "stencil-only": "u1"},
}


class Texels(NamedTuple):
    """The part of each texel that a copy reads or writes."""

    dtype: DType
    channels: int
    aspect: Aspect
    is_color: bool  # other copies, of depth and stencil, take whole mip levels

    @property
    def nbytes(self) -> int:
        """Bytes of one texel in a buffer."""
        return self.channels * self.dtype.itemsize

    @property
    def alignment_nbytes(self) -> int:
        """Unit of the offset of the first row in a buffer."""
        return self.nbytes if self.is_color else 4


@lru_cache(maxsize=MAX_PLANS)
def texels_of(format: str, aspect: Aspect, *, writes: bool) -> Texels:
    """Return the part of a format's texels that a copy moves; raise ValueError if WebGPU has no such copy."""
    if format in COLORS:
        channels, dtype = COLORS[format]
        if aspect != "all":
            raise ValueError(f'aspect = {aspect!r}: must be "all" for the format {format}')
        return Texels(np.dtype(dtype), channels, aspect, is_color=True)
    if format not in DEPTH_AND_STENCIL:
        raise ValueError(
            f"format {format!r}: must be r, rg or rgba with 8, 16 or 32 bits a channel, bgra8unorm, or of "
            "depth or stencil; draw compressed and packed texels into a texture of such a format"
        )
    copied = {
        name: dtype for name, dtype in DEPTH_AND_STENCIL[format].items() if not (writes and dtype == "f4")
    }
    if not copied:
        verb, remedy = ("into", "draw into the texture") if writes else ("from", "depth32float is copied")
        raise ValueError(f"format {format}: WebGPU does not copy {verb} its depth; {remedy}")
    if aspect == "all" and len(copied) == 1:
        (aspect,) = copied
    if aspect not in copied:
        names = " or ".join(f'"{name}"' for name in copied)
        raise ValueError(f"aspect = {aspect!r}: must be {names} for the format {format}")
    return Texels(np.dtype(copied[aspect]), 1, aspect, is_color=False)


def shape_of(size: Extent, dimension: str, channels: int) -> tuple[int, ...]:
    """Return a tensor's sizes: layers or depth unless 1, height unless 1d, width, channels unless 1."""
    width, height, depth = size
    rows = () if dimension == "1d" else (height,)
    layers = () if depth == 1 else (depth,)
    return (*layers, *rows, width, *([channels] if channels > 1 else []))


def extent_of(shape: Sequence[int], channels: int) -> Extent:
    """Return the extent of the region for a tensor of rank 1 to 3 before its channels."""
    sizes = [*shape[: len(shape) - (channels > 1)]]
    width, height, depth = [*sizes[::-1], 1, 1][:3]
    return width, height, depth


def in_four(layout: Layout, channels: int) -> Layout:
    """Return a tensor's layout with four dimensions: depth or layers, height, width, channels."""
    keys: list[range | None] = [*map(range, layout.sizes), *([None] if channels == 1 else [])]
    return layout.select([*[None] * (4 - len(keys)), *keys])


@lru_cache(maxsize=MAX_PLANS)
def padded_rows(size: Extent, texels: Texels) -> Layout:
    """Return the layout of a region's rows for a texture copy, each but the last one padded."""
    width, height, depth = size
    row = padded_nbytes(width, texels) // texels.dtype.itemsize
    return Layout.of((depth, height, width, texels.channels), (height * row, row, texels.channels, 1))


@lru_cache(maxsize=MAX_PLANS)
def filled_rows(size: Extent, texels: Texels, fill: bytes) -> tuple[Planner, Layout]:
    """Return planner and target of a copy to padded rows whose other texels and channels are a fill."""
    width, height, depth = size
    extents = depth, height, padded_nbytes(width, texels) // texels.nbytes, texels.channels
    start, forwards = np.zeros((1, 4), np.int32), np.zeros(1, np.uint32)
    window = Windows(extents, (1, 1, 1, 1), forwards, start, start.itemsize, True, fill)
    return partial(plan_windows, window), Layout.packed((1, *extents))


def padded_nbytes(width: int, texels: Texels) -> int:
    """Return the least number of bytes from one row to the next."""
    return -(-width * texels.nbytes // ROW_NBYTES) * ROW_NBYTES


@lru_cache(maxsize=MAX_PLANS)
def plan_texture_copy(layout: Layout, texels: Texels, limits: Limits, *, writes: bool) -> Plan | None:
    """Return the plan of a copy between a texture and a buffer, or None if WebGPU needs another layout."""
    depth, height, width, channels = layout.sizes
    itemsize = texels.dtype.itemsize
    layer_nbytes, row_nbytes, *steps = (stride * itemsize for stride in layout.strides)
    if height == 1:
        row_nbytes = layer_nbytes if depth > 1 else padded_nbytes(width, texels)
    image_rows, rest = divmod(layer_nbytes, row_nbytes) if depth > 1 and row_nbytes > 0 else (height, 0)
    packed = [texels.nbytes * (width > 1), itemsize * (channels > 1)]
    fits = max(width * texels.nbytes, 1) <= row_nbytes <= U32_MAX and height <= image_rows <= U32_MAX
    offset_nbytes = layout.offset * itemsize
    aligned = not (row_nbytes % ROW_NBYTES or rest or offset_nbytes % texels.alignment_nbytes)
    if steps != packed or not fits or not aligned:
        return None
    nbytes = layout.size * itemsize
    sides = (Memory.INPUT, Memory.TEXTURE) if writes else (Memory.TEXTURE, Memory.OUTPUT)
    step = TextureCopy((width, height, depth), offset_nbytes, row_nbytes, image_rows, nbytes, *sides)
    return Plan(nbytes, itemsize, itemsize, layout, layout, (step,), costs=limits.profile.costs)

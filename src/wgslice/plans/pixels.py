"""Rows of pixels: which copies are such, and what their kernel is compiled for."""

from __future__ import annotations

from dataclasses import dataclass

from wgslice.arguments import MAX_RANK
from wgslice.layout import Layout
from wgslice.plans.kernels import WIDEST_NBYTES
from wgslice.plans.profiles import PIXEL_BLOCKS
from wgslice.plans.rows import is_ragged

__all__ = ["MOST_BLOCKS", "Pixels", "are_pixels", "as_pixels", "pixels_of"]

MOST_CHANNELS = 4  # of a pixel
LEAST_ROW_NBYTES = 64  # that hold the largest group of blocks
MOST_BLOCKS = 12  # that the kernel has room for; Mali's compiler keeps more than 15 in memory


@dataclass(frozen=True)
class Pixels:
    """Rows of pixels: what their kernel is compiled for."""

    channels: int
    pixel_step: int  # elements from one pixel to the next in a part of the source
    channel_step: int  # elements from one channel to the next in what is read, part after part
    group_blocks: int  # of 16 bytes, that an invocation writes
    parts: int  # stretches of the source that hold a group
    part_blocks: int  # that hold what is read of a part
    apart: bool  # whether each channel has a plane of its own in the target
    ragged: bool  # whether some row begins or ends inside a block


def as_pixels(source: Layout, target: Layout) -> tuple[Layout, Layout]:
    """Two layouts whose last two dimensions are pixels and their channels, of which there may be one.

    Channels that have planes of their own in the target are a dimension whose elements lie nearer to each
    other in the source than pixels do.
    """
    if target.rank == 0 or target.sizes[-1] <= MOST_CHANNELS:
        return source, target
    inside = [
        axis
        for axis, (size, stride) in enumerate(zip(source.sizes[:-1], source.strides[:-1], strict=True))
        if 1 < size <= MOST_CHANNELS and 0 < abs(stride) < abs(source.strides[-1]) <= MOST_CHANNELS
    ]
    if inside:
        order = [*(axis for axis in range(target.rank) if axis != inside[0]), inside[0]]
        return source.permuted(order), target.permuted(order)
    keys = [*map(range, target.sizes), None]
    return source.select(keys), target.select(keys)


def pixels_of(source: Layout, target: Layout, width_nbytes: int) -> Pixels:
    """The last two dimensions as pixels and channels."""
    channels = target.sizes[-1]
    pixel_step, channel_step = source.strides[-2], source.strides[-1]
    apart, planes = has_planes(target), abs(channel_step) >= MOST_CHANNELS
    group_blocks = channels if apart or planes else PIXEL_BLOCKS[channels]
    ragged = is_ragged(target, width_nbytes, dimensions=2)
    lanes = WIDEST_NBYTES // width_nbytes  # elements a block
    pixels = group_blocks * lanes // channels + (ragged and channels > 1)
    reach = (pixels - 1) * abs(pixel_step) + 1 + (0 if planes else (channels - 1) * abs(channel_step))
    part_blocks = -(-reach // lanes)
    if planes:
        channel_step = part_blocks * lanes
    parts = channels if planes else 1
    return Pixels(channels, pixel_step, channel_step, group_blocks, parts, part_blocks, apart, ragged)


def has_planes(target: Layout) -> bool:
    """Whether each channel of a pixel lies in a plane of its own."""
    return target.sizes[-1] > 1 and target.strides[-2] == 1


def are_pixels(source: Layout, target: Layout, width_nbytes: int) -> bool:
    """Whether rows are pixels of 1 to 4 channels, near each other in the source.

    Of one channel, every third element, since other steps are for other kernels.
    """
    nested = target.is_nested
    source, target = as_pixels(source, target)
    if not 2 <= target.rank <= MAX_RANK or target.sizes[-1] > MOST_CHANNELS:
        return False
    count, channels = target.sizes[-2:]
    steps = [3] if channels == 1 else range(1, MOST_CHANNELS + 1)
    if abs(source.strides[-2]) not in steps:
        return False
    pixels = pixels_of(source, target, width_nbytes)
    if pixels.parts * pixels.part_blocks > MOST_BLOCKS:
        return False
    row_nbytes = count * width_nbytes
    if has_planes(target):
        places = target.offset, count, target.strides[-1], *target.strides[:-2]
        whole = all(place * width_nbytes % WIDEST_NBYTES == 0 for place in places)
        return whole and row_nbytes >= LEAST_ROW_NBYTES
    beside = target.strides[-2] == channels and target.strides[-1] == (channels > 1)
    return nested and beside and row_nbytes * channels >= LEAST_ROW_NBYTES
